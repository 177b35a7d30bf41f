//! Index set: which of the actors are busy with something, so that a tick walks those and nobody else.
//!
//! A list without gaps, and for each index where in the list it is. Entering and leaving are two stores; order is that
//! of entering, the last one filling the gap of one that leaves, so the same history gives the same order. Allocates
//! only when an index is higher than all before it.

/// Some of the actors.
#[derive(Default)]
pub struct IndexSet {
    list: Vec<u32>,
    /// Position in the list and 1; 0 for those not in it.
    position: Vec<u32>,
}

impl IndexSet {
    /// Makes room for indexes below `count`.
    pub fn reserve(&mut self, count: usize) {
        if count > self.position.len() {
            self.position.resize(count, 0);
            self.list.reserve(count - self.list.len());
        }
    }

    /// False if it was in already.
    pub fn insert(&mut self, index: u32) -> bool {
        self.reserve(index as usize + 1);
        if self.contains(index) {
            return false;
        }
        self.list.push(index);
        self.position[index as usize] = self.list.len() as u32;
        true
    }

    /// False if it was not in.
    pub fn remove(&mut self, index: u32) -> bool {
        if !self.contains(index) {
            return false;
        }
        let position = std::mem::take(&mut self.position[index as usize]);
        self.list.swap_remove(position as usize - 1);
        if let Some(&moved) = self.list.get(position as usize - 1) {
            self.position[moved as usize] = position;
        }
        true
    }

    /// Puts it in or takes it out.
    pub fn set(&mut self, index: u32, member: bool) {
        if member {
            self.insert(index)
        } else {
            self.remove(index)
        };
    }

    pub fn contains(&self, index: u32) -> bool {
        self.position.get(index as usize).is_some_and(|position| *position != 0)
    }

    pub fn list(&self) -> &[u32] {
        &self.list
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use std::collections::BTreeSet;

    #[test]
    fn it_holds_what_a_set_holds() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let (mut set, mut model) = (IndexSet::default(), BTreeSet::new());
        for _ in 0..10_000 {
            let index = rng.random_range(0..50);
            if rng.random_bool(0.5) {
                assert_eq!(set.insert(index), model.insert(index));
            } else {
                assert_eq!(set.remove(index), model.remove(&index));
            }
            assert_eq!(set.list().iter().copied().collect::<BTreeSet<_>>(), model);
            assert_eq!(set.len(), model.len());
        }
    }
}
