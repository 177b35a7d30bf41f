//! What happened to a client since its owner last looked.

use std::collections::VecDeque;

use throng_net::protocol::HandshakeFailure;

use crate::client::DisconnectReason;

/// A change of state. What it is about is asked of the client, which may have moved on since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEvent {
    /// An attempt to come in has failed; the next one wants a fresh token: see `Client::wants_token`.
    AttemptFailed(HandshakeFailure),
    /// The server took us in; a world follows.
    Connected,
    /// The server named the world that we are in now: see `Client::world`.
    EnteredWorld { epoch: u8 },
    /// Another entity is ours now, or none: see `Client::own_entity`.
    OwnEntityChanged,
    /// The connection is over. Nothing comes after this.
    Disconnected(DisconnectReason),
}

/// Events kept for an owner who never looks. The oldest go first: what is newest is what holds.
const EVENTS_MAX: usize = 32;

/// Events in the order in which they happened.
#[derive(Debug)]
pub(crate) struct Events(VecDeque<ClientEvent>);

impl Events {
    pub fn new() -> Self {
        Self(VecDeque::with_capacity(EVENTS_MAX))
    }

    pub fn push(&mut self, event: ClientEvent) {
        if self.0.len() == EVENTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(event);
    }

    pub fn pop(&mut self) -> Option<ClientEvent> {
        self.0.pop_front()
    }
}
