//! `throng console`: commands of a running server, given with the call or line by line.
//!
//! What commands there are is the server's to say (`help`); here a line is sent and its answer printed. With each goes
//! the key that the user gave, or the one that a server on this host has left for its own user ([`admin_port`]).

mod terminal;

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use serde::Deserialize;
use throng_capture::story::printable_text;

use terminal::{Known, Terminal};

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
    carry_out_one(&server, &key, &command.join(" "), as_json)?;
    Ok(Verdict::Fine)
}

/// Has the server carry out one command, and prints its answer.
pub(crate) fn carry_out_one(
    server: &str,
    key: &ShownKey,
    command: &str,
    as_json: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let is_said = command.split_whitespace().any(|word| word == "--json");
    match ask(server, key, &line_of(command, as_json && !is_said))? {
        Ok(text) => Ok(print(&text, as_json)?),
        Err(reason) => Err(format!("{server}: {}", printable_lines(&reason).join("\n")).into()),
    }
}

/// Carries out lines until there are no more. A person is told what is wrong and goes on; a script that had a wrong
/// line fails at the end.
fn converse(server: &str, key: &ShownKey, json: bool) -> CommandResult {
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        let mut terminal = Terminal::open(server, known(server, key)?)?;
        while let Some(line) = terminal.line()? {
            carry_out(server, key, &line, json)?;
        }
        return Ok(Verdict::Fine);
    }
    let mut refused = 0;
    for line in io::stdin().lock().lines() {
        refused += u32::from(!carry_out(server, key, &line?, json)?);
    }
    match refused {
        1.. => Err(format!("{server} did not carry out {refused} of the commands").into()),
        _ => Ok(Verdict::Fine),
    }
}

/// One line. False: the server did not, and that was told.
fn carry_out(server: &str, key: &ShownKey, line: &str, json: bool) -> Result<bool, Box<dyn std::error::Error>> {
    if line.trim().is_empty() {
        return Ok(true);
    }
    match ask(server, key, &line_of(line, json))? {
        Ok(text) => print(&text, json || line.split_whitespace().any(|word| word == "--json"))?,
        Err(reason) => {
            remark(format_args!("{}", printable_lines(&reason).join("\n")));
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the server says that may be typed; nothing, if it says that in another way.
fn known(server: &str, key: &ShownKey) -> Result<Known, String> {
    let said = ask(server, key, "help --json")?;
    Ok(said.ok().and_then(|object| serde_json::from_str(&object).ok()).unwrap_or_default())
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
        _ => Err(admin_port::strange_answer(server, status, "POST /console")),
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
