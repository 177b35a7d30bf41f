//! Settings: what a Frontier server is to hold.

use throng_faults::{BackgroundFault, FaultSwitch, WorldFault};

/// What a Frontier server is to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontierSettings {
    /// Players that the server is made for, which says what it may take, and not who comes in. Default 2,000.
    pub players: usize,
    /// NPCs of the world [0 to 40,000]. Default 2,000. Fewer than 10,000 live in a smaller part of the landscape.
    pub npcs: usize,
    /// Seeds the world: the same seed and the same inputs give the same game. Default 1.
    pub seed: u64,
    /// Whether the world ticks while nobody is in it: what a load test wants. Default no: it sleeps until somebody
    /// comes.
    pub keep_awake: bool,
    /// Answers every question of who is near by looking at everybody, for comparison. The same answers, at a much
    /// higher cost. Default no.
    pub scan_everything: bool,
    /// Sends health in points whenever these change, for comparison. The same game, many more packets. Default no.
    pub no_throttles: bool,
    /// Has all players begin at one hearth, beside the first camp, and rise there again: a worst case. Default no.
    pub one_hearth: bool,
    /// What is wrong with the world, for tests.
    pub faults: Vec<WorldFault>,
    /// What goes wrong beside it, for tests.
    pub background_faults: Vec<BackgroundFault>,
}

impl Default for FrontierSettings {
    fn default() -> Self {
        Self {
            players: 2_000,
            npcs: 2_000,
            seed: 1,
            keep_awake: false,
            scan_everything: false,
            no_throttles: false,
            one_hearth: false,
            faults: Vec::new(),
            background_faults: Vec::new(),
        }
    }
}

impl FrontierSettings {
    /// Gives the world this fault, and starts with the server what it does beside the world.
    pub fn inject(&mut self, fault: FaultSwitch) {
        self.faults.extend(fault.in_world());
        self.background_faults.extend(fault.in_background());
    }
}
