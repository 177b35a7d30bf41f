//! Parking: plans of worlds by which none is made for a while.
//!
//! A world that panicked is made anew by its game, and its players go on there ([`crate::stranded`]). If the fault lies in
//! what it is made from, a level or a save, the fresh one panics too: a world per second is made and lost, its players
//! see a stutter without end, and the log fills. So what a world was made from, its plan, is remembered when it panics.
//! From the third time on, each no more than ten minutes after the one before, its plan is parked: whoever asks for such
//! a world is told [`WorldError::Parked`] and may place its players elsewhere; a directory that cannot refuses them.
//!
//! ```text
//! panic   1       2       3             4             5             ...
//!         made anew       parked 60 s   parked 120 s  parked 240 s  ... 3,600 s at most
//! ```
//!
//! A world that took the whole server along is a culprit: the next server parks its plan from its start on, for as long as
//! after so many panics more ([`Culprit`]). One that is saved, and whose load ended two servers or panicked at the start, is
//! parked until an operator ends that: its record does not change by itself. And an operator parks worlds that misbehave, one or all of a kind, until somebody
//! ends that. What becomes of the worlds themselves is in [`crate::parked_worlds`].
//!
//! A plan is the kind, the seed and the parameters, all of them: a thousand homes of one kind are a thousand plans, and
//! one player's broken home parks no other. Worlds whose seed is drawn anew each time, such as matches, are never parked
//! by panics; there the players are told apart ([`crate::stranded`] again).
//!
//! Frame thread; what is parked is published. Reads no clock. Bounded by [`PLANS_MAX`]; cost: nothing but in
//! frames in which a world panics or is asked for.

use std::time::Duration;

use serde::Serialize;
use throng_platform::time::Nanos;
use throng_world::ids::{WorldId, WorldKindId};

use crate::lifecycle::NewWorld;
#[cfg(doc)]
use crate::lifecycle::WorldError;

/// A world may fail twice by chance, as a player's may (`stranded::WORLDS_LOST_MAX`).
const PANICS_UNTIL_PARKED: u32 = 3;
/// The first time. Long enough that nobody waits for it, short enough for a fault that time heals.
const PARKED_FIRST: Nanos = Nanos::from_secs(60);
const PARKED_MAX: Nanos = Nanos::from_secs(3_600);
/// A plan whose worlds have run for this long begins anew.
const FORGOTTEN_AFTER: Nanos = Nanos::from_secs(600);
/// Plans that are remembered. Of more, the one that failed longest ago is forgotten, of those that no operator parked.
const PLANS_MAX: usize = 256;
/// Until somebody ends it.
const FOR_EVER: Nanos = Nanos::MAX;

/// Why no world is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ParkedFor {
    /// Worlds made by this plan panicked again and again.
    Panics,
    /// One of them ended the whole server.
    Death,
    /// To load what is saved of it ended the whole server, or panicked.
    Load,
    /// An operator said so.
    Operator,
}

/// A plan by which no world is made now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParkedPlan {
    pub kind: String,
    /// `None`: whatever the seed, all worlds of this kind.
    pub seed: Option<u64>,
    /// The world that was made by it, where that is known.
    pub world: Option<String>,
    pub why: ParkedFor,
    /// Panics of its worlds, or deaths by them, each soon after the one before.
    pub times: u32,
    /// Until worlds are made by it again (s); `None`: until somebody says so.
    pub left_s: Option<u64>,
}

/// A world that a server died of, by the report of that death.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprit {
    /// The name of its kind.
    pub kind: String,
    pub seed: u64,
    /// See [`NewWorld::digest`].
    pub plan: u64,
    /// The place of a world that the program makes itself and knows by it: such a one may have another seed each time.
    pub place: Option<WorldId>,
    /// Of which it was the culprit.
    pub deaths: u32,
}

impl Culprit {
    /// For how long its plan is parked.
    pub(crate) fn parked_for(&self) -> Nanos {
        parked_for(self.deaths.saturating_sub(1))
    }
}

/// Which worlds are parked, or no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    World(WorldId),
    Kind(String),
}

impl Which {
    /// A world as `world.list` shows it, such as `7` or `7.2`; else a kind.
    pub fn named(text: &str) -> Self {
        let (index, generation) = text.split_once('.').unwrap_or((text, "0"));
        match (index.parse(), generation.parse()) {
            (Ok(index), Ok(generation)) => Self::World(WorldId::new(index, generation)),
            _ => Self::Kind(text.to_owned()),
        }
    }
}

