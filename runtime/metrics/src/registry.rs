//! All metrics of a process: what they are called and how they stand.
//!
//! Owned by the frame's thread. Registering allocates: at the start, and where a game counts something for the first
//! time. Merging does not.

use std::borrow::Cow;
use std::sync::Arc;

use throng_platform::time::Nanos;

use crate::cells::Cells;
use crate::declared::{Counter, is_name};
use crate::histogram::Histogram;
use crate::snapshot::{MetricsSnapshot, Values};
use crate::window_max::WindowMax;

/// Names a counter: a number that only grows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct CounterId(pub(crate) u16);

/// Names a gauge: a number as it is now.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct GaugeId(pub(crate) u16);

/// Names a histogram of times, which also keeps its maximum of the last [`HISTOGRAM_WINDOW_S`] seconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct HistogramId(pub(crate) u16);

/// Names a maximum over a sliding window.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct WindowMaxId(pub(crate) u16);

/// Window of each histogram's maximum, in seconds: a bad frame stays visible for five minutes, through some
/// twenty scrapes at the usual 15 s.
pub const HISTOGRAM_WINDOW_S: u32 = 300;

/// The metrics of a process.
pub struct Registry {
    /// Before every name that is exposed; may be empty.
    prefix: &'static str,
    /// Shared with the snapshots; written only while registering. Each is shared by itself, too: a game's counter is
    /// registered by the frame that counts it first, which then copies pointers and no text.
    descriptions: Arc<Vec<Arc<Description>>>,
    counters: Vec<u64>,
    gauges: Vec<f64>,
    histograms: Vec<(Histogram, WindowMax)>,
    maxima: Vec<WindowMax>,
    samples_dropped: CounterId,
    /// The latest moment that a merge told us.
    now: Nanos,
}

/// One metric as it was registered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Description {
    pub kind: Kind,
    /// Which one of its kind.
    pub index: u16,
    /// As exposed: dots become underscores.
    pub name: String,
    pub help: &'static str,
    /// Empty where the name says it.
    pub unit: &'static str,
    pub labels: Vec<(String, String)>,
}

impl Description {
    /// The name of its family in the text: what must be the only one of its kind.
    pub fn family(&self) -> Cow<'_, str> {
        match self.kind.suffix() {
            "" => self.name.as_str().into(),
            suffix => format!("{}{suffix}", self.name).into(),
        }
    }

    /// Whether that is its family. Allocates nothing: a game's counters are registered by a frame that counts.
    fn is_of_family(&self, family: &str) -> bool {
        family.strip_prefix(self.name.as_str()) == Some(self.kind.suffix())
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
    WindowMax,
}

impl Kind {
    /// What stands behind a metric's name in that of its family.
    fn suffix(self) -> &'static str {
        match self {
            Kind::Counter | Kind::Gauge => "",
            Kind::Histogram => "_seconds",
            Kind::WindowMax => "_window_max",
        }
    }
}

impl Registry {
    #[allow(clippy::new_without_default, reason = "it is not empty: it counts its own losses")]
    pub fn new() -> Registry {
        Registry::with_prefix("")
    }

    /// All names are exposed behind `prefix` and an underscore.
    pub fn with_prefix(prefix: &'static str) -> Registry {
        let mut registry = Registry {
            prefix,
            descriptions: Arc::default(),
            counters: Vec::new(),
            gauges: Vec::new(),
            histograms: Vec::new(),
            maxima: Vec::new(),
            samples_dropped: CounterId(0),
            now: Nanos::ZERO,
        };
        registry.samples_dropped = registry
            .register_counter("metrics.samples_dropped", "Samples dropped because no frame merged them in time");
        registry
    }

    /// A counter under its dotted name, e.g. `net.packets_in`; exposed as `net_packets_in_total`.
    ///
    /// # Panics
    /// Here and in all `register_` functions: when the name has other characters than a-z, 0-9, `_` and
    /// `.`, or is taken with the same labels or as another kind.
    pub fn register_counter(&mut self, name: &str, help: &'static str) -> CounterId {
        self.register_counter_with(name, help, &[])
    }

    pub fn register_counter_with(&mut self, name: &str, help: &'static str, labels: &[(&str, &str)]) -> CounterId {
        let index = self.describe(Kind::Counter, self.counters.len(), name, help, labels);
        self.counters.push(0);
        CounterId(index)
    }

    /// A counter as it was declared.
    pub fn register_declared(&mut self, counter: &'static Counter) -> CounterId {
        let id = self.register_counter(counter.name, counter.help);
        self.set_unit(counter.unit);
        id
    }

