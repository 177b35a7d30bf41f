//! The report of a preflight: what `throng preflight --json` prints and `report.json` holds.

use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;
use throng_history::Machine;

use super::binaries;
use super::counts::{self, Count};
use super::instructions::{COUNTS, CountedBy, Instructions};
use super::page;
use super::pair::{PairFigures, PreflightError};
use super::plan::{Per, PreflightPlan, Side};
use super::statistics::{self, Finding, Findings, SHARE_MIN, Verdict, WHOLE};
use super::step::{Played, Ready, Step};
use crate::earlier_runs::unix_s;
use crate::page::grouped;
use crate::report::{ReportError, ReportFiles};
use crate::shell::shell_word;

/// Two builds, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PreflightReport {
    /// No subsystem, category or the whole is slower, and what is new takes no more than what is gone.
    pub passed: bool,
    /// `slower` if anything is; `new` if new subsystems take more than those that are gone; `unknown` if nothing can be said of the
    /// whole; `faster` if anything is; otherwise `none`.
    pub verdict: Verdict,
    /// It was stopped before its time was over.
    pub interrupted: bool,
    pub base: Build,
    pub change: Build,
    /// What test switches told one of them alone, each as one command line; empty of an ordinary comparison.
    pub told_base: String,
    pub told_change: String,
    /// What both did, in words: a game with its bots, or a recording.
    pub workload: String,
    /// What was played: game, players, NPCs; or worlds and ticks of a recording.
    pub played: Played,
    pub per: Per,
    pub findings: Findings,
    /// Of each subsystem that differs, the scopes that do most.
    pub scopes: Vec<ScopeChange>,
    /// Commands by which one sees more of the change.
    pub look: Vec<String>,
    pub counts: Vec<Count>,
    /// Whether both sent as many packets and bytes in each step, or came to the same states of a recording: if not, they play
    /// differently, and times are those of different games.
    pub did_the_same: bool,
    /// What is missing of the recording: what comes behind it may be a small part of what was recorded.
    pub recording_faults: Vec<String>,
    /// Which of the two replays by the default rules of the flight recorder and not by the recorded ones, and why.
    pub rules_missing: Vec<String>,
    /// How instructions were counted, which are among `counts`.
    pub instructions: Instructions,
    pub seconds_per_pair: f64,
    pub steps_per_pair: usize,
    pub frames_per_step: u32,
    /// Of `per`: frames of a step, or of a recording ticks of all its worlds together.
    // The key is that of reports from before.
    #[serde(rename = "per_step")]
    pub units_per_step: u32,
    /// When it was over.
    pub written_unix_s: u64,
    pub machine: Machine,
    pub command: String,
    /// Where the page is, once it is written.
    pub report: Option<String>,
}

/// One of the two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Build {
    pub path: String,
    /// By its own word.
    pub commit: String,
    /// Of the program's bytes: the same only for the same build.
    // The key is that of reports from before.
    #[serde(rename = "content")]
    pub content_hash: String,
}

/// What scopes of one name take in both, in the middle of all pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScopeChange {
    pub name: String,
    pub subsystem: String,
    /// Without scopes inside, per frame or tick (µs).
    pub base_us: f64,
    pub change_us: f64,
    /// So many per frame or tick.
    pub base_count: f64,
    pub change_count: f64,
}

/// Of a subsystem.
const SCOPES_MAX: usize = 5;
/// In commands that are shown: any free port would do.
const ADMIN_ADDRESS: &str = "127.0.0.1:9100";
/// The same: by then all bots play.
const BOTS_IN_S: u32 = 20;

