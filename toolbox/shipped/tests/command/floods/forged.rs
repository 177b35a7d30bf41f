//! Forged packets: whoever writes under a player's address neither has the player dismissed nor takes its place.

use std::{
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::time::Nanos;

use super::{BOTS, SIZE};
use crate::{
    abuse::{check_unharmed, refused},
    address::token,
    child::{Server, alone},
    crowd::Crowd,
    figures::{at_rate, both},
    player::Player,
    strangers::Forger,
};

/// Packets under the address of somebody who plays, of whom the last datagram is in `seen`: a third is noise, a third
/// has the head of that one, as somebody on the path could forge, and a third is `old` ones once more.
fn forge(player: SocketAddr, server: SocketAddr, old: &[Vec<u8>], seen: &Mutex<Vec<u8>>, per_s: u64, seconds: u64) {
    /// Kind, and the longest sequence.
    const HEAD_BYTES: usize = 9;
    let mut forger = Forger::open().expect("it was opened before");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    at_rate(per_s * seconds, per_s, |number| {
        let mut datagram = old[rng.random_range(0..old.len())].clone();
        match number % 3 {
            0 => rng.fill(&mut datagram[..]),
            1 => {
                datagram[..HEAD_BYTES].copy_from_slice(&lock(seen)[..HEAD_BYTES]);
                rng.fill(&mut datagram[HEAD_BYTES..]);
            }
            _ => {}
        }
        forger.send(player, server, &datagram);
    });
}

fn lock(seen: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Later than this an input that is answered was lost, and one after it was not: four times what it takes in peace.
const ANSWERED_SOON: Nanos = Nanos::from_millis(250);

/// Inputs that were answered soon in so many seconds, of a player who sends twenty a second.
fn inputs_answered(player: &mut Player, seen: &Mutex<Vec<u8>>, seconds: u64) -> usize {
    let mut answered = 0;
    player.play_until(Duration::from_secs(seconds), |player| {
        if let Some(sent) = player.sent.drain(..).next_back() {
            *lock(seen) = sent;
        }
        let samples = std::iter::from_fn(|| player.client.next_input_to_update());
        answered += samples.filter(|&took| took <= ANSWERED_SOON).count();
        !player.is_connected()
    });
    answered
}

/// Promise: who forges a player's address neither has it dismissed nor takes its place.
fn forged_packets_crowd_nobody_out(per_s: u64, seconds: u64) {
    let _alone = alone();
    if Forger::open().is_none() {
        return;
    }
    let server = Server::start(&SIZE);
    let crowd = Crowd::start(server.address, BOTS);
    let mut player = Player::enter(token(server.address, 1));
    player.play_until(Duration::from_secs(1), |_| false);
    let old: Vec<Vec<u8>> = player.sent.iter().filter(|datagram| datagram.len() >= 30).cloned().collect();
    let seen = Mutex::new(old[0].clone());
    while player.client.next_input_to_update().is_some() {}
    let quiet = inputs_answered(&mut player, &seen, seconds);
    let address = player.address();
    let (_, attacked) = both(
        || forge(address, server.address, &old, &seen, per_s, seconds),
        || inputs_answered(&mut player, &seen, seconds),
    );
    println!("of {} inputs {quiet} were answered, and under the flood {attacked}", 20 * seconds);
    assert!(player.is_connected(), "forgers had it dismissed: {:?}", player.client.state());
    assert!(attacked * 10 >= quiet * 9, "{attacked} inputs came through, {quiet} without a flood");
    assert_eq!(player.client.stats().state_errors, 0);
    player.leave();
    let ended = check_unharmed(crowd, server);
    println!("refused: {} over the allowance", refused(&ended, "over_allowance"));
}

#[test]
fn packets_under_a_players_address_do_not_crowd_it_out() {
    forged_packets_crowd_nobody_out(20_000, 2);
}

#[test]
#[ignore = "full form: takes 2 min"]
fn r10_packets_under_a_players_address_for_a_minute() {
    forged_packets_crowd_nobody_out(50_000, 60);
}
