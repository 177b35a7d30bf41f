//! Throwing: smokes and flashes, from the hand until they burst.
//!
//! A hand that works at the spike or loads a weapon throws nothing, and one that has thrown takes [`PAUSE_MS`] for the
//! next. A grenade flies along the view, falls, and stays where it meets a wall, a crate, the ground or the edge of the
//! map, over whose walls nothing flies. When its time is over
//! a smoke becomes a cloud, and a flash blinds everybody who sees it and looks its way: the farther and the more aside,
//! the shorter. Who is blind is told of no enemy ([`crate::sight`]), whatever its client draws.
//!
//! All that fly are cast in one batch against the level. Sketch of the cost: next to nothing while nothing flies, and
//! 0.4 µs for each that does. Allocates nothing: there is room for as many as ten players can carry.

use glam::Vec3;
use throng::prelude::*;
use throng_query::casts::{CastHit, Ray, cast_rays, lines_of_sight};
use throng_replication::table_resource;

use crate::{
    components::{Cloud, Player, Pose, Vitals},
    economy::{GRENADES_MAX, Purse},
    movement::{GRAVITY_M_PER_S2, Motion},
    protocol::{Bang, Grenade, TICK_HZ, Throw, direction_of},
    rounds::Rounds,
    scene::Scene,
    seats::Senses,
    smoke::{Smoke, is_on_line},
    spike::SpikeState,
    teams::SEATS,
    weapons::{Weapon, ticks_of},
};

/// How fast a grenade leaves the hand (m/s).
pub const THROW_M_PER_S: f32 = 14.0;
/// From one throw of a player to its next (ms).
pub const PAUSE_MS: u32 = 700;
/// From the throw to the burst (ms).
const SMOKE_FUSE_MS: u32 = 1_200;
const FLASH_FUSE_MS: u32 = 800;
/// How long a cloud stays (ms).
const CLOUD_MS: u32 = 15_000;
/// A flash farther away blinds nobody (m).
const FLASH_M: f32 = 25.0;
/// Longest that a flash blinds (ms).
const BLIND_MS: f32 = 1_800.0;
/// Cosine of the angle from the middle of the view beyond which a flash is not seen: 75 degrees.
const ASIDE_COS: f32 = 0.26;
/// What rests keeps so far from what it rests at (m).
const REST_M: f32 = 0.05;
/// Grenades in the air at once, at most: all that everybody can carry. One more is not thrown.
const FLYING_MAX: usize = SEATS * 2 * GRENADES_MAX as usize;

#[derive(Pack, Debug, Clone, Copy)]
#[pack(name = "duel.flying")]
struct Flying {
    grenade: Grenade,
    #[pack(via = [f32; 3])]
    at: Vec3,
    /// m/s; nothing once it rests.
    #[pack(via = [f32; 3])]
    velocity: Vec3,
    bursts_tick: u32,
}

/// What is in the air, who may throw again when, and room to cast in.
pub struct Thrown {
    flying: Vec<Flying>,
    /// Nobody throws before this tick, by seat.
    throws_from_tick: [u32; SEATS],
    rays: Vec<Ray>,
    hits: Vec<Option<CastHit>>,
    /// From the eye of who may be blinded to the flash.
    lines: Vec<(Vec3, Vec3)>,
    seen: Vec<bool>,
}

table_resource!(Thrown);

impl StateHash for Thrown {
    fn hash_state(&self, hasher: &mut StateHasher) {
        // Of the rest nothing is left from one tick to the next.
        let Self { flying, throws_from_tick, rays: _, hits: _, lines: _, seen: _ } = self;
        hasher.write_u64(flying.len() as u64);
        for Flying { grenade, at, velocity, bursts_tick } in flying {
            hasher.write_u64((*grenade as u64) << 32 | u64::from(*bursts_tick));
            at.to_array().into_iter().chain(velocity.to_array()).for_each(|number| hasher.write_f32(number));
        }
        throws_from_tick.iter().for_each(|tick| hasher.write_u64((*tick).into()));
    }
}

impl Default for Thrown {
    fn default() -> Self {
        Self {
            flying: Vec::with_capacity(FLYING_MAX),
            throws_from_tick: [0; SEATS],
            rays: Vec::with_capacity(FLYING_MAX),
            hits: Vec::with_capacity(FLYING_MAX),
            lines: Vec::with_capacity(SEATS),
            seen: Vec::with_capacity(SEATS),
        }
    }
}

/// What is in the air, as it is packed.
#[derive(Pack, Debug, Clone)]
#[pack(name = "duel.thrown")]
pub struct SavedThrown {
    flying: ArrayVec<Flying, FLYING_MAX>,
    throws_from_tick: [u32; SEATS],
}

impl Thrown {
    pub fn save(&self) -> SavedThrown {
        SavedThrown {
            flying: self.flying.iter().copied().take(FLYING_MAX).collect(),
            throws_from_tick: self.throws_from_tick,
        }
    }

    pub fn load(&mut self, saved: SavedThrown) {
        self.flying.clear();
        self.flying.extend(saved.flying);
        self.throws_from_tick = saved.throws_from_tick;
    }

