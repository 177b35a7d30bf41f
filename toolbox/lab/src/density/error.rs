//! Why there is no density, and what to do about it.

use std::io;
use std::time::Duration;

use super::forecast::NoForecast;
use super::http::HttpError;

/// Why a run has nothing to say, or ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum DensityError {
    #[error("there is no program {program:?}; is the path right? A line for the shell is written sh -c 'LINE'")]
    NoProgram { program: String },
    #[error("{command}\ncould not be started: {cause}")]
    Start { command: String, cause: io::Error },
    #[error(
        "instance {index} ended by itself ({status}); run it by hand to look closer: {command}\nits last words:\n{words}"
    )]
    Ended { index: u32, status: String, command: String, words: String },
    #[error(
        "instance {index} showed no frame time within {} s: {reason}\nit was started with: {command}\nits last words:\n{words}",
        within.as_secs()
    )]
    NotReady { index: u32, within: Duration, reason: String, command: String, words: String },
    #[error("{url} has no metric {metric}{}; name one with --metric", listed(near))]
    NoMetric { url: String, metric: String, near: Vec<String> },
    #[error("instance {index} tells its frame times no more: {cause}")]
    Silent { index: u32, cause: HttpError },
    #[error("instance {index} began to count its frames anew; does something restart it?")]
    CountedAnew { index: u32 },
    #[error("no frame was told in a window of {seconds:.0} s; take longer ones with --seconds")]
    NoFrames { seconds: f64 },
    #[error("the metric has no buckets, from which a {statistic} could be read; say --statistic mean")]
    NoStatistic { statistic: &'static str },
    #[error("how long a frame may take is not known, since the frames are not counted; say --budget-ms")]
    NoBudget,
    #[error("how long a frame may take is not known, since a server may write one frame in a hundred; say --budget-ms")]
    NoBudgetOfLog,
    #[error(transparent)]
    NoForecast(NoForecast),
    #[error(
        "no more ports from {first} on are free; name another first one with --first-port (from 32768 on they are the kernel's, \
         and are taken only if the first one is)"
    )]
    NoPort { first: u16 },
    #[error(
        "every instance would be asked at {url}; write {{metrics_port}} where its port stands, both there and in the command"
    )]
    OneAddress { url: String },
    #[error("{url} has {name}, but the command has not; tell the program its port with {name}")]
    NotTold { url: String, name: &'static str },
    #[error("the command has no {{worlds}}; write it where the number of worlds stands that one process is to hold")]
    NoWorlds,
    #[error(transparent)]
    Url(#[from] HttpError),
    #[error("the process that watches over the run (sh) cannot be started: {0}")]
    Watchdog(io::Error),
    #[error("stopped before anything was measured: there is nothing to report")]
    Interrupted,
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { ", nor any other".to_owned() } else { format!("; it has {}", names.join(", ")) }
}
