//! Profile: what players did and what that cost, player by player and bin by bin of a recording's time.
//!
//! ```text
//!   player 7      bin 0   1   2  ...  47
//!   played s       1.2 1.2 0.4 ...  0.0
//!   packets         24  24   8 ...
//!   casts          3.1 2.9 0.7 ...      what its worlds counted, in equal shares of those who were there
//! ```
//!
//! Bins, so that it can be asked how far a figure would be off in another stretch of the same play; players, so that it can be
//! asked how far among others of their kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Serialize, Serializer};

use crate::worlds::Worlds;

/// Bins of a recording's time, which are as long as each other.
pub const BINS: usize = 48;
/// Spells that it is cut into for places: long ones, since a person stays where it is for a while.
pub const SPELLS: usize = 8;
const _: () = assert!(BINS / SPELLS * SPELLS == BINS && SPELLS <= 256);

/// What sort of measure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// What clients said: an input is a packet of its own.
    Packets,
    /// Casts, paths, and whatever else the game counts, by the names of its counters.
    Counts,
    /// Time of a subsystem (µs).
    Times,
    /// Which worlds players were in (s).
    Worlds,
    /// How they moved.
    Walks,
    /// Among how many others they were.
    Crowd,
}

impl Sort {
    /// In what its figures are: for each second that a player plays, or on average of that time.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Packets | Self::Counts | Self::Walks => "/s",
            Self::Times => "µs/s",
            Self::Worlds => "of the time",
            Self::Crowd => "players",
        }
    }

    /// A world's costs are nobody's where players of both sides are in it.
    pub(crate) fn is_of_worlds(self) -> bool {
        matches!(self, Self::Counts | Self::Times)
    }
}

/// One measure of load.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Measure {
    pub sort: Sort,
    #[serde(serialize_with = "as_text")]
    pub name: Arc<str>,
}

impl Measure {
    pub fn new(sort: Sort, name: &str) -> Self {
        Self { sort, name: name.into() }
    }
}

/// A square of a kind of world's ground.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Cell {
    #[serde(serialize_with = "as_text")]
    pub kind: Arc<str>,
    /// Of its corner that is nearer to minus infinity (m).
    pub x_m: i32,
    pub z_m: i32,
}

/// What one player did.
#[derive(Debug, Clone, Default)]
pub struct PlayerProfile {
    /// In each bin (s).
    pub played_s: Vec<f64>,
    /// The part of it while all who were in its world were of its side (s).
    pub own_s: Vec<f64>,
    /// In each bin, for each measure; a measure that is not there is zero.
    pub values: BTreeMap<Measure, Vec<f64>>,
    /// How long it was in each cell, by spell (s).
    pub places: BTreeMap<(u8, Cell), u32>,
}

impl PlayerProfile {
    /// The time that figures of a sort are of (s), in each bin.
    pub(crate) fn exposure_s(&self, sort: Sort) -> &[f64] {
        if sort.is_of_worlds() { &self.own_s } else { &self.played_s }
    }
}

/// The spell that a bin is of.
pub(crate) fn spell_of(bin: usize) -> u8 {
    (bin.min(BINS - 1) * SPELLS / BINS) as u8
}

/// The load profile of some players.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// How long the recording is, without its first seconds (s).
    pub length_s: f64,
    pub players: Vec<PlayerProfile>,
    /// The worlds that they were in.
    pub worlds: Worlds,
    /// How many of the other players of this side one has in its cell at a time, on average, of as many as go together.
    pub company: f64,
}

impl Profile {
    /// How long all players together were there (s).
    pub fn played_s(&self) -> f64 {
        self.players.iter().flat_map(|player| &player.played_s).sum()
    }

    /// Which part of the time that they played was in worlds with players who are not of this side [0 to 1].
    pub fn shared_share(&self) -> f64 {
        let (played_s, own_s) = (self.played_s(), self.players.iter().flat_map(|player| &player.own_s).sum::<f64>());
        if played_s > 0.0 { (1.0 - own_s / played_s).max(0.0) } else { 0.0 }
    }

    /// How many measures of a sort anybody has.
    pub fn measures_of(&self, sort: Sort) -> usize {
        self.measures().filter(|measure| measure.sort == sort).collect::<BTreeSet<_>>().len()
    }

    /// All that was measured of anybody.
    pub(crate) fn measures(&self) -> impl Iterator<Item = &Measure> {
        self.players.iter().flat_map(|player| player.values.keys())
    }
}

fn as_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}
