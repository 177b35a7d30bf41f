//! The sampling itself: looks at every thread at random moments until the time is over or the process has ended.
//!
//! ```text
//! each look, each thread                                         reads          typical cost
//!   never on a core since the last look -> same stack as then    schedstat      1 us
//!   asleep elsewhere -> syscall, stack memory, unwind, schedstat 3 files        20 us
//!   had a core -> the kernel's samples and switches of it        its ring       5 us each sample
//! ```
//!
//! A stack is read while its thread may wake up. The count of switches is read before and after; if it differs, the
//! stack that is known of the place is taken (`still_places`).
//!
//! Runs on a thread of its own, with normal priority: a sampler that waits until others leave it a core looks when they
//! sleep, and then they seem to sleep more than they do.

use std::collections::HashMap;
use std::io;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::clock::Clock;
use throng_platform::sampling::{CpuRecord, CpuSampler, CpuSampling, KernelTime};
use throng_platform::signals::StopFlag;
use throng_platform::ticks::monotonic_ns;
use throng_platform::time::Nanos;

use super::ledger::{Ledger, StackId};
use super::process::{Process, SchedStat, ThreadFiles, Whereabouts};
use super::schedule::Schedule;
use super::source::{OnCore, Source};
use super::stack_reader::StackReader;
use super::still_places::{Reading, SleepPlace, StillPlaces};
use super::timeline::Place;
use super::unwind::{AddressSpace, Frame, Start, Unseen};

/// How often names, mappings and the program are looked at again.
const HOUSEKEEPING: Nanos = Nanos::from_millis(250);
/// A number that the looks are no multiple of: a program that computes in steps of the looks' period is seen in all of
/// its steps. 4 samples of a busy thread per look.
const CPU_PERIODS_PER_LOOK: f64 = 4.037;
/// A sample costs its thread some microseconds; at this period, some percent.
const CPU_PERIOD_NS_MIN: u64 = 200_000;
/// Of a thread that switches more often (per second), switches are no longer noted: at 3 us each they would slow it by
/// more than 1.5 %.
const SWITCHES_PER_S_MAX: f64 = 5_000.0;
/// Threads beyond these are not sampled, and counted.
const THREADS_MAX: usize = 4_096;

/// What a run of looks found, before anything has a name.
pub(super) struct Sampled {
    pub(super) process: Process,
    pub(super) space: AddressSpace,
    pub(super) threads: Vec<Thread>,
    pub(super) stacks: Stacks,
    pub(super) source: Source,
    /// Processor time between two samples of one thread.
    pub(super) cpu_period_ns: u64,
    pub(super) wall: Nanos,
    pub(super) looks: u64,
    pub(super) looks_missed: u64,
    pub(super) samples_lost: u64,
    pub(super) stacks_torn: u64,
    pub(super) threads_unseen: u64,
    pub(super) has_ended: bool,
}

/// One thread of the process.
pub(super) struct Thread {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) ledger: Ledger,
    /// Whether the kernel sampled it while it was on a core.
    pub(super) has_sampler: bool,
    files: ThreadFiles,
    places: StillPlaces,
    sampler: Option<CpuSampler>,
    has_ended: bool,
    notes_switches: bool,
}

/// Every distinct stack of the run.
#[derive(Default)]
pub(super) struct Stacks {
    frames: Vec<Box<[Frame]>>,
    ids: HashMap<Box<[Frame]>, StackId>,
}

impl Stacks {
    pub(super) fn id_of(&mut self, frames: &[Frame]) -> StackId {
        if let Some(id) = self.ids.get(frames) {
            return *id;
        }
        let id = StackId(self.frames.len() as u32);
        self.frames.push(frames.into());
        self.ids.insert(frames.into(), id);
        id
    }

    /// Innermost first.
    pub(super) fn frames(&self, id: StackId) -> &[Frame] {
        &self.frames[id.0 as usize]
    }

    pub(super) fn unseen(&mut self, why: Unseen) -> StackId {
        self.id_of(&[Frame::Unseen(why)])
    }
}