impl PreflightReport {
    pub(super) fn new(plan: &PreflightPlan, pairs: &[PairFigures]) -> Self {
        let units_per_step = pairs.first().map_or(plan.frames_per_step, |pair| pair.units_per_step);
        let findings = statistics::find(pairs, units_per_step);
        let verdict = verdict(&findings);
        // All pairs are of the same builds, and play the same.
        let ready = pairs.first().map(|pair| pair.ready.clone()).unwrap_or_default();
        let build = |path: &Path, ready: &Ready| Build {
            path: path.display().to_string(),
            commit: if ready.commit.is_empty() { "unknown".to_owned() } else { ready.commit.clone() },
            content_hash: binaries::content_hash(path),
        };
        let steps_per_pair = pairs.first().map_or(0, |pair| pair.steps.len());
        let step_s =
            pairs.iter().flat_map(|pair| &pair.steps).map(|(base, change)| (base.all_ns() + change.all_ns()) / 1e9);
        Self {
            passed: !matches!(verdict, Verdict::Slower | Verdict::New),
            verdict,
            interrupted: false,
            base: build(&plan.base, &ready[0]),
            change: build(&plan.change, &ready[1]),
            told_base: plan.base_arguments.join(" "),
            told_change: plan.change_arguments.join(" "),
            workload: workload(plan, &ready[0].played),
            played: ready[0].played.clone(),
            per: plan.per(),
            scopes: scopes(&findings, pairs, units_per_step),
            look: look(plan),
            findings,
            counts: counts::of_pairs(plan, pairs, units_per_step),
            did_the_same: pairs.iter().flat_map(|pair| &pair.steps).all(|(base, change)| did_the_same(base, change)),
            recording_faults: recording_faults(&ready),
            rules_missing: rules_missing(&ready),
            instructions: Instructions::of(pairs),
            seconds_per_pair: step_s.sum::<f64>() / pairs.len().max(1) as f64,
            steps_per_pair,
            frames_per_step: plan.frames_per_step,
            units_per_step,
            written_unix_s: unix_s(SystemTime::now()),
            machine: Machine::here(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            report: None,
        }
    }

    /// # Errors
    /// If it is not of the builds with these hashes of their bytes, base first: somebody has built one anew.
    pub(super) fn check_builds(&self, plan: &PreflightPlan, hashes: [&String; 2]) -> Result<(), PreflightError> {
        let builds = Side::BOTH.into_iter().zip([&self.base, &self.change]).zip(hashes);
        for ((side, build), hash) in builds {
            if build.content_hash != *hash {
                return Err(PreflightError::Replaced { side, path: plan.program(side).to_owned() });
            }
        }
        Ok(())
    }

    /// Both are the same program, so a difference is a false alarm, or what a test switch told the change.
    pub fn is_one_program(&self) -> bool {
        !self.base.content_hash.is_empty() && self.base.content_hash == self.change.content_hash
    }

    /// By what it is seen that the two play differently, if they do.
    pub fn other_by(&self) -> &'static str {
        match self.per {
            Per::Tick => "came to other states in the same ticks of the recording",
            Per::Frame => "sent other packets in the same steps",
        }
    }

    /// Subsystems and categories of which something was seen.
    pub fn seen(&self) -> impl Iterator<Item = &Finding> {
        self.all().filter(|finding| finding.verdict.is_seen())
    }

    /// Whether it can be said that nothing is slower, if nothing is.
    pub fn says_enough(&self) -> bool {
        self.verdict != Verdict::Unknown && !self.interrupted
    }

    /// They change neither `passed` nor `verdict`.
    pub fn counts_that_differ(&self) -> impl Iterator<Item = &Count> {
        self.counts.iter().filter(|count| count.differs())
    }

