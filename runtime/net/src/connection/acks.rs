//! Which packets arrived: what we say about the other side's, and what the other side's says about ours.
//!
//! [`ReceivedPackets`] is the 32 packets that every header of ours acknowledges. [`SentPackets`] is our own
//! packets whose fate is open; each is told to be acked or lost **exactly once**, and never changes its fate:
//! an ack that comes after a packet was given up is ignored.
//!
//! A packet is lost when one that was sent [`LOSS_PACKETS`] or more later is acked (reordering by one or two
//! is normal and costs nothing), when its time is up, or when [`IN_FLIGHT_MAX`] newer ones are in flight.
//! Being wrong about a loss costs a repetition, never correctness: receivers drop what they have already.
//!
//! An ack of a packet that was never sent is an invention of the peer: refused before anything is touched.
//!
//! Cost: an ack looks at the open packets only, 2 to 4 of them at 20 packets/s and 100 ms. 16 B per packet,
//! 8 KiB at most.

use throng_platform::{prefetch::FootprintDraft, time::Nanos};

use super::budget::HeapBudget;
use super::packet::Acks;
use super::ring::Ring;
use super::sequence::{HALF, PacketSequence};

/// A packet is lost when one sent this much later was acked (QUIC's packet threshold, RFC 9002 6.1.1).
pub const LOSS_PACKETS: u16 = 3;
/// Packets whose fate may be open at once; with more, the oldest are lost. 160 packets/s with a loss time of
/// 1 s stay below.
pub const IN_FLIGHT_MAX: usize = 256;
/// Packets remembered at once. Losses are told in [`SentPackets::expire`], so between two calls of it
/// another [`IN_FLIGHT_MAX`] packets may be sent.
pub const REMEMBERED_MAX: usize = 2 * IN_FLIGHT_MAX;
/// How many packets one header acknowledges.
const ACKED_PACKETS: u16 = u32::BITS as u16;

/// What arrived of the other side's packets, newest 32.
#[derive(Debug, Default)]
pub struct ReceivedPackets {
    acks: Acks,
}

/// Whether a packet's number has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    Fresh,
    Duplicate,
    /// So old that it could not be acknowledged any more. Its sender has given it up, and so do we.
    Late,
}

impl ReceivedPackets {
    pub fn arrival(&self, sequence: PacketSequence) -> Arrival {
        if self.acks.bits == 0 || sequence.is_newer_than(self.acks.newest) {
            return Arrival::Fresh;
        }
        let back = self.acks.newest.distance_from(sequence);
        match back {
            ACKED_PACKETS.. => Arrival::Late,
            _ if self.acks.bits >> back & 1 == 1 => Arrival::Duplicate,
            _ => Arrival::Fresh,
        }
    }

    /// Notes a packet that was [`Arrival::Fresh`].
    pub fn mark(&mut self, sequence: PacketSequence) {
        if self.acks.bits == 0 {
            self.acks = Acks { newest: sequence, bits: 1 };
        } else if sequence.is_newer_than(self.acks.newest) {
            let ahead = sequence.distance_from(self.acks.newest) as u32;
            self.acks.newest = sequence;
            self.acks.bits = self.acks.bits.checked_shl(ahead).unwrap_or(0) | 1;
        } else {
            let back = self.acks.newest.distance_from(sequence);
            debug_assert!(back < ACKED_PACKETS, "a late packet is not marked");
            self.acks.bits |= 1 << back;
        }
    }

    /// What the next header says.
    pub fn acks(&self) -> Acks {
        self.acks
    }
}

/// What a packet held, as far as its fate is concerned.
#[derive(Debug, Clone, Copy, Default)]
pub struct PacketContents {
    /// It has chunks, so the other side acknowledges it soon. One without may wait for a second or more.
    pub awaits_ack: bool,
    /// Fragments of reliable messages rode on it.
    pub carries_fragments: bool,
}

/// The end of a packet's story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Acked,
    Lost,
}

/// One packet whose fate has just been decided.
#[derive(Debug, Clone, Copy)]
pub struct Decided {
    pub sequence: PacketSequence,
    pub fate: Fate,
    pub contents: PacketContents,
}

/// The peer acknowledged what was never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("acknowledges a packet that was never sent")]
pub struct AckOfUnsent;

/// How long a packet may go without an ack before it is lost.
#[derive(Debug, Clone, Copy)]
pub struct LossTimes {
    pub with_chunks: Nanos,
    pub without_chunks: Nanos,
}

