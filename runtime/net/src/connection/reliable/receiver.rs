//! The receiving half: fragments wait behind a gap until their message is whole and its turn has come.
//!
//! A message of one fragment that is next in line, the usual case, goes straight from the packet to the
//! caller. Anything else waits in the window. What waits is bytes that have arrived: no length is declared
//! beforehand, so there is nothing to allocate for a promise.
//!
//! Memory: 1 KiB for the window once a fragment had to wait, and the blocks of what waits, 96 KiB at most.

use throng_platform::time::Nanos;

use super::patience::Patience;
use super::{MESSAGE_BYTES_MAX, RECEIVE_BLOCKS_MAX, STALL_MAX, WINDOW_FRAGMENTS};
use crate::connection::blocks::{BlockPool, Chain};
use crate::connection::budget::{HeapBudget, OverBudget};
use crate::connection::packet::FRAGMENT_BYTES_MAX;
use crate::connection::received::{Channel, MessageSink};
use crate::connection::sequence::{FragmentId, HALF};

/// Why a fragment ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FragmentRefusal {
    #[error("a fragment beyond the window of {WINDOW_FRAGMENTS}")]
    BeyondWindow,
    #[error("a message longer than {MESSAGE_BYTES_MAX} bytes")]
    MessageTooLarge,
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
}

#[derive(Debug, Default)]
pub struct ReliableReceiver {
    /// Fragment `id` waits in slot `id % WINDOW_FRAGMENTS`. Empty until a fragment has to wait.
    window: Box<[Slot]>,
    /// The first fragment of the message that is next in line.
    next: FragmentId,
    /// The first fragment that is missing.
    missing: FragmentId,
    /// How many fragments wait.
    held: usize,
    blocks: usize,
    patience: Patience,
    duplicates: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Empty: nothing waits here.
    bytes: Chain,
    last: bool,
}

const _: () = assert!(WINDOW_FRAGMENTS.is_power_of_two());
const WINDOW_BYTES: usize = WINDOW_FRAGMENTS * size_of::<Slot>();

impl ReliableReceiver {
    /// The heap it may take beside the pool's blocks (bytes).
    pub const HEAP_BYTES_MAX: usize = WINDOW_BYTES;

    /// Takes a fragment, and hands over the messages that it makes whole.
    pub fn receive(
        &mut self,
        (id, last, bytes): (FragmentId, bool, &[u8]),
        pool: &mut BlockPool,
        budget: &mut HeapBudget,
        into: &mut impl MessageSink,
    ) -> Result<(), FragmentRefusal> {
        let ahead = id.distance_from(self.next);
        if ahead >= HALF {
            self.duplicates += 1;
            return Ok(());
        }
        if ahead as usize >= WINDOW_FRAGMENTS {
            return Err(FragmentRefusal::BeyondWindow);
        }
        if last && id == self.next && !self.is_held(id) {
            into.message(Channel::Reliable, bytes);
            self.next = id.ahead(1);
            self.missing = self.next;
            self.patience.renew();
            return self.deliver_whole(pool, into);
        }
        if !self.hold(id, last, bytes, pool, budget)? {
            self.duplicates += 1;
            return Ok(());
        }
        self.deliver_whole(pool, into)
    }

    /// Whether fragments wait and nothing has moved for [`STALL_MAX`] in which the other side was heard.
    pub fn stalled(&mut self, now: Nanos, is_heard: bool) -> bool {
        self.patience.look(now, self.held > 0, is_heard) > STALL_MAX
    }

    /// Fragments that had arrived before.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Gives the window back if nothing waits in it.
    pub fn release(&mut self, budget: &mut HeapBudget) {
        if self.held == 0 && !self.window.is_empty() {
            self.window = Box::default();
            budget.give(WINDOW_BYTES);
        }
    }

    /// Blocks of the pool that are in use here.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Asserts what must hold between calls.
    pub fn check(&self) {
        let held = || self.window.iter().filter(|slot| !slot.bytes.is_empty());
        assert_eq!(self.held, held().count());
        assert_eq!(self.blocks, held().map(|slot| slot.bytes.blocks()).sum::<usize>());
        assert!(self.blocks <= RECEIVE_BLOCKS_MAX);
        assert!((self.missing.distance_from(self.next) as usize) <= self.held);
        assert!(self.held == 0 || self.slot(self.missing).bytes.is_empty());
    }

    /// Keeps a fragment for later; `false` if it waits already.
    fn hold(
        &mut self,
        id: FragmentId,
        last: bool,
        bytes: &[u8],
        pool: &mut BlockPool,
        budget: &mut HeapBudget,
    ) -> Result<bool, OverBudget> {
        if self.window.is_empty() {
            budget.take(WINDOW_BYTES)?;
            self.window = vec![Slot::default(); WINDOW_FRAGMENTS].into();
        }
        if self.is_held(id) {
            return Ok(false);
        }
        let stored = pool.store(bytes, budget)?;
        *self.slot_mut(id) = Slot { bytes: stored, last };
        self.held += 1;
        self.blocks += stored.blocks();
        Ok(true)
    }

