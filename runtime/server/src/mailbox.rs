//! Mailbox: what waits for a world until its next tick.
//!
//! The frame thread puts datagrams, clients and messages in; the worker that ticks the world takes them all at once by
//! swapping two buffers. The lock is held for a push or a swap only, so neither waits for the other's work: a world that hangs
//! in its tick still receives mail, up to a maximum, and `begin` never touches a world that is not home.
//!
//! Cost: one uncontended lock (about 20 ns) per push. Buffers are reused; a steady tick allocates nothing.

use std::{net::SocketAddr, sync::Arc};

use throng_net::{
    connection::Connection,
    protocol::{ClientId, UserData},
};

use throng_profiler::sync::{Mutex, MutexGuard};
use throng_replication::{Pacing, ReplicationRules};

use crate::{allowance::Allowance, ids::ClientKey, tick_resources::Luggage};

/// Most bytes of datagrams that wait for one world. 1,000 clients at 20 Hz with 100 B inputs bring 100 KB a tick; the
/// rest is for a world that is late. Beyond it datagrams are dropped and counted: UDP's own answer.
pub const DATAGRAM_BYTES_MAX: usize = 1 << 20;

/// Most messages of other worlds that wait for one world: room for one of each of a thousand worlds, four times over.
pub const MESSAGES_MAX: usize = 4096;

/// A client on its way into a world, with everything that belongs to it.
pub(crate) struct Incoming {
    pub client: ClientKey,
    pub client_id: ClientId,
    pub address: SocketAddr,
    pub user_data: Box<UserData>,
    pub connection: Box<Connection>,
    pub allowance: Allowance,
    /// Counts the worlds this client has been in, so that both sides can tell snapshots of one from those of the next.
    pub epoch: u8,
    /// What is known of the client's line, if it comes from another world.
    pub pacing: Option<Pacing>,
    pub luggage: Option<Luggage>,
}

/// One piece of mail.
pub(crate) enum Mail {
    Datagram {
        client: ClientKey,
        end: usize,
    },
    Incoming(Box<Incoming>),
    Message(Luggage),
    /// The server wants this client gone (it is closing).
    Dismiss {
        client: ClientKey,
        reason: &'static str,
    },
    /// New rules for what is heard how far and how often.
    Rules(Arc<ReplicationRules>),
}

/// The buffers that change places between frame thread and worker.
#[derive(Default)]
pub(crate) struct MailBatch {
    pub bytes: Vec<u8>,
    pub items: Vec<Mail>,
    messages_count: usize,
    /// The world is no more: nothing is taken in.
    is_closed: bool,
}

impl MailBatch {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        self.messages_count = 0;
    }
}

/// A world's mailbox; shared by the frame thread, which writes, and the worker that ticks the world, which takes.
pub(crate) struct Mailbox {
    waiting: Mutex<MailBatch>,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self { waiting: Mutex::new("server.mailbox", MailBatch::default()) }
    }
}

impl Mailbox {
    /// Adds a datagram; false if the mailbox is full and it was dropped.
    pub fn push_datagram(&self, client: ClientKey, datagram: &[u8]) -> bool {
        let mut waiting = self.lock();
        if waiting.is_closed || waiting.bytes.len() + datagram.len() > DATAGRAM_BYTES_MAX {
            return false;
        }
        waiting.bytes.extend_from_slice(datagram);
        let end = waiting.bytes.len();
        waiting.items.push(Mail::Datagram { client, end });
        true
    }

    /// Adds a message of another world; false if the mailbox is full of them and it was dropped.
    pub fn push_message(&self, message: Luggage) -> bool {
        let mut waiting = self.lock();
        if waiting.is_closed || waiting.messages_count >= MESSAGES_MAX {
            return false;
        }
        waiting.messages_count += 1;
        waiting.items.push(Mail::Message(message));
        true
    }

    /// Adds a client, a dismissal or rules. There is one of each per client at most, and operators are few, so they are not limited.
    pub fn push(&self, mail: Mail) {
        self.lock().items.push(mail);
    }

    /// Ends it: what waits is dropped, and nothing is taken in any more. Whoever sends clients asks `is_closed` first.
    pub fn close(&self) {
        *self.lock() = MailBatch { is_closed: true, ..MailBatch::default() };
    }

    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    pub fn is_empty(&self) -> bool {
        self.lock().items.is_empty()
    }

    /// Gives everything that waits; `batch`, emptied by the caller, takes its place.
    pub fn swap(&self, batch: &mut MailBatch) {
        debug_assert!(batch.items.is_empty());
        std::mem::swap(&mut *self.lock(), batch);
    }

    fn lock(&self) -> MutexGuard<'_, MailBatch> {
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
        let mut batch = MailBatch::default();
        mailbox.swap(&mut batch);
        assert_eq!(batch.items.len(), taken);
        assert!(mailbox.is_empty());
        assert!(mailbox.push_datagram(ClientKey(0), &datagram));
    }
}
