//! The reader: from bytes to the model, whatever the bytes are.
//!
//! Lists grow element by element while there are bytes for them, so that memory follows what was read and not what was
//! claimed. An element takes at least a byte in the file, and a few hundred in memory at the very most; what all of them
//! take is counted, and has a maximum.

use std::cell::Cell;

use super::bytes::Cursor;
use super::events::{COMMON_SITES, Counts, EventReader};
use super::section::{self, Kind};
use super::{ReadError, elements, maximum};
use crate::model::{Capture, Core, CoreRun, Counter, Lock};

/// The capture in `file`, which is a whole file. Indices in it point into its lists. Takes
/// [`maximum::MEMORY_BYTES`] at most.
pub fn read(file: &[u8]) -> Result<Capture, ReadError> {
    read_within(file, maximum::MEMORY_BYTES)
}

/// The same with another maximum, counted as there.
pub fn read_within(file: &[u8], memory_bytes_max: u64) -> Result<Capture, ReadError> {
    let mut file = Cursor::new(file, 0);
    let version = section::version(&mut file)?;
    let mut reader = Reader {
        version,
        room: Room { left_bytes: Cell::new(memory_bytes_max), maximum_bytes: memory_bytes_max },
        capture: Capture::default(),
        common_sites: Vec::new(),
        thread: 0,
        thread_before_ns: None,
        core: 0,
    };
    let mut last = None;
    loop {
        let offset = file.offset();
        let (kind, payload) = section::next(&mut file)?;
        if !kind.may_follow(last) {
            return Err(ReadError::UnexpectedSection { offset, kind: kind as u8 });
        }
        last = Some(kind);
        reader.section(kind, payload)?;
        if kind == Kind::End {
            break;
        }
    }
    if file.is_at_end() { Ok(reader.capture) } else { Err(ReadError::BytesAfterEnd { offset: file.offset() }) }
}

/// Memory that lists may still take.
struct Room {
    /// In a cell, because a list takes from it, and so do its elements.
    left_bytes: Cell<u64>,
    maximum_bytes: u64,
}

impl Room {
    fn take(&self, offset: usize, bytes: usize) -> Result<(), ReadError> {
        let left_bytes = self.left_bytes.get().checked_sub(bytes as u64);
        let maximum_bytes = self.maximum_bytes;
        self.left_bytes.set(left_bytes.ok_or(ReadError::TooMuchMemory { offset, maximum_bytes })?);
        Ok(())
    }
}

struct Reader {
    version: u16,
    room: Room,
    capture: Capture,
    common_sites: Vec<u32>,
    /// The thread whose events were read last, and the end of the last one.
    thread: usize,
    thread_before_ns: Option<u64>,
    /// The core whose runs were read last.
    core: usize,
}

