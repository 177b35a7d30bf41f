//! Which executable this is: the same words in `--version`, captures, crash reports, metrics and reports of runs.
//!
//! A library cannot know of which version or commit the program is that it is in: that is handed in at the start.

use throng::report::Build;

/// An executable that has the commands.
#[derive(Debug, Clone, Copy)]
pub struct Executable {
    /// As it is typed.
    pub name: &'static str,
    /// `env!("CARGO_PKG_VERSION")`, in the crate of the executable.
    pub version: &'static str,
    /// Twelve digits, with `-modified` behind them if it was built of something else, or `unknown`. The build script of
    /// `toolbox/shipped` finds it out; copy from there.
    pub commit: &'static str,
}

impl Executable {
    /// What `--version` says behind the name.
    pub fn version_and_commit(self) -> String {
        format!("{} ({})", self.version, self.commit)
    }

    /// As captures and crash reports name it.
    pub(crate) fn full_name(self) -> String {
        format!("{} {}", self.name, self.version_and_commit())
    }

    /// The same for a server.
    pub(crate) fn build(self) -> Build {
        Build { version: self.version.into(), commit: self.commit.into() }
    }
}
