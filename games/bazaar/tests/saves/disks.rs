//! R32: a disk that is full, slow or read-only under a server that ticks. Ticks go on, nothing is granted that is not on the
//! disk, health and status say that the store is away, and saving begins again by itself.
//!
//! Ticks: none stands still for longer than a frame, and the share of them that is missed while the disk is ill may be a
//! hundredth more than while it was well, in the same server; both but for what the host took, by the server's account. A
//! machine that is busy with other builds takes some in pieces too short to be told.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use crate::{
    cluster::Cluster,
    folder::Folder,
    life::{Life, PATIENCE, alone, wait_for},
    mounted::Mounted,
    place::{Place, Terms, write_settings},
    players::Players,
};

const PLAYERS: usize = 16;
/// How much more of all ticks may be missed.
const MISSED_SHARE_MORE: f64 = 0.01;
/// Bazaar's worlds tick 20 times a second.
const FRAME_MS: f64 = 50.0;
/// A disk that stands still does so for this long.
const STALL: Duration = Duration::from_secs(5);

/// A server with players on it, and its ticks while its disk was well.
struct Played {
    life: Life,
    _players: Players,
    /// Its settings and ledger.
    _folder: Folder,
    missed_share: f64,
}

impl Played {
    fn begin(name: &str, place: &Place) -> Played {
        Played::begin_on(name, place, Terms::default())
    }

    /// One whose saves grow: what was written before leaves no room for them.
    fn begin_growing(name: &str, place: &Place) -> Played {
        Played::begin_on(name, place, Terms { hoard_bytes_max: 2_000_000, ..Terms::default() })
    }

    fn begin_on(name: &str, place: &Place, terms: Terms) -> Played {
        let folder = Folder::new(name);
        write_settings(folder.path(), place, &terms);
        let life = Life::start(folder.path());
        let players = Players::play(life.address, 1, PLAYERS);
        life.wait_for_receipts(PLAYERS as u64);
        let mut played = Played { life, _players: players, _folder: folder, missed_share: 0.0 };
        played.missed_share = played.missed_during(|| thread::sleep(Duration::from_secs(3)));
        assert!(!played.is_away_by_health(), "it is well");
        played
    }

    /// The share of ticks that are missed meanwhile.
    fn missed_during(&self, work: impl FnOnce()) -> f64 {
        let before = self.life.ticks();
        self.life.take_stall_ms_max();
        work();
        // The second in which it ended is told in the next.
        thread::sleep(Duration::from_millis(1_100));
        let [ticks, missed] = [0, 1].map(|at| self.life.ticks()[at] - before[at]);
        assert!(ticks > 50, "{ticks} ticks");
        missed as f64 / (ticks + missed) as f64
    }

    #[track_caller]
    fn check_ticks(&self, what: &str, missed_share: f64) {
        let stall_ms = self.life.take_stall_ms_max();
        let before = self.missed_share;
        println!("{what}: {missed_share:.4} of the ticks missed, {before:.4} before; {stall_ms:.1} ms at worst");
        assert!(stall_ms <= FRAME_MS, "{what}: a tick stood still for {stall_ms} ms");
        assert!(
            missed_share <= self.missed_share + MISSED_SHARE_MORE,
            "{what}: {missed_share} of {}",
            self.missed_share
        );
    }

    fn wait_until_away(&self) {
        wait_for("a store that is away", PATIENCE, || (self.life.status()["saves_are_away"] == true).then_some(()));
        assert!(self.is_away_by_health(), "health says what the status says");
    }

    fn wait_until_back(&self) {
        self.life.wait_for_receipts(1);
        wait_for("a store that is back", PATIENCE, || (self.life.status()["saves_are_away"] == false).then_some(()));
    }

    fn is_away_by_health(&self) -> bool {
        let (head, body) = get(self.life.admin_address, "/health");
        assert!(head.starts_with("HTTP/1.1 200 ") && body.contains("\"state\":\"running\""), "{head} {body}");
        body.contains("\"saves_away\":true")
    }

    /// All that was done is there.
    fn end(self, place: &Place) {
        let ended = self.life.end(|_| {});
        assert!(ended.status.success(), "{}", ended.log);
        ended.heard.check_done(&place.wealth().unwrap()).unwrap();
    }
}

