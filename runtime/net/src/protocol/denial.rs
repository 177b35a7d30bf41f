//! Why an authentic client is turned away, in one byte.
//!
//! netcode's *denied* packet has no body. To a client that came by the cookie, and so is one of ours, ours carries the
//! reason, so that it can tell "come again" from "go away":
//!
//! ```text
//! denied (1)   | prefix 1 | sequence n | reason 1, sealed | tag 16 |
//! ```
//!
//! What is told to whom:
//!
//! | who asks | what it is told |
//! | --- | --- |
//! | anybody, with a hello | a cookie, whatever protocol it speaks: its address is not proven yet, and nothing else is said |
//! | who came by the cookie, with a token that our key sealed | the reason, sealed under that token's keys |
//! | who came by the cookie, with a token that our key did not seal | nothing |
//! | a plain netcode client, with a token for this server | a *denied* without a reason, where the standard has one: full, or connected already |
//! | a plain netcode client, otherwise | nothing |
//! | who shows a token that another address is shaking hands with, or is connected with | nothing |
//!
//! So a reason says nothing to strangers, nor to who has copied a token on its way and does not hold its keys.

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
    /// A token makes one session, and this one has made it.
    TokenUsed = 7,
    /// The token is older than the server takes.
    TokenExpired = 8,
    /// The token names other servers than this one.
    OtherServer = 9,
    /// The token is for another protocol: another game, or another version of it.
    OtherProtocol = 10,
    /// Somebody else is connected from the client's address.
    AddressTaken = 11,
    /// The game wants the client in a world that does not exist.
    NoSuchWorld = 12,
}

impl DenialReason {
    pub const ALL: [Self; 13] = [
        Self::Unsaid,
        Self::ServerFull,
        Self::AlreadyConnected,
        Self::QueueFull,
        Self::Unable,
        Self::RefusedByGame,
        Self::WorldNotReady,
        Self::TokenUsed,
        Self::TokenExpired,
        Self::OtherServer,
        Self::OtherProtocol,
        Self::AddressTaken,
        Self::NoSuchWorld,
    ];

    /// What the body of a *denied* packet says. Numbers of later versions and an empty body are [`Self::Unsaid`].
    pub(super) fn from_body(body: &[u8]) -> Self {
        let number = body.first().copied().unwrap_or_default();
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Unsaid)
    }

    /// Whether the same client may be let in later, with a fresh token.
    pub fn may_pass(self) -> bool {
        !matches!(self, Self::RefusedByGame | Self::OtherServer | Self::OtherProtocol)
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
            Self::TokenUsed => "token_used",
            Self::TokenExpired => "token_expired",
            Self::OtherServer => "other_server",
            Self::OtherProtocol => "other_protocol",
            Self::AddressTaken => "address_taken",
            Self::NoSuchWorld => "no_such_world",
        }
    }
}

/// For the player who reads it, with what he can do about it.
impl fmt::Display for DenialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsaid => "the server is full, or you are connected already",
            Self::ServerFull => "the server is full",
            Self::AlreadyConnected => {
                "you are connected already, perhaps by an earlier connection that has not timed out yet"
            }
            Self::QueueFull => "too many players are waiting to come in: try again later",
            Self::Unable => "the server can let nobody in at the moment: try again later",
            Self::RefusedByGame => "the game does not let you in",
            Self::WorldNotReady => "your world was not ready in time: try again",
            Self::TokenUsed => "your connect token was used before, and is good for one session: log in again",
            Self::TokenExpired => "your connect token has expired: log in again",
            Self::OtherServer => {
                "your connect token is for another server; if it was meant for this one, its operator has to name this \
                 address among its public_addresses"
            }
            Self::OtherProtocol => {
                "your connect token is for another game, or another version of it (its protocol_id is another one)"
            }
            Self::AddressTaken => "somebody else is connected from your address: try again",
            Self::NoSuchWorld => "your world does not exist any more",
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
        assert_eq!(DenialReason::from_body(&[13]), DenialReason::Unsaid);
        assert_eq!(DenialReason::from_body(&[255]), DenialReason::Unsaid);
    }
}
