//! naia in the peers' bench.
//!
//! Its server and one of its clients for every client, with sockets of ours that keep packets in memory. It needs an
//! ECS to read from: a plain one is in `store`, with no more cost than a look into an array. Visibility is told by
//! `include` and `exclude` of each user's scope, or by one room where everybody sees everybody. A pose is packed
//! into 7 bytes; naia could also write its 54 bits. Its cap of 64 kB a second is lifted. Clients do without their
//! jitter buffer. Time is moved by 50 ms per tick (its feature `test_time`).
//!
//! Timed are all five steps of its server loop, writing the components and setting the scopes. Not timed: who sees
//! whom, any socket, any cipher.

mod crowd;
mod protocol;
mod sockets;
mod store;
mod world;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    peers_scenario::run::<world::NaiaServer, crowd::NaiaClients>("naia");
}
