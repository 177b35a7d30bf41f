//! Input buffer: inputs that wait for the next packet, and those that go into it once more in case an earlier one was lost.
//!
//! ```text
//!   packet   71: 1   72: 1 2   73: 1 2 3   74: 1 2 3 4   75: 2 3 4 5   ...        3 repeats of each
//!                    lost      lost        lost          2 3 4 come here, in order, ahead of 5
//! ```
//!
//! In a packet the oldest come first, so that a world that takes each number once takes them in order. Repeats wait for a
//! packet that goes out anyway. What a snapshot tells as taken is not said again, nor what would take more than 600 bytes
//! of a packet.
//!
//! Sans-IO, on its client's thread. Keeps at most 32 inputs, and their memory for the next ones: nothing is allocated once
//! as many have been kept as ever are, each as long as any. Cost: a copy of each input for each packet that it goes into.

use std::collections::VecDeque;

/// Inputs kept. More between two packets go to the connection at once.
const KEPT_MAX: usize = 32;

/// What repeats take of a packet at most: half of it. (bytes)
const REPEATED_BYTES_MAX: usize = 600;

/// Inputs of one stay in a world.
#[derive(Debug)]
pub(crate) struct InputBuffer {
    /// Oldest first.
    kept: VecDeque<Kept>,
    /// Memory of what was kept.
    spare: Vec<Vec<u8>>,
    /// Of those kept, how many have been in no packet: the newest ones.
    unsent: usize,
}

#[derive(Debug)]
struct Kept {
    number: u16,
    /// In how many packets it is still to go.
    packets_left: u8,
    message: Vec<u8>,
}

impl Default for InputBuffer {
    fn default() -> Self {
        Self { kept: VecDeque::with_capacity(KEPT_MAX), spare: Vec::with_capacity(KEPT_MAX), unsent: 0 }
    }
}