/// Our packets whose fate is open, oldest first.
#[derive(Debug, Default)]
pub struct SentPackets {
    open: Ring<SentPacket, REMEMBERED_MAX>,
    next: PacketSequence,
    sent_count: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct SentPacket {
    at: Nanos,
    contents: PacketContents,
    /// Acked or lost, but a packet before it is still open.
    decided: bool,
}

impl SentPackets {
    /// The heap it may take (bytes).
    pub const HEAP_BYTES_MAX: usize = Ring::<SentPacket, REMEMBERED_MAX>::BYTES_MAX;

    /// Asks for the memory of the open packets.
    #[inline]
    pub fn prefetch(&self) {
        self.open.prefetch();
    }

    pub fn note(&self, footprint: &mut FootprintDraft) {
        self.open.note(footprint);
    }

    /// The number that the next packet will have.
    pub fn next(&self) -> PacketSequence {
        self.next
    }

    /// Notes the packet [`next`](Self::next) as sent.
    ///
    /// A caller that sends [`IN_FLIGHT_MAX`] packets without ever calling [`expire`](Self::expire) loses
    /// track of the oldest: its fate is never told.
    pub fn sent(&mut self, now: Nanos, contents: PacketContents, budget: &mut HeapBudget) {
        let packet = SentPacket { at: now, contents, decided: false };
        while self.open.push_back(packet, budget).is_err() {
            debug_assert!(false, "packets are sent, but losses are never asked for");
            if self.open.pop_front().is_none() {
                break;
            }
        }
        self.next = self.next.next();
        self.sent_count += 1;
    }

    /// Refuses acks that name a packet which was never sent.
    pub fn check_acks(&self, acks: Acks) -> Result<(), AckOfUnsent> {
        if acks.bits == 0 {
            return Ok(());
        }
        let age = self.next.distance_from(acks.newest.next());
        let oldest_bit = 31 - acks.bits.leading_zeros() as u64;
        if age >= HALF || age as u64 + oldest_bit >= self.sent_count {
            return Err(AckOfUnsent);
        }
        Ok(())
    }

    /// Takes acks that [`check_acks`](Self::check_acks) has passed. Tells `each` what they decide, acked
    /// ones first, and returns the round trip time they show, if they show one.
    pub fn acknowledge(&mut self, acks: Acks, now: Nanos, mut each: impl FnMut(Decided)) -> Option<Nanos> {
        debug_assert_eq!(self.check_acks(acks), Ok(()));
        let mut round_trip = None;
        // Of the 32 that a header names, all but the last few have been decided long ago.
        let behind = self.next.distance_from(acks.newest) as usize;
        let open = acks.newest_of((self.open.len() + 1).saturating_sub(behind));
        for sequence in open.sequences() {
            let Some(packet) = self.open_packet(sequence) else {
                continue;
            };
            // Only the newest packet was acknowledged without delay, and only if it asked for that.
            if sequence == acks.newest && packet.contents.awaits_ack {
                round_trip = Some(now.saturating_sub(packet.at));
            }
            packet.decided = true;
            let contents = packet.contents;
            each(Decided { sequence, fate: Fate::Acked, contents });
        }
        if acks.bits != 0 {
            self.lose_overtaken(acks.newest, &mut each);
        }
        self.forget_decided();
        round_trip
    }

    /// Gives up packets whose time is up, and the oldest if there are too many.
    pub fn expire(&mut self, now: Nanos, times: LossTimes, mut each: impl FnMut(Decided)) {
        let too_many = self.open.len().saturating_sub(IN_FLIGHT_MAX);
        for index in 0..self.open.len() {
            let sequence = self.sequence_at(index);
            let Some(packet) = self.open.get_mut(index) else {
                break;
            };
            let age = now.saturating_sub(packet.at);
            let time = if packet.contents.awaits_ack { times.with_chunks } else { times.without_chunks };
            if age < times.with_chunks && index >= too_many {
                break;
            }
            if !packet.decided && (age >= time || index < too_many) {
                packet.decided = true;
                each(Decided { sequence, fate: Fate::Lost, contents: packet.contents });
            }
        }
        self.forget_decided();
    }

