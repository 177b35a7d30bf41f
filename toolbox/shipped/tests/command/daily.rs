//! A day of load runs in small: every game's scenarios in one folder, and a rare crash, which is found, linked, and comes
//! again from its recording.
//!
//! The full form runs everything there is, and the crash that comes once in 100,000 actions.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;
use throng_crash::CrashReport;
use throng_history::Machine;

use crate::{
    child::{Finished, PATIENCE, Signal, Started, alone, finish, folder, this_build, throng, wait_until},
    s3_server::{self, S3Server},
};

const WITHIN: Duration = Duration::from_secs(240);

fn words<'a>(root: &'a Path, arguments: &[&'a str]) -> Vec<&'a str> {
    let root = root.to_str().expect("a plain path");
    [&["load", "--daily", "--json", "--report", root], arguments].concat()
}

/// The day that it reports, which is the same on the disk, with an index over all days beside it.
fn check_day(finished: &Finished, root: &Path) -> (Value, PathBuf) {
    let day = finished.json();
    let passed = day["passed"].as_bool().expect("a verdict");
    assert_eq!(finished.status.code(), Some(if passed { 0 } else { 1 }), "{}", finished.stderr);
    assert_eq!(
        format!("throng {} ({})", day["version"].as_str().unwrap(), day["commit"].as_str().unwrap()),
        this_build()
    );
    let name = day["day"].as_str().expect("it is named after its day");
    let place = root.join(name);
    let written = fs::read_to_string(place.join("report.json")).expect("the day was written");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), day, "the file says what the terminal says");
    let page = fs::read_to_string(place.join("report.html")).expect("a page was written");
    let index = fs::read_to_string(root.join("index.html")).expect("an index was written");
    assert!(page.trim_end().ends_with("</html>") && index.contains(&format!("href=\"{name}/report.html\"")), "{index}");
    (day, place)
}

fn runs(day: &Value) -> Vec<(&str, &str, &str)> {
    let runs = day["runs"].as_array().expect("a list").iter();
    runs.map(|run| {
        let [game, scenario, verdict] =
            ["game", "scenario", "verdict"].map(|key| run[key].as_str().unwrap_or_else(|| panic!("no {key} in {run}")));
        (game, scenario, verdict)
    })
    .collect()
}

/// A report of a death, once it is whole.
fn crash_report(text: &Path) -> CrashReport {
    let file = text.with_file_name("report.json");
    let report = wait_until(PATIENCE, || serde_json::from_slice(&fs::read(&file).ok()?).ok());
    report.unwrap_or_else(|| panic!("no report in {}", file.display()))
}

/// What ended a process: the world, its tick and its seed, and what equal deaths have in common.
fn told_of(report: &CrashReport) -> (u32, Option<u64>, Option<u64>, Option<String>, String) {
    let culprits = report.culprits();
    let [world] = culprits.as_slice() else { panic!("one culprit and not {culprits:?}: {}", report.text()) };
    (world.id, world.tick, world.seed, world.kind.clone(), report.signature.clone())
}