pub(super) struct Sampler<'a> {
    clock: &'a dyn Clock,
    /// What the kernel's records show when the clock shows 0.
    epoch_ns: u64,
    period_ns: u64,
    run: Sampled,
    /// By the thread's number, into `run.threads`; only of threads that live.
    living: HashMap<u32, usize>,
    thread_count: u64,
    frames: Vec<Frame>,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(process: Process, hz: u32, clock: &'a dyn Clock) -> Sampler<'a> {
        let space = AddressSpace::read(&process);
        let period_ns = 1_000_000_000 / u64::from(hz.max(1));
        let run = Sampled {
            process,
            space,
            threads: Vec::new(),
            stacks: Stacks::default(),
            source: Source::default(),
            cpu_period_ns: ((period_ns as f64 / CPU_PERIODS_PER_LOOK) as u64).max(CPU_PERIOD_NS_MIN),
            wall: Nanos::ZERO,
            looks: 0,
            looks_missed: 0,
            samples_lost: 0,
            stacks_torn: 0,
            threads_unseen: 0,
            has_ended: false,
        };
        let epoch_ns = monotonic_ns().saturating_sub(clock.now().0);
        Sampler { clock, epoch_ns, period_ns, run, living: HashMap::new(), thread_count: 0, frames: Vec::new() }
    }

    /// Looks until `length` is over, the process has ended, or somebody asks for a stop.
    pub(super) fn run(mut self, length: Nanos, stop: &StopFlag, seed: [u8; 32]) -> Sampled {
        let mut schedule = Schedule::new(self.period_ns, Xoshiro256PlusPlus::from_seed(seed));
        let begun = self.clock.now();
        let mut tidied = begun;
        self.look_at_all();
        while !stop.requested() && !self.run.has_ended {
            let since = self.clock.now().saturating_sub(begun);
            let (at, missed) = schedule.next(since.0);
            self.run.looks_missed += missed;
            let at = Nanos(at.min(length.0));
            self.clock.sleep_until(begun.saturating_add(at));
            self.look_at_all();
            if at >= length {
                break;
            }
            if self.clock.now().saturating_sub(tidied) >= HOUSEKEEPING {
                tidied = self.clock.now();
                self.keep_house();
            }
        }
        self.run.wall = self.clock.now().saturating_sub(begun);
        self.keep_house();
        self.run.threads.iter_mut().for_each(|thread| thread.ledger.close());
        self.run
    }

    fn look_at_all(&mut self) {
        self.run.looks += 1;
        self.find_threads();
        for index in 0..self.run.threads.len() {
            if !self.run.threads[index].has_ended && self.look_at(index).is_err() {
                let thread = &mut self.run.threads[index];
                thread.has_ended = true;
                self.living.remove(&thread.id);
                // Another one may have begun in its place, which leaves their number as it was.
                self.thread_count = 0;
            }
        }
        self.run.has_ended = self.living.is_empty();
    }

    /// Threads that are new. A list is made only when their number changed or one has ended.
    fn find_threads(&mut self) {
        let count = self.run.process.thread_count().unwrap_or(0);
        if count == self.thread_count {
            return;
        }
        self.thread_count = count;
        self.list_threads();
    }

    fn list_threads(&mut self) {
        for id in self.run.process.thread_ids().unwrap_or_default() {
            if self.living.contains_key(&id) {
                continue;
            }
            match if self.living.len() < THREADS_MAX { self.meet(id) } else { Err(io::ErrorKind::OutOfMemory.into()) } {
                Ok(thread) => {
                    self.living.insert(id, self.run.threads.len());
                    self.run.threads.push(thread);
                }
                // Ended since the list was made.
                Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(3) => {}
                Err(_) => self.run.threads_unseen += 1,
            }
        }
    }

    fn meet(&mut self, id: u32) -> io::Result<Thread> {
        let files = self.run.process.thread(id)?;
        let sampler = self.open_sampler(id, true);
        let mut places = StillPlaces::default();
        let (now, stat, asleep) = self.stack_of(&files, &mut places, None)?;
        Ok(Thread {
            id,
            name: files.name().unwrap_or_default(),
            ledger: Ledger::open(now, stat, asleep, sampler.is_some()),
            notes_switches: sampler.is_some(),
            has_sampler: sampler.is_some(),
            files,
            places,
            sampler,
            has_ended: false,
        })
    }

    /// The best samples of running threads that this host allows; what was refused once is not asked for again.
    fn open_sampler(&mut self, id: u32, switches: bool) -> Option<CpuSampler> {
        let period_ns = self.run.cpu_period_ns;
        let mut memory_is_short = false;
        loop {
            let kernel_time = match self.run.source.on_core {
                OnCore::KernelToo => KernelTime::Sampled,
                OnCore::ProgramOnly => KernelTime::Left,
                OnCore::Nothing => return None,
            };
            let (stack_bytes, ring_bytes) = if memory_is_short { (4 << 10, 16 << 10) } else { (16 << 10, 128 << 10) };
            let sampling = CpuSampling { period_ns, stack_bytes, ring_bytes, kernel_time, switches };
            match CpuSampler::open(id, sampling) {
                Ok(sampler) => {
                    self.run.source.has_opened = true;
                    return Some(sampler);
                }
                // The ring counts as locked memory, of which an ordinary user has little.
                Err(error) if error.raw_os_error() == Some(1) && self.run.source.has_opened && !memory_is_short => {
                    memory_is_short = true;
                }
                Err(_) if self.run.source.has_opened => {
                    self.run.source.threads_without_samples += 1;
                    return None;
                }
                // Ended meanwhile: says nothing about what is allowed.
                Err(error) if error.raw_os_error() == Some(3) => return None,
                Err(error) => self.run.source.refuse(&error),
            }
        }
    }

    fn look_at(&mut self, index: usize) -> io::Result<()> {
        self.take_samples(index);
        let thread = &self.run.threads[index];
        let stat = thread.files.schedstat()?;
        if let Some(stack) = thread.ledger.slept_through(stat) {
            let now = self.clock.now().0;
            self.run.threads[index].ledger.look(now, stat, Some(stack));
            return Ok(());
        }
        // The files are taken out for a moment, because reading a stack needs all the rest as well.
        let (now, stat, asleep) = self.stack_of_thread(index, stat)?;
        self.run.threads[index].ledger.look(now, stat, asleep);
        Ok(())
    }

    fn stack_of_thread(&mut self, index: usize, stat: SchedStat) -> io::Result<(u64, SchedStat, Option<StackId>)> {
        let mut threads = std::mem::take(&mut self.run.threads);
        let thread = &mut threads[index];
        let found = self.stack_of(&thread.files, &mut thread.places, Some(stat));
        self.run.threads = threads;
        found
    }

    /// Where a thread sleeps, with the moment and the counts that belong to it; no stack if it does not sleep.
    fn stack_of(
        &mut self,
        files: &ThreadFiles,
        places: &mut StillPlaces,
        stat: Option<SchedStat>,
    ) -> io::Result<(u64, SchedStat, Option<StackId>)> {
        let mut before = match stat {
            Some(stat) => stat,
            None => files.schedstat()?,
        };
        let Sampled { process, space, stacks, .. } = &mut self.run;
        let (process, frames, clock) = (&*process, &mut self.frames, self.clock);
        let read = || {
            let Whereabouts::Asleep { call, stack, instruction } = files.whereabouts()? else { return Ok(None) };
            let bytes = StackReader::asleep(&process.memory, stack);
            let after = files.schedstat()?;
            let stat = std::mem::replace(&mut before, after);
            let is_whole = after.switches == stat.switches;
            // It may have run until it went to sleep there, without being put on a core again.
            let stat = if is_whole { after } else { stat };
            let place = SleepPlace { call, instruction, stack };
            Ok(Some(Reading { now_ns: clock.now().0, place, bytes, stat, is_whole }))
        };
        let unwind = |place: SleepPlace, mut bytes: StackReader<'_>| {
            frames.clear();
            frames.push(Frame::Sleep(place.call));
            let start = Start { instruction: place.instruction, stack: place.stack, frame: None };
            space.unwind(process, start, &mut bytes, frames);
            stacks.id_of(frames)
        };
        let found = places.look(read, unwind)?;
        self.run.stacks_torn += u64::from(found.is_some_and(|found| found.is_torn));
        Ok(match found {
            Some(found) => (found.now_ns, found.stat, Some(found.stack)),
            None => (self.clock.now().0, before, None),
        })
    }

    fn take_samples(&mut self, index: usize) {
        let thread = &mut self.run.threads[index];
        let Some(sampler) = &mut thread.sampler else { return };
        let (space, process, stacks) = (&mut self.run.space, &self.run.process, &mut self.run.stacks);
        let (frames, ledger, epoch_ns) = (&mut self.frames, &mut thread.ledger, self.epoch_ns);
        let drained = sampler.drain(|record| {
            let sample = match record {
                CpuRecord::Sample(sample) => sample,
                CpuRecord::OnCore { at_ns } => return ledger.got_core(at_ns.saturating_sub(epoch_ns)),
                CpuRecord::OffCore { at_ns, was_preempted, registers } => {
                    let place = registers.map(|at| Place { instruction: at.instruction, stack: at.stack });
                    return ledger.left_core(at_ns.saturating_sub(epoch_ns), was_preempted, place);
                }
            };
            frames.clear();
            let registers = sample.registers;
            if sample.in_kernel {
                let in_system_call = space.is_after_system_call(process, registers.instruction);
                frames.push(Frame::Kernel { in_system_call });
            }
            let mut reader = StackReader::sampled(&process.memory, registers.stack, sample.stack);
            let start =
                Start { instruction: registers.instruction, stack: registers.stack, frame: Some(registers.frame) };
            space.unwind(process, start, &mut reader, frames);
            ledger.ran(stacks.id_of(frames));
        });
        self.run.samples_lost += drained.lost;
    }

    /// Stops noting the switches of threads that switch all the time.
    fn spare_busy_switchers(&mut self) {
        for index in 0..self.run.threads.len() {
            let thread = &mut self.run.threads[index];
            if thread.has_ended || !thread.notes_switches || thread.ledger.switches_per_s() <= SWITCHES_PER_S_MAX {
                continue;
            }
            thread.notes_switches = false;
            thread.ledger.timeline = None;
            thread.sampler = None;
            let id = thread.id;
            let sampler = self.open_sampler(id, false);
            self.run.threads[index].sampler = sampler;
        }
    }

    fn keep_house(&mut self) {
        self.run.space.allow_reread();
        self.spare_busy_switchers();
        self.list_threads();
        for index in self.living.values() {
            let thread = &mut self.run.threads[*index];
            if let Some(name) = thread.files.name() {
                thread.name = name;
            }
        }
        if self.run.process.runs_another_program() {
            self.run.space.forget(&self.run.process);
        }
    }
}
