//! Weapons: what each can do, and when it may do it again.
//!
//! A client says that its trigger is held and where it looks. When a shot is fired, how many rounds are left, how far
//! it strays and how the weapon climbs is decided here, in the world's own ticks. Cooldowns are rounded up to whole
//! ticks, so no shot is ever early.
//!
//! A shot leaves along the view, turned by the recoil of the burst so far ([`Spray`], the same for everybody, so a
//! player can learn it and a client can draw it) and by the spread, which is chance and known to nobody before. Spread
//! grows with speed: who stops to shoot hits. All of it is pure; the systems are in `shooting`.

use rand::Rng;
use throng::prelude::*;

/// What somebody has in its hands.
#[derive(Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeaponKind {
    /// Everybody has it for nothing.
    Pistol,
    Submachine,
    Rifle,
    Marksman,
}

/// What a kind of weapon can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeaponTraits {
    /// Between two shots (ms).
    pub cooldown_ms: u32,
    /// What a hit takes: body, head, leg (points of health).
    pub damage: [u8; 3],
    /// Rounds until it must be loaded again.
    pub rounds: u8,
    /// Loading (ms).
    pub reload_ms: u32,
    /// How far a shot strays at most, of who stands (rad).
    pub spread_rad: f32,
    /// How much more of who runs at full speed (rad).
    pub spread_running_rad: f32,
    /// How far one shot of a burst turns the next one up, before it levels off (rad).
    pub climb_rad: f32,
    /// What it costs (credits).
    pub price: u16,
}

/// How much more a shot strays of who is in the air (rad).
const SPREAD_IN_AIR_RAD: f32 = 0.12;

impl WeaponKind {
    pub const ALL: [Self; 4] = [Self::Pistol, Self::Submachine, Self::Rifle, Self::Marksman];

    pub const fn traits(self) -> WeaponTraits {
        let (cooldown_ms, damage, rounds, reload_ms, spread_mrad, price) = match self {
            Self::Pistol => (150, [26, 78, 22], 12, 1_750, [4.0, 30.0, 4.0], 0),
            Self::Submachine => (75, [26, 67, 22], 30, 2_250, [6.0, 20.0, 3.5], 1_600),
            Self::Rifle => (103, [40, 156, 34], 25, 2_500, [2.5, 55.0, 6.0], 2_900),
            Self::Marksman => (1_330, [150, 255, 120], 5, 3_700, [0.5, 120.0, 0.0], 4_700),
        };
        let [standing, running, climb] = spread_mrad;
        WeaponTraits {
            cooldown_ms,
            damage,
            rounds,
            reload_ms,
            spread_rad: standing * 0.001,
            spread_running_rad: running * 0.001,
            climb_rad: climb * 0.001,
            price,
        }
    }
}

/// What of a body a shot hits.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyPart {
    Body,
    Head,
    Leg,
}

impl WeaponKind {
    /// What a hit takes (points of health).
    pub fn damage(self, part: BodyPart) -> u8 {
        self.traits().damage[part as usize]
    }

    /// How far a shot strays at most of who moves at this part of full speed (0 to 1) on the ground, or is in the air
    /// (rad).
    pub fn spread_rad(self, speed: f32, is_on_ground: bool) -> f32 {
        let traits = self.traits();
        let of_air = if is_on_ground { 0.0 } else { SPREAD_IN_AIR_RAD };
        traits.spread_rad + traits.spread_running_rad * speed.clamp(0.0, 1.0) + of_air
    }
}

/// A weapon in somebody's hands.
#[derive(Component, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.weapon")]
pub struct Weapon {
    pub kind: WeaponKind,
    /// Rounds loaded.
    pub rounds: u8,
    pub spray: Spray,
    /// Nothing can be done with it before this tick.
    ready_tick: u32,
    /// Whether it is being loaded until then.
    is_loading: bool,
}

impl StateHash for Weapon {
    fn hash_state(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.rounds) << 32 | u64::from(self.ready_tick));
        hasher.write_u64(u64::from(self.is_loading) << 8 | self.kind as u64);
        hasher.write_u64(u64::from(self.spray.shots) << 32 | u64::from(self.spray.last_tick));
    }
}

/// What came of pulling the trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// With the so-and-so-many shots of the burst before it.
    Fired(u8),
    /// It was empty and is being loaded now.
    Reloading,
    NotReady,
}

impl Weapon {
    /// One that is loaded and ready.
    pub fn new(kind: WeaponKind) -> Self {
        let rounds = kind.traits().rounds;
        Self { kind, rounds, spray: Spray::default(), ready_tick: 0, is_loading: false }
    }

    /// Pulls the trigger at `tick` of a world that ticks `tick_hz` times a second.
    pub fn fire(&mut self, tick: u32, tick_hz: u16) -> Trigger {
        if tick < self.ready_tick {
            return Trigger::NotReady;
        }
        self.is_loading = false;
        if self.rounds == 0 {
            self.reload(tick, tick_hz);
            return Trigger::Reloading;
        }
        self.rounds -= 1;
        self.ready_tick = tick + ticks_of(self.kind.traits().cooldown_ms, tick_hz);
        Trigger::Fired(self.spray.shot(tick, tick_hz))
    }

    /// Begins to load it. False, and nothing is done, if it is full or not ready.
    pub fn reload(&mut self, tick: u32, tick_hz: u16) -> bool {
        let traits = self.kind.traits();
        if tick < self.ready_tick || self.rounds == traits.rounds {
            return false;
        }
        // The rounds are in it at once, and cannot be fired before it is ready.
        self.rounds = traits.rounds;
        self.ready_tick = tick + ticks_of(traits.reload_ms, tick_hz);
        self.is_loading = true;
        true
    }

