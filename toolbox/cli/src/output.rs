//! What a command that ran for a while says on stdout: objects for a parent process, one object for a script, or text for people.

use serde::Serialize;

/// Who reads stdout.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Reader {
    /// Takes one object per line, each with the kind of thing that it is: `{"report": {...}}`.
    Parent,
    /// Takes the report as one object on one line.
    Script,
    Person,
}

impl Reader {
    /// From `--status-json` and `--json`.
    pub fn of(status_json: bool, json: bool) -> Reader {
        match (status_json, json) {
            (true, _) => Reader::Parent,
            (false, true) => Reader::Script,
            (false, false) => Reader::Person,
        }
    }

    /// Tells the report that ends the command.
    pub fn tell_report(self, report: &impl Serialize) -> serde_json::Result<()> {
        let text = match self {
            Reader::Parent => serde_json::to_string(&serde_json::json!({ "report": report }))?,
            Reader::Script => serde_json::to_string(report)?,
            Reader::Person => serde_json::to_string_pretty(report)?,
        };
        println!("{text}");
        Ok(())
    }
}
