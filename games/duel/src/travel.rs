//! Travel: what goes between the lobby and the matches.
//!
//! A player has a [`Passport`], which goes along both ways, so what it has done outlives its matches. The lobby says
//! which seat it takes; a match tells which of its seats are free, and when it is over, and the lobby has it ended.

use throng::prelude::*;

use crate::teams::SEATS;

/// What a player has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pack)]
#[pack(name = "duel.passport")]
pub struct Passport {
    pub matches: u16,
    pub wins: u16,
    pub kills: u32,
    pub deaths: u32,
}

/// All that a player takes along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pack)]
#[pack(name = "duel.traveller")]
pub struct Traveller {
    pub passport: Passport,
    /// The seat that it is to take in a match; of no meaning in the lobby.
    #[pack(max = SEATS as u8 - 1)]
    pub seat: u8,
}

/// What a match is asked for with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.match_plan")]
pub struct MatchPlan {
    /// Where its players come from and go to.
    pub lobby: WorldId,
    /// Its number among the matches that the lobby has asked for, from 0.
    pub ordinal: u32,
}

/// Told to the lobby by a match that everybody has left: it can be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.match_over")]
pub struct MatchOver;

/// Told to the lobby: which seats of a match nobody has. When a round begins that somebody could come to, and, with none,
/// when the match is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.free_seats")]
pub struct FreeSeats {
    /// As [`SeatSet::bits`](crate::seat_set::SeatSet::bits).
    pub seats: u16,
}
