//! The bot: a player for the swarm, made from the game's own code.
//!
//! It does what a player does, on what a player's program is told: it waits in the lobby, buys, goes to a site or holds
//! one with its team, shoots, throws, plants and defuses, and goes back to the lobby when the match is over. It has the
//! map, as every client would, and nothing else of the server's.
//!
//! ```text
//!   client --> situation --> role: what to do next --> conduct: how --> input
//!               what is told    plan, attack, defend      eyes, hand, legs
//! ```
//!
//! It also holds what it is told against what must be true, and counts what is not as `violations`. Replicas that are
//! merely old or wrong are found by the client's own checks.
//!
//! Runs on one of the swarm's threads. Sketch of the cost: about 10 µs a thought, most of it lines of sight and
//! steps ahead.

mod attack;
mod balance;
mod conduct;
mod defend;
mod eyes;
mod guide;
mod hand;
mod legs;
mod plan;
mod role;
mod shop;
mod situation;

use std::sync::Arc;

use glam::Vec3;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_platform::time::Nanos;

use crate::{
    components::{Doing, Phase, RoundEnd},
    protocol::{Blinded, Buy, Grenade, HitConfirmed, Input, Killed, Kit, MATCH, Throw},
    teams::{SEATS, TeamId},
};
use conduct::{Conduct, Thought};
use eyes::Target;
use hand::lob;
use legs::flat_m;
use role::{Role, Task};
use shop::Shopping;
use situation::Situation;

pub use guide::BotGuide;

/// Longest time that one thought makes up for (s).
const THOUGHT_S_MAX: f32 = 0.25;
/// Whoever has died so near (m) is avenged, for so long (ms).
const TRADE_M: f32 = 14.0;
const TRADE_MS: u64 = 2_500;
/// Between two throws (ms).
const THROW_PAUSE_MS: u64 = 1_500;
/// Who defuses goes on, whoever comes, with less time than this beside what it takes (s).
const STICK_S: f32 = 1.5;
/// Thoughts between two checks of what is told.
const CHECK_PERIOD: u32 = 32;
/// In a match without a player for so long something is wrong (s).
const BODILESS_S: u64 = 5;

/// Totals of one bot, for the swarm's report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    matches: u64,
    rounds: u64,
    /// Of these, by how they ended, in the order of [`RoundEnd::ALL`].
    ends: [u64; RoundEnd::ALL.len()],
    shots: u64,
    hits: u64,
    kills: u64,
    deaths: u64,
    bought: u64,
    thrown: u64,
    violations: u64,
}

/// A simulated player.
pub struct DuelBot {
    guide: Arc<BotGuide>,
    conduct: Conduct,
    role: Option<Role>,
    shopping: Shopping,
    kit: Option<Kit>,
    /// The stay, the round and the phase that it knows of.
    epoch: Option<u8>,
    round: Option<u8>,
    phase: Option<Phase>,
    /// Where its team was, at the last thought, by seat.
    places: [Option<Vec3>; SEATS],
    /// Where somebody is to be avenged, and until when.
    trade: Option<(Vec3, Nanos)>,
    next_throw_at: Nanos,
    thought_at: Option<Nanos>,
    thoughts: u32,
    bodiless_since: Option<Nanos>,
    counts: Counts,
}

impl DuelBot {
    pub fn new(guide: Arc<BotGuide>) -> Self {
        Self {
            guide,
            conduct: Conduct::default(),
            role: None,
            shopping: Shopping::default(),
            kit: None,
            epoch: None,
            round: None,
            phase: None,
            places: [None; SEATS],
            trade: None,
            next_throw_at: Nanos::ZERO,
            thought_at: None,
            thoughts: 0,
            bodiless_since: None,
            counts: Counts::default(),
        }
    }

