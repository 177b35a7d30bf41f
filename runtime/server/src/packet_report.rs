//! Packet report: what each sort of message and component takes of the way to the clients, and why, as rows with rates.
//!
//! Built from the counts of `throng_replication::traffic`. Each world gives up its own once a second, to the worker
//! that ticks it; the frame thread adds up the workers' and publishes the rows. A row is a kind, a cause and a world;
//! rows do not overlap, so they add up to what went out. The first [`WORLDS_NAMED_MAX`] worlds have rows of their own,
//! the others one for each kind of world: a thousand hideouts are read as one. A row that was met stays, at 0 while
//! nothing is sent, so that a series in Prometheus does not come and go; a world's own stay until the next world in its
//! place sends.
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

/// Kind, cause and world.
type RowKey = (&'static str, &'static str, Reported);

/// Adds up counts until rows are made of them.
#[derive(Debug, Default)]
pub(crate) struct PacketSums {
    rows: HashMap<RowKey, Counts>,
}

impl PacketSums {
    /// Adds what one world counted: a row that `Traffic::take` gives.
    pub fn add(&mut self, world: Reported, row: TrafficRow) {
        self.row((row.kind, row.cause, world)).add(row.counts);
    }

    /// Adds all of `other`, and empties it but for its memory.
    pub fn absorb(&mut self, other: &mut Self) {
        for (key, counts) in &mut other.rows {
            if *counts != Counts::default() {
                self.row(*key).add(std::mem::take(counts));
            }
        }
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Self) {
        for (key, counts) in &other.rows {
            if *counts != Counts::default() {
                self.row(*key).add(*counts);
            }
        }
    }

    /// The row of that key, made if there is none.
    fn row(&mut self, key: RowKey) -> &mut Counts {
        if let Reported::World(world, _) = key.2
            && !self.rows.contains_key(&key)
        {
            self.forget_worlds_before(world);
        }
        self.rows.entry(key).or_default()
    }

    /// Forgets the silent rows of worlds that had this one's place: there is no end of them.
    fn forget_worlds_before(&mut self, world: WorldId) {
        self.rows.retain(|(_, _, reported), counts| match *reported {
            Reported::World(other, _) if other.index() == world.index() && other != world => {
                *counts != Counts::default()
            }
            _ => true,
        });
    }

    /// Forgets all counts, but not its memory.
    pub fn clear(&mut self) {
        self.rows.values_mut().for_each(|counts| *counts = Counts::default());
    }

    /// Copies what was counted in `seconds` into `counted`, whose memory is used again.
    pub fn copy_to(&self, seconds: f64, counted: &mut Counted) {
        counted.seconds = seconds.max(1e-3);
        counted.rows.clear();
        counted.rows.extend(self.rows.iter().map(|(key, counts)| (*key, *counts)));
    }
}

/// What was counted in a span of time, without any text.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    seconds: f64,
    rows: Vec<(RowKey, Counts)>,
}

impl Counted {
    /// What was sent, as rows, the costliest first; `name` gives the names of kinds of worlds.
    pub fn rows(&self, name: impl Fn(WorldKindId) -> String) -> Vec<PacketRow> {
        let mut rows = self.rows_with_silent(name);
        rows.retain(|row| row.packets_per_s + row.bytes_per_s + row.updates_per_s > 0.0);
        rows
    }

    /// What was sent in all worlds together, the costliest first; the rows name no world, and no text is made for them.
    pub fn rows_of_all_worlds(&self) -> Vec<PacketRow> {
        let mut sums = HashMap::<(&'static str, &'static str), Counts>::default();
        let sent = self.rows.iter().filter(|(_, counts)| *counts != Counts::default());
        sent.for_each(|((kind, cause, _), counts)| sums.entry((kind, cause)).or_default().add(*counts));
        let told = |((kind, cause), counts)| self.told(kind, cause, String::new(), counts);
        let mut rows: Vec<_> = sums.into_iter().map(told).collect();
        let names = |row: &PacketRow| (row.kind, row.cause);
        rows.sort_by(|a, b| b.bytes_per_s.total_cmp(&a.bytes_per_s).then_with(|| names(a).cmp(&names(b))));
        rows
    }