    /// Nothing is in the air any more.
    pub fn clear(&mut self) {
        self.flying.clear();
    }

    /// Moves everything by a tick, each until it meets something.
    fn fly(&mut self, scene: &Scene, dt_s: f32) {
        let Self { flying, rays, hits, .. } = self;
        rays.clear();
        // One that rests is a ray without a length, which no cast answers.
        rays.extend(flying.iter().map(|one| Ray::between(one.at, one.at + one.velocity * dt_s)));
        cast_rays(&scene.map.geometry, rays, hits);
        let bounds = &scene.map.bounds;
        let (west_south, east_north) = (bounds.min + Vec3::splat(REST_M), bounds.max - Vec3::splat(REST_M));
        for (one, hit) in flying.iter_mut().zip(hits.iter()) {
            let end = one.at + one.velocity * dt_s;
            match hit {
                Some(CastHit { point, normal, .. }) => {
                    (one.at, one.velocity) = (*point + *normal * REST_M, Vec3::ZERO);
                }
                None if end.y <= REST_M => (one.at, one.velocity) = (end.with_y(REST_M), Vec3::ZERO),
                None if one.velocity != Vec3::ZERO => {
                    let inside = end.clamp(west_south, east_north).with_y(end.y);
                    if inside != end {
                        (one.at, one.velocity) = (inside, Vec3::ZERO);
                        continue;
                    }
                    one.at = end;
                    one.velocity.y -= GRAVITY_M_PER_S2 * dt_s;
                }
                None => {}
            }
        }
    }
}

/// Whether there is anything for the systems below.
pub fn something_flies(thrown: Res<Thrown>) -> bool {
    !thrown.flying.is_empty()
}

/// Whether there is smoke.
pub fn there_is_smoke(smoke: Res<Smoke>) -> bool {
    !smoke.clouds.is_empty()
}

/// Of a player: what a throw reads and writes.
type Thrower = (&'static Player, &'static Vitals, &'static Weapon, &'static Motion, &'static Pose, &'static mut Purse);

/// Grenades leave hands, while a round is played.
pub fn throw(
    asked: Requests<Throw>,
    tick: Res<TickInfo>,
    rounds: Res<Rounds>,
    spike_state: Res<SpikeState>,
    mut thrown: ResMut<Thrown>,
    mut players: Query<Thrower>,
) {
    for (sender, Throw { grenade }) in asked.read() {
        let Some(Ok((player, vitals, weapon, motion, pose, mut purse))) = sender.entity.map(|own| players.get_mut(own))
        else {
            continue;
        };
        let seat = usize::from(player.seat);
        let has_hand_free = !spike_state.is_worked_by(player.seat)
            && !weapon.is_loading(tick.tick)
            && tick.tick >= thrown.throws_from_tick[seat];
        let is_played = rounds.phase().is_live() && thrown.flying.len() < FLYING_MAX;
        let is_able = vitals.is_alive && has_hand_free && is_played;
        let left = match grenade {
            Grenade::Smoke => purse.smokes,
            Grenade::Flash => purse.flashes,
        };
        if !is_able || left == 0 {
            continue;
        }
        let fuse_ms = match grenade {
            Grenade::Smoke => {
                purse.smokes -= 1;
                SMOKE_FUSE_MS
            }
            Grenade::Flash => {
                purse.flashes -= 1;
                FLASH_FUSE_MS
            }
        };
        let velocity = direction_of(pose.yaw, pose.pitch) * THROW_M_PER_S;
        let bursts_tick = tick.tick + ticks_of(fuse_ms, TICK_HZ);
        thrown.throws_from_tick[seat] = tick.tick + ticks_of(PAUSE_MS, TICK_HZ);
        thrown.flying.push(Flying { grenade: *grenade, at: motion.eye(), velocity, bursts_tick });
        count!("grenades");
    }
}

/// What flies goes on, and smokes whose time is over become clouds.
pub fn fly(tick: Res<TickInfo>, scene: Res<Scene>, mut thrown: ResMut<Thrown>, mut smoke: ResMut<Smoke>) {
    thrown.fly(&scene, tick.dt_s);
    thrown.flying.retain(|one| {
        let is_due = one.grenade == Grenade::Smoke && tick.tick >= one.bursts_tick;
        if is_due {
            smoke.add(Cloud { x: one.at.x, z: one.at.z, until_tick: tick.tick + ticks_of(CLOUD_MS, TICK_HZ) });
        }
        !is_due
    });
}

