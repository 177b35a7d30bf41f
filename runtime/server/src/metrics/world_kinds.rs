//! What each kind of world takes, of every tick, always.
//!
//! ```text
//! world_tick_seconds{kind="hub"}                  how long its ticks take; and world_tick_seconds_window_max
//! world_tick_lateness_seconds{kind="hub"}         how long after their period they end; and its window's maximum
//! world_ticks_missed_total{kind="hub"}, world_count{kind="hub"}, world_players{kind="hub"}
//! ```
//!
//! So a bad moment has the name of a kind of world before anybody opens a capture. Kinds are known before the first
//! frame, and nothing registers later. Owned by the frame thread. Cost: 6 ns a tick, and 22 ns when it is merged; 50 KiB
//! for each kind.

use std::{collections::BTreeMap, sync::Arc};

use throng_metrics::{Cells, CounterId, GaugeId, HistogramId, Registry};
use throng_platform::time::Nanos;

use super::Figure;
use crate::ids::WorldKindId;

/// Kinds that are told apart; those beyond them are told together, as [`OTHERS`]. A game has a handful; a thousand would
/// be 50 MB, and as many series in Prometheus for each bucket.
const KINDS_MAX: usize = 32;
const OTHERS: &str = "others";

pub(super) const TICK: Figure = Figure {
    name: "world.tick",
    help: "Time of one tick of a world of the kind, without waiting for a worker.",
    advice: "Label `kind`. The kind whose ticks got longer is the one to look at; a capture says which of its systems it is.",
};
pub(super) const LATENESS: Figure = Figure {
    name: "world.tick_lateness",
    help: "How long after its period a tick of a world of the kind ended; 0 in time.",
    advice: "Label `kind`. All kinds: too few cores, or the host took them. One kind: its own ticks are too long.",
};
pub(super) const MISSED: Figure = Figure {
    name: "world.ticks_missed",
    help: "Ticks of worlds of the kind that did not start within their period.",
    advice: "Label `kind`. As `server.ticks_missed`.",
};
pub(super) const COUNT: Figure = Figure {
    name: "world.count",
    help: "Worlds of the kind in this process.",
    advice: "Label `kind`. As `throng_server_worlds`.",
};
pub(super) const PLAYERS: Figure = Figure {
    name: "world.players",
    help: "Clients in worlds of the kind; who is on the way counts where it goes.",
    advice: "Label `kind`. Good. Ticks get longer with it: compare.",
};

/// All families, with what is behind their names.
#[cfg(test)]
pub(super) const FIGURES: [(&Figure, &str); 5] =
    [(&TICK, "_seconds"), (&LATENESS, "_seconds"), (&MISSED, "_total"), (&COUNT, ""), (&PLAYERS, "")];

/// A tick that is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickOfKind {
    pub kind: WorldKindId,
    pub took: Nanos,
    pub lateness: Nanos,
    pub missed: u64,
}

#[derive(Default)]
pub(super) struct WorldKindMetrics {
    /// By the number of the kind, as far as they are told apart; the last one stands for all others.
    kinds: Vec<OfKind>,
}

struct OfKind {
    name: Arc<str>,
    tick: HistogramId,
    lateness: HistogramId,
    missed: CounterId,
    count: GaugeId,
    players: GaugeId,
}

impl WorldKindMetrics {
    pub fn register(registry: &mut Registry, names: &[Arc<str>]) -> Self {
        let (told, others) = names.split_at(names.len().min(KINDS_MAX));
        let others: Option<Arc<str>> = (!others.is_empty()).then(|| OTHERS.into());
        let mut kinds: Vec<OfKind> = Vec::new();
        for name in told.iter().chain(&others) {
            // Kinds of one name are told together, as they are everywhere.
            let known = kinds.iter().position(|kind| kind.name == *name);
            let of = known.map_or_else(|| OfKind::register(registry, name), |known| kinds[known].again());
            kinds.push(of);
        }
        Self { kinds }
    }

