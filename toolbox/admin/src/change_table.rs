//! Who changed what, as the console shows it.
//!
//! ```text
//! when                 who    from             what                        outcome
//! 2026-11-26 07:40:11  alice  127.0.0.1:51312  console tune.set speed 3    200 OK
//! ```

use serde_json::json;
use throng::text_table::{Cell, Column, TextTable};
use throng_capture::story::printable_date;

use crate::access::changes::Change;
use crate::console::{Call, Outcome};

pub(crate) const HELP: &str = "the last requests that changed something: who, from where, what, and what came of it";

/// Carries out `changes`, of which the newest comes first.
pub(crate) fn command(call: &Call<'_>, changes: &[Change]) -> Outcome {
    call.check_arguments(&[])?;
    Ok(call.answer(|| text(changes), || json!({ "changes": changes })))
}

fn text(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "nothing has been changed since the start\n".to_owned();
    }
    let mut table = TextTable::new(["when", "who", "from", "what", "outcome"].map(|title| Column::text(title, title)));
    for Change { at_unix_s, who, from, what, outcome } in changes {
        table.row(&[printable_date(*at_unix_s).as_str(), who, from, what, outcome].map(Cell::Text));
    }
    table.text().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_in_rows() {
        assert_eq!(text(&[]), "nothing has been changed since the start\n");
        let change = Change {
            at_unix_s: 0,
            who: "anna".to_owned(),
            from: "127.0.0.1:5".to_owned(),
            what: "console tune.set depth 3".to_owned(),
            outcome: "200 OK".to_owned(),
        };
        let told = text(&[change]);
        let row: Vec<&str> = told.lines().nth(1).unwrap().split("  ").filter(|cell| !cell.is_empty()).collect();
        assert_eq!(row[1..], ["anna", "127.0.0.1:5", "console tune.set depth 3", "200 OK"]);
    }
}
