//! Eyes: whom a bot has noticed, out of those that it is told of.
//!
//! A client is told of an enemy a moment before it can be seen, so that nobody pops in. A bot asks for itself: the map and
//! the smoke must leave a line from its eyes, and the enemy must be where it looks, or so near that it is heard. Then it
//! takes a human being's time until it knows, 150 to 300 ms; whoever was lost for a moment only is known at once.
//!
//! Sketch of the cost: two lines of sight for each enemy told, about 1 µs.

use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::time::Nanos;

use super::{
    guide::BotGuide,
    hand::turn_between,
    situation::{Body, Situation},
};
use crate::teams::SEATS;

/// From an enemy in view until one knows of it (ms).
pub const REACTION_MS: [u64; 2] = [150, 300];
/// How much one time differs from another of the same bot (ms).
const REACTION_JITTER_MS: u64 = 30;
/// Who was out of sight for less than this is still expected (ms).
const EXPECTED_MS: u64 = 300;
/// How long the place is remembered where one was seen (ms).
const MEMORY_MS: u64 = 4_000;
/// Half the angle that is looked at (rad).
const HALF_VIEW_RAD: f32 = 0.9;
/// So near somebody is heard who is not looked at (m).
const HEARING_M: f32 = 7.0;
/// Above the feet: what is aimed at, and what is seen of who stands behind something low (m).
const CHEST_M: f32 = 1.2;
const HEAD_M: f32 = 1.62;

/// An enemy that is noticed and in sight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    pub seat: u8,
    pub feet: Vec3,
    pub distance_m: f32,
    /// What can be hit of it.
    pub shows_chest: bool,
}

impl Target {
    /// The same, where it is drawn by now; where it was, if it is out of sight.
    pub fn drawn_in(self, situation: &Situation) -> Self {
        let body = situation.bodies.get(usize::from(self.seat)).copied().flatten();
        body.map_or(self, |Body { feet, .. }| Self { feet, distance_m: feet.distance(situation.me().feet), ..self })
    }

