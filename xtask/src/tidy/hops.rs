//! Hops: a table of ARCHITECTURE.md follows a packet through the code, and each hop names a file and a function that
//! are there.
//!
//! ```text
//! | hop | what happens | file | function |
//! |---|---|---|---|
//! | 1 | a batch is taken from the kernel | `runtime/net/src/transport/udp.rs` | `UdpTransport::receive` |
//! ```
//!
//! A row is known by its first cell, a number, and its third, a path in backticks. Order and prose are the author's.

use std::path::Path;

const PAGE: &str = "ARCHITECTURE.md";

pub(super) fn check(root: &Path) -> Vec<String> {
    // That the page can be read is the crate map's to say.
    let page = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    compare(&page, |path| std::fs::read_to_string(root.join(path)).ok())
}

fn compare(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let Some((path, function)) = row(line) else { continue };
        let place = format!("{PAGE}:{}", index + 1);
        match read(path) {
            None => problems.push(format!("{place}: there is no {path}; name the file where the hop is now")),
            Some(text) if !holds(&text, function) => {
                problems
                    .push(format!("{place}: {path} has no function `{function}`; name the one that takes the hop now"));
            }
            Some(_) => {}
        }
    }
    problems
}

/// File and function of a hop; `None` for every other line.
fn row(line: &str) -> Option<(&str, &str)> {
    let cells: Vec<&str> = line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let [hop, _, path, function] = cells[..] else { return None };
    hop.parse::<u32>().ok()?;
    let code = |cell: &'_ str| cell.strip_prefix('`')?.strip_suffix('`').map(str::len);
    code(path).zip(code(function))?;
    Some((path.trim_matches('`'), function.trim_matches('`')))
}

/// Whether a function of this name is there, be it of a type or not.
fn holds(text: &str, function: &str) -> bool {
    let name = function.rsplit("::").next().unwrap_or(function);
    let begins = [format!("fn {name}("), format!("fn {name}<")];
    begins.iter().any(|begin| text.contains(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(page: &str, expect: &[&str]) {
        let read = |path: &str| (path == "net/udp.rs").then(|| "fn receive(&mut self)\nfn tick<H>(..)".to_owned());
        let found = compare(page, read);
        assert_eq!(found.len(), expect.len(), "{found:?}");
        for (problem, part) in found.iter().zip(expect) {
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn hops_that_are_there_are_fine_and_other_rows_are_not_hops() {
        check("| 1 | a batch | `net/udp.rs` | `Udp::receive` |\n| 2 | a tick | `net/udp.rs` | `tick` |", &[]);
        check("| hop | what happens | file | function |\n|---|---|---|---|", &[]);
        check("| 1 | `throng-net` | `runtime/net` | what it is | what it never does |", &[]);
    }

    #[test]
    fn moved_files_and_renamed_functions_are_named() {
        check("\n| 1 | a batch | `udp.rs` | `receive` |", &["ARCHITECTURE.md:2: there is no udp.rs"]);
        check(
            "| 1 | a batch | `net/udp.rs` | `Udp::recv` |",
            &["ARCHITECTURE.md:1: net/udp.rs has no function `Udp::recv`"],
        );
        check("| 1 | a batch | `net/udp.rs` | `ticks` |", &["no function `ticks`"]);
    }
}
