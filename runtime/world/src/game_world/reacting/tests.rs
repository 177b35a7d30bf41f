//! What a reactive world promises by itself: it ticks for what comes and for what it asked for, its time goes on meanwhile,
//! and its log leads another one to where it is.

use bevy_ecs::prelude::*;
use rand::Rng;
use throng_pack::Pack;
use throng_replication::{Replicate, ecs::Replicated};

use crate::{
    game_world::ReplayError,
    input_log::{InputLog, LogFault},
    prelude::*,
    testing::TestWorld,
};

#[derive(Pack)]
struct Call;
impl ClientRequest for Call {}

#[derive(Component, Clone, Debug, PartialEq, Replicate)]
struct Sum {
    calls: u32,
    lot: u32,
    ticks: u32,
}

/// Every tick in which systems ran, with the time since the one before in ticks.
#[derive(Resource, Default)]
struct Ran(Vec<(u32, u32)>);

#[derive(Resource, Default)]
struct Rated(Vec<u32>);

struct Office {
    pace: Pace,
    has_rate: bool,
}

impl WorldKind for Office {
    fn name(&self) -> &str {
        "office"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Sum>().request::<Call>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.init_resource::<Ran>().init_resource::<Rated>();
        world.world_mut().spawn((Replicated::default(), Sum { calls: 0, lot: 0, ticks: 0 }));
        world.add_systems(Update, answer);
        if self.has_rate {
            world.add_systems_every(Hertz(3), |tick: Res<TickInfo>, mut rated: ResMut<Rated>| rated.0.push(tick.tick));
        }
    }
}

fn answer(
    tick: Res<TickInfo>,
    calls: Requests<Call>,
    mut ran: ResMut<Ran>,
    mut rng: ResMut<WorldRng>,
    mut outbox: ResMut<Outbox>,
    mut sums: Query<&mut Sum>,
) {
    ran.0.push((tick.tick, (tick.dt_s * 20.0).round() as u32));
    for mut sum in &mut sums {
        sum.ticks += tick.tick;
        for _ in calls.read() {
            sum.calls += 1;
            sum.lot = rng.0.random();
            // Calls back.
            outbox.wake_after(7);
        }
    }
}

fn office(pace: Pace, has_rate: bool) -> TestWorld {
    let office = Office { pace, has_rate };
    let schema = office.protocol().schema();
    TestWorld::new(office, &schema, 5)
}

fn run(world: &mut TestWorld, until: u32, calls_in: &[u32]) {
    while world.ticks_done() < until {
        if calls_in.contains(&world.ticks_done()) {
            world.request(ClientKey(1), &Call);
        }
        world.tick();
    }
}

#[test]
fn it_ticks_for_what_comes_and_for_what_it_asked_for() {
    let mut world = office(Pace::Reactive, false);
    run(&mut world, 300, &[20, 90, 93]);
    // The first, the calls and what follows them; and when it has rested for long.
    let expect = [(0, 1), (20, 20), (27, 7), (90, 63), (93, 3), (100, 7)];
    assert_eq!(world.ecs().resource::<Ran>().0, expect);
    run(&mut world, 302, &[]);
    assert_eq!(world.ecs().resource::<Ran>().0[6..], [(300, 200)]);
}

/// Promise: what has a rate of its own is done in the same ticks whatever else comes, and in a world that is not reactive.
#[test]
fn a_rate_is_the_same_whatever_comes() {
    let every: Vec<u32> = (0..200).collect();
    let rated = |pace, calls: &[u32]| {
        let mut world = office(pace, true);
        run(&mut world, 200, calls);
        world.ecs().resource::<Rated>().0.clone()
    };
    let expect = rated(Pace::Fixed, &[]);
    assert_eq!(expect.len(), 30);
    assert_eq!(rated(Pace::Reactive, &[]), expect);
    assert_eq!(rated(Pace::Reactive, &every), expect);
}

/// Promise: a log has the ticks that were run, and another world comes by it to the same state in the same tick; a world
/// that leaves out no tick does not take such a log.
#[test]
fn a_log_leads_another_world_through_the_same_ticks() {
    let mut world = office(Pace::Reactive, true);
    world.game_world_mut().log_into(InputLog::empty(), 5);
    run(&mut world, 500, &[3, 50, 51, 52, 400, 499]);
    let ran = world.ecs().resource::<Ran>().0.clone();
    assert!(ran.len() < 150, "{} of 500 ticks", ran.len());
    let log = world.game_world_mut().take_log().unwrap();
    let mut other = office(Pace::Reactive, true);
    assert_eq!(other.game_world_mut().replay(log.whole_ticks()), Ok(ran.len() as u32));
    assert_eq!(other.ecs().resource::<Ran>().0, ran);
    assert_eq!(other.game_world_mut().state_hash(), world.game_world_mut().state_hash());

    let mut fixed = office(Pace::Fixed, true);
    let refused = fixed.game_world_mut().replay(log.whole_ticks());
    assert_eq!(refused, Err(ReplayError::Log(LogFault::TickOutOfOrder { got: 3, expected: 1 })));
}

/// Promise: `FixedUpdate` runs at each place of the grid, so a world that has any ticks at its rate.
#[test]
fn what_is_in_a_fixed_schedule_keeps_its_world_ticking() {
    struct Clockwork;
    impl WorldKind for Clockwork {
        fn name(&self) -> &str {
            "clockwork"
        }

        fn tick_rate(&self) -> Hertz {
            Hertz(20)
        }

        fn pace(&self) -> Pace {
            Pace::Reactive
        }

        fn build(&self, world: &mut WorldBuilder) {
            world.init_resource::<Rated>();
            world.add_systems(FixedUpdate, |tick: Res<TickInfo>, mut rated: ResMut<Rated>| rated.0.push(tick.tick));
        }
    }
    let mut world = TestWorld::new(Clockwork, &Protocol::new().schema(), 1);
    world.ticks(50);
    assert_eq!(world.ecs().resource::<Rated>().0, (0..50).collect::<Vec<_>>());
}
