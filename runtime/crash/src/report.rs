//! The report of one death: what it says, how it is written, and how many are kept.
//!
//! ```text
//! <folder>/crash-1763700000-4711/
//!     report.txt     for a person; written last, so where it is the rest is whole
//!     report.json    the same for programs
//!     crash.dmp      a minidump: stacks of all threads, for a debugger
//!     last.capture   and whatever else the state source attached
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_redact as redact;

use crate::last_words::LastWords;
use crate::panics::PanicWords;
use crate::signature;
use crate::state::{ProcessState, WorldState};
use crate::wire::Hello;

/// The minidump's name in its folder.
pub(crate) const DUMP_FILE: &str = "crash.dmp";
pub(crate) const JSON_FILE: &str = "report.json";
pub(crate) const TEXT_FILE: &str = "report.txt";

/// What is known about one death. Its JSON form is `report.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrashReport {
    /// 1; another number is another meaning of the fields.
    pub format: u32,
    pub build: String,
    pub game: String,
    pub seed: Option<u64>,
    pub pid: u32,
    pub died_at_unix_s: u64,
    /// `None` when the process was gone before anybody could see by which signal.
    pub signal: Option<SignalName>,
    /// What that means, in plain words.
    pub meaning: String,
    /// What equal deaths have in common: signal, meaning, and the innermost functions of our own code, or file and text of
    /// the panic. Without addresses. Empty in reports of builds that had none.
    #[serde(default)]
    pub signature: String,
    /// What the thread that died said in its last panic, where that was just before.
    pub panic: Option<PanicWords>,
    /// The kernel killed it, since its control group had no memory left.
    #[serde(default)]
    pub is_out_of_memory: bool,
    /// What the process said before it ended itself.
    #[serde(default)]
    pub last_words: Option<LastWords>,
    /// The address whose use was the fault, in hexadecimal.
    pub fault_address: Option<String>,
    /// How long before the death the state of worlds and scopes was taken; `None` when there is none.
    pub state_age_ms: Option<u64>,
    pub facts: BTreeMap<String, String>,
    /// The one that died first.
    pub threads: Vec<CrashedThread>,
    /// What could not be had, and why.
    pub incomplete: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalName {
    pub number: i32,
    pub name: String,
}

/// One thread of a dead process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrashedThread {
    pub tid: u32,
    pub name: String,
    /// What it was there for; empty for a thread that the state source did not know.
    pub class: String,
    /// Whether this is the thread that the process died of.
    pub is_culprit: bool,
    pub world: Option<WorldState>,
    /// Outermost first.
    pub open_scopes: Vec<String>,
    /// Innermost first.
    pub stack: Vec<Frame>,
    /// Frames left out of the middle, after as many as [`Self::frames_before_gap`].
    pub frames_left_out: usize,
    pub frames_before_gap: usize,
}

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// The executable or library.
    pub module: Option<String>,
    /// In that file, or in the process where no file is known.
    pub address: u64,
}

impl CrashReport {
    pub(crate) fn new(hello: &Hello, died_at_unix_s: u64) -> Self {
        Self {
            format: 1,
            build: hello.build.clone(),
            game: hello.game.clone(),
            seed: hello.seed,
            pid: hello.pid,
            died_at_unix_s,
            ..Default::default()
        }
    }

