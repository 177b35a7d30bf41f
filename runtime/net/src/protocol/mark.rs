//! The sequence mark: where a link has come to, for those who see its datagrams before they are opened.
//!
//! Anyone can write a client's address on a datagram. Only the cipher says who really sent it, and the cipher is the
//! worker's. But the sequence is in the clear, links start theirs at a random number below 2^48 (see `link`), and the
//! worker knows the newest that has opened. So a glance at the sequence tells a guess from a packet of somebody who
//! sees the client's traffic:
//!
//! ```text
//!        256            2^20
//!   -----[=====|===================]-----> sequence
//!        oldest newest that opened
//!        of the replay window
//! ```
//!
//! - Who only knows address and port hits the range once in 2^28 datagrams: at 1,000,000 a second, once in four and a
//!   half minutes.
//! - Who sees the client's datagrams on their way reads the sequence and passes: this is no proof, it only keeps the
//!   others out.
//! - A client whose sequences start near zero, as those of other netcode libraries do, is as easy to guess as to see.
//!
//! A link's thread moves the mark, any thread asks. Cost: one load and the header's few bytes, some nanoseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::packet::{Kind, SealedHeader};
use super::replay::WINDOW_PACKETS;

/// How far ahead of the newest a sequence may be. At 300 packets a second, all of them lost, a client gets there in an
/// hour, when no link waits for it any more.
const AHEAD_MAX: u64 = 1 << 20;

/// The newest sequence that has opened. Clones look at the same link.
#[derive(Clone, Debug)]
pub struct SequenceMark {
    /// Written by the thread that has the link, read by whoever has a clone. Late is as good as now: the range is wide
    /// and nothing else depends on it, so no order is asked for.
    newest: Arc<AtomicU64>,
}

impl SequenceMark {
    pub(super) fn new() -> SequenceMark {
        SequenceMark { newest: Arc::new(AtomicU64::new(0)) }
    }

    pub(super) fn set(&self, newest: u64) {
        self.newest.store(newest, Ordering::Relaxed);
    }

    /// Whether a datagram under the client's address has the shape of a packet of a connected client, and a sequence
    /// that the client may have come to. False: the link would refuse it, or does not expect it within the next million
    /// packets.
    pub fn is_plausible(&self, datagram: &[u8]) -> bool {
        let Some(header) = SealedHeader::read(datagram) else { return false };
        if !matches!(header.kind, Kind::KeepAlive | Kind::Payload | Kind::Disconnect) {
            return false;
        }
        let oldest = self.newest.load(Ordering::Relaxed).wrapping_sub(WINDOW_PACKETS - 1);
        header.sequence.wrapping_sub(oldest) < WINDOW_PACKETS + AHEAD_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(newest: u64, sequence: u64, expect: bool) {
        let mark = SequenceMark::new();
        mark.set(newest);
        let mut datagram = [0; 60];
        SealedHeader::write(Kind::Payload, sequence, &mut datagram);
        assert_eq!(mark.clone().is_plausible(&datagram), expect, "{sequence} after {newest}");
    }

    #[test]
    fn the_replay_window_and_a_million_ahead_are_plausible() {
        let newest = 0x1234_5678_9ABC;
        for (sequence, expect) in [
            (newest, true),
            (newest - 255, true),
            (newest - 256, false),
            (newest + AHEAD_MAX, true),
            (newest + AHEAD_MAX + 1, false),
            (0, false),
            (u64::MAX, false),
        ] {
            check(newest, sequence, expect);
        }
    }

    #[test]
    fn the_ends_of_all_sequences_are_no_special_case() {
        for newest in [0, 100, u64::MAX] {
            check(newest, newest, true);
            check(newest, newest.wrapping_add(AHEAD_MAX), true);
            check(newest, newest.wrapping_add(1 << 40), false);
        }
    }

    /// Promise: who has to guess does not come through.
    #[test]
    fn guessed_sequences_are_refused() {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(3);
        let mark = SequenceMark::new();
        mark.set(rng.random_range(0..1 << 48));
        let mut datagram = [0; 60];
        for _ in 0..1_000_000 {
            SealedHeader::write(Kind::Payload, rng.random_range(0..1 << 48), &mut datagram);
            assert!(!mark.is_plausible(&datagram));
        }
    }

    #[test]
    fn only_packets_of_a_connection_are_plausible() {
        let mark = SequenceMark::new();
        for kind in [Kind::Denied, Kind::Challenge, Kind::Response, Kind::Payload] {
            for len in [0, 1, 17, 18, 60, 333, 1_078, 1_300, 2_048] {
                let mut datagram = [0; 2_048];
                SealedHeader::write(kind, 1, &mut datagram);
                assert_eq!(mark.is_plausible(&datagram[..len]), kind == Kind::Payload && (60..=1_078).contains(&len));
            }
        }
    }
}
