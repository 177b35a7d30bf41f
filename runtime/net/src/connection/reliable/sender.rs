//! The sending half: messages wait, ride, come back if their packet is lost, and leave when acked.
//!
//! What may be in flight starts at 8 packets, doubles per round trip, and shrinks by half when packets are
//! lost to silence, so neither a newcomer nor a peer that has gone quiet is flooded. Loss of single packets
//! does not slow it: on a path with 5 % loss that would starve a channel this small.
//!
//! Cost: an ack of a packet with fragments looks at the window, 256 entries of 8 B at most.

use throng_platform::time::Nanos;

use super::patience::Patience;
use super::{MESSAGE_BYTES_MAX, SEND_BLOCKS_MAX, STALL_MAX, WINDOW_FRAGMENTS};
use crate::connection::blocks::{BlockPool, Chain, blocks_for};
use crate::connection::budget::HeapBudget;
use crate::connection::packet::{FRAGMENT_BYTES_MAX, FRAGMENT_OVERHEAD_BYTES, PacketWriter};
use crate::connection::ring::Ring;
use crate::connection::sequence::{FragmentId, PacketSequence};

/// Fragments queued at most: a block holds one at least.
const FRAGMENTS_MAX: usize = SEND_BLOCKS_MAX.next_power_of_two();
/// What three whole fragments take of a packet; a fourth does not fit.
const FULL_PACKET_BYTES: usize = 3 * (FRAGMENT_OVERHEAD_BYTES + FRAGMENT_BYTES_MAX);
/// In flight to a peer that we know nothing of (bytes).
const FLIGHT_BYTES_MIN: usize = 8 * FULL_PACKET_BYTES;
/// Together 32 packets: as many as one header can acknowledge.
const FLIGHT_BYTES_EARNED_MAX: usize = 24 * FULL_PACKET_BYTES;

/// Why a message was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("a message without bytes")]
    Empty,
    #[error("the message is longer than the channel takes")]
    TooLarge,
    /// The other side takes less than we say. Try later, say less, or end the connection.
    #[error("the channel's queue is full")]
    Full,
}

/// Queued and unacknowledged fragments, oldest first.
#[derive(Debug, Default)]
pub struct ReliableSender {
    fragments: Ring<Fragment, FRAGMENTS_MAX>,
    /// The id of the front fragment, which is the first of its message.
    first: FragmentId,
    /// How many fragments at the front have been sent at least once.
    sent: usize,
    /// How many of those wait to be sent again.
    lost: usize,
    blocks: usize,
    flight_bytes: usize,
    /// What may be in flight above [`FLIGHT_BYTES_MIN`], earned by acks.
    flight_bytes_earned: usize,
    patience: Patience,
    resent: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Fragment {
    bytes: Chain,
    /// The packet that it rides on, while in flight.
    carrier: PacketSequence,
    state: State,
    last: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Waiting,
    InFlight,
    Lost,
    Acked,
}

impl ReliableSender {
    /// The heap it may take beside the pool's blocks (bytes).
    pub const HEAP_BYTES_MAX: usize = Ring::<Fragment, FRAGMENTS_MAX>::BYTES_MAX;

    /// Queues `message`, whole or not at all.
    pub fn push(&mut self, message: &[u8], pool: &mut BlockPool, budget: &mut HeapBudget) -> Result<(), SendError> {
        if message.is_empty() {
            return Err(SendError::Empty);
        }
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(SendError::TooLarge);
        }
        let blocks: usize = message.chunks(FRAGMENT_BYTES_MAX).map(|fragment| blocks_for(fragment.len())).sum();
        if self.blocks + blocks > SEND_BLOCKS_MAX {
            return Err(SendError::Full);
        }
        let fragments_before = self.fragments.len();
        let mut rest = message;
        while !rest.is_empty() {
            let (fragment, after) = rest.split_at(rest.len().min(FRAGMENT_BYTES_MAX));
            rest = after;
            let Ok(bytes) = pool.store(fragment, budget) else {
                self.take_back(fragments_before, pool);
                return Err(SendError::Full);
            };
            let fragment = Fragment { bytes, last: rest.is_empty(), ..Fragment::default() };
            if self.fragments.push_back(fragment, budget).is_err() {
                pool.free(bytes);
                self.take_back(fragments_before, pool);
                return Err(SendError::Full);
            }
        }
        self.blocks += blocks;
        Ok(())
    }

    /// Whether a fragment may be sent now.
    pub fn has_due(&self) -> bool {
        self.due(0, 0).is_some()
    }

    /// How many bytes [`write`](Self::write) would put into `space` bytes.
    pub fn plan(&self, space: usize) -> usize {
        let (mut planned, mut from) = (0, 0);
        while let Some((index, need)) = self.due(from, planned) {
            if planned + need > space {
                break;
            }
            planned += need;
            from = index + 1;
        }
        planned
    }

