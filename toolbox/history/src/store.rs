//! Store: a folder of records that only grows.
//!
//! ```text
//! history/
//!   2026-11.jsonl     one record a line, in JSON; a file for each month (UTC)
//!   2026-12.jsonl
//! ```
//!
//! Who appends has the file's lock, so that two runs that end together do not mix their lines, and writes a line with one
//! call. A writer that died leaves a line without an end: the next one ends it, and a reader passes by it without a word, if it
//! is the last. Any other line that is no record is told with its file and number, and the rest is kept.
//!
//! Files come from other machines and may be anything: lines, files and records have maxima, and nothing in them sizes an
//! allocation beyond what is there.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::record::{FORMAT, Record};

/// Longer lines are no records: a load of 100 subsystems has 8 KiB.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// A year of runs every ten minutes; the oldest beyond them are passed by, and told.
pub const RECORDS_MAX: usize = 50_000;
/// Faults that are told one by one; more are counted.
pub const FAULTS_TOLD_MAX: usize = 20;
/// Files that are read, the last by name: forty years.
const FILES_MAX: usize = 500;

/// Why nothing can be appended or read at all.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the history in {} cannot be read: {cause}; name the folder of one, which load runs and benches make", folder.display())]
    Folder { folder: PathBuf, cause: io::Error },
    #[error("the run cannot be kept in {}: {cause}; name a folder that can be written with --history", path.display())]
    Append { path: PathBuf, cause: io::Error },
    #[error("the run cannot be put into JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// A line that is no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub file: PathBuf,
    /// From 1; 0: the file as a whole.
    pub line: usize,
    pub why: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.file.display(), self.why),
            line => write!(out, "{}:{line}: {}; the rest is kept", self.file.display(), self.why),
        }
    }
}

/// What a folder holds.
#[derive(Debug, Default)]
pub struct Contents {
    /// By time.
    pub records: Vec<Record>,
    /// The first of them.
    pub faults: Vec<Fault>,
    pub faults_count: usize,
}

impl Contents {
    fn fault(&mut self, file: &Path, line: usize, why: impl Into<String>) {
        self.faults_count += 1;
        if self.faults.len() < FAULTS_TOLD_MAX {
            self.faults.push(Fault { file: file.to_owned(), line, why: why.into() });
        }
    }
}

/// Appends a record, in a folder that is made if it is missing. It is with the system when this returns.
pub fn append(folder: &Path, record: &Record) -> Result<PathBuf, StoreError> {
    let path = folder.join(format!("{}.jsonl", month(record.written_unix_s)));
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    let mut append = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(&path)?;
        file.lock()?;
        if is_torn(&mut file)? {
            line.insert(0, b'\n');
        }
        file.write_all(&line)
        // The lock goes with the file.
    };
    let appended = append();
    appended.map_err(|cause| StoreError::Append { path: path.clone(), cause })?;
    Ok(path)
}

/// Whether its last line has no end.
fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Reads all files of a folder, or one file. Of more than [`RECORDS_MAX`] records the latest are taken: those of the last files by
/// name, and the last ones of a file.
pub fn read(folder: &Path) -> Result<Contents, StoreError> {
    read_at_most(folder, RECORDS_MAX)
}

