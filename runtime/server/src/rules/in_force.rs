//! Rules in force: every rule of a server that runs, as its file would write it, and where it is from.
//!
//! The recorder has its rules itself, which `budget.set` and `trigger.set` change, too; so a rule of it is from the console
//! where it differs from what the file says. Of all others it is known what was said. Text is made here, on the thread of whoever
//! asks; it allocates.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use throng_capture::model::TriggerKind;
use throng_profiler::{
    log::Level,
    rules::{Rules, TriggerRule},
};
use throng_replication::rules::{ReplicationRules, plain_name};

use super::{RuleNames, said::keys};

/// One rule as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleInForce {
    /// With its section before it, as `rules.set` takes it.
    pub key: String,
    /// As the file writes it, without quotes. None: nothing is held back, it is as each world has it, or it is a budget that was
    /// cleared since the file was read.
    pub value: Option<String>,
    /// The value is one for worlds of 30 Hz and slower; at faster rates it is the same share of their period.
    pub fits_rate: bool,
    pub from: RuleFrom,
    /// What changes it while the server runs: a command of the console, or `file`.
    pub changed_by: &'static str,
}

/// Where a rule is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleFrom {
    /// The engine's or the game's word.
    Default,
    /// It is written in the rules file.
    File,
    /// Somebody said it since the file was read, with `rules.set`, `budget.set` or `trigger.set`.
    Console,
}

impl fmt::Display for RuleFrom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Console => "console",
        })
    }
}

/// All rules together, with what holds where nobody says anything.
pub(super) struct Complete {
    /// None where it is off.
    pub recorder: Option<Rules>,
    pub replication: ReplicationRules,
    pub log_levels: Vec<(String, Level)>,
}

/// All rules of `now`, which differ from those of the file where somebody said so; `written` are the keys of the file, and
/// those that were said since. Budgets that were cleared since have no value, behind those that are in force.
pub(super) fn list(now: &Complete, of_file: &Complete, written: [&[String]; 2], names: &RuleNames) -> Vec<RuleInForce> {
    let [in_file, said] = written.map(|keys| keys.iter().map(|key| plain_name(key)).collect::<Vec<_>>());
    let of_file = values(of_file, names);
    let mut rules = values(now, names);
    let in_force = rules.iter().map(|rule| rule.key.as_str()).collect::<HashSet<_>>();
    let is_cleared = |rule: &&RuleInForce| rule.changed_by == BUDGET_SET && !in_force.contains(rule.key.as_str());
    let cleared: Vec<_> =
        of_file.iter().filter(is_cleared).map(|rule| RuleInForce { value: None, ..rule.clone() }).collect();
    let behind = rules.partition_point(|rule| rule.changed_by == BUDGET_SET);
    rules.splice(behind..behind, cleared);
    let of_file = of_file.into_iter().map(|rule| (rule.key.clone(), rule)).collect::<HashMap<_, _>>();
    for rule in &mut rules {
        let key = plain_name(&rule.key);
        let is_as_in_file = of_file.get(&rule.key).is_some_and(|of_file| of_file == rule);
        rule.from = if said.contains(&key) || !is_as_in_file {
            RuleFrom::Console
        } else if in_file.contains(&key) {
            RuleFrom::File
        } else {
            RuleFrom::Default
        };
    }
    rules
}

/// What `rules.set` changes.
const SET: &str = "rules.set";
/// What changes a budget; all of them come first.
const BUDGET_SET: &str = "budget.set";
/// What only makes sense together.
const FILE: &str = "file";

