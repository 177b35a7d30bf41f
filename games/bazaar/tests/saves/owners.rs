//! R34: two processes on one PostgreSQL. The one that has the players stands still for longer than their leases, or dies; they
//! go on with the other. When it wakes, nothing that it writes of them is taken, and nobody has anything twice, though they deal
//! with each other all the time.

use std::{
    os::unix::net::UnixListener,
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use crate::{
    cluster::Cluster,
    folder::Folder,
    life::{Heard, Life, PATIENCE, alone, bazaar, wait_for},
    place::{Place, Terms, write_settings},
    players::Players,
};

const PLAYERS: usize = 8;
/// The shortest that the settings take.
const LEASE_S: u32 = 5;
/// From when their server stands still until all of them play on the other, by the contract.
const STUCK_MAX: Duration = Duration::from_secs(10);

/// Two servers, and what was done on both of them.
struct Pair {
    folders: [Folder; 2],
    lives: [Option<Life>; 2],
    place: Place,
    all: Heard,
}

impl Pair {
    fn start(name: &str, cluster: &Cluster) -> Pair {
        let place = Place::of(cluster);
        let folders = [0, 1].map(|which| {
            let folder = Folder::new(&format!("{name}-{which}"));
            let terms = Terms {
                lease_s: LEASE_S,
                process: 1 + which,
                first_market: 11 + 10 * u64::from(which),
                ..Terms::default()
            };
            write_settings(folder.path(), &place, &terms);
            folder
        });
        let lives = [0, 1].map(|which: usize| Some(Life::start(folders[which].path())));
        Pair { folders, lives, place, all: Heard::default() }
    }

    fn life(&self, which: usize) -> &Life {
        self.lives[which].as_ref().expect("it lives")
    }

    fn hear(&mut self, heard: Heard) {
        for (player, deeds) in heard.granted {
            let entry = self.all.granted.entry(player).or_default();
            *entry = deeds.max(*entry);
        }
    }

    /// Players of `from` play, lose their server, and play on the other. Returns how long they were stuck.
    fn hand_over(&mut self, from: usize, dies: bool, number: u32) -> Duration {
        let to = 1 - from;
        let players = Players::play(self.life(from).address, 1, PLAYERS);
        self.life(from).wait_for_receipts(2 * PLAYERS as u64);
        let began = Instant::now();
        if dies {
            let heard = self.lives[from].take().expect("it lives").kill();
            self.hear(heard);
        } else {
            self.life(from).signal(Signal::SIGSTOP);
        }
        drop(players);
        let again = Players::play(self.life(to).address, 1, PLAYERS);
        let before = self.life(to).heard().done;
        let is_in = |player: &u64| {
            let now = self.life(to).heard().done.get(player).copied();
            now.is_some() && now != before.get(player).copied()
        };
        wait_for("all players on the other server", PATIENCE, || {
            (1..=PLAYERS as u64).all(|it| is_in(&it)).then_some(())
        });
        let stuck = began.elapsed();
        if dies {
            self.lives[from] = Some(Life::start(self.folders[from].path()));
        } else {
            self.life(from).signal(Signal::SIGCONT);
        }
        // Whoever woke hears that its players are gone, saves what it thinks they are, and is refused.
        thread::sleep(Duration::from_millis(1_500));
        self.life(to).wait_for_receipts(PLAYERS as u64);
        let heard = self.life(to).heard();
        self.hear(heard);
        drop(again);
        // They have left when their leases are given up.
        thread::sleep(Duration::from_millis(700));
        let wealth = self.place.wealth().unwrap_or_else(|why| panic!("{number}, dies: {dies}: {why}"));
        self.all.check_granted(&wealth).unwrap_or_else(|why| panic!("{number}, dies: {dies}: {why}"));
        stuck
    }
}

fn hand_over_again_and_again(name: &str, times: u32) -> Duration {
    let Some(cluster) = Cluster::start(name) else { return Duration::ZERO };
    let mut pair = Pair::start(name, &cluster);
    let (mut slowest, mut stood_still) = (Duration::ZERO, 0);
    for time in 1..=times {
        // From the first to the second and back, by turns by standing still and by dying.
        let dies = time % 4 >= 2;
        stood_still += u32::from(!dies);
        let from = time as usize % 2;
        slowest = slowest.max(pair.hand_over(from, dies, time));
    }
    let mut lost = 0;
    for which in 0..2 {
        let ended = pair.lives[which].take().expect("it lives").end(|_| {});
        assert!(ended.status.success(), "{}", ended.log);
        let counters = &ended.report.as_ref().expect("it reports")["counters"];
        lost += counters["saves.leases_lost"].as_u64().unwrap_or_default();
    }
    pair.place.wealth().unwrap_or_else(|why| panic!("at the end: {why}"));
    println!(
        "{times} times: {stood_still} owners stood still, {lost} leases were lost to others; stuck for {slowest:?} at most"
    );
    assert!(lost > 0, "no stale owner was found out");
    slowest
}

#[test]
fn a_stale_owner_writes_nothing_and_nobody_has_anything_twice() {
    hand_over_again_and_again("owners", 2);
}

/// Stopped between two statements of a transaction, an owner holds the table that all owners write to.
#[test]
fn an_owner_that_stands_still_in_a_transaction_keeps_no_other_from_saving() {
    let _alone = alone();
    let Some(cluster) = Cluster::start("owners-transaction") else { return };
    let pair = Pair::start("owners-transaction", &cluster);
    let [stopped, other] = [0, 1].map(|which| pair.life(which));
    let _players = Players::play(stopped.address, 1, PLAYERS);
    stopped.wait_for_receipts(1);
    let held = cluster.hold("LOCK TABLE throng_leases IN SHARE ROW EXCLUSIVE MODE");
    wait_for("a save that waits for its turn", PATIENCE, || {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        (cluster.ask(waiting) != "0").then_some(())
    });
    stopped.signal(Signal::SIGSTOP);
    // Now it is its turn.
    drop(held);
    let began = Instant::now();
    let _others = Players::play(other.address, 1 + PLAYERS as u64, PLAYERS);
    other.wait_for_receipts(PLAYERS as u64);
    let stuck = began.elapsed();
    stopped.signal(Signal::SIGCONT);
    stopped.wait_for_receipts(1);
    println!("the other's players were saved after {stuck:?}");
    assert!(stuck <= STUCK_MAX, "{stuck:?}");
}

/// Two servers have worlds of one number, by a mistake in the settings; or the second is to go on for the first, which died.
#[test]
fn a_world_of_a_server_that_lives_is_refused_and_that_of_a_dead_one_waited_for() {
    let Some(cluster) = Cluster::start("owners-worlds") else { return };
    let place = Place::of(&cluster);
    let folders = [1, 2].map(|process| {
        let folder = Folder::new(&format!("owners-worlds-{process}"));
        write_settings(folder.path(), &place, &Terms { lease_s: LEASE_S, process, ..Terms::default() });
        folder
    });
    let first = Life::start(folders[0].path());
    let _players = Players::play(first.address, 1, PLAYERS);
    first.wait_for_receipts(PLAYERS as u64);
    let _ledger = UnixListener::bind(folders[1].path().join("ledger")).unwrap();
    let words = ["serve", "--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--crashes", "off"];
    let refused = bazaar(folders[1].path(), &words).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success(), "{said}");
    let market = ::bazaar::MARKETS[0];
    assert!(said.contains(&format!("the world that is saved as {market} is process 1's")), "{said}");
    first.wait_for_receipts(1);
    first.kill();
    // Its leases have 5 s at most.
    let second = Life::start(folders[1].path());
    let _players = Players::play(second.address, 1, PLAYERS);
    second.wait_for_receipts(PLAYERS as u64);
    let ended = second.end(|_| {});
    assert!(ended.status.success(), "{}", ended.log);
    // It has given them up.
    let began = Instant::now();
    let third = Life::start(folders[0].path());
    println!("a world that was given up was had after {:?}", began.elapsed());
    assert!(!third.log().contains("is waited for until its lease ends"), "{}", third.log());
    place.wealth().unwrap();
}

// Five tests of a hundred times: `cargo xtask reliability --minutes` goes on between them.

fn a_hundred_owners(name: &str) {
    let _alone = alone();
    let slowest = hand_over_again_and_again(name, 100);
    assert!(slowest <= STUCK_MAX, "{slowest:?}");
}

#[test]
#[ignore = "full form: takes 14 min"]
fn r34_owners_that_stand_still_or_die_1_to_100() {
    a_hundred_owners("owners-100");
}

#[test]
#[ignore = "full form: takes 14 min"]
fn r34_owners_that_stand_still_or_die_101_to_200() {
    a_hundred_owners("owners-200");
}

#[test]
#[ignore = "full form: takes 14 min"]
fn r34_owners_that_stand_still_or_die_201_to_300() {
    a_hundred_owners("owners-300");
}

#[test]
#[ignore = "full form: takes 14 min"]
fn r34_owners_that_stand_still_or_die_301_to_400() {
    a_hundred_owners("owners-400");
}

#[test]
#[ignore = "full form: takes 14 min"]
fn r34_owners_that_stand_still_or_die_401_to_500() {
    a_hundred_owners("owners-500");
}
