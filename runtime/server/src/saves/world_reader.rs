//! World reader: what is saved of worlds that are to be made, read beside the frames, within a time.
//!
//! A thread of low priority reads one record after the other and notes that the load has begun ([`super::load_journal`]). A store that
//! does not answer keeps it: after [`SLOW_AFTER`] another thread reads what comes behind, so a read that hangs costs the others
//! a second. No more than [`READERS_MAX`] are there at a time; when all of them hang, what is asked for waits with them. How long an
//! order waits for its record is the maker's to say ([`crate::world_maker`]): it gives a read up, and what comes of that later is
//! dropped by the thread that has it.
//!
//! ```text
//! waits --> is read --> answered
//!   |          '--> is slow, another thread reads on --> answered, and the thread ends
//!   '--> given up <----'                          '--> given up: dropped, and the thread ends
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
    loading::{Load, Record},
};

/// A read that takes longer keeps its thread for itself. Too short: a disk that is busy for a moment costs threads. Too long: a
/// read that hangs keeps others waiting.
const SLOW_AFTER: Nanos = Nanos::from_secs(1);

/// Threads at most, those that hang included: a few hundred KB each.
const READERS_MAX: usize = 16;

/// What becomes of a job. Written by the frame's thread and by the one that has it; what follows from it is sent over channels or
/// stays with its thread, so relaxed order is enough.
#[derive(Clone)]
struct Stage(Arc<AtomicU8>);

const WAITS: u8 = 0;
const IS_DONE: u8 = 1;
/// Its thread does it for longer than others should wait for.
const IS_SLOW: u8 = 2;
const GIVEN_UP: u8 = 3;
const DONE: u8 = 4;

