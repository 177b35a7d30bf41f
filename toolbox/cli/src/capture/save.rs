//! `throng capture save`: one request to the admin port of a running server.

use clap::Args;
use serde::Deserialize;
use throng_capture::story::printable_text;

use crate::{
    admin_port::{self, ShownKeyArguments},
    outcome::{CommandResult, Verdict},
    output::say,
};

#[derive(Args)]
pub struct SaveArguments {
    /// The server's admin port, HOST:PORT.
    #[arg(long, value_name = "HOST:PORT")]
    connect: String,
    /// Why: kept in the capture.
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    #[command(flatten)]
    key: ShownKeyArguments,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What the server says.
#[derive(Deserialize)]
struct Answer {
    path: Option<String>,
    bytes: Option<u64>,
    error: Option<String>,
}

pub fn run(arguments: &SaveArguments) -> CommandResult {
    let server = &arguments.connect;
    let key = arguments.key.key()?;
    let (status, body) =
        admin_port::post(server, &key, "capture", &arguments.note).map_err(|error| format!("--connect {error}"))?;
    let answer: Option<Answer> = serde_json::from_slice(&body).ok();
    match answer {
        Some(Answer { path: Some(path), bytes, .. }) if status == 200 => {
            if arguments.json {
                say(serde_json::json!({ "path": path, "bytes": bytes }))?;
            } else {
                let (path, bytes) = (printable_text(&path), bytes.unwrap_or(0));
                say(format_args!("{path} ({bytes} bytes, on the server's host)"))?;
            }
            Ok(Verdict::Fine)
        }
        Some(Answer { error: Some(error), .. }) => {
            Err(format!("{server} did not save: {}", printable_text(&error)).into())
        }
        _ => Err(admin_port::strange_answer(server, status, "POST /capture").into()),
    }
}
