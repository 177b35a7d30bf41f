//! Lifecycle: worlds that are asked for and ended while the server runs.
//!
//! Whoever wants a world asks the server's control for it and gets a reply when the world is there; whoever is done
//! with one has it retired. A world is built, and torn down, by long tasks (`world_maker`), so that a
//! thousand at once cost no tick; the frame thread only puts it into its place, or takes it out. In a simulation there
//! is no such thread: a world is ready in the frame after the one that asked, always.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use throng_pack::{HasSchema, Pack, PackError, envelope};
use throng_world::ids::{WorldId, WorldKindId};

/// Which world is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorld {
    pub(crate) kind: WorldKindId,
    pub(crate) seed: u64,
    pub(crate) parameters: Option<Vec<u8>>,
    pub(crate) save_id: Option<u64>,
}

impl NewWorld {
    /// A world of this kind; `seed` is where its chance begins.
    pub fn new(kind: WorldKindId, seed: u64) -> Self {
        Self { kind, seed, parameters: None, save_id: None }
    }

    /// It is saved under this number, and made of what is saved under it, if anything is. One world at a time has it.
    /// Which number is which world the game says, and keeps: a home has its owner's, say. Without a number the players in
    /// it are saved, if its kind says how, and the world is not.
    #[must_use]
    pub fn saved_as(mut self, id: u64) -> Self {
        self.save_id = Some(id);
        self
    }

    /// The number that it is saved under.
    pub fn save_id(&self) -> Option<u64> {
        self.save_id
    }

    /// Kind (by name), seed and parameters in one number, the same in every build: FNV-1a of 64 bits over their bytes.
    pub fn digest(&self, kind: &str) -> u64 {
        const PRIME: u64 = 0x0000_0100_0000_01B3;
        let parameters = self.parameters.as_deref().unwrap_or_default();
        // A byte that no name holds, so that a name's end is no other's parameters.
        let bytes = kind.bytes().chain([0]).chain(self.seed.to_le_bytes()).chain(parameters.iter().copied());
        bytes.fold(0xCBF2_9CE4_8422_2325, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(PRIME))
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

/// What became of a world that a world has asked for ([`crate::server::ServerControl::create_world_for`]): the message that
/// says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "throng.world_made")]
pub struct WorldMade {
    /// The asker's own, as it gave it.
    pub number: u64,
    /// `None`: it could not be made. The server's log says why.
    pub world: Option<WorldId>,
}

/// A world that another one waits for.
pub(crate) struct AskedByWorld {
    pub asker: WorldId,
    pub number: u64,
    pub pending: Pending<WorldId>,
}

/// A world could not be made or ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    #[error("there is no world kind {}; kinds are added before the server runs (`Server::add_kind`)", .0.0)]
    NoSuchKind(WorldKindId),
    #[error("there is no world {0}: it has ended, or never was")]
    NoSuchWorld(WorldId),
    #[error("world {0} is of another kind")]
    OtherKind(WorldId),
    #[error("there are {0} worlds, as many as can be")]
    Full(usize),
    /// Its kind's systems cannot be put in an order.
    #[error("{0}")]
    Systems(String),
    #[error("building a world of kind `{0}` panicked; the crash is in the log")]
    Panicked(String),
    #[error("nothing is saved here: [saves] store in the settings says what keeps the saves")]
    NotSaving,
    #[error("there is a world already that is saved as {0}, or one is being made; retire that one first")]
    SaveInUse(u64),
    /// Processes are told apart by their number in the settings.
    #[error(
        "the world that is saved as {id} is process {owner}'s, of those that share the PostgreSQL, and it runs; end that one, or save \
         this world under another number"
    )]
    SavedElsewhere { id: u64, owner: u64 },
    #[error("the store has not said whose the world is that is saved as {0}; see to PostgreSQL")]
    OwnerUnknown(u64),
    #[error(
        "what is saved as {id} of a world of kind `{kind}` cannot be read: {why}; it is left as it is, and no world is made over it. \
         Start the build that wrote it, or put an older copy of the store in its place"
    )]
    Unreadable { kind: String, id: u64, why: String },
    /// A server that runs asks again by itself.
    #[error(
        "what is saved as {id} of a world of kind `{kind}` cannot be read now: {cause}; see to the disk, or PostgreSQL"
    )]
    StoreAway { kind: String, id: u64, cause: throng_persistence::StoreError },
    /// It may be asked for again: what comes of the read later is dropped.
    #[error(
        "what is saved as {id} of a world of kind `{kind}` was not read within {within_s} s (`load_within_s` in [saves]): the store does \
         not answer; the world is not made, and may be asked for again"
    )]
    NotRead { kind: String, id: u64, within_s: u64 },
    /// See [`crate::parking`].
    #[error("there is no kind of worlds called `{0}`")]
    NoKindNamed(String),
    /// See [`crate::parking`]. `None`: until somebody says so.
    #[error(
        "no world of kind `{kind}` is made by this plan{}: it is parked; the console's `world.parked` says why, and \
         `world.unpark` ends that",
        .left_s.map_or_else(String::new, |left_s| format!(" for another {left_s} s"))
    )]
    Parked { kind: String, left_s: Option<u64> },
    #[error("{0} worlds wait to be made, as many as may (`waiting_max` in [long_tasks])")]
    TooManyWait(usize),
    #[error("the server is closing")]
    Closing,
}