    /// Puts due fragments, oldest first, into the packet `carrier`, using `space` bytes at most.
    /// Returns how many.
    pub fn write(
        &mut self,
        packet: &mut PacketWriter<'_>,
        space: usize,
        carrier: PacketSequence,
        pool: &BlockPool,
    ) -> usize {
        let (mut written, mut from, mut fragments) = (0, 0, 0);
        while let Some((index, need)) = self.due(from, 0) {
            if written + need > space {
                break;
            }
            let id = self.first.ahead(index as u16);
            let Some(fragment) = self.fragments.get_mut(index) else {
                break;
            };
            pool.read(fragment.bytes, packet.fragment(id, fragment.last, fragment.bytes.len()));
            if fragment.state == State::Lost {
                self.lost -= 1;
                self.resent += 1;
            } else {
                self.sent += 1;
            }
            fragment.state = State::InFlight;
            fragment.carrier = carrier;
            self.flight_bytes += need;
            written += need;
            fragments += 1;
            from = index + 1;
        }
        fragments
    }

    /// A packet with fragments has arrived.
    pub fn packet_acked(&mut self, carrier: PacketSequence, pool: &mut BlockPool) {
        for index in 0..self.sent {
            let Some(fragment) = self.riding_on(carrier, index) else {
                continue;
            };
            let (bytes, need) = (fragment.bytes, fragment.need());
            fragment.state = State::Acked;
            fragment.bytes = Chain::EMPTY;
            pool.free(bytes);
            self.blocks -= bytes.blocks();
            self.flight_bytes -= need;
            self.flight_bytes_earned = (self.flight_bytes_earned + need).min(FLIGHT_BYTES_EARNED_MAX);
            self.patience.renew();
        }
        self.drop_acked_messages();
    }

    /// A packet with fragments is lost; `silence`: nothing newer was acked either.
    pub fn packet_lost(&mut self, carrier: PacketSequence, silence: bool) {
        for index in 0..self.sent {
            let Some(fragment) = self.riding_on(carrier, index) else {
                continue;
            };
            let need = fragment.need();
            fragment.state = State::Lost;
            self.lost += 1;
            self.flight_bytes -= need;
        }
        if silence {
            self.flight_bytes_earned /= 2;
        }
    }

    /// Whether the other side has acked no fragment for [`STALL_MAX`] in which it was heard, though there is one to ack.
    pub fn stalled(&mut self, now: Nanos, is_heard: bool) -> bool {
        let waiting = self.flight_bytes > 0 || self.lost > 0;
        self.patience.look(now, waiting, is_heard) > STALL_MAX
    }

    /// Fragments sent again so far.
    pub fn resent(&self) -> u64 {
        self.resent
    }

    pub fn release(&mut self, budget: &mut HeapBudget) {
        self.fragments.release(budget);
    }

    /// Blocks of the pool that are in use here.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Asserts what must hold between calls.
    pub fn check(&self) {
        let count = |state| self.fragments.iter().filter(|fragment| fragment.state == state).count();
        let in_flight = self.fragments.iter().filter(|fragment| fragment.state == State::InFlight);
        assert_eq!(self.lost, count(State::Lost));
        assert_eq!(self.sent, self.fragments.len() - count(State::Waiting));
        assert!(self.sent <= WINDOW_FRAGMENTS);
        assert_eq!(self.flight_bytes, in_flight.map(|fragment| fragment.need()).sum::<usize>());
        assert_eq!(self.blocks, self.fragments.iter().map(|fragment| fragment.bytes.blocks()).sum::<usize>());
    }

    /// The first fragment from index `from` on that may be sent, and the bytes it needs, when `planned` bytes
    /// more than we know of are in flight.
    fn due(&self, from: usize, planned: usize) -> Option<(usize, usize)> {
        if self.flight_bytes + planned >= FLIGHT_BYTES_MIN + self.flight_bytes_earned {
            return None;
        }
        let lost = (from..self.sent).take(if self.lost > 0 { self.sent } else { 0 });
        for index in lost {
            let fragment = self.fragments.get(index)?;
            if fragment.state == State::Lost {
                return Some((index, fragment.need()));
            }
        }
        let index = from.max(self.sent);
        if index >= WINDOW_FRAGMENTS {
            return None;
        }
        Some((index, self.fragments.get(index)?.need()))
    }

    fn riding_on(&mut self, carrier: PacketSequence, index: usize) -> Option<&mut Fragment> {
        let fragment = self.fragments.get_mut(index)?;
        (fragment.state == State::InFlight && fragment.carrier == carrier).then_some(fragment)
    }

