//! Testing: a kind of world and surroundings for tests of the host itself, in which what a world does is a line or two.
//!
//! Games test worlds of theirs without a host (`throng_world::testing`), and whole systems in the simulator.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use throng_net::{
    protocol::PrivateKey,
    transport::{Impairment, MemoryNetwork},
};
use throng_platform::{clock::Clock, steal::ManualSteal};
use throng_scheduler::Hertz;
use throng_world::{world_builder::WorldBuilder, world_kind::WorldKind};

use crate::server::Environment;

/// Where the server of an [`environment`] listens.
pub const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 40_000);

/// A kind of world by what is put into each. Its worlds tick on though nobody is there.
pub struct TestKind<B> {
    name: &'static str,
    rate: Hertz,
    build: B,
    dormant_when_empty: bool,
}

impl<B: Fn(&mut WorldBuilder) + Send + Sync + 'static> TestKind<B> {
    pub fn new(name: &'static str, rate: Hertz, build: B) -> Self {
        Self { name, rate, build, dormant_when_empty: false }
    }
}

impl<B: Fn(&mut WorldBuilder) + Send + Sync + 'static> WorldKind for TestKind<B> {
    fn name(&self) -> &str {
        self.name
    }

    fn tick_rate(&self) -> Hertz {
        self.rate
    }

    fn build(&self, world: &mut WorldBuilder) {
        (self.build)(world);
    }

    fn dormant_when_empty(&self) -> bool {
        self.dormant_when_empty
    }
}

/// Worlds of 20 Hz in which nothing happens, and which are dormant until somebody comes.
pub fn empty() -> impl WorldKind {
    TestKind { dormant_when_empty: true, ..TestKind::new("empty", Hertz(20), |_| {}) }
}

/// Surroundings by themselves: one worker, a network in memory on which nobody is, a host that steals nothing, and no
/// chance.
pub fn environment(clock: Arc<dyn Clock>) -> Environment {
    Environment {
        clock,
        transport: Box::new(MemoryNetwork::new(1, Impairment::NONE).server(ADDRESS)),
        steal: Box::new(ManualSteal::new(1)),
        seed: [1; 32],
        private_key: PrivateKey::new([1; 32]),
        public_addresses: vec![ADDRESS],
        workers_count: 1,
    }
}
