//! What a server and a load run send of themselves, in the real command: captures, reports of deaths and files of events to an S3
//! server that is not ours, events also to a receiver, the reports of runs; and folders that go there and back by hand.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;

use crate::{
    address::KEY,
    child::{PATIENCE, Server, Signal, alone, finish, folder, settings_file, throng, wait_until},
    daily::contents,
    s3_server::{self, S3Server},
};

const WITHIN: Duration = Duration::from_secs(120);

/// `[object_store]` of a host that calls itself `name`.
fn section(store: &S3Server, name: &str) -> String {
    format!(
        "[object_store]\nendpoint = {:?}\nbucket = {:?}\nprefix = \"live\"\nkey_file = {:?}\nname = \"{name}\"\nperiod_s = 1\n",
        store.endpoint,
        s3_server::BUCKET,
        store.settings(s3_server::KEY, s3_server::KEY).key_file.expect("the key is in a file"),
    )
}

fn sync(way: &str, folder: &Path, at: &str, settings: &str) {
    let finished = finish(
        throng(&["sync", way, folder.to_str().expect("a plain path"), "--at", at, "--config", settings]),
        WITHIN,
    );
    assert!(finished.status.success(), "{}", finished.stderr);
}

/// Brings what is in the store below `at` until `is_whole` holds for it.
fn pulled(to: &Path, at: &str, settings: &str, is_whole: impl Fn(&BTreeMap<PathBuf, Vec<u8>>) -> bool) {
    let whole = wait_until(PATIENCE, || {
        sync("pull", to, at, settings);
        is_whole(&contents(to)).then_some(())
    });
    assert!(whole.is_some(), "{:?}", contents(to).keys());
}

type Events = Arc<Mutex<Vec<Value>>>;

/// A receiver of events, until this process ends.
fn receive() -> (SocketAddr, Events) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let events = Events::default();
    let kept = events.clone();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| take(&stream, &kept)));
    (address, events)
}

fn take(stream: &TcpStream, kept: &Events) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        // A server that is killed says no more.
        if reader.read_line(&mut line).unwrap_or_default() == 0 {
            return;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let text = String::from_utf8(body).expect("lines of JSON");
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    kept.lock().expect("nobody panics with it").extend(events);
    let _ = (&*stream).write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
}

fn count(events: &Events, name: &str) -> usize {
    events.lock().expect("nobody panics with it").iter().filter(|event| event["event"] == name).count()
}

