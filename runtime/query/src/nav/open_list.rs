//! The open list of a path search: a binary heap that knows where each polygon sits in it.
//!
//! Knowing that, a polygon found again on a shorter way moves up instead of being listed twice, so the heap never
//! holds more than one entry for each polygon and never grows once it has seen a mesh. Equal totals are ordered by
//! polygon number: the same search gives the same path everywhere.

/// Not in the heap.
const ABSENT: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct OpenList {
    /// Least total first, as (total, polygon).
    heap: Vec<(f32, u32)>,
    /// Index in `heap` of each polygon.
    places: Vec<u32>,
}

impl OpenList {
    /// Empties the list and makes room for polygons `0..polygon_count`.
    pub fn reset(&mut self, polygon_count: usize) {
        for (_, polygon) in self.heap.drain(..) {
            self.places[polygon as usize] = ABSENT;
        }
        if self.places.len() < polygon_count {
            self.places.resize(polygon_count, ABSENT);
            self.heap.reserve(polygon_count);
        }
    }

    /// Lists a polygon, or moves it up if it was listed with a larger total.
    pub fn insert_or_improve(&mut self, polygon: u32, total: f32) {
        let mut place = self.places[polygon as usize];
        if place == ABSENT {
            place = self.heap.len() as u32;
            self.heap.push((total, polygon));
            self.places[polygon as usize] = place;
        } else if total < self.heap[place as usize].0 {
            self.heap[place as usize].0 = total;
        } else {
            return;
        }
        self.move_up(place as usize);
    }

    /// Takes the polygon with the least total.
    pub fn pop(&mut self) -> Option<u32> {
        let (_, least) = *self.heap.first()?;
        self.heap.swap_remove(0);
        self.places[least as usize] = ABSENT;
        if let Some((_, moved)) = self.heap.first() {
            self.places[*moved as usize] = 0;
            self.move_down(0);
        }
        Some(least)
    }

    pub fn heap_bytes(&self) -> usize {
        self.heap.capacity() * size_of::<(f32, u32)>() + self.places.capacity() * size_of::<u32>()
    }

    fn before(&self, one: usize, other: usize) -> bool {
        let ((total, polygon), (other_total, other_polygon)) = (self.heap[one], self.heap[other]);
        total.total_cmp(&other_total).then(polygon.cmp(&other_polygon)).is_lt()
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.places[self.heap[one].1 as usize] = one as u32;
        self.places[self.heap[other].1 as usize] = other as u32;
    }

    fn move_up(&mut self, mut place: usize) {
        while place > 0 && self.before(place, (place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn move_down(&mut self, mut place: usize) {
        loop {
            let children = [2 * place + 1, 2 * place + 2];
            let mut least = place;
            for child in children {
                if child < self.heap.len() && self.before(child, least) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list that is searched for its least entry.
        #[test]
        fn polygons_come_out_least_first(steps in prop::collection::vec((0_u32..30, 0_u8..20, any::<bool>()), 0..300)) {
            let mut list = OpenList::default();
            list.reset(30);
            let mut model: Vec<(u8, u32)> = Vec::new();
            for (polygon, total, pop) in steps {
                if pop {
                    model.sort_unstable();
                    let expect = (!model.is_empty()).then(|| model.remove(0).1);
                    prop_assert_eq!(list.pop(), expect);
                    continue;
                }
                match model.iter_mut().find(|entry| entry.1 == polygon) {
                    Some(entry) => entry.0 = entry.0.min(total),
                    None => model.push((total, polygon)),
                }
                list.insert_or_improve(polygon, f32::from(total));
            }
            list.reset(30);
            prop_assert_eq!(list.pop(), None);
        }
    }
}
