//! Mail: what has come for a world since its last tick, in the order in which it came.
//!
//! Datagrams lie one behind the other in one buffer, still sealed: one copy from where the kernel put them. Whoever
//! hosts the world decides how much may wait. Buffers are used again; a steady tick allocates nothing.

use std::sync::Arc;

use throng_net::protocol::ClientId;
use throng_replication::ReplicationRules;

use crate::{
    client::Client,
    console::Question,
    ids::{ClientKey, WorldId},
    saving::SaveAnswer,
    transfer::{Transfer, WorldMessage},
    tunable::TunedValues,
};

/// One piece of mail.
pub enum MailItem {
    /// A sealed datagram of a client; `end` is where it ends in the bytes.
    Datagram { client: ClientKey, end: usize },
    /// A client comes in: one that has just connected (nothing carried), or one from another world.
    Arrival { client: Box<Client>, from: Option<WorldId>, transfer: Option<Transfer> },
    /// The world is to end: it lets all clients go with its next tick.
    End { reason: &'static str },
    /// What another world sends.
    Message(WorldMessage),
    /// The host wants this client gone.
    Dismiss { client: ClientKey, reason: &'static str },
    /// New rules for what is heard how far and how often.
    Rules(Arc<ReplicationRules>),
    /// What holds for tunables from now on.
    Tuned(Arc<TunedValues>),
    /// A cut is to be taken of it, see [`crate::saving`].
    Save,
    /// What became of the game's wishes to be saved.
    Saved(Vec<SaveAnswer>),
    /// The cells of the cut of this tick are on disk.
    CellsSaved(u32),
    /// What somebody outside wants of the world.
    Question(Question),
    /// Taken out.
    Taken,
}

/// Mail of one world.
#[derive(Default)]
pub struct Mail {
    pub(crate) bytes: Vec<u8>,
    pub(crate) items: Vec<MailItem>,
}

impl Mail {
    pub fn push_datagram(&mut self, client: ClientKey, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.items.push(MailItem::Datagram { client, end: self.bytes.len() });
    }

    /// Those who come in with it.
    pub fn arriving(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.items.iter().filter_map(|item| match item {
            MailItem::Arrival { client, .. } => Some(client.client_id()),
            _ => None,
        })
    }

    pub fn push(&mut self, item: MailItem) {
        debug_assert!(!matches!(item, MailItem::Datagram { .. }), "datagrams come with their bytes");
        self.items.push(item);
    }

    /// Takes all items out, in their order; datagrams lose their bytes.
    pub fn drain(&mut self) -> impl Iterator<Item = MailItem> + '_ {
        self.bytes.clear();
        self.items.drain(..)
    }

    /// Bytes of datagrams that wait.
    pub fn datagram_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
    }
}
