//! The shop: what a bot buys, as players do: a rifle when it can, less when it cannot, and nothing to have more next time.
//!
//! What it may buy it is told in its kit; what a thing costs is the game's own table. One request at a time, some tenths of
//! a second apart, as fast as a hand finds its way in a menu.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::time::Nanos;

use crate::{
    economy::{ARMOUR_MAX, price},
    protocol::{Item, Kit},
    weapons::WeaponKind,
};

/// Between two requests (ms).
const PAUSE_MS: [u64; 2] = [250, 900];
/// Before the first one (ms).
const FIRST_PAUSE_MS: [u64; 2] = [800, 4_000];
/// Whoever has so much may buy what is for few (credits), and one in so many does.
const RICH: u16 = 6_500;
const MARKSMEN_ONE_IN: u32 = 4;

/// One bot's shopping in one round.
#[derive(Debug, Default)]
pub struct Shopping {
    next_at: Option<Nanos>,
    is_done: bool,
}

impl Shopping {
    /// What to ask for now, if anything.
    pub fn next(&mut self, now: Nanos, kit: &Kit, armour: u8, rng: &mut Xoshiro256PlusPlus) -> Option<Item> {
        let [soonest, latest] = FIRST_PAUSE_MS;
        let next_at = *self.next_at.get_or_insert_with(|| now + Nanos::from_millis(rng.random_range(soonest..latest)));
        if self.is_done || now < next_at {
            return None;
        }
        let [soonest, latest] = PAUSE_MS;
        self.next_at = Some(now + Nanos::from_millis(rng.random_range(soonest..latest)));
        let item = wanted(kit, armour, rng.random_ratio(1, MARKSMEN_ONE_IN));
        self.is_done = item.is_none();
        item
    }
}

/// The next thing that somebody wants who has this. `is_marksman`: and likes to shoot from afar.
fn wanted(kit: &Kit, armour: u8, is_marksman: bool) -> Option<Item> {
    let can = |item: Item, beside: u16| kit.credits >= price(item).saturating_add(beside);
    let armour_price = if armour < ARMOUR_MAX { price(Item::Armour) } else { 0 };
    if matches!(kit.weapon, WeaponKind::Pistol | WeaponKind::Submachine) {
        let [submachine, rifle, marksman] =
            [WeaponKind::Submachine, WeaponKind::Rifle, WeaponKind::Marksman].map(Item::Weapon);
        if is_marksman && kit.credits >= RICH {
            return Some(marksman);
        }
        if can(rifle, armour_price) {
            return Some(rifle);
        }
        // Both are worth it only together: otherwise one saves for a rifle.
        if kit.weapon == WeaponKind::Pistol && can(submachine, armour_price) {
            return Some(submachine);
        }
    }
    let has_weapon = kit.weapon != WeaponKind::Pistol;
    if has_weapon && armour_price > 0 && can(Item::Armour, 0) {
        return Some(Item::Armour);
    }
    // In the first round there is not enough for anything else.
    let is_first = !has_weapon && kit.credits < price(Item::Armour);
    let may_throw = has_weapon || is_first;
    let grenades = [(Item::Smoke, kit.smokes), (Item::Flash, kit.flashes)];
    grenades.into_iter().find(|(item, has)| may_throw && *has == 0 && can(*item, 0)).map(|(item, _)| item)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::{
        components::{HEALTH_MAX, Vitals},
        economy::{CREDITS_FIRST, Purse},
        weapons::Weapon,
    };

    /// What somebody with so many credits and this weapon has when it is done.
    fn shop(credits: u16, kind: WeaponKind) -> (Purse, WeaponKind, u8) {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(1);
        let mut purse = Purse { credits, ..Purse::FIRST };
        let (mut weapon, mut vitals) = (Weapon::new(kind), Vitals { health: HEALTH_MAX, armour: 0, is_alive: true });
        let mut shopping = Shopping::default();
        for ms in (0..30_000).step_by(50) {
            let Purse { credits, smokes, flashes } = purse;
            let kit = Kit { credits, weapon: weapon.kind, rounds: weapon.rounds, smokes, flashes };
            if let Some(item) = shopping.next(Nanos::from_millis(ms), &kit, vitals.armour, rng) {
                assert!(purse.buy(item, &mut weapon, &mut vitals), "{item:?} with {kit:?}");
            }
        }
        (purse, weapon.kind, vitals.armour)
    }

    #[test]
    fn who_can_buys_a_rifle_and_armour_and_who_cannot_saves() {
        let (purse, weapon, armour) = shop(CREDITS_FIRST, WeaponKind::Pistol);
        assert_eq!((weapon, armour, purse.smokes, purse.flashes), (WeaponKind::Pistol, 0, 1, 1));
        let (purse, weapon, armour) = shop(2_000, WeaponKind::Pistol);
        assert_eq!((weapon, armour, purse.credits), (WeaponKind::Pistol, 0, 2_000));
        let (_, weapon, armour) = shop(2_700, WeaponKind::Pistol);
        assert_eq!((weapon, armour), (WeaponKind::Submachine, ARMOUR_MAX));
        let (_, weapon, armour) = shop(4_000, WeaponKind::Pistol);
        assert_eq!((weapon, armour), (WeaponKind::Rifle, ARMOUR_MAX));
        let (purse, weapon, armour) = shop(3_000, WeaponKind::Rifle);
        assert_eq!((weapon, armour), (WeaponKind::Rifle, ARMOUR_MAX));
        assert_eq!((purse.smokes, purse.flashes), (1, 1));
    }
}