    /// The same with the rows of which nothing was sent.
    pub fn rows_with_silent(&self, name: impl Fn(WorldKindId) -> String) -> Vec<PacketRow> {
        let named = |world| match world {
            Reported::World(world, kind) => format!("{} {world}", name(kind)),
            Reported::Kind(kind) => name(kind),
        };
        let told = |&((kind, cause, world), counts): &(RowKey, Counts)| self.told(kind, cause, named(world), counts);
        let mut rows: Vec<_> = self.rows.iter().map(told).collect();
        // Equal ones by name, so that the order does not jump from second to second.
        let names = |row: &PacketRow| (row.kind, row.cause, row.world.clone());
        rows.sort_by(|a, b| b.bytes_per_s.total_cmp(&a.bytes_per_s).then_with(|| names(a).cmp(&names(b))));
        rows
    }

    fn told(&self, kind: &'static str, cause: &'static str, world: String, counts: Counts) -> PacketRow {
        let per_s = |count: u64| count as f64 / self.seconds;
        let (packets_per_s, bytes_per_s) = (per_s(counts.packets), per_s(counts.bytes));
        PacketRow { kind, cause, world, packets_per_s, bytes_per_s, updates_per_s: per_s(counts.updates) }
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
    fn all_worlds_together_are_told_by_kind_and_cause() {
        let mut sums = PacketSums::default();
        for (world, name, bytes) in
            [(0, "pose", 10), (1, "pose", 5), (40, "pose", 1), (3, "chat", 20), (4, "silent", 0)]
        {
            let counts = Counts { packets: bytes.min(1), bytes, updates: 0 };
            sums.add(
                Reported::of(WorldId::new(world, 0), WorldKindId(0)),
                TrafficRow { kind: name, cause: "change", counts },
            );
        }
        let mut counted = Counted::default();
        sums.copy_to(2.0, &mut counted);
        let told: Vec<_> = counted
            .rows_of_all_worlds()
            .into_iter()
            .map(|row| (row.kind, row.packets_per_s, row.bytes_per_s))
            .collect();
        assert_eq!(told, [("chat", 0.5, 10.0), ("pose", 1.5, 8.0)]);
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
    fn a_series_that_was_met_stays_until_another_world_has_its_place() {
        let mut sums = PacketSums::default();
        let add = |sums: &mut PacketSums, world, generation| {
            let counts = Counts { packets: 1, bytes: 8, updates: 1 };
            let reported = Reported::of(WorldId::new(world, generation), WorldKindId(0));
            sums.add(reported, TrafficRow { kind: "pose", cause: "change", counts });
        };
        let series = |sums: &PacketSums| {
            let mut counted = Counted::default();
            sums.copy_to(1.0, &mut counted);
            let rows = counted.rows_with_silent(|_| "hub".into());
            assert!(counted.rows(|_| "hub".into()).iter().all(|row| row.bytes_per_s > 0.0));
            rows.into_iter().map(|row| (row.world, row.bytes_per_s)).collect::<Vec<_>>()
        };
        let named =
            |rows: &[(&str, f64)]| rows.iter().map(|&(world, bytes)| (world.to_owned(), bytes)).collect::<Vec<_>>();
        add(&mut sums, 0, 0);
        add(&mut sums, 1, 0);
        sums.clear();
        add(&mut sums, 1, 0);
        assert_eq!(series(&sums), named(&[("hub 1", 8.0), ("hub 0", 0.0)]), "nothing was sent to the first");
        add(&mut sums, 0, 1);
        assert_eq!(series(&sums), named(&[("hub 0.1", 8.0), ("hub 1", 8.0)]), "its place is another's");
        add(&mut sums, 1, 1);
        let both = named(&[("hub 0.1", 8.0), ("hub 1", 8.0), ("hub 1.1", 8.0)]);
        assert_eq!(series(&sums), both, "what it sent in this second is told");
        for generation in 2..100 {
            sums.clear();
            add(&mut sums, 1, generation);
        }
        assert_eq!(series(&sums).len(), 2, "worlds that are no more take no memory");
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
        let text =
            snapshot.to_prometheus_text_with(throng_metrics::Beside { gauges: gauges(&rows), ..Default::default() });
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