/// Runs a day with one run, whose server dies of the rare crash, and holds its recording against it.
fn a_rare_crash_comes_again(name: &str, size: &[&str]) {
    let root = folder(name);
    let rare = ["--scenario", "usual", "--settle-s-max", "0", "--history", "none"];
    let finished = finish(throng(&words(&root, &[size, &rare[..]].concat())), 3 * WITHIN);
    let (day, place) = check_day(&finished, &root);
    let run = &day["runs"][0];
    assert_eq!((finished.status.code(), &run["verdict"]), (Some(1), &"died".into()), "{}", finished.stderr);
    let death = &run["death"];
    let linked = |key: &str| {
        let path = place.join(death[key].as_str().unwrap_or_else(|| panic!("no {key} in {death}")));
        assert!(path.exists(), "{key}: {}", path.display());
        path
    };
    let [report, capture, recording] = ["crash_report", "capture", "recording"].map(linked);
    let page = fs::read_to_string(place.join("report.html")).expect("a page was written");
    for key in ["crash_report", "capture", "recording"] {
        let link = format!("href=\"{}\"", death[key].as_str().unwrap());
        assert!(page.contains(&link), "{link}");
    }
    let run_folder = run["folder"].as_str().expect("it has one");
    let replay = format!("throng replay {run_folder}/recordings --crashes {run_folder}/replayed");
    assert_eq!(death["replay"], replay, "for a shell in the day's folder");
    let shown = finish(throng(&["capture", "show", "--json", capture.to_str().unwrap()]), WITHIN);
    assert!(shown.status.success(), "{}", shown.stderr);
    let report = crash_report(&report);
    assert!(report.signature.starts_with("SIGSEGV"), "{}", report.text());

    // The recording ends in the same tick of the same world, in the same way.
    let crashes = root.join("replayed");
    let replay = ["replay", recording.to_str().unwrap(), "--json", "--crashes", crashes.to_str().unwrap()];
    let replayed = finish(throng(&replay), WITHIN);
    assert_eq!(replayed.status.signal(), Some(Signal::SIGSEGV as i32), "{}\n{}", replayed.stdout, replayed.stderr);
    let death = wait_until(PATIENCE, || fs::read_dir(&crashes).ok()?.flatten().next()).expect("it left a report");
    assert_eq!(told_of(&crash_report(&death.path().join("report.txt"))), told_of(&report));
    // Up to the tick before it all is as it was.
    let tick = told_of(&report).1.expect("the recorder knows the tick");
    let until = ["--json", "--to-tick", &(tick - 1).to_string()];
    let until = finish(throng(&[&["replay", recording.to_str().unwrap()], &until[..]].concat()), WITHIN);
    let until_status = (until.status.code(), until.json()["gaps"].clone());
    assert_eq!(until_status, (Some(0), 0.into()), "{}\n{}", until.stdout, until.stderr);
}

/// Promise: a crash that comes once in many actions is found by a day, with its report, its capture, and a recording that
/// comes to it again.
#[test]
fn a_rare_crash_is_found_and_its_recording_comes_to_it_again() {
    let _alone = alone();
    // Six players say some 120 times a second what they do.
    let frontier = ["--game", "frontier", "--players", "6", "--npcs", "20", "--seconds", "100"];
    a_rare_crash_comes_again("daily-rare-frontier", &[&frontier[..], &["--inject", "rare-crash=500"]].concat());
}

/// The same in one of many small worlds.
#[test]
fn a_rare_crash_in_one_of_many_worlds_comes_again() {
    let _alone = alone();
    let precinct = ["--game", "precinct", "--players", "8", "--npcs", "40", "--seconds", "100", "--workers", "2"];
    a_rare_crash_comes_again("daily-rare-precinct", &[&precinct[..], &["--inject", "rare-crash=500"]].concat());
}

/// The same in a match at 128 Hz, which the lobby has made.
#[test]
fn a_rare_crash_in_a_match_comes_again() {
    let _alone = alone();
    // Ten players say 1,280 times a second what they do: it strikes in the warm-up or soon after.
    let duel = ["--game", "duel", "--players", "10", "--seconds", "100", "--inject", "rare-crash=5000"];
    a_rare_crash_comes_again("daily-rare-duel", &duel);
}

#[test]
#[ignore = "full form: 10 minutes of 1,000 players"]
fn a_crash_of_one_action_in_a_hundred_thousand_is_found() {
    let _alone = alone();
    let precinct = ["--game", "precinct", "--players", "1000", "--seconds", "600", "--inject", "rare-crash"];
    a_rare_crash_comes_again("daily-rare-full", &precinct);
}

fn machine_of(run: &Path) -> Machine {
    let report = fs::read(run.join("report.json")).expect("each run has one");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    serde_json::from_value(report["machine"].clone()).expect("a machine")
}

