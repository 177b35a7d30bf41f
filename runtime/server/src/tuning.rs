//! Tuning: the tunables of a server's worlds, what holds for each, and how it is changed.
//!
//! What holds at first is the key of its name in `[game]` of the settings, or its default. A change is checked, logged
//! with old and new value and by whom, and sent to all worlds as mail by the frame's thread, so that each has it with its
//! next tick. The truth is here, behind a lock that the frame's thread never takes: an operator's thread changes a copy
//! and hands it over.
//!
//! Cost: a lock and some kilobytes of copies for a change; nothing between changes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, de::IgnoredAny};
use throng_profiler::{log_category, log_every};
use throng_world::tunable::{self, AnyTunable, TunedValues};

use crate::settings::{self, Mistake, SettingsError, document::Document, nearest_name};

log_category!(TUNING = "server.tuning");

/// A tunable and what holds for it.
#[derive(Debug, Clone, PartialEq)]
pub struct TunableRow {
    pub name: &'static str,
    pub value: f64,
    pub default: f64,
    pub low: f64,
    pub high: f64,
    pub unit: &'static str,
    pub help: &'static str,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct TunedChange {
    pub name: &'static str,
    pub unit: &'static str,
    pub old: f64,
    pub new: f64,
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TuneError {
    #[error("{0}")]
    Unknown(String),
    /// Says what it may be.
    #[error("{name}: {reason}")]
    Value { name: &'static str, reason: String },
    #[error("this server was started without a settings file: name one with --config")]
    NoFile,
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

#[derive(Default)]
pub(crate) struct Tuning {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: Vec<&'static dyn AnyTunable>,
    values: Arc<TunedValues>,
    /// The settings' file and text; as they were read last.
    file: String,
    text: String,
}

impl Tuning {
    /// Takes what holds at first from `[game]` of these settings.
    pub fn new(file: &str, text: &str) -> Self {
        let state = State { file: file.to_owned(), text: text.to_owned(), ..State::default() };
        Self { state: Mutex::new(state) }
    }

    /// Makes tunables known, with what the settings say of them; gives the values of all.
    ///
    /// # Errors
    /// If the settings have a value that one may not have.
    ///
    /// # Panics
    /// If one is declared wrongly, or two have one name: the program's own mistake.
    pub fn add(&self, tunables: &[&'static dyn AnyTunable]) -> Result<Arc<TunedValues>, SettingsError> {
        let mut state = self.lock();
        let known_before = state.known.len();
        for tunable in tunables {
            if let Some(wrong) = tunable::wrong_with(*tunable) {
                panic!("{wrong}");
            }
            match state.find(tunable.name()) {
                // Several kinds of worlds may read one.
                Some(other) => assert!(other.number() == tunable.number(), "two tunables are `{}`", other.name()),
                None => state.known.push(*tunable),
            }
        }
        // What was known before may have been changed since.
        let new = &state.known[known_before..];
        let written = in_settings(&state.file, &state.text, new)?;
        let mut all = (*state.values).clone();
        for tunable in new {
            if let Some(value) = written.get(tunable.name()) {
                // It was checked as it was read.
                let _ = all.set(*tunable, *value);
            }
        }
        state.values = Arc::new(all);
        Ok(state.values.clone())
    }

    /// Names of all that are known, where their numbers put them; nothing where a number is nobody's.
    pub fn names_by_number(&self) -> Vec<String> {
        let state = self.lock();
        let mut names = Vec::new();
        for tunable in &state.known {
            let number = tunable.number();
            if number >= names.len() {
                names.resize(number + 1, String::new());
            }
            names[number] = tunable.name().to_owned();
        }
        names
    }

    /// The number of each of these; `None` of one that is not known.
    pub fn numbers_of(&self, names: &[String]) -> Vec<Option<usize>> {
        let state = self.lock();
        names.iter().map(|name| Some(state.find(name)?.number())).collect()
    }

    /// What holds for each, by name.
    pub fn rows(&self) -> Vec<TunableRow> {
        let state = self.lock();
        let mut rows: Vec<_> = state.known.iter().map(|tunable| row(*tunable, &state.values)).collect();
        rows.sort_by_key(|row| row.name);
        rows
    }

    /// Changes one, and has the values of all handed over before anybody else changes one.
    pub fn set(
        &self,
        name: &str,
        value: f64,
        by: &str,
        hand_over: impl FnOnce(Arc<TunedValues>),
    ) -> Result<TunedChange, TuneError> {
        let mut state = self.lock();
        let tunable = state.find(name).ok_or_else(|| TuneError::Unknown(state.unknown(name)))?;
        let changes = state.change(&[(tunable, value)], by)?;
        hand_over(state.values.clone());
        let unchanged = TunedChange { name: tunable.name(), unit: tunable.unit(), old: value, new: value };
        Ok(changes.into_iter().next().unwrap_or(unchanged))
    }

    /// Reads `[game]` of the settings' file again and puts into force what it says of tunables; those that it does not
    /// name get their defaults. All or nothing.
    pub fn reload(
        &self,
        by: &str,
        hand_over: impl FnOnce(Arc<TunedValues>),
    ) -> Result<(PathBuf, Vec<TunedChange>), TuneError> {
        let mut state = self.lock();
        let file = match state.file.as_str() {
            "" => return Err(TuneError::NoFile),
            file => PathBuf::from(file),
        };
        let text = settings::read_file(Path::new(&file), "with --config")?;
        let written = in_settings(&state.file, &text, &state.known)?;
        let wanted = |tunable: &&'static dyn AnyTunable| {
            (*tunable, written.get(tunable.name()).copied().unwrap_or_else(|| tunable.default_value()))
        };
        let wanted: Vec<_> = state.known.iter().map(wanted).collect();
        let changes = state.change(&wanted, by)?;
        hand_over(state.values.clone());
        state.text = text;
        Ok((file, changes))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Values are replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn find(&self, name: &str) -> Option<&'static dyn AnyTunable> {
        self.known.iter().find(|tunable| tunable.name() == name).copied()
    }

    fn unknown(&self, name: &str) -> String {
        let names = || self.known.iter().map(|tunable| tunable.name());
        match nearest_name(name, names()) {
            Some(meant) => format!("no tunable is called `{name}`; did you mean `{meant}`?"),
            None if self.known.is_empty() => "this game has no tunables".to_owned(),
            None => format!("no tunable is called `{name}`; there are {}", names().collect::<Vec<_>>().join(", ")),
        }
    }

    /// Changes all or none, and says what is another value than before, to the caller and to the log.
    fn change(&mut self, wanted: &[(&'static dyn AnyTunable, f64)], by: &str) -> Result<Vec<TunedChange>, TuneError> {
        let mut values = (*self.values).clone();
        let mut changes = Vec::new();
        for &(tunable, new) in wanted {
            let (name, unit, old) = (tunable.name(), tunable.unit(), values.value(tunable));
            values.set(tunable, new).map_err(|reason| TuneError::Value { name, reason })?;
            if old != new {
                changes.push(TunedChange { name, unit, old, new });
            }
        }
        for TunedChange { name, unit, old, new } in &changes {
            log_every!(TUNING, name, old, new, unit, %by, "a tunable was changed");
        }
        self.values = Arc::new(values);
        Ok(changes)
    }
}

fn row(tunable: &dyn AnyTunable, values: &TunedValues) -> TunableRow {
    TunableRow {
        name: tunable.name(),
        value: values.value(tunable),
        default: tunable.default_value(),
        low: tunable.low(),
        high: tunable.high(),
        unit: tunable.unit(),
        help: tunable.help(),
    }
}

/// The part of a settings file that tunables are in.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WithGame {
    game: BTreeMap<String, Figure>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Figure {
    Number(f64),
    /// The game's own affair, unless it has a tunable's name.
    Other(IgnoredAny),
}

/// What a settings text says of tunables, checked; mistakes with their lines.
fn in_settings(
    file: &str,
    text: &str,
    known: &[&'static dyn AnyTunable],
) -> Result<BTreeMap<&'static str, f64>, SettingsError> {
    let document = Document::parse(file, text)?;
    let WithGame { game } = toml::from_str(text).unwrap_or_default();
    let (mut values, mut mistakes) = (BTreeMap::new(), Vec::new());
    for tunable in known {
        let name = tunable.name();
        let checked = match game.get(name) {
            None => continue,
            Some(Figure::Number(value)) => tunable::check(*tunable, *value),
            Some(Figure::Other(_)) => Err("must be a number".to_owned()),
        };
        match (checked, document.key("game", name)) {
            (Ok(value), _) => _ = values.insert(name, value),
            (Err(message), Some(place)) => mistakes.push(Mistake { message, ..place }),
            // It was found, so it has a place.
            (Err(_), None) => {}
        }
    }
    SettingsError::unless_empty(mistakes)?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use throng_world::tunable::Tunable;

    use super::*;

    static SPEED: Tunable<f32> = Tunable::new("tuning.speed", 6.0, 0.5..=20.0, "m/s", "how fast");
    static SHEEP: Tunable<u16> = Tunable::new("sheep", 3, 0..=50, "", "how many");

    fn tuning(text: &str) -> Result<Tuning, SettingsError> {
        let tuning = Tuning::new("throng.toml", text);
        tuning.add(&[&SPEED, &SHEEP]).map(|_| tuning)
    }

    fn values(tuning: &Tuning) -> Vec<(&'static str, f64)> {
        tuning.rows().into_iter().map(|row| (row.name, row.value)).collect()
    }

    #[test]
    fn the_settings_say_what_holds_at_first_and_are_held_to_the_range() {
        let quoted = "[game]\nname = \"x\"\n\"tuning.speed\" = 7.5\n";
        assert_eq!(values(&tuning(quoted).unwrap()), [("sheep", 3.0), ("tuning.speed", 7.5)]);
        assert_eq!(values(&tuning("").unwrap()), [("sheep", 3.0), ("tuning.speed", 6.0)]);
        let wrong = |text: &str| tuning(text).map(|_| ()).unwrap_err().to_string();
        assert_eq!(wrong("\n[game]\nsheep = 51"), "throng.toml:3: [game] sheep: 51 is too high; it may be 0 to 50");
        assert_eq!(
            wrong("[game]\nsheep = 1.5"),
            "throng.toml:2: [game] sheep: 1.5 is not a whole number; it may be 0 to 50"
        );
        assert_eq!(wrong("[game]\nsheep = \"many\""), "throng.toml:2: [game] sheep: must be a number");
    }

    #[test]
    fn a_change_is_handed_over_with_old_and_new_and_a_wrong_one_changes_nothing() {
        let tuning = tuning("").unwrap();
        let set = |name: &str, value: f64| {
            let mut handed_over = None;
            let outcome = tuning.set(name, value, "anna", |values| handed_over = Some(values));
            assert_eq!(outcome.is_ok(), handed_over.is_some());
            let changed = outcome.map(|TunedChange { old, new, .. }| (old, new)).map_err(|error| error.to_string());
            (changed, handed_over.map(|values| values.value(&SHEEP)))
        };
        assert_eq!(set("sheep", 7.0), (Ok((3.0, 7.0)), Some(7.0)));
        assert_eq!(set("sheep", 51.0), (Err("sheep: 51 is too high; it may be 0 to 50".to_owned()), None));
        assert_eq!(set("sheap", 1.0).0, Err("no tunable is called `sheap`; did you mean `sheep`?".to_owned()));
        assert_eq!(values(&tuning)[0], ("sheep", 7.0));
    }

    #[test]
    fn the_file_is_read_again_as_a_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("throng-tuning-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("throng.toml");
        let tuning = Tuning::new(path.to_str().unwrap(), "[game]\nsheep = 5\n");
        tuning.add(&[&SPEED, &SHEEP]).unwrap();
        let reload = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let changes = tuning.reload("anna", |_| ()).map(|(_, changes)| changes);
            changes.map(|changes| {
                changes.into_iter().map(|change| (change.name, change.old, change.new)).collect::<Vec<_>>()
            })
        };
        let both = "[game]\nsheep = 9\n\"tuning.speed\" = 99\n";
        assert!(reload(both).unwrap_err().to_string().contains(":3: [game] tuning.speed: 99 is too high"));
        assert_eq!(values(&tuning)[0], ("sheep", 5.0), "nothing of it came into force");
        assert_eq!(reload("[game]\nsheep = 9\n"), Ok(vec![("sheep", 5.0, 9.0)]));
        assert_eq!(reload(""), Ok(vec![("sheep", 9.0, 3.0)]), "what is not named has its default");
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(super::Tuning::new("", "").reload("anna", |_| ()), Err(TuneError::NoFile));
    }
}