fn read_at_most(folder: &Path, records_max: usize) -> Result<Contents, StoreError> {
    let cannot = |cause| StoreError::Folder { folder: folder.to_owned(), cause };
    let mut files = Vec::new();
    if folder.is_file() {
        files.push(folder.to_owned());
    } else {
        for entry in fs::read_dir(folder).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut contents = Contents::default();
    for (number, path) in files.iter().rev().enumerate() {
        if number >= FILES_MAX {
            contents.fault(path, 0, format!("is left out: the last {FILES_MAX} files are read"));
        } else if contents.records.len() >= records_max {
            contents.fault(path, 0, format!("is left out: the latest {records_max} records are read"));
        } else {
            match File::open(path) {
                Ok(file) => read_latest(path, BufReader::new(file), records_max, &mut contents),
                Err(cause) => contents.fault(path, 0, cause.to_string()),
            }
        }
    }
    contents.records.sort_by_key(|record| record.written_unix_s);
    Ok(contents)
}

/// Reads one file's lines into `contents`: whatever the bytes are, this ends and says what it could not take.
pub fn read_lines(path: &Path, lines: impl BufRead, contents: &mut Contents) {
    read_latest(path, lines, RECORDS_MAX, contents);
}

/// The last records of these lines, for which there is room.
fn read_latest(path: &Path, lines: impl BufRead, records_max: usize, contents: &mut Contents) {
    let room = records_max.saturating_sub(contents.records.len());
    let (mut latest, mut left_out) = (VecDeque::new(), 0);
    each_record(path, lines, contents, |record| {
        latest.push_back(record);
        if latest.len() > room {
            latest.pop_front();
            left_out += 1;
        }
    });
    if left_out > 0 {
        contents.fault(
            path,
            0,
            format!("its first {left_out} are left out: the latest {records_max} records are read"),
        );
    }
    contents.records.extend(latest);
}

fn each_record(path: &Path, mut lines: impl BufRead, contents: &mut Contents, mut take: impl FnMut(Record)) {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = lines.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        let ended = line.last() == Some(&b'\n');
        match read {
            Ok(0) => return,
            Ok(_) => {}
            Err(cause) => return contents.fault(path, number, cause.to_string()),
        }
        if !ended && line.len() > LINE_BYTES_MAX {
            contents.fault(path, number, format!("is longer than {LINE_BYTES_MAX} bytes, and no record"));
            if skip_line(&mut lines).is_err() {
                return;
            }
            continue;
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        match parse(text) {
            Ok(record) => take(record),
            // A writer died in the middle of it.
            Err(_) if !ended => {}
            Err(why) => contents.fault(path, number, why),
        }
    }
}

fn skip_line(lines: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = lines.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (used, is_over) = (end.map_or(buffer.len(), |at| at + 1), end.is_some() || buffer.is_empty());
        lines.consume(used);
        if is_over {
            return Ok(());
        }
    }
}

/// What a line says before it is known what else it holds: a record of another format has other fields.
#[derive(Deserialize)]
struct FormatOf {
    format: u32,
}

/// One line. A record's figures are numbers; what is none, or negative, as a time, is refused.
fn parse(line: &[u8]) -> Result<Record, String> {
    let no_record = |cause| format!("is no record of a run: {cause}");
    let FormatOf { format } = serde_json::from_slice(line).map_err(no_record)?;
    if format != FORMAT {
        return Err(format!("is of format {format}, and this build reads {FORMAT}; read it with a newer build"));
    }
    let record: Record = serde_json::from_slice(line).map_err(no_record)?;
    let is_no_time = |(_, us): &(&String, &f64)| !us.is_finite() || **us < 0.0;
    if let Some((name, us)) = record.times_us.iter().chain(&record.categories_us).find(is_no_time) {
        return Err(format!("says that {name} took {us} µs"));
    }
    if let Some((name, us)) = record.budgets_us.iter().find(is_no_time) {
        return Err(format!("says that {name} may take {us} µs"));
    }
    Ok(record)
}

