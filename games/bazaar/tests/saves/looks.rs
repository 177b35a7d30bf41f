//! What an operator sees of saves: `saves check` and `saves show`, of what a server left, whole, damaged, cut, of a newer
//! program, in use, and of something that is none. Nothing of it changes a byte.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::Value;

use crate::{
    cluster::Cluster,
    folder::Folder,
    life::{Life, bazaar},
    place::{Place, Terms, write_settings},
    players::Players,
};

struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Said {
    #[track_caller]
    fn json(&self) -> Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?} {}", self.stderr))
    }

    #[track_caller]
    fn check_refused(&self, parts: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{}", self.stderr);
        parts.iter().for_each(|part| assert!(self.stderr.contains(part), "{part:?} is not in {}", self.stderr));
        assert!(!self.stderr.contains("panicked at"), "{}", self.stderr);
    }
}

fn run(folder: &Path, words: &[&str]) -> Said {
    let Output { status, stdout, stderr } = bazaar(folder, words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// Where a server was, with 8 players, until it was told to end.
fn after_a_server(name: &str, place: impl FnOnce(&Path) -> Place) -> Folder {
    let folder = Folder::new(name);
    let place = place(folder.path());
    write_settings(folder.path(), &place, &Terms::default());
    let life = Life::start(folder.path());
    let players = Players::play(life.address, 1, 8);
    life.wait_for_receipts(16);
    if let Place::File(_) = place {
        let at = folder.path().to_str().unwrap();
        run(folder.path(), &["saves", "check", at]).check_refused(&["another server that runs"]);
    }
    let ended = life.end(|_| {});
    drop(players);
    assert!(ended.status.success(), "{}", ended.log);
    folder
}

#[track_caller]
fn check_whole(folder: &Path, at: &[&str]) {
    let said = run(folder, &[&["saves", "check"], at, &["--json"]].concat());
    let json = said.json();
    assert_eq!((said.code, &json["passed"]), (Some(0), &Value::Bool(true)), "{json} {}", said.stderr);
    assert_eq!(
        (&json["kinds"]["player"]["records"], &json["kinds"]["world"]["records"]),
        (&8.into(), &2.into()),
        "{json}"
    );
    assert_eq!((&json["types"]["bazaar.purse"], &json["types"]["bazaar.market"]), (&8.into(), &2.into()), "{json}");
    let coins = &json["items"][0];
    assert!(coins["held"].as_i64() > Some(0) && coins["held"] == coins["created_less_destroyed"], "{json}");

    let said = run(folder, &[&["saves", "check"], at].concat());
    assert_eq!(said.code, Some(0), "{} {}", said.stdout, said.stderr);
    assert!(said.stdout.contains(": whole\n") && said.stdout.contains("items of kind 1: "), "{}", said.stdout);

    let said = run(folder, &[&["saves", "show", "player:3"], at, &["--json"]].concat());
    let json = said.json();
    assert_eq!((said.code, &json["type"], &json["version"]), (Some(0), &"bazaar.purse".into(), &1.into()), "{json}");
    assert!([11, 12].contains(&json["world"].as_i64().unwrap()) && json["value_bytes"].as_u64() > Some(0), "{json}");
    let said = run(folder, &[&["saves", "show", "world:12"], at].concat());
    assert!(
        said.code == Some(0) && said.stdout.contains("south") && said.stdout.contains("bazaar.market"),
        "{}",
        said.stdout
    );
    run(folder, &[&["saves", "show", "player:99"], at].concat()).check_refused(&["no record of player:99"]);
    run(folder, &[&["saves", "show", "npc:1"], at].concat()).check_refused(&["npc:1", "player:NUMBER"]);
}

#[test]
fn saves_are_counted_shown_and_never_written() {
    let folder = after_a_server("looks-file", |folder| Place::File(folder.to_owned()));
    let file = folder.store();
    let before = fs::read(&file).unwrap();
    check_whole(folder.path(), &[]);
    check_whole(folder.path(), &[folder.path().to_str().unwrap()]);
    check_whole(folder.path(), &[file.to_str().unwrap()]);
    check_whole(folder.path(), &[folder.path().join("throng.toml").to_str().unwrap()]);
    assert!(fs::read(&file).unwrap() == before, "a look changes nothing");

    let Some(cluster) = Cluster::start("looks-pg") else { return };
    let folder = after_a_server("looks-with-pg", |_| Place::of(&cluster));
    check_whole(folder.path(), &[]);
    cluster.run("UPDATE throng_items SET balance = balance + 1");
    let said = run(folder.path(), &["saves", "check"]);
    assert!(said.code == Some(1) && said.stdout.contains("FAIL items of kind 1"), "{}", said.stdout);
    cluster.run("UPDATE throng_records SET record = set_byte(record, 20, 0), previous = NULL WHERE key = '\\x0100000000000000000000000000000003'");
    let json = run(folder.path(), &["saves", "check", "--json"]).json();
    assert_eq!(
        (&json["passed"], &json["damaged_keys"]),
        (&Value::Bool(false), &serde_json::json!(["player:3"])),
        "{json}"
    );
}

/// Turns over bytes of a copy where `bytes` are.
fn damaged(file: &Path, copy: &Path, bytes: &[u8]) -> PathBuf {
    let mut all = fs::read(file).unwrap();
    let places: Vec<usize> = (0..all.len() - bytes.len()).filter(|at| all[*at..].starts_with(bytes)).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| all[at + bytes.len()] ^= 0x40);
    fs::write(copy, all).unwrap();
    copy.to_owned()
}

#[test]
fn what_is_wrong_with_saves_is_told_and_ends_with_its_status() {
    let folder = after_a_server("looks-damaged", |folder| Place::File(folder.to_owned()));
    let (file, at) = (folder.store(), |name: &str| folder.path().join(name));
    let check = |path: &Path| run(folder.path(), &["saves", "check", path.to_str().unwrap(), "--json"]);

    // All purses, wherever they lie: the type of their envelopes.
    let type_id = <bazaar::Purse as throng_pack::HasSchema>::SCHEMA.id.to_le_bytes();
    let purses = check(&damaged(&file, &at("purses.redb"), &type_id));
    let json = purses.json();
    assert_eq!(
        (purses.code, &json["passed"], &json["kinds"]["world"]["records"]),
        (Some(1), &false.into(), &2.into()),
        "{json}"
    );
    assert_eq!((&json["damaged"], json["damaged_keys"].as_array().map(Vec::len)), (&8.into(), Some(8)), "{json}");
    assert!(
        json["pages_error"].is_string() && json["items"][0]["held"] != json["items"][0]["created_less_destroyed"],
        "{json}"
    );

    let cut = at("cut.redb");
    let whole = fs::read(&file).unwrap();
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let said = check(&cut);
    assert!(said.code == Some(1) || said.code == Some(2), "{} {}", said.stdout, said.stderr);
    assert!(!said.stderr.contains("panicked at"), "{}", said.stderr);

    for (name, bytes) in [("foreign.redb", &b"[server]\n"[..]), ("empty.redb", b""), ("zeros.redb", &[0; 9_000])] {
        fs::write(at(name), bytes).unwrap();
        check(&at(name)).check_refused(&[name, "cannot be read as saves"]);
    }
    check(&at("not-there.redb")).check_refused(&["not-there.redb"]);

    // Read as if it were of the next format.
    let newer = at("newer.redb");
    fs::copy(&file, &newer).unwrap();
    {
        let database = redb::Database::open(&newer).unwrap();
        let transaction = database.begin_write().unwrap();
        let meta: redb::TableDefinition<&str, u64> = redb::TableDefinition::new("meta");
        transaction.open_table(meta).unwrap().insert("format", 2).unwrap();
        transaction.commit().unwrap();
    }
    check(&newer).check_refused(&["format 2, this program knows 1"]);

    let other = Folder::new("looks-none");
    run(other.path(), &["saves", "check"]).check_refused(&["keeps no saves"]);
    fs::write(other.path().join("throng.toml"), "[saves]\nstore = \"none\"\n").unwrap();
    run(other.path(), &["saves", "check"]).check_refused(&["keeps no saves"]);
}
