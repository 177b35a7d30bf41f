//! Start watch: whether the server gets to its first tick.
//!
//! A server that dies in its start is noticed by its end; one that hangs there, over a level or a disk, would leave everybody
//! waiting for ever. So the supervisor is its service manager ([`crate::service_manager`]): it hears when the first tick has
//! run, passes the word on to the service manager above, if there is one, and listens no more but for the end. When the word
//! does not come in time the server is told to die where it hangs, by SIGABRT, which leaves a report with that stack; one
//! that does not even do that is killed.
//!
//! ```text
//! start ... no word for start_within ──▶ SIGABRT ... still there after 10 s ──▶ SIGKILL
//! start ... READY=1 ──▶ sleeps until the end
//! ```
//!
//! The name of its socket is random, for one supervisor is not to hear of another's server. Whoever finds it out can at most
//! say that a server is ready which is not.

use std::{
    fmt::Write,
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    process::{Child, Command},
    time::{Duration, Instant},
};

use throng_platform::{children, poll::wait_readable, random, time::Nanos};

use crate::{
    output::remark,
    service_manager::{READY, SOCKET_VARIABLE, STOPPING, ServiceManager, WATCHDOG_VARIABLES},
};

/// For a server that is told to die, and writes its report.
const DEATH_WITHIN: Duration = Duration::from_secs(10);

pub struct StartWatch {
    /// `None`: a start may take as long as it takes.
    start_within: Option<Duration>,
    socket: UnixDatagram,
    name: String,
    /// Above this process.
    manager: Option<ServiceManager>,
    /// Until then the word is waited for, and what comes next if there is none.
    waits: Option<(Instant, Next)>,
    is_ready: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Abort,
    Kill,
}

impl StartWatch {
    pub fn open(start_within: Option<Duration>) -> io::Result<Self> {
        let mut name = String::from("throng-supervisor-");
        for byte in &random::seed()[..8] {
            // A string takes whatever is written to it.
            let _ = write!(name, "{byte:02x}");
        }
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        socket.set_nonblocking(true)?;
        let manager = ServiceManager::find(|name| std::env::var_os(name)).unwrap_or_else(|error| {
            tracing::warn!(error, "the service manager is not told of this server");
            None
        });
        Ok(Self { start_within, socket, name, manager, waits: None, is_ready: false })
    }

    /// Has a server tell this process what it would tell a service manager.
    pub fn tell<'a>(&self, server: &'a mut Command) -> &'a mut Command {
        for variable in WATCHDOG_VARIABLES {
            server.env_remove(variable);
        }
        server.env(SOCKET_VARIABLE, format!("@{}", self.name))
    }

    /// A server starts now.
    pub fn begin(&mut self) {
        self.is_ready = false;
        self.waits = self.start_within.map(|within| (Instant::now() + within, Next::Abort));
    }

    /// Sleeps until the server has ended (true), until there is the order to end, or until there is something to do.
    pub fn wait(&mut self, end: BorrowedFd<'_>) -> io::Result<bool> {
        let left = self.waits.map(|(until, _)| {
            let left = until.saturating_duration_since(Instant::now());
            Nanos(left.as_nanos() as u64)
        });
        // Once it is ready there is but the word of its end, which its end says as well.
        let fds = [end, self.socket.as_fd()];
        wait_readable(if self.is_ready { &fds[..1] } else { &fds }, left)?;
        self.listen();
        wait_readable(&[end], Some(Nanos::ZERO))
    }

    fn listen(&mut self) {
        let mut words = [0; 256];
        while let Ok(length) = self.socket.recv(&mut words) {
            let words = String::from_utf8_lossy(&words[..length]);
            for word in words.lines().filter(|word| [READY, STOPPING].contains(word)) {
                self.manager.iter().for_each(|manager| manager.say(word));
                if word == READY {
                    (self.is_ready, self.waits) = (true, None);
                }
            }
        }
    }

    /// Ends a server that should have begun by now.
    pub fn end_if_it_hangs(&mut self, server: &mut Child) {
        let Some((_, next)) = self.waits.filter(|(until, _)| Instant::now() >= *until) else { return };
        if next == Next::Kill {
            // It fails when it has ended already.
            let _ = server.kill();
            self.waits = None;
            return;
        }
        let start_s = self.start_within.unwrap_or_default().as_secs();
        remark(format_args!("the server has run no tick {start_s} s after its start: it is ended where it hangs"));
        children::abort(server.id());
        self.waits = Some((Instant::now() + DEATH_WITHIN, Next::Kill));
    }
}
