//! Errors: why a command did not succeed, and what to do next.

/// Why a command did not succeed. The text says what to do next.
#[derive(Debug, thiserror::Error)]
pub(crate) enum XtaskError {
    /// Something that was run said no; its own output is above.
    #[error("{name} failed ({status}); {next}")]
    Step { name: String, status: String, next: String },
    #[error("{program} could not be started: {cause}; {next}")]
    Start { program: String, cause: std::io::Error, next: String },
    #[error("{} found; put right what the lines above name", match .0 { 1 => "1 problem".to_owned(), n => format!("{n} problems") })]
    Untidy(usize),
    #[error("{0}")]
    Usage(String),
}
