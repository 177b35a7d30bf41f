//! Travel: what goes from one world to another.
//!
//! A player that walks into a portal takes a [`Traveller`] along: everything that it has, and how it went. The world
//! where a connection ends posts [`OwnerLeft`] to the player's hideout, and a hideout that has been made posts
//! [`HideoutMade`] to those that players go home from.
//!
//! Nothing in it means anything to one world only: times are durations, since worlds count their own ticks, and how the
//! player faces is told against the way it went, so that it comes out of the other portal as it went into this one.

use std::f32::consts::PI;

use glam::Vec3;
use throng_pack::Pack;

use crate::{
    components::HEALTH_MAX,
    gear::Bag,
    inventory::{Inventory, Stacks},
    passport::Passport,
    portals::Destination,
    weapons::{CarriedWeapon, WeaponKind},
};

/// What every player has in its hands.
pub const PLAYER_WEAPON: WeaponKind = WeaponKind::Rifle;

/// All that a player is and has, wherever it goes. Version 1 had health and passport only, version 2 no
/// gear.
#[derive(Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "precinct.traveller", version = 3)]
pub struct Traveller {
    /// Only the living travel.
    #[pack(min = 1, max = HEALTH_MAX)]
    pub health: u8,
    pub passport: Passport,
    /// `None`: by none of the portals.
    #[pack(since = 2, default)]
    pub passage: Option<Passage>,
    #[pack(since = 2, default)]
    pub facing: Facing,
    #[pack(since = 2, default = CarriedWeapon::loaded(PLAYER_WEAPON))]
    pub weapon: CarriedWeapon,
    #[pack(since = 2, default = Inventory::usual(PLAYER_WEAPON), via = Stacks)]
    pub inventory: Inventory,
    #[pack(since = 3, default)]
    pub bag: Bag,
}

impl Traveller {
    /// As one who logs in, to this hideout: whatever world it was in when it was saved, and whichever of them was its own
    /// in that run of the server.
    pub fn logged_in(self, home: Option<u16>) -> Self {
        Self { passport: Passport { home, ..self.passport }, passage: None, ..self }
    }
}

/// From which kind of world, and through the portal to which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.passage")]
pub struct Passage {
    pub left: Destination,
    pub through: Destination,
}

impl Passage {
    /// Where the portal leads out of which the player comes in a world of the kind `here`. Who was turned back comes
    /// out where it went in.
    pub fn comes_out_at(self, here: Destination) -> Destination {
        if self.left == here { self.through } else { self.left }
    }
}

/// How a player faces, against the way that it goes: 0 is straight ahead.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pack)]
#[pack(name = "precinct.facing")]
pub struct Facing {
    #[pack(min = -3.2, max = 3.2)]
    pub yaw: f32,
    #[pack(min = -1.6, max = 1.6)]
    pub pitch: f32,
}

impl Facing {
    /// Of somebody who goes nowhere: as the world sees it.
    pub fn standing(yaw: f32, pitch: f32) -> Self {
        Self { yaw: (yaw + PI).rem_euclid(2.0 * PI) - PI, pitch }
    }

    /// Of somebody who looks to `yaw` and `pitch` and goes from one place to another.
    pub fn on_way(yaw: f32, pitch: f32, from: Vec3, to: Vec3) -> Self {
        let turned = (yaw - heading(from, to) + PI).rem_euclid(2.0 * PI) - PI;
        Self { yaw: turned, pitch }
    }

    /// Where somebody looks who goes from one place to another. [radians in 0..2π]
    pub fn yaw_on_way(self, from: Vec3, to: Vec3) -> f32 {
        (self.yaw + heading(from, to)).rem_euclid(2.0 * PI)
    }
}

fn heading(from: Vec3, to: Vec3) -> f32 {
    (to.x - from.x).atan2(to.z - from.z)
}

/// Told to a hideout when its owner's connection has ended somewhere else.
#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.owner_left")]
pub struct OwnerLeft;

/// Told by a hideout in its first tick: it is in the world that this comes from, whatever world it was in before.
#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.hideout_made")]
pub struct HideoutMade {
    pub ordinal: u16,
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use throng::prelude::*;
    use throng_pack::Fault;

    use super::*;
    use crate::{gear::piece, inventory::Item, passport::PlayerName};

    fn passport() -> Passport {
        Passport { home: Some(7), name: PlayerName::new("Faye").unwrap(), kills: 12, deaths: 4 }
    }

