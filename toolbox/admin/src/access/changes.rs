//! Changes: the last requests that changed something, for those who look at a server that is being changed.
//!
//! The same as the audit's lines in the log, of which this keeps the last few. Written by the admin thread when a request
//! is over, read by whoever lists them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// An evening of changes. Each has some 300 bytes; the oldest go first.
const KEPT_MAX: usize = 200;

/// A request that changed something, or may have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Change {
    pub at_unix_s: u64,
    /// The name of a key.
    pub who: String,
    pub from: String,
    /// The path and the first line, without what may be a key.
    pub what: String,
    /// The status of the answer, or that nobody waited for it.
    pub outcome: String,
}

/// The last changes of a server.
#[derive(Debug, Default)]
pub(crate) struct Changes(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Since the start.
    count: u64,
    last: VecDeque<Change>,
}

impl Changes {
    pub(crate) fn add(&self, who: &str, from: SocketAddr, what: &str, outcome: &str) {
        let at_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let [who, from, what, outcome] = [who.to_owned(), from.to_string(), what.to_owned(), outcome.to_owned()];
        let mut kept = self.kept();
        kept.count += 1;
        if kept.last.len() == KEPT_MAX {
            kept.last.pop_front();
        }
        kept.last.push_back(Change { at_unix_s, who, from, what, outcome });
    }

    /// Since the start.
    pub(crate) fn count(&self) -> u64 {
        self.kept().count
    }

    /// The newest first.
    pub(crate) fn last(&self) -> Vec<Change> {
        self.kept().last.iter().rev().cloned().collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_and_all_are_counted() {
        let changes = Changes::default();
        let from = SocketAddr::from(([127, 0, 0, 1], 5));
        (0..KEPT_MAX + 3).for_each(|number| changes.add("anna", from, &format!("console {number}"), "200 OK"));
        let last = changes.last();
        assert_eq!((changes.count(), last.len()), (KEPT_MAX as u64 + 3, KEPT_MAX));
        assert_eq!((last[0].what.as_str(), last[KEPT_MAX - 1].what.as_str()), ("console 202", "console 3"));
        assert_eq!((last[0].who.as_str(), last[0].from.as_str()), ("anna", "127.0.0.1:5"));
    }
}
