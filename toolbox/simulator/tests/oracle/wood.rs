//! The wood: wanderers, some of them stalkers that only those very near and their own pack may see.
//!
//! They walk, stand still for a while, turn up elsewhere at once, change packs, hide and show themselves, are wounded
//! and healed, cry, die, and others are born into their slots. Every component and every event says whom it is about.
//! At the end of each tick the wood writes into its chronicle where everybody is and who looks from where; nothing of
//! replication is asked for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bevy_ecs::prelude::*;
use rand::Rng;
use throng::prelude::*;
use throng_replication::ecs::{Placed, Replicated};
use throng_replication::{InterestSettings, Replicate, ReplicatedEvent, Schema, Team, VisibilityFiltered};

pub const ENTER_M: f32 = 30.0;
pub const LEAVE_M: f32 = 36.0;
/// How near a stalker must be to be seen by others than its pack. (m)
pub const STALKER_SEEN_M: f32 = 6.0;
pub const CRY_RANGE_M: f32 = 12.0;
pub const SIDE_MAX_M: f32 = 480.0;
pub const STEP_M: f32 = 0.01;
/// Farthest that a wanderer walks in a tick, on each axis. (m)
const STRIDE_M: f32 = 0.35;
/// Ticks that the chronicle goes back: more than the longest grace, and than a reliable event waits on a bad network.
const PAGES_MAX: usize = 600;

#[derive(Component, Replicate, Debug, Clone, Copy, PartialEq)]
pub struct Wanderer {
    #[replicate(min = 0.0, max = SIDE_MAX_M, step = STEP_M)]
    pub at: [f32; 2],
    pub number: u16,
}

impl Placed for Wanderer {
    fn place(&self) -> [f32; 2] {
        self.at
    }
}

/// Comes and goes.
#[derive(Component, Replicate, Debug, Clone, Copy, PartialEq)]
pub struct Wound {
    pub number: u16,
    pub depth: u8,
}

/// A cry that only those around hear who may know who cries.
#[derive(Replicate, Debug, Clone, Copy)]
#[replicate(name = "wood.cry")]
pub struct Cry {
    pub number: u16,
    pub tick: u16,
}

impl ReplicatedEvent for Cry {
    const RELIABLE: bool = false;
    const RANGE_M: Option<f32> = Some(CRY_RANGE_M);
}

/// A call to its own pack, sent again when it is lost.
#[derive(Replicate, Debug, Clone, Copy)]
#[replicate(name = "wood.call")]
pub struct Call {
    pub number: u16,
    pub tick: u16,
}

impl ReplicatedEvent for Call {
    const RELIABLE: bool = true;
    const RANGE_M: Option<f32> = None;
}

/// Wanderers are kind 0 and wounds kind 1, cries event 0 and calls event 1.
fn protocol() -> Protocol {
    Protocol::new().component::<Wanderer>().component::<Wound>().event::<Cry>().event::<Call>().input::<crate::Stroll>()
}

pub fn schema() -> Arc<Schema> {
    protocol().schema()
}

/// Where a wanderer was at the end of a tick, and what it was.
#[derive(Debug, Clone, Copy)]
pub struct Trace {
    pub at: [f32; 2],
    /// 0: none.
    pub pack: u16,
    pub is_stalker: bool,
}

/// Whom a client steered at the end of a tick, and of which pack it was.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watcher {
    /// `None`: it is dead, or not here yet.
    pub own: Option<u16>,
    pub pack: u16,
}

/// One tick.
#[derive(Debug, Default)]
pub struct Page {
    pub tick: u32,
    /// By number; `None`: dead, or not born yet.
    pub traces: Vec<Option<Trace>>,
    /// By client.
    pub watchers: Vec<Watcher>,
}

impl Page {
    pub fn trace(&self, number: u16) -> Option<&Trace> {
        self.traces.get(usize::from(number))?.as_ref()
    }