    /// Notices another match, another round, another phase.
    fn follow(&mut self, thought: &Thought, epoch: u8, rng: &mut Xoshiro256PlusPlus) {
        let Thought { now, situation, guide, .. } = *thought;
        let clock = situation.clock;
        if self.epoch != Some(epoch) {
            (self.epoch, self.round, self.phase, self.kit) = (Some(epoch), None, None, None);
            self.counts.matches += 1;
            self.conduct.begin_match(situation);
        }
        if self.round != Some(clock.round) {
            self.round = Some(clock.round);
            self.role = Some(Role::of(now, situation, guide, rng));
            self.shopping = Shopping::default();
            (self.trade, self.places, self.next_throw_at) = (None, [None; SEATS], now);
            self.conduct.begin_round();
        }
        if self.phase != Some(clock.phase) {
            self.phase = Some(clock.phase);
            match (clock.phase, &mut self.role, situation.score.last_end) {
                (Phase::Live, Some(role), _) => role.begin(now),
                (Phase::Over, _, Some(end)) => {
                    self.counts.rounds += 1;
                    self.counts.ends[end as usize] += 1;
                }
                _ => {}
            }
        }
    }

    /// What it is told beside the replicas.
    fn hear(&mut self, now: Nanos, client: &Client, situation: &Situation) {
        for message in client.messages() {
            if let Some(kit) = message.read::<Kit>() {
                self.kit = Some(kit);
            } else if let Some(Blinded { for_ms }) = message.read() {
                self.conduct.eyes.blind(now + Nanos::from_millis(for_ms.into()));
            }
        }
        self.counts.hits += client.events_of::<HitConfirmed>().count() as u64;
        for Killed { seat, by, .. } in client.events_of::<Killed>() {
            self.counts.kills += u64::from(by == Some(situation.seat));
            self.counts.deaths += u64::from(seat == situation.seat);
            let fell_at = self.places.get(usize::from(seat)).copied().flatten();
            let is_mate = seat != situation.seat && TeamId::of_seat(seat) == situation.team;
            let is_near = |place: &Vec3| is_mate && flat_m(*place, situation.me().feet) < TRADE_M;
            if let Some(place) = fell_at.filter(is_near) {
                self.trade = Some((place, now + Nanos::from_millis(TRADE_MS)));
            }
        }
        self.places = [None; SEATS];
        situation.team_alive().for_each(|(seat, body)| self.places[usize::from(seat)] = Some(body.feet));
    }

    /// What its player is to do now.
    fn act(&mut self, thought: &Thought, client: &mut Client, rng: &mut Xoshiro256PlusPlus) -> Input {
        let ahead_ticks = ticks_ahead(client, thought.situation);
        self.counts.shots += u64::from(self.conduct.feel(thought, ahead_ticks));
        match thought.situation.clock.phase {
            _ if !thought.situation.vitals.is_alive => self.conduct.stand(),
            Phase::Buy => {
                self.shop(thought, client, rng);
                self.conduct.stand()
            }
            Phase::Live | Phase::Planted => self.play(thought, client, rng),
            Phase::WarmUp | Phase::Over | Phase::MatchOver => self.conduct.stand(),
        }
    }

    fn shop(&mut self, thought: &Thought, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let Some(kit) = &self.kit else { return };
        let item = self.shopping.next(thought.now, kit, thought.situation.vitals.armour, rng);
        // A request that is refused because the queue is full is made again the next time.
        self.counts.bought += u64::from(item.is_some_and(|item| client.request(&Buy { item }).is_ok()));
    }

    fn play(&mut self, thought: &Thought, client: &mut Client, rng: &mut Xoshiro256PlusPlus) -> Input {
        let Thought { now, situation, guide, .. } = *thought;
        let target = self.conduct.look(thought, rng);
        let Some(role) = &mut self.role else { return self.conduct.stand() };
        let task = role.task(now, situation, guide, rng);
        match target {
            Some(target) if !sticks_to(task, situation, guide, &target) => self.conduct.fight(thought, &target, rng),
            _ if self.conduct.eyes.is_blind(now) => self.conduct.stand(),
            _ => {
                let throw = self.throw(thought);
                self.conduct.aim_throw(throw.map(|(_, at)| lob(at - self.conduct.eye())));
                let task = self.avenge(now, situation, task);
                let input = self.conduct.work(thought, task, rng);
                if let Some((grenade, _)) = throw.filter(|_| self.conduct.is_throw_aimed()) {
                    self.next_throw_at = now + Nanos::from_millis(THROW_PAUSE_MS);
                    self.counts.thrown += u64::from(client.request(&Throw { grenade }).is_ok());
                }
                input
            }
        }
    }

