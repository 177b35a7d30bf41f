//! What came in: messages and the fates of packets, gathered in buffers that the caller keeps.
//!
//! One `Received` serves all connections of a world in turn: clear, receive, read, clear. Its buffers grow
//! to the busiest moment and stay, so a steady tick does not allocate.

use super::sequence::PacketSequence;

/// Which way a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Exactly once, in the order of sending.
    Reliable,
    /// At most once, in the order of arrival.
    Unreliable,
}

/// Messages and fates of packets since the last [`clear`](Self::clear).
#[derive(Debug, Default)]
pub struct Received {
    bytes: Vec<u8>,
    /// Channel and where the message ends in `bytes`; it starts where the one before it ends.
    messages: Vec<(Channel, usize)>,
    /// Our packets that have arrived. Each packet appears in `acked` or in `lost`, once.
    pub acked: Vec<PacketSequence>,
    /// Our packets that were given up.
    pub lost: Vec<PacketSequence>,
    /// The other side said goodbye.
    pub disconnected: bool,
}

impl Received {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.messages.clear();
        self.acked.clear();
        self.lost.clear();
        self.disconnected = false;
    }

    /// The messages, in order.
    pub fn messages(&self) -> impl Iterator<Item = (Channel, &[u8])> {
        let mut start = 0;
        self.messages.iter().map(move |&(channel, end)| {
            let message = &self.bytes[start..end];
            start = end;
            (channel, message)
        })
    }

    /// Adds a message made of `parts`.
    pub(super) fn push<'a>(&mut self, channel: Channel, parts: impl IntoIterator<Item = &'a [u8]>) {
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.messages.push((channel, self.bytes.len()));
    }
}
