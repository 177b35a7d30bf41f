//! A settings file as parsed: every key and value with its place, so that a mistake can name its line.
//!
//! serde stops at its first error and knows no lines of a table it was handed in pieces. Here a section is first
//! read whole; only when that fails is it read key by key, so that each wrong key tells its own mistake.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::mistake::{Mistake, SettingsError, nearest};
use super::section::{Checks, Section, keys_of};

type Key<'t> = Spanned<Cow<'t, str>>;
type Table<'t> = DeTable<'t>;

/// A section that is named by what it is about, and the keys that stand in it.
pub(crate) struct Named<T> {
    /// Of the known name that it means.
    pub index: usize,
    pub section: T,
    /// Where each key stands, to say something of it once all is read: mistakes without a message.
    pub keys: Vec<Mistake>,
}

pub(crate) struct Document<'t> {
    file: &'t str,
    text: &'t str,
    root: Table<'t>,
}

impl<'t> Document<'t> {
    pub(crate) fn parse(file: &'t str, text: &'t str) -> Result<Self, SettingsError> {
        let (root, errors) = DeTable::parse_recoverable(text);
        let document = Self { file, text, root: root.into_inner() };
        let mistakes = errors.iter().map(|error| document.syntax_mistake(error)).collect();
        SettingsError::unless_empty(mistakes)?;
        Ok(document)
    }

    /// Says which of the file's sections are not ours. In a known name, [`ANY_NAME`] stands for any name.
    pub(crate) fn check_sections(&self, known: &[&str], mistakes: &mut Vec<Mistake>) {
        self.check_sections_in(("", ""), &self.root, known, mistakes);
    }

    /// As [`Self::check_sections`], for a table that holds sections; `parent` is its own dotted name, as written and as
    /// known.
    fn check_sections_in(&self, parent: (&str, &str), table: &Table<'t>, known: &[&str], mistakes: &mut Vec<Mistake>) {
        let within = |parent: &str, name: &str| {
            if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
        };
        for (key, value) in table.iter() {
            let key_name: &str = key.get_ref();
            let written = within(parent.0, key_name);
            let holds = |name: &str| known.iter().any(|known| is_part_of(known, name));
            let (itself, any) = (within(parent.1, key_name), within(parent.1, ANY_NAME));
            let is_any = !known.contains(&&*itself) && !holds(&itself) && holds(&any) && holds_tables(value.get_ref());
            let name = if is_any { any } else { itself };
            let holds_sections = holds(&name);
            match value.get_ref().as_table() {
                Some(sections) if holds_sections => {
                    self.check_sections_in((&written, &name), sections, known, mistakes);
                }
                Some(_) if known.contains(&&*name) => {}
                Some(_) => {
                    let message = match nearest(&name, known.iter().copied()) {
                        Some(meant) => {
                            let here = meant.strip_prefix(parent.1).map(|rest| format!("{}{rest}", parent.0));
                            format!("unknown section; did you mean [{}]?", here.as_deref().unwrap_or(meant))
                        }
                        None => format!("unknown section; there are {}", bracketed(known)),
                    };
                    mistakes.push(self.mistake(key.span(), &written, "", message));
                }
                None => {
                    let message = if known.contains(&&*name) {
                        format!("is a section; write [{written}]")
                    } else if holds_sections {
                        let parts: Vec<_> = known.iter().copied().filter(|known| is_part_of(known, &name)).collect();
                        format!("holds sections; write one of {}", bracketed(&parts))
                    } else {
                        format!("unknown key outside any section; put it below one of {}", bracketed(known))
                    };
                    mistakes.push(self.mistake(key.span(), parent.0, key_name, message));
                }
            }
        }
    }

    /// The table of a section and its place; dots in the name lead into tables within tables.
    fn table(&self, name: &str) -> Option<(&Key<'t>, &Spanned<DeValue<'t>>, &Table<'t>)> {
        let (mut table, mut found) = (&self.root, None);
        for part in name.split('.') {
            let (key, value) = table.iter().find(|(key, _)| key.get_ref() == part)?;
            table = value.get_ref().as_table()?;
            found = Some((key, value, table));
        }
        found
    }

