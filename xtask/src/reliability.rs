//! Reliability: the contract's rows in their full form.
//!
//! Tests whose name begins with a row, such as `r07_a_sequence_is_accepted_at_most_once`, are that row's. Those that
//! take minutes or hours are `#[ignore]`d and run here only; a row whose full form is quick runs with all tests, and
//! here again. Finding none for a row that was asked for is a failure, not a success. `docs/reliability.md` says what
//! each row promises.
//!
//! One test after the other, by the executables that one call of cargo builds (`executables`). What became of each is noted as
//! soon as it is over (`ledger`), so a run that is cut off, or that was given `--minutes`, is gone on with by `--resume`.

mod executables;
mod ledger;

use std::time::{Duration, Instant};

use clap::Args;

use self::{
    executables::Executable,
    ledger::{Entry, Ledger},
};
use crate::error::XtaskError;

/// Rows of the contract, R01 to R40.
const ROWS: std::ops::RangeInclusive<u8> = 1..=40;

#[derive(Args)]
pub(crate) struct ReliabilityArguments {
    /// Only this row, such as R07; may be given several times. All of them if none is given.
    #[arg(long = "row", value_name = "ROW", value_parser = parse_row)]
    rows: Vec<u8>,
    /// List the tests and run none.
    #[arg(long)]
    list: bool,
    /// Leave out the tests that have passed at this commit already.
    #[arg(long)]
    resume: bool,
    /// Begin no test after so many minutes; `--resume` goes on from there.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
}

/// A test, and where it is.
struct RowTest<'a> {
    executable: &'a Executable,
    name: String,
}

pub(crate) fn run(arguments: &ReliabilityArguments) -> Result<(), XtaskError> {
    let executables = executables::build()?;
    let rows: Vec<u8> = if arguments.rows.is_empty() { ROWS.collect() } else { arguments.rows.clone() };
    let tests = tests_of(&executables, &rows)?;
    if arguments.list {
        tests.iter().for_each(|test| println!("{}: {}", test.executable.package, test.name));
        return Ok(());
    }
    for row in &arguments.rows {
        if !tests.iter().any(|test| is_of_row(&test.name, *row)) {
            return Err(XtaskError::Usage(format!("row R{row:02} has no full form: no test begins with r{row:02}_")));
        }
    }
    let mut ledger = Ledger::open()?;
    let left = |test: &&RowTest| !(arguments.resume && ledger.has_passed(&test.executable.package, &test.name));
    let todo: Vec<&RowTest> = tests.iter().filter(left).collect();
    eprintln!("{} tests, {} to run; noted in {}", tests.len(), todo.len(), ledger.path().display());
    let until = arguments.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let (mut failed, mut begun) = (Vec::new(), 0);
    for test in &todo {
        if until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        begun += 1;
        eprintln!("── {begun} of {}: {}: {}", todo.len(), test.executable.package, test.name);
        let begin = Instant::now();
        let passed = test.executable.run(&test.name)?;
        let seconds = begin.elapsed().as_secs_f64();
        eprintln!("── {} after {seconds:.1} s", if passed { "fine" } else { "FAILED" });
        ledger.note(&Entry { package: &test.executable.package, test: &test.name, passed, seconds })?;
        if !passed {
            failed.push(test.name.as_str());
        }
    }
    if begun < todo.len() {
        eprintln!("{} tests were not begun in time: go on with --resume", todo.len() - begun);
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(XtaskError::Usage(format!("failed: {}; each prints above how to replay it", failed.join(", "))))
}

fn tests_of<'a>(executables: &'a [Executable], rows: &[u8]) -> Result<Vec<RowTest<'a>>, XtaskError> {
    let mut tests = Vec::new();
    for executable in executables {
        let names = executable.tests()?.into_iter().filter(|name| rows.iter().any(|row| is_of_row(name, *row)));
        tests.extend(names.map(|name| RowTest { executable, name }));
    }
    Ok(tests)
}

fn is_of_row(test: &str, row: u8) -> bool {
    let name = test.rsplit("::").next().unwrap_or(test);
    name.starts_with(&format!("r{row:02}_"))
}

fn parse_row(text: &str) -> Result<u8, String> {
    let number = text.strip_prefix(['R', 'r']).and_then(|digits| digits.parse().ok());
    let row = number.filter(|row| ROWS.contains(row));
    row.ok_or_else(|| format!("a row is R{:02} to R{:02}", ROWS.start(), ROWS.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_are_written() {
        let check = |text, expect: Option<u8>| assert_eq!(parse_row(text).ok(), expect, "{text}");
        check("R01", Some(1));
        check("r7", Some(7));
        check("R40", Some(40));
        check("R41", None);
        check("R00", None);
        check("7", None);
        check("all", None);
    }

    #[test]
    fn a_test_belongs_to_the_row_its_name_begins_with() {
        assert!(is_of_row("protocol::tests::r07_a_sequence_is_accepted_at_most_once", 7));
        assert!(!is_of_row("r07_module::an_other_test", 7));
        assert!(!is_of_row("r17_poison", 7));
    }
}