    /// Whether it is being loaded.
    pub fn is_loading(&self, tick: u32) -> bool {
        self.is_loading && tick < self.ready_tick
    }
}

/// How many shots of a burst the weapon has climbed by.
#[derive(Pack, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[pack(name = "duel.spray")]
pub struct Spray {
    shots: u8,
    last_tick: u32,
}

/// A weapon comes down by one shot in so long (ms), once it is not fired.
const RECOVER_MS: u32 = 60;
/// Not before so long after a shot (ms): longer than between two shots of what fires fast.
const RECOVER_AFTER_MS: u32 = 160;
/// Shots after which a weapon climbs no further, and goes from side to side instead.
const CLIMB_SHOTS: u8 = 8;
/// Shots from one side to the other and back.
const SWAY_SHOTS: f32 = 12.0;

impl Spray {
    /// Shots of the burst before one at `tick`.
    pub fn shots_at(&self, tick: u32, tick_hz: u16) -> u8 {
        let idle = tick.saturating_sub(self.last_tick);
        let recovering = idle.saturating_sub(ticks_of(RECOVER_AFTER_MS, tick_hz));
        let recovered = recovering / ticks_of(RECOVER_MS, tick_hz);
        self.shots.saturating_sub(recovered.min(u32::from(u8::MAX)) as u8)
    }

    /// A shot is fired: how many of its burst came before it.
    fn shot(&mut self, tick: u32, tick_hz: u16) -> u8 {
        let before = self.shots_at(tick, tick_hz);
        *self = Self { shots: before.saturating_add(1), last_tick: tick };
        before
    }
}

/// How far the shot after so many of a burst is turned from the view: to the right and up (rad). The same for
/// everybody.
pub fn recoil_rad(kind: WeaponKind, shots_before: u8) -> [f32; 2] {
    let climb_rad = kind.traits().climb_rad;
    let swaying = shots_before.saturating_sub(CLIMB_SHOTS);
    let sway = (f32::from(swaying) / SWAY_SHOTS * std::f32::consts::TAU).sin();
    [sway * climb_rad * 2.0, f32::from(shots_before.min(CLIMB_SHOTS)) * climb_rad]
}

/// By how much a shot strays: to the right and up (rad), evenly over a disc of this radius.
pub fn stray_rad(spread_rad: f32, rng: &mut impl Rng) -> [f32; 2] {
    let (angle, share) = (rng.random_range(0.0..std::f32::consts::TAU), rng.random_range(0.0_f32..1.0).sqrt());
    let (sin, cos) = angle.sin_cos();
    [cos * share * spread_rad, sin * share * spread_rad]
}

/// Whole ticks that last at least so long.
pub const fn ticks_of(duration_ms: u32, tick_hz: u16) -> u32 {
    (duration_ms as u64 * tick_hz as u64).div_ceil(1_000) as u32
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    const HZ: u16 = 128;

    /// Promise: however often a trigger is pulled, shots are a cooldown apart, and a magazine is loaded for its whole
    /// time.
    #[test]
    fn no_shot_is_early_and_none_comes_out_of_an_empty_magazine() {
        for kind in WeaponKind::ALL {
            let (traits, mut weapon) = (kind.traits(), Weapon::new(kind));
            let (mut last_shot, mut in_magazine, mut loaded_at) = (None, traits.rounds, 0);
            for tick in 0..60_000 {
                // Several pulls in one tick are one.
                for _ in 0..3 {
                    match weapon.fire(tick, HZ) {
                        Trigger::Fired(_) => {
                            let cooldown = ticks_of(traits.cooldown_ms, HZ);
                            assert!(last_shot.is_none_or(|last| tick - last >= cooldown), "{kind:?} at {tick}");
                            assert!(in_magazine > 0 && tick >= loaded_at, "{kind:?} at {tick}");
                            (last_shot, in_magazine) = (Some(tick), in_magazine - 1);
                        }
                        Trigger::Reloading => {
                            assert_eq!(in_magazine, 0);
                            (in_magazine, loaded_at) = (traits.rounds, tick + ticks_of(traits.reload_ms, HZ));
                            assert!(weapon.is_loading(tick) && !weapon.is_loading(loaded_at));
                        }
                        Trigger::NotReady => {}
                    }
                }
            }
        }
    }

    #[test]
    fn a_burst_climbs_and_comes_down_again() {
        let mut weapon = Weapon::new(WeaponKind::Rifle);
        let shots: Vec<u8> = (0..200)
            .filter_map(|tick| match weapon.fire(tick, HZ) {
                Trigger::Fired(before) => Some(before),
                _ => None,
            })
            .collect();
        assert_eq!(shots[..4], [0, 1, 2, 3]);
        let up: Vec<f32> = (0..12).map(|shots| recoil_rad(WeaponKind::Rifle, shots)[1]).collect();
        assert!(up[1] > 0.0 && up[3] > up[2] && up[11] == up[8], "{up:?}");
        assert_eq!(recoil_rad(WeaponKind::Rifle, 0), [0.0, 0.0], "the first shot goes where one looks");
        assert!(weapon.spray.shots_at(200, HZ) > 10);
        assert_eq!(weapon.spray.shots_at(200 + ticks_of(5_000, HZ), HZ), 0);
    }

    #[test]
    fn who_stands_still_shoots_straighter_than_who_runs_or_jumps() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for kind in WeaponKind::ALL {
            let spreads = [(0.0, true), (0.5, true), (1.0, true), (1.0, false)]
                .map(|(speed, is_on_ground)| kind.spread_rad(speed, is_on_ground));
            assert!(spreads.is_sorted() && spreads[0] < spreads[1], "{kind:?}: {spreads:?}");
            let [right, up] = stray_rad(spreads[3], &mut rng);
            assert!(right.hypot(up) <= spreads[3] + 1e-6);
        }
    }
}
