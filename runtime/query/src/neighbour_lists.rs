//! Neighbour lists: each entity keeps the entities near it, so that "who is near me?" reads one short list.
//!
//! Most of a world stands still or strolls, yet asks several times a second who is near. A scan over everybody pays for
//! the whole world each time. Here every entity has a *reference place*: about where it was when its list was last
//! made. Two entities are in each other's lists exactly when their reference places are at most `range_m + skin_m`
//! apart, and an entity is scanned again when it is more than `skin_m / 2` from its reference place (Verlet's lists
//! with a skin, 1967). So whoever is within `range_m` is in the list, always: answers are exact, idle entities cost
//! nothing but the comparison, and movers are scanned as often as they are fast. Pairs are entered from either side and
//! cleaned on both at removal. A question beyond the range is answered from the grid of reference places, exactly too.
//!
//! Entities are dense indexes chosen by the caller. Each may be in some of 31 *groups* (factions, "fighting", "hurt",
//! doors): a question names the groups it is about, and a list that holds none of them is not read at all.
//!
//! Heights are ignored: a world is wide and flat. Answers hold no asker itself and are in ascending order. The same
//! calls give the same answers and the same counts. Never allocates but when an index is higher than all before it.
//!
//! Changed by the world's own thread; questions take `&self` and may be asked from many.

mod batch;
mod fallback;
mod grid;
mod pairs;
mod scan;
#[cfg(test)]
mod tests;
mod upkeep;

use std::sync::atomic::{AtomicU64, Ordering};

pub use self::batch::NOBODY;
use self::grid::Grid;
use self::pairs::{BANDS, Lists};
use self::scan::Columns;

/// All groups: a question about anybody.
pub const ANYONE: u32 = u32::MAX;

/// Places further from the origin than this, in either direction, are refused (m): numbers have steps of 64 m there.
pub const PLACE_MAX_M: f32 = 1.0e9;

/// Highest index, so that an index and a band fit into 32 bits.
pub const INDEX_MAX: u32 = (1 << 24) - 1;

/// The bit that every entity has, whatever its groups, so that [`ANYONE`] finds those in none.
const PRESENT: u32 = 1 << 31;

/// The place of an index that is not in use: near nothing, also to a scan that knows nothing of absence.
const ABSENT: f32 = f32::NAN;

/// How questions are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NeighbourMode {
    /// From neighbour lists.
    #[default]
    Lists,
    /// By measuring the distance to everybody, each time. The same answers: for comparison, and for worlds of a few
    /// dozen.
    ScanAll,
}

/// What neighbour lists are made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NeighbourSettings {
    /// Lists, or everybody each time.
    pub mode: NeighbourMode,
    /// Questions up to this radius are answered from a list (m, > 0). Too low → questions fall back to the grid; too
    /// high → long lists, which cost memory and upkeep.
    pub range_m: f32,
    /// How much further lists reach (m, > 0); an entity is scanned after half of it. Too low → movers are scanned
    /// often; too high → lists hold many that are not near. A tenth to a quarter of the range is a good start.
    pub skin_m: f32,
    /// Longest list [entries, 4 bytes each, for every entity]. A longer one is dropped, its entity's questions go to
    /// the grid, and it comes back when a quarter of it has left. Too low → crowds are asked the costly way.
    pub list_max: u16,
}

impl Default for NeighbourSettings {
    fn default() -> Self {
        Self { mode: NeighbourMode::Lists, range_m: 100.0, skin_m: 24.0, list_max: 128 }
    }
}

/// What was done since the beginning, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighbourCounts {
    /// Lists made anew: at insertion, and after each half skin of movement.
    pub scans: u64,
    /// Pairs that came within range and skin.
    pub pairs_entered: u64,
    /// Pairs that left, or lost one of the two.
    pub pairs_left: u64,
    /// Questions that no list could answer: beyond the range, or the list was dropped.
    pub fallbacks: u64,
    /// Lists dropped because they were longer than [`NeighbourSettings::list_max`].
    pub lists_dropped: u64,
    /// Places, radii and indexes that were refused: not finite, negative, not in use.
    pub refused: u64,
}

