//! What a checkpoint promises, on a small game that does all the things that could go wrong: entities come and go, refer
//! to each other, change their components, draw lots; resources come late, clients come and go.

use bevy_ecs::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_pack::{Fault, Pack, PackError};
use throng_replication::{
    EntityLink, Replicate, Team,
    ecs::{Placed, Replicated},
};

use super::*;
use crate::{
    game_world::ReplayError,
    input_log::InputLog,
    prelude::*,
    testing::{TestWorld, goes_on_alike_after_a_load},
};

#[derive(Component, Clone, Copy, Debug, PartialEq, Replicate, Pack)]
#[pack(name = "test.place")]
struct Place {
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    x: f32,
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    z: f32,
}

impl Placed for Place {
    fn place(&self) -> [f32; 2] {
        [self.x, self.z]
    }
}

/// Whom it follows.
#[derive(Component, Clone, Copy, Debug, PartialEq, Replicate, Pack)]
#[pack(name = "test.bond")]
struct Bond {
    to: EntityLink,
}

/// Whom it hunts, without telling anybody.
#[derive(Component, Pack)]
#[pack(name = "test.prey")]
struct Prey {
    #[pack(via = EntityLink)]
    entity: Entity,
    until_tick: u32,
}

#[derive(Component, Pack)]
#[pack(name = "test.hero")]
struct Hero {
    client: u32,
}

#[derive(Resource, Default, Pack)]
#[pack(name = "test.tally")]
struct Tally {
    born: u32,
    died: u32,
}

/// Comes when the first entity has died.
#[derive(Resource, Pack)]
#[pack(name = "test.memorial")]
struct Memorial {
    at_tick: u32,
}

/// What a build knows beside what is state.
#[derive(Resource)]
struct Ledger {
    rows: Vec<u32>,
    limit: usize,
}

#[derive(Pack)]
#[pack(name = "test.ledger")]
struct SavedLedger {
    rows: throng_pack::List<u32, 64>,
}

/// Follows from places.
#[derive(Resource, Default)]
struct Sum(f64);

struct Herd;

impl WorldKind for Herd {
    fn name(&self) -> &str {
        "herd"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Place>().component::<Bond>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(Ledger { rows: vec![7], limit: 20 }).init_resource::<Tally>().init_resource::<Sum>();
        world.placed_by::<Place>();
        world.checkpoint::<Place>().checkpoint::<Bond>().checkpoint::<Prey>().checkpoint::<Hero>();
        world.checkpoint::<Tally>().checkpoint::<Memorial>().transient::<Sum>().after_load(sum_up);
        world.checkpoint_part::<Ledger, SavedLedger>(
            |ledger| SavedLedger { rows: ledger.rows.clone().try_into().expect("at most 20") },
            |ledger, saved| ledger.rows = saved.rows.into_vec(),
        );
        let start = |mut commands: Commands| {
            for x in 0..40 {
                commands.spawn((Replicated::default(), Place { x: x as f32, z: 0.0 }));
            }
        };
        world.add_systems(Startup, (start, sum_up).chain());
        world.add_systems(Update, (come_and_go, be_born, die, hunt, wander, sum_up).chain());
    }
}

fn come_and_go(
    (arrivals, departures): (Res<Arrivals>, Res<Departures>),
    heroes: Query<(Entity, &Hero)>,
    mut outbox: ResMut<Outbox>,
    mut commands: Commands,
) {
    for arrival in &arrivals.0 {
        let place = Place { x: 0.0, z: arrival.client.0 as f32 };
        let hero = commands.spawn((Replicated::default(), place, Hero { client: arrival.client.0 })).id();
        outbox.set_player(arrival.client, hero);
    }
    for client in &departures.0 {
        heroes.iter().filter(|(_, hero)| hero.client == client.0).for_each(|(hero, _)| commands.entity(hero).despawn());
    }
}

fn be_born(
    mut rng: ResMut<WorldRng>,
    mut tally: ResMut<Tally>,
    mut commands: Commands,
    herd: Query<Entity, With<Place>>,
) {
    for _ in 0..rng.0.random_range(0..4) {
        let mut child = commands.spawn((Replicated::default(), Place { x: rng.0.random_range(-90.0..90.0), z: 1.0 }));
        tally.born += 1;
        let parent = sorted(&herd).nth(rng.0.random_range(0..8));
        if let Some(parent) = parent.filter(|_| rng.0.random_bool(0.5)) {
            child.insert(Bond { to: parent.into() });
        }
        if rng.0.random_bool(0.2) {
            child.insert(Team(3));
        }
    }
}

/// A beast that is nothing else.
type InTheHerd = (With<Place>, Without<Hero>, Without<Bond>, Without<Team>, Without<Prey>);

fn die(
    mut rng: ResMut<WorldRng>,
    (mut tally, mut ledger): (ResMut<Tally>, ResMut<Ledger>),
    tick: Res<TickInfo>,
    herd: Query<Entity, InTheHerd>,
    mut commands: Commands,
) {
    // Who comes first of one set of components dies: so a world with its rows in another order goes another way.
    for entity in herd.iter().take(rng.0.random_range(0..4)) {
        commands.entity(entity).despawn();
        if tally.died == 0 {
            commands.insert_resource(Memorial { at_tick: tick.tick });
        }
        tally.died += 1;
        ledger.rows.push(entity.index_u32());
        let excess = ledger.rows.len().saturating_sub(ledger.limit);
        ledger.rows.drain(..excess);
    }
}