    /// A maximum over the last `window_s` seconds of what was declared.
    pub fn register_declared_max(&mut self, counter: &'static Counter, window_s: u32) -> WindowMaxId {
        let id = self.register_window_max(counter.name, counter.help, window_s);
        self.set_unit(counter.unit);
        id
    }

    fn set_unit(&mut self, unit: &'static str) {
        if let Some(last) = Arc::make_mut(&mut self.descriptions).last_mut() {
            Arc::make_mut(last).unit = unit;
        }
    }

    /// A gauge under its dotted name, which ends with the unit: `process.rss_bytes`.
    pub fn register_gauge(&mut self, name: &str, help: &'static str) -> GaugeId {
        self.register_gauge_with(name, help, &[])
    }

    pub fn register_gauge_with(&mut self, name: &str, help: &'static str, labels: &[(&str, &str)]) -> GaugeId {
        let index = self.describe(Kind::Gauge, self.gauges.len(), name, help, labels);
        self.gauges.push(0.0);
        GaugeId(index)
    }

    /// A histogram of times under its dotted name without a unit, e.g. `server.frame`; exposed in seconds as
    /// `server_frame_seconds`, and its recent maximum as `server_frame_seconds_window_max`.
    pub fn register_histogram(&mut self, name: &str, help: &'static str) -> HistogramId {
        self.register_histogram_with(name, help, &[])
    }

    pub fn register_histogram_with(&mut self, name: &str, help: &'static str, labels: &[(&str, &str)]) -> HistogramId {
        let index = self.describe(Kind::Histogram, self.histograms.len(), name, help, labels);
        self.histograms.push((Histogram::new(), WindowMax::new(HISTOGRAM_WINDOW_S)));
        HistogramId(index)
    }

    /// A maximum over the last `window_s` seconds, in whatever unit its dotted name ends with, e.g.
    /// `net.inbox_bytes`; exposed as `net_inbox_bytes_window_max`.
    pub fn register_window_max(&mut self, name: &str, help: &'static str, window_s: u32) -> WindowMaxId {
        self.register_window_max_with(name, help, window_s, &[])
    }

    pub fn register_window_max_with(
        &mut self,
        name: &str,
        help: &'static str,
        window_s: u32,
        labels: &[(&str, &str)],
    ) -> WindowMaxId {
        let index = self.describe(Kind::WindowMax, self.maxima.len(), name, help, labels);
        self.maxima.push(WindowMax::new(window_s));
        WindowMaxId(index)
    }

    /// Cells for one thread, with room for everything registered so far.
    pub fn cells(&self) -> Cells {
        Cells {
            counters: vec![0; self.counters.len()],
            samples_us: vec![Vec::new(); self.histograms.len()],
            maxima: vec![0; self.maxima.len()],
            samples_dropped: 0,
        }
    }

    /// Adds what `cells` hold and empties them. Does not allocate.
    ///
    /// # Panics
    /// With cells of another registry that has more metrics.
    pub fn merge(&mut self, cells: &mut Cells, now: Nanos) {
        assert!(cells.counters.len() <= self.counters.len());
        assert!(cells.samples_us.len() <= self.histograms.len());
        assert!(cells.maxima.len() <= self.maxima.len());
        self.now = self.now.max(now);
        for (counter, cell) in self.counters.iter_mut().zip(&mut cells.counters) {
            *counter += std::mem::take(cell);
        }
        for ((histogram, window), samples_us) in self.histograms.iter_mut().zip(&mut cells.samples_us) {
            let Some(max_us) = samples_us.iter().copied().max() else {
                continue;
            };
            for us in samples_us.drain(..) {
                histogram.record(us.into());
            }
            window.record(now, max_us.into());
        }
        for (window, cell) in self.maxima.iter_mut().zip(&mut cells.maxima) {
            // Zero is what an untouched cell says, and what an empty window answers.
            if *cell > 0 {
                window.record(now, std::mem::take(cell));
            }
        }
        self.counters[usize::from(self.samples_dropped.0)] += std::mem::take(&mut cells.samples_dropped);
    }

    /// Whether a family of this name, as it is exposed but for the prefix, is registered.
    pub fn is_taken(&self, family: &str) -> bool {
        self.descriptions.iter().any(|description| description.is_of_family(family))
    }

    /// Says how a gauge stands.
    pub fn set(&mut self, id: GaugeId, value: f64) {
        self.gauges[usize::from(id.0)] = value;
    }

    pub fn counter(&self, id: CounterId) -> u64 {
        self.counters[usize::from(id.0)]
    }

    pub fn gauge(&self, id: GaugeId) -> f64 {
        self.gauges[usize::from(id.0)]
    }

    pub fn histogram(&self, id: HistogramId) -> &Histogram {
        &self.histograms[usize::from(id.0)].0
    }