/// Promise: every game has its runs in the day, each with its own report, history and verdict; a second day of the same date
/// stands beside it.
#[test]
fn a_day_has_a_run_of_every_game() {
    let _alone = alone();
    let root = folder("daily-games");
    let history = root.join("history").display().to_string();
    fs::create_dir_all(root.join("notes")).expect("a folder of ours");
    let size =
        ["--players", "6", "--npcs", "20", "--seconds", "2", "--history", &history, "--scenario", "log-in-at-once"];
    let mut machines: Vec<Vec<Machine>> = Vec::new();
    for number in [1, 2] {
        let finished = finish(throng(&words(&root, &size)), WITHIN);
        let (day, place) = check_day(&finished, &root);
        machines.push(runs(&day).iter().map(|run| machine_of(&place.join(format!("{}-{}", run.0, run.1)))).collect());
        assert!(finished.stderr.contains("notes is no day"), "{}", finished.stderr);
        let games: Vec<(&str, &str)> = runs(&day).iter().map(|(game, scenario, _)| (*game, *scenario)).collect();
        let at_once = "log-in-at-once";
        assert_eq!(games, [("precinct", at_once), ("frontier", at_once), ("duel", at_once)], "{day}");
        for run in &runs(&day) {
            assert!(["passed", "failed"].contains(&run.2), "{run:?}: {}", finished.stderr);
            let own = place.join(format!("{}-{}", run.0, run.1));
            assert!(own.join("report.json").exists() && own.join("report.html").exists(), "{}", own.display());
            assert!(!own.join("recordings").exists(), "it led to nothing");
        }
        for (place, run) in day["runs"].as_array().unwrap().iter().enumerate() {
            assert!(run["worst_frame"]["ms"].as_f64() > Some(0.0) && run["bars"].is_array(), "{run}");
            // A host whose cores were taken meanwhile calibrates as another one.
            let has_earlier = number == 2 && machines[0][place].is_like(&machines[1][place]);
            assert_eq!(run["history"]["runs"], 1 + u32::from(has_earlier), "{run}: {machines:?}");
            assert_eq!(run["history"]["usual_us"].is_number(), has_earlier, "{run}");
        }
        assert_eq!(day["day"].as_str().map(|name| name.ends_with("-2")), Some(number == 2), "{day}");
    }
}

/// Promise: what was measured is told, also where it cannot be kept.
#[test]
fn a_history_that_cannot_be_written_takes_no_figures() {
    let _alone = alone();
    let root = folder("daily-unkept");
    // A file is no folder.
    let history = root.join("history");
    fs::write(&history, "").expect("a file of ours");
    let history = history.display().to_string();
    let size = ["--game", "frontier", "--scenario", "usual", "--players", "4", "--npcs", "0", "--seconds", "2"];
    let finished = finish(throng(&words(&root, &[&size[..], &["--history", &history]].concat())), WITHIN);
    let (day, place) = check_day(&finished, &root);
    let run = &day["runs"][0];
    assert!(run["bars"].as_array().is_some_and(|bars| !bars.is_empty()) && run["history"].is_null(), "{run}");
    assert!(["passed", "failed"].map(Value::from).contains(&run["verdict"]), "{run}");
    assert!(finished.stderr.contains("not held against its own history"), "{}", finished.stderr);
    assert!(!place.join("frontier-usual/recordings").exists(), "it led to nothing");
}

/// Promise: a day is told, also where the index over all days cannot be written.
#[test]
fn an_index_that_cannot_be_written_hides_no_day() {
    let _alone = alone();
    let root = folder("daily-no-index");
    fs::create_dir_all(root.join("index.html/in-the-way")).expect("a folder of ours");
    let size = ["--game", "frontier", "--scenario", "usual", "--players", "4", "--npcs", "0", "--seconds", "2"];
    let finished = finish(throng(&words(&root, &[&size[..], &["--history", "none"]].concat())), WITHIN);
    let day = finished.json();
    let passed = day["passed"].as_bool().expect("a verdict");
    assert_eq!(finished.status.code(), Some(if passed { 0 } else { 1 }), "{}", finished.stderr);
    for part in ["the index over all days cannot be written", "frontier, usual: ", "report: "] {
        assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
    }
    assert!(!finished.stderr.contains("all days: "), "{}", finished.stderr);
}

/// All files below a folder, by their path in it.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap_or_else(|cause| panic!("{}: {cause}", next.display())) {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it is below").to_owned();
                found.insert(name, fs::read(&path).expect("it can be read"));
            }
        }
    }
    found
}

