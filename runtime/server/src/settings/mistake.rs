//! Mistakes: what is wrong with a settings file, said so that it can be put right without opening a manual.
//!
//! One mistake is one line: file, line, section, key, what is wrong, what to do. An error holds all of a file's.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

/// One thing wrong in a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// Empty above the first section.
    pub section: String,
    /// Empty when the whole section, or the file's syntax, is meant.
    pub key: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: ", self.file, self.line)?;
        if !self.section.is_empty() {
            write!(out, "[{}] ", self.section)?;
        }
        if !self.key.is_empty() {
            write!(out, "{}: ", self.key)?;
        }
        out.write_str(&self.message)
    }
}

/// Why no settings came out. Its text is what the operator reads: one line per mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// There is no such file.
    #[error("{file}: {reason}")]
    Missing { file: String, reason: String },
    #[error("{file}: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{}", lines(.0))]
    Mistakes(Vec<Mistake>),
    #[error("{place}: {reason}")]
    Key { place: String, reason: String },
}

impl SettingsError {
    /// `elsewhere` says how another file is named.
    pub(crate) fn unreadable(path: &Path, cause: &std::io::Error, elsewhere: &str) -> Self {
        let reason = match cause.kind() {
            ErrorKind::NotFound => format!(
                "no such file; create it (every setting has a default, so it may be empty) or name another {elsewhere}"
            ),
            ErrorKind::PermissionDenied => "may not be read by this user; change its owner or its mode".to_owned(),
            ErrorKind::IsADirectory => "is a directory; name the file in it".to_owned(),
            ErrorKind::InvalidData => "is not UTF-8 text; save it again as UTF-8".to_owned(),
            _ => format!("cannot be read: {cause}"),
        };
        let file = path.display().to_string();
        if cause.kind() == ErrorKind::NotFound {
            Self::Missing { file, reason }
        } else {
            Self::Unreadable { file, reason }
        }
    }

    pub(crate) fn unless_empty(mut mistakes: Vec<Mistake>) -> Result<(), Self> {
        if mistakes.is_empty() {
            return Ok(());
        }
        mistakes.sort_by(|a, b| (a.line, &a.key).cmp(&(b.line, &b.key)));
        Err(Self::Mistakes(mistakes))
    }
}

fn lines(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n")
}

/// The known name that was probably meant, if one is near enough: a third of its letters may differ.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let (distance, name) = known.into_iter().map(|name| (distance(written, name), name)).min()?;
    (distance <= name.len().max(3) / 3).then_some(name)
}

/// Letters to insert, remove or change to get from one word to the other.
fn distance(source: &str, target: &str) -> usize {
    let target: Vec<char> = target.chars().collect();
    let mut row: Vec<usize> = (0..=target.len()).collect();
    for (i, letter) in source.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in target.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[target.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_only_when_it_is_near() {
        let known = ["workers", "sockets", "timeout_s"];
        let check = |written, expect: Option<&str>| assert_eq!(nearest(written, known), expect, "{written}");
        check("wrokers", Some("workers"));
        check("worker", Some("workers"));
        check("timeout", Some("timeout_s"));
        check("socket", Some("sockets"));
        check("gravity", None);
        check("", None);
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
