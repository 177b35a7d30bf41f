//! Preflight: the working tree held against main, before a change goes in.
//!
//! `throng preflight` does the work, as for any game; here it is built of the working tree, which is the change.

use clap::Args;

use crate::error::XtaskError;
use crate::step::{self, cargo};

#[derive(Args)]
pub(crate) struct PreflightArguments {
    /// The revision that the working tree is held against.
    #[arg(long, value_name = "REV", default_value = "main")]
    base: String,
    /// 30 s instead of four minutes.
    #[arg(long)]
    quick: bool,
    /// Passed on to `throng preflight` as they are, such as `--game duel`.
    #[arg(last = true)]
    more: Vec<String>,
}

pub(crate) fn run(arguments: &PreflightArguments) -> Result<(), XtaskError> {
    let mut command = cargo();
    command.args(["run", "--release", "--quiet", "--package", "throng-shipped", "--", "preflight"]);
    command.args(["--base", &arguments.base, "--change", "."]);
    command.args(arguments.quick.then_some("--quick")).args(&arguments.more);
    step::run(
        "preflight",
        &mut command,
        "the table above says what is slower; reports/preflight/report.html has it as a page",
    )
}
