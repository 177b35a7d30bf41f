//! Unfinished handshakes: newcomers come in while thousands of handshakes are begun and never finished.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
};

use super::{
    BOTS, SIZE, STRANGER_ID_FIRST,
    newcomers::{Flooded, Newcomers, flooded},
    start_with,
};
use crate::{
    abuse::check_unharmed,
    address::token,
    child::alone,
    crowd::Crowd,
    figures::{at_rate, both},
    half_open::HalfOpen,
};

/// Handshakes at `per_s` that go as far as the challenge.
fn half_open(server: SocketAddr, count: u64, per_s: u64) -> HalfOpen {
    let mut strangers = HalfOpen::new(server, true);
    at_rate(count, per_s, |number| {
        strangers.begin(number as usize, token(server, STRANGER_ID_FIRST + number));
        strangers.listen();
    });
    strangers.listen_on(200);
    strangers
}

struct HalfOpenCrowd {
    count: u64,
    per_s: u64,
    newcomers_per_s: u32,
    clients_max: u32,
    share_min: f64,
}

fn newcomers_come_in_through_half_open_handshakes(form: &HalfOpenCrowd) {
    let _alone = alone();
    let settings = format!("[server]\nclients_max = {}\n", form.clients_max);
    let server = start_with("half-open", &settings, &SIZE);
    let crowd = Crowd::start(server.address, BOTS);
    let mut strangers = None;
    let Flooded { window, newcomers } = flooded(&server, form.newcomers_per_s, || {
        strangers = Some(half_open(server.address, form.count, form.per_s));
    });
    let strangers = strangers.expect("the flood is over");
    let soon = newcomers.share_in_soon();
    println!(
        "{} of {} handshakes half open; of {} newcomers {:.1} % in within 2 s, at most {:?}; {window:?}",
        strangers.challenged,
        form.count,
        newcomers.took.len() + newcomers.failed,
        soon * 100.0,
        newcomers.took.iter().max(),
    );
    assert!(strangers.challenged * 10 >= form.count * 9, "{} of {}", strangers.challenged, form.count);
    assert!(strangers.ledger.worst <= 1.0, "{} B back for each sent", strangers.ledger.worst);
    // They come one after the other, and each waits for some frames.
    let least = form.count / form.per_s * u64::from(form.newcomers_per_s) / 4;
    assert!(newcomers.took.len() as u64 >= least && soon >= form.share_min, "{:?}", newcomers.took);
    check_unharmed(crowd, server);
}

#[test]
fn newcomers_come_in_while_handshakes_are_left_half_open() {
    // 512 handshakes may wait: at 1,000 a second each is evicted after half a second.
    let form = HalfOpenCrowd { count: 2_000, per_s: 1_000, newcomers_per_s: 16, clients_max: 128, share_min: 0.999 };
    newcomers_come_in_through_half_open_handshakes(&form);
}

#[test]
#[ignore = "full form: takes a minute"]
fn r09_five_hundred_newcomers_through_a_hundred_thousand_half_open() {
    let form = HalfOpenCrowd { count: 100_000, per_s: 1_667, newcomers_per_s: 9, clients_max: 600, share_min: 0.999 };
    newcomers_come_in_through_half_open_handshakes(&form);
}

/// The negative control: where only four handshakes may wait, a crowd pushes everybody out before they answer.
#[test]
fn a_server_with_too_few_places_to_wait_is_noticed() {
    let _alone = alone();
    let server = start_with("few-places", "[server]\nclients_max = 1\n", &SIZE);
    let over = AtomicBool::new(false);
    let crowd_out = || {
        half_open(server.address, 4_000, 4_000);
        over.store(true, Ordering::Relaxed);
    };
    let (_, newcomers) = both(crowd_out, || Newcomers::come(server.address, 8, &over));
    let soon = newcomers.share_in_soon();
    println!("{} in, {} not, {soon:.3} soon", newcomers.took.len(), newcomers.failed);
    assert!(soon < 0.999, "{:?}", newcomers.took);
    assert!(server.stop().status.success());
}
