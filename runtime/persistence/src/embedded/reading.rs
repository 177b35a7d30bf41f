//! Reading the embedded store, on any thread.
//!
//! A read is a transaction of redb's: it sees one moment and makes no writer wait. Only opening the file anew after a
//! failure waits until readers are through, and they for it.

use std::{
    ops::RangeInclusive,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{PoisonError, atomic::Ordering},
};

use redb::{Range, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable};

use super::{ITEMS, Open, PREVIOUS, RECORDS};
use crate::{
    key::{KEY_BYTES, Key},
    record,
    store::{Balances, Each, Reads, Saved},
    store_error::StoreError,
};

type Records = ReadOnlyTable<&'static [u8; KEY_BYTES], &'static [u8]>;

impl Open {
    /// One moment of the store. Whatever a damaged page does to the code that walks it stays in here.
    fn read<T>(&self, work: impl FnOnce(&ReadTransaction) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or(StoreError::Down)?;
        catch_unwind(AssertUnwindSafe(|| work(&database.begin_read()?))).unwrap_or_else(|_| {
            self.goes_unwritten.store(true, Ordering::Relaxed);
            Err(StoreError::Panicked)
        })
    }

    /// The record's value, or that of the one before if it is damaged.
    fn unseal(&self, key: Key, sealed: &[u8], previous: &Records) -> Result<Saved, StoreError> {
        if let Some(value) = record::open(key, sealed) {
            return Ok(Saved { value: value.to_vec(), is_previous: false });
        }
        self.damaged.fetch_add(1, Ordering::Relaxed);
        let before = previous.get(&key.to_bytes())?;
        let value = before.as_ref().and_then(|before| record::open(key, before.value()));
        let value = value.ok_or(StoreError::DamagedRecord { key })?;
        Ok(Saved { value: value.to_vec(), is_previous: true })
    }

    fn each_of(&self, transaction: &ReadTransaction, found: Found, each: Each<'_>) -> Result<(), StoreError> {
        let previous = transaction.open_table(PREVIOUS)?;
        for entry in found {
            let (bytes, sealed) = entry?;
            let Some(key) = Key::from_bytes(bytes.value()) else {
                return Err(StoreError::Damaged("a record of a kind that this program does not know".into()));
            };
            each(key, self.unseal(key, sealed.value(), &previous));
        }
        Ok(())
    }
}

type Found = Range<'static, &'static [u8; KEY_BYTES], &'static [u8]>;

impl Reads for Open {
    fn get(&self, key: Key) -> Result<Option<Saved>, StoreError> {
        self.read(|transaction| {
            let found = transaction.open_table(RECORDS)?.get(&key.to_bytes())?;
            let Some(found) = found else { return Ok(None) };
            self.unseal(key, found.value(), &transaction.open_table(PREVIOUS)?).map(Some)
        })
    }

    fn range(&self, keys: RangeInclusive<Key>, each: Each<'_>) -> Result<(), StoreError> {
        self.read(|transaction| {
            let (first, last) = (keys.start().to_bytes(), keys.end().to_bytes());
            let found = transaction.open_table(RECORDS)?.range::<&[u8; KEY_BYTES]>(&first..=&last)?;
            self.each_of(transaction, found, each)
        })
    }

    fn visit(&self, each: Each<'_>) -> Result<Balances, StoreError> {
        self.read(|transaction| {
            let found = transaction.open_table(RECORDS)?.range::<&[u8; KEY_BYTES]>(..)?;
            self.each_of(transaction, found, each)?;
            let mut balances = Balances::new();
            for entry in transaction.open_table(ITEMS)?.iter()? {
                let (kind, count) = entry?;
                balances.insert(kind.value(), count.value());
            }
            Ok(balances)
        })
    }

    fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }
}
