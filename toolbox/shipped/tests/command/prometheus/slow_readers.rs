//! Readers of metrics who take their time: they hold places of the admin port, and nothing of a tick.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::{
    child::{Server, alone},
    crowd::Crowd,
    figures::check_ticks_kept,
    lifecycle::get,
};

struct Form {
    players: usize,
    readers: usize,
    /// Pairs of a quiet window and one with readers, taken in turns.
    pairs: usize,
    window: Duration,
    /// What a tick may cost with readers, of what it costs without, as the median over the pairs. None where windows are
    /// too short for that to be told.
    tick_cost_max: Option<f64>,
    more_missed_share_max: f64,
}

/// Reads a byte now and then, and comes again when the port has had enough.
fn read_slowly(admin: SocketAddr, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(admin) else { continue };
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        let _ = write!(stream, "GET /metrics HTTP/1.1\r\nHost: {admin}\r\n\r\n");
        while !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
            match stream.read(&mut [0]) {
                Ok(0) => break,
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => break,
                _ => {}
            }
        }
    }
}

/// Time that ticks of all kinds took, and how many they were.
fn ticks_so_far(server: &Server) -> (f64, f64) {
    let (_, text) = get(server.admin_address, "/metrics");
    let sum = |name: &str| {
        let values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{')?.split(' ').nth(1));
        values.filter_map(|value| value.parse::<f64>().ok()).sum::<f64>()
    };
    (sum("throng_world_tick_seconds_sum"), sum("throng_world_tick_seconds_count"))
}

/// What a tick cost while `beside` went on (us), and the share of ticks that were missed.
fn window(server: &Server, beside: impl FnOnce()) -> (f64, crate::figures::Window) {
    // Its looks at the figures wait for their next second: what is asked right after them is of the same one.
    let before = ticks_so_far(server);
    let (window, ()) = crate::figures::window(server, beside);
    let after = ticks_so_far(server);
    ((after.0 - before.0) / (after.1 - before.1).max(1.0) * 1e6, window)
}

fn slow_readers_cost_no_tick(form: &Form) {
    let _alone = alone();
    let players = form.players.to_string();
    let server = Server::start(&["--players", &players, "--npcs", "500"]);
    let crowd = Crowd::start(server.address, form.players);
    let mut ratios = Vec::new();
    for _pair in 0..form.pairs {
        let (quiet_us, quiet) = window(&server, || std::thread::sleep(form.window));
        let is_over = AtomicBool::new(false);
        let (read_us, read) = std::thread::scope(|scope| {
            (0..form.readers).for_each(|_| drop(scope.spawn(|| read_slowly(server.admin_address, &is_over))));
            let seen = window(&server, || std::thread::sleep(form.window));
            is_over.store(true, Ordering::Relaxed);
            seen
        });
        println!("a tick cost {read_us:.1} us with {} slow readers, {quiet_us:.1} us without", form.readers);
        check_ticks_kept(&quiet, &read, form.more_missed_share_max);
        ratios.push(read_us / quiet_us);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!("of what it costs without: {median:.3}, {ratios:.3?}");
    if let Some(most) = form.tick_cost_max {
        assert!(median <= most, "a tick costs {median:.3} of what it does without readers: {ratios:.3?}");
    }
    crowd.finish();
    assert!(server.stop().status.success());
}

/// Promise: whoever reads metrics slowly costs no tick. Each window asks for metrics itself at its end, so a prompt reader
/// is answered among the slow ones.
#[test]
fn slow_readers_of_metrics_cost_no_ticks() {
    slow_readers_cost_no_tick(&Form {
        players: 20,
        readers: 8,
        pairs: 1,
        window: Duration::from_secs(1),
        tick_cost_max: None,
        more_missed_share_max: 0.1,
    });
}

/// Promise: a tick costs 1.02 of what it does without slow readers at most.
#[test]
#[ignore = "full form: takes 4 min, and wants a release build and a quiet machine"]
fn a_tick_costs_the_same_with_slow_readers_of_metrics() {
    slow_readers_cost_no_tick(&Form {
        players: 50,
        readers: 24,
        pairs: 7,
        window: Duration::from_secs(12),
        tick_cost_max: Some(1.02),
        more_missed_share_max: 0.01,
    });
}
