//! The report: shares per thread and the functions that have them, for people as text and for programs as JSON.

use std::fmt::{self, Write as _};

use serde::Serialize;

use super::files::ProfileFiles;
use super::ledger::Times;
use super::profile::{Profile, ThreadProfile};
use super::source::{OnCore, Source};
use super::unwind::UnwindCounts;

/// Functions per thread: in JSON enough for what a test or a dashboard looks up, in text what fits a screen.
const FUNCTIONS_IN_JSON: usize = 64;
const FUNCTIONS_IN_TEXT: usize = 8;
const THREADS_IN_TEXT: usize = 24;
/// A function with nearly all of its thread's time and none of its own, as `main`, says nothing.
const EVERYWHERE: f64 = 0.995;
/// Functions below this part of their thread are left out of the text.
const WORTH_A_LINE: f64 = 0.005;
/// A division of time that may be off by less than this is as sharp as that of other threads.
const WORTH_A_WARNING: f64 = 0.03;
/// Names of generic functions can fill pages.
const NAME_CHARS_MAX: usize = 96;

/// What `throng wallclock --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct WallclockReport {
    pub pid: u32,
    pub name: String,
    pub seconds: f64,
    pub hz: u32,
    /// Looks at sleeping threads and samples of running ones, all threads together.
    pub samples: u64,
    pub threads: Vec<ThreadReport>,
    pub stops: Stops,
    pub callgrind: Option<String>,
    pub folded: Option<String>,
    pub source: Source,
    pub unwinding: UnwindCounts,
    pub looks: u64,
    pub looks_missed: u64,
    pub samples_lost: u64,
    pub stacks_torn: u64,
    pub threads_unseen: u64,
    /// The process ended before the time was over.
    pub ended: bool,
    /// Processor time of the sampling as a share of one core; naming comes after it.
    pub own_cpu_share: f64,
    pub naming_cpu_s: f64,
}

/// One thread; shares are parts of its own wall time.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadReport {
    pub tid: u32,
    pub name: String,
    pub seconds: f64,
    pub running_share: f64,
    pub waiting_share: f64,
    pub blocked_share: f64,
    pub samples: u64,
    pub switches_per_s: f64,
    /// By how much a function's share may be off, because the thread's switches were not noted (right in 19 cases of
    /// 20); 0 where they were.
    pub share_error_max: f64,
    /// The largest first.
    pub functions: Vec<FunctionReport>,
}

/// One function of a thread with all it called; shares are parts of the thread's wall time.
#[derive(Clone, Debug, Serialize)]
pub struct FunctionReport {
    pub function: String,
    pub object: String,
    pub share: f64,
    pub self_share: f64,
    pub running_share: f64,
    pub waiting_share: f64,
    pub blocked_share: f64,
}

/// How often and for how long the process was stopped to be sampled. This sampler has no way to stop one.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stops {
    pub count: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

impl WallclockReport {
    pub fn of(profile: &Profile, files: Option<&ProfileFiles>) -> WallclockReport {
        let shown = |path: &std::path::PathBuf| path.display().to_string();
        WallclockReport {
            pid: profile.pid,
            name: profile.name.clone(),
            seconds: profile.seconds,
            hz: profile.hz,
            samples: profile.threads.iter().map(|thread| thread.times.samples).sum(),
            threads: profile.threads.iter().map(|thread| ThreadReport::of(thread, profile)).collect(),
            stops: Stops::default(),
            callgrind: files.map(|files| shown(&files.callgrind)),
            folded: files.map(|files| shown(&files.folded)),
            source: profile.source.clone(),
            unwinding: profile.unwinding,
            looks: profile.looks,
            looks_missed: profile.looks_missed,
            samples_lost: profile.samples_lost,
            stacks_torn: profile.stacks_torn,
            threads_unseen: profile.threads_unseen,
            ended: profile.has_ended,
            own_cpu_share: profile.own_cpu_share,
            naming_cpu_s: profile.naming_cpu_s,
        }
    }
}

impl ThreadReport {
    fn of(thread: &ThreadProfile, profile: &Profile) -> ThreadReport {
        let all = thread.times;
        let functions = thread.functions(&profile.frames).into_iter().take(FUNCTIONS_IN_JSON);
        ThreadReport {
            tid: thread.tid,
            name: thread.name.clone(),
            seconds: all.wall_ns() as f64 / 1e9,
            running_share: share(all.running_ns, all),
            waiting_share: share(all.waiting_ns, all),
            blocked_share: share(all.blocked_ns, all),
            samples: all.samples,
            switches_per_s: thread.switches_per_s,
            share_error_max: thread.share_error_max,
            functions: functions
                .map(|one| FunctionReport {
                    function: one.function,
                    object: one.object,
                    share: share(one.inclusive.wall_ns(), all),
                    self_share: share(one.own.wall_ns(), all),
                    running_share: share(one.inclusive.running_ns, all),
                    waiting_share: share(one.inclusive.waiting_ns, all),
                    blocked_share: share(one.inclusive.blocked_ns, all),
                })
                .collect(),
        }
    }
}

fn share(part_ns: u64, all: Times) -> f64 {
    if all.wall_ns() == 0 { 0.0 } else { part_ns as f64 / all.wall_ns() as f64 }
}

