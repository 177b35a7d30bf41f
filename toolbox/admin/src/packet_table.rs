//! The packet report as the console shows it: one row per kind of message and cause, the costliest first.
//!
//! ```text
//! kind      cause   worlds  packets/s  updates/s   bytes/s  share %
//! pose      change    1002    19980.0    91022.4  655361.3     81.3
//! chat.say  say          1        7.5        7.5     412.0      0.1
//! ```
//!
//! Server and command exchange the rows as JSON, whatever else the server says in them; a row that has no kind is left
//! out. Runs where the console does; cost: the rows, once per command.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use throng::text_table::{Cell, Column, TextTable};

use crate::console::{Call, Outcome};

/// Rows of the text; what is smaller is added up in one line. The JSON has all rows.
const ROWS_MAX: usize = 100;
/// Names longer than this are cut, so that one row stays one line.
const NAME_CHARACTERS_MAX: u32 = 32;

/// Beside the worlds, or how many they are.
const COLUMNS: [Column; 6] = [
    Column::text_at_most("kind", "kind", NAME_CHARACTERS_MAX),
    Column::text_at_most("cause", "cause", NAME_CHARACTERS_MAX),
    Column::float("packets/s", "packets_per_s", 1),
    Column::float("updates/s", "updates_per_s", 1),
    Column::float("bytes/s", "bytes_per_s", 1),
    Column::float("share %", "share_percent", 1),
];
const WORLDS: Column = Column::integer("worlds", "worlds");

const BY_WORLD: &str = "--by-world";

/// What the command `packets` takes.
pub(crate) const ARGUMENTS: &str = "[--by-world]";
pub(crate) const HELP: &str =
    "packets, updates and bytes a second of each kind of message, by cause; of each world with --by-world";

/// Carries out `packets` for the rows that a server has published.
pub(crate) fn command(call: &Call<'_>, packets: &str) -> Outcome {
    call.check_arguments(&[BY_WORLD])?;
    let rows: Value =
        serde_json::from_str(packets).map_err(|error| format!("the server's report cannot be read: {error}"))?;
    Ok(call.answer(|| text(&rows, call.arguments.contains(&BY_WORLD)), || serde_json::json!({ "packets": rows })))
}

#[derive(Default)]
struct Sum {
    worlds: i64,
    packets_per_s: f64,
    updates_per_s: f64,
    bytes_per_s: f64,
}

