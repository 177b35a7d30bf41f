//! What a world that is saved as its checkpoint promises, and how a later build takes it.

use bevy_ecs::prelude::*;
use rand::Rng;
use throng_pack::Pack;
use throng_replication::{Replicate, ecs::Replicated};

use crate::{checkpoint::PlayerEntities, input_log::InputLog, prelude::*, testing::TestWorld};

#[derive(Component, Clone, Copy, Debug, PartialEq, Replicate, Pack)]
#[pack(name = "garden.tree")]
struct Tree {
    height: u16,
}

#[derive(Component, Pack)]
#[pack(name = "garden.nest")]
struct Nest {
    eggs: u32,
}

/// The same in a later build.
#[derive(Component, Pack)]
#[pack(name = "garden.nest", version = 2)]
struct NewNest {
    eggs: u32,
    #[pack(since = 2, default = 7)]
    age: u32,
}

#[derive(Component)]
struct Gardener;

#[derive(Resource, Default, Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "garden.harvest")]
struct Harvest(u64);

/// What a build keeps of nests.
#[derive(Clone, Copy)]
enum Nests {
    Kept,
    Newer,
    /// The build does not know of any.
    Unknown,
    Dropped,
}

struct Garden(Nests);

impl WorldKind for Garden {
    fn name(&self) -> &str {
        "garden"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Tree>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.init_resource::<Harvest>().save_world_by_checkpoint();
        world.checkpoint::<Tree>().checkpoint::<Harvest>().transient::<Gardener>();
        match self.0 {
            Nests::Kept => _ = world.checkpoint::<Nest>(),
            Nests::Newer => _ = world.checkpoint::<NewNest>(),
            Nests::Unknown => {}
            Nests::Dropped => _ = world.checkpoint_dropped("garden.nest"),
        }
        let keeps_nests = matches!(self.0, Nests::Kept);
        let start = move |mut commands: Commands| {
            (0..5).for_each(|height| _ = commands.spawn((Replicated::default(), Tree { height })));
            if keeps_nests {
                // One in a tree, and one on the ground.
                commands.spawn((Replicated::default(), Tree { height: 90 }, Nest { eggs: 3 }));
                commands.spawn(Nest { eggs: 4 });
            }
        };
        world.add_systems(Startup, start).add_systems(Update, (come, grow, harvest).chain());
    }
}

fn come(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for arrival in &arrivals.0 {
        let player = commands.spawn((Replicated::default(), Tree { height: 1_000 }, Gardener)).id();
        outbox.set_player(arrival.client, player);
    }
}

fn grow(mut rng: ResMut<WorldRng>, mut trees: Query<&mut Tree, Without<Gardener>>) {
    let growth = rng.0.random_range(0..3);
    trees.iter_mut().for_each(|mut tree| tree.height = tree.height.wrapping_add(growth) % 999);
}

fn harvest(tick: Res<TickInfo>, trees: Query<&Tree, Without<Gardener>>, mut harvest: ResMut<Harvest>) {
    harvest.0 += u64::from(tick.tick) * trees.iter().map(|tree| u64::from(tree.height)).sum::<u64>();
}

fn garden(nests: Nests) -> TestWorld {
    TestWorld::new(Garden(nests), &Garden(nests).protocol().schema(), 5)
}

/// A garden after so many ticks, with two players in it, and what it was saved as then.
fn saved(ticks: u32) -> (TestWorld, Vec<u8>) {
    let mut world = garden(Nests::Kept);
    world.game_world_mut().keep_saves(true, true);
    (1..=2).for_each(|client| world.arrive(ClientKey(client)));
    world.ticks(ticks - 1);
    world.game_world_mut().want_cut();
    let report = world.tick();
    assert_eq!(report.saves.failed, None);
    let cut = report.saves.cut.take().expect("a cut");
    (world, cut.world.expect("with the world"))
}

#[test]
fn a_world_that_was_saved_as_its_checkpoint_goes_on_without_its_players() {
    let (mut before, bytes) = saved(50);
    let mut after = garden(Nests::Kept);
    assert!(after.game_world_mut().is_as_built());
    after.game_world_mut().load(&bytes).unwrap();
    assert!(!after.game_world_mut().is_as_built(), "so it is not made again from its plan alone");
    assert_eq!(after.ticks_done(), before.ticks_done());
    let mut players = before.ecs_mut().query_filtered::<Entity, With<Gardener>>();
    let players: Vec<Entity> = players.iter(before.ecs()).collect();
    assert_eq!(players.len(), 2);
    players.into_iter().for_each(|player| _ = before.ecs_mut().despawn(player));
    assert_eq!(after.state_hash(), before.state_hash(), "it is there as it was saved");
    for world in [&mut before, &mut after] {
        world.ticks(50);
    }
    assert_eq!(after.ecs().resource::<Harvest>(), before.ecs().resource::<Harvest>(), "chance and ticks included");
}

