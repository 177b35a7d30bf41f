//! Interest: which entities each client hears about.
//!
//! An entity becomes relevant inside the enter radius around the client's own entity and stays so up to the
//! leave radius, so that nobody flickers at the edge. Entities without a place, and the client's own, are
//! always relevant; hidden ones are relevant to their own client alone.
//!
//! Sets are rebuilt every few ticks rather than every tick, each client in its turn. At 20 ticks/s and 7 m/s
//! a player moves 1.4 m in the 4 ticks between two rebuilds, well inside the 10 m between the two radii.
//! Worlds of up to 64 slots are compared one by one, every tick; larger ones go through a grid: places
//! sorted by cell, rows of cells contiguous, rebuilt by counting in the ticks when some client is due.
//!
//! ```text
//!        cell_m
//!       +---+---+---+---+---+      places of a row of cells lie side by side in `items`,
//!       |   | . |  .|   |   |      so a client's square is read as one run per row
//!       +---+---+---+---+---+
//!       |   |:  | C | . |   |      C: client. Near = inside enter radius, kept = inside leave radius,
//!       +---+---+---+---+---+      both as one bit per slot, which also puts them into slot order.
//! ```
//!
//! Cost: about 8 us per 1,000 entities for the grid, about 0.4 us per client that is due with 50 relevant.
//! Never allocates in a steady state.

use crate::entities::{Entities, Fault, Standing};

/// How far clients see, and how much they are told.
#[derive(Clone, Debug, PartialEq)]
pub struct InterestSettings {
    /// An entity nearer than this becomes relevant (m, > 0). Default 60.
    /// Too low → things pop up in view; too high → bytes and time grow with its square.
    pub enter_radius_m: f32,
    /// A relevant entity stays so up to this distance (m, at least `enter_radius_m`). Default 70.
    /// Too near to `enter_radius_m` → entities on the edge come and go; too high → as above.
    pub leave_radius_m: f32,
    /// Side of a grid cell (m, > 0). Default 16.
    /// Too low → many cells to visit; too high → many entities to compare in each.
    pub cell_m: f32,
    /// A client's set is rebuilt once in so many ticks (ticks, >= 1). Default 4.
    /// Too low → time; too high → things come into view late, and stay in view late.
    pub period_ticks: u32,
    /// What one client may be sent per tick (bytes). Default 2,400 = two full packets.
    /// Too low → far entities update seldom; too high → one crowd fills the client's line.
    pub budget_bytes_per_tick: u32,
    /// Most replicated entities of a world [1 to `SLOTS_MAX`]. Default 65,536. Above it, spawns are refused.
    pub entities_max: u32,
    /// Packets of one client that may be unanswered [1 to 64]. Default 64. Older ones count as lost.
    pub packets_in_flight_max: u8,
}

impl Default for InterestSettings {
    fn default() -> Self {
        Self {
            enter_radius_m: 60.0,
            leave_radius_m: 70.0,
            cell_m: 16.0,
            period_ticks: 4,
            budget_bytes_per_tick: 2400,
            entities_max: 65_536,
            packets_in_flight_max: 64,
        }
    }
}

/// Slots up to which a world is small: compared one by one, without a grid, every tick.
const SMALL_WORLD_SLOTS: usize = 64;

/// Cells for each entity at most; beyond it cells are made larger, so that one far stray costs no memory.
const CELLS_PER_ENTITY_MAX: usize = 4;

/// A set of slots. Iterates in slot order.
#[derive(Default)]
pub(crate) struct SlotSet {
    words: Vec<u64>,
}

impl SlotSet {
    /// Empties the set and makes room for slots below `count`.
    pub fn reset(&mut self, count: usize) {
        self.words.clear();
        self.words.resize(count.div_ceil(64), 0);
    }

    #[inline]
    pub fn insert(&mut self, slot: u32) {
        self.words[slot as usize / 64] |= 1 << (slot % 64);
    }

