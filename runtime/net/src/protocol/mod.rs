//! netcode 1.02, sans-IO: bytes and a time come in, bytes go out.
//!
//! A client shows a [`ConnectToken`] that a trusted back end made for it. The server's [`ServerHandshake`] opens the
//! token, sends a challenge, and hands out a [`SealedLink`] when the answer comes back; the client's
//! [`ClientHandshake`] ends with the other half of the same link.
//!
//! ```text
//!   client                                 server
//!     | hello (7)          1,102 B  ------>  |   no state, no cipher: one keyed hash
//!     |  <------  33 B         cookie (8)    |
//!     | request+cookie (9) 1,102 B  ------>  |   the address is proven: open the token
//!     |  <------ 333 B      challenge (2)    |
//!     | response (3)         333 B  ------>  |   a place in line is taken here, not earlier
//!     |  <------  34 B         queued (10)   |   to each further response, while others are before it
//!     |  <------  33 B     keep-alive (4)    |   its turn: a slot is taken, the token is spent
//! ```
//!
//! Plain netcode clients start at the request (type 0, 1,078 B) when the settings allow it.
//!
//! Nothing here reads a clock or a random device, and nothing panics, whatever bytes come in. Every
//! table has a named maximum.

mod cipher;
mod client;
mod cookie;
mod denial;
mod keyed_hash;
mod link;
mod mark;
mod packet;
mod queued;
mod replay;
mod server_handshake;
mod token;
mod user_data;

pub use client::{ClientHandshake, ClientHandshakeSettings, HandshakeFailure, HandshakeState};
pub use denial::DenialReason;
pub use link::{OpenError, Opened, SealedLink};
pub use mark::SequenceMark;
pub use packet::{HANDSHAKE_BYTES_MAX, PACKET_BYTES_MAX, PAYLOAD_BYTES_MAX, is_handshake_step};
pub use queued::QueueState;
pub use replay::{ReplayWindow, WINDOW_PACKETS};
pub use server_handshake::{
    Admitted, Called, DropReason, JournalError, Recorded, Reply, ServerHandshake, ServerHandshakeOutcome,
    ServerHandshakeSettings, ServerHandshakeStats, TokenJournal, UsedToken, household,
};
pub use token::{ConnectToken, TOKEN_BYTES, TokenError, TokenRequest};
pub use user_data::{GAME_DATA_BYTES, USER_DATA_BYTES, UserData, asks_for_audit, user_data};

/// Who a client is, as the back end that made its token says. Unique among the connected clients of a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientId(pub u64);

impl ClientId {
    /// From here on up are the ids of players whom a server's own page lets in, each drawn by chance. A login service gives
    /// lower ones.
    pub const BROWSER_FIRST: Self = Self(1 << 62);
}

/// Which game and version a token or packet belongs to. Packets of another protocol never open.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProtocolId(pub u64);

/// The secret shared by the servers and the back end that makes connect tokens. Never printed.
#[derive(Clone)]
pub struct PrivateKey([u8; 32]);

impl PrivateKey {
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for PrivateKey {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey(hidden)")
    }
}
