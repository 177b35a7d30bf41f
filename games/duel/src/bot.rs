//! The bot: a player for the swarm, made from the game's own code.
//!
//! It does what a player does, on what a player's program is told: it waits in the lobby, buys, goes to a site or holds
//! one with its team, shoots, throws, plants and defuses, and goes back to the lobby when the match is over. It has the
//! map, as every client would, and nothing else of the server's.
//!
//! ```text
//!   client --> situation --> role: what to do next --> conduct: how --> input
//!               what is told    plan, attack, defend      eyes, hand, legs
//!              20 times a second: intent             in each tick: hand, legs
//! ```
//!
//! It is a client like a player's: one input for each tick of the match, its own body [predicted](crate::prediction), others
//! where the client library draws them (`shown`). It thinks as often, but makes up its mind at a human being's pace: whom it
//! has noticed, what its team wants of it, what it throws. In between, hand and legs follow what it had in mind.
//!
//! It also holds what it is told against what must be true, and counts what is not as `violations`. Replicas that are
//! merely old or wrong are found by the client's own checks.
//!
//! Runs on one of the swarm's threads. Sketch of the cost: a thought is some 2 µs, most of it a look at a dozen replicas;
//! one in six is twice that, for lines of sight. So ten bots at 128 Hz take 3 ms of a second, and thirty matches of them a
//! tenth of a core; what the client takes for packets comes on top, and is more.

mod attack;
mod balance;
mod conduct;
mod defend;
mod eyes;
mod guide;
mod hand;
mod legs;
mod manner;
mod plan;
mod role;
mod shop;
mod shown;
mod situation;

use std::sync::Arc;

use glam::Vec3;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::{Client, peekers_advantage::Peek};
use throng_platform::time::Nanos;

use crate::{
    components::{Doing, Phase, RoundEnd},
    movement::Motion,
    prediction::Steering,
    protocol::{Blinded, Buy, Grenade, HitConfirmed, Input, Killed, Kit, MATCH, ShotFired, Terms, Throw},
    teams::{SEATS, TeamId},
};
use conduct::{Conduct, Thought};
use eyes::Target;
use hand::lob;
use legs::flat_m;
use role::{Role, Task};
use shop::Shopping;
use shown::Shown;
use situation::Situation;

pub use guide::BotGuide;
pub use manner::Manner;

/// Longest time that one thought makes up for (s).
const THOUGHT_S_MAX: f32 = 0.25;
/// Whoever has died so near (m) is avenged, for so long (ms).
const TRADE_M: f32 = 14.0;
const TRADE_MS: u64 = 2_500;
/// Between two throws (ms).
const THROW_PAUSE_MS: u64 = 1_500;
/// Who defuses goes on, whoever comes, with less time than this beside what it takes (s).
const STICK_S: f32 = 1.5;
/// From one time that it makes up its mind to the next (ms): as fast as anybody can.
const MIND_MS: u64 = 50;
/// Thoughts between two checks of what is told.
const CHECK_PERIOD: u32 = 128;
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
    inputs: u64,
    /// By how much one would see first who comes round a corner to another, both on its line and with what acks wait for;
    /// and how often that was added.
    peekers_advantage_us: u64,
    peekers_advantage_samples: u64,
}

/// What it has in mind, until it makes up its mind again.
#[derive(Debug, Clone, Copy)]
enum Intent {
    Stand,
    Fight(Target),
    Work(Task),
}

