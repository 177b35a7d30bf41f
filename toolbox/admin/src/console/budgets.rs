//! Budgets and triggers, changed while a server runs: what scopes and subsystems may take, and when a capture is saved.
//!
//! A change holds from the next frame to the server's end, or until its rules file changes or is read again: the file says
//! what is to hold for good. Runs where the console does.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use throng::{
    console::{Cell, Column, TextTable, number, one_of, optional, text},
    metrics::PublishedMetrics,
    profiler::{
        RecorderControl,
        rules::{KindBudgets, Rules, TriggerRule},
        site,
    },
    server::ServerControl,
    settings::nearest_name,
};
use throng_capture::model::{TriggerKind, Unit};

use super::{Call, Console, Outcome};
use crate::{access::Role, published::NO_RECORDER};

/// What a budget is of.
const WHATS: &[&str] = &["subsystem", "tick", "scope"];
/// As in a rules file.
const BUDGET_US_MAX: f64 = 3.6e9;
/// Names of scopes are paths of a game's systems.
const NAME_CHARACTERS_MAX: usize = 200;
const ON_OFF: &[&str] = &["on", "off"];

/// A budget as it is listed.
#[derive(Debug, PartialEq)]
struct Row {
    what: &'static str,
    name: String,
    /// Empty for all.
    kind: String,
    us: f64,
}

/// Budgets of a server, and who changes them one after the other.
#[derive(Clone)]
struct Live {
    published: Arc<PublishedMetrics>,
    changing: Arc<Mutex<()>>,
}

impl Console {
    pub(super) fn with_budgets(self, control: &ServerControl) -> Self {
        let live = Live { published: control.published(), changing: Arc::default() };
        let [list, set, clear, triggers, trigger_set] = [(); 5].map(|()| live.clone());
        let what = || one_of("what", WHATS);
        let name = || text("name", NAME_CHARACTERS_MAX);
        let kind = || optional(text("kind", NAME_CHARACTERS_MAX));
        let list_help = "what scopes and subsystems may take: a subsystem in a frame, or in a tick of a kind of world";
        self.with_arguments("budget.list", Role::Observe, (), list_help, move |call, ()| {
            Ok(table(call, &rows(&list.rules()?)))
        })
        .with_arguments(
            "budget.set",
            Role::Operate,
            (what(), name(), number("us", 0.001..=BUDGET_US_MAX), kind()),
            "gives a budget (us), or another one, until the rules are read again",
            move |call, (what, name, us, kind)| set.change(call, what, &name, kind.as_deref(), Some(us)),
        )
        .with_arguments(
            "budget.clear",
            Role::Operate,
            (what(), name(), kind()),
            "takes a budget away, until the rules are read again",
            move |call, (what, name, kind)| clear.change(call, what, &name, kind.as_deref(), None),
        )
        .with_arguments("trigger.list", Role::Observe, (), "when captures are saved by themselves", move |call, ()| {
            Ok(trigger_table(call, &triggers.rules()?))
        })
        .with_arguments(
            "trigger.set",
            Role::Operate,
            (TriggerName, one_of("state", ON_OFF), optional(number("threshold", 0.001..=1e12))),
            "switches a trigger on or off, until the rules are read again; with what is too much, in its unit",
            move |call, (kind, state, threshold)| trigger_set.trigger(call, kind, state == "on", threshold),
        )
    }
}

impl Live {
    fn recorder(&self) -> Result<&RecorderControl, String> {
        self.published.recorder().ok_or_else(|| NO_RECORDER.to_owned())
    }

    fn rules(&self) -> Result<Rules, String> {
        Ok(self.recorder()?.rules())
    }