impl Reader {
    fn section(&mut self, kind: Kind, mut bytes: Cursor<'_>) -> Result<(), ReadError> {
        let (room, capture) = (&self.room, &mut self.capture);
        let bytes = &mut bytes;
        let (sites, threads) = (capture.sites.len(), capture.threads.len());
        let begin_ns = capture.about.begin_ns;
        match kind {
            Kind::About => capture.about = elements::about(bytes, self.version)?,
            Kind::Sites => {
                list(bytes, room, &mut capture.sites, maximum::SITES, "sites", |bytes, _| elements::site(bytes))?
            }
            Kind::CommonSites => {
                list(bytes, room, &mut self.common_sites, COMMON_SITES, "common sites", |bytes, _| {
                    bytes.index("site", sites)
                })?;
            }
            Kind::Worlds => {
                list(bytes, room, &mut capture.worlds, maximum::WORLDS, "worlds", |bytes, _| elements::world(bytes))?;
            }
            Kind::Locks => list(bytes, room, &mut capture.locks, maximum::LOCKS, "locks", |bytes, _| {
                Ok(Lock { name: bytes.text("a lock's name")? })
            })?,
            Kind::Counters => list(bytes, room, &mut capture.counters, maximum::COUNTERS, "counters", |bytes, _| {
                Ok(Counter { name: bytes.text("a counter's name")? })
            })?,
            Kind::Threads => {
                list(bytes, room, &mut capture.threads, maximum::THREADS, "threads", |bytes, _| {
                    elements::thread(bytes)
                })?;
            }
            Kind::Events => self.events(bytes)?,
            Kind::Frames => list(bytes, room, &mut capture.frames, maximum::FRAMES, "frames", |bytes, before| {
                let before = before.map_or((0, begin_ns), |frame| (frame.number, frame.end_ns));
                let frame = elements::frame(bytes, before, threads)?;
                room.take(bytes.offset(), size_of_val(&frame.threads[..]))?;
                Ok(frame)
            })?,
            Kind::Logs => list(bytes, room, &mut capture.logs, maximum::LOGS, "log lines", |bytes, before| {
                elements::log(bytes, before.map_or(begin_ns, |line| line.at_ns), threads)
            })?,
            Kind::MemoryMoments => {
                let moments = &mut capture.memory.at_ns;
                list(bytes, room, moments, maximum::MEMORY_MOMENTS, "moments of memory", |bytes, before| {
                    bytes.step(before.copied().unwrap_or(begin_ns))
                })?;
            }
            Kind::MemoryRows => {
                let moments = capture.memory.at_ns.len();
                let rows = &mut capture.memory.by_site;
                list(bytes, room, rows, maximum::MEMORY_ROWS, "rows of live bytes", |bytes, _| {
                    let row = elements::live_bytes(bytes, moments, sites)?;
                    room.take(bytes.offset(), size_of_val(&row.bytes[..]))?;
                    Ok(row)
                })?;
            }
            Kind::Processes => {
                list(bytes, room, &mut capture.processes, maximum::PROCESSES, "processes", |bytes, _| {
                    elements::process(bytes)
                })?;
            }
            Kind::HostThreads => {
                let host_threads = &mut capture.host_threads;
                list(bytes, room, host_threads, maximum::HOST_THREADS, "threads of the host", |bytes, _| {
                    elements::host_thread(bytes)
                })?;
            }
            Kind::Cores => list(bytes, room, &mut capture.cores, maximum::CORES, "cores", |bytes, _| {
                Ok(Core { number: bytes.u32("a core")?, runs: Vec::new() })
            })?,
            Kind::CoreRuns => self.core_runs(bytes)?,
            Kind::HostStalls => {
                list(bytes, room, &mut capture.host_stalls, maximum::HOST_STALLS, "stalls", |bytes, _| {
                    elements::host_stall(bytes, begin_ns)
                })?;
            }
            Kind::End => {}
        }
        // A section that holds more than it should.
        if bytes.is_at_end() {
            Ok(())
        } else {
            Err(ReadError::OutOfRange { offset: bytes.offset(), what: "what follows" })
        }
    }

    fn events(&mut self, bytes: &mut Cursor<'_>) -> Result<(), ReadError> {
        let (room, capture) = (&self.room, &mut self.capture);
        let counts = Counts {
            sites: capture.sites.len(),
            locks: capture.locks.len(),
            counters: capture.counters.len(),
            threads: capture.threads.len(),
        };
        let offset = bytes.offset();
        let thread = bytes.index("thread", counts.threads)? as usize;
        if thread < self.thread {
            return Err(ReadError::OutOfRange { offset, what: "the order of threads" });
        }
        let goes_on = thread == self.thread;
        let before_ns = self.thread_before_ns.filter(|_| goes_on).unwrap_or(capture.about.begin_ns);
        let mut reader = EventReader { counts: &counts, common_sites: &self.common_sites, before_ns };
        let events = &mut capture.threads[thread].events;
        list(bytes, room, events, maximum::EVENTS, "events of one thread", |bytes, _| reader.next(bytes))?;
        self.thread = thread;
        self.thread_before_ns = Some(reader.before_ns);
        Ok(())
    }

    fn core_runs(&mut self, bytes: &mut Cursor<'_>) -> Result<(), ReadError> {
        let (room, capture) = (&self.room, &mut self.capture);
        let offset = bytes.offset();
        let core = bytes.index("core", capture.cores.len())? as usize;
        if core < self.core {
            return Err(ReadError::OutOfRange { offset, what: "the order of cores" });
        }
        self.core = core;
        let (begin_ns, threads) = (capture.about.begin_ns, capture.host_threads.len());
        let runs = &mut capture.cores[core].runs;
        list(bytes, room, runs, maximum::CORE_RUNS, "runs of one core", |bytes, before| {
            elements::core_run(bytes, before.map_or(begin_ns, |run: &CoreRun| run.at_ns), threads)
        })
    }
}

/// Elements to the end of the section; `next` is given the element before.
fn list<T>(
    bytes: &mut Cursor<'_>,
    room: &Room,
    elements: &mut Vec<T>,
    maximum: usize,
    what: &'static str,
    mut next: impl FnMut(&mut Cursor<'_>, Option<&T>) -> Result<T, ReadError>,
) -> Result<(), ReadError> {
    while !bytes.is_at_end() {
        if elements.len() >= maximum {
            return Err(ReadError::TooMany { offset: bytes.offset(), what, maximum });
        }
        room.take(bytes.offset(), size_of::<T>())?;
        let element = next(bytes, elements.last())?;
        elements.push(element);
    }
    Ok(())
}
