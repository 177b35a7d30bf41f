//! A thread's events as bytes.
//!
//! Every time is told as a step from the end of the event before (of the thread's, in any section; the first from the
//! capture's begin), which is small. A scope of a common site takes a byte for its site and for how it lies to that
//! moment, then two numbers:
//!
//! ```text
//!      end of the event before
//!                 v
//!   shape 0       [=====]           duration
//!   shape 1       ...[=====]        gap, duration
//!   shape 2   [===+=======]         how long after, how long before
//! ```
//!
//! The tag byte is `16 + 3 x rank + shape` for the 80 most frequent sites, by rank; tags below 16 are everything else,
//! among it scopes of rarer sites and scopes whose times lie in no such way.

use super::bytes::{Cursor, put_optional_u32, put_step, put_varint};
use super::{ReadError, WriteError};
use crate::model::{Event, Holder, Switch};

/// Sites that have tags of their own: as many as a byte has room for.
pub(super) const COMMON_SITES: usize = (256 - COMMON as usize) / SHAPES as usize;

const SHAPES: u8 = 3;
const CONTIGUOUS: u8 = 0;
const AFTER: u8 = 1;
const AROUND: u8 = 2;

// The same three with the site after the tag.
const SCOPE: u8 = 0;
/// A scope of any times at all.
const SCOPE_ANYWHERE: u8 = 3;
const OPEN_SCOPE: u8 = 4;
const NO_WORLD: u8 = 5;
const WORLD: u8 = 6;
const ALLOCATIONS: u8 = 7;
const LOCK_WAIT: u8 = 8;
const LOCK_WAIT_HOLDER: u8 = 9;
const RUNNING: u8 = 10;
const PREEMPTED: u8 = 11;
const BLOCKED: u8 = 12;
const PAGE_FAULT: u8 = 13;
const LARGE_ALLOCATION: u8 = 14;
const COUNT: u8 = 15;
const COMMON: u8 = 16;

const _: () = assert!(COMMON as usize + COMMON_SITES * SHAPES as usize == 256);

/// How many things there are to refer to.
pub(super) struct Counts {
    pub(super) sites: usize,
    pub(super) locks: usize,
    pub(super) counters: usize,
    pub(super) threads: usize,
}

/// Refuses what refers to nothing, so that a reader need not.
pub(super) fn check_index(what: &'static str, index: u32, count: usize) -> Result<(), WriteError> {
    if (index as usize) < count { Ok(()) } else { Err(WriteError::NoSuch { what, index, count }) }
}

/// Writes one thread's events.
pub(super) struct EventWriter<'a> {
    pub(super) counts: &'a Counts,
    /// By site: its rank among the common ones.
    pub(super) ranks: &'a [Option<u8>],
    /// Where the event before ended. (ns)
    pub(super) before_ns: u64,
}

