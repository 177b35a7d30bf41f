//! Prices: how much work a client's message means for its world, which bounds what one client can have it do
//! ([`ClientInput::price`]).
//!
//! A unit is what an ordinary input costs: some 60 ns to decode it and take it to its player. What an input asks for is
//! done once a tick at most, so most are cheaper than their price.

use throng::prelude::*;

use crate::protocol::{CallMe, Handle, Input, Say};

/// A shot is cast into the past for 0.4 us, and whoever it hits is hurt.
const SHOT: u32 = 7;
/// A door is looked for, or a pocket.
const HAND: u32 = 2;
/// Some hundred players are looked at, 5 ns each.
const SEARCH: u32 = 8;
/// Each character is looked at: 120 of them take some 200 ns.
const WORDS: u32 = 4;

impl ClientInput for Input {
    /// Shots are judged by it.
    const SAYS_SEEN: bool = true;

    fn price(&self) -> u32 {
        let shot = if self.fire() { SHOT } else { 1 };
        let hand = if self.heal() || self.grip() { HAND } else { 1 };
        shot.max(hand)
    }
}

impl ClientRequest for Say {
    fn price(&self) -> u32 {
        WORDS
    }
}

impl ClientRequest for CallMe {
    /// A player has its name in all worlds.
    const FOR_ANY_WORLD: bool = true;

    fn price(&self) -> u32 {
        WORDS
    }
}

/// All players of the world are looked at for who is meant, or all that lies there.
impl ClientRequest for Handle {
    /// Two hands.
    const PER_S_MAX: u16 = 10;

    fn price(&self) -> u32 {
        match self {
            Self::PickUp(_) | Self::Offer(_) | Self::Accept(_) => SEARCH,
            Self::Drop(_) | Self::PutIn(_) | Self::TakeOut(_) => HAND,
        }
    }
}

#[cfg(test)]
mod tests {
    use throng::settings::ServerSettings;

    use super::*;

    #[test]
    fn what_costs_a_world_more_has_a_higher_price() {
        let input = |fire| Input::new([1.0, 0.0], 0.0, 0.0, fire, true);
        assert_eq!((input(false).price(), input(true).price()), (1, SHOT));
        assert_eq!((input(false).and_grip().price(), input(true).and_heal().price()), (HAND, SHOT));
        assert_eq!(Say::new("well met").unwrap().price(), WORDS);
    }

    /// Promise: an honest client may fire all the time and has something left to say.
    #[test]
    fn who_always_fires_stays_within_its_allowance() {
        let allowed = ServerSettings::default().client_messages_per_s_max;
        assert!(u32::from(Input::PER_S_MAX) * SHOT + 10 * WORDS < allowed);
    }
}
