//! No saves: the store of a replay, which has nothing and keeps nothing.
//!
//! What worlds and players were loaded with is in the recording, and nobody wants what a replay would save. But a game may make
//! its worlds in another way where there is a store at all, so a replay of a server that had one has this one.
//!
//! On the replay's thread. Cost: none.

use std::{ops::RangeInclusive, sync::Arc};

use throng::persistence::{
    Done, Key, Outcome, Reads, Saved, Store, StoreError,
    commit::Order,
    refused_keys::RefusedKeys,
    store::{Balances, Each},
};

pub struct NoSaves;

impl Store for NoSaves {
    fn apply(&mut self, orders: &[Order], _: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        Ok(orders.iter().map(|_| Ok(Done::Committed)).collect())
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        Ok(None)
    }

    fn reader(&self) -> Arc<dyn Reads> {
        Arc::new(NoSaves)
    }
}

impl Reads for NoSaves {
    fn get(&self, _: Key) -> Result<Option<Saved>, StoreError> {
        Ok(None)
    }

    fn range(&self, _: RangeInclusive<Key>, _: Each<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn visit(&self, _: Each<'_>) -> Result<Balances, StoreError> {
        Ok(Balances::new())
    }

    fn damaged(&self) -> u64 {
        0
    }
}
