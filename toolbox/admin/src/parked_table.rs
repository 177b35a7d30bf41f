//! Plans of worlds that are parked, as the console shows them, and the order to have worlds made by them again.
//!
//! ```text
//! kind    seed  panics  seconds left
//! hideout   77       4            95
//! ```
//!
//! Runs where the console does, which may wait for the frame's thread.

use std::time::Duration;

use serde_json::json;
use throng::{
    parking::ParkedPlan,
    server::ServerControl,
    text_table::{Cell, Column, TextTable},
};

use crate::{access::Role, console::Console};

/// The frame's thread answers in its next frame, or when it wakes next.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

impl Console {
    /// Adds `worlds.parked`, which tells the plans by which this server makes no worlds now, and `worlds.unpark`, which
    /// ends that.
    #[must_use]
    pub fn with_parking(self, control: ServerControl) -> Self {
        let published = control.published();
        let help = "plans by which no world is made for now, since worlds made by them panicked again and again";
        self.with("worlds.parked", Role::Observe, "", help, move |call| {
            call.check_arguments(&[])?;
            let plans = published.parked();
            Ok(call.answer(|| text(&plans), || json!({ "parked": plans })))
        })
        .with(
            "worlds.unpark",
            Role::Operate,
            "[KIND]",
            "has worlds made again that are parked",
            move |call| {
                let kind = match call.arguments.as_slice() {
                    [] => None,
                    [kind] => Some(*kind),
                    [_, word, ..] => return Err(format!("it takes no `{word}`; one kind of worlds, and --json")),
                };
                let answer = control.unpark_worlds(kind).wait(ANSWER_WITHIN).ok_or("the server does not answer")?;
                let plans = answer.map_err(|error| error.to_string())?;
                Ok(call.answer(|| format!("worlds are made again by {plans} plans\n"), || json!({ "unparked": plans })))
            },
        )
    }
}

fn text(plans: &[ParkedPlan]) -> String {
    if plans.is_empty() {
        return "nothing is parked\n".to_owned();
    }
    let columns = [
        Column::text("kind", "kind"),
        Column::integer("seed", "seed"),
        Column::integer("panics", "panics"),
        Column::integer("seconds left", "left_s"),
    ];
    let mut table = TextTable::new(columns).with_hints(plans.len(), &[]);
    for ParkedPlan { kind, seed, panics, left_s } in plans {
        // A seed is any 64 bits, which a table's numbers have a sign among.
        let [seed, left_s] = [*seed, *left_s].map(|number| Cell::Integer(number.cast_signed()));
        table.row(&[Cell::Text(kind), seed, Cell::Integer(i64::from(*panics)), left_s]);
    }
    table.text().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_told_in_rows() {
        assert_eq!(text(&[]), "nothing is parked\n");
        let plan = |kind: &str, seed| ParkedPlan { kind: kind.to_owned(), seed, panics: 4, left_s: 95 };
        let told = text(&[plan("hideout", 77), plan("field", 8)]);
        let rows: Vec<Vec<&str>> = told.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1..], [["hideout", "77", "4", "95"], ["field", "8", "4", "95"]]);
    }
}