impl Stage {
    fn new() -> Stage {
        Stage(Arc::new(AtomicU8::new(WAITS)))
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    fn turn(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// A read that was asked for.
pub(crate) struct Asked {
    /// Of this reader's reads.
    pub number: u64,
    stage: Stage,
}

enum Job {
    Read {
        number: u64,
        load: Load,
    },
    /// The journal's file is to say what is known.
    Write(Arc<LoadJournal>),
}

type Answer = (u64, Record);

/// What threads have in common.
struct Shared {
    /// Held by the one that waits for the next.
    jobs: Mutex<Receiver<(Stage, Job)>>,
    answers: Sender<Answer>,
    /// Threads that there are; tells nothing else, so relaxed.
    alive: AtomicUsize,
}

struct Threads {
    shared: Arc<Shared>,
    jobs: Sender<(Stage, Job)>,
    answers: Receiver<Answer>,
    /// There is one that takes the next job.
    is_reading: bool,
    /// Jobs that are not done, and when they were first seen to have begun.
    under_way: Vec<(Stage, Option<Nanos>)>,
    /// The newest job that writes the journal.
    writes: Option<Stage>,
    /// A thread could not be started; said once.
    is_failing: bool,
}

/// Reads worlds' records.
pub(crate) struct WorldReader {
    threads: Option<Threads>,
    within: Nanos,
    asked: u64,
    /// Read at once, to be taken.
    here: VecDeque<Answer>,
}

impl WorldReader {
    /// With threads. A record is to be there `within` so long.
    pub fn with_threads(within: Nanos) -> io::Result<WorldReader> {
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
        Ok(WorldReader { threads: Some(threads), ..WorldReader::inline(within) })
    }

    /// Without: whoever asks waits for the disk.
    pub fn inline(within: Nanos) -> WorldReader {
        WorldReader { threads: None, within, asked: 0, here: VecDeque::new() }
    }

    /// How long a world that is ordered may wait for its record.
    pub fn within(&self) -> Nanos {
        self.within
    }

    /// Has a record read.
    pub fn ask(&mut self, load: Load) -> Asked {
        self.asked += 1;
        let number = self.asked;
        let stage = match &mut self.threads {
            Some(threads) => threads.give(Job::Read { number, load }),
            None => {
                self.here.push_back((number, load.read()));
                Stage::new()
            }
        };
        Asked { number, stage }
    }

    /// What was read since this was last asked.
    pub fn take(&mut self) -> Option<Answer> {
        match &self.threads {
            Some(threads) => threads.answers.try_recv().ok(),
            None => self.here.pop_front(),
        }
    }

    /// Nobody waits for it any more. False: it is read, and will be taken in a moment.
    pub fn give_up(&mut self, asked: &Asked) -> bool {
        let stage = &asked.stage;
        if stage.turn(WAITS, GIVEN_UP) || stage.turn(IS_SLOW, GIVEN_UP) {
            return true;
        }
        let is_given_up = stage.turn(IS_DONE, GIVEN_UP);
        if let (true, Some(threads)) = (is_given_up, &mut self.threads) {
            threads.is_reading = false;
        }
        is_given_up
    }

    /// Has the journal's file say what is known. Does not wait for that.
    pub fn write(&mut self, journal: &Arc<LoadJournal>) {
        match &mut self.threads {
            None => journal.write_if_stale(),
            // One that has not begun will say it all.
            Some(threads) if threads.writes.as_ref().is_some_and(|stage| stage.get() == WAITS) => {}
            Some(threads) => threads.writes = Some(threads.give(Job::Write(journal.clone()))),
        }
    }

    /// When the server ends: as [`WorldReader::write`], and waits for that for so long at most.
    pub fn finish(mut self, journal: &Arc<LoadJournal>, at_most: Duration) {
        let Some(threads) = &mut self.threads else { return journal.write_if_stale() };
        let stage = threads.give(Job::Write(journal.clone()));
        let given_up_at = Instant::now() + at_most;
        while stage.get() != DONE && Instant::now() < given_up_at {
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

impl Threads {
    fn give(&mut self, job: Job) -> Stage {
        let stage = Stage::new();
        // Its other end is in `shared`.
        let _ = self.jobs.send((stage.clone(), job));
        self.under_way.push((stage.clone(), None));
        stage
    }

    fn step(&mut self, now: Nanos) {
        self.under_way.retain_mut(|(stage, begun_at)| {
            match stage.get() {
                DONE | GIVEN_UP => return false,
                IS_DONE => {
                    let is_slow = now.saturating_sub(*begun_at.get_or_insert(now)) >= SLOW_AFTER;
                    if is_slow && stage.turn(IS_DONE, IS_SLOW) {
                        self.is_reading = false;
                    }
                }
                _ => {}
            }
            true
        });
        if !self.is_reading
            && let Err(error) = self.start_one()
            && !std::mem::replace(&mut self.is_failing, true)
        {
            log_warn!(SAVES, %error, "a thread that reads worlds cannot start: raise `ulimit -u` or the container's pids limit");
        }
    }

    /// Starts a thread, unless there are as many as may be.
    fn start_one(&mut self) -> io::Result<()> {
        if self.shared.alive.load(Ordering::Relaxed) >= READERS_MAX {
            return Ok(());
        }
        self.shared.alive.fetch_add(1, Ordering::Relaxed);
        let shared = self.shared.clone();
        let started = spawn_named("world-reader", Priority::Low, move || {
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

impl Shared {
    /// A thread's life. It ends with the server, which drops its end, or when another one has taken its place.
    fn work(&self) {
        loop {
            let next = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((stage, job)) = next else { return };
            if !stage.turn(WAITS, IS_DONE) {
                continue;
            }
            let answer = match job {
                Job::Read { number, load } => Some((number, load.read())),
                Job::Write(journal) => {
                    journal.write_if_stale();
                    None
                }
            };
            let before = stage.0.swap(DONE, Ordering::Relaxed);
            if let Some(answer) = answer.filter(|_| before != GIVEN_UP)
                && self.answers.send(answer).is_err()
            {
                return;
            }
            if before != IS_DONE {
                return;
            }
        }
    }
}
