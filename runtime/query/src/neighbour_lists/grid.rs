//! A grid of reference places: who may be near a place, without asking everybody.
//!
//! A square table of cells that wraps around in both directions, so the world has no borders and an empty cell costs
//! four bytes: far places may share a cell, which costs a look and never an answer. A cell is a chain of chunks of
//! [`LANES`] places, column by column, so that a chunk is tested with vector instructions; unused lanes are [`FAR`].
//!
//! Chunks are never given back to the system. Allocates only in [`Grid::reserve`].

use std::ops::RangeInclusive;

/// Places in one chunk: two vectors of four.
pub(super) const LANES: usize = 4;

/// Where unused lanes are: too far to be near anything, yet its square is a number.
const FAR: f32 = 1.0e18;

/// No chunk.
const NONE: u32 = u32::MAX;

/// Cells on a side of the table. More for more entities, so that a cell holds a handful; beyond 256 x 256 cells the
/// table costs more than the places.
const SIDE_MIN: usize = 8;
const SIDE_MAX: usize = 256;

/// Some places of one cell.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Chunk {
    pub x_m: [f32; LANES],
    pub z_m: [f32; LANES],
    pub indexes: [u32; LANES],
    /// Lanes in use, from the first on. Only the first chunk of a cell may have unused ones.
    pub used: u32,
    next: u32,
}

const EMPTY: Chunk = Chunk { x_m: [FAR; LANES], z_m: [FAR; LANES], indexes: [0; LANES], used: 0, next: NONE };

pub(super) struct Grid {
    cells_per_m: f32,
    side: usize,
    /// First chunk of each cell.
    firsts: Vec<u32>,
    chunks: Vec<Chunk>,
    /// First of the chunks that no cell uses.
    free: u32,
}

impl Grid {
    pub fn new(cell_m: f32) -> Self {
        let cells_per_m = 1.0 / cell_m;
        Self { cells_per_m, side: SIDE_MIN, firsts: vec![NONE; SIDE_MIN * SIDE_MIN], chunks: Vec::new(), free: NONE }
    }

    /// Makes room for `entities`, so that nothing allocates until there are more. `true` if the table grew: then it is
    /// empty and every place must be inserted anew.
    pub fn reserve(&mut self, entities: usize) -> bool {
        let mut side = self.side;
        while side * side < entities && side < SIDE_MAX {
            side *= 2;
        }
        // Each cell in use has at most one chunk that is not full.
        let chunks_max = entities.min(side * side) + entities / LANES + 1;
        let grew = side > self.side;
        if grew {
            self.side = side;
            self.firsts.clear();
            self.firsts.resize(side * side, NONE);
            self.chunks.clear();
            self.free = NONE;
        }
        self.chunks.reserve(chunks_max.saturating_sub(self.chunks.len()));
        grew
    }

    pub fn insert(&mut self, index: u32, [x_m, z_m]: [f32; 2]) {
        let cell = self.cell([x_m, z_m]);
        let mut first = self.firsts[cell];
        if first == NONE || self.chunks[first as usize].used == LANES as u32 {
            let chunk = Chunk { next: first, ..EMPTY };
            first = self.free;
            if first == NONE {
                first = self.chunks.len() as u32;
                self.chunks.push(chunk);
            } else {
                self.free = self.chunks[first as usize].next;
                self.chunks[first as usize] = chunk;
            }
            self.firsts[cell] = first;
        }
        let chunk = &mut self.chunks[first as usize];
        let lane = chunk.used as usize;
        (chunk.x_m[lane], chunk.z_m[lane], chunk.indexes[lane]) = (x_m, z_m, index);
        chunk.used += 1;
    }

