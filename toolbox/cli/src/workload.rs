//! `workload`, a hidden command: a game with its bots in this one process, on a virtual clock, or a recording of it, step by step as
//! the parent process asks. `preflight` runs two builds of it in turns. What the two say to each other: docs/spec/workload.md.

use std::error::Error;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use throng::recording::{FaultKind, RecordingFiles};
use throng::replay::Extent;
use throng::server::ServerError;
use throng::settings::SaveStore;
use throng_game::{Arguments, BuildError, Game};
use throng_lab::preflight::{Played as PlayedBy, Ready, Scopes, Step};
use throng_platform::{process, sched};
use throng_simulator::workload::{PlantKind, RecordedWorkload, ScopeTime, StepFigures, Workload};
use throng_simulator::{Simulation, SimulationSettings};

use crate::{
    executable::Executable,
    outcome::{CommandResult, Verdict},
    output::say,
    played::Played,
    recorded_game::{RecordedGame, ReplayRecorder, game_of},
};

#[derive(Args)]
pub struct WorkloadArguments {
    /// Settings for the server; what they say of addresses, browsers, saves, captures and where recordings go does not apply. Without it
    /// `throng.toml` here, if there is one.
    #[arg(long, value_name = "FILE", conflicts_with = "recording")]
    config: Option<PathBuf>,
    /// Replays a recording, with the game, size and settings that it was made with, instead of letting bots play.
    #[arg(long, value_name = "FILE|FOLDER")]
    recording: Option<PathBuf>,
    /// Runs with the same seed do the same work.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs on this core alone.
    #[arg(long)]
    core: Option<u32>,
    /// Time of the server that goes by, when all bots are in, before the first step (s, 600 at most). Of a recording, that since it began.
    #[arg(long, default_value_t = 3.0, value_parser = |text: &str| seconds_within(text, 0.0..=600.0))]
    warm_up_s: f64,
    /// Test switch: lets a subsystem take so much more of its own time, in percent, by `work`, by cache `misses`, by a `wait`, or by
    /// the `hits` that misses are held against.
    #[arg(long, value_name = "SUBSYSTEM:KIND:PERCENT", value_parser = Slow::parse)]
    slow: Option<Slow>,
    /// Test switch: records what enters the worlds, into a temporary folder that is removed at the end.
    #[arg(long, conflicts_with = "recording")]
    record: bool,
}

/// A time of the command line (s).
pub fn seconds_within(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| range.contains(seconds));
    seconds.ok_or_else(|| format!("it is a number of seconds from {} to {}", range.start(), range.end()))
}

/// Bots that are not in by then never will be (s, of the server).
const JOIN_WITHIN_S: f64 = 120.0;

pub fn run(arguments: WorkloadArguments, played: &Played<'_>, executable: Executable, games: &[Game]) -> CommandResult {
    if let Some(core) = arguments.core {
        sched::pin_this_thread(core)
            .map_err(|cause| format!("--core {core}: {cause}; name one that this process may use"))?;
        // Who is refused measures the frame's own scopes less exactly, and all others as well as ever.
        let _ = sched::join_batch_class();
    }
    match &arguments.recording {
        Some(path) => replay(path, &arguments, executable, games),
        None => play(&arguments, played, executable),
    }
}

fn play(arguments: &WorkloadArguments, played: &Played<'_>, executable: Executable) -> CommandResult {
    let recorded = arguments.record.then(RecordingFolder::new).transpose()?;
    let mut workload = build(arguments, played, executable, recorded.as_ref())?;
    if let Some(Slow { subsystem, kind, percent }) = &arguments.slow {
        workload.slow(subsystem, *kind, percent / 100.0).map_err(|error| format!("--slow: {error}"))?;
    }
    let of_game = &played.arguments;
    say_ready(Ready {
        played: PlayedBy {
            game: played.game.name().to_owned(),
            players: Some(of_game.players),
            npcs: Some(of_game.npcs),
            ..Default::default()
        },
        instructions_missing: workload.instructions_missing().map(str::to_owned),
        ..of_build(executable)
    })?;
    while let Some(frames) = next_step(|steps| workload.scopes(steps))? {
        say_step(&workload.step(frames))?;
    }
    workload.simulation_mut().end_recording();
    let totals = workload.simulation().totals();
    say(json!({"report": {
        "players_connected": totals.playing, "disconnects": totals.disconnects, "state_errors": totals.state_errors,
        "entity_updates": totals.entity_updates, "rss_mb": process::rss_bytes() as f64 / 1e6,
    }}))?;
    Ok(Verdict::Fine)
}