    /// The section `name` as a `T`, default where it says nothing. What is wrong goes to `mistakes`, and the
    /// value is then of no use.
    pub(crate) fn section<T: Section>(&self, name: &str, mistakes: &mut Vec<Mistake>) -> T {
        let Some((key, value, table)) = self.table(name) else { return T::default() };
        self.read_section(name, key.span(), value.span(), table, mistakes)
    }

    /// The sections `parent.NAME.last`, whatever the name, each with its name and place.
    pub(crate) fn sections_of_any_name<T: Section>(
        &self,
        parent: &str,
        last: &str,
        mistakes: &mut Vec<Mistake>,
    ) -> Vec<(String, Range<usize>, T)> {
        let Some((_, _, table)) = self.table(parent) else { return Vec::new() };
        let mut found = Vec::new();
        for (key, value) in table.iter().filter(|(_, value)| holds_tables(value.get_ref())) {
            let sections = value.get_ref().as_table().into_iter().flat_map(|sections| sections.iter());
            for (last_key, section) in sections.filter(|(key, _)| key.get_ref() == last) {
                let Some(keys) = section.get_ref().as_table() else { continue };
                let name = key.get_ref().to_string();
                let shown = format!("{parent}.{name}.{last}");
                let section = self.read_section(&shown, last_key.span(), section.span(), keys, mistakes);
                found.push((name, key.span(), section));
            }
        }
        found
    }

    /// Where a key of a section stands, to say something of it once all is read: a mistake without a message. `None` if
    /// it is not written.
    pub(crate) fn key(&self, section: &str, key: &str) -> Option<Mistake> {
        let (_, _, table) = self.table(section)?;
        let written = table.keys().find(|written| written.get_ref() == key)?;
        Some(self.mistake(written.span(), section, key, String::new()))
    }

    /// The keys that are written, each with its section before it; a list of sections is one key.
    pub(crate) fn written_keys(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![(String::new(), &self.root)];
        while let Some((before, table)) = open.pop() {
            for (key, value) in table.iter() {
                let name =
                    if before.is_empty() { key.get_ref().to_string() } else { format!("{before}.{}", key.get_ref()) };
                match value.get_ref().as_table() {
                    Some(section) => open.push((name, section)),
                    None => found.push(name),
                }
            }
        }
        found
    }

    /// The sections below `parent` that are named by what they are about, such as `[events."chat.say"]`, each with the
    /// index in `known` of what it names. `is_name` says whether a written name means a known one. A name's dots may
    /// stand in quotes or lead into tables within tables. `what` is what the names are of.
    pub(crate) fn named_sections<T: Section>(
        &self,
        parent: &str,
        what: &str,
        known: &[&str],
        is_name: fn(&str, &str) -> bool,
        mistakes: &mut Vec<Mistake>,
    ) -> Vec<Named<T>> {
        let Some((_, _, table)) = self.table(parent) else { return Vec::new() };
        let mut found: Vec<Named<T>> = Vec::new();
        let mut shown_as: Vec<String> = Vec::new();
        let mut open = vec![(String::new(), table)];
        while let Some((before, table)) = open.pop() {
            for (key, value) in table.iter() {
                let name =
                    if before.is_empty() { key.get_ref().to_string() } else { format!("{before}.{}", key.get_ref()) };
                let shown =
                    if name.contains('.') { format!("{parent}.\"{name}\"") } else { format!("{parent}.{name}") };
                let index = known.iter().position(|known| is_name(&name, known));
                let leads_on = known.iter().any(|known| {
                    let mut ends = known.match_indices('.');
                    ends.any(|(end, _)| is_name(&name, &known[..end]))
                });
                match (value.get_ref().as_table(), index) {
                    (Some(section), Some(index)) => {
                        let place = |key: &Key<'t>| self.mistake(key.span(), &shown, key.get_ref(), String::new());
                        let keys = section.keys().map(place).collect();
                        let section = self.read_section(&shown, key.span(), value.span(), section, mistakes);
                        if let Some(same) = found.iter().position(|other| other.index == index) {
                            let message = format!("is the same {what} as [{}]; put all keys into one", shown_as[same]);
                            mistakes.push(self.mistake(key.span(), &shown, "", message));
                        }
                        found.push(Named { index, section, keys });
                        shown_as.push(shown);
                    }
                    (Some(tables), None) if leads_on => open.push((name, tables)),
                    (Some(_), None) => {
                        let message = unknown_name(what, &name, known);
                        mistakes.push(self.mistake(key.span(), &shown, "", message));
                    }
                    (None, _) => {
                        let message =
                            format!("holds a section for each {what}; write [{parent}.NAME] and the key below it");
                        mistakes.push(self.mistake(key.span(), parent, &name, message));
                    }
                }
            }
        }
        found
    }

