//! Postgres: the store in a PostgreSQL server, which several processes share.
//!
//! ```text
//! throng_records   key, record, previous       as in the embedded store
//! throng_leases    key, owner, fence, until_ms
//! throng_items     kind, balance
//! throng_batches   writer, batch               the newest batch of each writer
//! throng_meta      name, number                "format": 1
//! ```
//!
//! A batch is one transaction, with `synchronous_commit` on. It locks the table of leases, so batches of several
//! processes come one after the other and a lease that is judged stays what it was until the commit.
//!
//! Whoever stands still in the middle of one, stopped or cut off, would hold that lock for all others: the server gives
//! up its connection after a second ([`LEASES_HELD_MAX`]).
//!
//! A connection that breaks during a commit leaves it in doubt, and the server may still be working at it. So a writer
//! holds an advisory lock by its number as long as its connection lives: a new connection gets the lock when the
//! server is through with the old one, and then the writer's batch number tells what became of the commit. Two writers
//! with one number exclude each other.
//!
//! The thread that writes has a runtime of tokio's for itself and waits in it; so do readers, one at a time.

mod connection;
mod reading;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio_postgres::Transaction;

use self::{connection::Connection, reading::Reader};
use crate::{
    commit::{Order, Outcome, Request, Write},
    judgement::{Judged, judge, leases_asked},
    key::{KEY_BYTES, Key},
    lease::Row,
    record,
    refused_keys::RefusedKeys,
    store::{Reads, Store},
    store_error::StoreError,
};

