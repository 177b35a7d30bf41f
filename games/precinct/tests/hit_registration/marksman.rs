//! A marksman: draws the target as a player's program does, and fires when its shot cannot miss what it draws.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use glam::Vec3;
use precinct::{
    bot::drawn::Drawn,
    components::{BODY_HEIGHT_M, BODY_RADIUS_M, CHEST, Character, EYE, Pose},
    protocol::Input,
    shots::direction_of,
    travel::PLAYER_WEAPON,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::Behaviour;
use throng_client::Client;
use throng_platform::time::Nanos;
use throng_query::{
    casts::Ray,
    limbs::{Limbs, cast_ray_at_limbs},
};
use throng_rewind::view_time::ViewTime;

use crate::range::{TICKS_PER_S, marksman_at};

/// How long the clocks of clients take to settle.
pub const SETTLES_S: f64 = 6.0;
/// Ticks in the world until a marksman fires: a second less than that, for coming in.
const SETTLED_TICKS: u32 = 5 * TICKS_PER_S as u32;
/// How far a shot strays to the side, for each metre that it goes: by the weapon's spread along each of three axes, at
/// worst with a direction that is as much shorter.
const STRAY_M_PER_M: f32 = 1.08 * 1.732 * PLAYER_WEAPON.traits().spread_rad;
/// What the wire's steps may be wrong by. (m)
const WIRE_M: f32 = 0.02;

/// What all marksmen have shown as hits: who, at which moment, and where the target was drawn.
#[derive(Default)]
pub struct Showing(Mutex<HashMap<(usize, ViewTime), Vec3>>);

impl Showing {
    /// Where the target was drawn, if a hit was shown at this moment.
    pub fn hit_at(&self, marksman: usize, at: ViewTime) -> Option<Vec3> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(marksman, at)).copied()
    }

    fn show(&self, marksman: usize, at: ViewTime, drawn: Vec3) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((marksman, at), drawn);
    }
}

pub struct Marksman {
    drawn: Drawn,
    showing: Arc<Showing>,
}

impl Marksman {
    pub fn new(showing: Arc<Showing>) -> Self {
        Self { drawn: Drawn::default(), showing }
    }
}

impl Behaviour for Marksman {
    fn think(&mut self, now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
        // As much as the game's own bots.
        client.set_interpolation_delay(Nanos(1_000_000_000 / u64::from(TICKS_PER_S)));
        let (Some((feet, target)), Some(world)) = (own_and_target(client), client.world()) else { return };
        let is_settled = client.newest_tick() > world.entered_tick + SETTLED_TICKS;
        self.drawn.note(client.newest_tick(), target);
        let Some(seen) = client.seen(now) else { return };
        let Some(drawn) = self.drawn.at(seen) else { return };
        let way = drawn + CHEST - (feet + EYE);
        let aimed = Input::new([0.0, 0.0], way.x.atan2(way.z), way.y.atan2(way.x.hypot(way.z)), true, false);
        let is_hit = is_settled && cannot_miss(feet, &aimed, drawn);
        if is_hit {
            let (tick, part) = seen.moment();
            self.showing.show(marksman_at(feet), ViewTime::new(tick, part), drawn);
        }
        let input = if is_hit { aimed } else { Input::default() };
        let _ = client.send_input(now, &input);
    }
}

/// Where its own player stands, and where it was told last that the target is.
fn own_and_target(client: &Client) -> Option<(Vec3, Vec3)> {
    let replicas = client.replicas();
    let own = replicas.get::<Pose>(client.own_entity()?)?;
    let (target, _) = replicas.iter::<Character>().find(|(_, character)| character.npc)?;
    Some((own.feet(), replicas.get::<Pose>(target)?.feet()))
}

/// Whether a shot meets the body that is drawn there, however the hand strays.
fn cannot_miss(feet: Vec3, aimed: &Input, drawn: Vec3) -> bool {
    let origin = feet + EYE;
    let ray = Ray { origin, direction: direction_of(aimed.yaw(), aimed.pitch()), distance_m_max: 20.0 };
    let radius_m = BODY_RADIUS_M - WIRE_M - STRAY_M_PER_M * origin.distance(drawn + CHEST);
    if radius_m <= 0.0 {
        return false;
    }
    let (from, to) = (drawn + Vec3::Y * BODY_RADIUS_M, drawn + Vec3::Y * (BODY_HEIGHT_M - BODY_RADIUS_M));
    let body = Limbs { from: &[from], to: &[to], radius_m: &[radius_m] };
    cast_ray_at_limbs(&ray, &body).is_some()
}
