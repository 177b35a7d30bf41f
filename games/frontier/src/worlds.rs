//! The one kind of world: what it is made of, and the order of a tick.
//!
//! ```text
//!   Enter    rules are followed, players come and go; who is new   neighbours, arrivals::enter, publish::learn_names
//!            gets a name
//!   Act      inputs, walks, thoughts                               players, npc::think, npc::walk
//!   Notice   who notices whom, who helps whom                      aggro, sight, assist, yell, signals
//!   Cast     spells end and take effect                            spells, area, buffs, beneficial, auras, things,
//!                                                                  spread
//!   Fight    blows are dealt and land                              combat, rampage, blows
//!   Live     effects wear off, the dead rise, doors shut, words,   wear, lives, talk, services, works
//!            works on the land; land that somebody came near is asked for   saves
//!   Publish  what players aim at is recorded, what changed is      aims, publish, changes, neighbours
//!            written, made and counted
//! ```
//!
//! Every question of who is near is asked in a system of its own, so a capture shows what each costs.

use std::sync::Arc;

use bevy_ecs::{
    prelude::*,
    schedule::{InternedSystemSet, ScheduleConfigs},
};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng_faults::FaultPlugin;
use throng_profiler::Category;
use throng_replication::InterestSettings;

use crate::{
    actors::Actors,
    aggro,
    aims::{self, Aims},
    area, arrivals,
    arrivals::Welcome,
    assist, auras, beneficial, blows, buffs,
    changes::{self, Telling},
    characters::{self, Character},
    checkpoints::Checkpoints,
    combat,
    components::{ENTER_M, LEAVE_M, Pose},
    deeds::Deeds,
    land::{Map, store::SavedLand},
    landscape::{Land, Landscape},
    lives,
    neighbours::{self, Neighbours},
    npc::{population, think, wake, walk},
    parties::Parties,
    players, publish, rampage,
    roster::Roster,
    saves::{self, LandReader, LandState},
    schema::protocol,
    services,
    settings::FrontierSettings,
    sight, signals, spells, spread, talk, things, visibility, wear, works, yell,
    zone::Scratch,
};

/// Name of the kind, as clients hear it.
pub const FRONTIER: &str = "frontier";
/// Ticks a second.
pub const TICK_HZ: u16 = 20;

/// The steps of a tick.
#[derive(SystemSet, Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Players come, and go with their connections.
    Enter,
    /// What clients sent is read; everybody walks and thinks.
    Act,
    /// Who notices whom, and who helps whom.
    Notice,
    /// Spells end and take effect.
    Cast,
    /// Blows are dealt and land.
    Fight,
    /// Effects wear off, the dead rise, words are said.
    Live,
    /// What changed is written, made, taken away and counted.
    Publish,
}

fn order_of_steps() -> ScheduleConfigs<InternedSystemSet> {
    use Step::*;
    (Enter, Act, Notice, Cast, Fight, Live, Publish).chain()
}

/// Players come, go, walk and ask for things.
pub struct Players;

impl WorldPlugin for Players {
    fn build(&self, world: &mut WorldBuilder) {
        let enter = (neighbours::follow_rules, arrivals::enter, publish::learn_names);
        world.add_systems(Update, enter.chain().in_set(Step::Enter));
        let act = (players::read, players::settle, players::look, players::walk, players::cast, players::gather);
        world.add_systems(Update, act.chain().in_set(Step::Act));
        world.add_systems(Update, (talk::grant, services::shut_doors).chain().in_set(Step::Live));
        let hear = works::hear.run_if(works::something_came);
        world.add_systems(Update, hear.in_set(Step::Enter).before(arrivals::enter));
        let grant = works::grant.run_if(works::something_is_asked);
        world.add_systems(Update, (grant, works::follow).chain().in_set(Step::Live).after(services::shut_doors));
        world.categorise("frontier.players", Category::MOVEMENT);
    }
}

/// NPCs think, walk, notice, call and help.
pub struct Npcs;

impl WorldPlugin for Npcs {
    fn build(&self, world: &mut WorldBuilder) {
        let act = (wake::wake, think::think, walk::walk);
        world.add_systems(Update, act.chain().in_set(Step::Act).after(players::gather));
        world.categorise("frontier.npc.walk", Category::MOVEMENT);
        let notice = (
            aggro::notice_enemies,
            aggro::notice_monsters,
            sight::look,
            assist::call_guards,
            yell::call,
            signals::handle,
        );
        world.add_systems(Update, notice.chain().in_set(Step::Notice));
    }
}

/// Spells, songs, traps, totems and diseases.
pub struct Magic;

