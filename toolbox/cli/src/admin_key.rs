//! `throng admin-key`: a new key for the admin port, as a line of a file of keys.

use clap::Args;
use throng_admin::access::{AccessKey, Role};

use crate::{
    outcome::{CommandResult, Verdict},
    output::say,
};

#[derive(Args)]
pub struct NewKeyArguments {
    /// Who it is for: what the audit lines in the server's log say.
    name: String,
    /// `observe` reads; `operate` also changes things and writes to disk.
    role: Role,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &NewKeyArguments) -> CommandResult {
    let line = AccessKey::generate(&arguments.name, arguments.role)?.to_line();
    if arguments.json {
        say(serde_json::json!({ "name": arguments.name, "role": arguments.role.name(), "line": line }))?;
    } else {
        say(line)?;
    }
    Ok(Verdict::Fine)
}