fn get(admin: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(admin).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {admin}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Full, so often; by turns with room again, after which all is saved, and killed while it is full. Each time a server and a
/// file of its own: one that has grown has room in itself.
fn fill_and_free(name: &str, disk: &Mounted, cycles: u32) {
    for cycle in 1..=cycles {
        let folder = disk.fresh_folder(cycle);
        let place = Place::File(folder.clone());
        let played = Played::begin_growing(name, &place);
        let missed = played.missed_during(|| {
            disk.fill();
            played.wait_until_away();
            thread::sleep(Duration::from_secs(1));
        });
        played.check_ticks(&format!("cycle {cycle}, full"), missed);
        Mounted::check_room(&folder);
        if cycle.is_multiple_of(2) {
            let heard = played.life.kill();
            disk.clear();
            heard.check_granted(&place.wealth().unwrap()).unwrap();
        } else {
            disk.clear();
            played.wait_until_back();
            played.end(&place);
        }
    }
}

#[test]
fn a_full_disk_costs_saves_and_no_ticks() {
    let _alone = alone();
    let Some(disk) = Mounted::tmpfs("disks-tmpfs") else { return };
    fill_and_free("disks-full", &disk, 2);
}

// Four tests of fifty times: `cargo xtask reliability --minutes` goes on between them.

fn fifty_times_full_and_free(name: &str, make: fn(&str) -> Option<Mounted>) {
    let _alone = alone();
    let Some(disk) = make(name) else { return };
    fill_and_free(name, &disk, 50);
}

#[test]
#[ignore = "full form: takes 8 min"]
fn r32_memory_full_and_free_1_to_50() {
    fifty_times_full_and_free("disks-memory-50", Mounted::tmpfs);
}

#[test]
#[ignore = "full form: takes 8 min"]
fn r32_memory_full_and_free_51_to_100() {
    fifty_times_full_and_free("disks-memory-100", Mounted::tmpfs);
}

#[test]
#[ignore = "full form: takes 8 min"]
fn r32_ext4_full_and_free_1_to_50() {
    fifty_times_full_and_free("disks-ext4-50", Mounted::ext4);
}

#[test]
#[ignore = "full form: takes 8 min"]
fn r32_ext4_full_and_free_51_to_100() {
    fifty_times_full_and_free("disks-ext4-100", Mounted::ext4);
}

fn stall(name: &str, disk: &Mounted, stalls: u32) {
    let place = Place::File(disk.path().to_owned());
    let played = Played::begin(name, &place);
    for stall in 1..=stalls {
        let missed = played.missed_during(|| {
            let frozen = disk.freeze();
            // What was synced before is granted yet.
            thread::sleep(Duration::from_millis(500));
            let before = played.life.heard().receipts;
            thread::sleep(STALL);
            assert_eq!(played.life.heard().receipts, before, "nothing is granted that waits for the disk");
            played.wait_until_away();
            drop(frozen);
        });
        played.check_ticks(&format!("stall {stall}"), missed);
        played.wait_until_back();
    }
    played.end(&place);
}

/// Read-only under it, as after an error of the disk, and then mounted anew.
fn break_and_mount_again(name: &str, disk: &mut Mounted, times: u32) {
    let place = Place::File(disk.path().to_owned());
    let played = Played::begin(name, &place);
    for time in 1..=times {
        let missed = played.missed_during(|| {
            disk.abort();
            played.wait_until_away();
            thread::sleep(Duration::from_secs(1));
        });
        played.check_ticks(&format!("time {time}, read-only"), missed);
        disk.unmount();
        // It tries again, finds no file, and so lets go of the old one; then the image can be mounted as if it were new.
        thread::sleep(Duration::from_secs(11));
        assert!(disk.mount_again());
        played.wait_until_back();
    }
    played.end(&place);
}

#[test]
fn ext4_that_stands_still_costs_saves_and_no_ticks() {
    let _alone = alone();
    let Some(disk) = Mounted::ext4("disks-ext4") else { return };
    stall("disks-stall", &disk, 1);
}

#[test]
fn ext4_that_becomes_read_only_costs_saves_and_no_ticks() {
    let _alone = alone();
    let Some(mut disk) = Mounted::ext4("disks-ext4-read-only") else { return };
    break_and_mount_again("disks-read-only", &mut disk, 1);
}

#[test]
#[ignore = "full form: 20 stalls and 20 disks that become read-only"]
fn r32_twenty_stalls_and_read_only_disks() {
    let _alone = alone();
    let Some(mut disk) = Mounted::ext4("disks-ext4-full") else { return };
    stall("disks-stall-full", &disk, 20);
    break_and_mount_again("disks-read-only-full", &mut disk, 20);
}

/// PostgreSQL stands still, all of its processes.
#[test]
fn a_postgresql_that_stands_still_costs_saves_and_no_ticks() {
    let _alone = alone();
    let Some(cluster) = Cluster::start("disks-pg") else { return };
    let place = Place::of(&cluster);
    let played = Played::begin("disks-with-pg", &place);
    let missed = played.missed_during(|| {
        let stopped = cluster.stop();
        thread::sleep(Duration::from_millis(500));
        let before = played.life.heard().receipts;
        thread::sleep(STALL);
        assert_eq!(played.life.heard().receipts, before, "nothing is granted that waits for the server");
        played.wait_until_away();
        drop(stopped);
    });
    played.check_ticks("PostgreSQL stopped", missed);
    played.wait_until_back();
    played.end(&place);
}
