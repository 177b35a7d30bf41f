//! Audit: a line in the log for whoever changed something, and for whoever was not let.
//!
//! ```text
//! INFO admin.audit: a request that changes something who=alice from=127.0.0.1:51312 what="console rules.reload" outcome="200 OK"
//! WARN admin.audit: a request was refused cause="no_key" who=nobody from=127.0.0.1:51313 what="capture"
//! ```
//!
//! What was carried out, or tried with a key of enough rights, has its line always; of refusals, which strangers can
//! cause, at most ten are written in a second and the others counted in the next. What was asked is quoted, escaped and
//! cut, and words that may be keys are left out. Whoever leaves before the answer is there has a line, too, for the
//! request may have been carried out.
//!
//! Runs on the admin thread.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::StatusCode;
use throng_profiler::{log_category, log_every, log_warn};

use super::changes::Changes;
use super::gate::Refusal;

log_category!(AUDIT = "admin.audit");

/// Of what was asked. A command with its words has some 50.
const WHAT_CHARACTERS_MAX: usize = 200;
/// As many hexadecimal digits on end are half a key or more, and no number.
const DIGITS_OF_KEY: usize = 32;

/// A request that changes something, until its outcome is known; its line is written, and kept among the last changes,
/// when this is dropped.
pub(crate) struct Audited {
    who: String,
    from: SocketAddr,
    what: String,
    outcome: Option<StatusCode>,
    changes: Arc<Changes>,
}

impl Audited {
    pub(crate) fn begin(who: &str, from: SocketAddr, what: &str, changes: &Arc<Changes>) -> Self {
        Self { who: who.to_owned(), from, what: shown(what), outcome: None, changes: changes.clone() }
    }

    pub(crate) fn end(mut self, outcome: StatusCode) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Audited {
    fn drop(&mut self) {
        let outcome = match self.outcome {
            Some(status) => status.to_string(),
            None => "the asker left before the answer".to_owned(),
        };
        let (who, from, what) = (&self.who, self.from, &self.what);
        self.changes.add(who, from, what, &outcome);
        log_every!(AUDIT, %who, %from, ?what, ?outcome, "a request that changes something");
    }
}

/// Writes that a request was not let.
pub(crate) fn refused(refusal: &Refusal, from: SocketAddr, what: &str) {
    let (cause, who, what) = (refusal.cause.name(), refusal.who.as_deref().unwrap_or("nobody"), shown(what));
    log_warn!(AUDIT, cause, %who, %from, ?what, "a request was refused");
}

/// As much of it as is fit for a log.
fn shown(what: &str) -> String {
    let may_be_key =
        |word: &str| word.split(|digit: char| !digit.is_ascii_hexdigit()).any(|run| run.len() >= DIGITS_OF_KEY);
    let words = what.split(' ').map(|word| if may_be_key(word) { "(hidden)" } else { word });
    words.collect::<Vec<_>>().join(" ").chars().take(WHAT_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_is_cut_and_holds_no_key() {
        let key = "5e0c".repeat(16);
        let check = |what: &str, expect: &str| assert_eq!(shown(what), expect);
        check("console rules.reload", "console rules.reload");
        check(&format!("console say key={key} {key}"), "console say (hidden) (hidden)");
        check(&format!("console say\t{key}\n"), "console (hidden)");
        check(&format!("console hash {}", &key[..16]), "console hash 5e0c5e0c5e0c5e0c");
        check(&"ß".repeat(1_000), &"ß".repeat(WHAT_CHARACTERS_MAX));
    }
}
