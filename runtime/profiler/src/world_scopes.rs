//! World scopes: what the scopes of one world took in the last moments, read from what threads have recorded.
//!
//! For whoever looks into one world of many: the sums that are kept always are by kind of world. And what all scopes took since a
//! moment ([`since`]), for who compares two builds. Nothing is kept for this;
//! blocks are pinned and read as for a capture, so nobody waits for the reader, and without one it costs nothing.
//!
//! Any thread but those of frames. Cost: some 5 ns for each record that all threads have written in the span, in pieces
//! with rests between (`pace`); allocates.

use std::time::Duration;

use throng_platform::ticks::{self, Calibration};

use crate::pace::Pace;
use crate::record::{Read, Record, recorded_world};
use crate::site::{self, SITES_MAX, SiteId};
use crate::{POOL, thread};

/// The scopes of a world in a span of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorldScopes {
    /// How long it was; less than was asked for where the recorder remembers less.
    pub span: Duration,
    /// The one that took most by itself first.
    pub scopes: Vec<WorldScope>,
}

/// All scopes of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldScope {
    pub name: &'static str,
    pub subsystem: &'static str,
    pub count: u64,
    /// What they took together, without scopes inside (ns).
    pub own_ns: u64,
    /// With them (ns).
    pub whole_ns: u64,
    /// The longest, with scopes inside (ns).
    pub longest_ns: u64,
}

/// What this world's scopes took in the last `span`. Empty without a recorder.
pub fn of_world(world: u32, span: Duration) -> WorldScopes {
    read(Some(world), ticks::now().saturating_sub(Calibration::get().ticks(span.as_nanos() as u64)))
}

/// What all scopes of all threads took that have begun since a moment (time of the processor's counter), in worlds and outside.
/// Empty without a recorder.
pub fn since(begin: u64) -> WorldScopes {
    read(None, begin)
}

/// Of one world, or of everything.
fn read(world: Option<u32>, since: u64) -> WorldScopes {
    let Some(pool) = POOL.get() else { return WorldScopes::default() };
    let (calibration, now) = (Calibration::get(), ticks::now());
    let pinned = pool.pin(since, thread::all().iter().filter_map(|cells| cells.block()));
    let (mut sums, mut reader, mut pace) = (Sums::default(), None, Pace::begin());
    for (owner, records) in pinned.blocks() {
        pace.rest_if_due();
        let reader = match &mut reader {
            Some((of, reader)) if *of == owner => reader,
            other => &mut other.insert((owner, Reader::new(world.map(recorded_world), since))).1,
        };
        records.for_each(|record| reader.take(record, &mut sums));
    }
    drop(pinned);
    let mut scopes: Vec<WorldScope> =
        sums.sites().filter_map(|(site, sum)| sum.told(SiteId(site), &calibration)).collect();
    scopes.sort_by(|a, b| b.own_ns.cmp(&a.own_ns).then(a.name.cmp(b.name)));
    let oldest = sums.oldest.unwrap_or(now).max(since);
    WorldScopes { span: Duration::from_nanos(calibration.ns(now.saturating_sub(oldest))), scopes }
}

/// Follows what one thread has written.
struct Reader {
    /// None for all of them.
    world: Option<u32>,
    since: u64,
    is_in_it: bool,
    /// Begin and length of scopes that have ended and may lie in one that has not (ticks), the latest last.
    ended: Vec<(u64, u64)>,
}

/// Scopes that may wait for the one around them; the recorder nests no deeper, but one scope may hold many.
const ENDED_MAX: usize = 1 << 12;

impl Reader {
    fn new(world: Option<u32>, since: u64) -> Reader {
        Reader { world, since, is_in_it: world.is_none(), ended: Vec::new() }
    }

    fn take(&mut self, record: Record, sums: &mut Sums) {
        match record.read() {
            Read::World { world, .. } if self.world.is_some() => {
                // A block begins with the world that its thread is in, which may be in the middle of a tick.
                self.is_in_it = world == self.world;
                if !self.is_in_it {
                    self.ended.clear();
                }
            }
            Read::Scope { site, begin, length } if self.is_in_it && begin >= self.since => {
                let mut inside = 0;
                while let Some((_, taken)) = self.ended.pop_if(|(other, _)| *other >= begin) {
                    inside += taken;
                }
                if self.ended.len() < ENDED_MAX {
                    self.ended.push((begin, length));
                }
                sums.add(site, begin, length, inside);
            }
            _ => {}
        }
    }
}

