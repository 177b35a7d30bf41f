//! The range: a world of the game's own players, weapons and shots, with marksmen in a row and a target that runs
//! before them. What becomes of each shot is written down.

use std::sync::{Arc, Mutex, PoisonError};

use bevy_ecs::prelude::*;
use glam::Vec3;
use precinct::{
    arena::{Arena, ArenaParts},
    components::{Action, Character, Faction, Pose, Slot, Standing, Vitals},
    lives::LifeClock,
    passport::PlayerClient,
    past::Past,
    players,
    portals::Destination,
    protocol::{CallMe, Input, Pockets, Said, Say},
    scene::{Scene, Shared},
    shooting,
    shots::ShotOrder,
    travel::Traveller,
    weapons::{Weapon, WeaponKind},
    worlds::{Combat, Movement, Step, fill},
};
use throng::prelude::*;
use throng_platform::time::Nanos;
use throng_replication::ecs::Replicated;
use throng_rewind::{shooter::ShotMoment, view_limits::ViewLimits, view_time::ViewTime};

pub const TICKS_PER_S: u16 = 20;
/// Players, in a row.
pub const MARKSMEN: usize = 8;
/// The middle of a crossing, where nothing is in the way.
const MIDDLE: Vec3 = Vec3::new(16.0, 0.0, 16.5);
/// Between two marksmen, and from their row to the target's way. (m)
const APART_M: f32 = 1.0;
const AWAY_M: f32 = 3.0;
/// The target's way, to and fro: so many ticks each, at 6 m/s.
const WAY_TICKS: u32 = 40;
const STEP_M: f32 = 0.3;

/// A shot, as the server judged it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fired {
    /// By its place in the row.
    pub marksman: usize,
    pub moment: ShotMoment,
    /// No input came that asks for it: the trigger was held.
    pub is_held: bool,
    /// How long before the newest that anybody can have been told of it was judged.
    pub ago: Nanos,
    pub is_hit: bool,
    /// Where the target was at that moment.
    pub target: Option<Vec3>,
}

/// All shots, in order.
#[derive(Resource, Default, Clone)]
pub struct Log(Arc<Mutex<Vec<Fired>>>);

impl Log {
    pub fn take(&self) -> Vec<Fired> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, fired: Fired) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(fired);
    }
}

/// Which of the row stands there.
pub fn marksman_at(feet: Vec3) -> usize {
    ((feet.x - place_of(0).x) / APART_M).round() as usize
}

fn place_of(marksman: usize) -> Vec3 {
    let aside_m = (marksman as f32 - (MARKSMEN - 1) as f32 * 0.5) * APART_M;
    MIDDLE + Vec3::new(aside_m, 0.0, -AWAY_M * 0.5)
}

fn target_at(tick: u32) -> Vec3 {
    let on_way = tick % (2 * WAY_TICKS);
    let step = on_way.min(2 * WAY_TICKS - on_way) as f32 - WAY_TICKS as f32 * 0.5;
    MIDDLE + Vec3::new(step * STEP_M, 0.0, AWAY_M * 0.5)
}

/// The kind of world.
pub struct Range {
    pub shared: Shared,
    /// In place of the game's.
    pub limits: Option<ViewLimits>,
    pub log: Log,
}

#[derive(Component)]
struct Target;

impl WorldKind for Range {
    fn name(&self) -> &str {
        "range"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(TICKS_PER_S)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new()
            .component::<Pose>()
            .component::<Vitals>()
            .component::<Character>()
            .component::<Action>()
            .input::<Input>()
            .request::<Say>()
            .request::<CallMe>()
            .message::<Said>()
            .message::<Pockets>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.configure_sets(Update, (Step::Enter, Step::Play, Step::Think, Step::Hurt, Step::Leave).chain());
        world.add_plugins((Movement, Combat));
        world.accept_transfers::<Traveller>();
        world.insert_resource(self.log.clone());
        let line_up = line_up.in_set(Step::Play).before(players::read_inputs);
        let write_down = write_down.in_set(Step::Hurt).before(shooting::resolve);
        world.add_systems(Update, (line_up, run.in_set(Step::Think), write_down));
        let ecs = world.world_mut();
        fill(ecs, &self.shared, Destination::Hideout, 0, 1);
        if let Some(limits) = self.limits {
            ecs.resource_mut::<Arena>().past = Past::new(limits, MARKSMEN + 1);
        }
        set_up(ecs, &self.shared);
    }
}

fn set_up(ecs: &mut World, shared: &Shared) {
    let standing = shared.level.navmesh.nearest(target_at(0), 0.5).expect("a crossing can be walked on");
    let slot = ecs.resource_mut::<Arena>().actors.add_npc();
    let character = Character { npc: true, faction: Faction::Rioters, weapon: WeaponKind::Fists };
    ecs.spawn((
        (Replicated::default(), Pose::new(standing.position(), 0.0), Vitals::FULL, character, Action::NONE),
        (slot, Standing(standing), Weapon::new(WeaponKind::Fists), LifeClock::default(), Target),
    ));
}

/// Who has come goes to its place in the row.
fn line_up(
    scene: Res<Scene>,
    mut come: Local<usize>,
    mut players: Query<(&mut Pose, &mut Standing), Added<PlayerClient>>,
) {
    for (mut pose, mut standing) in &mut players {
        let place = scene.level.navmesh.nearest(place_of(*come), 0.5).expect("a crossing can be walked on");
        standing.0 = place;
        pose.set_feet(place.position());
        *come += 1;
    }
}

/// What a step of the target reads and writes.
type Runner =
    (Entity, &'static Slot, &'static Character, &'static mut Pose, &'static mut Standing, &'static mut Vitals);

/// The target goes a step, and is as well as ever.
fn run(tick: Res<TickInfo>, scene: Res<Scene>, mut arena: ResMut<Arena>, mut targets: Query<Runner, With<Target>>) {
    for (entity, slot, character, mut pose, mut standing, mut vitals) in &mut targets {
        standing.0 = scene.level.navmesh.walk_straight(standing.0, target_at(tick.tick)).end;
        pose.set_feet(standing.0.position());
        *vitals = Vitals::FULL;
        arena.actors.place(*slot, entity, standing.0, character.into());
    }
}

/// Casts the tick's shots ahead of the game, which casts them again, and writes down what becomes of each.
fn write_down(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    log: Res<Log>,
    inputs: Inputs<Input>,
    mut arena: ResMut<Arena>,
    targets: Query<&Slot, With<Target>>,
) {
    let ArenaParts { shots, actors, doors, past, .. } = &mut **arena;
    let Ok(target) = targets.single() else { return };
    shots.cast(&scene.level.geometry, &actors.capsules(), past.history());
    let landed: Vec<(ShotOrder, Slot)> = shots.landed(doors).collect();
    let newest = ViewTime::of_tick(tick.tick.saturating_sub(1));
    for order in shots.orders() {
        let moment = order.seen.expect("players alone fire");
        let parts = newest.parts_since(moment.admitted.at);
        let shooter = actors.entity(order.shooter);
        let is_asked_for = inputs.read().any(|(sender, input)| sender.entity == Some(shooter) && input.fire());
        log.note(Fired {
            marksman: marksman_at(order.ray.origin),
            moment,
            is_held: !is_asked_for,
            ago: Nanos(parts * 1_000_000_000 / (256 * u64::from(TICKS_PER_S))),
            is_hit: landed.iter().any(|(one, hit)| one == order && hit == target),
            target: past.history().transform_at(target.0.into(), moment.admitted.at).map(|(at, _)| at),
        });
    }
}
