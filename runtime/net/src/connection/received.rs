//! What came in: messages and the fates of packets.
//!
//! [`MessageSink`] takes messages as they are read, most of them as slices of the opened datagram, so that whoever
//! keeps the datagram need not copy them. [`Received`] is the sink that copies: it serves all connections of a process
//! in turn (clear, receive, read, clear). Its buffers grow to the busiest moment and stay, so a steady tick does not
//! allocate.

use super::sequence::PacketSequence;

/// Which way a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Exactly once, in the order of sending.
    Reliable,
    /// At most once, in the order of arrival.
    Unreliable,
}

/// Takes the messages of a datagram, in their order.
pub trait MessageSink {
    /// A message. `bytes` may lie in the opened datagram itself.
    fn message(&mut self, channel: Channel, bytes: &[u8]);

    /// A message that was put together from several datagrams.
    fn message_in_parts<'a>(&mut self, channel: Channel, parts: impl Iterator<Item = &'a [u8]>);

    /// The other side said goodbye.
    fn goodbye(&mut self) {}
}

/// Messages and fates of packets since the last [`clear`](Self::clear).
#[derive(Debug, Default)]
pub struct Received {
    bytes: Vec<u8>,
    /// Channel and where the message ends in `bytes`; it starts where the one before it ends.
    messages: Vec<(Channel, usize)>,
    /// Our packets that have arrived, as of the last `update`. Each packet appears in `acked` or in `lost`, once.
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
}

impl MessageSink for Received {
    fn message(&mut self, channel: Channel, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.messages.push((channel, self.bytes.len()));
    }

    fn message_in_parts<'a>(&mut self, channel: Channel, parts: impl Iterator<Item = &'a [u8]>) {
        parts.for_each(|part| self.bytes.extend_from_slice(part));
        self.messages.push((channel, self.bytes.len()));
    }

    fn goodbye(&mut self) {
        self.disconnected = true;
    }
}
