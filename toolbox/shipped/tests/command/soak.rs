//! A soak: players play, some of them on bad networks, others come in and go, pages are asked for, and nothing of the server
//! grows.

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use throng_lab::relay::{Relay, RelayCounts};
use throng_platform::process::rss_bytes_of;

use crate::{
    abuse::check_unharmed,
    child::{Server, alone, settings_file},
    crowd::Crowd,
    figures::both,
    floods::newcomers::Newcomers,
    lifecycle::{get, metric},
    network::{Cell, Disorder, LOOPBACK},
};

struct Form {
    serve: &'static [&'static str],
    awake: usize,
    /// Of these, so many on each network of [`bad_networks`].
    on_each_bad: usize,
    newcomers_per_s: u32,
    /// Until what fills once is full: buffers, the newcomers' first worlds.
    settle: Duration,
    length: Duration,
    /// Growth from the first third of the length to the last, by their medians.
    grown_bytes_max: i64,
    /// What a frame takes in the last third, in times of the first.
    frame_growth_max: f64,
}

/// Those on which a part plays all the time: the fifth of R08, which delays, reorders and doubles, and one that loses a
/// twentieth beside that.
fn bad_networks() -> [Cell; 2] {
    let fifth = Cell::thirty_six()[4];
    assert_eq!((fifth.rtt_ms, fifth.disorder), (50, Disorder::Rough), "the fifth of thirty-six");
    [fifth, Cell { loss: 0.05, rtt_ms: 150, ..fifth }]
}

/// Players behind a relay.
struct BadLine {
    cell: Cell,
    relay: Relay,
    crowd: Crowd,
}

impl BadLine {
    fn start(server: &Server, cell: Cell, seed: u64, players: usize) -> Self {
        let line = cell.impairment();
        let relay = Relay::start(LOOPBACK, server.address, seed, line, line).expect("sockets are left");
        let crowd = Crowd::start_as(server.address, Some(relay.address()), 100_000 * seed, players);
        Self { cell, relay, crowd }
    }

    /// Nobody fell out, what was shown is what the server had, and the line was as bad as it should be.
    fn finish(self) {
        let RelayCounts { taken, lost, doubled, held_back, refused, .. } = self.relay.counts();
        println!("{:?}: of {taken} datagrams {lost} were lost, {doubled} doubled, {held_back} overtaken", self.cell);
        assert_eq!(refused, 0, "the relay itself lost some");
        assert!(doubled as f64 > 0.03 * taken as f64 && held_back as f64 > 0.05 * taken as f64, "a calm line");
        assert!(lost as f64 >= 0.8 * self.cell.loss * taken as f64, "{lost} of {taken} lost");
        // Good-byes get through.
        self.relay.impair(self.cell.unimpaired(), self.cell.unimpaired());
        let saw = self.crowd.finish();
        assert_eq!((saw.players_connected, saw.disconnects), (saw.players_wanted, 0), "{saw:?}");
        assert_eq!((saw.state_errors, saw.protocol_errors), (0, 0), "{saw:?}");
        assert!(saw.state_checks > 0, "no errors among no checks prove nothing");
    }
}

/// One look at the server.
struct Look {
    rss_bytes: i64,
    /// See [`files_of`].
    files: usize,
    threads: usize,
    frames: f64,
    frame_s: f64,
}

impl Look {
    fn at(server: &Server) -> Self {
        let process = format!("/proc/{}", server.pid());
        // Before the server is asked for a page, whose connection it closes when it comes to it.
        let (files, threads) = (files_of(&process), entries(&process, "task").count());
        let (_, text) = get(server.admin_address, "/metrics");
        Self {
            rss_bytes: rss_bytes_of(server.pid()).expect("it runs") as i64,
            files,
            threads,
            frames: metric(&text, "throng_server_frames_total"),
            frame_s: metric(&text, "throng_server_frame_seconds_sum"),
        }
    }
}

fn entries(process: &str, folder: &str) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(format!("{process}/{folder}")).expect("it runs").filter_map(Result::ok).map(|entry| entry.path())
}

/// Open files, without those that the recorder holds of threads that are there: a thread has them from its first scope on,
/// and some threads have nothing to do for an hour. What it holds of threads that are gone counts.
fn files_of(process: &str) -> usize {
    let targets: Vec<PathBuf> = entries(process, "fd").filter_map(|link| fs::read_link(link).ok()).collect();
    let tracks_switches = targets.iter().any(|target| target.ends_with("anon_inode:[perf_event]"));
    let of_thread = if tracks_switches { 3 } else { 1 };
    let is_of_living = |target: &&PathBuf| target.ends_with("schedstat") && target.exists();
    targets.len() - of_thread * targets.iter().filter(is_of_living).count()
}

