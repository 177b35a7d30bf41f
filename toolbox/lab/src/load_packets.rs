//! The packet report of a load run: what each kind of message and component takes of the way to the players.
//!
//! A server counts per kind, cause and world. A run with a thousand worlds is not read world by world, so the worlds
//! are added up here; what is left is a row for each kind and cause, the costliest first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one kind of message or component took for one cause, over all worlds and clients.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PacketRow {
    /// The replicated name, such as `vitals` or `chat.say`.
    pub kind: String,
    /// Why it was sent, such as `change` or `npc.yell`; empty if the server does not tell.
    pub cause: String,
    /// Packets that held one of the kind at least.
    pub packets_per_s: f64,
    /// Bytes inside packets, before headers and sealing.
    pub bytes_per_s: f64,
    /// Values or messages.
    pub updates_per_s: f64,
}

/// Adds up the server's rows over its worlds; the largest in bytes come first. A row without a kind is an error of the
/// server.
pub(crate) fn rows_of_all_worlds(packets: Value) -> Result<Vec<PacketRow>, serde_json::Error> {
    let rows: Vec<PacketRow> = serde_json::from_value(packets)?;
    let mut sums: BTreeMap<(String, String), PacketRow> = BTreeMap::new();
    for row in rows {
        if row.kind.is_empty() {
            return Err(serde::de::Error::custom("a row of `packets` has no kind"));
        }
        let empty = || PacketRow { kind: row.kind.clone(), cause: row.cause.clone(), ..PacketRow::default() };
        let sum = sums.entry((row.kind.clone(), row.cause.clone())).or_insert_with(empty);
        sum.packets_per_s += row.packets_per_s;
        sum.bytes_per_s += row.bytes_per_s;
        sum.updates_per_s += row.updates_per_s;
    }
    let mut rows: Vec<PacketRow> = sums.into_values().collect();
    // Stable: equal ones stay in the order of their names.
    rows.sort_by(|a, b| b.bytes_per_s.total_cmp(&a.bytes_per_s));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(packets: Value, expect: &[(&str, &str, f64, f64, f64)]) {
        let rows = rows_of_all_worlds(packets).unwrap();
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.kind.as_str(), row.cause.as_str(), row.packets_per_s, row.bytes_per_s, row.updates_per_s))
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn worlds_are_added_up_and_the_costliest_come_first() {
        let packets = json!([
            {"kind": "vitals", "cause": "change", "world": 2, "packets_per_s": 1.0, "bytes_per_s": 10.0, "updates_per_s": 5.0},
            {"kind": "pose", "cause": "change", "world": 2, "packets_per_s": 20.0, "bytes_per_s": 700.0, "updates_per_s": 90.0},
            {"kind": "vitals", "cause": "change", "world": 3, "packets_per_s": 2.0, "bytes_per_s": 30.0, "updates_per_s": 6.0},
            {"kind": "vitals", "cause": "first", "world": 3, "packets_per_s": 0.5, "bytes_per_s": 40.0, "updates_per_s": 1.0},
        ]);
        check(
            packets,
            &[
                ("pose", "change", 20.0, 700.0, 90.0),
                ("vitals", "change", 3.0, 40.0, 11.0),
                ("vitals", "first", 0.5, 40.0, 1.0),
            ],
        );
        check(json!([]), &[]);
        check(json!([{"kind": "chat.say"}]), &[("chat.say", "", 0.0, 0.0, 0.0)]);
    }

    #[test]
    fn what_is_no_packet_report_is_refused() {
        for wrong in [json!("many"), json!([{"cause": "change"}]), json!([{"kind": "pose", "bytes_per_s": "many"}])] {
            assert!(rows_of_all_worlds(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
