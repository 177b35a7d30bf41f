//! Metrics as Prometheus' own protobuf format, which carries native histograms beside the classic ones.
//!
//! ```text
//! body = { length as a varint, MetricFamily } ...
//! ```
//!
//! The messages are those of `io/prometheus/client/metrics.proto` as far as we have what goes into them, declared here
//! by their field numbers: generating them would take a compiler of such files on every machine that builds a server.
//! Cost: 5 us for a histogram.

use prost::Message;

use super::{Beside, Exemplar, exemplars_of, families, max_family};
use crate::native::{NativeBuckets, SCHEMA, ZERO_THRESHOLD_S};
use crate::registry::{Description, Kind};
use crate::snapshot::{MetricsSnapshot, Values};

/// The HTTP content type that belongs to the bytes.
pub const PROTOBUF_CONTENT_TYPE: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    #[prost(enumeration = "MetricType", tag = "3")]
    metric_type: i32,
    #[prost(message, repeated, tag = "4")]
    metrics: Vec<Metric>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Value>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Value>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// Of a gauge or a counter.
#[derive(Copy, Clone, PartialEq, Message)]
struct Value {
    #[prost(double, tag = "1")]
    value: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, tag = "1")]
    count: u64,
    #[prost(double, tag = "2")]
    sum: f64,
    #[prost(message, repeated, tag = "3")]
    buckets: Vec<Bucket>,
    #[prost(sint32, tag = "5")]
    schema: i32,
    #[prost(double, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    spans: Vec<Span>,
    #[prost(sint64, repeated, tag = "13")]
    deltas: Vec<i64>,
    #[prost(message, repeated, tag = "16")]
    exemplars: Vec<ToldExemplar>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, tag = "1")]
    cumulative_count: u64,
    #[prost(double, tag = "2")]
    upper_bound: f64,
    #[prost(message, optional, tag = "3")]
    exemplar: Option<ToldExemplar>,
}

#[derive(Copy, Clone, PartialEq, Message)]
struct Span {
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

#[derive(Clone, PartialEq, Message)]
struct ToldExemplar {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(double, tag = "2")]
    value: f64,
    #[prost(message, optional, tag = "3")]
    timestamp: Option<Timestamp>,
}

#[derive(Copy, Clone, PartialEq, Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

impl MetricsSnapshot {
    /// All metrics in the format of [`PROTOBUF_CONTENT_TYPE`], in the order of registration, and what is told beside
    /// them. Histograms have both kinds of buckets: a Prometheus takes those that it is set to take.
    pub fn to_prometheus_protobuf(&self, beside: Beside) -> Vec<u8> {
        let mut families = registered(&self.values, &beside.exemplars);
        families.extend(unregistered(self.values.prefix, &beside));
        let mut bytes = Vec::with_capacity(64 * self.values.descriptions.len());
        for family in &families {
            family.encode_length_delimited(&mut bytes).expect("a vector has room");
        }
        bytes
    }
}

fn registered(values: &Values, exemplars: &[Exemplar]) -> Vec<MetricFamily> {
    let mut told = Vec::new();
    for members in families(values) {
        let Some(first) = members.first() else { continue };
        let family = full_name(values.prefix, &first.family());
        let help = match first.unit {
            "" => first.help.to_owned(),
            unit => format!("{} [{unit}]", first.help),
        };
        let labels = |member: &Description| member.labels.iter().map(|(key, value)| label(key, value)).collect();
        let metrics = members.iter().map(|member| metric(values, member, exemplars, labels(member))).collect();
        let (name, metric_type) = match first.kind {
            Kind::Counter => (format!("{family}_total"), MetricType::Counter),
            Kind::Gauge | Kind::WindowMax => (family.clone(), MetricType::Gauge),
            Kind::Histogram => (family.clone(), MetricType::Histogram),
        };
        told.push(MetricFamily { name, help: help.clone(), metric_type: metric_type as i32, metrics });
        if first.kind == Kind::Histogram {
            let max_s = |member: &&Description| values.histogram_maxima_us[usize::from(member.index)] as f64 / 1e6;
            let metrics = members.iter().map(|member| gauge(labels(member), max_s(member))).collect();
            told.push(MetricFamily { name: max_family(&family), help, metric_type: MetricType::Gauge as i32, metrics });
        }
    }
    told
}

