//! Stacks: where a thread of this process is just now, as text, for whoever names one that is stuck.
//!
//! How a stack is read is the business of whoever provides a [`StackSource`]. On the asker's thread, which may take its time.

use throng_profiler::{site, thread};

/// Where the stacks come from. Made and used on the watchdog's thread.
pub trait StackSource {
    /// Does what would take long when a world is stuck. Once, at the start.
    fn prepare(&mut self) {}

    /// The calls of a thread of this process, innermost first, a text each; or why they are not to be had.
    fn stack_of(&mut self, thread_id: u32) -> Result<Vec<String>, String>;

    /// This process is about to end itself: why, in words that are the same each time, and what there is to add. For the
    /// report of its death.
    fn last_words(&mut self, _why: &str, _details: &str) {}
}

/// Makes a [`StackSource`] on the thread that will use it.
pub type MakeStackSource = fn() -> Box<dyn StackSource>;

/// Frames of a stack that the log line has: the innermost ones.
const FRAMES_TOLD_MAX: usize = 32;

/// The calls of a thread as one text, or why they are not known.
pub(crate) fn stack_of(source: Option<&mut (dyn StackSource + 'static)>, thread_id: u32) -> String {
    match source.map(|source| source.stack_of(thread_id)) {
        Some(Ok(frames)) if frames.len() > FRAMES_TOLD_MAX => {
            format!("{} < {} more", frames[..FRAMES_TOLD_MAX].join(" < "), frames.len() - FRAMES_TOLD_MAX)
        }
        Some(Ok(frames)) => frames.join(" < "),
        Some(Err(error)) => format!("unknown: {error}"),
        None => "unknown: nobody reads stacks here".to_owned(),
    }
}

/// Scopes that the thread has open, the outermost first; none without a recorder.
pub(crate) fn open_scopes(thread_id: u32) -> Vec<&'static str> {
    let known = thread::all().into_iter().find(|cells| cells.is_alive() && cells.tid() == thread_id);
    let name = |id| site::get(id).map_or("?", site::Site::name);
    known.map(|cells| cells.open_scopes().map(|(id, _)| name(id)).collect()).unwrap_or_default()
}