    /// Moves on over the fragments that wait, and hands over each message that ends among them.
    fn deliver_whole(&mut self, pool: &mut BlockPool, into: &mut impl MessageSink) -> Result<(), FragmentRefusal> {
        while self.held > 0 {
            let slot = self.slot(self.missing);
            if slot.bytes.is_empty() {
                break;
            }
            let full_fragments = self.missing.distance_from(self.next) as usize;
            if full_fragments * FRAGMENT_BYTES_MAX + slot.bytes.len() > MESSAGE_BYTES_MAX {
                return Err(FragmentRefusal::MessageTooLarge);
            }
            self.missing = self.missing.ahead(1);
            self.patience.renew();
            if slot.last {
                self.deliver(pool, into);
            }
        }
        Ok(())
    }

    /// Hands over the message from `next` up to `missing`.
    fn deliver(&mut self, pool: &mut BlockPool, into: &mut impl MessageSink) {
        let fragments = self.missing.distance_from(self.next);
        let chains = (0..fragments).map(|fragment| self.slot(self.next.ahead(fragment)).bytes);
        into.message_in_parts(Channel::Reliable, chains.flat_map(|chain| pool.parts(chain)));
        while self.next != self.missing {
            let slot = std::mem::take(self.slot_mut(self.next));
            self.held -= 1;
            self.blocks -= slot.bytes.blocks();
            pool.free(slot.bytes);
            self.next = self.next.ahead(1);
        }
    }

    fn is_held(&self, id: FragmentId) -> bool {
        self.held > 0 && !self.slot(id).bytes.is_empty()
    }

    /// The slot of `id`; the window must exist.
    fn slot(&self, id: FragmentId) -> Slot {
        self.window[id.0 as usize % WINDOW_FRAGMENTS]
    }

    fn slot_mut(&mut self, id: FragmentId) -> &mut Slot {
        &mut self.window[id.0 as usize % WINDOW_FRAGMENTS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::received::Received;

    const FULL: &[u8] = &[1; FRAGMENT_BYTES_MAX];

    #[derive(Default)]
    struct Bench {
        receiver: ReliableReceiver,
        pool: BlockPool,
        budget: HeapBudget,
    }

    impl Bench {
        /// Receives one fragment; the lengths of the messages it makes whole.
        fn receive(&mut self, id: u16, last: bool, bytes: &[u8]) -> Result<Vec<usize>, FragmentRefusal> {
            let mut received = Received::default();
            let fragment = (FragmentId(id), last, bytes);
            self.receiver.receive(fragment, &mut self.pool, &mut self.budget, &mut received)?;
            self.receiver.check();
            self.pool.check();
            Ok(received.messages().map(|(_, message)| message.len()).collect())
        }
    }

    #[test]
    fn one_fragment_in_turn_needs_no_memory() {
        let mut bench = Bench::default();
        for id in 0..1_000 {
            assert_eq!(bench.receive(id, true, &[0; 7]), Ok(vec![7]));
        }
        assert_eq!(bench.budget.held_bytes(), 0);
    }

    #[test]
    fn fragments_wait_for_the_gap_before_them() {
        let mut bench = Bench::default();
        assert_eq!(bench.receive(2, true, &[0; 3]), Ok(vec![]));
        assert_eq!(bench.receive(1, true, &[0; 2]), Ok(vec![]));
        assert_eq!(bench.receive(2, true, &[0; 3]), Ok(vec![]));
        assert_eq!(bench.receive(0, false, FULL), Ok(vec![FRAGMENT_BYTES_MAX + 2, 3]));
        assert_eq!(bench.receive(0, false, FULL), Ok(vec![]));
        assert_eq!(bench.receiver.duplicates(), 2);
        assert_eq!(bench.pool.blocks_used(), 0);
    }

    #[test]
    fn a_fragment_beyond_the_window_is_refused() {
        let mut bench = Bench::default();
        assert_eq!(bench.receive(255, true, &[0]), Ok(vec![]));
        assert_eq!(bench.receive(256, true, &[0]), Err(FragmentRefusal::BeyondWindow));
        assert_eq!(bench.receive(HALF - 1, true, &[0]), Err(FragmentRefusal::BeyondWindow));
        assert_eq!(bench.receive(u16::MAX, true, &[0]), Ok(vec![]), "from before the beginning");
    }

    #[test]
    fn a_message_may_have_64_kib_and_no_more() {
        let whole = MESSAGE_BYTES_MAX / FRAGMENT_BYTES_MAX;
        let rest = MESSAGE_BYTES_MAX % FRAGMENT_BYTES_MAX;
        let fill = || {
            let mut bench = Bench::default();
            (0..whole as u16).for_each(|id| assert_eq!(bench.receive(id, false, FULL), Ok(vec![])));
            bench
        };
        assert_eq!(fill().receive(whole as u16, true, &FULL[..rest]), Ok(vec![MESSAGE_BYTES_MAX]));
        let too_large = Err(FragmentRefusal::MessageTooLarge);
        assert_eq!(fill().receive(whole as u16, true, &FULL[..rest + 1]), too_large);
        assert_eq!(fill().receive(whole as u16, false, FULL), too_large);
    }
}
