//! Rules in force, as they are listed: each with where it is from.

use super::*;

/// Promise: what is listed of the recorder is what holds, as the file would write it, with all keys that can be set.
#[test]
fn rules_of_the_recorder_are_from_the_file_unless_they_differ_from_it() {
    let text = "[budgets.hub.per_tick_us]\nai = 1.5\n[triggers.frame]\ncooldown_s = 30\n[triggers.tick]\nover_ms = 0.0015\n[triggers.leak]\nover_kb_per_s = 0.7\n";
    let in_file = accept(text);
    let complete = |recorder: &Rules| in_force::Complete {
        recorder: Some(recorder.clone()),
        replication: ReplicationRules::usual(names().components, names().events.into_iter().map(|name| (name, None))),
        log_levels: Vec::new(),
    };
    let mut recorder = in_file.recorder.clone();
    recorder.subsystem_budgets_ns.push(("ai".to_owned(), 4_000_000));
    recorder.trigger_mut(TriggerKind::Tick).is_on = false;
    // It says what is the default, and holds at every rate.
    recorder.trigger_mut(TriggerKind::RunQueue).fits_rate = false;
    let of_file = complete(&in_file.recorder);
    let rules = in_force::list(&complete(&recorder), &of_file, [&in_file.written, &[]], &names());
    let told = |key: &str| {
        let rule = rules.iter().find(|rule| rule.key == key).unwrap_or_else(|| panic!("no {key} in {rules:?}"));
        (rule.value.as_deref().unwrap_or_default(), rule.from, rule.fits_rate, rule.changed_by)
    };
    assert_eq!(told("budgets.hub.per_tick_us.ai"), ("1.5", RuleFrom::File, false, "budget.set"));
    assert_eq!(told("budgets.subsystems_us.ai"), ("4000", RuleFrom::Console, false, "budget.set"));
    assert_eq!(told("triggers.frame.cooldown_s"), ("30", RuleFrom::File, false, "rules.set"));
    assert_eq!(told("triggers.frame.over_ms"), ("50", RuleFrom::Default, true, "rules.set"));
    assert_eq!(told("triggers.tick.over_ms"), ("0.0015", RuleFrom::File, false, "rules.set"));
    assert_eq!(told("triggers.leak.over_kb_per_s"), ("0.7", RuleFrom::File, false, "rules.set"));
    assert_eq!(told("triggers.tick.on"), ("false", RuleFrom::Console, false, "rules.set"));
    assert_eq!(told("triggers.run-queue.over_ms"), ("10", RuleFrom::Console, false, "rules.set"));
    assert_eq!(told("captures.disk_budget_mb"), ("2048", RuleFrom::Default, false, "rules.set"));
    assert_eq!(told("replication.tiers").3, "file");
    for key in said::keys(&names()) {
        assert_eq!(told(&key).3, "rules.set", "{key}");
    }
    // What is listed can be said.
    for rule in rules.iter().filter(|rule| rule.changed_by == "rules.set") {
        let Some(value) = &rule.value else { continue };
        let place = said::Place::of(&rule.key).unwrap();
        let read = said::SaidRules::default().with(&place, value).read(&names());
        assert!(read.is_ok(), "{} {value}: {read:?}", rule.key);
    }
}