impl EventWriter<'_> {
    pub(super) fn put(&mut self, out: &mut Vec<u8>, event: Event) -> Result<(), WriteError> {
        match event {
            Event::Scope { site, begin_ns, end_ns } => self.put_scope(out, site, begin_ns, end_ns)?,
            Event::OpenScope { site, begin_ns } => {
                check_index("site", site, self.counts.sites)?;
                out.push(OPEN_SCOPE);
                put_varint(out, site.into());
                // It has no end, so it moves nothing.
                put_step(out, self.before_ns, begin_ns);
            }
            Event::World { at_ns, world: None, tick } => {
                self.put_moment(out, NO_WORLD, at_ns);
                put_varint(out, tick.into());
            }
            Event::World { at_ns, world: Some(world), tick } => {
                self.put_moment(out, WORLD, at_ns);
                put_varint(out, world.into());
                put_varint(out, tick.into());
            }
            Event::Allocations { count, frees, bytes } => {
                out.push(ALLOCATIONS);
                put_varint(out, count.into());
                put_varint(out, frees.into());
                put_varint(out, bytes);
            }
            Event::LockWait { lock, begin_ns, end_ns, holder } => {
                check_index("lock", lock, self.counts.locks)?;
                out.push(if holder.is_some() { LOCK_WAIT_HOLDER } else { LOCK_WAIT });
                put_varint(out, lock.into());
                put_step(out, self.before_ns, begin_ns);
                put_step(out, begin_ns, end_ns);
                self.before_ns = end_ns;
                if let Some(holder) = holder {
                    self.put_holder(out, holder)?;
                }
            }
            Event::Switch { at_ns, change: Switch::Running { core } } => {
                self.put_moment(out, RUNNING, at_ns);
                put_varint(out, core.into());
            }
            Event::Switch { at_ns, change: Switch::Preempted } => self.put_moment(out, PREEMPTED, at_ns),
            Event::Switch { at_ns, change: Switch::Blocked } => self.put_moment(out, BLOCKED, at_ns),
            Event::PageFault { at_ns } => self.put_moment(out, PAGE_FAULT, at_ns),
            Event::LargeAllocation { at_ns, bytes } => {
                self.put_moment(out, LARGE_ALLOCATION, at_ns);
                put_varint(out, bytes);
            }
            Event::Count { at_ns, counter, value } => {
                check_index("counter", counter, self.counts.counters)?;
                self.put_moment(out, COUNT, at_ns);
                put_varint(out, counter.into());
                out.extend_from_slice(&value.to_le_bytes());
            }
        }
        Ok(())
    }

    fn put_scope(&mut self, out: &mut Vec<u8>, site: u32, begin_ns: u64, end_ns: u64) -> Result<(), WriteError> {
        check_index("site", site, self.counts.sites)?;
        let before_ns = self.before_ns;
        self.before_ns = end_ns;
        let tag = |shape: u8, out: &mut Vec<u8>| match self.ranks[site as usize] {
            Some(rank) => out.push(COMMON + SHAPES * rank + shape),
            None => {
                out.push(SCOPE + shape);
                put_varint(out, site.into());
            }
        };
        if end_ns < begin_ns || end_ns < before_ns {
            out.push(SCOPE_ANYWHERE);
            put_varint(out, site.into());
            put_step(out, before_ns, begin_ns);
            put_step(out, begin_ns, end_ns);
        } else if begin_ns == before_ns {
            tag(CONTIGUOUS, out);
            put_varint(out, end_ns - begin_ns);
        } else if begin_ns > before_ns {
            tag(AFTER, out);
            put_varint(out, begin_ns - before_ns);
            put_varint(out, end_ns - begin_ns);
        } else {
            tag(AROUND, out);
            put_varint(out, end_ns - before_ns);
            put_varint(out, before_ns - begin_ns);
        }
        Ok(())
    }

    fn put_moment(&mut self, out: &mut Vec<u8>, tag: u8, at_ns: u64) {
        out.push(tag);
        put_step(out, self.before_ns, at_ns);
        self.before_ns = at_ns;
    }

    fn put_holder(&self, out: &mut Vec<u8>, holder: Holder) -> Result<(), WriteError> {
        check_index("thread", holder.thread, self.counts.threads)?;
        holder.site.map_or(Ok(()), |site| check_index("site", site, self.counts.sites))?;
        put_varint(out, holder.thread.into());
        put_optional_u32(out, holder.site);
        put_optional_u32(out, holder.world);
        Ok(())
    }
}

/// Reads one thread's events.
pub(super) struct EventReader<'a> {
    pub(super) counts: &'a Counts,
    /// By rank.
    pub(super) common_sites: &'a [u32],
    pub(super) before_ns: u64,
}

