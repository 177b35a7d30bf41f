//! `replay`: a recording is run again, without sockets, and each state is held against what was recorded.
//!
//! The game, its size and its settings are those of the recording; how many threads there are and how fast it goes is the
//! caller's, and changes nothing of what comes of it.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use throng::{
    ids::WorldId,
    recording::{About, Block, RecordingFiles, WorldPlan},
    replay::{Divergence, ReplayGame, ReplayOptions, ReplayReport},
    world_facts::WorldFacts,
};
use throng_crash::{CrashGuard, CrashSettings};
use throng_game::Game;
use throng_history::Machine;

use crate::{
    crash_state::RecorderSource,
    executable::Executable,
    outcome::{CommandResult, Verdict},
    output::{remark, say},
    recorded_game::{RecordedGame, ReplayRecorder, game_of},
};

/// What is printed one by one of divergences, gaps and failures; the rest is counted.
const LINES_MAX: usize = 20;

#[derive(Args)]
pub struct ReplayArguments {
    /// A folder with a recording, of which the newest is taken; or one of its segments.
    #[arg(value_name = "FILE|FOLDER")]
    recording: PathBuf,
    /// At the speed of the recording, in steps of about a second; otherwise as fast as possible.
    #[arg(long)]
    real_time: bool,
    /// Threads that have worlds. The result is the same with any number.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// End each world after this tick, and the replay with the last of them.
    #[arg(long, value_name = "N")]
    to_tick: Option<u32>,
    /// Replay this world alone: 7, or 7.2.
    #[arg(long, value_name = "WORLD", value_parser = world_id)]
    world: Option<WorldId>,
    /// Save a capture of the last seconds of the replay into this folder ("captures" if none is named).
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "captures")]
    capture: Option<PathBuf>,
    /// Leave a report in this folder if a world ends this process, as it ended the one that was recorded: equal deaths have one
    /// signature, which `crash list` groups by.
    #[arg(long, value_name = "DIR")]
    crashes: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

fn world_id(text: &str) -> Result<WorldId, String> {
    let (index, generation) = text.split_once('.').unwrap_or((text, "0"));
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number; a world is 7, or 7.2"));
    Ok(WorldId::new(number(index)?, number(generation)?))
}

pub fn run(arguments: &ReplayArguments, executable: Executable, games: &[Game]) -> CommandResult {
    let recording = RecordingFiles::open(&arguments.recording)?;
    let recorder = arguments.capture.as_deref().map_or(ReplayRecorder::Off, ReplayRecorder::Captures);
    let RecordedGame { game, rules_missing } = game_of(&recording, &arguments.recording, recorder, executable, games)?;
    if let Some(why) = rules_missing {
        remark(format_args!("note the recorded rules are not this build's, and the default ones are in force: {why}"));
    }
    let options = ReplayOptions {
        threads: arguments.workers.into(),
        real_time: arguments.real_time,
        to_tick: arguments.to_tick,
        world: arguments.world,
    };
    let _crash_guard = match &arguments.crashes {
        Some(folder) => Some(report_crashes(folder, &game, &recording, executable)?),
        None => None,
    };
    let report = game.replay(&recording, &options)?;
    let capture = arguments.capture.is_some().then(|| game.recorder()).flatten();
    // What the replay says is worth more than a capture of it, which may not fit on the disk.
    let capture = capture.map(|recorder| recorder.save_now("the end of a replay").map(|saved| saved.path)).transpose();
    let saved = capture.as_ref().ok().cloned().flatten();
    if arguments.json {
        say(as_json(&report, recording.about(), saved))?;
    } else {
        tell(&report, recording.about())?;
        if let Some(path) = saved {
            say(format_args!("capture: {}", path.display()))?;
        }
    }
    let no_capture = capture.err().map(|error| format!("no capture: {error}"));
    match (verdict(&report, &options), no_capture) {
        (Ok(Verdict::Fine), Some(why)) => Err(why.into()),
        (verdict, no_capture) => {
            no_capture.iter().for_each(remark);
            verdict.map_err(|why| format!("{}: {why}", arguments.recording.display()).into())
        }
    }
}

