//! Every mistake in a rules file has its line, its key and the way out; what is wrong never comes into force.

mod listed;

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use throng_capture::model::TriggerKind;
use throng_profiler::rules::KindBudgets;
use throng_replication::rules::{EventRule, InterestRadii, KindRule, ReplicationRules, Tier};
use throng_world::tick_resources::ScanRange;

use super::*;

/// What the game of these tests replicates.
fn names() -> RuleNames {
    RuleNames {
        components: vec!["Pose", "Vitals", "SpellEffects"],
        events: vec!["chat.say", "combat.damage", "boom"],
        world_kinds: ["hideout", "hub", "dark-zone"].map(str::to_owned).into(),
    }
}

/// What the file's mistakes read like, one per line; empty when there are none.
#[track_caller]
fn check(text: &str, expect: &str) {
    let found =
        ServerRules::parse("rules.toml", text, &names()).err().map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(found, expect, "\n--- for the file:\n{text}");
}

#[track_caller]
fn accept(text: &str) -> ServerRules {
    match ServerRules::parse("rules.toml", text, &names()) {
        Ok(rules) => rules,
        Err(error) => panic!("{error}\n--- for the file:\n{text}"),
    }
}

#[test]
fn an_empty_file_is_all_defaults() {
    assert_eq!(accept(""), ServerRules::default());
    let of_empty_sections = accept("[triggers.frame]\n[log]\n[budgets]\n");
    assert_eq!(ServerRules { text: String::new(), ..of_empty_sections }, ServerRules::default());
}

#[test]
fn every_rule_is_read_in_its_unit() {
    let rules = accept(
        r#"
[budgets.scopes_us]
"world.tick" = 10_000
[budgets.subsystems_us]
replication = 4000
[triggers.frame]
on = false
over_ms = 12.5
cooldown_s = 0
pre_roll_s = 1.5
post_roll_s = 0
disk_budget_mb = 8
[triggers.memory-rate]
over_mb_per_s = 2
[triggers.leak]
over_kb_per_s = 0.5
[triggers.large-allocation]
over_kb = 64
[triggers.workers-busy]
over_percent = 80
[captures]
disk_budget_mb = 512
[log]
"server.clients" = "debug"
all = "warn"
"#,
    );
    let mut expect = ServerRules::default();
    expect.recorder.scope_budgets_ns = vec![("world.tick".to_owned(), 10_000_000)];
    expect.recorder.subsystem_budgets_ns = vec![("replication".to_owned(), 4_000_000)];
    let frame = expect.recorder.trigger_mut(TriggerKind::Frame);
    frame.is_on = false;
    frame.threshold = 12_500_000;
    frame.fits_rate = false;
    frame.cooldown_s = 0.0;
    frame.pre_roll_s = 1.5;
    frame.post_roll_s = 0.0;
    frame.disk_budget_bytes = 8 << 20;
    expect.recorder.trigger_mut(TriggerKind::MemoryRate).threshold = 2 << 20;
    expect.recorder.trigger_mut(TriggerKind::Leak).threshold = 512;
    expect.recorder.trigger_mut(TriggerKind::LargeAllocation).threshold = 64 << 10;
    expect.recorder.trigger_mut(TriggerKind::WorkersBusy).threshold = 80;
    expect.recorder.captures_disk_budget_bytes = 512 << 20;
    expect.log_levels = vec![("all".to_owned(), Level::Warn), ("server.clients".to_owned(), Level::Debug)];
    expect.written.clone_from(&rules.written);
    expect.text.clone_from(&rules.text);
    assert_eq!(rules, expect);
    let written = ["budgets.scopes_us.world.tick", "triggers.frame.on", "log.server.clients"];
    assert!(written.iter().all(|key| rules.written.iter().any(|written| written == key)), "{:?}", rules.written);
}

#[test]
fn every_kind_of_trigger_has_its_section() {
    for kind in TriggerKind::ALL {
        let rules = accept(&format!("[triggers.{}]\npre_roll_s = 7\n", kind.name()));
        let changed = TriggerKind::ALL.map(|kind| rules.recorder.trigger(kind).pre_roll_s == 7.0);
        assert_eq!(changed, TriggerKind::ALL.map(|other| other == kind), "{}", kind.name());
    }
}

