//! The server: puts Precinct's worlds into a [`Server`] and says who goes where.

use rand::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use throng::{Server, prelude::*, server::ServerError};
use throng_faults::{BackgroundFault, FaultSwitch, WorldFault};

use crate::{
    distribution::Distribution,
    hideouts::Hideouts,
    level::Level,
    scene::Shared,
    worlds::{DarkZone, Hideout, Hub, Sentinel},
};

/// What a Precinct server is to hold.
#[derive(Debug, Clone, PartialEq)]
pub struct PrecinctSettings {
    /// Players to have a hideout for [1 to 4,000]. More than these are refused.
    pub players: usize,
    /// NPCs in all worlds together [0 to 40,000].
    pub npcs: usize,
    /// Seeds every world: the same seed and the same inputs give the same game.
    pub seed: u64,
    /// Whether worlds tick in which nobody is, so that every NPC lives all the time: what a load test wants. Otherwise
    /// a world sleeps until somebody comes.
    pub keep_awake: bool,
    /// Hideouts with a fault, for tests.
    pub faults: Vec<FaultyHideout>,
    /// What goes wrong beside the worlds, for tests.
    pub background_faults: Vec<BackgroundFault>,
    /// Small worlds at 128 Hz beside the game, for tests.
    pub extra_worlds: usize,
}

impl Default for PrecinctSettings {
    fn default() -> Self {
        Self {
            players: 100,
            npcs: 2_000,
            seed: 1,
            keep_awake: false,
            faults: Vec::new(),
            background_faults: Vec::new(),
            extra_worlds: 0,
        }
    }
}

impl PrecinctSettings {
    /// Gives the next hideout this fault, and starts with the server what it does beside the worlds. When each hideout has one, the first
    /// gets another.
    pub fn inject(&mut self, fault: FaultSwitch) {
        let hideout = self.faults.len() % self.players.max(1);
        self.faults.extend(fault.in_world().map(|fault| FaultyHideout { hideout, fault }));
        self.background_faults.extend(fault.in_background());
    }
}

/// A fault and the hideout that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultyHideout {
    pub hideout: usize,
    pub fault: WorldFault,
}

/// The worlds of a Precinct server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrecinctWorlds {
    pub hub: WorldId,
    pub dark_zone: WorldId,
    pub hideouts: Vec<WorldId>,
    /// The 128 Hz worlds that tests asked for.
    pub extra: Vec<WorldId>,
    /// NPCs in all of them.
    pub npcs: usize,
}

/// Makes all worlds of the game, and the directory that puts each player into a hideout.
///
/// Cost: about 0.1 s for the level and 0.1 ms for each world.
pub fn build(server: &mut Server, settings: &PrecinctSettings) -> Result<PrecinctWorlds, ServerError> {
    let shared = Shared::new(Level::load());
    let day = Distribution::new(settings.players, settings.npcs);
    // Seeds that have nothing to do with each other, from one.
    let mut seeds = SplitMix64::seed_from_u64(settings.seed);
    let mut next_seed = || seeds.next_u64();

    server.set_game("precinct");
    let hub = server.add_kind(Hub { shared: shared.clone(), npcs: day.hub_npcs, keep_awake: settings.keep_awake })?;
    let hub = server.create_world(hub, next_seed())?;
    let dark_zone = server.add_kind(DarkZone {
        shared: shared.clone(),
        npcs: day.dark_zone_npcs,
        keep_awake: settings.keep_awake,
    })?;
    let dark_zone = server.create_world(dark_zone, next_seed())?;
    let hideout = server.add_kind(Hideout {
        shared: shared.clone(),
        first: WorldId::new(dark_zone.index() as u32 + 1, 0),
        npcs: (0..day.hideouts).map(|index| day.npcs_of_hideout(index) as u16).collect(),
        keep_awake: settings.keep_awake,
        faults: settings.faults.clone(),
    })?;
    let hideouts: Vec<WorldId> =
        (0..day.hideouts).map(|_| server.create_world(hideout, next_seed())).collect::<Result<_, _>>()?;
    let mut extra = Vec::new();
    if settings.extra_worlds > 0 {
        let sentinel = server.add_kind(Sentinel { shared: shared.clone() })?;
        for _ in 0..settings.extra_worlds {
            extra.push(server.create_world(sentinel, next_seed())?);
        }
    }
    let world_faults = settings.faults.iter().map(|faulty| faulty.fault);
    throng_faults::start(server, world_faults, &settings.background_faults)?;
    shared.worlds.set(hub, dark_zone);
    server.set_directory(Hideouts::new(hideouts.clone()));
    Ok(PrecinctWorlds { hub, dark_zone, hideouts, extra, npcs: settings.npcs })
}