impl InputBuffer {
    /// Takes a whole message, for the next packet and so many after that. `queue` gets what there is no room for any more.
    pub fn push(&mut self, number: u16, repeats: u8, message: &[u8], queue: impl FnOnce(&[u8])) {
        if self.kept.len() == KEPT_MAX
            && let Some(oldest) = self.kept.pop_front()
        {
            if self.unsent > self.kept.len() {
                queue(&oldest.message);
                self.unsent -= 1;
            }
            self.spare.push(oldest.message);
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(message);
        self.kept.push_back(Kept { number, packets_left: repeats.saturating_add(1), message: kept });
        self.unsent += 1;
    }

    /// Whether there is something that has been in no packet.
    pub fn has_unsent(&self) -> bool {
        self.unsent > 0
    }

    /// A packet is made: gives `queue` what goes into it, oldest first.
    pub fn queue_due(&mut self, mut queue: impl FnMut(&[u8])) {
        let first_unsent = self.kept.len() - self.unsent;
        let mut left_bytes = REPEATED_BYTES_MAX;
        let repeated = self.kept.range(..first_unsent).rev().take_while(|kept| {
            let rest = left_bytes.checked_sub(kept.message.len());
            left_bytes = rest.unwrap_or(0);
            rest.is_some()
        });
        let first_said = first_unsent - repeated.count();
        for (place, kept) in self.kept.iter_mut().enumerate() {
            // What there is no room for becomes older with each packet, too.
            kept.packets_left -= 1;
            if place >= first_said {
                queue(&kept.message);
            }
        }
        self.unsent = 0;
        while self.kept.iter().any(|kept| kept.packets_left == 0) {
            self.forget_finished();
        }
    }

    /// A snapshot says that `number` was taken, and with it all that stood in the same packet ahead of it.
    pub fn answered(&mut self, number: u16) {
        let sent = self.kept.len() - self.unsent;
        let Some(place) = self.kept.range(..sent).position(|kept| kept.number == number) else { return };
        let Self { kept, spare, .. } = self;
        spare.extend(kept.drain(..=place).map(|kept| kept.message));
    }

    /// The world that they were meant for is left.
    pub fn left_world(&mut self) {
        let Self { kept, spare, unsent } = self;
        spare.extend(kept.drain(..).map(|kept| kept.message));
        *unsent = 0;
    }

    /// Takes one out that goes into no packet any more. They need not be the oldest: kinds differ in their repeats.
    fn forget_finished(&mut self) {
        let finished = self.kept.iter().position(|kept| kept.packets_left == 0);
        if let Some(finished) = finished.and_then(|place| self.kept.remove(place)) {
            self.spare.push(finished.message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(buffer: &mut InputBuffer, number: u16, repeats: u8, len: usize) -> usize {
        let mut overflowing = 0;
        buffer.push(number, repeats, &vec![number as u8; len], |_| overflowing += 1);
        overflowing
    }

    /// What goes into the next packet, by the first byte of each.
    fn packet(buffer: &mut InputBuffer) -> Vec<u8> {
        let mut said = Vec::new();
        buffer.queue_due(|message| said.push(message[0]));
        said
    }

    #[test]
    fn each_is_said_again_in_as_many_packets_as_its_kind_wants() {
        let mut buffer = InputBuffer::default();
        let mut packets = Vec::new();
        for number in 1..=6 {
            push(&mut buffer, number, 3, 10);
            assert!(buffer.has_unsent());
            packets.push(packet(&mut buffer));
            assert!(!buffer.has_unsent());
        }
        let expect: [&[u8]; 6] = [&[1], &[1, 2], &[1, 2, 3], &[1, 2, 3, 4], &[2, 3, 4, 5], &[3, 4, 5, 6]];
        assert_eq!(packets, expect);
        assert_eq!([(); 4].map(|()| packet(&mut buffer)), [vec![4, 5, 6], vec![5, 6], vec![6], vec![]]);
    }

    #[test]
    fn kinds_that_are_not_repeated_go_out_once_and_in_their_order() {
        let mut buffer = InputBuffer::default();
        push(&mut buffer, 1, 0, 10);
        push(&mut buffer, 2, 2, 10);
        push(&mut buffer, 3, 0, 10);
        assert_eq!(packet(&mut buffer), [1, 2, 3]);
        push(&mut buffer, 4, 0, 10);
        assert_eq!(packet(&mut buffer), [2, 4]);
        assert_eq!([(); 2].map(|()| packet(&mut buffer)), [vec![2], vec![]]);
    }

    #[test]
    fn what_was_taken_and_what_is_too_long_is_not_said_again() {
        let mut buffer = InputBuffer::default();
        (1..=3).for_each(|number| _ = push(&mut buffer, number, 7, 10));
        packet(&mut buffer);
        push(&mut buffer, 4, 7, 10);
        buffer.answered(2);
        buffer.answered(2);
        buffer.answered(4);
        assert_eq!(packet(&mut buffer), [3, 4], "what has been in no packet was not taken, whoever says so");
        buffer.left_world();
        assert_eq!(packet(&mut buffer), [0u8; 0]);

        (1..=3).for_each(|number| _ = push(&mut buffer, number, 3, 250));
        assert_eq!(packet(&mut buffer), [1, 2, 3]);
        push(&mut buffer, 4, 3, 250);
        assert_eq!(packet(&mut buffer), [2, 3, 4], "600 bytes of repeats are two of these");
    }

    /// Promise: however many inputs there are between two packets, none is forgotten before it was handed on once.
    #[test]
    fn a_full_buffer_hands_on_what_was_in_no_packet() {
        let mut buffer = InputBuffer::default();
        let overflowing: usize = (0..40).map(|number| push(&mut buffer, number, 3, 4)).sum();
        assert_eq!((overflowing, packet(&mut buffer).len()), (8, KEPT_MAX));
        assert_eq!(push(&mut buffer, 40, 3, 4), 0, "the oldest was in a packet");
        assert_eq!(packet(&mut buffer).len(), KEPT_MAX);
    }
}
