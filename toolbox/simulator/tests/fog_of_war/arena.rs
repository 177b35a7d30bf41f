//! The arena: rooms with doors, in which everybody may be hidden from everybody. Who is behind a wall is told to nobody who
//! could not see it within the grace.
//!
//! Fighters are there from the beginning; clients take the first ones. Some shout, for those who may know of them. At the
//! end of each tick the arena notes where all of them are, for the judge; nothing of replication is asked for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bevy_ecs::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng_query::geometry::LevelGeometry;
use throng_query::occlusion::{Body, CellSettings, CellVisibility, FogOfWar, FogSettings};
use throng_query::testing::{Walkers, rooms};
use throng_replication::ecs::{Placed, Replicated};
use throng_replication::{InterestSettings, Replicate, ReplicatedEvent, VisibilityFiltered};

pub const TICKS_PER_S: u16 = 64;
pub const FIGHTERS: usize = 16;
const ROOMS: usize = 5;
pub const FOG: FogSettings =
    FogSettings { ticks_per_s: TICKS_PER_S as f32, grace_ms: 120.0, recheck_ticks: 4, rise_m: 0.0 };

#[derive(Component, Replicate, Debug, Clone, Copy, PartialEq)]
pub struct Fighter {
    #[replicate(min = 0.0, max = 64.0, step = 0.01)]
    pub at: [f32; 2],
    pub number: u16,
}

impl Placed for Fighter {
    fn place(&self) -> [f32; 2] {
        self.at
    }
}

/// For those who may know who shouts.
#[derive(Replicate, Debug, Clone, Copy)]
#[replicate(name = "arena.shout")]
pub struct Shout {
    pub number: u16,
}

impl ReplicatedEvent for Shout {
    const RELIABLE: bool = false;
    const RANGE_M: Option<f32> = None;
}

pub fn protocol() -> Protocol {
    Protocol::new().component::<Fighter>().event::<Shout>()
}

/// Where everybody was at the end of a tick, by number.
pub struct Page {
    pub tick: u32,
    pub bodies: Vec<Body>,
}

/// The last ticks, the newest last. Written by the world, read by the judge between two frames.
#[derive(Resource, Clone, Default)]
pub struct Chronicle(Arc<Mutex<VecDeque<Page>>>);

impl Chronicle {
    pub fn pages(&self) -> MutexGuard<'_, VecDeque<Page>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The level, for the worlds and for the judge.
#[derive(Clone)]
pub struct Level {
    pub walls: Arc<LevelGeometry>,
    cells: Arc<CellVisibility>,
    walkers: Arc<dyn Fn() -> Walkers + Send + Sync>,
}

impl Level {
    pub fn new(seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let boxes = rooms(ROOMS, &mut rng);
        let walls = LevelGeometry::from_boxes(&boxes).unwrap();
        let walkers = move || {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            Walkers::new(&boxes, ROOMS, FIGHTERS as u32, FOG.ticks_per_s, &mut rng)
        };
        let settings = CellSettings { proof_steps: 32, ..CellSettings::within(walkers().bounds()) };
        let cells = CellVisibility::bake(&walls, &settings).unwrap();
        Self { walls: Arc::new(walls), cells: Arc::new(cells), walkers: Arc::new(walkers) }
    }
}

pub struct Arena {
    pub level: Level,
    pub chronicle: Chronicle,
    /// The filter lets everybody see everybody.
    pub is_careless: bool,
}

#[derive(Resource)]
struct Crowd(Walkers);

/// The fighters by number.
#[derive(Resource, Default)]
struct Seats(Vec<Entity>);

impl WorldKind for Arena {
    fn name(&self) -> &str {
        "arena"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(TICKS_PER_S)
    }

    fn protocol(&self) -> Protocol {
        protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        let interest = InterestSettings { enter_radius_m: 100.0, leave_radius_m: 110.0, ..InterestSettings::default() };
        world
            .placed_by::<Fighter>()
            .interest(interest)
            .insert_resource(self.chronicle.clone())
            .insert_resource(Crowd((self.level.walkers)()))
            .insert_resource(Seats::default())
            .add_systems(Update, (come, walk, shout, note).chain());
        hide_behind_walls(world, self.level.clone(), self.is_careless);
        for number in 0..FIGHTERS as u16 {
            let fighter = Fighter { at: [0.0; 2], number };
            let entity = world.world_mut().spawn((Replicated::default(), VisibilityFiltered, fighter)).id();
            world.world_mut().resource_mut::<Seats>().0.push(entity);
        }
    }
}

fn hide_behind_walls(world: &mut WorldBuilder, level: Level, is_careless: bool) {
    let mut fog = FogOfWar::new(FOG, FIGHTERS, FIGHTERS).unwrap();
    let (mut begun, mut numbers) = (None, Vec::new());
    world.filter_visibility_in_batches_by(move |world, viewer, entities, may_see| {
        let tick = world.resource::<TickInfo>().tick;
        if begun.replace(tick) != Some(tick) {
            fog.begin_tick(tick, &world.resource::<Crowd>().0.bodies);
        }
        let number = |entity: Entity| world.get::<Fighter>(entity).map_or(u32::MAX, |fighter| fighter.number.into());
        let Some(own) = viewer.player.map(number) else { return };
        numbers.clear();
        numbers.extend(entities.iter().map(|entity| number(*entity)));
        fog.look(&level.walls, Some(&level.cells), own, &numbers, may_see.words_mut());
        if is_careless {
            (0..entities.len()).for_each(|at| may_see.allow(at));
        }
    });
}

/// Client ids are counted from 1.
fn come(arrivals: Res<Arrivals>, seats: Res<Seats>, mut outbox: ResMut<Outbox>) {
    for arrival in &arrivals.0 {
        outbox.set_player(arrival.client, seats.0[arrival.client_id.0 as usize - 1]);
    }
}

fn walk(mut crowd: ResMut<Crowd>, mut rng: ResMut<WorldRng>, mut fighters: Query<&mut Fighter>) {
    crowd.0.step(true, &mut rng.0);
    for mut fighter in &mut fighters {
        let feet = crowd.0.bodies[usize::from(fighter.number)].feet;
        fighter.at = [feet.x, feet.z];
    }
}

fn shout(mut rng: ResMut<WorldRng>, mut events: ResMut<Events>, fighters: Query<(Entity, &Fighter)>) {
    for (entity, fighter) in &fighters {
        if rng.0.random_range(0..20) == 0 {
            events.send(&Shout { number: fighter.number }, Audience::Around(entity), "arena.shout");
        }
    }
}

fn note(tick: Res<TickInfo>, crowd: Res<Crowd>, chronicle: Res<Chronicle>) {
    let mut pages = chronicle.pages();
    if pages.len() > FOG.recheck_ticks as usize {
        pages.pop_front();
    }
    pages.push_back(Page { tick: tick.tick, bodies: crowd.0.bodies.clone() });
}