    /// The list of sections that `[[name]]` makes, each with its place; none if there is no such key.
    pub(crate) fn listed_sections<T: Section>(
        &self,
        name: &str,
        mistakes: &mut Vec<Mistake>,
    ) -> Option<Vec<(Range<usize>, T)>> {
        let (parent, last) = name.rsplit_once('.').unwrap_or(("", name));
        let table = if parent.is_empty() { &self.root } else { self.table(parent)?.2 };
        let (key, value) = table.iter().find(|(key, _)| key.get_ref() == last)?;
        let shown = format!("[{name}]");
        let mut found = Vec::new();
        let mut is_list = false;
        if let DeValue::Array(items) = value.get_ref() {
            is_list = true;
            for item in items.iter() {
                match item.get_ref().as_table() {
                    Some(section) => {
                        let span =
                            section.keys().map(Spanned::span).min_by_key(|span| span.start).unwrap_or(item.span());
                        let section = self.read_section(&shown, span.clone(), item.span(), section, mistakes);
                        found.push((span, section));
                    }
                    None => is_list = false,
                }
            }
        }
        if !is_list {
            mistakes.push(self.mistake(key.span(), parent, last, format!("is a list of sections; write [[{name}]]")));
        }
        Some(found)
    }

    fn read_section<T: Section>(
        &self,
        name: &str,
        header: Range<usize>,
        place: Range<usize>,
        table: &Table<'t>,
        mistakes: &mut Vec<Mistake>,
    ) -> T {
        let known_only = self.known_keys(name, table, keys_of::<T>(), mistakes);
        let (value, whole) = match read::<T>(known_only.clone(), place.clone()) {
            Ok(value) => (value, true),
            Err(error) => {
                let wrong = |table: Table<'t>, span| read::<T>(table, span).err();
                let well_typed = self.well_typed_keys(name, header.clone(), known_only, &error, &wrong, mistakes);
                match read::<T>(well_typed, place) {
                    Ok(value) => (value, false),
                    Err(_) => return T::default(),
                }
            }
        };
        value.check(&mut Checks::new(self, name, header, table, whole, mistakes));
        value
    }

