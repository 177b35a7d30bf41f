//! A pair: a process of each build, stepped in turns on one core.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use throng_platform::signals::StopFlag;

use super::plan::{PreflightPlan, STEPS_MIN, Side};
use super::step::{Played, Ready, ScopeSum, Scopes, Step};
use crate::child::{Child, Said};

/// Until a process has its game, its bots and its warm-up behind it, with both on one core.
const READY_WITHIN: Duration = Duration::from_secs(300);
const STEP_WITHIN: Duration = Duration::from_secs(60);
const END_WITHIN: Duration = Duration::from_secs(20);
/// A pair is over then, however long it was to be.
const STEPS_MAX: u32 = 5_000;

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    #[error("{side} cannot be started: {path}: {cause}")]
    Start { side: Side, path: String, cause: std::io::Error },
    #[error(
        "{side} ended ({status}) instead of playing; is it a build that has the command `workload`?  Try it by hand: {command}\n\
         its last words:\n{words}"
    )]
    Ended { side: Side, status: String, command: String, words: String },
    #[error(
        "{side} cannot replay {recording} ({status}); its last words:\n{words}\n\
         A build that does not know --recording is from before preflight had recordings; one that reads inputs or checkpoints as others \
         needs a recording made by a build from after that. Try it by hand: {command}"
    )]
    CannotReplay { side: Side, recording: String, status: String, command: String, words: String },
    #[error(
        "{recording} is too short for a verdict: after its first seconds it has {ticks} ticks of {worlds} worlds, and {STEPS_MIN} steps of \
         {ticks_per_step} ticks are needed; {hint}"
    )]
    TooShort { recording: String, ticks: u64, worlds: u64, ticks_per_step: u64, hint: String },
    #[error(
        "{side} said nothing for {} s: it hangs, or the host is too busy for that many --players. Try it by hand: {command}\n\
         its last words:\n{words}",
        after.as_secs()
    )]
    Silent { side: Side, after: Duration, command: String, words: String },
    #[error("{side} said what cannot be read: {cause}")]
    Unreadable { side: Side, cause: String },
    #[error(
        "{side}: {} was replaced while it was compared, so this is of two builds; name a copy that nobody builds anew", path.display()
    )]
    Replaced { side: Side, path: PathBuf },
    #[error(
        "{} changed while runs by it were repeated, so the last run does not count; the same command begins anew with what is there now",
        path.display()
    )]
    ReadChanged { path: PathBuf },
    #[error("stopped after {pairs} pairs, of which nothing can be said")]
    Stopped { pairs: usize },
}

/// Steps of both, base first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PairFigures {
    pub steps: Vec<(Step, Step)>,
    /// Of what times and counts are per: frames of a step, or of a recording ticks of all its worlds together.
    pub units_per_step: u32,
    /// What each said of itself before it began.
    pub ready: [Ready; 2],
    /// What scopes of each took in the last steps, by name; none of a build that cannot say.
    pub scopes: [BTreeMap<String, ScopeSum>; 2],
    /// Steps that `scopes` are of.
    pub scopes_steps: usize,
}

/// Steps whose scopes are asked for at the end of a pair: recorders hold far more.
const SCOPES_STEPS: usize = 20;

