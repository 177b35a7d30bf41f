//! Game messages that have arrived and wait for the game to read them.
//!
//! One growing buffer and a list of pieces in it, both reused: after the first busy moment nothing
//! is allocated. What is in it stays until `clear`, so a game that reads at its own pace sees every
//! message once; a game that never clears loses the newest ones, counted, and never memory.

use std::ops::Range;

use throng_net::connection::Channel;

/// Most bytes kept: four of the largest reliable messages.
const BYTES_MAX: usize = 256 * 1024;

/// Most messages kept, so that empty ones cannot grow the list either.
const MESSAGES_MAX: usize = 4_096;

/// Messages in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    pieces: Vec<(Channel, Range<u32>)>,
    dropped: u64,
}

impl Inbox {
    /// Keeps a copy of `message`, or counts it as dropped when the inbox is full.
    pub fn push(&mut self, channel: Channel, message: &[u8]) {
        if self.pieces.len() == MESSAGES_MAX || self.bytes.len() + message.len() > BYTES_MAX {
            self.dropped += 1;
            return;
        }
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(message);
        self.pieces.push((channel, start..self.bytes.len() as u32));
    }

    pub fn iter(&self) -> impl Iterator<Item = (Channel, &[u8])> {
        self.pieces.iter().map(|(channel, at)| (*channel, &self.bytes[at.start as usize..at.end as usize]))
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.pieces.clear();
    }

    /// Messages that found the inbox full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_in_order_until_cleared() {
        let mut inbox = Inbox::default();
        inbox.push(Channel::Reliable, &[16, 1]);
        inbox.push(Channel::Unreliable, &[]);
        inbox.push(Channel::Reliable, &[17]);
        let read: Vec<_> = inbox.iter().map(|(_, message)| message.to_vec()).collect();
        assert_eq!(read, [vec![16, 1], vec![], vec![17]]);
        inbox.clear();
        assert_eq!(inbox.iter().count(), 0);
    }

    #[test]
    fn a_full_inbox_counts_what_it_drops() {
        let mut inbox = Inbox::default();
        for _ in 0..5 {
            inbox.push(Channel::Reliable, &[16; 64 * 1024]);
        }
        assert_eq!((inbox.iter().count(), inbox.dropped()), (4, 1));
        inbox.clear();
        for _ in 0..MESSAGES_MAX + 3 {
            inbox.push(Channel::Unreliable, &[]);
        }
        assert_eq!((inbox.iter().count(), inbox.dropped()), (MESSAGES_MAX, 4));
    }
}
