//! Errand: where a bot is going.
//!
//! Its home is where it first stood. It wanders between the camps nearest to that, so that a server with few camps,
//! which are those around the first town, has its bots where its monsters are, and goes to the nearest town when its
//! bags are full or when it feels like it.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::senses::Place;
use crate::landscape::{Landscape, distance_m2};

/// Nearer than this a goal counts as reached. (m)
pub const REACHED_M: f32 = 6.0;
/// Camps that a bot usually wanders between.
pub const CAMPS: usize = 5;
/// How far from the middle of a camp or town it may go. (m)
const STRAY_M: f32 = 20.0;
/// One goal in so many is the town.
const TOWN_ONE_IN: u32 = 8;

#[derive(Debug, Clone, PartialEq)]
pub struct Errand {
    camps_max: usize,
    /// Camps around its home and, last, the nearest town; empty until it has a home.
    sites: Vec<Place>,
    goal: Option<Place>,
    to_bank: bool,
}

impl Errand {
    /// Of a bot that wanders between so many camps [at least 1]. Who has only one stays in it, also with full bags.
    pub fn new(camps_max: usize) -> Self {
        Self { camps_max, sites: Vec::new(), goal: None, to_bank: false }
    }

    /// Begins anew, from wherever it is by then.
    pub fn forget(&mut self) {
        *self = Self::new(self.camps_max);
    }

    /// Keeps the goal until it is reached, given up, or the bags are full.
    pub fn choose(
        &mut self,
        landscape: &Landscape,
        at: Place,
        to_bank: bool,
        give_up: bool,
        rng: &mut Xoshiro256PlusPlus,
    ) {
        let is_reached = self.goal.is_none_or(|goal| distance_m2(goal, at) <= REACHED_M * REACHED_M);
        if !is_reached && !give_up && (!to_bank || self.to_bank) {
            return;
        }
        if self.sites.is_empty() {
            self.settle(landscape, at);
        }
        self.to_bank = to_bank;
        let Some((town, camps)) = self.sites.split_last() else { return };
        let to_town = to_bank || rng.random_range(0..TOWN_ONE_IN) == 0;
        let site = if to_town || camps.is_empty() { *town } else { camps[rng.random_range(0..camps.len())] };
        self.goal = Some(site.map(|metres| metres + rng.random_range(-STRAY_M..STRAY_M)));
    }

    pub fn goal(&self) -> Option<Place> {
        self.goal
    }

    /// Makes `home` the middle of its wanderings. Once in a stay and after each teleport; some 5 µs.
    fn settle(&mut self, landscape: &Landscape, home: Place) {
        let nearest_first = |a: &Place, b: &Place| distance_m2(*a, home).total_cmp(&distance_m2(*b, home));
        let mut camps = landscape.camps().to_vec();
        if camps.len() > self.camps_max {
            camps.select_nth_unstable_by(self.camps_max, nearest_first);
            camps.truncate(self.camps_max);
        }
        self.sites = camps;
        if self.camps_max == 1 {
            return;
        }
        self.sites.extend(landscape.towns().iter().copied().min_by(nearest_first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn check(at: Place, to_bank: bool) -> Place {
        let mut errand = Errand::new(CAMPS);
        errand.choose(&Landscape::load(), at, to_bank, false, &mut Xoshiro256PlusPlus::seed_from_u64(5));
        errand.goal().expect("there is always somewhere to go")
    }

    #[test]
    fn a_goal_is_near_home_and_the_bank_is_in_a_town() {
        let landscape = Landscape::load();
        for &hearth in landscape.hearths() {
            let goal = check(hearth, true);
            let is_town = |town: &Place| distance_m2(*town, goal).sqrt() <= 2.0 * STRAY_M;
            assert!(landscape.towns().iter().any(is_town), "{goal:?}");
            let goal = check(hearth, false);
            let is_site = |site: &Place| distance_m2(*site, goal).sqrt() <= 2.0 * STRAY_M;
            assert!(landscape.camps().iter().chain(landscape.towns()).any(is_site), "{goal:?}");
        }
    }

    #[test]
    fn who_has_one_camp_stays_in_it() {
        let landscape = Landscape::load();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let home = landscape.hearths()[0];
        let mut errand = Errand::new(1);
        for to_bank in [false, true, false] {
            errand.choose(&landscape, home, to_bank, true, &mut rng);
            let goal = errand.goal().unwrap();
            let nearest = landscape.camps().iter().map(|camp| distance_m2(*camp, goal)).fold(f32::INFINITY, f32::min);
            assert!(nearest.sqrt() <= 2.0 * STRAY_M, "{goal:?}");
        }
    }

    #[test]
    fn a_goal_stays_until_it_is_reached_or_given_up() {
        let landscape = Landscape::load();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
        let home = landscape.hearths()[3];
        let mut errand = Errand::new(CAMPS);
        errand.choose(&landscape, home, false, false, &mut rng);
        let goal = errand.goal().unwrap();
        errand.choose(&landscape, home, false, false, &mut rng);
        assert_eq!(errand.goal(), Some(goal));
        errand.choose(&landscape, goal, false, false, &mut rng);
        let next = errand.goal().unwrap();
        assert_ne!(next, goal);
        errand.choose(&landscape, home, false, true, &mut rng);
        assert_ne!(errand.goal(), Some(next));
    }
}
