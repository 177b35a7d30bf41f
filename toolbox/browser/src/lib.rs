//! Players in browsers: their page, their connect token, and the datagrams of their client in WebTransport or a WebSocket.
//!
//! A browser has no UDP. So its client (`web/client`, a whole netcode client in TypeScript) says the same datagrams in the
//! datagrams of a WebTransport session, or, where the browser or the way knows no QUIC, in the binary messages of a
//! WebSocket. Each is sealed as any other, and this gateway carries them to and fro (`throng_net::transport::tunnels`)
//! without opening one: it holds no key of a session, and what it could do to a player is what any router can.
//!
//! | path | what is there |
//! |---|---|
//! | `GET /play/` | the game's page |
//! | `GET /play/client.js` | `web/client` and the shell of pages, as a module, for pages that are built of nothing |
//! | `GET /play/schema.js` | what this very server says and is told, as data for it |
//! | `POST /play/token` | a connect token and where to go with it, if the settings let everybody in |
//! | `GET /play/socket` | the WebSocket, subprotocol `throng` |
//! | `CONNECT /play/transport` | the WebTransport session, at a UDP address of its own |
//!
//! Beyond loopback all of it is TLS (`[browser] certificate_file`), or there is none. Pages of other servers get neither
//! tokens nor tunnels ([`own_pages`]). What a stranger can make it hold is bounded: see [`serving`], [`socket`] and [`web_transport`].
//!
//! Runs on one thread, `browser`, with a tokio runtime of its own, at a priority that gives way to frames and still keeps
//! up. Cost, as sketched and not measured: 5 to 10 us for each datagram either way, most of it the kernel's for TCP; 50 KB for each browser.

mod allowance;
mod carrier;
mod certificate;
mod metered;
mod own_pages;
mod pages;
mod serving;
mod shares;
mod socket;
mod tokens;
mod web_transport;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use throng::settings::{BrowserSettings, ServerSettings};
use throng_net::transport::Tunnels;
use throng_platform::threads::{Priority, spawn_named};
use throng_profiler::log_category;
use tokio::sync::oneshot;

use allowance::Limits;
use carrier::Carrier;
use certificate::Named;
use own_pages::OwnPages;
use web_transport::{ListenError, WebTransport};

pub use certificate::CertificateError;
pub use pages::Pages;
pub use tokens::TokenGiver;

log_category!(
    /// Players in browsers.
    pub(crate) BROWSER = "browser"
);

/// Why there is no gateway. The texts name the setting to change.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("[browser] address: {0}")]
    Unencrypted(String),
    #[error("[browser] address {address} cannot be listened on: {cause}; set it to another one, or to \"off\"")]
    Listen { address: SocketAddr, cause: std::io::Error },
    #[error("[browser] web_transport_address: {0}")]
    UnencryptedTransport(String),
    #[error(
        "[browser] web_transport_address {address} cannot be listened on: {cause}; set it to another one, or to \"off\""
    )]
    ListenTransport { address: SocketAddr, cause: std::io::Error },
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("the thread for browsers cannot start: {0}; raise the limit of processes (`ulimit -u`)")]
    Thread(std::io::Error),
}

/// A gateway that runs until it is dropped.
pub struct Gateway {
    address: SocketAddr,
    is_encrypted: bool,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Gateway {
    /// Listens where `[browser] address` says. Binds before it returns, so a port that is in use is the caller's error.
    /// `tokens`: who lets everybody in, if the settings want that.
    ///
    /// # Panics
    /// If the settings name no address.
    pub fn start(
        browser: &BrowserSettings,
        server: &ServerSettings,
        tunnels: Tunnels,
        pages: Pages,
        tokens: Option<TokenGiver>,
    ) -> Result<Self, GatewayError> {
        let address = browser.address.expect("a gateway listens on the address that the settings name");
        if let Some(wrong) = browser.refuse_address() {
            return Err(GatewayError::Unencrypted(wrong));
        }
        let files = browser.certificate_file.as_deref().zip(browser.certificate_key_file.as_deref());
        let named = files.map(|(chain, key)| Named::load(chain, key)).transpose()?;
        let tls = named.as_ref().map(Named::tls).transpose()?;
        let listen = |cause| GatewayError::Listen { address, cause };
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(GatewayError::Thread)?;
        let is_encrypted = tls.is_some();
        let web_transport = {
            let _within = runtime.enter();
            listen_for_sessions(browser, named.as_ref())?
        };
        let places_max = browser.clients_max as usize;
        let carrier = Arc::new(Carrier::new(tunnels, Limits::of(server), places_max));
        let told = web_transport.as_ref().map(WebTransport::told);
        let own = Arc::new(OwnPages::new(&browser.origins, is_encrypted));
        let router = pages::router(pages, tokens, carrier.clone(), told, own.clone());
        let (stop, stopped) = oneshot::channel();
        let thread = spawn_named("browser", Priority::Load, move || {
            runtime.block_on(serving::serve(listener, tls, router, web_transport, carrier, own, places_max, stopped));
            // Connections that are still open end with the runtime.
        })
        .map_err(GatewayError::Thread)?;
        Ok(Self { address: bound, is_encrypted, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What a person on this host writes into a browser.
    pub fn url(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        let host = match self.address.ip() {
            ip if ip.is_unspecified() => "localhost".to_owned(),
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        };
        format!("{scheme}://{host}:{}/play/", self.address.port())
    }
}

/// WebTransport, where the settings name an address for it.
fn listen_for_sessions(browser: &BrowserSettings, named: Option<&Named>) -> Result<Option<WebTransport>, GatewayError> {
    let Some(address) = browser.web_transport_address else { return Ok(None) };
    if let Some(wrong) = browser.refuse_web_transport_address() {
        return Err(GatewayError::UnencryptedTransport(wrong));
    }
    let listen = |cause| GatewayError::ListenTransport { address, cause };
    let socket = std::net::UdpSocket::bind(address).map_err(listen)?;
    WebTransport::listen(socket, named).map(Some).map_err(|error| match error {
        ListenError::Socket(cause) => listen(cause),
        ListenError::Certificate(cause) => cause.into(),
    })
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The other end is gone when its thread has ended by itself.
        let _ = self.stop.take().map(|stop| stop.send(()));
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            throng_profiler::log_error!(BROWSER, "the thread for browsers panicked");
        }
    }
}

#[cfg(test)]
mod tests;
