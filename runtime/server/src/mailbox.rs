//! Mailbox: where mail waits for a world until its next tick.
//!
//! The frame thread puts datagrams, clients and messages in; the worker that ticks the world takes them all at once by
//! swapping two buffers. The lock is held for a push or a swap only, so neither waits for the other's work: a world
//! that hangs in its tick still receives mail, up to a maximum, and `begin` never touches a world that is not home.
//!
//! Cost: one uncontended lock (about 20 ns) per push. Buffers are reused; a steady tick allocates nothing.

use std::collections::BTreeSet;

use throng_net::protocol::ClientId;
use throng_profiler::sync::{Mutex, MutexGuard};
use throng_world::{Mail, MailItem, ids::ClientKey, transfer::WorldMessage};

/// Most bytes of datagrams that wait for one world. 1,000 clients at 20 Hz with 100 B inputs bring 100 KB a tick; the
/// rest is for a world that is late. Beyond it datagrams are dropped and counted: UDP's own answer.
pub const DATAGRAM_BYTES_MAX: usize = 1 << 20;

/// Most messages of other worlds that wait for one world: room for one of each of a thousand worlds, four times over.
pub const MESSAGES_MAX: usize = 4096;

/// What waits.
#[derive(Default)]
struct Waiting {
    mail: Mail,
    messages_count: usize,
    /// The world is no more: nothing is taken in.
    is_closed: bool,
}

/// A world's mailbox; shared by the frame thread, which writes, and the worker that ticks the world, which takes.
pub(crate) struct Mailbox {
    waiting: Mutex<Waiting>,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self { waiting: Mutex::new("server.mailbox", Waiting::default()) }
    }
}

impl Mailbox {
    /// Adds a datagram; false if the mailbox is full and it was dropped.
    pub fn push_datagram(&self, client: ClientKey, datagram: &[u8]) -> bool {
        let mut waiting = self.lock();
        if waiting.is_closed || waiting.mail.datagram_bytes() + datagram.len() > DATAGRAM_BYTES_MAX {
            return false;
        }
        waiting.mail.push_datagram(client, datagram);
        true
    }

    /// Adds a message of another world; false if the mailbox is full of them and it was dropped.
    pub fn push_message(&self, message: WorldMessage) -> bool {
        let mut waiting = self.lock();
        if waiting.is_closed || waiting.messages_count >= MESSAGES_MAX {
            return false;
        }
        waiting.messages_count += 1;
        waiting.mail.push(MailItem::Message(message));
        true
    }

    /// Adds a client, a dismissal or rules. There is one of each per client at most, and operators are few, so they are
    /// not limited.
    pub fn push(&self, item: MailItem) {
        self.lock().mail.push(item);
    }

    /// Puts back what was taken out and not seen to: messages are counted again.
    pub fn push_again(&self, item: MailItem) {
        match item {
            MailItem::Message(message) => _ = self.push_message(message),
            item => self.push(item),
        }
    }

    /// Ends it: nothing is taken in any more. Gives what waits.
    pub fn close(&self) -> Mail {
        let closed = Waiting { is_closed: true, ..Waiting::default() };
        std::mem::replace(&mut *self.lock(), closed).mail
    }

    /// Whether one of these clients comes in with the next tick.
    pub fn has_arrival_of(&self, clients: &BTreeSet<ClientId>) -> bool {
        self.lock().mail.arriving().any(|client| clients.contains(&client))
    }

    pub fn is_empty(&self) -> bool {
        self.lock().mail.is_empty()
    }

    /// Gives everything that waits; `mail`, emptied by the caller, takes its place.
    pub fn swap(&self, mail: &mut Mail) {
        debug_assert!(mail.is_empty());
        let mut waiting = self.lock();
        waiting.messages_count = 0;
        std::mem::swap(&mut waiting.mail, mail);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A push or swap that panicked leaves both buffers whole.
        self.waiting.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_mailbox_drops_datagrams_and_says_so() {
        let mailbox = Mailbox::default();
        let datagram = [0; 1024];
        let taken = (0..2000).filter(|_| mailbox.push_datagram(ClientKey(0), &datagram)).count();
        assert_eq!(taken, DATAGRAM_BYTES_MAX / 1024);
        let mut mail = Mail::default();
        mailbox.swap(&mut mail);
        assert_eq!(mail.drain().count(), taken);
        assert!(mailbox.is_empty());
        assert!(mailbox.push_datagram(ClientKey(0), &datagram));
    }
}
