//! Reliability: the contract's rows in their full form.
//!
//! Tests whose name begins with a row, such as `r07_a_sequence_is_accepted_at_most_once`, are that row's. Those that
//! take minutes or hours are `#[ignore]`d and run here only; a row whose full form is quick runs with all tests, and
//! here again. Finding none for a row that was asked for is a failure, not a success. `docs/reliability.md` says what
//! each row promises.

use clap::Args;

use crate::error::XtaskError;
use crate::step::{self, cargo};

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
}

pub(crate) fn run(arguments: &ReliabilityArguments) -> Result<(), XtaskError> {
    let rows = if arguments.rows.is_empty() { ROWS.collect() } else { arguments.rows.clone() };
    let filters: Vec<String> = rows.iter().map(|row| format!("r{row:02}_")).collect();
    let command = |more: &[&str]| {
        let mut command = cargo();
        // The server's own profile: a full form measures what an operator runs.
        command
            .args(["test", "--release", "--workspace", "--locked", "--", "--include-ignored"])
            .args(more)
            .args(&filters);
        command
    };
    let listed = step::output_of("list", &mut command(&["--list"]), "the build's errors are above")?;
    let tests: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    if arguments.list {
        tests.iter().for_each(|test| println!("{test}"));
        return Ok(());
    }
    for row in &arguments.rows {
        if !tests.iter().any(|test| is_of_row(test, *row)) {
            return Err(XtaskError::Usage(format!("row R{row:02} has no full form: no test begins with r{row:02}_")));
        }
    }
    eprintln!("{} tests", tests.len());
    step::run("reliability", &mut command(&["--nocapture", "--test-threads=1"]), "each failure prints how to replay it")
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