    pub fn watcher(&self, client: usize) -> Watcher {
        self.watchers.get(client).copied().unwrap_or_default()
    }
}

/// The last ticks.
#[derive(Debug, Default)]
pub struct Pages(VecDeque<Page>);

impl Pages {
    pub fn page(&self, tick: u32) -> Option<&Page> {
        let first = self.0.front()?.tick;
        self.0.get(tick.checked_sub(first)? as usize)
    }

    pub fn last_tick(&self) -> Option<u32> {
        self.0.back().map(|page| page.tick)
    }

    /// Adds the next tick's page, and drops what is too old.
    pub fn write(&mut self, page: Page) {
        assert!(self.last_tick().is_none_or(|last| last + 1 == page.tick), "every tick has its page");
        if self.0.len() == PAGES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(page);
    }
}

/// What was. Written by the world, read by the judge between two frames.
#[derive(Resource, Clone, Default)]
pub struct Chronicle(Arc<Mutex<Pages>>);

impl Chronicle {
    pub fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a wood is like.
pub struct Wood {
    pub wanderers: u16,
    pub side_m: f32,
    pub packs: u16,
    pub leave_m: f32,
    pub budget_bytes_per_tick: u32,
    pub chronicle: Chronicle,
    /// The filter lets everybody see everything.
    pub is_careless: bool,
    /// The filter is asked about all of a client's candidates at once.
    pub is_batched: bool,
}

impl WorldKind for Wood {
    fn name(&self) -> &str {
        "wood"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        let settings = InterestSettings {
            enter_radius_m: ENTER_M,
            leave_radius_m: self.leave_m,
            budget_bytes_per_tick: self.budget_bytes_per_tick,
            ..InterestSettings::default()
        };
        let is_careless = self.is_careless;
        world
            .placed_by::<Wanderer>()
            .interest(settings)
            .insert_resource(self.chronicle.clone())
            .insert_resource(Ground { side_m: self.side_m, packs: self.packs, born: 0 })
            .insert_resource(Players::default())
            .add_systems(Update, (come, turn_coats, wander, bleed, perish, be_born, cry, write_chronicle).chain());
        let may_see = move |world: &World, viewer, entity| is_careless || may_see(world, viewer, entity);
        if self.is_batched {
            world.filter_visibility_in_batches_by(move |world, viewer, entities, answer| {
                let seen = (0..entities.len()).filter(|at| may_see(world, viewer, entities[*at]));
                seen.for_each(|at| answer.allow(at));
            });
        } else {
            world.filter_visibility_by(may_see);
        }
        for _ in 0..self.wanderers {
            spawn(world.world_mut(), Errand::Roam);
        }
    }
}

#[derive(Resource)]
struct Ground {
    side_m: f32,
    packs: u16,
    /// Wanderers so far: the next one's number.
    born: u16,
}

struct Player {
    key: ClientKey,
    /// Which client it is, by its connect token.
    client: usize,
    entity: Entity,
    pack: u16,
    /// Ticks until it is born again, while it is dead.
    waits: Option<u32>,
}

#[derive(Resource, Default)]
struct Players(Vec<Player>);

/// Whether a wanderer is just here, or a client's own.
#[derive(Component)]
enum Errand {
    Roam,
    Play,
}

/// For how many ticks it still stands where it is.
#[derive(Component)]
struct Rest(u32);

fn spawn(world: &mut World, errand: Errand) -> (Entity, u16) {
    let mut ground = world.resource_mut::<Ground>();
    let Ground { side_m, packs, born: number } = *ground;
    ground.born += 1;
    let rng = &mut world.resource_mut::<WorldRng>().0;
    let at = [(); 2].map(|()| rng.random_range(0.0..side_m));
    let (pack, is_stalker) = (number % packs, number.is_multiple_of(3));
    let entity = world.spawn((Replicated::default(), Wanderer { at, number }, Rest(0), errand)).id();
    if pack != 0 {
        world.entity_mut(entity).insert(Team(pack));
    }
    if is_stalker {
        world.entity_mut(entity).insert(VisibilityFiltered);
    }
    (entity, pack)
}

fn may_see(world: &World, viewer: Viewer, entity: Entity) -> bool {
    let Some(own) = viewer.player.filter(|own| *own != entity) else { return viewer.player == Some(entity) };
    let at = |entity| world.get::<Wanderer>(entity).map(|wanderer| wanderer.at);
    let (Some(from), Some(to)) = (at(own), at(entity)) else { return false };
    let is_kin = world.get::<Team>(entity).is_some_and(|team| viewer.team == Some(team.0));
    is_kin || distance_m(from, to) <= STALKER_SEEN_M
}

pub fn distance_m(from: [f32; 2], to: [f32; 2]) -> f32 {
    (from[0] - to[0]).hypot(from[1] - to[1])
}

fn come(world: &mut World) {
    let arrivals = world.resource::<Arrivals>().0.iter().map(|arrival| (arrival.client, arrival.client_id));
    for (key, id) in arrivals.collect::<Vec<_>>() {
        let (entity, pack) = spawn(world, Errand::Play);
        // Client ids are counted from 1.
        world.resource_mut::<Players>().0.push(Player { key, client: id.0 as usize - 1, entity, pack, waits: None });
        steer(world, key, entity, pack);
    }
}

fn steer(world: &mut World, key: ClientKey, entity: Entity, pack: u16) {
    let mut outbox = world.resource_mut::<Outbox>();
    outbox.set_player(key, entity);
    outbox.set_team(key, Some(pack).filter(|pack| *pack != 0));
}

/// Now and then somebody becomes a stalker, or changes its pack, in the middle of everything.
fn turn_coats(
    mut rng: ResMut<WorldRng>,
    mut commands: Commands,
    mut outbox: ResMut<Outbox>,
    ground: Res<Ground>,
    mut players: ResMut<Players>,
    wanderers: Query<(Entity, Has<VisibilityFiltered>), With<Wanderer>>,
) {
    for (entity, is_stalker) in &wanderers {
        match rng.0.random_range(0..400) {
            0 if is_stalker => drop(commands.entity(entity).remove::<VisibilityFiltered>()),
            0 => drop(commands.entity(entity).insert(VisibilityFiltered)),
            1 => {
                let pack = rng.0.random_range(1..ground.packs);
                commands.entity(entity).insert(Team(pack));
                if let Some(player) = players.0.iter_mut().find(|player| player.entity == entity) {
                    player.pack = pack;
                    outbox.set_team(player.key, Some(pack));
                }
            }
            _ => {}
        }
    }
}

fn wander(
    mut rng: ResMut<WorldRng>,
    ground: Res<Ground>,
    mut outbox: ResMut<Outbox>,
    mut wanderers: Query<(Entity, &mut Wanderer, &mut Rest)>,
) {
    for (entity, mut wanderer, mut rest) in &mut wanderers {
        match rng.0.random_range(0..1_000) {
            0..4 => rest.0 = rng.0.random_range(1..60),
            // Half of those who turn up elsewhere say so.
            4..6 => {
                wanderer.at = [(); 2].map(|()| rng.0.random_range(0.0..ground.side_m));
                if rng.0.random_bool(0.5) {
                    outbox.teleported(entity);
                }
                continue;
            }
            _ => {}
        }
        rest.0 = rest.0.saturating_sub(1);
        if rest.0 == 0 {
            let step = [(); 2].map(|()| rng.0.random_range(-STRIDE_M..STRIDE_M));
            wanderer.at = [0, 1].map(|axis| (wanderer.at[axis] + step[axis]).clamp(0.0, ground.side_m));
        }
    }
}

fn bleed(
    mut rng: ResMut<WorldRng>,
    mut commands: Commands,
    mut wanderers: Query<(Entity, &Wanderer, Option<&mut Wound>)>,
) {
    for (entity, wanderer, wound) in &mut wanderers {
        match (rng.0.random_range(0..100), wound) {
            (0, None) => drop(commands.entity(entity).insert(Wound { number: wanderer.number, depth: 1 })),
            (0, Some(_)) => drop(commands.entity(entity).remove::<Wound>()),
            (1..10, Some(mut wound)) => wound.depth = wound.depth.wrapping_add(1),
            _ => {}
        }
    }
}

/// Who dies may cry in the same tick, which nobody is to hear any more.
fn perish(
    mut rng: ResMut<WorldRng>,
    mut commands: Commands,
    mut events: ResMut<Events>,
    tick: Res<TickInfo>,
    mut players: ResMut<Players>,
    wanderers: Query<(Entity, &Wanderer, &Errand)>,
) {
    for (entity, wanderer, errand) in &wanderers {
        if rng.0.random_range(0..500) != 0 {
            continue;
        }
        commands.entity(entity).despawn();
        if rng.0.random_bool(0.3) {
            events.send(
                &Cry { number: wanderer.number, tick: tick.tick as u16 },
                Audience::Around(entity),
                "wood.death",
            );
        }
        let waits = rng.0.random_range(1..60);
        if let Errand::Play = errand
            && let Some(player) = players.0.iter_mut().find(|player| player.entity == entity)
        {
            player.waits = Some(waits);
        }
    }
}

/// As many are born as have died, players after a while.
fn be_born(world: &mut World, mut wanted: Local<usize>, mut roaming: Local<Option<QueryState<&Errand>>>) {
    let query = roaming.get_or_insert_with(|| world.query::<&Errand>());
    let count = query.iter(world).filter(|errand| matches!(errand, Errand::Roam)).count();
    *wanted = (*wanted).max(count);
    for _ in count..*wanted {
        spawn(world, Errand::Roam);
    }
    for index in 0..world.resource::<Players>().0.len() {
        let player = &mut world.resource_mut::<Players>().0[index];
        player.waits = player.waits.map(|ticks| ticks - 1);
        if player.waits == Some(0) {
            let key = player.key;
            let (entity, pack) = spawn(world, Errand::Play);
            let player = &mut world.resource_mut::<Players>().0[index];
            (player.entity, player.pack, player.waits) = (entity, pack, None);
            steer(world, key, entity, pack);
        }
    }
}

fn cry(
    tick: Res<TickInfo>,
    mut rng: ResMut<WorldRng>,
    mut events: ResMut<Events>,
    wanderers: Query<(Entity, &Wanderer, Option<&Team>)>,
) {
    let tick = tick.tick as u16;
    for (entity, Wanderer { number, .. }, team) in &wanderers {
        match (rng.0.random_range(0..80), team) {
            (0, _) => events.send(&Cry { number: *number, tick }, Audience::Around(entity), "wood.fright"),
            (1, Some(team)) => events.send(&Call { number: *number, tick }, Audience::Team(team.0), "wood.pack"),
            _ => {}
        }
    }
}

fn write_chronicle(
    tick: Res<TickInfo>,
    ground: Res<Ground>,
    chronicle: Res<Chronicle>,
    players: Res<Players>,
    wanderers: Query<(&Wanderer, Option<&Team>, Has<VisibilityFiltered>)>,
) {
    let mut traces = vec![None; ground.born.into()];
    for (wanderer, team, is_stalker) in &wanderers {
        let pack = team.map_or(0, |team| team.0);
        traces[usize::from(wanderer.number)] = Some(Trace { at: wanderer.at, pack, is_stalker });
    }
    let mut watchers = Vec::new();
    for Player { client, entity, pack, waits, .. } in &players.0 {
        let own = wanderers.get(*entity).ok().filter(|_| waits.is_none()).map(|(wanderer, ..)| wanderer.number);
        watchers.resize(watchers.len().max(client + 1), Watcher::default());
        watchers[*client] = Watcher { own, pack: *pack };
    }
    chronicle.pages().write(Page { tick: tick.tick, traces, watchers });
}
