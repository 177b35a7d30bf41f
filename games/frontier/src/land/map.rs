//! Map: the cells that were changed, sector by sector, as far as somebody is near.
//!
//! ```text
//!   somebody comes near --> asked for --> [take_wanted]  a store's records are read, off the tick  [arrived] --> ready
//!   a ready cell is changed --> dirty --> [take_dirty]   a cut's commit is written, off the tick   [saved]   --> clean
//!   nobody is near any more --> idle  --> the longest idle one goes, if it is clean
//! ```
//!
//! A sector is ready when what is saved of it has come; until then nothing in it can be seen or changed. Where there is no
//! store it is ready at once, and what was changed stays in memory, since it is nowhere else. What a commit has taken
//! along counts as unsaved until the commit is acknowledged, so that no sector goes and is read again before what
//! was changed in it is there to be read.
//!
//! What comes back ([`Map::arrived`]) is an input of the world like any other, so that the same inputs give the same map. What
//! came for an earlier question is refused: what it says may be older than what was changed and saved since. That a commit is
//! on disk is no input that a log keeps, so a world that is made again after a panic may have sectors that it had let go of;
//! it asks for less then.
//!
//! Cost: a look-up in a table of sectors and a search among the sector's changed cells, some 50 ns; a changed cell takes 24
//! bytes. Nothing is walked in a tick. At most [`IDLE_MAX`] sectors stay that nobody is near, unless they wait to be saved.

use std::collections::{BTreeSet, HashMap, VecDeque};

use bevy_ecs::resource::Resource;

use throng_pack::{List, Pack};

use super::{
    Cell, Ground, Sector,
    cells::{CELLS, SECTOR_CELLS, SECTORS_PER_SIDE},
};

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
    /// Counts what was asked for.
    asks: u32,
    dirty: BTreeSet<Cell>,
    /// By the tick of the cut that took them.
    in_flight: VecDeque<(u32, Vec<Cell>)>,
    /// Those that nobody is near, the longest first. One that somebody came near since is passed over.
    idle: VecDeque<(Sector, u32)>,
    idle_count: usize,
    /// Lists of sectors that went, for those that come: so that walking about allocates nothing.
    spare: Vec<State>,
}

/// Cells that changed since the last save, each as it is now and in the order of their numbers; `None`: as nobody has
/// touched it.
pub type Dirty = Vec<(Cell, Option<Ground>)>;

/// A sector that is to be read from the store, and the number of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    pub sector: Sector,
    pub ask: u32,
}

