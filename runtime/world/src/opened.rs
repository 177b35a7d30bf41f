//! Opened: a message of a client before anybody has read it: how it came, and where it lies.

use throng_replication::{PackedId, Unpacked};

use crate::{ids::ClientKey, seen_moment::SeenMoment};

/// How a message of a client came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// An input: unreliable, numbered by the client; a lost one is not sent again.
    Input { number: u16, kind: PackedId },
    /// Sent reliably and in order.
    Request { kind: PackedId },
}

/// A message of a buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opened {
    /// Its datagram's place among the world's mail.
    pub number: u32,
    pub client: ClientKey,
    pub kind: MessageKind,
    /// An input that the client sent before one that has arrived already, in this tick or an earlier one.
    pub is_late: bool,
    /// What its player was shown, for an input of a kind that says so.
    pub seen: Option<SeenMoment>,
    pub begin: u32,
    pub end: u32,
    /// Its place among the values of its kind; `None` if its bytes are no value.
    pub value: Option<u32>,
}

/// What some clients said in a tick.
#[derive(Default)]
pub(crate) struct Buffer {
    /// Datagrams as they were opened, and messages that were put together from several.
    pub bytes: Vec<u8>,
    /// The values that these bytes are.
    pub values: Unpacked,
}

impl Buffer {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.values.clear();
    }
}
