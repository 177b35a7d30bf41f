//! `throng saves`: the saves of a server that does not run, for an operator. The work is `throng::saves::offline`'s and the
//! store's; here it is told.
//!
//! Nothing is written. What is in a value the games of this executable say ([`Game::saves`]); a record of another program's
//! is told by the numbers in its envelope.
//!
//! What players wrote may be in a world's name, so it is escaped for the terminal.

use std::{collections::BTreeMap, path::PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use throng::{
    pack::envelope::Envelope,
    saves::offline::{Contents, Inspection, Key, Kind, Opened, Place, SavedAt, inspect},
    settings::{AnySection, Settings},
    text_table::{Cell, Column, TextTable},
};
use throng_capture::story::printable_text;
use throng_game::{Game, Judged, SavedType};

use crate::{
    outcome::{CommandResult, Verdict},
    output::say,
};

/// What a world's checkpoint begins with (`docs/spec/checkpoint.md`).
const CHECKPOINT: &[u8] = b"throngcp";

/// Keys of records that are named one by one; the JSON has as many.
const NAMED_MAX: usize = 100;

#[derive(Args)]
pub struct SavesArguments {
    #[command(subcommand)]
    command: SavesCommand,
}

#[derive(Subcommand)]
enum SavesCommand {
    /// Reads everything, verifies every checksum, counts records by kind and items against what was created and destroyed.
    /// Exit status 1 if anything is damaged, cannot be read by this build, or does not add up.
    Check(CheckArguments),
    /// One record: of which type and version it is, and how large.
    Show(ShowArguments),
}

#[derive(Args)]
struct At {
    /// Settings (a file that ends in .toml), a file of saves, or the folder that one is in. Without it `throng.toml` in the
    /// folder that the command is started in. A file must not be a running server's; PostgreSQL may be in use.
    #[arg(value_name = "FOLDER_OR_SETTINGS")]
    at: Option<PathBuf>,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct CheckArguments {
    #[command(flatten)]
    at: At,
}

#[derive(Args)]
struct ShowArguments {
    /// player:NUMBER, left_out:NUMBER, world:NUMBER, or cell:WORLD:NUMBER.
    key: Key,
    #[command(flatten)]
    at: At,
}

pub fn run(arguments: SavesArguments, games: &[Game]) -> CommandResult {
    // The code that reads a damaged file may panic over it. That is caught, and told as an error.
    std::panic::set_hook(Box::new(|_| {}));
    let types: Vec<&SavedType> = games.iter().flat_map(Game::saved_types).collect();
    match arguments.command {
        SavesCommand::Check(CheckArguments { at }) => check(&at, &types),
        SavesCommand::Show(ShowArguments { key, at }) => show(key, &at, &types),
    }
}

impl At {
    fn find(&self) -> Result<SavedAt, Box<dyn std::error::Error>> {
        let is_settings = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml");
        if let Some(path) = self.at.as_ref().filter(|path| !is_settings(path)) {
            return Ok(SavedAt::at(path));
        }
        let (settings, _) = Settings::find::<AnySection>(self.at.as_deref())?;
        let nowhere =
            || format!("a server with these settings keeps no saves ({}): name a folder or a file", settings.source());
        Ok(SavedAt::of(&settings).ok_or_else(nowhere)?)
    }

    fn open(&self) -> Result<(String, Opened), Box<dyn std::error::Error>> {
        let at = self.find()?;
        let name = match &at {
            SavedAt::File(path) => path.display().to_string(),
            // Its parameters may have a password.
            SavedAt::Postgres(_) => "PostgreSQL".to_owned(),
        };
        Ok((name, at.open()?))
    }
}

/// What the values turned out to be, beside what the store says of its records.
#[derive(Default)]
struct Types {
    /// Records of each type, by name or number.
    count: BTreeMap<String, u64>,
    /// Records whose items were not counted: of types or versions that nobody here looks into.
    uncounted: u64,
}

fn check(at: &At, types: &[&SavedType]) -> CommandResult {
    let (name, Opened { reads, pages }) = at.open()?;
    let mut found = Types::default();
    let inspection = inspect(&*reads, |key, value, items| {
        let contents = Contents::of(key, value)?;
        if contents.place == Place::LeftOut {
            return Ok(());
        }
        let of = contents.envelope.as_ref().and_then(|envelope| types.iter().find(|it| it.holds(envelope)));
        *found.count.entry(name_of(&contents, of.copied())).or_default() += 1;
        let judged = contents.envelope.zip(of).map(|(envelope, of)| of.judge(&envelope, items));
        match judged {
            Some(Judged::Read) => {}
            Some(Judged::Refused(why)) => return Err(why),
            Some(Judged::Older) | None => found.uncounted += 1,
        }
        Ok(())
    });
    let inspection = match inspection {
        Ok(inspection) => inspection,
        // Then its pages have been told to be damaged, and not even what is whole can be found.
        Err(error) => return Err(format!("{name}: cannot be read to its end: {error}").into()),
    };
    let is_counted = found.uncounted == 0;
    let differences = if is_counted { inspection.count.differences() } else { Vec::new() };
    let is_fine = pages.is_ok() && inspection.is_whole() && inspection.refused.is_empty() && differences.is_empty();
    if at.json {
        let pages = pages.as_ref().err().map(ToString::to_string);
        say(to_json(&name, &inspection, &found, pages, is_fine))?;
    } else {
        say(to_text(&name, &inspection, &found, pages.err().map(|error| error.to_string()), is_fine).trim_end())?;
    }
    Ok(if is_fine { Verdict::Fine } else { Verdict::Failed })
}

/// Of a record's type: its name where a game here knows it, else its number.
fn name_of(contents: &Contents<'_>, of: Option<&SavedType>) -> String {
    match (&contents.envelope, of) {
        (_, Some(of)) => of.name().to_owned(),
        (Some(envelope), None) => format!("{:016x}", envelope.type_id),
        (None, None) if contents.value.starts_with(CHECKPOINT) => "a checkpoint".to_owned(),
        (None, None) => "without a type".to_owned(),
    }
}

fn to_json(name: &str, inspection: &Inspection, found: &Types, pages: Option<String>, is_fine: bool) -> Value {
    let keys = |keys: &[Key]| -> Vec<String> { keys.iter().take(NAMED_MAX).map(ToString::to_string).collect() };
    let kinds = inspection.kinds.iter().map(|(kind, of)| {
        let figures = json!({"records": of.records, "bytes": of.bytes, "largest_bytes": of.largest_bytes});
        (kind.name().to_owned(), figures)
    });
    let count = &inspection.count;
    let refused =
        inspection.refused.iter().take(NAMED_MAX).map(|(key, why)| json!({"key": key.to_string(), "error": why}));
    let is_counted = found.uncounted == 0;
    let items = items(inspection).into_iter().map(|(kind, held, created)| {
        json!({"kind": kind, "held": is_counted.then_some(held), "created_less_destroyed": created})
    });
    json!({
        "passed": is_fine,
        "saves": name,
        "pages_error": pages,
        "records": count.records - count.unreadable.len() as u64,
        "kinds": kinds.collect::<serde_json::Map<_, _>>(),
        "types": found.count,
        "damaged": count.unreadable.len(),
        "damaged_keys": keys(&count.unreadable),
        "fallen_back": count.fallen_back.len(),
        "fallen_back_keys": keys(&count.fallen_back),
        "refused": inspection.refused.len(),
        "refused_keys": refused.collect::<Vec<_>>(),
        "items": items.collect::<Vec<_>>(),
        "records_uncounted": found.uncounted,
        "left_out": count.left_out.len(),
        "left_out_keys": keys(&count.left_out.iter().copied().collect::<Vec<_>>()),
    })
}

/// Each kind of item: how many all records hold, and how many there should be.
fn items(inspection: &Inspection) -> Vec<(u32, i64, i64)> {
    let count = &inspection.count;
    let kinds: std::collections::BTreeSet<u32> = count.held.keys().chain(count.balances.keys()).copied().collect();
    let of = |counts: &BTreeMap<u32, i64>, kind| counts.get(&kind).copied().unwrap_or_default();
    kinds.into_iter().map(|kind| (kind, of(&count.held, kind), of(&count.balances, kind))).collect()
}

fn to_text(name: &str, inspection: &Inspection, found: &Types, pages: Option<String>, is_fine: bool) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let mut line = |text: String| _ = writeln!(out, "{text}");
    line(format!("{name}: {}", if is_fine { "whole" } else { "NOT as it was written, or not to be read" }));
    if let Some(error) = pages {
        line(format!("FAIL its pages: {error}"));
    }
    let mut table = TextTable::new([
        Column::text("kind", "kind"),
        Column::integer("records", "records"),
        Column::integer("bytes", "bytes"),
        Column::integer("largest", "largest_bytes"),
    ]);
    for kind in Kind::ALL {
        let of = inspection.kinds.get(&kind).copied().unwrap_or_default();
        let [records, bytes, largest] =
            [of.records, of.bytes, of.largest_bytes].map(|count| Cell::Integer(count.cast_signed()));
        table.row(&[Cell::Text(kind.name()), records, bytes, largest]);
    }
    line(table.text().trim_end().to_owned());
    for (of, records) in &found.count {
        line(format!("type {of}: {records} records"));
    }
    let count = &inspection.count;
    let mut named = |what: &str, keys: &[Key]| {
        if !keys.is_empty() {
            let names: Vec<String> = keys.iter().take(NAMED_MAX).map(ToString::to_string).collect();
            let more = if keys.len() > names.len() { ", ..." } else { "" };
            line(format!("FAIL {} {what}: {}{more}", keys.len(), names.join(", ")));
        }
    };
    named("damaged, and so is the one before each", &count.unreadable);
    named("damaged; the one before each is read instead", &count.fallen_back);
    for (key, why) in inspection.refused.iter().take(NAMED_MAX) {
        line(format!("FAIL {key} cannot be read by this build: {}", printable_text(why)));
    }
    if found.uncounted > 0 {
        line(format!(
            "note {} records are of types that no game of this executable says it saves: items are not counted",
            found.uncounted
        ));
    }
    if !count.left_out.is_empty() {
        let names: Vec<String> = count.left_out.iter().take(NAMED_MAX).map(ToString::to_string).collect();
        let more = if count.left_out.len() > names.len() { ", ..." } else { "" };
        line(format!(
            "note {} records are older than the rest, and items in them are not counted: {}{more}",
            count.left_out.len(),
            names.join(", ")
        ));
    }
    for (kind, held, created) in items(inspection) {
        let held = if found.uncounted > 0 { "not counted".to_owned() } else { held.to_string() };
        let mark = if found.uncounted == 0 && held != created.to_string() { "FAIL " } else { "" };
        line(format!("{mark}items of kind {kind}: {held} in all records, {created} created and not destroyed"));
    }
    out
}

fn show(key: Key, at: &At, types: &[&SavedType]) -> CommandResult {
    let (name, Opened { reads, pages: _ }) = at.open()?;
    let saved = reads.get(key)?.ok_or_else(|| format!("{name}: there is no record of {key}"))?;
    let contents = Contents::of(key, &saved.value).map_err(|why| format!("{name}: {key}: {why}"))?;
    let of = contents.envelope.as_ref().and_then(|envelope| types.iter().find(|it| it.holds(envelope))).copied();
    let (mut items, mut refused) = (Vec::new(), None);
    if let Some((envelope, of)) = contents.envelope.zip(of)
        && let Judged::Refused(why) = of.judge(&envelope, &mut |kind, count| items.push((kind, count)))
    {
        refused = Some(why);
    }
    let (world, kind) = match &contents.place {
        Place::InWorld(world) => (*world, None),
        Place::OfKind(kind) => (None, Some(printable_text(kind))),
        Place::Cell | Place::LeftOut => (None, None),
    };
    let envelope = contents.envelope;
    let of_envelope = |of: fn(&Envelope<'_>) -> u64| envelope.as_ref().map(of);
    let facts = [
        ("key", json!(key.to_string())),
        ("is_previous", json!(saved.is_previous)),
        ("world", json!(world)),
        ("kind", json!(kind)),
        ("type", json!(name_of(&contents, of))),
        ("version", json!(of_envelope(|it| it.version.into()))),
        ("layout", json!(envelope.map(|it| format!("{:016x}", it.layout)))),
        ("record_bytes", json!(saved.value.len())),
        ("value_bytes", json!(envelope.map_or(contents.value.len(), |it| it.value().len()))),
        ("items", json!(items)),
        ("error", json!(refused)),
    ];
    if at.json {
        let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), value));
        let object: serde_json::Map<_, _> = facts.collect();
        say(Value::Object(object))?;
    } else {
        for (name, value) in facts.iter().filter(|(_, value)| !value.is_null()) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            say(format!("{name:<13} {value}"))?;
        }
    }
    Ok(if saved.is_previous || refused.is_some() { Verdict::Failed } else { Verdict::Fine })
}
