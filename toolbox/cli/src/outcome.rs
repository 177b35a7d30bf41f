//! How a command ends: what each of them returns to `main`, which makes the exit status of it.

/// How a command ended when nothing went wrong with the command itself.
pub enum Verdict {
    Fine,
    /// What was measured failed its bar.
    Failed,
    /// It ends with a status of its own, and has told why: a supervisor with its server's, for one.
    Status(u8),
}

/// Exit status when nothing can be said, as when there is nothing to compare.
pub const NOTHING_SAID: u8 = 2;

pub type CommandResult = Result<Verdict, Box<dyn std::error::Error>>;