#[test]
fn unknown_names_are_told_with_the_nearest_known_one() {
    check("[triggers.fraem]\n", "rules.toml:1: [triggers.fraem] unknown section; did you mean [triggers.frame]?");
    check(
        "[budgets.scope_us]\n",
        "rules.toml:1: [budgets.scope_us] unknown section; did you mean [budgets.scopes_us]?",
    );
    check("[logs]\n", "rules.toml:1: [logs] unknown section; did you mean [log]?");
    check(
        "triggers = 3\n",
        "rules.toml:1: triggers: holds sections; write one of [triggers.manual], [triggers.frame], [triggers.tick], \
         [triggers.workers-busy], [triggers.stuck-tick], [triggers.subsystem], [triggers.scope], [triggers.lock-wait], \
         [triggers.run-queue], [triggers.memory-rate], [triggers.large-allocation], [triggers.leak], [triggers.crash]",
    );
    check("log = \"debug\"\n", "rules.toml:1: log: is a section; write [log]");
    check("[triggers]\nframe = true\n", "rules.toml:2: [triggers] frame: is a section; write [triggers.frame]");
    check(
        "[triggers.frame]\nover_us = 3\n",
        "rules.toml:2: [triggers.frame] over_us: unknown key; did you mean `over_ms`?",
    );
    check(
        "[triggers.leak]\nover_mb_per_s = 3\n",
        "rules.toml:2: [triggers.leak] over_mb_per_s: unknown key; did you mean `over_kb_per_s`?",
    );
    check(
        "[triggers.manual]\nover_ms = 3\n",
        "rules.toml:2: [triggers.manual] over_ms: unknown key; known are pre_roll_s, disk_budget_mb",
    );
    check(
        "[log]\n\"server.clients\" = \"debg\"\n",
        "rules.toml:2: [log] server.clients: \"debg\" is no level; did you mean \"debug\"?",
    );
}

#[test]
fn a_kind_of_world_may_have_budgets_of_its_own() {
    let rules = accept(
        "[budgets.scopes_us]\n\"world.tick\" = 10_000\n[budgets.dark-zone.scopes_us]\n\"world.tick\" = 20_000\n\
         [budgets.dark-zone.subsystems_us]\nai = 4_000\n[budgets.hub.subsystems_us]\nai = 500\n",
    );
    assert_eq!(rules.recorder.scope_budgets_ns, [("world.tick".to_owned(), 10_000_000)]);
    let ai = |us: u64| vec![("ai".to_owned(), us * 1_000)];
    let tick = vec![("world.tick".to_owned(), 20_000_000)];
    let expect = [
        KindBudgets { kind: "dark-zone".into(), subsystems_ns: ai(4_000), scopes_ns: tick, per_tick_ns: Vec::new() },
        KindBudgets { kind: "hub".into(), subsystems_ns: ai(500), ..KindBudgets::default() },
    ];
    assert_eq!((rules.recorder.kind_budgets.as_slice(), rules.warnings), (expect.as_slice(), Vec::new()));

    check(
        "[budgets.hub.scopes_us]\n\"world.tick\" = 0\n[budgets.hub.subsystem_us]\nai = 1\n[budgets.hub.subsystems_us]\nai = \"x\"\n",
        "rules.toml:2: [budgets.hub.scopes_us] world.tick: 0 is too low; it may be 0.001 to 60000000 us\n\
         rules.toml:3: [budgets.hub.subsystem_us] unknown section; did you mean [budgets.hub.subsystems_us]?\n\
         rules.toml:6: [budgets.hub.subsystems_us] ai: must be a number of microseconds, after a name in quotes such as \
         \"world.tick\", not \"x\"",
    );
    check(
        "budgets = 3\n",
        "rules.toml:1: budgets: holds sections; write one of [budgets.scopes_us], [budgets.subsystems_us], \
         [budgets.KIND.scopes_us], [budgets.KIND.subsystems_us], [budgets.KIND.per_tick_us]",
    );
}

/// Promise: a budget may be less than a microsecond, and one for a tick is the kind's.
#[test]
fn parts_of_a_microsecond_are_kept() {
    let rules = accept(
        "[budgets.scopes_us]\n\"shots.judge\" = 0.5\n\"shots.cast\" = 2\n[budgets.subsystems_us]\nshots = 12.25\n\
         [budgets.hub.per_tick_us]\nshots = 0.125\n",
    );
    let named = |name: &str, ns: u64| (name.to_owned(), ns);
    assert_eq!(rules.recorder.scope_budgets_ns, [named("shots.cast", 2_000), named("shots.judge", 500)]);
    assert_eq!(rules.recorder.subsystem_budgets_ns, [named("shots", 12_250)]);
    let expect = KindBudgets { kind: "hub".into(), per_tick_ns: vec![named("shots", 125)], ..KindBudgets::default() };
    assert_eq!(rules.recorder.kind_budgets, [expect]);
    check(
        "[budgets.scopes_us]\nx = 0.0001\ny = nan\n",
        "rules.toml:2: [budgets.scopes_us] x: 0.0001 is too low; it may be 0.001 to 60000000 us\n\
         rules.toml:3: [budgets.scopes_us] y: NaN is not a number; it may be 0.001 to 60000000 us",
    );
}