/// Promise: what a live server keeps of its bad moments is in the store, byte for byte, and so is the report of its death, sent
/// by the server that comes after it; what players did is there in files, and at the receiver.
#[test]
fn a_server_sends_its_captures_its_events_and_the_report_of_its_death() {
    let store = S3Server::start("serve");
    let place = folder("uploads-serve");
    let [captures, crashes, events, spool] = ["captures", "crashes", "analytics", "spool"].map(|name| place.join(name));
    let (receiver, received) = receive();
    let settings = settings_file(
        "uploads-serve-settings",
        &format!(
            "[server]\ncrashes = {crashes:?}\n[recorder]\ncaptures = {captures:?}\n\
             [analytics]\nfolder = {events:?}\nfile_s = 1\nurl = \"http://{receiver}/events\"\nspool = {spool:?}\n\
             post_period_s = 1\ngzip = false\n{}",
            section(&store, "eu-1")
        ),
    );
    let settings = settings.to_str().expect("a plain path");
    fs::create_dir(&captures).expect("a folder of ours");
    let start = || Server::start(&["--config", settings, "--players", "3", "--npcs", "10"]);

    let mut server = start();
    let (address, admin) = (server.address.to_string(), server.admin_address.to_string());
    let mut bots = throng(&["bots", "--connect", &address, "--players", "3", "--seconds", "2"]);
    bots.env("THRONG_PRIVATE_KEY", KEY);
    let bots = finish(bots, WITHIN);
    assert!(bots.status.success(), "{}", bots.stderr);
    let saved = finish(throng(&["capture", "save", "--connect", &admin, "--json"]), WITHIN).json();
    let saved = Path::new(saved["path"].as_str().expect("it was saved"));
    let capture = Path::new("captures").join(saved.strip_prefix(&captures).expect("it is where captures are"));
    let back = folder("uploads-serve-back");
    pulled(&back, "eu-1", settings, |there| there.contains_key(&capture));
    assert!(fs::read(back.join(&capture)).unwrap() == fs::read(saved).unwrap(), "every byte of the capture");
    let all_told = wait_until(PATIENCE, || (count(&received, "player.left") == 3).then_some(()));
    assert!(all_told.is_some() && count(&received, "player.joined") == 3, "{received:?}");

    server.signal(Signal::SIGABRT);
    assert!(wait_until(PATIENCE, || (!server.is_running()).then_some(())).is_some());
    drop(server);
    let report = wait_until(PATIENCE, || {
        let mut deaths = fs::read_dir(&crashes).ok()?.flatten().map(|death| death.path().join("report.json"));
        deaths.find(|report| fs::read_to_string(report).is_ok_and(|text| serde_json::from_str::<Value>(&text).is_ok()))
    });
    let report = report.expect("a death is reported");
    let report = Path::new("crashes").join(report.strip_prefix(&crashes).unwrap());
    let server = start();
    // A file of events is whole once nothing is appended to it any more: after its age, and ten seconds.
    let has_events = |there: &BTreeMap<PathBuf, Vec<u8>>| there.keys().any(|name| name.starts_with("analytics"));
    pulled(&back, "eu-1", settings, |there| there.contains_key(&report) && has_events(there));
    let ended = server.stop();
    assert!(ended.status.success());
    let counted = |name: &str| ended.report["counters"][name].as_u64();
    assert_eq!((counted("object_store.errors"), counted("object_store.unreadable_files")), (Some(0), Some(0)));
    let death = report.parent().expect("its folder");
    let mut sent = contents(&back);
    // The server remembers there who died of what, and goes on with that.
    sent.retain(|name, _| !name.starts_with("crashes") || name.starts_with(death));
    for (name, bytes) in sent {
        assert!(fs::read(place.join(&name)).is_ok_and(|here| here == bytes), "{} is another one here", name.display());
    }
}

/// Promise: the reports of a load run and of a demo are in the store without what players saved, and a folder that is sent by hand
/// comes back the same.
#[test]
fn the_reports_of_runs_go_to_the_store_and_a_folder_there_and_back() {
    let _alone = alone();
    let store = S3Server::start("runs");
    let settings = settings_file("uploads-runs-settings", &section(&store, "host-7"));
    let name = settings.to_str().expect("a plain path");
    for (run, more) in [("load", &["--history", "none", "--config", name][..]), ("demo", &[])] {
        let report = folder(&format!("uploads-{run}"));
        let place = report.to_str().expect("a plain path");
        let size = ["--players", "4", "--npcs", "20", "--seconds", "2"];
        let mut command = throng(&[&[run, "--json", "--report", place], &size[..], more].concat());
        // Where the settings are that a demo finds by itself.
        command.current_dir(settings.parent().expect("a folder of ours"));
        let finished = finish(command, WITHIN);
        let told = "report: in the object store as live/";
        let (_, at) = finished
            .stderr
            .lines()
            .find_map(|line| line.split_once(told))
            .unwrap_or_else(|| panic!("{}", finished.stderr));
        assert!(at.starts_with("host-7/reports/"), "{at}");
        let back = folder(&format!("uploads-{run}-back"));
        sync("pull", &back, at.trim(), name);
        let mut here = contents(&report);
        here.retain(|name, _| !name.starts_with("saves"));
        assert!(here.contains_key(Path::new("report.json")), "{:?}", here.keys());
        assert_eq!(contents(&back).keys().collect::<Vec<_>>(), here.keys().collect::<Vec<_>>());
        assert!(contents(&back) == here, "every byte");

        let again = folder(&format!("uploads-{run}-again"));
        let by_hand = format!("dev/{run}");
        sync("push", &back, &by_hand, name);
        sync("pull", &again, &by_hand, name);
        assert!(contents(&again) == here, "every byte of what went by hand");
    }
}
