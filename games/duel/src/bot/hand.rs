//! The hand: turns a bot's view and pulls its trigger, as unsteadily as a human being's.
//!
//! It turns fast towards what is far aside and slower the nearer it comes. Whoever is new to it is missed by a few degrees
//! at first, and by less and less the longer it stays on the same enemy; a tremor is left that never ends. It believes to
//! be on target when it is where it wants to be, error included, and then shoots: in bursts, shorter ones the farther the
//! target is. Of what a weapon climbs in a burst it takes back most.
//!
//! By the seconds that have passed, not by thoughts: a bot that thinks more often shoots no better.

use std::f32::consts::{PI, TAU};

use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::eyes::Target;
use crate::{
    movement::GRAVITY_M_PER_S2,
    throwing::THROW_M_PER_S,
    weapons::{WeaponKind, recoil_rad},
};

/// Part of the angle left that a second takes, as an exponent.
const TURN_PER_S: f32 = 14.0;
/// Fastest turn (rad/s).
const TURN_RAD_PER_S_MAX: f32 = 9.0;
/// By how much a new target is missed (rad, standard deviation along each axis).
const FIRST_ERROR_RAD: f32 = 0.07;
/// In so long the error narrows to 1/e (s).
const NARROW_S: f32 = 0.3;
/// What is left of it for good (rad, standard deviation), and how long a tremor lasts (s).
const TREMOR_RAD: f32 = 0.009;
const TREMOR_S: f32 = 0.18;
/// Nearer than this to where it wants to be it believes to be on target (rad).
const SETTLED_RAD: f32 = 0.03;
/// How often the head is aimed at.
const HEAD_SHARE: f64 = 0.3;
/// Of the climb of a burst so much is taken back.
const CLIMB_TAKEN_BACK: f32 = 0.75;
/// After so long without a shot a burst is over (s).
const BURST_OVER_S: f32 = 0.35;

/// By how much to turn from one angle to the other, the shorter way (rad, -pi to pi).
pub fn turn_between(from: f32, to: f32) -> f32 {
    (to - from + PI).rem_euclid(TAU) - PI
}

/// One hand.
#[derive(Debug, Clone, Default)]
pub struct Hand {
    pub yaw: f32,
    pub pitch: f32,
    target: Option<u8>,
    head_is_wanted: bool,
    /// To the right and up (rad).
    error: [f32; 2],
    tremor: [f32; 2],
    burst: u8,
    idle_s: f32,
}

impl Hand {
    /// Notes how many shots were fired since the last thought.
    pub fn feel(&mut self, fired: u8, dt_s: f32) {
        if fired > 0 {
            (self.burst, self.idle_s) = (self.burst.saturating_add(fired), 0.0);
        } else {
            self.idle_s += dt_s;
            if self.idle_s > BURST_OVER_S {
                self.burst = 0;
            }
        }
    }

    /// Another match, other hands.
    pub fn forget(&mut self) {
        *self = Self { yaw: self.yaw, pitch: self.pitch, ..Self::default() };
    }

    /// Whether it has fired all that it fires in one go at somebody so far away, and lets the weapon come down.
    pub fn is_spent(&self, distance_m: f32) -> bool {
        self.burst >= burst_max(distance_m)
    }

    /// Looks there, with nobody to shoot at. Whether it is there.
    pub fn look_at(&mut self, eye: Vec3, at: Vec3, dt_s: f32) -> bool {
        let (yaw, pitch) = angles(at - eye);
        self.look(yaw, pitch, dt_s)
    }

    /// Turns to these angles. Whether it is there.
    pub fn look(&mut self, yaw: f32, pitch: f32, dt_s: f32) -> bool {
        self.target = None;
        self.turn(yaw, pitch, dt_s)
    }

    /// Follows a target, and misses it by so many times what a hand misses by. Whether the trigger is to be pulled.
    pub fn aim(
        &mut self,
        eye: Vec3,
        target: &Target,
        weapon: WeaponKind,
        miss: f32,
        dt_s: f32,
        rng: &mut Xoshiro256PlusPlus,
    ) -> bool {
        if self.target != Some(target.seat) {
            self.target = Some(target.seat);
            self.head_is_wanted = rng.random_bool(HEAD_SHARE);
            self.error = [0.0; 2].map(|_: f32| FIRST_ERROR_RAD * gauss(rng));
        }
        let (narrow, steady) = ((-dt_s / NARROW_S).exp(), (-dt_s / TREMOR_S).exp());
        self.error = self.error.map(|error| error * narrow);
        // So that its deviation is the same however often one thinks.
        let shake = TREMOR_RAD * (1.0 - steady * steady).max(0.0).sqrt();
        self.tremor = self.tremor.map(|tremor| tremor * steady + shake * gauss(rng));
        let (yaw, pitch) = angles(target.aim(self.head_is_wanted) - eye);
        let climb = recoil_rad(weapon, self.burst)[1] * CLIMB_TAKEN_BACK;
        let [right, up] = [0, 1].map(|axis| miss * (self.error[axis] + self.tremor[axis]));
        let is_settled = self.turn(yaw + right, pitch + up - climb, dt_s);
        is_settled && !self.is_spent(target.distance_m)
    }

