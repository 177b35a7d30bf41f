//! What a Prometheus endpoint says, and one metric out of it.
//!
//! Reads the text format in all its dialects, OpenMetrics included, as far as values are concerned: a line is a name,
//! labels in braces and a number; everything behind a `#` at its begin is for others. What cannot be read of it is
//! passed over: it is somebody else's server.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::frame_times::FrameTimes;

/// A metric of frame times: its name, labels that it must have, and how long its unit is.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameMetric {
    name: String,
    labels: Labels,
    ms_per_unit: f64,
}

type Labels = Vec<(String, String)>;

/// The unit in which a metric tells times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

/// What is wrong with the name of a metric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameMetricError {
    #[error("{0:?} is no name of a metric; write NAME, or NAME{{label=\"value\"}} for one of several")]
    Name(String),
    #[error("the name {0:?} does not say in which unit it tells times; say --unit s, ms, us or ns")]
    NoUnit(String),
}

impl FromStr for Unit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "s" => Ok(Self::Seconds),
            "ms" => Ok(Self::Milliseconds),
            "us" => Ok(Self::Microseconds),
            "ns" => Ok(Self::Nanoseconds),
            other => Err(format!("{other:?} is none of s, ms, us, ns")),
        }
    }
}

impl Unit {
    fn ms(self) -> f64 {
        match self {
            Self::Seconds => 1e3,
            Self::Milliseconds => 1.0,
            Self::Microseconds => 1e-3,
            Self::Nanoseconds => 1e-6,
        }
    }

    /// As names of metrics say it.
    fn in_name(name: &str) -> Option<Self> {
        name.split('_').rev().find_map(|word| match word {
            "seconds" | "s" | "sec" => Some(Self::Seconds),
            "milliseconds" | "millis" | "ms" => Some(Self::Milliseconds),
            "microseconds" | "micros" | "us" => Some(Self::Microseconds),
            "nanoseconds" | "nanos" | "ns" => Some(Self::Nanoseconds),
            _ => None,
        })
    }
}

impl FrameMetric {
    /// Reads `NAME` or `NAME{label="value"}`. Without a unit it is the one that the name says.
    pub fn new(text: &str, unit: Option<Unit>) -> Result<Self, FrameMetricError> {
        let wrong = || FrameMetricError::Name(text.to_owned());
        let (name, labels, rest) = name_and_labels(text).ok_or_else(wrong)?;
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_:.".contains(letter);
        if name.is_empty() || !rest.trim().is_empty() || !name.chars().all(is_letter) {
            return Err(wrong());
        }
        let unit = unit.or_else(|| Unit::in_name(name));
        let unit = unit.ok_or_else(|| FrameMetricError::NoUnit(name.to_owned()))?;
        Ok(Self { name: name.to_owned(), labels, ms_per_unit: unit.ms() })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The metric in a page. `Err` has names that are like it, the most alike first.
    pub(crate) fn find(&self, page: &str) -> Result<Reading, Vec<String>> {
        let samples: Vec<Sample<'_>> = page.lines().filter_map(sample).collect();
        let of = |suffix: &str| {
            let name = format!("{}{suffix}", self.name);
            let is_meant = move |sample: &&Sample<'_>| {
                sample.name == name && self.labels.iter().all(|label| sample.labels.contains(label))
            };
            samples.iter().filter(is_meant)
        };
        let sum = |suffix: &str| of(suffix).map(|sample| sample.value).reduce(|one, other| one + other);
        let mut cumulative: BTreeMap<u64, f64> = BTreeMap::new();
        for sample in of("_bucket") {
            let bound = sample.labels.iter().find(|(key, _)| key == "le").and_then(|(_, bound)| number(bound));
            if let Some(bound) = bound.filter(|bound| *bound >= 0.0) {
                *cumulative.entry((bound * self.ms_per_unit).to_bits()).or_default() += sample.value;
            }
        }
        match (sum("_count"), sum("_sum")) {
            (Some(count), Some(total)) => Ok(Reading::Counted { count, sum_ms: total * self.ms_per_unit, cumulative }),
            _ => {
                // Of several threads or worlds: their mean.
                let values: Vec<f64> = of("").filter(|one| !has(one, "quantile")).map(|one| one.value).collect();
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                if mean.is_finite() {
                    Ok(Reading::Now { ms: mean * self.ms_per_unit })
                } else {
                    Err(like(&self.name, &samples))
                }
            }
        }
    }
}

