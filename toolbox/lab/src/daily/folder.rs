//! Folder: a day's name, which is its date and a number, its place, and where its files lie in it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use throng_capture::story::printable_date;

use crate::report::ReportError;

/// The index over all days, beside their folders.
pub const INDEX: &str = "index.html";

/// Of a day's `report.json`: by this key it is known to be one.
pub const FORMAT: u32 = 1;

/// Days of one date; who starts more has a mistake in a timer.
const DAYS_OF_A_DATE_MAX: u32 = 1_000;

/// The folder of one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayFolder {
    name: String,
    path: PathBuf,
}

impl DayFolder {
    /// Makes a new one in `root`, named after the date (UTC) of this moment. Two that begin at once get two.
    pub fn make(root: &Path, unix_s: u64) -> Result<Self, ReportError> {
        let made = Self::try_make(root, unix_s);
        made.map_err(|cause| ReportError::Write { path: root.to_owned(), cause })
    }

    fn try_make(root: &Path, unix_s: u64) -> io::Result<Self> {
        std::fs::create_dir_all(root)?;
        let date = date(unix_s);
        for number in 1..=DAYS_OF_A_DATE_MAX {
            let name = if number == 1 { date.clone() } else { format!("{date}-{number}") };
            let path = root.join(&name);
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self { name, path }),
                Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(cause),
            }
        }
        Err(io::Error::other(format!("there are {DAYS_OF_A_DATE_MAX} days of {date} already")))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where one of its runs has its files.
    pub fn of_run(&self, game: &str, scenario: &str) -> PathBuf {
        self.path.join(run_name(game, scenario))
    }
}

/// A path in the day's folder, relative to it; as it is if it is elsewhere.
pub(super) fn relative(day: &Path, path: &Path) -> String {
    path.strip_prefix(day).unwrap_or(path).display().to_string()
}

pub(super) fn run_name(game: &str, scenario: &str) -> String {
    format!("{game}-{scenario}")
}

/// `2026-11-26`, in UTC.
pub(super) fn date(unix_s: u64) -> String {
    printable_date(unix_s).split(' ').next().unwrap_or_default().to_owned()
}

/// The date and the number that a day's folder is named after; `None` of what is no day.
pub(super) fn parse(name: &str) -> Option<(&str, u32)> {
    let (date, rest) = name.split_at_checked(10)?;
    let is_date = date.bytes().enumerate().all(|(place, byte)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let number = match rest {
        "" => 1,
        rest => rest.strip_prefix('-')?.parse().ok().filter(|number| *number > 1)?,
    };
    is_date.then_some((date, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_day_of_a_date_has_a_name_of_its_own() {
        let root = std::env::temp_dir().join(format!("throng-days-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        // The last second of the date, and the first of the next.
        let names = [1_795_737_599, 1_795_737_599, 1_795_737_600, 1_795_737_599]
            .map(|unix_s| DayFolder::make(&root, unix_s).unwrap().name().to_owned());
        assert_eq!(names, ["2026-11-26", "2026-11-26-2", "2026-11-27", "2026-11-26-3"]);
        let day = DayFolder::make(&root, 1_795_737_600).unwrap();
        assert_eq!(day.path(), root.join("2026-11-27-2"));
        assert_eq!(day.of_run("duel", "no-buy"), root.join("2026-11-27-2/duel-no-buy"));
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn days_are_told_from_other_folders_by_their_names() {
        assert_eq!(parse("2026-11-26"), Some(("2026-11-26", 1)));
        assert_eq!(parse("2026-11-26-12"), Some(("2026-11-26", 12)));
        for other in
            ["", "load", "2026-11", "2026-11-26-", "2026-11-26-1", "2026-11-26-x", "2026_11_26", "2026-11-266", "é"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