    fn turn(&mut self, yaw: f32, pitch: f32, dt_s: f32) -> bool {
        let (right, up) = (turn_between(self.yaw, yaw), pitch - self.pitch);
        let (part, most) = (1.0 - (-dt_s * TURN_PER_S).exp(), TURN_RAD_PER_S_MAX * dt_s);
        let turned = [right, up].map(|angle| (angle * part).clamp(-most, most));
        self.yaw = (self.yaw + turned[0]).rem_euclid(TAU);
        self.pitch = (self.pitch + turned[1]).clamp(-1.5, 1.5);
        (right - turned[0]).hypot(up - turned[1]) < SETTLED_RAD
    }
}

/// Shots of a burst at somebody who is so far away.
fn burst_max(distance_m: f32) -> u8 {
    match distance_m {
        near if near < 8.0 => 20,
        middling if middling < 16.0 => 8,
        _ => 4,
    }
}

/// Yaw and pitch of a way.
pub fn angles(way: Vec3) -> (f32, f32) {
    (way.x.atan2(way.z), way.y.atan2(way.x.hypot(way.z)))
}

/// Yaw and pitch of a throw that comes down about so far away.
pub fn lob(way: Vec3) -> (f32, f32) {
    let reach = way.x.hypot(way.z) * GRAVITY_M_PER_S2 / (THROW_M_PER_S * THROW_M_PER_S);
    (way.x.atan2(way.z), reach.min(1.0).asin() / 2.0)
}

/// By chance, with a deviation of 1: near enough to a bell, and never farther than 3.
fn gauss(rng: &mut Xoshiro256PlusPlus) -> f32 {
    (0..3).map(|_| rng.random_range(-1.0..1.0_f32)).sum()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::protocol::direction_of;

    const DT_S: f32 = 0.05;
    const EYE: Vec3 = Vec3::new(0.0, 1.65, 0.0);

    fn target(feet: Vec3) -> Target {
        Target { seat: 5, feet, distance_m: feet.length(), shows_chest: true }
    }

    /// How far it is off its target in each thought, on average over many hands (rad).
    fn mean_errors(thoughts: usize) -> Vec<f32> {
        let (hands, target) = (400, target(Vec3::new(5.0, 0.0, 15.0)));
        let mut sums = vec![0.0; thoughts];
        for seed in 0..hands {
            let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut hand = Hand::default();
            for sum in &mut sums {
                hand.aim(EYE, &target, WeaponKind::Rifle, 1.0, DT_S, rng);
                let (yaw, pitch) = angles(target.aim(hand.head_is_wanted) - EYE);
                *sum += turn_between(hand.yaw, yaw).hypot(hand.pitch - pitch);
            }
        }
        sums.iter().map(|sum| sum / hands as f32).collect()
    }

    #[test]
    fn aim_narrows_and_is_never_perfect() {
        let errors = mean_errors(60);
        assert!(errors[4] > 0.025, "after a quarter of a second: {errors:?}");
        let late = errors[40..].iter().sum::<f32>() / 20.0;
        assert!((0.004..0.02).contains(&late), "after two seconds: {late}");
    }

    #[test]
    fn who_thinks_more_often_aims_no_better() {
        let spread = |dt_s: f32, thoughts: usize| {
            let rng = &mut Xoshiro256PlusPlus::seed_from_u64(1);
            let (mut hand, target) = (Hand::default(), target(Vec3::Z * 20.0));
            let mut squares = 0.0;
            for _ in 0..thoughts {
                hand.aim(EYE, &target, WeaponKind::Rifle, 1.0, dt_s, rng);
                squares += hand.tremor[0] * hand.tremor[0];
            }
            (squares / thoughts as f32).sqrt()
        };
        let (often, seldom) = (spread(1.0 / 128.0, 100_000), spread(1.0 / 20.0, 20_000));
        assert!((often / seldom - 1.0).abs() < 0.1, "{often} and {seldom} rad");
    }

    #[test]
    fn angles_turn_the_shorter_way() {
        assert!((turn_between(0.1, TAU - 0.1) + 0.2).abs() < 1e-5);
        assert!((turn_between(TAU - 0.1, 0.1) - 0.2).abs() < 1e-5);
        let mut hand = Hand { yaw: 0.1, ..Hand::default() };
        (0..40).for_each(|_| _ = hand.look(TAU - 0.1, 0.0, DT_S));
        assert!(turn_between(hand.yaw, TAU - 0.1).abs() < 0.01, "{}", hand.yaw);
    }

    #[test]
    fn a_throw_comes_down_where_it_is_wanted() {
        for far_m in [4.0, 9.0, 15.0] {
            let (yaw, pitch) = lob(Vec3::new(far_m, 0.0, 0.0));
            let velocity = direction_of(yaw, pitch) * THROW_M_PER_S;
            let flight_s = 2.0 * velocity.y / GRAVITY_M_PER_S2;
            assert!((velocity.x * flight_s - far_m).abs() < 0.01 && velocity.z.abs() < 0.01, "{far_m} m: {velocity}");
        }
    }

    #[test]
    fn bursts_end_and_begin_again() {
        let (rng, far) = (&mut Xoshiro256PlusPlus::seed_from_u64(2), target(Vec3::Z * 25.0));
        let mut hand = Hand::default();
        let mut pulls = |hand: &mut Hand| (0..40).any(|_| hand.aim(EYE, &far, WeaponKind::Rifle, 1.0, DT_S, rng));
        assert!(pulls(&mut hand));
        hand.feel(4, DT_S);
        assert!(!pulls(&mut hand), "four shots are enough at this distance");
        (0..8).for_each(|_| hand.feel(0, DT_S));
        assert!(pulls(&mut hand));
    }
}
