//! Prices: how much work a client's message means for the world, which bounds what one client can have it do
//! ([`ClientInput::price`]).
//!
//! A unit is what an ordinary input costs: some 60 ns to decode it and take it to its player. What an input asks for is
//! done once a tick at most and has cool-downs of its own, so most are cheaper than their price.

use throng::prelude::*;

use crate::protocol::{Ability, Input, Wish, Work};

/// A spell is begun, and finds whom it is for: 100 ns, and 20 ns for each of some fifteen around.
const CAST: u32 = 7;
/// A blow, most of it for what is told: 150 ns.
const BLOW: u32 = 3;
/// The nearest node is looked for.
const GATHERING: u32 = 2;
/// A wish takes 100 ns, and to look at each character of a line some 200.
const LINE: u32 = 5;
/// A wish, and whoever is named is looked up.
const WISH: u32 = 3;

impl ClientInput for Input {
    /// Strikes and spells are judged by it.
    const SAYS_SEEN: bool = true;

    fn price(&self) -> u32 {
        let asked = [(self.ability() != Ability::None, CAST), (self.attacks(), BLOW), (self.gathers(), GATHERING)];
        // One of them is what is done.
        asked.into_iter().filter_map(|(is_asked, price)| is_asked.then_some(price)).max().unwrap_or(1)
    }
}

/// A cell is looked up and changed, and some twenty who are near are told, 60 ns each.
const WORK: u32 = 20;

impl ClientRequest for Work {
    /// Two hands, and the world keeps a pause between two.
    const PER_S_MAX: u16 = 4;

    fn price(&self) -> u32 {
        WORK
    }
}

/// Too low: a client on a bad line, whose messages come in a lump, loses some. Too high: a few take the time of all.
impl ClientRequest for Wish {
    fn price(&self) -> u32 {
        match self {
            Self::Say(_) | Self::Name(_) => LINE,
            Self::Target(_) | Self::Join(_) | Self::Leave | Self::Use(_) | Self::Emote(_) => WISH,
        }
    }
}

#[cfg(test)]
mod tests {
    use throng::settings::ServerSettings;

    use super::*;

    #[test]
    fn what_costs_the_world_more_has_a_higher_price() {
        let input = Input::new([0.0, 1.0], 0.0).running(true);
        assert_eq!((input.price(), input.gathering(true).price()), (1, GATHERING));
        assert_eq!(input.attacking(true).gathering(true).price(), BLOW);
        for ability in Ability::ALL {
            assert_eq!(input.attacking(true).casting(ability).price(), CAST);
        }
        assert_eq!((Wish::say("well met").unwrap().price(), Wish::Target(None).price()), (LINE, WISH));
    }

    /// Promise: if everybody asks for all that its allowance holds in one and the same tick, most of that tick is left; and
    /// nobody has more in the second after it. What a line costs those who hear it has an allowance of its own
    /// (`roster::may_speak`).
    #[test]
    fn a_flood_of_wishes_by_everybody_leaves_most_of_a_tick() {
        const PLAYERS: u64 = 3_000;
        const UNIT_NS: u64 = 60;
        const TICK_NS: u64 = 50_000_000;
        let dearest = [Wish::say("well met").unwrap(), Wish::Target(None), Wish::Leave].map(|wish| wish.price());
        let dearest = dearest.into_iter().max().unwrap();
        assert!(PLAYERS * u64::from(Wish::PER_S_MAX) * u64::from(dearest) * UNIT_NS < TICK_NS / 2);
        // By prices alone, were there no limit to the number of wishes, it would be more than two ticks.
        let allowed = u64::from(ServerSettings::default().client_messages_per_s_max);
        assert!(PLAYERS * allowed * UNIT_NS > 2 * TICK_NS, "the number is what holds");
    }

    /// Promise: an honest client may cast all the time and has something left to say.
    #[test]
    fn who_always_casts_stays_within_its_allowance() {
        let allowed = ServerSettings::default().client_messages_per_s_max;
        assert!(u32::from(Input::PER_S_MAX) * CAST + 10 * LINE < allowed);
    }
}
