//! Teams and seats: who plays with whom.
//!
//! A match has ten seats, five for each team, and who sits where stays for the whole match. Which team attacks changes
//! at half. A seat is a small number: columns, the history of positions and the fog of war all go by it.

use throng::prelude::*;

/// Players of a team, at most.
pub const TEAM_SIZE: usize = 5;
/// Seats of a match: those below [`TEAM_SIZE`] are of team one.
pub const SEATS: usize = 2 * TEAM_SIZE;

/// One of the two teams of a match.
#[derive(Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.team")]
pub enum TeamId {
    One,
    Two,
}

impl TeamId {
    pub const BOTH: [Self; 2] = [Self::One, Self::Two];

    /// Whose seat it is.
    pub fn of_seat(seat: u8) -> Self {
        if usize::from(seat) < TEAM_SIZE { Self::One } else { Self::Two }
    }

    pub fn index(self) -> usize {
        self as usize
    }

    pub fn other(self) -> Self {
        match self {
            Self::One => Self::Two,
            Self::Two => Self::One,
        }
    }

    /// As replication knows teams: 0 would be none.
    pub fn number(self) -> u16 {
        self as u16 + 1
    }

    /// Its seats, as bits.
    pub fn seats(self) -> u16 {
        let all = (1 << TEAM_SIZE) - 1;
        match self {
            Self::One => all,
            Self::Two => all << TEAM_SIZE,
        }
    }
}

/// Where in its team a seat is.
pub fn place_in_team(seat: u8) -> usize {
    usize::from(seat) % TEAM_SIZE
}

/// What a team does in this half of the match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Brings the spike to a site, or kills all defenders.
    Attackers,
    /// Keeps the spike from exploding.
    Defenders,
}

impl Side {
    /// Of a team, where `attackers` attack.
    pub fn of(team: TeamId, attackers: TeamId) -> Self {
        if team == attackers { Self::Attackers } else { Self::Defenders }
    }

    pub fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_seat_is_of_one_team() {
        for seat in 0..SEATS as u8 {
            let team = TeamId::of_seat(seat);
            assert!(team.seats() >> seat & 1 == 1 && team.other().seats() >> seat & 1 == 0, "seat {seat}");
        }
        assert_eq!(TeamId::One.seats() | TeamId::Two.seats(), (1 << SEATS) - 1);
    }
}
