//! WebTransport: sessions over QUIC, whose datagrams are datagrams. One that is lost holds back no other.
//!
//! Beside the gateway's pages, on a UDP address of its own. What is longer than a path's datagrams (a token is, in some
//! browsers) goes as a stream of its own, one to each packet, which waits for no other stream either.
//!
//! | of strangers | maximum | what happens there |
//! |---|---|---|
//! | connections, those that shake hands included | those of browsers, and 64 | refused |
//! | that shake hands and have not shown that their address is theirs | 16 | each has to come again with a token |
//! | of one address, loopback apart | an eighth of them, 8 at least | refused |
//! | until the session stands | 5 s | closed |
//!
//! | of one browser | maximum | what happens there |
//! |---|---|---|
//! | packets and bytes a second | those of the settings, once and a half | dropped; after 1,000 of them it is closed |
//! | bytes of a packet | those of a packet | dropped, or its stream is stopped |
//! | streams at once | 8 of packets, and those of HTTP/3 | the browser waits |
//! | bytes that QUIC holds for it | 32 KiB of datagrams each way, 64 KiB of streams | the oldest datagrams are dropped; streams wait |
//! | packets that go as streams and are not taken | 8 | dropped |
//! | time without a session, or without a word | 15 s | closed |
//!
//! Sessions are for own pages and for those that the settings name ([`own_pages`](crate::own_pages)).
//! A session's end is the connection's: a page has one.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use futures_util::stream::{FuturesUnordered, StreamExt};
use throng_net::protocol::PACKET_BYTES_MAX;
use throng_net::transport::{Refusal, Tunnel};
use throng_profiler::log_warn;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_rustls::rustls;
use web_transport_quinn::quinn::crypto::rustls::QuicServerConfig;
use web_transport_quinn::quinn::{
    Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use web_transport_quinn::{RecvStream, Request, Session, SessionError};

use crate::BROWSER;
use crate::allowance::Allowance;
use crate::carrier::{Carrier, WITHOUT_SESSION_MAX, is_of_session};
use crate::certificate::{CertificateError, Named, RENEWED_AFTER, ShortLived};
use crate::own_pages::OwnPages;
use crate::serving::PATIENCE;
use crate::shares::{Peer, Share, Shares};

/// Where sessions are asked for.
pub(crate) const PATH: &str = "/play/transport";

/// Beside those that play.
const SHAKING_HANDS_MAX: usize = 64;
/// With more, whoever comes has to show that it hears what is sent to its address.
const UNPROVEN_MAX: usize = 16;
const PACKET_STREAMS_MAX: u32 = 8;
/// HTTP/3 has a control stream and two for its table of headers.
const HTTP_STREAMS: u32 = 3;
/// The request, and one in the way of speaking of browsers that ask for more.
const REQUESTS_MAX: u32 = 2;
const STREAM_BYTES_MAX: u32 = 20 << 10;
const STREAMS_BYTES_MAX: u32 = 64 << 10;
const DATAGRAMS_BYTES_MAX: usize = 32 << 10;
/// Between a packet's first byte and its last one, in a stream.
const STREAM_MAX: Duration = Duration::from_secs(2);
const SILENCE_MAX_MS: u32 = 15_000;

/// What a page is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub address: SocketAddr,
    /// Of a certificate that this server made for itself.
    pub certificate_hash: Option<[u8; 32]>,
}

/// Listens, until it is dropped.
pub(crate) struct WebTransport {
    endpoint: Endpoint,
    told: Arc<Mutex<Told>>,
}

impl WebTransport {
    /// On a socket that is bound; within a runtime. Without a named certificate it makes its own, for loopback.
    pub fn listen(socket: UdpSocket, named: Option<&Named>) -> Result<Self, ListenError> {
        let address = socket.local_addr()?;
        let (config, certificate_hash) = match named {
            Some(named) => (named.quic()?, None),
            None => {
                let ShortLived { config, hash } = ShortLived::make(address.ip())?;
                (config, Some(hash))
            }
        };
        let endpoint = Endpoint::new(EndpointConfig::default(), Some(quic(config)), socket, Arc::new(TokioRuntime))?;
        Ok(Self { endpoint, told: Arc::new(Mutex::new(Told { address, certificate_hash })) })
    }

