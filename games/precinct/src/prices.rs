//! Prices: how much work a client's message means for its world, which bounds what one client can have it do
//! (`throng_world::price`).
//!
//! A unit is what an ordinary input costs: some 60 ns to decode it and take it to its player. What an input asks for is
//! done once a tick at most, so most are cheaper than their price.

use throng::prelude::*;

use crate::protocol::{Input, KIND_NAME, KIND_SAY, NAME_BYTES_MAX, SAY_BYTES_MAX};

/// A shot is cast for 0.3 us, and whoever it hits is hurt.
const SHOT: u32 = 6;
/// A door is looked for, or a pocket.
const HAND: u32 = 2;
/// Each character is looked at: 120 of them take some 200 ns.
const WORDS: u32 = 4;

/// What a message costs its world.
pub fn price(kind: MessageKind, message: &[u8]) -> u32 {
    match kind {
        MessageKind::Input { .. } => Input::decode(message).map_or(1, |input| {
            let shot = if input.fire() { SHOT } else { 1 };
            let hand = if input.heal() || input.grip() { HAND } else { 1 };
            shot.max(hand)
        }),
        MessageKind::Reliable => match message {
            // What is longer is refused unread.
            [KIND_SAY, words @ ..] if words.len() <= SAY_BYTES_MAX => WORDS,
            [KIND_NAME, words @ ..] if words.len() <= NAME_BYTES_MAX => WORDS,
            _ => 1,
        },
    }
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
    fn what_costs_a_world_more_has_a_higher_price() {
        let input = |fire| Input::new([1.0, 0.0], 0.0, 0.0, fire, true);
        let number = MessageKind::Input { number: 7 };
        check(number, &input(false).encode(), 1);
        check(number, &input(true).encode(), SHOT);
        check(number, &input(false).and_grip().encode(), HAND);
        check(number, &input(true).and_heal().encode(), SHOT);
        check(number, b"no input", 1);
        check(MessageKind::Reliable, &ClientMessage::Say("well met").encode(), WORDS);
        check(MessageKind::Reliable, &ClientMessage::Name("Faye").encode(), WORDS);
        check(MessageKind::Reliable, &[&[KIND_SAY][..], &[b'a'; 60_000]].concat(), 1);
        check(MessageKind::Reliable, &[], 1);
        check(MessageKind::Reliable, &[255, 1], 1);
    }

    /// Promise: an honest client may fire all the time and has something left to say.
    #[test]
    fn who_always_fires_stays_within_its_allowance() {
        let allowed = ServerSettings::default().client_messages_per_s_max;
        assert!(INPUTS_PER_S_MAX * SHOT + 10 * WORDS < allowed);
    }
}
