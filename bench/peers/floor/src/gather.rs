//! Gather: entities sorted by cell, so that a client's neighbours lie side by side and are copied in passing.

use peers_scenario::{PACKED_BYTES, SIGHT_M, Scene, pack};

/// Number, pose, health.
pub const RECORD_BYTES: usize = 4 + PACKED_BYTES + 2;
/// A record as it is copied: in two words, of which the last bytes are overwritten by the next.
const COPIED_BYTES: usize = 16;
const CELL_M: f32 = 25.0;

/// One tick's records, in the order of the grid.
#[derive(Default)]
pub struct Gather {
    begins: Vec<u32>,
    cells: Vec<u32>,
    places: Vec<[f32; 2]>,
    records: Vec<[u8; COPIED_BYTES]>,
    side: usize,
    half_m: f32,
}

impl Gather {
    pub fn fill(&mut self, scene: &Scene) {
        self.half_m = scene.half_m;
        self.side = (2.0 * scene.half_m / CELL_M) as usize + 1;
        self.begins.clear();
        self.begins.resize(self.side * self.side + 2, 0);
        self.cells.clear();
        for pose in &scene.poses {
            let cell = self.cell(pose.place[2]) * self.side + self.cell(pose.place[0]);
            self.cells.push(cell as u32);
            self.begins[cell + 2] += 1;
        }
        for cell in 1..self.begins.len() {
            self.begins[cell] += self.begins[cell - 1];
        }
        self.places.resize(scene.poses.len(), [0.0; 2]);
        self.records.resize(scene.poses.len(), [0; COPIED_BYTES]);
        for (number, pose) in scene.poses.iter().enumerate() {
            // The end of the cell before moves on and is the beginning of the next when all are in.
            let at = &mut self.begins[self.cells[number] as usize + 1];
            self.places[*at as usize] = [pose.place[0], pose.place[2]];
            self.records[*at as usize] = record(scene, number);
            *at += 1;
        }
    }

    /// Appends the records of all in sight of `centre`.
    pub fn copy_near(&self, centre: [f32; 3], out: &mut Vec<u8>) {
        let rows = self.cell(centre[2] - SIGHT_M)..=self.cell(centre[2] + SIGHT_M);
        let (west, east) = (self.cell(centre[0] - SIGHT_M), self.cell(centre[0] + SIGHT_M));
        for row in rows {
            let (first, last) = (row * self.side + west, row * self.side + east);
            let run = self.begins[first] as usize..self.begins[last + 1] as usize;
            for (place, record) in self.places[run.clone()].iter().zip(&self.records[run]) {
                let (x, z) = (place[0] - centre[0], place[1] - centre[2]);
                if x * x + z * z <= SIGHT_M * SIGHT_M {
                    append(record, out);
                }
            }
        }
    }

    fn cell(&self, metres: f32) -> usize {
        (((metres + self.half_m) / CELL_M).max(0.0) as usize).min(self.side - 1)
    }
}

pub fn record(scene: &Scene, number: usize) -> [u8; COPIED_BYTES] {
    let mut record = [0; COPIED_BYTES];
    record[..4].copy_from_slice(&(number as u32).to_le_bytes());
    record[4..4 + PACKED_BYTES].copy_from_slice(&pack(&scene.poses[number]));
    record[RECORD_BYTES - 2..RECORD_BYTES].copy_from_slice(&scene.health[number].to_le_bytes());
    record
}

#[inline]
pub fn append(record: &[u8; COPIED_BYTES], out: &mut Vec<u8>) {
    let end = out.len() + RECORD_BYTES;
    out.extend_from_slice(record);
    out.truncate(end);
}
