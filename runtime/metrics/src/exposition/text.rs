//! Metrics as the text that Prometheus scrapes.
//!
//! The form is OpenMetrics 1.0, written by `prometheus-client` straight from a snapshot's values: 4 us for a histogram.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::{Beside, Exemplar, LabelledCounters, LabelledGauges, exemplars_of, families, max_family};
use crate::registry::{Description, Kind};
use crate::snapshot::{MetricsSnapshot, Values};

/// The HTTP content type that belongs to the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl MetricsSnapshot {
    /// All metrics as text, each family with its help, in the order of registration.
    pub fn to_prometheus_text(&self) -> String {
        self.to_prometheus_text_with(Beside::default())
    }

    /// The same, and after it what is not registered.
    pub fn to_prometheus_text_with(&self, beside: Beside) -> String {
        let mut registry = match self.values.prefix {
            "" => prometheus_client::registry::Registry::default(),
            prefix => prometheus_client::registry::Registry::with_prefix(prefix),
        };
        registry.register_collector(Box::new(self.clone()));
        let Beside { gauges, counters, exemplars } = beside;
        let rows_count = gauges.iter().map(|family| family.rows.len()).sum::<usize>();
        registry.register_collector(Box::new(Unregistered { gauges, counters }));
        let mut page = Page {
            text: String::with_capacity(256 * (self.values.descriptions.len() + rows_count)),
            line_start: 0,
            bucket: 0,
            exemplars: exemplars_by_series(&self.values, &exemplars),
        };
        text::encode(&mut page, &registry).expect("writing to a string does not fail");
        page.text
    }
}

/// The newest exemplar of each bucket that has one, by the name of the series of buckets.
fn exemplars_by_series<'a>(
    values: &'a Values,
    exemplars: &'a [Exemplar],
) -> HashMap<String, HashMap<usize, &'a Exemplar>> {
    let mut told = HashMap::new();
    for member in values.descriptions.iter().filter(|member| member.kind == Kind::Histogram) {
        let of_member: HashMap<usize, &Exemplar> = exemplars_of(member, values, exemplars).collect();
        if !of_member.is_empty() {
            let prefix = if values.prefix.is_empty() { "" } else { "_" };
            told.insert(format!("{}{prefix}{}_bucket", values.prefix, member.family()), of_member);
        }
    }
    told
}

/// The text while it is written. Exemplars go behind their buckets as each line ends: `prometheus-client` writes those only
/// that it has counted itself.
struct Page<'a> {
    text: String,
    line_start: usize,
    /// The place of the next bucket in its series: buckets of one series stand one behind the other.
    bucket: usize,
    exemplars: HashMap<String, HashMap<usize, &'a Exemplar>>,
}

impl Page<'_> {
    fn end_line(&mut self) -> fmt::Result {
        let line = self.text.get(self.line_start..).filter(|_| !self.exemplars.is_empty());
        let of_series = line.and_then(|line| line.split_once("{le=")).filter(|(_, rest)| !rest.contains(','));
        match of_series.and_then(|(name, _)| self.exemplars.get(name)) {
            None => self.bucket = 0,
            Some(of_series) => {
                if let Some(exemplar) = of_series.get(&self.bucket) {
                    let (key, value) = &exemplar.label;
                    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                    let (seconds, at_s) = (exemplar.value_us as f64 / 1e6, exemplar.at_unix_ms as f64 / 1e3);
                    write!(self.text, " # {{{key}=\"{value}\"}} {seconds} {at_s:.3}")?;
                }
                self.bucket += 1;
            }
        }
        self.text.push('\n');
        self.line_start = self.text.len();
        Ok(())
    }
}

