//! Benches: each is a package `bench-NAME` under `bench/`, so that it can depend on peers that nothing else needs. What
//! they share, `--small` and `--json` among it, is `bench/harness`. That of preflight, which finds planted slowdowns, is `plants`, and
//! that of the history, which finds the commit that has one, is `commits`.
//!
//! `--small` is the size that also runs with the tests; the real size is for claims, and a claim names machine, commit
//! and command. The bench against other libraries is a workspace of its own and is built by `peers`, which runs `crowd`, too.

mod commits;
mod machine;
mod peers;
mod plants;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use crate::error::XtaskError;
use crate::step::{self, cargo};
use crate::tidy::crates;

#[derive(Args)]
pub(crate) struct BenchArguments {
    /// Which bench; without one, they are listed.
    name: Option<String>,
    /// The size that takes seconds.
    #[arg(long)]
    small: bool,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
    /// Of `peers` and `crowd`: keep the figures in docs/figures, where the README's pictures are drawn from.
    #[arg(long, conflicts_with_all = ["small", "clients", "entities", "more"])]
    keep: bool,
    /// Of `peers` and `crowd`: so many clients instead of the planned sizes.
    #[arg(long)]
    clients: Option<u32>,
    /// Of `peers`: so many entities.
    #[arg(long, requires = "clients")]
    entities: Option<u32>,
    /// Passed on to the bench as they are.
    #[arg(last = true)]
    more: Vec<String>,
}

pub(crate) fn run(arguments: &BenchArguments) -> Result<(), XtaskError> {
    let mut known = names(crates::read(&step::root())?);
    known.extend([commits::NAME, peers::NAME, peers::CROWD, plants::NAME].map(str::to_owned));
    let Some(name) = &arguments.name else {
        known.iter().for_each(|name| println!("{name}"));
        return Ok(());
    };
    if !known.contains(name) {
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        return Err(XtaskError::Usage(format!("there is no bench \"{name}\"; there are: {known}")));
    }
    if name == plants::NAME {
        return plants::run(&arguments.more);
    }
    if name == commits::NAME {
        return commits::run(&arguments.more);
    }
    if [peers::NAME, peers::CROWD].contains(&name.as_str()) {
        return peers::run(name, arguments);
    }
    if arguments.clients.is_some() || arguments.keep {
        let (peers, crowd) = (peers::NAME, peers::CROWD);
        return Err(XtaskError::Usage(format!(
            "`--clients`, `--entities` and `--keep` are for \"{peers}\" and \"{crowd}\""
        )));
    }
    let mut command = cargo();
    command.args(["run", "--release", "--quiet", "--package", &format!("bench-{name}"), "--"]);
    command.args(arguments.small.then_some("--small")).args(arguments.json.then_some("--json")).args(&arguments.more);
    // The small size is for seeing that it works: its figures are nobody's.
    if !arguments.small {
        command.env("THRONG_BENCH_HISTORY", history());
        command.env("THRONG_BENCH_COMMIT", peers::commit()).env("THRONG_BENCH_COMMAND", own_command());
    }
    step::run(&format!("bench {name}"), &mut command, "its own words are above")
}

/// Where runs are kept for `throng history`.
fn history() -> PathBuf {
    step::root().join("reports/history")
}

/// How this was called.
fn own_command() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    format!("cargo xtask {}", words.join(" "))
}

fn names(crates: Vec<crates::Crate>) -> BTreeSet<String> {
    crates.iter().filter_map(|one| one.name.strip_prefix("bench-")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArguments,
    }

    #[test]
    fn only_figures_of_the_planned_sizes_are_kept() {
        let keeps = |words: &str| Line::try_parse_from(words.split(' ')).is_ok_and(|line| line.bench.keep);
        assert!(keeps("bench crowd --keep --json"));
        for other in ["--small", "--clients 10", "--clients 10 --entities 10", "-- --rounds 1"] {
            assert!(!keeps(&format!("bench crowd --keep {other}")), "{other}");
        }
    }
}
