//! A child process that reports in lines of JSON and takes orders in lines of text: `docs/spec/child.md`, for those who
//! write another child.
//!
//! ```text
//! child -> lab, stdout   {"ready":{"address":"127.0.0.1:40123",...}}   once, when it can be used (server only)
//!                        {"status":{...}}                              every second
//!                        {"report":{...}}                              once, the last line
//! lab -> child, stdin    measure begin                                 the steady window opens
//!                        measure end                                   and closes
//!                        (end of file)                                 stop, report, exit; a server's status is 0 if all is well
//! ```
//!
//! End of file is the order to stop because it also arrives when the lab itself dies, however it dies: no server is
//! left behind on the port. Dropping a [`Child`] kills what is left of it.
//!
//! Two threads per child read its output, so that a child never waits for a lab that is busy; what it says is kept
//! up to [`UNREAD_MAX`] lines, then it does wait. Of stderr the last [`TAIL_LINES`] lines are kept for errors.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use throng_platform::threads::{Priority, spawn_named};

/// Four minutes of statuses: far more than any stage leaves unread.
const UNREAD_MAX: usize = 256;
/// Enough for a panic's message and the frames that matter.
const TAIL_LINES: usize = 24;

/// One line that a child said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    Ready(Value),
    Status(Value),
    Report(Value),
    /// It closed its output: it is ending.
    Ended,
}

