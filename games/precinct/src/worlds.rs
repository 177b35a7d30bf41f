//! The kinds of worlds: what a hideout, the hub and the dark zone are made of.
//!
//! | kind        | rate  | how many       | rules                                              |
//! |-------------|-------|----------------|----------------------------------------------------|
//! | `hideout`   | 20 Hz | one per player on the server | the owner against two factions of NPCs |
//! | `hub`       | 20 Hz | 1              | players meet and talk, nobody can hurt them         |
//! | `dark_zone` | 30 Hz | 1              | everybody against everybody                        |
//! | `sentinel`  | 128 Hz| for tests      | no players; shows by its ticks whether the host holds |
//!
//! A `district` is another game, see [`crate::district`]. The first three are the same five plugins with other rules and other numbers of NPCs; hub and dark zone have doors,
//! too. A tick runs through the steps of [`Step`] in order:
//!
//! ```text
//!   Enter   players come and go                            arrivals::enter
//!   Play    players walk, enter portals, heal and fire,    players, handling
//!           and handle gear
//!   Think   NPCs walk, perceive, think and fire            npc
//!   Hurt    the tick's shots are cast, and all are         shooting
//!           remembered where they stand
//!   Leave   what was said is delivered, doors shut, gear   social::speak, swinging, handling::tidy,
//!           comes to lie, travellers go                    arrivals::leave
//! ```

use std::sync::Arc;

use bevy_ecs::{
    prelude::*,
    schedule::{InternedSystemSet, ScheduleConfigs},
};
use glam::Vec3;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng_faults::FaultPlugin;
use throng_pack::Pack;
use throng_profiler::Category;
use throng_query::nav::NavPoint;
use throng_replication::{Schema, ecs::Replicated};

use crate::{
    arena::Arena,
    arrivals,
    components::{Action, Character, Door, Lying, Pose, Vitals},
    district, handling,
    kept::KeptState,
    ledger::Ledger,
    npc::{body, census, combat, paths, perception, population, roll_call},
    players,
    portals::{DARK_ZONE, Destination, HIDEOUT, HUB},
    protocol::{CallMe, Carried, Handle, Input, Offered, Pockets, Said, Say, Stashed},
    saves::SavedState,
    scene::{Scene, Shared},
    server::FaultyHideout,
    shooting, social,
    stash::Stash,
    swinging,
    travel::{HideoutMade, Traveller},
};

/// Name of the kind that is for tests.
pub const SENTINEL: &str = "sentinel";

/// The steps of a tick.
#[derive(SystemSet, Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Players come, and go with their connections.
    Enter,
    /// What clients sent is read; players move, and use their hands.
    Play,
    /// NPCs move, perceive, decide and fire.
    Think,
    /// Shots are cast and damage done; everybody is remembered.
    Hurt,
    /// Words are delivered and players go through portals.
    Leave,
}

fn order_of_steps() -> ScheduleConfigs<InternedSystemSet> {
    use Step::*;
    (Enter, Play, Think, Hurt, Leave).chain()
}

/// Players come, go, walk, pull triggers and change worlds.
pub struct Movement;

impl WorldPlugin for Movement {
    fn build(&self, world: &mut WorldBuilder) {
        let play = (
            players::read_inputs,
            players::rise,
            players::walk,
            players::enter_portals,
            players::pick_up,
            players::heal,
            players::fire,
        );
        world
            .placed_by::<Pose>()
            .configure_sets(Update, Step::Play.run_if(players::some_are_here))
            .add_systems(Update, (arrivals::enter.in_set(Step::Enter), arrivals::leave.in_set(Step::Leave)))
            .add_systems(Update, play.chain().in_set(Step::Play));
        world.categorise("precinct.players", Category::MOVEMENT);
    }
}

/// Shots hurt.
pub struct Combat;

impl WorldPlugin for Combat {
    fn build(&self, world: &mut WorldBuilder) {
        let hurt =
            (shooting::resolve.run_if(shooting::somebody_fired), shooting::remember.run_if(shooting::players_may_fire));
        world.add_systems(Update, hurt.chain().in_set(Step::Hurt));
        world.categorise("precinct.shooting", Category::EQUIPMENT);
    }
}

/// NPCs perceive, choose, path and fight.
pub struct Npcs;

