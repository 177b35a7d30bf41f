//! Load runs: their server saves into a file of its own in the report's folder, begun anew with each run, and the report says
//! what that cost. Nobody else's saves are touched.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    folder::Folder,
    life::bazaar,
    place::{Place, Terms, write_settings},
};

/// A short run; its report.
fn load(folder: &Path, words: &[&str]) -> Value {
    let usual = ["load", "--players", "8", "--seconds", "4", "--report", "report", "--json"];
    let output = bazaar(folder, &[&usual[..], words].concat()).output().unwrap();
    let (stdout, stderr): (String, String) =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).into();
    let line = stdout.lines().last().unwrap_or_default();
    let report: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line} {stderr}"));
    assert_eq!((&report["players_connected"], &report["interrupted"]), (&8.into(), &false.into()), "{stderr}");
    assert_eq!(stderr.contains("note saved "), report["saves"].is_object(), "{stderr}");
    report
}

fn players_saved(file: &Path) -> usize {
    let place = Place::File(file.parent().expect("in a folder").to_owned());
    place.wealth().unwrap_or_else(|why| panic!("{}: {why}", file.display())).deeds.len()
}

#[test]
fn a_load_run_saves_into_its_report_and_says_what_it_cost() {
    let folder = Folder::new("loads");
    // As an operator's own: with these settings alone the file would be beside them.
    write_settings(folder.path(), &Place::File(folder.path().to_owned()), &Terms::default());
    let settings = fs::read_to_string(folder.path().join("throng.toml")).unwrap();
    let settings: Vec<&str> = settings.lines().filter(|line| !line.starts_with("ledger")).collect();
    fs::write(folder.path().join("throng.toml"), settings.join("\n")).unwrap();

    let report = load(folder.path(), &[]);
    let saves = &report["saves"];
    for key in ["commits", "bytes", "transactions", "transaction_ms_max", "thread_cpu_s", "cpu_share"] {
        assert!(saves[key].as_f64() > Some(0.0), "{key}: {saves}");
    }
    assert!(saves["cpu_share"].as_f64() < Some(1.0), "{saves}");
    let page = fs::read_to_string(folder.path().join("report/report.html")).unwrap();
    assert!(page.contains("<h2>Saves</h2>") && page.contains("The longest transaction"));
    let file = folder.path().join("report/saves/saves.redb");
    assert_eq!(players_saved(&file), 8);
    assert!(!folder.store().exists(), "nothing beside the settings");
    // What an earlier run left is not gone on with.
    let again = load(folder.path(), &[]);
    assert_eq!(again["counters"]["saves.players_loaded"], 0, "{}", again["counters"]);

    let none = load(folder.path(), &["--saves", "none"]);
    assert_eq!(none["saves"], Value::Null);
    assert!(!folder.store().exists());
    let own = load(folder.path(), &["--saves", "settings"]);
    assert!(own["saves"].is_object());
    assert_eq!(players_saved(&folder.store()), 8);
}
