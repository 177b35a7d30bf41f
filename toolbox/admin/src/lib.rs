//! Admin HTTP: `GET /metrics` for Prometheus, `GET /health` for whoever restarts servers, `GET /captures` for whoever
//! comes from a spike, `POST /capture` for whoever wants to keep the last seconds, and `POST /console` for whoever has a
//! command ([`console`]). A browser gets the console's page (`GET /`), which is told how things stand by a stream ([`watch`]),
//! and opens captures (`captures`) in their viewer.
//!
//! A server must be readable most of all when its frame is stuck, so nothing here waits for the frame: the
//! listener has its own thread and asks an [`AdminSource`], which answers from what the frame last left behind.
//! A server's published metrics are one (`published`).
//!
//! It listens where it is told, by default on loopback. Who may ask for what is decided in [`access`]: reading is open
//! on loopback and needs a key elsewhere, and whatever changes something needs a key everywhere. Captures and commands
//! are for requests with the header `x-throng: capture` or `x-throng: console` only, which no web page can have a
//! browser send here; and nothing is for pages of other servers ([`origin_check`]). What a stranger can make it hold is
//! bounded: connections, bytes and time of each (see [`bounds`]).
//!
//! Runs on one low-priority thread, `admin`, with a tokio runtime of its own; tokio never runs on frame threads.
//! Cost: nothing between requests; a scrape costs the formatting of its text, on this thread.

pub mod access;
pub mod console;
pub mod watch;

mod bounds;
mod capture_links;
mod captures;
mod change_table;
mod client_table;
mod counter_table;
mod formats;
mod long_task_table;
mod metrics_page;
mod origin_check;
mod packet_table;
mod pages;
mod parked_table;
mod published;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use throng::metrics::LabelledCounters;
use throng_platform::clock::{Clock, MonotonicClock};
use throng_platform::threads::{Priority, spawn_named};
use throng_profiler::{log_category, log_error, log_info, log_warn};
use tokio::sync::oneshot;

use access::Access;
use access::gate::{Gate, is_loopback};
#[doc(hidden)]
pub use access::judge::{Judged, OBSERVE_KEY, OPERATE_KEY, judge_request_bytes};
use access::keys::AccessKeys;
use access::local_key::{self, LocalKey};
use console::Console;
pub use formats::MetricsFormat;
use origin_check::OwnNames;
pub use pages::{Health, HealthState};
use watch::document::Past;
use watch::{WatchPace, WatchSource};

log_category!(ADMIN = "admin");

/// What the pages show. Called on the admin thread at any time; it must answer without waiting for a frame.
pub trait AdminSource: Send + Sync + 'static {
    /// The metrics as of the last second, and behind them what the port has counted itself; empty while there are none. Asked for
    /// four times a second and format at most, however many scrape, once there are some.
    fn metrics(&self, format: MetricsFormat, counters: Vec<LabelledCounters>) -> Vec<u8>;
    /// How the frame is doing now.
    fn health(&self) -> Health;
    /// The packet report as of the last second: a JSON list with an object for each kind of message, cause and world,
    /// with the keys `kind`, `cause`, `world`, `packets_per_s`, `updates_per_s` and `bytes_per_s`.
    fn packets(&self) -> String;
    /// The clients that took most in the last second: a JSON list with an object for each, with the keys `client_id`,
    /// `world`, `work_per_s`, `messages_per_s`, `refused_per_s`, `line_us_per_s`, and `packets_in_per_s`,
    /// `bytes_in_per_s`, `packets_out_per_s`, `bytes_out_per_s`.
    fn clients(&self) -> String;
    /// All counters as of the last second: a JSON list with an object for each, with the keys `name`, `value`, `per_s`
    /// (null where it has none), `unit` and `help`.
    fn counters(&self) -> String;
    /// The last minutes in what charts show, watched or not.
    fn past(&self) -> Past;
    /// Gathers for those who watch from now on, until the value is dropped.
    fn begin_watch(self: Arc<Self>) -> Box<dyn WatchSource>;
    /// Where captures are kept; `None` if they are not.
    fn captures_folder(&self) -> Option<PathBuf>;
    /// Saves a capture of the last seconds and waits until it is written, on a thread where waiting is allowed. The
    /// error is told to whoever asked.
    fn save_capture(&self, note: &str) -> Result<SavedCapture, String>;
}

/// A capture that was saved on request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedCapture {
    /// On the server's host.
    pub path: String,
    pub size_bytes: u64,
}

/// Why there is no admin listener. The texts name the setting to change.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error(
        "admin address {address} is in use by another program (`ss -ltnp 'sport = :{port}'` shows which); stop it, \
         or set [server] admin_address to another port or to \"off\"",
        port = address.port()
    )]
    AddressInUse { address: SocketAddr },
    #[error(
        "admin address {address} is not one of this host's; set [server] admin_address to \"127.0.0.1:{port}\" or to \
         an address that `ip address` lists",
        port = address.port()
    )]
    NotOurs { address: SocketAddr },
    #[error(
        "other hosts can reach the admin address {address}, and there are no keys: name a file of them in [server] \
         admin_keys_file (`throng admin-key NAME ROLE` makes a line of it), or set admin_address to \"127.0.0.1:{port}\"",
        port = address.port()
    )]
    NoKeys { address: SocketAddr },
    #[error("admin address {address} cannot be listened on: {cause}; set [server] admin_address to another one")]
    Listen { address: SocketAddr, cause: std::io::Error },
    #[error("the admin thread cannot start: {0}; raise the limit of processes (`ulimit -u`)")]
    Thread(std::io::Error),
}

