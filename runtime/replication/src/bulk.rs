//! Bulk: this tick's updates, put together once for everybody.
//!
//! Most of what a client is told in a tick is what everybody else around is told, too: the entity has changed,
//! the client knows it and is owed nothing else of it. So once per tick, for each ring (`rings`), the pieces of
//! every entity whose turn it is and that has changed are laid side by side:
//!
//! ```text
//! hot        ..1.1...1....           a bit per slot: changed, and its turn
//! records    mask, len and end of each hot slot's pieces
//! stream     | pose | pose health | pose | ...  + 16 spare bytes
//! ```
//!
//! A client's update is then one copy, without a look at its entry: its sets of slots are compared with `hot` by
//! the word. Written once per tick by the world's thread, read by all writers. Cost: about 10 ns per hot slot and
//! ring; nothing in a tick in which nothing was due.

use crate::{
    entities::Entities,
    rings::{Ring, Rings, is_turn},
    slot_set::SlotSet,
};

/// Room after the last piece, so that pieces can be read by whole words.
pub(crate) const SPARE_BYTES: usize = 16;

/// A hot slot's pieces: `stream[end - len..end]`, of the kinds in `mask`.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Record {
    pub end: u32,
    pub len: u16,
    pub mask: u16,
}

/// What entities in one ring are told this tick.
#[derive(Default)]
pub(crate) struct RingBulk {
    pub hot: SlotSet,
    /// By slot; what is not hot has an old one.
    pub records: Vec<Record>,
    pub stream: Vec<u8>,
    pub hot_count: usize,
}

#[derive(Default)]
pub(crate) struct Bulk {
    pub rings: Vec<RingBulk>,
    /// Words of the sets in which some ring has a hot slot.
    pub hot_words: Vec<u32>,
    /// What it was built from.
    built: Option<(u32, u64)>,
}

impl RingBulk {
    /// Kinds that a slot's holders in this ring are told of this tick.
    #[inline]
    pub fn mask(&self, slot: u32) -> u16 {
        if self.hot.contains(slot) { self.records[slot as usize].mask } else { 0 }
    }

    fn clear(&mut self, slots_count: usize) {
        self.hot.reset(slots_count);
        self.records.resize(slots_count, Record::default());
        self.stream.clear();
        self.hot_count = 0;
    }

    fn push(&mut self, entities: &Entities, slot: u32, mask: u16) {
        let begin = self.stream.len();
        let mut rest = mask;
        while rest != 0 {
            let kind = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            self.stream.extend_from_slice(entities.columns[kind].piece(slot as usize));
        }
        let end = self.stream.len();
        self.records[slot as usize] = Record { end: end as u32, len: (end - begin) as u16, mask };
        self.hot.insert(slot);
        self.hot_count += 1;
    }
}

impl Bulk {
    /// Puts together this tick's updates, unless that is done and nothing has changed since.
    pub fn build(&mut self, entities: &mut Entities, rings: &Rings) {
        let from = (entities.tick, entities.changes);
        if self.built == Some(from) && self.rings.len() == rings.count() {
            return;
        }
        self.built = Some(from);
        entities.sort_touched();
        let slots_count = entities.slots.len();
        self.rings.resize_with(rings.count(), RingBulk::default);
        for (bulk, ring) in self.rings.iter_mut().zip(rings.all()) {
            bulk.clear(slots_count);
            gather_ring(bulk, entities, ring, rings.keepalive);
            bulk.stream.resize(bulk.stream.len() + SPARE_BYTES, 0);
        }
        self.hot_words.clear();
        for index in 0..slots_count.div_ceil(64) {
            if self.rings.iter().any(|ring| ring.hot.word(index) != 0) {
                self.hot_words.push(index as u32);
            }
        }
    }

    /// Forgets what it was built from: the rings are others.
    pub fn outdate(&mut self) {
        self.built = None;
    }

    pub fn heap_bytes(&self) -> usize {
        let of_ring = |ring: &RingBulk| {
            ring.hot.heap_bytes() + ring.records.capacity() * size_of::<Record>() + ring.stream.capacity()
        };
        self.rings.iter().map(of_ring).sum::<usize>()
            + self.rings.capacity() * size_of::<RingBulk>()
            + self.hot_words.capacity() * 4
    }
}

fn gather_ring(bulk: &mut RingBulk, entities: &Entities, ring: &Ring, keepalive: u32) {
    let tick = entities.tick;
    if ring.period == 1 {
        for slot in &entities.touched {
            let row = &entities.slots[*slot as usize];
            let mask = entities.dirty[*slot as usize] as u16 & row.present & ring.near;
            if mask != 0 && row.alive {
                bulk.push(entities, *slot, mask);
            }
        }
        if ring.far == 0 {
            return;
        }
    }
    // What changed before, and waited for its turn.
    let turns = [(ring.period, if ring.period == 1 { 0 } else { ring.near }), (keepalive, ring.far)];
    for (period, kinds) in turns.into_iter().filter(|(_, kinds)| *kinds != 0) {
        if entities.touched_tick.saturating_add(period) <= tick {
            // Nothing has changed for so long.
            continue;
        }
        for slot in turns_of(tick, period, entities.slots.len()) {
            let late = entities.changed_within(slot, kinds, period);
            if late != 0 && entities.slots[slot].alive {
                let mask = late | bulk.mask(slot as u32);
                bulk.push(entities, slot as u32, mask);
            }
        }
    }
    for slot in &entities.urgent {
        let all = entities.changed_within(*slot as usize, ring.near, ring.period)
            | entities.changed_within(*slot as usize, ring.far, keepalive);
        if all != 0 && entities.slots[*slot as usize].alive {
            bulk.push(entities, *slot, all | bulk.mask(*slot));
        }
    }
    // A slot may have come twice.
    bulk.hot_count = bulk.hot.len();
}

/// Slots whose turn it is.
fn turns_of(tick: u32, period: u32, slots_count: usize) -> impl Iterator<Item = usize> {
    let first = (period - tick % period) % period;
    debug_assert!(is_turn(first, tick, period));
    (first as usize..slots_count).step_by(period as usize)
}

/// Most bytes that the records of all rings can take together.
pub(crate) fn stream_bytes(bulk: &Bulk) -> usize {
    bulk.rings.iter().map(|ring| ring.stream.len()).sum()
}
