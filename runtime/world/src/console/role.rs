//! Roles: what somebody may do at the admin port.

use std::fmt;
use std::str::FromStr;

/// What a key allows, and what a request or a command needs. The later one includes the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads: figures, and commands that change nothing.
    Observe,
    /// Also changes things and writes to disk.
    Operate,
}

impl Role {
    const ALL: [Self; 2] = [Self::Observe, Self::Operate];

    /// As it is written in a file of keys.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Operate => "operate",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// The error says which roles there are, and not what was written: it may have been a key.
impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let role = Self::ALL.into_iter().find(|role| role.name() == text);
        role.ok_or_else(|| "a role is `observe` (reads) or `operate` (reads, changes, writes to disk)".to_owned())
    }
}