/// How long lists are, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListLengths {
    /// Lists that there are: one for each entity.
    pub lists: u32,
    /// Entries of all of them. Those of dropped lists are counted as if they were kept.
    pub entries: u64,
    /// Entries of the longest one.
    pub longest: u32,
}

impl ListLengths {
    /// Entries of a list on average; 0 if there is none.
    pub fn mean(&self) -> f32 {
        if self.lists == 0 { 0.0 } else { self.entries as f32 / self.lists as f32 }
    }
}

/// Who is near whom.
pub struct NeighbourLists {
    settings: NeighbourSettings,
    /// One column per property, one row per index. Rows that are not in use hold [`ABSENT`] and no group.
    x_m: Vec<f32>,
    z_m: Vec<f32>,
    groups: Vec<u32>,
    /// Reference places; [`ABSENT`] in all rows if everybody is scanned.
    reference_x_m: Vec<f32>,
    reference_z_m: Vec<f32>,
    lists: Lists,
    grid: Grid,
    /// Furthest that an entity may be from its reference place.
    half_skin_m: f32,
    bands_per_m: f32,
    scratch: upkeep::Scratch,
    counts: NeighbourCounts,
    fallbacks: AtomicU64,
    refused: AtomicU64,
}

impl NeighbourLists {
    /// Nobody yet. The ranges must be positive and finite.
    pub fn new(settings: NeighbourSettings) -> Self {
        let reach_m = reach_m(&settings);
        Self {
            settings,
            x_m: Vec::new(),
            z_m: Vec::new(),
            groups: Vec::new(),
            reference_x_m: Vec::new(),
            reference_z_m: Vec::new(),
            lists: Lists::new(settings.list_max),
            grid: Grid::new(reach_m / upkeep::CELLS_PER_REACH),
            half_skin_m: half_skin_m(&settings),
            bands_per_m: BANDS as f32 / reach_m,
            scratch: upkeep::Scratch::default(),
            counts: NeighbourCounts::default(),
            fallbacks: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// What it was made with, and the ranges that hold now.
    pub fn settings(&self) -> NeighbourSettings {
        self.settings
    }

    /// Puts other ranges into force, both positive and finite, at once: all lists are made anew, so answers stay exact.
    ///
    /// Allocates. Cost: as inserting everybody again.
    pub fn set_ranges(&mut self, range_m: f32, skin_m: f32) {
        self.settings = NeighbourSettings { range_m, skin_m, ..self.settings };
        let reach_m = reach_m(&self.settings);
        self.half_skin_m = half_skin_m(&self.settings);
        self.bands_per_m = BANDS as f32 / reach_m;
        self.grid = Grid::new(reach_m / upkeep::CELLS_PER_REACH);
        self.make_all_again();
    }

    /// Adds an entity, in no group. `false` and no change if the place is not usable or the index is in use or too
    /// high.
    ///
    /// Allocates if the index is higher than all before it; indexes are best handed out low and again.
    pub fn insert(&mut self, index: u32, place_m: [f32; 2]) -> bool {
        if !usable(place_m) || index > INDEX_MAX || self.contains(index) {
            return self.refuse();
        }
        self.reserve(index as usize + 1);
        let row = index as usize;
        [self.x_m[row], self.z_m[row]] = place_m;
        self.groups[row] = PRESENT;
        self.enter(index, place_m);
        true
    }

    /// Takes an entity out, from every list it is in. `false` if it was not there.
    pub fn remove(&mut self, index: u32) -> bool {
        if !self.contains(index) {
            return self.refuse();
        }
        self.leave(index);
        let row = index as usize;
        (self.x_m[row], self.z_m[row], self.groups[row]) = (ABSENT, ABSENT, 0);
        true
    }

    /// An entity has moved, however far. `false` and no change if the place is not usable or the index not in use.
    pub fn moved(&mut self, index: u32, place_m: [f32; 2]) -> bool {
        if !usable(place_m) || !self.contains(index) {
            return self.refuse();
        }
        [self.x_m[index as usize], self.z_m[index as usize]] = place_m;
        self.keep_up(index);
        true
    }

    /// Everybody's places, by index, in one pass over columns: the cheap way when many move.
    ///
    /// Rows that are not in use may hold anything. A place that is not usable is refused, and its entity stays where it
    /// was; so does everybody beyond the columns' end.
    pub fn move_all(&mut self, x_m: &[f32], z_m: &[f32]) {
        assert_eq!(x_m.len(), z_m.len());
        self.keep_up_all(x_m, z_m);
    }

    /// Puts an entity into the groups of these bits and no others. Bit 31 is not for use. `false` if it is not there.
    ///
    /// Leaving a group costs nothing, joining one a look at everybody near.
    pub fn set_groups(&mut self, index: u32, groups: u32) -> bool {
        if !self.contains(index) {
            return self.refuse();
        }
        let joined = groups & !self.groups[index as usize];
        self.groups[index as usize] = groups | PRESENT;
        if joined != 0 {
            self.tell_groups(index, joined);
        }
        true
    }

    /// Whether the index is in use.
    pub fn contains(&self, index: u32) -> bool {
        self.groups.get(index as usize).is_some_and(|groups| *groups != 0)
    }

    /// Where an entity is, by its latest accepted place.
    pub fn place(&self, index: u32) -> Option<[f32; 2]> {
        self.contains(index).then(|| [self.x_m[index as usize], self.z_m[index as usize]])
    }

    /// Appends all others at most `radius_m` from an entity, ascending.
    pub fn near(&self, index: u32, radius_m: f32, found: &mut Vec<u32>) {
        self.near_of(index, radius_m, ANYONE, found);
    }

    /// Appends all others in any of `groups` at most `radius_m` from an entity, ascending.
    pub fn near_of(&self, index: u32, radius_m: f32, groups: u32, found: &mut Vec<u32>) {
        self.near_of_candidates(self.candidates(index, radius_m, groups), index, radius_m, groups, found);
    }

    /// The nearest other in any of `groups` at most `radius_m` away; of equally near ones the lowest index.
    pub fn nearest_of(&self, index: u32, radius_m: f32, groups: u32) -> Option<u32> {
        self.nearest_of_candidates(self.candidates(index, radius_m, groups), index, radius_m, groups)
    }

    /// Appends everybody in any of `groups` at most `radius_m` from a place, ascending. Answered from the grid.
    pub fn near_place_of(&self, place_m: [f32; 2], radius_m: f32, groups: u32, found: &mut Vec<u32>) {
        if usable(place_m) && usable_radius(radius_m) {
            self.near_by_grid(place_m, radius_m, groups, u32::MAX, found);
        } else {
            self.refuse();
        }
    }

    /// Memory of lists, grid and columns (bytes).
    pub fn bytes(&self) -> usize {
        self.x_m.capacity() * 5 * 4 + self.lists.bytes() + self.grid.bytes() + self.scratch.bytes()
    }

    /// What was done since the beginning.
    pub fn counts(&self) -> NeighbourCounts {
        let (fallbacks, refused) = (self.fallbacks.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed));
        NeighbourCounts { fallbacks, refused, ..self.counts }
    }

    /// How long lists are now. Nothing if everybody is scanned. Cost: a look at each list.
    pub fn lengths(&self) -> ListLengths {
        let mut lengths = ListLengths::default();
        if self.settings.mode == NeighbourMode::ScanAll {
            return lengths;
        }
        for index in (0..self.groups.len() as u32).filter(|index| self.contains(*index)) {
            let length = self.lists.pairs(index);
            lengths.lists += 1;
            lengths.entries += u64::from(length);
            lengths.longest = lengths.longest.max(length);
        }
        lengths
    }

    /// Panics if lists, grid and reference places do not agree. Cost: all pairs; for tests and the simulator.
    pub fn check(&self) {
        if self.settings.mode == NeighbourMode::Lists {
            self.check_upkeep();
        }
    }

    /// Where the answer to a question is: the one step that all questions of an entity share.
    #[inline]
    fn candidates(&self, index: u32, radius_m: f32, groups: u32) -> Candidates<'_> {
        if !self.contains(index) || !usable_radius(radius_m) {
            self.refuse();
            return Candidates::Nobody;
        }
        if self.settings.mode == NeighbourMode::ScanAll {
            return Candidates::Anybody;
        }
        if radius_m <= self.settings.range_m {
            match self.lists.read(index, self.band_of_radius(radius_m).min(BANDS - 1), groups) {
                Some([]) => return Candidates::Nobody,
                Some(list) => return Candidates::List(list),
                None => {}
            }
        }
        self.fallbacks.fetch_add(1, Ordering::Relaxed);
        Candidates::Anybody
    }

