//! Economy: what things cost, and what a round brings.
//!
//! Credits come with each round, more for the winners; those who lose again and again get more for it, so that a team
//! is not out of the match for good. Kills and a planted spike bring some on top. All of it is pure.
//!
//! | what | credits |
//! |---|---|
//! | the first round of a half | 800, and whatever one had is gone |
//! | a round won | 3,000 |
//! | a round lost, the second in a row, more | 1,900; 2,400; 2,900 |
//! | a kill | 200 |
//! | the spike planted, to each attacker | 300 |

use throng::prelude::*;

use crate::{
    components::Vitals,
    protocol::Item,
    weapons::{Weapon, WeaponKind},
};

/// What a half begins with.
pub const CREDITS_FIRST: u16 = 800;
/// More is not kept.
pub const CREDITS_MAX: u16 = 9_000;
const WON: u16 = 3_000;
const LOST: [u16; 3] = [1_900, 2_400, 2_900];
pub const OF_KILL: u16 = 200;
pub const OF_PLANT: u16 = 300;

/// What full armour takes (points), and what it costs.
pub const ARMOUR_MAX: u8 = 50;
const ARMOUR_PRICE: u16 = 1_000;
const SMOKE_PRICE: u16 = 300;
const FLASH_PRICE: u16 = 250;
/// Grenades of a kind that one can carry.
pub const GRENADES_MAX: u8 = 2;

/// What a round brings a player whose team has lost so many in a row, this one included; 0: it has won.
pub fn of_round(lost_in_a_row: u8) -> u16 {
    match usize::from(lost_in_a_row).checked_sub(1) {
        None => WON,
        Some(before) => LOST[before.min(LOST.len() - 1)],
    }
}

/// What it costs.
pub fn price(item: Item) -> u16 {
    match item {
        Item::Weapon(kind) => kind.traits().price,
        Item::Armour => ARMOUR_PRICE,
        Item::Smoke => SMOKE_PRICE,
        Item::Flash => FLASH_PRICE,
    }
}

/// What a player owns beside what is in its hands.
#[derive(Component, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.purse")]
pub struct Purse {
    pub credits: u16,
    pub smokes: u8,
    pub flashes: u8,
}

impl StateHash for Purse {
    fn hash_state(&self, hasher: &mut StateHasher) {
        let Self { credits, smokes, flashes } = *self;
        hasher.write_u64(u64::from(credits) << 16 | u64::from(smokes) << 8 | u64::from(flashes));
    }
}

impl Purse {
    pub const FIRST: Self = Self { credits: CREDITS_FIRST, smokes: 0, flashes: 0 };

    pub fn earn(&mut self, credits: u16) {
        self.credits = self.credits.saturating_add(credits).min(CREDITS_MAX);
    }

    /// Buys an item; false, and nothing is done, without the credits or where no more can be carried.
    pub fn buy(&mut self, item: Item, weapon: &mut Weapon, vitals: &mut Vitals) -> bool {
        let Some(left) = self.credits.checked_sub(price(item)) else { return false };
        let is_wanted = match item {
            Item::Weapon(kind) => kind != weapon.kind,
            Item::Armour => vitals.armour < ARMOUR_MAX,
            Item::Smoke => self.smokes < GRENADES_MAX,
            Item::Flash => self.flashes < GRENADES_MAX,
        };
        if is_wanted {
            self.credits = left;
            self.give(item, weapon, vitals);
        }
        is_wanted
    }

    fn give(&mut self, item: Item, weapon: &mut Weapon, vitals: &mut Vitals) {
        match item {
            Item::Weapon(kind) => *weapon = Weapon::new(kind),
            Item::Armour => vitals.armour = ARMOUR_MAX,
            Item::Smoke => self.smokes += 1,
            Item::Flash => self.flashes += 1,
        }
    }

    /// What everybody has where nobody buys.
    pub fn equip(&mut self, weapon: &mut Weapon, vitals: &mut Vitals) {
        *weapon = Weapon::new(WeaponKind::Rifle);
        vitals.armour = ARMOUR_MAX;
        (self.smokes, self.flashes) = (1, 1);
    }
}

/// What a hit takes of somebody: armour takes half of it, as long as it lasts. Whether that was the death.
pub fn hurt(vitals: &mut Vitals, damage: u8) -> bool {
    let of_armour = (damage / 2).min(vitals.armour);
    vitals.armour -= of_armour;
    vitals.health = vitals.health.saturating_sub(damage - of_armour);
    vitals.health == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::HEALTH_MAX;

    const HALE: Vitals = Vitals { health: HEALTH_MAX, armour: 0, is_alive: true };

    #[test]
    fn who_loses_again_and_again_gets_more() {
        assert_eq!([0, 1, 2, 3, 4, 255].map(of_round), [3_000, 1_900, 2_400, 2_900, 2_900, 2_900]);
    }

    #[test]
    fn nothing_is_bought_without_credits_or_beyond_what_one_can_carry() {
        let (mut weapon, mut vitals) = (Weapon::new(WeaponKind::Pistol), HALE);
        let mut purse = Purse { credits: 4_100, ..Purse::FIRST };
        let mut buy = |item| purse.buy(item, &mut weapon, &mut vitals);
        assert!(buy(Item::Weapon(WeaponKind::Rifle)) && !buy(Item::Weapon(WeaponKind::Rifle)));
        assert!(buy(Item::Armour) && !buy(Item::Armour), "200 are left, and it is whole");
        assert!(!buy(Item::Flash));
        assert_eq!((purse.credits, weapon.kind, vitals.armour), (200, WeaponKind::Rifle, ARMOUR_MAX));
        purse.earn(20_000);
        let mut buy = |item| purse.buy(item, &mut weapon, &mut vitals);
        assert_eq!([Item::Smoke, Item::Smoke, Item::Smoke].map(&mut buy), [true, true, false]);
        assert_eq!((purse.credits, purse.smokes), (CREDITS_MAX - 600, 2));
    }

    #[test]
    fn armour_takes_half_until_it_is_gone() {
        let mut vitals = Vitals { armour: 30, ..HALE };
        assert!(!hurt(&mut vitals, 40));
        assert_eq!((vitals.health, vitals.armour), (80, 10));
        assert!(!hurt(&mut vitals, 40));
        assert_eq!((vitals.health, vitals.armour), (50, 0));
        assert!(hurt(&mut vitals, 156));
        assert_eq!(vitals.health, 0);
    }
}
