//! Wanderer: how a bot plays in a district.
//!
//! It runs in one direction, turns when it gets nowhere, and then throws a charge at what stopped it. Without a map: what it
//! walks on is the server's affair, and the ground before it may have come only now.

use std::f32::consts::TAU;

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::habits::{Bodiless, Progress, once_in};
use throng_client::Client;
use throng_platform::time::Nanos;

use super::{body::FarPose, level::HALF_SIDE_M};
use crate::{
    components::{Action, HEALTH_MAX, Vitals},
    protocol::Input,
};

/// Thoughts without getting anywhere after which it turns.
const STUCK_THOUGHTS: u32 = 15;
/// Thoughts for which it steps back from what it has thrown.
const BACK_THOUGHTS: u32 = 50;
/// Seconds between two charges that it throws for no reason, on average.
const THROW_S: f32 = 25.0;
/// How far outside the level a place may be by rounding. (m)
const BOUNDS_SLACK_M: f32 = 0.1;

/// What it has in mind, and what it has counted.
#[derive(Debug, Default)]
pub struct Wanderer {
    heading: f32,
    backs_off: u32,
    progress: Progress,
    bodiless: Bodiless,
    last: Option<[f32; 2]>,
    throws_seen: u8,
    was_alive: bool,
    pub charges: u64,
    pub deaths: u64,
    pub metres: f64,
    pub violations: u64,
}

impl Wanderer {
    /// One thought. `think_hz` times a second.
    pub fn think(&mut self, now: Nanos, client: &mut Client, think_hz: f32, rng: &mut Xoshiro256PlusPlus) {
        let replicas = client.replicas();
        let own = client.own_entity().and_then(|own| {
            Some((*replicas.get::<FarPose>(own)?, *replicas.get::<Vitals>(own)?, replicas.get::<Action>(own).copied()))
        });
        let Some((pose, vitals, action)) = own else {
            self.violations += u64::from(self.bodiless.another_thought());
            return;
        };
        self.bodiless.forget();
        self.check(client);
        self.note(&pose, &vitals, action);
        let mut fires = once_in(THROW_S, think_hz, rng);
        self.backs_off = self.backs_off.saturating_sub(1);
        if vitals.alive && self.progress.note([pose.x, pose.z]) >= STUCK_THOUGHTS {
            fires = rng.random_bool(0.5);
            self.progress.forget();
            if fires {
                self.backs_off = BACK_THOUGHTS;
            } else {
                self.heading = rng.random_range(0.0..TAU);
            }
        }
        let away = if self.backs_off > 0 && !fires { TAU / 2.0 } else { 0.0 };
        let (sin, cos) = (self.heading + away).sin_cos();
        let input = Input::new([sin, cos], self.heading, 0.0, fires && vitals.alive, true);
        // Refused between two worlds, when there is nobody to move.
        let _ = client.send_input(now, &input);
    }

    fn note(&mut self, pose: &FarPose, vitals: &Vitals, action: Option<Action>) {
        let place = [pose.x, pose.z];
        if let Some([x, z]) = self.last.filter(|_| vitals.alive && self.was_alive) {
            self.metres += f64::from((x - pose.x).hypot(z - pose.z));
        }
        self.last = Some(place);
        self.deaths += u64::from(self.was_alive && !vitals.alive);
        self.was_alive = vitals.alive;
        if let Some(Action { count, .. }) = action {
            self.charges += u64::from(count.wrapping_sub(self.throws_seen) & 63);
            self.throws_seen = count;
        }
    }

    /// Holds what the server says against what must be true.
    fn check(&mut self, client: &Client) {
        let replicas = client.replicas();
        let side_m = HALF_SIDE_M + BOUNDS_SLACK_M;
        let is_outside = |pose: &FarPose| pose.x.abs() > side_m || pose.z.abs() > side_m;
        let outside = replicas.iter::<FarPose>().filter(|(_, pose)| is_outside(pose)).count();
        let unwell = replicas.iter::<Vitals>().filter(|(_, vitals)| vitals.health > HEALTH_MAX).count();
        self.violations += (outside + unwell) as u64;
    }
}