/// What a metric was at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reading {
    /// A histogram, or a summary, which has no buckets: all frames since the server's start.
    Counted {
        count: f64,
        sum_ms: f64,
        /// Frames up to a bound in ms, by the bound's bits.
        cumulative: BTreeMap<u64, f64>,
    },
    /// A gauge: the frame time of this moment.
    Now { ms: f64 },
}

impl Reading {
    /// Frames between an earlier reading and this one. `None` if less was counted than before: it is another server, or
    /// it began anew. Gauges have no between.
    pub(crate) fn since(&self, earlier: &Self) -> Option<FrameTimes> {
        let (Self::Counted { count, sum_ms, cumulative }, Self::Counted { count: c0, sum_ms: s0, cumulative: b0 }) =
            (self, earlier)
        else {
            return None;
        };
        let mut times = FrameTimes::counted(count - c0, sum_ms - s0);
        if times.count < 0.0 {
            return None;
        }
        let (mut lower_ms, mut below) = (0.0, 0.0);
        for (bound, up_to) in cumulative {
            let up_to = up_to - b0.get(bound).copied().unwrap_or(0.0);
            times.add(lower_ms, f64::from_bits(*bound), up_to - below);
            (lower_ms, below) = (f64::from_bits(*bound), up_to);
        }
        Some(times)
    }
}

/// All samples of a name added up; `None` if the page has none.
pub(crate) fn sum_of(page: &str, name: &str) -> Option<f64> {
    let values = page.lines().filter_map(sample).filter(|sample| sample.name == name).map(|sample| sample.value);
    values.reduce(|one, other| one + other)
}

struct Sample<'a> {
    name: &'a str,
    labels: Labels,
    value: f64,
}

fn has(sample: &Sample<'_>, key: &str) -> bool {
    sample.labels.iter().any(|(own, _)| own == key)
}

/// A line `NAME{LABELS} VALUE [TIMESTAMP] [# EXEMPLAR]`.
fn sample(line: &str) -> Option<Sample<'_>> {
    if line.starts_with('#') {
        return None;
    }
    let (name, labels, rest) = name_and_labels(line)?;
    let value = number(rest.split_whitespace().next()?)?;
    (!name.is_empty()).then_some(Sample { name, labels, value })
}