    fn change(&self, call: &Call<'_>, what: &str, name: &str, kind: Option<&str>, us: Option<f64>) -> Outcome {
        let is_scope = what == "scope";
        let known = if is_scope { site::all().iter().map(|site| site.name()).collect() } else { site::subsystems() };
        if !known.contains(&name) {
            let meant = nearest_name(name, known.iter().copied());
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
            let what = if is_scope { "scope" } else { "subsystem" };
            return Err(format!("name: no {what} is called `{name}`, or it has not run yet{meant}"));
        }
        if let Some(kind) = kind {
            let kinds = self.published.kind_names();
            if !kinds.iter().any(|known| known == kind) {
                return Err(format!("kind: there is no kind of world `{kind}`; there are {}", kinds.join(", ")));
            }
        }
        if what == "tick" && kind.is_none() {
            return Err("kind: a budget of a tick is one of a kind of world: name it last".to_owned());
        }
        let ns = us.map(|us| (us * 1e3).round() as u64);
        let recorder = self.recorder()?;
        let changed = {
            let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let mut rules = recorder.rules();
            let before = put(list_of(&mut rules, what, kind), name, ns);
            if before.is_none() && ns.is_none() {
                return Err(format!("name: `{name}` has no such budget; `budget.list` shows all"));
            }
            recorder.set_rules(rules);
            (before, ns)
        };
        let us_of = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
        let (before, after) = (us_of(changed.0), us_of(changed.1));
        let mut told = TextTable::new([
            Column::text("what", "what"),
            Column::text("name", "name"),
            Column::text("kind", "kind"),
            Column::float("before us", "before_us", 3),
            Column::float("now us", "now_us", 3),
        ]);
        let cell = |us: Option<f64>| us.map_or(Cell::Empty, Cell::Float);
        let kind = kind.unwrap_or_default();
        told.row(&[Cell::Text(what), Cell::Text(name), Cell::Text(kind), cell(before), cell(after)]);
        Ok(call.table(told))
    }

    fn trigger(&self, call: &Call<'_>, kind: TriggerKind, is_on: bool, threshold: Option<f64>) -> Outcome {
        let recorder = self.recorder()?;
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rules = recorder.rules();
        let rule = rules.trigger_mut(kind);
        rule.is_on = is_on;
        if let Some(threshold) = threshold {
            if !has_threshold(kind) {
                let why = match kind {
                    TriggerKind::Subsystem | TriggerKind::Scope => "; `budget.set` says what is too much",
                    TriggerKind::StuckTick => ": it is 75 ms, always",
                    _ => "",
                };
                return Err(format!("threshold: `{}` has none{why}", kind.name()));
            }
            // What somebody says holds at every rate.
            (rule.threshold, rule.fits_rate) = ((threshold * unit(kind).1).round() as u64, false);
        }
        recorder.set_rules(rules.clone());
        Ok(trigger_table(call, &rules))
    }
}

/// The budgets that a change is about; made if there are none of that kind of world.
fn list_of<'a>(rules: &'a mut Rules, what: &str, kind: Option<&str>) -> &'a mut Vec<(String, u64)> {
    let Some(kind) = kind else {
        return if what == "scope" { &mut rules.scope_budgets_ns } else { &mut rules.subsystem_budgets_ns };
    };
    let place = rules.kind_budgets.iter().position(|budgets| budgets.kind == kind).unwrap_or_else(|| {
        rules.kind_budgets.push(KindBudgets { kind: kind.to_owned(), ..KindBudgets::default() });
        rules.kind_budgets.len() - 1
    });
    let of_kind = &mut rules.kind_budgets[place];
    match what {
        "scope" => &mut of_kind.scopes_ns,
        "tick" => &mut of_kind.per_tick_ns,
        _ => &mut of_kind.subsystems_ns,
    }
}

/// Returns what held before.
fn put(budgets: &mut Vec<(String, u64)>, name: &str, ns: Option<u64>) -> Option<u64> {
    let place = budgets.iter().position(|(other, _)| other == name);
    let before = place.map(|place| budgets.remove(place).1);
    if let Some(ns) = ns {
        budgets.push((name.to_owned(), ns));
    }
    before
}

fn rows(rules: &Rules) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |what, kind: &str, budgets: &[(String, u64)]| {
        let row =
            |(name, ns): &(String, u64)| Row { what, name: name.clone(), kind: kind.to_owned(), us: *ns as f64 / 1e3 };
        rows.extend(budgets.iter().map(row));
    };
    add("subsystem", "", &rules.subsystem_budgets_ns);
    add("scope", "", &rules.scope_budgets_ns);
    for budgets in &rules.kind_budgets {
        add("subsystem", &budgets.kind, &budgets.subsystems_ns);
        add("tick", &budgets.kind, &budgets.per_tick_ns);
        add("scope", &budgets.kind, &budgets.scopes_ns);
    }
    rows.sort_by(|a, b| (a.what, &a.kind, &a.name).cmp(&(b.what, &b.kind, &b.name)));
    rows
}

fn table(call: &Call<'_>, rows: &[Row]) -> String {
    let mut table = TextTable::new([
        Column::text("what", "what"),
        Column::text("name", "name"),
        Column::text("kind", "kind"),
        Column::float("us", "us", 3),
    ]);
    for Row { what, name, kind, us } in rows {
        table.row(&[Cell::Text(what), Cell::Text(name), Cell::Text(kind), Cell::Float(*us)]);
    }
    call.table(table)
}

