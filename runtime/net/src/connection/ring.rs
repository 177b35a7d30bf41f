//! A queue on a budget: a ring that doubles when it is full, up to a maximum it names.
//!
//! `VecDeque` would do but for two things: it grows without asking, and it can not say beforehand what
//! growing costs. Here the new slots are booked before the old ones are returned, so the budget sees the
//! moment when both exist. Empty rings hold no memory: an idle connection pays for what it used last.

use throng_platform::prefetch::{self, FootprintDraft};

use super::budget::{HeapBudget, OverBudget};

/// Slots of the first allocation; a connection that sends little never needs a second one.
const FIRST_SLOTS: usize = 16;

/// A double-ended queue of at most `MAX` small values.
#[derive(Debug)]
pub struct Ring<T, const MAX: usize> {
    /// Length is zero or a power of two, so an index is a mask away.
    slots: Box<[T]>,
    front: usize,
    len: usize,
}

impl<T: Copy + Default, const MAX: usize> Default for Ring<T, MAX> {
    fn default() -> Self {
        const { assert!(MAX.is_power_of_two() && MAX >= FIRST_SLOTS) }
        Ring { slots: Box::default(), front: 0, len: 0 }
    }
}

impl<T: Copy + Default, const MAX: usize> Ring<T, MAX> {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Asks for the memory of its values, and of the next one's place.
    #[inline]
    pub fn prefetch(&self) {
        let ahead = self.slots.len() - self.front;
        let (begin, end) = (self.front, self.front + (self.len + 1).min(ahead));
        prefetch::value(&self.slots[begin..end]);
        prefetch::value(&self.slots[..(self.len + 1).saturating_sub(ahead).min(begin)]);
    }

    /// Notes the memory of all its places.
    pub fn note(&self, footprint: &mut FootprintDraft) {
        footprint.note(&*self.slots);
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `value`. Allocates when the ring has to grow; refuses at `MAX` values or without budget.
    pub fn push_back(&mut self, value: T, budget: &mut HeapBudget) -> Result<(), OverBudget> {
        if self.len == self.slots.len() {
            self.grow(budget)?;
        }
        let at = self.place(self.len);
        self.slots[at] = value;
        self.len += 1;
        Ok(())
    }

    pub fn pop_front(&mut self) -> Option<T> {
        let value = *self.get(0)?;
        self.front = (self.front + 1) & (self.slots.len() - 1);
        self.len -= 1;
        Some(value)
    }

    pub fn pop_back(&mut self) -> Option<T> {
        let value = *self.get(self.len.checked_sub(1)?)?;
        self.len -= 1;
        Some(value)
    }

    /// The value `index` places behind the front.
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len {
            return None;
        }
        Some(&self.slots[self.place(index)])
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len {
            return None;
        }
        let at = self.place(index);
        Some(&mut self.slots[at])
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map(|index| &self.slots[self.place(index)])
    }

    /// Gives the memory back; only an empty ring does.
    pub fn release(&mut self, budget: &mut HeapBudget) {
        if self.len == 0 {
            budget.give(Self::bytes(self.slots.len()));
            self.slots = Box::default();
            self.front = 0;
        }
    }

    fn place(&self, index: usize) -> usize {
        (self.front + index) & (self.slots.len() - 1)
    }

    fn grow(&mut self, budget: &mut HeapBudget) -> Result<(), OverBudget> {
        let old = self.slots.len();
        if old >= MAX {
            return Err(OverBudget);
        }
        let new = if old == 0 { FIRST_SLOTS } else { old * 2 };
        budget.take(Self::bytes(new))?;
        let slots = (0..new).map(|index| self.get(index).copied().unwrap_or_default()).collect();
        self.slots = slots;
        self.front = 0;
        budget.give(Self::bytes(old));
        Ok(())
    }

    /// What a ring of `MAX` values may cost: at the worst moment its last two sizes exist side by side.
    pub const BYTES_MAX: usize = Self::bytes(MAX) + Self::bytes(MAX / 2);

    const fn bytes(slots: usize) -> usize {
        slots * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use std::collections::VecDeque;

    #[test]
    fn behaves_like_a_vec_deque_with_a_maximum() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut budget = HeapBudget::default();
        let mut ring: Ring<u32, 64> = Ring::default();
        let mut model = VecDeque::new();
        for step in 0..20_000u32 {
            match rng.random_range(0..5) {
                0..=2 => {
                    let pushed = ring.push_back(step, &mut budget);
                    assert_eq!(pushed.is_ok(), model.len() < 64);
                    if pushed.is_ok() {
                        model.push_back(step);
                    }
                }
                3 => assert_eq!(ring.pop_front(), model.pop_front()),
                _ if rng.random_ratio(1, 10) => {
                    while let Some(value) = ring.pop_front() {
                        assert_eq!(Some(value), model.pop_front());
                    }
                    ring.release(&mut budget);
                    assert_eq!(budget.held_bytes(), 0);
                }
                _ => assert_eq!(ring.pop_back(), model.pop_back()),
            }
            assert!(ring.iter().eq(model.iter()));
            assert!(budget.held_bytes() <= 64 * 4);
        }
    }
}
