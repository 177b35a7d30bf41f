//! Browsers, as an operator counts them: tunnels, what went through, and who was turned away for what.
//!
//! The gateway's thread and the workers count as it happens (`throng_net::transport::tunnels`); the frame's thread takes
//! what is new. Cost: a dozen reads a frame where there is a gateway, nothing where there is none.

use throng_metrics::counters;
use throng_net::transport::{Refusal, TunnelStats, Tunnels};

counters! {
    /// What came of browsers. None of it is a native client's.
    pub(crate) struct BrowserCounts {
        Sum opened: "browser.opened", "tunnels",
            "WebSockets and WebTransport sessions that browsers opened to play.",
            "Follows players in browsers. Many more than `server.joined`: tokens that are too old, or strangers.";
        Sum packets_in: "browser.packets_in", "packets",
            "Packets that came from browsers.",
            "Part of `net.packets_in`.";
        Sum bytes_in: "browser.bytes_in", "bytes",
            "Bytes of these packets, without what carries them.",
            "Part of `net.bytes_in`.";
        Sum packets_out: "browser.packets_out", "packets",
            "Packets that were handed to browsers' connections.",
            "Part of `net.packets_out`.";
        Sum bytes_out: "browser.bytes_out", "bytes",
            "Bytes of these packets, without what carries them.",
            "Part of `net.bytes_out`.";
        Sum dropped: "browser.dropped", "packets",
            "Packets to browsers that were dropped, the oldest first, since their browser took less than it was told.",
            "Their lines are too slow, or the host is: players see the world stand for a moment. The kernel \
             has no part in it.";
        Sum refused_waiting: "browser.refused_waiting", "packets",
            "Packets of browsers that were refused, since too much waited for the frame, or since they were none.",
            "Frames are too long (`server.frames_over_budget`), or somebody floods.";
        Sum refused_allowance: "browser.refused_allowance", "packets",
            "Packets of browsers above what one may send in a second.",
            "Somebody floods; its connection is closed after 1,000 of them. Honest pages: raise \
             `client_packets_per_s_max` in the settings.";
        Sum refused_full: "browser.refused_full", "connections",
            "Browsers that were turned away since all places were taken.",
            "Raise `clients_max` in [browser], or start another server.";
        Sum refused_address: "browser.refused_address", "connections",
            "Browsers that were turned away since their address has its share of the places.",
            "Somebody opens too many; or a reverse proxy stands before the gateway, from whose address all come: \
             docs/browser.md.";
        Sum refused_handshake: "browser.refused_handshake", "connections",
            "Connections that did not come to a request in time, or not as TLS, HTTP or QUIC want it.",
            "A few are scanners. Many: a certificate that browsers do not take, or a flood.";
        Sum refused_page: "browser.refused_page", "connections",
            "Browsers that were turned away since the page that they showed is of another server.",
            "Pages of your own that are elsewhere, or a proxy's name: name them in `origins` in [browser]. Else somebody's page \
             has its visitors come here.";
        Sum closed_without_session: "browser.closed_without_session", "tunnels",
            "Tunnels that were closed since no session came of them within 15 s.",
            "Tokens of another server, or strangers.";
    }
}

/// The tunnels of a server, and what of them was counted already.
pub(crate) struct BrowserWatch {
    pub tunnels: Tunnels,
    before: TunnelStats,
}

impl BrowserWatch {
    pub fn new(tunnels: Tunnels) -> Self {
        Self { tunnels, before: TunnelStats::default() }
    }

    /// What is new since the last call. Once a frame; no lock.
    pub fn take(&mut self) -> BrowserCounts {
        let now = self.tunnels.stats();
        let before = std::mem::replace(&mut self.before, now);
        let turned_away = |why: Refusal| now.turned_away[why as usize] - before.turned_away[why as usize];
        BrowserCounts {
            opened: now.opened - before.opened,
            packets_in: now.received - before.received,
            bytes_in: now.received_bytes - before.received_bytes,
            packets_out: now.sent - before.sent,
            bytes_out: now.sent_bytes - before.sent_bytes,
            dropped: now.dropped - before.dropped,
            refused_waiting: now.refused - before.refused,
            refused_allowance: turned_away(Refusal::Allowance),
            refused_full: turned_away(Refusal::Full),
            refused_address: turned_away(Refusal::Address),
            refused_handshake: turned_away(Refusal::Handshake),
            refused_page: turned_away(Refusal::Page),
            closed_without_session: turned_away(Refusal::NoSession),
        }
    }

    /// Browsers with a tunnel, as of the last frame.
    pub fn open(&self) -> usize {
        self.before.open
    }
}
