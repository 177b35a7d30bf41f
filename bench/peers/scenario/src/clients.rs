//! The clients' process: decodes what arrives and holds it against the scene.
//!
//! A copy is right if place, yaw and health are those of one and the same tick, at most `BEHIND_TICKS_MAX` ago,
//! within 1 cm and 1.5 degrees (and what an f32 loses). Missing is what was in sight all that time and is not held;
//! too much is what is held and has not been within sight for all that time.

use std::collections::VecDeque;
use std::io::BufReader;
use std::net::UdpSocket;

use crate::sight::is_beyond;
use crate::wire::{ADDRESSES, CONNECTED, END, Outbox, REPORT, read_turn};
use crate::{Clients, Held, Pose, SIGHT_M, Scene, Sight, Terms};

/// How far off a copy may be. (m, degrees)
const PLACE_M: f32 = 0.0102;
const YAW_DEGREES: f32 = 1.5;
/// Ticks between two checks.
const CHECK_PERIOD: u32 = 10;

#[derive(Default)]
struct Checks {
    checked: u64,
    wrong: u64,
    missing: u64,
    extra: u64,
    behind_ticks_max: u32,
    first_wrong: Option<String>,
}

/// The scene and the sampled clients' sight at an earlier tick.
struct Past {
    poses: Vec<Pose>,
    health: Vec<u16>,
    visible: Vec<Vec<u32>>,
}

pub(crate) fn run<C: Clients>(terms: &Terms) {
    let mut from = BufReader::with_capacity(1 << 16, std::io::stdin());
    let mut out = Outbox::new(std::io::stdout());
    let sockets = if terms.udp { bind(terms.clients) } else { Vec::new() };
    let addresses: Vec<String> = sockets.iter().map(|socket| socket.local_addr().expect("bound").to_string()).collect();
    out.end(ADDRESSES, addresses.join("\n").as_bytes());
    let (mut scene, mut sight) = (Scene::new(terms), Sight::new(terms));
    let mut clients = C::new(terms, &scene);
    let sampled = clients.sampled(terms);
    let mut text = Vec::new();
    loop {
        let mark = read_turn(&mut from, &mut text, |client, packet| clients.receive(client, packet));
        drain(&sockets, &mut clients);
        if mark.expect("the server speaks") == CONNECTED {
            break;
        }
        clients.connect(&mut out);
        out.end(END, &[]);
    }
    let (mut checks, mut past) = (Checks::default(), VecDeque::new());
    loop {
        let mark = read_turn(&mut from, &mut text, |client, packet| clients.receive(client, packet));
        if mark.expect("the server speaks") != END {
            break;
        }
        drain(&sockets, &mut clients);
        scene.step();
        sight.look(&scene);
        remember(&mut past, &scene, &sight, &sampled, C::BEHIND_TICKS_MAX);
        clients.tick(&mut out);
        out.end(END, &[]);
        if scene.tick >= terms.warmup && scene.tick.is_multiple_of(CHECK_PERIOD) {
            for (index, &client) in sampled.iter().enumerate() {
                check(&mut clients, client, index, &scene, &past, &mut checks);
            }
        }
    }
    let report = serde_json::json!({
        "clients": sampled.len(),
        "checked": checks.checked,
        "wrong": checks.wrong,
        "missing": checks.missing,
        "extra": checks.extra,
        "behind_ticks_max": checks.behind_ticks_max,
        "first_wrong": checks.first_wrong,
    });
    out.end(REPORT, report.to_string().as_bytes());
}

fn bind(count: u32) -> Vec<UdpSocket> {
    let one = || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port and a descriptor are free (see `ulimit -n`)");
        socket.set_nonblocking(true).expect("sockets can be told not to wait");
        socket
    };
    (0..count).map(|_| one()).collect()
}

/// Takes what has come through sockets.
fn drain<C: Clients>(sockets: &[UdpSocket], clients: &mut C) {
    let mut datagram = [0; 2048];
    for (client, socket) in (0..).zip(sockets) {
        while let Ok(len) = socket.recv(&mut datagram) {
            clients.receive(client, &mut datagram[..len]);
        }
    }
}

fn remember(past: &mut VecDeque<Past>, scene: &Scene, sight: &Sight, sampled: &[u32], behind_ticks: u32) {
    let visible = sampled.iter().map(|&client| sight.visible[client as usize].clone()).collect();
    past.push_front(Past { poses: scene.poses.clone(), health: scene.health.clone(), visible });
    past.truncate(behind_ticks as usize + 1);
}

fn check<C: Clients>(
    clients: &mut C,
    client: u32,
    index: usize,
    scene: &Scene,
    past: &VecDeque<Past>,
    checks: &mut Checks,
) {
    let mut held = Vec::new();
    clients.held(client, &mut held);
    held.sort_by_key(|one: &Held| one.number);
    let was_visible = |age: usize, number: u32| past[age].visible[index].binary_search(&number).is_ok();
    for &number in &past[0].visible[index] {
        let is_long_here = (1..past.len()).all(|age| was_visible(age, number));
        if is_long_here && held.binary_search_by_key(&number, |one| one.number).is_err() {
            checks.missing += 1;
        }
    }
    for one in &held {
        let was_here = (0..past.len()).any(|age| was_visible(age, one.number));
        if !was_here && is_beyond(scene, client, one.number, SIGHT_M + C::BEYOND_M) {
            checks.extra += 1;
        }
        checks.checked += 1;
        let age = (0..past.len()).find(|&age| agrees(one, &past[age]));
        match age {
            Some(age) => checks.behind_ticks_max = checks.behind_ticks_max.max(age as u32),
            None => {
                checks.wrong += 1;
                checks.first_wrong.get_or_insert_with(|| {
                    let pose = past[0].poses[one.number as usize];
                    format!("tick {}, client {client}: {one:?} instead of {pose:?}", scene.tick)
                });
            }
        }
    }
}

fn agrees(held: &Held, past: &Past) -> bool {
    let index = held.number as usize;
    let (Some(pose), Some(&health)) = (past.poses.get(index), past.health.get(index)) else {
        return false;
    };
    let near = |axis: usize| (held.pose.place[axis] - pose.place[axis]).abs() <= PLACE_M;
    let turn = (held.pose.yaw - pose.yaw).to_degrees().rem_euclid(360.0);
    (0..3).all(near) && turn.min(360.0 - turn) <= YAW_DEGREES && held.health == health
}
