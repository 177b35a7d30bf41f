//! Hash tables whose layout a stranger cannot aim at.
//!
//! Keys of the handshake's tables are addresses and token tags, which clients choose. SipHash-1-3 with a key
//! from the handshake's seed keeps a crafted set of them from falling into one bucket. About 20 ns a look-up,
//! and only strangers' datagrams pay it.

use std::collections::HashMap;
use std::hash::BuildHasher;

use rand::RngCore;
use siphasher::sip::SipHasher13;

pub(super) type KeyedMap<K, V> = HashMap<K, V, KeyedState>;

/// Makes hashers that share one secret key.
#[derive(Clone)]
pub(super) struct KeyedState {
    key: [u64; 2],
}

impl KeyedState {
    pub(super) fn new(rng: &mut impl RngCore) -> Self {
        Self { key: [rng.next_u64(), rng.next_u64()] }
    }
}

impl BuildHasher for KeyedState {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.key[0], self.key[1])
    }
}
