//! `throng console`: commands of a running server, given with the call or line by line.
//!
//! What commands there are is the server's to say (`help`); here a line is sent and its answer printed. With each goes
//! the key that the user gave, or the one that a server on this host has left for its own user ([`admin_port`]).

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use serde::Deserialize;
use throng_capture::story::printable_text;

use crate::{
    admin_port::{self, ShownKey, ShownKeyArguments},
    outcome::{CommandResult, Verdict},
    output::remark,
};

#[derive(Args)]
pub struct ConsoleArguments {
    /// The server's admin port.
    #[arg(long, value_name = "HOST:PORT")]
    connect: Option<String>,
    /// The same without `--connect`; with it, the first word of the command.
    #[arg(hide = true)]
    first: Option<String>,
    /// One command with its words, such as `packets --by-world`; `help` lists them. Without it, commands are read from
    /// stdin, one a line.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
    #[command(flatten)]
    key: ShownKeyArguments,
    /// Print one JSON object; the same as `--json` after the command.
    #[arg(long)]
    json: bool,
}

/// What the server says.
#[derive(Deserialize)]
struct Answer {
    text: Option<String>,
    error: Option<String>,
}

pub fn run(arguments: ConsoleArguments) -> CommandResult {
    let ConsoleArguments { connect, first, command, key, json } = arguments;
    let mut words = first.into_iter().chain(command);
    let server = connect.or_else(|| words.next());
    let server = server.ok_or("which server? Give its admin port: --connect HOST:PORT")?;
    let command: Vec<String> = words.collect();
    let key = key.key()?;
    if command.is_empty() {
        return converse(&server, &key, json);
    }
    let as_json = json || command.iter().any(|word| word == "--json");
    match ask(&server, &key, &line_of(&command.join(" "), json))? {
        Ok(text) => print(&text, as_json)?,
        Err(reason) => return Err(format!("{server}: {}", printable_lines(&reason).join("\n")).into()),
    }
    Ok(Verdict::Fine)
}

/// Carries out lines from stdin until it ends. A person is told what is wrong and goes on; a script that had a wrong
/// line fails at the end.
fn converse(server: &str, key: &ShownKey, json: bool) -> CommandResult {
    let is_terminal = io::stdin().is_terminal();
    let prompt = || -> io::Result<()> {
        if is_terminal {
            write!(io::stderr(), "{server}> ")?;
        }
        Ok(())
    };
    let mut refused = 0;
    prompt()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if !line.trim().is_empty() {
            match ask(server, key, &line_of(&line, json))? {
                Ok(text) => print(&text, json || line.split_whitespace().any(|word| word == "--json"))?,
                Err(reason) => {
                    refused += 1;
                    remark(format_args!("{}", printable_lines(&reason).join("\n")));
                }
            }
        }
        prompt()?;
    }
    match refused {
        1.. if !is_terminal => Err(format!("{server} did not carry out {refused} of the commands").into()),
        _ => Ok(Verdict::Fine),
    }
}

fn line_of(command: &str, json: bool) -> String {
    if json { format!("{command} --json") } else { command.to_owned() }
}

/// The answer's text, or why the server did not carry it out; the outer error is that nobody answered as a server
/// would.
fn ask(server: &str, key: &ShownKey, line: &str) -> Result<Result<String, String>, String> {
    let (status, body) = admin_port::post(server, key, "console", line)?;
    match serde_json::from_slice(&body) {
        Ok(Answer { text: Some(text), .. }) if status == 200 => Ok(Ok(text)),
        Ok(Answer { error: Some(error), .. }) => Ok(Err(error)),
        _ => Err(admin_port::strange_answer(server, status, "console")),
    }
}

/// Prints an answer, of which nothing reaches the terminal unescaped.
fn print(text: &str, as_json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if as_json {
        // Read and written again: what leaves is one line of JSON whatever came in.
        let object: serde_json::Value = serde_json::from_str(text)?;
        return writeln!(out, "{object}");
    }
    printable_lines(text).iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn printable_lines(text: &str) -> Vec<String> {
    text.lines().map(printable_text).collect()
}
