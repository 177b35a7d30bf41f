//! Bench: worlds come and go faster than one thread of low priority can drop them, while others keep the workers busy.
//!
//! Two runs of the shipped server with two workers and one thread for long tasks, each in a process of its own, and the same
//! in all but `[long_tasks] control`.
//!
//! - *Busy* worlds take so much of each worker that together they need [`BUSY_SHARE`] of a core: one worker can do it
//!   alone, and with two the thread of low priority gets what both leave over at the same time, (1 - share / 2) of a core.
//! - *Instances* are made for players who come, live for [`STAY`] and end. How fast they come is set by what one of them was
//!   measured to cost to make and to drop, so that both together take [`RUSH_SHARE`] of a core: more than is left over, and
//!   less than a core.
//!
//! So without control what waits to be dropped grows from second to second, and memory with it; with control a worker leaves
//! its core as soon as enough waits, and all is dropped. Whoever runs it on a host with other work to do sees that work in
//! the ticks missed.
//!
//! Writes memory, what waits and ticks missed of both runs, second by second, as one picture. A run ends early when it has
//! taken [`GROWTH_MB_MAX`] more than at its beginning. That the control itself does its part is shown on a virtual clock, by
//! `cargo test -p throng --lib long_tasks`.

use std::{
    collections::VecDeque,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use bevy_ecs::prelude::*;
use clap::Parser;
use harness::BenchArguments;
use throng::{
    lifecycle::{NewWorld, Pending},
    prelude::*,
    report::{ServerReport, ServerStatus},
    server::ServerControl,
    settings::Settings,
};
use throng_lab::pictures::{FigureOverTime, RunsOverTime, draw_over_time};
use throng_net::protocol::PrivateKey;
use throng_platform::{
    allocator::CountingAllocator,
    process::{rss_bytes, thread_cpu_time},
    sched::ThreadSums,
    signals::StopFlag,
    time::Nanos,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Of a core, for all busy worlds together: with two workers each has a quarter of a frame.
const BUSY_SHARE: f64 = 0.5;

/// Of a core, for making and dropping instances. With two workers 0.75 of one is left at best, with one all of one.
const RUSH_SHARE: f64 = 0.95;

/// How often what an instance costs is measured, each time at the rate that was found before.
const CALIBRATIONS: u32 = 4;

/// Busy worlds of 20 Hz, 20 in each frame of 60 Hz.
const BUSY_WORLDS: u32 = 60;

/// How long an instance lives.
const STAY: Duration = Duration::from_millis(500);

/// Entities of an instance, each of which holds some boxes: what a world of NPCs is made of.
const ENTITIES: usize = 700;
const BOXES: usize = 24;

/// A run that has grown by so much is over.
const GROWTH_MB_MAX: f64 = 4_000.0;

/// Instances that are asked for and not there at most: more players than that stay away.
const ASKED_MAX: usize = 4_096;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArguments,
    /// How long each run is.
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Where the picture goes.
    #[arg(long, value_name = "FILE", default_value = "reports/pile_up/pile_up.svg")]
    picture: PathBuf,
    /// One run alone, in this process: `with` control or `without`.
    #[arg(long, hide = true, requires = "per_s", value_parser = ["with", "without"])]
    run: Option<String>,
    /// So many instances a second in it.
    #[arg(long, hide = true)]
    per_s: Option<f64>,
}

/// A world that takes so long for each tick.
struct Busy(Nanos);

#[derive(Resource)]
struct TickCost(Nanos);

fn compute(cost: Res<TickCost>) {
    let until = thread_cpu_time() + cost.0;
    while thread_cpu_time() < until {
        std::hint::spin_loop();
    }
}

impl WorldKind for Busy {
    fn name(&self) -> &str {
        "busy"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(TickCost(self.0)).add_systems(Update, compute);
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

/// A world that somebody comes to for a moment.
struct Instance;

#[derive(Component)]
struct Belongings(#[expect(dead_code, clippy::vec_box, reason = "to be dropped, one by one")] Vec<Box<u64>>);

impl WorldKind for Instance {
    fn name(&self) -> &str {
        "instance"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        for number in 0..ENTITIES as u64 {
            let boxes = (0..BOXES).map(|_| Box::new(number)).collect();
            world.world_mut().spawn(Belongings(boxes));
        }
    }
}

/// Who comes and goes.
struct Players<'a> {
    control: &'a ServerControl,
    kind: WorldKindId,
    per_s: f64,
    asked: Vec<Pending<WorldId>>,
    living: VecDeque<(Instant, WorldId)>,
    came: u64,
}

impl Players<'_> {
    fn come_and_go(&mut self, is_over: &AtomicBool) {
        let begin = Instant::now();
        let mut due = 0.0;
        let mut before = begin;
        while !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
            let now = Instant::now();
            due += (now - before).as_secs_f64() * self.per_s;
            before = now;
            while due >= 1.0 {
                due -= 1.0;
                if self.asked.len() < ASKED_MAX {
                    self.came += 1;
                    self.asked.push(self.control.create_world(NewWorld::new(self.kind, self.came)));
                }
            }
            let living = &mut self.living;
            self.asked.retain(|asked| match asked.try_take() {
                None => true,
                Some(answer) => {
                    living.extend(answer.ok().map(|world| (now + STAY, world)));
                    false
                }
            });
            while let Some((_, world)) = self.living.pop_front_if(|(until, _)| *until <= now) {
                let _ = self.control.retire_world(world);
            }
        }
    }
}

/// What a run was like, as its process has printed it.
struct Outcome(serde_json::Value);

/// Columns of each second.
const RSS_MB: usize = 1;
const FREEING_MS: usize = 2;
const MISSED: usize = 3;

impl Outcome {
    fn of(seconds: &[ServerStatus], report: &ServerReport, came: u64, long_task_cpu_s: f64) -> Self {
        let most = |figure: fn(&ServerStatus) -> f64| seconds.iter().map(figure).fold(0.0, f64::max);
        let first = seconds.first().map_or(0.0, |status| status.rss_mb);
        let counter = |name| report.counters.get(name).copied().unwrap_or_default();
        let mut missed = 0;
        let rows = seconds.iter().map(|status| {
            missed += status.ticks_missed;
            serde_json::json!([status.second, status.rss_mb, status.long_tasks_freeing_ms, missed])
        });
        let rows: Vec<_> = rows.collect();
        Self(serde_json::json!({
            "seconds": rows,
            "figures": {
                "seconds": seconds.len(),
                "worlds_came": came,
                "worlds_created": counter("server.worlds_created"),
                "worlds_ended": counter("server.worlds_retired"),
                "growth_mb": most(|status| status.rss_mb) - first,
                "freeing_ms_max": most(|status| status.long_tasks_freeing_ms),
                "long_tasks_waiting_max": most(|status| status.long_tasks_waiting as f64),
                "long_task_cpu_s": long_task_cpu_s,
                "long_tasks_missed": counter("server.long_tasks_missed"),
                "starvation_steps": counter("server.starvation_steps"),
                "ticks": report.ticks,
                "ticks_missed": report.ticks_missed,
                "ticks_missed_host": report.ticks_missed_host,
                "tick_lateness_ms_max": report.tick_lateness_ms.max,
            },
        }))
    }

    fn figures(&self) -> &serde_json::Value {
        &self.0["figures"]
    }

    fn over_time(&self, column: usize) -> Vec<(f64, f64)> {
        let rows = self.0["seconds"].as_array().into_iter().flatten();
        rows.filter_map(|row| Some((row[0].as_f64()?, row[column].as_f64()?))).collect()
    }
}

type Failure = Box<dyn std::error::Error>;

fn server(is_controlled: bool) -> Result<throng::Server, Failure> {
    // Nothing but the control may keep what waits within bounds.
    let text = format!(
        "[server]\naddress = \"127.0.0.1:0\"\nworkers = 2\n[long_tasks]\ncontrol = {is_controlled}\nthreads = 1\nwaiting_max = 1_000_000\n"
    );
    let settings = Settings::parse("pile_up.toml", &text)?;
    Ok(throng::Server::bind(&settings, SchemaBuilder::new().build(), PrivateKey::new([1; 32]))?)
}

/// Instances a second that take `RUSH_SHARE` of a core, from what the thread takes for those that come and go with nothing
/// beside them. The more come, the less each costs: what one leaves behind in the caches the next one uses. So it is
/// measured again at the rate that was found.
fn rush_per_s(first_per_s: f64, seconds: u64) -> Result<f64, Failure> {
    (0..CALIBRATIONS).try_fold(first_per_s, |per_s, _| rush_beside(per_s, seconds))
}

/// The same from one measurement, at this rate.
fn rush_beside(per_s: f64, seconds: u64) -> Result<f64, Failure> {
    let outcome = come_and_go(server(true)?, Nanos::ZERO, per_s, seconds)?;
    // The thread has ended with its server: what it took was told at the last second.
    let count = outcome.figures()["worlds_ended"].as_u64().unwrap_or_default();
    let took_s = outcome.figures()["long_task_cpu_s"].as_f64().unwrap_or_default();
    if count == 0 || took_s <= 0.0 {
        return Err("what an instance costs was not measured".into());
    }
    Ok(RUSH_SHARE * count as f64 / took_s)
}

/// What threads for long tasks of this process have taken of a core. (s)
fn long_task_cpu_s() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let is_one =
        |path: &PathBuf| std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("long-task"));
    let ran_ns = |path: PathBuf| {
        let thread = path.file_name()?.to_str()?.parse().ok()?;
        Some(ThreadSums::open(thread).ok()?.read().ok()?.running_ns)
    };
    let ran = threads.map(|thread| thread.path()).filter(is_one).filter_map(ran_ns).sum::<u64>();
    Nanos(ran).as_secs_f64()
}

