//! Metrics as Prometheus scrapes them: which families there are, for the two formats.
//!
//! [`text`] is OpenMetrics 1.0, for everybody; [`protobuf`] is Prometheus' own, which alone can carry native histograms.
//! Both tell the same families with the same values. Runs on the thread of whoever asked, never on the frame's.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::registry::{Description, Kind};
use crate::snapshot::Values;

pub(crate) mod protobuf;
pub(crate) mod text;

/// Gauges of one name that come and go with what they are about, such as rows of a report: each is its labels and its
/// value. Labels may hold any text.
#[derive(Clone, Debug)]
pub struct LabelledGauges {
    /// Dotted, as a registered name.
    pub name: &'static str,
    pub help: &'static str,
    pub keys: &'static [&'static str],
    /// The labels in the order of `keys`, and the value.
    pub rows: Vec<(Vec<String>, f64)>,
}

/// Counters of one name that are counted elsewhere, told as [`LabelledGauges`] are.
#[derive(Clone, Debug)]
pub struct LabelledCounters {
    pub name: &'static str,
    pub help: &'static str,
    pub keys: &'static [&'static str],
    pub rows: Vec<(Vec<String>, u64)>,
}

/// One sample of a histogram, and where more is known of it: a dashboard leads from the one to the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// The histogram, by the dotted name that it is registered under without labels.
    pub histogram: &'static str,
    /// Key and value together have 128 letters at most, which is the format's limit; longer ones are not told.
    pub label: (&'static str, String),
    pub value_us: u64,
    /// Since 1970 (ms).
    pub at_unix_ms: u64,
}

/// The format's limit.
const EXEMPLAR_LETTERS_MAX: usize = 128;

impl Exemplar {
    fn is_tellable(&self) -> bool {
        let (key, value) = &self.label;
        key.chars().count() + value.chars().count() <= EXEMPLAR_LETTERS_MAX
    }
}

/// What is told beside what is registered.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    pub gauges: Vec<LabelledGauges>,
    pub counters: Vec<LabelledCounters>,
    /// Oldest first. A bucket has the newest of its own.
    pub exemplars: Vec<Exemplar>,
}

/// All metrics of one name, which differ in their labels; in the order of registration.
fn families(values: &Values) -> Vec<Vec<&Description>> {
    let mut families: Vec<Vec<&Description>> = Vec::new();
    let mut places: HashMap<Cow<'_, str>, usize> = HashMap::with_capacity(values.descriptions.len());
    for member in values.descriptions.iter() {
        let place = *places.entry(member.family()).or_insert(families.len());
        match families.get_mut(place) {
            Some(family) => family.push(member),
            None => families.push(vec![member]),
        }
    }
    families
}

/// The name of a histogram's family that has its maximum.
fn max_family(histogram: &str) -> String {
    format!("{histogram}_window_max")
}

/// A histogram's exemplars, oldest first, each with the place of its bucket.
fn exemplars_of<'a>(
    member: &'a Description,
    values: &'a Values,
    exemplars: &'a [Exemplar],
) -> impl Iterator<Item = (usize, &'a Exemplar)> {
    let is_its = move |exemplar: &&Exemplar| {
        member.kind == Kind::Histogram
            && member.labels.is_empty()
            && exemplar.histogram.replace('.', "_") == member.name
            && exemplar.is_tellable()
    };
    let buckets = values.histograms.get(usize::from(member.index)).map(|histogram| histogram.buckets_s());
    exemplars.iter().filter(is_its).filter_map(move |exemplar| {
        let seconds = exemplar.value_us as f64 / 1e6;
        Some((buckets.as_ref()?.iter().position(|(bound_s, _)| seconds <= *bound_s)?, exemplar))
    })
}