    /// The last band that may hold somebody within the radius.
    #[inline]
    fn band_of_radius(&self, radius_m: f32) -> usize {
        ((radius_m + self.settings.skin_m) * 1.00001 * self.bands_per_m) as usize
    }

    #[inline]
    fn near_of_candidates(
        &self,
        candidates: Candidates<'_>,
        index: u32,
        radius_m: f32,
        groups: u32,
        found: &mut Vec<u32>,
    ) {
        match candidates {
            Candidates::Nobody => {}
            Candidates::List(list) => self.columns().near_among(list, index, radius_m, groups, found),
            Candidates::Anybody => {
                let place_m = [self.x_m[index as usize], self.z_m[index as usize]];
                self.near_by_grid(place_m, radius_m, groups, index, found);
            }
        }
    }

    #[inline]
    fn nearest_of_candidates(&self, candidates: Candidates<'_>, index: u32, radius_m: f32, groups: u32) -> Option<u32> {
        match candidates {
            Candidates::Nobody => None,
            Candidates::List(list) => self.columns().nearest_among(list, index, radius_m, groups),
            Candidates::Anybody => {
                let place_m = [self.x_m[index as usize], self.z_m[index as usize]];
                self.nearest_by_grid(place_m, radius_m, groups, index)
            }
        }
    }

