//! Entry list: what a view knows of each slot, in slot order, laid out by how often it is read (`entry`).
//!
//! Every tick reads an entry's key, 4 B; what goes the slow way reads the entry, 12 B; what spawns and full budgets
//! need of it, 16 B, lies apart, and so do its labels, 2 B for each component kind of the schema and 2 B for existence:
//! 4 + 12 + 16 + 2 x (kinds + 1), which is 40 B with 3 kinds and 66 B with 16. Allocates only when a list outgrows all
//! before.

use throng_platform::{
    never,
    prefetch::{self, FootprintDraft},
};

use crate::{
    source::entities::Entities,
    view::{
        entry::{Entry, EntryCold, Key, State},
        slot_set::SlotSet,
    },
};

/// So much of a long list is asked for, and its end; the rest comes by itself where it is read from front to back.
const PREFETCHED_MAX: usize = 128;

pub(crate) struct EntryList {
    /// By slot. What every tick reads.
    pub keys: Vec<Key>,
    /// How many are not plain.
    pub slow_count: usize,
    pub entries: Vec<Entry>,
    pub cold: Vec<EntryCold>,
    /// `stride` labels per entry: the packet that carried each component last, and existence last of all.
    pub labels: Vec<u16>,
    pub stride: usize,
    /// Entries in the state `Gone`.
    gone_count: usize,
}

impl EntryList {
    pub fn new(kinds_count: usize) -> Self {
        Self {
            keys: Vec::new(),
            slow_count: 0,
            entries: Vec::new(),
            cold: Vec::new(),
            labels: Vec::new(),
            stride: kinds_count + 1,
            gone_count: 0,
        }
    }

    #[inline]
    pub fn find(&self, slot: u32) -> Option<usize> {
        // Where everything is relevant, an entry's index is its slot.
        match self.keys.get(slot as usize) {
            Some(key) if key.slot() == slot => Some(slot as usize),
            _ => self.keys.binary_search_by_key(&slot, |key| key.slot()).ok(),
        }
    }

    /// Index of the first entry from a slot on.
    pub fn index_from(&self, slot: u32) -> usize {
        self.keys.partition_point(|key| key.slot() < slot)
    }

    /// Notes after a change of an entry whether it is plain.
    #[inline]
    pub fn refresh_key(&mut self, index: usize) {
        let key = Key::new(&self.entries[index]);
        let before = std::mem::replace(&mut self.keys[index], key);
        self.slow_count -= usize::from(!before.is_plain());
        self.slow_count += usize::from(!key.is_plain());
    }

    /// Leaves the entry to the next `drop_gone`.
    pub fn set_gone(&mut self, index: usize) {
        self.entries[index].state = State::Gone;
        self.gone_count += 1;
        self.refresh_key(index);
    }

    /// The slot has another owner, or its old one again.
    pub fn replace(&mut self, index: usize, entry: Entry) {
        let before = std::mem::replace(&mut self.entries[index], entry);
        self.gone_count -= usize::from(before.state == State::Gone);
        self.cold[index] = EntryCold::default();
        self.refresh_key(index);
    }

    /// Removes entries that are gone. Indexes change.
    pub fn drop_gone(&mut self) {
        if self.gone_count == 0 {
            return;
        }
        // What is gone is not plain.
        let gone_count = std::mem::take(&mut self.gone_count);
        let is_miscounted = never!(gone_count > self.slow_count, "more entries are gone than are not plain");
        self.slow_count = self.slow_count.saturating_sub(gone_count);
        let stride = self.stride;
        let mut kept = 0;
        for index in 0..self.entries.len() {
            if self.entries[index].state != State::Gone {
                self.entries[kept] = self.entries[index];
                self.keys[kept] = self.keys[index];
                self.cold[kept] = self.cold[index];
                self.labels.copy_within(index * stride..(index + 1) * stride, kept * stride);
                kept += 1;
            }
        }
        self.entries.truncate(kept);
        self.keys.truncate(kept);
        self.cold.truncate(kept);
        self.labels.truncate(kept * stride);
        if is_miscounted {
            self.slow_count = self.keys.iter().filter(|key| !key.is_plain()).count();
        }
    }