    #[inline]
    pub fn contains(&self, slot: u32) -> bool {
        self.words.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// Removes `slot`; returns whether it was there.
    #[inline]
    pub fn take(&mut self, slot: u32) -> bool {
        let Some(word) = self.words.get_mut(slot as usize / 64) else {
            return false;
        };
        let bit = 1 << (slot % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Adds all of `other`; both were reset to the same count.
    pub fn insert_all(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, others)| *word |= others);
    }

    /// Makes this set of what was relevant the set of what is: all that is `near`, and what is `kept` of what
    /// was. Leaves in `near` what was not there before. Returns whether anything comes or goes.
    pub fn move_on(&mut self, near: &mut Self, kept: &Self) -> bool {
        self.words.resize(near.words.len(), 0);
        let mut changed = 0;
        for ((was, near), kept) in self.words.iter_mut().zip(&mut near.words).zip(&kept.words) {
            let is = *near | (*was & kept);
            *near = is & !*was;
            changed |= is ^ *was;
            *was = is;
        }
        changed != 0
    }

    pub fn heap_bytes(&self) -> usize {
        self.words.capacity() * 8
    }

    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Slots from the highest down.
    pub fn iter_descending(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().rev().flat_map(|(index, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let highest = 63_u32.checked_sub(rest.leading_zeros())?;
                rest &= !(1 << highest);
                Some(index as u32 * 64 + highest)
            })
        })
    }
}

#[derive(Copy, Clone)]
struct Item {
    slot: u32,
    place: [f32; 2],
}

/// Finds what is near. One per world; holds buffers only.
#[derive(Default)]
pub(crate) struct Finder {
    items: Vec<Item>,
    sorted: Vec<Item>,
    /// Items of cell `i` are `items[cell_begins[i]..cell_begins[i + 1]]`; empty in a small world.
    cell_begins: Vec<u32>,
    columns_count: usize,
    rows_count: usize,
    cell_m: f32,
    /// Entities without a place, and those with one.
    everywhere: SlotSet,
    placed: SlotSet,
    /// The rectangle around all places.
    low: [f32; 2],
    high: [f32; 2],
    /// What `find` found: inside the enter radius, and inside the leave radius.
    pub near: SlotSet,
    pub kept: SlotSet,
}

/// Whether a world is compared one by one.
pub(crate) fn is_small(entities: &Entities) -> bool {
    entities.slots.len() <= SMALL_WORLD_SLOTS
}

impl Finder {
    /// Takes in where everything is now.
    pub fn rebuild(&mut self, entities: &Entities, cell_m: f32) {
        self.items.clear();
        self.everywhere.reset(entities.slots.len());
        self.placed.reset(entities.slots.len());
        let (mut low, mut high) = ([f32::MAX; 2], [f32::MIN; 2]);
        let alive = entities.slots.iter().enumerate();
        for (slot, row) in alive.filter(|(_, row)| row.alive) {
            match row.standing {
                Standing::Everywhere => self.everywhere.insert(slot as u32),
                Standing::Hidden => {}
                Standing::At(_) if entities.fault == Fault::MissInterest && slot % 4 == 3 => {}
                Standing::At(place) => {
                    low = [low[0].min(place[0]), low[1].min(place[1])];
                    high = [high[0].max(place[0]), high[1].max(place[1])];
                    let slot = slot as u32;
                    self.items.push(Item { slot, place });
                    self.placed.insert(slot);
                }
            }
        }
        (self.low, self.high) = (low, high);
        self.cell_begins.clear();
        if !is_small(entities) && !self.items.is_empty() {
            self.sort_into_cells(cell_m);
        }
    }

