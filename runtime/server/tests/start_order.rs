//! The promise: of a frame's worlds those start first that will probably cost most. One that has said that its next tick
//! will take longer is first in that tick and in no other; one that becomes ten times as costly is first from the next
//! tick on.
//!
//! One worker, and a clock that nothing moves but ticks, each by what it is to cost. All worlds cost the same but for the
//! last one, so the others start in the order of their ids.

use std::sync::{Arc, Mutex};

use bevy_ecs::prelude::*;
use throng::{
    prelude::*,
    server::Server,
    settings::Settings,
    testing::{self, TestKind},
};
use throng_platform::{clock::ManualClock, time::Nanos};
use throng_replication::SchemaBuilder;

const COST: Nanos = Nanos::from_micros(100);
const EXTRA: Nanos = Nanos::from_micros(300);
const WORLDS: u64 = 12;
/// The tick in which a world announces the next one, and the first that is costly.
const ODD_TICK: u32 = 5;

/// Worlds of a frame, in the order in which they started, each with its tick.
#[derive(Resource, Clone, Default)]
struct Started(Arc<Mutex<Vec<(WorldId, u32)>>>);

/// The clock, moved by each tick; what a tick costs from [`ODD_TICK`] on.
#[derive(Resource, Clone)]
struct Costs(ManualClock, Nanos);

fn take_time(tick: Res<TickInfo>, started: Res<Started>, costs: Res<Costs>) {
    started.0.lock().unwrap().push((tick.world, tick.tick));
    costs.0.advance(if tick.tick < ODD_TICK { COST } else { costs.1 });
}

fn announce(tick: Res<TickInfo>, mut outbox: ResMut<Outbox>) {
    if tick.tick == ODD_TICK {
        outbox.hint_next_tick(EXTRA);
    }
}

/// What is odd about the last of the worlds.
#[derive(Clone, Copy)]
enum Odd {
    Announces,
    BecomesCostly,
}

/// In which place of its frame the last of all worlds started in each of its ticks, counted from the front and from the
/// back.
fn places(odd: Odd, uses_cost_estimates: bool) -> Vec<(usize, usize)> {
    let clock = ManualClock::new();
    let environment = testing::environment(Arc::new(clock.clone()));
    let mut server = Server::with_environment(&Settings::default(), SchemaBuilder::new().build(), environment);
    let started = Started::default();
    let mut kind = |name, announces: bool, cost| {
        let (costs, started) = (Costs(clock.clone(), cost), started.clone());
        let build = move |world: &mut WorldBuilder| {
            world.insert_resource(started.clone()).insert_resource(costs.clone()).add_systems(Update, take_time);
            if announces {
                world.add_systems(Update, announce).world_mut().resource_mut::<Outbox>().hint_next_tick(EXTRA);
            }
        };
        server.add_kind(TestKind::new(name, Hertz(20), build)).unwrap()
    };
    let calm = kind("calm", false, COST);
    let odd = match odd {
        Odd::Announces => kind("announces", true, COST),
        Odd::BecomesCostly => kind("costly", false, Nanos(10 * COST.0)),
    };
    for seed in 1..WORLDS {
        server.create_world(calm, seed).unwrap();
    }
    let last = server.create_world(odd, WORLDS).unwrap();
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

/// The last world is first in the ticks that `is_first` names, and last in all others.
#[track_caller]
fn check(odd: Odd, is_first: impl Fn(usize) -> bool) {
    for (tick, (before, after)) in places(odd, true).into_iter().enumerate() {
        assert!(before + after > 0, "others start in the same frame");
        let expect = (is_first(tick), !is_first(tick));
        assert_eq!((before == 0, after == 0), expect, "tick {tick}: {before} before, {after} after");
    }
}

#[test]
fn a_world_that_hints_at_its_next_tick_starts_first_in_that_tick_alone() {
    check(Odd::Announces, |tick| [0, ODD_TICK as usize + 1].contains(&tick));
}

#[test]
fn a_world_that_becomes_costly_starts_first_from_the_next_tick_on() {
    check(Odd::BecomesCostly, |tick| tick > ODD_TICK as usize);
}

#[test]
fn without_estimates_neither_hints_nor_costs_count() {
    for odd in [Odd::Announces, Odd::BecomesCostly] {
        assert!(places(odd, false).into_iter().all(|(_, after)| after == 0));
    }
}
