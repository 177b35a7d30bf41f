//! The promise: a world that has said that its next tick will take longer starts first in that tick, and in no other.
//!
//! One worker and a clock that stands still: all worlds cost nothing, so those of a frame start in the order of their
//! ids but for what is hinted.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use bevy_ecs::prelude::*;
use throng::{
    prelude::*,
    server::{Environment, Server},
    settings::Settings,
};
use throng_net::{
    protocol::PrivateKey,
    transport::{Impairment, MemoryNetwork},
};
use throng_platform::{clock::ManualClock, steal::ManualSteal, time::Nanos};
use throng_replication::SchemaBuilder;

const EXTRA: Nanos = Nanos::from_micros(300);
const WORLDS: u64 = 12;
/// The tick in which the stormy world announces the next one.
const ANNOUNCED_IN: u32 = 5;

/// Worlds of a frame, in the order in which they started, each with its tick.
#[derive(Resource, Clone, Default)]
struct Started(Arc<Mutex<Vec<(WorldId, u32)>>>);

struct Weather {
    name: &'static str,
    is_stormy: bool,
    started: Started,
}

impl WorldKind for Weather {
    fn name(&self) -> &str {
        self.name
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(self.started.clone()).add_systems(note_start);
        if self.is_stormy {
            world.add_systems(announce).world_mut().resource_mut::<Outbox>().hint_next_tick(EXTRA);
        }
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

fn note_start(tick: Res<TickInfo>, started: Res<Started>) {
    started.0.lock().unwrap().push((tick.world, tick.tick));
}

fn announce(tick: Res<TickInfo>, mut outbox: ResMut<Outbox>) {
    if tick.tick == ANNOUNCED_IN {
        outbox.hint_next_tick(EXTRA);
    }
}

/// In which place of its frame the last of all worlds, which is stormy, started in each of its ticks, counted from the
/// front and from the back.
fn places(uses_cost_estimates: bool) -> Vec<(usize, usize)> {
    let clock = ManualClock::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000));
    let environment = Environment {
        clock: Arc::new(clock.clone()),
        transport: Box::new(MemoryNetwork::new(1, Impairment::NONE).server(address)),
        seed: [1; 32],
        steal: Box::new(ManualSteal::new(1)),
        private_key: PrivateKey::new([1; 32]),
        public_addresses: vec![address],
        workers_count: 1,
    };
    let mut server = Server::with_environment(&Settings::default(), SchemaBuilder::new().build(), environment);
    let started = Started::default();
    let mut kind = |name, is_stormy| server.add_kind(Weather { name, is_stormy, started: started.clone() }).unwrap();
    let (calm, stormy) = (kind("calm", false), kind("stormy", true));
    for seed in 1..WORLDS {
        server.create_world(calm, seed).unwrap();
    }
    let last = server.create_world(stormy, WORLDS).unwrap();
    server.use_cost_estimates(uses_cost_estimates);
    server.prepare(Nanos::ZERO).unwrap();
    let mut places = Vec::new();
    for frame in 0.. {
        clock.set(server.start_of_frame(frame));
        server.frame(frame);
        let started = std::mem::take(&mut *started.0.lock().unwrap());
        if let Some(place) = started.iter().position(|(world, _)| *world == last) {
            assert_eq!(started[place].1 as usize, places.len(), "every tick is looked at");
            places.push((place, started.len() - 1 - place));
        }
        if places.len() == 10 {
            break;
        }
    }
    places
}

#[test]
fn a_world_that_hints_at_its_next_tick_starts_first_in_that_tick_alone() {
    let places = places(true);
    let hinted_at = [0, ANNOUNCED_IN as usize + 1];
    for (tick, (before, after)) in places.into_iter().enumerate() {
        assert!(before + after > 0, "others start in the same frame");
        let is_hinted_at = hinted_at.contains(&tick);
        assert_eq!(
            (before == 0, after == 0),
            (is_hinted_at, !is_hinted_at),
            "tick {tick}: {before} before, {after} after"
        );
    }
}

#[test]
fn without_estimates_hints_count_for_nothing() {
    assert!(places(false).into_iter().all(|(_, after)| after == 0));
}
