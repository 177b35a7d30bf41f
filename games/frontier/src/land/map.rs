//! Map: the cells that were changed, sector by sector, as far as somebody is near.
//!
//! ```text
//!   somebody comes near --> asked for --> [take_wanted]  a store's records are read, off the tick  [arrived] --> ready
//!   a ready cell is changed --> dirty --> [take_dirty]   a commit is written, off the tick         [saved]   --> clean
//!   nobody is near any more --> idle  --> the longest idle one goes, if it is clean
//! ```
//!
//! A sector is ready when what is saved of it has come; until then nothing in it can be seen or changed. Where there is no
//! store it is ready at once, and what was changed stays in memory, since it is nowhere else. What a commit has taken
//! along counts as unsaved until the commit is acknowledged, so that no sector goes and is read again before what
//! was changed in it is there to be read. A commit that was refused makes its cells dirty again.
//!
//! What comes back ([`Map::arrived`]) is an input of the world like any other, so that the same inputs give the same map.
//!
//! Cost: a look-up in a table of sectors and a search among the sector's changed cells, some 50 ns; a changed cell takes 24
//! bytes. Nothing is walked in a tick. At most [`IDLE_MAX`] sectors stay that nobody is near, unless they wait to be saved.

use std::collections::{BTreeSet, HashMap, VecDeque};

use bevy_ecs::resource::Resource;

use super::{Cell, Ground, Sector};

/// Sectors that stay in memory though nobody is near. Too low: who walks up and down has the same sectors read again and
/// again. Too high: memory, 24 KB for each at worst.
pub const IDLE_MAX: usize = 512;

/// Lists that are kept for sectors to come: as many as a crowd that runs changes in a tick.
const SPARE_MAX: usize = 64;

/// The changed cells of a world.
#[derive(Resource)]
pub struct Map {
    seed: u64,
    /// There is a store that sectors come from and go to.
    has_store: bool,
    sectors: HashMap<Sector, State>,
    wanted: Vec<Sector>,
    dirty: BTreeSet<Cell>,
    in_flight: VecDeque<(Batch, Vec<Cell>)>,
    newest: Batch,
    /// Those that nobody is near, the longest first. One that somebody came near since is passed over.
    idle: VecDeque<(Sector, u32)>,
    idle_count: usize,
    /// Lists of sectors that went, for those that come: so that walking about allocates nothing.
    spare: Vec<State>,
}

/// Numbers what was handed out to be saved together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Batch(u64);

/// Cells that changed since the last save, each as it is now; `None`: as nobody has touched it.
#[derive(Debug, PartialEq)]
pub struct Dirty {
    pub batch: Batch,
    pub cells: Vec<(Cell, Option<Ground>)>,
}

#[derive(Default)]
struct State {
    /// Rows of the players who are near.
    near: Vec<u32>,
    is_ready: bool,
    /// Cells that are dirty, and those that are on their way to the store.
    unsaved: u32,
    /// Counts how often it became idle.
    stay: u32,
    /// By their place in the sector, ascending.
    changed: Vec<(u16, Ground)>,
}

impl Map {
    pub fn new(seed: u64, has_store: bool) -> Self {
        Self {
            seed,
            has_store,
            sectors: HashMap::new(),
            wanted: Vec::new(),
            dirty: BTreeSet::new(),
            in_flight: VecDeque::new(),
            newest: Batch::default(),
            idle: VecDeque::new(),
            idle_count: 0,
            spare: Vec::new(),
        }
    }

    /// Of which follows what nobody has touched.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A player comes near. Whether the sector is ready.
    pub fn enter(&mut self, sector: Sector, player: u32) -> bool {
        let is_ready = !self.has_store;
        let state = self.sectors.entry(sector).or_insert_with(|| {
            if !is_ready {
                self.wanted.push(sector);
            }
            let new = self.spare.pop().unwrap_or_default();
            State { is_ready, ..new }
        });
        if state.near.is_empty() && state.stay > 0 {
            self.idle_count -= 1;
        }
        state.near.push(player);
        state.is_ready
    }

