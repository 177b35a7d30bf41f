//! Seat set: some seats of one match, a bit each.
//!
//! What the lobby and a match tell each other of free seats. A number that is passed by value; it allocates nothing.

use std::ops::BitAnd;

use crate::teams::{SEATS, TeamId};

/// Seats of one match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeatSet(u16);

const _: () = assert!(SEATS <= u16::BITS as usize);

impl SeatSet {
    /// The seat of number n is the bit of value 2^n, as messages have it.
    pub fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// As [`from_bits`](Self::from_bits) takes them.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// All seats of a team.
    pub fn of_team(team: TeamId) -> Self {
        Self(team.seats())
    }

    pub fn has(self, seat: u8) -> bool {
        self.0 >> seat & 1 == 1
    }

    /// The same without one, whether it was in it or not.
    pub fn without(self, seat: u8) -> Self {
        Self(self.0 & !(1 << seat))
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The lowest first.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..SEATS as u8).filter(move |seat| self.has(*seat))
    }
}

impl FromIterator<u8> for SeatSet {
    fn from_iter<I: IntoIterator<Item = u8>>(seats: I) -> Self {
        Self(seats.into_iter().fold(0_u16, |set, seat| set | 1 << seat))
    }
}

impl BitAnd for SeatSet {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_told_with_the_lowest_first() {
        let seats: SeatSet = [7_u8, 0, 4].into_iter().collect();
        assert_eq!(seats.iter().collect::<Vec<u8>>(), [0, 4, 7]);
        assert_eq!((seats.count(), seats.has(4), seats.without(4).has(4)), (3, true, false));
        assert_eq!(seats & SeatSet::of_team(TeamId::Two), SeatSet::from_bits(1 << 7));
        assert!(seats.without(0).without(4).without(7).is_empty());
    }
}