    fn traveller() -> Traveller {
        let mut inventory = Inventory::usual(PLAYER_WEAPON);
        inventory.take(Item::RifleRounds, 17);
        inventory.add(Item::Credits, 321);
        Traveller {
            health: 63,
            passport: passport(),
            passage: Some(Passage { left: Destination::Hub, through: Destination::DarkZone }),
            facing: Facing { yaw: -1.25, pitch: 0.5 },
            weapon: CarriedWeapon { kind: WeaponKind::Rifle, rounds: 9, busy_ms: 150 },
            inventory,
            bag: bag(),
        }
    }

    fn bag() -> Bag {
        let mut bag = Bag::default();
        (1..4).for_each(|number| bag.gear.put(piece(number)).expect("there is room"));
        bag
    }

    #[test]
    fn all_that_a_player_has_survives_the_bytes() {
        let transfer = Transfer::of(&traveller()).unwrap();
        assert_eq!(transfer.read::<Traveller>(), Ok(traveller()));
        assert!(transfer.bytes().len() < 200, "{}", transfer.bytes().len());
    }

    /// As version 1 was: what was on its way, or kept, when the servers were brought up to date.
    mod first_version {
        use super::*;

        #[derive(Pack)]
        #[pack(name = "precinct.traveller")]
        pub struct Traveller {
            pub health: u8,
            pub passport: Passport,
        }

        #[derive(Pack)]
        #[pack(name = "precinct.traveller", version = 4)]
        pub struct Newer {
            pub health: u8,
        }
    }

    #[test]
    fn bytes_of_the_first_version_are_read_and_what_they_lack_is_usual() {
        let old = Transfer::of(&first_version::Traveller { health: 40, passport: passport() }).unwrap();
        let expect = Traveller {
            health: 40,
            passport: passport(),
            passage: None,
            facing: Facing::default(),
            weapon: CarriedWeapon::loaded(PLAYER_WEAPON),
            inventory: Inventory::usual(PLAYER_WEAPON),
            bag: Bag::default(),
        };
        assert_eq!(old.read::<Traveller>(), Ok(expect));
    }

    #[test]
    fn newer_versions_and_other_types_are_refused_by_name() {
        let newer = Transfer::of(&first_version::Newer { health: 40 }).unwrap().read::<Traveller>().unwrap_err();
        assert_eq!(newer.fault, Fault::NewerVersion { got: 4, known: 3 });
        let other = Transfer::of(&OwnerLeft).unwrap().read::<Traveller>().unwrap_err();
        assert!(matches!(other.fault, Fault::WrongType { .. }));
    }

    /// Whatever the bytes are: an error, or a traveller within the rules of the game.
    #[test]
    fn hostile_bytes_are_refused_or_within_limits() {
        let good = Transfer::of(&traveller()).unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
        let mut read = 0;
        for _ in 0..20_000 {
            let mut bytes = good.bytes().to_vec();
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] ^= 1 << rng.random_range(0..8);
            }
            bytes.truncate(bytes.len() - rng.random_range(0..40_usize).saturating_sub(37));
            let Ok(traveller) = Transfer::from_bytes(bytes).read::<Traveller>() else { continue };
            read += 1;
            assert!((1..=HEALTH_MAX).contains(&traveller.health));
            assert!(traveller.facing.yaw.is_finite() && traveller.facing.pitch.abs() <= 1.6);
            traveller.inventory.check();
        }
        assert!(read > 100, "{read}: the mutations reach behind the envelope");
    }

    #[test]
    fn who_walks_into_a_portal_walks_out_of_the_other() {
        let (from, to) = (Vec3::new(1.0, 0.0, 5.0), Vec3::new(3.0, 0.0, 5.0));
        let (middle, outside) = (Vec3::ZERO, Vec3::new(0.0, 0.0, -2.6));
        let ahead = Facing::on_way(heading(from, to), 0.2, from, to);
        assert!(ahead.yaw.abs() < 1e-6 && ahead.pitch == 0.2, "{ahead:?}");
        assert!((ahead.yaw_on_way(middle, outside) - PI).abs() < 1e-5, "away from the portal");
        let backwards = Facing::on_way(heading(to, from), 0.0, from, to);
        assert!(backwards.yaw_on_way(middle, outside).min(1.0) < 1e-5, "he walks backwards");
    }
}