    /// A player goes away.
    pub fn leave(&mut self, sector: Sector, player: u32) {
        let Some(state) = self.sectors.get_mut(&sector) else { return };
        let Some(index) = state.near.iter().position(|near| *near == player) else { return };
        state.near.swap_remove(index);
        if state.near.is_empty() && !self.has_store && state.changed.is_empty() {
            // There is nothing to know of it, and nothing to be read when somebody comes again.
            self.let_go(sector);
        } else if state.near.is_empty() {
            state.stay += 1;
            self.idle.push_back((sector, state.stay));
            self.idle_count += 1;
            self.make_room();
        }
    }

    fn let_go(&mut self, sector: Sector) {
        let gone = self.sectors.remove(&sector).unwrap_or_default();
        if self.spare.len() < SPARE_MAX {
            let (near, changed) = (emptied(gone.near), emptied(gone.changed));
            self.spare.push(State { near, changed, ..State::default() });
        }
    }

    /// Lets the longest idle sectors go. One that has to stay goes to the end; so each call looks at two at most.
    fn make_room(&mut self) {
        for _ in 0..2 {
            if self.idle_count <= IDLE_MAX {
                break;
            }
            let Some((sector, stay)) = self.idle.pop_front() else { break };
            let Some(state) = self.sectors.get(&sector) else { continue };
            if !state.near.is_empty() || state.stay != stay {
                continue;
            }
            let is_elsewhere = if self.has_store { state.unsaved == 0 } else { state.changed.is_empty() };
            if state.is_ready && is_elsewhere {
                self.let_go(sector);
                self.idle_count -= 1;
            } else {
                self.idle.push_back((sector, stay));
            }
        }
        // Sectors that somebody came near again leave entries behind.
        if self.idle.len() > 4 * IDLE_MAX.max(self.idle_count) {
            let sectors = &self.sectors;
            let is_current = |state: &State, stay: u32| state.near.is_empty() && state.stay == stay;
            self.idle.retain(|(sector, stay)| sectors.get(sector).is_some_and(|state| is_current(state, *stay)));
        }
    }

    /// The players near a sector.
    pub fn near(&self, sector: Sector) -> &[u32] {
        self.sectors.get(&sector).map_or(&[], |state| &state.near)
    }

    /// What was changed in a sector, by the cells' places in it. `None`: it is not ready.
    pub fn changed(&self, sector: Sector) -> Option<&[(u16, Ground)]> {
        self.sectors.get(&sector).filter(|state| state.is_ready).map(|state| &*state.changed)
    }

    /// What a cell is like. `None`: its sector is not ready.
    pub fn ground(&self, cell: Cell) -> Option<Ground> {
        let changed = self.changed(cell.sector())?;
        let found = changed.binary_search_by_key(&cell.index(), |(index, _)| *index);
        Some(found.map_or_else(|_| cell.untouched(self.seed), |at| changed[at].1))
    }

    /// Changes a cell. False: its sector is not ready.
    pub fn change(&mut self, cell: Cell, ground: Ground) -> bool {
        let untouched = cell.untouched(self.seed);
        let Some(state) = self.sectors.get_mut(&cell.sector()).filter(|state| state.is_ready) else { return false };
        let found = state.changed.binary_search_by_key(&cell.index(), |(index, _)| *index);
        match found {
            Ok(at) if ground == untouched => _ = state.changed.remove(at),
            Ok(at) => state.changed[at].1 = ground,
            Err(_) if ground == untouched => return true,
            Err(at) => state.changed.insert(at, (cell.index(), ground)),
        }
        if self.has_store && self.dirty.insert(cell) {
            state.unsaved += 1;
        }
        true
    }

    /// Sectors that somebody came near and that are not here. Each is named once; what is saved of it must arrive.
    pub fn take_wanted(&mut self) -> impl Iterator<Item = Sector> {
        self.wanted.drain(..)
    }