#[test]
fn budgets_of_a_kind_that_the_game_does_not_have_are_told_and_the_rest_is_in_force() {
    let rules = accept(
        "[budgets.dark-zoen.scopes_us]\nx = 1\n[budgets.arena.subsystems_us]\nai = 1\n[budgets.scopes_us]\nx = 2\n",
    );
    assert_eq!((rules.recorder.kind_budgets.len(), rules.recorder.scope_budgets_ns.len()), (0, 1));
    let told: Vec<String> = rules.warnings.iter().map(Mistake::to_string).collect();
    let expect = [
        "rules.toml:1: [budgets.dark-zoen.scopes_us] the game has no such kind of world; did you mean \"dark-zone\"?",
        "rules.toml:3: [budgets.arena.subsystems_us] the game has no such kind of world; there are hideout, hub, dark-zone",
    ];
    assert_eq!(told, expect);
}

#[test]
fn wrong_types_are_told_in_words() {
    check("[triggers.frame]\non = 1\n", "rules.toml:2: [triggers.frame] on: must be true or false, not 1");
    check(
        "[triggers.frame]\nover_ms = \"50\"\n",
        "rules.toml:2: [triggers.frame] over_ms: must be a number, not \"50\"",
    );
    check(
        "[budgets.scopes_us]\nworld.tick = 5\n",
        "rules.toml:2: [budgets.scopes_us] world: must be a number of microseconds, after a name in quotes such as \
         \"world.tick\", not a table",
    );
    check(
        "[log]\nserver.clients = \"debug\"\nnet = 3\n",
        "rules.toml:2: [log] server: must be \"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\", after a name in \
         quotes such as \"server.clients\", not a table\n\
         rules.toml:3: [log] net: must be \"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\", after a name in \
         quotes such as \"server.clients\", not 3",
    );
}

#[test]
fn impossible_values_are_told_with_their_range() {
    check(
        "[budgets.subsystems_us]\nreplication = 0\n\"world.tick\" = -5\n",
        "rules.toml:2: [budgets.subsystems_us] replication: 0 is too low; it may be 0.001 to 60000000 us\n\
         rules.toml:3: [budgets.subsystems_us] world.tick: -5 is too low; it may be 0.001 to 60000000 us",
    );
    check(
        "[triggers.lock-wait]\nover_ms = 0\ncooldown_s = -1\npre_roll_s = 61\npost_roll_s = nan\ndisk_budget_mb = 0\n",
        "rules.toml:2: [triggers.lock-wait] over_ms: 0 is too low; it may be 0.001 to 60000 ms\n\
         rules.toml:3: [triggers.lock-wait] cooldown_s: -1 is too low; it may be 0 to 86400 s\n\
         rules.toml:4: [triggers.lock-wait] pre_roll_s: 61 is too high; it may be 0 to 10 s\n\
         rules.toml:5: [triggers.lock-wait] post_roll_s: NaN is not a number; it may be 0 to 5 s\n\
         rules.toml:6: [triggers.lock-wait] disk_budget_mb: 0 is too low; it may be 1 to 1048576 MiB",
    );
    check(
        "[triggers.workers-busy]\nover_percent = 100\n",
        "rules.toml:2: [triggers.workers-busy] over_percent: 100 is too high; it may be 1 to 99 %",
    );
    check(
        "[captures]\ndisk_budget_mb = 0\ndisk_budget = 1\n",
        "rules.toml:2: [captures] disk_budget_mb: 0 is too low; it may be 1 to 1048576 MiB\n\
         rules.toml:3: [captures] disk_budget: unknown key; did you mean `disk_budget_mb`?",
    );
    check(
        "[log]\n\"\" = \"off\"\n\"server..clients\" = \"off\"\n",
        "rules.toml:2: [log] is no name; names are words with dots between them, such as \"server.clients\"\n\
         rules.toml:3: [log] server..clients: is no name; names are words with dots between them, such as \"server.clients\"",
    );
}

#[test]
fn all_mistakes_of_a_file_come_at_once_in_its_order() {
    check(
        "[log]\nnet = \"loud\"\n[triggers.frame]\nover_ms = 0\non = \"yes\"\n[budgets.scopes_us]\nx = \"1.5\"\n[extra]\n",
        "rules.toml:2: [log] net: must be \"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\", after a name in \
         quotes such as \"server.clients\", not \"loud\"\n\
         rules.toml:4: [triggers.frame] over_ms: 0 is too low; it may be 0.001 to 60000 ms\n\
         rules.toml:5: [triggers.frame] on: must be true or false, not \"yes\"\n\
         rules.toml:7: [budgets.scopes_us] x: must be a number of microseconds, after a name in quotes such as \
         \"world.tick\", not \"1.5\"\n\
         rules.toml:8: [extra] unknown section; there are [budgets.scopes_us], [budgets.subsystems_us], \
         [budgets.KIND.scopes_us], [budgets.KIND.subsystems_us], [budgets.KIND.per_tick_us], [triggers.manual], \
         [triggers.frame], [triggers.tick], [triggers.workers-busy], [triggers.stuck-tick], [triggers.subsystem], \
         [triggers.scope], [triggers.lock-wait], [triggers.run-queue], [triggers.memory-rate], [triggers.large-allocation], [triggers.leak], \
         [triggers.crash], [captures], [log], [replication], [components], [events]",
    );
    check("[log]\nnet 3\n", "rules.toml:2: not TOML: key with no value, expected `=`");
}

