//! Packet report: what each sort of message and component takes of the way to the clients, and why, as rows with rates.
//!
//! Built from the counts of `throng_replication::traffic`. Each world gives up its own once a second, to the worker
//! that ticks it; the frame thread adds up the workers' and publishes the rows. A row is a kind, a cause and a world;
//! rows do not overlap, so they add up to what went out. The first [`WORLDS_NAMED_MAX`] worlds have rows of their own,
//! the others one for each kind of world: a thousand hideouts are read as one.
//!
//! Cost: some 20 ns per row, world and second on the workers; a few µs a second on the frame thread. Text is made where
//! it is read.

use foldhash::HashMap;
use serde::Serialize;
use throng_metrics::LabelledGauges;
use throng_replication::traffic::{Counts, TrafficRow};

use throng_world::ids::{WorldId, WorldKindId};

/// Worlds with rows of their own: those with the lowest numbers.
pub const WORLDS_NAMED_MAX: u32 = 16;

/// One kind, for one cause, in one world or kind of world.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PacketRow {
    /// The replicated name, such as `vitals` or `chat.say`.
    pub kind: &'static str,
    /// Why it was sent, such as `change` or `npc.yell`.
    pub cause: &'static str,
    /// The world's kind and number, such as `hub 0`; the kind alone for all worlds of it together that have no rows of
    /// their own.
    pub world: String,
    /// Packets that held one of the kind at least; as many as messages for events.
    pub packets_per_s: f64,
    /// Before sealing.
    pub bytes_per_s: f64,
    /// Values or messages.
    pub updates_per_s: f64,
}

/// A world, or all worlds of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reported {
    World(WorldId, WorldKindId),
    Kind(WorldKindId),
}

impl Reported {
    pub fn of(world: WorldId, kind: WorldKindId) -> Self {
        if world.index() < WORLDS_NAMED_MAX as usize { Self::World(world, kind) } else { Self::Kind(kind) }
    }
}

/// Adds up counts until rows are made of them.
#[derive(Debug, Default)]
pub(crate) struct PacketSums {
    rows: HashMap<(&'static str, &'static str, Reported), Counts>,
}

impl PacketSums {
    /// Adds what one world counted: a row that `Traffic::take` gives.
    pub fn add(&mut self, world: Reported, row: TrafficRow) {
        self.rows.entry((row.kind, row.cause, world)).or_default().add(row.counts);
    }

    /// Adds all of `other`, and empties it but for its memory.
    pub fn absorb(&mut self, other: &mut Self) {
        for (key, counts) in &mut other.rows {
            if *counts != Counts::default() {
                self.rows.entry(*key).or_default().add(std::mem::take(counts));
            }
        }
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Self) {
        for (key, counts) in &other.rows {
            self.rows.entry(*key).or_default().add(*counts);
        }
    }

    /// Forgets all counts, but not its memory.
    pub fn clear(&mut self) {
        self.rows.values_mut().for_each(|counts| *counts = Counts::default());
    }

    /// Copies what was counted in `seconds` into `counted`, whose memory is used again.
    pub fn copy_to(&self, seconds: f64, counted: &mut Counted) {
        counted.seconds = seconds.max(1e-3);
        counted.rows.clear();
        let told = self.rows.iter().filter(|(_, counts)| **counts != Counts::default());
        counted.rows.extend(told.map(|(key, counts)| (*key, *counts)));
    }
}

/// What was counted in a span of time, without any text.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    seconds: f64,
    rows: Vec<((&'static str, &'static str, Reported), Counts)>,
}

impl Counted {
    /// As rows, the costliest first; `name` gives the names of kinds of worlds.
    pub fn rows(&self, name: impl Fn(WorldKindId) -> String) -> Vec<PacketRow> {
        let per_s = |count: u64| count as f64 / self.seconds;
        let mut rows: Vec<_> = self
            .rows
            .iter()
            .map(|((kind, cause, world), counts)| PacketRow {
                kind,
                cause,
                world: match *world {
                    Reported::World(world, kind) => format!("{} {world}", name(kind)),
                    Reported::Kind(kind) => name(kind),
                },
                packets_per_s: per_s(counts.packets),
                bytes_per_s: per_s(counts.bytes),
                updates_per_s: per_s(counts.updates),
            })
            .collect();
        // Equal ones by name, so that the order does not jump from second to second.
        let names = |row: &PacketRow| (row.kind, row.cause, row.world.clone());
        rows.sort_by(|a, b| b.bytes_per_s.total_cmp(&a.bytes_per_s).then_with(|| names(a).cmp(&names(b))));
        rows
    }
}

