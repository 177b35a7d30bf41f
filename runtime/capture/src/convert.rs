//! Captures for other viewers: Perfetto, Tracy, `chrome://tracing`, speedscope, KCachegrind and flame graphs.
//!
//! | format | opens in | has |
//! |---|---|---|
//! | FXT | Perfetto, Tracy (`tracy-import-fuchsia`), magic-trace | everything that other tools have a place for |
//! | Chrome | Perfetto, `chrome://tracing`, Tracy (`tracy-import-chrome`) | the same without context switches |
//! | speedscope | speedscope | what each thread did, moment by moment |
//! | callgrind | KCachegrind, `callgrind_annotate` | sums by function: time, waits, allocations |
//! | folded | flame graphs | wall time by stack |
//!
//! All of them write as they go; one thread's spans at a time are held beside the capture. They believe nothing of a
//! capture: times that overlap are cut to nest, indices that point nowhere become names that say so, and control
//! characters are shown escaped. A scope that was still open ends with the capture. Any thread; cost: sorting each
//! thread's scopes.

pub mod chrome;
pub mod fxt;
mod json;
pub(crate) mod names;
pub(crate) mod spans;
pub mod speedscope;
pub(crate) mod text;

use std::io::{self, Write};
use std::str::FromStr;

use thiserror::Error;

use crate::call_tree::{self, CallTree};
use crate::model::Capture;

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Fxt,
    Chrome,
    Speedscope,
    Callgrind,
    Folded,
}

/// There is no such target.
#[derive(Debug, Error)]
#[error("`{0}` is not a format; there are fxt, chrome, speedscope, callgrind and folded")]
pub struct UnknownTarget(String);

impl Target {
    pub const ALL: [Target; 5] = [Target::Fxt, Target::Chrome, Target::Speedscope, Target::Callgrind, Target::Folded];

    /// Its name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Target::Fxt => "fxt",
            Target::Chrome => "chrome",
            Target::Speedscope => "speedscope",
            Target::Callgrind => "callgrind",
            Target::Folded => "folded",
        }
    }

    /// How files of it end, so that viewers know them.
    pub fn extension(self) -> &'static str {
        match self {
            Target::Fxt => "fxt",
            Target::Chrome => "chrome.json",
            Target::Speedscope => "speedscope.json",
            Target::Callgrind => "callgrind.out",
            Target::Folded => "folded.txt",
        }
    }
}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, UnknownTarget> {
        Target::ALL.into_iter().find(|target| target.name() == name).ok_or_else(|| UnknownTarget(name.to_owned()))
    }
}

/// Writes the capture as `target`, in many small pieces: put a buffer in front of a file. Fails only as `out` fails.
pub fn convert(capture: &Capture, target: Target, out: impl Write) -> io::Result<()> {
    match target {
        Target::Fxt => fxt::write(capture, out),
        Target::Chrome => chrome::write(capture, out),
        Target::Speedscope => speedscope::write(capture, out),
        Target::Callgrind => CallTree::from_capture(capture).write_callgrind(&capture.about.build, out),
        Target::Folded => CallTree::from_capture(capture).write_folded(call_tree::WALL, out),
    }
}
