//! The server: puts Precinct's worlds into a [`Server`] and says who goes where.

use rand::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use throng::{Server, lifecycle::NewWorld, prelude::*, server::ServerError};
use throng_faults::{BackgroundFault, FaultSwitch, WorldFault};
use throng_platform::time::Nanos;

use crate::{
    budgets,
    distribution::Distribution,
    hideouts::{HideoutWorlds, Hideouts, ServerMaker},
    level::Level,
    saves::{DARK_ZONE_NUMBER, HUB_NUMBER, shared_number},
    scene::Shared,
    worlds::{DarkZone, Hideout, HideoutPlan, Hub, Sentinel},
};

/// What a Precinct server is to hold.
#[derive(Debug, Clone, PartialEq)]
pub struct PrecinctSettings {
    /// Players to have a hideout for [1 to 4,000]. More than these are refused.
    pub players: usize,
    /// NPCs in all worlds together when all players are in [0 to 40,000].
    pub npcs: usize,
    /// How long a hideout stays after its owner has left the server. (s) Less → who loses the connection finds a
    /// hideout whose NPCs have begun anew; more → hideouts of those who do not come back cost memory, though no time.
    pub hideout_linger_s: u32,
    /// Makes all hideouts before the server runs and never retires them, for tests without players. They are nobody's
    /// then: what lies in them is not saved.
    pub hideouts_at_start: bool,
    /// Seeds every world: the same seed and the same inputs give the same game.
    pub seed: u64,
    /// Whether worlds tick in which nobody is, so that every NPC lives for as long as its world: what a load test
    /// wants. Otherwise a world sleeps until somebody comes.
    pub keep_awake: bool,
    /// Hideouts with a fault, by their ordinals: hideouts are given out in order. For tests.
    pub faults: Vec<FaultyHideout>,
    /// What goes wrong beside the worlds, for tests.
    pub background_faults: Vec<BackgroundFault>,
    /// Small worlds at 128 Hz beside the game, for tests.
    pub extra_worlds: usize,
}

/// Long enough to come back after a broken connection.
const HIDEOUT_LINGER_S: u32 = 30;

impl Default for PrecinctSettings {
    fn default() -> Self {
        Self {
            players: 100,
            npcs: 2_000,
            hideout_linger_s: HIDEOUT_LINGER_S,
            hideouts_at_start: false,
            seed: 1,
            keep_awake: false,
            faults: Vec::new(),
            background_faults: Vec::new(),
            extra_worlds: 0,
        }
    }
}

impl PrecinctSettings {
    /// Gives the next hideout this fault, and starts with the server what it does beside the worlds. When each hideout
    /// has one, the first gets another.
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
#[derive(Debug, Clone)]
pub struct PrecinctWorlds {
    pub hub: WorldId,
    pub dark_zone: WorldId,
    /// Those that are there at present.
    pub hideouts: HideoutWorlds,
    /// Hideouts that are nobody's: as many as it takes to hold all NPCs when players are few.
    pub spare_hideouts: Vec<WorldId>,
    /// The 128 Hz worlds that tests asked for.
    pub extra: Vec<WorldId>,
    /// NPCs in all of them when all players are in.
    pub npcs: usize,
}

/// Makes the worlds that are there from the start, and the directory that has a hideout made for each player that
/// comes.
///
/// Cost: about 0.1 s for the level and 0.1 ms for each world.
pub fn build(server: &mut Server, settings: &PrecinctSettings) -> Result<PrecinctWorlds, ServerError> {
    let shared = Shared::new(Level::shared(), server.draw_seed());
    let day = Distribution::new(settings.players, settings.npcs);
    // Seeds that have nothing to do with each other, from one.
    let mut seeds = SplitMix64::seed_from_u64(settings.seed);
    let mut next_seed = || seeds.next_u64();

    server.set_game("precinct");
    let hub = server.add_kind(Hub { shared: shared.clone(), npcs: day.hub_npcs, keep_awake: settings.keep_awake })?;
    let shared_number = |number| shared_number(server.saves_process(), number);
    let [hub_number, dark_zone_number] = [HUB_NUMBER, DARK_ZONE_NUMBER].map(shared_number);
    let hub = server.create_world_as(NewWorld::new(hub, next_seed()).saved_as(hub_number))?;
    let dark_zone = server.add_kind(DarkZone {
        shared: shared.clone(),
        npcs: day.dark_zone_npcs,
        keep_awake: settings.keep_awake,
    })?;
    let dark_zone = server.create_world_as(NewWorld::new(dark_zone, next_seed()).saved_as(dark_zone_number))?;
    let hideout = server.add_kind(Hideout {
        shared: shared.clone(),
        keep_awake: settings.keep_awake,
        faults: settings.faults.clone(),
    })?;
    let mut plans = Vec::with_capacity(day.hideouts);
    for ordinal in 0..day.hideouts {
        let plan = HideoutPlan { ordinal: ordinal as u16, npcs: day.npcs_of_hideout(ordinal) as u16 };
        plans.push(NewWorld::new(hideout, next_seed()).with(&plan).expect("it has no limits"));
    }
    let spare = plans.split_off(settings.players.max(1));
    let spare_hideouts: Vec<WorldId> =
        spare.into_iter().map(|plan| server.create_world_as(plan)).collect::<Result<_, _>>()?;
    let mut extra = Vec::new();
    if settings.extra_worlds > 0 {
        let sentinel = server.add_kind(Sentinel { shared: shared.clone() })?;
        for _ in 0..settings.extra_worlds {
            extra.push(server.create_world(sentinel, next_seed())?);
        }
    }
    budgets::suggest(server, settings.players, settings.npcs);
    let world_faults = settings.faults.iter().map(|faulty| faulty.fault);
    throng_faults::start(server, world_faults, &settings.background_faults)?;
    shared.worlds.set(hub, dark_zone);
    let linger =
        if settings.hideouts_at_start { Nanos::MAX } else { Nanos::from_secs(settings.hideout_linger_s.into()) };
    let at_start = if settings.hideouts_at_start { plans.clone() } else { Vec::new() };
    let maker = ServerMaker { control: server.control(), plans };
    let mut hideouts = Hideouts::new(maker, settings.players.max(1), linger);
    for (ordinal, plan) in at_start.into_iter().enumerate() {
        hideouts.settle(ordinal, server.create_world_as(plan)?);
    }
    let worlds =
        PrecinctWorlds { hub, dark_zone, hideouts: hideouts.worlds(), spare_hideouts, extra, npcs: settings.npcs };
    server.set_directory(hideouts);
    Ok(worlds)
}