fn hunt(
    mut rng: ResMut<WorldRng>,
    tick: Res<TickInfo>,
    hunters: Query<(Entity, &Prey)>,
    herd: Query<Entity, With<Place>>,
    mut commands: Commands,
) {
    for (hunter, prey) in &hunters {
        if prey.until_tick <= tick.tick || !herd.contains(prey.entity) {
            commands.entity(hunter).remove::<Prey>();
        }
    }
    let mut pair = sorted(&herd).skip(rng.0.random_range(0..10));
    if let (Some(hunter), Some(entity)) = (pair.next(), pair.next()) {
        commands.entity(hunter).insert(Prey { entity, until_tick: tick.tick + 5 });
    }
}

/// Bevy promises no order of sets of components among each other.
fn sorted(herd: &Query<Entity, With<Place>>) -> impl Iterator<Item = Entity> {
    let mut herd: Vec<Entity> = herd.iter().collect();
    herd.sort();
    herd.into_iter()
}

fn wander(mut rng: ResMut<WorldRng>, sum: Res<Sum>, herd: Query<Entity, With<Place>>, mut places: Query<&mut Place>) {
    let drift = if sum.0 > 0.0 { -0.01 } else { 0.01 };
    for entity in sorted(&herd) {
        let mut place = places.get_mut(entity).unwrap();
        place.x = (place.x + drift + rng.0.random_range(-0.5..0.5)).clamp(-100.0, 100.0);
    }
}

fn sum_up(herd: Query<&Place>, mut sum: ResMut<Sum>) {
    // Whole millimetres add up to the same in any order.
    sum.0 = herd.iter().map(|place| f64::from((place.x * 1e3).round())).sum();
}

fn herd() -> TestWorld {
    TestWorld::new(Herd, &Herd.protocol().schema(), 5)
}

fn play(world: &mut TestWorld, tick: u32) {
    let client = ClientKey(tick / 16);
    match tick % 16 {
        0 => world.arrive(client),
        15 if !client.0.is_multiple_of(3) => world.leave(client),
        _ => {}
    }
}

fn after(ticks: u32) -> (TestWorld, Vec<u8>) {
    let mut world = herd();
    (0..ticks).for_each(|tick| {
        play(&mut world, tick);
        world.tick();
    });
    let bytes = world.checkpoint(PlayerEntities::Stay).unwrap();
    (world, bytes)
}

#[test]
fn a_loaded_world_goes_on_as_the_one_that_was_saved() {
    for saved_at in [0, 1, 16, 100, 333] {
        goes_on_alike_after_a_load(herd, saved_at, 200, play);
    }
}

#[test]
fn players_that_are_left_out_leave_the_rest_as_it_is() {
    let (mut world, with) = after(100);
    let heroes = |world: &mut TestWorld| world.ecs_mut().query::<&Hero>().iter(world.ecs()).count();
    let others = |world: &mut TestWorld| {
        let mut others = world.ecs_mut().query_filtered::<(Entity, &Place), Without<Hero>>();
        let mut others: Vec<_> = others.iter(world.ecs()).map(|(entity, place)| (entity, *place)).collect();
        others.sort_by_key(|(entity, _)| *entity);
        others
    };
    assert!(heroes(&mut world) > 1);
    let without = world.checkpoint(PlayerEntities::LeftOut).unwrap();
    for bytes in [with, without] {
        let mut loaded = herd();
        loaded.load(&bytes, PlayerEntities::LeftOut).unwrap();
        assert_eq!((heroes(&mut loaded), others(&mut loaded)), (0, others(&mut world)));
        assert_eq!(loaded.ecs().resource::<Departures>().0, []);
        loaded.arrive(ClientKey(900));
        loaded.ticks(100);
        assert_eq!(heroes(&mut loaded), 1);
        let again = loaded.checkpoint(PlayerEntities::Stay).unwrap();
        herd().load(&again, PlayerEntities::Stay).unwrap();
    }
}

#[test]
fn what_a_kind_forgets_is_named() {
    #[derive(Component)]
    struct Secret;
    #[derive(Resource)]
    struct Plot;
    let (mut world, _) = after(20);
    assert_eq!(world.forgotten(), Vec::<String>::new());
    world.ecs_mut().spawn((Place { x: 0.0, z: 0.0 }, Secret));
    world.ecs_mut().insert_resource(Plot);
    let found = world.forgotten();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].ends_with("Plot") && found[1].ends_with("Secret"), "{found:?}");
}

#[test]
fn a_kind_that_registers_nothing_has_no_checkpoint() {
    struct Bare;
    impl WorldKind for Bare {
        fn name(&self) -> &str {
            "bare"
        }
        fn tick_rate(&self) -> Hertz {
            Hertz(20)
        }
        fn build(&self, _world: &mut WorldBuilder) {}
    }
    let mut world = TestWorld::new(Bare, &Protocol::new().schema(), 1);
    let refused = world.checkpoint(PlayerEntities::Stay);
    assert_eq!(refused, Err(CheckpointError::NothingRegistered { kind: "bare".into() }));
}