/// The plans whose worlds failed, and what an operator parked.
#[derive(Default)]
pub(crate) struct Parking {
    plans: Vec<Remembered>,
    /// Kinds of which no world is made, until somebody says so.
    kinds: Vec<WorldKindId>,
}

struct Remembered {
    plan: NewWorld,
    world: Option<WorldId>,
    why: ParkedFor,
    times: u32,
    failed_at: Nanos,
    parked_until: Nanos,
}

/// What a parked plan is published as, before its kind has a name and its end is an age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parked {
    pub kind: WorldKindId,
    pub seed: Option<u64>,
    pub world: Option<WorldId>,
    pub why: ParkedFor,
    pub times: u32,
    pub until: Nanos,
}

impl Parked {
    /// As it is told to whoever asks; `None`: it is over.
    pub fn told(&self, kind: String, now: Nanos) -> Option<ParkedPlan> {
        let left = self.until.saturating_sub(now);
        if left == Nanos::ZERO {
            return None;
        }
        Some(ParkedPlan {
            kind,
            seed: self.seed,
            world: self.world.map(|world| world.to_string()),
            why: self.why,
            times: self.times,
            left_s: (self.until < FOR_EVER).then(|| left.as_secs_f64().ceil() as u64),
        })
    }
}

impl Remembered {
    fn is_parked(&self, now: Nanos) -> bool {
        now < self.parked_until
    }
}

/// Doubled so often.
fn parked_for(doublings: u32) -> Nanos {
    // The maximum is reached long before 20.
    Nanos(PARKED_FIRST.0.saturating_mul(1 << doublings.min(20))).min(PARKED_MAX)
}

impl Parking {
    /// Remembers that a world of this plan panicked. `Some`: the plan is parked for so long.
    pub fn panicked(&mut self, plan: &NewWorld, now: Nanos) -> Option<Nanos> {
        let mut remembered = self.take(plan, now);
        if now.saturating_sub(remembered.failed_at.max(remembered.parked_until)) > FORGOTTEN_AFTER {
            remembered.times = 0;
        }
        remembered.why = ParkedFor::Panics;
        remembered.times += 1;
        remembered.failed_at = now;
        let parked_for = remembered.times.checked_sub(PANICS_UNTIL_PARKED).map(parked_for);
        if let Some(parked_for) = parked_for {
            remembered.parked_until = now + parked_for;
        }
        self.remember(remembered);
        parked_for
    }

    /// Parks the plan of a culprit, until then.
    pub fn park_culprit(&mut self, plan: &NewWorld, deaths: u32, world: Option<WorldId>, (now, until): (Nanos, Nanos)) {
        let before = self.take(plan, now);
        let (why, times) = (ParkedFor::Death, deaths);
        self.remember(Remembered { world, why, times, failed_at: now, parked_until: until, ..before });
    }

    /// Parks the plan of a world whose load failed so often, until somebody ends that: the record is the same the next time.
    pub fn park_load(&mut self, plan: &NewWorld, failures: u32, world: Option<WorldId>, now: Nanos) {
        let before = self.take(plan, now);
        let (why, times) = (ParkedFor::Load, failures);
        self.remember(Remembered { world, why, times, failed_at: now, parked_until: FOR_EVER, ..before });
    }

    /// Parks the plan of a world until somebody ends that.
    pub fn park(&mut self, plan: &NewWorld, world: WorldId, now: Nanos) {
        let before = self.take(plan, now);
        let (world, why) = (Some(world), ParkedFor::Operator);
        self.remember(Remembered { world, why, parked_until: FOR_EVER, ..before });
    }

    /// Has no worlds of this kind made until somebody ends that.
    pub fn park_kind(&mut self, kind: WorldKindId) {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
    }

    fn take(&mut self, plan: &NewWorld, now: Nanos) -> Remembered {
        match self.plans.iter().position(|remembered| remembered.plan == *plan) {
            Some(index) => self.plans.remove(index),
            None => Remembered {
                plan: plan.clone(),
                world: None,
                why: ParkedFor::Panics,
                times: 0,
                failed_at: now,
                parked_until: Nanos::ZERO,
            },
        }
    }