/// The month of a moment (UTC), such as `2026-11`: by the days' number, after Hinnant's `civil_from_days`.
fn month(unix_s: u64) -> String {
    let days = unix_s / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use serde_json::json;

    use super::*;
    use crate::machine::Machine;

    fn record(written_unix_s: u64) -> Record {
        Record::of_bench("rewind", &json!({"shot_us": 2.0}), "abc", Machine::default(), written_unix_s)
    }

    /// An empty folder, which goes with the value.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let folder = std::env::temp_dir().join(format!("throng-history-{}-{number}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        for (unix_s, expect) in
            [(0, "1970-01"), (951_782_400, "2000-02"), (1_798_761_599, "2026-12"), (1_798_761_600, "2027-01")]
        {
            assert_eq!(month(unix_s), expect);
        }
    }

    #[test]
    fn what_is_appended_is_read_by_time() {
        let folder = Folder::new();
        for at in [1_798_761_600, 7, 1_798_761_599] {
            append(&folder.0, &record(at)).unwrap();
        }
        let contents = read(&folder.0).unwrap();
        assert_eq!(contents.records, [7, 1_798_761_599, 1_798_761_600].map(record));
        assert_eq!((contents.faults_count, fs::read_dir(&folder.0).unwrap().count()), (0, 3));
    }

    /// Promise: runs that end together do not mix their lines.
    #[test]
    fn many_append_at_once() {
        let folder = Folder::new();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let folder = &folder.0;
                scope.spawn(move || (0..50).for_each(|run| drop(append(folder, &record(writer * 50 + run)).unwrap())));
            }
        });
        let contents = read(&folder.0).unwrap();
        assert_eq!((contents.records.len(), contents.faults_count), (200, 0));
    }

    #[test]
    fn a_torn_last_line_costs_nothing_else() {
        let folder = Folder::new();
        let path = append(&folder.0, &record(7)).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole[..], &whole[..whole.len() / 2]].concat()).unwrap();
        let contents = read(&folder.0).unwrap();
        assert_eq!((contents.records.len(), contents.faults_count), (1, 0));
        append(&folder.0, &record(8)).unwrap();
        let contents = read(&folder.0).unwrap();
        assert_eq!(contents.records, [record(7), record(8)]);
        // It is no last line any more.
        assert_eq!((contents.faults.len(), contents.faults[0].line), (1, 2));
    }

    #[test]
    fn what_is_no_record_is_told_with_file_and_line_and_the_rest_is_kept() {
        let good = serde_json::to_string(&record(7)).unwrap();
        let refused = [
            "{\"format\":1}".to_owned(),
            "no JSON".to_owned(),
            "[]".to_owned(),
            r#"{"format":2,"what":"is not known yet"}"#.to_owned(),
            good.replace("2.0", "-2.0"),
            good.replace("\"tick_budget_us\"", "\"budgets_us\":{\"ai\":-1.0},\"tick_budget_us\""),
            "[".repeat(100_000),
            "x".repeat(3 * LINE_BYTES_MAX),
            "\u{0}".to_owned(),
        ];
        let mut text = good.clone() + "\n";
        for line in &refused {
            text += &format!("{line}\n{good}\n");
        }
        let mut bytes = text.into_bytes();
        bytes.extend(b"\xFF\xFE\n");
        let mut contents = Contents::default();
        read_lines(Path::new("2026-11.jsonl"), &bytes[..], &mut contents);
        assert_eq!((contents.records.len(), contents.faults_count), (refused.len() + 1, refused.len() + 1));
        let lines: Vec<usize> = contents.faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, (1..=refused.len()).map(|n| 2 * n).chain([2 * refused.len() + 2]).collect::<Vec<_>>());
        assert!(
            contents.faults[0].to_string().starts_with("2026-11.jsonl:2: is no record of a run: missing field"),
            "{}",
            contents.faults[0]
        );
        let of_later =
            "2026-11.jsonl:8: is of format 2, and this build reads 1; read it with a newer build; the rest is kept";
        assert_eq!(contents.faults[3].to_string(), of_later);
    }

    /// Promise: where there are too many, it is the oldest that nobody looks at any more.
    #[test]
    fn of_too_many_records_the_latest_are_read() {
        const DAYS_31_S: u64 = 31 * 86_400;
        let folder = Folder::new();
        // Three files, of three records each.
        let times: Vec<u64> = (0..3).flat_map(|month| (0..3).map(move |run| month * DAYS_31_S + run)).collect();
        times.iter().for_each(|at| _ = append(&folder.0, &record(*at)).unwrap());
        let read = |records_max: usize| {
            let contents = read_at_most(&folder.0, records_max).unwrap();
            let at: Vec<u64> = contents.records.iter().map(|record| record.written_unix_s).collect();
            (at, contents.faults.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(read(9), (times.clone(), Vec::new()));
        let (at, faults) = read(4);
        assert_eq!(at, times[5..]);
        assert!(
            faults[0].ends_with("1970-02.jsonl: its first 2 are left out: the latest 4 records are read"),
            "{faults:?}"
        );
        assert!(faults[1].contains("1970-01.jsonl: is left out") && faults.len() == 2, "{faults:?}");
    }

    /// Promise: a file of a build that kept no budgets or conditions is read as before, and one with them gives them back.
    #[test]
    fn budgets_and_conditions_may_be_there_or_not() {
        let conditions = [("saves".to_owned(), "none".to_owned())].into();
        let with = Record { budgets_us: [("ai".to_owned(), 12.5)].into(), conditions, ..record(7) };
        let lines = [&record(7), &with].map(|record| serde_json::to_string(record).unwrap());
        assert!(!lines[0].contains("budgets_us") && lines[1].contains("\"budgets_us\":{\"ai\":12.5}"), "{lines:?}");
        assert!(
            !lines[0].contains("conditions") && lines[1].contains("\"conditions\":{\"saves\":\"none\"}"),
            "{lines:?}"
        );
        let mut contents = Contents::default();
        read_lines(Path::new("2026-11.jsonl"), lines.join("\n").as_bytes(), &mut contents);
        assert_eq!((contents.records, contents.faults_count), (vec![record(7), with], 0));
    }

    #[test]
    fn a_folder_that_is_none_says_so() {
        let error = read(Path::new("/nowhere/history")).unwrap_err().to_string();
        assert!(error.starts_with("the history in /nowhere/history cannot be read: No such file"), "{error}");
    }
}
