//! What a command that ran for a while says on stdout: objects for a parent process, one object for a script, or text
//! for people.

use std::io::{Error, Write};

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
    /// Takes one object per line, each with the kind of thing that it is: `{"report": {...}}` (`docs/spec/child.md`).
    Parent,
    /// Takes the report as one object on one line.
    Script,
    Person,
}

impl Reader {
    /// Tells the report that ends the command.
    pub fn tell_report(self, report: &impl Serialize) -> Result<(), Box<dyn std::error::Error>> {
        let text = match self {
            Reader::Parent => serde_json::to_string(&serde_json::json!({ "report": report }))?,
            Reader::Script => serde_json::to_string(report)?,
            Reader::Person => serde_json::to_string_pretty(report)?,
        };
        Ok(say(text)?)
    }
}

/// Writes a line to stdout. What cannot be written, since the disk is full or nobody reads any more, is an error of the
/// command, and no panic.
pub fn say(line: impl std::fmt::Display) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|cause| Error::new(cause.kind(), format!("standard output: {cause}")))
}

/// Writes a line to stderr. If it cannot be written, there is nobody to tell.
pub fn remark(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
