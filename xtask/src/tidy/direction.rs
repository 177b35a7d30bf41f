//! Direction: which room may use which. Nothing knows what stands above it.
//!
//! A room may use rooms of lower floors, never one of its own floor or above. Tests may also use rooms of the same
//! floor (a neighbour is a good counterpart), but nothing above either: a room that can only be tried through what
//! is built on it cannot be understood alone, and a fault up there would turn its tests red.

use super::crates::Crate;

/// From the ground up. A new room goes on the lowest floor that is above all it uses.
const FLOORS: [&[&str]; 17] = [
    &["platform", "commit", "pack-derive", "redact", "replication-derive", "profiler-macros", "new", "pages"],
    &["metrics", "capture", "crash", "pack", "history"],
    &["profiler"],
    &["analytics", "scheduler", "net"],
    &["replication", "query", "persistence"],
    &["world", "rewind", "typescript"],
    &["server"],
    &["client", "faults", "speech"],
    &["bots", "bevy", "admin", "browser", "upload", "one_dependency"],
    &["simulator", "game", "likeness"],
    &["games", "guide"],
    &["lab"],
    &["cli"],
    &["shipped", "meadow", "bazaar"],
    &["harness"],
    &["bench"],
    &["xtask"],
];

pub(super) fn check(crates: &[Crate]) -> Vec<String> {
    let mut problems = Vec::new();
    for one in crates {
        let Some(floor) = floor_of(one) else {
            problems
                .push(format!("{}: stands on no floor; add it to FLOORS in xtask/src/tidy/direction.rs", one.folder));
            continue;
        };
        let used = |names: &'_ std::collections::BTreeSet<String>| -> Vec<&Crate> {
            crates.iter().filter(|other| names.contains(&other.name) && other.name != one.name).collect()
        };
        for other in used(&one.uses) {
            if floor_of(other).is_some_and(|other_floor| other_floor >= floor) {
                problems.push(edge(
                    one,
                    other,
                    "uses",
                    "it may use only floors below its own; move what they share down",
                ));
            }
        }
        for other in used(&one.tests_use) {
            if floor_of(other).is_some_and(|other_floor| other_floor > floor) {
                problems.push(edge(one, other, "is tested with", "move that test up, to where both are known"));
            }
        }
    }
    problems
}

fn edge(one: &Crate, other: &Crate, verb: &str, next: &str) -> String {
    format!("{}/Cargo.toml: {} {verb} {}, which is not below it; {next}", one.folder, one.name, other.name)
}

/// Counted from 0 at the ground. Games and benches are floors of many rooms; what they share is a room of its own, as
/// elsewhere.
pub(super) fn floor_of(one: &Crate) -> Option<usize> {
    let parent = one.folder.split('/').next().unwrap_or_default();
    let floor = |name| FLOORS.iter().position(|floor| floor.contains(&name));
    match parent {
        // The others are called after what they measure.
        "bench" if one.room() != "harness" => floor(parent),
        "games" => floor(one.room()).or_else(|| floor(parent)),
        _ => floor(one.room()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::crates;

    fn made_up(folder: &str, uses: &[&str], tests_use: &[&str]) -> Crate {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Crate {
            name: folder.replace('/', "-"),
            folder: folder.to_owned(),
            uses: names(uses),
            tests_use: names(tests_use),
            ..Crate::default()
        }
    }

    #[track_caller]
    fn check(crates: &[Crate], expect: &[&str]) {
        let found = super::check(crates);
        assert_eq!(found.len(), expect.len(), "{found:?}");
        for (problem, part) in found.iter().zip(expect) {
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn downward_is_fine_level_and_upward_are_not() {
        let platform = || made_up("runtime/platform", &[], &[]);
        let scheduler = || made_up("runtime/scheduler", &["runtime-platform"], &[]);
        check(&[platform(), scheduler()], &[]);
        let level = made_up("runtime/net", &["runtime-scheduler"], &[]);
        check(&[platform(), scheduler(), level], &["runtime-net uses runtime-scheduler, which is not below it"]);
        let upward = made_up("runtime/platform", &["runtime-scheduler"], &[]);
        check(&[upward, scheduler()], &["runtime/platform/Cargo.toml: runtime-platform uses runtime-scheduler"]);
    }

    #[test]
    fn tests_may_use_neighbours_but_nothing_above() {
        let simulator = || made_up("toolbox/simulator", &[], &[]);
        let admin = made_up("toolbox/admin", &[], &[]);
        check(&[admin, made_up("toolbox/bots", &[], &["toolbox-admin"])], &[]);
        check(
            &[simulator(), made_up("runtime/net", &[], &["toolbox-simulator"])],
            &["runtime-net is tested with toolbox-simulator"],
        );
    }

    #[test]
    fn benches_share_a_floor_whatever_they_are_called_after() {
        let harness = || made_up("bench/harness", &[], &[]);
        let scheduler = || made_up("bench/scheduler", &["bench-harness"], &[]);
        check(&[harness(), scheduler()], &[]);
        check(
            &[made_up("bench/worlds", &["bench-scheduler"], &[]), scheduler(), harness()],
            &["bench-worlds uses bench-scheduler, which is not below it"],
        );
    }

    #[test]
    fn games_share_a_floor_and_unknown_rooms_have_none() {
        let duel = made_up("games/duel", &["games-precinct"], &[]);
        let precinct = made_up("games/precinct", &[], &[]);
        check(&[duel, precinct], &["games-duel uses games-precinct"]);
        let speech = || made_up("games/speech", &[], &[]);
        check(&[made_up("games/duel", &["games-speech"], &[]), speech()], &[]);
        check(
            &[made_up("runtime/server", &["games-speech"], &[]), speech()],
            &["runtime-server uses games-speech, which is not below it"],
        );
        check(&[made_up("runtime/attic", &[], &[])], &["runtime/attic: stands on no floor"]);
    }

    /// The promise of ARCHITECTURE.md: dependencies between our crates point downwards.
    #[test]
    fn this_workspace_points_downwards() {
        let crates = crates::read(&crate::step::root()).unwrap();
        assert!(crates.len() > 5, "the workspace was not found");
        assert_eq!(super::check(&crates), Vec::<String>::new());
    }
}
