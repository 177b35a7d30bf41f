//! Presence: which camps have a player so near that their NPCs are worth the time.
//!
//! Twice a second all players are counted into squares of 256 m; a camp in whose square or one beside it somebody is stays awake for the
//! next second. So a camp wakes before a player can see it, and its falling asleep is late rather than early.
//!
//! Cost: 2 ns a player and camp, twice a second. Allocates nothing.

use crate::{landscape::HALF_SIDE_M, zone::Zone};

const SQUARE_M: f32 = 256.0;
const SQUARES_PER_SIDE: usize = (2.0 * HALF_SIDE_M / SQUARE_M) as usize;
const PERIOD_MS: u32 = 500;
const AWAKE_MS: u32 = 1_100;

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
    fn add(&mut self, place: [f32; 2]) {
        let [column, row] = place.map(square);
        let count = &mut self.squares[row * SQUARES_PER_SIDE + column];
        *count = count.saturating_add(1);
    }

    fn is_anybody_near(&self, place: [f32; 2]) -> bool {
        let [column, row] = place.map(square);
        let around = |at: usize| at.saturating_sub(1)..(at + 2).min(SQUARES_PER_SIDE);
        around(row).any(|row| self.squares[row * SQUARES_PER_SIDE..][around(column)].iter().any(|count| *count > 0))
    }
}

fn square(metres: f32) -> usize {
    (((metres + HALF_SIDE_M) / SQUARE_M).max(0.0) as usize).min(SQUARES_PER_SIDE - 1)
}

/// Wakes the camps that players are near.
pub fn wake(mut zone: Zone) {
    if !zone.now().is_multiple_of(zone.ticks(PERIOD_MS)) {
        return;
    }
    let until = zone.now() + zone.ticks(AWAKE_MS);
    let (minds, actors) = (&mut *zone.minds, &zone.actors);
    minds.presence.squares.fill(0);
    for player in zone.roster.actors() {
        minds.presence.add(actors[player].place);
    }
    let mut awake = 0;
    for (camp, &middle) in minds.camps.iter().enumerate() {
        if minds.presence.is_anybody_near(middle) {
            minds.awake_until[camp] = until;
            awake += 1;
        }
    }
    throng::gauge!("npcs", zone.minds.rows.len());
    throng::gauge!("camps_awake", awake);
}