/// For a terminal. The thread that ran most comes first.
impl fmt::Display for WallclockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} ({}), {:.1} s, {} threads, {} samples, nothing was stopped",
            self.name,
            self.pid,
            self.seconds,
            self.threads.len(),
            self.samples
        )?;
        let mut threads: Vec<&ThreadReport> = self.threads.iter().collect();
        threads.sort_by(|a, b| (b.running_share * b.seconds).total_cmp(&(a.running_share * a.seconds)));
        for thread in threads.iter().take(THREADS_IN_TEXT) {
            write_thread(f, thread)?;
        }
        if threads.len() > THREADS_IN_TEXT {
            writeln!(f, "\n... and {} threads that ran less; all are in --json", threads.len() - THREADS_IN_TEXT)?;
        }
        f.write_char('\n')?;
        write_doubts(f, self)?;
        writeln!(
            f,
            "own cost: {:.1} % of one core while sampling, then {:.1} s for names",
            self.own_cpu_share * 100.0,
            self.naming_cpu_s
        )?;
        if let (Some(callgrind), Some(folded)) = (&self.callgrind, &self.folded) {
            writeln!(f, "written: {callgrind} (kcachegrind, callgrind_annotate), {folded} (flame graphs, speedscope)")?;
        }
        Ok(())
    }
}

fn write_thread(f: &mut fmt::Formatter<'_>, thread: &ThreadReport) -> fmt::Result {
    let percent = |share: f64| share * 100.0;
    writeln!(
        f,
        "\n{} ({}): running {:.1} %, waiting for a core {:.1} %, blocked {:.1} %",
        thread.name,
        thread.tid,
        percent(thread.running_share),
        percent(thread.waiting_share),
        percent(thread.blocked_share)
    )?;
    if thread.share_error_max >= WORTH_A_WARNING {
        writeln!(
            f,
            "  shares below may be {:.1} points off: it switches {:.0} times a second, and its switches were not noted; \
             more --seconds or --hz tell more",
            percent(thread.share_error_max),
            thread.switches_per_s
        )?;
    }
    let worth =
        |one: &&FunctionReport| one.share >= WORTH_A_LINE && (one.share < EVERYWHERE || one.self_share >= WORTH_A_LINE);
    for one in thread.functions.iter().filter(worth).take(FUNCTIONS_IN_TEXT) {
        let name: String = one.function.chars().take(NAME_CHARS_MAX).collect();
        writeln!(
            f,
            "  {:>5.1} %  (running {:>5.1}, waiting {:>5.1}, blocked {:>5.1})  {name}",
            percent(one.share),
            percent(one.running_share),
            percent(one.waiting_share),
            percent(one.blocked_share)
        )?;
    }
    Ok(())
}

/// What a reader should know before believing the figures.
fn write_doubts(f: &mut fmt::Formatter<'_>, report: &WallclockReport) -> fmt::Result {
    if report.ended {
        writeln!(f, "note: the process ended before the time was over")?;
    }
    if let Some(advice) = &report.source.advice {
        writeln!(f, "note: {advice}")?;
    }
    let lacking = report.source.threads_without_samples;
    if lacking > 0 && report.source.on_core != OnCore::Nothing {
        writeln!(
            f,
            "note: {lacking} threads were not sampled while running, for lack of locked memory; raise \
             kernel.perf_event_mlock_kb or `ulimit -l`"
        )?;
    }
    let counts = report.unwinding;
    if counts.cut_off > 0 {
        writeln!(f, "note: {} of {} stacks lack their callers' end", counts.cut_off, counts.cut_off + counts.complete)?;
    }
    for (count, what) in [
        (report.threads_unseen, "times a thread could not be looked at (`ulimit -n` too low?)"),
        (report.looks_missed, "looks came too late: the host is busy"),
        (report.samples_lost, "samples of running threads were lost"),
        (report.stacks_torn, "stacks changed while they were read"),
    ] {
        if count > 0 {
            writeln!(f, "note: {count} {what}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::profile::tests::example;
    use super::*;

    #[test]
    fn shares_are_parts_of_each_threads_own_time() {
        let report = WallclockReport::of(&example(), None);
        let thread = &report.threads[0];
        assert!((thread.running_share - 0.3).abs() < 1e-9 && (thread.blocked_share - 0.7).abs() < 1e-9);
        let rest = thread.functions.iter().find(|one| one.function.starts_with("rest")).unwrap();
        assert!((rest.share - 0.7).abs() < 1e-9 && rest.running_share == 0.0);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["stops"]["count"], 0);
        assert_eq!(json["source"]["on_core"], "kernel_too");
    }

    #[test]
    fn the_text_names_what_a_thread_did_and_leaves_out_what_is_everywhere() {
        let text = WallclockReport::of(&example(), None).to_string();
        assert!(text.contains("running 30.0 %, waiting for a core 0.0 %, blocked 70.0 %"), "{text}");
        assert!(text.contains("70.0 %  (running   0.0, waiting   0.0, blocked  70.0)  rest; deep"), "{text}");
        assert!(!text.contains("note:") && !text.contains("points off"), "{text}");
    }

    #[test]
    fn a_thread_whose_switches_were_not_noted_says_how_far_its_shares_may_be_off() {
        let mut profile = example();
        profile.threads[0].switches_per_s = 9_000.0;
        profile.threads[0].share_error_max = 0.041;
        let report = WallclockReport::of(&profile, None);
        let text = report.to_string();
        assert!(text.contains("may be 4.1 points off: it switches 9000 times a second"), "{text}");
        assert_eq!(serde_json::to_value(&report).unwrap()["threads"][0]["share_error_max"], 0.041);
    }
}
