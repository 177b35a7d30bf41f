//! The developer's commands: `cargo xtask` lists them.
//!
//! Whatever has to be done to this repository more than once is a command here, in Rust, so that it runs the same on
//! every machine and in CI, and says what to do next when it fails. Nothing here is part of a server.

mod bench;
mod beside;
mod ci;
mod command;
mod dashboards;
mod error;
mod fuzz;
mod image;
mod new_game;
mod outside;
mod package;
mod pictures;
mod preflight;
mod reliability;
mod sanitize;
mod setup;
mod step;
mod tidy;
mod web;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use error::XtaskError;

/// Commands for those who work on Throng.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Everything a change must pass: what CI runs, and nothing else.
    Ci,
    /// Of these, what needs no server that runs: licences, lints, packages, documentation, models, and that fuzz targets
    /// and a new game build. `ci` runs them beside the tests.
    Checks,
    /// The tests of all crates, small benches and a small load run among them.
    Test {
        /// Only tests whose name contains this.
        filter: Option<String>,
    },
    /// What the compiler cannot see: direction of dependencies, import circles, crate map, a packet's hops, names,
    /// sizes, leftovers.
    Tidy {
        /// Print the crate map that ARCHITECTURE.md must hold, and check nothing.
        #[arg(long)]
        map: bool,
    },
    /// Run a bench in its real size; without a name, list them.
    Bench(bench::BenchArguments),
    /// Hold the working tree against main: is any subsystem slower?
    Preflight(preflight::PreflightArguments),
    /// Run the reliability contract in its full form: the ignored tests named after its rows.
    Reliability(reliability::ReliabilityArguments),
    /// Run the fuzz targets under fuzz/: every parser of bytes from outside.
    Fuzz(fuzz::FuzzArguments),
    /// Run tests under the thread and address sanitizers of the nightly toolchain.
    Sanitize(sanitize::SanitizeArguments),
    /// Write the dashboards that Grafana is given, from the panels in deploy/grafana/panels; or draw them for a run.
    Dashboards(dashboards::DashboardsArguments),
    /// Build the documentation, with every broken link an error.
    Docs {
        /// Open it in a browser.
        #[arg(long)]
        open: bool,
    },
    /// Make a container image of a server from nothing, and try its root file system.
    Image(image::ImageArguments),
    /// What `throng new` writes: made in an empty folder, built, tested and played.
    NewGame,
    /// Put together the crates as crates.io would get them, and type-check what was packed.
    Package,
    /// Draw the README's pictures anew, from the figures in docs/figures.
    Pictures,
    /// Play against the shipped command with the client for browsers, in chromium and in Node.
    Play,
    /// Build the pages that browsers show, from the TypeScript in web/, into toolbox/pages/built.
    Web {
        /// Build nothing: check types, that what is built is of these sources, and run the tests, in a browser too.
        #[arg(long)]
        check: bool,
    },
    /// Install what building and testing need, where it is missing: packages (Debian, Ubuntu) and cargo-deny.
    Setup,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        None => {
            // Listing the commands is the answer to a bare `cargo xtask`; a closed pipe is no reason to fail.
            let _ = Arguments::command().print_help();
            Ok(())
        }
        Some(Command::Ci) => ci::run(),
        Some(Command::Checks) => ci::checks(),
        Some(Command::Test { filter }) => ci::test(filter.as_deref()),
        Some(Command::Tidy { map: true }) => tidy::print_map(),
        Some(Command::Tidy { map: false }) => tidy::run(),
        Some(Command::Bench(arguments)) => bench::run(&arguments),
        Some(Command::Preflight(arguments)) => preflight::run(&arguments),
        Some(Command::Reliability(arguments)) => reliability::run(&arguments),
        Some(Command::Fuzz(arguments)) => fuzz::run(&arguments),
        Some(Command::Sanitize(arguments)) => sanitize::run(&arguments),
        Some(Command::Docs { open }) => ci::docs(open),
        Some(Command::Image(arguments)) => image::run(&arguments),
        Some(Command::NewGame) => new_game::run(),
        Some(Command::Package) => package::run(),
        Some(Command::Pictures) => pictures::run(),
        Some(Command::Play) => web::play(),
        Some(Command::Web { check: false }) => web::build(),
        Some(Command::Web { check: true }) => web::check(),
        Some(Command::Dashboards(arguments)) => dashboards::run(&arguments),
        Some(Command::Setup) => setup::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            match error {
                XtaskError::Step { .. } | XtaskError::Untidy(_) => ExitCode::from(1),
                XtaskError::Start { .. } | XtaskError::Usage(_) => ExitCode::from(2),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_names_every_command_in_the_order_of_the_help() {
        let all = Arguments::command();
        let names: Vec<String> = all.get_subcommands().map(|command| format!("`{}`", command.get_name())).collect();
        let row = format!("| `cargo xtask` | the developer's commands: {} |", names.join(", "));
        let readme = std::fs::read_to_string(step::root().join("README.md")).expect("there is a README");
        assert!(readme.lines().any(|line| line == row), "README.md has not this line:\n{row}");
    }
}