#[test]
fn replication_is_read_on_top_of_the_games_own_rules() {
    let rules = accept(
        r#"
[replication]
keepalive_s = 3
enter_radius_m = 120
leave_radius_m = 130.5
scan_range_m = 80
[[replication.tiers]]
to_m = 20
updates_per_s = 30
[[replication.tiers]]
to_m = 90.5
updates_per_s = 0.5
[components.vitals]
updates_per_s_max = 1
[components.spell-effects]
range_m = 60
[events."chat.say"]
range_m = 12.5
per_s_max = 2
[events.combat.damage]
range_m = inf
[events.Boom]
per_s_max = 4
"#,
    );
    let mut game =
        ReplicationRules::usual(["Pose", "Vitals", "Position"], [("chat.say", None), ("combat.damage", None)]);
    game.components[1].range_m = Some(33.0);
    let complete = rules.replication.complete(game);
    let tier = |to_m, updates_per_s| Tier { to_m, updates_per_s };
    let component = |range_m, updates_per_s_max| KindRule { range_m, updates_per_s_max };
    let event = |range_m, per_s_max| EventRule { range_m, per_s_max };
    let expect = ReplicationRules {
        radii: Some(InterestRadii { enter_m: 120.0, leave_m: 130.5 }),
        scan_range_m: Some(80.0),
        tiers: vec![tier(20.0, 30.0), tier(90.5, 0.5)],
        catch_up_m: 50.0,
        keepalive_s: 3.0,
        components: vec![component(None, None), component(Some(33.0), Some(1.0)), component(Some(60.0), None)],
        events: vec![event(Some(12.5), Some(2.0)), event(Some(f32::INFINITY), None)],
    };
    assert_eq!(complete, expect);
}

#[test]
fn radii_go_together_and_fit_each_other() {
    check(
        "[replication]\nenter_radius_m = 80\n",
        "rules.toml:2: [replication] enter_radius_m: stands alone; write leave_radius_m beside it",
    );
    check(
        "[replication]\nleave_radius_m = 80\n",
        "rules.toml:2: [replication] leave_radius_m: stands alone; write enter_radius_m beside it",
    );
    check(
        "[replication]\nenter_radius_m = 80\nleave_radius_m = 70\n",
        "rules.toml:3: [replication] leave_radius_m: 70 is less than enter_radius_m, 80; make it at least that, better \
         a tenth more",
    );
    check(
        "[replication]\nscan_range_m = 0\n",
        "rules.toml:2: [replication] scan_range_m: 0 is too low; it may be 1 to 10000 m",
    );
}

/// What of a file reaches less far than it says, in a game that sees 60 m far in its hub, asks who is within 50 m and
/// has a range of its own for damage.
#[track_caller]
fn check_warnings(text: &str, scan: Option<ScanRange>, expect: &str) {
    let mut game = ReplicationRules::usual(
        ["Pose", "Vitals", "SpellEffects"],
        names().events.into_iter().map(|name| (name, None)),
    );
    game.events[1].range_m = Some(50.0);
    let widest = Some(("hub".into(), InterestRadii { enter_m: 60.0, leave_m: 70.0 }));
    let caps = RangeCaps { names: names(), game, widest, scan };
    let warnings = caps.warnings(&accept(text).replication);
    assert_eq!(warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), expect, "\n--- for:\n{text}");
}