#[test]
fn a_later_build_takes_it_or_names_what_it_would_lose() {
    let (_, bytes) = saved(10);
    let load = |nests| {
        let mut world = garden(nests);
        world.game_world_mut().load(&bytes).map(|()| world)
    };
    let mut newer = load(Nests::Newer).unwrap_or_else(|error| panic!("{error}"));
    let mut nests = newer.ecs_mut().query::<&NewNest>();
    let mut nests: Vec<_> = nests.iter(newer.ecs()).map(|nest| (nest.eggs, nest.age)).collect();
    nests.sort_unstable();
    assert_eq!(nests, [(3, 7), (4, 7)], "what was not known then has its default");

    let error = load(Nests::Unknown).err().expect("it would lose nests");
    assert!(error.contains("`garden.nest` (version 1)") && error.contains("checkpoint_dropped"), "{error}");

    let mut dropped = load(Nests::Dropped).unwrap_or_else(|error| panic!("{error}"));
    let trees = dropped.ecs_mut().query::<&Tree>().iter(dropped.ecs()).count();
    assert_eq!(trees, 6, "the tree stands, and the nest on the ground is nowhere");
    dropped.ticks(20);

    // And back: what a newer build saved, an older one does not touch.
    let mut newer = garden(Nests::Newer);
    newer.game_world_mut().keep_saves(true, true);
    newer.ecs_mut().spawn(NewNest { eggs: 1, age: 1 });
    newer.game_world_mut().want_cut();
    let bytes = newer.tick().saves.cut.take().and_then(|cut| cut.world).expect("a cut");
    let error = garden(Nests::Kept).game_world_mut().load(&bytes).expect_err("it is newer");
    assert!(error.contains("garden.nest") && error.contains('2') && error.contains('1'), "{error}");
}

/// What was said of items by the build is in what was saved.
#[test]
fn a_loaded_world_says_nothing_again_of_what_it_was_built_with() {
    let mut after = garden(Nests::Kept);
    after.ecs_mut().resource_mut::<Outbox>().items_created(1, 9);
    after.game_world_mut().load(&saved(3).1).unwrap();
    after.game_world_mut().keep_saves(true, true);
    after.game_world_mut().want_cut();
    assert_eq!(after.tick().saves.cut.take().expect("a cut").items, []);
}

/// What a world has seen of the store in each tick.
#[derive(Resource, Default)]
struct Seen(Vec<(bool, bool)>);

/// A kind that saves players, and rests when nothing comes.
struct Pond;

impl WorldKind for Pond {
    fn name(&self) -> &str {
        "pond"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn pace(&self) -> Pace {
        Pace::Reactive
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.init_resource::<Seen>().save_players(|_, _| None::<Ripple>);
        world.init_resource::<Harvest>().checkpoint::<Harvest>().transient::<Seen>();
        let see = |store: Res<SaveStore>, mut seen: ResMut<Seen>| seen.0.push((store.is_away, store.has_turned));
        world.add_systems(Update, see);
    }
}

#[derive(Pack)]
#[pack(name = "pond.ripple")]
struct Ripple;

fn pond() -> TestWorld {
    TestWorld::new(Pond, &Pond.protocol().schema(), 5)
}

/// Promise: a game sees that the store went away or came back in the tick in which it did, a resting world at once, and
/// sees the same when its log is run again.
#[test]
fn a_store_that_turns_is_seen_once_and_in_a_replay_as_well() {
    let mut world = pond();
    let step = |world: &mut TestWorld, is_away| {
        world.set_saves_away(is_away);
        world.tick();
    };
    [false, false, true, true].into_iter().for_each(|is_away| step(&mut world, is_away));
    // It has not ticked but when it had a reason to.
    assert_eq!(world.ecs().resource::<Seen>().0, [(false, false), (true, true)]);
    let mut checkpoint = Vec::new();
    world.game_world_mut().checkpoint(PlayerEntities::Stay, &mut checkpoint).unwrap();
    world.game_world_mut().log_into(InputLog::empty(), 5);
    [true, false, true].into_iter().for_each(|is_away| step(&mut world, is_away));
    assert_eq!(world.ecs().resource::<Seen>().0[2..], [(false, true), (true, true)]);

    let log = world.game_world_mut().take_log().unwrap();
    let mut again = pond();
    again.game_world_mut().load_checkpoint(&checkpoint, PlayerEntities::Stay).unwrap();
    again.game_world_mut().replay(log.whole_ticks()).unwrap();
    assert_eq!(again.ecs().resource::<Seen>().0, [(false, true), (true, true)]);
}

#[test]
fn a_log_that_begins_while_the_store_is_away_says_so() {
    let mut world = pond();
    world.set_saves_away(true);
    world.tick();
    let mut checkpoint = Vec::new();
    world.game_world_mut().checkpoint(PlayerEntities::Stay, &mut checkpoint).unwrap();
    world.game_world_mut().log_into(InputLog::empty(), 5);
    world.arrive(ClientKey(1));
    world.tick();
    let log = world.game_world_mut().take_log().unwrap();
    let mut again = pond();
    again.game_world_mut().load_checkpoint(&checkpoint, PlayerEntities::Stay).unwrap();
    again.game_world_mut().replay(log.whole_ticks()).unwrap();
    assert_eq!(again.ecs().resource::<Seen>().0, [(true, false)], "away, and not just now");
}
