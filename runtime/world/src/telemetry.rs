//! Telemetry: the game's own counters and gauges, summed over worlds.
//!
//! A game registers names while a world is built and keeps the handles; a system adds to them, which is one array store. After
//! each tick the worker adds the counters and the change of every gauge to its own sums, which the frame merges: the sum over a
//! thousand worlds costs only the worlds that ticked. Appears as `game.NAME` in the report and as `throng_game_NAME` in metrics.

use bevy_ecs::prelude::*;

/// Most counters and gauges that one server may have of each.
pub const NAMES_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterHandle(pub(crate) u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GaugeHandle(pub(crate) u8);

/// The names of a server's game counters and gauges, the same for every world.
#[derive(Debug, Default, Clone)]
pub struct TelemetryNames {
    pub counters: Vec<&'static str>,
    pub gauges: Vec<&'static str>,
}

impl TelemetryNames {
    pub(crate) fn counter(&mut self, name: &'static str) -> CounterHandle {
        CounterHandle(index_of(&mut self.counters, name))
    }

    pub(crate) fn gauge(&mut self, name: &'static str) -> GaugeHandle {
        GaugeHandle(index_of(&mut self.gauges, name))
    }
}

fn index_of(names: &mut Vec<&'static str>, name: &'static str) -> u8 {
    let known = names.iter().position(|&other| other == name);
    let index = known.unwrap_or_else(|| {
        assert!(names.len() < NAMES_MAX, "more than {NAMES_MAX} game counters or gauges: `{name}` is one too many");
        names.push(name);
        names.len() - 1
    });
    index as u8
}

/// One world's game counters since the last tick, and its gauges as they stand.
#[derive(Resource, Debug, Clone, Default)]
pub struct Telemetry {
    counters: Vec<u64>,
    gauges: Vec<i64>,
    gauges_told: Vec<i64>,
}

impl Telemetry {
    pub fn add(&mut self, counter: CounterHandle, count: u64) {
        let index = usize::from(counter.0);
        if index >= self.counters.len() {
            self.counters.resize(index + 1, 0);
        }
        self.counters[index] += count;
    }

    pub fn set(&mut self, gauge: GaugeHandle, value: i64) {
        let index = usize::from(gauge.0);
        if index >= self.gauges.len() {
            self.gauges.resize(index + 1, 0);
            self.gauges_told.resize(index + 1, 0);
        }
        self.gauges[index] = value;
    }

    /// Adds what has gathered since the last call to the server's sums, and starts again from zero.
    pub(crate) fn drain_into(&mut self, sums: &mut TelemetrySums) {
        for (sum, count) in sums.counters.iter_mut().zip(&mut self.counters) {
            *sum += std::mem::take(count);
        }
        for ((sum, &value), told) in sums.gauges.iter_mut().zip(&self.gauges).zip(&mut self.gauges_told) {
            *sum += value - *told;
            *told = value;
        }
    }
}

/// Sums over all worlds: counters since the start, gauges as they stand.
#[derive(Debug, Clone)]
pub struct TelemetrySums {
    pub counters: [u64; NAMES_MAX],
    pub gauges: [i64; NAMES_MAX],
}

impl Default for TelemetrySums {
    fn default() -> Self {
        Self { counters: [0; NAMES_MAX], gauges: [0; NAMES_MAX] }
    }
}

impl TelemetrySums {
    /// Adds what `other` has gathered and empties it.
    pub fn take(&mut self, other: &mut Self) {
        for (sum, more) in self.counters.iter_mut().zip(&mut other.counters) {
            *sum += std::mem::take(more);
        }
        for (sum, more) in self.gauges.iter_mut().zip(&mut other.gauges) {
            *sum += std::mem::take(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_add_up_and_gauges_stand() {
        let mut names = TelemetryNames::default();
        let casts = names.counter("casts");
        let alive = names.gauge("alive");
        assert_eq!(names.counter("casts"), casts);
        let (mut one, mut two, mut sums) = (Telemetry::default(), Telemetry::default(), TelemetrySums::default());
        for tick in 1..=3 {
            one.add(casts, 2);
            one.set(alive, tick);
            two.set(alive, 10);
            one.drain_into(&mut sums);
            two.drain_into(&mut sums);
        }
        assert_eq!(sums.counters[0], 6);
        assert_eq!(sums.gauges[0], 13);
    }
}