/// Promise: a range that does less than it says is told with its line, what caps it and the way out.
#[test]
fn ranges_that_are_capped_are_told() {
    let lists = Some(ScanRange { usual_m: 50.0, asked_m: 50.0, ruled_m: None });
    check_warnings("[components.pose]\nrange_m = 60\n[events.boom]\nrange_m = inf\n", lists, "");
    check_warnings(
        "[components.pose]\nrange_m = 61\n[events.\"chat.say\"]\nper_s_max = 2\nrange_m = 300\n",
        lists,
        "rules.toml:2: [components.pose] range_m: 61 m reach no farther than the 60 m in which clients hold entities \
         (hub); lower it, or raise [replication] enter_radius_m and leave_radius_m\n\
         rules.toml:5: [events.\"chat.say\"] range_m: 300 m reach no farther than the 60 m in which clients hold entities \
         (hub); lower it, or raise [replication] enter_radius_m and leave_radius_m",
    );
    let radii = |enter_m: u32| format!("[replication]\nenter_radius_m = {enter_m}\nleave_radius_m = 400\n");
    check_warnings(&format!("{}[events.boom]\nrange_m = 300\n", radii(300)), lists, "");
    check_warnings(
        &format!("{}[events.boom]\nrange_m = 30\n", radii(20)),
        lists,
        "rules.toml:2: [replication] enter_radius_m: 20 m cut short what the game tells farther: combat.damage (50 m); \
         raise it, or lower those\n\
         rules.toml:5: [events.boom] range_m: 30 m reach no farther than the 20 m in which clients hold entities; lower \
         it, or raise [replication] enter_radius_m and leave_radius_m",
    );
    check_warnings("[replication]\nscan_range_m = 50\n", lists, "");
    check_warnings(
        "[replication]\nscan_range_m = 30\n",
        lists,
        "rules.toml:2: [replication] scan_range_m: 30 m are less than the 50 m that the game asks for, and such questions \
         look at everybody; raise it to that",
    );
    check_warnings(
        "[replication]\nscan_range_m = 80\n",
        None,
        "rules.toml:2: [replication] scan_range_m: the game keeps no neighbour lists; remove the key",
    );
}

#[test]
fn names_that_the_game_does_not_have_are_told_with_the_nearest_it_has() {
    check(
        "[components.vital]\nrange_m = 3\n",
        "rules.toml:1: [components.vital] the game has no such component; did you mean \"Vitals\"?",
    );
    check(
        "[events.\"chat.sya\"]\nrange_m = 3\n",
        "rules.toml:1: [events.\"chat.sya\"] the game has no such event; did you mean \"chat.say\"?",
    );
    check(
        "[events.weather]\nrange_m = 3\n",
        "rules.toml:1: [events.weather] the game has no such event; there are chat.say, combat.damage, boom",
    );
    check(
        "[components.vitals]\nrange = 3\n[events.boom]\nupdates_per_s_max = 3\n",
        "rules.toml:2: [components.vitals] range: unknown key; did you mean `range_m`?\n\
         rules.toml:4: [events.boom] updates_per_s_max: unknown key; known are range_m, per_s_max",
    );
    check(
        "[components]\nvitals = 3\n",
        "rules.toml:2: [components] vitals: holds a section for each component; write [components.NAME] and the key below it",
    );
    check(
        "[components.vitals]\n[components.Vitals]\nrange_m = 1\n",
        "rules.toml:1: [components.vitals] is the same component as [components.Vitals]; put all keys into one",
    );
    check(
        "[replication]\nkeepalive = 3\n",
        "rules.toml:2: [replication] keepalive: unknown key; did you mean `keepalive_s`?",
    );
}

#[test]
fn impossible_replication_is_told_with_its_range() {
    check(
        "[replication]\ncatch_up_m = 0\nkeepalive_s = nan\n[components.pose]\nupdates_per_s_max = 0\n[events.boom]\nrange_m = -1\n",
        "rules.toml:2: [replication] catch_up_m: 0 is too low; it may be 1 to inf m\n\
         rules.toml:3: [replication] keepalive_s: NaN is not a number; it may be 0.1 to 3600 s\n\
         rules.toml:5: [components.pose] updates_per_s_max: 0 is too low; it may be 0.01 to 1000 1/s\n\
         rules.toml:7: [events.boom] range_m: -1 is too low; it may be 0.1 to inf m",
    );
    check(
        "[[replication.tiers]]\nto_m = 40\n[[replication.tiers]]\nto_m = 30\nupdates_per_s = \"often\"\nto_km = 1\n",
        "rules.toml:2: [[replication.tiers]] updates_per_s: is missing; a tier needs it, such as `updates_per_s = 20`\n\
         rules.toml:4: [[replication.tiers]] to_m: 30 is not beyond the tier before, which goes to 40; put the nearest first\n\
         rules.toml:5: [[replication.tiers]] updates_per_s: must be a number, not \"often\"\n\
         rules.toml:6: [[replication.tiers]] to_km: unknown key; did you mean `to_m`?",
    );
    check(
        "[replication]\ntiers = 3\n",
        "rules.toml:2: [replication] tiers: is a list of sections; write [[replication.tiers]]",
    );
    let nine: String =
        (1..=9).map(|step| format!("[[replication.tiers]]\nto_m = {step}\nupdates_per_s = 1\n")).collect();
    check(&nine, "rules.toml:26: [[replication.tiers]] there are 9; 8 are possible");
}