impl WorldPlugin for Npcs {
    fn build(&self, world: &mut WorldBuilder) {
        let think = (
            population::rise,
            paths::follow_paths,
            roll_call::call_roll,
            perception::perceive,
            body::think,
            paths::search_paths,
            combat::fire,
            census::count.run_if(census::is_due),
        );
        world.add_systems(Update, think.chain().in_set(Step::Think));
        // One budget for all of them.
        world.name_subsystem("precinct.npc", "ai");
    }
}

/// Players talk, and are told how their saves are.
pub struct Social;

impl WorldPlugin for Social {
    fn build(&self, world: &mut WorldBuilder) {
        // Whoever leaves in this tick has still said what it said.
        let speak = social::speak.run_if(social::something_was_said);
        world.add_systems(Update, speak.in_set(Step::Leave).before(arrivals::leave));
        let tell = social::tell_of_saves.run_if(social::saves_have_turned);
        world.add_systems(Update, tell.in_set(Step::Leave).before(arrivals::leave));
    }
}

/// Gear is found, kept and traded.
pub struct Belongings;

impl WorldPlugin for Belongings {
    fn build(&self, world: &mut WorldBuilder) {
        // Whoever a portal has taken in this tick has done with gear.
        let handle = handling::handle.run_if(handling::something_is_asked);
        world.add_systems(Update, handle.in_set(Step::Play).after(players::enter_portals));
        let tidy = handling::tidy.run_if(handling::is_untidy);
        world.add_systems(Update, tidy.in_set(Step::Leave).before(arrivals::leave));
        world.categorise("precinct.handling", Category::EQUIPMENT);
    }
}

/// Doors that are opened and shut by themselves.
pub struct Doors;

impl WorldPlugin for Doors {
    fn build(&self, world: &mut WorldBuilder) {
        let open = players::open_doors.in_set(Step::Play).after(players::enter_portals).before(players::pick_up);
        world.add_systems(Update, open);
        // After everything that a door may stop this tick.
        let swing = swinging::swing.run_if(swinging::some_are_open);
        world.add_systems(Update, swing.in_set(Step::Leave).before(arrivals::leave));
    }
}