/// The answer to a request, when it comes.
pub struct Pending<T>(Arc<Reply<T>>);

/// Written once by the frame thread or a world's, taken by whoever asked.
struct Reply<T> {
    state: Mutex<State<T>>,
    is_there: Condvar,
}

struct State<T> {
    answer: Option<Result<T, WorldError>>,
    /// Whoever answers has begun with it.
    has_begun: bool,
    /// Nobody waits for it any more.
    is_withdrawn: bool,
}

impl<T> Reply<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Pending<T> {
    /// A request and where its answer goes.
    pub(crate) fn new() -> (Self, Answer<T>) {
        let state = State { answer: None, has_begun: false, is_withdrawn: false };
        let reply = Arc::new(Reply { state: Mutex::new(state), is_there: Condvar::new() });
        (Self(reply.clone()), Answer { reply: Some(reply), if_dropped: WorldError::Closing })
    }

    /// The answer, once. `None`: not yet. Never waits.
    pub fn try_take(&self) -> Option<Result<T, WorldError>> {
        self.0.lock().answer.take()
    }

    /// Waits for the answer; `None` if it takes longer than `at_most`. Not on a frame thread, which is the one that
    /// answers.
    pub fn wait(&self, at_most: Duration) -> Option<Result<T, WorldError>> {
        let waited = self.0.is_there.wait_timeout_while(self.0.lock(), at_most, |state| state.answer.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.answer.take()
    }

    /// From now on nobody waits: what has not begun is not done. True: it has begun.
    pub(crate) fn withdraw(&self) -> bool {
        let mut state = self.0.lock();
        state.is_withdrawn = true;
        state.has_begun
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}

/// Gives the answer to a request; one that is dropped without says that the server is closing, if nothing else.
pub(crate) struct Answer<T> {
    reply: Option<Arc<Reply<T>>>,
    if_dropped: WorldError,
}

impl<T> Answer<T> {
    pub fn give(mut self, answer: Result<T, WorldError>) {
        self.put(answer);
    }

    /// It is dropped where this is why.
    pub fn or(mut self, if_dropped: WorldError) -> Self {
        self.if_dropped = if_dropped;
        self
    }

    /// Whether to begin: somebody still waits for it, and is told from now on that it has begun.
    pub fn is_wanted(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| {
            let mut state = reply.lock();
            state.has_begun = !state.is_withdrawn;
            state.has_begun
        })
    }

    fn put(&mut self, answer: Result<T, WorldError>) {
        if let Some(reply) = self.reply.take() {
            reply.lock().answer = Some(answer);
            reply.is_there.notify_all();
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        let why = self.if_dropped.clone();
        self.put(Err(why));
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

    #[test]
    fn what_nobody_waits_for_is_not_begun_and_what_has_begun_is_told_as_such() {
        let (pending, answer) = Pending::<u32>::new();
        assert!(!pending.withdraw());
        assert!(!answer.is_wanted());
        let (pending, answer) = Pending::<u32>::new();
        assert!(answer.is_wanted());
        assert!(pending.withdraw());
        drop(answer.or(WorldError::Full(7)));
        assert_eq!(pending.try_take(), Some(Err(WorldError::Full(7))));
    }
}