    /// Fills `near` and `kept` for a client at `centre`; without a centre only what is everywhere is there.
    pub fn find(
        &mut self,
        slots_count: usize,
        centre: Option<[f32; 2]>,
        own: Option<u32>,
        settings: &InterestSettings,
    ) {
        self.near.reset(slots_count);
        self.kept.reset(slots_count);
        for found in [&mut self.near, &mut self.kept] {
            found.insert_all(&self.everywhere);
            own.into_iter().for_each(|slot| found.insert(slot));
        }
        let Some(centre) = centre else { return };
        let (enter2, leave2) = (settings.enter_radius_m.powi(2), settings.leave_radius_m.powi(2));
        let farthest = |axis: usize| (centre[axis] - self.low[axis]).abs().max((self.high[axis] - centre[axis]).abs());
        if farthest(0).powi(2) + farthest(1).powi(2) <= enter2 {
            // Everything is inside: nothing to compare.
            self.near.insert_all(&self.placed);
            self.kept.insert_all(&self.placed);
            return;
        }
        let (near, kept) = (&mut self.near, &mut self.kept);
        let mut look = |items: &[Item]| {
            for item in items {
                let (x, y) = (item.place[0] - centre[0], item.place[1] - centre[1]);
                let distance2 = x * x + y * y;
                if distance2 <= leave2 {
                    kept.insert(item.slot);
                    if distance2 <= enter2 {
                        near.insert(item.slot);
                    }
                }
            }
        };
        if self.cell_begins.is_empty() {
            look(&self.items);
            return;
        }
        // Casts saturate, so that a centre far outside gives an empty or a border range, never a wrong index.
        let cells = |axis: usize, count: usize| {
            let from = (centre[axis] - settings.leave_radius_m - self.low[axis]) / self.cell_m;
            let to = (centre[axis] + settings.leave_radius_m - self.low[axis]) / self.cell_m;
            (from as usize)..(to as isize).saturating_add(1).clamp(0, count as isize) as usize
        };
        let columns = cells(0, self.columns_count);
        if columns.is_empty() {
            return;
        }
        for row in cells(1, self.rows_count) {
            let first = row * self.columns_count;
            let begin = self.cell_begins[first + columns.start] as usize;
            let end = self.cell_begins[first + columns.end] as usize;
            look(&self.items[begin..end]);
        }
    }

    pub fn heap_bytes(&self) -> usize {
        let sets = [&self.near, &self.kept, &self.everywhere, &self.placed];
        (self.items.capacity() + self.sorted.capacity()) * size_of::<Item>()
            + self.cell_begins.capacity() * 4
            + sets.map(SlotSet::heap_bytes).iter().sum::<usize>()
    }

