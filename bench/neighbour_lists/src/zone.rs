//! A zone as those of large online games are: camps that stand about, roamers that stroll and pause, a few fights that
//! run, players that travel. Most of it is idle most of the time.
//!
//! 250 entities per square kilometre, whatever their number, so a neighbour list of 200 m holds 20 to 60 of them.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub const TICKS_PER_S: u32 = 20;
const DENSITY_PER_M2: f32 = 250.0e-6;

/// Groups of neighbour lists.
pub const PLAYER: u32 = 1;
pub const GUARD: u32 = 1 << 1;
pub const FIGHTING: u32 = 1 << 2;
pub const HURT: u32 = 1 << 3;
pub const AFFLICTED: u32 = 1 << 4;
pub const DOOR: u32 = 1 << 5;
pub const BANKER: u32 = 1 << 6;
pub const TRAP: u32 = 1 << 7;
pub const TOTEM: u32 = 1 << 8;
/// The first of eight factions of monsters.
pub const FACTION: u32 = 1 << 16;
pub const MONSTER: u32 = 0xFF << 16;

/// One that moves, and how.
struct Mover {
    home_m: [f32; 2],
    target_m: [f32; 2],
    /// How far from home it goes.
    roam_m: f32,
    walk_m_per_s: f32,
    /// Stands until this tick.
    paused_until: u32,
    /// Fights until this tick: runs about, then stands.
    fights_until: u32,
}

pub struct Zone {
    pub x_m: Vec<f32>,
    pub z_m: Vec<f32>,
    pub groups: Vec<u32>,
    /// Whose groups have changed in this tick.
    pub regrouped: Vec<u32>,
    movers: Vec<Mover>,
    side_m: f32,
    random: Xoshiro256PlusPlus,
    tick: u32,
}

impl Zone {
    /// 88 % monsters, 4 % players, 3 % guards, 3 % doors and bankers, 2 % traps and totems.
    pub fn new(entities: u32, seed: u64) -> Self {
        let side_m = (entities as f32 / DENSITY_PER_M2).sqrt();
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut zone = Self {
            x_m: Vec::new(),
            z_m: Vec::new(),
            groups: Vec::new(),
            regrouped: Vec::new(),
            movers: Vec::new(),
            side_m,
            random,
            tick: 0,
        };
        while zone.x_m.len() < entities as usize {
            zone.add_neighbourhood(entities as usize);
        }
        zone
    }

    /// A hundred entities or so, in the order in which a zone's file would name them.
    fn add_neighbourhood(&mut self, entities: usize) {
        let town_m = self.anywhere();
        for number in 0..6 {
            let groups = [GUARD, GUARD, GUARD, DOOR, DOOR, BANKER][number];
            self.add(town_m, 30.0, groups, if groups == GUARD { 8.0 } else { 0.0 }, 1.5, entities);
        }
        for _ in 0..2 {
            let place_m = self.anywhere();
            let groups = if self.random.random_bool(0.5) { TRAP } else { TOTEM };
            self.add(place_m, 0.0, groups, 0.0, 0.0, entities);
        }
        for _ in 0..8 {
            let (camp_m, faction) = (self.anywhere(), FACTION << self.random.random_range(0..8));
            for _ in 0..self.random.random_range(4..13) {
                let roam_m = if self.random.random_bool(0.15) { 10.0 } else { 0.0 };
                self.add(camp_m, 20.0, faction, roam_m, 1.0, entities);
            }
        }
        for _ in 0..24 {
            let (home_m, faction) = (self.anywhere(), FACTION << self.random.random_range(0..8));
            let walk_m_per_s = self.random.random_range(1.0..3.0);
            self.add(home_m, 0.0, faction, 60.0, walk_m_per_s, entities);
        }
        for _ in 0..4 {
            let place_m = self.anywhere();
            // Half the players stay where they fight, the others travel.
            let (roam_m, speed) = if self.random.random_bool(0.5) { (15.0, 3.0) } else { (self.side_m, 7.0) };
            self.add(place_m, 0.0, PLAYER, roam_m, speed, entities);
        }
    }

