//! The floor: what the physical work costs when nothing is around it. Written by hand for this one scene.
//!
//! Each tick: sort entities into a grid, write each one's 13 bytes once, copy for each client those in sight,
//! encrypt (AES-128-GCM), and with `--udp` hand the datagrams to the kernel. No ECS, no acknowledgements, nothing
//! owed again, no entering and leaving: every packet says all there is, and the network may not lose one. A library
//! cannot be as fast; how near it comes is the question.
//!
//! Of small worlds (`W4`) it needs no grid: world after world, what has moved is written into the packet of its client.
//!
//! ```text
//! packet  | tick (u32 LE) | record | record | ..  | tag (16) |
//! record  | number (u32 LE) | pose (7, see `peers_scenario::pack`) | health (u16 LE) |
//! ```

mod cipher;
mod crowd;
mod gather;
mod way_out;
mod world;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    peers_scenario::run::<world::FloorServer, crowd::FloorClients>("floor");
}