    /// When [`expire`](Self::expire) gives the next one up if nothing is acked until then.
    pub fn next_loss(&self, times: LossTimes) -> Option<Nanos> {
        let time = |packet: &SentPacket| {
            if packet.contents.awaits_ack { times.with_chunks } else { times.without_chunks }
        };
        let open = (0..self.open.len()).filter_map(|index| self.open.get(index)).filter(|packet| !packet.decided);
        open.map(|packet| packet.at.saturating_add(time(packet))).min()
    }

    fn lose_overtaken(&mut self, newest_acked: PacketSequence, each: &mut impl FnMut(Decided)) {
        for index in 0..self.open.len() {
            let sequence = self.sequence_at(index);
            let overtaken_by = newest_acked.distance_from(sequence);
            if !(LOSS_PACKETS..HALF).contains(&overtaken_by) {
                break;
            }
            let Some(packet) = self.open.get_mut(index) else {
                break;
            };
            if !packet.decided {
                packet.decided = true;
                each(Decided { sequence, fate: Fate::Lost, contents: packet.contents });
            }
        }
    }

    fn forget_decided(&mut self) {
        while self.open.get(0).is_some_and(|packet| packet.decided) {
            self.open.pop_front();
        }
    }

    fn sequence_at(&self, index: usize) -> PacketSequence {
        self.next.back((self.open.len() - index) as u16)
    }

