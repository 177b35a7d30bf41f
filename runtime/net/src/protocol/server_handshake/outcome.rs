//! What the handshake makes of a datagram: an answer, an admission, or a reason to drop it; and the counts.

use std::net::SocketAddr;

use throng_platform::time::Nanos;

use super::super::link::SealedLink;
use super::super::packet::REPLY_BYTES_MAX;
use super::super::{ClientId, DenialReason, UserData};

/// What became of a datagram.
#[derive(Debug)]
pub enum ServerHandshakeOutcome {
    /// Dropped, and counted.
    Nothing(DropReason),
    /// The reply is to be sent.
    Replied,
    /// As `Replied`: what speaks against the client's token. The token is one of ours.
    Refused { client_id: ClientId, reason: DenialReason },
    /// A client has proven itself and stands in line from now on: see `ServerHandshake::call_next`.
    Queued,
}

/// A client whose turn has come. It is to be admitted or refused, now or later; until then it waits.
#[derive(Debug)]
pub struct Called {
    pub client_id: ClientId,
    pub user_data: UserData,
    pub address: SocketAddr,
    /// The address of a session that this client still has, from before a crash or a change of address; after a crash it
    /// may be the same address. The session is to be ended first: the client can be admitted once
    /// `ServerHandshake::disconnected` has been told.
    pub session: Option<SocketAddr>,
    /// The journal has its token, or there is no journal. Else it can only be refused.
    pub is_recorded: bool,
}

/// A client that took a slot. Give the slot back with `ServerHandshake::disconnected`.
#[derive(Debug)]
pub struct Admitted {
    pub link: SealedLink,
    pub client_id: ClientId,
    pub user_data: UserData,
    pub address: SocketAddr,
}

/// The handshake's answer to one datagram, for the address it came from. Reuse one for all.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) buffer: [u8; REPLY_BYTES_MAX],
    pub(super) len: usize,
}

impl Reply {
    pub fn new() -> Self {
        Self { buffer: [0; REPLY_BYTES_MAX], len: 0 }
    }

    /// The datagram to send; empty = send nothing.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn len(&self) -> usize {
        self.len
    }
}

impl Default for Reply {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a stranger's datagram was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(usize)]
pub enum DropReason {
    /// No packet that a stranger may send, or of a wrong size.
    Malformed,
    /// Another protocol id or netcode version.
    OtherProtocol,
    /// A plain netcode request while the settings want a cookie first.
    PlainNetcodeOff,
    /// Another address's cookie, an old one, or an invention.
    BadCookie,
    /// The frame's budget is spent; an honest client asks again.
    OverBudget,
    /// Its address asks for more than its share, and what there is for those is spent.
    OverShare,
    TokenExpired,
    /// A session was made with it, or another address is shaking hands with it.
    TokenUsed,
    TokenForged,
    /// An authentic token for other servers.
    OtherServer,
    /// An authentic token of one client, from the address of another that is connected.
    AddressConnected,
    /// A response where no challenge is pending: late, evicted, or made up.
    NoHandshake,
    ResponseForged,
    /// A copy of a response: of a client that waits in line, or of its earlier handshake with the same token.
    ResponseReplayed,
    /// Of a client that waits in line, and speaks plain netcode: there is nothing to tell it.
    InLine,
}

impl DropReason {
    pub const ALL: [Self; 15] = [
        Self::Malformed,
        Self::OtherProtocol,
        Self::PlainNetcodeOff,
        Self::BadCookie,
        Self::OverBudget,
        Self::OverShare,
        Self::TokenExpired,
        Self::TokenUsed,
        Self::TokenForged,
        Self::OtherServer,
        Self::AddressConnected,
        Self::NoHandshake,
        Self::ResponseForged,
        Self::ResponseReplayed,
        Self::InLine,
    ];

    /// A metric's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::OtherProtocol => "other_protocol",
            Self::PlainNetcodeOff => "plain_netcode_off",
            Self::BadCookie => "bad_cookie",
            Self::OverBudget => "over_budget",
            Self::OverShare => "over_share",
            Self::TokenExpired => "token_expired",
            Self::TokenUsed => "token_used",
            Self::TokenForged => "token_forged",
            Self::OtherServer => "other_server",
            Self::AddressConnected => "address_connected",
            Self::NoHandshake => "no_handshake",
            Self::ResponseForged => "response_forged",
            Self::ResponseReplayed => "response_replayed",
            Self::InLine => "in_line",
        }
    }
}

/// Counts since the handshake was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerHandshakeStats {
    dropped: [u64; DropReason::ALL.len()],
    pub cookies_sent: u64,
    pub challenges_sent: u64,
    pub admitted: u64,
    /// Clients that came into the line.
    pub queued: u64,
    /// Told their place in it.
    pub places_told: u64,
    /// Fell silent while they waited.
    pub queue_silent: u64,
    /// Longest that one of those admitted had waited since it proved itself.
    pub queue_wait_max: Nanos,
    /// Denied because every slot was taken, or promised to those in line.
    pub denied_full: u64,
    /// Denied because a client of that id was connected and its session was not ended.
    pub denied_connected: u64,
    /// Denied because the line was full.
    pub denied_queue_full: u64,
    /// Called, and then refused by whoever places clients.
    pub denied_by_caller: u64,
    /// Denied because the table of used tokens was full.
    pub denied_tokens_full: u64,
    /// Denied because the token was used, too old, or not for this server.
    pub denied_token: u64,
    /// Denied because the journal could not keep the token.
    pub denied_journal: u64,
    /// Handshakes pushed out of a full table.
    pub pending_evicted: u64,
    /// Handshakes that never answered their challenge.
    pub pending_expired: u64,
}

impl ServerHandshakeStats {
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    pub(super) fn count_drop(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }
}