    fn of(&self, kind: WorldKindId) -> Option<&OfKind> {
        self.kinds.get(usize::from(kind.0)).or_else(|| self.kinds.last())
    }

    pub fn tick(&self, tick: &TickOfKind, cells: &mut Cells) {
        let Some(of) = self.of(tick.kind) else { return };
        cells.record_time(of.tick, tick.took);
        cells.record_time(of.lateness, tick.lateness);
        cells.add(of.missed, tick.missed);
    }

    /// Once a second: worlds by the number of their kind, players by its name.
    pub fn set(&self, worlds: &[u64], players: &BTreeMap<String, usize>, registry: &mut Registry) {
        for of in &self.kinds {
            registry.set(of.count, 0.0);
            registry.set(of.players, 0.0);
        }
        for (number, &count) in worlds.iter().enumerate() {
            if let Some(of) = self.kinds.get(number).or_else(|| self.kinds.last()) {
                registry.set(of.count, registry.gauge(of.count) + count as f64);
            }
        }
        for (name, &count) in players {
            let of = self.kinds.iter().find(|of| *of.name == **name).or_else(|| self.kinds.last());
            if let Some(of) = of {
                registry.set(of.players, registry.gauge(of.players) + count as f64);
            }
        }
    }
}

impl OfKind {
    fn register(registry: &mut Registry, name: &Arc<str>) -> Self {
        let labels = [("kind", &**name)];
        Self {
            name: name.clone(),
            tick: registry.register_histogram_with(TICK.name, TICK.help, &labels),
            lateness: registry.register_histogram_with(LATENESS.name, LATENESS.help, &labels),
            missed: registry.register_counter_with(MISSED.name, MISSED.help, &labels),
            count: registry.register_gauge_with(COUNT.name, COUNT.help, &labels),
            players: registry.register_gauge_with(PLAYERS.name, PLAYERS.help, &labels),
        }
    }

    fn again(&self) -> Self {
        Self { name: self.name.clone(), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: a kind's ticks, misses, worlds and players are told under its name, and no kind's are lost.
    #[test]
    fn every_kind_has_its_own_and_those_beyond_the_maximum_share_one() {
        let mut registry = Registry::new();
        let mut names: Vec<Arc<str>> = (0..40).map(|number| format!("kind-{number}").into()).collect();
        names[1] = "kind-0".into();
        let kinds = WorldKindMetrics::register(&mut registry, &names);
        let mut cells = registry.cells();
        for number in [0, 1, 2, 35, 39] {
            let (took, lateness) = (Nanos::from_millis(10 + u64::from(number)), Nanos::from_millis(1));
            kinds.tick(&TickOfKind { kind: WorldKindId(number), took, lateness, missed: 2 }, &mut cells);
        }
        registry.merge(&mut cells, Nanos::from_secs(1));
        let players = [("kind-0", 5), ("kind-2", 7), ("kind-39", 9)].map(|(name, count)| (name.to_owned(), count));
        for _second in 0..2 {
            kinds.set(&[1; 40], &players.clone().into(), &mut registry);
        }
        let text = registry.snapshot().to_prometheus_text();
        for line in [
            "world_tick_seconds_count{kind=\"kind-0\"} 2",
            "world_tick_seconds_window_max{kind=\"kind-0\"} 0.011",
            "world_tick_seconds_window_max{kind=\"others\"} 0.049",
            "world_tick_lateness_seconds_sum{kind=\"kind-2\"} 0.001",
            "world_ticks_missed_total{kind=\"others\"} 4",
            "world_count{kind=\"kind-0\"} 2.0",
            "world_count{kind=\"others\"} 8.0",
            "world_players{kind=\"kind-0\"} 5.0",
            "world_players{kind=\"kind-3\"} 0.0",
            "world_players{kind=\"others\"} 9.0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line:?} is missing in\n{text}");
        }
    }
}
