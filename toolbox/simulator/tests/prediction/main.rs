//! The promise: what a player steers is shown at once and rightly. Nothing is corrected on a clean line; on a bad one
//! corrections are few and bounded; three packets lost in a row cost nothing; clocks go on evenly; and what it comes to
//! between two players is what the formula says.
//!
//! The shipped server, and clients as bots have them, on lines that lose and delay.

mod field;
mod runner;

use std::sync::{Arc, Mutex};

use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::Behaviour;
use throng_client::{
    Client,
    interpolation::{InterpolationSettings, Moment, Track},
    peekers_advantage::Peek,
};
use throng_net::{control, transport::Impairment};
use throng_platform::time::Nanos;
use throng_simulator::Simulation;

use crate::{
    field::{BEGIN_M, Once, Repeated, Runner, Step, TICKS_PER_S, field, settings},
    runner::{Notebook, Notes, RunsAbout},
};

/// One frame of the simulation (s).
const FRAME_S: f64 = 1.0 / 60.0;

/// A runner with this kind of steps on this line, after so many seconds.
fn after<S: Step>(loss: f64, one_way_ms: u64, seconds: f64) -> (Simulation, Notebook) {
    let (mut simulation, ()) = Simulation::new(&settings(loss, Nanos::from_millis(one_way_ms)), field).unwrap();
    let notebook = Notebook::default();
    simulation.join(RunsAbout::<S>::to_and_fro(&notebook));
    simulation.run_for(seconds);
    (simulation, notebook)
}

fn print(what: &str, Notes { stats, inputs_sent, .. }: &Notes) {
    let at_most_cm = stats.corrected_m_max * 100.0;
    println!("{what}: {} corrections of {inputs_sent} inputs, {at_most_cm:.1} cm at most", stats.corrections);
}

/// Promise: on a clean line there is no correction at all, not even by what rounding loses.
#[test]
fn a_clean_line_has_no_correction() {
    for one_way_ms in [0, 40] {
        let (_, notebook) = after::<Repeated>(0.0, one_way_ms, 30.0);
        let notes = notebook.read();
        print(&format!("clean, {} ms there and back", 2 * one_way_ms), &notes);
        assert!(notes.inputs_sent > 550 && notes.stats.checks > 500, "{:?}", notes.stats);
        assert_eq!((notes.stats.corrections, notes.moved_m_max), (0, 0.0), "{:?}", notes.stats);
    }
}

/// Promise: at 150 ms there and back and 5 % loss each way nothing is corrected where inputs are repeated; where they are
/// not, a lost one is noticed and corrected, by less than a player runs in four steps.
#[test]
fn a_bad_line_has_bounded_corrections_and_repeats_leave_none() {
    let (mut simulation, notebook) = after::<Repeated>(0.05, 75, 60.0);
    let repeated = notebook.read();
    print("150 ms, 5 % loss, 3 repeats", &repeated);
    assert_eq!((repeated.stats.corrections, repeated.moved_m_max), (0, 0.0), "{:?}", repeated.stats);
    assert!(simulation.server_mut().count_of("net.inputs_repeated") > 2_000, "each came in four packets");

    let (mut simulation, notebook) = after::<Once>(0.05, 75, 60.0);
    let once = notebook.read();
    print("150 ms, 5 % loss, no repeats", &once);
    assert!((20..=120).contains(&once.stats.corrections), "one in twenty is lost: {:?}", once.stats);
    assert!(once.stats.corrected_m_max < 1.0, "four steps at 5 m/s: {:?}", once.stats);
    assert_eq!(simulation.server_mut().count_of("net.inputs_repeated"), 0);

    // The line is mended, and both agree again.
    simulation.impair(Impairment::NONE);
    simulation.run_for(3.0);
    let mended = notebook.read();
    let (predicted, told) = (mended.predicted.expect("a state"), mended.told.expect("a state"));
    let behind = predicted.steps.wrapping_sub(told.steps);
    assert!(behind <= 3, "{behind} steps that are on their way");
    let off_m = (predicted.place[0] - told.place[0]).abs();
    assert!(off_m < 0.25 * (f32::from(behind) + 1.0), "{off_m} m");
}