fn text(rows: &Value, by_world: bool) -> String {
    let mut sums: BTreeMap<(String, String, Option<String>), Sum> = BTreeMap::new();
    for row in rows.as_array().into_iter().flatten() {
        let Some(kind) = row["kind"].as_str() else { continue };
        let world = row["world"].as_str().filter(|_| by_world).map(str::to_owned);
        let sum =
            sums.entry((kind.to_owned(), row["cause"].as_str().unwrap_or_default().to_owned(), world)).or_default();
        let figure = |key: &str| row[key].as_f64().unwrap_or_default();
        sum.worlds += 1;
        sum.packets_per_s += figure("packets_per_s");
        sum.updates_per_s += figure("updates_per_s");
        sum.bytes_per_s += figure("bytes_per_s");
    }
    if sums.is_empty() {
        return "nothing has been sent in the last second\n".to_owned();
    }
    let all_bytes_per_s: f64 = sums.values().map(|sum| sum.bytes_per_s).sum();
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|(_, a), (_, b)| b.bytes_per_s.total_cmp(&a.bytes_per_s));
    let worlds = if by_world { Column::text_at_most("world", "world", NAME_CHARACTERS_MAX) } else { WORLDS };
    let [kind, cause, packets, updates, bytes, share] = COLUMNS;
    let mut table = TextTable::new([kind, cause, worlds, packets, updates, bytes, share]);
    let share = |bytes_per_s: f64| if all_bytes_per_s > 0.0 { 100.0 * bytes_per_s / all_bytes_per_s } else { 0.0 };
    for ((kind, cause, world), sum) in sums.iter().take(ROWS_MAX) {
        table.row(&[
            Cell::Text(kind),
            Cell::Text(cause),
            world.as_deref().map_or(Cell::Integer(sum.worlds), Cell::Text),
            Cell::Float(sum.packets_per_s),
            Cell::Float(sum.updates_per_s),
            Cell::Float(sum.bytes_per_s),
            Cell::Float(share(sum.bytes_per_s)),
        ]);
    }
    let mut out = table.text().to_owned();
    if let Some(smaller) = sums.get(ROWS_MAX..).filter(|smaller| !smaller.is_empty()) {
        let bytes_per_s: f64 = smaller.iter().map(|(_, sum)| sum.bytes_per_s).sum();
        let _ = writeln!(out, "and {} smaller rows: {bytes_per_s:.1} bytes/s; all of them with --json", smaller.len());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows() -> String {
        json!([
            {"kind": "vitals", "cause": "change", "world": "hub 0", "packets_per_s": 1.0, "bytes_per_s": 10.0, "updates_per_s": 5.0},
            {"kind": "pose", "cause": "change", "world": "hub 0", "packets_per_s": 20.0, "bytes_per_s": 700.0, "updates_per_s": 90.0},
            {"kind": "vitals", "cause": "change", "world": "hideout", "packets_per_s": 2.0, "bytes_per_s": 290.0, "updates_per_s": 6.0},
        ])
        .to_string()
    }

    #[track_caller]
    fn check(arguments: &[&str], packets: &str, expect: Result<&str, &str>) {
        let as_json = arguments.contains(&"--json");
        let arguments = arguments.iter().copied().filter(|&word| word != "--json").collect();
        let outcome = command(&Call { arguments, as_json, who: "" }, packets);
        assert_eq!(outcome.as_deref().map_err(String::as_str), expect);
    }

    #[test]
    fn kinds_are_added_up_over_worlds_unless_worlds_are_wanted() {
        check(
            &[],
            &rows(),
            Ok("kind    cause   worlds  packets/s  updates/s  bytes/s  share %\n\
                pose    change       1       20.0       90.0    700.0     70.0\n\
                vitals  change       2        3.0       11.0    300.0     30.0\n"),
        );
        check(
            &["--by-world"],
            &rows(),
            Ok("kind    cause   world    packets/s  updates/s  bytes/s  share %\n\
                pose    change  hub 0         20.0       90.0    700.0     70.0\n\
                vitals  change  hideout        2.0        6.0    290.0     29.0\n\
                vitals  change  hub 0          1.0        5.0     10.0      1.0\n"),
        );
    }

    #[test]
    fn scripts_get_every_row_as_it_was_published() {
        let one = r#"[{"kind":"pose","more":1}]"#;
        check(&["--json"], one, Ok(r#"{"packets":[{"kind":"pose","more":1}]}"#));
    }

    #[test]
    fn a_quiet_server_and_a_strange_report_are_told() {
        check(&[], "[]", Ok("nothing has been sent in the last second\n"));
        check(&[], r#"[{"cause":"change"}]"#, Ok("nothing has been sent in the last second\n"));
        check(&["--all"], "[]", Err("it takes no `--all`; there are --by-world and --json"));
        let outcome = command(&Call { arguments: vec![], as_json: false, who: "" }, "");
        assert!(outcome.unwrap_err().starts_with("the server's report cannot be read: "));
    }

    #[test]
    fn a_long_report_ends_with_its_sum() {
        let many: Vec<Value> =
            (0..ROWS_MAX + 5).map(|i| json!({"kind": format!("kind-{i}"), "bytes_per_s": 2.0})).collect();
        let text = text(&Value::Array(many), false);
        assert_eq!(text.lines().count(), 1 + ROWS_MAX + 1);
        assert!(text.ends_with("and 5 smaller rows: 10.0 bytes/s; all of them with --json\n"), "{text}");
    }
}
