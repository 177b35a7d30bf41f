//! Connect floods: junk under tens of thousands of addresses costs no memory, no tick and no newcomer's time.
//!
//! What a junk datagram costs the processor is told here and judged where nothing else is measured with it: in
//! `runtime/net/tests/handshake_abuse/junk.rs`.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::process::rss_bytes_of;

use super::{
    BOTS, LISTEN_EVERY, SIZE, STRANGER_ID_FIRST,
    newcomers::{Flooded, Newcomers, flooded},
    start_with, what_is_genuine,
};
use crate::{
    abuse::{Mutations, check_unharmed},
    address::token,
    child::alone,
    crowd::Crowd,
    figures::{at_rate, both, check_ticks_kept},
    half_open::HalfOpen,
};

struct ConnectFlood {
    per_s: u64,
    seconds: u64,
    bots: usize,
    size: [&'static str; 4],
    more_missed_share_max: f64,
}

const RSS_GROWN_BYTES_MAX: i64 = 1 << 20;

fn a_connect_flood_disturbs_nobody(form: &ConnectFlood) {
    const SOURCES: usize = 65_536;
    let _alone = alone();
    // One page of 2 MiB is more than what is looked for.
    let server = start_with("connect-flood", "[server]\nhuge_pages = false\n", &form.size);
    let genuine = what_is_genuine(server.address);
    let crowd = Crowd::start(server.address, form.bots);
    // Bots have been everywhere, and newcomers too: what grows with play has grown.
    let length = Duration::from_secs(form.seconds);
    let over = AtomicBool::new(false);
    let settle = || {
        std::thread::sleep(length / 2);
        over.store(true, Ordering::Relaxed);
    };
    let _settled = both(settle, || Newcomers::come(server.address, 5, &over));
    let quiet = flooded(&server, 5, || std::thread::sleep(length)).window;

    let count = form.per_s * form.seconds;
    let Flooded { window: attacked, newcomers } = flooded(&server, 5, || {
        let mut mutations = Mutations { rng: Xoshiro256PlusPlus::seed_from_u64(5), genuine };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
        let mut strangers = HalfOpen::new(server.address, true);
        let mut datagram = Vec::new();
        at_rate(count, form.per_s, |number| {
            mutations.fill(&mut datagram);
            strangers.send(rng.random_range(0..SOURCES), &datagram);
            if number % LISTEN_EVERY == 0 {
                strangers.listen();
            }
        });
    });

    let junk_us = (attacked.cpu_s - quiet.cpu_s) * 1e6 / count as f64;
    let soon = newcomers.share_in_soon();
    println!(
        "quiet {quiet:?}\nflood {attacked:?}\n{count} junk datagrams at {:.2} us of the server's processor time each; \
         of {} newcomers {:.1} % in within 2 s, at most {:?}",
        junk_us,
        newcomers.took.len() + newcomers.failed,
        soon * 100.0,
        newcomers.took.iter().max(),
    );
    assert!(attacked.packets_in >= 0.9 * count as f64, "the flood did not arrive: {attacked:?}");
    let grown = attacked.rss_grown_bytes - quiet.rss_grown_bytes.max(0);
    assert!(grown <= RSS_GROWN_BYTES_MAX, "strangers made it keep {grown} bytes: {quiet:?} {attacked:?}");
    check_ticks_kept(&quiet, &attacked, form.more_missed_share_max);
    assert!(
        newcomers.took.len() >= form.seconds as usize && soon >= 0.99,
        "{:?}, {} failed",
        newcomers.took,
        newcomers.failed
    );
    check_unharmed(crowd, server);
}

#[test]
fn a_connect_flood_of_many_addresses_disturbs_nobody() {
    let form = ConnectFlood { per_s: 10_000, seconds: 2, bots: BOTS, size: SIZE, more_missed_share_max: 0.05 };
    a_connect_flood_disturbs_nobody(&form);
}

#[test]
#[ignore = "full form: takes 3 min, and wants a release build"]
fn r04_fifty_thousand_junk_datagrams_a_second_among_two_hundred_players() {
    let size = ["--players", "224", "--npcs", "448"];
    let form = ConnectFlood { per_s: 50_000, seconds: 60, bots: 200, size, more_missed_share_max: 0.01 };
    a_connect_flood_disturbs_nobody(&form);
}

/// The negative control: a server that keeps something for every address that has not proven itself grows, and it
/// shows.
#[test]
fn a_server_that_keeps_something_for_every_source_is_noticed() {
    const SOURCES: usize = 4_000;
    let _alone = alone();
    let settings = "[server]\nplain_netcode = true\nopenings_per_frame_max = 1000\n";
    let server = start_with("keeps-something", settings, &SIZE);
    let rss_bytes = || rss_bytes_of(server.pid()).expect("it runs") as i64;
    let rss_before = rss_bytes();
    let mut strangers = HalfOpen::new(server.address, false);
    at_rate(SOURCES as u64, 4_000, |number| {
        strangers.begin(number as usize, token(server.address, STRANGER_ID_FIRST + number));
        strangers.listen();
    });
    strangers.listen_on(200);
    let grown = rss_bytes() - rss_before;
    println!("{} handshakes wait in {grown} bytes", strangers.challenged);
    assert!(grown > RSS_GROWN_BYTES_MAX, "{} handshakes wait in {grown} bytes", strangers.challenged);
    assert!(server.stop().status.success());
}