/// Of another build hashes need not hold, and worlds that cannot be made are still a failure.
///
/// # Errors
/// If too little was replayed to say.
fn verdict(report: &ReplayReport, options: &ReplayOptions) -> Result<Verdict, String> {
    let ReplayReport { ticks, ticks_skipped, hashes_equal, .. } = *report;
    if !report.failures.is_empty() || !(report.divergences.is_empty() || report.is_other_build) {
        return Ok(Verdict::Failed);
    }
    match (ticks, options.world, options.to_tick) {
        (0, Some(world), Some(last)) if ticks_skipped == 0 => {
            return Err(format!(
                "no tick of world {world} up to {last} was replayed: it is not in the recording, or begins later; without --world all worlds are"
            ));
        }
        (0, _, Some(last)) => {
            return Err(format!(
                "no tick up to {last} was replayed: what is there of its worlds begins later, or has no state before it"
            ));
        }
        (0, Some(world), None) if ticks_skipped == 0 => {
            return Err(format!("no tick of world {world} was replayed; without --world all worlds are"));
        }
        (0, ..) => return Err("no tick was replayed".to_owned()),
        _ if report.skips_too_much() => {
            return Err(format!("{ticks_skipped} of {} ticks have no state before them", ticks + ticks_skipped));
        }
        _ => {}
    }
    // Who stops at a tick looks at it. Everybody else wants to know whether it is the same.
    let is_compared = hashes_equal > 0 || !report.divergences.is_empty();
    if is_compared || options.to_tick.is_some() {
        Ok(Verdict::Fine)
    } else {
        Err("no state in it was compared: it is shorter than hash_period_s".to_owned())
    }
}

/// A world that ends this process is named, with its tick, as a server's report would.
fn report_crashes(
    folder: &Path,
    game: &ReplayGame,
    recording: &RecordingFiles,
    executable: Executable,
) -> Result<CrashGuard, Box<dyn std::error::Error>> {
    let recorder = game.recorder();
    let settings = CrashSettings::new(folder, executable.full_name(), recording.about().game.as_str())?;
    let source =
        RecorderSource::new(Box::new(move || recorder.clone()), Box::new(worlds_of(recording)), BTreeMap::new());
    Ok(throng_crash::install(settings, source)?)
}

/// What its worlds were made from, by their numbers. Of several that were one after the other at a place, the last.
fn worlds_of(recording: &RecordingFiles) -> HashMap<u32, WorldFacts> {
    let mut worlds = HashMap::new();
    recording.read(|group| {
        for block in group.blocks().map_while(Result::ok) {
            if let Block::World(id, plan) = block {
                let WorldPlan { kind, seed, .. } = plan;
                worlds.insert(id.number(), WorldFacts { id, kind: kind.into(), seed, plan: 0, keeps_place: false });
            }
        }
        true
    });
    worlds
}

fn tell(report: &ReplayReport, about: &About) -> std::io::Result<()> {
    let ReplayReport { worlds, ticks, ticks_skipped, hashes_equal, divergences, gaps, failures, faults, .. } = report;
    faults.iter().for_each(remark);
    if report.is_other_build {
        remark(format_args!(
            "it was recorded by {} ({}), another build than this one: inputs are replayed, and states need not be equal",
            about.version, about.commit
        ));
    }
    for (world, why) in failures.iter().take(LINES_MAX) {
        remark(format_args!("world {world} cannot be replayed: {why}"));
    }
    for gap in gaps.iter().take(LINES_MAX) {
        let after =
            gap.after.map_or_else(|| "some tick".to_owned(), |ticks| format!("tick {}", ticks.saturating_sub(1)));
        let until =
            gap.until.map_or_else(String::new, |ticks| format!(", and goes on after tick {}", ticks.saturating_sub(1)));
        remark(format_args!("world {}: there is a gap after {after}{until}", gap.world));
    }
    for divergence in divergences.iter().take(LINES_MAX) {
        say(divergence)?;
    }
    if let Some(hint) = exact_tick_hint(divergences) {
        remark(hint);
    }
    let [failed, missing, diverged] = [failures.len(), report.gaps_count as usize, divergences.len()];
    let more = [failed, missing, diverged].map(|count| count.saturating_sub(LINES_MAX));
    if more.iter().any(|count| *count > 0) {
        remark(format_args!("and {} failures, {} gaps and {} divergences more", more[0], more[1], more[2]));
    }
    let skipped = match ticks_skipped {
        0 => String::new(),
        skipped => format!(", {skipped} ticks skipped without a state before them"),
    };
    say(format_args!(
        "{}: {worlds} worlds, {ticks} ticks in {:.1} s{skipped}; {hashes_equal} states are equal, {} worlds diverge; \
         states {:016x}",
        about.game,
        seconds(report.took),
        divergences.len(),
        report.states
    ))
}

/// What names the tick itself, where a divergence has a range of them.
fn exact_tick_hint(divergences: &[Divergence]) -> Option<&'static str> {
    divergences.iter().any(|divergence| !divergence.is_exact()).then_some(
        "note a recording with hash_period_s = 0 in [recording] has a hash of every tick, and its replay names the first tick exactly",
    )
}

