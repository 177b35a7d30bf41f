//! All instances that run: more are started and some are ended until there are as many as are wanted.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use throng_platform::nodes::{self, Node};
use throng_platform::process_groups;
use throng_platform::signals::StopFlag;

use super::DensityPlan;
use super::error::DensityError;
use super::instance::{Instance, end_all};
use super::placeholders::Place;
use super::ports::Ports;
use super::watch::{NotYet, Watch, WatchError};
use super::watchdog::Watchdog;

/// A server says good-bye to everyone in seconds; what takes longer is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// A page without the metric may get it with the first frame; after this long it is another page.
const METRIC_WITHIN: Duration = Duration::from_secs(5);
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The instances, the first of which have been there longest.
pub(crate) struct Fleet<'a> {
    plan: &'a DensityPlan,
    // Dropped before the watchdog, which then finds nobody.
    pub instances: Vec<Instance>,
    watchdog: Watchdog,
    ports: Ports,
    /// Empty where instances are not tied to any.
    nodes: Vec<Node>,
}

impl<'a> Fleet<'a> {
    pub fn new(plan: &'a DensityPlan) -> Result<Self, DensityError> {
        let nodes = if plan.spread_over_nodes { nodes::usable() } else { Vec::new() };
        Ok(Self {
            plan,
            instances: Vec::new(),
            watchdog: Watchdog::start().map_err(DensityError::Watchdog)?,
            ports: Ports::from(plan.first_port),
            // With one there is nothing to choose, and a tie would only be in the way.
            nodes: if nodes.len() > 1 { nodes } else { Vec::new() },
        })
    }

    /// Numbers of the nodes over which instances are spread; none where they are not.
    pub fn nodes(&self) -> Vec<u32> {
        self.nodes.iter().map(|node| node.number).collect()
    }

    /// Until there are `count` instances, all of which show frame times. Those that are new hold so many worlds.
    pub fn bring_to(&mut self, count: usize, worlds: u32, stop: &StopFlag) -> Result<(), DensityError> {
        self.end_beyond(count);
        let first_new = self.instances.len();
        while self.instances.len() < count {
            let place = self.next_place(worlds)?;
            let node = match self.nodes.len() {
                0 => None,
                nodes => self.nodes.get(self.instances.len() % nodes),
            };
            let instance = Instance::start(&self.plan.command, &self.plan.source, place, node)?;
            // A watchdog that is gone keeps nobody, and somebody has killed it on purpose.
            let _ = self.watchdog.keep(instance.pid());
            self.instances.push(instance);
        }
        (first_new..count).try_for_each(|at| self.wait_ready(at, stop))
    }

    fn next_place(&mut self, worlds: u32) -> Result<Place, DensityError> {
        let index = self.instances.len() as u32 + 1;
        let (Some(port), Some(metrics_port)) = (self.ports.take(), self.ports.take()) else {
            return Err(DensityError::NoPort { first: self.plan.first_port });
        };
        Ok(Place { index, port, metrics_port, worlds })
    }

    fn wait_ready(&mut self, at: usize, stop: &StopFlag) -> Result<(), DensityError> {
        let (began, within) = (Instant::now(), Duration::from_secs(self.plan.ready_within_s.into()));
        let mut answered = None;
        loop {
            self.check()?;
            if stop.requested() {
                return Err(DensityError::Interrupted);
            }
            let instance = &self.instances[at];
            let reason = match instance.look() {
                Ok(()) => return Ok(()),
                Err(NotYet::Silent(reason)) => reason,
                Err(NotYet::NoMetric(near)) => {
                    let error = no_metric(instance, near);
                    if answered.get_or_insert_with(Instant::now).elapsed() >= METRIC_WITHIN {
                        return Err(error);
                    }
                    error.to_string()
                }
            };
            if began.elapsed() >= within {
                let (index, command, words) = (instance.index, instance.command.clone(), instance.last_words());
                return Err(DensityError::NotReady { index, within, reason, command, words });
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// An error if any has ended.
    pub fn check(&mut self) -> Result<(), DensityError> {
        self.instances.iter_mut().try_for_each(Instance::check)
    }

    /// All their processes.
    pub fn processes(&self) -> Vec<u32> {
        process_groups::members(&self.instances.iter().map(Instance::pid).collect::<BTreeSet<u32>>())
    }

    /// Ends those that are too many, the newest first.
    pub fn end_beyond(&mut self, count: usize) {
        let leaving = self.instances.split_off(count.min(self.instances.len()));
        let groups: Vec<u32> = leaving.iter().map(Instance::pid).collect();
        end_all(leaving, ENDS_WITHIN);
        for group in groups {
            let _ = self.watchdog.forget(group);
        }
    }
}

fn no_metric(instance: &Instance, near: Vec<String>) -> DensityError {
    let (url, metric) = match &instance.watch {
        Watch::Page { url, metric, .. } => (url.clone(), metric.name().to_owned()),
        Watch::Log { .. } => (String::new(), String::new()),
    };
    DensityError::NoMetric { url, metric, near }
}

/// The error of an instance whose frame times cannot be read any more.
pub(crate) fn unwatched(index: u32, error: WatchError) -> DensityError {
    match error {
        WatchError::Http(cause) => DensityError::Silent { index, cause },
        WatchError::CountedAnew => DensityError::CountedAnew { index },
    }
}
