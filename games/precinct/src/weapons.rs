//! Weapons: what each can do, and when it may do it again.
//!
//! Players and NPCs carry the same weapons and fire through the same [`Weapon::fire`], which counts in the
//! world's own ticks. A client cannot fire sooner by asking more often or by claiming another time: it
//! never says when it fires, only that the trigger is held. Cooldowns are rounded up to whole ticks, so no
//! shot is ever early. Rounds come from whoever has them: a player's pockets, or, for NPCs, an [`endless`] supply.

use bevy_ecs::component::Component;
use throng_pack::Pack;
use throng_replication::Replicate;

/// What somebody carries.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.weapon_kind")]
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

/// A number that is no weapon's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoWeapon;

impl From<WeaponKind> for u8 {
    /// Its place in [`WeaponKind::ALL`].
    fn from(kind: WeaponKind) -> Self {
        kind as Self
    }
}

impl TryFrom<u8> for WeaponKind {
    type Error = NoWeapon;

    fn try_from(number: u8) -> Result<Self, NoWeapon> {
        Self::ALL.get(usize::from(number)).copied().ok_or(NoWeapon)
    }
}

/// A weapon in somebody's hands.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.weapon_in_hand")]
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
    /// It is empty and there is nothing to load it with.
    Empty,
    NotReady,
}

impl Weapon {
    pub fn new(kind: WeaponKind) -> Self {
        Self { kind, rounds: kind.traits().rounds, burst: 0, ready_tick: 0 }
    }

    /// Pulls the trigger at `tick` of a world that ticks `tick_hz` times a second. An empty weapon is loaded from
    /// `supply`, as in [`Weapon::reload`].
    pub fn fire(&mut self, tick: u32, tick_hz: u16, supply: impl FnOnce(u8) -> u8) -> Trigger {
        if !self.is_ready(tick) {
            return Trigger::NotReady;
        }
        if self.rounds == 0 {
            let is_loading = self.reload(tick, tick_hz, supply);
            return if is_loading { Trigger::Reloading } else { Trigger::Empty };
        }
        self.rounds -= 1;
        self.ready_tick = tick + ticks_of(self.kind.traits().cooldown_ms, tick_hz);
        Trigger::Fired
    }

    /// Loads the weapon with what `supply` gives of the rounds that it is asked for; it is ready again when that is
    /// done. False, and nothing is done, if there is none.
    pub fn reload(&mut self, tick: u32, tick_hz: u16, supply: impl FnOnce(u8) -> u8) -> bool {
        let traits = self.kind.traits();
        let wanted = traits.rounds - self.rounds;
        let loaded = supply(wanted).min(wanted);
        if loaded == 0 && wanted > 0 {
            return false;
        }
        self.rounds += loaded;
        self.busy(tick, tick_hz, traits.reload_ms);
        true
    }

    /// Nothing can be done with it for so much longer.
    pub fn busy(&mut self, tick: u32, tick_hz: u16, duration_ms: u32) {
        self.ready_tick = tick.max(self.ready_tick) + ticks_of(duration_ms, tick_hz);
    }

    pub fn is_ready(&self, tick: u32) -> bool {
        tick >= self.ready_tick
    }

    /// The weapon as it goes to another world, which has other ticks.
    pub fn carried(&self, tick: u32, tick_hz: u16) -> CarriedWeapon {
        let busy_ms = self.ready_tick.saturating_sub(tick) * 1_000 / u32::from(tick_hz);
        CarriedWeapon { kind: self.kind, rounds: self.rounds, busy_ms: busy_ms.min(BUSY_MS_MAX.into()) as u16 }
    }

    /// The weapon as it came from another world.
    pub fn brought(carried: CarriedWeapon, tick: u32, tick_hz: u16) -> Self {
        let CarriedWeapon { kind, rounds, busy_ms } = carried;
        let rounds = rounds.min(kind.traits().rounds);
        Self { kind, rounds, burst: 0, ready_tick: tick + ticks_of(busy_ms.into(), tick_hz) }
    }
}

/// The longest that a weapon is busy: with what takes longest, begun in the moment before it was ready. (ms)
const BUSY_MS_MAX: u16 = 10_000;

/// A weapon on its way from one world to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.weapon")]
pub struct CarriedWeapon {
    #[pack(via = u8)]
    pub kind: WeaponKind,
    #[pack(max = 100)]
    pub rounds: u8,
    /// For how much longer nothing can be done with it. Rounded down; the worlds round up.
    #[pack(max = BUSY_MS_MAX)]
    pub busy_ms: u16,
}

impl CarriedWeapon {
    /// One that is loaded and ready.
    pub fn loaded(kind: WeaponKind) -> Self {
        Self { kind, rounds: kind.traits().rounds, busy_ms: 0 }
    }
}

