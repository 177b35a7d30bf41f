//! lightyear in the peers' bench.
//!
//! The server is an `App` with `ServerPlugins` and a raw server (no netcode, no encryption); each client's packets
//! are taken from its `Link`, where a transport would take them. Every client is a real client `App`. Visibility is
//! told by `gain_visibility` and `lose_visibility`, a pose is packed into 7 bytes by `replicate_as`, and its cap of
//! bytes is off, as is its default. Its replication is bevy_replicon's, with lightyear's channels and packets on top.
//!
//! Timed is the whole `App::update` of the server with writing the components and setting visibility. Not timed: who
//! sees whom, any socket, any cipher. Time is moved by 50 ms per update.

mod crowd;
mod protocol;
mod world;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    peers_scenario::run::<world::LightyearServer, crowd::LightyearClients>("lightyear");
}