    /// The packet of that number, if its fate is open.
    fn open_packet(&mut self, sequence: PacketSequence) -> Option<&mut SentPacket> {
        let back = self.next.distance_from(sequence) as usize;
        let index = self.open.len().checked_sub(back)?;
        self.open.get_mut(index).filter(|packet| !packet.decided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use std::collections::{HashMap, HashSet};

    const CONTENTS: PacketContents = PacketContents { awaits_ack: true, carries_fragments: false };
    const TIMES: LossTimes =
        LossTimes { with_chunks: Nanos::from_millis(200), without_chunks: Nanos::from_millis(2_200) };

    /// Sends `count` packets 10 ms apart, then shows the acks `(newest, bits)`; what did they decide?
    fn check(count: u64, acks: (u16, u32), expect: &[(u16, Fate)]) {
        let (mut sent, mut budget) = (SentPackets::default(), HeapBudget::default());
        for index in 0..count {
            sent.sent(Nanos::from_millis(index * 10), CONTENTS, &mut budget);
        }
        let acks = Acks { newest: PacketSequence(acks.0), bits: acks.1 };
        sent.check_acks(acks).unwrap();
        let mut decided = Vec::new();
        sent.acknowledge(acks, Nanos::from_secs(1), |d| decided.push((d.sequence.0, d.fate)));
        assert_eq!(decided, expect);
    }

    #[test]
    fn three_packets_later_is_lost_and_two_is_not() {
        check(4, (2, 0b1), &[(2, Fate::Acked)]);
        check(4, (3, 0b1), &[(3, Fate::Acked), (0, Fate::Lost)]);
        check(4, (3, 0b1001), &[(3, Fate::Acked), (0, Fate::Acked)]);
        check(4, (0, 0), &[]);
    }

    #[test]
    fn packets_never_sent_are_not_acked() {
        let (mut sent, mut budget) = (SentPackets::default(), HeapBudget::default());
        let refused = |sent: &SentPackets, newest: u16, bits: u32| {
            sent.check_acks(Acks { newest: PacketSequence(newest), bits }) == Err(AckOfUnsent)
        };
        assert!(refused(&sent, 0, 1));
        assert!(refused(&sent, u16::MAX, 1));
        for _ in 0..3 {
            sent.sent(Nanos::ZERO, CONTENTS, &mut budget);
        }
        assert!(!refused(&sent, 2, 0b111));
        assert!(refused(&sent, 2, 0b1111), "before the first");
        assert!(refused(&sent, 3, 1), "the next one");
        assert!(refused(&sent, 2 + HALF, 1));
        assert!(refused(&sent, u16::MAX, 1));
    }

    #[test]
    fn time_decides_when_no_ack_does() {
        let (mut sent, mut budget) = (SentPackets::default(), HeapBudget::default());
        let bare = PacketContents::default();
        sent.sent(Nanos::ZERO, bare, &mut budget);
        sent.sent(Nanos::from_millis(50), CONTENTS, &mut budget);
        let mut expired = |at_ms| {
            let mut lost = Vec::new();
            sent.expire(Nanos::from_millis(at_ms), TIMES, |d| lost.push(d.sequence.0));
            lost
        };
        assert_eq!(expired(249), [0u16; 0]);
        assert_eq!(expired(250), [1]);
        assert_eq!(expired(251), [0u16; 0]);
        assert_eq!(expired(2_200), [0], "no answer was due for a bare header");
    }

    #[test]
    fn the_next_loss_is_told_before_it_comes_and_none_where_nothing_is_open() {
        let (mut sent, mut budget) = (SentPackets::default(), HeapBudget::default());
        assert_eq!(sent.next_loss(TIMES), None);
        sent.sent(Nanos::ZERO, PacketContents::default(), &mut budget);
        assert_eq!(sent.next_loss(TIMES), Some(Nanos::from_millis(2_200)));
        sent.sent(Nanos::from_millis(50), CONTENTS, &mut budget);
        assert_eq!(sent.next_loss(TIMES), Some(Nanos::from_millis(250)));
        sent.acknowledge(Acks { newest: PacketSequence(1), bits: 0b11 }, Nanos::from_millis(60), |_| ());
        assert_eq!(sent.next_loss(TIMES), None);
    }

    /// The promise of this file: whatever is acked, twice, late or out of order, over three wraps of the
    /// number, each packet is decided once, and acked only if it was named.
    #[test]
    fn each_packet_is_decided_exactly_once_over_200_000_packets() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let (mut sent, mut budget) = (SentPackets::default(), HeapBudget::default());
        let mut received = ReceivedPackets::default();
        let mut arrived: HashSet<u64> = HashSet::new();
        let mut fates: HashMap<u64, Fate> = HashMap::new();
        let mut on_the_way: Vec<u64> = Vec::new();
        let mut headers: Vec<Acks> = Vec::new();
        let mut now = Nanos::ZERO;
        const PACKETS: u64 = 200_000;

        for count in 0..PACKETS {
            now += Nanos::from_millis(rng.random_range(1..30));
            let mut told: Vec<Decided> = Vec::new();
            sent.sent(now, CONTENTS, &mut budget);
            if rng.random_bool(0.85) {
                on_the_way.push(count);
            }
            // Arrivals, out of order among the last few, some twice.
            while on_the_way.len() > rng.random_range(0..8) {
                let index = rng.random_range(0..on_the_way.len());
                let number = if rng.random_bool(0.1) { on_the_way[index] } else { on_the_way.swap_remove(index) };
                let sequence = PacketSequence(number as u16);
                match received.arrival(sequence) {
                    Arrival::Fresh => {
                        assert!(arrived.insert(number), "{number} was fresh twice");
                        received.mark(sequence);
                    }
                    Arrival::Duplicate => assert!(arrived.contains(&number)),
                    Arrival::Late => {}
                }
            }
            // Headers come back, some lost, some late.
            headers.push(received.acks());
            if headers.len() > 4 {
                headers.remove(0);
            }
            if rng.random_bool(0.7) {
                let acks = headers[rng.random_range(0..headers.len())];
                sent.check_acks(acks).unwrap();
                sent.acknowledge(acks, now, |d| told.push(d));
            }
            sent.expire(now, TIMES, |d| told.push(d));
            for decided in told {
                let number = count - (count as u16).wrapping_sub(decided.sequence.0) as u64;
                assert_eq!(fates.insert(number, decided.fate), None, "{number} decided twice");
                assert!(decided.fate == Fate::Lost || arrived.contains(&number), "{number} acked");
            }
        }
        sent.expire(Nanos::MAX, TIMES, |d| {
            let last = PACKETS - 1;
            let number = last - (last as u16).wrapping_sub(d.sequence.0) as u64;
            assert_eq!(fates.insert(number, d.fate), None);
        });
        assert_eq!(fates.len() as u64, PACKETS, "every packet has a fate");
        let acked = fates.values().filter(|&&fate| fate == Fate::Acked).count();
        assert!(acked > 120_000, "{acked} of {PACKETS} acked");
    }

    #[test]
    fn too_many_open_packets_lose_the_oldest() {
        let (mut sent, mut budget) = (SentPackets::default(), HeapBudget::default());
        for _ in 0..IN_FLIGHT_MAX + 2 {
            sent.sent(Nanos::ZERO, CONTENTS, &mut budget);
        }
        let mut lost = Vec::new();
        sent.expire(Nanos::ZERO, TIMES, |d| lost.push((d.sequence.0, d.fate)));
        assert_eq!(lost, [(0, Fate::Lost), (1, Fate::Lost)]);
    }
}
