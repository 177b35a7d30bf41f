//! `throng capture list`: what a recorder has kept.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use clap::Args;
use serde::Serialize;
use throng::text_table::{Cell, Column, TextTable};
use throng_capture::{
    format::Summary,
    story::{printable_date, printable_name, printable_text},
};

use super::file;
use crate::outcome::{CommandResult, Verdict};

#[derive(Args)]
pub struct ListArguments {
    /// The folder that the server saves captures in, or one inside.
    folder: PathBuf,
    /// Only the captures in this folder inside, such as `scope` or `scope/ai.think@hideout`.
    #[arg(long = "folder", value_name = "NAME")]
    only: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A file that may be a capture.
#[derive(Serialize)]
struct Entry {
    file: PathBuf,
    /// Inside the one that was asked for: what tripped which trigger in which kind of world.
    folder: String,
    bytes: u64,
    /// When it was saved; of files that cannot be read, when they were written.
    saved_unix_s: u64,
    #[serde(flatten)]
    content: Content,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Capture {
        trigger: &'static str,
        name: String,
        world: Option<u32>,
        world_name: Option<String>,
        frame: u64,
        measured: u64,
        allowed: u64,
    },
    Broken {
        error: String,
    },
}

pub fn run(arguments: &ListArguments) -> CommandResult {
    let mut entries = Vec::new();
    let root = &arguments.folder;
    for path in files(root).map_err(|error| format!("{}: {error}", root.display()))? {
        let inside = path.parent().and_then(|folder| folder.strip_prefix(root).ok()).unwrap_or(Path::new(""));
        if arguments.only.as_ref().is_some_and(|only| !inside.starts_with(only)) {
            continue;
        }
        let folder = if inside == Path::new("") { ".".into() } else { printable_text(&inside.to_string_lossy()) };
        // The recorder may have deleted it to keep its disk budget since the folder was read.
        let Ok(about_file) = std::fs::metadata(&path) else { continue };
        let written = about_file.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let written_unix_s = written.map_or(0, |since| since.as_secs());
        let (saved_unix_s, content) = match file::summary(&path) {
            Ok(summary) => (summary.about.saved_unix_s, content(&summary)),
            Err(error) => (written_unix_s, Content::Broken { error }),
        };
        entries.push(Entry { file: path, folder, bytes: about_file.len(), saved_unix_s, content });
    }
    entries.sort_by(|a, b| (a.saved_unix_s, &a.file).cmp(&(b.saved_unix_s, &b.file)));
    let mut out = BufWriter::new(io::stdout().lock());
    if arguments.json {
        writeln!(out, "{}", serde_json::json!({ "captures": entries }))?;
    } else {
        write_table(&entries, &arguments.folder, &mut out)?;
    }
    out.flush()?;
    Ok(Verdict::Fine)
}

/// Folders in each other: of captures, of a trigger, of a cause.
const FOLDERS_DEEP: usize = 3;

/// The captures in a folder, in its folders of triggers and in theirs of causes.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    for depth in 0..FOLDERS_DEEP {
        for folder in std::mem::take(&mut open) {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if depth == 0 => return Err(error),
                // One folder that may not be read hides the others as little as one broken file does.
                Err(_) => continue,
            };
            for path in entries.flatten().map(|entry| entry.path()) {
                if path.is_dir() {
                    open.push(path);
                } else if path.is_file() && path.extension().is_some_and(|extension| extension == "capture") {
                    // A pipe of that name would be waited for.
                    files.push(path);
                }
            }
        }
    }
    Ok(files)
}

fn content(Summary { about, world }: &Summary) -> Content {
    let trigger = &about.trigger;
    Content::Capture {
        trigger: trigger.kind.name(),
        name: if trigger.name.is_empty() { String::new() } else { printable_name(&trigger.name) },
        world: trigger.world,
        world_name: world.as_ref().map(|world| printable_name(&world.name)),
        frame: about.frame,
        measured: trigger.measured,
        allowed: trigger.allowed,
    }
}

fn write_table(entries: &[Entry], folder: &Path, out: &mut impl Write) -> io::Result<()> {
    if entries.is_empty() {
        return writeln!(out, "no captures in {}", folder.display());
    }
    let mut table = TextTable::new([
        Column::text("saved", "saved"),
        Column::text("folder", "folder"),
        Column::text("name", "name"),
        Column::text("world", "world"),
        Column::integer("frame", "frame"),
        Column::float("kB", "kB", 1),
        Column::text("file", "file"),
    ]);
    for entry in entries {
        let saved = printable_date(entry.saved_unix_s);
        let [saved, folder] = [Cell::Text(&saved), Cell::Text(&entry.folder)];
        let kilobytes = Cell::Float(entry.bytes as f64 / 1e3);
        match &entry.content {
            Content::Capture { name, world, world_name, frame, .. } => {
                let world = match (world, world_name) {
                    (Some(world), Some(name)) => format!("{world} ({name})"),
                    (Some(world), None) => world.to_string(),
                    (None, _) => String::new(),
                };
                let file = entry.file.display().to_string();
                let frame = Cell::Integer(frame.cast_signed());
                table.row(&[saved, folder, Cell::Text(name), Cell::Text(&world), frame, kilobytes, Cell::Text(&file)]);
            }
            // The error begins with the file's name.
            Content::Broken { error } => {
                let name = Cell::Text("cannot be read");
                table.row(&[saved, folder, name, Cell::Empty, Cell::Empty, kilobytes, Cell::Text(error)]);
            }
        }
    }
    out.write_all(table.text().as_bytes())
}