    /// Adds what the process said of itself, `age` before its death.
    pub(crate) fn describe_process(&mut self, state: ProcessState, age: Duration, culprit_tid: Option<u32>) {
        self.state_age_ms = Some(age.as_millis() as u64);
        let died_of = |panic: &PanicWords| Some(panic.tid) == culprit_tid && panic.ms_before <= PANIC_MS_BEFORE_MAX;
        self.panic = state.panics.into_iter().find(|panic| self.is_abort() && died_of(panic)).map(|panic| PanicWords {
            text: redact::free_text(&panic.text),
            place: redact::name(&panic.place),
            ..panic
        });
        self.last_words = state
            .last_words
            .map(|words| LastWords { why: redact::free_text(&words.why), details: redact::free_text(&words.details) });
        self.facts = state.facts.iter().map(|(name, fact)| (redact::name(name), redact::free_text(fact))).collect();
        for told in state.threads {
            let known = self.threads.iter().position(|thread| thread.tid == told.tid);
            let index = known.unwrap_or_else(|| {
                let name = redact::name(&told.name);
                self.threads.push(CrashedThread { tid: told.tid, name, ..Default::default() });
                self.threads.len() - 1
            });
            let thread = &mut self.threads[index];
            thread.class = redact::name(&told.class);
            thread.open_scopes = told.open_scopes.iter().map(|scope| redact::name(scope)).collect();
            thread.world = told.world.map(|world| WorldState {
                kind: world.kind.as_deref().map(redact::name),
                last_inputs: world.last_inputs.iter().map(|input| redact::name(input)).collect(),
                ..world
            });
        }
        for thread in &mut self.threads {
            thread.is_culprit = Some(thread.tid) == culprit_tid;
        }
        // Then those that were at work.
        self.threads.sort_by_key(|thread| (!thread.is_culprit, thread.world.is_none(), thread.open_scopes.is_empty()));
    }

    /// Ended by the program itself, as panics do that nobody catches.
    pub(crate) fn is_abort(&self) -> bool {
        self.signal.as_ref().is_some_and(|signal| matches!(signal.number, libc::SIGABRT | libc::SIGILL))
    }

    /// The thread that the process died of.
    pub fn culprit(&self) -> Option<&CrashedThread> {
        self.threads.first().filter(|thread| thread.is_culprit)
    }

    /// The death in one line.
    pub fn headline(&self) -> String {
        let signal = self.signal.as_ref().map_or("killed", |signal| signal.name.as_str());
        let mut line = format!("{signal}: {}", self.meaning);
        if let Some(thread) = self.culprit() {
            let _ = write!(line, " in thread {}", thread.name);
            if let Some(world) = &thread.world {
                let _ = write!(line, ", ticking {}", describe(world));
            }
        }
        line
    }

    /// The page for a person.
    pub fn text(&self) -> String {
        let mut page = self.headline();
        page.push_str("\n\n");
        let mut row = |name: &str, value: String| {
            let _ = writeln!(page, "{name:<12}{value}");
        };
        if let Some(panic) = &self.panic {
            row("panic", format!("at {}, {} ms before: {}", panic.place, panic.ms_before, panic.text));
        }
        if let Some(words) = &self.last_words {
            row("last words", format!("{}: {}", words.why, words.details));
        }
        if !self.signature.is_empty() {
            row("signature", self.signature.clone());
        }
        row("build", self.build.clone());
        row("game", self.game.clone());
        row("seed", self.seed.map_or_else(|| "none".into(), |seed| seed.to_string()));
        row("died", format!("at unix time {} s, process {}", self.died_at_unix_s, self.pid));
        if let Some(age_ms) = self.state_age_ms {
            row("worlds", format!("and scopes as they were {age_ms} ms before the report"));
        }
        for (name, fact) in &self.facts {
            row(name, fact.clone());
        }
        for lack in &self.incomplete {
            row("incomplete", lack.clone());
        }
        for thread in &self.threads {
            thread.write_to(&mut page);
        }
        page
    }

    /// Says what equal deaths have in common, and writes both forms into the folder of this death.
    pub(crate) fn write(&mut self, folder: &Path) -> io::Result<()> {
        self.signature = signature::of(self);
        write_whole(&folder.join(JSON_FILE), &serde_json::to_vec_pretty(self)?)?;
        write_whole(&folder.join(TEXT_FILE), self.text().as_bytes())
    }
}

/// A panic that was longer ago was caught, and is not what the thread died of: unwinding takes no seconds. (ms)
const PANIC_MS_BEFORE_MAX: u64 = 10_000;