    /// Counting sort of `items` by cell, row by row.
    fn sort_into_cells(&mut self, cell_m: f32) {
        let (low, high) = (self.low, self.high);
        let cells_max = (self.items.len() * CELLS_PER_ENTITY_MAX) as f64;
        // f64: the distance between two places can be more than an f32 holds.
        let mut side_m = f64::from(cell_m);
        let counts = loop {
            let extent = |axis: usize| f64::from(high[axis]) - f64::from(low[axis]);
            let counts = [extent(0), extent(1)].map(|extent| (extent / side_m).floor() + 1.0);
            if counts[0] * counts[1] <= cells_max {
                break counts;
            }
            side_m *= 2.0;
        };
        self.cell_m = side_m as f32;
        self.columns_count = counts[0] as usize;
        self.rows_count = counts[1] as usize;
        let cells_count = self.columns_count * self.rows_count;
        let (columns_count, rows_count, cell_m) = (self.columns_count, self.rows_count, self.cell_m);
        let cell_of = |item: &Item| {
            let column = (((item.place[0] - low[0]) / cell_m) as usize).min(columns_count - 1);
            let row = (((item.place[1] - low[1]) / cell_m) as usize).min(rows_count - 1);
            row * columns_count + column
        };
        // `cell_begins` first counts each cell's items, then says where the next one goes.
        self.cell_begins.resize(cells_count + 1, 0);
        for item in &self.items {
            self.cell_begins[cell_of(item)] += 1;
        }
        let mut begin = 0;
        for count in &mut self.cell_begins {
            begin += std::mem::replace(count, begin);
        }
        self.sorted.clear();
        self.sorted.resize(self.items.len(), Item { slot: 0, place: [0.0; 2] });
        for item in &self.items {
            let next = &mut self.cell_begins[cell_of(item)];
            self.sorted[*next as usize] = *item;
            *next += 1;
        }
        // Every begin has moved on to its cell's end, which is the next cell's begin.
        self.cell_begins.rotate_right(1);
        self.cell_begins[0] = 0;
        std::mem::swap(&mut self.items, &mut self.sorted);
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::testing::schema;

    fn found(set: &SlotSet) -> Vec<u32> {
        let mut slots: Vec<_> = set.iter_descending().collect();
        assert_eq!(slots.len(), set.len());
        slots.reverse();
        slots
    }

    fn world(places: &[[f32; 2]]) -> Entities {
        let mut entities = Entities::new(schema(), &InterestSettings::default());
        for place in places {
            let id = entities.spawn().unwrap();
            entities.set_place(id, *place);
        }
        entities
    }

    #[test]
    fn the_grid_finds_what_comparing_everything_finds() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut finder = Finder::default();
        for round in 0..60 {
            let settings = InterestSettings {
                enter_radius_m: rng.random_range(1.0..80.0),
                leave_radius_m: 90.0,
                cell_m: rng.random_range(0.5..40.0),
                ..InterestSettings::default()
            };
            let side = [10.0, 300.0, 1e6][round % 3];
            let places: Vec<_> =
                (0..rng.random_range(0..500)).map(|_| [(); 2].map(|()| rng.random_range(-side..side))).collect();
            let entities = world(&places);
            finder.rebuild(&entities, settings.cell_m);
            for centre in [[0.0, 0.0], [side, -side], [3e38, 0.0], [-1e9, 12.0], [rng.random_range(-side..side), 0.0]] {
                finder.find(entities.slots.len(), Some(centre), None, &settings);
                let within = |radius: f32| -> Vec<u32> {
                    let is_within = |place: &[f32; 2]| {
                        (place[0] - centre[0]).powi(2) + (place[1] - centre[1]).powi(2) <= radius.powi(2)
                    };
                    (0..).zip(&places).filter(|(_, place)| is_within(place)).map(|(slot, _)| slot).collect()
                };
                assert_eq!(found(&finder.near), within(settings.enter_radius_m));
                assert_eq!(found(&finder.kept), within(settings.leave_radius_m));
            }
        }
    }

    #[test]
    fn one_far_stray_does_not_blow_up_the_grid() {
        let mut places = vec![[0.0; 2]; 100];
        places.push([3e38, -3e38]);
        let mut finder = Finder::default();
        finder.rebuild(&world(&places), 1.0);
        assert!(finder.cell_begins.len() <= 101 * CELLS_PER_ENTITY_MAX + 1);
        finder.find(101, Some([0.0; 2]), None, &InterestSettings::default());
        assert_eq!(finder.near.len(), 100);
    }

    #[test]
    fn what_has_no_place_is_everywhere_and_what_is_hidden_is_nowhere() {
        let mut entities = world(&[[1000.0, 0.0]]);
        let (placeless, hidden) = (entities.spawn().unwrap(), entities.spawn().unwrap());
        entities.set_standing(hidden, Standing::Hidden);
        let mut finder = Finder::default();
        finder.rebuild(&entities, 16.0);
        finder.find(3, Some([0.0; 2]), None, &InterestSettings::default());
        assert_eq!(found(&finder.near), [placeless.slot]);
        finder.find(3, None, Some(hidden.slot), &InterestSettings::default());
        assert_eq!(found(&finder.near), [placeless.slot, hidden.slot]);
    }
}