/// A simulated player.
pub struct DuelBot {
    guide: Arc<BotGuide>,
    manner: Manner,
    steering: Steering,
    shown: Shown,
    conduct: Conduct,
    role: Option<Role>,
    intent: Intent,
    next_mind_at: Nanos,
    shopping: Shopping,
    terms: Option<Terms>,
    kit: Option<Kit>,
    /// Own shots since the last thought.
    fired: u8,
    /// Of whom a shot was heard since it made up its mind, as bits by seat.
    shooters: u16,
    /// The stay, the round and the phase that it knows of, and whether it lives.
    epoch: Option<u8>,
    round: Option<u8>,
    phase: Option<Phase>,
    is_alive: bool,
    /// Where its team was, at the last thought, by seat.
    places: [Option<Vec3>; SEATS],
    /// Where somebody is to be avenged, and until when.
    trade: Option<(Vec3, Nanos)>,
    /// What it wants to throw, and where to.
    throw: Option<(Grenade, Vec3)>,
    next_throw_at: Nanos,
    /// In this round.
    may_throw: bool,
    thought_at: Option<Nanos>,
    thoughts: u32,
    bodiless_since: Option<Nanos>,
    counts: Counts,
}

impl DuelBot {
    pub fn new(guide: Arc<BotGuide>) -> Self {
        Self {
            steering: Steering::new(guide.map.clone()),
            guide,
            manner: Manner::default(),
            shown: Shown::default(),
            conduct: Conduct::default(),
            role: None,
            intent: Intent::Stand,
            next_mind_at: Nanos::ZERO,
            shopping: Shopping::default(),
            terms: None,
            kit: None,
            fired: 0,
            shooters: 0,
            epoch: None,
            round: None,
            phase: None,
            is_alive: false,
            places: [None; SEATS],
            trade: None,
            throw: None,
            next_throw_at: Nanos::ZERO,
            may_throw: true,
            thought_at: None,
            thoughts: 0,
            bodiless_since: None,
            counts: Counts::default(),
        }
    }

    /// The same bot, which plays in this manner.
    #[must_use]
    pub fn with_manner(mut self, manner: Manner) -> Self {
        self.manner = manner;
        self
    }

    /// Takes what it is told in words. Those of a match it may hear before it has seen anything of it.
    fn listen(&mut self, now: Nanos, client: &Client) {
        for message in client.messages() {
            if let Some(kit) = message.read::<Kit>() {
                self.fired = self.fired.saturating_add(shots_between(self.kit.as_ref(), &kit));
                self.kit = Some(kit);
            } else if let Some(terms) = message.read::<Terms>() {
                self.terms = Some(terms);
            } else if let Some(Blinded { for_ms }) = message.read() {
                self.conduct.eyes.blind(now + Nanos::from_millis(for_ms.into()));
            }
        }
    }