fn unregistered<'a>(prefix: &'a str, beside: &'a Beside) -> impl Iterator<Item = MetricFamily> + 'a {
    let labels =
        |keys: &[&str], row: &[String]| keys.iter().zip(row).map(|(key, value)| label(key, value)).collect::<Vec<_>>();
    let gauges = beside.gauges.iter().map(move |family| MetricFamily {
        name: full_name(prefix, &family.name.replace('.', "_")),
        help: family.help.to_owned(),
        metric_type: MetricType::Gauge as i32,
        metrics: family.rows.iter().map(|(row, value)| gauge(labels(family.keys, row), *value)).collect(),
    });
    let counters = beside.counters.iter().map(move |family| MetricFamily {
        name: full_name(prefix, &family.name.replace('.', "_")) + "_total",
        help: family.help.to_owned(),
        metric_type: MetricType::Counter as i32,
        metrics: family.rows.iter().map(|(row, count)| counter(labels(family.keys, row), *count)).collect(),
    });
    // A reader may refuse a family that has a type and no metric.
    gauges.chain(counters).filter(|family| !family.metrics.is_empty())
}

fn full_name(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}_{name}") }
}

fn label(name: &str, value: &str) -> Label {
    Label { name: name.to_owned(), value: value.to_owned() }
}

fn gauge(labels: Vec<Label>, value: f64) -> Metric {
    Metric { labels, gauge: Some(Value { value }), ..Metric::default() }
}

fn counter(labels: Vec<Label>, count: u64) -> Metric {
    Metric { labels, counter: Some(Value { value: count as f64 }), ..Metric::default() }
}

fn metric(values: &Values, member: &Description, exemplars: &[Exemplar], labels: Vec<Label>) -> Metric {
    let index = usize::from(member.index);
    match member.kind {
        Kind::Counter => counter(labels, values.counters[index]),
        Kind::Gauge => gauge(labels, values.gauges[index]),
        Kind::WindowMax => gauge(labels, values.maxima[index] as f64),
        Kind::Histogram => {
            let histogram = Some(histogram(values, member, exemplars));
            Metric { labels, histogram, ..Metric::default() }
        }
    }
}

fn histogram(values: &Values, member: &Description, exemplars: &[Exemplar]) -> Histogram {
    let histogram = &values.histograms[usize::from(member.index)];
    let mut count = 0;
    let cumulate = |(upper_bound, in_bucket)| {
        count += in_bucket;
        Bucket { cumulative_count: count, upper_bound, exemplar: None }
    };
    let mut buckets: Vec<Bucket> = histogram.buckets_s().into_iter().map(cumulate).collect();
    let exemplars: Vec<_> =
        exemplars_of(member, values, exemplars).map(|(bucket, exemplar)| (bucket, told(exemplar))).collect();
    // Of the newest alone: readers before 2.50 take them in the buckets' order, which has to be that of time.
    if let Some((bucket, newest)) = exemplars.last() {
        buckets[*bucket].exemplar = Some(newest.clone());
    }
    let NativeBuckets { zero_count, spans, deltas } = NativeBuckets::of(histogram);
    Histogram {
        count: histogram.count(),
        sum: histogram.sum_us() as f64 / 1e6,
        buckets,
        schema: SCHEMA,
        zero_threshold: ZERO_THRESHOLD_S,
        zero_count,
        spans: spans.into_iter().map(|(offset, length)| Span { offset, length }).collect(),
        deltas,
        exemplars: exemplars.into_iter().map(|(_, exemplar)| exemplar).collect(),
    }
}