    pub fn wants_any(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// What was saved of a sector, in whatever order. It is ready now. False: nobody has asked for it.
    pub fn arrived(&mut self, sector: Sector, cells: impl IntoIterator<Item = (u16, Ground)>) -> bool {
        let Some(state) = self.sectors.get_mut(&sector).filter(|state| !state.is_ready) else { return false };
        state.is_ready = true;
        state.changed.extend(cells);
        state.changed.sort_unstable_by_key(|(index, _)| *index);
        state.changed.dedup_by_key(|(index, _)| *index);
        true
    }

    /// What has changed since this was last asked; `None` if nothing has. Somebody must say what becomes of it.
    pub fn take_dirty(&mut self) -> Option<Dirty> {
        if self.dirty.is_empty() {
            return None;
        }
        let cells: Vec<Cell> = std::mem::take(&mut self.dirty).into_iter().collect();
        self.newest = Batch(self.newest.0 + 1);
        let as_it_is = |cell: &Cell| {
            let changed = self.changed(cell.sector()).unwrap_or_default();
            let found = changed.binary_search_by_key(&cell.index(), |(index, _)| *index);
            (*cell, found.ok().map(|at| changed[at].1))
        };
        let dirty = Dirty { batch: self.newest, cells: cells.iter().map(as_it_is).collect() };
        self.in_flight.push_back((self.newest, cells));
        Some(dirty)
    }

    /// The commit that a batch went into is on disk.
    pub fn saved(&mut self, batch: Batch) {
        self.settle(batch, true);
    }

    /// It was refused: its cells go with the next one, as they are then.
    pub fn not_saved(&mut self, batch: Batch) {
        self.settle(batch, false);
    }

    fn settle(&mut self, batch: Batch, is_saved: bool) {
        let Some(index) = self.in_flight.iter().position(|(of, _)| *of == batch) else { return };
        let Some((_, cells)) = self.in_flight.remove(index) else { return };
        for cell in cells {
            // One that was changed again meanwhile counts twice.
            let is_over = is_saved || !self.dirty.insert(cell);
            if is_over && let Some(state) = self.sectors.get_mut(&cell.sector()) {
                state.unsaved -= 1;
            }
        }
    }

    /// Sectors in memory.
    pub fn sectors_count(&self) -> usize {
        self.sectors.len()
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        let idle = self.sectors.values().filter(|state| state.near.is_empty()).count();
        assert_eq!(idle, self.idle_count);
        let mut unsaved: HashMap<Sector, u32> = HashMap::new();
        let in_flight = self.in_flight.iter().flat_map(|(_, cells)| cells);
        in_flight.chain(&self.dirty).for_each(|cell| *unsaved.entry(cell.sector()).or_default() += 1);
        for (sector, state) in &self.sectors {
            assert_eq!(state.unsaved, unsaved.remove(sector).unwrap_or(0), "{sector:?}");
            assert!(state.changed.is_sorted_by_key(|(index, _)| *index));
            assert!(state.changed.iter().all(|(index, ground)| *ground != sector.cell(*index).untouched(self.seed)));
        }
        assert!(unsaved.is_empty(), "gone before it was saved: {unsaved:?}");
    }
}

fn emptied<T>(mut list: Vec<T>) -> Vec<T> {
    list.clear();
    list
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::land::{Piece, PieceKind};

    const SEED: u64 = 9;

    fn wall(health: u8) -> Ground {
        Ground { piece: Some(Piece { kind: PieceKind::Wall, health }), ..Ground::BARE }
    }

    fn sector(number: u64) -> Sector {
        Cell::by_number(number << 10).unwrap().sector()
    }

    /// Against a plain table of all cells: players wander, change cells, saves succeed and fail, sectors come late. Nothing
    /// that was changed is ever lost, and memory stays bounded.
    #[test]
    fn a_map_agrees_with_a_table_of_all_cells_whatever_the_store_does() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut map = Map::new(SEED, true);
        let (mut truth, mut disk) = (BTreeMap::<Cell, Ground>::new(), BTreeMap::<Cell, Ground>::new());
        let (mut loading, mut writing) = (Vec::<Sector>::new(), VecDeque::<Dirty>::new());
        let mut players = [None::<Sector>; 6];
        let (mut changes, mut refusals, mut sectors_max) = (0, 0, 0);
        for step in 0..60_000 {
            let player = rng.random_range(0..players.len());
            match rng.random_range(0..10) {
                0..4 => {
                    let goes_to = sector(rng.random_range(0..4_000));
                    if let Some(before) = players[player].replace(goes_to) {
                        map.leave(before, player as u32);
                    }
                    map.enter(goes_to, player as u32);
                }
                4..8 => {
                    let Some(here) = players[player] else { continue };
                    let cell = here.cell(rng.random_range(0..40));
                    let Some(ground) = map.ground(cell) else { continue };
                    assert_eq!(ground, truth.get(&cell).copied().unwrap_or(cell.untouched(SEED)), "{cell:?}");
                    let next =
                        if rng.random_bool(0.3) { cell.untouched(SEED) } else { wall(rng.random_range(1..=100)) };
                    assert!(map.change(cell, next));
                    truth.insert(cell, next);
                    changes += 1;
                }
                8 => {
                    loading.extend(map.take_wanted());
                    if !loading.is_empty() {
                        let arrives = loading.swap_remove(rng.random_range(0..loading.len()));
                        let saved = disk.range(arrives.cell(0)..=arrives.cell(1_023));
                        assert!(map.arrived(arrives, saved.map(|(cell, ground)| (cell.index(), *ground))));
                        assert!(!map.arrived(arrives, [(0, wall(1))]), "it is there already");
                    }
                }
                _ => {
                    writing.extend(map.take_dirty());
                    if writing.len() > 2 {
                        let Dirty { batch, cells } = writing.pop_front().unwrap();
                        // A refusal refuses all that is built on it: the batches behind it, too.
                        if rng.random_bool(0.2) {
                            refusals += 1;
                            map.not_saved(batch);
                            writing.drain(..).for_each(|dirty| map.not_saved(dirty.batch));
                        } else {
                            for (cell, ground) in cells {
                                match ground {
                                    Some(ground) => _ = disk.insert(cell, ground),
                                    None => _ = disk.remove(&cell),
                                }
                            }
                            map.saved(batch);
                        }
                    }
                }
            }
            if step % 50 == 0 {
                map.check();
            }
            sectors_max = sectors_max.max(map.sectors_count());
        }
        assert!(changes > 1_000 && refusals > 100, "{changes} {refusals}");
        // Those that wait for the store are loaded late here, so some more are there than may be idle.
        assert!((IDLE_MAX..4_000).contains(&sectors_max), "{sectors_max}");
        writing.extend(map.take_dirty());
        for Dirty { batch, cells } in writing {
            for (cell, ground) in cells {
                match ground {
                    Some(ground) => _ = disk.insert(cell, ground),
                    None => _ = disk.remove(&cell),
                }
            }
            map.saved(batch);
        }
        truth.retain(|cell, ground| *ground != cell.untouched(SEED));
        assert_eq!(disk, truth);
    }