/// All rules, as if nobody had said any.
fn values(complete: &Complete, names: &RuleNames) -> Vec<RuleInForce> {
    let mut rules = Vec::new();
    let mut add = |key: String, value: Option<String>, fits_rate: bool, changed_by| {
        rules.push(RuleInForce { key, value, fits_rate, from: RuleFrom::Default, changed_by });
    };
    let text = |value: f32| Some(value.to_string());
    if let Some(recorder) = &complete.recorder {
        for (section, name, ns) in budgets(recorder) {
            let us = *ns as f64 / 1e3;
            add(format!("budgets.{section}.{name}"), Some(us.to_string()), false, BUDGET_SET);
        }
        let keys = keys(names);
        for kind in TriggerKind::ALL {
            let (section, rule) = (format!("triggers.{}.", kind.name()), recorder.trigger(kind));
            for (key, last) in keys.iter().filter_map(|key| Some((key, key.strip_prefix(&section)?))) {
                let fits_rate = rule.fits_rate && last.starts_with("over_");
                add(key.clone(), Some(of_trigger(rule, last)), fits_rate, SET);
            }
        }
        let mb = recorder.captures_disk_budget_bytes >> 20;
        add("captures.disk_budget_mb".to_owned(), Some(mb.to_string()), false, SET);
    }
    for (category, level) in &complete.log_levels {
        add(format!("log.{category}"), Some(level.to_string()), false, SET);
    }
    let replication = &complete.replication;
    let (radii, tiers) = (replication.radii, tiers(replication));
    for (key, value, changed_by) in [
        ("enter_radius_m", radii.and_then(|radii| text(radii.enter_m)), FILE),
        ("leave_radius_m", radii.and_then(|radii| text(radii.leave_m)), FILE),
        ("scan_range_m", replication.scan_range_m.and_then(text), SET),
        ("catch_up_m", text(replication.catch_up_m), SET),
        ("keepalive_s", text(replication.keepalive_s), SET),
        ("tiers", tiers, FILE),
    ] {
        add(format!("replication.{key}"), value, false, changed_by);
    }
    // What no rule gives a range is told as far as entities are held.
    let range = |range_m: Option<f32>| text(range_m.unwrap_or(f32::INFINITY));
    for (name, rule) in names.components.iter().zip(&replication.components) {
        add(format!("components.{name}.range_m"), range(rule.range_m), false, SET);
        add(format!("components.{name}.updates_per_s_max"), rule.updates_per_s_max.and_then(text), false, SET);
    }
    for (name, rule) in names.events.iter().zip(&replication.events) {
        add(format!("events.{name}.range_m"), range(rule.range_m), false, SET);
        add(format!("events.{name}.per_s_max"), rule.per_s_max.and_then(text), false, SET);
    }
    rules
}

/// Each with its section and name.
fn budgets(rules: &Rules) -> impl Iterator<Item = (String, &String, &u64)> {
    let of_all = [("scopes_us", &rules.scope_budgets_ns), ("subsystems_us", &rules.subsystem_budgets_ns)];
    let of_all = of_all.map(|(section, list)| (section.to_owned(), list));
    let of_kinds = rules.kind_budgets.iter().flat_map(|of| {
        let lists =
            [("scopes_us", &of.scopes_ns), ("subsystems_us", &of.subsystems_ns), ("per_tick_us", &of.per_tick_ns)];
        lists.map(|(section, list)| (format!("{}.{section}", of.kind), list))
    });
    let all = of_all.into_iter().chain(of_kinds);
    all.flat_map(|(section, list)| list.iter().map(move |(name, ns)| (section.clone(), name, ns)))
}

/// What the rule says of a key of its section.
fn of_trigger(rule: &TriggerRule, key: &str) -> String {
    const KB: f64 = 1024.0;
    // Whole bytes: a value of three digits is shown as it was written.
    let bytes_in = |unit: f64| ((rule.threshold as f64 / unit * 1e3).round() / 1e3).to_string();
    match key {
        "on" => rule.is_on.to_string(),
        "over_ms" => (rule.threshold as f64 / 1e6).to_string(),
        "over_mb_per_s" => bytes_in(KB * KB),
        "over_kb_per_s" | "over_kb" => bytes_in(KB),
        "over_percent" => rule.threshold.to_string(),
        "cooldown_s" => rule.cooldown_s.to_string(),
        "pre_roll_s" => rule.pre_roll_s.to_string(),
        "post_roll_s" => rule.post_roll_s.to_string(),
        "disk_budget_mb" => (rule.disk_budget_bytes >> 20).to_string(),
        other => unreachable!("no trigger has a key {other}"),
    }
}

fn tiers(rules: &ReplicationRules) -> Option<String> {
    let tiers: Vec<String> =
        rules.tiers.iter().map(|tier| format!("to {} m {}/s", tier.to_m, tier.updates_per_s)).collect();
    (!tiers.is_empty()).then(|| tiers.join(", "))
}
