//! Seen: which moment of its world a client showed its player when an input was made.
//!
//! A client shows the world a little behind its newest snapshot, mostly between two of them. Inputs of a kind that says so
//! ([`ClientInput::SAYS_SEEN`](crate::ClientInput::SAYS_SEEN)) carry both, between their header and what they pack:
//!
//! ```text
//! 0        2         4
//! +--------+---------+-----------+
//! | newest | behind  | packed .. |
//! | u16    | u16     |           |
//! +--------+---------+-----------+
//! ```
//!
//! `newest` is the tick of the newest snapshot that the client had, without its upper bits: the world knows which tick it
//! is, and an input is not 65,536 ticks on its way. `behind` is how far before that tick the moment was, in 256ths of a
//! tick. Little endian.
//!
//! It is what the client says. A world that judges shots by it holds it against what it knows.

/// Bytes ahead of what an input packs whose kind says what was seen.
pub const SEEN_BYTES: usize = 4;

/// What a client says that its player was shown.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Tick of the newest snapshot that it had.
    pub newest_tick: u32,
    /// How far before that tick the moment was that it showed, in 256ths of a tick.
    pub behind_parts: u16,
}

impl Seen {
    pub fn encode(self) -> [u8; SEEN_BYTES] {
        let ([n0, n1, ..], [b0, b1]) = (self.newest_tick.to_le_bytes(), self.behind_parts.to_le_bytes());
        [n0, n1, b0, b1]
    }

    /// Reads what came in this tick of the world. A newest tick that the world has not had yet becomes one of long ago.
    pub fn decode([n0, n1, b0, b1]: [u8; SEEN_BYTES], tick: u32) -> Self {
        let ago = (tick as u16).wrapping_sub(u16::from_le_bytes([n0, n1]));
        Self { newest_tick: tick.saturating_sub(ago.into()), behind_parts: u16::from_le_bytes([b0, b1]) }
    }

    /// The moment: the tick at or before it, and 256ths after that. The world's beginning is the earliest.
    pub fn moment(self) -> (u32, u8) {
        let parts = (u64::from(self.newest_tick) << 8).saturating_sub(self.behind_parts.into());
        ((parts >> 8) as u32, parts as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_world_finds_the_tick_whose_upper_bits_were_left_out() {
        let check = |newest_tick: u32, tick: u32, expect: u32| {
            let seen = Seen { newest_tick, behind_parts: 515 };
            assert_eq!(Seen::decode(seen.encode(), tick), Seen { newest_tick: expect, ..seen });
        };
        check(7, 7, 7);
        check(7, 12, 7);
        check(65_530, 65_541, 65_530);
        check(1_000_000, 1_000_020, 1_000_000);
        check(u32::MAX - 1, u32::MAX, u32::MAX - 1);
        // It cannot have seen what has not been: nothing is gained by saying so.
        check(13, 12, 0);
        check(1_000_021, 1_000_020, 1_000_020 - 65_535);
    }

    #[test]
    fn a_moment_is_a_tick_and_a_part() {
        let moment = |newest_tick, behind_parts| Seen { newest_tick, behind_parts }.moment();
        assert_eq!(moment(10, 0), (10, 0));
        assert_eq!(moment(10, 1), (9, 255));
        assert_eq!(moment(10, 512), (8, 0));
        assert_eq!(moment(1, u16::MAX), (0, 0));
    }
}
