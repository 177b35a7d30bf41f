//! `throng crash`: what servers died of.
//!
//! Reports may come from strangers, so nothing of one reaches the terminal unescaped.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use throng::text_table::{Cell, Column, TextTable};
use throng_capture::story::printable_date;
use throng_crash::deaths::{self, Deaths};

use crate::outcome::{CommandResult, Verdict};

#[derive(Args)]
pub struct CrashArguments {
    #[command(subcommand)]
    command: CrashCommand,
}

#[derive(Subcommand)]
enum CrashCommand {
    /// The deaths of a folder, equal ones together: how many, from when to when, and in which builds.
    List(ListArguments),
}

#[derive(Args)]
struct ListArguments {
    /// The folder that servers leave crash reports in.
    folder: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &CrashArguments) -> CommandResult {
    let CrashCommand::List(ListArguments { folder, json }) = &arguments.command;
    let deaths = deaths::in_folder(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if *json {
        writeln!(out, "{}", serde_json::to_string(&deaths)?)
    } else {
        write_table(&deaths, folder, &mut out)
    };
    match written.and_then(|()| out.flush()) {
        // Whoever read the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Verdict::Fine),
        written => Ok(written.map(|()| Verdict::Fine)?),
    }
}

fn write_table(deaths: &Deaths, folder: &Path, out: &mut impl Write) -> io::Result<()> {
    if deaths.groups.is_empty() && deaths.broken.is_empty() {
        return writeln!(out, "no deaths in {}", folder.display());
    }
    let mut table = TextTable::new([
        Column::integer("count", "count"),
        Column::text("first", "first"),
        Column::text("last", "last"),
        Column::text("signature", "signature"),
        Column::text("builds", "builds"),
        Column::text("newest", "newest"),
    ]);
    for group in &deaths.groups {
        let [first, last] = [group.first_unix_s, group.last_unix_s].map(printable_date);
        let (builds, newest) = (group.builds.join(", "), group.newest.display().to_string());
        let texts = [&first, &last, &group.signature, &builds, &newest].map(|text| Cell::Text(text));
        let [first, last, signature, builds, newest] = texts;
        table.row(&[Cell::Integer(group.count as i64), first, last, signature, builds, newest]);
    }
    if table.row_count() > 0 {
        out.write_all(table.text().as_bytes())?;
    }
    for (file, error) in &deaths.broken {
        writeln!(out, "cannot be read: {}: {error}", file.display())?;
    }
    Ok(())
}
