//! Itinerary: how long a bot stays where, where it goes, and when; and the scenarios that follow from it.
//!
//! A bot begins as if it had played for long. It logs in at home, as everybody does, but has a part of its stay behind
//! it: those who would be away set out at once, and stay away for what is left of that. So after a walk to the portals,
//! some 12 s, worlds would have as many players as they go on having, if walks were all that comes between. A run of
//! 1,000 settles within a minute. (When everybody began with a whole stay at home, it took two.)
//!
//! What is left of a stay, for somebody met at any time, is a uniform part of a stay that is drawn by its length: long
//! stays are met more often. (The inspection paradox of renewal processes; Feller II, XI.4.)

use std::ops::Range;

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::{Joins, Scenario};
use throng_platform::time::Nanos;

use crate::portals::Destination;

/// From anywhere in the level to a portal. (s) Stays and walks alone would have three in four at home; runs settle with
/// seven in ten.
const WALK_S: f32 = 11.5;

/// As most play.
pub const USUAL: Scenario = Scenario {
    name: Scenario::USUAL,
    about: "seven in ten at home, the others in hub and dark zone",
    joins: Joins::InTurn,
};
/// The most players in a world in which everybody shoots.
pub const DARK_ZONE: Scenario =
    Scenario { name: "dark-zone", about: "everybody goes to the dark zone and stays there", joins: Joins::InTurn };
/// The most transfers in a tick.
pub const TRAVEL_AT_ONCE: Scenario = Scenario {
    name: "travel-at-once",
    about: "everybody goes through a portal in the same moment, every 7.5 s",
    joins: Joins::InTurn,
};

/// Ground that is streamed and blown up: another game, see [`crate::district`].
pub const DISTRICT: Scenario = Scenario {
    name: "district",
    about: "bands of eight, each in two kilometres of city of its own, whose ground is streamed and blown up",
    joins: Joins::InTurn,
};

/// All that there are, the usual one first.
pub const SCENARIOS: [Scenario; 5] = [USUAL, DARK_ZONE, Scenario::LOG_IN_AT_ONCE, TRAVEL_AT_ONCE, DISTRICT];

/// How long a bot stays where.
#[derive(Debug, Clone, PartialEq)]
pub struct Itinerary {
    /// At home, until it sets out for the hub or the dark zone. (s)
    pub at_home_s: Range<f32>,
    /// In a shared world, until it looks for the way back. (s)
    pub away_s: Range<f32>,
    /// Of those who set out, how many go to the dark zone; the others go to the hub. [0 to 1]
    pub dark_zone_share: f64,
    /// Whether everybody waits at the portal for the moment in which all go through. Then stays are as long as that
    /// takes, and it always goes to the same world.
    pub in_step: bool,
}

impl Default for Itinerary {
    /// With the walks to the portals, three in four bots would be at home at any time; runs settle with seven in ten.
    fn default() -> Self {
        Self { at_home_s: 40.0..90.0, away_s: 8.0..20.0, dark_zone_share: 0.5, in_step: false }
    }
}

impl Itinerary {
    /// Who is in the dark zone stays for longer than any run. (s)
    const FOR_GOOD_S: f32 = 1e7;
    /// A round in step: from home to home. (ms) So short that the half minutes by which a load run judges whether it
    /// has settled have whole ones, and long enough to walk away from a portal and back.
    const ROUND_MS: u64 = 15_000;
    /// For how long a portal is gone through in each half of a round. (ms) Who is late waits for the next round.
    const OPEN_MS: u64 = 1_500;

    /// How bots play one of [`SCENARIOS`].
    pub fn of(scenario: Scenario) -> Self {
        let usual = Self::default();
        match scenario {
            DARK_ZONE => {
                Self { at_home_s: 0.0..0.0, away_s: Self::FOR_GOOD_S..Self::FOR_GOOD_S, dark_zone_share: 1.0, ..usual }
            }
            TRAVEL_AT_ONCE => Self { at_home_s: 0.0..0.0, away_s: 0.0..0.0, in_step: true, ..usual },
            _ => usual,
        }
    }

    /// How long a stay is to be, from its beginning to the walk to the portal. (s)
    pub fn stay_s(&self, here: Destination, rng: &mut Xoshiro256PlusPlus) -> f32 {
        let range = self.stays_s(here);
        // An empty range is one length.
        if range.is_empty() { range.start } else { rng.random_range(range.clone()) }
    }

    /// Whether a bot that begins would be away by now, had it played for long.
    pub fn begins_away(&self, rng: &mut Xoshiro256PlusPlus) -> bool {
        let whole_s = |range: &Range<f32>| (range.start + range.end) / 2.0 + WALK_S;
        let (home_s, away_s) = (whole_s(&self.at_home_s), whole_s(&self.away_s));
        rng.random_bool(f64::from(away_s / (home_s + away_s)))
    }

