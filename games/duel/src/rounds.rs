//! Rounds: how a match goes on, from its warm-up to its end. The state machine alone; what its changes mean for players
//! is in `flow`.
//!
//! ```text
//!   WarmUp --> Buy --> Live --> Over --> Buy ..                 a round: Buy to Over
//!                       |        ^
//!                       v        |
//!                     Planted ---'        Over --> MatchOver    when a team has won rounds enough, or has left
//! ```
//!
//! The warm-up goes on until somebody is there in both teams; when one has not come for [`COMING_S`] after it everybody
//! goes home. Without a phase to buy in a round begins with `Live`. A round ends in one of five ways ([`RoundEnd`]): time alone
//! ends two of them, and the others are said by whoever finds them. Sides change once, at half.
//!
//! Pure: ticks come in as arguments.

use throng_pack::Pack;
use throng_replication::{StateHash, StateHasher, table_resource};

use crate::{
    components::{Clock, Phase, RoundEnd, Score},
    protocol::TICK_HZ,
    settings::MatchRules,
    teams::TeamId,
};

/// How a match stands.
#[derive(Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.rounds")]
pub struct Rounds {
    pub clock: Clock,
    pub attackers: TeamId,
    pub last_end: Option<RoundEnd>,
    /// Rounds won, and lost in a row, by [`TeamId::index`].
    wins: [u8; 2],
    lost_in_a_row: [u8; 2],
    /// Who has won the match, once somebody has.
    winner: Option<TeamId>,
}

table_resource!(Rounds);

impl StateHash for Rounds {
    fn hash_state(&self, hasher: &mut StateHasher) {
        let Self { clock, attackers, last_end, wins, lost_in_a_row, winner } = *self;
        let Clock { phase, round, ends_tick } = clock;
        hasher.write_u64((phase as u64) << 40 | u64::from(round) << 32 | u64::from(ends_tick));
        hasher.write_u64(attackers as u64);
        hasher.write_u64(last_end.map_or(u64::MAX, |end| end as u64));
        hasher.write_u64(winner.map_or(u64::MAX, |team| team as u64));
        hasher.write_bytes(&[wins, lost_in_a_row].concat());
    }
}

/// Who was sent to a match is there within this after its warm-up, or does not come (s). Too low → on slow hosts matches
/// end before their players come; too high → who is alone waits for nobody.
pub const COMING_S: u32 = 5;
const COMING_TICKS: u32 = COMING_S * TICK_HZ as u32;

/// What time has brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A round begins: everybody stands up in the base. With a half, what everybody had is gone.
    RoundBegins { is_new_half: bool },
    /// One may leave the base, and can be hurt.
    PlayBegins,
    /// The round is over.
    RoundEnds(RoundEnd),
    /// Somebody has won the match.
    MatchEnds,
    /// Everybody goes back to the lobby.
    GoHome,
}

impl Rounds {
    /// Of a match that begins at `tick`, with a warm-up that is longer than the rules say by `stagger_ticks`.
    pub fn new(tick: u32, stagger_ticks: u32, rules: &MatchRules) -> Self {
        let ends_tick = tick + rules.warm_up_ticks + stagger_ticks;
        Self {
            clock: Clock { phase: Phase::WarmUp, round: 0, ends_tick },
            attackers: TeamId::One,
            last_end: None,
            wins: [0; 2],
            lost_in_a_row: [0; 2],
            winner: None,
        }
    }

    pub fn phase(&self) -> Phase {
        self.clock.phase
    }

    pub fn winner(&self) -> Option<TeamId> {
        self.winner
    }

    /// Rounds that a team has lost in a row; 0: it has won the last one.
    pub fn lost_in_a_row(&self, team: TeamId) -> u8 {
        self.lost_in_a_row[team.index()]
    }

    pub fn score(&self, alive: u16) -> Score {
        let [wins_one, wins_two] = self.wins;
        Score { wins_one, wins_two, attackers: self.attackers, last_end: self.last_end, alive }
    }

    /// Who has the rounds that win the match.
    pub fn first_with_enough(&self, rules: &MatchRules) -> Option<TeamId> {
        TeamId::BOTH.into_iter().find(|team| self.wins[team.index()] >= rules.rounds_to_win)
    }

    /// Whether the time of the phase is over in this tick.
    pub fn is_due(&self, tick: u32) -> bool {
        tick >= self.clock.ends_tick
    }

    /// What the time of this tick brings about for a warm-up that nobody of a team has come to.
    pub fn wait(&mut self, tick: u32) -> Option<Change> {
        debug_assert_eq!(self.clock.phase, Phase::WarmUp);
        let has_waited = tick >= self.clock.ends_tick.saturating_add(COMING_TICKS);
        has_waited.then(|| {
            self.close();
            Change::GoHome
        })
    }

