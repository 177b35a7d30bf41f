//! Stories: what happened in a bad frame, in one sentence and one screen of text, or as one JSON object with the same
//! facts.
//!
//! The sentence names the cause: the world, scope, lock, thread or foreign process that had the time, what was measured
//! and what was allowed. Below it stands what a performance engineer looks at next: the bad frame beside the usual one
//! (the median of the others), thread by thread, the dearest worlds and subsystems, who waited for whom, who allocated.
//!
//! ```text
//!   Capture -> Attribution -> Story (facts, names made safe) -> text  (at most 110 columns)
//!                                                            -> JSON
//! ```
//!
//! Captures may come from strangers: every name is escaped before it is shown, and indices that point nowhere become
//! `?`. A story never fails on what a capture says. Any thread; allocates. Cost: that of [`crate::attribution`], once
//! or twice.

use std::io::{self, Write};

use crate::{attribution::Attribution, model::Capture};

mod accounts;
mod context;
mod cores;
mod facts;
mod foreign;
mod frame;
mod gather;
mod had_core;
mod memory;
mod run;
mod run_verdict;
mod stalls;
#[cfg(test)]
mod tests;
mod text;
mod verdict;
mod waits;
mod without_core;
mod words;
mod workers;

pub use facts::*;
pub use words::{date as printable_date, name as printable_name, text as printable_text};

/// What to tell.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The frame to look at; `None`: the one in which the trigger fired, or the longest for captures saved by hand.
    pub frame: Option<u64>,
    /// Print what matters most in bold, for terminals.
    pub with_emphasis: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum StoryError {
    #[error("the capture has no frame {number}; {has}")]
    NoSuchFrame { number: u64, has: String },
}

impl StoryError {
    fn no_such_frame(attribution: &Attribution, number: u64) -> StoryError {
        let frames = &attribution.frames;
        let has = match (frames.first(), frames.last()) {
            (Some(first), Some(last)) => format!("it has {} to {}", first.number, last.number),
            _ => "it has none".into(),
        };
        StoryError::NoSuchFrame { number, has }
    }
}

impl Story {
    /// The facts as text, at most 110 columns wide.
    pub fn write_text(&self, with_emphasis: bool, out: &mut impl Write) -> io::Result<()> {
        text::write(self, with_emphasis, out)
    }
}

/// The facts of the story; serialises to the JSON object.
pub fn tell(capture: &Capture, options: &Options) -> Result<Story, StoryError> {
    let attribution = Attribution::of(capture);
    let told = frame::of_trigger(capture, &attribution);
    let about = &capture.about;
    let window = told.map(|frame| &attribution.frames[frame]).map(|frame| (frame.begin_ns, frame.end_ns));
    let run = run::of_trigger(capture, window.unwrap_or((about.begin_ns, about.end_ns)));
    // The trigger fires in the frame in which the run ended, which may have had little of it.
    let told = run.and_then(|run| run.frame(&attribution)).or(told);
    let frame = match options.frame {
        Some(number) => {
            Some(frame::numbered(&attribution, number).ok_or_else(|| StoryError::no_such_frame(&attribution, number))?)
        }
        None => told,
    };
    let context = context::Context::new(capture, attribution, frame, run);
    let mut story = gather::gather(&context);
    // The trigger's sentence belongs to its own frame.
    story.verdict =
        if frame == told { verdict::of_trigger(&context, &story) } else { verdict::of_frame(&context, &story) };
    Ok(story)
}