/// `+Inf` among them.
fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Name, labels, and what stands behind them. Labels may hold escaped quotes, backslashes and line ends.
fn name_and_labels(text: &str) -> Option<(&str, Labels, &str)> {
    let end = text.find(|letter: char| letter == '{' || letter.is_whitespace()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let Some(mut rest) = rest.strip_prefix('{') else { return Some((name, Vec::new(), rest)) };
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((name, labels, behind));
        }
        let (key, behind) = rest.split_once('=')?;
        let quoted = behind.trim_start().strip_prefix('"')?;
        let mut letters = quoted.char_indices();
        let mut value = String::new();
        rest = loop {
            match letters.next()? {
                (at, '"') => break &quoted[at + 1..],
                (_, '\\') => value.push(match letters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.push((key.trim().to_owned(), value));
    }
}

/// Names to show to who has misspelt one.
const NAMES_MAX: usize = 8;

/// Names of the page that have most words in common with the wanted one; where there is none, those that sound like the
/// time of a frame; where there is none either, the first ones.
fn like(wanted: &str, samples: &[Sample<'_>]) -> Vec<String> {
    const USUAL: [&str; 8] = ["frame", "tick", "update", "loop", "duration", "time", "seconds", "ms"];
    let mut names: Vec<&str> = Vec::new();
    for name in samples.iter().map(|sample| stem(sample.name)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // Equals stay as the page has them.
    names.sort_by_key(|name| std::cmp::Reverse((in_common(name, &words(wanted)), in_common(name, &USUAL))));
    names.into_iter().take(NAMES_MAX).map(str::to_owned).collect()
}

/// A family's name without what stands behind it in its samples.
fn stem(name: &str) -> &str {
    let suffixes = ["_bucket", "_sum", "_count", "_total"];
    suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

fn words(name: &str) -> Vec<&str> {
    name.split(['_', ':', '.']).collect()
}

fn in_common(name: &str, others: &[&str]) -> usize {
    words(name).iter().filter(|word| others.contains(word)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP game_frame_seconds Time of a frame.\n# TYPE game_frame_seconds histogram\n\
        game_frame_seconds_bucket{le=\"0.001\"} 10\n\
        game_frame_seconds_bucket{le=\"0.002\"} 30\n\
        game_frame_seconds_bucket{le=\"+Inf\"} 40\n\
        game_frame_seconds_sum 0.08\ngame_frame_seconds_count 40 1700000000\n\
        tick_ms{world=\"a \\\"b\\\", c\"} 3.5\ntick_ms{world=\"d\"} 4.5\n\
        rpc_us_sum{quantile=\"\"} 9e3\nrpc_us_count 3\nrpc_us{quantile=\"0.5\"} 1\n\
        broken{ 3\nnothing\n# EOF\n";

    fn metric(text: &str) -> FrameMetric {
        FrameMetric::new(text, None).unwrap()
    }

    #[test]
    fn a_histogram_gives_the_frames_between_two_readings() {
        let later = PAGE.replace("} 30", "} 50").replace("} 40", "} 70");
        let later = later.replace("sum 0.08", "sum 0.14").replace("count 40", "count 70");
        let metric = metric("game_frame_seconds");
        let (earlier, now) = (metric.find(PAGE).unwrap(), metric.find(&later).unwrap());
        let times = now.since(&earlier).unwrap();
        assert_eq!(times.count, 30.0);
        assert!((times.mean_ms().unwrap() - 2.0).abs() < 1e-9);
        // 20 of the 30 between 1 and 2 ms, 10 above.
        assert!((times.quantile_ms(0.5).unwrap() - 1.75).abs() < 1e-9, "{times:?}");
        assert_eq!(times.quantile_ms(0.99), Some(2.0));
        assert_eq!(earlier.since(&now), None, "it began anew");
    }

    #[test]
    fn summaries_and_gauges_are_read_too_and_labels_choose() {
        let found = metric("rpc_us").find(PAGE).unwrap();
        assert_eq!(found, Reading::Counted { count: 3.0, sum_ms: 9.0, cumulative: BTreeMap::new() });
        assert_eq!(metric("tick_ms").find(PAGE).unwrap(), Reading::Now { ms: 4.0 });
        assert_eq!(metric("tick_ms{world=\"d\"}").find(PAGE).unwrap(), Reading::Now { ms: 4.5 });
        assert_eq!(metric("tick_ms{world=\"a \\\"b\\\", c\"}").find(PAGE).unwrap(), Reading::Now { ms: 3.5 });
        assert!(metric("tick_ms{world=\"e\"}").find(PAGE).is_err());
    }

    #[test]
    fn who_misspells_a_name_is_shown_those_like_it() {
        assert_eq!(metric("games_frame_seconds").find(PAGE).unwrap_err()[0], "game_frame_seconds");
        // Nothing in common: those that sound like it come first.
        assert_eq!(
            FrameMetric::new("x", Some(Unit::Seconds)).unwrap().find(PAGE).unwrap_err()[0],
            "game_frame_seconds"
        );
        assert!(metric("x_ms").find("").unwrap_err().is_empty());
    }

    #[test]
    fn the_unit_is_in_the_name_or_asked_for() {
        let ms = |text: &str, unit| FrameMetric::new(text, unit).map(|metric| metric.ms_per_unit);
        assert_eq!(ms("frame_seconds", None), Ok(1e3));
        assert_eq!(ms("frame_us_window_max", None), Ok(1e-3));
        assert_eq!(ms("frame_time", Some(Unit::Milliseconds)), Ok(1.0));
        assert!(ms("frame_time", None).unwrap_err().to_string().contains("--unit"));
        for wrong in ["", "frame time", "frame_ms{a}", "frame_ms}x"] {
            assert!(matches!(ms(wrong, Some(Unit::Seconds)), Err(FrameMetricError::Name(_))), "{wrong:?}");
        }
        assert!("min".parse::<Unit>().is_err());
    }
}
