//! The bytes of the kernel's records.
//!
//! ```text
//! type 14 SWITCH   misc bit 13: lost the core, bit 14 as well: could have gone on
//!   | pid 4 | tid 4 | time 8 | core 4 | 0 4 |
//! type 9 SAMPLE    a page fault
//!   | pid 4 | tid 4 | time 8 | core 4 | 0 4 |
//! type 2 LOST
//!   | event 8 | count 8 | pid 4 | tid 4 | time 8 | core 4 | 0 4 |
//! ```
//!
//! Of a whole core, each of which ends with the same stamp as those above:
//!
//! ```text
//! type 15 SWITCH_CPU_WIDE   misc bit 13: who is in the stamp lost the core to the other; else it has got it from there
//!   | other's pid 4 | other's tid 4 | stamp 24 |
//! type 3 COMM   | pid 4 | tid 4 | name, up to 16 with its zeros | stamp 24 |
//! type 7 FORK, type 4 EXIT
//!   | pid 4 | parent's pid 4 | tid 4 | parent's tid 4 | time 8 | stamp 24 |
//! ```
//!
//! Numbers are in the machine's own byte order. A record that wraps around the end of its ring comes as two pieces.

use super::Record;
use super::cores::{CoreRecord, ThreadName};

pub(super) enum Parsed {
    Record(Record),
    /// So many records found the ring full.
    Lost(u64),
    /// Something that was not asked for, such as a note that the kernel takes a rest.
    Other,
}

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const SWITCH_CPU_WIDE: u32 = 15;
/// From the kernel's perf_event.h: PERF_RECORD_SWITCH, and in its `misc` PERF_RECORD_MISC_SWITCH_OUT and ..._PREEMPT.
pub(crate) const SWITCH: u32 = 14;
pub(crate) const SWITCH_OUT: u16 = 1 << 13;
pub(crate) const SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// pid, tid, time, core, at the end of every record.
const STAMP_BYTES: usize = 24;
const LOST_BYTES: usize = 16 + STAMP_BYTES;
/// Of the longest record of a core.
const CORE_BYTES_MAX: usize = 24 + STAMP_BYTES;

/// `pieces` is the record without its header.
pub(super) fn parse(kind: u32, misc: u16, pieces: &[&[u8]]) -> Parsed {
    let mut buffer = [0; LOST_BYTES];
    let Some(body) = join(pieces, &mut buffer) else {
        return Parsed::Other;
    };
    match kind {
        SWITCH | SAMPLE if body.len() == STAMP_BYTES => {
            let at_ns = number(body, 8);
            Parsed::Record(if kind == SAMPLE {
                Record::PageFault { at_ns }
            } else if misc & SWITCH_OUT == 0 {
                Record::Running { at_ns, core: core(body) }
            } else if misc & SWITCH_OUT_PREEMPT != 0 {
                Record::Preempted { at_ns }
            } else {
                Record::Blocked { at_ns }
            })
        }
        LOST if body.len() == LOST_BYTES => Parsed::Lost(number(body, 8)),
        _ => Parsed::Other,
    }
}

/// The same of a whole core's ring; `None` for what was not asked for.
pub(super) fn parse_core(kind: u32, misc: u16, pieces: &[&[u8]]) -> Option<CoreRecord> {
    let mut buffer = [0; CORE_BYTES_MAX];
    let body = join(pieces, &mut buffer)?;
    let (body, stamp) = body.split_at(body.len().checked_sub(STAMP_BYTES)?);
    let at_ns = number(stamp, 8);
    let field = |at: usize| word(body, at);
    Some(match (kind, body.len()) {
        (SWITCH_CPU_WIDE, 8) if misc & SWITCH_OUT == 0 => {
            CoreRecord::Runs { at_ns, pid: word(stamp, 0), tid: word(stamp, 4) }
        }
        (SWITCH_CPU_WIDE, 8) => CoreRecord::Runs { at_ns, pid: field(0), tid: field(4) },
        (LOST, 16) => CoreRecord::Lost { at_ns, count: number(body, 8) },
        (COMM, 16 | 24) => CoreRecord::Named { at_ns, pid: field(0), tid: field(4), name: ThreadName::new(&body[8..]) },
        (FORK, 24) => CoreRecord::Started { at_ns, pid: field(0), tid: field(8), parent_tid: field(12) },
        (EXIT, 24) => CoreRecord::Ended { at_ns, tid: field(8) },
        _ => return None,
    })
}

/// The pieces one behind the other; `None` if they are longer than any record that is asked for.
fn join<'a>(pieces: &[&[u8]], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut length = 0;
    for piece in pieces {
        buffer.get_mut(length..length + piece.len())?.copy_from_slice(piece);
        length += piece.len();
    }
    Some(&buffer[..length])
}

fn number(body: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(body[at..at + 8].try_into().expect("a slice of eight bytes"))
}

fn word(body: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(body[at..at + 4].try_into().expect("a slice of four bytes"))
}