/// Promise: in a crowd that a client's budget or a packet does not hold its own player is told with every tick all the same,
/// so that nothing is corrected, whether packets are lost or not.
#[test]
fn a_crowd_has_no_correction() {
    // Some 54 runners, so that of 130 each has its turn in every third tick; and all of them, in two packets a tick.
    for (loss, budget_bytes_per_tick) in [(0.0, 600), (0.05, 600), (0.05, 2_400)] {
        let mut settings = settings(loss, Nanos::from_millis(40));
        settings.server.replication.budget_bytes_per_tick = budget_bytes_per_tick;
        let (mut simulation, ()) = Simulation::new(&settings, field).unwrap();
        let notebooks = [(); 130].map(|()| Notebook::default());
        for notebook in &notebooks {
            simulation.join(RunsAbout::<Repeated>::to_and_fro(notebook));
        }
        simulation.run_for(15.0);
        for notebook in &notebooks {
            let notes = notebook.read();
            assert!(notes.stats.checks > 200, "{:?}", notes.stats);
            assert_eq!((notes.stats.corrections, notes.moved_m_max), (0, 0.0), "{:?}", notes.stats);
        }
    }
}

/// Sends nothing through the line for so many inputs, and returns how many of them the server has missed.
fn missed_of_lost<S: Step>(inputs: u64) -> u64 {
    let (mut simulation, notebook) = after::<S>(0.0, 20, 10.0);
    let sent = |notebook: &Notebook| notebook.read().inputs_sent;
    let before = sent(&notebook);
    simulation.impair(Impairment { loss: 1.0, ..Impairment::NONE });
    assert!(simulation.run_until(2.0, |_| sent(&notebook) == before + inputs), "the clock goes on in silence");
    simulation.impair(Impairment { delay: Nanos::from_millis(20), ..Impairment::NONE });
    // Until the next input is sent, and long enough for all to be answered.
    simulation.run_for(3.0);
    let notes = notebook.read();
    let told = notes.told.expect("a state");
    let predicted = notes.predicted.expect("a state");
    let on_their_way = u64::from(predicted.steps.wrapping_sub(told.steps));
    assert!(on_their_way <= 5, "{on_their_way}");
    // What is predicted after a correction has as many steps as the server has taken.
    notes.inputs_sent - u64::from(predicted.steps)
}

/// Promise: three lost in a row cost nothing. More cost what is more; and without repeats each is missed.
#[test]
fn three_lost_in_a_row_cost_nothing() {
    assert_eq!(missed_of_lost::<Repeated>(3), 0);
    assert_eq!(missed_of_lost::<Repeated>(5), 2);
    assert_eq!(missed_of_lost::<Once>(3), 3);
}

/// Says a step to the east under a number of its own choice. (m/s)
fn say(client: &mut Client, epoch: u8, number: u16, speed: u8) {
    let [low, high] = number.to_le_bytes();
    client.send_raw_unreliable(&[control::INPUT, epoch, low, high, 0, speed, 0]);
}

/// Says every input many times, and old ones again, with other words.
struct SaysAgain {
    number: u16,
}

impl Behaviour for SaysAgain {
    fn think(&mut self, _now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
        let Some(epoch) = client.world().map(|world| world.epoch) else { return };
        self.number += 1;
        let mut say = |number: u16, speed: u8| say(client, epoch, number, speed);
        (0..4).for_each(|copy| say(self.number, copy));
        // Some taken just now, some that are out of the window, and one from before the first.
        (1..4).for_each(|back| say(self.number.saturating_sub(back).max(1), 5));
        say(self.number.saturating_sub(100).max(1), 5);
        say(60_000, 5);
    }
}

/// Promise: whatever a client says again, each number is a step once; the rest is dropped and counted.
#[test]
fn who_says_inputs_again_makes_no_more_steps() {
    let (mut simulation, ()) = Simulation::new(&settings(0.0, Nanos::from_millis(10)), field).unwrap();
    simulation.join(Box::new(SaysAgain { number: 0 }));
    simulation.run_for(10.0);
    let client = simulation.players()[0].client();
    let own = client.own_entity().expect("it has one");
    let steps = client.replicas().get::<Runner>(own).expect("it is seen").steps;
    // 60 numbers a second in ten seconds, less the log-in; each nine times.
    assert!((400..=600).contains(&steps), "{steps} steps");
    let repeated = simulation.server_mut().count_of("net.inputs_repeated");
    assert!(repeated >= u64::from(steps) * 7, "{repeated} repeated of {steps} steps");
    assert_eq!(simulation.totals().playing, 1, "it is served on");
}

/// Says each second input ahead of the one before it.
struct SaysLate {
    number: u16,
}

impl Behaviour for SaysLate {
    fn think(&mut self, _now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
        let Some(epoch) = client.world().map(|world| world.epoch) else { return };
        self.number += 2;
        say(client, epoch, self.number, 1);
        say(client, epoch, self.number - 1, 1);
    }
}

