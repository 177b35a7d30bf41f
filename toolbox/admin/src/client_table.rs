//! The client report as the console shows it: one row per client, who takes most first.
//!
//! ```text
//! client  world        work/s  messages/s  refused/s  line us/s  in: packets/s  bytes/s  out: packets/s  bytes/s
//! 1007    dark zone 1   912.0        64.0        0.0      140.2           20.0    960.0            20.0   9800.0
//! ```
//!
//! Work is by the prices of messages; line time is estimated. Server and command exchange the rows as JSON, whatever
//! else the server says in them. Runs where the console does.

use serde_json::Value;
use throng::text_table::{Cell, Column, TextTable};

use crate::console::{Call, Outcome};

/// Rows of the text. The JSON has all that the server tells.
const ROWS_MAX: usize = 20;
/// Names longer than this are cut, so that one row stays one line.
const NAME_CHARACTERS_MAX: u32 = 24;

const COLUMNS: [Column; 10] = [
    Column::text("client", "client_id"),
    Column::text_at_most("world", "world", NAME_CHARACTERS_MAX),
    Column::float("work/s", "work_per_s", 1),
    Column::float("messages/s", "messages_per_s", 1),
    Column::float("refused/s", "refused_per_s", 1),
    Column::float("line us/s", "line_us_per_s", 1),
    Column::float("in: packets/s", "packets_in_per_s", 1),
    Column::float("bytes/s", "bytes_in_per_s", 1),
    Column::float("out: packets/s", "packets_out_per_s", 1),
    Column::float("bytes/s", "bytes_out_per_s", 1),
];

/// The words for what rows may be ordered by, and where the figure is.
const ORDERS: [(&str, &str); 6] = [
    ("--by-work", "work_per_s"),
    ("--by-messages", "messages_per_s"),
    ("--by-refused", "refused_per_s"),
    ("--by-time", "line_us_per_s"),
    ("--by-bytes-in", "bytes_in_per_s"),
    ("--by-bytes-out", "bytes_out_per_s"),
];

/// What the command `clients` takes.
pub(crate) const ARGUMENTS: &str = "[--by-work|messages|refused|time|bytes-in|bytes-out]";
pub(crate) const HELP: &str =
    "the clients that take most: work asked for, messages, refused ones, time, packets and bytes";

/// Carries out `clients` for the rows that a server has published.
pub(crate) fn command(call: &Call<'_>, clients: &str) -> Outcome {
    call.check_arguments(&ORDERS.map(|(word, _)| word))?;
    let mut rows: Vec<Value> =
        serde_json::from_str(clients).map_err(|error| format!("the server's report cannot be read: {error}"))?;
    let asked_for = call.arguments.first().and_then(|asked| ORDERS.iter().find(|(word, _)| word == asked));
    let (_, key) = asked_for.unwrap_or(&ORDERS[0]);
    rows.sort_by(|a, b| figure(b, key).total_cmp(&figure(a, key)));
    Ok(call.answer(|| text(&rows), || serde_json::json!({ "clients": rows })))
}

fn figure(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_default()
}

fn text(rows: &[Value]) -> String {
    if rows.is_empty() {
        return "nobody is here, or the first second is not over\n".to_owned();
    }
    let mut table = TextTable::new(COLUMNS).with_hints(ROWS_MAX, &[]);
    for row in rows.iter().take(ROWS_MAX) {
        // A number of 64 bits that nobody reckons with.
        let client = row["client_id"].as_u64().unwrap_or_default().to_string();
        let figure = |key| Cell::Float(figure(row, key));
        table.row(&[
            Cell::Text(&client),
            Cell::Text(row["world"].as_str().unwrap_or_default()),
            figure("work_per_s"),
            figure("messages_per_s"),
            figure("refused_per_s"),
            figure("line_us_per_s"),
            figure("packets_in_per_s"),
            figure("bytes_in_per_s"),
            figure("packets_out_per_s"),
            figure("bytes_out_per_s"),
        ]);
    }
    table.text().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = r#"[
        {"client_id": 7, "world": "hub 0", "work_per_s": 20.0, "messages_per_s": 20.0, "refused_per_s": 800.0},
        {"client_id": 8, "world": "a world with a name that is long", "work_per_s": 900.0, "messages_per_s": 18.0}
    ]"#;

    /// The clients in their order.
    #[track_caller]
    fn check(arguments: &[&str], expect: Result<&[&str], &str>) {
        let call = Call { arguments: arguments.to_vec(), as_json: false, who: "" };
        let told = command(&call, ROWS);
        let told = told.as_deref().map(|text| {
            assert!(text.lines().all(|line| line.len() == text.find('\n').unwrap()), "columns stand apart:\n{text}");
            text.lines().skip(1).filter_map(|line| line.split(' ').next()).collect::<Vec<_>>()
        });
        assert_eq!(told.as_deref().map_err(|error| error.as_str()), expect);
    }

    #[test]
    fn who_takes_most_of_what_is_asked_for_is_first() {
        check(&[], Ok(&["8", "7"]));
        check(&["--by-work"], Ok(&["8", "7"]));
        check(&["--by-messages"], Ok(&["7", "8"]));
        check(&["--by-refused"], Ok(&["7", "8"]));
        let orders = ORDERS.map(|(word, _)| word).join(", ");
        check(&["--by-name"], Err(&format!("it takes no `--by-name`; there are {orders} and --json")));
    }

    #[test]
    fn a_world_whose_name_has_line_breaks_is_one_row() {
        let rows = r#"[{"client_id": 7, "world": "hub\n8  hub"}]"#;
        let told = command(&Call { arguments: Vec::new(), as_json: false, who: "" }, rows).unwrap();
        assert_eq!(told.lines().count(), 2, "{told}");
        assert!(told.contains("\n7       hub\\n8 \\u{20}hub"), "{told}");
    }

    #[test]
    fn nobody_is_told_as_such() {
        let call = Call { arguments: Vec::new(), as_json: false, who: "" };
        assert!(command(&call, "[]").unwrap().starts_with("nobody is here"));
        let call = Call { arguments: Vec::new(), as_json: true, who: "" };
        assert_eq!(command(&call, r#"[{"more":1}]"#).unwrap(), r#"{"clients":[{"more":1}]}"#);
    }
}
