//! Tick time: what a tick of a world costs the processor, in three parts: game, engine and kernel.
//!
//! The recorder has the sums of all scopes of a frame anyway. A scope lasts longer than it has the core where others
//! want that core, too. So only proportions are taken from scopes: they split the processor time of the process, what
//! is outside of scopes included. Scopes around system calls are the engine's, and what the kernel took in them is told
//! apart. A capture that is saved waits more than others do, and makes the engine's part a little large. Without a
//! recorder there are no parts.

use std::collections::BTreeMap;

use serde::Serialize;
use throng_platform::time::Nanos;
use throng_profiler::{
    FrameFigures, Recorder,
    rules::Rules,
    site::{self, SUBSYSTEMS_MAX},
    world_kind::{KIND_ROWS, KindNumber},
};

use crate::tick_budgets::BudgetWindow;

/// Names with which the engine's subsystems begin; a game's crate that has one of them counts as the engine. All others
/// are the game's, with what it calls for its own ends, such as `query`.
const ENGINE: [&str; 9] =
    ["admin", "checkpoint", "frame", "net", "profiler", "recording", "replication", "scheduler", "world"];

/// Nobody's: threads that wait.
const IDLE: &str = "idle";

/// Processor time of a tick (µs), mean of a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TickTimeUs {
    /// The game's systems, and what they call.
    pub game: f64,
    /// Replication, net, world, frame, checkpoints, recordings, and the flight recorder.
    pub engine: f64,
    /// The kernel on its behalf: packets in and out, switches.
    pub kernel: f64,
}

/// What scopes took in a window, by subsystem.
#[derive(Debug)]
pub(crate) struct TickTime {
    /// By number (ns).
    subsystems: [u64; SUBSYSTEMS_MAX],
    /// Of that, what went by in worlds of each kind, by the row of the kind (ns).
    in_kinds: Box<[[u64; SUBSYSTEMS_MAX]; KIND_ROWS]>,
    /// Frames that were recorded, and their ticks.
    frames: u64,
    ticks: u64,
}

impl Default for TickTime {
    fn default() -> Self {
        let in_kinds = Box::new([[0; SUBSYSTEMS_MAX]; KIND_ROWS]);
        Self { subsystems: [0; SUBSYSTEMS_MAX], in_kinds, frames: 0, ticks: 0 }
    }
}

impl TickTime {
    /// A frame has ended that was recorded, with so many ticks of worlds in it. Some 0.2 µs.
    pub fn frame(&mut self, recorder: &Recorder, figures: &FrameFigures, ticks: u64) {
        self.frames += 1;
        self.ticks += ticks;
        for (sum, ns) in self.subsystems.iter_mut().zip(&figures.subsystem_ns) {
            *sum += ns;
        }
        recorder.each_of_kinds(|kind, number, ns| self.in_kinds[kind.row()][number] += ns);
    }

    /// What each subsystem's scopes took per tick (µs), waits for a core included, in the frames that were recorded.
    /// Those that took nothing are left out.
    pub fn by_subsystem_us(&self) -> BTreeMap<&'static str, f64> {
        let us = |ns: u64| ns as f64 / 1e3 / self.ticks.max(1) as f64;
        self.named(&site::subsystems()).filter(|(_, ns)| *ns > 0).map(|(name, ns)| (name, us(ns))).collect()
    }

    /// What these rules let the same subsystems take per tick (µs); nothing of those of which they say nothing. `ticks_of_kinds` are all
    /// of the window, whether they were recorded or not.
    pub fn budgets_us(&self, rules: &Rules, ticks_of_kinds: &[(&str, u64)]) -> BTreeMap<&'static str, f64> {
        let all: u64 = ticks_of_kinds.iter().map(|(_, ticks)| ticks).sum();
        let recorded = self.ticks as f64 / all.max(1) as f64;
        let ticks_of_kinds: Vec<(&str, f64)> =
            ticks_of_kinds.iter().map(|&(kind, ticks)| (kind, ticks as f64 * recorded)).collect();
        let window = BudgetWindow { frames: self.frames, ticks: self.ticks, ticks_of_kinds: &ticks_of_kinds };
        let kinds: Vec<(&str, &[u64; SUBSYSTEMS_MAX])> = (self.in_kinds.iter().enumerate())
            .filter_map(|(row, taken)| Some((KindNumber::of_row(row).name()?, taken)))
            .collect();
        let names = site::subsystems();
        let numbered = names.iter().copied().zip(self.subsystems).enumerate().skip(1);
        let told = numbered.filter(|(_, (name, ns))| first_word(name) != IDLE && *ns > 0).filter_map(
            |(number, (name, ns))| {
                let in_kinds: Vec<(&str, u64)> = kinds.iter().map(|(kind, taken)| (*kind, taken[number])).collect();
                Some((name, window.budget_us(rules, name, ns, &in_kinds)?))
            },
        );
        told.collect()
    }

    /// What they took by heading: each subsystem under that of its first scope.
    pub fn by_category_us(&self) -> BTreeMap<&'static str, f64> {
        let (names, categories) = (site::subsystems(), site::subsystem_categories());
        let rows = names.into_iter().zip(categories).zip(self.subsystems);
        sum_by_category(rows.skip(1).map(|((name, category), ns)| (name, category, ns)), self.ticks)
    }

    /// The three parts of the processor time of so many ticks; none if nothing was recorded.
    pub fn parts(&self, cpu: Nanos, kernel: Nanos, ticks: u64) -> Option<TickTimeUs> {
        split(self.named(&site::subsystems()), cpu, kernel, ticks)
    }

    /// Without what is outside of all scopes, which is number 0, and without waiting.
    fn named<'a>(&self, names: &'a [&'static str]) -> impl Iterator<Item = (&'static str, u64)> + use<'a, '_> {
        let named = names.iter().copied().zip(self.subsystems.iter().copied()).skip(1);
        named.filter(|(name, _)| first_word(name) != IDLE)
    }
}

