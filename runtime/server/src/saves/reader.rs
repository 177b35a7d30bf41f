//! Reader: what is saved of worlds that are to be made and of players who log in, read beside the frames, within a time.
//!
//! One reader is for worlds and one for players. A thread of low priority reads one record after the other. A store that does not
//! answer keeps it: after [`SLOW_AFTER`] another thread reads what comes behind, so a read that hangs costs the others a second. No more
//! than [`READERS_MAX`] are there at a time; when all of them hang, what is asked for waits with them. How long a record is waited for is
//! for whoever asks to say ([`crate::world_maker`], `players.rs`): they give a read up, and what comes of that later is dropped by the
//! thread that has it. Nobody asks again for a player whose read still hangs ([`Asked::is_under_way`]).
//!
//! ```text
//! waits --> is read --> done
//!   |         |  '--> is read slowly, another thread reads on --> done, and the thread ends
//!   v         v            |
//! dropped   abandoned <----'     --> done: the answer is dropped, and the thread ends
//! ```
//!
//! In a simulation a record is read at once. Frame thread, but for reading. Cost: an atomic for each read under way in a
//! frame; a thread more for each read that is slow.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use throng_platform::{
    threads::{Priority, spawn_named},
    time::Nanos,
};
use throng_profiler::log_warn;

use super::{
    counts::SAVES,
    load_journal::LoadJournal,
    loading::{Load, PlayerLoad},
};

/// A read that takes longer keeps its thread for itself. Too short: a disk that is busy for a moment costs threads. Too long: a
/// read that hangs keeps others waiting.
const SLOW_AFTER: Nanos = Nanos::from_secs(1);

/// Threads at most, those that hang included: a few hundred KB each.
const READERS_MAX: usize = 16;

/// What is to be read, for one of the readers.
pub(crate) trait ToRead: Send + 'static {
    /// What was read.
    type Found: Send + 'static;
    /// The name of its threads.
    const THREAD: &'static str;

    /// Waits for the disk. A panic of the store's is caught in here ([`get`](super::loading::get)).
    fn read(self) -> Self::Found;
}

/// What becomes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Stage {
    Waits,
    /// A thread does it.
    IsDoing,
    /// The same, for longer than others should wait for.
    IsSlow,
    /// Given up before any thread began.
    Dropped,
    /// Given up while a thread has it.
    Abandoned,
    Done,
}

impl Stage {
    const ALL: [Stage; 6] =
        [Stage::Waits, Stage::IsDoing, Stage::IsSlow, Stage::Dropped, Stage::Abandoned, Stage::Done];
}

/// A job's stage. Written by the frame's thread and by the one that has it; what follows from it is sent over channels or stays
/// with its thread, so relaxed order is enough.
#[derive(Clone)]
struct SharedStage(Arc<AtomicU8>);

impl SharedStage {
    fn new() -> SharedStage {
        SharedStage(Arc::new(AtomicU8::new(Stage::Waits as u8)))
    }

    fn of(byte: u8) -> Stage {
        Stage::ALL[usize::from(byte)]
    }

    fn get(&self) -> Stage {
        Self::of(self.0.load(Ordering::Relaxed))
    }

