//! Watching one instance's frame times: in what it writes, or on its page of metrics.
//!
//! A page is read at both edges of a window; what was counted between is the window's. Some servers publish theirs once a
//! second, so that what it says is up to a second old: an edge is the moment in which it changes, and is known as exactly
//! as the page was looked at often. A gauge says only how it is at the moment and is read every second.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::exposition::{FrameMetric, Reading};
use super::frame_times::FrameTimes;
use super::http::{self, HttpError};
use super::log_pattern::LogPattern;
use super::ticks_behind::TicksBehind;

/// Where frame times come from.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameSource {
    /// A page of metrics, at a URL with what differs between instances in braces.
    Metrics { url: String, metric: FrameMetric },
    /// The lines that the instance writes.
    Log(LogPattern),
}

/// Frame times that were read out of lines. Written by the thread that reads them.
#[derive(Debug, Default)]
pub(crate) struct LoggedFrames {
    pub times: FrameTimes,
    /// Since the start, not since the window's begin.
    pub count: u64,
}

/// One instance's source.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each instance, and it stays where it is")]
pub(crate) enum Watch {
    Log { logged: Arc<Mutex<LoggedFrames>>, begun: Option<Instant> },
    Page { url: String, metric: FrameMetric, edge: Option<Edge>, begun: Option<Edge>, gauged: FrameTimes },
}

/// A page at an edge of a window.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    reading: Reading,
    ticks: Option<TicksBehind>,
    /// It became so between these two; as long as it has not changed, it was so when it was looked at last.
    earliest: Instant,
    latest: Instant,
    has_changed: bool,
}

/// Why there are no frame times yet.
#[derive(Debug)]
pub(crate) enum NotYet {
    /// It does not answer, or has written no frame.
    Silent(String),
    /// It answers, and has no such metric; these are like it.
    NoMetric(Vec<String>),
}

/// Frames of one instance in a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FrameReading {
    pub times: FrameTimes,
    pub seconds: f64,
    /// The least that these can have been, as far as the edges are known.
    pub seconds_min: f64,
    /// Every frame was counted, so that there is a rate. Not so of a gauge.
    pub is_counted: bool,
    /// What a server of ours says of its ticks.
    pub ticks: Option<TicksBehind>,
}

impl FrameReading {
    pub fn frames_per_s(&self) -> Option<f64> {
        self.is_counted.then_some(self.times.count / self.seconds)
    }

    /// The most that it can have been.
    pub fn frames_per_s_max(&self) -> Option<f64> {
        let count = self.times.count;
        self.is_counted.then_some(if count > 0.0 { count / self.seconds_min } else { 0.0 })
    }
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

    /// Looks whether the page is at an edge of the window: true once it has changed since the first look for this edge,
    /// and where there is no change to be waited for.
    pub fn look_for_edge(&mut self) -> Result<bool, WatchError> {
        let Self::Page { url, metric, edge, .. } = self else { return Ok(true) };
        let asked = Instant::now();
        let (reading, ticks) = read(url, metric)?;
        let (earliest, has_changed) = match edge.as_ref() {
            None => (asked, matches!(reading, Reading::Now { .. })),
            Some(before) if before.reading == reading => (asked, before.has_changed),
            Some(before) => (before.earliest, true),
        };
        *edge = Some(Edge { reading, ticks, earliest, latest: Instant::now(), has_changed });
        Ok(has_changed)
    }

    /// Begins a window at the edge that was looked for.
    pub fn begin(&mut self) {
        match self {
            Self::Log { logged, begun } => {
                lock(logged).times = FrameTimes::default();
                *begun = Some(Instant::now());
            }
            Self::Page { edge, begun, gauged, .. } => {
                *gauged = FrameTimes::default();
                *begun = edge.take();
            }
        }
    }

    /// Once a second within the window.
    pub fn sample(&mut self) -> Result<(), WatchError> {
        if let Self::Page { url, metric, begun: Some(Edge { reading: Reading::Now { .. }, .. }), gauged, .. } = self
            && let (Reading::Now { ms }, _) = read(url, metric)?
        {
            gauged.record(ms);
        }
        Ok(())
    }