    /// Lets go of the messages at the front that were acked whole, so that the window moves on.
    fn drop_acked_messages(&mut self) {
        loop {
            let acked = self.fragments.iter().take_while(|fragment| fragment.state == State::Acked);
            let Some(end) = acked.enumerate().find(|(_, fragment)| fragment.last) else {
                return;
            };
            let count = end.0 + 1;
            for _ in 0..count {
                self.fragments.pop_front();
            }
            self.first = self.first.ahead(count as u16);
            self.sent -= count;
        }
    }

    fn take_back(&mut self, fragments_before: usize, pool: &mut BlockPool) {
        while self.fragments.len() > fragments_before
            && let Some(fragment) = self.fragments.pop_back()
        {
            pool.free(fragment.bytes);
        }
    }
}

impl Fragment {
    /// What it takes of a packet.
    fn need(&self) -> usize {
        FRAGMENT_OVERHEAD_BYTES + self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::packet::PacketHeader;
    use crate::protocol::PAYLOAD_BYTES_MAX;

    #[derive(Default)]
    struct Bench {
        sender: ReliableSender,
        pool: BlockPool,
        budget: HeapBudget,
    }

    impl Bench {
        fn push(&mut self, len: usize) -> Result<(), SendError> {
            let pushed = self.sender.push(&vec![1; len], &mut self.pool, &mut self.budget);
            self.sender.check();
            self.pool.check();
            pushed
        }

        /// Fills packet `sequence`; how many fragments rode on it?
        fn send(&mut self, sequence: u16) -> usize {
            let sequence = PacketSequence(sequence);
            let mut out = [0; PAYLOAD_BYTES_MAX];
            let mut packet = PacketWriter::begin(&mut out, PacketHeader { sequence, acks: Default::default() });
            let (space, planned) = (packet.space(), self.sender.plan(packet.space()));
            let fragments = self.sender.write(&mut packet, space, sequence, &self.pool);
            assert_eq!(packet.space(), space - planned, "the plan is what is written");
            self.sender.check();
            fragments
        }
    }

    #[test]
    fn a_queue_takes_what_its_blocks_hold_and_then_says_full() {
        let mut bench = Bench::default();
        assert_eq!(bench.push(0), Err(SendError::Empty));
        assert_eq!(bench.push(MESSAGE_BYTES_MAX + 1), Err(SendError::TooLarge));
        assert_eq!(bench.push(MESSAGE_BYTES_MAX), Ok(()));
        assert_eq!(bench.push(MESSAGE_BYTES_MAX), Err(SendError::Full));
        assert_eq!(bench.push(40_000), Ok(()));
        while bench.push(1) == Ok(()) {}
        assert_eq!(bench.sender.blocks, SEND_BLOCKS_MAX);
    }

    #[test]
    fn three_full_fragments_ride_on_a_packet() {
        let mut bench = Bench::default();
        bench.push(4 * FRAGMENT_BYTES_MAX).unwrap();
        assert_eq!((bench.send(0), bench.send(1), bench.send(2)), (3, 1, 0));
    }

    #[test]
    fn a_lost_packet_comes_again_before_what_is_new() {
        let mut bench = Bench::default();
        bench.push(10).unwrap();
        assert_eq!(bench.send(0), 1);
        bench.push(20).unwrap();
        bench.sender.packet_lost(PacketSequence(0), false);
        bench.sender.check();
        assert_eq!(bench.send(1), 2);
        bench.sender.packet_acked(PacketSequence(0), &mut bench.pool);
        assert!(!bench.sender.fragments.is_empty(), "packet 0 was given up, its ack says nothing");
        bench.sender.packet_acked(PacketSequence(1), &mut bench.pool);
        assert!(bench.sender.fragments.is_empty());
        assert_eq!(bench.pool.blocks_used(), 0);
    }

    #[test]
    fn the_flight_starts_small_and_grows_with_acks() {
        let mut bench = Bench::default();
        bench.push(MESSAGE_BYTES_MAX).unwrap();
        let flight = |bench: &mut Bench, first: u16| (first..).take_while(|&s| bench.send(s) > 0).count();
        assert_eq!(flight(&mut bench, 0), 8);
        (0..8).for_each(|sequence| bench.sender.packet_acked(PacketSequence(sequence), &mut bench.pool));
        assert_eq!(flight(&mut bench, 8), 16);
        (8..24).for_each(|sequence| bench.sender.packet_lost(PacketSequence(sequence), true));
        assert_eq!(flight(&mut bench, 24), 8);
    }

    #[test]
    fn a_peer_that_acks_nothing_stalls_the_channel() {
        let mut bench = Bench::default();
        bench.push(10).unwrap();
        let seconds = |ms: u64| Nanos::from_millis(ms * 100);
        assert!((0..200).all(|tenth| !bench.sender.stalled(seconds(tenth), true)), "nothing was sent");
        bench.send(0);
        assert!((200..320).all(|tenth| !bench.sender.stalled(seconds(tenth), true)));
        assert!(bench.sender.stalled(seconds(321), true));
    }
}