/// Starts admin listeners.
pub struct AdminServer;

impl AdminServer {
    /// Listens on `address` (port 0 = any free one) until the handle is dropped.
    ///
    /// Binds before it returns, so a used port is the caller's error and not a line in a log.
    /// Who may ask, and by which names, is said by `access`.
    /// The console has the commands `packets`, `counters` and `clients` of the source beside those of `console`.
    pub fn start(
        address: SocketAddr,
        access: Access,
        source: Arc<dyn AdminSource>,
        console: Console,
    ) -> Result<AdminHandle, AdminError> {
        Self::start_with(address, access, source, console, Surroundings::default())
    }

    fn start_with(
        address: SocketAddr,
        access: Access,
        source: Arc<dyn AdminSource>,
        console: Console,
        surroundings: Surroundings,
    ) -> Result<AdminHandle, AdminError> {
        if access.keys.is_none() && !is_loopback(address) {
            return Err(AdminError::NoKeys { address });
        }
        let listen = |cause| AdminError::from_bind(address, cause);
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;
        let Surroundings { life_max, clock, key_folders, watch_pace } = surroundings;
        local_key::forget(bound, &key_folders);
        let (keys, local_key) = match access.keys {
            Some(keys) => (keys, None),
            None => leave_local_key(bound, key_folders),
        };
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(AdminError::Thread)?;
        let gate = Gate::new(bound, OwnNames::new(&access.names), keys, clock);
        let pages = pages::router(source, console, gate, watch_pace);
        let thread = spawn_named("admin", Priority::Low, move || {
            runtime.block_on(serve(listener, pages, life_max, local_key, stopped));
            // Dropped here: connections that are still open end with the runtime.
        })
        .map_err(AdminError::Thread)?;
        Ok(AdminHandle { address: bound, stop: Some(stop), thread: Some(thread) })
    }
}

/// What tests have otherwise.
struct Surroundings {
    life_max: Duration,
    clock: Arc<dyn Clock>,
    /// For the key of a server that was given none.
    key_folders: Vec<PathBuf>,
    watch_pace: WatchPace,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            life_max: bounds::LIFE_MAX,
            clock: Arc::new(MonotonicClock::new()),
            key_folders: local_key::folders(),
            watch_pace: WatchPace::default(),
        }
    }
}

/// A server that can leave its key nowhere is still read and still plays.
fn leave_local_key(address: SocketAddr, folders: Vec<PathBuf>) -> (AccessKeys, Option<LocalKey>) {
    match LocalKey::leave(address, folders) {
        Ok(left) => {
            log_info!(
                ADMIN,
                path = %left.path().display(),
                "who may read this file may change the server through the admin port"
            );
            (AccessKeys::only(left.key().clone()), Some(left))
        }
        Err(reason) => {
            log_warn!(
                ADMIN,
                ?reason,
                "nothing can be changed through the admin port: its key can be left nowhere; give [server] admin_keys_file"
            );
            (AccessKeys::default(), None)
        }
    }
}

impl AdminError {
    fn from_bind(address: SocketAddr, cause: std::io::Error) -> Self {
        match cause.kind() {
            std::io::ErrorKind::AddrInUse => Self::AddressInUse { address },
            std::io::ErrorKind::AddrNotAvailable => Self::NotOurs { address },
            _ => Self::Listen { address, cause },
        }
    }
}

/// How often the server's own key is looked at, whether it is still where it was left.
const LOOK_EVERY: Duration = Duration::from_secs(5);

async fn serve(
    listener: std::net::TcpListener,
    pages: axum::Router,
    life_max: Duration,
    mut local_key: Option<LocalKey>,
    mut stopped: oneshot::Receiver<()>,
) {
    match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => {
            let listener = bounds::BoundedListener::new(listener, life_max);
            let pages = pages.into_make_service_with_connect_info::<bounds::Peer>();
            tokio::spawn(async move { axum::serve(listener, pages).await });
            // What ends the wait, be it an error, means that the handle is gone.
            while tokio::time::timeout(LOOK_EVERY, &mut stopped).await.is_err() {
                local_key.iter_mut().for_each(LocalKey::renew);
            }
        }
        Err(cause) => {
            log_error!(ADMIN, %cause, "the admin listener could not be watched")
        }
    }
}

/// A running listener; dropping it closes the listener and its connections, removes the key that it left and ends the
/// thread.
pub struct AdminHandle {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AdminHandle {
    /// Where it listens, with the port that was chosen if none was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for AdminHandle {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic on the admin thread has been reported by the panic hook; there is nothing to add here.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