    /// Takes out the place that was inserted for the index; it must be the same place.
    pub fn remove(&mut self, index: u32, place_m: [f32; 2]) {
        let cell = self.cell(place_m);
        let (at, lane) = self.find(cell, index);
        // The last lane of the cell's first chunk fills the hole.
        let first = self.firsts[cell] as usize;
        let last = self.chunks[first].used as usize - 1;
        let Chunk { x_m, z_m, indexes, .. } = self.chunks[first];
        let hole = &mut self.chunks[at];
        (hole.x_m[lane], hole.z_m[lane], hole.indexes[lane]) = (x_m[last], z_m[last], indexes[last]);
        let chunk = &mut self.chunks[first];
        (chunk.x_m[last], chunk.z_m[last]) = (FAR, FAR);
        chunk.used -= 1;
        if chunk.used == 0 {
            self.firsts[cell] = chunk.next;
            chunk.next = self.free;
            self.free = first as u32;
        }
    }

    /// Moves an index from one place to another.
    pub fn replace(&mut self, index: u32, old_m: [f32; 2], new_m: [f32; 2]) {
        let cell = self.cell(old_m);
        if cell != self.cell(new_m) {
            self.remove(index, old_m);
            self.insert(index, new_m);
            return;
        }
        let (at, lane) = self.find(cell, index);
        [self.chunks[at].x_m[lane], self.chunks[at].z_m[lane]] = new_m;
    }

    /// Calls `visit` with the chunks of all cells that touch a box, each once.
    #[inline(always)]
    pub fn each_chunk(&self, min_m: [f32; 2], max_m: [f32; 2], mut visit: impl FnMut(&Chunk)) {
        let columns = self.span(min_m[0], max_m[0]);
        for row in self.span(min_m[1], max_m[1]) {
            let row = (row as usize & (self.side - 1)) * self.side;
            for column in columns.clone() {
                let mut chunk = self.firsts[row + (column as usize & (self.side - 1))];
                while let Some(here) = self.chunks.get(chunk as usize) {
                    visit(here);
                    chunk = here.next;
                }
            }
        }
    }

    /// About how many cells touch a square of this side.
    pub fn cells_in(&self, side_m: f32) -> f32 {
        let side = (side_m * self.cells_per_m + 1.0).min(self.side as f32);
        side * side
    }

    fn find(&self, cell: usize, index: u32) -> (usize, usize) {
        let mut at = self.firsts[cell] as usize;
        loop {
            let chunk = &self.chunks[at];
            if let Some(lane) = chunk.indexes[..chunk.used as usize].iter().position(|one| *one == index) {
                return (at, lane);
            }
            at = chunk.next as usize;
        }
    }

    fn cell(&self, place_m: [f32; 2]) -> usize {
        let [column, row] = place_m.map(|m| self.line(m) as usize & (self.side - 1));
        row * self.side + column
    }

    /// Rises with the place, also where it saturates: a box's cells are those from its lowest to its highest.
    fn line(&self, m: f32) -> i64 {
        i64::from((m * self.cells_per_m).floor() as i32)
    }

    fn span(&self, min_m: f32, max_m: f32) -> RangeInclusive<i64> {
        let (min, max) = (self.line(min_m), self.line(max_m));
        // A box wider than the table sees every cell, once.
        min..=max.min(min + self.side as i64 - 1)
    }

    pub fn bytes(&self) -> usize {
        self.firsts.capacity() * 4 + self.chunks.capacity() * size_of::<Chunk>()
    }

    /// All places, for checks: index and place, in no order.
    pub fn each(&self, mut visit: impl FnMut(u32, [f32; 2])) {
        for (cell, first) in self.firsts.iter().enumerate() {
            let mut at = *first;
            while let Some(chunk) = self.chunks.get(at as usize) {
                let full = at == *first || chunk.used == LANES as u32;
                assert!(full && chunk.used > 0, "cell {cell}: only its first chunk may have unused lanes");
                for lane in 0..chunk.used as usize {
                    let place_m = [chunk.x_m[lane], chunk.z_m[lane]];
                    assert_eq!(self.cell(place_m), cell);
                    visit(chunk.indexes[lane], place_m);
                }
                at = chunk.next;
            }
        }
    }
}