impl CrashedThread {
    fn write_to(&self, page: &mut String) {
        let _ = write!(page, "\nthread {} ({})", self.name, self.tid);
        if !self.class.is_empty() {
            let _ = write!(page, ", {}", self.class);
        }
        page.push_str(if self.is_culprit { ": died here\n" } else { "\n" });
        if let Some(world) = &self.world {
            let _ = writeln!(page, "  {}", describe(world));
            for input in &world.last_inputs {
                let _ = writeln!(page, "    was given: {input}");
            }
        }
        if !self.open_scopes.is_empty() {
            let _ = writeln!(page, "  open scopes: {}", self.open_scopes.join(" > "));
        }
        let (inner, outer) = self.stack.split_at(self.frames_before_gap.min(self.stack.len()));
        write_calls(page, inner);
        if self.frames_left_out > 0 {
            let _ = writeln!(page, "  ... {} calls left out ...", self.frames_left_out);
        }
        write_calls(page, outer);
    }
}

/// Calls, with those that repeat themselves written once: an endless recursion is a line or three.
fn write_calls(page: &mut String, calls: &[Frame]) {
    /// Functions that may take turns in a recursion, inlined ones included.
    const PERIOD_MAX: usize = 12;
    let mut rest = calls;
    while !rest.is_empty() {
        let repeated = |period: usize| rest.chunks_exact(period).take_while(|&calls| calls == &rest[..period]).count();
        let found =
            (1..=PERIOD_MAX.min(rest.len())).map(|period| (period, repeated(period))).find(|&(_, times)| times > 2);
        let (period, times) = found.unwrap_or((1, 1));
        for frame in &rest[..period] {
            let _ = writeln!(page, "  {}", frame.text());
        }
        if times > 1 {
            let _ = writeln!(page, "    ... these {period} calls {times} times in a row");
        }
        rest = &rest[period * times..];
    }
}

impl Frame {
    /// Function and line, for a line of a log.
    pub fn in_brief(&self) -> String {
        let mut text = match (&self.function, &self.module) {
            (Some(function), _) => function.clone(),
            (None, module) => format!("{}+{:#x}", module.as_deref().unwrap_or("nowhere"), self.address),
        };
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            let _ = write!(text, " ({}:{line})", file.rsplit('/').next().unwrap_or(file));
        }
        text
    }

    fn text(&self) -> String {
        let mut text = self.function.clone().unwrap_or_else(|| "?".into());
        if let Some(file) = &self.file {
            let _ = write!(text, " at {file}");
            if let Some(line) = self.line {
                let _ = write!(text, ":{line}");
            }
        }
        let _ = write!(text, "  [{}+{:#x}]", self.module.as_deref().unwrap_or("nowhere"), self.address);
        text
    }
}

fn describe(world: &WorldState) -> String {
    let mut text = format!("world {}", world.id);
    if let Some(kind) = &world.kind {
        let _ = write!(text, " ({kind})");
    }
    if let Some(tick) = world.tick {
        let _ = write!(text, " at tick {tick}");
    }
    if let Some(seed) = world.seed {
        let _ = write!(text, ", seed {seed}");
    }
    text
}

/// A reader finds the whole file or none.
pub(crate) fn write_whole(path: &Path, contents: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, contents)?;
    fs::rename(unfinished, path)
}

const FOLDER_PREFIX: &str = "crash-";

pub(crate) fn folder_name(died_at_unix_s: u64, pid: u32) -> String {
    format!("{FOLDER_PREFIX}{died_at_unix_s}-{pid}")
}

/// When and which, if it is the name of such a folder.
fn parse_folder_name(name: &str) -> Option<(u64, u32)> {
    let (at, pid) = name.strip_prefix(FOLDER_PREFIX)?.split_once('-')?;
    Some((at.parse().ok()?, pid.parse().ok()?))
}

