//! Promise: a recording is a workload of preflight as bots are: what is slower is named, equals are not, and what cannot be measured is
//! told with the recording's name and what to do.
//!
//! The builds are scripts that speak docs/spec/workload.md; real ones are in the tests of games/meadow.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use throng_lab::preflight::statistics::Verdict;
use throng_lab::preflight::{self, PreflightError, PreflightPlan, PreflightReport};
use throng_platform::signals::StopFlag;

/// One test at a time: a script that is still being written cannot be started, and a process that another test starts meanwhile may
/// have it open.
static ALONE: Mutex<()> = Mutex::new(());

struct Builds {
    folder: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Builds {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Builds {
    fn new(name: &str) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = std::env::temp_dir().join(format!("throng-lab-preflight-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self { folder, _alone: alone }
    }

    /// One that replays so many ticks of three worlds, whose `ai` takes so long in a step of ten of each (ns).
    fn build(&self, name: &str, ticks: u32, ai_ns: u32) -> PathBuf {
        self.script(
            name,
            &format!(
                r#"[ "$1 $2 $3" = "workload --recording evening" ] || exit 9
echo '{{"ready":{{"commit":"{name}","game":"meadow","worlds":3,"ticks":{ticks},"instructions_missing":"none"}}}}'
while read order number; do
  case "$order $number" in
    "step 30") echo '{{"status":{{"times_ns":{{"ai":["gameplay",{ai_ns}],"net":["net",60000]}},"allocations":60,"packets_out":0,"bytes_out":0,"waited_ns":0}}}}';;
    scopes*) echo '{{"status":{{"scopes":{{}}}}}}';;
    *) exit 8;;
  esac
done"#
            ),
        )
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

fn plan(base: &Path, change: &Path) -> PreflightPlan {
    PreflightPlan {
        base: base.to_owned(),
        change: change.to_owned(),
        recording: Some("evening".into()),
        files_read: Vec::new(),
        arguments: ["--recording", "evening"].map(str::to_owned).to_vec(),
        base_arguments: Vec::new(),
        change_arguments: Vec::new(),
        seconds: 0,
        pair_s: 0.0,
        frames_per_step: 10,
        valgrind: false,
    }
}

fn compared(base: &Path, change: &Path) -> Result<PreflightReport, PreflightError> {
    preflight::run(&plan(base, change), &StopFlag::new().unwrap(), |_, _| ())
}

#[test]
fn a_slower_subsystem_of_a_replay_is_named_and_an_equal_one_is_not() {
    let builds = Builds::new("slower");
    let (base, slow) = (builds.build("base", 600, 30_000), builds.build("slow", 600, 33_000));
    let report = compared(&base, &slow).unwrap();
    let row = |name: &str| report.findings.subsystems.iter().find(|row| row.name == name).unwrap();
    assert_eq!((row("ai").verdict, row("net").verdict), (Verdict::Slower, Verdict::None));
    // 30 ticks of one world are a step.
    assert_eq!((row("ai").base_us, row("ai").change_us), (1.0, 1.1));
    assert_eq!((report.passed, report.workload.as_str()), (false, "recording evening (meadow, worlds: 3)"));
    assert_eq!((report.steps_per_pair, report.counts[0].base), (20, 2.0), "as many as there are");

    let report = compared(&base, &base).unwrap();
    assert!(report.passed && report.verdict == Verdict::None, "{:?}", report.verdict);
}

/// Promise: a build that replays by other rules than the recorded ones is told of, and so is a recording that is not whole.
#[test]
fn what_a_replay_lacks_is_told() {
    let builds = Builds::new("lacks");
    let base = builds.build("base", 600, 30_000);
    let whole = compared(&base, &base).unwrap();
    assert!(whole.rules_missing.is_empty() && whole.recording_faults.is_empty());
    let script = fs::read_to_string(&base).unwrap();
    let damaged =
        builds.script("damaged", &script.replace(r#""worlds""#, r#""recording_faults":["damaged"],"worlds""#));
    for base in [&damaged, &base] {
        assert_eq!(compared(base, &damaged).unwrap().recording_faults, ["damaged"], "an earlier base says nothing");
    }
    let without = fs::read_to_string(builds.build("without", 600, 30_000)).unwrap();
    let without = without
        .replace(r#""instructions_missing""#, r#""rules_missing":"no trigger `sideways`","instructions_missing""#);
    let change = builds.script("change", &without);
    assert_eq!(compared(&base, &change).unwrap().rules_missing, ["change: no trigger `sideways`"]);
}

/// Promise: pairs of two builds are no verdict of one, by whichever name both ran.
#[test]
fn a_program_that_is_replaced_meanwhile_is_told() {
    let builds = Builds::new("replaced");
    let (base, other) = (builds.build("base", 600, 30_000), builds.build("other", 600, 33_000));
    let change = builds.build("change", 600, 30_000);
    let replacing = |number: usize, _| {
        if number == 1 {
            fs::rename(&other, &change).unwrap();
        }
    };
    let error = preflight::run(&plan(&base, &change), &StopFlag::new().unwrap(), replacing).unwrap_err().to_string();
    assert!(error.starts_with("change: ") && error.contains("was replaced while it was compared"), "{error}");
}

#[test]
fn a_recording_that_is_too_short_says_what_would_do() {
    let builds = Builds::new("short");
    let (base, short) = (builds.build("base", 600, 30_000), builds.build("short", 599, 30_000));
    let error = compared(&base, &short).unwrap_err().to_string();
    for part in
        ["evening is too short", "599 ticks of 3 worlds", "20 steps of 30", "record for longer", "--frames-per-step 9"]
    {
        assert!(error.contains(part), "{part:?} is not in {error}");
    }
    let error = compared(&base, &builds.build("none", 20, 30_000)).unwrap_err().to_string();
    assert!(error.contains("record for longer") && !error.contains("--frames-per-step"), "{error}");
}

#[test]
fn a_build_that_cannot_replay_it_is_named_with_its_words() {
    let builds = Builds::new("cannot");
    let base = builds.build("base", 600, 30_000);
    let other = builds.script("other", "echo 'evening: world 3 cannot be replayed: no kind' >&2\nexit 2");
    let error = compared(&base, &other).unwrap_err().to_string();
    for part in [
        "change cannot replay evening (exit status: 2)",
        "world 3 cannot be replayed: no kind",
        "needs a recording made",
    ] {
        assert!(error.contains(part), "{part:?} is not in {error}");
    }
}
