//! Settler: what a bot does to the land: it claims a plot, fells trees and builds with what they give, digs, and hits
//! others' walls now and then.
//!
//! It knows of the land what it was told, and what nobody has touched from the land's seed. What it is told is held
//! against what must be true: it is about a sector around its player, or one that was a moment ago, and a piece has
//! health.

use std::collections::HashMap;

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::habits::once_in;
use throng_client::Client;

use super::{THINK_HZ, senses::Place};
use crate::{
    events::CellChanged,
    land::{Cell, Growth, PieceKind, Plot, Sector, cells::CELL_M},
    protocol::{CellSeen, LandSeen, Realm, Site, Whose, Work},
    works,
};

/// Seconds between two works, on average.
const WORK_S: f32 = 20.0;
/// How much farther than its sectors reach something may have been near, by a round trip and a teleport that is not
/// known yet. (m)
const SLACK_M: f32 = 64.0;

/// A cell as it was told.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Known {
    growth: Growth,
    piece: Option<PieceKind>,
    whose: Whose,
}

/// What a bot knows of the land, and what it has done to it.
#[derive(Default)]
pub struct Settler {
    seed: Option<u64>,
    /// Cells of which it was told that they were changed.
    cells: HashMap<Cell, Known>,
    plot: Option<Plot>,
    pub asked: u64,
    pub told: u64,
}

impl Settler {
    /// Another stay: it is told all anew.
    pub fn enter(&mut self) {
        *self = Self { asked: self.asked, told: self.told, ..Self::default() };
    }

    /// Hears the world's messages. Returns how many it does not understand, and how many cannot be true.
    pub fn hear(&mut self, client: &Client, at: Option<Place>) -> (u64, u64) {
        let (mut strange, mut wrong) = (0, 0);
        for message in client.messages() {
            if let Some(Realm { seed }) = message.read() {
                self.seed = Some(seed);
            } else if let Some(LandSeen { sector, cells }) = message.read() {
                wrong += u64::from(!is_near(sector, at));
                self.cells.retain(|cell, _| cell.sector() != sector);
                for CellSeen { index, growth, piece, whose, .. } in cells.iter().copied() {
                    let piece = piece.map(|piece| piece.kind);
                    self.note(sector.cell(index), Known { growth, piece, whose });
                }
            } else {
                strange += 1;
            }
        }
        (strange, wrong)
    }

    /// A cell has changed. Returns how much of it cannot be true.
    pub fn changed(&mut self, changed: &CellChanged, at: Option<Place>) -> u64 {
        let Some(cell) = Cell::by_number(changed.cell.into()) else { return 1 };
        let is_whole = changed.piece.is_some() == (changed.health > 0);
        self.note(cell, Known { growth: changed.growth, piece: changed.piece, whose: changed.whose });
        u64::from(!is_whole) + u64::from(!is_near(cell.sector(), at))
    }

    fn note(&mut self, cell: Cell, known: Known) {
        self.told += 1;
        let is_corner = cell.plot().corner() == cell;
        if is_corner && known.whose == Whose::Own {
            self.plot = Some(cell.plot());
        } else if self.plot == Some(cell.plot()) && is_corner {
            self.plot = None;
        }
        self.cells.insert(cell, known);
    }

    fn known(&self, cell: Cell) -> Option<Known> {
        let untouched =
            || Some(Known { growth: cell.untouched(self.seed?).growth, piece: None, whose: Whose::Nobodys });
        self.cells.get(&cell).copied().or_else(untouched)
    }

    /// Asks for something to be done to the land, now and then.
    pub fn work(&mut self, client: &mut Client, at: Place, carried: u16, rng: &mut Xoshiro256PlusPlus) {
        if !once_in(WORK_S, THINK_HZ, rng) {
            return;
        }
        let Some(work) = self.choose(at, carried, rng) else { return };
        self.asked += u64::from(client.request(&work).is_ok());
        // What is far is told anew when it comes near.
        let here = Sector::at(at);
        self.cells.retain(|cell, _| cell.sector().is_around(here));
    }

    fn choose(&self, at: Place, carried: u16, rng: &mut Xoshiro256PlusPlus) -> Option<Work> {
        let reach = (works::REACH_M / CELL_M) as i32;
        let aside = |rng: &mut Xoshiro256PlusPlus| rng.random_range(-reach..=reach) as f32 * CELL_M;
        let near: Vec<Cell> = (0..24)
            .map(|_| Cell::at([at[0] + aside(rng), at[1] + aside(rng)]))
            .filter(|cell| cell.away_m2(at) <= works::REACH_M * works::REACH_M)
            .collect();
        let find = |is_it: &dyn Fn(Cell, Known) -> bool| {
            near.iter().copied().find(|cell| self.known(*cell).is_some_and(|known| is_it(*cell, known)))
        };
        match rng.random_range(0..10) {
            _ if self.plot.is_none() => Some(Work::Claim(*near.first()?)),
            0..4 if carried > 0 => {
                let is_site = |cell: Cell, known: Known| {
                    Some(cell.plot()) == self.plot && known.growth == Growth::Bare && known.piece.is_none()
                };
                let kind = if rng.random_bool(0.5) { PieceKind::Wall } else { PieceKind::Floor };
                Some(Work::Build(Site { cell: find(&is_site)?, kind }))
            }
            4 => find(&|cell, known| known.piece.is_some() && Some(cell.plot()) != self.plot).map(Work::Batter),
            5 => find(&|_, known| known.growth == Growth::Boulder).map(Work::Dig),
            // To settle where it is by then.
            6 if rng.random_bool(0.1) => Some(Work::Abandon),
            _ => find(&|_, known| known.growth == Growth::Tree).map(Work::Harvest),
        }
    }
}

/// Whether a sector is one that is told of at a place, or near there.
fn is_near(sector: Sector, at: Option<Place>) -> bool {
    let Some([x, z]) = at else { return true };
    let corners = [[-SLACK_M, -SLACK_M], [-SLACK_M, SLACK_M], [SLACK_M, -SLACK_M], [SLACK_M, SLACK_M], [0.0, 0.0]];
    corners.iter().any(|aside| sector.is_around(Sector::at([x + aside[0], z + aside[1]])))
}
