//! Travel: what goes from one world to another.
//!
//! A player that walks through a portal takes a [`Traveller`] along; the world where a connection ends posts
//! [`OwnerLeft`] to the player's hideout.

use crate::passport::Passport;

/// What a player is, wherever it goes: the luggage of a travel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traveller {
    pub health: u8,
    pub passport: Passport,
}

/// Told to a hideout when its owner's connection has ended somewhere else.
#[derive(Debug, Clone, Copy)]
pub struct OwnerLeft;
