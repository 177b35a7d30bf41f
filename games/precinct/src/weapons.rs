//! Weapons: what each can do, and when it may do it again.
//!
//! Players and NPCs carry the same weapons and fire through the same [`Weapon::fire`], which counts in the
//! world's own ticks. A client cannot fire sooner by asking more often or by claiming another time: it
//! never says when it fires, only that the trigger is held. Cooldowns are rounded up to whole ticks, so no
//! shot is ever early.

use bevy_ecs::component::Component;
use throng_replication::Replicate;

/// What somebody carries.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeaponKind {
    Fists,
    Pistol,
    Rifle,
    Submachine,
    Marksman,
    MachineGun,
}

/// What a kind of weapon can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeaponTraits {
    /// Between two shots. (ms)
    pub cooldown_ms: u32,
    /// How far a shot reaches. (m)
    pub range_m: f32,
    /// What a hit takes. [percent of full health]
    pub damage: u8,
    /// How far a shot strays from where it was aimed, at most. (radians)
    pub spread_rad: f32,
    /// Rounds until it must be loaded again.
    pub rounds: u8,
    /// Loading. (ms)
    pub reload_ms: u32,
}

impl WeaponKind {
    pub const ALL: [Self; 6] =
        [Self::Fists, Self::Pistol, Self::Rifle, Self::Submachine, Self::Marksman, Self::MachineGun];

    pub const fn traits(self) -> WeaponTraits {
        let [cooldown_ms, range_m, damage, spread_mrad, rounds, reload_ms] = match self {
            Self::Fists => [700, 2, 4, 0, 100, 1_000],
            Self::Pistol => [350, 35, 6, 35, 12, 1_500],
            Self::Rifle => [200, 60, 6, 40, 30, 2_200],
            Self::Submachine => [120, 40, 4, 55, 32, 1_900],
            Self::Marksman => [900, 90, 18, 20, 8, 2_600],
            Self::MachineGun => [100, 55, 4, 65, 80, 4_000],
        };
        WeaponTraits {
            cooldown_ms,
            range_m: range_m as f32,
            damage: damage as u8,
            spread_rad: spread_mrad as f32 * 0.001,
            rounds: rounds as u8,
            reload_ms,
        }
    }
}

/// A weapon in somebody's hands.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weapon {
    pub kind: WeaponKind,
    /// Rounds loaded.
    pub rounds: u8,
    /// Rounds that an NPC still means to fire in one go; players pull the trigger themselves.
    pub burst: u8,
    /// Nothing can be done with it before this tick.
    ready_tick: u32,
}

/// What came of pulling the trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    Fired,
    /// It was empty and is being loaded now.
    Reloading,
    NotReady,
}

impl Weapon {
    pub fn new(kind: WeaponKind) -> Self {
        Self { kind, rounds: kind.traits().rounds, burst: 0, ready_tick: 0 }
    }

    /// Pulls the trigger at `tick` of a world that ticks `tick_hz` times a second.
    pub fn fire(&mut self, tick: u32, tick_hz: u16) -> Trigger {
        if tick < self.ready_tick {
            return Trigger::NotReady;
        }
        if self.rounds == 0 {
            self.reload(tick, tick_hz);
            return Trigger::Reloading;
        }
        self.rounds -= 1;
        self.ready_tick = tick + ticks_of(self.kind.traits().cooldown_ms, tick_hz);
        Trigger::Fired
    }

    /// Loads the weapon; it is ready again when that is done.
    pub fn reload(&mut self, tick: u32, tick_hz: u16) {
        let traits = self.kind.traits();
        self.rounds = traits.rounds;
        self.ready_tick = tick.max(self.ready_tick) + ticks_of(traits.reload_ms, tick_hz);
    }
}

/// Whole ticks that last at least so long.
pub fn ticks_of(duration_ms: u32, tick_hz: u16) -> u32 {
    (duration_ms * u32::from(tick_hz)).div_ceil(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// The rules on one page: a shot needs a round and the cooldown of the one before; an empty weapon
    /// needs the reload.
    struct Model {
        free_at_ms: f64,
        rounds: u8,
    }

    impl Model {
        fn pull(&mut self, traits: &WeaponTraits, tick: u32, tick_ms: f64) -> Trigger {
            let now_ms = f64::from(tick) * tick_ms;
            if now_ms + 1e-6 < self.free_at_ms {
                return Trigger::NotReady;
            }
            let (answer, busy_ms) = if self.rounds == 0 {
                self.rounds = traits.rounds;
                (Trigger::Reloading, traits.reload_ms)
            } else {
                self.rounds -= 1;
                (Trigger::Fired, traits.cooldown_ms)
            };
            self.free_at_ms = now_ms + f64::from(busy_ms);
            answer
        }
    }

    #[test]
    fn a_million_pulls_agree_with_the_model() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(14);
        let mut fired = 0;
        for round in 0..60 {
            let kind = WeaponKind::ALL[round % WeaponKind::ALL.len()];
            let tick_hz = [20, 30, 128][round % 3];
            let mut weapon = Weapon::new(kind);
            let traits = kind.traits();
            let mut model = Model { free_at_ms: 0.0, rounds: traits.rounds };
            let mut tick = 0;
            for _ in 0..17_000 {
                let expect = model.pull(&traits, tick, 1_000.0 / f64::from(tick_hz));
                assert_eq!(weapon.fire(tick, tick_hz), expect, "{kind:?} at {tick}");
                fired += u32::from(expect == Trigger::Fired);
                // Many pulls in one tick, every tick, and now and then a pause.
                tick += [0, 0, 1, 1, 1, 7][rng.random_range(0..6)];
            }
        }
        assert!(fired > 50_000, "{fired}");
    }

    #[test]
    fn numbers_on_the_wire_name_every_weapon() {
        assert!(WeaponKind::ALL.len() <= 8, "three bits");
        for kind in WeaponKind::ALL {
            assert!(kind.traits().range_m <= 100.0);
            assert!(kind.traits().damage < 50, "nobody dies of one shot");
        }
    }
}
