//! Long tasks, as the console shows them: by kind, and how they stand together.
//!
//! ```text
//! kind        started  finished  late  panicked  refused  usual ms  longest wait ms
//! world.make      412       412     0         0        0     0.213             11.0
//! world.drop      398       391     0         0        0     0.094             46.2
//! 1 thread, 0 workers leave their cores to it; 7 wait; all will take 0.7 ms, of it 0.7 ms to give memory back (0.0 MB known)
//! ```
//!
//! From figures that threads leave behind: no frame is asked.

use serde_json::json;
use throng::{
    long_tasks::{LongTaskReport, LongTaskRow},
    server::ServerControl,
    text_table::{Cell, Column, TextTable},
};

use crate::{access::Role, console::Console};

impl Console {
    /// Adds `tasks`, which tells what is done beside the frames.
    #[must_use]
    pub fn with_long_tasks(self, control: &ServerControl) -> Self {
        let published = control.published();
        let help = "long tasks by kind: worlds made and dropped, and what the game has done beside its ticks";
        self.with("tasks", Role::Observe, "", help, move |call| {
            call.check_arguments(&[])?;
            let report = published.long_tasks();
            Ok(call.answer(|| text(&report), || json!({ "tasks": report })))
        })
    }
}

fn text(report: &LongTaskReport) -> String {
    let columns = [
        Column::text("kind", "kind"),
        Column::integer("started", "started"),
        Column::integer("finished", "finished"),
        Column::integer("late", "missed"),
        Column::integer("panicked", "panicked"),
        Column::integer("refused", "refused"),
        Column::float("usual ms", "usual_ms", 3),
        Column::float("longest wait ms", "wait_ms_max", 1),
    ];
    let mut table = TextTable::new(columns).with_hints(report.kinds.len(), &[]);
    for row in &report.kinds {
        let LongTaskRow { kind, started, finished, missed, panicked, refused, usual_ms, wait_ms_max } = row;
        let [started, finished, missed, panicked, refused] =
            [*started, *finished, *missed, *panicked, *refused].map(|count| Cell::Integer(count.cast_signed()));
        let [usual_ms, wait_ms_max] = [*usual_ms, *wait_ms_max].map(Cell::Float);
        table.row(&[Cell::Text(kind), started, finished, missed, panicked, refused, usual_ms, wait_ms_max]);
    }
    let LongTaskReport { threads, starvation_level, waiting, outstanding_ms, freeing_ms, freeing_mb, .. } = report;
    let waits = if report.admission_waits { "; newcomers wait, since ended worlds pile up" } else { "" };
    format!(
        "{}threads: {threads}, and {starvation_level} workers leave their cores to them; {waiting} tasks wait; all will take \
         {outstanding_ms:.1} ms, of it {freeing_ms:.1} ms to give memory back ({freeing_mb:.1} MB known){waits}\n",
        table.text()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_in_rows_and_how_they_stand_below() {
        let kind = LongTaskRow { kind: "world.drop", started: 9, finished: 7, missed: 1, ..LongTaskRow::default() };
        let report = LongTaskReport {
            threads: 2,
            starvation_level: 1,
            admission_waits: true,
            waiting: 2,
            outstanding_ms: 0.5,
            kinds: vec![LongTaskRow { usual_ms: 0.25, ..kind }],
            ..LongTaskReport::default()
        };
        let told = text(&report);
        let rows: Vec<Vec<&str>> = told.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["world.drop", "9", "7", "1", "0", "0", "0.250", "0.0"]);
        assert!(told.ends_with("(0.0 MB known); newcomers wait, since ended worlds pile up\n"), "{told}");
        assert!(told.contains("threads: 2, and 1 workers leave"), "{told}");
    }
}
