//! Visibility: a game's word on who may see what is visibility-filtered.
//!
//! A game gives one of two filters: one that is asked about each entity alone, or one that is asked about all that a
//! client may be near, at once. The second one is for what costs too much to begin for each pair: it finds where the client
//! looks from once, and puts casts together in slices. It may keep what it found, such as which pairs stood behind which
//! wall: that has to follow from what it was asked and from the world alone, or a replay differs.
//!
//! Asked on the world's own thread, after the tick's systems. Events and audit samples of the tick follow its answers, as
//! snapshots do.

use bevy_ecs::prelude::*;

use crate::ids::ClientKey;

/// Who looks, for a visibility filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewer {
    pub client: ClientKey,
    /// The client's own entity, once it has one.
    pub player: Option<Entity>,
    pub team: Option<u16>,
}

/// Which of the entities of one question a client may see: none, until it is allowed.
#[derive(Debug)]
pub struct MaySee<'a> {
    /// A bit for each, in their order.
    words: &'a mut [u64],
    count: usize,
}

impl<'a> MaySee<'a> {
    /// For `count` entities, with a bit for each of them, in their order; for tests of filters, too.
    ///
    /// # Panics
    /// If there are fewer bits.
    pub fn new(words: &'a mut [u64], count: usize) -> Self {
        assert!(words.len() * 64 >= count, "{} words are too few for {count} entities", words.len());
        Self { words, count }
    }

    /// How many entities it is about.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Lets the client see the entity at this place of the question.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn allow(&mut self, at: usize) {
        assert!(at < self.count, "place {at} of {}", self.count);
        self.words[at / 64] |= 1 << (at % 64);
    }

    pub fn is_allowed(&self, at: usize) -> bool {
        at < self.count && self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// Bit `i % 64` of word `i / 64` is the entity at `i`; for whoever has its answer as bits. Those beyond the last entity
    /// mean nothing.
    pub fn words_mut(&mut self) -> &mut [u64] {
        self.words
    }
}

/// See [`WorldBuilder::filter_visibility_by`](crate::world_builder::WorldBuilder::filter_visibility_by).
pub(crate) type EachFilter = Box<dyn Fn(&World, Viewer, Entity) -> bool + Send + Sync>;

/// See [`WorldBuilder::filter_visibility_in_batches_by`](crate::world_builder::WorldBuilder::filter_visibility_in_batches_by).
pub(crate) type BatchFilter = Box<dyn FnMut(&World, Viewer, &[Entity], &mut MaySee<'_>) + Send + Sync>;

/// A game's filter.
pub(crate) enum VisibilityFilter {
    Each(EachFilter),
    Batch(BatchFilter),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_seen_who_was_not_allowed() {
        let mut words = [0; 2];
        let mut may_see = MaySee::new(&mut words, 70);
        assert_eq!((may_see.len(), may_see.is_empty()), (70, false));
        [0, 63, 64, 69].into_iter().for_each(|at| may_see.allow(at));
        let allowed: Vec<usize> = (0..80).filter(|at| may_see.is_allowed(*at)).collect();
        assert_eq!(allowed, [0, 63, 64, 69]);
        may_see.words_mut()[1] |= 1 << 20;
        assert!(!may_see.is_allowed(84), "there is no such entity");
        assert_eq!(words, [1 | 1 << 63, 1 | 1 << 5 | 1 << 20]);
    }

    #[test]
    #[should_panic(expected = "place 70 of 70")]
    fn an_entity_that_nobody_asked_about_cannot_be_allowed() {
        MaySee::new(&mut [0; 2], 70).allow(70);
    }
}