fn as_json(report: &ReplayReport, about: &About, capture: Option<PathBuf>) -> serde_json::Value {
    let divergences = report.divergences.iter().map(|divergence| {
        let entities = divergence.entities.iter();
        serde_json::json!({
            "world": divergence.world.to_string(),
            "kind": divergence.kind,
            "tick": divergence.ticks.saturating_sub(1),
            "equal_until_tick": divergence.equal_at.map(|ticks| ticks.saturating_sub(1)),
            "components": divergence.components,
            "other_components": divergence.other_components,
            "entities": entities.map(|entity| serde_json::json!({
                "entity": entity.place,
                "components": entity.components,
            })).collect::<Vec<_>>(),
            "text": divergence.to_string(),
        })
    });
    serde_json::json!({
        "machine": Machine::here(),
        "game": about.game,
        "recorded_version": about.version,
        "recorded_commit": about.commit,
        "is_other_build": report.is_other_build,
        "worlds": report.worlds,
        "ticks": report.ticks,
        "ticks_skipped": report.ticks_skipped,
        "states_equal": report.hashes_equal,
        "states": format!("{:016x}", report.states),
        "seconds": seconds(report.took),
        "divergences": divergences.collect::<Vec<_>>(),
        "gaps": report.gaps_count,
        "failures": report.failures.iter().map(|(world, why)| format!("world {world}: {why}")).collect::<Vec<_>>(),
        "faults": report.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "capture": capture,
    })
}

fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divergence(equal_at: Option<u32>, ticks: u32) -> Divergence {
        Divergence {
            world: WorldId::new(7, 0),
            kind: "hideout".to_owned(),
            at_ms: 0,
            equal_at,
            ticks,
            ticks_recorded: ticks,
            components: Vec::new(),
            other_components: false,
            entities: Vec::new(),
            entities_count: 0,
            random_differs: false,
        }
    }

    /// Promise: where one divergence has a range of ticks it is said what names the tick, and only there.
    #[test]
    fn a_range_of_ticks_comes_with_what_would_name_the_tick() {
        let check = |found: &[(Option<u32>, u32)], expect: bool| {
            let found: Vec<_> = found.iter().map(|(equal_at, ticks)| divergence(*equal_at, *ticks)).collect();
            assert_eq!(
                exact_tick_hint(&found).is_some_and(|hint| hint.contains("hash_period_s = 0")),
                expect,
                "{found:?}"
            );
        };
        check(&[], false);
        check(&[(Some(3), 4)], false);
        check(&[(None, 1)], false);
        check(&[(Some(3), 4), (Some(3_901), 4_001)], true);
        check(&[(None, 100)], true);
    }

    /// Promise: where a later build diverges that is told and is no failure; a world that it cannot make is one.
    #[test]
    fn states_of_another_build_need_not_be_equal() {
        let divergence = divergence(Some(3), 4);
        let check = |is_other_build, has_failures: bool, fails| {
            let failures = has_failures.then(|| (WorldId::new(7, 0), "no kind".to_owned())).into_iter().collect();
            let divergences = vec![divergence.clone()];
            let report = ReplayReport { ticks: 4, is_other_build, divergences, failures, ..ReplayReport::default() };
            let verdict = verdict(&report, &ReplayOptions::default()).unwrap();
            assert_eq!(matches!(verdict, Verdict::Failed), fails, "{report:?}");
        };
        check(false, false, true);
        check(true, false, false);
        check(true, true, true);
    }

    /// Promise: who hears that all is equal knows that something was held against something.
    #[test]
    fn a_replay_of_too_little_is_no_success() {
        let check = |ticks, ticks_skipped, hashes_equal, options: &ReplayOptions, expect: Option<&str>| {
            let report = ReplayReport { ticks, ticks_skipped, hashes_equal, ..ReplayReport::default() };
            match (verdict(&report, options), expect) {
                (Ok(Verdict::Fine), None) => {}
                (Err(why), Some(expect)) => assert!(why.contains(expect), "{why}"),
                _ => panic!("{report:?}"),
            }
        };
        let all = ReplayOptions::default();
        let of_world = ReplayOptions { world: Some(WorldId::new(5, 7)), ..all.clone() };
        let to_tick = ReplayOptions { to_tick: Some(60), ..all.clone() };
        check(100, 0, 1, &all, None);
        check(100, 11, 1, &all, None);
        check(100, 12, 1, &all, Some("12 of 112 ticks have no state before them"));
        check(100, 0, 0, &all, Some("shorter than hash_period_s"));
        check(61, 0, 0, &to_tick, None);
        check(0, 0, 0, &to_tick, Some("no tick up to 60 was replayed"));
        check(0, 0, 0, &of_world, Some("no tick of world 5.7 was replayed; without --world all worlds are"));
        check(0, 9, 0, &of_world, Some("no tick was replayed"));
        let of_both = ReplayOptions { to_tick: Some(60), ..of_world };
        check(0, 0, 0, &of_both, Some("no tick of world 5.7 up to 60 was replayed"));
    }
}