    /// Adds to "unknown key" the section that does have it.
    pub(crate) fn point_to_right_section(
        &self,
        sections: &[(&str, Option<&'static [&'static str]>)],
        mistakes: &mut [Mistake],
    ) {
        for mistake in mistakes.iter_mut().filter(|mistake| mistake.message.starts_with(UNKNOWN_KEY)) {
            let home = sections.iter().find(|(name, keys)| {
                *name != mistake.section && keys.is_some_and(|keys| keys.contains(&mistake.key.as_str()))
            });
            if let Some((name, _)) = home {
                mistake.message = format!("{UNKNOWN_KEY} here; it belongs in [{name}]");
            }
        }
    }

    pub(crate) fn mistake(&self, span: Range<usize>, section: &str, key: &str, message: String) -> Mistake {
        Mistake {
            file: self.file.to_owned(),
            line: self.line(span.start),
            section: section.to_owned(),
            key: key.to_owned(),
            message,
        }
    }

    /// The keys that the section's type knows; notes the others. All if it takes any.
    fn known_keys(
        &self,
        section: &str,
        table: &Table<'t>,
        known: Option<&[&str]>,
        mistakes: &mut Vec<Mistake>,
    ) -> Table<'t> {
        let Some(known) = known else { return table.clone() };
        let mut known_only = Table::new();
        for (key, value) in table.iter() {
            if known.contains(&&**key.get_ref()) {
                known_only.insert(key.clone(), value.clone());
                continue;
            }
            let hint = match nearest(key.get_ref(), known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if known.is_empty() => "this section has none; remove it".to_owned(),
                None => format!("known are {}", known.join(", ")),
            };
            mistakes.push(self.mistake(key.span(), section, key.get_ref(), format!("{UNKNOWN_KEY}; {hint}")));
        }
        known_only
    }

    /// Each key on its own, so that all the wrong ones are found and not only the first. Returns the others. `read` says
    /// what is wrong with a table of some keys; `whole` is what it said of all, and is told if no key is wrong on its own.
    fn well_typed_keys(
        &self,
        section: &str,
        header: Range<usize>,
        table: Table<'t>,
        whole: &toml::de::Error,
        read: &dyn Fn(Table<'t>, Range<usize>) -> Option<toml::de::Error>,
        mistakes: &mut Vec<Mistake>,
    ) -> Table<'t> {
        let mut well_typed = Table::new();
        let count_before = mistakes.len();
        for (key, value) in table {
            let alone: Table<'t> = std::iter::once((key.clone(), value.clone())).collect();
            match read(alone, value.span()) {
                // A type without defaults misses the other keys when it is shown one; that is not this key's fault.
                Some(error) if !error.message().starts_with("missing field") => {
                    let span = error.span().unwrap_or(value.span());
                    mistakes.push(self.mistake(span, section, key.get_ref(), plain(error.message())));
                }
                _ => {
                    well_typed.insert(key, value);
                }
            }
        }
        if mistakes.len() == count_before {
            let span = whole.span().unwrap_or(header);
            mistakes.push(self.mistake(span, section, "", plain(whole.message())));
        }
        well_typed
    }

    fn syntax_mistake(&self, error: &toml::de::Error) -> Mistake {
        let span = error.span().unwrap_or(0..0);
        let word = self.text.get(span.clone()).unwrap_or("").trim();
        let message = match error.message() {
            "duplicate key" => format!("`{word}` is given twice; remove one of them"),
            other => format!("not TOML: {other}"),
        };
        self.mistake(span, "", "", message)
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count()
    }
}

const UNKNOWN_KEY: &str = "unknown key";

/// In the name of a known section: a name that stands in its place is the file's to choose.
pub(crate) const ANY_NAME: &str = "KIND";

/// A table that holds nothing but tables.
fn holds_tables(value: &DeValue<'_>) -> bool {
    value.as_table().is_some_and(|table| !table.is_empty() && table.values().all(|value| value.get_ref().is_table()))
}

/// Its code is as long as the type has fields, and it is called from three places.
#[inline(never)]
fn read<'t, T: Section>(table: Table<'t>, span: Range<usize>) -> Result<T, toml::de::Error> {
    T::deserialize(ValueDeserializer::from(Spanned::new(span, DeValue::Table(table))))
}

/// `triggers.frame` is part of `triggers`.
fn is_part_of(section: &str, parent: &str) -> bool {
    section.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'))
}

pub(crate) fn unknown_name(what: &str, written: &str, known: &[&str]) -> String {
    match nearest(written, known.iter().copied()) {
        Some(meant) => format!("the game has no such {what}; did you mean \"{meant}\"?"),
        None if known.is_empty() => format!("the game has no {what} at all; remove it"),
        None => format!("the game has no such {what}; there are {}", known.join(", ")),
    }
}

fn bracketed(names: &[&str]) -> String {
    names.iter().map(|name| format!("[{name}]")).collect::<Vec<_>>().join(", ")
}

/// serde's words in an operator's: "invalid type: string "x", expected u16" says nothing to somebody who does not
/// write Rust.
fn plain(message: &str) -> String {
    let Some((found, expected)) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.split_once(", expected "))
    else {
        return message.to_owned();
    };
    format!("must be {}, not {}", plain_expected(expected), plain_found(found))
}

fn plain_expected(expected: &str) -> &str {
    match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" | "u128" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "isize" | "i128" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "text in quotes",
        "path string" => "a path in quotes",
        "a sequence" => "a list in brackets",
        "a map" => "a table",
        other => other,
    }
}

fn plain_found(found: &str) -> String {
    let bare = |rest: &str| rest.trim_matches('`').to_owned();
    for kind in ["integer ", "floating point ", "boolean ", "string "] {
        if let Some(rest) = found.strip_prefix(kind) {
            return bare(rest);
        }
    }
    match found {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        other => other.to_owned(),
    }
}
