//! A child of a run, with what of its words is kept: readiness, statuses, the report, and how it ended.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use throng_platform::process;
use throng_platform::signals::StopFlag;
use throng_platform::time::Nanos;

use crate::child::{Child, Said};
use crate::load::LoadError;
use crate::seconds::Second;

/// Loading levels and making a thousand worlds takes seconds; ten times that means that it hangs.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);
/// A server says good-bye to everyone in seconds; a child that takes longer is killed.
pub(crate) const STOP_WITHIN: Duration = Duration::from_secs(30);
/// How often the children are listened to and the stop flag is read.
pub(crate) const LISTEN_EVERY: Duration = Duration::from_millis(50);
/// The kernel takes milliseconds to tell how a process ended that has closed its output; more on a host that is busy.
const EXIT_WITHIN: Duration = Duration::from_secs(5);

/// A child and what of its words is kept.
pub(crate) struct Listened {
    pub child: Child,
    pub command: String,
    /// What it said of itself when it was ready; null before.
    pub ready: Value,
    /// The server's; bots tell no seconds.
    pub seconds: Vec<Second>,
    /// The bots' last word on how many of them play, and what keeps the others.
    pub last_status: Option<Value>,
    pub report: Option<Value>,
}

/// How a child ended that was told to stop.
pub(crate) struct Ending {
    /// What it reported, however it ended after that.
    pub report: Option<Map<String, Value>>,
    /// What was wrong with its end: no report, a status that says that it failed, or no end in time.
    pub fault: Option<LoadError>,
}

impl Listened {
    /// Takes in what was said since the last time. A child that ended before its time is an error.
    pub fn listen(&mut self) -> Result<(), LoadError> {
        while let Some(said) = self.child.hear_now() {
            match said {
                Said::Ready(_) => {}
                Said::Status(status) => self.note(&status),
                Said::Report(report) => self.report = Some(report),
                Said::Ended => return Err(self.ended_early()),
            }
        }
        Ok(())
    }

    fn note(&mut self, status: &Value) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let heard_unix_s = now.map(|since| since.as_secs_f64());
        self.seconds.extend(Second::from_status(status).map(|second| Second { heard_unix_s, ..second }));
        if status.get("players_connected").is_some() {
            self.last_status = Some(status.clone());
        }
    }

    pub fn players_connected(&self) -> u64 {
        let players = self.last_status.as_ref().and_then(|status| status.get("players_connected"));
        players.and_then(Value::as_u64).unwrap_or_default()
    }

    pub fn wait_ready(&mut self, stop: &StopFlag) -> Result<String, LoadError> {
        let deadline = Instant::now() + READY_WITHIN;
        while Instant::now() < deadline {
            match self.child.hear(Instant::now() + LISTEN_EVERY) {
                Some(Said::Ready(ready)) => {
                    let address = ready.get("address").and_then(Value::as_str).map(str::to_owned);
                    let cause = || format!("no address in {ready}");
                    self.ready = ready.clone();
                    return address.ok_or_else(|| LoadError::BadReport { name: self.child.name(), cause: cause() });
                }
                Some(Said::Status(status)) => self.note(&status),
                Some(Said::Report(_) | Said::Ended) => return Err(self.ended_early()),
                None if stop.requested() => return Err(LoadError::Interrupted),
                None => {}
            }
        }
        Err(LoadError::NotReady { words: self.words() })
    }

    /// Orders the stop and waits for the report and for the end.
    pub fn finish(&mut self) -> Ending {
        let deadline = Instant::now() + STOP_WITHIN;
        self.child.stop();
        let has_ended = loop {
            match self.child.hear(deadline) {
                Some(Said::Ready(_)) => {}
                Some(Said::Status(status)) => self.note(&status),
                Some(Said::Report(report)) => self.report = Some(report),
                Some(Said::Ended) => break true,
                None => break false,
            }
        };
        let name = self.child.name();
        match (self.report.take(), has_ended) {
            (Some(Value::Object(report)), true) => Ending { report: Some(report), fault: self.failed_after_report() },
            (Some(Value::Object(report)), false) => {
                Ending { report: Some(report), fault: Some(LoadError::StillRuns { name }) }
            }
            (Some(other), _) => {
                let cause = format!("not an object: {other}");
                Ending { report: None, fault: Some(LoadError::BadReport { name, cause }) }
            }
            (None, true) => Ending { report: None, fault: Some(self.ended_early()) },
            (None, false) => Ending { report: None, fault: Some(LoadError::NoReport { name }) },
        }
    }

    /// A server reports first and fails afterwards: over saves that are missing, or by a death on its way out. Bots that
    /// failed say why in their report, and their status says no more.
    fn failed_after_report(&mut self) -> Option<LoadError> {
        if self.child.name() != "serve" {
            return None;
        }
        let status = self.child.exit_status(Instant::now() + EXIT_WITHIN);
        if status.is_some_and(|status| status.success()) { None } else { Some(self.ended_early()) }
    }

    /// Whether a signal was its end: then there may be a report of its death.
    pub fn died(&mut self) -> bool {
        self.child.exit_status(Instant::now()).is_some_and(|status| status.signal().is_some())
    }

    pub fn cpu_time(&self) -> Nanos {
        process::cpu_time_of(self.child.pid()).unwrap_or_default()
    }

    fn ended_early(&mut self) -> LoadError {
        let status = self.child.exit_status(Instant::now() + Duration::from_secs(1));
        LoadError::EndedEarly {
            name: self.child.name(),
            status: status.map_or_else(|| "still closing".to_owned(), |status| status.to_string()),
            command: self.command.clone(),
            words: self.words(),
        }
    }

    pub fn words(&mut self) -> String {
        match self.child.tail() {
            tail if tail.is_empty() => "  (none)".to_owned(),
            tail => tail.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"),
        }
    }
}