#[derive(Default)]
struct State {
    /// Rows of the players who are near.
    near: Vec<u32>,
    is_ready: bool,
    /// The number of the question that is to be answered.
    asked: u32,
    /// It could not be read: it is asked for again when somebody comes near.
    has_failed: bool,
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
            asks: 0,
            dirty: BTreeSet::new(),
            in_flight: VecDeque::new(),
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
        if std::mem::take(&mut state.has_failed) {
            self.wanted.push(sector);
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
            if (state.is_ready || state.has_failed) && is_elsewhere {
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

    /// Sectors that somebody came near and that are not here. Each is named once; what is saved of it must arrive, or that
    /// nothing of it does.
    pub fn take_wanted(&mut self) -> impl Iterator<Item = Wanted> {
        let Self { wanted, sectors, asks, .. } = self;
        wanted.drain(..).map(move |sector| {
            *asks = asks.wrapping_add(1);
            if let Some(state) = sectors.get_mut(&sector) {
                state.asked = *asks;
            }
            Wanted { sector, ask: *asks }
        })
    }

    pub fn wants_any(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// What was saved of a sector, in whatever order. It is ready now. False: this is no answer to what was asked last.
    pub fn arrived(&mut self, Wanted { sector, ask }: Wanted, cells: impl IntoIterator<Item = (u16, Ground)>) -> bool {
        let is_asked = |state: &&mut State| !state.is_ready && !state.has_failed && state.asked == ask;
        let Some(state) = self.sectors.get_mut(&sector).filter(is_asked) else { return false };
        state.is_ready = true;
        state.changed.extend(cells);
        state.changed.sort_unstable_by_key(|(index, _)| *index);
        state.changed.dedup_by_key(|(index, _)| *index);
        true
    }

    /// It could not be read. Nothing in it can be changed until somebody comes near and it can. False: as [`Self::arrived`].
    pub fn not_arrived(&mut self, Wanted { sector, ask }: Wanted) -> bool {
        let state = self.sectors.get_mut(&sector).filter(|state| !state.is_ready && state.asked == ask);
        state.is_some_and(|state| !std::mem::replace(&mut state.has_failed, true))
    }

    /// Wants all anew that was asked for and has not come: nobody knows which of it still will.
    pub fn ask_again(&mut self) {
        let waits = |state: &State| !state.is_ready && !state.has_failed;
        self.wanted = self.sectors.iter().filter(|(_, state)| waits(state)).map(|(sector, _)| *sector).collect();
        self.wanted.sort_unstable();
    }

    /// What has changed since this was last asked, for the cut of this tick; none if nothing has. Somebody must say what
    /// becomes of it.
    pub fn take_dirty(&mut self, tick: u32) -> Dirty {
        if self.dirty.is_empty() {
            return Vec::new();
        }
        let cells: Vec<Cell> = std::mem::take(&mut self.dirty).into_iter().collect();
        let as_it_is = |cell: &Cell| {
            let changed = self.changed(cell.sector()).unwrap_or_default();
            let found = changed.binary_search_by_key(&cell.index(), |(index, _)| *index);
            (*cell, found.ok().map(|at| changed[at].1))
        };
        let dirty = cells.iter().map(as_it_is).collect();
        self.in_flight.push_back((tick, cells));
        dirty
    }

    /// The cut of this tick is on disk.
    pub fn saved(&mut self, tick: u32) {
        self.settle(tick, true);
    }

    /// It will not be: its cells go with the next one, as they are then.
    pub fn not_saved(&mut self, tick: u32) {
        self.settle(tick, false);
    }

    fn settle(&mut self, tick: u32, is_saved: bool) {
        let Some(index) = self.in_flight.iter().position(|(of, _)| *of == tick) else { return };
        let Some((_, cells)) = self.in_flight.remove(index) else { return };
        for cell in cells {
            // One that was changed again meanwhile counts twice.
            let is_over = is_saved || !self.dirty.insert(cell);
            if is_over && let Some(state) = self.sectors.get_mut(&cell.sector()) {
                state.unsaved -= 1;
            }
        }
    }

    /// The map as it is packed. What is on its way to the store counts as changed: whoever is made of it saves it again.
    pub fn save(&self) -> SavedMap {
        let mut sectors: Vec<SavedState> = self.sectors.iter().map(SavedState::of).collect();
        sectors.sort_unstable_by_key(|state| state.sector);
        let in_flight = self.in_flight.iter().flat_map(|(_, cells)| cells);
        let unsaved: BTreeSet<Cell> = in_flight.chain(&self.dirty).copied().collect();
        let unsaved: Vec<Cell> = unsaved.into_iter().collect();
        let idle: Vec<_> = self.idle.iter().map(|&(sector, stay)| SavedIdle { sector, stay }).collect();
        SavedMap {
            seed: self.seed,
            asks: self.asks,
            sectors: sectors.try_into().expect("the land has no more"),
            wanted: self.wanted.clone().try_into().expect("each is wanted once"),
            unsaved: unsaved.try_into().expect("the land has no more"),
            idle: idle.try_into().expect("it is cleared before"),
        }
    }

    /// As it was packed; whether there is a store is this one's.
    pub fn load(&mut self, saved: SavedMap) {
        let mut map = Self::new(saved.seed, self.has_store);
        map.asks = saved.asks;
        map.wanted = saved.wanted.into_vec();
        map.dirty = saved.unsaved.iter().copied().collect();
        map.idle = saved.idle.iter().map(|idle| (idle.sector, idle.stay)).collect();
        for saved in saved.sectors.into_vec() {
            map.idle_count += usize::from(saved.near.is_empty());
            let changed = saved.changed.iter().map(|changed| (changed.index, changed.ground)).collect();
            let state = State {
                near: saved.near.into_vec(),
                is_ready: saved.is_ready,
                asked: saved.asked,
                has_failed: saved.has_failed,
                unsaved: 0,
                stay: saved.stay,
                changed,
            };
            map.sectors.insert(saved.sector, state);
        }
        for cell in &map.dirty {
            map.sectors.entry(cell.sector()).or_default().unsaved += 1;
        }
        *self = map;
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

/// Sectors of the land.
const SECTORS: usize = (SECTORS_PER_SIDE * SECTORS_PER_SIDE) as usize;

/// A [`Map`] as it is packed.
#[derive(Debug, Clone, Pack)]
#[pack(name = "frontier.map")]
pub struct SavedMap {
    #[pack(fixed)]
    seed: u64,
    asks: u32,
    sectors: List<SavedState, SECTORS>,
    wanted: List<Sector, SECTORS>,
    unsaved: List<Cell, { CELLS as usize }>,
    /// Those that somebody came near again included: how many there are says when they are cleared.
    idle: List<SavedIdle, { 8 * SECTORS }>,
}

#[derive(Debug, Clone, Pack)]
#[pack(name = "frontier.map_sector")]
struct SavedState {
    sector: Sector,
    near: List<u32, { 1 << 14 }>,
    is_ready: bool,
    asked: u32,
    has_failed: bool,
    stay: u32,
    changed: List<SavedChange, SECTOR_CELLS>,
}

#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "frontier.map_change")]
struct SavedChange {
    #[pack(max = (SECTOR_CELLS - 1) as u16)]
    index: u16,
    ground: Ground,
}

#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "frontier.map_idle")]
struct SavedIdle {
    sector: Sector,
    stay: u32,
}

impl SavedState {
    fn of((sector, state): (&Sector, &State)) -> Self {
        let changed: Vec<_> = state.changed.iter().map(|&(index, ground)| SavedChange { index, ground }).collect();
        Self {
            sector: *sector,
            near: state.near.clone().try_into().expect("a server takes fewer players"),
            is_ready: state.is_ready,
            asked: state.asked,
            has_failed: state.has_failed,
            stay: state.stay,
            changed: changed.try_into().expect("a sector has no more"),
        }
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
        let (mut loading, mut writing) = (Vec::<Wanted>::new(), VecDeque::<(u32, Dirty)>::new());
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
                        let saved = disk.range(arrives.sector.cell(0)..=arrives.sector.cell(1_023));
                        let older = Wanted { ask: arrives.ask.wrapping_sub(1), ..arrives };
                        assert!(!map.arrived(older, [(0, wall(1))]), "another question was asked since");
                        assert!(map.arrived(arrives, saved.map(|(cell, ground)| (cell.index(), *ground))));
                        assert!(!map.arrived(arrives, [(0, wall(1))]), "it is there already");
                    }
                }
                _ => {
                    writing.extend(Some((step, map.take_dirty(step))).filter(|(_, cells)| !cells.is_empty()));
                    if writing.len() > 2 {
                        let (batch, cells) = writing.pop_front().unwrap();
                        // A refusal refuses all that is built on it: the batches behind it, too.
                        if rng.random_bool(0.2) {
                            refusals += 1;
                            map.not_saved(batch);
                            writing.drain(..).for_each(|(tick, _)| map.not_saved(tick));
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
        writing.push_back((60_000, map.take_dirty(60_000)));
        for (batch, cells) in writing {
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
            let wanted: Vec<Wanted> = map.take_wanted().collect();
            wanted.into_iter().for_each(|wanted| assert!(map.arrived(wanted, [])));
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
        assert_eq!(map.take_dirty(9), [(sector(0).cell(7), Some(wall(50)))]);
        map.saved(9);
        for number in 0..3 * IDLE_MAX as u64 {
            touch(&mut map, 4_000 + number);
            map.leave(sector(4_000 + number), 1);
        }
        assert_eq!(map.ground(sector(0).cell(7)), None);
        map.check();
    }

    #[test]
    fn a_sector_that_could_not_be_read_is_asked_for_when_somebody_comes_again() {
        let mut map = Map::new(SEED, true);
        map.enter(sector(0), 1);
        let asked: Vec<Wanted> = map.take_wanted().collect();
        assert!(map.not_arrived(asked[0]) && !map.not_arrived(asked[0]) && !map.arrived(asked[0], []));
        map.enter(sector(0), 2);
        let again: Vec<Wanted> = map.take_wanted().collect();
        assert_eq!((again.len(), again[0].sector), (1, sector(0)));
        // Nobody knows what became of it.
        map.ask_again();
        let last: Vec<Wanted> = map.take_wanted().collect();
        assert!(!map.arrived(again[0], []) && map.arrived(last[0], []));
        assert!(!map.wants_any() && map.ground(sector(0).cell(0)).is_some());
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
        assert!(map.take_dirty(1).is_empty() && !map.wants_any());
        assert!(map.sectors_count() <= IDLE_MAX + 2, "{}", map.sectors_count());
    }
}