fn run(is_controlled: bool, per_s: f64, seconds: u64) -> Result<Outcome, Failure> {
    let tick = Nanos((BUSY_SHARE * 1e9 / 20.0 / f64::from(BUSY_WORLDS)) as u64);
    come_and_go(server(is_controlled)?, tick, per_s, seconds)
}

/// Instances come and go, so many a second, beside worlds of which each tick takes so long.
fn come_and_go(mut server: throng::Server, tick: Nanos, per_s: f64, seconds: u64) -> Result<Outcome, Failure> {
    let (busy, instance) = (server.add_kind(Busy(tick))?, server.add_kind(Instance)?);
    for seed in 0..BUSY_WORLDS {
        server.create_world(busy, seed.into())?;
    }
    let (control, stop, is_over) = (server.control(), StopFlag::new()?, AtomicBool::new(false));
    let begin_mb = rss_bytes() as f64 / 1e6;
    let (mut statuses, mut long_task_s) = (Vec::new(), 0.0);
    std::thread::scope(|scope| {
        let mut players =
            Players { control: &control, kind: instance, per_s, asked: Vec::new(), living: VecDeque::new(), came: 0 };
        let is_over = &is_over;
        let players = scope.spawn(move || {
            players.come_and_go(is_over);
            players.came
        });
        control.measure_begin();
        let report = server.run(&stop, &mut |status| {
            statuses.push(status.clone());
            long_task_s = long_task_cpu_s();
            if statuses.len() as u64 >= seconds || status.rss_mb > begin_mb + GROWTH_MB_MAX {
                is_over.store(true, Ordering::Relaxed);
                stop.request();
            }
        });
        is_over.store(true, Ordering::Relaxed);
        let came = players.join().map_err(|_| "the players panicked")?;
        Ok(Outcome::of(&statuses, &report?, came, long_task_s))
    })
}

