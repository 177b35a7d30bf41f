//! Lifecycle: worlds that are asked for and ended while the server runs.
//!
//! Whoever wants a world asks the server's control for it and gets a reply when the world is there; whoever is done
//! with one has it retired. A world is built, and torn down, on a thread of low priority (`world_maker`), so that a
//! thousand at once cost no tick; the frame thread only puts it into its place, or takes it out. In a simulation there
//! is no such thread: a world is ready in the frame after the one that asked, always.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use throng_pack::{HasSchema, PackError, envelope};
use throng_world::ids::{WorldId, WorldKindId};

/// Which world is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorld {
    pub(crate) kind: WorldKindId,
    pub(crate) seed: u64,
    pub(crate) parameters: Option<Vec<u8>>,
}

impl NewWorld {
    /// A world of this kind; `seed` is where its chance begins.
    pub fn new(kind: WorldKindId, seed: u64) -> Self {
        Self { kind, seed, parameters: None }
    }

    /// What its kind is told besides, see `WorldBuilder::parameters`.
    ///
    /// # Errors
    /// If the value breaks its type's limits.
    pub fn with<T: HasSchema>(mut self, parameters: &T) -> Result<Self, PackError> {
        let mut bytes = Vec::new();
        envelope::write(parameters, &mut bytes)?;
        self.parameters = Some(bytes);
        Ok(self)
    }
}

/// A world could not be made or ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    #[error("there is no world kind {}; kinds are added before the server runs (`Server::add_kind`)", .0.0)]
    NoSuchKind(WorldKindId),
    #[error("there is no world {0}: it has ended, or never was")]
    NoSuchWorld(WorldId),
    #[error("there are {0} worlds, as many as can be")]
    Full(usize),
    /// Its kind's systems cannot be put in an order.
    #[error("{0}")]
    Systems(String),
    #[error("building a world of kind `{0}` panicked; the crash is in the log")]
    Panicked(String),
    /// See [`crate::parking`].
    #[error(
        "worlds of kind `{kind}` made by this plan panicked again and again, and for another {left_s} s none is made; the \
         console's `worlds.unpark` ends that"
    )]
    Parked { kind: String, left_s: u64 },
    #[error("the thread that makes worlds has died; the crash is in the log, and only a restart helps")]
    NoMaker,
    #[error("the server is closing")]
    Closing,
}

/// The answer to a request, when it comes.
pub struct Pending<T>(Arc<Reply<T>>);

/// Written once by the frame thread, taken by whoever asked.
struct Reply<T> {
    answer: Mutex<Option<Result<T, WorldError>>>,
    is_there: Condvar,
}

impl<T> Pending<T> {
    /// A request and where its answer goes.
    pub(crate) fn new() -> (Self, Answer<T>) {
        let reply = Arc::new(Reply { answer: Mutex::new(None), is_there: Condvar::new() });
        (Self(reply.clone()), Answer(Some(reply)))
    }

    /// The answer, once. `None`: not yet. Never waits.
    pub fn try_take(&self) -> Option<Result<T, WorldError>> {
        self.0.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits for the answer; `None` if it takes longer than `at_most`. Not on a frame thread, which is the one that
    /// answers.
    pub fn wait(&self, at_most: Duration) -> Option<Result<T, WorldError>> {
        let answer = self.0.answer.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.is_there.wait_timeout_while(answer, at_most, |answer| answer.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.take()
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}

/// Gives the answer to a request; one that is dropped without says that the server is closing.
pub(crate) struct Answer<T>(Option<Arc<Reply<T>>>);

impl<T> Answer<T> {
    pub fn give(mut self, answer: Result<T, WorldError>) {
        self.put(answer);
    }

    fn put(&mut self, answer: Result<T, WorldError>) {
        if let Some(reply) = self.0.take() {
            *reply.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            reply.is_there.notify_all();
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        self.put(Err(WorldError::Closing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_once_and_a_request_that_nobody_answers_is_told_so() {
        let (pending, answer) = Pending::<u32>::new();
        assert_eq!(pending.try_take(), None);
        answer.give(Ok(7));
        assert_eq!(pending.wait(Duration::ZERO), Some(Ok(7)));
        assert_eq!(pending.try_take(), None);
        let (pending, answer) = Pending::<u32>::new();
        drop(answer);
        assert_eq!(pending.try_take(), Some(Err(WorldError::Closing)));
    }
}
