//! Pieces of JSON, written as they come.

use std::io::{self, Write};

/// A string with its quotes.
pub(super) fn string(text: &str) -> String {
    // A string always has a form in JSON.
    serde_json::to_string(text).unwrap_or_default()
}

/// Puts a comma and a line end before every element but the first.
pub(super) struct Elements<W> {
    pub(super) out: W,
    is_first: bool,
}

impl<W: Write> Elements<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, is_first: true }
    }

    pub(super) fn begin(&mut self) -> io::Result<&mut W> {
        if !self.is_first {
            self.out.write_all(b",\n")?;
        }
        self.is_first = false;
        Ok(&mut self.out)
    }
}

/// Nanoseconds as microseconds: exact, unlike a float.
pub(super) fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}
