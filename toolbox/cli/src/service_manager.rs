//! Service manager: systemd, or whoever speaks its protocol, is told that the server is ready, that it lives, and that it
//! ends.
//!
//! ```text
//! READY=1      the first tick has run: from now on who connects can play
//! STATUS=...   what an operator reads in `systemctl status`: once a second, when it has changed
//! WATCHDOG=1   frames go on, twice in the time that WATCHDOG_USEC gives; none: the service manager ends the server
//! STOPPING=1   it was told to end, and tells its players
//! ```
//!
//! Each is a datagram to the socket that `NOTIFY_SOCKET` names. It is a few lines; a crate for it would bring more than it
//! saves. A thread of low priority sends them, where somebody wants them, so nothing waits for whoever does not read. A
//! supervisor takes the service manager's place ([`crate::supervisor`]), and hears of beginning and end alone.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::AsFd,
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use throng::metrics::PublishedMetrics;
use throng_platform::{
    poll::wait_readable,
    signals::StopFlag,
    threads::{Priority, spawn_named},
    time::Nanos,
};

/// Where it listens.
pub const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";
/// How soon it wants to hear of a server that lives (µs), and which process it means.
pub const WATCHDOG_VARIABLES: [&str; 2] = ["WATCHDOG_USEC", "WATCHDOG_PID"];

pub const READY: &str = "READY=1";
pub const STOPPING: &str = "STOPPING=1";
const ALIVE: &str = "WATCHDOG=1";

/// While the first tick is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// As often as there is a new one.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// Somebody who wants to hear of this process.
pub struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
    /// Within which time it wants to hear that the server lives.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// By the variables of the environment, which `variable` looks up; `None`: there is nobody.
    ///
    /// # Errors
    /// If they name what this process cannot speak to.
    pub fn find(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, String> {
        let Some(name) = variable(SOCKET_VARIABLE).filter(|name| !name.is_empty()) else { return Ok(None) };
        let wrong = |error: io::Error| format!("{SOCKET_VARIABLE} is {name:?}, and that cannot be spoken to: {error}");
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            [b'/', ..] => SocketAddr::from_pathname(&name),
            _ => Err(io::Error::other("it is neither a path nor an abstract name")),
        };
        let socket = UnixDatagram::unbound().and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
        let [watchdog_us, watchdog_pid] =
            WATCHDOG_VARIABLES.map(|name| variable(name).and_then(|value| value.to_str()?.parse::<u64>().ok()));
        let is_meant = watchdog_pid.is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = watchdog_us.filter(|us| *us > 0 && is_meant).map(Duration::from_micros);
        Ok(Some(Self { socket: socket.map_err(wrong)?, address: address.map_err(wrong)?, watchdog }))
    }

    /// Sends a word. One that is not heard is not said again: there is nobody to tell of it.
    pub fn say(&self, word: &str) {
        let _ = self.socket.send_to_addr(word.as_bytes(), &self.address);
    }
}

/// Tells a service manager of this server until it is dropped.
pub struct Telling {
    ended: StopFlag,
    /// What is to be told next.
    status: Option<Arc<Mutex<Option<String>>>>,
    thread: Option<JoinHandle<()>>,
}

impl Telling {
    /// Says when the first tick has run, that frames go on, and when `stop` is requested, from a thread of its own.
    /// `wants_status`: and what [`status`](Self::status) is given.
    pub fn start(
        manager: ServiceManager,
        published: Arc<PublishedMetrics>,
        stop: StopFlag,
        wants_status: bool,
    ) -> io::Result<Self> {
        let ended = StopFlag::new()?;
        let status = wants_status.then(Arc::default);
        let mut teller =
            Teller { manager, published, stop, is_ready: false, is_stopping: false, alive_at: Instant::now() };
        let thread = spawn_named("service-manager", Priority::Low, {
            let (ended, status) = (ended.clone(), status.clone());
            move || {
                while !ended.requested() {
                    teller.wait(&ended, status.is_some());
                    teller.look();
                    let status = status.iter().find_map(|status| lock(status).take());
                    status.iter().for_each(|status| teller.manager.say(status));
                }
                teller.tell_stopping();
            }
        })?;
        Ok(Self { ended, status, thread: Some(thread) })
    }

