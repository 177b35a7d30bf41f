//! All metrics at one moment, for whoever is not the frame: the admin listener, a report, a test.
//!
//! Shared behind an `Arc`, so that a snapshot is taken once and handed to any number of readers.

use std::sync::Arc;

use crate::histogram::Histogram;
use crate::registry::{CounterId, Description, GaugeId, HistogramId, WindowMaxId};

/// Values that no longer change. Cloning it copies a pointer.
#[derive(Clone, Debug)]
pub struct MetricsSnapshot {
    pub(crate) values: Arc<Values>,
}

#[derive(Debug)]
pub(crate) struct Values {
    pub prefix: &'static str,
    pub descriptions: Arc<Vec<Arc<Description>>>,
    pub counters: Vec<u64>,
    pub gauges: Vec<f64>,
    pub histograms: Vec<Histogram>,
    pub histogram_maxima_us: Vec<u64>,
    pub maxima: Vec<u64>,
}

impl MetricsSnapshot {
    pub(crate) fn new(values: Values) -> MetricsSnapshot {
        MetricsSnapshot { values: Arc::new(values) }
    }

    pub fn counter(&self, id: CounterId) -> u64 {
        self.values.counters[usize::from(id.0)]
    }

    pub fn gauge(&self, id: GaugeId) -> f64 {
        self.values.gauges[usize::from(id.0)]
    }

    pub fn histogram(&self, id: HistogramId) -> &Histogram {
        &self.values.histograms[usize::from(id.0)]
    }

    /// The histogram's largest sample of the last [`crate::HISTOGRAM_WINDOW_S`] seconds.
    pub fn histogram_window_max_us(&self, id: HistogramId) -> u64 {
        self.values.histogram_maxima_us[usize::from(id.0)]
    }

    pub fn window_max(&self, id: WindowMaxId) -> u64 {
        self.values.maxima[usize::from(id.0)]
    }
}