    /// Nothing happens in the match any more.
    pub fn close(&mut self) {
        self.enter(Phase::MatchOver, u32::MAX);
    }

    /// What the time of this tick brings about; nothing in most.
    pub fn advance(&mut self, tick: u32, rules: &MatchRules) -> Option<Change> {
        if !self.is_due(tick) {
            return None;
        }
        match self.clock.phase {
            Phase::WarmUp => Some(self.begin_round(tick, rules)),
            Phase::Buy => {
                self.enter(Phase::Live, tick + rules.round_ticks);
                Some(Change::PlayBegins)
            }
            Phase::Live => Some(self.end_round(RoundEnd::TimeRanOut, tick, rules)),
            Phase::Planted => Some(self.end_round(RoundEnd::SpikeExploded, tick, rules)),
            Phase::Over => {
                self.clock.round += 1;
                Some(match self.first_with_enough(rules) {
                    Some(winner) => self.end_match(winner, tick, rules),
                    None => self.begin_round(tick, rules),
                })
            }
            Phase::MatchOver => {
                // Once is enough.
                self.close();
                Some(Change::GoHome)
            }
        }
    }

    /// The spike has been planted.
    pub fn plant(&mut self, tick: u32, rules: &MatchRules) {
        debug_assert_eq!(self.clock.phase, Phase::Live);
        self.enter(Phase::Planted, tick + rules.spike_ticks);
    }

    /// Ends the round that is played.
    pub fn end_round(&mut self, end: RoundEnd, tick: u32, rules: &MatchRules) -> Change {
        debug_assert!(self.clock.phase.is_live());
        let winner = if end.is_won_by_attackers() { self.attackers } else { self.attackers.other() };
        self.wins[winner.index()] += 1;
        self.lost_in_a_row[winner.index()] = 0;
        let lost = &mut self.lost_in_a_row[winner.other().index()];
        *lost = lost.saturating_add(1);
        self.last_end = Some(end);
        self.enter(Phase::Over, tick + rules.over_ticks);
        Change::RoundEnds(end)
    }

    /// Ends the match: by its last round, or since the other team has left.
    pub fn end_match(&mut self, winner: TeamId, tick: u32, rules: &MatchRules) -> Change {
        self.winner = Some(winner);
        self.enter(Phase::MatchOver, tick + rules.over_ticks);
        Change::MatchEnds
    }

    /// How the round ends with so many attackers and defenders alive; `None`: it goes on.
    pub fn elimination(&self, attackers_alive: u32, defenders_alive: u32) -> Option<RoundEnd> {
        match self.clock.phase {
            // Of a last shot that each has fired, the defenders have it: nobody is left to plant.
            Phase::Live if attackers_alive == 0 => Some(RoundEnd::AttackersEliminated),
            Phase::Live | Phase::Planted if defenders_alive == 0 => Some(RoundEnd::DefendersEliminated),
            _ => None,
        }
    }

    fn begin_round(&mut self, tick: u32, rules: &MatchRules) -> Change {
        let is_new_half = self.clock.round == 0 || self.clock.round == rules.half();
        if is_new_half {
            self.lost_in_a_row = [0; 2];
        }
        if self.clock.round > 0 && is_new_half {
            self.attackers = self.attackers.other();
        }
        match rules.buy_ticks {
            0 => self.enter(Phase::Live, tick + rules.round_ticks),
            ticks => self.enter(Phase::Buy, tick + ticks),
        }
        Change::RoundBegins { is_new_half }
    }