    /// Ends the window at the edge that was looked for. Without both edges it is empty.
    pub fn end(&mut self) -> Result<FrameReading, WatchError> {
        match self {
            Self::Log { logged, begun } => {
                let seconds = begun.take().map_or(0.0, |begun| begun.elapsed().as_secs_f64());
                let times = std::mem::take(&mut lock(logged).times);
                // With a line at the begin and one at the end it is shorter than between two others.
                let seconds_min = seconds * times.count / (times.count + 1.0);
                Ok(FrameReading { times, seconds, seconds_min, is_counted: true, ticks: None })
            }
            Self::Page { edge, begun, gauged, .. } => {
                let (Some(begun), Some(ended)) = (begun.take(), edge.take()) else {
                    return Ok(FrameReading::default());
                };
                let (times, is_counted) = match ended.reading {
                    Reading::Now { .. } => (std::mem::take(gauged), false),
                    Reading::Counted { .. } => {
                        (ended.reading.since(&begun.reading).ok_or(WatchError::CountedAnew)?, true)
                    }
                };
                let seconds = (ended.middle() - begun.middle()).as_secs_f64();
                Ok(FrameReading {
                    times,
                    seconds,
                    seconds_min: (ended.earliest - begun.latest).as_secs_f64(),
                    is_counted,
                    ticks: ended.ticks.zip(begun.ticks).map(|(ended, begun)| ended.since(&begun)),
                })
            }
        }
    }
}

impl Edge {
    fn middle(&self) -> Instant {
        self.earliest + (self.latest - self.earliest) / 2
    }
}

fn read(url: &str, metric: &FrameMetric) -> Result<(Reading, Option<TicksBehind>), WatchError> {
    let page = http::get(url).map_err(WatchError::Http)?;
    // A metric that was there and is not is a server that began anew.
    let reading = metric.find(&page).map_err(|_| WatchError::CountedAnew)?;
    Ok((reading, TicksBehind::find(&page)))
}

/// Times are added whole: a thread that panicked left nothing half done.
pub(crate) fn lock(logged: &Mutex<LoggedFrames>) -> std::sync::MutexGuard<'_, LoggedFrames> {
    logged.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn the_edges_of_a_window_are_where_the_page_changes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            for count in [100, 100, 228, 1_380, 1_508] {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1_024]).unwrap();
                write!(stream, "HTTP/1.0 200 OK\r\n\r\nframe_ms_count {count}\nframe_ms_sum {count}\n").unwrap();
            }
        });
        let metric = FrameMetric::new("frame_ms", None).unwrap();
        let mut watch = Watch::Page { url, metric, edge: None, begun: None, gauged: FrameTimes::default() };
        assert!(!watch.look_for_edge().unwrap(), "it was published some time ago");
        assert!(!watch.look_for_edge().unwrap());
        assert!(watch.look_for_edge().unwrap());
        watch.begin();
        assert!(!watch.look_for_edge().unwrap());
        assert!(watch.look_for_edge().unwrap());
        let watched = watch.end().unwrap();
        assert_eq!(watched.times.count, 1_280.0);
        assert!(watched.seconds_min <= watched.seconds && watched.frames_per_s() <= watched.frames_per_s_max());
        server.join().unwrap();
    }

    #[test]
    fn a_line_more_or_less_is_no_other_rate_and_no_line_is_none() {
        let watched = |count: f64, seconds_min: f64| FrameReading {
            times: FrameTimes::counted(count, count),
            seconds: 10.0,
            seconds_min,
            is_counted: true,
            ticks: None,
        };
        assert_eq!(watched(9.0, 9.0).frames_per_s_max(), Some(1.0));
        assert_eq!(watched(0.0, 0.0).frames_per_s_max(), Some(0.0));
        assert_eq!(FrameReading { is_counted: false, ..watched(9.0, 9.0) }.frames_per_s_max(), None);
    }
}
