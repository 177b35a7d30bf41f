//! Parking: plans of worlds that panicked again and again, by which none is made for a while.
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
//! A plan is the kind, the seed and the parameters, all of them: a thousand homes of one kind are a thousand plans, and
//! one player's broken home parks no other. Worlds whose seed is drawn anew each time, such as matches, are never parked;
//! there the players are told apart ([`crate::stranded`] again). Worlds that a program makes itself, between frames, are
//! not asked about.
//!
//! Frame thread; what is parked is published. Reads no clock. Bounded by [`PLANS_MAX`]; cost: nothing but in
//! frames in which a world panics or is asked for.

use serde::Serialize;
use throng_platform::time::Nanos;
use throng_world::ids::WorldKindId;

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
/// Plans that are remembered. Of more, the one that panicked longest ago is forgotten.
const PLANS_MAX: usize = 256;

/// A plan by which no world is made now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParkedPlan {
    pub kind: String,
    pub seed: u64,
    /// Panics of its worlds, each soon after the one before.
    pub panics: u32,
    /// Until worlds are made by it again (s).
    pub left_s: u64,
}

/// The plans whose worlds panicked.
#[derive(Default)]
pub(crate) struct Parking {
    plans: Vec<Remembered>,
}

struct Remembered {
    plan: NewWorld,
    panics: u32,
    panicked_at: Nanos,
    parked_until: Nanos,
}

/// What a parked plan is published as, before its kind has a name and its end is an age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parked {
    pub kind: WorldKindId,
    pub seed: u64,
    pub panics: u32,
    pub until: Nanos,
}

impl Remembered {
    fn is_parked(&self, now: Nanos) -> bool {
        now < self.parked_until
    }
}

impl Parking {
    /// Remembers that a world of this plan panicked. `Some`: the plan is parked for so long.
    pub fn panicked(&mut self, plan: &NewWorld, now: Nanos) -> Option<Nanos> {
        let index = self.plans.iter().position(|remembered| remembered.plan == *plan);
        let mut remembered = match index {
            Some(index) => self.plans.remove(index),
            None => {
                let plan = plan.clone();
                Remembered { plan, panics: 0, panicked_at: now, parked_until: Nanos::ZERO }
            }
        };
        if now.saturating_sub(remembered.panicked_at.max(remembered.parked_until)) > FORGOTTEN_AFTER {
            remembered.panics = 0;
        }
        remembered.panics += 1;
        remembered.panicked_at = now;
        let parked_for = remembered.panics.checked_sub(PANICS_UNTIL_PARKED).map(|more| {
            // Doubled so often that the maximum is reached long before.
            Nanos(PARKED_FIRST.0.saturating_mul(1 << more.min(20))).min(PARKED_MAX)
        });
        if let Some(parked_for) = parked_for {
            remembered.parked_until = now + parked_for;
        }
        if self.plans.len() == PLANS_MAX {
            // In the order of their newest panics.
            self.plans.remove(0);
        }
        self.plans.push(remembered);
        parked_for
    }

    /// For how long yet no world is made by this plan; `None`: it is not parked.
    pub fn left(&self, plan: &NewWorld, now: Nanos) -> Option<Nanos> {
        let remembered = self.plans.iter().find(|remembered| remembered.plan == *plan)?;
        remembered.is_parked(now).then(|| remembered.parked_until.saturating_sub(now))
    }

    /// Has worlds made again: of the plans of one kind, or of all. They begin anew. Returns how many there were.
    pub fn unpark(&mut self, kind: Option<WorldKindId>, now: Nanos) -> usize {
        let before = self.plans.len();
        self.plans.retain(|it| !it.is_parked(now) || kind.is_some_and(|kind| kind != it.plan.kind));
        before - self.plans.len()
    }

    /// The plans that are parked, the newest last.
    pub fn parked(&self, now: Nanos) -> impl Iterator<Item = Parked> + '_ {
        let parked = self.plans.iter().filter(move |remembered| remembered.is_parked(now));
        parked.map(|Remembered { plan, panics, parked_until, .. }| Parked {
            kind: plan.kind,
            seed: plan.seed,
            panics: *panics,
            until: *parked_until,
        })
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
            assert_eq!(parking.left(&plan(0, 7), now), parked_for);
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
        assert_eq!(parked, [Parked { kind: WorldKindId(0), seed: 7, panics: 3, until: s(61) }]);
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
}
