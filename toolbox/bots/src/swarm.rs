//! A swarm: how a run begins and ends, and how its threads' figures become one report.
//!
//! ```text
//!   start                    last bot sent in                        end
//!     |------ joining ---------------|------------ seconds -----------|-- goodbye --|
//!                                    the report's rates and latencies
//!
//!   bots-0   bots 0, 3, 6 ...  --tallies, histograms--+
//!   bots-1   bots 1, 4, 7 ...  -----------------------+--> caller's thread: a status a second, the report
//!   bots-2   bots 2, 5, 8 ...  -----------------------+
//! ```
//!
//! A run ends when its time is up, when a stop is requested, when no bot is left, or when a thread cannot go on.
//! Audit samples that are due by then have been checked, because every snapshot checks them; those inside their grace
//! are left out. Then every bot says goodbye, a few at a time, so that the server's socket keeps up.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::channel;

use throng_platform::clock::MonotonicClock;
use throng_platform::cores;
use throng_platform::limits::raise_open_files;
use throng_platform::poll::Epoll;
use throng_platform::signals::StopFlag;
use throng_platform::threads::spawn_named;
use throng_replication::Schema;

use crate::batch::{BotBatch, usual_threads};
use crate::behaviour::Behaviour;
use crate::bot::STATE_ERRORS_TOLD_MAX;
use crate::course::Course;
use crate::driver::{Driver, Outcome, Plan, WAKE_PERIOD};
use crate::error::SwarmError;
use crate::report::{LatencyHistogram, SwarmReport, SwarmStatus};
use crate::settings::SwarmSettings;
use crate::tally::Tally;
use crate::told::Statuses;

/// Files that this process has open beside the bots' sockets and an epoll for each thread: the usual three, logs,
/// reports.
const FILES_BESIDE_SOCKETS: usize = 64;

/// Many bots, on as many threads as they need.
pub struct Swarm;

impl Swarm {
    /// Sends the bots in, lets them play, and reports what they saw. Blocks the calling thread.
    ///
    /// `make_behaviour` is given each bot's index when it is sent in, on the thread on which it will stay. `on_status`
    /// is called on the calling thread. A stop request ends the run early with a report.
    ///
    /// Fails before anything is sent when the machine cannot give every bot a socket, and at the end
    /// when not a single bot got into a world. When a thread cannot go on, all end: `on_status` is told once more, with
    /// what was seen until then, and the error is returned.
    pub fn run(
        settings: SwarmSettings,
        schema: Arc<Schema>,
        make_behaviour: impl Fn(usize) -> Box<dyn Behaviour> + Send + Sync + 'static,
        stop: StopFlag,
        on_status: &mut dyn FnMut(&SwarmStatus),
    ) -> Result<SwarmReport, SwarmError> {
        let SwarmSettings { players, tick_hz, connect, .. } = settings;
        if players == 0 {
            return Err(SwarmError::NoPlayers);
        }
        if !(1..=1_000).contains(&tick_hz) {
            return Err(SwarmError::TickRate { tick_hz });
        }
        let threads = settings.threads.unwrap_or_else(|| usual_threads(players, tick_hz, cores::usable().count));
        let batches = BotBatch::of_threads(players, threads);
        raise_open_files((players + batches.len() + FILES_BESIDE_SOCKETS) as u64)
            .map_err(|source| SwarmError::OpenFiles { players, source })?;
        let drivers = batches.map(|batch| Ok((batch, Epoll::new()?))).collect::<Result<Vec<_>, _>>();
        let drivers = drivers.map_err(SwarmError::Epoll)?;

        let mut statuses = Statuses::new(drivers.len());
        let plan = Arc::new(Plan {
            clock: MonotonicClock::new(),
            connect,
            seconds: settings.seconds,
            tick_hz,
            seed: settings.seed,
            tokens: Arc::new(settings.tokens),
            join_per_second: settings.join_per_second.max(1),
            retry: settings.retry,
            status_every: settings.status_every.max(WAKE_PERIOD),
            schema,
            make_behaviour: Box::new(make_behaviour),
            course: Course::new(stop.clone(), drivers.len()),
        });
        let (teller, told) = channel();
        let (mut running, mut error) = (Vec::new(), None);
        for (batch, epoll) in drivers {
            let (plan_too, teller) = (plan.clone(), teller.clone());
            let drive = move || Driver::new(plan_too, batch, epoll, teller).drive();
            match spawn_named(&format!("bots-{}", batch.thread), settings.priority, drive) {
                Ok(thread) => running.push(thread),
                Err(cause) => {
                    plan.course.cut_short();
                    error = Some(SwarmError::Thread(cause));
                    break;
                }
            }
        }
        drop(teller);
        // Ends when the last thread has.
        told.iter().filter_map(|told| statuses.note(told)).for_each(|status| on_status(&status));

        let joined: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
        let joined: Result<Vec<Outcome>, _> = joined.into_iter().collect();
        let mut outcomes = joined.unwrap_or_else(|panic| resume_unwind(panic));
        error = error.or(outcomes.iter_mut().find_map(|outcome| outcome.error.take()));
        if let Some(error) = error {
            on_status(&statuses.status());
            return Err(error);
        }
        let report = report(&outcomes);
        if report.players_connected + report.disconnects == 0 && !stop.requested() {
            let failures = outcomes.iter().filter_map(|outcome| outcome.connect_failure);
            return Err(SwarmError::NobodyGotIn {
                address: connect,
                tried: report.connect_failures,
                first_failure: failures.min_by_key(|(bot, _)| *bot).map(|(_, reason)| reason),
            });
        }
        Ok(report)
    }
}

/// What all threads saw.
fn report(outcomes: &[Outcome]) -> SwarmReport {
    let since = Tally::sum(outcomes.iter().map(|outcome| &outcome.span_since));
    let mut tally = Tally::sum(outcomes.iter().map(|outcome| &outcome.tally));
    tally.connect_failures += std::mem::take(&mut tally.joining);
    let mut latency = LatencyHistogram::new();
    outcomes.iter().for_each(|outcome| latency.add(&outcome.latency));
    let mut state_errors: Vec<_> = outcomes.iter().flat_map(|outcome| outcome.state_errors.clone()).collect();
    state_errors.sort();
    let state_error_examples = state_errors.into_iter().map(|(_, error)| error).take(STATE_ERRORS_TOLD_MAX).collect();
    SwarmReport { state_error_examples, ..SwarmReport::between(&since, &tally, latency.percentiles()) }
}
