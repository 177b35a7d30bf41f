//! Admin HTTP: `GET /metrics` for Prometheus, `GET /health` for whoever restarts servers, `POST /capture` for whoever
//! wants to keep the last seconds, and `POST /console` for whoever has a command ([`console`]).
//!
//! A server must be readable most of all when its frame is stuck, so nothing here waits for the frame: the
//! listener has its own thread and asks an [`AdminSource`], which answers from what the frame last left behind.
//! A server's published metrics are one (`published`).
//!
//! It has no password yet and therefore no command that changes the game, and listens where it is told, by default on
//! loopback. Captures and commands are for requests with the header `x-throng: capture` or `x-throng: console` only,
//! which no web page can have a browser send here; and nothing is for pages of other servers ([`origin_check`]). What a
//! stranger can make it hold is bounded: connections, bytes and
//! time of each (see [`bounds`]).
//!
//! Runs on one low-priority thread, `admin`, with a tokio runtime of its own; tokio never runs on frame threads.
//! Cost: nothing between requests; a scrape costs the formatting of its text, on this thread.

pub mod console;

mod bounds;
mod counter_table;
mod origin_check;
mod packet_table;
mod pages;
mod published;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use throng_platform::threads::{Priority, spawn_named};
use throng_profiler::{log_category, log_error};
use tokio::sync::oneshot;

use console::Console;
pub use pages::{Health, HealthState};

log_category!(ADMIN = "admin");

/// What the pages show. Called on the admin thread at any time; it must answer without waiting for a frame.
pub trait AdminSource: Send + Sync + 'static {
    /// The metrics as of the last frame, in the Prometheus or OpenMetrics text format.
    fn metrics_text(&self) -> String;
    /// How the frame is doing now.
    fn health(&self) -> Health;
    /// The packet report as of the last second: a JSON list with an object for each kind of message, cause and world,
    /// with the keys `kind`, `cause`, `world`, `packets_per_s`, `updates_per_s` and `bytes_per_s`.
    fn packets(&self) -> String;
    /// All counters as of the last second: a JSON list with an object for each, with the keys `name`, `value`, `per_s`
    /// (null where it has none), `unit` and `help`.
    fn counters(&self) -> String;
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
    /// It may be asked for by address, as `localhost` and by `names`.
    /// The console has the commands `packets` and `counters` of the source beside those of `console`.
    pub fn start(
        address: SocketAddr,
        names: &[String],
        source: Arc<dyn AdminSource>,
        console: Console,
    ) -> Result<AdminHandle, AdminError> {
        Self::start_with_life(address, names, source, console, bounds::LIFE_MAX)
    }

    fn start_with_life(
        address: SocketAddr,
        names: &[String],
        source: Arc<dyn AdminSource>,
        console: Console,
        life_max: Duration,
    ) -> Result<AdminHandle, AdminError> {
        let listen = |cause| AdminError::from_bind(address, cause);
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(AdminError::Thread)?;
        let pages = pages::router(source, console, origin_check::OwnNames::new(names));
        let thread = spawn_named("admin", Priority::Low, move || {
            runtime.block_on(serve(listener, pages, life_max, stopped));
            // Dropped here: connections that are still open end with the runtime.
        })
        .map_err(AdminError::Thread)?;
        Ok(AdminHandle { address: bound, stop: Some(stop), thread: Some(thread) })
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

async fn serve(
    listener: std::net::TcpListener,
    pages: axum::Router,
    life_max: Duration,
    stopped: oneshot::Receiver<()>,
) {
    match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => {
            let listener = bounds::BoundedListener::new(listener, life_max);
            tokio::spawn(async move { axum::serve(listener, pages).await });
            // An error means that the handle is gone: a stop as well.
            let _ = stopped.await;
        }
        Err(cause) => {
            log_error!(ADMIN, %cause, "the admin listener could not be watched")
        }
    }
}

/// A running listener; dropping it closes the listener and its connections and ends the thread.
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