/// Runs a pair: `steps` of them, or as many as fit.
pub(super) fn run(
    plan: &PreflightPlan,
    core: Option<u32>,
    number: usize,
    steps: Option<u32>,
    stop: &StopFlag,
) -> Result<PairFigures, PreflightError> {
    let start = |side: Side| Process::start(plan, side, core);
    // Who starts first has other memory.
    let change_first = number % 2 == 1;
    let (mut base, mut change);
    if change_first {
        change = start(Side::Change)?;
        base = start(Side::Base)?;
    } else {
        base = start(Side::Base)?;
        change = start(Side::Change)?;
    }
    let mut pair = PairFigures {
        units_per_step: plan.frames_per_step,
        ready: [base.ready(stop)?, change.ready(stop)?],
        ..PairFigures::default()
    };
    let steps_max = match &plan.recording {
        // Whoever is to stop hears of no end.
        Some(recording) if !stop.requested() => {
            let fits;
            (pair.units_per_step, fits) = of_recording(plan, recording, &pair.ready)?;
            fits
        }
        _ => STEPS_MAX,
    };
    let (begin, order) = (Instant::now(), format!("step {}", pair.units_per_step));
    for step in 0..steps.unwrap_or(STEPS_MAX).min(steps_max) {
        let is_over = steps.is_none() && step >= STEPS_MIN && begin.elapsed().as_secs_f64() >= plan.pair_s;
        if is_over || stop.requested() {
            break;
        }
        // A B, B A, A B, ...
        let of_both = if (step as usize + number).is_multiple_of(2) {
            let of_base = base.step(&order)?;
            (of_base, change.step(&order)?)
        } else {
            let of_change = change.step(&order)?;
            (base.step(&order)?, of_change)
        };
        pair.steps.push(of_both);
    }
    pair.scopes_steps = SCOPES_STEPS.min(pair.steps.len());
    if pair.scopes_steps > 0 {
        pair.scopes = [base.scopes(pair.scopes_steps), change.scopes(pair.scopes_steps)];
    }
    base.child.stop();
    change.child.stop();
    base.child.exit_status(Instant::now() + END_WITHIN);
    change.child.exit_status(Instant::now() + END_WITHIN);
    Ok(pair)
}

/// So many frames of a recording, as ticks of one world each: of each world that ticks at one time as many.
pub(super) fn ticks_of(frames: u32, ready: &[Ready; 2]) -> u64 {
    u64::from(frames) * least(ready, |played| played.worlds).max(1)
}

fn least(ready: &[Ready; 2], of: fn(&Played) -> Option<u64>) -> u64 {
    ready.iter().map(|ready| of(&ready.played).unwrap_or(0)).min().unwrap_or(0)
}

/// Ticks of a step: so many of each world; and how many such steps both builds have of the recording.
fn of_recording(plan: &PreflightPlan, recording: &Path, ready: &[Ready; 2]) -> Result<(u32, u32), PreflightError> {
    let (ticks, worlds) = (least(ready, |played| played.ticks), least(ready, |played| played.worlds));
    let ticks_per_step = ticks_of(plan.frames_per_step, ready);
    let fits = ticks / ticks_per_step;
    if fits < u64::from(STEPS_MIN) {
        let frames = ticks / (worlds.max(1) * u64::from(STEPS_MIN));
        let shorter = if frames > 0 { format!(", or say --frames-per-step {frames}") } else { String::new() };
        let hint = format!("record for longer{shorter}");
        return Err(PreflightError::TooShort {
            recording: recording.display().to_string(),
            ticks,
            worlds,
            ticks_per_step,
            hint,
        });
    }
    Ok((ticks_per_step.try_into().unwrap_or(u32::MAX), fits.min(STEPS_MAX.into()) as u32))
}

/// One of the two.
struct Process {
    side: Side,
    child: Child,
    command: String,
    recording: Option<String>,
}

impl Process {
    fn start(plan: &PreflightPlan, side: Side, core: Option<u32>) -> Result<Self, PreflightError> {
        let (path, mut arguments) = (plan.program(side), plan.arguments_of(side));
        arguments.extend(core.into_iter().flat_map(|core| ["--core".to_owned(), core.to_string()]));
        let command = format!("{} workload {}", path.display(), arguments.join(" "));
        let child = Child::start(path, "workload", &arguments, &[]);
        let child = child.map_err(|cause| PreflightError::Start { side, path: path.display().to_string(), cause })?;
        let recording = plan.recording.as_ref().map(|path| path.display().to_string());
        Ok(Self { side, child, command, recording })
    }

    /// What it says of itself; nothing if a stop is requested meanwhile.
    fn ready(&mut self, stop: &StopFlag) -> Result<Ready, PreflightError> {
        let until = Instant::now() + READY_WITHIN;
        loop {
            match self.child.hear((Instant::now() + Duration::from_millis(200)).min(until)) {
                Some(Said::Ready(ready)) => return self.read(ready),
                Some(Said::Ended) => return Err(self.ended()),
                _ if stop.requested() => return Ok(Ready::default()),
                None if Instant::now() >= until => return Err(self.silent(READY_WITHIN)),
                _ => {}
            }
        }
    }

