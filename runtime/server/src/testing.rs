//! Testing: a kind of world and surroundings for tests of the host itself, in which what a world does is a line or two.
//!
//! Games test worlds of theirs without a host (`throng_world::testing`), and whole systems in the simulator.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use throng_net::{
    protocol::PrivateKey,
    transport::{Impairment, MemoryNetwork},
};
use throng_platform::{
    clock::{Clock, ManualClock},
    steal::ManualSteal,
    time::Nanos,
};
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

impl<B> TestKind<B> {
    /// Its worlds are dormant until somebody comes.
    #[must_use]
    pub fn dormant(self) -> Self {
        Self { dormant_when_empty: true, ..self }
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

/// A clock that is moved by whoever sleeps: what it sleeps until has come at once. A test may move it too.
pub struct SleptClock {
    clock: ManualClock,
    woken: Box<dyn Fn(Nanos) + Send + Sync>,
    real_timeout: Box<dyn Fn(Nanos) -> Option<Duration> + Send + Sync>,
}

impl SleptClock {
    pub fn new(clock: ManualClock) -> Self {
        Self { clock, woken: Box::new(|_| ()), real_timeout: Box::new(|_| None) }
    }

    /// Calls `woken` with each time that somebody has slept until, before it goes on.
    #[must_use]
    pub fn when_woken(self, woken: impl Fn(Nanos) + Send + Sync + 'static) -> Self {
        Self { woken: Box::new(woken), ..self }
    }

    /// Has `real_timeout` say how long somebody may really wait, where it is an event that is waited for
    /// ([`Clock::real_timeout`]). Otherwise only the event ends a wait.
    #[must_use]
    pub fn with_real_timeout(self, real_timeout: impl Fn(Nanos) -> Option<Duration> + Send + Sync + 'static) -> Self {
        Self { real_timeout: Box::new(real_timeout), ..self }
    }
}

impl Clock for SleptClock {
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn unix_seconds(&self) -> u64 {
        self.clock.unix_seconds()
    }

    fn sleep_until(&self, at: Nanos) {
        self.clock.set(at);
        (self.woken)(at);
    }

    fn real_timeout(&self, until: Nanos) -> Option<Duration> {
        (self.real_timeout)(until)
    }
}

/// Worlds of 20 Hz in which nothing happens, and which are dormant until somebody comes.
pub fn empty() -> impl WorldKind {
    TestKind::new("empty", Hertz(20), |_| {}).dormant()
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