    /// What it wants to throw, and where to.
    fn throw(&self, thought: &Thought) -> Option<(Grenade, Vec3)> {
        let (role, kit) = (self.role.as_ref()?, self.kit.filter(|_| thought.now >= self.next_throw_at)?);
        let has = |grenade| match grenade {
            Grenade::Smoke => kit.smokes > 0,
            Grenade::Flash => kit.flashes > 0,
        };
        role.throw(thought.situation, thought.guide, has)
    }

    /// Where somebody of the team has just died near by one goes at once, unless there is something better to do.
    fn avenge(&self, now: Nanos, situation: &Situation, task: Task) -> Task {
        let is_free = matches!(task, Task::Go(_) | Task::Hold(_)) && !situation.carries_spike();
        match self.trade {
            Some((place, until)) if is_free && now < until => Task::Go(place),
            _ => task,
        }
    }

    /// In a match one has a player.
    fn note_bodiless(&mut self, now: Nanos, client: &Client) {
        if client.world().is_none_or(|world| world.name != MATCH) {
            self.bodiless_since = None;
            return;
        }
        let since = *self.bodiless_since.get_or_insert(now);
        if now.saturating_sub(since) > Nanos::from_secs(BODILESS_S) {
            self.bodiless_since = Some(now);
            self.counts.violations += 1;
        }
    }
}

impl Behaviour for DuelBot {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let dt_s = now.saturating_sub(self.thought_at.replace(now).unwrap_or(now)).as_secs_f64() as f32;
        let epoch = client.world().map(|world| world.epoch);
        let (Some(situation), Some(epoch)) = (Situation::of(client), epoch) else {
            self.note_bodiless(now, client);
            return;
        };
        self.bodiless_since = None;
        let guide = self.guide.clone();
        let dt_s = dt_s.clamp(0.0, THOUGHT_S_MAX);
        let thought = Thought { now, dt_s, situation: &situation, guide: &guide };
        self.follow(&thought, epoch, rng);
        self.hear(now, client, &situation);
        let input = self.act(&thought, client, rng);
        // Refused between two worlds, when there is nobody to move.
        let _ = client.send_input(now, &input);
        self.thoughts = self.thoughts.wrapping_add(1);
        if self.thoughts.is_multiple_of(CHECK_PERIOD) {
            self.counts.violations += situation.violations(&guide.map);
        }
    }

    fn counters(&self) -> BehaviourCounters {
        let Counts { ends, .. } = self.counts;
        let names =
            ["attackers_eliminated", "defenders_eliminated", "spikes_exploded", "spikes_defused", "times_run_out"];
        let counters = BehaviourCounters::new()
            .with("matches", self.counts.matches)
            .with("rounds", self.counts.rounds)
            .with("shots", self.counts.shots)
            .with("hits", self.counts.hits)
            .with("kills", self.counts.kills)
            .with("deaths", self.counts.deaths)
            .with("bought", self.counts.bought)
            .with("thrown", self.counts.thrown)
            .with("violations", self.counts.violations);
        names.into_iter().zip(ends).fold(counters, |counters, (name, total)| counters.with(name, total))
    }
}

/// Ticks until what it does now is done: a round trip, and one to wait for.
fn ticks_ahead(client: &Client, situation: &Situation) -> u32 {
    let rtt_s = client.rtt().unwrap_or_default().as_secs_f64() as f32;
    (rtt_s * f32::from(situation.tick_hz)).round() as u32 + 1
}

/// Whether it goes on with its task although somebody is in sight: the spike would explode otherwise.
fn sticks_to(task: Task, situation: &Situation, guide: &BotGuide, target: &Target) -> bool {
    let is_at_work = situation.me().arms.doing == Doing::Defusing;
    let is_late = situation.left_s() < guide.defuse_s + STICK_S;
    matches!(task, Task::Defuse(_)) && is_at_work && (is_late || target.distance_m > 20.0)
}

#[cfg(test)]
mod tests;
