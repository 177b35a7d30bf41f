//! Inbox: what clients said since the last tick, as a system reads it.
//!
//! Messages are slices of the datagrams that were opened for this tick, and the values that these are: what a batch of
//! clients opened comes here as its whole buffer, and goes back when systems have read it, to be filled again. So an input
//! is copied twice between the kernel and the system that reads it: into the world's mail, and into the buffer in which
//! it is opened; and it is unpacked once, there.

use std::sync::Arc;

use throng_replication::table_resource;

pub use crate::opened::MessageKind;
use crate::{
    client_batch::ClientBatch,
    declared::Declared,
    ids::ClientKey,
    opened::{Buffer, Opened},
    players::Players,
    said::Sender,
    seen_moment::SeenMoment,
};

/// One message of a client: the bytes of its value, or what claims to be one.
#[derive(Debug, Clone, Copy)]
pub struct InboxMessage<'a> {
    pub client: ClientKey,
    pub kind: MessageKind,
    /// An input that was overtaken: the client sent it before one that has arrived already. Requests never are.
    pub is_late: bool,
    /// What its player was shown, for an input of a kind that says so.
    pub seen: Option<SeenMoment>,
    pub bytes: &'a [u8],
}

/// Messages that clients sent since the last tick, in the order in which their datagrams arrived.
///
/// Systems read them by their kinds: [`Inputs`](crate::said::Inputs), [`Requests`](crate::said::Requests).
pub struct Inbox {
    declared: Arc<Declared>,
    /// Here and not beside it: whoever reads what a client said wants to know whose it is.
    pub(crate) players: Players,
    /// The first is for messages that are pushed one by one; then one of each batch, until it gets it back.
    buffers: Vec<Buffer>,
    /// Each with its buffer.
    messages: Vec<(u32, Opened)>,
}

table_resource!(Inbox);

impl Inbox {
    pub(crate) fn new(declared: Arc<Declared>) -> Self {
        Self { declared, players: Players::default(), buffers: Vec::new(), messages: Vec::new() }
    }

    pub(crate) fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Who is here, and which entity is whose.
    pub fn players(&self) -> &Players {
        &self.players
    }

    pub(crate) fn sender(&self, client: ClientKey) -> Sender {
        Sender { client, entity: self.players.entity(client), number: None, seen: None, is_late: false }
    }

