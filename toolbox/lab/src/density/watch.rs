//! Watching one instance's frame times: in what it writes, or on its page of metrics.
//!
//! A page is read at the begin and at the end of a window; what was counted between is the window's. A gauge says only how
//! it is at the moment and is read every second.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::exposition::{FrameMetric, Reading};
use super::frame_times::FrameTimes;
use super::http::{self, HttpError};
use super::log_pattern::LogPattern;

/// Where frame times come from.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameSource {
    /// A page of metrics, at a URL with what differs between instances in braces.
    Metrics { url: String, metric: FrameMetric },
    /// The lines that the instance writes.
    Log(LogPattern),
}

/// A server on a full host answers late: pages are asked for again for so long.
const ANSWERS_WITHIN: Duration = Duration::from_secs(15);
/// Some servers publish once a second; then what a page says is up to a second old. Longer is not waited for a change.
const PUBLISHED_WITHIN: Duration = Duration::from_millis(1_200);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Frame times that were read out of lines. Written by the thread that reads them.
#[derive(Debug, Default)]
pub(crate) struct Logged {
    pub times: FrameTimes,
    /// Since the start, not since the window's begin.
    pub count: u64,
}

/// One instance's source.
#[derive(Debug)]
pub(crate) enum Watch {
    Log { logged: Arc<Mutex<Logged>>, begun: Option<Instant> },
    Page { url: String, metric: FrameMetric, begun: Option<(Reading, Instant)>, gauged: FrameTimes },
}

/// Why there are no frame times yet.
#[derive(Debug)]
pub(crate) enum NotYet {
    /// It does not answer, or has written no frame.
    Silent(String),
    /// It answers, and has no such metric; these are like it.
    NoMetric(Vec<String>),
}

/// What was seen in a window.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Watched {
    pub times: FrameTimes,
    pub seconds: f64,
    /// Every frame was counted, so that there is a rate. Not so of a gauge.
    pub is_counted: bool,
}

/// Why a window has no frame times.
#[derive(Debug)]
pub(crate) enum WatchError {
    Http(HttpError),
    CountedAnew,
}

impl Watch {
    /// Whether there are frame times.
    pub fn look(&self) -> Result<(), NotYet> {
        match self {
            Self::Log { logged, .. } => match lock(logged).count {
                0 => Err(NotYet::Silent("no line that it wrote matches the pattern of --log".to_owned())),
                _ => Ok(()),
            },
            Self::Page { url, metric, .. } => {
                let page = http::get(url).map_err(|error| NotYet::Silent(error.to_string()))?;
                match metric.find(&page).map_err(NotYet::NoMetric)? {
                    Reading::Counted { count, .. } if count <= 0.0 => {
                        Err(NotYet::Silent(format!("{} has counted nothing yet", metric.name())))
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Begins a window. `is_exact`: waits until the page changes, so that the window is as long as it seems.
    pub fn begin(&mut self, is_exact: bool) -> Result<(), WatchError> {
        match self {
            Self::Log { logged, begun } => {
                lock(logged).times = FrameTimes::default();
                *begun = Some(Instant::now());
            }
            Self::Page { url, metric, begun, gauged } => {
                *gauged = FrameTimes::default();
                *begun = Some(read(url, metric, is_exact)?);
            }
        }
        Ok(())
    }

    /// Once a second within the window.
    pub fn sample(&mut self) -> Result<(), WatchError> {
        if let Self::Page { url, metric, begun: Some((Reading::Now { .. }, _)), gauged } = self
            && let (Reading::Now { ms }, _) = read(url, metric, false)?
        {
            gauged.record(ms);
        }
        Ok(())
    }

    /// Ends the window. Without a begin it is empty.
    pub fn end(&mut self, is_exact: bool) -> Result<Watched, WatchError> {
        match self {
            Self::Log { logged, begun } => {
                let seconds = begun.take().map_or(0.0, |begun| begun.elapsed().as_secs_f64());
                Ok(Watched { times: std::mem::take(&mut lock(logged).times), seconds, is_counted: true })
            }
            Self::Page { url, metric, begun, gauged } => {
                let Some((earlier, begun)) = begun.take() else {
                    return Ok(Watched { times: FrameTimes::default(), seconds: 0.0, is_counted: false });
                };
                let (now, at) = read(url, metric, is_exact)?;
                let seconds = (at - begun).as_secs_f64();
                match now {
                    Reading::Now { .. } => Ok(Watched { times: std::mem::take(gauged), seconds, is_counted: false }),
                    Reading::Counted { .. } => {
                        let times = now.since(&earlier).ok_or(WatchError::CountedAnew)?;
                        Ok(Watched { times, seconds, is_counted: true })
                    }
                }
            }
        }
    }
}

/// Reads the metric and says when.
fn read(url: &str, metric: &FrameMetric, is_exact: bool) -> Result<(Reading, Instant), WatchError> {
    let deadline = Instant::now() + ANSWERS_WITHIN;
    let first = loop {
        match http::get(url) {
            // A metric that was there and is not is a server that began anew.
            Ok(page) => break metric.find(&page).map_err(|_| WatchError::CountedAnew)?,
            Err(error) if Instant::now() >= deadline => return Err(WatchError::Http(error)),
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    };
    let deadline = Instant::now() + PUBLISHED_WITHIN;
    while is_exact && matches!(first, Reading::Counted { .. }) && Instant::now() < deadline {
        thread::sleep(LOOK_EVERY);
        let again = http::get(url).ok().and_then(|page| metric.find(&page).ok());
        if let Some(again) = again.filter(|again| *again != first) {
            return Ok((again, Instant::now()));
        }
    }
    Ok((first, Instant::now()))
}

/// Times are added whole: a thread that panicked left nothing half done.
pub(crate) fn lock(logged: &Mutex<Logged>) -> std::sync::MutexGuard<'_, Logged> {
    logged.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
