//! Prices: how much work a client's message means for the world, which bounds what one client can have it do
//! (`throng_world::price`).
//!
//! A unit is what an ordinary input costs: some 60 ns to decode it and take it to its player. What an input asks for is
//! done once a tick at most and has cool-downs of its own, so most are cheaper than their price.

use throng::prelude::*;

use crate::protocol::{
    Ability, Input, KIND_EMOTE, KIND_JOIN, KIND_LEAVE, KIND_NAME, KIND_SAY, KIND_TARGET, KIND_USE, SAY_BYTES_MAX,
};

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

/// What a message costs the world.
pub fn price(kind: MessageKind, message: &[u8]) -> u32 {
    match kind {
        MessageKind::Input { .. } => Input::decode(message).map_or(1, price_of_input),
        MessageKind::Reliable => match message {
            // What is longer is refused unread.
            [KIND_SAY | KIND_NAME, words @ ..] if words.len() <= SAY_BYTES_MAX => LINE,
            [KIND_TARGET | KIND_JOIN | KIND_LEAVE | KIND_USE | KIND_EMOTE, ..] => WISH,
            _ => 1,
        },
    }
}

fn price_of_input(input: Input) -> u32 {
    let asked = [(input.ability() != Ability::None, CAST), (input.attacks(), BLOW), (input.gathers(), GATHERING)];
    // One of them is what is done.
    asked.into_iter().filter_map(|(is_asked, price)| is_asked.then_some(price)).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use throng::settings::ServerSettings;

    use super::*;
    use crate::protocol::ClientMessage;

    /// Inputs a second of the fastest honest client.
    const INPUTS_PER_S_MAX: u32 = 128;

    #[track_caller]
    fn check(kind: MessageKind, message: &[u8], expect: u32) {
        assert_eq!(price(kind, message), expect, "{message:?}");
    }

    #[test]
    fn what_costs_the_world_more_has_a_higher_price() {
        let input = Input::new([0.0, 1.0], 0.0).running(true);
        let number = MessageKind::Input { number: 7 };
        check(number, &input.encode(), 1);
        check(number, &input.attacking(true).encode(), BLOW);
        check(number, &input.gathering(true).encode(), GATHERING);
        for ability in Ability::ALL {
            check(number, &input.attacking(true).casting(ability).encode(), CAST);
        }
        check(number, b"no input of any client", 1);
        check(MessageKind::Reliable, &ClientMessage::Say("well met").encode(), LINE);
        check(MessageKind::Reliable, &ClientMessage::Name("Faye").encode(), LINE);
        check(MessageKind::Reliable, &ClientMessage::Target(None).encode(), WISH);
        check(MessageKind::Reliable, &ClientMessage::Leave.encode(), WISH);
        check(MessageKind::Reliable, &[&[KIND_SAY][..], &[b'a'; 60_000]].concat(), 1);
        check(MessageKind::Reliable, &[], 1);
        check(MessageKind::Reliable, &[255, 1], 1);
    }

    /// Promise: an honest client may cast all the time and has something left to say.
    #[test]
    fn who_always_casts_stays_within_its_allowance() {
        let allowed = ServerSettings::default().client_messages_per_s_max;
        assert!(INPUTS_PER_S_MAX * CAST + 10 * LINE < allowed);
    }
}