    /// That no time differs; of counts that do, it says nothing.
    pub fn nothing_seen(&self) -> &'static str {
        if self.counts_that_differ().next().is_none() { "no difference seen" } else { "no difference in time seen" }
    }

    /// Subsystems whose untrimmed shift lies outside of their interval, with that shift. Not those of which something was
    /// seen, and not the whole: what is said of each of these says it there.
    pub fn untrimmed_outside(&self) -> impl Iterator<Item = (&Finding, f64)> {
        let quiet = |finding: &&Finding| !finding.verdict.is_seen() && finding.verdict != Verdict::Small;
        let quiet = self.findings.subsystems.iter().filter(quiet).filter(|finding| finding.name != WHOLE);
        quiet.filter_map(|finding| Some((finding, finding.untrimmed_percent_outside()?)))
    }

    /// Those of which nothing can be said.
    pub fn unknown(&self) -> impl Iterator<Item = &Finding> {
        self.all().filter(|finding| finding.verdict.is_unknown())
    }

    fn all(&self) -> impl Iterator<Item = &Finding> {
        self.findings.subsystems.iter().chain(&self.findings.categories)
    }

    /// What valgrind counted of a frame or tick of each, or why it did not.
    pub(super) fn add_valgrind(&mut self, counted: Result<[[f64; COUNTS]; 2], String>) {
        let missing = self.instructions.missing.take().unwrap_or_default();
        match counted {
            Ok(counted) => {
                let (count, unclear) = counts::of_valgrind(&counted);
                self.instructions = Instructions { by: CountedBy::Valgrind, missing: Some(missing), unclear };
                self.counts.push(count);
            }
            Err(why) => self.instructions.missing = Some(format!("{missing}; by valgrind: {why}")),
        }
    }

    /// Writes `report.json` and `report.html` into `folder`, which is made if it is missing. If they cannot be written, the report names
    /// no page.
    pub fn write(&mut self, folder: &Path) -> Result<(), ReportError> {
        self.write_files(folder, &ReportFiles::within(folder))
    }

    /// The same under a name that no run after it writes over.
    pub fn write_named(&mut self, folder: &Path, name: &str) -> Result<(), ReportError> {
        self.write_files(folder, &ReportFiles::named(folder, name))
    }

    fn write_files(&mut self, folder: &Path, files: &ReportFiles) -> Result<(), ReportError> {
        self.report = Some(files.html.display().to_string());
        let written = files.write(folder, &serde_json::to_value(&*self)?, &page::page(self));
        written.inspect_err(|_| self.report = None)
    }
}

fn workload(plan: &PreflightPlan, played: &Played) -> String {
    let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| grouped(count as f64));
    let game = if played.game.is_empty() { "a game" } else { &played.game };
    match &plan.recording {
        Some(path) => format!("recording {} ({game}, worlds: {})", path.display(), count(played.worlds)),
        None => {
            let [players, npcs] = [played.players, played.npcs].map(|of| count(of.map(u64::from)));
            format!("{game} with {players} players and {npcs} NPCs")
        }
    }
}

/// What either build says, once: an earlier one says nothing.
fn recording_faults(ready: &[Ready; 2]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for fault in ready.iter().flat_map(|ready| &ready.recording_faults) {
        if !told.contains(fault) {
            told.push(fault.clone());
        }
    }
    told
}

/// Of each build that says so, why.
fn rules_missing(ready: &[Ready; 2]) -> Vec<String> {
    let missing = Side::BOTH.iter().zip(ready);
    missing.filter_map(|(side, ready)| Some(format!("{side}: {}", ready.rules_missing.as_ref()?))).collect()
}

fn did_the_same(base: &Step, change: &Step) -> bool {
    let done = |step: &Step| (step.packets_out, step.bytes_out, step.states);
    done(base) == done(change)
}

/// In a word. What is new has nothing to be slower than, but its time is added; unless as much went with what is gone, as where
/// something has got another name.
fn verdict(findings: &Findings) -> Verdict {
    let all = || findings.subsystems.iter().chain(&findings.categories);
    let any = |verdict| all().any(|finding| finding.verdict == verdict);
    let sum = |verdict, us: fn(&Finding) -> f64| -> f64 {
        findings.subsystems.iter().filter(|finding| finding.verdict == verdict).map(us).sum()
    };
    let added_us = sum(Verdict::New, |finding| finding.untrimmed_change_us)
        - sum(Verdict::Gone, |finding| finding.untrimmed_base_us);
    let whole = findings.subsystems.first();
    let whole_us = whole.map_or(0.0, |whole| whole.untrimmed_base_us.max(whole.untrimmed_change_us));
    if any(Verdict::Slower) {
        Verdict::Slower
    } else if added_us > SHARE_MIN * whole_us {
        Verdict::New
    } else if whole.is_none_or(|whole| whole.verdict.is_unknown()) {
        Verdict::Unknown
    } else if any(Verdict::Faster) {
        Verdict::Faster
    } else {
        Verdict::None
    }
}

