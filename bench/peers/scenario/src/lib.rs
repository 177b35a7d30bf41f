//! Scenario: what every peer is measured with, so that nothing but the peer differs.
//!
//! A peer is a program of its own that implements [`Server`] and [`Clients`] and calls [`run`]. It is started once
//! and starts itself again as the process of its clients, so that the server's processor time and memory are its
//! own. Both sides compute the same [`Scene`] from the seed; nothing but the peer's packets goes over the wire.
//!
//! ```text
//!   server process                                            client process
//!   scene.step, sight.look        not timed                   scene.step, sight.look
//!   Server::deliver  <- wire      not timed                   Clients::receive  <- wire or UDP sockets
//!   Server::tick                  TIMED: process CPU          Clients::tick     -> wire
//!   Server::hand_over -> wire     not timed                   every 10th tick: what is held against the scene
//! ```
//!
//! The two sides take turns, so that a run is the same every time and neither takes the other's processor. What is
//! timed is the processor time of the whole server process: threads that a peer starts count.
//!
//! Nothing here knows a peer. It says what is visible to whom ([`Sight`]); the time that takes is not the peer's,
//! even if the peer has an interest management of its own and does not need it.

mod clients;
mod figures;
mod flags;
mod packed;
mod scene;
mod server;
mod sight;
mod wire;

use std::net::SocketAddr;

pub use figures::cpu_ns;
pub use flags::{Load, Terms};
pub use packed::{PACKED_BYTES, pack, unpack};
pub use scene::{Pose, Scene, WORLD_ENTITIES, WORLD_MOVERS};
pub use sight::{SIGHT_M, Sight};
pub use wire::Outbox;

/// The measured side.
pub trait Server: Sized {
    /// Builds the server with the scene as it is at tick 0. Not timed.
    fn new(terms: &Terms, scene: &Scene, addresses: &[SocketAddr]) -> Self;

    /// One step of the handshake, for peers that cannot do without one; true when everybody is connected. Not timed.
    fn connect(&mut self, _out: &mut Outbox) -> bool {
        true
    }

    /// Takes a packet from a client, as a transport's receive queue does. Not timed: handling it belongs into `tick`.
    fn deliver(&mut self, client: u32, packet: &[u8]);

    /// Everything that a server does in a tick: packets in, values written, visibility told, packets out. Timed.
    fn tick(&mut self, scene: &Scene, sight: &Sight);

    /// Copies what the last tick sent to the wire. Not timed.
    fn hand_over(&mut self, out: &mut Outbox);

    /// Entity updates that clients were sent since the start, if the peer counts them; otherwise the driver's count
    /// of visible changes is taken, which the checks confirm.
    fn updates(&self) -> Option<u64> {
        None
    }

    /// Whatever else the peer wants to say, as a JSON object.
    fn more(&self) -> serde_json::Value {
        serde_json::json!({})
    }
}

/// What a client holds of one entity.
#[derive(Copy, Clone, Debug)]
pub struct Held {
    /// Which entity of the scene.
    pub number: u32,
    pub pose: Pose,
    pub health: u16,
}

/// All clients of a run.
pub trait Clients: Sized {
    /// A client's copy may be so old. (ticks)
    const BEHIND_TICKS_MAX: u32 = 0;
    /// A client may hold entities this much farther than [`SIGHT_M`]. (m)
    const BEYOND_M: f32 = 0.0;

    fn new(terms: &Terms, scene: &Scene) -> Self;

    fn connect(&mut self, _out: &mut Outbox) {}

    /// Takes a packet from the server.
    fn receive(&mut self, client: u32, packet: &mut [u8]);

    /// After all packets of a tick: applies them and answers.
    fn tick(&mut self, out: &mut Outbox);

    /// Clients that really decode, to be checked: 16 of them, or all. Of `W4` all, since no world is like another.
    fn sampled(&self, terms: &Terms) -> Vec<u32> {
        let count = if terms.load == Load::W4 { terms.clients } else { terms.clients.min(16) };
        (0..count).map(|index| index * terms.clients / count).collect()
    }

    /// Adds everything that a sampled client holds.
    fn held(&mut self, client: u32, into: &mut Vec<Held>);
}

/// Runs a peer: its server if `--role` is not given, its clients if it says so. Prints one JSON object.
pub fn run<S: Server, C: Clients>(peer: &str) {
    let terms = Terms::from_arguments();
    if terms.is_clients {
        clients::run::<C>(&terms);
    } else {
        server::run::<S>(peer, &terms);
    }
}