/// The middle one by size.
fn median<T: Ord + Copy>(looks: &[Look], of: impl Fn(&Look) -> T) -> T {
    let mut values: Vec<T> = looks.iter().map(of).collect();
    values.sort_unstable();
    values[values.len() / 2]
}

/// Mean length of a frame. (ms)
fn frame_ms(looks: &[Look]) -> f64 {
    let [first, .., last] = looks else { panic!("two looks are not much") };
    (last.frame_s - first.frame_s) / (last.frames - first.frames) * 1e3
}

/// A look a second.
fn watch(server: &Server, length: Duration) -> Vec<Look> {
    let begin = Instant::now();
    let mut looks = Vec::new();
    while begin.elapsed() < length {
        std::thread::sleep(Duration::from_secs(1));
        looks.push(Look::at(server));
    }
    looks
}

fn nothing_grows(form: &Form) {
    let _alone = alone();
    // One page of 2 MiB is more than may be grown.
    let settings = settings_file("soak", "[server]\nhuge_pages = false\n").display().to_string();
    let server = Server::start(&[form.serve, &["--config", &settings]].concat());
    let bad = bad_networks();
    let crowd = Crowd::start(server.address, form.awake - bad.len() * form.on_each_bad);
    let lines: Vec<BadLine> =
        (1..).zip(bad).map(|(seed, cell)| BadLine::start(&server, cell, seed, form.on_each_bad)).collect();
    let over = AtomicBool::new(false);
    let soak = || {
        std::thread::sleep(form.settle);
        let looks = watch(&server, form.length);
        over.store(true, Ordering::Relaxed);
        looks
    };
    let (looks, newcomers) = both(soak, || Newcomers::come(server.address, form.newcomers_per_s, &over));
    let third = looks.len() / 3;
    let (first, last) = (&looks[..third], &looks[looks.len() - third..]);
    let grown_bytes = median(last, |look| look.rss_bytes) - median(first, |look| look.rss_bytes);
    let frames_ms = [first, last].map(frame_ms);
    // What leaks is never given back: the fewest of a third hold it, and nothing that is open for a moment.
    let fewest = |of: fn(&Look) -> usize| [first, last].map(|looks| looks.iter().map(of).min());
    let (files, threads) = (fewest(|look| look.files), fewest(|look| look.threads));
    println!(
        "{} newcomers in {:?}: {grown_bytes} bytes more, files {files:?}, threads {threads:?}, a frame takes {frames_ms:?} ms",
        newcomers.took.len(),
        form.settle + form.length
    );
    assert!(newcomers.share_in_soon() >= 0.99, "{} came in, {} did not", newcomers.took.len(), newcomers.failed);
    assert!(grown_bytes <= form.grown_bytes_max, "it grew by {grown_bytes} bytes");
    assert!(files[1] <= files[0] && threads[1] <= threads[0], "files {files:?}, threads {threads:?}");
    assert!(frames_ms[1] <= frames_ms[0] * form.frame_growth_max, "{frames_ms:?}");
    lines.into_iter().for_each(BadLine::finish);
    check_unharmed(crowd, server);
}

/// The recorder's ring fills for minutes: it is for the full form.
#[test]
fn r39_nothing_grows_while_players_come_and_go() {
    nothing_grows(&Form {
        serve: &["--players", "32", "--npcs", "64", "--no-recorder"],
        awake: 16,
        on_each_bad: 4,
        newcomers_per_s: 5,
        settle: Duration::from_secs(8),
        length: Duration::from_secs(18),
        // Half a minute of play still fills what is used again: tokens that are remembered, pools of worlds.
        grown_bytes_max: 2 << 20,
        frame_growth_max: f64::INFINITY,
    });
}

#[test]
#[ignore = "full form: takes an hour, and wants a release build and a quiet machine"]
fn r39_nothing_grows_in_an_hour() {
    nothing_grows(&Form {
        serve: &["--players", "256", "--npcs", "512"],
        awake: 200,
        on_each_bad: 50,
        newcomers_per_s: 5,
        settle: Duration::from_secs(1_800),
        length: Duration::from_secs(1_800),
        // 1 MiB an hour; from the middle of one third to the middle of the other it is a third of an hour.
        grown_bytes_max: (1 << 20) / 3,
        frame_growth_max: 1.05,
    });
}
