//! Promises of reactive worlds, on the virtual clock: with nobody saying anything they do not tick, and clients and server
//! are silent but for keep-alives; what one says all hear a tick later at most; what has a rate of its own keeps it,
//! however fast messages come; a client keeps its world awake at the world's rate and no faster; and the same mail gives
//! the same world, whoever computes it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bevy_ecs::prelude::*;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{inspection::WorldHash, prelude::*};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_net::transport::Impairment;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings, Totals};

const RATE: Hertz = Hertz(20);

#[derive(Pack, Debug, Clone, Copy)]
struct Say {
    said_ns: u64,
}

impl ClientRequest for Say {}

/// To everybody in the room.
#[derive(Clone, Debug, PartialEq, Replicate)]
struct Heard {
    said_us: u32,
}

impl ReplicatedEvent for Heard {
    const RELIABLE: bool = true;
    const RANGE_M: Option<f32> = None;
}

/// What hangs on the wall.
#[derive(Component, Clone, Debug, PartialEq, Replicate)]
struct Board {
    lines: u32,
    lot: u32,
}

/// What the room's systems did.
#[derive(Resource, Clone, Default)]
struct Done {
    ticks: Arc<AtomicU64>,
    fixed: Arc<AtomicU64>,
    spread: Arc<AtomicU64>,
    passed_ns: Arc<AtomicU64>,
    dt_us_max: Arc<AtomicU64>,
}

#[derive(Resource)]
struct HeatMap(Every<u32>);

/// A room in which people talk.
struct Room {
    rate: Hertz,
    pace: Pace,
    /// Jobs at a rate of their own. `None`: there are none; `Some(true)`: they are broken, and are done in each tick.
    jobs_are_broken: Option<bool>,
    done: Done,
}

impl Room {
    fn quiet(pace: Pace) -> Self {
        Self { rate: RATE, pace, jobs_are_broken: None, done: Done::default() }
    }
}

impl WorldKind for Room {
    fn name(&self) -> &str {
        "room"
    }

    fn tick_rate(&self) -> Hertz {
        self.rate
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Board>().event::<Heard>().request::<Say>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(self.done.clone()).init_resource::<Time>();
        world.world_mut().spawn((Replicated::default(), Board { lines: 0, lot: 0 }));
        world.add_systems(Update, talk);
        match self.jobs_are_broken {
            None => {}
            Some(false) => {
                world.insert_resource(HeatMap(Every::new(20.per_second(), 0..40)));
                world.add_systems_every(Hertz(5), fixed).add_systems(Update, spread);
            }
            Some(true) => _ = world.add_systems(Update, (fixed, spread_in_each_tick)),
        }
    }
}

fn talk(
    done: Res<Done>,
    tick: Res<TickInfo>,
    time: Res<Time>,
    said: Requests<Say>,
    mut boards: Query<&mut Board>,
    mut rng: ResMut<WorldRng>,
    mut events: ResMut<Events>,
) {
    done.ticks.fetch_add(1, Ordering::Relaxed);
    done.passed_ns.fetch_add(time.delta().as_nanos() as u64, Ordering::Relaxed);
    done.dt_us_max.fetch_max((tick.dt_s * 1e6) as u64, Ordering::Relaxed);
    assert!((tick.dt_s - time.delta_secs()).abs() < 1e-3, "both say how long a tick is");
    for (_, say) in said.read() {
        for mut board in &mut boards {
            board.lines += 1;
            board.lot = rng.0.random();
        }
        events.send(&Heard { said_us: (say.said_ns / 1_000) as u32 }, Audience::Everyone, "room.heard");
    }
}

fn fixed(done: Res<Done>) {
    done.fixed.fetch_add(1, Ordering::Relaxed);
}

fn spread(done: Res<Done>, tick: Res<TickInfo>, mut heat_map: ResMut<HeatMap>) {
    done.spread.fetch_add(heat_map.0.due(tick.now()).len() as u64, Ordering::Relaxed);
}

