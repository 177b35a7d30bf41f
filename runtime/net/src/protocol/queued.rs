//! Queued: what a client that has proven itself is told while it waits.
//!
//! ```text
//! queued (10)   | prefix 1 | sequence 8 | state 1, place 4, length 4, sealed | tag 16 |      34 B
//!
//!   state 0   in line; place counts from 1, length is that of the line
//!   state 1   called: its world is being made; place and length are 0
//! ```
//!
//! Only ever the answer to a repeated response (333 B at most), so it is never longer than what asked for it.
//! Sealed under the handshake's own count of sequences, which only rises: the client takes none that is not newer than
//! the last.

/// Where a client that waits to come in stands. A moment old when it arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueState {
    /// Its place, counted from the front [1 to `length`]. Who left the line within the last second may still be
    /// counted.
    InLine { place: u32, length: u32 },
    /// Its turn has come, and its world is being made.
    WorldBeingMade,
}

pub(super) const QUEUED_BODY_BYTES: usize = 1 + 4 + 4;

impl QueueState {
    pub(super) fn to_body(self) -> [u8; QUEUED_BODY_BYTES] {
        let (state, place, length) = match self {
            Self::InLine { place, length } => (0, place, length),
            Self::WorldBeingMade => (1, 0, 0),
        };
        let mut body = [state; QUEUED_BODY_BYTES];
        body[1..5].copy_from_slice(&place.to_le_bytes());
        body[5..].copy_from_slice(&length.to_le_bytes());
        body
    }

    /// `None` for a state nobody defined, and for a place outside its line.
    pub(super) fn from_body(body: &[u8]) -> Option<Self> {
        let (&state, numbers) = body.split_first()?;
        let (place, length) = numbers.split_first_chunk::<4>()?;
        let (place, length) = (u32::from_le_bytes(*place), u32::from_le_bytes(length.try_into().ok()?));
        match state {
            0 if (1..=length).contains(&place) => Some(Self::InLine { place, length }),
            1 if place == 0 && length == 0 => Some(Self::WorldBeingMade),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_its_bytes() {
        for state in [
            QueueState::InLine { place: 1, length: 1 },
            QueueState::InLine { place: 1_000, length: 65_535 },
            QueueState::InLine { place: u32::MAX, length: u32::MAX },
            QueueState::WorldBeingMade,
        ] {
            assert_eq!(QueueState::from_body(&state.to_body()), Some(state));
        }
    }

    #[test]
    fn what_no_server_says_is_refused() {
        for body in [
            &[][..],
            &[0; 8],
            &[0; 9],
            &[0; 10],
            &[2, 1, 0, 0, 0, 1, 0, 0, 0],
            &[0, 2, 0, 0, 0, 1, 0, 0, 0],
            &[1, 1, 0, 0, 0, 1, 0, 0, 0],
        ] {
            assert_eq!(QueueState::from_body(body), None, "{body:?}");
        }
    }
}