fn core(body: &[u8]) -> u32 {
    word(body, 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(at_ns: u64, core: u32) -> Vec<u8> {
        [&7u32.to_ne_bytes()[..], &8u32.to_ne_bytes(), &at_ns.to_ne_bytes(), &core.to_ne_bytes(), &[0; 4]].concat()
    }

    /// Parses it in one piece and cut at every place, as a ring's end would cut it.
    #[track_caller]
    fn check(kind: u32, misc: u16, body: &[u8], expect: Result<Option<Record>, u64>) {
        let seen = |pieces: &[&[u8]]| match parse(kind, misc, pieces) {
            Parsed::Record(record) => Ok(Some(record)),
            Parsed::Lost(count) => Err(count),
            Parsed::Other => Ok(None),
        };
        assert_eq!(seen(&[body]), expect);
        for cut in 0..=body.len() {
            let (left, right) = body.split_at(cut);
            assert_eq!(seen(&[left, right]), expect, "cut at {cut}");
        }
    }

    #[test]
    fn records_are_read_whole_or_wrapped() {
        let body = stamp(5_000_000_123, 63);
        let at_ns = 5_000_000_123;
        check(SWITCH, 0, &body, Ok(Some(Record::Running { at_ns, core: 63 })));
        check(SWITCH, SWITCH_OUT, &body, Ok(Some(Record::Blocked { at_ns })));
        check(SWITCH, SWITCH_OUT | SWITCH_OUT_PREEMPT, &body, Ok(Some(Record::Preempted { at_ns })));
        // The low bits say in which mode the processor was.
        check(SAMPLE, 2, &body, Ok(Some(Record::PageFault { at_ns })));
    }

    #[test]
    fn lost_records_are_a_count() {
        let body = [&1u64.to_ne_bytes()[..], &321u64.to_ne_bytes(), &stamp(1, 0)].concat();
        check(LOST, 0, &body, Err(321));
    }

    /// [`parse_core`] in one piece and cut at every place.
    #[track_caller]
    fn check_core(kind: u32, misc: u16, body: &[u8], expect: Option<CoreRecord>) {
        assert_eq!(parse_core(kind, misc, &[body]), expect);
        for cut in 0..=body.len() {
            let (left, right) = body.split_at(cut);
            assert_eq!(parse_core(kind, misc, &[left, right]), expect, "cut at {cut}");
        }
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// The stamp is that of process 7, thread 8.
    #[test]
    fn a_switch_of_a_core_tells_who_has_it_from_then_on() {
        let body = [words(&[700, 701]), stamp(5_000_000_123, 3)].concat();
        let at_ns = 5_000_000_123;
        check_core(SWITCH_CPU_WIDE, 0, &body, Some(CoreRecord::Runs { at_ns, pid: 7, tid: 8 }));
        let to_other = Some(CoreRecord::Runs { at_ns, pid: 700, tid: 701 });
        check_core(SWITCH_CPU_WIDE, SWITCH_OUT, &body, to_other);
        check_core(SWITCH_CPU_WIDE, SWITCH_OUT | SWITCH_OUT_PREEMPT, &body, to_other);
    }

    #[test]
    fn threads_that_begin_are_renamed_and_end_are_told() {
        let named = |text: &[u8]| [words(&[700, 701]), text.to_vec(), stamp(9, 0)].concat();
        let name = |text: &[u8]| Some(CoreRecord::Named { at_ns: 9, pid: 700, tid: 701, name: ThreadName::new(text) });
        check_core(COMM, 0, &named(b"rustc\0\0\0"), name(b"rustc"));
        // The kernel marks a name that came with another program.
        check_core(COMM, 1 << 13, &named(b"kworker/0:1-mm\0\0"), name(b"kworker/0:1-mm"));
        check_core(COMM, 0, &named(b"without an end.."), name(b"without an end."));
        let task = [words(&[700, 600, 701, 601]), vec![0; 8], stamp(9, 0)].concat();
        check_core(FORK, 0, &task, Some(CoreRecord::Started { at_ns: 9, pid: 700, tid: 701, parent_tid: 601 }));
        check_core(EXIT, 0, &task, Some(CoreRecord::Ended { at_ns: 9, tid: 701 }));
    }

    #[test]
    fn of_a_core_too_lost_records_are_a_count_and_strange_ones_are_passed_over() {
        let lost = [&1u64.to_ne_bytes()[..], &321u64.to_ne_bytes(), &stamp(7, 0)].concat();
        check_core(LOST, 0, &lost, Some(CoreRecord::Lost { at_ns: 7, count: 321 }));
        check_core(SWITCH_CPU_WIDE, 0, &stamp(1, 0), None);
        check_core(SWITCH_CPU_WIDE, 0, &stamp(1, 0)[..20], None);
        check_core(SWITCH, 0, &stamp(1, 0), None);
        check_core(COMM, 0, &[words(&[7, 8]), stamp(1, 0)].concat(), None);
        check_core(99, 0, &[0; 400], None);
        check_core(FORK, 0, &[], None);
    }

    #[test]
    fn names_are_what_stands_before_the_first_zero() {
        assert_eq!(ThreadName::new(b"sh\0rest").to_string(), "sh");
        assert_eq!(ThreadName::new(&[0xff; 40]).to_string().chars().count(), 15);
        assert_eq!(ThreadName::new(b"").to_string(), "");
    }

    #[test]
    fn what_was_not_asked_for_is_passed_over() {
        check(5, 0, &stamp(1, 0), Ok(None));
        check(SWITCH, 0, &stamp(1, 0)[..20], Ok(None));
        check(LOST, 0, &stamp(1, 0), Ok(None));
        check(SAMPLE, 0, &[0; 400], Ok(None));
        check(SAMPLE, 0, &[], Ok(None));
    }
}
