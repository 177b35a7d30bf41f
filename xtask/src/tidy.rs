//! Tidy: promises about the source that no compiler checks.
//!
//! Each check returns problems as `place: what is wrong; what to do`. They look at the folders of our own code only,
//! and take less than a second, so that they run first.

mod circles;
pub(crate) mod crates;
mod direction;
mod example;
mod hops;
mod map;
mod modules;
mod pages;
mod profile;
mod publish;
mod sources;

use crate::dashboards;
use crate::error::XtaskError;
use crate::step;

/// All checks; every problem is printed.
pub(crate) fn run() -> Result<(), XtaskError> {
    let root = step::root();
    let crates = crates::read(&root)?;
    let problems = [
        direction::check(&crates),
        map::check(&root, &crates),
        hops::check(&root),
        sources::check(&root),
        example::check(&root),
        crates::check(&crates),
        profile::check(&root, &crates),
        pages::check(&root),
        dashboards::check(&root),
        publish::check(&root, &crates),
        circles::check(&root, &crates),
    ]
    .concat();
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    match problems.len() {
        0 => {
            eprintln!("── tidy: fine, {} crates", crates.len());
            Ok(())
        }
        count => Err(XtaskError::Untidy(count)),
    }
}

/// The crate map as ARCHITECTURE.md must hold it.
pub(crate) fn print_map() -> Result<(), XtaskError> {
    print!("{}", map::expected(&crates::read(&step::root())?));
    Ok(())
}