/// Fills a world of players with what it starts with. `seed` is for its NPCs.
pub fn fill(world: &mut World, shared: &Shared, here: Destination, npc_count: usize, seed: u64) {
    world.insert_resource(Scene::new(shared, here));
    let TickInfo { rate, world: id, .. } = *world.resource::<TickInfo>();
    world.insert_resource(Arena::new(rate.0, npc_count, Ledger::new(shared.run, id)));
    if has_doors(here) {
        swinging::hang(world);
    }
    population::spawn(world, npc_count, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
}

/// Doors are where players meet: a thousand hideouts are cheaper without.
fn has_doors(here: Destination) -> bool {
    here != Destination::Hideout
}

/// What a world of players and its clients say to each other.
fn protocol_of(here: Destination) -> Protocol {
    let players = Protocol::new()
        .component::<Pose>()
        .component::<Vitals>()
        .component::<Character>()
        .component::<Action>()
        .component::<Lying>()
        .input::<Input>()
        .request::<Say>()
        .request::<CallMe>()
        .request::<Handle>()
        .message::<Said>()
        .message::<Pockets>()
        .message::<Carried>()
        .message::<Stashed>()
        .message::<Offered>();
    if has_doors(here) { players.component::<Door>() } else { players }
}

/// What goes over the wire in all worlds of Precinct. Server and clients make it alike, and compare its hash.
pub fn schema() -> Arc<Schema> {
    let [hub, dark_zone, hideout] = [Destination::Hub, Destination::DarkZone, Destination::Hideout].map(protocol_of);
    Protocol::union(&[hub, dark_zone, hideout, district::protocol()])
}

/// What a world of players is made of, whatever its kind.
fn build_world(world: &mut WorldBuilder, shared: &Shared, here: Destination, npc_count: usize) {
    world.configure_sets(Update, order_of_steps());
    world.add_plugins((Movement, Combat, Npcs, Social, Belongings, KeptState, SavedState));
    if has_doors(here) {
        world.add_plugins(Doors);
    }
    world.accept_transfers::<Traveller>();
    let seed = world.seed();
    fill(world.world_mut(), shared, here, npc_count, seed);
}

/// Which hideout a world is to be: what it is asked for with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.hideout_plan")]
pub struct HideoutPlan {
    /// Its number among all hideouts.
    pub ordinal: u16,
    pub npcs: u16,
}

/// A player's own world. Asked for with a [`HideoutPlan`].
pub struct Hideout {
    pub shared: Shared,
    pub keep_awake: bool,
    /// Hideouts with a fault, for tests.
    pub faults: Vec<FaultyHideout>,
}

impl WorldKind for Hideout {
    fn name(&self) -> &str {
        HIDEOUT
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        protocol_of(Destination::Hideout)
    }

    fn build(&self, world: &mut WorldBuilder) {
        let plan = world.parameters::<HideoutPlan>().expect("a hideout is asked for with its plan");
        let plan = plan.expect("and the plan is of this version of the game");
        build_world(world, &self.shared, Destination::Hideout, usize::from(plan.npcs));
        settle(world, &self.shared, plan.ordinal);
        if !self.faults.is_empty() {
            let own = self
                .faults
                .iter()
                .filter(|faulty| faulty.hideout == usize::from(plan.ordinal) || faulty.fault.is_everywhere());
            let faults = own.map(|faulty| faulty.fault).collect();
            world.add_plugins(FaultPlugin { faults, first: Step::Enter, last: Step::Leave });
        }
    }

    fn dormant_when_empty(&self) -> bool {
        !self.keep_awake
    }
}

/// Makes a world this hideout, which says so with its first tick to the worlds from which its owner comes home. Spare
/// ones, made before those worlds are known, say nothing: they are nobody's.
fn settle(world: &mut WorldBuilder, shared: &Shared, ordinal: u16) {
    let (here, ecs) = (world.id(), world.world_mut());
    ecs.resource_mut::<Scene>().hideout = Some(ordinal);
    ecs.spawn(Stash::default());
    let mut outbox = ecs.resource_mut::<Outbox>();
    for to in shared.worlds.iter() {
        outbox.post(here, to, &HideoutMade { ordinal }).expect("it has no limits");
    }
}

/// Where players meet.
pub struct Hub {
    pub shared: Shared,
    pub npcs: usize,
    pub keep_awake: bool,
}

impl WorldKind for Hub {
    fn name(&self) -> &str {
        HUB
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        protocol_of(Destination::Hub)
    }

    fn build(&self, world: &mut WorldBuilder) {
        build_world(world, &self.shared, Destination::Hub, self.npcs);
    }

    fn dormant_when_empty(&self) -> bool {
        !self.keep_awake
    }
}

/// Where players fight each other.
pub struct DarkZone {
    pub shared: Shared,
    pub npcs: usize,
    pub keep_awake: bool,
}

impl WorldKind for DarkZone {
    fn name(&self) -> &str {
        DARK_ZONE
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(30)
    }

    fn protocol(&self) -> Protocol {
        protocol_of(Destination::DarkZone)
    }

    fn build(&self, world: &mut WorldBuilder) {
        build_world(world, &self.shared, Destination::DarkZone, self.npcs);
    }

    fn dormant_when_empty(&self) -> bool {
        !self.keep_awake
    }
}

/// A small fast world that ticks whatever happens, so that tests see by its ticks whether others hold it up.
pub struct Sentinel {
    pub shared: Shared,
}

/// Entities of a sentinel world.
const ORBITS: usize = 4;

#[derive(Component, Pack)]
#[pack(name = "precinct.orbit")]
struct Orbit {
    centre: NavPoint,
    phase: f32,
}

impl WorldKind for Sentinel {
    fn name(&self) -> &str {
        SENTINEL
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(128)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Pose>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.placed_by::<Pose>().add_systems(Update, orbit);
        world.checkpoint::<Pose>().checkpoint::<Orbit>().transient::<Scene>();
        world.insert_resource(Scene::new(&self.shared, Destination::Hub));
        for index in 0..ORBITS {
            let centre = self.shared.places.spawn(index as u16);
            let orbit = Orbit { centre, phase: index as f32 };
            world.world_mut().spawn((Replicated::default(), Pose::new(centre.position(), 0.0), orbit));
        }
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

fn orbit(tick: Res<TickInfo>, scene: Res<Scene>, mut orbits: Query<(&mut Pose, &mut Orbit)>) {
    for (mut pose, mut orbit) in &mut orbits {
        orbit.phase = (orbit.phase + tick.dt_s) % std::f32::consts::TAU;
        let (sin, cos) = orbit.phase.sin_cos();
        let place = orbit.centre.position() + Vec3::new(sin, 0.0, cos);
        pose.set_feet(scene.level.navmesh.walk_straight(orbit.centre, place).end.position());
    }
}