impl EventReader<'_> {
    pub(super) fn next(&mut self, bytes: &mut Cursor<'_>) -> Result<Event, ReadError> {
        let offset = bytes.offset();
        let event = match bytes.byte()? {
            shape @ SCOPE..SCOPE_ANYWHERE => {
                let site = bytes.index("site", self.counts.sites)?;
                self.scope(bytes, site, shape)?
            }
            SCOPE_ANYWHERE => {
                let site = bytes.index("site", self.counts.sites)?;
                let begin_ns = bytes.step(self.before_ns)?;
                self.before_ns = bytes.step(begin_ns)?;
                Event::Scope { site, begin_ns, end_ns: self.before_ns }
            }
            OPEN_SCOPE => {
                let site = bytes.index("site", self.counts.sites)?;
                Event::OpenScope { site, begin_ns: bytes.step(self.before_ns)? }
            }
            NO_WORLD => Event::World { at_ns: self.moment(bytes)?, world: None, tick: bytes.u32("a tick")? },
            WORLD => {
                let at_ns = self.moment(bytes)?;
                Event::World { at_ns, world: Some(bytes.u32("a world")?), tick: bytes.u32("a tick")? }
            }
            ALLOCATIONS => Event::Allocations {
                count: bytes.u32("a count of allocations")?,
                frees: bytes.u32("a count of frees")?,
                bytes: bytes.varint()?,
            },
            tag @ (LOCK_WAIT | LOCK_WAIT_HOLDER) => {
                let lock = bytes.index("lock", self.counts.locks)?;
                let begin_ns = bytes.step(self.before_ns)?;
                let end_ns = bytes.step(begin_ns)?;
                self.before_ns = end_ns;
                let holder = if tag == LOCK_WAIT_HOLDER { Some(self.holder(bytes)?) } else { None };
                Event::LockWait { lock, begin_ns, end_ns, holder }
            }
            RUNNING => {
                let at_ns = self.moment(bytes)?;
                Event::Switch { at_ns, change: Switch::Running { core: bytes.u32("a core")? } }
            }
            PREEMPTED => Event::Switch { at_ns: self.moment(bytes)?, change: Switch::Preempted },
            BLOCKED => Event::Switch { at_ns: self.moment(bytes)?, change: Switch::Blocked },
            PAGE_FAULT => Event::PageFault { at_ns: self.moment(bytes)? },
            LARGE_ALLOCATION => Event::LargeAllocation { at_ns: self.moment(bytes)?, bytes: bytes.varint()? },
            COUNT => {
                let at_ns = self.moment(bytes)?;
                let counter = bytes.index("counter", self.counts.counters)?;
                Event::Count { at_ns, counter, value: f32::from_le_bytes(bytes.array()?) }
            }
            tag => {
                let (rank, shape) = ((tag - COMMON) / SHAPES, (tag - COMMON) % SHAPES);
                let site = self.common_sites.get(usize::from(rank)).copied().ok_or(ReadError::NoSuch {
                    offset,
                    what: "common site",
                    index: rank.into(),
                    count: self.common_sites.len(),
                })?;
                self.scope(bytes, site, shape)?
            }
        };
        Ok(event)
    }

    fn scope(&mut self, bytes: &mut Cursor<'_>, site: u32, shape: u8) -> Result<Event, ReadError> {
        let offset = bytes.offset();
        let out_of_range = ReadError::OutOfRange { offset, what: "the time of a scope" };
        let before_ns = self.before_ns;
        let first = bytes.varint()?;
        let (begin_ns, end_ns) = match shape {
            CONTIGUOUS => (Some(before_ns), before_ns.checked_add(first)),
            AFTER => {
                let begin_ns = before_ns.checked_add(first);
                let duration_ns = bytes.varint()?;
                (begin_ns, begin_ns.and_then(|begin_ns| begin_ns.checked_add(duration_ns)))
            }
            _ => (before_ns.checked_sub(bytes.varint()?), before_ns.checked_add(first)),
        };
        let (Some(begin_ns), Some(end_ns)) = (begin_ns, end_ns) else { return Err(out_of_range) };
        self.before_ns = end_ns;
        Ok(Event::Scope { site, begin_ns, end_ns })
    }

    fn moment(&mut self, bytes: &mut Cursor<'_>) -> Result<u64, ReadError> {
        self.before_ns = bytes.step(self.before_ns)?;
        Ok(self.before_ns)
    }

    fn holder(&self, bytes: &mut Cursor<'_>) -> Result<Holder, ReadError> {
        Ok(Holder {
            thread: bytes.index("thread", self.counts.threads)?,
            site: bytes.optional_index("site", self.counts.sites)?,
            world: bytes.optional_u32("a world")?,
        })
    }
}