/// Promise: where the settings name an object store, a day goes there, byte for byte and without what players saved, with the index over
/// all days; a store that does not answer fails no day, and what would bring it there is told.
#[test]
fn a_day_goes_to_the_object_store_with_the_index_over_all_days() {
    let _alone = alone();
    let server = S3Server::start("daily");
    let (root, pulled, settings) =
        (folder("daily-store"), folder("daily-store-pulled"), folder("daily-store-settings"));
    let store = server.settings(s3_server::KEY, s3_server::KEY);
    let text = format!(
        "[object_store]\nendpoint = {:?}\nbucket = {:?}\nprefix = \"night\"\nkey_file = {:?}\nname = \"host-7\"\n",
        server.endpoint,
        s3_server::BUCKET,
        store.key_file.expect("the key is in a file"),
    );
    let settings = settings.join("throng.toml");
    fs::write(&settings, text).expect("a folder of ours");
    let settings = settings.to_str().expect("a plain path");
    let size = ["--game", "frontier", "--scenario", "usual", "--players", "4", "--npcs", "0", "--seconds", "2"];
    let run =
        || finish(throng(&words(&root, &[&size[..], &["--history", "none", "--config", settings]].concat())), WITHIN);

    let finished = run();
    let (day, place) = check_day(&finished, &root);
    let day = day["day"].as_str().expect("it is named after its day");
    let told = format!("report: in the object store as night/host-7/reports/daily/{day}");
    assert!(finished.stderr.contains(&told), "{}", finished.stderr);
    let to = pulled.to_str().expect("a plain path");
    let pull = finish(throng(&["sync", "pull", to, "--at", "host-7/reports/daily", "--config", settings]), WITHIN);
    assert!(pull.status.success(), "{}", pull.stderr);
    let (mut there, mut here) = (contents(&pulled), contents(&place));
    assert_eq!(
        there.remove(Path::new("index.html")),
        fs::read(root.join("index.html")).ok(),
        "the index is beside the days"
    );
    let all = here.len();
    here.retain(|name, _| !name.iter().any(|part| part == "saves"));
    assert!(here.len() < all, "the run has saved players, who are nobody's report");
    let here: BTreeMap<PathBuf, Vec<u8>> =
        here.into_iter().map(|(name, bytes)| (Path::new(day).join(name), bytes)).collect();
    assert!(here.contains_key(&Path::new(day).join("frontier-usual/report.json")), "{:?}", here.keys());
    assert_eq!(there.keys().collect::<Vec<_>>(), here.keys().collect::<Vec<_>>());
    assert!(there == here, "every byte");

    drop(server);
    let finished = run();
    let (again, place) = check_day(&finished, &root);
    let again = again["day"].as_str().expect("it is named after its day");
    let command = format!("`throng sync push {} --at host-7/reports/daily/{again}` tries again", place.display());
    for part in ["the report is not in the object store: ", &command] {
        assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
    }
}

/// Promise: who stops a day gets a report of what there was.
#[test]
fn a_day_that_is_stopped_reports_what_there_was() {
    let _alone = alone();
    let root = folder("daily-stopped");
    let size = ["--game", "frontier", "--players", "4", "--npcs", "0", "--seconds", "600", "--settle-s-max", "0"];
    let day = Started::new(throng(&words(&root, &[&size[..], &["--history", "none"]].concat())));
    day.wait_for_words("   2 of 600 s");
    day.signal(Signal::SIGINT);
    let finished = day.finish(WITHIN);
    let (day, place) = check_day(&finished, &root);
    assert_eq!((&day["interrupted"], &day["passed"]), (&true.into(), &false.into()));
    let runs = runs(&day);
    assert_eq!(runs[0], ("frontier", "usual", "failed"));
    assert!(runs.len() > 1 && runs[1..].iter().all(|(.., verdict)| *verdict == "not_run"), "{runs:?}");
    assert!(place.join("frontier-usual/report.html").exists());
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let root = folder("daily-refused");
    let check = |arguments: &[&str], parts: &[&str]| {
        finish(throng(&words(&root, arguments)), WITHIN).check_refused(parts);
        assert_eq!(fs::read_dir(&root).expect("a folder of ours").count(), 0, "nothing was made");
    };
    check(&["--scenario", "rush"], &["rush", "log-in-at-once", "dark-zone"]);
    check(&["--game", "duel", "--npcs", "3"], &["--npcs does nothing in duel"]);
    check(&["--game", "frontier", "--inject", "dear-hideout"], &["dear-hideout", "no place"]);
    check(&["--captures", "elsewhere"], &["--daily", "--captures"]);
}

#[test]
#[ignore = "full form: an hour"]
fn every_scenario_of_every_game_at_its_size() {
    let _alone = alone();
    let root = folder("daily-full");
    let finished = finish(throng(&words(&root, &[])), Duration::from_secs(7_200));
    let (day, _) = check_day(&finished, &root);
    assert!(runs(&day).len() >= 8, "{day}");
    assert!(runs(&day).iter().all(|(.., verdict)| *verdict == "passed"), "{:?}", runs(&day));
}
