//! Plans of worlds that are parked, as the console shows them, and the orders to park worlds and to have them made again.
//!
//! ```text
//! kind     seed  world  why       times  until
//! hideout  77           panics        4  in 95 s
//! hub      3     0      operator      0  world.unpark
//! ```
//!
//! Runs where the console does, which may wait for the frame's thread.

use std::time::Duration;

use serde_json::json;
use throng::{
    parking::{ParkedFor, ParkedPlan},
    server::ServerControl,
    text_table::{Cell, Column, TextTable},
};

use crate::{
    access::Role,
    console::{Call, Console},
};

/// The frame's thread answers in its next frame, or when it wakes next.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

impl Console {
    /// Adds `world.parked`, which tells the plans by which this server makes no worlds now, `world.park`, which takes worlds
    /// out, and `world.unpark`, which ends both.
    #[must_use]
    pub fn with_parking(self, control: ServerControl) -> Self {
        let published = control.published();
        let help = "plans by which no world is made for now, and why";
        let also = control.clone();
        self.with("world.parked", Role::Observe, "", help, move |call| {
            call.check_arguments(&[])?;
            let plans = published.parked();
            Ok(call.answer(|| text(&plans), || json!({ "parked": plans })))
        })
        .with(
            "world.park",
            Role::Operate,
            "WORLD|KIND",
            "takes a world out, or all of a kind, and makes none until it is unparked",
            move |call| {
                let which = one_word(call)?.ok_or("which? A world as `world.list` shows it, or a kind of worlds")?;
                let answer = also.park_worlds(which).wait(ANSWER_WITHIN).ok_or("the server does not answer")?;
                let worlds = answer.map_err(|error| error.to_string())?;
                Ok(call.answer(|| format!("{worlds} worlds are taken out\n"), || json!({ "parked": worlds })))
            },
        )
        .with(
            "world.unpark",
            Role::Operate,
            "[WORLD|KIND]",
            "has worlds made again that are parked",
            move |call| {
                let answer =
                    control.unpark_worlds(one_word(call)?).wait(ANSWER_WITHIN).ok_or("the server does not answer")?;
                let plans = answer.map_err(|error| error.to_string())?;
                Ok(call.answer(|| format!("worlds are made again by {plans} plans\n"), || json!({ "unparked": plans })))
            },
        )
    }
}

/// A world or a kind, if one was named.
fn one_word<'a>(call: &Call<'a>) -> Result<Option<&'a str>, String> {
    match call.arguments.as_slice() {
        [] => Ok(None),
        [word] => Ok(Some(*word)),
        [_, word, ..] => Err(format!("it takes no `{word}`; one world or one kind of worlds, and --json")),
    }
}

fn text(plans: &[ParkedPlan]) -> String {
    if plans.is_empty() {
        return "nothing is parked\n".to_owned();
    }
    let columns = [
        Column::text("kind", "kind"),
        Column::text("seed", "seed"),
        Column::text("world", "world"),
        Column::text("why", "why"),
        Column::integer("times", "times"),
        Column::text("until", "until"),
    ];
    let mut table = TextTable::new(columns).with_hints(plans.len(), &[]);
    for ParkedPlan { kind, seed, world, why, times, left_s } in plans {
        // A seed is any 64 bits, which a table's numbers have a sign among.
        let seed = seed.map_or_else(|| "any".to_owned(), |seed| seed.to_string());
        let until = left_s.map_or_else(|| "world.unpark".to_owned(), |left_s| format!("in {left_s} s"));
        let why = match why {
            ParkedFor::Panics => "panics",
            ParkedFor::Death => "death",
            ParkedFor::Load => "load",
            ParkedFor::Operator => "operator",
        };
        let world = world.as_deref().unwrap_or_default();
        let times = Cell::Integer(i64::from(*times));
        table.row(&[
            Cell::Text(kind),
            Cell::Text(&seed),
            Cell::Text(world),
            Cell::Text(why),
            times,
            Cell::Text(&until),
        ]);
    }
    table.text().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_told_in_rows() {
        assert_eq!(text(&[]), "nothing is parked\n");
        let (panics, world) = (ParkedFor::Panics, Some("0.2".to_owned()));
        let broken =
            ParkedPlan { kind: "hideout".into(), seed: Some(77), world: None, why: panics, times: 4, left_s: Some(95) };
        let taken_out = ParkedPlan { world, why: ParkedFor::Operator, left_s: None, ..broken.clone() };
        let told = text(&[broken, taken_out.clone(), ParkedPlan { seed: None, world: None, ..taken_out }]);
        let rows: Vec<Vec<&str>> = told.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["hideout", "77", "panics", "4", "in", "95", "s"]);
        assert_eq!(rows[2], ["hideout", "77", "0.2", "operator", "4", "world.unpark"]);
        assert_eq!(rows[3], ["hideout", "any", "operator", "4", "world.unpark"]);
    }
}
