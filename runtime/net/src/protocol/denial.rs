//! Why an authentic client is turned away, in one byte.
//!
//! netcode's *denied* packet has no body. To a client that came by the cookie, and so is one of ours, ours carries the
//! reason, so that it can tell "come again" from "go away":
//!
//! ```text
//! denied (1)   | prefix 1 | sequence n | reason 1, sealed | tag 16 |
//! ```
//!
//! The reason is told only to who holds the keys of a token, so it says nothing to strangers.

use std::fmt;

/// Why the server did not let a client in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum DenialReason {
    /// The server gave none: it speaks plain netcode, or is of another version.
    Unsaid = 0,
    ServerFull = 1,
    /// A client of this id is connected; perhaps our own earlier connection, which has not timed out yet.
    AlreadyConnected = 2,
    /// As many wait to come in as may.
    QueueFull = 3,
    /// The server can admit nobody at the moment: it could not remember the token, or is closing.
    Unable = 4,
    /// The game does not want this client.
    RefusedByGame = 5,
    /// The world that the client was to be put into was not ready in time.
    WorldNotReady = 6,
}

impl DenialReason {
    pub const ALL: [Self; 7] = [
        Self::Unsaid,
        Self::ServerFull,
        Self::AlreadyConnected,
        Self::QueueFull,
        Self::Unable,
        Self::RefusedByGame,
        Self::WorldNotReady,
    ];

    /// What the body of a *denied* packet says. Numbers of later versions and an empty body are [`Self::Unsaid`].
    pub(super) fn from_body(body: &[u8]) -> Self {
        let number = body.first().copied().unwrap_or_default();
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Unsaid)
    }

    /// Whether the same client may be let in later.
    pub fn may_pass(self) -> bool {
        self != Self::RefusedByGame
    }

    /// A report's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unsaid => "unsaid",
            Self::ServerFull => "server_full",
            Self::AlreadyConnected => "already_connected",
            Self::QueueFull => "queue_full",
            Self::Unable => "unable",
            Self::RefusedByGame => "refused_by_game",
            Self::WorldNotReady => "world_not_ready",
        }
    }
}

impl fmt::Display for DenialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsaid => "the server is full, or this client is connected already",
            Self::ServerFull => "the server is full",
            Self::AlreadyConnected => "this client is connected already",
            Self::QueueFull => "as many wait to come in as may",
            Self::Unable => "the server can admit nobody at the moment",
            Self::RefusedByGame => "the game refuses this client",
            Self::WorldNotReady => "the client's world was not ready in time",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_survives_its_byte_and_an_unknown_one_is_unsaid() {
        for reason in DenialReason::ALL {
            assert_eq!(DenialReason::from_body(&[reason as u8]), reason);
        }
        assert_eq!(DenialReason::from_body(&[]), DenialReason::Unsaid);
        assert_eq!(DenialReason::from_body(&[7]), DenialReason::Unsaid);
        assert_eq!(DenialReason::from_body(&[255]), DenialReason::Unsaid);
    }
}