    /// The maximum of the window that ends with the last merge.
    pub fn window_max(&self, id: WindowMaxId) -> u64 {
        self.maxima[usize::from(id.0)].max(self.now)
    }

    /// A copy of all values as of the last merge, for other threads. Resets nothing. Allocates: 20 KiB and
    /// about 1 us per histogram.
    pub fn snapshot(&self) -> MetricsSnapshot {
        MetricsSnapshot::new(Values {
            prefix: self.prefix,
            descriptions: Arc::clone(&self.descriptions),
            counters: self.counters.clone(),
            gauges: self.gauges.clone(),
            histograms: self.histograms.iter().map(|(histogram, _)| histogram.clone()).collect(),
            histogram_maxima_us: self.histograms.iter().map(|(_, window)| window.max(self.now)).collect(),
            maxima: self.maxima.iter().map(|window| window.max(self.now)).collect(),
        })
    }

    fn describe(&mut self, kind: Kind, index: usize, name: &str, help: &'static str, labels: &[(&str, &str)]) -> u16 {
        let index = u16::try_from(index).expect("65,536 metrics of one kind: something registers in a loop");
        assert!(is_name(name), "metric name {name:?}");
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let new = Description { kind, index, name: name.replace('.', "_"), help, unit: "", labels };
        let family = new.family();
        for old in self.descriptions.iter().filter(|old| old.is_of_family(&family)) {
            assert!(old.kind == kind && old.labels != new.labels, "metric {name:?} is registered twice");
        }
        drop(family);
        Arc::make_mut(&mut self.descriptions).push(Arc::new(new));
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::SAMPLES_MAX;

    #[test]
    fn cells_of_several_threads_add_up_and_are_empty_after_the_merge() {
        let mut registry = Registry::new();
        let packets = registry.register_counter("net.packets_in", "Packets received");
        let tick = registry.register_histogram("world.tick", "Time of one tick");
        let inbox = registry.register_window_max("net.inbox_bytes", "Fullest inbox", 60);
        let now = Nanos::from_secs(1);

        let mut of_threads: Vec<Cells> = (0..4).map(|_| registry.cells()).collect();
        for (index, cells) in (1..).zip(&mut of_threads) {
            cells.add(packets, index);
            cells.record(tick, index * 1_000);
            cells.max(inbox, index * 10);
        }
        for _twice in 0..2 {
            for cells in &mut of_threads {
                registry.merge(cells, now);
            }
        }
        assert_eq!(registry.counter(packets), 1 + 2 + 3 + 4);
        assert_eq!(registry.histogram(tick).count(), 4);
        assert_eq!(registry.histogram(tick).max_us(), 4_000);
        assert_eq!(registry.window_max(inbox), 40);
    }

    #[test]
    fn a_metric_registered_late_is_counted_in_older_cells() {
        let mut registry = Registry::new();
        let mut cells = registry.cells();
        let late = registry.register_counter("late", "Registered after the cells");
        cells.add(late, 2);
        registry.merge(&mut cells, Nanos::ZERO);
        assert_eq!(registry.counter(late), 2);
    }

    #[test]
    fn samples_beyond_the_maximum_are_counted_as_dropped() {
        let mut registry = Registry::new();
        let tick = registry.register_histogram("world.tick", "Time of one tick");
        let mut cells = registry.cells();
        for _ in 0..SAMPLES_MAX + 3 {
            cells.record_time(tick, Nanos::from_millis(1));
        }
        registry.merge(&mut cells, Nanos::ZERO);
        assert_eq!(registry.histogram(tick).count(), SAMPLES_MAX as u64);
        assert_eq!(registry.counter(registry.samples_dropped), 3);
    }

    #[test]
    fn the_window_slides_with_the_merges() {
        let mut registry = Registry::new();
        let frame = registry.register_histogram("server.frame", "Time of one frame");
        let mut cells = registry.cells();
        let mut seen_us = |second, us| {
            cells.record(frame, us);
            registry.merge(&mut cells, Nanos::from_secs(second));
            registry.snapshot().histogram_window_max_us(frame)
        };
        assert_eq!(seen_us(0, 900_000), 900_000);
        assert_eq!(seen_us(299, 16_000), 900_000);
        assert_eq!(seen_us(302, 16_000), 16_000);
    }

    #[test]
    #[should_panic(expected = "registered twice")]
    fn one_name_is_one_metric() {
        let mut registry = Registry::new();
        registry.register_counter("net.packets", "Packets");
        registry.register_gauge("net.packets", "Packets");
    }

    #[test]
    #[should_panic(expected = "metric name")]
    fn a_name_that_no_scraper_takes_is_refused() {
        Registry::new().register_counter("net packets", "Packets");
    }
}
