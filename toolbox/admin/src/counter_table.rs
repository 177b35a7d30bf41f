//! The counters as the console shows them: name, value, rate of the last second, what it says.
//!
//! ```text
//! counter             value  per second  what it says
//! net.packets_in   12345678     20040.0  Datagrams received, of clients and of strangers. [packets]
//! ```
//!
//! Server and command exchange the rows as JSON, whatever else the server says in them. Runs where the console does.

use serde_json::Value;
use throng::text_table::{Cell, Column, TextTable};

use crate::console::{Call, Outcome};

const COLUMNS: [Column; 4] = [
    Column::text("counter", "name"),
    Column::integer("value", "value"),
    Column::float("per second", "per_s", 1),
    Column::text("what it says", "help"),
];

/// What the command `counters` takes.
pub(crate) const ARGUMENTS: &str = "[BEGINNING]";
pub(crate) const HELP: &str =
    "all that the server and its game count: value, rate of the last second, what it says; those whose names begin so";

/// Carries out `counters` for the rows that a server has published.
pub(crate) fn command(call: &Call<'_>, counters: &str) -> Outcome {
    let mut rows: Vec<Value> =
        serde_json::from_str(counters).map_err(|error| format!("the server's counters cannot be read: {error}"))?;
    match call.arguments.as_slice() {
        [] => {}
        [beginning] => rows.retain(|row| name(row).starts_with(beginning)),
        [_, word, ..] => return Err(format!("it takes no `{word}`; one beginning of a name, and --json")),
    }
    Ok(call.answer(|| text(&rows), || serde_json::json!({ "counters": rows })))
}

fn name(row: &Value) -> &str {
    row["name"].as_str().unwrap_or_default()
}

fn text(rows: &[Value]) -> String {
    if rows.is_empty() {
        return "nothing is counted under such a name, or the first second is not over\n".to_owned();
    }
    let mut table = TextTable::new(COLUMNS).with_hints(rows.len(), &[]);
    for row in rows {
        let help = row["help"].as_str().unwrap_or_default();
        let unit = row["unit"].as_str().filter(|unit| !unit.is_empty());
        table.row(&[
            Cell::Text(name(row)),
            Cell::Integer(row["value"].as_i64().unwrap_or_default()),
            row["per_s"].as_f64().map_or(Cell::Empty, Cell::Float),
            Cell::Text(&unit.map_or_else(|| help.to_owned(), |unit| format!("{help} [{unit}]"))),
        ]);
    }
    table.text().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = r#"[
        {"name": "net.packets_in", "value": 12345678, "per_s": 20040.0, "unit": "packets", "help": "Datagrams received."},
        {"name": "world.most", "value": 7, "per_s": null, "unit": "blocks", "help": "Most of them."},
        {"name": "game.players", "value": -3, "per_s": null, "unit": "", "help": "set by the game"}
    ]"#;

    #[track_caller]
    fn check(arguments: &[&str], counters: &str, expect: Result<&str, &str>) {
        let as_json = arguments.contains(&"--json");
        let arguments = arguments.iter().copied().filter(|&word| word != "--json").collect();
        let outcome = command(&Call { arguments, as_json, who: "" }, counters);
        assert_eq!(outcome.as_deref().map_err(String::as_str), expect);
    }

    #[test]
    fn every_row_is_a_line() {
        check(
            &[],
            ROWS,
            Ok("counter            value  per second  what it says\n\
                net.packets_in  12345678     20040.0  Datagrams received. [packets]\n\
                world.most             7              Most of them. [blocks]\n\
                game.players          -3              set by the game\n"),
        );
        check(
            &["game."],
            ROWS,
            Ok("counter       value  per second  what it says\n\
                game.players     -3              set by the game\n"),
        );
    }

    #[test]
    fn scripts_get_the_rows_as_they_were_published() {
        check(
            &["--json", "a"],
            r#"[{"name":"a","more":1},{"name":"b"}]"#,
            Ok(r#"{"counters":[{"more":1,"name":"a"}]}"#),
        );
    }

    #[test]
    fn what_cannot_be_told_is_said() {
        check(&["no."], ROWS, Ok("nothing is counted under such a name, or the first second is not over\n"));
        check(&["net.", "game."], ROWS, Err("it takes no `game.`; one beginning of a name, and --json"));
        let outcome = command(&Call { arguments: vec![], as_json: false, who: "" }, "");
        assert!(outcome.unwrap_err().starts_with("the server's counters cannot be read: "));
    }
}