    /// What pages are told, at any time.
    pub fn told(&self) -> Arc<Mutex<Told>> {
        self.told.clone()
    }

    /// Lets browsers in. Never ends.
    pub async fn serve(&self, carrier: Arc<Carrier>, own: Arc<OwnPages>, clients_max: usize) {
        tokio::join!(self.accept(carrier, own, clients_max), self.renew());
    }

    async fn accept(&self, carrier: Arc<Carrier>, own: Arc<OwnPages>, clients_max: usize) {
        let places = Arc::new(Semaphore::new(clients_max + SHAKING_HANDS_MAX));
        let unproven = Arc::new(Semaphore::new(UNPROVEN_MAX));
        let shares = Shares::new(Shares::of_each(clients_max));
        while let Some(incoming) = self.endpoint.accept().await {
            let Ok(place) = places.clone().try_acquire_owned() else {
                incoming.refuse();
                carrier.turn_away(Refusal::Full);
                continue;
            };
            let mut shaking = None;
            if !incoming.remote_address_validated() {
                shaking = unproven.clone().try_acquire_owned().ok();
                if shaking.is_none() && incoming.may_retry() {
                    // It fails for those alone that came with a token, and these are no strangers.
                    let _ = incoming.retry();
                    continue;
                }
            }
            let Some(share) = shares.take(incoming.remote_address().ip()) else {
                incoming.refuse();
                carrier.turn_away(Refusal::Address);
                continue;
            };
            tokio::spawn(admit(carrier.clone(), own.clone(), incoming, shaking, (place, share)));
        }
    }

    /// Makes the server's own certificate anew, before browsers find it too old.
    async fn renew(&self) {
        loop {
            tokio::time::sleep(RENEWED_AFTER).await;
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.certificate_hash.is_none() {
                continue;
            }
            match ShortLived::make(told.address.ip()) {
                Ok(ShortLived { config, hash }) => {
                    self.endpoint.set_server_config(Some(quic(config)));
                    told.certificate_hash = Some(hash);
                }
                Err(error) => log_warn!(BROWSER, %error, "the certificate for WebTransport stays the old one"),
            }
        }
    }
}

/// Why nothing listens.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    #[error(transparent)]
    Socket(#[from] std::io::Error),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// QUIC within the bounds that stand above.
fn quic(tls: rustls::ServerConfig) -> ServerConfig {
    let crypto = QuicServerConfig::try_from(tls).expect("TLS 1.3 has the cipher that QUIC begins with");
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.max_incoming(SHAKING_HANDS_MAX).incoming_buffer_size(16 << 10).incoming_buffer_size_total(1 << 20);
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(REQUESTS_MAX))
        .max_concurrent_uni_streams(VarInt::from_u32(HTTP_STREAMS + PACKET_STREAMS_MAX))
        .stream_receive_window(VarInt::from_u32(STREAM_BYTES_MAX))
        .receive_window(VarInt::from_u32(STREAMS_BYTES_MAX))
        .send_window(u64::from(STREAMS_BYTES_MAX))
        .datagram_receive_buffer_size(Some(DATAGRAMS_BYTES_MAX))
        .datagram_send_buffer_size(DATAGRAMS_BYTES_MAX)
        .max_idle_timeout(Some(VarInt::from_u32(SILENCE_MAX_MS).into()));
    config.transport_config(Arc::new(transport));
    config
}

/// Whoever came did not do as QUIC and HTTP/3 want it.
struct NoHandshake;

