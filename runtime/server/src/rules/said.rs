//! What somebody says of single rules while the server runs: in force until the file changes or is read again.
//!
//! A rule goes by its key with the section before it: `triggers.frame.cooldown_s`, `log.server.clients`,
//! `components.vitals.range_m`. What is said is read as a file is, so it has the same limits and the same mistakes. Budgets have
//! commands of their own.

use std::collections::BTreeMap;
use std::fmt::Write;

use throng_capture::model::TriggerKind;
use throng_profiler::rules::Rules;

use super::{RuleNames, ServerRules};
use crate::settings::SettingsError;

/// Values that differ from what the file says, by section and key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SaidRules(BTreeMap<String, BTreeMap<String, String>>);

/// Where a rule stands in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    section: String,
    key: String,
}

impl Place {
    /// By its key with the section before it.
    pub fn of(whole: &str) -> Result<Self, String> {
        let place = |section: &str, key: &str| Ok(Self { section: section.to_owned(), key: key.to_owned() });
        if whole.contains(|letter: char| "\"'\\[]".contains(letter) || letter.is_control() || letter.is_whitespace()) {
            return Err("no key has such letters".to_owned());
        }
        let Some((section, key)) = whole.rsplit_once('.') else {
            return Err("a rule goes by its section and its key, such as triggers.frame.cooldown_s".to_owned());
        };
        match whole.split_once('.') {
            Some(("budgets", _)) => Err("`budget.set` and `budget.clear` change budgets".to_owned()),
            Some(("log", category)) => place("log", category),
            Some((of @ ("components" | "events"), rest)) => match rest.rsplit_once('.') {
                Some((name, key)) => place(&format!("{of}.\"{name}\""), key),
                None => Err(format!("a name is missing: {of}.NAME.{key}")),
            },
            _ => place(section, key),
        }
    }

    /// Whether it is the recorder's, which has what is in force.
    fn is_recorders(&self) -> bool {
        self.section == "captures" || self.section.starts_with("triggers.")
    }
}

/// The recorder's rules with this one changed; `None`: it is no rule of the recorder.
pub(super) fn change_recorders(
    now: &Rules,
    place: &Place,
    value: &str,
    names: &RuleNames,
) -> Option<Result<Rules, String>> {
    place.is_recorders().then(|| {
        let text = SaidRules::default().with(place, value).text();
        let mut rules = ServerRules::parse_over(now.clone(), "", &text, names).map_err(|error| told(&error))?.recorder;
        // A file that says nothing of budgets has none.
        rules.scope_budgets_ns.clone_from(&now.scope_budgets_ns);
        rules.subsystem_budgets_ns.clone_from(&now.subsystem_budgets_ns);
        Ok(rules)
    })
}

impl SaidRules {
    pub fn with(&self, place: &Place, value: &str) -> Self {
        let mut said = self.clone();
        said.0.entry(place.section.clone()).or_default().insert(place.key.clone(), literal(value));
        said
    }

    /// What all of it says together.
    pub fn read(&self, names: &RuleNames) -> Result<ServerRules, String> {
        ServerRules::parse("", &self.text(), names).map_err(|error| told(&error))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (section, keys) in &self.0 {
            let _ = writeln!(text, "[{section}]");
            keys.iter().for_each(|(key, value)| _ = writeln!(text, "\"{key}\" = {value}"));
        }
        text
    }
}

/// As TOML has it: numbers and switches as they are, words in quotes.
fn literal(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) => number.to_string().to_lowercase(),
        Err(_) if matches!(value, "true" | "false") => value.to_owned(),
        Err(_) => format!("\"{}\"", value.replace(['"', '\\'], "?")),
    }
}

/// What is wrong, without the place, which whoever said it knows.
fn told(error: &SettingsError) -> String {
    match error {
        SettingsError::Mistakes(mistakes) => {
            let messages: Vec<&str> = mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
            messages.join("; ")
        }
        other => other.to_string(),
    }
}

/// All keys that can be said, but for the categories of the log.
pub(super) fn keys(names: &RuleNames) -> Vec<String> {
    const OF_TRIGGERS: [&str; 10] = [
        "on",
        "over_ms",
        "over_percent",
        "over_mb_per_s",
        "over_kb_per_s",
        "over_kb",
        "cooldown_s",
        "pre_roll_s",
        "post_roll_s",
        "disk_budget_mb",
    ];
    let of_triggers =
        TriggerKind::ALL.into_iter().flat_map(|kind| OF_TRIGGERS.map(|key| format!("triggers.{}.{key}", kind.name())));
    let of_world = ["catch_up_m", "keepalive_s", "scan_range_m"].map(|key| format!("replication.{key}"));
    let of_each = |of: &str, names: &[&str], keys: [&str; 2]| {
        let all = names.iter().flat_map(|name| keys.map(|key| format!("{of}.{name}.{key}")));
        all.collect::<Vec<_>>()
    };
    // Kinds of triggers do not have the same keys; 1 is within the limits of each.
    let is_known = |key: &String| {
        let value = if key.ends_with(".on") { "true" } else { "1" };
        Place::of(key).is_ok_and(|place| SaidRules::default().with(&place, value).read(names).is_ok())
    };
    let all = of_triggers.chain(["captures.disk_budget_mb".to_owned()]).chain(of_world);
    let all = all.chain(of_each("components", &names.components, ["range_m", "updates_per_s_max"]));
    all.chain(of_each("events", &names.events, ["range_m", "per_s_max"])).filter(is_known).collect()
}