impl WorldPlugin for Magic {
    fn build(&self, world: &mut WorldBuilder) {
        let cast = (
            beneficial::care,
            spells::finish,
            spells::land,
            area::blast,
            area::taunt,
            buffs::bless,
            beneficial::heal,
            auras::begin,
            auras::pulse,
            things::lay,
            things::spring,
            things::mend,
            spread::curse,
            spread::spread,
        );
        world.add_systems(Update, cast.chain().in_set(Step::Cast));
    }
}

/// Blows, deaths and what comes after them.
pub struct Combat;

impl WorldPlugin for Combat {
    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(Update, (combat::swing, rampage::strike_around, blows::land).chain().in_set(Step::Fight));
        let live = (wear::wear_off, wear::mend, lives::rise).chain();
        world.add_systems(Update, live.in_set(Step::Live).before(talk::grant));
        world.add_systems(Update, aims::record.in_set(Step::Publish).before(publish::write));
        for scopes in ["frontier.combat", "frontier.rampage", "frontier.blows", "frontier.aims"] {
            world.categorise(scopes, Category::EQUIPMENT);
        }
        for scopes in ["frontier.wear", "frontier.lives"] {
            world.categorise(scopes, Category::CHARACTER);
        }
    }
}

/// What is there again after a restart.
pub struct Saves;

impl WorldPlugin for Saves {
    fn build(&self, world: &mut WorldBuilder) {
        world.save_players(|ecs, player| characters::kept(ecs, player.entity?)).save_world(LandState);
        let ask = saves::ask_for_sectors.run_if(saves::somebody_came_near);
        world.add_systems(Update, ask.in_set(Step::Live).after(works::follow));
        let tell = talk::tell_of_saves.run_if(talk::saves_have_turned);
        world.add_systems(Update, tell.in_set(Step::Enter).after(arrivals::enter));
    }
}

/// What clients are told.
pub struct Publishing;

impl WorldPlugin for Publishing {
    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(
            Update,
            (publish::write, changes::apply, neighbours::count_scans).chain().in_set(Step::Publish),
        );
        for scopes in ["frontier.publish", "frontier.changes"] {
            world.categorise(scopes, Category::REPLICATION);
        }
    }
}

/// What a world is made of, before anything is in it.
pub fn put_together(world: &mut WorldBuilder) {
    world.placed_by::<Pose>();
    let interest = world.interest_settings().clone();
    world.interest(InterestSettings { enter_radius_m: ENTER_M, leave_radius_m: LEAVE_M, cell_m: 75.0, ..interest });
    world.filter_visibility_by(visibility::may_see);
    world.configure_sets(Update, order_of_steps());
    world.accept_transfers::<Character>();
    world.add_plugins((Players, Npcs, Magic, Combat, Publishing, Saves, Checkpoints));
}

/// Puts in what a world starts with. `seed` is for its NPCs.
pub fn fill(world: &mut World, settings: &FrontierSettings, seed: u64) {
    prepare(world, settings);
    world.insert_resource(Map::new(seed, false));
    population::spawn(world, settings.npcs, &Landscape::load(), &mut Xoshiro256PlusPlus::seed_from_u64(seed));
}

/// All but who lives in it.
pub fn prepare(world: &mut World, settings: &FrontierSettings) {
    let landscape = Landscape::load();
    let plan = population::Plan::of(settings.npcs, &landscape);
    world.insert_resource(Land(landscape.clone()));
    world.init_resource::<Actors>();
    world.insert_resource(Neighbours::new(settings.scan_everything));
    world.insert_resource(neighbours::scan_range());
    world.init_resource::<Deeds>();
    world.init_resource::<Roster>();
    world.insert_resource(Aims::new(TICK_HZ));
    world.init_resource::<Parties>();
    world.insert_resource(Map::new(settings.seed, false));
    world.init_resource::<Scratch>();
    world.insert_resource(Telling { points: settings.no_throttles });
    changes::make_room(world);
    let hearths = if settings.one_hearth { 1 } else { landscape.hearths_beside(plan.camps) };
    world.insert_resource(Welcome { hearths });
}

/// The world.
pub struct Frontier {
    pub settings: FrontierSettings,
    /// What is saved of its land; `None`: nothing is saved.
    pub saved: Option<Arc<SavedLand>>,
}

impl WorldKind for Frontier {
    fn name(&self) -> &str {
        FRONTIER
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(TICK_HZ)
    }

    fn protocol(&self) -> Protocol {
        protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        put_together(world);
        if !self.settings.faults.is_empty() {
            let faults = self.settings.faults.clone();
            world.add_plugins(FaultPlugin { faults, first: Step::Enter, last: Step::Publish });
        }
        let seed = world.seed();
        fill(world.world_mut(), &self.settings, seed);
        if let Some(saved) = &self.saved {
            world.insert_resource(Map::new(seed, true)).insert_resource(LandReader(saved.clone()));
        }
    }

    fn dormant_when_empty(&self) -> bool {
        !self.settings.keep_awake
    }
}
