//! Throng in the peers' bench: the world that ships, `throng_world::GameWorld`, on the scheduler's workers.
//!
//! Timed is its whole tick, as a server has it done: opening what clients sent (acknowledgements), charging it to
//! them, the systems that write components into the Bevy world, walking its change marks and encoding, the interest
//! query of Throng itself, audit samples, pacing, choosing and copying each client's snapshot, sealing. With `--udp`
//! also handing the datagrams to the kernel; without, they are copied to memory. Not there: a server's frame, its
//! door and mailboxes, and a game's own systems, of which the peers have none either.
//!
//! Of small worlds (`W4`) it is the server that ships, with all of that: see `shipped_server`.

mod components;
mod crowd;
mod door_crowd;
mod frame_clock;
mod handshake;
mod server;
mod shipped_server;
mod small_world;
mod way_in;
mod way_out;
mod world;

use peers_scenario::{Load, Terms};
use throng_platform::allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() {
    match Terms::from_arguments().load {
        Load::W4 => peers_scenario::run::<shipped_server::ShippedServer, door_crowd::DoorCrowd>("throng"),
        _ => peers_scenario::run::<server::ThrongServer, crowd::ThrongClients>("throng"),
    }
}