#[test]
fn a_value_that_cannot_be_kept_is_named_and_the_buffer_stays() {
    let (mut world, _) = after(3);
    let entity = world.ecs_mut().spawn(Place { x: f32::NAN, z: 0.0 }).id();
    let (mut out, kept) = (vec![1, 2, 3], vec![1, 2, 3]);
    let refused = world.game_world_mut().checkpoint(PlayerEntities::Stay, &mut out);
    let error = PackError { type_name: "test.place", field: "x", fault: Fault::NotFinite };
    assert_eq!((refused, out), (Err(CheckpointError::Value(error)), kept));
    world.ecs_mut().despawn(entity);
    assert!(world.checkpoint(PlayerEntities::Stay).is_ok());
}

#[test]
fn bytes_that_are_not_as_they_were_written_are_refused() {
    let (_, bytes) = after(30);
    let load = |bytes: &[u8]| herd().load(bytes, PlayerEntities::Stay);
    assert_eq!(load(&bytes), Ok(()));
    assert_eq!(load(b"no checkpoint"), Err(LoadError::NoCheckpoint));
    assert_eq!(load(&bytes[..bytes.len() - 1]), Err(LoadError::WrongLength));
    for at in (0..bytes.len()).step_by(41) {
        let mut broken = bytes.clone();
        broken[at] ^= 0x10;
        assert!(load(&broken).is_err(), "byte {at}");
    }
    let mut ticked = herd();
    ticked.tick();
    assert_eq!(ticked.load(&bytes, PlayerEntities::Stay), Err(LoadError::HasTicked));
}

/// Whoever can write a checkpoint can write its checksums.
#[test]
fn hostile_bytes_are_refused_or_make_a_world_that_holds_together() {
    let as_written = CheckpointHeading { players: PlayerEntities::Stay };
    let (_, bytes) = after(40);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut refused = 0;
    for round in 0..400 {
        let mut hostile = bytes.clone();
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(24..hostile.len());
            match rng.random_range(0..3) {
                0 => hostile[at] = rng.random(),
                1 => drop(hostile.remove(at)),
                _ => hostile.truncate(at.max(30)),
            }
        }
        let mut world = herd();
        match world.load(&as_written.seal(&hostile[24..]), PlayerEntities::Stay) {
            Err(_) => refused += 1,
            Ok(()) => {
                world.ticks(2);
                world.checkpoint(PlayerEntities::Stay).unwrap_or_else(|error| panic!("round {round}: {error}"));
            }
        }
    }
    assert!((200..400).contains(&refused), "{refused} of 400");
}

/// Promise: a world that is loaded and does what a log holds is the one that wrote the log.
#[test]
fn a_log_leads_a_loaded_world_to_where_the_other_one_is() {
    let (mut world, bytes) = after(100);
    world.game_world_mut().log_into(InputLog::empty(), 5);
    for tick in 100..300 {
        play(&mut world, tick);
        world.tick();
    }
    let log = world.game_world_mut().take_log().unwrap();
    let mut loaded = herd();
    loaded.load(&bytes, PlayerEntities::Stay).unwrap();
    assert_eq!(loaded.game_world_mut().replay(log.whole_ticks()), Ok(200));
    assert!(loaded.checkpoint(PlayerEntities::Stay) == world.checkpoint(PlayerEntities::Stay));
    let elsewhere = herd().game_world_mut().replay(log.whole_ticks());
    assert_eq!(elsewhere, Err(ReplayError::OtherTick { got: 99, ticks: 0 }));
}

const SPEC: &str = include_str!("../../../../docs/spec/checkpoint.md");

#[derive(Component, Pack)]
#[pack(name = "spec.dot")]
struct Dot(u16);

struct Dots;

impl WorldKind for Dots {
    fn name(&self) -> &str {
        "dots"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.checkpoint::<Dot>().world_mut().spawn(Dot(300));
    }
}

#[test]
fn the_example_in_the_spec_is_what_is_written_and_read() {
    let dots = || TestWorld::new(Dots, &Dots.protocol().schema(), 1);
    let bytes = dots().checkpoint(PlayerEntities::Stay).unwrap();
    let drawn = SPEC.split_once("```hex checkpoint\n").unwrap().1.split_once("```").unwrap().0;
    let drawn: Vec<u8> = drawn.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let lines: Vec<String> = bytes
        .chunks(16)
        .map(|row| row.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(drawn, bytes, "the spec should draw\n{}", lines.join("\n"));
    let mut loaded = dots();
    loaded.load(&drawn, PlayerEntities::Stay).unwrap();
    let mut found = loaded.ecs_mut().query::<(Entity, &Dot)>();
    let found: Vec<_> = found.iter(loaded.ecs()).map(|(entity, dot)| (entity.index_u32(), dot.0)).collect();
    assert_eq!(found, [(11, 300)]);
}
