//! The district: two kilometres of city, whose ground is streamed in sectors and blown up.
//!
//! Scenario `district`: players are in bands of [`BAND`], each band in a district of its own. All districts are one level
//! ([`level`]), of which nothing is baked at the start. Around each player its world has sectors streamed
//! ([`streaming`]), which it shares with all other districts; a charge that blows a gate away ([`charges`]) damages that
//! one district alone. A crowd ([`crowd`]) lives where players are.
//!
//! A tick, in order:
//!
//! ```text
//!   streaming  take_sectors    sectors that have come
//!   players    come, leave, read_inputs
//!   players    settle, rise    who waits for ground under its feet, or for its next life
//!   players    walk
//!   charges    throw, explode  what is blown up
//!   crowd      gather          who is where no player is comes to where some are
//!   crowd      search, walk    errands, over as many sectors as they take
//!   streaming  stream          what is wanted and given up, twice a second; work is begun
//! ```
//!
//! Cost of a world: some kilobytes, and a pointer for each sector around its players. Long tasks: `nav.sector` bakes one,
//! `nav.sector.found` only fetches it, `nav.sector.damaged` bakes it for one world.

pub mod body;
pub mod bot;
pub mod charges;
pub mod crowd;
mod directory;
#[cfg(test)]
mod headless;
pub mod level;
pub mod players;
pub mod streaming;

use std::sync::Arc;

use bevy_ecs::prelude::*;
use rand::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use throng::{Server, lifecycle::NewWorld, prelude::*, server::ServerError};
use throng_pack::Pack;
use throng_query::nav::sectors::SectorStore;

use crate::{
    components::{Action, Character, Vitals},
    lives::LifeClock,
    movement::Controls,
    passport::PlayerClient,
    protocol::Input,
};

pub use body::{FarPose, Footing};
pub use directory::BAND;

use charges::Charges;
use crowd::{Errand, SavedErrand};
use directory::Bands;
use streaming::Streets;

/// Name of the kind, as clients hear it.
pub const DISTRICT: &str = "district";
/// Seeds every district.
const SEED: u64 = 1;

/// What a district and its clients say to each other.
pub fn protocol() -> Protocol {
    Protocol::new()
        .component::<FarPose>()
        .component::<Vitals>()
        .component::<Character>()
        .component::<Action>()
        .input::<Input>()
}

/// Which district a world is to be: what it is asked for with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.district_plan")]
pub struct DistrictPlan {
    /// Its number among all districts.
    pub ordinal: u16,
    pub npcs: u16,
}

/// A band's district. Asked for with a [`DistrictPlan`].
pub struct District {
    /// The sectors that all districts share.
    pub store: Arc<SectorStore>,
    /// Whether worlds tick in which nobody is.
    pub keep_awake: bool,
}

impl WorldKind for District {
    fn name(&self) -> &str {
        DISTRICT
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        let plan = world.parameters::<DistrictPlan>().expect("a district is asked for with its plan");
        let plan = plan.expect("and the plan is of this version of the game");
        world.placed_by::<FarPose>();
        world.insert_resource(Streets::new(self.store.clone(), plan.ordinal, self.keep_awake));
        world.insert_resource(Charges::default());
        let begin = (streaming::take_sectors, players::leave, players::come, players::read_inputs);
        let play = (players::settle, players::rise, players::walk, charges::throw, charges::explode);
        let live = (crowd::gather, crowd::search, crowd::walk, streaming::stream);
        world.add_systems(Update, (begin.chain(), play.chain(), live.chain()).chain());
        world.name_subsystem("precinct.district", DISTRICT);
        keep(world);
        crowd::spawn(world.world_mut(), plan.npcs.into());
    }

    fn dormant_when_empty(&self) -> bool {
        !self.keep_awake
    }
}

/// What a district goes on from after a panic. Sectors are got again: of the damage, the list is kept.
fn keep(world: &mut WorldBuilder) {
    world.checkpoint::<FarPose>().checkpoint::<Vitals>().checkpoint::<Character>().checkpoint::<Action>();
    world.checkpoint::<Footing>().checkpoint::<PlayerClient>().checkpoint::<Controls>().checkpoint::<LifeClock>();
    world.checkpoint_as::<Errand, SavedErrand>(|errand| errand.into(), Errand::from);
    world.checkpoint_part(Streets::save, Streets::load).checkpoint_part(Charges::save, Charges::load);
    world.after_load(check).after_load(players::leave);
}

/// Refuses what no district has written.
fn check(streets: Res<Streets>, everybody: Query<&Footing>) -> Result<(), BevyError> {
    let are_sound = everybody.iter().filter_map(|footing| footing.0).all(|ground| streets.sectors.holds(ground));
    if are_sound { Ok(()) } else { Err("somebody stands beside the ground".into()) }
}

/// Makes the districts of a server and puts bands of players into them, with the NPCs spread over all. Nothing is baked yet.
///
/// Cost: about 50 ms for the level and 0.1 ms for each world.
pub fn build(
    server: &mut Server,
    players: usize,
    npcs: usize,
    keep_awake: bool,
) -> Result<DistrictWorlds, ServerError> {
    server.set_game("precinct");
    let store = level::store();
    let kind = server.add_kind(District { store: store.clone(), keep_awake })?;
    let count = players.div_ceil(BAND).max(1);
    let mut seeds = SplitMix64::seed_from_u64(SEED);
    let mut plans = Vec::with_capacity(count);
    for ordinal in 0..count {
        let of_this = npcs / count + usize::from(ordinal < npcs % count);
        let plan = DistrictPlan { ordinal: ordinal as u16, npcs: of_this.min(u16::MAX.into()) as u16 };
        plans.push(NewWorld::new(kind, seeds.next_u64()).with(&plan).expect("it has no limits"));
    }
    let mut worlds = Vec::with_capacity(count);
    for plan in &plans {
        worlds.push(server.create_world_as(plan.clone())?);
    }
    server.set_directory(Bands::new(server.control(), plans, worlds.clone()));
    Ok(DistrictWorlds { worlds, store })
}

/// The districts of a server.
pub struct DistrictWorlds {
    pub worlds: Vec<WorldId>,
    pub store: Arc<SectorStore>,
}
