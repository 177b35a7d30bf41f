//! Last words: why a process ends itself, for the report of its death.
//!
//! A signal says little about an end that was meant. Whoever ends the process says why before, in words that are the same
//! each time, by which reports are grouped, and adds what is of this time. Said once; any thread; waits for nobody that
//! could be dead.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// What looks like an address, a key or a player's words is struck out in the report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWords {
    pub why: String,
    pub details: String,
}

static SAID: Mutex<Option<LastWords>> = Mutex::new(None);

/// This process is about to end itself by SIGABRT. Text of a line or two.
pub fn say(why: &str, details: &str) {
    let words = LastWords { why: why.to_owned(), details: details.to_owned() };
    *SAID.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
}

/// Nothing while they are being said.
pub(crate) fn said() -> Option<LastWords> {
    SAID.try_lock().ok()?.clone()
}
