//! The kind of world that is played in: what a match is made of, and the order of its tick.
//!
//! ```text
//!   Enter   connections that ended and clients that come                    arrivals
//!   Act     inputs, steps, loading, buying; work at the spike; grenades     players  spike  throwing
//!   Shoot   triggers, and what the shots hit                                shooting
//!   Decide  what that means for the round: pay, new lives, the way home     flow  lives  spike  arrivals  meter  activity
//!   Tell    components, messages, history and fog are brought up to date    telling  past  sight
//! ```
//!
//! Each system has a scope, and the scopes of a matter are one subsystem with one budget ([`crate::budgets`]), named
//! after the category that its time counts under.

use std::sync::Arc;

use bevy_ecs::{
    prelude::*,
    schedule::{InternedSystemSet, ScheduleConfigs},
};
use throng::prelude::*;
use throng_faults::FaultPlugin;
use throng_profiler::Category;
use throng_replication::InterestSettings;

use crate::{
    activity, arrivals,
    chance::Chance,
    components::{Arms, Clock, Clouds, Player, Pose, Score, Spike, TeamVitals, Vitals},
    controls::Controls,
    economy::Purse,
    flow, lives,
    map::Map,
    meter::{self, Meter},
    movement::Motion,
    pace::Pace,
    past::{self, Past},
    players,
    protocol::{MATCH, TICK_HZ},
    rounds::Rounds,
    scene::{RoundChange, Scene},
    schema,
    seats::{Known, Seats, Senses},
    settings::{FaultyMatch, MatchRules},
    shooting,
    sight::{self, Bodies, FOG, Sight},
    smoke::Smoke,
    spike::{self, SpikeState},
    telling,
    throwing::{self, Thrown},
    travel::{MatchPlan, Traveller},
    weapons::Weapon,
};

/// The steps of a tick.
#[derive(SystemSet, Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    Enter,
    Act,
    Shoot,
    Decide,
    Tell,
}

fn order_of_steps() -> ScheduleConfigs<InternedSystemSet> {
    use Step::*;
    (Enter, Act, Shoot, Decide, Tell).chain()
}

/// Farther than across the map: who is told of whom is the fog's to say (m).
const INTEREST_M: f32 = 150.0;

/// A match of five against five. Asked for with a [`MatchPlan`].
pub struct Match {
    pub map: Arc<Map>,
    pub rules: MatchRules,
    /// Matches with a fault, for tests.
    pub faults: Vec<FaultyMatch>,
}

impl WorldKind for Match {
    fn name(&self) -> &str {
        MATCH
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(TICK_HZ)
    }

    fn protocol(&self) -> Protocol {
        schema::of_match()
    }

    fn dormant_when_empty(&self) -> bool {
        // One to which nobody comes is to find that out. It may sleep once it is over.
        false
    }

    fn build(&self, world: &mut WorldBuilder) {
        let plan = world.parameters::<MatchPlan>().expect("a match is asked for with its plan");
        let MatchPlan { lobby, ordinal } = plan.expect("and the plan is of this version of the game");
        let interest = world.interest_settings().clone();
        world.interest(InterestSettings {
            enter_radius_m: INTEREST_M,
            leave_radius_m: INTEREST_M + 10.0,
            cell_m: INTEREST_M,
            ..interest
        });
        world.placed_by::<Pose>().accept_transfers::<Traveller>().configure_sets(Update, order_of_steps());
        world
            .hash::<Motion>()
            .hash::<Vitals>()
            .hash::<Weapon>()
            .hash::<Purse>()
            .hash::<Controls>()
            .hash::<Senses>()
            .hash::<Known>();
        // Resources are components of entities of their own. The others are of one tick, never change, or, as meter and
        // pace, change nothing.
        world.hash::<Rounds>().hash::<SpikeState>().hash::<Seats>().hash::<Smoke>().hash::<Thrown>().hash::<Past>();
        world.hash::<Chance>();
        world.add_plugins((Playing, Judging, Telling, Kept));
        if !self.faults.is_empty() {
            let own = self.faults.iter().filter(|faulty| faulty.ordinal == ordinal || faulty.fault.is_everywhere());
            let faults = own.map(|faulty| faulty.fault).collect();
            world.add_plugins(FaultPlugin { faults, first: Step::Enter, last: Step::Tell });
        }
        let mut sight = Sight::new(self.map.clone(), FOG);
        world.filter_visibility_in_batches_by(move |world, viewer, entities, may_see| {
            sight.ask(world, viewer, entities, may_see);
        });
        let chance = Chance::new(world.seed(), world.id());
        self.furnish(world.world_mut(), lobby, chance);
    }
}