    fn turn(&self, from: Stage, to: Stage) -> bool {
        self.0.compare_exchange(from as u8, to as u8, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The stage before it.
    fn end(&self) -> Stage {
        Self::of(self.0.swap(Stage::Done as u8, Ordering::Relaxed))
    }
}

/// A read that was asked for.
pub(crate) struct Asked {
    /// Of this reader's reads.
    pub number: u64,
    stage: SharedStage,
}

impl Asked {
    /// Nothing more comes of it, but what was read already.
    pub fn is_over(&self) -> bool {
        matches!(self.stage.get(), Stage::Done | Stage::Dropped)
    }

    /// A thread has it, though it may have been given up.
    pub fn is_under_way(&self) -> bool {
        matches!(self.stage.get(), Stage::IsDoing | Stage::IsSlow | Stage::Abandoned)
    }
}

enum Job<R> {
    Read {
        number: u64,
        to_read: R,
    },
    /// The journal's file is to say what is known.
    Write(Arc<LoadJournal>),
}

/// The number of a read, and what was found.
type Answer<R> = (u64, <R as ToRead>::Found);

/// What threads have in common.
struct Shared<R: ToRead> {
    /// Held by the one that waits for the next.
    jobs: Mutex<Receiver<(SharedStage, Job<R>)>>,
    answers: Sender<Answer<R>>,
    /// Threads that there are; tells nothing else, so relaxed.
    alive: AtomicUsize,
}

struct Threads<R: ToRead> {
    shared: Arc<Shared<R>>,
    jobs: Sender<(SharedStage, Job<R>)>,
    answers: Receiver<Answer<R>>,
    /// There is one that takes the next job.
    is_reading: bool,
    /// Jobs that are not done, and when they were first seen to have begun.
    under_way: Vec<(SharedStage, Option<Nanos>)>,
    /// The newest job that writes the journal.
    writes: Option<SharedStage>,
    /// A thread could not be started; said once.
    is_failing: bool,
}

/// Reads records.
pub(crate) struct Reader<R: ToRead> {
    threads: Option<Threads<R>>,
    within: Nanos,
    asked: u64,
    /// Read at once, to be taken.
    here: VecDeque<Answer<R>>,
}

/// Reads worlds' records.
pub(crate) type WorldReader = Reader<Load>;

/// Reads players' records.
pub(crate) type PlayerReader = Reader<PlayerLoad>;

impl<R: ToRead> Reader<R> {
    /// With threads. A record is to be there `within` so long.
    pub fn with_threads(within: Nanos) -> io::Result<Self> {
        let (jobs, to_do) = channel();
        let (done, answers) = channel();
        let shared = Shared { jobs: Mutex::new(to_do), answers: done, alive: AtomicUsize::new(0) };
        let mut threads = Threads {
            shared: Arc::new(shared),
            jobs,
            answers,
            is_reading: false,
            under_way: Vec::new(),
            writes: None,
            is_failing: false,
        };
        threads.start_one()?;
        Ok(Self { threads: Some(threads), ..Self::inline(within) })
    }

    /// Without: whoever asks waits for the disk.
    pub fn inline(within: Nanos) -> Self {
        Self { threads: None, within, asked: 0, here: VecDeque::new() }
    }

    /// How long a record is waited for.
    pub fn within(&self) -> Nanos {
        self.within
    }

    /// Has a record read.
    pub fn ask(&mut self, to_read: R) -> Asked {
        self.asked += 1;
        let number = self.asked;
        let stage = match &mut self.threads {
            Some(threads) => threads.give(Job::Read { number, to_read }),
            None => {
                self.here.push_back((number, to_read.read()));
                let stage = SharedStage::new();
                stage.end();
                stage
            }
        };
        Asked { number, stage }
    }

    /// What was read since this was last asked.
    pub fn take(&mut self) -> Option<Answer<R>> {
        match &self.threads {
            Some(threads) => threads.answers.try_recv().ok(),
            None => self.here.pop_front(),
        }
    }

    /// Nobody waits for it any more. False: it is read, and will be taken in a moment.
    pub fn give_up(&mut self, asked: &Asked) -> bool {
        let stage = &asked.stage;
        if stage.turn(Stage::Waits, Stage::Dropped) || stage.turn(Stage::IsSlow, Stage::Abandoned) {
            return true;
        }
        let is_abandoned = stage.turn(Stage::IsDoing, Stage::Abandoned);
        if let (true, Some(threads)) = (is_abandoned, &mut self.threads) {
            threads.is_reading = false;
        }
        is_abandoned
    }

    /// Has the journal's file say what is known. Does not wait for that.
    pub fn write(&mut self, journal: &Arc<LoadJournal>) {
        match &mut self.threads {
            None => journal.write_if_stale(),
            // One that has not begun will say it all.
            Some(threads) if threads.writes.as_ref().is_some_and(|stage| stage.get() == Stage::Waits) => {}
            Some(threads) => threads.writes = Some(threads.give(Job::Write(journal.clone()))),
        }
    }

    /// When the server ends: as [`Reader::write`], and waits for that for so long at most.
    pub fn finish(mut self, journal: &Arc<LoadJournal>, at_most: Duration) {
        let Some(threads) = &mut self.threads else { return journal.write_if_stale() };
        let stage = threads.give(Job::Write(journal.clone()));
        let given_up_at = Instant::now() + at_most;
        while stage.get() != Stage::Done && Instant::now() < given_up_at {
            sleep(Duration::from_millis(1));
        }
    }

    /// Once a frame, while anything is under way: has somebody read on where one is slow.
    pub fn step(&mut self, now: Nanos) {
        if let Some(threads) = &mut self.threads {
            threads.step(now);
        }
    }
}

impl<R: ToRead> Threads<R> {
    fn give(&mut self, job: Job<R>) -> SharedStage {
        let stage = SharedStage::new();
        // Its other end is in `shared`.
        let _ = self.jobs.send((stage.clone(), job));
        self.under_way.push((stage.clone(), None));
        stage
    }

    fn step(&mut self, now: Nanos) {
        self.under_way.retain_mut(|(stage, begun_at)| {
            match stage.get() {
                Stage::Done | Stage::Dropped | Stage::Abandoned => return false,
                Stage::IsDoing => {
                    let is_slow = now.saturating_sub(*begun_at.get_or_insert(now)) >= SLOW_AFTER;
                    if is_slow && stage.turn(Stage::IsDoing, Stage::IsSlow) {
                        self.is_reading = false;
                    }
                }
                Stage::Waits | Stage::IsSlow => {}
            }
            true
        });
        if !self.is_reading
            && let Err(error) = self.start_one()
            && !std::mem::replace(&mut self.is_failing, true)
        {
            log_warn!(SAVES, %error, "a thread that reads saves cannot start: raise `ulimit -u` or the container's pids limit");
        }
    }

    /// Starts a thread, unless there are as many as may be.
    fn start_one(&mut self) -> io::Result<()> {
        if self.shared.alive.load(Ordering::Relaxed) >= READERS_MAX {
            return Ok(());
        }
        self.shared.alive.fetch_add(1, Ordering::Relaxed);
        let shared = self.shared.clone();
        let started = spawn_named(R::THREAD, Priority::Low, move || {
            shared.work();
            shared.alive.fetch_sub(1, Ordering::Relaxed);
        });
        match started {
            Ok(_) => self.is_reading = true,
            Err(_) => _ = self.shared.alive.fetch_sub(1, Ordering::Relaxed),
        }
        started.map(drop)
    }
}

impl<R: ToRead> Shared<R> {
    /// A thread's life. It ends with the server, which drops its end, or when another one has taken its place.
    fn work(&self) {
        loop {
            let next = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((stage, job)) = next else { return };
            if !stage.turn(Stage::Waits, Stage::IsDoing) {
                continue;
            }
            let answer = match job {
                Job::Read { number, to_read } => Some((number, to_read.read())),
                Job::Write(journal) => {
                    journal.write_if_stale();
                    None
                }
            };
            let before = stage.end();
            if let Some(answer) = answer.filter(|_| before != Stage::Abandoned)
                && self.answers.send(answer).is_err()
            {
                return;
            }
            if before != Stage::IsDoing {
                return;
            }
        }
    }
}
