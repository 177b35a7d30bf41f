//! Moves: who goes to another world with what they own is told of it at once, and the disk is not asked.
//!
//! Each move is a commit (`chaos` beside this holds what becomes of them when things fail). Here nothing fails, and what
//! is held is what a player notices.

use std::sync::atomic::Ordering;

use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

use crate::{
    bazaar::{self, Customer, Form, Habits},
    disk::FlakyDisk,
};

const PLAYERS: usize = 50;
/// Two ticks of the slower market.
const GAP_MAX: Nanos = Nanos(100_000_000);

/// What a player was shown last, and when that was news.
#[derive(Default, Clone, Copy)]
struct Shown {
    world: Option<u32>,
    tick: u32,
    at: Nanos,
}

/// Moves so far and the longest time for which a player was shown nothing new, in so many frames.
fn watch(bazaar: &mut Simulation, frames: usize) -> (u64, Nanos) {
    let (mut shown, mut moves, mut gap) = (vec![Shown::default(); PLAYERS], 0, Nanos(0));
    for _ in 0..frames {
        bazaar.step();
        let now = bazaar.now();
        for (player, shown) in bazaar.players().iter().zip(&mut shown) {
            let client = player.client();
            let is_now = Shown { world: client.world().map(|world| world.id), tick: client.newest_tick(), at: now };
            if (is_now.world, is_now.tick) == (shown.world, shown.tick) {
                continue;
            }
            if shown.world.is_some() {
                gap = gap.max(now.saturating_sub(shown.at));
                moves += u64::from(is_now.world != shown.world);
            }
            *shown = is_now;
        }
    }
    (moves, gap)
}

/// Promise: ten thousand moves with saves on; nobody sees a gap of more than two ticks, and not a byte is read from the
/// disk once all are in.
#[test]
fn ten_thousand_moves_read_nothing_and_leave_no_gap() {
    let disk = FlakyDisk::default();
    let mut settings = SimulationSettings::new(bazaar::protocol().schema(), 1);
    settings.server.saves.period_s = 2;
    let mut bazaar = bazaar::open(&settings, Some(disk.store()), Form::ChestAndCheckpoints);
    for _ in 0..PLAYERS {
        bazaar.join(Box::new(Customer(Habits { wishes: 0.6, goes: 0.3, panics: 0.0 })));
    }
    bazaar.run_for(5.0);
    assert_eq!(bazaar.totals().playing, PLAYERS as u64);

    let (read, commits) = (disk.bytes_read.load(Ordering::Relaxed), bazaar.server_mut().count_of("saves.commits"));
    let mut all = (0, Nanos(0));
    while all.0 < 10_000 {
        let (moves, gap) = watch(&mut bazaar, 600);
        assert!(moves > 0, "nobody goes anywhere: {all:?}");
        all = (all.0 + moves, all.1.max(gap));
    }
    let read = disk.bytes_read.load(Ordering::Relaxed) - read;
    let commits = bazaar.server_mut().count_of("saves.commits") - commits;
    println!(
        "{} moves, at most {} ms without news, {commits} commits, {read} bytes read",
        all.0,
        all.1.as_millis_f64()
    );
    assert!(all.1 <= GAP_MAX, "{:?}", all.1);
    assert_eq!(read, 0, "bytes read from the disk");
    assert_eq!((bazaar.totals().disconnects, bazaar.totals().state_errors), (0, 0));

    let saved = bazaar.server_mut().control().save_now();
    assert!(bazaar.run_until(5.0, |_| saved.try_take().is_some_and(|saved| saved.is_ok())), "it is saved");
    drop(bazaar);
    let wealth = bazaar::look_at(&*disk.store().reader()).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(wealth.purses.len(), PLAYERS);
}