/// The unit that a trigger's threshold is told in, and how much of its own that is.
fn unit(kind: TriggerKind) -> (&'static str, f64) {
    match kind.unit() {
        Unit::Nanoseconds => ("ms", 1e6),
        Unit::Bytes => ("bytes", 1.0),
        Unit::BytesPerSecond => ("bytes/s", 1.0),
        Unit::Percent => ("%", 1.0),
        Unit::None => ("", 1.0),
    }
}

fn has_threshold(kind: TriggerKind) -> bool {
    use TriggerKind::{Crash, Manual, Scope, StuckTick, Subsystem};
    !matches!(kind, Manual | Crash | Subsystem | Scope | StuckTick)
}

fn trigger_table(call: &Call<'_>, rules: &Rules) -> String {
    let row = |kind: TriggerKind| {
        let TriggerRule { is_on, threshold, fits_rate, cooldown_s, .. } = *rules.trigger(kind);
        let threshold = has_threshold(kind).then(|| threshold as f64 / unit(kind).1);
        (kind.name(), is_on, threshold, unit(kind).0, fits_rate, cooldown_s)
    };
    let rows: Vec<_> = TriggerKind::ALL.into_iter().map(row).collect();
    let text = || {
        let mut table = TextTable::new([
            Column::text("trigger", "trigger"),
            Column::text("state", "state"),
            Column::float("too much", "threshold", 3),
            Column::text("unit", "unit"),
            Column::float("cooldown s", "cooldown_s", 1),
        ]);
        for (name, is_on, threshold, unit, _, cooldown_s) in &rows {
            table.row(&[
                Cell::Text(name),
                Cell::Text(if *is_on { "on" } else { "off" }),
                threshold.map_or(Cell::Empty, Cell::Float),
                Cell::Text(if threshold.is_some() { unit } else { "" }),
                Cell::Float(f64::from(*cooldown_s)),
            ]);
        }
        table.text().to_owned()
    };
    let object =
        |(name, is_on, threshold, unit, fits_rate, cooldown_s): &(&str, bool, Option<f64>, &str, bool, f32)| {
            json!({ "trigger": name, "is_on": is_on, "threshold": threshold, "unit": unit, "fits_rate": fits_rate,
                "cooldown_s": cooldown_s })
        };
    call.answer(text, || json!({ "rows": rows.iter().map(object).collect::<Vec<_>>() }))
}

/// The name of a trigger that fires by itself.
struct TriggerName;

impl throng::console::Argument for TriggerName {
    type Value = TriggerKind;

    fn about(&self) -> throng::console::ArgumentAbout {
        let choices = TriggerKind::ALL.map(TriggerKind::name).to_vec();
        let may_be = "what `trigger.list` shows".to_owned();
        throng::console::ArgumentAbout { name: "trigger", may_be, choices, is_optional: false }
    }

    fn read(&self, word: &str) -> Result<TriggerKind, String> {
        let found = TriggerKind::ALL.into_iter().find(|kind| kind.name() == word);
        found.ok_or_else(|| {
            let all = TriggerKind::ALL.map(TriggerKind::name).join(", ");
            format!("there is no {word}; it may be {all}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_put_into_the_list_that_it_is_of() {
        let mut rules = Rules::default();
        assert_eq!(put(list_of(&mut rules, "subsystem", None), "ai", Some(5_000)), None);
        assert_eq!(put(list_of(&mut rules, "tick", Some("hub")), "ai", Some(1)), None);
        assert_eq!(put(list_of(&mut rules, "scope", Some("hub")), "ai.think", Some(2_500)), None);
        assert_eq!(put(list_of(&mut rules, "subsystem", None), "ai", Some(7_000)), Some(5_000));
        let told: Vec<_> = rows(&rules).into_iter().map(|row| (row.what, row.name, row.kind, row.us)).collect();
        let row = |what, name: &str, kind: &str, us| (what, name.to_owned(), kind.to_owned(), us);
        let expect =
            [row("scope", "ai.think", "hub", 2.5), row("subsystem", "ai", "", 7.0), row("tick", "ai", "hub", 0.001)];
        assert_eq!(told, expect);
        assert_eq!(put(list_of(&mut rules, "subsystem", None), "ai", None), Some(7_000));
        assert!(rules.subsystem_budgets_ns.is_empty());
    }
}