    /// In the order of their newest failures.
    fn remember(&mut self, remembered: Remembered) {
        if self.plans.len() == PLANS_MAX {
            let oldest = self.plans.iter().position(|remembered| remembered.parked_until < FOR_EVER);
            self.plans.remove(oldest.unwrap_or_default());
        }
        self.plans.push(remembered);
    }

    /// For how long yet no world is made by this plan; `None`: it is not parked.
    pub fn left(&self, plan: &NewWorld, now: Nanos) -> Option<Left> {
        if self.kinds.contains(&plan.kind) {
            return Some(Left::ForEver);
        }
        let remembered = self.plans.iter().find(|remembered| remembered.plan == *plan)?;
        remembered.is_parked(now).then(|| match remembered.parked_until {
            FOR_EVER => Left::ForEver,
            until => Left::For(until.saturating_sub(now)),
        })
    }

    /// Has worlds made again: of the plans of one kind, or of all. They begin anew. Returns how many there were.
    pub fn unpark(&mut self, kind: Option<WorldKindId>, now: Nanos) -> usize {
        let before = self.plans.len() + self.kinds.len();
        self.plans.retain(|it| !it.is_parked(now) || kind.is_some_and(|kind| kind != it.plan.kind));
        self.kinds.retain(|it| kind.is_some_and(|kind| kind != *it));
        before - self.plans.len() - self.kinds.len()
    }

    /// The same for the plan of one world.
    pub fn unpark_world(&mut self, world: WorldId, now: Nanos) -> usize {
        let before = self.plans.len();
        self.plans.retain(|it| !it.is_parked(now) || it.world != Some(world));
        before - self.plans.len()
    }

    /// What is parked: kinds first, then plans, the newest last.
    pub fn parked(&self, now: Nanos) -> impl Iterator<Item = Parked> + '_ {
        let kinds = self.kinds.iter().map(|&kind| Parked {
            kind,
            seed: None,
            world: None,
            why: ParkedFor::Operator,
            times: 0,
            until: FOR_EVER,
        });
        let plans = self.plans.iter().filter(move |remembered| remembered.is_parked(now));
        let plans = plans.map(|Remembered { plan, world, why, times, parked_until, .. }| Parked {
            kind: plan.kind,
            seed: Some(plan.seed),
            world: *world,
            why: *why,
            times: *times,
            until: *parked_until,
        });
        kinds.chain(plans)
    }
}

/// Until a plan is parked no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    For(Nanos),
    /// Until somebody says so.
    ForEver,
}