    /// Merges newcomers into the list, from the back, in place. `unused`: a label that no packet in flight has.
    pub fn insert(&mut self, newcomers: &SlotSet, entities: &Entities, unused: u16) {
        let added = newcomers.len();
        if added == 0 {
            return;
        }
        let stride = self.stride;
        let mut from = self.entries.len();
        let mut to = from + added;
        let nobody = Entry::new(0, 0, 0);
        self.make_room(to);
        self.entries.resize(to, nobody);
        self.keys.resize(to, Key::new(&nobody));
        self.cold.resize(to, EntryCold::default());
        self.labels.resize(to * stride, unused);
        for slot in newcomers.iter_descending() {
            while from > 0 && self.entries[from - 1].slot > slot {
                from -= 1;
                to -= 1;
                self.entries[to] = self.entries[from];
                self.keys[to] = self.keys[from];
                self.cold[to] = self.cold[from];
                self.labels.copy_within(from * stride..(from + 1) * stride, to * stride);
            }
            to -= 1;
            let row = &entities.slots[slot as usize];
            self.entries[to] = Entry::new(slot, row.generation, row.present);
            self.keys[to] = Key::new(&self.entries[to]);
            self.cold[to] = EntryCold::default();
            self.labels[to * stride..(to + 1) * stride].fill(unused);
        }
        self.slow_count += added;
        if never!(from != to, "newcomers that are counted otherwise than they are listed: room from {from} to {to}")
            && from < to
        {
            self.entries.drain(from..to);
            self.keys.drain(from..to);
            self.cold.drain(from..to);
            self.labels.drain(from * stride..to * stride);
            self.slow_count -= to - from;
        }
    }

    /// Room for so many entries, by quarters of powers of two. Clients come and go: of few sizes, what one gives back fits the
    /// next, and a server that runs for long does not fill its memory with gaps.
    fn make_room(&mut self, count: usize) {
        if count <= self.keys.capacity() {
            return;
        }
        let count = count.next_multiple_of((count.next_power_of_two() / 4).max(8));
        self.entries.reserve_exact(count - self.entries.len());
        self.keys.reserve_exact(count - self.keys.len());
        self.cold.reserve_exact(count - self.cold.len());
        self.labels.reserve_exact(count * self.stride - self.labels.len());
    }

    /// Asks for what every tick reads.
    pub fn prefetch(&self) {
        if self.keys.len() <= PREFETCHED_MAX {
            prefetch::value(&self.keys[..]);
            prefetch::value(&self.entries[..]);
        } else {
            prefetch::value(&self.keys[..PREFETCHED_MAX]);
            prefetch::value(&self.keys[self.keys.len() - 1]);
        }
    }

    /// Notes what every tick reads.
    pub fn note(&self, footprint: &mut FootprintDraft) {
        // All by name: who adds a list says here whether every tick reads it.
        let Self { keys, entries, labels, cold: _, slow_count: _, stride: _, gone_count: _ } = self;
        footprint.note(&**keys);
        footprint.note(&**entries);
        footprint.note(&**labels);
    }

    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.keys.capacity() * size_of::<Key>()
            + self.cold.capacity() * size_of::<EntryCold>()
            + self.labels.capacity() * 2
    }

    pub fn check(&self) {
        assert_eq!(self.labels.len(), self.entries.len() * self.stride);
        assert_eq!(self.cold.len(), self.entries.len());
        assert!(self.entries.is_sorted_by(|one, next| one.slot < next.slot));
        assert_eq!(self.gone_count, self.entries.iter().filter(|entry| entry.state == State::Gone).count());
        for (entry, cold) in self.entries.iter().zip(&self.cold) {
            match entry.state {
                State::New => assert!(entry.existence),
                State::Sent | State::Known | State::Leaving => assert!(entry.held),
                State::Gone => {}
            }
            assert!(entry.state == State::Sent || cold.spawn_packets == 0);
        }
        assert_eq!(self.keys, self.entries.iter().map(Key::new).collect::<Vec<_>>());
        assert_eq!(self.slow_count, self.keys.iter().filter(|key| !key.is_plain()).count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "more entries are gone than are not plain"))]
    fn a_miscount_is_loud_in_tests_and_mended_in_a_live_server() {
        let mut list = EntryList::new(1);
        list.entries = vec![Entry { state: State::Gone, ..Entry::new(0, 1, 1) }, Entry::new(1, 1, 1)];
        list.keys = list.entries.iter().map(Key::new).collect();
        list.cold = vec![EntryCold::default(); 2];
        list.labels = vec![0; 4];
        // Both are not plain.
        (list.gone_count, list.slow_count) = (1, 0);
        list.drop_gone();
        assert_eq!((list.entries.len(), list.slow_count), (1, 1));
        list.check();
    }
}
