//! A WebSocket and its tunnel: binary messages are datagrams, one each, both ways.
//!
//! | of one browser | maximum | what happens there |
//! |---|---|---|
//! | bytes of a message | those of a packet | the WebSocket is closed |
//! | messages and bytes a second | those of the settings, once and a half | what is above is dropped; after 1,000 of them it is closed |
//! | time without a session | 15 s | closed: whoever shakes hands that long is no player |
//! | time in which nothing can be sent | 10 s | closed: the server has given the player up by then |
//! | WebSockets of one address, loopback apart | an eighth of all, 8 at least | refused |
//!
//! A session is known by what goes out: the server says payloads to those alone whom it has let in, and *queued* to those
//! who stand in its line.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::SinkExt;
use throng_net::protocol::PACKET_BYTES_MAX;
use throng_net::transport::{Refusal, Tunnel};
use tokio::time::{Instant, timeout};

use crate::allowance::Allowance;
use crate::carrier::{Carrier, WITHOUT_SESSION_MAX, is_of_session};
use crate::shares::{Peer, Share};

const SENDING_MAX: Duration = Duration::from_secs(10);
/// A WebSocket reads into so much; the default of 128 KiB is for others.
const READ_BUFFER_BYTES: usize = 4 << 10;
const WRITE_BUFFER_BYTES_MAX: usize = 64 << 10;

/// Answers the request for a WebSocket.
pub(crate) fn answer(carrier: Arc<Carrier>, peer: Peer, upgrade: WebSocketUpgrade) -> Response {
    let (tunnel, share) = match carrier.admit(peer) {
        Ok(admitted) => admitted,
        Err(why) => return (StatusCode::SERVICE_UNAVAILABLE, why).into_response(),
    };
    upgrade
        .protocols(["throng"])
        .max_message_size(PACKET_BYTES_MAX)
        .max_frame_size(PACKET_BYTES_MAX)
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(READ_BUFFER_BYTES)
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX)
        .on_upgrade(move |socket| async move { carry(&carrier, socket, tunnel, share).await })
}

/// Until either side has enough.
async fn carry(carrier: &Carrier, mut socket: WebSocket, mut tunnel: Tunnel, _share: Share) {
    let Some(call) = carrier.call_of(&tunnel) else { return };
    let mut allowance = Allowance::new(carrier.limits);
    let mut session_until = Instant::now() + WITHOUT_SESSION_MAX;
    let mut datagram = Vec::with_capacity(PACKET_BYTES_MAX);
    loop {
        tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Binary(message))) => {
                    if allowance.take(message.len()) {
                        // What is refused there is counted there, and missed as any lost datagram.
                        tunnel.push(&message);
                    } else {
                        carrier.turn_away(Refusal::Allowance);
                        if allowance.is_exceeded() {
                            return;
                        }
                    }
                }
                // Answered by the library.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) if allowance.take(0) || !allowance.is_exceeded() => {}
                _ => return,
            },
            () = call.notified() => {
                let mut is_session = false;
                let sending = async {
                    while tunnel.pop(&mut datagram) {
                        is_session |= is_of_session(&datagram);
                        socket.feed(Message::Binary(Bytes::copy_from_slice(&datagram))).await?;
                    }
                    socket.flush().await
                };
                if !matches!(timeout(SENDING_MAX, sending).await, Ok(Ok(()))) {
                    return;
                }
                if is_session {
                    session_until = Instant::now() + WITHOUT_SESSION_MAX;
                }
            }
            () = tokio::time::sleep_until(session_until) => return carrier.turn_away(Refusal::NoSession),
        }
    }
}