/// The page that operators read shows every rule with its default; this is what keeps it true.
#[test]
fn the_rules_page_shows_every_section_with_its_defaults() {
    let page = include_str!("../../../../docs/rules.md");
    let mut samples = page.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    let defaults = samples.next().expect("docs/rules.md has the defaults in TOML");
    let mut written = accept(defaults);
    // What stands there is what holds without it.
    let said = std::mem::take(&mut written.replication);
    assert_ne!(said, ReplicationFileRules::default());
    let usual = ReplicationRules::usual([], []);
    assert_eq!(said.complete(usual.clone()), usual);
    // But that a time which is written down holds at every rate.
    let mut expect =
        ServerRules { written: written.written.clone(), text: written.text.clone(), ..ServerRules::default() };
    for kind in TriggerKind::ALL {
        for rules in [&mut written, &mut expect] {
            rules.recorder.trigger_mut(kind).fits_rate = false;
        }
    }
    assert_eq!(written, expect);
    for section in SECTIONS {
        assert!(defaults.contains(&format!("[{section}]")), "docs/rules.md: the defaults lack [{section}]");
    }
    // Every key that a section knows stands in it: without its line, the section would still be the default.
    for kind in TriggerKind::ALL {
        let header = format!("[triggers.{}]", kind.name());
        let body = defaults.split_once(&header).unwrap().1.split("\n[").next().unwrap();
        for key in keys_of(kind) {
            assert!(body.lines().any(|line| line.starts_with(&format!("{key} ="))), "{header}lacks {key}");
        }
    }
    let examples: Vec<_> = samples.map(accept).collect();
    assert!(!examples.is_empty(), "docs/rules.md has an example that says something");
}

/// The keys that a kind's section knows, as it tells somebody who wrote none of them.
fn keys_of(kind: TriggerKind) -> Vec<String> {
    let told = ServerRules::parse("rules.toml", &format!("[triggers.{}]\nunheard-of = 1\n", kind.name()), &names())
        .unwrap_err();
    let told = told.to_string();
    let (_, keys) = told.split_once("known are ").expect("an unknown key is told with the known ones");
    keys.split(", ").map(str::to_owned).collect()
}

