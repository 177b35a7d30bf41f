//! bevy_replicon in the peers' bench.
//!
//! As its own tests and backends use it: an `App` with `RepliconPlugins` that ticks with each update, messages handed
//! over through `ServerMessages` and `ClientMessages`. Visibility is set by hand for what came into and went out of
//! sight (`ClientVisibility::set`), which its documentation recommends for distances. A pose is packed into 7 bytes
//! by `replicate_as`. Components that never change are declared so (`replicate_once`).
//!
//! Timed is the whole `App::update` of the server with writing the components and setting visibility. Not timed: who
//! sees whom, any transport, any cipher: it has neither.

mod crowd;
mod protocol;
mod world;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    peers_scenario::run::<world::RepliconServer, crowd::RepliconClients>("bevy_replicon");
}