    /// What is left of a stay that has been going on for any time, from now to the walk to the portal. (s)
    ///
    /// A bot that begins at home and would be there anyhow has the time of a walk more: those who would be away are on
    /// theirs. These come out at the portal by which they go home, so who has little time left need not come far.
    pub fn rest_of_stay_s(&self, here: Destination, rng: &mut Xoshiro256PlusPlus) -> f32 {
        let longest_s = self.stays_s(here).end.max(self.stays_s(here).start) + WALK_S;
        loop {
            let whole_s = self.stay_s(here, rng) + WALK_S;
            if rng.random_range(0.0..longest_s) <= whole_s {
                let left_s = rng.random_range(0.0..whole_s);
                let is_at_portal = here != Destination::Hideout;
                return if is_at_portal { (left_s / 2.0).max(left_s - WALK_S) } else { left_s };
            }
        }
    }

    /// Where somebody goes who leaves `here`.
    pub fn next(&self, here: Destination, rng: &mut Xoshiro256PlusPlus) -> Destination {
        match here {
            Destination::Hideout if rng.random_bool(self.dark_zone_share) => Destination::DarkZone,
            Destination::Hideout => Destination::Hub,
            _ => Destination::Hideout,
        }
    }

    /// Whether somebody who has reached a portal may go through it now. All bots of a swarm have one clock.
    pub fn may_pass(&self, now: Nanos, here: Destination) -> bool {
        let half_ms = if here == Destination::Hideout { 0 } else { Self::ROUND_MS / 2 };
        let in_round_ms = (now.as_micros() / 1_000) % Self::ROUND_MS;
        !self.in_step || (half_ms..half_ms + Self::OPEN_MS).contains(&in_round_ms)
    }

    fn stays_s(&self, here: Destination) -> &Range<f32> {
        match here {
            Destination::Hideout => &self.at_home_s,
            // It walked through the wrong portal on its way.
            Destination::Hub if self.dark_zone_share >= 1.0 => &(0.0..0.0),
            _ => &self.away_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    /// Players away at each second, among so many who play for as long, in a world in which every walk takes as long.
    fn away_by_second(bots: u64, seconds: usize) -> Vec<f64> {
        let itinerary = Itinerary::default();
        let mut away = vec![0.0; seconds];
        for seed in 0..bots {
            let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut here = Destination::Hideout;
            let begins_away = itinerary.begins_away(rng);
            let mut stay_s = if begins_away { 0.0 } else { itinerary.rest_of_stay_s(here, rng) };
            let (mut from_s, mut walk_s, mut is_first_away) = (0.0, WALK_S, begins_away);
            while (from_s as usize) < seconds {
                let to_s = from_s + stay_s + walk_s;
                if here != Destination::Hideout {
                    away[from_s as usize..(to_s as usize).min(seconds)].iter_mut().for_each(|count| *count += 1.0);
                }
                (from_s, here) = (to_s, itinerary.next(here, rng));
                if std::mem::take(&mut is_first_away) {
                    stay_s = itinerary.rest_of_stay_s(here, rng);
                    // It has to be away from the portal once.
                    walk_s = stay_s.clamp(2.0, WALK_S);
                } else {
                    (stay_s, walk_s) = (itinerary.stay_s(here, rng), WALK_S);
                }
            }
        }
        away.iter().map(|count| count / bots as f64).collect()
    }

    /// Promise: worlds have as many players from the first walk on as they go on having.
    #[test]
    fn bots_begin_in_the_distribution_that_they_settle_in() {
        let away = away_by_second(20_000, 1_200);
        let mean = |range: Range<usize>| away[range.clone()].iter().sum::<f64>() / range.len() as f64;
        let settled = mean(600..1_200);
        assert!((0.23..0.27).contains(&settled), "{settled} are away");
        for begin in (15..180).step_by(15) {
            let early = mean(begin..begin + 15);
            assert!((early - settled).abs() < 0.02, "{early} from second {begin} on, {settled} for good");
        }
    }

    #[test]
    fn everybody_passes_in_the_same_moments_and_nobody_waits_for_a_portal_otherwise() {
        let usual = Itinerary::default();
        let in_step = Itinerary::of(TRAVEL_AT_ONCE);
        let passes = |itinerary: &Itinerary, here| {
            let may = |ms: &u64| itinerary.may_pass(Nanos::from_millis(*ms), here);
            (0..60_000_u64).step_by(50).filter(may).count()
        };
        assert_eq!(passes(&usual, Destination::Hub), 1_200);
        assert_eq!((passes(&in_step, Destination::Hub), passes(&in_step, Destination::Hideout)), (120, 120));
        assert!(in_step.may_pass(Nanos::from_millis(15_100), Destination::Hideout));
        assert!(in_step.may_pass(Nanos::from_millis(22_600), Destination::DarkZone));
        assert!(!in_step.may_pass(Nanos::from_millis(22_600), Destination::Hideout));
    }

    #[test]
    fn who_is_in_the_dark_zone_for_good_stays() {
        let (itinerary, rng) = (Itinerary::of(DARK_ZONE), &mut Xoshiro256PlusPlus::seed_from_u64(3));
        assert!(itinerary.begins_away(rng));
        assert_eq!(itinerary.next(Destination::Hideout, rng), Destination::DarkZone);
        assert_eq!(itinerary.stay_s(Destination::Hideout, rng), 0.0);
        assert!(itinerary.stay_s(Destination::DarkZone, rng) > 1e6);
        assert_eq!(itinerary.stay_s(Destination::Hub, rng), 0.0, "but who comes to the hub by mistake does not");
    }
}
