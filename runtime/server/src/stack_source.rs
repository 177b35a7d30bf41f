//! Stack source: how a watchdog gets at the stacks of threads, and what is said to the report of the process's death.
//!
//! Both are the business of crash reports, which the server does not know: whoever starts it brings them along.

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
