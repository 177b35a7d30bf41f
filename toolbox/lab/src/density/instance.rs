//! One instance of the measured program: started, watched, and ended with all that it has started itself.
//!
//! It leads a process group of its own, so that Ctrl-C on a terminal reaches the lab alone. Its stdin is a pipe that stays
//! open: a server that ends when nobody speaks to it any more goes on, and ends with the lab. One thread reads both of its
//! outputs, so that it never waits for the lab, and keeps the last [`TAIL_LINES`] lines for errors. Dropping an instance
//! kills its group.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use throng_platform::nodes::Node;
use throng_platform::process_groups;
use throng_platform::threads::{Priority, spawn_named};

use super::error::DensityError;
use super::log_pattern::LogPattern;
use super::placeholders::Place;
use super::watch::{self, FrameSource, LoggedFrames, NotYet, Watch};

/// Enough for a panic's message and the frames that matter.
const TAIL_LINES: usize = 24;
/// Of a longer line the rest is one of its own.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// How long the reader may be behind a program that has just ended.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A running program.
pub(crate) struct Instance {
    pub index: u32,
    pub command: String,
    pub watch: Watch,
    process: Child,
    /// Then its number, and that of its group, may be another process's.
    is_waited_for: bool,
    words: Arc<Mutex<Words>>,
}

/// What it wrote last. Written by its reader.
#[derive(Default)]
struct Words {
    tail: VecDeque<String>,
    /// Nobody can write any more.
    is_closed: bool,
}

impl Instance {
    /// Starts the command with the words of its place, on a node where there are several.
    pub fn start(
        words: &[String],
        source: &FrameSource,
        place: Place,
        node: Option<&Node>,
    ) -> Result<Self, DensityError> {
        let filled: Vec<String> = words.iter().map(|word| place.fill(word)).collect();
        let command = filled.join(" ");
        let refused = |cause: io::Error| match cause.kind() {
            io::ErrorKind::NotFound => DensityError::NoProgram { program: filled.first().cloned().unwrap_or_default() },
            _ => DensityError::Start { command: command.clone(), cause },
        };
        let (program, arguments) = filled.split_first().ok_or_else(|| refused(io::ErrorKind::NotFound.into()))?;
        let started = io::pipe().and_then(|(output, writer)| {
            let mut starting = Command::new(program);
            starting.args(arguments).process_group(0).stdin(Stdio::piped());
            starting.stdout(writer.try_clone()?).stderr(writer);
            // The ends to write into go with the command: the last one is the program's.
            Ok((output, start_on(node, starting)?))
        });
        let (output, process) = started.map_err(refused)?;

        let said = Arc::new(Mutex::new(Words::default()));
        let (watch, pattern) = match source {
            FrameSource::Metrics { url, metric } => {
                let (url, metric) = (place.fill(url), metric.clone());
                (Watch::Page { url, metric, edge: None, begun: None, gauged: Default::default() }, None)
            }
            FrameSource::Log(pattern) => {
                let logged = Arc::new(Mutex::new(LoggedFrames::default()));
                (Watch::Log { logged: logged.clone(), begun: None }, Some((pattern.clone(), logged)))
            }
        };
        let instance = Self {
            index: place.index,
            command: command.clone(),
            watch,
            process,
            is_waited_for: false,
            words: said.clone(),
        };
        spawn_named("instance-output", Priority::Normal, move || read_lines(output, &said, pattern))
            .map_err(|cause| DensityError::Start { command, cause })?;
        Ok(instance)
    }

    /// Of the program, and of the group of all that it starts.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// An error if it has ended.
    pub fn check(&mut self) -> Result<(), DensityError> {
        if !process_groups::has_ended(self.pid()) {
            return Ok(());
        }
        let status = self.kill().map_or_else(|error| error.to_string(), |status| status.to_string());
        Err(DensityError::Ended { index: self.index, status, command: self.command.clone(), words: self.last_words() })
    }

    /// Why it has no frame times yet, if it has none.
    pub fn look(&self) -> Result<(), NotYet> {
        self.watch.look()
    }

    /// Signals it, and ends what it could read. It may go on for as long as it likes.
    fn ask_to_end(&mut self) {
        self.process.stdin = None;
        process_groups::ask_to_end(self.pid());
    }

    /// Ends what is left of it and of all that it has started.
    fn kill(&mut self) -> io::Result<ExitStatus> {
        if !self.is_waited_for {
            process_groups::kill(self.pid());
            self.is_waited_for = true;
        }
        self.process.wait()
    }

    /// What it wrote last, indented.
    pub fn last_words(&self) -> String {
        let deadline = Instant::now() + LAST_WORDS_WITHIN;
        while self.is_waited_for && !lock(&self.words).is_closed && Instant::now() < deadline {
            thread::sleep(LOOK_EVERY);
        }
        match &lock(&self.words).tail {
            tail if tail.is_empty() => "  (none)".to_owned(),
            tail => tail.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"),
        }
    }
}

