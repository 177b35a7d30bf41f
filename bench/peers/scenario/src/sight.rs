//! Sight: who sees whom, exactly, each tick. The driver's answer to what an interest management answers.
//!
//! Not timed, and told to peers that ask for it: they have no spatial query of their own. Cost: about 2 us per
//! client with 50 in sight.

use std::ops::Range;

use crate::{Load, Scene, Terms, WORLD_ENTITIES};

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
    load: Load,
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
            load: terms.load,
            is_first: true,
        }
    }

    /// Sees for this tick.
    pub fn look(&mut self, scene: &Scene) {
        let is_first = std::mem::replace(&mut self.is_first, false);
        if self.load != Load::W1 {
            let viewers_count = if self.load == Load::W4 { 1 } else { self.visible.len() };
            self.changes = scene.moved.len() as u64 * viewers_count as u64;
            for (client, (visible, entered)) in (0..).zip(self.visible.iter_mut().zip(&mut self.entered)) {
                *entered = Vec::new();
                if is_first {
                    visible.extend(world_of(scene, client));
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

/// Whether an entity is farther than `reach_m` from that of a client, on the ground; who is in another world is.
pub(crate) fn is_beyond(scene: &Scene, client: u32, number: u32, reach_m: f32) -> bool {
    let world = world_of(scene, client);
    if !world.contains(&number) {
        return true;
    }
    // Where a client has a world of its own, the first in it is the client's.
    let own = if scene.load == Load::W4 { world.start } else { client };
    let (a, b) = (scene.poses[own as usize].place, scene.poses[number as usize].place);
    (a[0] - b[0]).hypot(a[2] - b[2]) > reach_m
}

/// Everybody in the world of a client.
fn world_of(scene: &Scene, client: u32) -> Range<u32> {
    match scene.load {
        Load::W4 => client * WORLD_ENTITIES..(client + 1) * WORLD_ENTITIES,
        _ => 0..scene.poses.len() as u32,
    }
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

    #[test]
    fn each_client_of_small_worlds_sees_its_own_and_nobody_else() {
        let terms = Terms::parse_from(["peer", "W4", "--clients", "3", "--entities", "60"]);
        let (mut scene, mut sight) = (Scene::new(&terms), Sight::new(&terms));
        for tick in 0..3 {
            let before = scene.poses.clone();
            scene.step();
            sight.look(&scene);
            let changed: Vec<u32> = (0..60).filter(|&n| scene.poses[n as usize] != before[n as usize]).collect();
            let movers = (0..10).chain(20..30).chain(40..50);
            assert!(movers.clone().eq(changed) && movers.eq(scene.moved.iter().copied()));
            assert_eq!(sight.changes, 30);
            for client in 0..3 {
                let world: Vec<u32> = (client * 20..client * 20 + 20).collect();
                assert_eq!(sight.visible[client as usize], world);
                assert_eq!(sight.entered[client as usize], if tick == 0 { world } else { Vec::new() });
                let others = (0..60).filter(|number| is_beyond(&scene, client, *number, SIGHT_M));
                assert!(others.eq((0..60).filter(|number| number / 20 != client)));
            }
        }
    }
}
