//! A connection, and the runtime that it is driven by while its owner waits.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, Error, NoTls, error::SqlState};

use crate::store_error::StoreError;

pub(super) struct Connection {
    pub runtime: Runtime,
    pub client: Client,
}

impl Connection {
    pub fn new(parameters: &str) -> Result<Connection, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(parameters, NoTls).await?;
            // What it ends with, each query of the client says too.
            tokio::spawn(connection);
            Ok::<Client, Error>(client)
        })?;
        Ok(Connection { runtime, client })
    }
}

impl From<Error> for StoreError {
    fn from(cause: Error) -> StoreError {
        match cause.code() {
            Some(&SqlState::DISK_FULL) => StoreError::DiskFull,
            Some(&SqlState::LOCK_NOT_AVAILABLE) => StoreError::InUse,
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