#[derive(Default)]
struct Sums {
    /// By the number of the site: a look at one costs nothing beside the record.
    by_site: Vec<Sum>,
    /// Begin of the oldest scope (ticks).
    oldest: Option<u64>,
}

#[derive(Clone, Default)]
struct Sum {
    count: u64,
    own: u64,
    whole: u64,
    longest: u64,
}

impl Sums {
    /// Those of which there was anything.
    fn sites(&self) -> impl Iterator<Item = (u32, &Sum)> {
        (0..).zip(&self.by_site).filter(|(_, sum)| sum.count > 0)
    }

    fn add(&mut self, site: u32, begin: u64, length: u64, inside: u64) {
        let index = site as usize;
        if index >= self.by_site.len() {
            self.by_site.resize((index + 1).min(SITES_MAX + 1), Sum::default());
        }
        let Some(sum) = self.by_site.get_mut(index) else { return };
        sum.count += 1;
        sum.own += length.saturating_sub(inside);
        sum.whole += length;
        sum.longest = sum.longest.max(length);
        self.oldest = Some(self.oldest.map_or(begin, |oldest| oldest.min(begin)));
    }
}

impl Sum {
    fn told(&self, id: SiteId, calibration: &Calibration) -> Option<WorldScope> {
        let site = site::get(id)?;
        Some(WorldScope {
            name: site.name(),
            subsystem: site.subsystem_name(),
            count: self.count,
            own_ns: calibration.ns(self.own),
            whole_ns: calibration.ns(self.whole),
            longest_ns: calibration.ns(self.longest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Site, count, own, whole and longest (ticks), by site.
    fn read(world: Option<u32>, records: &[Record]) -> Vec<(u32, u64, u64, u64, u64)> {
        let (mut reader, mut sums) = (Reader::new(world, 100), Sums::default());
        records.iter().for_each(|record| reader.take(*record, &mut sums));
        sums.sites().map(|(site, sum)| (site, sum.count, sum.own, sum.whole, sum.longest)).collect()
    }

    #[test]
    fn a_scope_has_by_itself_what_those_inside_have_not() {
        let rows = read(
            Some(7),
            &[
                Record::world(100, Some(7), 1),
                Record::scope(2, 110, 10),
                Record::scope(3, 130, 5),
                Record::world(135, Some(7), 1),
                Record::scope(2, 125, 20),
                Record::scope(1, 105, 50),
                Record::scope(1, 200, 7),
            ],
        );
        assert_eq!(rows, [(1, 2, 50 - 30 + 7, 57, 50), (2, 2, 10 + 15, 30, 20), (3, 1, 5, 5, 5)]);
    }

    #[test]
    fn other_worlds_and_what_is_older_are_not_of_it() {
        let rows = read(
            Some(7),
            &[
                Record::scope(1, 110, 1),
                Record::world(120, Some(8), 1),
                Record::scope(1, 121, 1),
                Record::world(130, Some(7), 1),
                Record::scope(1, 90, 45),
                Record::scope(1, 131, 2),
                Record::world(140, None, 0),
                Record::scope(1, 141, 1),
            ],
        );
        assert_eq!(rows, [(1, 1, 2, 2, 2)]);
    }

    #[test]
    fn all_scopes_are_those_of_all_worlds_and_of_none() {
        let rows = read(
            None,
            &[
                Record::scope(1, 90, 5),
                Record::scope(1, 110, 1),
                Record::world(120, Some(8), 1),
                Record::scope(2, 121, 4),
                Record::world(130, None, 0),
                Record::scope(3, 105, 40),
            ],
        );
        assert_eq!(rows, [(1, 1, 1, 1, 1), (2, 1, 4, 4, 4), (3, 1, 35, 40, 40)]);
    }
}
