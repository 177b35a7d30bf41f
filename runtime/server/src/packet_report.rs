//! Packet report: what each sort of message and component takes of the way to the clients, as rows with rates.
//!
//! Built from the counts of `throng_replication::traffic` that were taken from the worlds since the report before. A row is a kind, a
//! cause and a kind of world; rows do not overlap, so they add up to what went out. The same rows are a text table for a console and,
//! through serde, JSON with the units in the keys:
//!
//! ```text
//! kind      cause       world    packets/s  updates/s     bytes/s   share
//! pose      change      meadow      19,980    998,000   6,986,000  71.2 %
//! ...
//! total                             39,960  1,210,400   9,811,020
//! ```
//!
//! Allocates; called about once a second, outside frames. Cost: some us per kind of world.

use std::fmt::{self, Write as _};

use serde::Serialize;
use throng_replication::traffic::{Counts, TrafficRow};

/// One kind, for one cause, in one kind of world.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PacketRow {
    /// The replicated name, such as `vitals` or `chat.say`.
    pub kind: String,
    /// Why it was sent, such as `change` or `npc.yell`.
    pub cause: String,
    /// The kind of world; empty in sums over all.
    pub world: String,
    /// Packets that held one of the kind at least.
    pub packets_per_s: f64,
    /// Before sealing.
    pub bytes_per_s: f64,
    /// Values or messages.
    pub updates_per_s: f64,
}

/// The rows of a span of time, the dearest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PacketReport {
    /// How long was counted. (s)
    pub seconds: f64,
    /// By kind, cause and kind of world.
    pub packets: Vec<PacketRow>,
    /// By kind and cause, over all kinds of world.
    pub packets_total: Vec<PacketRow>,
    /// Everything. A packet counts once for each row that it has a part in.
    pub bytes_per_s: f64,
    pub updates_per_s: f64,
}

/// Adds up counts until a report is made of them.
#[derive(Debug, Default)]
pub struct PacketSums {
    rows: Vec<Sum>,
}

#[derive(Debug)]
struct Sum {
    kind: &'static str,
    cause: &'static str,
    world: String,
    counts: Counts,
}

impl PacketSums {
    /// Adds what one world of a kind counted: the rows that `Traffic::take` gives.
    pub fn add(&mut self, world: &str, row: TrafficRow) {
        let is_same = |sum: &&mut Sum| sum.kind == row.kind && sum.cause == row.cause && sum.world == world;
        match self.rows.iter_mut().find(is_same) {
            Some(sum) => sum.counts.add(row.counts),
            None => {
                let TrafficRow { kind, cause, counts } = row;
                self.rows.push(Sum { kind, cause, world: world.to_owned(), counts });
            }
        }
    }

    /// The report of `seconds` (> 0), and begins anew.
    pub fn take(&mut self, seconds: f64) -> PacketReport {
        let seconds = seconds.max(1e-3);
        let mut total: Vec<Sum> = Vec::new();
        for Sum { kind, cause, counts, .. } in &self.rows {
            match total.iter_mut().find(|sum| sum.kind == *kind && sum.cause == *cause) {
                Some(sum) => sum.counts.add(*counts),
                None => total.push(Sum { kind, cause, world: String::new(), counts: *counts }),
            }
        }
        let packets_total = rows(total, seconds);
        PacketReport {
            seconds,
            packets: rows(std::mem::take(&mut self.rows), seconds),
            bytes_per_s: packets_total.iter().map(|row| row.bytes_per_s).sum(),
            updates_per_s: packets_total.iter().map(|row| row.updates_per_s).sum(),
            packets_total,
        }
    }
}

fn rows(sums: Vec<Sum>, seconds: f64) -> Vec<PacketRow> {
    let mut rows: Vec<_> = sums
        .into_iter()
        .filter(|sum| sum.counts != Counts::default())
        .map(|sum| PacketRow {
            kind: sum.kind.to_owned(),
            cause: sum.cause.to_owned(),
            world: sum.world,
            packets_per_s: sum.counts.packets as f64 / seconds,
            bytes_per_s: sum.counts.bytes as f64 / seconds,
            updates_per_s: sum.counts.updates as f64 / seconds,
        })
        .collect();
    // Equal ones by name, so that the order does not jump from second to second.
    rows.sort_by(|a, b| {
        let names = |row: &PacketRow| (row.kind.clone(), row.cause.clone(), row.world.clone());
        b.bytes_per_s.total_cmp(&a.bytes_per_s).then_with(|| names(a).cmp(&names(b)))
    });
    rows
}