/// Of subsystems that differ, the scopes that do most, each subsystem's largest difference first.
fn scopes(findings: &Findings, pairs: &[PairFigures], units_per_step: u32) -> Vec<ScopeChange> {
    let told: Vec<&PairFigures> = pairs.iter().filter(|pair| pair.scopes.iter().all(|of| !of.is_empty())).collect();
    let mut names: Vec<(&str, &str)> = told
        .iter()
        .flat_map(|pair| {
            pair.scopes.iter().flatten().map(|(name, (subsystem, ..))| (subsystem.as_str(), name.as_str()))
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    let middle = |side: Side, name: &str, of: fn(&(String, u64, u64)) -> u64| {
        let per_unit = told.iter().map(|pair| {
            let units = pair.scopes_steps as f64 * f64::from(units_per_step);
            pair.scopes[side as usize].get(name).map_or(0.0, |sum| of(sum) as f64 / units.max(1.0))
        });
        throng_history::changes::median(&mut per_unit.collect::<Vec<_>>())
    };
    let change = |(subsystem, name): &(&str, &str)| ScopeChange {
        name: (*name).to_owned(),
        subsystem: (*subsystem).to_owned(),
        base_us: middle(Side::Base, name, |sum| sum.2) / 1e3,
        change_us: middle(Side::Change, name, |sum| sum.2) / 1e3,
        base_count: middle(Side::Base, name, |sum| sum.1),
        change_count: middle(Side::Change, name, |sum| sum.1),
    };
    let seen = findings.subsystems.iter().filter(|finding| finding.verdict.is_seen());
    let of_subsystem = |finding: &Finding| {
        let mut all: Vec<ScopeChange> =
            names.iter().filter(|(subsystem, _)| *subsystem == finding.name).map(change).collect();
        let by = |scope: &ScopeChange| (scope.change_us - scope.base_us).abs();
        all.sort_by(|one, other| by(other).total_cmp(&by(one)));
        all.truncate(SCOPES_MAX);
        all
    };
    seen.flat_map(of_subsystem).collect()
}

/// The change under the same load, for as long as it takes to save what its recorder holds, and how that is read.
fn look(plan: &PreflightPlan) -> Vec<String> {
    let program = shell_word(&plan.change.display().to_string());
    let arguments = plan.arguments.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
    let newest = "\"$(ls -t $(find captures -name '*.capture') | head -1)\"";
    let show = format!("{program} capture show {newest} --html");
    if let Some(recording) = &plan.recording {
        return vec![
            format!("{program} replay {} --capture captures", shell_word(&recording.display().to_string())),
            show,
        ];
    }
    vec![
        format!("{program} load {arguments} --settle-s-max 0 --seconds 60 \\"),
        format!("    --admin-address {ADMIN_ADDRESS} --captures captures &"),
        format!("sleep {BOTS_IN_S}"),
        format!("{program} capture save --connect {ADMIN_ADDRESS}"),
        show,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(recording: Option<&str>) -> PreflightPlan {
        PreflightPlan { recording: recording.map(Into::into), ..PreflightPlan::example() }
    }

    /// Promise: a recording is named, its times are of ticks, and what is to look at is a replay of it; builds that come to other states
    /// are told apart.
    #[test]
    fn a_recording_is_the_workload_by_its_name() {
        let of = |states: u64| {
            let step = |states| Step { states, ..Step::default() };
            let played = Played { game: "meadow".to_owned(), worlds: Some(3), ticks: Some(900), ..Played::default() };
            let pair = PairFigures {
                steps: vec![(step(7), step(states)); 4],
                units_per_step: 30,
                ready: [Ready { played, ..Ready::default() }, Ready::default()],
                ..PairFigures::default()
            };
            PreflightReport::new(&plan(Some("evening")), &[pair])
        };
        let report = of(7);
        assert_eq!(report.workload, "recording evening (meadow, worlds: 3)");
        assert_eq!((report.per, report.units_per_step, report.did_the_same), (Per::Tick, 30, true));
        assert_eq!(serde_json::to_value(&report).unwrap()["per"], "tick");
        assert_eq!(report.look[0], "new/throng replay evening --capture captures");
        assert!(!of(8).did_the_same);
    }

    /// Promise: what valgrind counted stands among the counts, and why it counted nothing beside why the processor did not.
    #[test]
    fn instructions_of_valgrind_are_added_or_why_there_are_none() {
        let of = |counted: Result<[[f64; 2]; 2], String>| {
            let mut report = PreflightReport::new(&plan(None), &[PairFigures::default()]);
            report.add_valgrind(counted);
            (report.counts.last().cloned().unwrap(), report.instructions)
        };
        let (count, instructions) = of(Ok([[1_000.0; 2], [1_000.0, 1_030.0]]));
        assert_eq!((count.name, instructions.by), ("instructions", CountedBy::Valgrind));
        assert!(instructions.unclear.is_some());
        let (count, instructions) = of(Err("base: it fell silent".to_owned()));
        assert_ne!(count.name, "instructions");
        assert!(instructions.missing.unwrap().ends_with("; by valgrind: base: it fell silent"));
    }

    fn finding(name: &str, verdict: Verdict, base_us: f64, change_us: f64) -> Finding {
        let (category, share) = (String::new(), 0.1);
        Finding {
            name: name.into(),
            category,
            verdict,
            share,
            base_us,
            change_us,
            shift_percent: None,
            low_percent: None,
            high_percent: None,
            untrimmed_base_us: base_us,
            untrimmed_change_us: change_us,
            untrimmed_percent: None,
        }
    }

    fn verdict_of(whole: Verdict, others: &[(Verdict, f64, f64)]) -> Verdict {
        let others = others.iter().map(|(verdict, base_us, change_us)| finding("part", *verdict, *base_us, *change_us));
        let subsystems = std::iter::once(finding("all", whole, 100.0, 100.0)).chain(others).collect();
        let categories = Vec::new();
        verdict(&Findings { subsystems, categories, pairs: 9, undisturbed_share: 1.0, took_disturbed: false })
    }

    #[test]
    fn what_is_new_fails_unless_as_much_is_gone() {
        let (new, gone) = ((Verdict::New, 0.0, 2.0), (Verdict::Gone, 1.9, 0.0));
        assert_eq!(verdict_of(Verdict::None, &[new]), Verdict::New);
        assert_eq!(verdict_of(Verdict::None, &[new, gone]), Verdict::None, "it has another name");
        assert_eq!(verdict_of(Verdict::None, &[new, (Verdict::Slower, 1.0, 2.0)]), Verdict::Slower);
    }

    #[test]
    fn a_run_that_can_say_nothing_of_the_whole_says_so() {
        assert_eq!(verdict_of(Verdict::Unknown, &[(Verdict::Unknown, 1.0, 1.0)]), Verdict::Unknown);
        assert_eq!(verdict_of(Verdict::None, &[(Verdict::Rare, 1.0, 1.0)]), Verdict::None);
        assert_eq!(verdict_of(Verdict::Unknown, &[(Verdict::Slower, 1.0, 9.0)]), Verdict::Slower);
        assert_eq!(verdict_of(Verdict::Unknown, &[(Verdict::Faster, 9.0, 1.0)]), Verdict::Unknown);
    }

    #[test]
    fn scopes_of_what_differs_are_told_by_their_difference() {
        let sums = |fast: u64, slow: u64| {
            let of = |name: &str, ns| (name.to_owned(), ("ai".to_owned(), 40, ns));
            [of("ai.think", fast), of("ai.plan", slow), ("net.send".to_owned(), ("net".to_owned(), 40, slow))].into()
        };
        let pair = |slow| PairFigures {
            scopes: [sums(80_000, 40_000), sums(81_000, slow)],
            scopes_steps: 4,
            ..PairFigures::default()
        };
        let findings = Findings {
            subsystems: vec![finding("ai", Verdict::Slower, 3.0, 5.0), finding("net", Verdict::None, 3.0, 5.0)],
            categories: Vec::new(),
            pairs: 3,
            undisturbed_share: 1.0,
            took_disturbed: false,
        };
        // One pair was disturbed, one is of builds that do not tell.
        let found = scopes(&findings, &[pair(60_000), pair(900_000), pair(62_000), PairFigures::default()], 10);
        let told: Vec<_> = found.iter().map(|scope| (scope.name.as_str(), scope.base_us, scope.change_us)).collect();
        assert_eq!(told, [("ai.plan", 1.0, 1.55), ("ai.think", 2.0, 2.025)]);
        assert_eq!(found[0].base_count, 1.0);
    }
}
