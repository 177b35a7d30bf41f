//! Where the reports of a server's death go.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;
use serde::de::Deserializer;

/// Where the report of a server's death goes: on by default, since a death without one is repaired by guessing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CrashFolder {
    Off,
    /// [`CrashFolder::USUAL`] in the folder that the server was started in. Where that cannot be written the server runs
    /// without reports, and says so: nobody asked for them.
    #[default]
    Usual,
    /// One that somebody named: without it the server does not start.
    Named(PathBuf),
}

impl CrashFolder {
    pub const USUAL: &str = "crashes";

    /// None: no reports.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Off => None,
            Self::Usual => Some(Path::new(Self::USUAL)),
            Self::Named(path) => Some(path),
        }
    }
}

/// `off`, or a folder. For settings and command lines alike.
impl FromStr for CrashFolder {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "off" { Self::Off } else { Self::Named(text.into()) })
    }
}

impl<'de> Deserialize<'de> for CrashFolder {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Ok(if text == "off" { Self::Off } else { Self::Named(text.into()) })
    }
}