    /// Notices another match, another round, another phase, another life.
    fn follow(&mut self, now: Nanos, epoch: u8, situation: &Situation, rng: &mut Xoshiro256PlusPlus) {
        let clock = situation.clock;
        if self.epoch != Some(epoch) {
            (self.epoch, self.round, self.phase) = (Some(epoch), None, None);
            self.counts.matches += 1;
            self.conduct.begin_match();
            self.steering.left_world();
        }
        if self.round != Some(clock.round) {
            self.round = Some(clock.round);
            self.role = Some(Role::of(now, situation, &self.guide, rng));
            self.shopping = Shopping::default();
            self.may_throw = self.manner.throws(rng);
            (self.trade, self.places, self.shooters, self.next_throw_at) = (None, [None; SEATS], 0, now);
            self.conduct.begin_round();
            self.shown.forget();
            self.is_alive = false;
        }
        if self.is_alive && !situation.is_alive() {
            self.steering.die();
        }
        if self.is_alive != situation.is_alive() || self.phase != Some(clock.phase) {
            (self.intent, self.throw, self.next_mind_at) = (Intent::Stand, None, now);
        }
        self.is_alive = situation.is_alive();
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

    /// Where it is, after all that it has sent; where it lies, if it is dead.
    fn feel(&mut self, now: Nanos, client: &Client, situation: &Situation) -> Motion {
        let lying = Motion::standing(situation.me().feet);
        if !self.is_alive {
            return lying;
        }
        self.steering.hear(now, client);
        self.steering.motion().unwrap_or(lying)
    }

    /// What happened since the last thought.
    fn notice(&mut self, now: Nanos, client: &Client, situation: &Situation) {
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
        client.events_of::<ShotFired>().for_each(|ShotFired { seat, .. }| self.shooters |= 1 << seat);
        self.places = [None; SEATS];
        situation.team_alive().for_each(|(seat, body)| self.places[usize::from(seat)] = Some(body.feet));
    }

    /// What its player is to do now.
    fn act(&mut self, thought: &Thought, motion: Motion, client: &mut Client, rng: &mut Xoshiro256PlusPlus) -> Input {
        let fired = std::mem::take(&mut self.fired);
        self.counts.shots += u64::from(fired);
        self.conduct.feel(thought, motion, fired);
        match thought.situation.clock.phase {
            _ if !self.is_alive => self.conduct.stand(),
            Phase::Buy => {
                self.shop(thought, client, rng);
                self.wait(thought, rng)
            }
            Phase::Live | Phase::Planted => self.play(thought, client, rng),
            Phase::WarmUp | Phase::Over | Phase::MatchOver => self.conduct.stand(),
        }
    }

    /// Passes the time until the base may be left.
    fn wait(&mut self, thought: &Thought, rng: &mut Xoshiro256PlusPlus) -> Input {
        let situation = thought.situation;
        match thought.guide.map.zone(situation.clock.phase, situation.side) {
            Some(home) => self.conduct.stroll(thought, home, rng),
            None => self.conduct.stand(),
        }
    }

    fn shop(&mut self, thought: &Thought, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let Some(kit) = &self.kit else { return };
        let item = self.shopping.next(thought.now, kit, thought.situation.condition.armour, rng);
        // A request that is refused because the queue is full is made again the next time.
        self.counts.bought += u64::from(item.is_some_and(|item| client.request(&Buy { item }).is_ok()));
    }

    fn play(&mut self, thought: &Thought, client: &mut Client, rng: &mut Xoshiro256PlusPlus) -> Input {
        if thought.now >= self.next_mind_at {
            self.next_mind_at = (self.next_mind_at + Nanos::from_millis(MIND_MS)).max(thought.now);
            self.make_up_mind(thought, rng);
            self.shooters = 0;
        }
        match self.intent {
            Intent::Stand => self.conduct.stand(),
            Intent::Fight(target) => self.conduct.fight(thought, &target.drawn_in(thought.situation), rng),
            Intent::Work(task) => {
                self.conduct.aim_throw(self.throw.map(|(_, at)| lob(at - self.conduct.eye())));
                let input = self.conduct.work(thought, task, rng);
                if let Some((grenade, _)) = self.throw.filter(|_| self.conduct.is_throw_aimed()) {
                    self.throw = None;
                    self.next_throw_at = thought.now + Nanos::from_millis(THROW_PAUSE_MS);
                    self.counts.thrown += u64::from(client.request(&Throw { grenade }).is_ok());
                }
                input
            }
        }
    }

    /// Looks about, and decides what to do until the next time.
    fn make_up_mind(&mut self, thought: &Thought, rng: &mut Xoshiro256PlusPlus) {
        let Thought { now, situation, guide, .. } = *thought;
        let target = self.conduct.look(thought, rng);
        (self.intent, self.throw) = (Intent::Stand, None);
        let Some(role) = &mut self.role else { return };
        let task = role.task(now, situation, guide, rng);
        match target {
            Some(target) if !sticks_to(task, situation, &target) => self.intent = Intent::Fight(target),
            _ if self.conduct.eyes.is_blind(now) => {}
            _ => {
                self.throw = self.throw_wanted(thought);
                self.intent = Intent::Work(self.avenge(now, situation, task));
            }
        }
    }

    /// What it wants to throw, and where to.
    fn throw_wanted(&self, thought: &Thought) -> Option<(Grenade, Vec3)> {
        let may_throw = self.may_throw && thought.now >= self.next_throw_at;
        let (role, kit) = (self.role.as_ref()?, self.kit.filter(|_| may_throw)?);
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

    /// Sends the input as often as one is due: once in most thoughts.
    fn send(&mut self, now: Nanos, due: u32, input: &Input, situation: &Situation, client: &mut Client) {
        for _ in 0..due {
            // Refused between two worlds, when there is nobody to move.
            let Ok(number) = client.send_input(now, input) else { return };
            self.steering.apply(number, input, situation.clock.phase, situation.side);
            self.counts.inputs += 1;
        }
    }

    /// Once in a while it holds what it is told against what must be, and asks how its line is.
    fn check(&mut self, client: &Client, situation: &Situation) {
        self.thoughts = self.thoughts.wrapping_add(1);
        if !self.thoughts.is_multiple_of(CHECK_PERIOD) {
            return;
        }
        self.counts.violations += situation.violations(&self.guide.map);
        if let Some((rtt, delay)) = client.rtt().zip(client.interpolation_delay()) {
            let advantage = Peek::even(rtt, situation.tick_hz, delay).advantage();
            self.counts.peekers_advantage_us += advantage.mean.as_micros();
            self.counts.peekers_advantage_samples += 1;
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
        // Asked in any case: what was due while there was nobody to move is not due later.
        let due = client.due_inputs(now);
        self.listen(now, client);
        let drawn = self.shown.look(now, client);
        let situation = self.terms.and_then(|terms| Situation::of(client, &drawn, &terms));
        let epoch = client.world().map(|world| world.epoch);
        let (Some(mut situation), Some(epoch)) = (situation, epoch) else {
            self.note_bodiless(now, client);
            return;
        };
        self.bodiless_since = None;
        self.follow(now, epoch, &situation, rng);
        let motion = self.feel(now, client, &situation);
        situation.stand_at(motion.at);
        self.notice(now, client, &situation);
        situation.shooters = self.shooters;
        let (guide, kit, manner, dt_s) = (self.guide.clone(), self.kit, self.manner, dt_s.clamp(0.0, THOUGHT_S_MAX));
        let thought = Thought { now, dt_s, situation: &situation, guide: &guide, kit, manner };
        let input = self.act(&thought, motion, client, rng);
        self.send(now, due, &input, &situation, client);
        self.check(client, &situation);
    }

    fn counters(&self) -> BehaviourCounters {
        let (Counts { ends, .. }, corrections) = (self.counts, self.steering.corrections());
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
            .with("violations", self.counts.violations)
            .with("inputs", self.counts.inputs)
            .with("predictions_checked", corrections.checks)
            .with("corrections", corrections.count)
            .with("corrected_cm_max", (corrections.largest_m * 100.0).round() as u64)
            .with("peekers_advantage_us", self.counts.peekers_advantage_us)
            .with("peekers_advantage_samples", self.counts.peekers_advantage_samples);
        names.into_iter().zip(ends).fold(counters, |counters, (name, total)| counters.with(name, total))
    }
}

/// How many shots were fired from what one had to what one has: each takes a round, and nothing else does.
fn shots_between(before: Option<&Kit>, kit: &Kit) -> u8 {
    let same = before.filter(|before| before.weapon == kit.weapon);
    same.map_or(0, |before| before.rounds.saturating_sub(kit.rounds))
}

/// Whether it goes on with its task although somebody is in sight: the spike would explode otherwise.
fn sticks_to(task: Task, situation: &Situation, target: &Target) -> bool {
    let is_at_work = situation.me().arms.doing == Doing::Defusing;
    let is_late = situation.left_s() < situation.defuse_s + STICK_S;
    matches!(task, Task::Defuse(_)) && is_at_work && (is_late || target.distance_m > 20.0)
}

#[cfg(test)]
mod tests;