/// The process whose death a folder is about.
pub(crate) fn pid_of(death: &Path) -> Option<u32> {
    parse_folder_name(death.file_name()?.to_str()?).map(|(_, pid)| pid)
}

/// The folders in `folder` that are named like deaths, the oldest first.
pub(crate) fn folders_of_deaths(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut deaths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some(death) = entry.file_name().to_str().and_then(parse_folder_name) {
            deaths.push((death, entry.path()));
        }
    }
    deaths.sort();
    Ok(deaths.into_iter().map(|(_, path)| path).collect())
}

/// Removes the oldest deaths beyond `kept`, and those of which all newer ones together leave no room within
/// `bytes_max`; the newest stays, however large. Touches nothing that is not named like one.
pub(crate) fn remove_oldest(folder: &Path, kept: usize, bytes_max: u64) -> io::Result<()> {
    let mut bytes = 0_u64;
    for (place, death) in folders_of_deaths(folder)?.into_iter().rev().enumerate() {
        bytes = bytes.saturating_add(bytes_in(&death));
        if place > 0 && (place >= kept || bytes > bytes_max) {
            fs::remove_dir_all(death)?;
        }
    }
    Ok(())
}

/// Of the files in a death's folder, which has no folders.
fn bytes_in(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::ThreadState;

    fn report() -> CrashReport {
        let frame = |function: &str| Frame {
            function: Some(function.into()),
            file: Some("list.rs".into()),
            line: Some(7),
            module: Some("throng".into()),
            address: 0x1234,
        };
        let thread = |tid, name: &str| CrashedThread { tid, name: name.into(), ..Default::default() };
        let worker = CrashedThread {
            stack: vec![frame("drop"), frame("tick")],
            frames_left_out: 40_000,
            frames_before_gap: 1,
            ..thread(3, "worker-1")
        };
        let mut report = CrashReport {
            format: 1,
            build: "0.1.0".into(),
            game: "precinct".into(),
            seed: Some(42),
            pid: 1,
            died_at_unix_s: 1_763_700_000,
            signal: Some(SignalName { number: 11, name: "SIGSEGV".into() }),
            meaning: "stack overflow".into(),
            threads: vec![thread(1, "throng"), thread(2, "worker-0"), worker],
            ..Default::default()
        };
        let world = WorldState {
            id: 12,
            kind: Some("hideout".into()),
            tick: Some(9),
            seed: Some(77),
            last_inputs: vec!["Shoot from 10.1.2.3:999".into()],
            ..WorldState::default()
        };
        let told = ThreadState {
            tid: 3,
            name: "worker-1".into(),
            class: "worker".into(),
            world: Some(world),
            open_scopes: vec!["frame".into(), "ai.perception".into()],
        };
        let facts = BTreeMap::from([("players".into(), "700".into())]);
        let state = ProcessState { facts, threads: vec![told], ..ProcessState::default() };
        report.describe_process(state, Duration::from_millis(3), Some(3));
        report
    }

    #[test]
    fn the_page_begins_with_the_death_and_its_thread() {
        let expected = "\
SIGSEGV: stack overflow in thread worker-1, ticking world 12 (hideout) at tick 9, seed 77

build       0.1.0
game        precinct
seed        42
died        at unix time 1763700000 s, process 1
worlds      and scopes as they were 3 ms before the report
players     700

thread worker-1 (3), worker: died here
  world 12 (hideout) at tick 9, seed 77
    was given: Shoot from <address>
  open scopes: frame > ai.perception
  drop at list.rs:7  [throng+0x1234]
  ... 40000 calls left out ...
  tick at list.rs:7  [throng+0x1234]

thread throng (1)

thread worker-0 (2)
";
        assert_eq!(report().text(), expected);
    }

    #[test]
    fn a_recursion_is_written_once() {
        let frame = |address| Frame { address, ..Default::default() };
        let calls: Vec<Frame> = [1, 2, 3, 2, 3, 2, 3, 4, 4].map(frame).into();
        let mut page = String::new();
        write_calls(&mut page, &calls);
        let lines: Vec<_> =
            page.lines().map(|line| line.trim().trim_start_matches("?  [nowhere+0x").trim_end_matches(']')).collect();
        assert_eq!(lines, ["1", "2", "3", "... these 2 calls 3 times in a row", "4", "4"]);
    }

    #[test]
    fn a_program_reads_back_what_was_written() {
        let folder = std::env::temp_dir().join(format!("throng-report-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut report = report();
        report.write(&folder).unwrap();
        let read: CrashReport = serde_json::from_slice(&fs::read(folder.join(JSON_FILE)).unwrap()).unwrap();
        assert_eq!(read, report);
        assert_eq!(read.signature, "SIGSEGV stack overflow: drop < tick");
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [JSON_FILE, TEXT_FILE], "nothing unfinished is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_oldest_deaths_go_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("throng-deaths-{}", std::process::id()));
        let names = ["crash-9-3", "crash-10-1", "crash-10-2", "crash-report", "crash-7-x", "notes"];
        names.iter().for_each(|name| fs::create_dir_all(folder.join(name)).unwrap());
        let left = |kept, bytes_max| {
            remove_oldest(&folder, kept, bytes_max).unwrap();
            let mut left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            left.sort();
            left
        };
        assert_eq!(left(2, 10), ["crash-10-1", "crash-10-2", "crash-7-x", "crash-report", "notes"]);
        fs::write(folder.join("crash-10-1/crash.dmp"), [0; 6]).unwrap();
        fs::write(folder.join("crash-10-2/crash.dmp"), [0; 60]).unwrap();
        assert_eq!(left(2, 10), ["crash-10-2", "crash-7-x", "crash-report", "notes"], "the newest stays");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_panic_is_told_of_the_thread_that_died_of_it_and_cleaned() {
        let told = |signal: i32, ms_before: u64, tid: u32| {
            let panic = PanicWords {
                tid,
                text: "no route to 10.1.2.3:999 for \"Mallory\"".into(),
                place: "games/a/src/list.rs:7".into(),
                ms_before,
            };
            let signal = Some(SignalName { number: signal, name: "SIG".into() });
            let mut report = CrashReport { signal, ..CrashReport::default() };
            let state = ProcessState { panics: vec![panic], ..ProcessState::default() };
            report.describe_process(state, Duration::ZERO, Some(3));
            report
        };
        let report = told(libc::SIGABRT, 2, 3);
        let row = "panic       at games/a/src/list.rs:7, 2 ms before: no route to <address> for <text>\n";
        assert!(report.text().contains(row), "{}", report.text());
        for other in [told(libc::SIGSEGV, 2, 3), told(libc::SIGABRT, 60_000, 3), told(libc::SIGABRT, 2, 4)] {
            assert_eq!(other.panic, None, "it did not die of it");
        }
    }

    #[test]
    fn an_end_that_was_meant_is_told_by_its_last_words() {
        let told = |signal: i32| {
            let signal = Some(SignalName { number: signal, name: "SIG".into() });
            let mut report = CrashReport { signal, meaning: "abort".into(), ..CrashReport::default() };
            let words = LastWords { why: "all were stuck".into(), details: "7 with 10.1.2.3:999".into() };
            report.describe_process(
                ProcessState { last_words: Some(words), ..Default::default() },
                Duration::ZERO,
                None,
            );
            crate::cause::tell_of_own_end(&mut report);
            report
        };
        let report = told(libc::SIGABRT);
        assert_eq!(report.meaning, "all were stuck");
        assert!(report.text().contains("last words  all were stuck: 7 with <address>\n"), "{}", report.text());
        assert_eq!(told(libc::SIGSEGV).meaning, "abort", "something else came first");
    }
}