    /// What one shoots at, if it is the head that is wanted or all that there is.
    pub fn aim(&self, head_is_wanted: bool) -> Vec3 {
        let height_m = if head_is_wanted || !self.shows_chest { HEAD_M } else { CHEST_M };
        self.feet + Vec3::Y * height_m
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Sighting {
    /// When it is noticed, while it is in sight.
    noticed_at: Option<Nanos>,
    /// When and where it was in sight last, and known.
    last: Option<(Nanos, Vec3)>,
}

/// What one bot has seen.
pub struct Eyes {
    /// How long it usually takes (ms); drawn with the first look.
    reaction_ms: Option<u64>,
    sightings: [Sighting; SEATS],
    blind_until: Nanos,
    /// The enemy that it keeps to.
    kept: Option<u8>,
    pairs: Vec<(Vec3, Vec3)>,
    free: Vec<bool>,
}

impl Default for Eyes {
    fn default() -> Self {
        Self {
            reaction_ms: None,
            sightings: [Sighting::default(); SEATS],
            blind_until: Nanos::ZERO,
            kept: None,
            pairs: Vec::with_capacity(SEATS),
            free: Vec::with_capacity(SEATS),
        }
    }
}

impl Eyes {
    /// Another round: nobody has been seen.
    pub fn forget(&mut self) {
        (self.sightings, self.kept, self.blind_until) = ([Sighting::default(); SEATS], None, Nanos::ZERO);
    }

    pub fn is_blind(&self, now: Nanos) -> bool {
        now < self.blind_until
    }

    pub fn blind(&mut self, until: Nanos) {
        self.blind_until = self.blind_until.max(until);
    }

    /// Looks along `yaw` from `eye`: whom it has noticed and sees. It keeps to whom it had, or takes the nearest.
    pub fn look(
        &mut self,
        now: Nanos,
        situation: &Situation,
        (eye, yaw): (Vec3, f32),
        guide: &BotGuide,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Option<Target> {
        let [quickest, slowest] = REACTION_MS;
        let usual_ms = *self.reaction_ms.get_or_insert_with(|| rng.random_range(quickest..=slowest));
        self.cast(situation, eye, guide);
        let (mut shown, mut best): (u16, Option<Target>) = (0, None);
        for (index, (seat, body)) in situation.enemies().enumerate() {
            let (chest, head) = (self.free[2 * index], self.free[2 * index + 1]);
            let distance_m = body.feet.distance(eye);
            let way = body.feet - eye;
            let is_in_view = turn_between(yaw, way.x.atan2(way.z)).abs() < HALF_VIEW_RAD || distance_m < HEARING_M;
            if !(chest || head) || !is_in_view || self.is_blind(now) {
                continue;
            }
            shown |= 1 << seat;
            let sighting = &mut self.sightings[usize::from(seat)];
            let is_expected = |(at, _): (Nanos, Vec3)| now.saturating_sub(at) < Nanos::from_millis(EXPECTED_MS);
            let expected = sighting.last.is_some_and(is_expected);
            let noticed_at = *sighting.noticed_at.get_or_insert_with(|| {
                let jitter_ms = rng.random_range(0..=2 * REACTION_JITTER_MS);
                let after_ms = (usual_ms + jitter_ms).saturating_sub(REACTION_JITTER_MS).clamp(quickest, slowest);
                if expected { now } else { now + Nanos::from_millis(after_ms) }
            });
            if now < noticed_at {
                continue;
            }
            sighting.last = Some((now, body.feet));
            let is_better = |best: Target| self.kept != Some(best.seat) && distance_m < best.distance_m;
            if self.kept == Some(seat) || best.is_none_or(is_better) {
                best = Some(Target { seat, feet: body.feet, distance_m, shows_chest: chest });
            }
        }
        let hidden = self.sightings.iter_mut().enumerate().filter(|(seat, _)| shown >> seat & 1 == 0);
        hidden.for_each(|(_, sighting)| sighting.noticed_at = None);
        self.kept = best.map(|target| target.seat);
        best
    }

    /// Fills `free`: for each enemy told whether its chest and whether its head can be seen.
    fn cast(&mut self, situation: &Situation, eye: Vec3, guide: &BotGuide) {
        self.pairs.clear();
        for (_, body) in situation.enemies() {
            self.pairs.extend([CHEST_M, HEAD_M].map(|height_m| (eye, body.feet + Vec3::Y * height_m)));
        }
        guide.free_lines(&self.pairs, &situation.clouds.clouds, &mut self.free);
    }

    /// Where an enemy was last, that is remembered and may still live; the one seen last.
    pub fn remembered(&self, now: Nanos, alive: u16) -> Option<Vec3> {
        let living = self.sightings.iter().enumerate().filter(|(seat, _)| alive >> seat & 1 == 1);
        let remembered = living.filter_map(|(_, sighting)| sighting.last);
        let (at, place) = remembered.max_by_key(|(at, _)| *at)?;
        (now.saturating_sub(at) < Nanos::from_millis(MEMORY_MS)).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::{components::Cloud, map::layout::middle_of};

    /// One looks east along the long way, and an enemy stands there.
    fn situation() -> Situation {
        Situation::with(&[(0, middle_of(12, 4)), (5, middle_of(20, 4))])
    }

    const EAST: f32 = std::f32::consts::FRAC_PI_2;

    /// When somebody is noticed who is in view from 0 on (ms); `None`: not within a second.
    fn noticed_ms(eyes: &mut Eyes, situation: &Situation, yaw: f32, seed: u64) -> Option<u64> {
        let (guide, rng) = (BotGuide::load(), &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let eye = situation.me().feet + Vec3::Y * 1.65;
        (0..1_000).find(|ms| eyes.look(Nanos::from_millis(*ms), situation, (eye, yaw), &guide, rng).is_some())
    }

    #[test]
    fn it_takes_a_human_beings_time_to_notice_somebody() {
        let times: Vec<u64> = (0..50)
            .map(|seed| noticed_ms(&mut Eyes::default(), &situation(), EAST, seed).expect("it is in view"))
            .collect();
        assert!(times.iter().all(|ms| (REACTION_MS[0]..=REACTION_MS[1]).contains(ms)), "{times:?}");
        assert!(times.iter().max() > times.iter().min().map(|ms| ms + 80).as_ref(), "they differ: {times:?}");
    }

    #[test]
    fn nobody_is_noticed_behind_one_or_in_smoke_or_while_one_is_blind() {
        assert_eq!(noticed_ms(&mut Eyes::default(), &situation(), -EAST, 1), None);
        let mut smoke = situation();
        let Vec3 { x, z, .. } = middle_of(16, 4);
        smoke.clouds.clouds.push(Cloud { x, z, until_tick: 9 });
        assert_eq!(noticed_ms(&mut Eyes::default(), &smoke, EAST, 1), None);
        let mut eyes = Eyes::default();
        eyes.blind(Nanos::from_millis(600));
        assert!(noticed_ms(&mut eyes, &situation(), EAST, 1).is_some_and(|ms| ms >= 600 + REACTION_MS[0]));
    }

    #[test]
    fn who_was_seen_is_remembered_for_a_while_unless_it_dies() {
        let mut eyes = Eyes::default();
        let ms = noticed_ms(&mut eyes, &situation(), EAST, 1).expect("it is in view");
        let (seen, gone) = (Nanos::from_millis(ms + 100), Nanos::from_millis(ms + MEMORY_MS + 1));
        assert_eq!(eyes.remembered(seen, 1 << 5), Some(middle_of(20, 4)));
        assert_eq!((eyes.remembered(seen, 1), eyes.remembered(gone, 1 << 5)), (None, None));
    }
}
