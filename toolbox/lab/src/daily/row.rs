//! Row: one run of the day, with what it leads to.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::folder::{DayFolder, relative, run_name};
use super::host_findings::{self, HostFinding};
use super::linked_captures::{Captures, LinkedCapture, WantedFrame};
use crate::bars::Bar;
use crate::history::{OwnHistory, ToldChange};
use crate::left_behind::{CRASHES, death_in, recording_in};
use crate::load::LoadRun;
use crate::load_report::EndedEarly;
use crate::seconds::Second;
use crate::shell::shell_word;

/// The capture that a crash report lies beside.
const CRASH_CAPTURE: &str = "last.capture";

/// What came of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DayVerdict {
    /// All bars held.
    Passed,
    /// Some did not, its own history says that something became slower, or the run could not be made.
    Failed,
    /// The server ended before its time, or badly when it was told to.
    Died,
    /// The day was stopped before it began.
    #[default]
    NotRun,
}

impl DayVerdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Died => "died",
            Self::NotRun => "not run",
        }
    }
}

/// One run of the day. Paths are relative to the day's folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DayRun {
    pub game: String,
    pub scenario: String,
    pub folder: String,
    pub verdict: DayVerdict,
    /// Why there are no figures, or why they are of a part of the run.
    pub why: Option<String>,
    /// The run's own page; none if there are no figures, or if it could not be written.
    pub page: Option<String>,
    pub players: u64,
    pub worlds: u64,
    pub seconds: f64,
    pub bars: Vec<Bar>,
    /// Of the window; of all there is where there was none.
    pub worst_frame: Option<WorstFrame>,
    pub captures: usize,
    pub death: Option<DayDeath>,
    /// None of a run that is not kept.
    pub history: Option<OwnHistory>,
    pub host: Vec<HostFinding>,
}

/// The longest frame of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorstFrame {
    pub ms: f64,
    pub budget_ms: f64,
    /// In which second of the server's life.
    pub second: u64,
    /// None if nothing of the window was saved.
    pub capture: Option<LinkedCapture>,
}

/// A server that died.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DayDeath {
    /// What it died of, in a line.
    pub words: String,
    /// What equal deaths have in common.
    pub signature: Option<String>,
    /// What the run was at.
    pub during: String,
    pub crash_report: Option<String>,
    /// Of the last seconds before it.
    pub capture: Option<String>,
    /// The folder with all that entered the worlds.
    pub recording: Option<String>,
    /// The command that comes to it again, for a shell in the day's folder.
    pub replay: Option<String>,
}

impl DayRun {
    /// One that is still to come.
    pub fn to_come(game: &str, scenario: &str) -> Self {
        let folder = run_name(game, scenario);
        Self { game: game.to_owned(), scenario: scenario.to_owned(), folder, ..Self::default() }
    }

    /// One of which there is no report. A death that its server left the report of is linked all the same; `executable` is
    /// what replays are started with.
    pub fn without_report(game: &str, scenario: &str, why: String, day: &DayFolder, executable: &str) -> Self {
        let to_come = Self::to_come(game, scenario);
        let death = DayDeath::left_in(&day.path().join(&to_come.folder), day, executable);
        let verdict = if death.is_some() { DayVerdict::Died } else { DayVerdict::Failed };
        Self { verdict, why: Some(why), death, ..to_come }
    }