fn spread_in_each_tick(done: Res<Done>) {
    done.spread.fetch_add(1, Ordering::Relaxed);
}

/// Says something in one thought of so many; 0: never.
struct Talker {
    says_every: u64,
    thoughts: u64,
    /// Says something in its next thought.
    speaks_up: Arc<AtomicU64>,
    heard: u64,
    latency_us_max: u64,
}

impl Talker {
    fn every(says_every: u64) -> Self {
        Self::after(says_every, 0)
    }

    /// One that has had so many thoughts already.
    fn after(says_every: u64, thoughts: u64) -> Self {
        Self { says_every, thoughts, speaks_up: Arc::default(), heard: 0, latency_us_max: 0 }
    }
}

impl Behaviour for Talker {
    fn think(&mut self, now: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        for Heard { said_us } in client.events_of::<Heard>() {
            self.heard += 1;
            self.latency_us_max = self.latency_us_max.max(now.0 / 1_000 - u64::from(said_us));
        }
        self.thoughts += 1;
        let is_turn = self.says_every > 0 && self.thoughts.is_multiple_of(self.says_every);
        if client.world().is_some() && (is_turn || self.speaks_up.swap(0, Ordering::Relaxed) > 0) {
            client.request(&Say { said_ns: now.0 }).expect("it is in a world");
        }
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new().with("heard", self.heard).with("latency_us_max", self.latency_us_max)
    }
}

/// A room with so many people, all of whom think 60 times a second, and some seconds after they came in.
fn simulation(
    room: Room,
    people: usize,
    says_every: u64,
    settings: impl FnOnce(&mut SimulationSettings),
) -> Simulation {
    let mut own = SimulationSettings::new(room.protocol().schema(), 7);
    own.think_hz = 60;
    own.token_timeout_s = 60;
    own.server.overload.on = false;
    settings(&mut own);
    let (mut simulation, _) = Simulation::new(&own, |server| {
        let room = server.add_kind(room)?;
        server.create_world(room, 1)
    })
    .expect("it is a room");
    for index in 0..people as u64 {
        // They do not speak all at once.
        simulation.join(Box::new(Talker::after(says_every, index * says_every / people as u64)));
    }
    simulation.run_for(20.0);
    let totals = simulation.totals();
    assert_eq!(totals.playing, people as u64, "{totals:#?}");
    simulation
}

#[derive(Debug, Clone, Copy)]
struct Counts {
    ticks: u64,
    listenings: u64,
    skipped: u64,
    packets_in: u64,
    packets_out: u64,
}

fn counts(simulation: &mut Simulation) -> Counts {
    let mut of = |name| simulation.server_mut().count_of(name);
    Counts {
        ticks: of("server.ticks"),
        listenings: of("server.listenings"),
        skipped: of("server.ticks_skipped"),
        packets_in: of("world.datagrams_in"),
        packets_out: of("net.packets_out"),
    }
}

/// What a simulation counts in so many seconds.
fn counted(simulation: &mut Simulation, seconds: f64) -> Counts {
    let before = counts(simulation);
    simulation.run_for(seconds);
    let after = counts(simulation);
    Counts {
        ticks: after.ticks - before.ticks,
        listenings: after.listenings - before.listenings,
        skipped: after.skipped - before.skipped,
        packets_in: after.packets_in - before.packets_in,
        packets_out: after.packets_out - before.packets_out,
    }
}