/// Flashes whose time is over blind who sees them.
pub fn burst(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    smoke: Res<Smoke>,
    mut thrown: ResMut<Thrown>,
    mut events: ResMut<Events>,
    mut players: Query<(&Vitals, &Motion, &Pose, &mut Senses)>,
) {
    let Thrown { flying, lines, seen, .. } = &mut *thrown;
    for flash in flying.extract_if(.., |one| one.grenade == Grenade::Flash && tick.tick >= one.bursts_tick) {
        lines.clear();
        lines.extend(players.iter().map(|(_, motion, ..)| (motion.eye(), flash.at)));
        lines_of_sight(&scene.map.geometry, lines, seen);
        for ((vitals, motion, pose, mut senses), is_open) in players.iter_mut().zip(seen.iter()) {
            let eye = motion.eye();
            if !*is_open || !vitals.is_alive || is_on_line(&smoke.clouds, eye, flash.at) {
                continue;
            }
            let for_ms = blind_ms(eye, direction_of(pose.yaw, pose.pitch), flash.at);
            let until_tick = tick.tick + ticks_of(for_ms, TICK_HZ);
            senses.blind_until_tick = senses.blind_until_tick.max(until_tick);
            count!("blinded", for_ms > 0);
        }
        let Vec3 { x, y, z } = flash.at;
        events.send(&Bang { x, y, z }, Audience::Near([x, z]), "duel.flash");
    }
}

/// Clouds whose time is over are gone.
pub fn clear_smoke(tick: Res<TickInfo>, mut smoke: ResMut<Smoke>) {
    smoke.clear_until(tick.tick);
}

/// How long a flash blinds an eye that looks along `view` (ms).
fn blind_ms(eye: Vec3, view: Vec3, flash: Vec3) -> u32 {
    let away = flash - eye;
    let (away_m, along) = (away.length(), away.normalize_or_zero().dot(view));
    if away_m > FLASH_M || along < ASIDE_COS {
        return 0;
    }
    let near = 1.0 - 0.6 * away_m / FLASH_M;
    let ahead = (along - ASIDE_COS) / (1.0 - ASIDE_COS);
    (BLIND_MS * near * (0.4 + 0.6 * ahead)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Map, layout::middle_of};

    #[test]
    fn who_looks_into_a_near_flash_is_blind_for_longest() {
        let blind = |away: Vec3| blind_ms(Vec3::ZERO, Vec3::Z, away);
        assert!(blind(Vec3::Z * 2.0) > 1_600 && blind(Vec3::Z * 2.0) <= 1_800);
        assert!(blind(Vec3::Z * 20.0) < blind(Vec3::Z * 2.0));
        assert!(blind(Vec3::new(2.0, 0.0, 2.0)) < blind(Vec3::Z * 2.0));
        assert_eq!((blind(Vec3::NEG_Z * 2.0), blind(Vec3::X * 2.0), blind(Vec3::Z * 26.0)), (0, 0, 0));
    }

    /// Promise: nothing is thrown through a wall.
    #[test]
    fn a_grenade_stays_where_it_meets_a_wall_or_the_ground() {
        let scene = Scene { map: Map::load(), lobby: WorldId::new(0, 0) };
        let mut thrown = Thrown::default();
        let from = middle_of(10, 4) + Vec3::Y * 1.6;
        for direction in [Vec3::NEG_Z, Vec3::new(1.0, 0.3, 0.0)] {
            let velocity = direction.normalize() * THROW_M_PER_S;
            thrown.flying.push(Flying { grenade: Grenade::Smoke, at: from, velocity, bursts_tick: 0 });
        }
        (0..300).for_each(|_| thrown.fly(&scene, 1.0 / 128.0));
        let [at_wall, on_ground] = [thrown.flying[0], thrown.flying[1]];
        let wall_z = middle_of(10, 4).z - 1.0;
        assert!((at_wall.at.z - wall_z - REST_M).abs() < 0.01, "{at_wall:?}");
        assert!((on_ground.at.y - REST_M).abs() < 0.01 && on_ground.at.x > from.x + 8.0, "{on_ground:?}");
        assert!(thrown.flying.iter().all(|one| one.velocity == Vec3::ZERO));
    }
    /// Promise: nothing is thrown out of the map, over whatever wall.
    #[test]
    fn a_grenade_that_flies_over_the_outer_wall_stays_at_the_edge() {
        let scene = Scene { map: Map::load(), lobby: WorldId::new(0, 0) };
        let mut thrown = Thrown::default();
        let corners = [(1, 1, [-1.0, 1.0]), (1, 1, [-1.0, 0.0]), (42, 1, [1.0, 0.4]), (42, 30, [0.0, -1.0])];
        for (column, row, [x, z]) in corners {
            let at = middle_of(column, row) + Vec3::Y * 1.65;
            let velocity = Vec3::new(x, 1.0, z).normalize() * THROW_M_PER_S;
            thrown.flying.push(Flying { grenade: Grenade::Smoke, at, velocity, bursts_tick: 0 });
        }
        for _ in 0..600 {
            thrown.fly(&scene, 1.0 / 128.0);
            let bounds = &scene.map.bounds;
            for one in &thrown.flying {
                let is_inside = (bounds.min.x..bounds.max.x).contains(&one.at.x)
                    && (bounds.min.z..bounds.max.z).contains(&one.at.z);
                assert!(is_inside, "{one:?}");
            }
        }
        assert!(thrown.flying.iter().all(|one| one.velocity == Vec3::ZERO), "{:?}", thrown.flying);
    }
}
