//! Faults that are put in on purpose: the right trigger saves a capture by itself, and `throng capture show` names the
//! cause.
//!
//! A shared machine has faults of its own, so other captures beside the wanted one are no failure; a wanted one that is
//! missing is. Where a fault is about who has a core when, the machine may set the same trigger off before, after which
//! that thread's cause would rest for half a minute: there the trigger never rests.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;
use throng_platform::testing::not_permitted;

use crate::child::{alone, captures_in, finish, folder, may_be_real_time, throng};

const WITHIN: Duration = Duration::from_secs(240);

/// Triggers for faults that the machine makes, too. How long one of many busy threads keeps a core from a thread that
/// wakes is the kernel's to say: 6 to 8 ms on one kernel where the default limit is 10 ms.
const NO_COOLDOWN: &str = "[triggers.lock-wait]\ncooldown_s = 0\n[triggers.run-queue]\nover_ms = 4\ncooldown_s = 0\n";

const PRECINCT: [&str; 3] = ["precinct", "--npcs", "100"];

/// Runs a small Precinct with a fault and has the captures of the fault's trigger told: one of the verdicts must have
/// all of `words`.
fn check(fault: &str, seconds: u32, trigger: &str, words: &[&str]) {
    check_told(fault, seconds, trigger, words, &[]);
}

/// As [`check`]; the rest of that story must have all of `details`.
fn check_told(fault: &str, seconds: u32, trigger: &str, words: &[&str], details: &[&str]) {
    check_game(&PRECINCT, fault, seconds, "", trigger, words, details);
}

/// As [`check`], for faults that the host's scheduler has a part in: nothing else measures meanwhile.
fn check_restless(fault: &str, seconds: u32, trigger: &str, words: &[&str]) {
    let _alone = alone();
    check_game(&PRECINCT, fault, seconds, NO_COOLDOWN, trigger, words, &[]);
}

/// The game is played with ten players and these words, of which its name is the first.
fn check_game(game: &[&str], fault: &str, seconds: u32, rules: &str, trigger: &str, words: &[&str], details: &[&str]) {
    let place = folder(&format!("faults-{}-{fault}", game[0]));
    let [captures, rules_file, settings, report] =
        ["captures", "rules.toml", "throng.toml", "report"].map(|name| place.join(name));
    fs::create_dir(&captures).expect("a folder of ours");
    fs::write(&rules_file, rules).expect("a folder of ours");
    fs::write(&settings, format!("[recorder]\nrules = {rules_file:?}\n")).expect("a folder of ours");
    let [captures_place, settings, report] =
        [&captures, &settings, &report].map(|path: &PathBuf| path.display().to_string());
    let seconds = seconds.to_string();
    let load = ["load", "--players", "10", "--seconds", &seconds, "--config", &settings, "--game"];
    // Others may run beside this one.
    let kept = ["--captures", &captures_place, "--report", &report, "--inject", fault, "--json"];
    let finished = finish(throng(&[&load[..], game, &kept].concat()), WITHIN);
    let report = finished.json();
    assert_eq!(report["state_errors"], 0, "a fault of time is no fault of state: {report}");
    assert_eq!(report["records_lost"], 0, "{report}");

    let saved = captures_in(&captures.join(trigger));
    assert!(!saved.is_empty(), "{fault}: nothing in {trigger}; {}", finished.stderr);
    let stories: Vec<Value> = saved.iter().map(|path| story(path)).collect();
    let is_told = |story: &Value| {
        let (verdict, all) = (verdict(story), story.to_string());
        words.iter().all(|word| verdict.contains(word)) && details.iter().all(|word| all.contains(word))
    };
    let verdicts: Vec<&str> = stories.iter().map(verdict).collect();
    assert!(stories.iter().any(is_told), "{fault}: no verdict has all of {words:?}:\n{}", verdicts.join("\n"));
}

/// The one sentence above everything else.
fn verdict(story: &Value) -> &str {
    story["verdict"].as_str().expect("a story has a verdict")
}

fn story(path: &Path) -> Value {
    let finished = finish(throng(&["capture", "show", "--json", &path.display().to_string()]), WITHIN);
    assert!(finished.status.success(), "{}: {}", path.display(), finished.stderr);
    finished.json()
}

#[test]
fn one_slow_world_is_named() {
    // Hub and dark zone have the first two ids: the first hideout is world 2.
    // On a busy machine the world also lacks a core for a part of its 40 ms, and the verdict is about that.
    let details = ["throng_faults.world.inflict"];
    check_told("slow-world", 3, "scope", &["world 2 (hideout) took"], &details);
}

#[test]
fn a_short_task_that_waits_for_a_long_one_is_named_with_both_scopes() {
    let words = ["faults.ledger", "save.flush", "save-0", "faults.ledger.read", "riority inversion"];
    check_restless("lock-inversion", 10, "lock-wait", &words);
}

/// Exactly: with what they had of the core that was waited for.
#[test]
fn foreign_processes_that_take_the_cores_are_named() {
    if !may_be_real_time() {
        return not_permitted("real-time processes, which take the cores from us, need root or CAP_SYS_NICE");
    }
    check_restless("stolen-cores", 12, "run-queue", &["taken by other processes", " sh ", " of these"]);
}

#[test]
fn our_own_long_tasks_that_take_the_cores_are_named() {
    check_restless("long-tasks", 12, "run-queue", &["our own long task", "export-"]);
}

#[test]
fn a_thread_that_starts_to_allocate_is_named() {
    check("alloc-rate", 10, "memory-rate", &["chatter", "chatter.remember"]);
}

#[test]
fn a_subsystem_over_its_budget_is_named() {
    check("over-budget", 3, "subsystem", &["faults.ballast", "over its budget of 5.00 ms"]);
}

#[test]
fn a_large_allocation_in_a_tick_is_named() {
    check("big-alloc", 4, "large-allocation", &["300", "faults.satchel.fill", "world 2"]);
}

/// Promise: a fault is put into the world of any game.
#[test]
fn a_large_allocation_in_the_one_world_of_frontier_is_named() {
    let words = ["300", "faults.satchel.fill", "(frontier)"];
    check_game(&["frontier", "--npcs", "100"], "big-alloc", 4, "", "large-allocation", &words, &[]);
}

/// And into one of the matches that a lobby has made.
#[test]
fn a_large_allocation_in_a_match_of_duel_is_named() {
    let words = ["300", "faults.satchel.fill", "(match)"];
    // Its usual load waits for two rounds before it measures.
    check_game(&["duel", "--settle-s-max", "0"], "big-alloc", 6, "", "large-allocation", &words, &[]);
}

#[test]
fn a_slow_leak_is_named() {
    check("leak", 45, "leak", &["faults.attic.store", "leak"]);
}