impl Write for Page<'_> {
    fn write_str(&mut self, written: &str) -> fmt::Result {
        for part in written.split_inclusive('\n') {
            match part.strip_suffix('\n') {
                None => self.text.push_str(part),
                Some(end) => {
                    self.text.push_str(end);
                    self.end_line()?;
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Unregistered {
    gauges: Vec<LabelledGauges>,
    counters: Vec<LabelledCounters>,
}

impl Collector for Unregistered {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for family in &self.gauges {
            let name = family.name.replace('.', "_");
            let mut described = encoder.encode_descriptor(&name, family.help, None, MetricType::Gauge)?;
            for (row, value) in &family.rows {
                with_row(&mut described, family.keys, row, |metric| metric.encode_gauge(value))?;
            }
        }
        for family in &self.counters {
            let name = family.name.replace('.', "_");
            let mut described = encoder.encode_descriptor(&name, family.help, None, MetricType::Counter)?;
            for (row, count) in &family.rows {
                with_row(&mut described, family.keys, row, |metric| {
                    metric.encode_counter::<NoLabelSet, u64, u64>(count, None)
                })?;
            }
        }
        Ok(())
    }
}

/// Without labels there are no braces either.
fn with_row(
    described: &mut MetricEncoder,
    keys: &[&str],
    row: &[String],
    encode: impl FnOnce(&mut MetricEncoder) -> fmt::Result,
) -> fmt::Result {
    let labels: Vec<(&str, &str)> = keys.iter().copied().zip(row.iter().map(String::as_str)).collect();
    if labels.is_empty() { encode(described) } else { encode(&mut described.encode_family(&labels)?) }
}

impl Collector for MetricsSnapshot {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        families(&self.values).iter().try_for_each(|family| encode_family(&self.values, family, &mut encoder))
    }
}

/// Writes all metrics of one name.
fn encode_family(values: &Values, family: &[&Description], encoder: &mut DescriptorEncoder) -> fmt::Result {
    let Some(first) = family.first() else { return Ok(()) };
    let name = first.family();
    let metric_type = match first.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge | Kind::WindowMax => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
    };
    // The format has a line for the unit, but only of a name that ends with it.
    let stem = name.strip_suffix(first.unit).and_then(|stem| stem.strip_suffix('_')).filter(|_| !first.unit.is_empty());
    let unit = stem.map(|_| Unit::Other(first.unit.to_owned()));
    let help: Cow<'_, str> = match (first.unit, &unit) {
        ("", _) | (_, Some(_)) => first.help.into(),
        (unit, None) => format!("{} [{unit}]", first.help).into(),
    };
    let mut described = encoder.encode_descriptor(stem.unwrap_or(&name), &help, unit.as_ref(), metric_type)?;
    for member in family {
        with_labels(&mut described, member, |metric| encode_value(values, member, metric))?;
    }
    if first.kind != Kind::Histogram {
        return Ok(());
    }
    let name = max_family(&name);
    let mut described = encoder.encode_descriptor(&name, first.help, None, MetricType::Gauge)?;
    for member in family {
        let max_s = values.histogram_maxima_us[usize::from(member.index)] as f64 / 1e6;
        with_labels(&mut described, member, |metric| metric.encode_gauge(&max_s))?;
    }
    Ok(())
}

fn encode_value(values: &Values, member: &Description, metric: &mut MetricEncoder) -> fmt::Result {
    let index = usize::from(member.index);
    match member.kind {
        Kind::Counter => metric.encode_counter::<NoLabelSet, u64, u64>(&values.counters[index], None),
        Kind::Gauge => metric.encode_gauge(&values.gauges[index]),
        Kind::WindowMax => metric.encode_gauge(&(values.maxima[index] as f64)),
        Kind::Histogram => {
            let histogram = &values.histograms[index];
            let sum_s = histogram.sum_us() as f64 / 1e6;
            metric.encode_histogram::<NoLabelSet>(sum_s, histogram.count(), &histogram.buckets_s(), None)
        }
    }
}

