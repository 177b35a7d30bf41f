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
//! Numbers are in the machine's own byte order. A record that wraps around the end of its ring comes as two pieces.

use super::Record;

pub(super) enum Parsed {
    Record(Record),
    /// So many records found the ring full.
    Lost(u64),
    /// Something that was not asked for, such as a note that the kernel takes a rest.
    Other,
}

const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// From the kernel's perf_event.h: PERF_RECORD_SWITCH, and in its `misc` PERF_RECORD_MISC_SWITCH_OUT and ..._PREEMPT.
pub(crate) const SWITCH: u32 = 14;
pub(crate) const SWITCH_OUT: u16 = 1 << 13;
pub(crate) const SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// pid, tid, time, core, at the end of every record.
const STAMP_BYTES: usize = 24;
const LOST_BYTES: usize = 16 + STAMP_BYTES;

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

fn core(body: &[u8]) -> u32 {
    u32::from_ne_bytes(body[16..20].try_into().expect("a slice of four bytes"))
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

    #[test]
    fn what_was_not_asked_for_is_passed_over() {
        check(5, 0, &stamp(1, 0), Ok(None));
        check(SWITCH, 0, &stamp(1, 0)[..20], Ok(None));
        check(LOST, 0, &stamp(1, 0), Ok(None));
        check(SAMPLE, 0, &[0; 400], Ok(None));
        check(SAMPLE, 0, &[], Ok(None));
    }
}