/// A running child. Killed when dropped.
pub(crate) struct Child {
    name: &'static str,
    process: std::process::Child,
    orders: Option<ChildStdin>,
    lines: Receiver<Said>,
    tail: Arc<Mutex<VecDeque<String>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Child {
    /// Starts `executable name arguments...`. Secrets go into `environment`, which other users cannot read.
    pub(crate) fn start(
        executable: &Path,
        name: &'static str,
        arguments: &[String],
        environment: &[(&str, &str)],
    ) -> std::io::Result<Self> {
        let mut process = Command::new(executable)
            .arg(name)
            .args(arguments)
            .envs(environment.iter().copied())
            // A group of its own, so that Ctrl-C on a terminal reaches the lab alone, which then ends both in order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (said, lines) = sync_channel(UNREAD_MAX);
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
        let mut child =
            Self { name, orders: process.stdin.take(), process, lines, tail: tail.clone(), readers: Vec::new() };
        if let (Some(stdout), Some(stderr)) = (stdout, stderr) {
            let tail_too = tail.clone();
            child.readers = vec![
                spawn_named("child-stdout", Priority::Normal, move || read_lines(stdout, &said, &tail_too))?,
                spawn_named("child-stderr", Priority::Normal, move || keep_tail(stderr, &tail))?,
            ];
        }
        Ok(child)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends one line of order. A child that is gone is found out by what it no longer says.
    pub(crate) fn order(&mut self, order: &str) {
        if let Some(orders) = &mut self.orders {
            let _ = writeln!(orders, "{order}").and_then(|()| orders.flush());
        }
    }

    /// Orders the stop; the child then says its report and [`Said::Ended`].
    pub(crate) fn stop(&mut self) {
        self.orders = None;
    }

    /// The next thing it says, or `None` if it says nothing until `deadline`.
    pub(crate) fn hear(&self, deadline: Instant) -> Option<Said> {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(said) => Some(said),
            Err(RecvTimeoutError::Disconnected) => Some(Said::Ended),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    /// What is already said and not yet heard.
    pub(crate) fn hear_now(&self) -> Option<Said> {
        self.hear(Instant::now())
    }

    /// Waits for the exit; `None` = it still runs at the deadline.
    pub(crate) fn exit_status(&mut self, deadline: Instant) -> Option<ExitStatus> {
        const POLL: Duration = Duration::from_millis(10);
        loop {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(POLL);
        }
    }

    /// The last lines of its stderr, and of what it wrote to stdout that was no JSON.
    pub(crate) fn tail(&mut self) -> Vec<String> {
        // The reader may be one line behind a child that has just died.
        if self.exit_status(Instant::now()).is_some() {
            self.readers.drain(..).for_each(|reader| drop(reader.join()));
        }
        lock(&self.tail).iter().cloned().collect()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only when the child has been waited for already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read_lines(stdout: impl Read, said: &SyncSender<Said>, tail: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { break };
        let Some(understood) = understand(&line) else {
            keep(tail, line);
            continue;
        };
        if said.send(understood).is_err() {
            return;
        }
    }
    let _ = said.send(Said::Ended);
}

pub(crate) fn understand(line: &str) -> Option<Said> {
    let Ok(Value::Object(mut object)) = serde_json::from_str(line) else {
        return None;
    };
    let mut take = |key| object.remove(key);
    None.or_else(|| take("status").map(Said::Status))
        .or_else(|| take("ready").map(Said::Ready))
        .or_else(|| take("report").map(Said::Report))
}

fn keep_tail(stderr: impl Read, tail: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(stderr).lines() {
        let Ok(line) = line else { break };
        keep(tail, line);
    }
}

fn keep(tail: &Mutex<VecDeque<String>>, line: String) {
    let mut tail = lock(tail);
    if tail.len() == TAIL_LINES {
        tail.pop_front();
    }
    tail.push_back(line);
}

/// The tail is text that is replaced whole lines at a time: a reader that panicked left nothing half done.
fn lock(tail: &Mutex<VecDeque<String>>) -> std::sync::MutexGuard<'_, VecDeque<String>> {
    tail.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::load_report::{FromOutside, LoadReport};
    use crate::seconds::Second;

    #[test]
    fn lines_are_understood_by_their_one_key() {
        let check = |line: &str, expect: Option<Said>| assert_eq!(understand(line), expect, "{line}");
        check(r#"{"status":{"second":3}}"#, Some(Said::Status(json!({"second": 3}))));
        check(r#"{"ready":{"address":"127.0.0.1:1"}}"#, Some(Said::Ready(json!({"address": "127.0.0.1:1"}))));
        check(r#"{"report":{}}"#, Some(Said::Report(json!({}))));
        check(r#"{"other":{}}"#, None);
        check("Listening on port 3", None);
        check("[1, 2]", None);
        check("", None);
    }

    /// What is drawn for those who write a child of their own is what is read here, and all of it.
    #[test]
    fn the_page_of_the_protocol_shows_what_is_read() {
        let page = include_str!("../../../docs/spec/child.md");
        let drawn = |kind: &str| -> Vec<Value> {
            let mark = format!("```json {kind}\n");
            let lines = page.split(mark.as_str()).skip(1).map(|block| block.lines().next().unwrap_or_default());
            let values = lines.map(|line| match understand(line) {
                Some(Said::Ready(value) | Said::Status(value) | Said::Report(value)) => value,
                other => panic!("{other:?} in {line}"),
            });
            values.collect()
        };
        assert!(drawn("ready")[0]["address"].is_string());
        let statuses = drawn("status");
        let [server, bots] = &statuses[..] else { panic!("a server's and a swarm's") };
        let second = Second::from_status(server).expect("it has a second");
        assert_eq!(serde_json::to_value(second).unwrap(), *server, "every key that is read");
        assert!(bots["players_connected"].is_u64() && Second::from_status(bots).is_none());

        let object = |kind| match &drawn(kind)[..] {
            [Value::Object(object)] => object.clone(),
            other => panic!("{other:?}"),
        };
        let (server, bots) = (object("server report"), object("bots report"));
        let mut report = LoadReport::merge(server, bots, FromOutside::default()).expect("both can be read");
        report.judge(1_000);
        assert!(report.passed, "the drawn run has passed: {:?}", report.bars);
        for order in ["measure begin", "measure end"] {
            assert!(page.contains(&format!("| `{order}` |")), "{order}");
        }
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let tail = Mutex::new(VecDeque::new());
        (0..100).for_each(|line| keep(&tail, line.to_string()));
        let kept: Vec<String> = lock(&tail).iter().cloned().collect();
        assert_eq!(kept.len(), TAIL_LINES);
        assert_eq!((kept[0].as_str(), kept[TAIL_LINES - 1].as_str()), ("76", "99"));
    }
}