/// A rules file in a folder of its own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("throng-rules-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("rules.toml")
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
    }

    fn open(&self) -> (RulesFile, ServerRules) {
        RulesFile::open(&self.path(), names()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a look says: nothing, an over_ms in force (ms), or the mistakes.
fn look(file: &mut RulesFile) -> String {
    match file.changed() {
        None => "-".to_owned(),
        Some(Ok(rules)) => format!("{} ms", rules.recorder.trigger(TriggerKind::Frame).threshold / 1_000_000),
        Some(Err(error)) => error.to_string().rsplit_once("rules.toml").unwrap().1.to_owned(),
    }
}

fn over_ms(value: u32) -> String {
    format!("[triggers.frame]\nover_ms = {value}\n")
}

#[test]
fn a_changed_file_is_read_once_when_it_has_settled() {
    let folder = Folder::new("changed");
    folder.write(&over_ms(7));
    let (mut file, rules) = folder.open();
    assert_eq!(rules.recorder.trigger(TriggerKind::Frame).threshold, 7_000_000);
    assert_eq!(look(&mut file), "-");

    folder.write(&over_ms(12));
    assert_eq!([look(&mut file), look(&mut file), look(&mut file)], ["-", "12 ms", "-"]);

    // An editor that writes another file and puts it in the old one's place, of the same length.
    let beside = folder.0.join("rules.new");
    fs::write(&beside, over_ms(13)).unwrap();
    fs::rename(&beside, folder.path()).unwrap();
    assert_eq!([look(&mut file), look(&mut file), look(&mut file)], ["-", "13 ms", "-"]);
}

#[test]
fn a_rule_that_somebody_said_holds_until_the_file_is_read_again() {
    let folder = Folder::new("said");
    folder.write("[components.vitals]\nrange_m = 30\nupdates_per_s_max = 2\n[log]\nai = \"warn\"\n");
    let (file, in_file) = folder.open();
    let told = Arc::new(Mutex::new(None));
    let game = ReplicationRules::usual(["Pose", "Vitals", "SpellEffects"], [("chat.say", None)]);
    let tell = {
        let (told, game) = (told.clone(), game.clone());
        move |in_file: &ServerRules, said: &ServerRules| {
            let rules = said.replication.complete(in_file.replication.complete(game.clone()));
            *told.lock().unwrap() = Some((rules.components[1], rules.keepalive_s, said.log_levels.clone()));
        }
    };
    let force = Force {
        levels_and_replication: Box::new(tell),
        complete: Box::new(std::convert::identity),
        recorder: None,
        game: game.clone(),
    };
    let rules = FollowedRules::follow(file, in_file, force).unwrap();
    let vitals = |range_m| KindRule { range_m: Some(range_m), updates_per_s_max: Some(2.0) };
    let debug = vec![("server.clients".to_owned(), Level::Debug)];
    let check = |key: &str, value: &str, expect: Result<(), &str>| {
        let said = rules.set(key, value, "alice");
        match expect {
            Ok(()) => assert_eq!(said, Ok(()), "{key} {value}"),
            Err(part) => assert!(said.as_ref().is_err_and(|wrong| wrong.contains(part)), "{key} {value}: {said:?}"),
        }
        told.lock().unwrap().clone()
    };
    check("components.vitals.range_m", "25.5", Ok(()));
    check("replication.keepalive_s", "4", Ok(()));
    let all = check("log.server.clients", "debug", Ok(()));
    assert_eq!(
        all,
        Some((vitals(25.5), 4.0, debug.clone())),
        "one beside the other, and what the file says of the rest"
    );
    for (key, value, wrong) in [
        ("replication.keepalive_s", "0.01", "0.01 is too low; it may be 0.1 to 3600 s"),
        ("replication.keepalive_s", "long", "number"),
        ("replication.keepalive", "4", "did you mean"),
        ("replication.enter_radius_m", "50", "leave_radius_m"),
        ("components.mana.range_m", "5", "no such component"),
        ("components.range_m", "5", "components.NAME.range_m"),
        ("log.server", "loud", "not \"loud\""),
        ("budgets.scopes_us.ai", "5", "`budget.set`"),
        ("triggers.frame.cooldown_s", "5", "the recorder is off"),
        ("triggers.frame.cooldown_s", "-1", "too low"),
        ("frame", "5", "such as triggers.frame.cooldown_s"),
        ("log.a\"]\n[b", "5", "no key has such letters"),
    ] {
        assert_eq!(check(key, value, Err(wrong)), all, "nothing changes: {key} {value}");
    }
    assert_eq!(check("log.ai", "a\"\nb", Err("not TOML")), all);

    let listed = || {
        let rows = rules.list().into_iter().map(|rule| (rule.key, rule.value.unwrap_or_default(), rule.from));
        let row = |(key, value, from)| (key, format!("{value} {from}"));
        rows.map(row).collect::<std::collections::BTreeMap<_, _>>()
    };
    let expect = [
        ("components.Vitals.range_m", "25.5 console"),
        ("components.Vitals.updates_per_s_max", "2 file"),
        ("components.Pose.range_m", "inf default"),
        ("components.Pose.updates_per_s_max", " default"),
        ("events.chat.say.range_m", "15 default"),
        ("replication.keepalive_s", "4 console"),
        ("replication.catch_up_m", "50 default"),
        ("log.server.clients", "debug console"),
        ("log.ai", "warn file"),
    ];
    let now = listed();
    for (key, told) in expect {
        assert_eq!(now.get(key).map(String::as_str), Some(told), "{key} in {now:?}");
    }
    assert!(!now.keys().any(|key| key.starts_with("triggers.")), "the recorder is off: {now:?}");

    rules.reload().unwrap();
    let now = listed();
    assert_eq!((&*now["components.Vitals.range_m"], &*now["replication.keepalive_s"]), ("30 file", "10 default"));
    assert!(!now.contains_key("log.server.clients"), "{now:?}");
    let usual_keepalive_s = ReplicationRules::usual([], []).keepalive_s;
    assert_eq!(*told.lock().unwrap(), Some((vitals(30.0), usual_keepalive_s, Vec::new())));
}

#[test]
fn what_is_said_of_a_trigger_leaves_all_else_of_the_recorder_alone() {
    let mut now = Rules::default();
    now.scope_budgets_ns = vec![("ai".to_owned(), 5)];
    now.trigger_mut(TriggerKind::Tick).is_on = false;
    let said = |key: &str, value: &str| {
        let place = said::Place::of(key).unwrap();
        said::change_recorders(&now, &place, value, &names()).expect("it is the recorder's")
    };
    let mut expect = now.clone();
    expect.trigger_mut(TriggerKind::Frame).cooldown_s = 5.0;
    assert_eq!(said("triggers.frame.cooldown_s", "5"), Ok(expect));
    let mut expect = now.clone();
    expect.captures_disk_budget_bytes = 3 << 20;
    assert_eq!(said("captures.disk_budget_mb", "3"), Ok(expect));
    let wrong = said("triggers.frame.cooldown_s", "86401").unwrap_err();
    assert!(wrong.contains("too high; it may be 0 to 86400 s"), "{wrong}");
    assert!(said("triggers.frame.on", "maybe").is_err() && said("triggers.fame.on", "true").is_err());
}

/// Promise: whoever has a Tab key finds every key that can be set.
#[test]
fn every_key_of_a_trigger_is_offered() {
    let offered = said::keys(&names());
    for kind in TriggerKind::ALL {
        for key in keys_of(kind) {
            assert!(offered.contains(&format!("triggers.{}.{key}", kind.name())), "{key} of {kind:?}: {offered:?}");
        }
    }
    let of_game = ["components.Vitals.updates_per_s_max", "events.chat.say.per_s_max", "captures.disk_budget_mb"];
    assert!(of_game.iter().all(|key| offered.iter().any(|offered| offered == key)), "{offered:?}");
}

#[test]
fn a_file_is_read_at_once_for_those_who_ask() {
    let folder = Folder::new("reload");
    folder.write(&over_ms(70));
    let (mut file, _) = folder.open();
    folder.write(&over_ms(80));
    assert_eq!(file.reload().unwrap(), accept(&over_ms(80)));
    assert_eq!([look(&mut file), look(&mut file)], ["-", "-"], "it counts as read");
    folder.write("[triggers.frame]\nover_ms = 0\n");
    let error = file.reload().unwrap_err().to_string();
    assert!(error.contains("[triggers.frame] over_ms"), "{error}");
    assert_eq!([look(&mut file), look(&mut file)], ["-", "-"], "its mistakes were told once");
}

#[test]
fn a_file_that_is_being_written_is_left_alone() {
    let folder = Folder::new("half");
    folder.write(&over_ms(7));
    let (mut file, _) = folder.open();
    // Truncated, half written, whole: each look finds another file, and the first two would have been valid.
    folder.write("");
    assert_eq!(look(&mut file), "-");
    folder.write("[triggers.frame]\n");
    assert_eq!(look(&mut file), "-");
    folder.write(&over_ms(21));
    assert_eq!([look(&mut file), look(&mut file)], ["-", "21 ms"]);
}

#[test]
fn a_wrong_file_is_told_once_per_change() {
    let folder = Folder::new("wrong");
    folder.write(&over_ms(7));
    let (mut file, _) = folder.open();
    folder.write(&over_ms(0));
    let told = ":2: [triggers.frame] over_ms: 0 is too low; it may be 0.001 to 60000 ms";
    assert_eq!([look(&mut file), look(&mut file), look(&mut file)], ["-", told, "-"]);
    folder.write("[log]\nbroken");
    assert_eq!(look(&mut file), "-");
    assert!(look(&mut file).contains("not TOML"));
    assert_eq!(look(&mut file), "-");
    folder.write(&over_ms(33));
    assert_eq!([look(&mut file), look(&mut file)], ["-", "33 ms"]);
}

#[test]
fn a_file_that_disappears_is_told_once_and_read_when_it_is_back() {
    let folder = Folder::new("gone");
    folder.write(&over_ms(7));
    let (mut file, _) = folder.open();
    fs::remove_file(folder.path()).unwrap();
    assert_eq!(look(&mut file), "-");
    assert_eq!(
        look(&mut file),
        ": no such file; create it (every setting has a default, so it may be empty) or name another in [recorder] rules"
    );
    assert_eq!([look(&mut file), look(&mut file)], ["-", "-"]);
    folder.write(&over_ms(44));
    assert_eq!([look(&mut file), look(&mut file), look(&mut file)], ["-", "44 ms", "-"]);
}

/// Promise: whatever a file says, it is read or told line by line; it never panics.
#[test]
fn ten_thousand_mutated_files_are_read_or_told() {
    use rand::{Rng, SeedableRng};
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(5);
    let page = include_str!("../../../../docs/rules.md");
    let samples: Vec<_> = page.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    let pieces =
        ["[", "]", "[[", "=", "\"", "\n", "{", ".", "-1", "1e999", "nan", "-9223372036854775808", "[log]\n", "#"];
    let (mut read, mut told) = (0, 0);
    for _ in 0..10_000 {
        let mut text = samples[rng.random_range(0..samples.len())].to_owned();
        for _ in 0..rng.random_range(1..4) {
            let at = text.floor_char_boundary(rng.random_range(0..=text.len()));
            let end = text.floor_char_boundary((at + rng.random_range(0..12)).min(text.len()));
            match rng.random_range(0..2) {
                0 => text.replace_range(at..end, ""),
                _ => text.insert_str(at, pieces[rng.random_range(0..pieces.len())]),
            }
        }
        match ServerRules::parse("rules.toml", &text, &names()) {
            Ok(_) => read += 1,
            Err(error) => {
                let error = error.to_string();
                assert!(error.starts_with("rules.toml:"), "{error}");
                told += 1;
            }
        }
    }
    assert!(read > 500 && told > 500, "{read} read, {told} told");
}