    /// All messages of all kinds.
    pub fn iter(&self) -> impl Iterator<Item = InboxMessage<'_>> {
        (0..self.messages.len()).map(|index| self.message(index))
    }

    /// One of all messages, by its place among them.
    pub(crate) fn message(&self, index: usize) -> InboxMessage<'_> {
        let (buffer, Opened { client, kind, is_late, seen, begin, end, .. }) = self.messages[index];
        let bytes = &self.buffers[buffer as usize].bytes[begin as usize..end as usize];
        InboxMessage { client, kind, is_late, seen, bytes }
    }

    /// What the message at `index` says, whose kind has this place; `None` if its bytes are no value.
    pub(crate) fn value<T: 'static>(&self, index: usize, place: usize) -> Option<&T> {
        let (buffer, opened) = &self.messages[index];
        self.buffers[*buffer as usize].values.get(place, opened.value?)
    }

    /// Adds a message that came in no datagram: out of a log, or for a test
    /// ([`TestWorld::say`](crate::testing::TestWorld::say)).
    pub(crate) fn push(&mut self, message: &InboxMessage<'_>) {
        let InboxMessage { client, kind, is_late, seen, bytes } = *message;
        if self.buffers.is_empty() {
            self.buffers.push(Buffer::default());
        }
        let Buffer { bytes: pushed, values } = &mut self.buffers[0];
        let begin = pushed.len() as u32;
        pushed.extend_from_slice(bytes);
        let end = pushed.len() as u32;
        let value = self.declared.unpack(kind, bytes, values).map(|value| value.index);
        self.messages.push((0, Opened { number: u32::MAX, client, kind, is_late, seen, begin, end, value }));
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Takes what the batches have opened, with their buffers, which it has until [`clear`](Self::clear).
    pub(crate) fn take_opened(&mut self, batches: &mut [ClientBatch]) {
        match batches {
            [only] => self.messages.extend(only.opened.iter().map(|opened| (1, *opened))),
            _ => self.merge(batches),
        }
        self.buffers.resize_with(1, Buffer::default);
        for batch in batches {
            self.buffers.push(std::mem::take(&mut batch.buffer));
            batch.opened.clear();
        }
    }

    /// Forgets all messages, and adds the batches' buffers to the spare ones, empty: any of them will do for any batch.
    pub(crate) fn clear(&mut self, spare: &mut Vec<Buffer>) {
        self.messages.clear();
        self.buffers.iter_mut().for_each(Buffer::clear);
        let own = self.buffers.len().min(1);
        spare.extend(self.buffers.drain(own..));
    }

    /// The messages of all batches, those of the oldest datagram first.
    fn merge(&mut self, batches: &[ClientBatch]) {
        let mut next = [0; ClientBatch::PER_WORLD_MAX];
        let oldest = |next: &[usize; ClientBatch::PER_WORLD_MAX]| {
            let waiting = batches.iter().enumerate();
            let numbers = waiting.filter_map(|(index, batch)| Some((batch.opened.get(next[index])?.number, index)));
            numbers.min().map(|(_, index)| index)
        };
        while let Some(index) = oldest(&next) {
            self.messages.push((index as u32 + 1, batches[index].opened[next[index]]));
            next[index] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_replication::{PackedId, Protocol};
    use throng_scheduler::Hertz;

    use super::*;

    fn inbox() -> Inbox {
        let protocol = Protocol::new();
        Inbox::new(Arc::new(Declared::new(&protocol, &protocol.schema(), Hertz(20))))
    }

    #[test]
    fn the_inbox_gives_messages_back_whole_and_in_order() {
        let mut inbox = inbox();
        let mut push = |client: u32, kind: MessageKind, bytes: &[u8]| {
            inbox.push(&InboxMessage { client: ClientKey(client), kind, is_late: false, seen: None, bytes });
        };
        push(1, MessageKind::Input { number: 7, kind: PackedId(0) }, b"one");
        push(2, MessageKind::Request { kind: PackedId(1) }, b"");
        push(1, MessageKind::Request { kind: PackedId(1) }, b"three");
        let seen: Vec<_> = inbox.iter().map(|message| (message.client.0, message.bytes.to_vec())).collect();
        assert_eq!(seen, [(1, b"one".to_vec()), (2, b"".to_vec()), (1, b"three".to_vec())]);
        inbox.clear(&mut Vec::new());
        assert_eq!(inbox.iter().count(), 0);
    }

    /// Batches open their clients' datagrams each by itself; the game reads messages in the order in which the
    /// datagrams came.
    #[test]
    fn what_batches_opened_is_read_in_the_order_of_arrival() {
        let mut batches = [ClientBatch::empty(), ClientBatch::empty()];
        let mut inbox = inbox();
        let mut says = |batch: usize, number: u32, words: &[u8]| {
            let bytes = &mut batches[batch].buffer.bytes;
            let begin = bytes.len() as u32;
            bytes.extend_from_slice(words);
            let end = bytes.len() as u32;
            let (client, kind) = (ClientKey(batch as u32), MessageKind::Request { kind: PackedId(1) });
            let opened = Opened { number, client, kind, is_late: false, seen: None, begin, end, value: None };
            batches[batch].opened.push(opened);
        };
        says(0, 1, b"b");
        says(0, 1, b"c");
        says(1, 0, b"a");
        says(0, 3, b"e");
        says(1, 2, b"d");
        inbox.take_opened(&mut batches);
        let seen: Vec<u8> = inbox.iter().flat_map(|message| message.bytes.to_vec()).collect();
        assert_eq!(seen, b"abcde");
        assert!(batches.iter().all(|batch| batch.buffer.bytes.capacity() == 0), "the buffers are the inbox's");
        let mut spare = Vec::new();
        inbox.clear(&mut spare);
        let kept = spare.iter().map(|buffer| (buffer.bytes.len(), buffer.bytes.capacity() > 0));
        assert_eq!(kept.collect::<Vec<_>>(), [(0, true), (0, true)], "they are kept for their memory");
        inbox.take_opened(&mut batches);
        assert!(inbox.is_empty(), "what was read is not read again");
    }
}
