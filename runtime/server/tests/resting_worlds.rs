//! The promise: a resting world wakes nobody until it is due, and what another world says to it reaches it a tick later,
//! though no packet comes and nothing else is due.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use throng::{
    prelude::*,
    server::{Environment, Server},
    settings::Settings,
    testing::{self, SleptClock},
};
use throng_net::transport::{DatagramSender, Impairment, MemoryNetwork, MemoryServer, ServerTransport};
use throng_platform::{clock::ManualClock, signals::StopFlag, time::Nanos};

#[derive(Pack)]
#[pack(name = "test.word")]
struct Word;

/// Says a word to another world in its tick 40, and hears such words.
struct Resting {
    says_to: Option<WorldId>,
    ticks: Arc<AtomicU32>,
    heard_in: Arc<AtomicU32>,
}

#[derive(Resource, Clone)]
struct Seen {
    says_to: Option<WorldId>,
    ticks: Arc<AtomicU32>,
    heard_in: Arc<AtomicU32>,
}

impl WorldKind for Resting {
    fn name(&self) -> &str {
        if self.says_to.is_some() { "speaker" } else { "listener" }
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn pace(&self) -> Pace {
        Pace::Reactive
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }

    fn build(&self, world: &mut WorldBuilder) {
        let Self { says_to, ticks, heard_in } = self;
        world.insert_resource(Seen { says_to: *says_to, ticks: ticks.clone(), heard_in: heard_in.clone() });
        world.add_systems(Update, talk);
    }
}

fn talk(tick: Res<TickInfo>, seen: Res<Seen>, words: Res<WorldMessages>, mut outbox: ResMut<Outbox>) {
    seen.ticks.fetch_add(1, Ordering::Relaxed);
    if !words.0.is_empty() {
        seen.heard_in.store(tick.tick, Ordering::Relaxed);
    }
    match seen.says_to {
        Some(_) if tick.tick < 40 => outbox.wake_after(40 - tick.tick),
        Some(to) if tick.tick == 40 => outbox.post(tick.world, to, &Word).unwrap(),
        _ => {}
    }
}

/// Nothing comes: who waits for packets waits for as long as they may.
struct Silence {
    network: MemoryServer,
    clock: ManualClock,
    waits: Arc<AtomicU64>,
}

impl ServerTransport for Silence {
    fn receive(&mut self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), max: usize) -> usize {
        self.network.receive(each, max)
    }

    fn sender(&mut self, worker: usize) -> Box<dyn DatagramSender> {
        self.network.sender(worker)
    }

    fn wait(&self, timeout: Option<Nanos>) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.clock.advance(timeout.expect("never for ever"));
    }

    fn local_addr(&self) -> SocketAddr {
        self.network.local_addr()
    }
}

#[test]
fn worlds_that_rest_hear_each_other_and_wake_nobody() {
    let clock = ManualClock::new();
    let network = MemoryNetwork::new(1, Impairment::default());
    let waits = Arc::new(AtomicU64::new(0));
    let transport =
        Box::new(Silence { network: network.server(testing::ADDRESS), clock: clock.clone(), waits: waits.clone() });
    let environment = Environment { transport, ..testing::environment(Arc::new(SleptClock::new(clock))) };
    let mut server = Server::with_environment(&Settings::default(), SchemaBuilder::new().build(), environment);
    let (ticks, heard_in) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let resting = |says_to| Resting { says_to, ticks: ticks.clone(), heard_in: heard_in.clone() };
    let listener = server.add_kind(resting(None)).unwrap();
    let listener = server.create_world(listener, 1).unwrap();
    let speaker = server.add_kind(resting(Some(listener))).unwrap();
    server.create_world(speaker, 2).unwrap();
    let control = server.control();
    server
        .run(&StopFlag::new().unwrap(), &mut |status| {
            if status.second == 60 {
                control.stop();
            }
        })
        .unwrap();
    let heard_in = heard_in.load(Ordering::Relaxed);
    assert!((40..=42).contains(&heard_in), "said in tick 40, heard in {heard_in}");
    // Each ticks at first, and once in ten seconds; and for the word.
    let ticks = ticks.load(Ordering::Relaxed);
    assert!((14..=18).contains(&ticks), "{ticks} ticks in 60 s");
    // Once a second, and for each tick.
    let waits = waits.load(Ordering::Relaxed);
    println!("heard in {heard_in}, {ticks} ticks, {waits} waits");
    assert!((50..).contains(&waits), "it sleeps between: {waits} waits");
    assert!(waits <= 61 + 3 * u64::from(ticks), "{waits} wake-ups in 60 s");
}
