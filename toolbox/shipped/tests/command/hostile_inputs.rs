//! Hostile inputs and messages at a live server that plays Frontier: bytes that no honest client sends, and sound ones
//! that make no sense. Twenty honest bots play on and must not notice.

use std::time::Duration;

use frontier::{
    components::NAME_BYTES_MAX,
    protocol::{Ability, Input, SAY_BYTES_MAX, Wish},
};
use rand::{Rng, RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::control;
use throng_pack::{Pack, pack_body, unpack_body};
use throng_replication::{NetId, SEEN_BYTES};

use crate::{
    abuse::check_unharmed,
    address::token,
    child::{Ended, Server, alone},
    crowd::Crowd,
    game::Game,
    player::Player,
};

const BOTS: usize = 20;
const FRONTIER: [&str; 6] = ["--game", "frontier", "--players", "24", "--npcs", "48"];

/// The only kind of inputs, and of requests.
const KIND: u8 = 0;

/// An input by chance: some are of a wrong length, and most of the others ask for what there is.
fn input(rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut input = vec![0; Input::BYTES_MAX];
    rng.fill_bytes(&mut input);
    match rng.random_range(0..4) {
        0 => input.resize(rng.random_range(0..=2 * Input::BYTES_MAX), 0xEE),
        1 => {}
        _ => {
            input[4] = rng.random_range(0..=Ability::ALL.len() as u8);
            input[5] &= 0b1111;
        }
    }
    input
}

/// A wish by chance: any bytes, and sound ones about entities that may or may not be there.
fn wish(rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let somebody = NetId { slot: rng.random_range(0..200), generation: rng.random_range(0..3) };
    let text: String =
        (0..rng.random_range(0..2 * NAME_BYTES_MAX)).map(|_| rng.random_range('\0'..'\u{2100}')).collect();
    let packed = |wish: Wish| {
        let mut bytes = Vec::new();
        pack_body(&wish, &mut bytes).expect("it is sound");
        bytes
    };
    let of_text = |variant: u8| [&[variant, text.len() as u8], text.as_bytes()].concat();
    match rng.random_range(0..10) {
        0 => packed(Wish::Target(Some(somebody))),
        1 => packed(Wish::Join(somebody)),
        2 => packed(Wish::Use(somebody)),
        3 => packed(Wish::Leave),
        4 => of_text(1),
        5 => of_text(0),
        _ => {
            let mut wish = vec![0; rng.random_range(1..=2 * SAY_BYTES_MAX)];
            rng.fill_bytes(&mut wish);
            wish
        }
    }
}

fn counted(ended: &Ended, name: &str) -> u64 {
    let per_s = ended.report["game_per_s"][name].as_f64().unwrap_or_else(|| panic!("no `{name}` in {}", ended.report));
    (per_s * ended.report["seconds"].as_f64().expect("a figure")).round() as u64
}

/// Promise: whatever a client of Frontier sends, it is refused or done, nobody else notices, and the world ticks on.
fn hostile_inputs_and_messages(count: usize) {
    let _alone = alone();
    let server = Server::start(&FRONTIER);
    let crowd = Crowd::start_in(Game::Frontier, server.address, BOTS);
    let mut player = Player::enter_in(Game::Frontier, token(server.address, 1));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let (mut sent, mut bad_messages, mut bad_inputs) = (0, 0, 0);
    let all_sent = player.play_until(Duration::from_secs(60 + count as u64 / 100), |player| {
        if !player.is_connected() {
            return true;
        }
        for _ in 0..5 {
            let wish = wish(&mut rng);
            let message = [&[control::REQUEST, player.epoch(), KIND], &wish[..]].concat();
            // A full channel is the sender's own problem: it waits.
            if player.client.send_raw(&message).is_err() {
                break;
            }
            bad_messages += u64::from(unpack_body::<Wish>(&wish).is_err());
            sent += 1;
        }
        let input = input(&mut rng);
        bad_inputs += u64::from(unpack_body::<Input>(&input).is_err());
        player.send_as_input(&[&[KIND][..], &[0; SEEN_BYTES][..], &input[..]].concat());
        // So many are within what a client may send, at the prices of Frontier.
        std::thread::sleep(Duration::from_millis(25));
        sent >= count
    });
    assert!(all_sent && player.is_connected(), "{sent} sent, {:?}", player.client.state());
    player.play_until(Duration::from_secs(2), |_| false);
    assert!(player.is_connected(), "nonsense is no reason to throw somebody out");
    assert_eq!(player.client.stats().state_errors, 0);
    player.leave();
    let ended = check_unharmed(crowd, server);
    let refused = (counted(&ended, "refused.frontier.wish"), counted(&ended, "refused.frontier.input"));
    let count_of = |name: &str| ended.report["counters"][name].as_u64().expect("it is counted");
    let (too_long, too_many) = (count_of("net.messages_refused"), count_of("net.said_over_limit"));
    println!(
        "of {sent} messages {bad_messages} were bad, and {bad_inputs} inputs; refused {refused:?}, too long {too_long}, \
         too many {too_many}"
    );
    // Reliable ones all arrive; of those that are more than a client may send nobody looks whether they are bad.
    assert!(refused.0 <= bad_messages && refused.0 > 0, "{} of {bad_messages}: {}", refused.0, ended.report);
    assert!(refused.0 + too_long + too_many >= bad_messages, "{}", ended.report);
    // Some are lost on a busy machine.
    let inputs = refused.1 + too_long;
    assert!(inputs * 2 >= bad_inputs && refused.1 <= bad_inputs, "{inputs} of {bad_inputs}");
    assert!(bad_messages * 10 >= count as u64 && bad_inputs > 0, "{bad_messages} messages and {bad_inputs} inputs");
}

#[test]
fn hostile_inputs_and_messages_in_frontier_disturb_nobody() {
    hostile_inputs_and_messages(1_000);
}

#[test]
#[ignore = "full form: takes 10 min"]
fn r01_a_hundred_thousand_hostile_messages_in_frontier() {
    hostile_inputs_and_messages(100_000);
}
