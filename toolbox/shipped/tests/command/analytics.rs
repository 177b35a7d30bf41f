//! Analytics events of the shipped command: what a game tells is in files when the server has ended, and counted.

use std::{collections::BTreeMap, fs, time::Duration};

use serde_json::Value;

use crate::{
    address::KEY,
    child::{Server, finish, folder, settings_file, throng},
};

#[test]
fn what_players_did_is_in_files_once_the_server_has_ended() {
    let events = folder("analytics-events");
    let text = format!("[analytics]\nfolder = {:?}\nserver = \"test\"\n", events.join("files"));
    let settings = settings_file("analytics", &text);
    let settings = settings.to_str().expect("a plain path");
    let server = Server::start(&["--config", settings, "--players", "3", "--npcs", "10"]);
    let address = server.address.to_string();
    let mut bots = throng(&["bots", "--connect", &address, "--players", "3", "--seconds", "2"]);
    bots.env("THRONG_PRIVATE_KEY", KEY);
    let bots = finish(bots, Duration::from_secs(60));
    assert!(bots.status.success(), "{}", bots.stderr);
    let ended = server.stop();
    assert!(ended.status.success());

    let (mut counts, mut sequence) = (BTreeMap::<String, u64>::new(), 0);
    for entry in fs::read_dir(events.join("files")).expect("it was made").flatten() {
        let text = fs::read_to_string(entry.path()).expect("text");
        assert!(text.ends_with('\n'), "the last line is whole");
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).expect("an object");
            assert_eq!(
                (event["sequence"].as_u64(), event["server"].as_str()),
                (Some(sequence), Some("test")),
                "{line}"
            );
            let name = event["event"].as_str().expect("a name");
            assert!(event["version"] == 1 && event["fields"].is_object(), "{line}");
            *counts.entry(name.to_owned()).or_default() += 1;
            sequence += 1;
        }
    }
    assert_eq!((counts.get("player.joined"), counts.get("player.left")), (Some(&3), Some(&3)), "{counts:?}");
    // The report is of the time before it was told to end: who left then is not in it.
    let counted = ended.report["counters"]["analytics.events"].as_u64();
    assert!(counted.is_some_and(|events| (3..=sequence).contains(&events)), "{}", ended.report);
    let dropped = |name: &str| ended.report["counters"][name].as_u64();
    assert_eq!((dropped("analytics.dropped_page"), dropped("analytics.dropped_file")), (Some(0), Some(0)));
}

#[test]
fn a_folder_that_takes_no_events_is_told_before_anything_starts() {
    let settings = settings_file("analytics-nowhere", "[analytics]\nfolder = \"/proc/events\"\n");
    let arguments =
        ["serve", "--address", "127.0.0.1:0", "--admin-address", "off", "--config", settings.to_str().unwrap()];
    finish(throng(&arguments), Duration::from_secs(60)).check_refused(&["/proc/events", "[analytics]"]);
}