    /// One that is over; `executable` is what replays are started with. Reads its captures.
    pub fn of(run: &LoadRun, day: &DayFolder, history: Option<OwnHistory>, executable: &str) -> Self {
        let report = &run.report;
        let captures = Captures::look(day.path(), &report.capture_files);
        let server = report.ended_early.as_ref().filter(|ended| ended.process == "serve");
        let is_slower = history.as_ref().is_some_and(|history| !history.slowdowns.is_empty());
        let why = match (&report.not_filled, &report.ended_early, report.interrupted) {
            (_, Some(ended), _) => Some(ended.to_string()),
            (Some(not_filled), ..) => Some(not_filled.to_string()),
            (None, None, true) => Some("it was stopped before its time".to_owned()),
            (None, None, false) => None,
        };
        let to_come = Self::to_come(&report.game, &report.scenario);
        let folder = day.path().join(&to_come.folder);
        let signature = report.deaths.first().map(|group| group.signature.clone());
        Self {
            verdict: match (server, report.passed && !is_slower) {
                (Some(_), _) => DayVerdict::Died,
                (None, true) => DayVerdict::Passed,
                (None, false) => DayVerdict::Failed,
            },
            why,
            page: report.report.as_ref().map(|page| relative(day.path(), Path::new(page))),
            players: report.players_connected,
            worlds: report.worlds,
            seconds: report.seconds,
            bars: report.bars.clone(),
            worst_frame: worst_frame(run, &captures),
            captures: report.capture_files.len(),
            death: server.map(|ended| DayDeath::of(ended, signature, day, &folder, executable)),
            history,
            host: host_findings::of(run, &captures),
            ..to_come
        }
    }

    /// What its history finds slower, and not usual yet.
    pub fn slowdowns(&self) -> &[ToldChange] {
        self.history.as_ref().map_or(&[], |history| &history.slowdowns)
    }

    pub fn bars_broken(&self) -> impl Iterator<Item = &Bar> {
        self.bars.iter().filter(|bar| !bar.passed)
    }
}

fn worst_frame(run: &LoadRun, captures: &Captures) -> Option<WorstFrame> {
    let of_window = run.seconds.get(run.window.clone()).filter(|seconds| !seconds.is_empty());
    let seconds = of_window.unwrap_or(&run.seconds);
    let worst = seconds.iter().max_by(|one, other| one.frame_ms_max.total_cmp(&other.frame_ms_max))?;
    let begin_unix_s = |second: &Second| second.heard_unix_s.map(|heard| heard - 1.0);
    let wanted = WantedFrame {
        ms: worst.frame_ms_max,
        second_end_unix_s: worst.heard_unix_s,
        since_unix_s: of_window.and_then(|seconds| begin_unix_s(seconds.first()?)),
    };
    Some(WorstFrame {
        ms: worst.frame_ms_max,
        budget_ms: worst.frame_budget_ms,
        second: worst.second,
        capture: captures.of_frame(&wanted),
    })
}

impl DayDeath {
    /// Of a run that has no report. Its folder is the day's, so a death in it is its server's.
    fn left_in(folder: &Path, day: &DayFolder, executable: &str) -> Option<Self> {
        let (report, words, signature) = death_in(&folder.join(CRASHES))?;
        let ended = EndedEarly {
            during: "a run without a report".to_owned(),
            crash_report: Some(report.display().to_string()),
            crash_words: Some(words),
            ..EndedEarly::default()
        };
        Some(Self::of(&ended, Some(signature), day, folder, executable))
    }

    fn of(ended: &EndedEarly, signature: Option<String>, day: &DayFolder, folder: &Path, executable: &str) -> Self {
        let report = ended.crash_report.as_deref().map(Path::new);
        let capture = report.map(|report| report.with_file_name(CRASH_CAPTURE)).filter(|capture| capture.is_file());
        let recording = recording_in(folder);
        let replay = recording.as_ref().map(|recording| {
            let [recording, crashes] = [recording, &folder.join("replayed")].map(|path| relative(day.path(), path));
            [executable, "replay", &recording, "--crashes", &crashes].map(shell_word).join(" ")
        });
        Self {
            words: ended.crash_words.clone().unwrap_or_else(|| ended.status.clone()),
            signature: signature.filter(|_| report.is_some()),
            during: ended.during.clone(),
            crash_report: report.map(|report| relative(day.path(), report)),
            capture: capture.map(|capture| relative(day.path(), &capture)),
            recording: recording.map(|recording| relative(day.path(), &recording)),
            replay,
        }
    }
}