impl Match {
    /// Puts in what a match starts with.
    fn furnish(&self, world: &mut World, lobby: WorldId, mut chance: Chance) {
        let stagger = chance.random_range(0..=self.rules.stagger_ticks);
        let rounds = Rounds::new(0, stagger, &self.rules);
        let seats = Seats::spawn(world);
        telling::spawn_board(world, &rounds);
        world.insert_resource(Scene { map: self.map.clone(), lobby });
        world.insert_resource(chance);
        world.insert_resource(self.rules);
        world.insert_resource(rounds);
        world.insert_resource(seats);
        world.init_resource::<RoundChange>();
        world.init_resource::<SpikeState>();
        world.init_resource::<Smoke>();
        world.init_resource::<Thrown>();
        world.init_resource::<Past>();
        world.init_resource::<Bodies>();
        world.init_resource::<Meter>();
        world.init_resource::<Pace>();
    }
}

/// Players come, go, run, buy, throw and shoot.
struct Playing;

impl WorldPlugin for Playing {
    fn build(&self, world: &mut WorldBuilder) {
        let enter = (
            arrivals::leave.run_if(arrivals::somebody_leaves),
            arrivals::enter.run_if(arrivals::somebody_comes),
            lives::stand_up_early.run_if(arrivals::somebody_comes),
        );
        world.add_systems(Update, enter.chain().in_set(Step::Enter));
        let act = (
            players::read_inputs,
            players::walk,
            players::load,
            players::buy,
            spike::carry,
            spike::plant,
            spike::defuse,
            throwing::throw,
            throwing::fly.run_if(throwing::something_flies),
            throwing::burst.run_if(throwing::something_flies),
            throwing::clear_smoke.run_if(throwing::there_is_smoke),
        );
        world.add_systems(Update, act.chain().in_set(Step::Act));
        let shoot =
            (shooting::fire.run_if(shooting::a_round_is_played), shooting::resolve.run_if(shooting::somebody_fired));
        world.add_systems(Update, shoot.chain().in_set(Step::Shoot));
        world.name_subsystem("duel.players", "movement");
        world.name_subsystem("duel.shooting", "combat").name_subsystem("duel.throwing", "combat");
        world.name_subsystem("duel.arrivals", "character").name_subsystem("duel.lives", "character");
    }
}

/// What becomes of the round.
struct Judging;

impl WorldPlugin for Judging {
    fn build(&self, world: &mut WorldBuilder) {
        let decide = (
            flow::decide,
            spike::explode.run_if(spike::explodes),
            flow::pay.run_if(flow::a_round_ends),
            spike::put_away.run_if(flow::a_round_ends),
            lives::stand_up.run_if(lives::a_round_begins),
            lives::clear_the_field.run_if(lives::a_round_begins),
            arrivals::tell_free_seats.run_if(arrivals::free_seats_are_told),
            arrivals::go_home.run_if(arrivals::all_go_home),
            meter::measure,
            activity::name_counters.run_if(run_once),
            activity::count,
        );
        world.add_systems(Update, decide.chain().in_set(Step::Decide));
        for module in ["duel.flow", "duel.spike", "duel.meter", "duel.activity"] {
            world.name_subsystem(module, "game");
        }
    }
}

/// What a match has again when it is made again after a panic: all that a tick reads and that does not follow from the rest.
struct Kept;

impl WorldPlugin for Kept {
    fn build(&self, world: &mut WorldBuilder) {
        world.checkpoint::<Pose>().checkpoint::<Player>().checkpoint::<Vitals>().checkpoint::<Arms>();
        world.checkpoint::<Motion>().checkpoint::<Controls>().checkpoint::<Weapon>().checkpoint::<Purse>();
        world.checkpoint::<Senses>().checkpoint::<Known>();
        world.checkpoint::<Clock>().checkpoint::<Score>().checkpoint::<Clouds>();
        world.checkpoint::<Spike>().checkpoint::<TeamVitals>();
        world.checkpoint::<Rounds>().checkpoint::<SpikeState>().checkpoint::<Smoke>();
        world.checkpoint_as(Chance::save, Chance::load);
        world
            .checkpoint_part(Seats::save, Seats::load)
            .checkpoint_part(Thrown::save, Thrown::load)
            .checkpoint_part(Past::save, Past::load);
        // They never change, are of one tick, or change nothing.
        world.transient::<Scene>().transient::<MatchRules>().transient::<RoundChange>().transient::<Bodies>();
        world.transient::<Meter>().transient::<Pace>();
        world.after_load(give_seats_away);
    }
}

/// Whose player was left out of the load has no seat any more.
fn give_seats_away(world: &mut World) {
    world.resource::<Departures>().0.clone().into_iter().for_each(|client| Seats::vacate(world, client));
}

/// What clients, later shots and the fog are to know of the tick.
struct Telling;

impl WorldPlugin for Telling {
    fn build(&self, world: &mut WorldBuilder) {
        let tell = (
            players::show_hands,
            telling::write_board,
            telling::tell_kits,
            telling::tell_blinded,
            past::record.run_if(past::is_to_be_kept),
            sight::note,
        );
        world.add_systems(Update, tell.chain().in_set(Step::Tell));
        world.categorise("duel.telling", Category::REPLICATION);
        world.name_subsystem("duel.sight", "occlusion").name_subsystem("duel.past", "animation");
    }
}