/// The text table.
impl fmt::Display for PacketReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = ["kind", "cause", "world", "packets/s", "updates/s", "bytes/s", "share"];
        let mut lines = vec![heading.map(str::to_owned)];
        for row in &self.packets {
            let share = if self.bytes_per_s > 0.0 { 100.0 * row.bytes_per_s / self.bytes_per_s } else { 0.0 };
            let [packets, updates, bytes] = [row.packets_per_s, row.updates_per_s, row.bytes_per_s].map(number);
            let [kind, cause, world] = [&row.kind, &row.cause, &row.world].map(String::clone);
            lines.push([kind, cause, world, packets, updates, bytes, format!("{share:.1} %")]);
        }
        let [updates, bytes] = [self.updates_per_s, self.bytes_per_s].map(number);
        lines.push(["total".to_owned(), String::new(), String::new(), String::new(), updates, bytes, String::new()]);
        let widths: [usize; 7] =
            std::array::from_fn(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0));
        for line in &lines {
            let mut text = String::new();
            for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
                // Names to the left, numbers to the right.
                let _ = if column < 3 { write!(text, "{cell:<width$}  ") } else { write!(text, "{cell:>width$}  ") };
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

/// As read by people: thousands apart, one digit after the point where there is little before it.
fn number(value: f64) -> String {
    if value < 99.95 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> PacketReport {
        let mut sums = PacketSums::default();
        let mut add = |world, kind, cause, packets, bytes, updates| {
            sums.add(world, TrafficRow { kind, cause, counts: Counts { packets, bytes, updates } });
        };
        add("meadow", "pose", "change", 40, 1_400_000, 200_000);
        add("cave", "pose", "change", 2, 200, 20);
        add("meadow", "chat.say", "npc.yell", 10, 300, 10);
        add("meadow", "pose", "change", 2, 600_000, 2);
        add("cave", "pose", "spawn", 0, 0, 0);
        sums.take(2.0)
    }

    #[test]
    fn worlds_of_a_kind_are_added_up_and_the_dearest_come_first() {
        let report = report();
        let rows = |rows: &[PacketRow]| -> Vec<_> {
            rows.iter().map(|row| (format!("{} {} {}", row.kind, row.cause, row.world), row.bytes_per_s)).collect()
        };
        let expect =
            [("pose change meadow", 1_000_000.0), ("chat.say npc.yell meadow", 150.0), ("pose change cave", 100.0)];
        assert_eq!(rows(&report.packets), expect.map(|(names, bytes)| (names.to_owned(), bytes)));
        let expect = [("pose change ", 1_000_100.0), ("chat.say npc.yell ", 150.0)];
        assert_eq!(rows(&report.packets_total), expect.map(|(names, bytes)| (names.to_owned(), bytes)));
        assert_eq!((report.bytes_per_s, report.updates_per_s), (1_000_250.0, 100_016.0));
    }

    #[test]
    fn the_table_is_aligned_and_says_its_units() {
        let expect = "\
kind      cause     world   packets/s  updates/s    bytes/s    share
pose      change    meadow       21.0    100,001  1,000,000  100.0 %
chat.say  npc.yell  meadow        5.0        5.0        150    0.0 %
pose      change    cave          1.0       10.0        100    0.0 %
total                                    100,016  1,000,250
";
        assert_eq!(report().to_string(), expect);
        assert_eq!(PacketReport::default().to_string().lines().count(), 2);
    }

    #[test]
    fn the_keys_say_their_units() {
        #[derive(Serialize)]
        struct Wrapped {
            report: PacketReport,
        }
        // TOML is at hand here; the names are the same in JSON.
        let text = toml::to_string(&Wrapped { report: report() }).unwrap();
        for key in
            ["seconds", "kind", "cause", "world", "packets_per_s", "bytes_per_s", "updates_per_s", "packets_total"]
        {
            assert!(text.contains(key), "{key} in {text}");
        }
    }

    #[test]
    fn numbers_are_told_apart_by_thousands() {
        let check = |value, expect| assert_eq!(number(value), expect);
        check(0.0, "0.0");
        check(99.9, "99.9");
        check(99.99, "100");
        check(1234.4, "1,234");
        check(1e6, "1,000,000");
    }
}
