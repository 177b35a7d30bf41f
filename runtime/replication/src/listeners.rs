//! Listeners: which clients are near a place, for what is told to all who are near.
//!
//! Clients are sorted by the place they look from, once in a tick in which anybody asks. Cost: about 10 us per 1,000
//! clients, then about 0.2 us per question with 50 near. Never allocates once it has grown.

use crate::{entities::Entities, grid::Grid, view::View, world::ViewId};

#[derive(Default)]
pub(crate) struct Listeners {
    grid: Grid,
    /// The tick it is from.
    built: Option<u32>,
}

impl Listeners {
    /// Clients came or went.
    pub fn outdate(&mut self) {
        self.built = None;
    }

    /// Takes in where clients are, once per tick.
    pub fn build(&mut self, views: &[Option<Box<View>>], entities: &Entities, cell_m: f32) {
        if self.built.replace(entities.tick) == Some(entities.tick) {
            return;
        }
        self.grid.clear();
        for (index, view) in views.iter().enumerate() {
            if let Some(place) = view.as_ref().and_then(|view| view.look_from(entities)) {
                self.grid.push(index as u32, place);
            }
        }
        self.grid.sort(cell_m);
    }

    /// Appends the clients within `range_m` of a place.
    pub fn near(&self, place: [f32; 2], range_m: f32, out: &mut Vec<ViewId>) {
        let range2 = range_m * range_m;
        self.grid.look_around(place, range_m, |items| {
            let is_near = |item: &&crate::grid::Item| {
                (item.place[0] - place[0]).powi(2) + (item.place[1] - place[1]).powi(2) <= range2
            };
            out.extend(items.iter().filter(is_near).map(|item| ViewId(item.index)));
        });
    }

    pub fn heap_bytes(&self) -> usize {
        self.grid.heap_bytes()
    }
}