    #[test]
    fn a_sector_that_waits_to_be_saved_does_not_go_and_an_idle_one_does() {
        let mut map = Map::new(SEED, true);
        let touch = |map: &mut Map, number: u64| {
            map.enter(sector(number), 1);
            map.take_wanted().for_each(drop);
            map.arrived(sector(number), []);
        };
        touch(&mut map, 0);
        assert!(map.change(sector(0).cell(7), wall(50)));
        map.leave(sector(0), 1);
        for number in 1..3 * IDLE_MAX as u64 {
            touch(&mut map, number);
            map.leave(sector(number), 1);
        }
        assert_eq!(map.ground(sector(0).cell(7)), Some(wall(50)), "it is nowhere else");
        assert!(map.sectors_count() <= IDLE_MAX + 1, "{}", map.sectors_count());
        let Dirty { batch, cells } = map.take_dirty().unwrap();
        assert_eq!(cells, [(sector(0).cell(7), Some(wall(50)))]);
        map.saved(batch);
        for number in 0..3 * IDLE_MAX as u64 {
            touch(&mut map, 4_000 + number);
            map.leave(sector(4_000 + number), 1);
        }
        assert_eq!(map.ground(sector(0).cell(7)), None);
        map.check();
    }

    #[test]
    fn without_a_store_all_is_ready_at_once_and_what_was_changed_stays() {
        let mut map = Map::new(SEED, false);
        assert!(map.enter(sector(0), 1));
        assert!(map.change(sector(0).cell(7), wall(50)));
        map.leave(sector(0), 1);
        for number in 1..3 * IDLE_MAX as u64 {
            assert!(map.enter(sector(number), 1));
            map.leave(sector(number), 1);
        }
        assert_eq!(map.ground(sector(0).cell(7)), Some(wall(50)));
        assert!(map.take_dirty().is_none() && !map.wants_any());
        assert!(map.sectors_count() <= IDLE_MAX + 2, "{}", map.sectors_count());
    }
}