/// The same in a process of its own, whose memory is that run's alone.
fn run_apart(is_controlled: bool, per_s: f64, seconds: u64) -> Result<Outcome, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--run", if is_controlled { "with" } else { "without" }]);
    let output = command.args(["--per-s", &per_s.to_string(), "--seconds", &seconds.to_string()]).output()?;
    if !output.status.success() {
        return Err(format!("a run failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(Outcome(serde_json::from_slice(&output.stdout)?))
}

fn picture([off, on]: &[Outcome; 2], per_s: f64) -> Result<String, Failure> {
    let figure =
        |title, note, column| FigureOverTime { title, note, runs: [off.over_time(column), on.over_time(column)] };
    let figures = [
        figure("Memory", "MB of the process", RSS_MB),
        figure("Worlds that wait to be dropped", "ms of processor time that will take", FREEING_MS),
        figure("Ticks missed", "since the run's begin, of 1,200 a second and those of instances", MISSED),
    ];
    let subtitle =
        format!("{per_s:.0} worlds a second come and go beside busy ones; two workers, one thread of low priority");
    let runs = RunsOverTime {
        title: "Worlds that come and go faster than they are dropped",
        subtitle: &subtitle,
        command: "cargo xtask bench pile_up",
        names: ["without control", "with control"],
        figures: &figures,
    };
    Ok(draw_over_time(&runs)?)
}

fn main() -> Result<(), Failure> {
    let Arguments { bench, seconds, picture: path, run: one, per_s } = Arguments::parse();
    throng_platform::allocator::keep_memory();
    let seconds = seconds.unwrap_or(if bench.small { 3 } else { 40 });
    if let (Some(one), Some(per_s)) = (one, per_s) {
        println!("{}", run(one == "with", per_s, seconds)?.0);
        return Ok(());
    }
    let per_s = rush_per_s(100.0, if bench.small { 3 } else { 5 })?;
    let [off, on] = [run_apart(false, per_s, seconds)?, run_apart(true, per_s, seconds)?];
    let figures = serde_json::json!({
        "worlds_per_s": per_s,
        "without_control": off.figures(),
        "with_control": on.figures(),
    });
    let svg = picture(&[off, on], per_s)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&path, svg)?;
    bench.print("pile_up", figures);
    eprintln!("{}: memory, what waits and ticks missed over time", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much waits is the host's affair; that worlds come, go and are told of is not.
    #[test]
    fn the_small_size_runs() {
        let per_s = rush_per_s(40.0, 3).unwrap();
        assert!(per_s.is_finite() && per_s > 1.0, "{per_s}");
        let both = [false, true].map(|is_controlled| run(is_controlled, 40.0, 2).unwrap());
        for outcome in &both {
            let count = |figure: &str| outcome.figures()[figure].as_u64().unwrap();
            assert!(count("worlds_came") > 10 && count("worlds_created") > 10, "{}", outcome.figures());
        }
        assert_eq!(both[0].figures()["starvation_steps"], 0);
        let svg = picture(&both, per_s).unwrap();
        assert!(svg.contains("Ticks missed") && svg.matches("<g class=\"chart\"").count() == 3);
    }
}
