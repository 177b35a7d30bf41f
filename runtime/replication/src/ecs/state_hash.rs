//! State hash: one number for a world's state, to compare runs with.
//!
//! Each component of each entity is hashed by itself, with the entity and the kind in it, and the hashes are
//! added up: so the order in which entities are stored does not matter, and the same state is the same number.

use crate::wire::quantise::mix;

/// Adds to a world's hash what must be the same in a replay.
pub trait StateHash {
    fn hash_state(&self, hasher: &mut StateHasher);
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
