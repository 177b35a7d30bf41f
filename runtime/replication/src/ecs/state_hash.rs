//! State hash: one number for a world's state, to compare runs with.
//!
//! Each component of each entity is hashed by itself, with the entity and the kind in it, and the hashes are
//! added up: so the order in which entities are stored does not matter, and the same state is the same number.

use bevy_ecs::entity::Entity;

use crate::wire::quantise::mix;

/// Adds to a world's hash what must be the same in a replay.
pub trait StateHash {
    fn hash_state(&self, hasher: &mut StateHasher);
}

/// A state hash in parts: which component and which entity two states differ in. Hashes are added up, so each part is the
/// sum of its values' hashes.
#[derive(Debug, Default)]
pub struct StateParts {
    /// Of each component that counts.
    pub columns: Vec<u64>,
    /// Of each entity, by the place that it has in the world; 0 of one that has nothing that counts.
    pub entities: Vec<u64>,
    /// Whose these places are.
    owners: Vec<Option<Entity>>,
}

impl StateParts {
    /// The entities that have something that counts, in the order of their places, with their parts.
    pub fn of_entities(&self) -> impl Iterator<Item = (Entity, u64)> + '_ {
        self.owners.iter().zip(&self.entities).filter_map(|(owner, hash)| Some(((*owner)?, *hash)))
    }

    pub(crate) fn clear(&mut self) {
        self.columns.clear();
        self.entities.clear();
        self.owners.clear();
    }

    #[inline]
    pub(crate) fn add(&mut self, entity: Entity, hash: u64) {
        let place = entity.index_u32() as usize;
        if place >= self.entities.len() {
            self.entities.resize(place + 1, 0);
            self.owners.resize(place + 1, None);
        }
        self.entities[place] = self.entities[place].wrapping_add(hash);
        self.owners[place] = Some(entity);
    }
}

/// Hash of one component.
pub struct StateHasher(u64);

impl StateHasher {
    pub(crate) fn new(walker: u64, entity: u64) -> Self {
        Self(mix(mix(0, walker), entity))
    }

    pub fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0, value);
    }

    /// All 32 bits of a number, so that -0.0 differs from 0.0.
    pub fn write_f32(&mut self, value: f32) {
        self.write_u64(value.to_bits().into());
    }

    /// Bytes, and how many they are.
    pub fn write_bytes(&mut self, bytes: &[u8]) {
        self.write_u64(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    pub(crate) fn finish(self) -> u64 {
        finish(self.0)
    }
}

/// Spreads every bit over all others (the last step of splitmix64), so that sums of hashes do not cancel.
pub(crate) fn finish(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_sign_and_owner_matter() {
        let hash = |entity: u64, write: fn(&mut StateHasher)| {
            let mut hasher = StateHasher::new(0, entity);
            write(&mut hasher);
            hasher.finish()
        };
        assert_ne!(hash(1, |to| to.write_bytes(&[0])), hash(1, |to| to.write_bytes(&[0, 0])));
        assert_ne!(hash(1, |to| to.write_f32(0.0)), hash(1, |to| to.write_f32(-0.0)));
        assert_ne!(hash(1, |to| to.write_u64(5)), hash(2, |to| to.write_u64(5)));
    }
}
