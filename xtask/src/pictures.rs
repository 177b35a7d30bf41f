//! Pictures: draws the README's anew, from the figures in docs/figures.
//!
//! `throng-lab` draws them, with the charts of a report's page. It is run rather than linked: this command is what installs the
//! compilers that the lab's libraries need (`setup`), so it stands on none of them. The test that holds the pictures to the
//! figures writes them when it is told to.

use crate::error::XtaskError;
use crate::step::{self, cargo};

pub(crate) fn run() -> Result<(), XtaskError> {
    let mut command = cargo();
    command.args(["test", "--quiet", "--locked", "--package", "throng-lab", "--test", "pictures"]);
    step::run("pictures", command.env("UPDATE_EXPECT", "1"), "its own words are above")?;
    eprintln!("── pictures: in docs/pictures; look at them in a browser, in a light theme and in a dark one");
    Ok(())
}