fn replay(path: &Path, arguments: &WorkloadArguments, executable: Executable, games: &[Game]) -> CommandResult {
    let recording = RecordingFiles::open(path)?;
    let RecordedGame { game, rules_missing } = game_of(&recording, path, ReplayRecorder::On, executable, games)?;
    let answer = |workload: &mut RecordedWorkload, step: Option<StepFigures>| {
        match step {
            Some(step) => say_step(&step)?,
            None => {
                if let Some(Slow { subsystem, kind, percent }) = &arguments.slow {
                    workload.slow(subsystem, *kind, percent / 100.0).map_err(|error| format!("--slow: {error}"))?;
                }
                let extent = workload.extent();
                say_ready(Ready {
                    played: PlayedBy {
                        game: recording.about().game.clone(),
                        recording: Some(path.to_owned()),
                        worlds: Some(extent.worlds.into()),
                        ticks: Some(extent.ticks_after),
                        ..Default::default()
                    },
                    recording_faults: recording_faults(extent),
                    instructions_missing: workload.instructions_missing().map(str::to_owned),
                    rules_missing: rules_missing.clone(),
                    ..of_build(executable)
                })?;
            }
        }
        next_step(|steps| workload.scopes(steps))
    };
    let mut failed: Option<Box<dyn Error>> = None;
    RecordedWorkload::play(&game, &recording, arguments.warm_up_s, |workload, step| {
        answer(workload, step).unwrap_or_else(|error| {
            failed = Some(error);
            None
        })
    })
    .map_err(|error| format!("{}: {error}", path.display()))?;
    if let Some(error) = failed {
        return Err(error);
    }
    say(json!({"report": {"rss_mb": process::rss_bytes() as f64 / 1e6}}))?;
    Ok(Verdict::Fine)
}

/// What is missing of a recording. One whose end was not written has all that was.
fn recording_faults(extent: &Extent) -> Vec<String> {
    let of_files = extent.faults.iter().filter(|fault| fault.what != FaultKind::NotClosed).map(ToString::to_string);
    let skipped = (extent.ticks_skipped > 0)
        .then(|| format!("{} ticks are left out, since no state before them is in it", extent.ticks_skipped));
    of_files.chain(skipped).collect()
}

/// How many frames, or ticks of a recording, the next step is; none when that is all. Answers what else is asked before.
fn next_step(scopes: impl Fn(usize) -> Vec<ScopeTime>) -> Result<Option<u32>, Box<dyn Error>> {
    for line in std::io::stdin().lines() {
        let line = line?;
        let number = |order: &str| line.strip_prefix(order)?.parse::<u32>().ok().filter(|number| *number > 0);
        if let Some(steps) = number("scopes ") {
            let sum =
                |scope: ScopeTime| (scope.name.to_owned(), (scope.subsystem.to_owned(), scope.count, scope.own_ns));
            let scopes = scopes(steps as usize).into_iter().map(sum).collect();
            say(json!({"status": Scopes { scopes }}))?;
            continue;
        }
        let step = number("step ");
        return match step {
            Some(_) => Ok(step),
            None => {
                Err(format!("`{line}` is no order; `step FRAMES` and `scopes STEPS` are, with numbers above 0").into())
            }
        };
    }
    Ok(None)
}

fn of_build(executable: Executable) -> Ready {
    Ready { version: executable.version.to_owned(), commit: executable.commit.to_owned(), ..Ready::default() }
}

fn say_ready(ready: Ready) -> std::io::Result<()> {
    say(json!({ "ready": ready }))
}

fn say_step(step: &StepFigures) -> std::io::Result<()> {
    let times = step.times.iter().map(|time| (time.subsystem.to_owned(), (time.category.to_owned(), time.ns)));
    say(json!({"status": Step {
        times_ns: times.collect(),
        allocations: step.allocations,
        packets_out: step.packets_out,
        bytes_out: step.bytes_out,
        waited_ns: step.waited_ns,
        instructions: step.instructions,
        states: step.states,
    }}))
}

