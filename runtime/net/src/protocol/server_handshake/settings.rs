//! What an operator may set about the handshake.

use std::net::SocketAddr;

use super::super::{PrivateKey, ProtocolId};

/// How a server admits clients.
#[derive(Clone, Debug)]
pub struct ServerHandshakeSettings {
    /// Tokens and packets of any other protocol are dropped.
    pub protocol_id: ProtocolId,
    /// The key shared with the back end that makes tokens.
    pub private_key: PrivateKey,
    /// By which addresses clients know this server. A token must name one of them; with none, nobody
    /// comes in.
    pub public_addresses: Vec<SocketAddr>,
    /// Clients connected at once (> 0). Further ones are denied.
    pub clients_max: usize,
    /// Whether to take requests of clients that did not prove their address first [default `false`]. Needed
    /// for clients that speak plain netcode 1.02; a flood then costs up to `openings_per_frame_max`
    /// tokens a frame, of 2.6 us each.
    pub plain_netcode: bool,
    /// Tokens of unproven addresses opened per frame [default 32]. Too low: plain clients wait their turn
    /// in a rush. Too high: a flood takes that much of every frame.
    pub openings_per_frame_max: u32,
    /// Tokens of proven addresses opened per frame [default 256]. As above, but an attacker needs real
    /// addresses, and one that asks for more than 8 a second gets at most half of these.
    pub proven_openings_per_frame_max: u32,
    /// Hellos answered per frame [default 2,048], 0.07 us and 25 bytes out each. Too low: a flood of
    /// hellos crowds out honest ones. Too high: more small datagrams to spoofed addresses.
    pub cookies_per_frame_max: u32,
    /// Handshakes that may wait for their response, per slot (> 0, default 4), 1.5 KB each. Above that the
    /// oldest is evicted. Too low: a crowd of half-open handshakes pushes honest ones out before they
    /// answer.
    pub pending_per_slot: usize,
    /// Clients that have proven themselves and wait to come in (> 0, default 4,096), 1.2 KB each. Further ones are
    /// denied. Too low: in a rush they are sent away and have to come again. Too high: they wait longer than people
    /// do.
    pub queue_max: usize,
    /// Clients called from the line, and admitted, per frame (> 0, default 256). Too low: a full server fills
    /// slowly. Too high: a rush makes the frames of those who play long.
    pub admissions_per_frame_max: u32,
    /// Tokens remembered until they expire, per slot (> 0, default 16, and 4,096 in all at least), about
    /// 100 B each. Above that new clients are denied. Too low for logins a second times the life of a
    /// token: honest clients are denied.
    pub used_tokens_per_slot: usize,
    /// A client not heard of for this long is gone (s; > 0, default 600), however much more its token says, and where
    /// that says nothing. Too low: a short blackout disconnects. Too high: who is gone holds a slot and its id.
    pub timeout_s_max: u32,
    /// How long after its expiry a token still counts [s, default 60]: the clocks of back end and server
    /// may differ by this much. Too low: clients are refused where clocks are bad.
    pub clock_skew_s: u64,
    /// Tokens that expire before this are refused [unix s, default 0]. For a server without a
    /// [`TokenJournal`](super::TokenJournal) whose back end gives every token the same life: set it to the
    /// moment of start plus that life, and no token made before the start, so none that an earlier run may
    /// have admitted, comes in.
    pub tokens_expire_from_unix_s: u64,
}

impl ServerHandshakeSettings {
    /// Everything at its default but what has none.
    pub fn new(
        protocol_id: ProtocolId,
        private_key: PrivateKey,
        public_addresses: Vec<SocketAddr>,
        clients_max: usize,
    ) -> Self {
        Self {
            protocol_id,
            private_key,
            public_addresses,
            clients_max,
            plain_netcode: false,
            openings_per_frame_max: 32,
            proven_openings_per_frame_max: 256,
            cookies_per_frame_max: 2_048,
            pending_per_slot: 4,
            queue_max: 4_096,
            admissions_per_frame_max: 256,
            used_tokens_per_slot: 16,
            timeout_s_max: 600,
            clock_skew_s: 60,
            tokens_expire_from_unix_s: 0,
        }
    }

    /// How long a client with this token may be silent (s).
    pub(super) fn timeout_s(&self, of_token: i32) -> i32 {
        let most = i32::try_from(self.timeout_s_max).unwrap_or(i32::MAX);
        if of_token > 0 { of_token.min(most) } else { most }
    }

    pub(super) fn pending_max(&self) -> usize {
        self.clients_max.saturating_mul(self.pending_per_slot)
    }

    pub(super) fn used_tokens_max(&self) -> usize {
        self.clients_max.saturating_mul(self.used_tokens_per_slot).max(4_096)
    }
}
