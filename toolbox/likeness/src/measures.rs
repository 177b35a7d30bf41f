//! Measures by numbers, while a replay goes on: a counter is looked up by its own number, and not by its name.

use std::collections::HashMap;

use throng_metrics::game::counter_name;
use throng_profiler::site;
use throng_replication::{PackedKind, Schema};

use crate::profile::{Measure, Sort};

/// Waiting is nobody's work.
const IDLE: &str = "idle";

/// What everybody has, by the places of these in the list of measures.
pub(crate) const INPUTS: usize = 0;
pub(crate) const INPUTS_CHANGED: usize = 1;
pub(crate) const REQUESTS: usize = 2;
pub(crate) const BYTES: usize = 3;
pub(crate) const LOGINS: usize = 4;
pub(crate) const JOURNEYS: usize = 5;
pub(crate) const METRES: usize = 6;
pub(crate) const NEAR: usize = 7;
/// So near is near (m): what is told often, in most games.
pub(crate) const NEAR_M: f32 = 32.0;
const _: () = assert!(NEAR_M == 32.0, "the measure's name says how near");
const OF_EVERYBODY: [(Sort, &str); 8] = [
    (Sort::Packets, "inputs"),
    (Sort::Packets, "inputs that say something else"),
    (Sort::Packets, "requests"),
    (Sort::Packets, "bytes"),
    (Sort::Packets, "logins"),
    (Sort::Walks, "journeys"),
    (Sort::Walks, "metres"),
    (Sort::Crowd, "players within 32 m"),
];

/// Numbers for measures.
#[derive(Default)]
pub(crate) struct Measures {
    all: Vec<Measure>,
    numbers: HashMap<Measure, usize>,
    /// By number of the counter, and of the subsystem.
    counters: Vec<Option<usize>>,
    subsystems: Vec<Option<usize>>,
}

impl Measures {
    pub fn new() -> Self {
        let mut measures = Self::default();
        OF_EVERYBODY.iter().for_each(|(sort, name)| _ = measures.number(Measure::new(*sort, name)));
        measures
    }

    /// In the order of their numbers.
    pub fn all(&self) -> &[Measure] {
        &self.all
    }

    pub fn get(&self, number: usize) -> &Measure {
        &self.all[number]
    }

    pub fn number(&mut self, measure: Measure) -> usize {
        let Self { all, numbers, .. } = self;
        *numbers.entry(measure).or_insert_with_key(|measure| {
            all.push(measure.clone());
            all.len() - 1
        })
    }

    pub fn counter(&mut self, counter: usize) -> usize {
        self.counters.resize(self.counters.len().max(counter + 1), None);
        let known = self.counters[counter];
        known.unwrap_or_else(|| {
            let number = self.number(Measure::new(Sort::Counts, counter_name(counter)));
            self.counters[counter] = Some(number);
            number
        })
    }

    /// `None` for waiting.
    pub fn subsystem(&mut self, subsystem: usize) -> Option<usize> {
        self.subsystems.resize(self.subsystems.len().max(subsystem + 1), None);
        if let Some(known) = self.subsystems[subsystem] {
            return Some(known);
        }
        let name = *site::subsystems().get(subsystem)?;
        if name.split('.').next() == Some(IDLE) {
            return None;
        }
        let number = self.number(Measure::new(Sort::Times, name));
        self.subsystems[subsystem] = Some(number);
        Some(number)
    }
}

/// Measures of kinds of inputs and requests, where there are several.
pub(crate) struct Kinds {
    pub inputs: Vec<usize>,
    pub requests: Vec<usize>,
}

impl Kinds {
    pub fn of(schema: &Schema, measures: &mut Measures) -> Self {
        let mut numbers = |what: &str, kinds: &[PackedKind]| -> Vec<usize> {
            let name = |kind: &PackedKind| Measure::new(Sort::Packets, &format!("{what} {}", kind.name));
            let several = if kinds.len() > 1 { kinds } else { &[] };
            several.iter().map(|kind| measures.number(name(kind))).collect()
        };
        Self { inputs: numbers("input", schema.inputs()), requests: numbers("request", schema.requests()) }
    }
}