/// Promise: an input that was overtaken is taken, and told of.
#[test]
fn inputs_that_come_late_are_steps_and_are_counted() {
    let (mut simulation, ()) = Simulation::new(&settings(0.0, Nanos::from_millis(10)), field).unwrap();
    simulation.join(Box::new(SaysLate { number: 0 }));
    simulation.run_for(5.0);
    let client = simulation.players()[0].client();
    let own = client.own_entity().expect("it has one");
    let steps = u64::from(client.replicas().get::<Runner>(own).expect("it is seen").steps);
    assert!(steps > 400, "{steps} steps of 120 a second");
    let late = simulation.server_mut().count_of("net.inputs_late");
    assert!((2 * late).abs_diff(steps) < 20, "{late} late ones of {steps}, but for those on their way");
}

/// Promise: an honest client's repeats take nothing of its allowance: 20 inputs a second, said twice each and more until they
/// are confirmed, and 30 messages are allowed.
#[test]
fn repeats_that_are_declared_are_free() {
    let mut settings = settings(0.05, Nanos::from_millis(40));
    settings.server.server.client_messages_per_s_max = 30;
    let (mut simulation, ()) = Simulation::new(&settings, field).unwrap();
    let notebook = Notebook::default();
    simulation.join(RunsAbout::<Repeated>::to_and_fro(&notebook));
    simulation.run_for(30.0);
    let (notes, server) = (notebook.read(), simulation.server_mut());
    let repeated = server.count_of("net.inputs_repeated");
    assert!(repeated > 500 && notes.stats.checks > 400, "{repeated} repeated, {:?}", notes.stats);
    assert_eq!((server.count_of("net.messages_over_allowance"), notes.stats.corrections), (0, 0), "{:?}", notes.stats);
}

/// Promise: who says inputs more often than their kind declares pays for each that is beyond, and goes in the end.
#[test]
fn repeats_beyond_what_is_declared_are_charged() {
    let mut settings = settings(0.0, Nanos::from_millis(10));
    settings.server.server.client_messages_per_s_max = 100;
    let (mut simulation, ()) = Simulation::new(&settings, field).unwrap();
    simulation.join(Box::new(SaysAgain { number: 0 }));
    simulation.run_for(10.0);
    // 60 numbers a second, each nine times: one is charged as an input, and five as repeats.
    assert!(simulation.server_mut().count_of("net.messages_over_allowance") > 200, "two seconds of its rate");
    assert_eq!(simulation.totals().playing, 0, "it was dismissed");
}

/// Looks at its clocks.
struct Watcher {
    shown: Arc<Mutex<Shown>>,
    before: Option<(u64, u32)>,
}

#[derive(Debug, Default)]
struct Shown {
    looks: u64,
    inputs_due: u64,
    clock_jumps: u64,
    lead_ms: f64,
    newest_tick: u32,
}

impl Behaviour for Watcher {
    fn think(&mut self, now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
        let (Some(seen), Some(input_tick)) = (client.seen(now), client.input_tick(now)) else { return };
        let (tick, part) = seen.moment();
        let parts = u64::from(tick) * 256 + u64::from(part);
        if let Some((parts_before, input_tick_before)) = self.before.replace((parts, input_tick)) {
            assert!(parts >= parts_before && input_tick >= input_tick_before, "a clock went back");
        }
        let mut shown = self.shown.lock().unwrap();
        shown.looks += 1;
        shown.inputs_due += u64::from(client.due_inputs(now));
        shown.clock_jumps = client.stats().clock_jumps;
        shown.lead_ms = client.input_lead().expect("it is in a world").as_millis_f64();
        shown.newest_tick = client.newest_tick();
        let _ = client.send_input(now, &Repeated::new([1, 1]));
    }
}

