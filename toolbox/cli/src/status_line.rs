//! The live status on a terminal: one line that is written over once a second; plain lines where there is no terminal.

use std::io::{IsTerminal, Write};

use crate::output::remark;

/// What it says while nothing is saved that should be.
pub const SAVES_ARE_AWAY: &str = "  NOT SAVING: the store is away";

/// Writes a status to stderr, so that stdout stays for JSON.
pub struct StatusLine {
    is_terminal: bool,
}

impl StatusLine {
    pub fn new() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal() }
    }

    pub fn show(&self, text: &str) {
        let mut out = std::io::stderr().lock();
        // A terminal that is gone is no reason to stop serving.
        let _ = if self.is_terminal { write!(out, "\r\x1b[2K{text}") } else { writeln!(out, "{text}") };
        let _ = out.flush();
    }

    /// Leaves the last status on its own line.
    pub fn finish(&self) {
        if self.is_terminal {
            remark("");
        }
    }
}