    fn add(&mut self, place_m: [f32; 2], spread_m: f32, groups: u32, roam_m: f32, walk_m_per_s: f32, entities: usize) {
        if self.x_m.len() == entities {
            return;
        }
        let home_m = self.around(place_m, spread_m);
        self.x_m.push(home_m[0]);
        self.z_m.push(home_m[1]);
        self.groups.push(groups);
        let paused_until = self.random.random_range(0..20 * TICKS_PER_S);
        self.movers.push(Mover { home_m, target_m: home_m, roam_m, walk_m_per_s, paused_until, fights_until: 0 });
    }

    fn anywhere(&mut self) -> [f32; 2] {
        [self.random.random_range(0.0..self.side_m), self.random.random_range(0.0..self.side_m)]
    }

    fn around(&mut self, [x, z]: [f32; 2], spread_m: f32) -> [f32; 2] {
        let mut near = |m: f32| (m + self.random.random_range(-spread_m..=spread_m)).clamp(0.0, self.side_m);
        [near(x), near(z)]
    }

    /// One tick: who moves, moves; fights begin and end.
    pub fn step(&mut self) {
        self.tick += 1;
        self.regrouped.clear();
        for row in 0..self.x_m.len() {
            self.change_groups(row);
            self.walk(row);
        }
    }

    /// At any time about 4 % of monsters, guards and players fight, for 15 s each; some are hurt or ill.
    fn change_groups(&mut self, row: usize) {
        let before = self.groups[row];
        if before & (MONSTER | PLAYER | GUARD) == 0 {
            return;
        }
        let mut groups = before;
        if before & FIGHTING != 0 {
            if self.tick >= self.movers[row].fights_until {
                groups &= !FIGHTING;
            } else if self.random.random_ratio(1, 5 * TICKS_PER_S) {
                groups ^= HURT;
            }
        } else if self.random.random_ratio(1, 360 * TICKS_PER_S) || self.tick == 1 && self.random.random_ratio(1, 25) {
            groups |= FIGHTING;
            self.movers[row].fights_until = self.tick + 15 * TICKS_PER_S;
            self.movers[row].paused_until = 0;
        } else if before & HURT != 0 && self.random.random_ratio(1, 20 * TICKS_PER_S) {
            groups &= !HURT;
        }
        if self.random.random_ratio(1, (if before & AFFLICTED != 0 { 20 } else { 2_000 }) * TICKS_PER_S) {
            groups ^= AFFLICTED;
        }
        if groups != before {
            self.groups[row] = groups;
            self.regrouped.push(row as u32);
        }
    }

    fn walk(&mut self, row: usize) {
        let mover = &self.movers[row];
        // The first five seconds of a fight are a chase.
        let chases = mover.fights_until > self.tick + 10 * TICKS_PER_S;
        if !chases && (mover.roam_m == 0.0 || self.tick < mover.paused_until || self.groups[row] & FIGHTING != 0) {
            return;
        }
        let speed = if chases { 7.0 } else { mover.walk_m_per_s };
        let step_m = speed / TICKS_PER_S as f32;
        let (dx, dz) = (mover.target_m[0] - self.x_m[row], mover.target_m[1] - self.z_m[row]);
        let left_m = (dx * dx + dz * dz).sqrt();
        if left_m > step_m {
            self.x_m[row] += dx / left_m * step_m;
            self.z_m[row] += dz / left_m * step_m;
            return;
        }
        let (home_m, roam_m) = (mover.home_m, if chases { 60.0 } else { mover.roam_m });
        self.movers[row].target_m = self.around(home_m, roam_m);
        if !chases {
            self.movers[row].paused_until = self.tick + self.random.random_range(5..20) * TICKS_PER_S;
        }
    }
}