/// Promise: with 200 clients who say nothing the world ticks once in ten seconds, and each client costs two packets in
/// five seconds each way. The control is the same room at a fixed rate.
#[test]
fn who_says_nothing_costs_next_to_nothing() {
    let mut reactive = simulation(Room::quiet(Pace::Reactive), 200, 0, |_| ());
    let quiet = counted(&mut reactive, 60.0);
    println!("reactive: {quiet:?}");
    assert!((5..=7).contains(&quiet.ticks), "{quiet:?}");
    assert!(quiet.listenings <= 60 * u64::from(RATE.0), "{quiet:?}");
    // Positions are a tick, a listening, or nothing.
    let positions = quiet.ticks + quiet.listenings + quiet.skipped;
    assert!(positions.abs_diff(60 * u64::from(RATE.0)) <= 100, "{quiet:?}");
    // 24 each in a minute, and some more or less at its ends.
    for packets in [quiet.packets_in, quiet.packets_out] {
        assert!((200 * 22..=200 * 26).contains(&packets), "{quiet:?}");
    }
    let mut fixed = simulation(Room::quiet(Pace::Fixed), 200, 0, |_| ());
    let control = counted(&mut fixed, 60.0);
    println!("fixed: {control:?}");
    assert!(control.ticks >= 1_199 && control.packets_in > 2 * quiet.packets_in, "{control:?}");
}

/// Promise: what one says all others have heard within a tick of the grid, two frames and a thought; then all is quiet again.
#[test]
fn what_one_says_all_hear_a_tick_later() {
    let mut simulation = simulation(Room::quiet(Pace::Reactive), 199, 0, |_| ());
    let speaker = Talker::every(0);
    let speaks_up = speaker.speaks_up.clone();
    simulation.join(Box::new(speaker));
    simulation.run_for(30.0);
    for times in 1..=20 {
        // Not in step with anything.
        simulation.run_for(0.37 + f64::from(times) * 0.013);
        let before = counts(&mut simulation);
        speaks_up.store(1, Ordering::Relaxed);
        simulation.run_for(0.2);
        let totals = simulation.totals();
        assert_eq!(totals.counter("heard"), 200 * u64::from(times as u32), "all of them, each once");
        assert!(counts(&mut simulation).ticks - before.ticks <= 3, "said in one tick");
    }
    // A tick, and the frames of who speaks, of the server and of who hears.
    let latency_us = simulation.totals().counter("latency_us_max");
    assert!(latency_us <= 50_000 + 3 * 16_667 + 1_000, "{latency_us} us");
    simulation.run_for(5.0);
    let after = counted(&mut simulation, 20.0);
    assert!(after.ticks <= 3, "{after:?}");
    assert_eq!(simulation.totals().state_errors, 0);
}

/// Jobs in 20 s at so many messages a second, with the ticks that there were.
fn jobs(says_every: u64, jobs_are_broken: bool) -> [u64; 3] {
    let room = Room { rate: Hertz(60), jobs_are_broken: Some(jobs_are_broken), ..Room::quiet(Pace::Reactive) };
    let done = room.done.clone();
    let mut simulation = simulation(room, 12, says_every, |_| ());
    let read = || [&done.fixed, &done.spread, &done.ticks].map(|count| count.load(Ordering::Relaxed));
    let before = read();
    simulation.run_for(20.0);
    let after = read();
    [0, 1, 2].map(|index| after[index] - before[index])
}

fn is_kept(done: u64, wanted: u64) -> bool {
    done.abs_diff(wanted) as f64 <= 0.02 * wanted as f64
}

/// Promise: at ten times the messages, with which the world ticks at its highest rate, every job at a rate of its own and
/// every rate-limited one keeps its rate within 2 %. The control does them in each tick.
#[test]
fn jobs_keep_their_rate_at_ten_times_the_messages() {
    // 12 a second, and 120.
    for (says_every, ticks) in [(60, 200..=600), (6, 1_000..=1_210)] {
        let [fixed, spread, ticked] = jobs(says_every, false);
        println!("{} messages/s: {fixed} of 100, {spread} of 400, {ticked} ticks", 12 * 60 / says_every);
        assert!(ticks.contains(&ticked), "{ticked} ticks");
        assert!(is_kept(fixed, 100) && is_kept(spread, 400), "{fixed} of 100, {spread} of 400");
    }
    let broken = [60, 6].map(|says_every| jobs(says_every, true));
    assert!(broken.iter().any(|[fixed, spread, _]| !is_kept(*fixed, 100) && !is_kept(*spread, 400)), "{broken:?}");
    assert!(broken[1][0] > 2 * broken[0][0], "done as often as messages come: {broken:?}");
}

