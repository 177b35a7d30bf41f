//! Presence: where players are, in squares of 256 m.
//!
//! Whoever asks looks into the square of a place and those beside it: somebody within 256 m is always found.

use crate::landscape::HALF_SIDE_M;

const SQUARE_M: f32 = 256.0;
const SQUARES_PER_SIDE: usize = (2.0 * HALF_SIDE_M / SQUARE_M) as usize;

/// Players per square.
pub struct Presence {
    squares: Vec<u16>,
}

impl Default for Presence {
    fn default() -> Self {
        Self { squares: vec![0; SQUARES_PER_SIDE * SQUARES_PER_SIDE] }
    }
}

impl Presence {
    /// Forgets everybody.
    pub fn clear(&mut self) {
        self.squares.fill(0);
    }

    pub fn add(&mut self, place: [f32; 2]) {
        let [column, row] = place.map(square);
        let count = &mut self.squares[row * SQUARES_PER_SIDE + column];
        *count = count.saturating_add(1);
    }

    pub fn is_anybody_near(&self, place: [f32; 2]) -> bool {
        let [column, row] = place.map(square);
        let around = |at: usize| at.saturating_sub(1)..(at + 2).min(SQUARES_PER_SIDE);
        around(row).any(|row| self.squares[row * SQUARES_PER_SIDE..][around(column)].iter().any(|count| *count > 0))
    }
}

fn square(metres: f32) -> usize {
    (((metres + HALF_SIDE_M) / SQUARE_M).max(0.0) as usize).min(SQUARES_PER_SIDE - 1)
}