fn told(exemplar: &Exemplar) -> ToldExemplar {
    let (key, value) = &exemplar.label;
    let (seconds, ms) = (exemplar.at_unix_ms / 1_000, exemplar.at_unix_ms % 1_000);
    ToldExemplar {
        labels: vec![label(key, value)],
        value: exemplar.value_us as f64 / 1e6,
        timestamp: Some(Timestamp { seconds: seconds as i64, nanos: ms as i32 * 1_000_000 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LabelledCounters, LabelledGauges, Registry};
    use throng_platform::time::Nanos;

    fn decoded(mut bytes: &[u8]) -> Vec<MetricFamily> {
        let mut families = Vec::new();
        while !bytes.is_empty() {
            families.push(MetricFamily::decode_length_delimited(&mut bytes).unwrap());
        }
        families
    }

    fn family<'a>(families: &'a [MetricFamily], name: &str) -> &'a MetricFamily {
        families.iter().find(|family| family.name == name).unwrap_or_else(|| panic!("{name} in {families:?}"))
    }

    #[test]
    fn every_kind_is_told_under_the_name_that_the_text_has() {
        let mut registry = Registry::with_prefix("throng");
        let packets = registry.register_counter("net.packets_in", "Packets received");
        let hub = registry.register_gauge_with("server.worlds", "Worlds", &[("kind", "hub")]);
        let inbox = registry.register_window_max("net.inbox_bytes", "Fullest inbox", 60);
        let frame = registry.register_histogram("server.frame", "Time of one frame");
        let arena = registry.register_gauge_with("server.worlds", "Worlds", &[("kind", "a \"b\"\n")]);
        let mut cells = registry.cells();
        cells.add(packets, 12);
        cells.max(inbox, 700);
        [16_000, 16_000, 900_000].into_iter().for_each(|us| cells.record(frame, us));
        registry.merge(&mut cells, Nanos::ZERO);
        registry.set(hub, 2.0);
        registry.set(arena, 0.5);
        let beside = Beside {
            gauges: vec![
                LabelledGauges { name: "saves.is_away", help: "h", keys: &[], rows: vec![(vec![], 1.0)] },
                LabelledGauges { name: "nobody.has_any", help: "h", keys: &["kind"], rows: vec![] },
            ],
            counters: vec![LabelledCounters {
                name: "admin.refused",
                help: "h",
                keys: &["cause"],
                rows: vec![(vec!["role".into()], 3)],
            }],
            exemplars: vec![],
        };

        let families = decoded(&registry.snapshot().to_prometheus_protobuf(beside));
        let names: Vec<&str> = families.iter().map(|family| family.name.as_str()).collect();
        let expect = [
            "throng_metrics_samples_dropped_total",
            "throng_net_packets_in_total",
            "throng_server_worlds",
            "throng_net_inbox_bytes_window_max",
            "throng_server_frame_seconds",
            "throng_server_frame_seconds_window_max",
            "throng_saves_is_away",
            "throng_admin_refused_total",
        ];
        assert_eq!(names, expect);
        assert_eq!(family(&families, expect[1]).metrics, [counter(vec![], 12)]);
        let kinds = [gauge(vec![label("kind", "hub")], 2.0), gauge(vec![label("kind", "a \"b\"\n")], 0.5)];
        assert_eq!(family(&families, expect[2]).metrics, kinds);
        assert_eq!(family(&families, expect[3]).metrics, [gauge(vec![], 700.0)]);
        assert_eq!(family(&families, expect[5]).metrics, [gauge(vec![], 0.9)]);
        assert_eq!(family(&families, expect[7]).metrics, [counter(vec![label("cause", "role")], 3)]);
        let frames = family(&families, expect[4]);
        let histogram = frames.metrics[0].histogram.as_ref().unwrap();
        assert_eq!((frames.metric_type(), histogram.count, histogram.sum), (MetricType::Histogram, 3, 0.932));
        let last = histogram.buckets.last().unwrap();
        assert_eq!((last.cumulative_count, last.upper_bound), (3, f64::INFINITY));
        assert_eq!((histogram.schema, histogram.deltas.as_slice(), histogram.spans.len()), (4, &[2, -1][..], 2));
    }

    #[test]
    fn a_bucket_has_the_newest_exemplar_and_the_histogram_all() {
        let mut registry = Registry::new();
        let frame = registry.register_histogram("server.frame", "Time of one frame");
        let mut cells = registry.cells();
        cells.record(frame, 45_000);
        registry.merge(&mut cells, Nanos::ZERO);
        let exemplar = |capture: &str, value_us, at_unix_ms| Exemplar {
            histogram: "server.frame",
            label: ("capture", capture.to_owned()),
            value_us,
            at_unix_ms,
        };
        let exemplars = vec![
            exemplar("old", 900_000, 1_000),
            exemplar("new", 45_000, 2_500),
            exemplar(&"x".repeat(200), 45_000, 3_000),
            Exemplar { histogram: "server.other", ..exemplar("other", 45_000, 9_000) },
        ];
        let beside = Beside { exemplars, ..Beside::default() };
        let families = decoded(&registry.snapshot().to_prometheus_protobuf(beside));
        let histogram = family(&families, "server_frame_seconds").metrics[0].histogram.clone().unwrap();
        let in_buckets: Vec<_> = histogram
            .buckets
            .iter()
            .filter_map(|bucket| Some((bucket.upper_bound, bucket.exemplar.clone()?)))
            .collect();
        let newest = ToldExemplar {
            labels: vec![label("capture", "new")],
            value: 0.045,
            timestamp: Some(Timestamp { seconds: 2, nanos: 500_000_000 }),
        };
        assert_eq!(in_buckets, [(0.05, newest.clone())]);
        assert_eq!(histogram.exemplars.len(), 2);
        assert_eq!(histogram.exemplars[1], newest);
    }
}