    fn columns(&self) -> Columns<'_> {
        Columns { x_m: &self.x_m, z_m: &self.z_m, groups: &self.groups }
    }

    #[cold]
    fn refuse(&self) -> bool {
        self.refused.fetch_add(1, Ordering::Relaxed);
        false
    }
}

/// Who may be the answer.
enum Candidates<'a> {
    Nobody,
    List(&'a [u32]),
    Anybody,
}

/// How far lists reach. Rounding must not lose anybody: a little further than was asked for.
fn reach_m(settings: &NeighbourSettings) -> f32 {
    assert!(settings.range_m > 0.0 && settings.range_m <= PLACE_MAX_M);
    assert!(settings.skin_m > 0.0 && settings.skin_m <= PLACE_MAX_M);
    (settings.range_m + settings.skin_m) * 1.0001
}

/// How far entities may be from their reference place. For the same reason they are scanned a little earlier.
fn half_skin_m(settings: &NeighbourSettings) -> f32 {
    settings.skin_m * 0.4999
}

fn usable(place_m: [f32; 2]) -> bool {
    // False for what is no number.
    place_m[0].abs() <= PLACE_MAX_M && place_m[1].abs() <= PLACE_MAX_M
}

/// Distances are compared as squares, so the square must be a number too.
fn usable_radius(radius_m: f32) -> bool {
    (0.0..=1.0e18).contains(&radius_m)
}