/// Shakes hands, and carries what is said until either side has enough.
async fn admit(
    carrier: Arc<Carrier>,
    own: Arc<OwnPages>,
    incoming: Incoming,
    shaking: Option<OwnedSemaphorePermit>,
    _place: (OwnedSemaphorePermit, Share),
) {
    let shake = async {
        let connection = incoming.await.map_err(|_| NoHandshake)?;
        // Whoever has come so far has its address by right.
        drop(shaking);
        let request = Request::accept(connection).await.map_err(|_| NoHandshake)?;
        if request.url.path() != PATH {
            let _ = request.reject(StatusCode::NOT_FOUND).await;
            return Ok(None);
        }
        if own.check_session(&request.headers, request.url.host_str().unwrap_or_default()).is_err() {
            carrier.turn_away(Refusal::Page);
            let _ = request.reject(StatusCode::FORBIDDEN).await;
            return Ok(None);
        }
        match carrier.admit(Peer(request.conn().remote_address())) {
            Ok(admitted) => Ok(Some((request.ok().await.map_err(|_| NoHandshake)?, admitted))),
            Err(_) => {
                let _ = request.reject(StatusCode::SERVICE_UNAVAILABLE).await;
                Ok(None)
            }
        }
    };
    // Whatever a stranger breaks off is no news.
    match timeout(PATIENCE, shake).await {
        Ok(Ok(Some((session, (tunnel, _share))))) => {
            carry(&carrier, &session, tunnel).await;
            session.close(0, b"");
        }
        // It was told why.
        Ok(Ok(None)) => {}
        Ok(Err(NoHandshake)) | Err(_) => carrier.turn_away(Refusal::Handshake),
    }
}

async fn carry(carrier: &Carrier, session: &Session, mut tunnel: Tunnel) {
    let Some(call) = carrier.call_of(&tunnel) else { return };
    let mut allowance = Allowance::new(carrier.limits);
    let mut session_until = Instant::now() + WITHOUT_SESSION_MAX;
    let mut datagram = Vec::with_capacity(PACKET_BYTES_MAX);
    let mut coming = FuturesUnordered::new();
    let mut going = FuturesUnordered::new();
    loop {
        tokio::select! {
            received = session.read_datagram() => match received {
                Ok(packet) if allowance.take(packet.len()) => _ = tunnel.push(&packet),
                Ok(_) if !allowance.is_exceeded() => carrier.turn_away(Refusal::Allowance),
                _ => return,
            },
            // One that is no packet counts as well as one that is.
            stream = session.accept_uni() => match stream {
                Ok(stream) if allowance.take(0) => coming.push(timeout(STREAM_MAX, read(stream))),
                Ok(_) if !allowance.is_exceeded() => carrier.turn_away(Refusal::Allowance),
                _ => return,
            },
            Some(packet) = coming.next() => match packet {
                Ok(Some(packet)) if allowance.take(packet.len()) => _ = tunnel.push(&packet),
                _ if !allowance.is_exceeded() => {}
                _ => return,
            },
            Some(_) = going.next() => {}
            () = call.notified() => {
                while tunnel.pop(&mut datagram) {
                    if is_of_session(&datagram) {
                        session_until = Instant::now() + WITHOUT_SESSION_MAX;
                    }
                    let packet = Bytes::copy_from_slice(&datagram);
                    if packet.len() <= session.max_datagram_size() {
                        if session.send_datagram(packet).is_err() {
                            return;
                        }
                    } else if going.len() < PACKET_STREAMS_MAX as usize {
                        going.push(timeout(STREAM_MAX, write(session, packet)));
                    }
                }
            }
            () = tokio::time::sleep_until(session_until) => return carrier.turn_away(Refusal::NoSession),
        }
    }
}

/// A packet that came as a stream; `None`: it is no packet.
async fn read(mut stream: RecvStream) -> Option<Vec<u8>> {
    stream.read_to_end(PACKET_BYTES_MAX).await.ok()
}

/// Sends a packet as a stream, which is taken back if it is not taken in time.
async fn write(session: &Session, packet: Bytes) -> Result<(), SessionError> {
    let mut stream = session.open_uni().await?;
    if stream.write_chunk(packet).await.is_ok() {
        let _ = stream.finish();
        let _ = stream.stopped().await;
    }
    Ok(())
}
