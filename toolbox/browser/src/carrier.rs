//! Who is let in with a tunnel, and who is called when a tunnel has something to send: the same for WebSockets and for
//! WebTransport.
//!
//! One address may have an eighth of all tunnels, 8 at least; this host all of them.

use std::sync::Arc;
use std::time::Duration;

use throng_net::transport::{Refusal, Tunnel, Tunnels};
use tokio::sync::Notify;

use crate::allowance::Limits;
use crate::shares::{Peer, Share, Shares};

/// A tunnel in which no session is, is closed: whoever shakes hands that long is no player.
pub(crate) const WITHOUT_SESSION_MAX: Duration = Duration::from_secs(15);

/// Kinds of netcode's packets that a server says to whom it knows: keep-alive, payload, and our *queued*.
const KINDS_OF_SESSIONS: [u8; 3] = [4, 5, 10];

/// Whether a server says this to those alone whom it has let in, or who stand in its line.
pub(crate) fn is_of_session(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|prefix| KINDS_OF_SESSIONS.contains(&(prefix & 15)))
}

/// Opens tunnels and calls those that wait for something to send.
pub(crate) struct Carrier {
    tunnels: Tunnels,
    pub limits: Limits,
    shares: Arc<Shares>,
    /// Called by workers.
    filled: Arc<Notify>,
    /// By the tunnel's place: who carries it.
    calls: Box<[Notify]>,
}

impl Carrier {
    pub fn new(tunnels: Tunnels, limits: Limits, places_max: usize) -> Self {
        let filled = Arc::new(Notify::new());
        let call = filled.clone();
        tunnels.on_filled(move || call.notify_one());
        let calls = (0..places_max).map(|_| Notify::new()).collect();
        Self { tunnels, limits, shares: Shares::new(Shares::of_each(places_max)), filled, calls }
    }

    /// Calls whoever carries a tunnel that has something to send. Never ends.
    pub async fn call_filled(&self) {
        let mut filled = Vec::new();
        loop {
            self.filled.notified().await;
            self.tunnels.take_filled(&mut filled);
            for place in filled.drain(..) {
                if let Some(call) = self.calls.get(usize::from(place)) {
                    call.notify_one();
                }
            }
        }
    }

    /// A tunnel for a browser, and its address's share of them; or why there is none, to be told to it.
    pub fn admit(&self, Peer(peer): Peer) -> Result<(Tunnel, Share), &'static str> {
        let Some(share) = self.shares.take(peer.ip()) else {
            self.turn_away(Refusal::Address);
            return Err("too many players from your address");
        };
        let Some(tunnel) = self.tunnels.open(peer) else {
            self.turn_away(Refusal::Full);
            return Err("too many players in browsers: try again later");
        };
        Ok((tunnel, share))
    }

    /// Counts what is turned away, for the server's metrics.
    pub fn turn_away(&self, why: Refusal) {
        self.tunnels.turn_away(why);
    }

    /// What is notified when the tunnel has something to send.
    pub fn call_of(&self, tunnel: &Tunnel) -> Option<&Notify> {
        self.calls.get(usize::from(tunnel.place()))
    }
}