/// Without labels there are no braces either.
fn with_labels(
    described: &mut MetricEncoder,
    member: &Description,
    encode: impl FnOnce(&mut MetricEncoder) -> fmt::Result,
) -> fmt::Result {
    if member.labels.is_empty() { encode(described) } else { encode(&mut described.encode_family(&member.labels)?) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counter, Merge, Registry};
    use throng_platform::time::Nanos;

    #[test]
    fn every_kind_is_written_as_a_scraper_reads_it() {
        let mut registry = Registry::new();
        let packets = registry.register_counter("net.packets_in", "Packets received");
        let hub = registry.register_gauge_with("server.worlds", "Worlds", &[("kind", "hub")]);
        let inbox = registry.register_window_max("net.inbox_bytes", "Fullest inbox", 60);
        let arena = registry.register_gauge_with("server.worlds", "Worlds", &[("kind", "a \"b\"\n")]);
        let mut cells = registry.cells();
        cells.add(packets, 12);
        cells.max(inbox, 700);
        registry.merge(&mut cells, Nanos::ZERO);
        registry.set(hub, 2.0);
        registry.set(arena, 0.5);

        let expected = r#"# HELP metrics_samples_dropped Samples dropped because no frame merged them in time
# TYPE metrics_samples_dropped counter
metrics_samples_dropped_total 0
# HELP net_packets_in Packets received
# TYPE net_packets_in counter
net_packets_in_total 12
# HELP server_worlds Worlds
# TYPE server_worlds gauge
server_worlds{kind="hub"} 2.0
server_worlds{kind="a \"b\"\n"} 0.5
# HELP net_inbox_bytes_window_max Fullest inbox
# TYPE net_inbox_bytes_window_max gauge
net_inbox_bytes_window_max 700.0
# EOF
"#;
        assert_eq!(registry.snapshot().to_prometheus_text(), expected);
    }

    #[test]
    fn a_unit_has_its_line_where_the_name_ends_with_it_and_stands_in_the_help_elsewhere() {
        const FRAMES: Counter = Counter::new("server.frames", "frames", "Frames run.", "Fine.", Merge::Sum);
        const MISSED: Counter = Counter::new("server.ticks_missed", "ticks", "Ticks missed.", "Look.", Merge::Sum);
        const MOST: Counter = Counter::new("server.most_frames", "frames", "Most frames.", "Look.", Merge::Max);
        let mut registry = Registry::with_prefix("throng");
        let ids = [&FRAMES, &MISSED].map(|counter| registry.register_declared(counter));
        let most = registry.register_declared_max(&MOST, 60);
        let mut cells = registry.cells();
        ids.iter().for_each(|&id| cells.add(id, 3));
        cells.max(most, 9);
        registry.merge(&mut cells, Nanos::ZERO);
        let text = registry.snapshot().to_prometheus_text();
        let expected = "\
# HELP throng_server_frames Frames run.
# TYPE throng_server_frames counter
# UNIT throng_server_frames frames
throng_server_frames_total 3
# HELP throng_server_ticks_missed Ticks missed. [ticks]
# TYPE throng_server_ticks_missed counter
throng_server_ticks_missed_total 3
# HELP throng_server_most_frames_window_max Most frames. [frames]
# TYPE throng_server_most_frames_window_max gauge
throng_server_most_frames_window_max 9.0
# EOF
";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn labels_may_hold_any_text() {
        let hostile = "a \"b\"} 1\nforged 2\\";
        let gauges = LabelledGauges {
            name: "replication.bytes_per_s",
            help: "Bytes per second",
            keys: &["kind", "world"],
            rows: vec![(vec!["pose".into(), hostile.into()], 700.5), (vec!["vitals".into(), "hub 0".into()], 3.0)],
        };
        let text = Registry::with_prefix("throng")
            .snapshot()
            .to_prometheus_text_with(Beside { gauges: vec![gauges], ..Beside::default() });
        let expected = r#"# HELP throng_replication_bytes_per_s Bytes per second
# TYPE throng_replication_bytes_per_s gauge
throng_replication_bytes_per_s{kind="pose",world="a \"b\"} 1\nforged 2\\"} 700.5
throng_replication_bytes_per_s{kind="vitals",world="hub 0"} 3.0
# EOF
"#;
        assert!(text.ends_with(expected), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("forged")), "{text}");
    }

    #[test]
    fn a_histogram_has_growing_buckets_and_a_maximum_that_no_scrape_resets() {
        let mut registry = Registry::new();
        let frame = registry.register_histogram_with("server.frame", "Time of one frame", &[("core", "0")]);
        let mut cells = registry.cells();
        for us in [900_000, 16_000, 16_667, 40_000] {
            cells.record(frame, us);
        }
        registry.merge(&mut cells, Nanos::from_secs(1));
        for _scrape in 0..3 {
            let text = registry.snapshot().to_prometheus_text();
            for line in [
                "# TYPE server_frame_seconds histogram",
                "server_frame_seconds_sum{core=\"0\"} 0.972667",
                "server_frame_seconds_count{core=\"0\"} 4",
                "server_frame_seconds_bucket{le=\"0.012\",core=\"0\"} 0",
                "server_frame_seconds_bucket{le=\"0.016667\",core=\"0\"} 2",
                "server_frame_seconds_bucket{le=\"0.05\",core=\"0\"} 3",
                "server_frame_seconds_bucket{le=\"+Inf\",core=\"0\"} 4",
                "# TYPE server_frame_seconds_window_max gauge",
                "server_frame_seconds_window_max{core=\"0\"} 0.9",
            ] {
                assert!(text.lines().any(|found| found == line), "{line:?} is missing in\n{text}");
            }
        }
    }

    #[test]
    fn what_is_counted_elsewhere_is_told_as_a_counter() {
        let refused = LabelledCounters {
            name: "admin.refused",
            help: "Refused",
            keys: &["cause"],
            rows: vec![(vec!["role".into()], 3), (vec!["origin".into()], 0)],
        };
        let beside = Beside { counters: vec![refused], ..Beside::default() };
        let text = Registry::with_prefix("throng").snapshot().to_prometheus_text_with(beside);
        let expected = "\
# HELP throng_admin_refused Refused
# TYPE throng_admin_refused counter
throng_admin_refused_total{cause=\"role\"} 3
throng_admin_refused_total{cause=\"origin\"} 0
# EOF
";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_bucket_has_the_newest_of_its_exemplars() {
        let mut registry = Registry::with_prefix("throng");
        let frame = registry.register_histogram("server.frame", "Time of one frame");
        registry.register_histogram_with("world.tick", "Time of one tick", &[("kind", "hub")]);
        let mut cells = registry.cells();
        cells.record(frame, 45_000);
        registry.merge(&mut cells, Nanos::ZERO);
        let exemplar = |histogram, capture: &str, value_us| Exemplar {
            histogram,
            label: ("capture", capture.to_owned()),
            value_us,
            at_unix_ms: 1_764_000_000_123,
        };
        let exemplars = vec![
            exemplar("server.frame", "a", 44_000),
            exemplar("server.frame", "b \"c\"", 45_000),
            exemplar("server.frame", "d", 90_000_000),
            exemplar("world.tick", "e", 1),
            exemplar("server.frame", &"x".repeat(122), 1),
        ];
        let text = registry.snapshot().to_prometheus_text_with(Beside { exemplars, ..Beside::default() });
        let told: Vec<&str> = text.lines().filter(|line| line.contains(" # {")).collect();
        let expect = [
            "throng_server_frame_seconds_bucket{le=\"0.05\"} 1 # {capture=\"b \\\"c\\\"\"} 0.045 1764000000.123",
            "throng_server_frame_seconds_bucket{le=\"+Inf\"} 1 # {capture=\"d\"} 90 1764000000.123",
        ];
        assert_eq!(told, expect, "{text}");
    }
}