/// Promise: on a line with jitter, losses, doubles and another order no clock goes back, none jumps, and inputs are due as
/// often as the server ticks.
#[test]
fn clocks_go_on_evenly_on_a_bad_line() {
    let (mut simulation, ()) = Simulation::new(&settings(0.0, Nanos::ZERO), field).unwrap();
    simulation.impair(Impairment::bad(0.05));
    let shown = Arc::new(Mutex::new(Shown::default()));
    simulation.join(Box::new(Watcher { shown: shown.clone(), before: None }));
    simulation.run_for(10.0);
    let ticks_and_due = |shown: &Mutex<Shown>| {
        let shown = shown.lock().unwrap();
        (u64::from(shown.newest_tick), shown.inputs_due)
    };
    let (ticks_before, due_before) = ticks_and_due(&shown);
    simulation.run_for(60.0);
    let (ticks, due) = ticks_and_due(&shown);
    let off = (ticks - ticks_before).abs_diff(due - due_before);
    let shown = shown.lock().unwrap();
    println!("{shown:?}");
    assert!(off <= 4, "{off} more or fewer than ticks");
    assert_eq!(shown.clock_jumps, 0);
    // 80 to 120 ms there and back, two frames, and up to a tick of waiting.
    assert!((80.0..280.0).contains(&shown.lead_ms), "{} ms", shown.lead_ms);
}

/// Sees somebody run, and notes where at which time.
struct Holder {
    track: Track<Runner>,
    /// When it saw how much of how many steps.
    seen: Arc<Mutex<Vec<(Nanos, f32)>>>,
}

/// How far who runs on and on at full speed comes with each step (m).
const STRIDE_M: f32 = 5.0 / TICKS_PER_S as f32;

impl Behaviour for Holder {
    fn think(&mut self, now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
        let (own, replicas) = (client.own_entity(), client.replicas());
        let runner = replicas.iter::<Runner>().find(|(id, _)| Some(*id) != own);
        if let Some((id, runner)) = runner
            && let Some(tick) = replicas.tick_of::<Runner>(id)
        {
            self.track.push(tick, runner.clone());
        }
        let Some(seen) = client.seen(now) else { return };
        let (at, settings) = (Moment::from(seen), InterpolationSettings::default());
        if let Some((runner, _)) = self.track.sample(at, TICKS_PER_S as u8, &settings) {
            self.seen.lock().unwrap().push((now, runner.place[0]));
        }
    }
}

/// Promise: by how much a peeker sees first lies between what the formula says without waiting and with all of it.
#[test]
fn peekers_advantage_is_what_the_formula_says() {
    for one_way_ms in [0, 30, 75] {
        let one_way = Nanos::from_millis(one_way_ms);
        let (mut simulation, ()) = Simulation::new(&settings(0.0, one_way), field).unwrap();
        let (notebook, seen) = (Notebook::default(), Arc::new(Mutex::new(Vec::new())));
        simulation.join(RunsAbout::<Repeated>::on_and_on(&notebook));
        simulation.join(Box::new(Holder { track: Track::default(), seen: seen.clone() }));
        simulation.run_for(30.0);
        let (stepped_at, seen) = (notebook.read().stepped_at, seen.lock().unwrap());
        // At full speed steps are equally long: behind where it would be with so many steps, by what it lost in the first.
        let behind_m = 0.9 / 0.1 * STRIDE_M;
        let lags_ms = seen.iter().filter(|(_, x)| *x > 40.0).filter_map(|(at, x)| {
            let steps = (x - BEGIN_M[0] + behind_m) / STRIDE_M;
            let (whole, part) = (steps as usize, f64::from(steps.fract()));
            // The first step makes one.
            let [from, to] = [whole.checked_sub(1)?, whole].map(|step| stepped_at.get(step));
            let (from, to) = (from?.as_millis_f64(), to?.as_millis_f64());
            Some(at.as_millis_f64() - (from + (to - from) * part))
        });
        let lags_ms: Vec<f64> = lags_ms.collect();
        let mean_ms = lags_ms.iter().sum::<f64>() / lags_ms.len() as f64;
        let delay = simulation.players()[1].client().interpolation_delay().expect("it is in a world");
        let frame = Nanos((FRAME_S * 1e9) as u64);
        let even = Peek::even(Nanos(2 * one_way.0), TICKS_PER_S, delay);
        let advantage = Peek { peeker_frame: frame, holder_frame: frame, ..even }.advantage();
        let least_ms = 2.0 * advantage.mean.as_millis_f64() - advantage.most.as_millis_f64();
        // Datagrams are delivered at the beginnings of frames, on both ways.
        let most_ms = advantage.most.as_millis_f64() + 2_000.0 * FRAME_S;
        println!(
            "{} ms there and back: {mean_ms:.1} ms, {least_ms:.1} to {most_ms:.1} by the formula, {:.1} on average",
            2 * one_way_ms,
            advantage.mean.as_millis_f64()
        );
        assert!(lags_ms.len() > 1_000, "{} samples", lags_ms.len());
        assert!((least_ms - 1.0..=most_ms).contains(&mean_ms), "{mean_ms} of {least_ms} to {most_ms}");
    }
}