/// The rows as gauges by kind, cause and world.
pub(crate) fn gauges(rows: &[PacketRow]) -> Vec<LabelledGauges> {
    let gauges = |&(name, help, read): &Figure| LabelledGauges {
        name,
        help,
        keys: &["kind", "cause", "world"],
        rows: rows.iter().map(|row| (vec![row.kind.into(), row.cause.into(), row.world.clone()], read(row))).collect(),
    };
    FIGURES.iter().map(gauges).collect()
}

/// Name, help, and where the figure is.
type Figure = (&'static str, &'static str, fn(&PacketRow) -> f64);

pub(crate) const FIGURES: [Figure; 3] = [
    ("replication.packets_per_s", "Packets to clients that held one of the kind at least, per second", |row| {
        row.packets_per_s
    }),
    ("replication.bytes_per_s", "Bytes to clients before sealing, per second", |row| row.bytes_per_s),
    ("replication.updates_per_s", "Values, events and messages to clients, per second", |row| row.updates_per_s),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn told(sums: &PacketSums) -> Vec<(String, f64)> {
        let mut counted = Counted::default();
        sums.copy_to(2.0, &mut counted);
        let rows = counted.rows(|kind| ["hub", "hideout"][usize::from(kind.0)].into());
        rows.iter().map(|row| (format!("{} {} {}", row.kind, row.cause, row.world), row.bytes_per_s)).collect()
    }

    #[test]
    fn few_worlds_are_told_one_by_one_and_many_by_their_kind() {
        let (mut worker, mut sums) = (PacketSums::default(), PacketSums::default());
        let mut add = |world, kind, name, cause, bytes| {
            let counts = Counts { packets: 1, bytes, updates: 1 };
            worker
                .add(Reported::of(WorldId::new(world, 0), WorldKindId(kind)), TrafficRow { kind: name, cause, counts });
        };
        add(0, 0, "pose", "change", 1_000);
        add(0, 0, "chat.say", "npc.yell", 10);
        add(0, 0, "pose", "change", 2_000);
        (WORLDS_NAMED_MAX..WORLDS_NAMED_MAX + 100).for_each(|world| add(world, 1, "pose", "spawn", 20));
        sums.absorb(&mut worker);
        sums.absorb(&mut worker);
        let expect =
            [("pose change hub 0", 1_500.0), ("pose spawn hideout", 1_000.0), ("chat.say npc.yell hub 0", 5.0)];
        assert_eq!(told(&sums), expect.map(|(names, bytes)| (names.to_owned(), bytes)));
        sums.clear();
        assert_eq!(told(&sums), []);
    }

    #[test]
    fn metrics_have_a_gauge_for_each_row_whatever_its_world_is_called() {
        let row = |kind, world: &str, bytes_per_s| PacketRow {
            kind,
            cause: "change",
            world: world.into(),
            packets_per_s: 1.0,
            bytes_per_s,
            updates_per_s: 2.0,
        };
        let rows = [row("pose", "hub 0", 700.5), row("vitals", "a \"b\"\n# EOF\nthrong_forged 1\\", 3.0)];
        let snapshot = throng_metrics::Registry::with_prefix("throng").snapshot();
        let text = snapshot.to_prometheus_text_with(gauges(&rows));
        for line in [
            r#"throng_replication_bytes_per_s{kind="pose",cause="change",world="hub 0"} 700.5"#,
            r##"throng_replication_bytes_per_s{kind="vitals",cause="change",world="a \"b\"\n# EOF\nthrong_forged 1\\"} 3.0"##,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert!(!text.lines().any(|line| line.starts_with("throng_forged")), "{text}");
        assert!(text.ends_with("\n# EOF\n") && text.matches("\n# EOF").count() == 1, "{text}");
    }
}