/// What this program writes.
const FORMAT: i64 = 1;
/// For this long a writer that says nothing may hold the table of leases. Too short: a busy machine's saves fail and are
/// tried again. Too long: one process that stands still keeps all others from saving, and its players from going on with
/// another one.
const LEASES_HELD_MAX: Duration = Duration::from_secs(1);
/// Over a network the server asks a silent writer whether it is there, and gives it up after 3 + 3 * 1 s. A host that has
/// died says nothing, and what takes its place waits for the lock that it holds: by Linux's own setting for two hours.
const ALIVE_ASKED_AFTER: Duration = Duration::from_secs(3);
const ALIVE_ASKED_AGAIN: Duration = Duration::from_secs(1);
const UNHEARD_MAX: u32 = 3;
/// Whoever waits for it longer than that is told that the store is in use. (The former frees it in time.)
const LOCK_WAIT_MAX: Duration = Duration::from_secs(2);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS throng_records (key bytea PRIMARY KEY, record bytea NOT NULL, previous bytea);
    CREATE TABLE IF NOT EXISTS throng_leases
        (key bytea PRIMARY KEY, owner bigint NOT NULL, fence bigint NOT NULL, until_ms bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS throng_items (kind bigint PRIMARY KEY, balance bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS throng_batches (writer bigint PRIMARY KEY, batch bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS throng_meta (name text PRIMARY KEY, number bigint NOT NULL);
";

/// A store in a PostgreSQL server.
pub struct Postgres {
    parameters: String,
    writer: u64,
    /// `None` after a failure.
    connection: Option<Connection>,
    reader: Arc<Reader>,
    batch: i64,
    /// Outcomes of a batch whose commit may or may not have come through.
    in_doubt: Option<Vec<Outcome>>,
}

impl Postgres {
    /// Connects, and makes the tables where there are none. `parameters` are those of libpq, such as
    /// `host=/run/postgresql user=throng dbname=saves`, without TLS: for a socket or a network of one's own. `writer`
    /// names this process among those that share the store.
    pub fn connect(parameters: &str, writer: u64) -> Result<Postgres, StoreError> {
        let (connection, batch) = open(parameters, writer)?;
        Ok(Postgres {
            parameters: parameters.to_owned(),
            writer,
            connection: Some(connection),
            reader: Arc::new(Reader::new(parameters)),
            batch,
            in_doubt: None,
        })
    }
}

/// Reads alone, beside whoever writes: makes no table and takes no lock.
pub fn open_to_read(parameters: &str) -> Result<Arc<dyn Reads>, StoreError> {
    let Connection { runtime, client } = Connection::new(parameters)?;
    let format = "SELECT number FROM throng_meta WHERE name = 'format'";
    let found: i64 = connection::wait(&runtime, async { client.query_one(format, &[]).await?.try_get(0) })?;
    if found > FORMAT {
        return Err(StoreError::Newer { found: found as u64, known: FORMAT as u64 });
    }
    Ok(Arc::new(Reader::new(parameters)))
}

impl Store for Postgres {
    fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        self.in_doubt = None;
        // Put back when it came through; also if it panics.
        let mut connection = self.connection.take().ok_or(StoreError::Down)?;
        let (batch, writer, in_doubt) = (self.batch + 1, self.writer, &mut self.in_doubt);
        let Connection { runtime, client } = &mut connection;
        connection::wait(runtime, async {
            let transaction = client.transaction().await?;
            transaction.batch_execute("LOCK TABLE throng_leases IN SHARE ROW EXCLUSIVE MODE").await?;
            let judged = carry_out(&transaction, orders, refused).await?;
            let mark = "INSERT INTO throng_batches VALUES ($1, $2) ON CONFLICT (writer) DO UPDATE SET batch = $2";
            transaction.execute(mark, &[&(writer as i64), &batch]).await?;
            // From here on the server may have it, whatever comes back.
            *in_doubt = Some(judged.outcomes);
            transaction.commit().await?;
            Ok::<(), StoreError>(())
        })?;
        self.batch = batch;
        self.connection = Some(connection);
        Ok(self.in_doubt.take().unwrap_or_default())
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        self.connection = None;
        let (connection, batch) = open(&self.parameters, self.writer)?;
        let newest = self.batch + i64::from(self.in_doubt.is_some());
        if !(self.batch..=newest).contains(&batch) {
            return Err(StoreError::Damaged(format!("it is at batch {batch}, and {newest} was written")));
        }
        let outcomes = self.in_doubt.take().filter(|_| batch == newest && batch != self.batch);
        (self.connection, self.batch) = (Some(connection), batch);
        Ok(outcomes)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn reader(&self) -> Arc<dyn Reads> {
        Arc::<Reader>::clone(&self.reader)
    }
}

/// A connection that is this writer's alone, and its newest batch.
fn open(parameters: &str, writer: u64) -> Result<(Connection, i64), StoreError> {
    let connection = Connection::new(parameters)?;
    let Connection { runtime, client } = &connection;
    let batch = connection::wait(runtime, async {
        client.batch_execute(&session_settings()).await?;
        client.query_one("SELECT pg_advisory_lock($1)", &[&(writer as i64)]).await?;
        // Two processes that make tables at once get in each other's way.
        client.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(8246758013)").await?;
        client.batch_execute(TABLES).await?;
        let format = "INSERT INTO throng_meta VALUES ('format', $1) ON CONFLICT DO NOTHING";
        client.execute(format, &[&FORMAT]).await?;
        client.batch_execute("COMMIT").await?;
        let row = client.query_one("SELECT number FROM throng_meta WHERE name = 'format'", &[]).await?;
        let found: i64 = row.try_get(0)?;
        if found > FORMAT {
            return Err(StoreError::Newer { found: found as u64, known: FORMAT as u64 });
        }
        let row = client.query_opt("SELECT batch FROM throng_batches WHERE writer = $1", &[&(writer as i64)]).await?;
        Ok::<i64, StoreError>(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(0))
    })?;
    Ok((connection, batch))
}

fn session_settings() -> String {
    let [held, waited] = [LEASES_HELD_MAX, LOCK_WAIT_MAX].map(|time| time.as_millis());
    let [idle, again] = [ALIVE_ASKED_AFTER, ALIVE_ASKED_AGAIN].map(|time| time.as_secs());
    let unheard = (ALIVE_ASKED_AFTER + ALIVE_ASKED_AGAIN * UNHEARD_MAX).as_millis();
    format!(
        "SET synchronous_commit = on; SET lock_timeout = {waited}; SET idle_in_transaction_session_timeout = {held};
         SET tcp_keepalives_idle = {idle}; SET tcp_keepalives_interval = {again};
         SET tcp_keepalives_count = {UNHEARD_MAX}; SET tcp_user_timeout = {unheard}"
    )
}

async fn carry_out<'a>(
    transaction: &Transaction<'_>,
    orders: &'a [Order],
    refused: &mut RefusedKeys,
) -> Result<Judged<'a>, StoreError> {
    let asked: Vec<Vec<u8>> = leases_asked(orders).into_iter().map(|key| key.to_bytes().to_vec()).collect();
    let query = "SELECT key, owner, fence, until_ms FROM throng_leases WHERE key = ANY($1)";
    let mut rows = BTreeMap::new();
    for row in transaction.query(query, &[&asked]).await? {
        let number = |column| row.try_get::<_, i64>(column).map(|number| number as u64);
        rows.insert(key_of(row.try_get(0)?)?, (number(1)?, number(2)?, number(3)?));
    }
    let is_about_leases = orders.iter().any(|order| matches!(order.request, Request::Lease(_)));
    let now_ms = if is_about_leases { Some(clock_of(transaction).await?) } else { None };
    let judged = judge(orders, rows, refused, now_ms);
    write_leases(transaction, &judged.leases).await?;
    write(transaction, &judged.writes).await?;
    for (kind, count) in &judged.items {
        let query = "INSERT INTO throng_items VALUES ($1, $2)
            ON CONFLICT (kind) DO UPDATE SET balance = throng_items.balance + $2";
        transaction.execute(query, &[&i64::from(*kind), count]).await?;
    }
    Ok(judged)
}

/// The server's clock, which all who share it go by (ms since 1970).
async fn clock_of(transaction: &Transaction<'_>) -> Result<u64, StoreError> {
    let query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    Ok(transaction.query_one(query, &[]).await?.try_get::<_, i64>(0)? as u64)
}

/// A thousand of them are prolonged at once, while the table is locked for all others: one statement.
async fn write_leases(transaction: &Transaction<'_>, leases: &BTreeMap<Key, Row>) -> Result<(), StoreError> {
    if leases.is_empty() {
        return Ok(());
    }
    let keys: Vec<Vec<u8>> = leases.keys().map(|key| key.to_bytes().to_vec()).collect();
    let column = |number: fn(&Row) -> u64| leases.values().map(|row| number(row) as i64).collect::<Vec<i64>>();
    let [owners, fences, ends] = [column(|row| row.0), column(|row| row.1), column(|row| row.2)];
    let query = "INSERT INTO throng_leases SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[])
        ON CONFLICT (key) DO UPDATE
        SET owner = EXCLUDED.owner, fence = EXCLUDED.fence, until_ms = EXCLUDED.until_ms";
    transaction.execute(query, &[&keys, &owners, &fences, &ends]).await?;
    Ok(())
}

async fn write(transaction: &Transaction<'_>, writes: &BTreeMap<Key, &Write>) -> Result<(), StoreError> {
    let (mut keys, mut records, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for (key, write) in writes {
        match write {
            Write::Put(value) => {
                keys.push(key.to_bytes().to_vec());
                records.push(record::seal(*key, value));
            }
            Write::Delete => deleted.push(key.to_bytes().to_vec()),
        }
    }
    transaction.execute("DELETE FROM throng_records WHERE key = ANY($1)", &[&deleted]).await?;
    // A damaged record must not push out the good one before it.
    let mut before: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for row in transaction.query("SELECT key, record FROM throng_records WHERE key = ANY($1)", &[&keys]).await? {
        let (bytes, sealed): (Vec<u8>, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
        if record::open(key_of(&bytes)?, &sealed).is_some() {
            before.insert(bytes, sealed);
        }
    }
    let previous: Vec<Option<Vec<u8>>> = keys.iter().map(|key| before.remove(key)).collect();
    let query = "INSERT INTO throng_records SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[])
        ON CONFLICT (key) DO UPDATE
        SET record = EXCLUDED.record, previous = COALESCE(EXCLUDED.previous, throng_records.previous)";
    transaction.execute(query, &[&keys, &records, &previous]).await?;
    Ok(())
}

fn key_of(bytes: &[u8]) -> Result<Key, StoreError> {
    let key = <&[u8; KEY_BYTES]>::try_from(bytes).ok().and_then(Key::from_bytes);
    key.ok_or_else(|| StoreError::Damaged("a record of a kind that this program does not know".into()))
}
