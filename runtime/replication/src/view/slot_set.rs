//! Slot set: which slots are in some state, a bit each.
//!
//! Sets that are asked about together are compared a word of 64 slots at a time, and come out in slot order by
//! themselves, which is the order of the wire. Costs an eighth of a byte per slot of the world.

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

    /// Removes all of `other` but the slots in `kept`, which are sorted; both sets were reset to the same count.
    pub fn take_all_but(&mut self, other: &Self, kept: &[u32]) {
        let mut kept = kept;
        for (index, (word, others)) in self.words.iter_mut().zip(&other.words).enumerate() {
            let mut taken = *others;
            while let Some((slot, rest)) = kept.split_first().filter(|(slot, _)| **slot as usize / 64 == index) {
                taken &= !(1 << (slot % 64));
                kept = rest;
            }
            *word &= !taken;
        }
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

    /// Slots from the lowest up.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.words.iter().enumerate();
        words.flat_map(|(index, word)| ones(*word).map(move |bit| index as u32 * 64 + bit))
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

/// Positions of the ones of a word, lowest first.
#[inline]
fn ones(word: u64) -> impl Iterator<Item = u32> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let lowest = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lowest < 64).then_some(lowest)
    })
}
