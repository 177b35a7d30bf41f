//! Gate: what a request needs, whose key it shows, and whether that is enough.
//!
//! Who asks is known before the body is read; what a line for the console needs only after it. So there are two steps,
//! [`Gate::admit`] and [`Gate::permit`], and a request passes both. All that they judge by is handed to them, but for
//! the clock.
//!
//! A request with a key is judged by its key even where it needs none: whoever shows a wrong one has made a mistake, and
//! is told. `/health` alone looks at none, so that nothing can keep a supervisor from it.
//!
//! Runs on the admin thread.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode};
use throng::metrics::LabelledCounters;
use throng_platform::clock::Clock;
use throng_platform::time::Nanos;

use super::back_off::BackOff;
use super::keys::{AccessKeys, secret_of};
use crate::origin_check::OwnNames;
use throng::console::Role;

/// What a request needs as far as its method and path say; `None`: no key, from anywhere. Every page is decided on here.
///
/// Methods that change nothing by the book of HTTP read; what has another changes something. The console's commands say
/// for themselves what they need beyond reading.
pub(crate) fn needs(method: &Method, path: &str) -> Option<Role> {
    match path {
        HEALTH => None,
        // A browser asks for them before it can show a key; what they show they ask for with one.
        CONSOLE_PAGE | VIEWER_PAGE if method.is_safe() => None,
        CONSOLE => Some(Role::Observe),
        _ if method.is_safe() => Some(Role::Observe),
        _ => Some(Role::Operate),
    }
}

/// What links of dashboards lead to.
fn is_of_captures(path: &str) -> bool {
    path.strip_prefix(CAPTURES).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(crate) const CAPTURES: &str = "/captures";
pub(crate) const HEALTH: &str = "/health";
pub(crate) const CONSOLE: &str = "/console";
pub(crate) const CONSOLE_PAGE: &str = "/";
pub(crate) const VIEWER_PAGE: &str = "/viewer";

/// Judges every request to one port.
pub(crate) struct Gate {
    names: OwnNames,
    keys: AccessKeys,
    /// Whether reading is open to whoever is on this host.
    is_loopback: bool,
    clock: Arc<dyn Clock>,
    /// Touched by the admin thread alone: nobody ever waits for it.
    back_off: Mutex<BackOff>,
    counts: Counts,
}

/// Somebody who was let in, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The name of the key.
    pub who: Option<String>,
    /// What this caller may.
    pub may: Option<Role>,
}

/// Why a request is not answered.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    pub cause: Cause,
    /// The name of the key, if it was a right one.
    pub who: Option<String>,
    /// How long the asker is to wait (s, rounded up).
    pub retry_after_s: Option<u64>,
    /// What the asker is told, with what to do.
    pub text: String,
}

/// A label of the counter, and a field of the audit line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It came from another server's page, or asked for a name that is not this port's.
    Origin,
    NoKey,
    WrongKey,
    /// The key is right, and its role is not enough.
    Role,
    /// Too many wrong keys came from there.
    BackOff,
}

impl Cause {
    const ALL: [Self; 5] = [Self::Origin, Self::NoKey, Self::WrongKey, Self::Role, Self::BackOff];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::NoKey => "no_key",
            Self::WrongKey => "wrong_key",
            Self::Role => "role",
            Self::BackOff => "back_off",
        }
    }

    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Origin | Self::Role => StatusCode::FORBIDDEN,
            Self::NoKey | Self::WrongKey => StatusCode::UNAUTHORIZED,
            Self::BackOff => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// Since the server's start. Counted by the admin thread, and read by it.
#[derive(Debug, Default)]
struct Counts {
    refused: [AtomicU64; Cause::ALL.len()],
    operated: AtomicU64,
}

impl Gate {
    /// A gate for a port at `address`.
    pub(crate) fn new(address: SocketAddr, names: OwnNames, keys: AccessKeys, clock: Arc<dyn Clock>) -> Self {
        let is_loopback = is_loopback(address);
        Self { names, keys, is_loopback, clock, back_off: Mutex::default(), counts: Counts::default() }
    }