fn first_word(subsystem: &str) -> &str {
    subsystem.split_once('.').map_or(subsystem, |(first, _)| first)
}

fn sum_by_category(
    subsystems: impl Iterator<Item = (&'static str, &'static str, u64)>,
    ticks: u64,
) -> BTreeMap<&'static str, f64> {
    let mut sums = BTreeMap::new();
    for (_, category, ns) in subsystems.filter(|&(name, _, ns)| first_word(name) != IDLE && ns > 0) {
        *sums.entry(category).or_default() += ns as f64 / 1e3 / ticks.max(1) as f64;
    }
    sums
}

fn split<'a>(
    subsystems: impl Iterator<Item = (&'a str, u64)>,
    cpu: Nanos,
    kernel: Nanos,
    ticks: u64,
) -> Option<TickTimeUs> {
    let (mut game_ns, mut all_ns) = (0, 0);
    for (name, ns) in subsystems {
        all_ns += ns;
        game_ns += if ENGINE.contains(&first_word(name)) { 0 } else { ns };
    }
    if all_ns == 0 || ticks == 0 {
        return None;
    }
    let per_tick_us = |ns: f64| ns / 1e3 / ticks as f64;
    let game = cpu.0 as f64 * game_ns as f64 / all_ns as f64;
    // The kernel's time is inside the engine's scopes, as far as these say the truth.
    let engine = (cpu.0 as f64 - kernel.0 as f64 - game).max(0.0);
    Some(TickTimeUs {
        game: per_tick_us(game),
        engine: per_tick_us(engine),
        kernel: per_tick_us(cpu.0 as f64 - game - engine),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(subsystems: &[(&str, u64)], expect: Option<[f64; 3]>) {
        let parts = split(subsystems.iter().copied(), Nanos(1_000_000), Nanos(200_000), 10);
        assert_eq!(parts.map(|TickTimeUs { game, engine, kernel }| [game, engine, kernel]), expect);
    }

    #[test]
    fn scopes_split_what_the_processor_took() {
        check(
            &[("ai", 300), ("query.sight", 100), ("net", 500), ("replication.interest", 100)],
            Some([40.0, 40.0, 20.0]),
        );
        // As many again waited for a core: the parts stay.
        check(&[("ai", 600), ("query", 200), ("net", 1_000), ("replication", 200)], Some([40.0, 40.0, 20.0]));
        // More for game and kernel than there was: the samples that tell the kernel's time are few.
        check(&[("networth.count", 100)], Some([100.0, 0.0, 0.0]));
        check(&[("ai", 90), ("net", 10)], Some([90.0, 0.0, 10.0]));
    }

    #[test]
    fn subsystems_add_up_under_their_headings_without_waiting() {
        let subsystems = [
            ("ai", "gameplay", 30_000),
            ("net", "network", 0),
            ("precinct.npc", "gameplay", 10_000),
            ("replication", "replication", 50_000),
            ("idle", "idle", 900_000),
        ];
        let sums = sum_by_category(subsystems.into_iter(), 10);
        assert_eq!(sums, [("gameplay", 4.0), ("replication", 5.0)].into());
    }

    #[test]
    fn nothing_recorded_is_no_parts() {
        check(&[], None);
        check(&[("ai", 0), ("net", 0)], None);
        assert_eq!(split([("ai", 1)].into_iter(), Nanos(5), Nanos(1), 0), None);
    }
}
