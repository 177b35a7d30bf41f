//! The reader: from bytes to the model, whatever the bytes are.
//!
//! Lists grow element by element while there are bytes for them, so that memory follows what was read and not what was
//! claimed. An element takes at least a byte in the file, and a few hundred in memory at the very most.

use super::bytes::Cursor;
use super::events::{COMMON_SITES, Counts, EventReader};
use super::section::{self, Kind};
use super::{MAGIC, ReadError, VERSION, elements, maximum};
use crate::model::{Capture, Counter, Lock};

/// The capture in `file`, which is a whole file. Indices in it point into its lists.
pub fn read(file: &[u8]) -> Result<Capture, ReadError> {
    let mut file = Cursor::new(file, 0);
    if file.array() != Ok(MAGIC) {
        return Err(ReadError::NotACapture);
    }
    let version = u16::from_le_bytes(file.array()?);
    if version != VERSION {
        return Err(ReadError::UnknownVersion { version });
    }
    let mut reader = Reader::default();
    let mut last = None;
    loop {
        let offset = file.offset();
        let (kind, payload) = section::next(&mut file)?;
        // The first is About and stands once; the others may be missing or go on, in this order.
        let fits = match last {
            None => kind == Kind::About,
            Some(last) => kind > last || (kind == last && kind != Kind::About),
        };
        if !fits {
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

#[derive(Default)]
struct Reader {
    capture: Capture,
    common_sites: Vec<u32>,
    /// The thread whose events were read last, and the end of the last one.
    thread: usize,
    thread_before_ns: Option<u64>,
}

impl Reader {
    fn section(&mut self, kind: Kind, mut bytes: Cursor<'_>) -> Result<(), ReadError> {
        let capture = &mut self.capture;
        let bytes = &mut bytes;
        let (sites, threads) = (capture.sites.len(), capture.threads.len());
        let begin_ns = capture.about.begin_ns;
        match kind {
            Kind::About => capture.about = elements::about(bytes)?,
            Kind::Sites => list(bytes, &mut capture.sites, maximum::SITES, "sites", |bytes, _| elements::site(bytes))?,
            Kind::CommonSites => {
                list(bytes, &mut self.common_sites, COMMON_SITES, "common sites", |bytes, _| {
                    bytes.index("site", sites)
                })?;
            }
            Kind::Worlds => {
                list(bytes, &mut capture.worlds, maximum::WORLDS, "worlds", |bytes, _| elements::world(bytes))?;
            }
            Kind::Locks => list(bytes, &mut capture.locks, maximum::LOCKS, "locks", |bytes, _| {
                Ok(Lock { name: bytes.text("a lock's name")? })
            })?,
            Kind::Counters => list(bytes, &mut capture.counters, maximum::COUNTERS, "counters", |bytes, _| {
                Ok(Counter { name: bytes.text("a counter's name")? })
            })?,
            Kind::Threads => {
                list(bytes, &mut capture.threads, maximum::THREADS, "threads", |bytes, _| elements::thread(bytes))?;
            }
            Kind::Events => self.events(bytes)?,
            Kind::Frames => list(bytes, &mut capture.frames, maximum::FRAMES, "frames", |bytes, before| {
                elements::frame(bytes, before.map_or((0, begin_ns), |frame| (frame.number, frame.end_ns)), threads)
            })?,
            Kind::Logs => list(bytes, &mut capture.logs, maximum::LOGS, "log lines", |bytes, before| {
                elements::log(bytes, before.map_or(begin_ns, |line| line.at_ns), threads)
            })?,
            Kind::MemoryMoments => {
                let moments = &mut capture.memory.at_ns;
                list(bytes, moments, maximum::MEMORY_MOMENTS, "moments of memory", |bytes, before| {
                    bytes.step(before.copied().unwrap_or(begin_ns))
                })?;
            }
            Kind::MemoryRows => {
                let moments = capture.memory.at_ns.len();
                let rows = &mut capture.memory.by_site;
                list(bytes, rows, maximum::MEMORY_ROWS, "rows of live bytes", |bytes, _| {
                    elements::live_bytes(bytes, moments, sites)
                })?;
            }
            Kind::Processes => {
                list(bytes, &mut capture.processes, maximum::PROCESSES, "processes", |bytes, _| {
                    elements::process(bytes)
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
        let capture = &mut self.capture;
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
        list(bytes, events, maximum::EVENTS, "events of one thread", |bytes, _| reader.next(bytes))?;
        self.thread = thread;
        self.thread_before_ns = Some(reader.before_ns);
        Ok(())
    }
}

/// Elements to the end of the section; `next` is given the element before.
fn list<T>(
    bytes: &mut Cursor<'_>,
    elements: &mut Vec<T>,
    maximum: usize,
    what: &'static str,
    mut next: impl FnMut(&mut Cursor<'_>, Option<&T>) -> Result<T, ReadError>,
) -> Result<(), ReadError> {
    while !bytes.is_at_end() {
        if elements.len() >= maximum {
            return Err(ReadError::TooMany { offset: bytes.offset(), what, maximum });
        }
        let element = next(bytes, elements.last())?;
        elements.push(element);
    }
    Ok(())
}
