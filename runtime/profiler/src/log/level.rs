//! Levels: how much of a category is written, as operators write it.

use std::fmt;
use std::str::FromStr;

use super::ALL;

/// How much of a category is written; each level includes those before it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    pub const ALL: [Level; 6] = [Level::Off, Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace];

    /// As in rules and captures.
    pub fn name(self) -> &'static str {
        match self {
            Level::Off => "off",
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }
}

impl From<tracing::Level> for Level {
    fn from(level: tracing::Level) -> Level {
        match level {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warn,
            tracing::Level::INFO => Level::Info,
            tracing::Level::DEBUG => Level::Debug,
            tracing::Level::TRACE => Level::Trace,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A word that names no level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no level; write off, error, warn, info, debug or trace")]
pub struct UnknownLevel(String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Level, UnknownLevel> {
        let named = Level::ALL.into_iter().find(|level| level.name() == text);
        named.ok_or_else(|| UnknownLevel(text.chars().take(40).collect()))
    }
}

/// Reads levels as one line: `warn` for all, `server.clients=debug` for one category, several with commas between them.
pub fn levels_from_text(text: &str) -> Result<Vec<(String, Level)>, UnknownLevel> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let level_of = |entry: &str| {
        let (name, level) = entry.split_once('=').unwrap_or((ALL, entry));
        Ok((name.trim().to_owned(), level.trim().parse()?))
    };
    entries.map(level_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_from_one_line() {
        let check = |text: &str, expect: &[(&str, Level)]| {
            let expect = expect.iter().map(|(name, level)| ((*name).to_owned(), *level)).collect();
            assert_eq!(levels_from_text(text), Ok(expect), "{text}");
        };
        check("", &[]);
        check("warn", &[(ALL, Level::Warn)]);
        check(" warn , server.clients = debug,", &[(ALL, Level::Warn), ("server.clients", Level::Debug)]);
        let error = levels_from_text("server=loud").unwrap_err().to_string();
        assert_eq!(error, "\"loud\" is no level; write off, error, warn, info, debug or trace");
    }

    #[test]
    fn every_level_is_read_by_its_name() {
        for level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
    }
}