/// The game with all its bots in, warm.
fn build(
    arguments: &WorkloadArguments,
    played: &Played<'_>,
    executable: Executable,
    recorded: Option<&RecordingFolder>,
) -> Result<Workload, Box<dyn Error>> {
    let (mut settings, build_worlds) = played.game.find_settings(arguments.config.as_deref())?;
    // Nothing of this run is anybody's to keep, and without a recorder there would be no figures.
    (settings.recorder.on, settings.recorder.captures) = (true, None);
    (settings.saves.store, settings.saves.folder, settings.saves.postgres) = (SaveStore::None, None, None);
    settings.recording.folder = recorded.map(|folder| folder.0.clone());
    settings.recording.at_start = true;
    let behaviours = played.behaviours()?;
    let mut of_simulation = SimulationSettings::new(played.game.schema(), arguments.seed);
    of_simulation.think_hz = played.game.bots_hz();
    of_simulation.server = settings.clone();
    of_simulation.server.server.audit_samples = false;
    let of_game: &Arguments = &played.arguments;
    let (mut simulation, started) = Simulation::new(&of_simulation, |server| {
        let started = || -> Result<(), BuildError> {
            build_worlds(server, of_game)?;
            server.start_recorder(&settings, None, executable.full_name())?;
            Ok(())
        };
        Ok::<_, ServerError>(started())
    })?;
    started?;
    let players = of_game.players as usize;
    // A few at a time: all at once would be another load than the one that is measured.
    let each_time = players.div_ceil(40).max(1);
    for bot in 0..players {
        simulation.join(behaviours(bot));
        if bot % each_time == each_time - 1 {
            simulation.step();
        }
    }
    let all_in = simulation.run_until(JOIN_WITHIN_S, |simulation| simulation.totals().playing == players as u64);
    if !all_in {
        let playing = simulation.totals().playing;
        return Err(
            format!("only {playing} of {players} bots play after {JOIN_WITHIN_S:.0} s; try fewer --players").into()
        );
    }
    simulation.run_for(arguments.warm_up_s);
    Ok(Workload::new(simulation))
}

/// A temporary folder for a recording, removed with this.
struct RecordingFolder(PathBuf);

impl RecordingFolder {
    fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("throng-workload-{}", std::process::id()));
        // Left by a process of the same number that was killed.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).map_err(|error| format!("--record: {}: {error}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for RecordingFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a test switch lets take longer.
#[derive(Debug, Clone, PartialEq)]
pub struct Slow {
    pub subsystem: String,
    pub kind: PlantKind,
    pub percent: f64,
}

const KINDS: [(&str, PlantKind); 4] =
    [("work", PlantKind::Work), ("misses", PlantKind::Misses), ("hits", PlantKind::Hits), ("wait", PlantKind::Wait)];

impl Slow {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.rsplitn(3, ':');
        let percent = parts.next().and_then(|percent| percent.parse::<f64>().ok());
        let kind = parts.next().and_then(|kind| KINDS.iter().find(|(name, _)| *name == kind));
        match (parts.next(), kind, percent) {
            (Some(subsystem), Some((_, kind)), Some(percent)) if percent.is_finite() && percent >= 0.0 => {
                Ok(Self { subsystem: subsystem.to_owned(), kind: *kind, percent })
            }
            _ => Err("write SUBSYSTEM:KIND:PERCENT, such as replication.interest:work:2; kinds are work, misses, hits and wait"
                .to_owned()),
        }
    }

    /// What the other build is given: the same without what takes longer.
    pub fn control(&self) -> Self {
        let (kind, percent) = match self.kind {
            PlantKind::Misses => (PlantKind::Hits, self.percent),
            other => (other, 0.0),
        };
        Self { subsystem: self.subsystem.clone(), kind, percent }
    }

    /// As a child is told.
    pub fn to_words(&self) -> [String; 2] {
        let kind = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        ["--slow".to_owned(), format!("{}:{kind}:{}", self.subsystem, self.percent)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_within_its_range() {
        let within = |text| seconds_within(text, 0.1..=600.0);
        assert_eq!((within("0.1"), within("3"), within("600.0")), (Ok(0.1), Ok(3.0), Ok(600.0)));
        for bad in ["0", "-1", "NaN", "inf", "601", "3 s", ""] {
            assert!(within(bad).is_err_and(|why| why.contains("0.1 to 600")), "{bad}");
        }
    }

    #[test]
    fn a_slowdown_is_a_subsystem_a_kind_and_a_share() {
        let slow = Slow::parse("game.ease<throng.Place>:misses:2.5").unwrap();
        let told = |slow: &Slow| slow.to_words().join(" ");
        assert_eq!(told(&slow), "--slow game.ease<throng.Place>:misses:2.5");
        assert_eq!(told(&slow.control()), "--slow game.ease<throng.Place>:hits:2.5", "the same instructions");
        assert_eq!(told(&Slow::parse("replication:wait:10").unwrap().control()), "--slow replication:wait:0");
        for bad in ["replication", "replication=2", "replication:2", "replication:sleep:2", "a:work:-1", "a:work:NaN"] {
            assert!(Slow::parse(bad).is_err(), "{bad}");
        }
    }
}
