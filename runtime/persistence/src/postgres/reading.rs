//! Reading the server's store, over a connection of its own that is made when it is first needed.

use std::{
    io::ErrorKind,
    ops::RangeInclusive,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio_postgres::{IsolationLevel, Row};

use super::{
    connection::{Connection, wait},
    key_of,
};
use crate::{
    key::{ItemKind, Key},
    record,
    store::{Balances, Each, Reads, Saved},
    store_error::StoreError,
};

/// Rows that are fetched at a time.
const ROWS: i64 = 256;

pub(super) struct Reader {
    parameters: String,
    /// One reader at a time.
    connection: Mutex<Option<Connection>>,
    /// Tells nothing else, so relaxed.
    damaged: AtomicU64,
}

impl Reader {
    pub fn new(parameters: &str) -> Reader {
        Reader { parameters: parameters.to_owned(), connection: Mutex::new(None), damaged: AtomicU64::new(0) }
    }

    /// A connection that failed is not used again. That a kept one is dead shows when it is used: the server was started anew
    /// since, or a firewall has forgotten it. So `work` is done once more then, over a new one.
    fn with<T>(&self, mut work: impl FnMut(&mut Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut kept = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut connection) = kept.take() {
            match work(&mut connection) {
                Err(StoreError::Io { kind: ErrorKind::NotConnected, .. }) => {}
                Err(error) => return Err(error),
                Ok(done) => {
                    *kept = Some(connection);
                    return Ok(done);
                }
            }
        }
        let mut connection = Connection::new(&self.parameters)?;
        let done = work(&mut connection)?;
        *kept = Some(connection);
        Ok(done)
    }

    fn unseal(&self, key: Key, sealed: &[u8], previous: Option<&[u8]>) -> Result<Saved, StoreError> {
        if let Some(value) = record::open(key, sealed) {
            return Ok(Saved { value: value.to_vec(), is_previous: false });
        }
        self.damaged.fetch_add(1, Ordering::Relaxed);
        let value = previous.and_then(|before| record::open(key, before));
        let value = value.ok_or(StoreError::DamagedRecord { key })?;
        Ok(Saved { value: value.to_vec(), is_previous: true })
    }

    fn saved(&self, row: &Row) -> Result<(Key, Result<Saved, StoreError>), StoreError> {
        let key = key_of(row.try_get(0)?)?;
        Ok((key, self.unseal(key, row.try_get(1)?, row.try_get(2)?)))
    }
}

impl Reads for Reader {
    fn get(&self, key: Key) -> Result<Option<Saved>, StoreError> {
        let query = "SELECT key, record, previous FROM throng_records WHERE key = $1";
        let row = self
            .with(|Connection { runtime, client }| wait(runtime, client.query_opt(query, &[&&key.to_bytes()[..]])))?;
        row.map(|row| self.saved(&row)?.1).transpose()
    }

    fn range(&self, keys: RangeInclusive<Key>, each: Each<'_>) -> Result<(), StoreError> {
        // One statement sees one moment.
        let query = "SELECT key, record, previous FROM throng_records WHERE key >= $1 AND key <= $2 ORDER BY key";
        let (first, last) = (keys.start().to_bytes(), keys.end().to_bytes());
        let rows =
            self.with(|Connection { runtime, client }| wait(runtime, client.query(query, &[&&first[..], &&last[..]])))?;
        for row in &rows {
            let (key, saved) = self.saved(row)?;
            each(key, saved);
        }
        Ok(())
    }

    fn visit(&self, each: Each<'_>) -> Result<Balances, StoreError> {
        // What was told of records is not told twice: only a connection that was dead before is made anew.
        self.with(|Connection { runtime, client }| wait(runtime, client.batch_execute("")))?;
        let mut is_begun = false;
        self.with(|Connection { runtime, client }| {
            if std::mem::replace(&mut is_begun, true) {
                return Err(StoreError::Down);
            }
            // Takes as long as there are records. Nothing but the server's own limit for each statement ends it: it is for
            // commands, which somebody watches.
            runtime.block_on(async {
                let one_moment = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
                let transaction = one_moment.read_only(true).start().await?;
                let query = "SELECT key, record, previous FROM throng_records WHERE key > $1 ORDER BY key LIMIT $2";
                let mut newest: Vec<u8> = Vec::new();
                loop {
                    let rows = transaction.query(query, &[&newest, &ROWS]).await?;
                    for row in &rows {
                        let (key, saved) = self.saved(row)?;
                        each(key, saved);
                    }
                    match rows.last() {
                        Some(row) => newest = row.try_get(0)?,
                        None => break,
                    }
                }
                let mut balances = Balances::new();
                for row in transaction.query("SELECT kind, balance FROM throng_items", &[]).await? {
                    balances.insert(row.try_get::<_, i64>(0)? as ItemKind, row.try_get(1)?);
                }
                Ok(balances)
            })
        })
    }

    fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }
}
