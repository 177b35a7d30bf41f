//! Throng in the peers' bench: the steps of one tick of a world, in the order of `server::game_world`.
//!
//! Timed are: opening what clients sent (acknowledgements), writing components into the Bevy world, walking its
//! change marks and encoding, the interest query of Throng itself, choosing and copying each client's snapshot, its
//! budget and records in flight, sealing. With `--udp` also handing the datagrams to the kernel; without, they are
//! copied to memory. Not there: a game's systems and a server's frame, of which the peers have none either.

mod components;
mod crowd;
mod handshake;
mod part;
mod world;

use throng_platform::allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() {
    peers_scenario::run::<world::ThrongServer, crowd::ThrongClients>("throng");
}