    /// Whether a request may be looked at further, by its head.
    pub(crate) fn admit(
        &self,
        from: IpAddr,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Caller, Refusal> {
        let may_be_linked = method.is_safe() && is_of_captures(path);
        self.names.refuse(headers, may_be_linked).map_err(|text| self.refuse(Cause::Origin, None, text))?;
        let Some(role) = needs(method, path) else {
            return Ok(Caller { who: None, may: None });
        };
        let caller = self.caller(from, headers)?;
        self.permit(&caller, role)?;
        Ok(caller)
    }

    /// Whether the caller may do what needs this role.
    pub(crate) fn permit(&self, caller: &Caller, role: Role) -> Result<(), Refusal> {
        match (&caller.who, caller.may) {
            (_, Some(may)) if may >= role => Ok(()),
            (Some(who), _) => {
                let text = format!(
                    "`{who}` may not do this: it needs a key of the role {role}, which [server] admin_keys_file gives"
                );
                Err(self.refuse(Cause::Role, Some(who.clone()), text))
            }
            (None, _) => {
                let text = format!("this needs a key of the role {role}: {HOW}");
                Err(self.refuse(Cause::NoKey, None, text))
            }
        }
    }

    /// Whose key the request shows; without one it may do what this port's address lets everybody do.
    fn caller(&self, from: IpAddr, headers: &HeaderMap) -> Result<Caller, Refusal> {
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        let Some(first) = shown.next() else {
            return Ok(Caller { who: None, may: self.is_loopback.then_some(Role::Observe) });
        };
        let now = self.clock.now();
        if let Some(left) = self.back_off().left(from, now) {
            let retry_after_s = left.0.div_ceil(Nanos::from_secs(1).0);
            let text = format!(
                "too many wrong keys came from this address: wait {retry_after_s} s, or ask without a key for what needs none"
            );
            return Err(Refusal { retry_after_s: Some(retry_after_s), ..self.refuse(Cause::BackOff, None, text) });
        }
        let only = first.to_str().ok().filter(|_| shown.next().is_none());
        let secret = only.and_then(bearer).and_then(|text| secret_of(text).ok());
        match secret.and_then(|secret| self.keys.find(&secret)) {
            Some(key) => Ok(Caller { who: Some(key.name().to_owned()), may: Some(key.role()) }),
            None => {
                self.back_off().fail(from, now);
                Err(self.refuse(Cause::WrongKey, None, format!("this is no key of this server: {HOW}")))
            }
        }
    }

    /// Counts a request that was let through to change something.
    pub(crate) fn note_operated(&self) {
        self.counts.operated.fetch_add(1, Ordering::Relaxed);
    }

    /// What was refused and let through.
    pub(crate) fn counters(&self) -> Vec<LabelledCounters> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counts { refused, operated } = &self.counts;
        let by_cause = |cause: Cause| (vec![cause.name().to_owned()], count(&refused[cause as usize]));
        let [(refused_name, refused_help), (operated_name, operated_help)] = FAMILIES;
        let rows = Cause::ALL.map(by_cause).to_vec();
        vec![
            LabelledCounters { name: refused_name, help: refused_help, keys: &["cause"], rows },
            LabelledCounters {
                name: operated_name,
                help: operated_help,
                keys: &[],
                rows: vec![(Vec::new(), count(operated))],
            },
        ]
    }

    fn refuse(&self, cause: Cause, who: Option<String>, text: String) -> Refusal {
        self.counts.refused[cause as usize].fetch_add(1, Ordering::Relaxed);
        Refusal { cause, who, retry_after_s: None, text }
    }

    fn back_off(&self) -> MutexGuard<'_, BackOff> {
        // Its numbers are whole whatever happened.
        self.back_off.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How somebody comes by a key.
const HOW: &str = "`throng` finds it by itself as the user who runs a server on this host, takes --admin-key-file FILE and \
                   the variable THRONG_ADMIN_KEY; others send the header `Authorization: Bearer KEY`";

/// Whether only this host can reach the address.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// The key in `Bearer KEY`.
fn bearer(text: &str) -> Option<&str> {
    let (scheme, key) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key)
}

/// Dotted name and help, as `docs/metrics.md` has them.
pub(crate) const FAMILIES: [(&str, &str); 2] = [
    ("admin.refused", "Requests to the admin port that were refused."),
    ("admin.operated", "Requests to the admin port that change something and were let through."),
];

#[cfg(test)]
mod tests;
