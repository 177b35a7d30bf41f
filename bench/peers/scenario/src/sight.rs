//! Sight: who sees whom, exactly, each tick. The driver's answer to what an interest management answers.
//!
//! Not timed, and told to peers that ask for it: they have no spatial query of their own. Cost: about 2 us per
//! client with 50 in sight.

use crate::{Load, Scene, Terms};

/// A client sees entities up to this far from its own. (m)
pub const SIGHT_M: f32 = 50.0;

/// Side of a grid cell. (m)
const CELL_M: f32 = 25.0;

/// What each client sees. All lists are of entity numbers, ascending.
pub struct Sight {
    pub visible: Vec<Vec<u32>>,
    /// Came into sight in this tick; all there is in the first.
    pub entered: Vec<Vec<u32>>,
    /// Went out of sight in this tick.
    pub left: Vec<Vec<u32>>,
    /// Changed entities seen, over all clients, in this tick: what there is to deliver.
    pub changes: u64,
    before: Vec<u32>,
    /// Entities by cell, and where each cell begins.
    items: Vec<u32>,
    begins: Vec<u32>,
    is_all: bool,
    is_first: bool,
}

impl Sight {
    pub fn new(terms: &Terms) -> Self {
        let lists = || vec![Vec::new(); terms.clients as usize];
        Self {
            visible: lists(),
            entered: lists(),
            left: lists(),
            changes: 0,
            before: Vec::new(),
            items: Vec::new(),
            begins: Vec::new(),
            is_all: terms.load != Load::W1,
            is_first: true,
        }
    }

    /// Sees for this tick.
    pub fn look(&mut self, scene: &Scene) {
        let is_first = std::mem::replace(&mut self.is_first, false);
        if self.is_all {
            self.changes = scene.moved.len() as u64 * self.visible.len() as u64;
            for (visible, entered) in self.visible.iter_mut().zip(&mut self.entered) {
                *entered = Vec::new();
                if is_first {
                    visible.extend(0..scene.poses.len() as u32);
                    entered.extend_from_slice(visible);
                }
            }
            return;
        }
        let side = self.fill_grid(scene);
        self.changes = 0;
        for client in 0..self.visible.len() {
            let (visible, before) = (&mut self.visible[client], &mut self.before);
            std::mem::swap(visible, before);
            visible.clear();
            let centre = scene.poses[client].place;
            let cell = |metres: f32| ((metres + scene.half_m) / CELL_M).max(0.0) as usize;
            let rows = cell(centre[2] - SIGHT_M)..=cell(centre[2] + SIGHT_M).min(side - 1);
            for row in rows {
                let first = row * side + cell(centre[0] - SIGHT_M).min(side - 1);
                let last = row * side + cell(centre[0] + SIGHT_M).min(side - 1);
                let run = self.begins[first] as usize..self.begins[last + 1] as usize;
                visible.extend(self.items[run].iter().filter(|&&number| is_near(scene, client as u32, number)));
            }
            visible.sort_unstable();
            difference(visible, before, &mut self.entered[client]);
            difference(before, visible, &mut self.left[client]);
            self.changes += visible.len() as u64;
        }
    }

    /// Sorts entities by cell and returns how many cells a side has.
    fn fill_grid(&mut self, scene: &Scene) -> usize {
        let side = (2.0 * scene.half_m / CELL_M) as usize + 1;
        let cell_of = |place: [f32; 3]| {
            let cell = |metres: f32| (((metres + scene.half_m) / CELL_M) as usize).min(side - 1);
            cell(place[2]) * side + cell(place[0])
        };
        self.begins.clear();
        self.begins.resize(side * side + 1, 0);
        for pose in &scene.poses {
            self.begins[cell_of(pose.place) + 1] += 1;
        }
        for cell in 0..side * side {
            self.begins[cell + 1] += self.begins[cell];
        }
        self.items.clear();
        self.items.resize(scene.poses.len(), 0);
        let mut ends = self.begins.clone();
        for (number, pose) in scene.poses.iter().enumerate() {
            let end = &mut ends[cell_of(pose.place)];
            self.items[*end as usize] = number as u32;
            *end += 1;
        }
        side
    }
}

/// How far two entities are from each other, on the ground. (m)
pub(crate) fn distance_m(scene: &Scene, a: u32, b: u32) -> f32 {
    let (a, b) = (scene.poses[a as usize].place, scene.poses[b as usize].place);
    (a[0] - b[0]).hypot(a[2] - b[2])
}

fn is_near(scene: &Scene, a: u32, b: u32) -> bool {
    let (a, b) = (scene.poses[a as usize].place, scene.poses[b as usize].place);
    let (x, z) = (a[0] - b[0], a[2] - b[2]);
    x * x + z * z <= SIGHT_M * SIGHT_M
}

/// What is in `these` and not in `those`; all ascending.
fn difference(these: &[u32], those: &[u32], into: &mut Vec<u32>) {
    into.clear();
    let mut at = 0;
    for &number in these {
        while at < those.len() && those[at] < number {
            at += 1;
        }
        if those.get(at) != Some(&number) {
            into.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn everybody_within_sight_is_seen_and_nobody_else() {
        let terms = Terms::parse_from(["peer", "W1", "--clients", "300", "--entities", "300"]);
        let (mut scene, mut sight) = (Scene::new(&terms), Sight::new(&terms));
        for _ in 0..30 {
            let before = sight.visible.clone();
            scene.step();
            sight.look(&scene);
            for client in 0..300 {
                let seen: Vec<u32> = (0..300).filter(|&other| is_near(&scene, client, other)).collect();
                let index = client as usize;
                assert_eq!(sight.visible[index], seen);
                let mut told = before[index].clone();
                told.retain(|number| !sight.left[index].contains(number));
                told.extend(&sight.entered[index]);
                told.sort_unstable();
                assert_eq!(told, seen);
            }
        }
        let mean = sight.visible.iter().map(Vec::len).sum::<usize>() as f32 / 300.0;
        assert!((40.0..60.0).contains(&mean), "{mean} visible");
    }
}
