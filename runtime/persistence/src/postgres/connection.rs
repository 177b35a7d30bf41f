//! A connection, and the runtime that it is driven by while its owner waits.
//!
//! Nobody waits without end: a server that stands still, a host that is gone and a network that is cut take neither an answer
//! nor a failure with them. What `parameters` say of timeouts holds; what they leave out is here.

use std::{future::Future, io, time::Duration};

use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tokio_postgres::{Client, Config, Error, NoTls, error::SqlState};

use crate::store_error::StoreError;

/// Until a connection is made and the server has greeted. Too short: a busy server is never reached. Too long: who logs in and
/// a writer that is to end wait for nothing.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// What was sent and nobody acknowledges, and a line on which nothing is said, are looked after this long (TCP alone).
const SILENCE_MAX: Duration = Duration::from_secs(10);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
/// The server ends a statement by itself after this long. A batch of 8 MB takes some 100 ms.
const STATEMENT_MAX: Duration = Duration::from_secs(30);
/// A server that has not said anything by then does not run at all: it would have ended the statement.
const ANSWER_MAX: Duration = Duration::from_secs(40);

pub(super) struct Connection {
    pub runtime: Runtime,
    pub client: Client,
}

impl Connection {
    pub fn new(parameters: &str) -> Result<Connection, StoreError> {
        let config = bounded(parameters.parse()?);
        let within = config.get_connect_timeout().copied().unwrap_or(CONNECT_MAX);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = answer(&runtime, within, async {
            // Its own timeout ends with the connection; a server that stands still takes that and never greets.
            let (client, connection) = config.connect(NoTls).await?;
            // What it ends with, each query of the client says too.
            tokio::spawn(connection);
            client.batch_execute(&format!("SET statement_timeout = {}", STATEMENT_MAX.as_millis())).await?;
            Ok::<Client, Error>(client)
        })?;
        Ok(Connection { runtime, client })
    }
}

/// The same, with an end to each wait that it says nothing of.
fn bounded(mut config: Config) -> Config {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_MAX);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE_MAX);
    }
    if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        config.keepalives_idle(SILENCE_MAX);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_EVERY);
    }
    config
}

/// Waits for what the server says, or until it can be told that it says nothing. A connection on which that happened is of no
/// use any more.
pub(super) fn wait<T, E>(runtime: &Runtime, work: impl Future<Output = Result<T, E>>) -> Result<T, StoreError>
where
    StoreError: From<E>,
{
    answer(runtime, ANSWER_MAX, work)
}

fn answer<T, E>(runtime: &Runtime, within: Duration, work: impl Future<Output = Result<T, E>>) -> Result<T, StoreError>
where
    StoreError: From<E>,
{
    match runtime.block_on(async { timeout(within, work).await }) {
        Ok(done) => Ok(done?),
        Err(_) => {
            let text = format!("PostgreSQL has not answered for {} s", within.as_secs());
            Err(StoreError::Io { kind: io::ErrorKind::TimedOut, text })
        }
    }
}

impl From<Error> for StoreError {
    fn from(cause: Error) -> StoreError {
        match cause.code() {
            Some(&SqlState::DISK_FULL) => StoreError::DiskFull,
            Some(&SqlState::LOCK_NOT_AVAILABLE) => StoreError::InUse,
            // The server ends, and with it the connection.
            Some(&SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN | &SqlState::CANNOT_CONNECT_NOW) => {
                StoreError::Io { kind: io::ErrorKind::NotConnected, text: text_of(&cause) }
            }
            Some(_) => StoreError::Io { kind: io::ErrorKind::Other, text: text_of(&cause) },
            None => StoreError::Io { kind: io::ErrorKind::NotConnected, text: text_of(&cause) },
        }
    }
}

/// With what it came of, where the server's own words are.
fn text_of(cause: &Error) -> String {
    let server = cause.as_db_error().map(|error| format!(": {}", error.message()));
    format!("{cause}{}", server.unwrap_or_default())
}
