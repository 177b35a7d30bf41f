//! The server's process: times its ticks and prints what they cost.

use std::io::BufReader;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::figures::{cpu_ns, memory_peak_mb, percentile};
use crate::wire::{ADDRESSES, CONNECTED, END, Outbox, REPORT, read_turn};
use crate::{Scene, Server, Sight, Terms};

/// Turns that a handshake may take.
const CONNECT_TURNS_MAX: u32 = 2000;
/// A run that is slow is measured over so many ticks at least; the packets of so many are hashed.
const TICKS_MIN: usize = 20;
/// The scene is hashed at this tick, which every run reaches.
const HASH_TICK: u32 = 20;

struct Other {
    child: Child,
    from: BufReader<std::process::ChildStdout>,
    text: Vec<u8>,
}

impl Other {
    fn start() -> (Self, Outbox) {
        let own = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(own);
        command.args(std::env::args_os().skip(1)).arg("--is-clients");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the clients' process starts");
        let from = BufReader::with_capacity(1 << 16, child.stdout.take().expect("piped"));
        let to = child.stdin.take().expect("piped");
        (Self { child, from, text: Vec::new() }, Outbox::new(to))
    }

    fn receive(&mut self, each: impl FnMut(u32, &mut [u8])) -> u32 {
        read_turn(&mut self.from, &mut self.text, each).expect("the clients' process answers")
    }
}

/// Keeps this process and the one that it starts on one core, where they take turns: a core that sleeps while the other
/// side is at work wakes up slow and cold, by how much depends on who else is on the host.
fn stay_on_one_core() {
    let this = Pid::from_raw(0);
    let one = sched_getaffinity(this).ok().and_then(|cores| {
        let last = (0..CpuSet::count()).rev().find(|&core| cores.is_set(core).unwrap_or(false))?;
        let mut one = CpuSet::new();
        one.set(last).ok()?;
        Some(one)
    });
    if one.is_none_or(|one| sched_setaffinity(this, &one).is_err()) {
        eprintln!("the host does not let this process stay on one core; expect noise");
    }
}

pub(crate) fn run<S: Server>(peer: &str, terms: &Terms) {
    if terms.workers <= 1 && !terms.on_all_cores {
        stay_on_one_core();
    }
    let (mut other, mut out) = Other::start();
    let (mut scene, mut sight) = (Scene::new(terms), Sight::new(terms));
    assert_eq!(other.receive(|_, _| {}), ADDRESSES);
    let addresses: Vec<SocketAddr> =
        String::from_utf8_lossy(&other.text).lines().filter_map(|line| line.parse().ok()).collect();
    let mut server = S::new(terms, &scene, &addresses);
    let mut turns = 0;
    while !server.connect(&mut out) {
        turns += 1;
        assert!(turns < CONNECT_TURNS_MAX, "not everybody got in");
        out.end(END, &[]);
        other.receive(|client, packet| server.deliver(client, packet));
    }
    out.end(CONNECTED, &[]);

    let (mut cpu_ms, mut wall_ms) = (Vec::new(), Vec::new());
    let (mut changes, mut visible, mut bytes_before, mut packets_before, mut updates_before) = (0, 0, 0, 0, 0);
    let (mut scene_hash, mut bytes_hash, mut began) = (0, 0, Instant::now());
    let ticks_end = terms.warmup.max(HASH_TICK) + terms.ticks;
    for tick in 1..=ticks_end {
        if tick == terms.warmup.max(HASH_TICK) + 1 {
            (bytes_before, packets_before) = (out.packet_bytes, out.packets);
            updates_before = server.updates().unwrap_or(0);
            began = Instant::now();
        }
        scene.step();
        sight.look(&scene);
        let (wall, cpu) = (Instant::now(), cpu_ns());
        server.tick(&scene, &sight);
        let (cpu, wall) = (cpu_ns() - cpu, wall.elapsed());
        server.hand_over(&mut out);
        out.end(END, &[]);
        assert_eq!(other.receive(|client, packet| server.deliver(client, packet)), END);
        if tick == HASH_TICK {
            scene_hash = scene.hash();
        }
        if tick > terms.warmup.max(HASH_TICK) {
            cpu_ms.push(cpu as f64 / 1e6);
            if cpu_ms.len() <= TICKS_MIN {
                bytes_hash = out.hash;
            }
            wall_ms.push(wall.as_secs_f64() * 1e3);
            changes += sight.changes;
            visible += sight.visible.iter().map(Vec::len).sum::<usize>() as u64;
            if cpu_ms.len() >= TICKS_MIN && began.elapsed().as_secs_f64() > terms.seconds_max {
                break;
            }
        }
    }
    out.end(REPORT, &[]);
    assert_eq!(other.receive(|_, _| {}), REPORT);
    let checks: serde_json::Value = serde_json::from_slice(&other.text).expect("the clients' report is JSON");
    other.child.wait().expect("the clients' process ends");

    let seconds = cpu_ms.len() as f64 / 20.0;
    let bytes = (out.packet_bytes - bytes_before) as f64;
    let counted = server.updates().map(|updates| updates - updates_before);
    let updates = counted.unwrap_or(changes) as f64;
    let per_client_tick = f64::from(terms.clients) * cpu_ms.len() as f64;
    let figures = serde_json::json!({
        "peer": peer,
        "load": format!("{:?}", terms.load),
        "clients": terms.clients,
        "entities": terms.entities,
        "udp": terms.udp,
        "workers": terms.workers,
        "ticks": cpu_ms.len(),
        "cpu_ms": { "median": percentile(&cpu_ms, 0.5), "p99": percentile(&cpu_ms, 0.99), "max": percentile(&cpu_ms, 1.0) },
        "wall_ms": { "median": percentile(&wall_ms, 0.5), "p99": percentile(&wall_ms, 0.99) },
        "bytes_per_client_s": bytes / f64::from(terms.clients) / seconds,
        "packets_per_client_tick": (out.packets - packets_before) as f64 / per_client_tick,
        "updates_per_client_tick": updates / per_client_tick,
        "updates_are_counted": counted.is_some(),
        "bytes_per_update": bytes / updates,
        "visible_mean": visible as f64 / per_client_tick,
        "memory_peak_mb": memory_peak_mb(),
        "checks": checks,
        "scene_hash": format!("{scene_hash:016x}"),
        "bytes_hash": format!("{bytes_hash:016x}"),
        "more": server.more(),
        "cpu_ms_each": cpu_ms.iter().map(|ms| (ms * 1e4).round() / 1e4).collect::<Vec<_>>(),
        "wall_ms_each": wall_ms.iter().map(|ms| (ms * 1e4).round() / 1e4).collect::<Vec<_>>(),
    });
    println!("{figures}");
}