    /// What an operator is to read, of one line; `text` makes it.
    pub fn status(&self, text: impl FnOnce() -> String) {
        if let Some(status) = &self.status {
            *lock(status) = Some(format!("STATUS={}", text()));
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.ended.request();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What the thread knows.
struct Teller {
    manager: ServiceManager,
    published: Arc<PublishedMetrics>,
    stop: StopFlag,
    is_ready: bool,
    is_stopping: bool,
    alive_at: Instant,
}

impl Teller {
    /// Twice within the time, so that one word that is late does not end the server.
    fn period(&self) -> Option<Duration> {
        self.manager.watchdog.map(|within| within / 2)
    }

    /// Until there may be something to tell. In a server that is to tell nothing more it sleeps.
    fn wait(&self, ended: &StopFlag, wants_status: bool) {
        let alive = self.period().map(|period| period.saturating_sub(self.alive_at.elapsed()));
        let look = (!self.is_ready).then_some(LOOK_EVERY);
        let status = wants_status.then_some(STATUS_EVERY);
        let longest = [alive, look, status].into_iter().flatten().min();
        let fds = [ended.as_fd(), self.stop.as_fd()];
        // Once it is requested it stays readable.
        let fds = if self.is_stopping { &fds[..1] } else { &fds };
        // What fails here fails each time: then it looks more often.
        if wait_readable(fds, longest.map(|longest| Nanos(longest.as_nanos() as u64))).is_err() {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn look(&mut self) {
        if self.stop.requested() {
            self.tell_stopping();
        }
        if !self.is_ready && self.published.has_ticked() {
            self.is_ready = true;
            self.manager.say(READY);
        }
        if let Some(period) = self.period().filter(|period| self.alive_at.elapsed() >= *period) {
            if is_alive(&self.published, period) {
                self.manager.say(ALIVE);
            }
            self.alive_at = Instant::now();
        }
    }

    fn tell_stopping(&mut self) {
        if !std::mem::replace(&mut self.is_stopping, true) {
            self.manager.say(STOPPING);
        }
    }
}

fn lock(status: &Mutex<Option<String>>) -> MutexGuard<'_, Option<String>> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frames go on: one has ended since the last word, or nothing is due.
fn is_alive(published: &PublishedMetrics, period: Duration) -> bool {
    published.is_sleeping() || Duration::from(published.frame_age()) < period
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Result<Option<ServiceManager>, String> {
        ServiceManager::find(|name| variables.iter().find(|known| known.0 == name).map(|known| known.1.into()))
    }

    #[test]
    fn a_word_reaches_a_socket_by_its_path_and_by_its_abstract_name() {
        let path = std::env::temp_dir().join(format!("throng-notify-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let by_path = UnixDatagram::bind(&path).unwrap();
        let name = format!("throng-notify-{}", std::process::id());
        let by_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        for (socket, named) in [(by_path, path.display().to_string()), (by_name, format!("@{name}"))] {
            find(&[(SOCKET_VARIABLE, &named)]).unwrap().expect("somebody listens").say(READY);
            let mut word = [0; 64];
            let length = socket.recv(&mut word).unwrap();
            assert_eq!(&word[..length], READY.as_bytes());
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn nobody_is_told_where_nobody_listens_and_an_address_of_another_kind_is_a_mistake() {
        assert!(find(&[]).unwrap().is_none() && find(&[(SOCKET_VARIABLE, "")]).unwrap().is_none());
        let error = find(&[(SOCKET_VARIABLE, "vsock:2:7")]).err().expect("no path");
        assert!(error.contains(SOCKET_VARIABLE) && error.contains("vsock:2:7"), "{error}");
        find(&[(SOCKET_VARIABLE, "/nowhere/at/all")]).unwrap().expect("it may come").say(READY);
    }

    #[test]
    fn the_watchdogs_time_is_for_the_process_that_it_names() {
        let own = std::process::id().to_string();
        let watchdog = |pid: Option<&str>, us: &str| {
            let mut variables = vec![(SOCKET_VARIABLE, "/x"), (WATCHDOG_VARIABLES[0], us)];
            variables.extend(pid.map(|pid| (WATCHDOG_VARIABLES[1], pid)));
            find(&variables).unwrap().and_then(|manager| manager.watchdog)
        };
        let expect = Some(Duration::from_millis(250));
        assert_eq!((watchdog(None, "250000"), watchdog(Some(&own), "250000")), (expect, expect));
        assert_eq!((watchdog(Some("1"), "250000"), watchdog(None, "0"), watchdog(None, "soon")), (None, None, None));
    }

    /// Promise: what the documentation shows is the unit that is there to be taken.
    #[test]
    fn the_documentation_shows_the_unit() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
        let unit = read("deploy/throng.service");
        assert!(unit.contains("Type=notify") && read("docs/deployment.md").contains(unit.trim_end()));
    }
}