    fn enter(&mut self, phase: Phase, ends_tick: u32) {
        (self.clock.phase, self.clock.ends_tick) = (phase, ends_tick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{DuelSettings, ROUNDS_TO_WIN_MAX};

    const RULES: MatchRules = MatchRules {
        rounds_to_win: 3,
        warm_up_ticks: 5,
        stagger_ticks: 0,
        buy_ticks: 10,
        round_ticks: 100,
        spike_ticks: 40,
        plant_ticks: 4,
        defuse_ticks: 7,
        over_ticks: 6,
    };

    /// Advances tick by tick until something changes.
    fn next(rounds: &mut Rounds, tick: &mut u32) -> Change {
        loop {
            let change = rounds.advance(*tick, &RULES);
            *tick += 1;
            if let Some(change) = change {
                return change;
            }
        }
    }

    #[test]
    fn a_round_that_nobody_decides_runs_out_of_time() {
        let (mut rounds, mut tick) = (Rounds::new(0, 7, &RULES), 0);
        assert_eq!(next(&mut rounds, &mut tick), Change::RoundBegins { is_new_half: true });
        assert_eq!((rounds.phase(), tick), (Phase::Buy, 13));
        assert_eq!(next(&mut rounds, &mut tick), Change::PlayBegins);
        assert_eq!(next(&mut rounds, &mut tick), Change::RoundEnds(RoundEnd::TimeRanOut));
        assert_eq!(tick, 13 + 10 + 100);
        assert_eq!((rounds.score(0).wins_one, rounds.score(0).wins_two), (0, 1), "the defenders have it");
        assert_eq!((rounds.lost_in_a_row(TeamId::One), rounds.lost_in_a_row(TeamId::Two)), (1, 0));
    }

    #[test]
    fn a_spike_that_nobody_defuses_explodes() {
        let (mut rounds, mut tick) = (Rounds::new(0, 0, &RULES), 0);
        next(&mut rounds, &mut tick);
        next(&mut rounds, &mut tick);
        rounds.plant(tick, &RULES);
        assert_eq!(rounds.elimination(0, 1), None, "it is planted, and does without them");
        let planted = tick;
        assert_eq!(next(&mut rounds, &mut tick), Change::RoundEnds(RoundEnd::SpikeExploded));
        assert_eq!((tick - 1 - planted, rounds.score(0).wins_one), (RULES.spike_ticks, 1));
    }

    #[test]
    fn who_is_left_decides_the_round() {
        let (mut rounds, mut tick) = (Rounds::new(0, 0, &RULES), 0);
        next(&mut rounds, &mut tick);
        assert_eq!(rounds.elimination(0, 0), None, "nobody is there to be hurt while one buys");
        next(&mut rounds, &mut tick);
        assert_eq!(rounds.elimination(2, 1), None);
        assert_eq!(rounds.elimination(0, 3), Some(RoundEnd::AttackersEliminated));
        assert_eq!(rounds.elimination(1, 0), Some(RoundEnd::DefendersEliminated));
        assert_eq!(rounds.elimination(0, 0), Some(RoundEnd::AttackersEliminated));
        rounds.plant(tick, &RULES);
        assert_eq!(rounds.elimination(0, 0), Some(RoundEnd::DefendersEliminated));
    }

    /// Promise: sides change once, after one round less than it takes to win, and the first with rounds enough has won.
    #[test]
    fn a_match_ends_with_its_last_round_and_goes_home() {
        let (mut rounds, mut tick) = (Rounds::new(0, 0, &RULES), 0);
        let mut attackers = Vec::new();
        let mut halves = 0;
        loop {
            match next(&mut rounds, &mut tick) {
                Change::RoundBegins { is_new_half } => {
                    halves += u32::from(is_new_half);
                    attackers.push(rounds.attackers);
                }
                Change::PlayBegins => {
                    rounds.end_round(RoundEnd::AttackersEliminated, tick, &RULES);
                }
                Change::MatchEnds => break,
                other => panic!("{other:?}"),
            }
        }
        // Whoever defends wins: two, then one of the second half each until three.
        assert_eq!(attackers, [TeamId::One, TeamId::One, TeamId::Two, TeamId::Two, TeamId::Two]);
        assert_eq!((halves, rounds.winner()), (2, Some(TeamId::One)));
        assert_eq!(next(&mut rounds, &mut tick), Change::GoHome);
        assert_eq!(rounds.advance(tick + 1_000_000, &RULES), None, "once");
    }

    #[test]
    fn a_warm_up_that_a_team_is_missing_from_ends_with_the_way_home() {
        let mut rounds = Rounds::new(0, 0, &RULES);
        let over = RULES.warm_up_ticks + COMING_TICKS;
        assert!((0..over).all(|tick| rounds.wait(tick).is_none()) && rounds.phase() == Phase::WarmUp);
        assert_eq!(rounds.wait(over), Some(Change::GoHome));
        assert_eq!((rounds.advance(over + 1_000_000, &RULES), rounds.winner()), (None, None));
    }

    #[test]
    fn without_a_phase_to_buy_a_round_is_played_at_once() {
        let rules = MatchRules { buy_ticks: 0, ..RULES };
        let mut rounds = Rounds::new(0, 0, &rules);
        assert_eq!(rounds.advance(5, &rules), Some(Change::RoundBegins { is_new_half: true }));
        assert_eq!(rounds.phase(), Phase::Live);
    }

    #[test]
    fn a_match_of_the_longest_settings_fits_into_its_clock() {
        let longest = DuelSettings { rounds_to_win: ROUNDS_TO_WIN_MAX, ..DuelSettings::default() }.rules();
        let rounds_max = 2 * (longest.rounds_to_win - 1) + 1;
        assert!(rounds_max < 1 << 6 && longest.half() == 29, "{rounds_max}");
    }
}
