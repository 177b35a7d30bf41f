//! What it costs that players leave: a busy market is not packed for each of them.

use throng_persistence::{Embedded, Store, disk::MemoryDisk};
use throng_simulator::SimulationSettings;

use crate::bazaar::{self, Customer, Form, Habits};

/// Leaves a second, and as many who come.
const LEAVERS_PER_S: usize = 5;

/// Cuts and bytes of a market with so many players in so many seconds, and who left.
fn busy(players: usize, seconds: usize) -> (u64, u64, usize) {
    let disk = MemoryDisk::default();
    let store = || -> Box<dyn Store> { Box::new(Embedded::on(Box::new(disk.clone())).unwrap()) };
    let mut settings = SimulationSettings::new(bazaar::protocol().schema(), 7);
    // They alone bring cuts about.
    settings.server.saves.period_s = 3_600;
    let mut bazaar = bazaar::open(&settings, Some(store()), Form::Chest);
    let customer = || Box::new(Customer(Habits { wishes: 0.1, goes: 0.0, panics: 0.0 }));
    (0..players).for_each(|_| _ = bazaar.join(customer()));
    assert!(bazaar.run_until(60.0, |bazaar| bazaar.totals().playing == players as u64), "all are in");
    let count = |bazaar: &mut throng_simulator::Simulation| {
        ["saves.cuts", "saves.bytes"].map(|name| bazaar.server_mut().count_of(name))
    };
    bazaar.run_for(2.0);
    let before = count(&mut bazaar);
    let mut left = 0;
    for _ in 0..seconds * LEAVERS_PER_S {
        let player = left % players;
        bazaar.leave(player);
        bazaar.run_for(1.0 / LEAVERS_PER_S as f64);
        bazaar.join_again(player, customer());
        left += 1;
    }
    bazaar.run_for(3.0);
    let after = count(&mut bazaar);
    assert_eq!(bazaar.totals().playing, players as u64, "and all are back");
    assert_eq!(bazaar.server_mut().saves_status().map(|status| status.leases), Some(players));
    drop(bazaar);
    bazaar::look_at(&*store().reader()).unwrap();
    (after[0] - before[0], after[1] - before[1], left)
}

#[test]
fn players_who_leave_share_the_cuts_of_their_world() {
    let (seconds, players) = (20, 60);
    let (cuts, bytes, left) = busy(players, seconds);
    println!(
        "{left} of {players} players left in {seconds} s: {cuts} cuts, {} bytes for each who left",
        bytes / left as u64
    );
    assert!(cuts as usize <= seconds + 3, "{cuts} cuts in {seconds} s");
    assert!(cuts as usize >= seconds / 2, "none waits for long: {cuts} cuts in {seconds} s");
}

#[test]
#[ignore = "a figure: 200 players, a minute"]
fn figure_of_a_busy_hub() {
    let (cuts, bytes, left) = busy(200, 60);
    println!(
        "{left} of 200 players left in 60 s: {cuts} cuts, {bytes} bytes, {} for each who left",
        bytes / left as u64
    );
}
