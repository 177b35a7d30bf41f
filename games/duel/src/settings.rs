//! Settings: `[game]` of `throng.toml`, and what follows from it in ticks.

use serde::Deserialize;
use throng::settings::{Checks, Section};
use throng_faults::{BackgroundFault, FaultSwitch, WorldFault};
use throng_replication::table_resource;

use crate::{
    protocol::{TICK_HZ, Terms},
    teams::{SEATS, TEAM_SIZE},
    weapons::ticks_of,
};

/// Rounds to win, at most: so many of both teams fit into the clock.
pub const ROUNDS_TO_WIN_MAX: u8 = 30;

/// What the matches of a server are like.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct DuelSettings {
    /// Players of a team [1 to 5]. Default 5.
    pub team_size: u8,
    /// Rounds that win a match [1 to 30]. Default 13. Sides change after one less.
    pub rounds_to_win: u8,
    /// How long players are waited for when a match begins (s, 0 to 600). Default 8.
    pub warm_up_s: f32,
    /// By up to so much more, by chance (s, 0 to 600). Default 20. Too low → matches that are made in the same moment
    /// begin their rounds in the same moment, too, and cost most at the same time; too high → players wait.
    pub stagger_s: f32,
    /// The phase in which one buys (s, 0 to 600). Default 30. With 0 there is none: each round gives everybody the
    /// same.
    pub buy_s: f32,
    /// From its end until the time runs out (s, 1 to 600). Default 100.
    pub round_s: f32,
    /// From planting the spike until it explodes (s, 1 to 600). Default 45. Too low → nobody can defuse it.
    pub spike_s: f32,
    /// How long it takes to plant the spike (s, 0.1 to 60). Default 4.
    pub plant_s: f32,
    /// How long it takes to defuse it (s, 0.1 to 60). Default 7.
    pub defuse_s: f32,
    /// From a round's end to the next round, and from a match's end to the lobby (s, 0.1 to 60). Default 5.
    pub over_s: f32,
    /// How long the lobby waits for the players that a match still lacks, before it begins one with fewer (s, 0 to
    /// 600). Default 10.
    pub fill_s: f32,
    /// Where the worlds' chance begins. Default: none, and the server draws one, which nobody knows. With one, who knows it
    /// can foretell where shots stray: for tests and comparisons.
    pub seed: Option<u64>,
    /// Matches with a fault, for tests; not a setting of the file.
    #[serde(skip)]
    pub faults: Vec<FaultyMatch>,
    /// What goes wrong beside the worlds, for tests; not a setting of the file.
    #[serde(skip)]
    pub background_faults: Vec<BackgroundFault>,
}

impl Default for DuelSettings {
    fn default() -> Self {
        Self {
            team_size: TEAM_SIZE as u8,
            rounds_to_win: 13,
            warm_up_s: 8.0,
            stagger_s: 20.0,
            buy_s: 30.0,
            round_s: 100.0,
            spike_s: 45.0,
            plant_s: 4.0,
            defuse_s: 7.0,
            over_s: 5.0,
            fill_s: 10.0,
            seed: None,
            faults: Vec::new(),
            background_faults: Vec::new(),
        }
    }
}

impl Section for DuelSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.range("team_size", self.team_size, 1..=TEAM_SIZE as u8, "players");
        checks.range("rounds_to_win", self.rounds_to_win, 1..=ROUNDS_TO_WIN_MAX, "rounds");
        for (key, value) in [
            ("warm_up_s", self.warm_up_s),
            ("stagger_s", self.stagger_s),
            ("buy_s", self.buy_s),
            ("fill_s", self.fill_s),
        ] {
            checks.range(key, value, 0.0..=600.0, "s");
        }
        for (key, value) in [("round_s", self.round_s), ("spike_s", self.spike_s)] {
            checks.range(key, value, 1.0..=600.0, "s");
        }
        for (key, value) in [("plant_s", self.plant_s), ("defuse_s", self.defuse_s), ("over_s", self.over_s)] {
            checks.range(key, value, 0.1..=60.0, "s");
        }
    }
}

impl DuelSettings {
    /// Gives the next match of those that so many players fill this fault, and starts with the server what it does beside the
    /// worlds. When each of these has one, the first gets another.
    pub fn inject(&mut self, fault: FaultSwitch, players: usize) {
        let matches = (players / self.match_size()).max(1);
        let ordinal = (self.faults.len() % matches) as u32;
        let fault_of_match = fault.in_world().map(|fault| fault.at_rate(TICK_HZ));
        self.faults.extend(fault_of_match.map(|fault| FaultyMatch { ordinal, fault }));
        self.background_faults.extend(fault.in_background());
    }

    /// The rules of a match by these settings.
    pub fn rules(&self) -> MatchRules {
        let ticks = |seconds: f32| ticks_of((seconds * 1_000.0) as u32, TICK_HZ);
        MatchRules {
            rounds_to_win: self.rounds_to_win,
            warm_up_ticks: ticks(self.warm_up_s),
            stagger_ticks: ticks(self.stagger_s),
            buy_ticks: ticks(self.buy_s),
            round_ticks: ticks(self.round_s),
            spike_ticks: ticks(self.spike_s),
            plant_ticks: ticks(self.plant_s),
            defuse_ticks: ticks(self.defuse_s),
            over_ticks: ticks(self.over_s),
        }
    }

    /// Players of a whole match.
    pub fn match_size(&self) -> usize {
        (2 * usize::from(self.team_size)).min(SEATS)
    }
}

/// A fault and the match that has it, by its number among those that the lobby asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultyMatch {
    pub ordinal: u32,
    pub fault: WorldFault,
}

/// What a match goes by: durations in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchRules {
    pub rounds_to_win: u8,
    pub warm_up_ticks: u32,
    pub stagger_ticks: u32,
    /// 0: nobody buys, and each round gives everybody the same.
    pub buy_ticks: u32,
    pub round_ticks: u32,
    pub spike_ticks: u32,
    pub plant_ticks: u32,
    pub defuse_ticks: u32,
    pub over_ticks: u32,
}

table_resource!(MatchRules);

impl MatchRules {
    /// What of them is told to who comes.
    pub fn terms(&self) -> Terms {
        let ms = u64::from(self.defuse_ticks) * 1_000 / u64::from(TICK_HZ);
        Terms { defuse_ms: ms.min(u16::MAX.into()) as u16 }
    }

    /// Rounds of the first half.
    pub fn half(&self) -> u8 {
        self.rounds_to_win - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_go_to_one_match_after_the_other() {
        let mut settings = DuelSettings::default();
        for fault in [FaultSwitch::SlowWorld, FaultSwitch::StolenCores, FaultSwitch::Leak, FaultSwitch::BigAlloc] {
            settings.inject(fault, 25);
        }
        let ordinals: Vec<u32> = settings.faults.iter().map(|faulty| faulty.ordinal).collect();
        assert_eq!((ordinals, settings.background_faults.len()), (vec![0, 1, 0], 1), "two matches for 25 players");
        let mut alone = DuelSettings::default();
        alone.inject(FaultSwitch::SlowWorld, 0);
        assert_eq!(alone.faults[0].ordinal, 0);
    }
}