/// A supply without end: what NPCs load from.
pub fn endless(wanted: u8) -> u8 {
    wanted
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
        without: Option<Rule>,
    }

    /// Each can be left out, to see that it is needed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Rule {
        CooldownsLast,
        MagazinesEnd,
        LoadingTakesItsTime,
    }

    impl Model {
        fn pull(&mut self, traits: &WeaponTraits, tick: u32, tick_ms: f64) -> Trigger {
            let now_ms = f64::from(tick) * tick_ms;
            if now_ms + 1e-6 < self.free_at_ms {
                return Trigger::NotReady;
            }
            let (answer, rule, busy_ms) = if self.rounds == 0 {
                self.rounds = traits.rounds;
                (Trigger::Reloading, Rule::LoadingTakesItsTime, traits.reload_ms)
            } else {
                self.rounds -= u8::from(self.without != Some(Rule::MagazinesEnd));
                (Trigger::Fired, Rule::CooldownsLast, traits.cooldown_ms)
            };
            if self.without != Some(rule) {
                self.free_at_ms = now_ms + f64::from(busy_ms);
            }
            answer
        }
    }

    /// Pulls triggers a million times: shots, or what differs first.
    fn pull_a_million_times(without: Option<Rule>) -> Result<u32, String> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(14);
        let mut fired = 0;
        for round in 0..60 {
            let kind = WeaponKind::ALL[round % WeaponKind::ALL.len()];
            let tick_hz = [20, 30, 128][round % 3];
            let mut weapon = Weapon::new(kind);
            let traits = kind.traits();
            let mut model = Model { free_at_ms: 0.0, rounds: traits.rounds, without };
            let mut tick = 0;
            for _ in 0..17_000 {
                let expect = model.pull(&traits, tick, 1_000.0 / f64::from(tick_hz));
                let is = weapon.fire(tick, tick_hz, endless);
                if is != expect {
                    return Err(format!("{kind:?} at {tick}: {is:?}, and by the rules {expect:?}"));
                }
                fired += u32::from(expect == Trigger::Fired);
                // Many pulls in one tick, every tick, and now and then a pause.
                tick += [0, 0, 1, 1, 1, 7][rng.random_range(0..6)];
            }
        }
        Ok(fired)
    }

    #[test]
    fn r14_a_million_pulls_agree_with_the_model() {
        assert!(pull_a_million_times(None).expect("the weapons are the model's") > 50_000);
        // The control: weapons are not those of a model without any one of its rules.
        for rule in [Rule::CooldownsLast, Rule::MagazinesEnd, Rule::LoadingTakesItsTime] {
            assert!(pull_a_million_times(Some(rule)).is_err(), "{rule:?}");
        }
    }

    #[test]
    fn a_reload_takes_what_there_is_and_an_empty_weapon_without_rounds_only_clicks() {
        let mut weapon = Weapon { rounds: 0, ..Weapon::new(WeaponKind::Rifle) };
        let mut supply = 7;
        let mut draw = |wanted: u8| std::mem::take(&mut supply).min(wanted);
        assert_eq!(weapon.fire(0, 20, &mut draw), Trigger::Reloading);
        assert_eq!((weapon.rounds, weapon.fire(1, 20, &mut draw)), (7, Trigger::NotReady));
        let fired = (44..200).filter(|tick| weapon.fire(*tick, 20, &mut draw) == Trigger::Fired);
        assert_eq!(fired.count(), 7);
        assert_eq!(weapon.fire(200, 20, &mut draw), Trigger::Empty);
    }

    /// Between worlds of any two rates: the same rounds, and never ready sooner than at home, nor later than by a tick
    /// of each.
    #[test]
    fn a_weapon_goes_on_where_it_was_in_a_world_with_other_ticks() {
        for (from_hz, to_hz) in [(20, 30), (30, 20), (20, 20), (30, 128)] {
            for elapsed in 0..100 {
                let mut weapon = Weapon { rounds: 0, ..Weapon::new(WeaponKind::MachineGun) };
                weapon.reload(1_000, from_hz, endless);
                let left_ms = f64::from(weapon.ready_tick.saturating_sub(1_000 + elapsed)) * 1e3 / f64::from(from_hz);
                let brought = Weapon::brought(weapon.carried(1_000 + elapsed, from_hz), 7, to_hz);
                assert_eq!((brought.kind, brought.rounds), (weapon.kind, weapon.rounds));
                let waits_ms = f64::from(brought.ready_tick - 7) * 1e3 / f64::from(to_hz);
                let tick_ms = 1e3 / f64::from(to_hz);
                assert!(waits_ms + 1.0 > left_ms && waits_ms < left_ms + tick_ms, "{waits_ms} for {left_ms} ms");
            }
        }
    }

    #[test]
    fn numbers_on_the_wire_name_every_weapon() {
        assert!(WeaponKind::ALL.len() <= 8, "three bits");
        assert_eq!(WeaponKind::try_from(WeaponKind::ALL.len() as u8), Err(NoWeapon));
        for kind in WeaponKind::ALL {
            assert_eq!(WeaponKind::try_from(u8::from(kind)), Ok(kind));
            assert!(kind.traits().range_m <= 100.0);
            assert!(kind.traits().damage < 50, "nobody dies of one shot");
        }
    }
}