/// Asks them to end, and waits for that. A launcher often ends before its server, so it is over when nobody of their
/// groups runs any more; who does after `within` is killed.
pub(crate) fn end_all(mut instances: Vec<Instance>, within: Duration) {
    instances.iter_mut().for_each(Instance::ask_to_end);
    let deadline = Instant::now() + within;
    let groups: BTreeSet<u32> = instances.iter().map(Instance::pid).collect();
    while !process_groups::running(&groups).is_empty() && Instant::now() < deadline {
        thread::sleep(LOOK_EVERY);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn start_on(node: Option<&Node>, mut command: Command) -> io::Result<Child> {
    let Some(node) = node.cloned() else { return command.spawn() };
    // Children have the cores of the thread that starts them; this one keeps its own.
    let starter = spawn_named("starter", Priority::Normal, move || {
        node.tie_calling_thread()?;
        command.spawn()
    })?;
    starter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn read_lines(output: impl Read, words: &Mutex<Words>, pattern: Option<(LogPattern, Arc<Mutex<LoggedFrames>>)>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while let Ok(1..) = output.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if let Some((pattern, logged)) = &pattern
            && let Some(ms) = pattern.find_ms(text)
        {
            let mut logged = watch::lock(logged);
            logged.times.record(ms);
            logged.count += 1;
        }
        let mut words = lock(words);
        if words.tail.len() == TAIL_LINES {
            words.tail.pop_front();
        }
        words.tail.push_back(text.to_owned());
        drop(words);
        line.clear();
    }
    lock(words).is_closed = true;
}

/// The tail is text that is replaced whole lines at a time: a reader that panicked left nothing half done.
fn lock(words: &Mutex<Words>) -> MutexGuard<'_, Words> {
    words.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(words: &[&str], pattern: &str) -> Result<Instance, DensityError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let place = Place { index: 2, port: 20_000, metrics_port: 20_001, worlds: 1 };
        Instance::start(&words, &FrameSource::Log(pattern.parse().unwrap()), place, None)
    }

    fn wait_for(instance: &Instance) {
        while instance.look().is_err() {
            thread::sleep(LOOK_EVERY);
        }
    }

    #[test]
    fn frames_are_read_from_both_outputs_of_all_that_it_starts() {
        let script = "echo 'frame 1 ms'; echo 'frame 3 ms' >&2; (echo 'frame 5 ms'); sleep 600";
        let mut instance = start(&["sh", "-c", script], "frame {ms} ms").unwrap();
        let Watch::Log { logged, .. } = &instance.watch else { panic!("it is a log") };
        while watch::lock(logged).count < 3 {
            thread::sleep(LOOK_EVERY);
        }
        let watched = instance.watch.end().unwrap();
        assert_eq!((watched.times.count, watched.times.mean_ms()), (3.0, Some(3.0)));
        instance.check().unwrap();
    }

    #[test]
    fn an_instance_ends_with_all_that_it_has_started() {
        let instance = start(&["sh", "-c", "sleep 600 & echo 'frame {index} ms'; wait"], "frame {ms} ms").unwrap();
        wait_for(&instance);
        let group = BTreeSet::from([instance.pid()]);
        assert_eq!(process_groups::members(&group).len(), 2);
        end_all(vec![instance], Duration::from_secs(60));
        assert_eq!(running(&group), 0);

        let deaf = start(&["sh", "-c", "trap '' TERM; echo 'frame 1 ms'; while :; do sleep 600; done"], "frame {ms}");
        let deaf = deaf.unwrap();
        wait_for(&deaf);
        let group = BTreeSet::from([deaf.pid()]);
        end_all(vec![deaf], Duration::ZERO);
        assert_eq!(running(&group), 0);
    }

    fn running(group: &BTreeSet<u32>) -> usize {
        // The kernel ends them in its own time.
        for _ in 0..1_000 {
            if process_groups::running(group).is_empty() {
                return 0;
            }
            thread::sleep(LOOK_EVERY);
        }
        process_groups::running(group).len()
    }

    #[test]
    fn a_server_may_say_good_bye_after_its_launcher_has_ended() {
        let saved = std::env::temp_dir().join(format!("throng-density-saved-{}", std::process::id()));
        let server = format!("trap 'sleep 0.3; touch {}; exit' TERM", saved.display());
        let line = format!("({server}; echo frame 1 ms; while :; do sleep 0.05; done) & trap exit TERM; wait");
        let instance = start(&["sh", "-c", &line], "frame {ms} ms").unwrap();
        wait_for(&instance);
        end_all(vec![instance], Duration::from_secs(60));
        assert!(saved.exists());
        std::fs::remove_file(saved).unwrap();
    }

    #[test]
    fn a_program_that_is_not_there_and_one_that_dies_are_told() {
        let error = start(&["/no/such/program"], "{ms}").err().unwrap().to_string();
        assert!(error.contains("/no/such/program") && error.contains("sh -c"), "{error}");

        let mut instance = start(&["sh", "-c", "echo port {port} is taken >&2; exit 3"], "{ms} ms").unwrap();
        let error = loop {
            match instance.check() {
                Ok(()) => thread::sleep(LOOK_EVERY),
                Err(error) => break error.to_string(),
            }
        };
        for part in ["instance 2", "exit status: 3", "port 20000 is taken", "by hand"] {
            assert!(error.contains(part), "{part:?} is not in {error}");
        }
    }
}