impl Left {
    /// Rounded up (s).
    pub fn seconds(self) -> Option<u64> {
        match self {
            Self::For(left) => Some(Duration::from(left).as_secs_f64().ceil() as u64),
            Self::ForEver => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(kind: u16, seed: u64) -> NewWorld {
        NewWorld::new(WorldKindId(kind), seed)
    }

    const fn s(seconds: u64) -> Nanos {
        Nanos::from_secs(seconds)
    }

    #[test]
    fn the_third_panic_parks_and_each_further_one_for_longer() {
        let (mut parking, mut now, mut parked_s) = (Parking::default(), s(5), Vec::new());
        for _ in 0..12 {
            let parked_for = parking.panicked(&plan(0, 7), now);
            parked_s.push(parked_for.map_or(0, |nanos| nanos.0 / 1_000_000_000));
            assert_eq!(parking.left(&plan(0, 7), now), parked_for.map(Left::For));
            now = now + parked_for.unwrap_or_default() + s(1);
            assert_eq!(parking.left(&plan(0, 7), now), None, "its time is over");
        }
        assert_eq!(parked_s, [0, 0, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600, 3_600]);
    }

    #[test]
    fn one_plan_parks_no_other() {
        let mut parking = Parking::default();
        (0..3).for_each(|_| _ = parking.panicked(&plan(0, 7), s(1)));
        let others = [plan(0, 8), plan(1, 7), NewWorld { parameters: Some(vec![1]), ..plan(0, 7) }];
        assert!(parking.left(&plan(0, 7), s(1)).is_some());
        assert!(others.iter().all(|other| parking.left(other, s(1)).is_none()));
        let parked: Vec<_> = parking.parked(s(1)).collect();
        assert_eq!((parked.len(), parked[0].seed, parked[0].times, parked[0].until), (1, Some(7), 3, s(61)));
        assert_eq!(parking.parked(s(61)).count(), 0);
    }

    #[test]
    fn a_plan_whose_worlds_run_for_long_begins_anew() {
        let mut parking = Parking::default();
        for hour in 0..100 {
            assert_eq!(parking.panicked(&plan(0, 7), s(3_600 * hour)), None, "seldom");
        }
        // Time that it was parked is no time that it ran.
        (0..3).for_each(|_| _ = parking.panicked(&plan(0, 8), s(10)));
        assert_eq!(parking.panicked(&plan(0, 8), s(10 + 60 + 600)), Some(s(120)));
        assert_eq!(parking.panicked(&plan(0, 8), s(10 + 60 + 600 + 120 + 601)), None);
    }

    #[test]
    fn an_operator_has_worlds_made_again() {
        let mut parking = Parking::default();
        for plan in [plan(0, 1), plan(0, 2), plan(1, 1)] {
            (0..3).for_each(|_| _ = parking.panicked(&plan, s(1)));
        }
        assert_eq!((parking.unpark(Some(WorldKindId(0)), s(2)), parking.parked(s(2)).count()), (2, 1));
        assert_eq!(parking.panicked(&plan(0, 1), s(3)), None, "its panics are forgotten");
        assert_eq!((parking.unpark(None, s(2)), parking.unpark(None, s(2))), (1, 0));
    }

    #[test]
    fn no_more_plans_are_remembered_than_the_maximum() {
        let mut parking = Parking::default();
        for seed in 0..10 * PLANS_MAX as u64 {
            (0..3).for_each(|_| _ = parking.panicked(&plan(0, seed), s(1)));
            assert!(parking.left(&plan(0, seed), s(1)).is_some(), "the newest is kept");
        }
        assert_eq!(parking.parked(s(1)).count(), PLANS_MAX);
    }

    #[test]
    fn what_an_operator_parks_stays_so_until_somebody_ends_it() {
        let (mut parking, world) = (Parking::default(), WorldId::new(4, 2));
        let ages = Nanos::from_secs(1 << 32);
        parking.park(&plan(0, 7), world, s(1));
        assert_eq!(parking.left(&plan(0, 7), ages), Some(Left::ForEver));
        // A thousand others fail, and none of them takes its place.
        (0..1_000).for_each(|seed| _ = parking.panicked(&plan(1, seed), s(2)));
        assert_eq!(parking.unpark_world(WorldId::new(4, 1), s(3)), 0, "another world, which had that place before");
        let told = parking.parked(s(3)).next().and_then(|parked| parked.told("cellar".to_owned(), s(3))).expect("one");
        assert_eq!((told.world.as_deref(), told.left_s, told.why), (Some("4.2"), None, ParkedFor::Operator));
        assert_eq!((parking.unpark_world(world, s(3)), parking.left(&plan(0, 7), s(3))), (1, None));

        parking.park_kind(WorldKindId(0));
        parking.park_kind(WorldKindId(0));
        assert_eq!(parking.left(&plan(0, 99), ages), Some(Left::ForEver), "whatever the plan");
        assert_eq!((parking.left(&plan(1, 99), ages), parking.parked(ages).count()), (None, 1));
        assert_eq!((parking.unpark(Some(WorldKindId(0)), ages), parking.left(&plan(0, 99), ages)), (1, None));
    }

    #[test]
    fn a_culprit_is_parked_for_longer_with_each_death() {
        let parked_s = |deaths| {
            let culprit = Culprit { kind: "cellar".into(), seed: 7, plan: 1, place: None, deaths };
            culprit.parked_for().0 / 1_000_000_000
        };
        assert_eq!([0, 1, 2, 3, 10, u32::MAX].map(parked_s), [60, 60, 120, 240, 3_600, 3_600]);
        let mut parking = Parking::default();
        parking.park_culprit(&plan(0, 7), 2, None, (s(5), s(125)));
        assert_eq!(parking.left(&plan(0, 7), s(6)), Some(Left::For(s(119))));
        assert_eq!(parking.left(&plan(0, 7), s(125)), None);
    }

    #[test]
    fn a_world_is_named_by_its_id_and_a_kind_by_its_name() {
        let world = |index, generation| Which::World(WorldId::new(index, generation));
        assert_eq!(
            ["7", "7.2", "hub", "x.1"].map(Which::named),
            [world(7, 0), world(7, 2), Which::Kind("hub".into()), Which::Kind("x.1".into())]
        );
    }
}
