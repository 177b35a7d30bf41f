//! What a command that ran for a while says on stdout: objects for a parent process, one object for a script, or text
//! for people.

use clap::Args;
use serde::Serialize;

/// How a command that runs for a while is to speak.
#[derive(Args)]
pub struct OutputArguments {
    /// Print the report as one JSON object at the end.
    #[arg(long)]
    json: bool,
    /// Speak with a parent process: one JSON object a second on stdout, and its orders on stdin, whose end is the last
    /// of them.
    #[arg(long, hide = true)]
    status_json: bool,
}

impl OutputArguments {
    pub fn reader(&self) -> Reader {
        match (self.status_json, self.json) {
            (true, _) => Reader::Parent,
            (false, true) => Reader::Script,
            (false, false) => Reader::Person,
        }
    }
}

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