    fn step(&mut self, order: &str) -> Result<Step, PreflightError> {
        self.child.order(order);
        let until = Instant::now() + STEP_WITHIN;
        match self.child.hear(until) {
            Some(Said::Status(step)) => self.read(step),
            Some(Said::Ended) => Err(self.ended()),
            Some(other) => Err(PreflightError::Unreadable { side: self.side, cause: format!("{other:?}") }),
            None => Err(self.silent(STEP_WITHIN)),
        }
    }

    fn read<T: DeserializeOwned>(&self, said: Value) -> Result<T, PreflightError> {
        serde_json::from_value(said)
            .map_err(|cause| PreflightError::Unreadable { side: self.side, cause: cause.to_string() })
    }

    /// What its scopes took in the last so many steps; a build from before ends instead, which it may now.
    fn scopes(&mut self, steps: usize) -> BTreeMap<String, ScopeSum> {
        self.child.order(&format!("scopes {steps}"));
        match self.child.hear(Instant::now() + STEP_WITHIN) {
            Some(Said::Status(said)) => {
                serde_json::from_value::<Scopes>(said).map_or_else(|_| BTreeMap::new(), |said| said.scopes)
            }
            _ => BTreeMap::new(),
        }
    }

    fn ended(&mut self) -> PreflightError {
        let status = self.child.exit_status(Instant::now() + END_WITHIN);
        let status = status.map_or_else(|| "still there".to_owned(), |status: ExitStatus| status.to_string());
        let words = self.child.tail().join("\n");
        let (side, command) = (self.side, self.command.clone());
        match self.recording.clone() {
            Some(recording) => PreflightError::CannotReplay { side, recording, status, command, words },
            None => PreflightError::Ended { side, status, command, words },
        }
    }

    fn silent(&mut self, after: Duration) -> PreflightError {
        let (command, words) = (self.command.clone(), self.child.tail().join("\n"));
        PreflightError::Silent { side: self.side, after, command, words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::understand;

    /// Promise: what is drawn for those who write a workload of their own is what is read here, and all that is read.
    #[test]
    fn the_page_of_the_protocol_shows_what_is_read() {
        let page = include_str!("../../../../docs/spec/workload.md");
        let lines: Vec<Said> = page.lines().filter_map(|line| understand(line.trim())).collect();
        let [Said::Ready(bots), Said::Ready(recording), Said::Status(step), Said::Status(scopes), Said::Report(_)] =
            &lines[..]
        else {
            panic!("{lines:?}")
        };
        let [bots, recording] = [bots, recording].map(|said| {
            let ready: Ready = serde_json::from_value(said.clone()).unwrap();
            let again = serde_json::to_value(&ready).unwrap();
            said.as_object()
                .expect("it has keys")
                .keys()
                .for_each(|key| assert_eq!(again[key], said[key], "{key} is read"));
            ready
        });
        assert_eq!(
            (bots.commit.as_str(), bots.instructions_missing, bots.played.npcs),
            ("1234567890ab", None, Some(800))
        );
        let both = [recording.clone(), recording];
        assert_eq!([least(&both, |played| played.worlds), least(&both, |played| played.ticks)], [12, 6_480]);
        let earlier: Ready = serde_json::from_value(serde_json::json!({"game": "duel"})).unwrap();
        assert!(earlier.instructions_missing.is_some(), "it does not say that it counts them");

        let read: Step = serde_json::from_value(step.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), *step, "every key that is read");
        assert_eq!((read.ns("replication"), read.category_ns("gameplay"), read.packets_out), (512e3, 81e3, 800));
        for key in step.as_object().expect("it has keys").keys() {
            let mut without = step.clone();
            without.as_object_mut().expect("it has keys").remove(key);
            let may_be_missing = serde_json::from_value::<Step>(without).is_ok();
            assert_eq!(may_be_missing, ["instructions", "states"].contains(&key.as_str()), "{key}");
        }
        let read: Scopes = serde_json::from_value(scopes.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), *scopes);
    }
}