/// Promise: time goes on while a world rests, and no tick is longer than the longest rest.
#[test]
fn time_goes_on_while_the_world_rests() {
    let room = Room::quiet(Pace::Reactive);
    let done = room.done.clone();
    let mut simulation = simulation(room, 3, 0, |_| ());
    let before = done.passed_ns.load(Ordering::Relaxed);
    simulation.run_for(100.0);
    let passed_s = (done.passed_ns.load(Ordering::Relaxed) - before) as f64 / 1e9;
    assert!((89.0..=111.0).contains(&passed_s), "{passed_s} of 100 s");
    assert!(
        (9_900_000..=10_050_000).contains(&done.dt_us_max.load(Ordering::Relaxed)),
        "{done:?}",
        done = done.dt_us_max
    );
}

/// Runs a room with talk in which packets are lost.
fn run_on(workers_count: usize) -> (Vec<WorldHash>, Totals, u64) {
    let room = Room { jobs_are_broken: Some(false), ..Room::quiet(Pace::Reactive) };
    let impairment = Impairment { loss: 0.05, reordering: 0.05, delay: Nanos::from_millis(30), ..Impairment::NONE };
    let mut simulation = simulation(room, 150, 900, |settings| {
        (settings.workers_count, settings.impairment, settings.hash) = (workers_count, impairment, true);
    });
    simulation.run_for(40.0);
    let ticks = simulation.server_mut().count_of("server.ticks");
    (simulation.hashes().to_vec(), simulation.totals(), ticks)
}

/// Promise: the same mail at the same positions gives the same world in the same ticks on 1, 2 and 8 workers, and each
/// client's copies are the server's.
#[test]
fn the_same_on_any_number_of_workers() {
    let (hashes, totals, ticks) = run_on(1);
    assert!(totals.counter("heard") > 1_000 && totals.state_errors == 0, "{totals:#?}");
    assert!(hashes.len() as u64 == ticks && ticks < 60 * u64::from(RATE.0), "{ticks} ticks, some left out");
    for workers_count in [2, 8] {
        let other = run_on(workers_count);
        assert!(other.0 == hashes, "{workers_count} workers");
        assert_eq!((other.1.counter("heard"), other.2), (totals.counter("heard"), ticks), "{workers_count} workers");
    }
}

/// A client that floods its world, as far as it may.
struct Flooder;

impl Behaviour for Flooder {
    fn think(&mut self, now: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        client.events_of::<Heard>().for_each(drop);
        for _ in 0..3 {
            // Some are heard, some mean nothing to anybody.
            let _ = client.request(&Say { said_ns: now.0 });
            client.send_raw_unreliable(&[200, 1, 2]);
        }
    }
}

/// Promise: who keeps a reactive world awake makes it tick at its rate and no faster, as if it were not reactive; what
/// others pay is what they would pay there. When it is gone the world rests.
#[test]
fn a_client_keeps_its_world_awake_at_the_worlds_rate_and_no_faster() {
    let mut simulation = simulation(Room::quiet(Pace::Reactive), 20, 0, |_| ());
    let flooder = simulation.join(Box::new(Flooder));
    simulation.run_for(2.0);
    let flooded = counted(&mut simulation, 20.0);
    assert!(flooded.ticks + flooded.listenings <= 20 * u64::from(RATE.0) + 2, "{flooded:?}");
    simulation.leave(flooder);
    simulation.run_for(10.0);
    let after = counted(&mut simulation, 60.0);
    assert!(after.ticks <= 7, "{after:?}");
}

/// Promise: a client whose line is dead is let go although its world rests.
#[test]
fn who_is_gone_without_a_word_is_let_go_while_the_world_rests() {
    let mut simulation = simulation(Room::quiet(Pace::Reactive), 5, 0, |settings| settings.token_timeout_s = 10);
    simulation.impair(Impairment { loss: 1.0, ..Impairment::NONE });
    simulation.run_for(13.0);
    assert_eq!(simulation.server_mut().report().players, 0);
}
