//! Connections: how many, from whom, and for how long until they say what they want.
//!
//! | of strangers | maximum | what happens there |
//! |---|---|---|
//! | connections | those of browsers, and 64 | newcomers wait in the kernel's backlog |
//! | of one address, of IPv6 one network of 56 bits, loopback apart | an eighth of them, 8 at least | closed at once |
//! | until TLS stands, and until a request is there | 5 s each | closed |
//! | bytes of a request's head | 16 KiB | refused |
//! | until the answer is taken | 15 s | closed |
//! | bytes that come, beneath all | those of a client and its frames, ten seconds' at once | closed |
//!
//! A request has no body worth reading, and each answer is in memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::Response;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use throng_net::transport::Refusal;
use throng_profiler::log_warn;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_rustls::TlsAcceptor;

use crate::BROWSER;
use crate::carrier::Carrier;
use crate::metered::Metered;
use crate::own_pages::OwnPages;
use crate::shares::{Peer, Share, Shares};
use crate::web_transport::WebTransport;

/// Beside browsers that play: those that load a page.
const PAGES_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 16 << 10;
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// A page is some 80 KB: who takes less than that in this time holds a place for nothing.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);
/// After a failed accept (no descriptors left, mostly), so that the thread does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

#[expect(clippy::too_many_arguments, reason = "the parts of a gateway, each once")]
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    web_transport: Option<WebTransport>,
    carrier: Arc<Carrier>,
    own: Arc<OwnPages>,
    clients_max: usize,
    stopped: oneshot::Receiver<()>,
) {
    let accepting = async {
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(cause) => return log_warn!(BROWSER, %cause, "nobody can come in through a browser"),
        };
        let places = Arc::new(Semaphore::new(clients_max + PAGES_MAX));
        let shares = Shares::new(Shares::of_each(clients_max));
        loop {
            // Nobody closes this one.
            let Ok(place) = places.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let Some(share) = shares.take(peer.ip()) else {
                        carrier.turn_away(Refusal::Address);
                        continue;
                    };
                    let served = serve_one(stream, peer, tls.clone(), router.clone(), carrier.clone(), (place, share));
                    tokio::spawn(served);
                }
                Err(cause) => {
                    log_warn!(BROWSER, %cause, "a browser's connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    let in_sessions = async {
        match &web_transport {
            Some(web_transport) => web_transport.serve(carrier.clone(), own, clients_max).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = accepting => {}
        () = in_sessions => {}
        () = carrier.call_filled() => {}
        _ = stopped => {}
    }
}

async fn serve_one(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    router: Router,
    carrier: Arc<Carrier>,
    place: (OwnedSemaphorePermit, Share),
) {
    // Small datagrams leave at once; a segment that waits for more is a player's delay.
    let _ = stream.set_nodelay(true);
    let stream = Metered::new(stream, carrier.limits);
    let router = router.layer(Extension(Peer(peer))).layer(map_response(close));
    match tls {
        None => converse(stream, router, place).await,
        Some(tls) => match tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
            Ok(Ok(stream)) => converse(stream, router, place).await,
            _ => carrier.turn_away(Refusal::Handshake),
        },
    }
}

/// A connection that is kept would hold its place, and be closed under the next request. One that becomes a WebSocket goes on.
async fn close(mut response: Response) -> Response {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Until the connection is closed, or became a WebSocket, which has places of its own.
async fn converse<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    router: Router,
    _place: (OwnedSemaphorePermit, Share),
) {
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades();
    // Whatever a stranger breaks off is no news.
    let _ = tokio::time::timeout(ANSWERED_WITHIN, conversation).await;
}
