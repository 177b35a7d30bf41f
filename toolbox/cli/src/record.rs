//! `record`: begins and ends a recording on a running server, and says how it stands. The server has it as commands of its
//! console (`recording.start`, `recording.stop`, `recording.status`); where recordings go its settings say.

use clap::{Args, ValueEnum};

use crate::{
    admin_port::ShownKeyArguments,
    console,
    outcome::{CommandResult, Verdict},
};

#[derive(Args)]
pub struct RecordArguments {
    /// The server's admin port.
    #[arg(value_name = "HOST:PORT")]
    server: String,
    /// What to do.
    #[arg(value_enum, default_value = "status")]
    order: Order,
    #[command(flatten)]
    key: ShownKeyArguments,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    /// Record all that enters the worlds from now on.
    Start,
    /// Write what there is, and end the recording.
    Stop,
    /// How much is written, and what was lost.
    Status,
}

pub fn run(arguments: &RecordArguments) -> CommandResult {
    let line = match arguments.order {
        Order::Start => "recording.start",
        Order::Stop => "recording.stop",
        Order::Status => "recording.status",
    };
    console::carry_out_one(&arguments.server, &arguments.key.key()?, line, arguments.json)?;
    Ok(Verdict::Fine)
}
