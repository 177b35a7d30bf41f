//! Bots like players: recordings of real servers held against each other, and a recording's inputs said again over UDP.
//!
//! The full form is twenty pairs of recordings of each game, in parts that can be run one by one.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use crate::{
    address::KEY,
    child::{Server, alone, finish, folder, throng},
};

const WITHIN: Duration = Duration::from_secs(400);

/// A server that records, with bots on it for so long. `size` are words for the server, `manner` for the bots.
fn record(place: &Path, name: &str, size: &[&str], manner: &[&str], seconds: u32) -> PathBuf {
    let folder = place.join(name);
    let record = folder.display().to_string();
    let server = Server::start(&[&["--record", &record, "--workers", "2", "--saves", "none"], size].concat());
    let address = server.address.to_string();
    let seconds = seconds.to_string();
    let mut swarm = throng(&[&["bots", "--json", "--connect", &address, "--seconds", &seconds][..], manner].concat());
    swarm.env("THRONG_PRIVATE_KEY", KEY);
    let played = finish(swarm, WITHIN);
    assert!(played.status.success(), "{}", played.stderr);
    fs::write(place.join(format!("{name}.json")), &played.stdout).expect("a folder of ours");
    let ended = server.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
    folder
}

/// What `bots --compare --json` says, with its exit status: 1 if anything is named.
#[track_caller]
fn compare(words: &[&str], recordings: &[&Path]) -> (Value, Option<i32>) {
    let paths: Vec<String> = recordings.iter().map(|path| path.display().to_string()).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let finished = finish(throng(&[&["bots", "--json", "--compare"][..], &paths, words].concat()), WITHIN);
    let (told, status) = (finished.json(), finished.status.code());
    let is_alike = told["named"].as_array().expect("there is a list of them").is_empty();
    assert_eq!(status, Some(i32::from(!is_alike)), "{told}\n{}", finished.stderr);
    (told, status)
}

fn row<'v>(comparison: &'v Value, name: &str) -> &'v Value {
    let rows = comparison["rows"].as_array().expect("there are rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} is not in {comparison}"))
}

/// All that is named: measures of every sort, and places.
fn named(comparison: &Value) -> Vec<&str> {
    comparison["named"].as_array().expect("there is a list of them").iter().filter_map(Value::as_str).collect()
}

/// The same without times, for the short form: those are the machine's, and it has other tests to run meanwhile.
fn named_but_times(comparison: &Value) -> Vec<&str> {
    named(comparison).into_iter().filter(|name| *name == "places" || row(comparison, name)["sort"] != "times").collect()
}

/// Bots at another rate are told by their packets; and the inputs of the first, said again, are the first's.
#[test]
fn bots_are_held_against_recorded_players_and_say_again_what_those_said() {
    let place = folder("likeness");
    let size = ["--players", "12", "--npcs", "60"];
    let usual = record(&place, "usual", &size, &["--players", "12"], 20);
    let faster = record(&place, "faster", &size, &["--players", "12", "--hz", "23"], 20);
    let again = usual.display().to_string();
    let said_again = record(&place, "again", &size, &["--inputs", &again], 18);

    let (with_itself, _) = compare(&[], &[&usual, &usual]);
    let inputs = row(&with_itself, "inputs");
    assert_eq!((named_but_times(&with_itself), inputs["verdict"].as_str()), (vec![], Some("within")), "{with_itself}");
    assert_eq!(with_itself["a"]["players"], 12, "{with_itself}");
    assert!(["casts", "paths"].iter().all(|name| row(&with_itself, name)["difference_percent"] == 0.0));

    let (told, status) = compare(&[], &[&usual, &faster]);
    assert_eq!((row(&told, "inputs")["verdict"].as_str(), status), (Some("more"), Some(1)), "{told}");

    // Twenty seconds are too few to say that they are within ten percent; they are not named.
    let (told, _) = compare(&[], &[&usual, &said_again]);
    assert!(!named(&told).contains(&"inputs"), "{told}");
    let report: Value = serde_json::from_str(&fs::read_to_string(place.join("again.json")).expect("it was written"))
        .expect("the bots' report");
    assert_eq!(report["players_connected"], 12, "{report}");
    let counted = |name: &str| report["counters"][name].as_u64().unwrap_or_default();
    assert!(counted("inputs_played") > 12 * 18 * 15 && counted("unfit") == 0, "{report}");

    // Of one recording: some of its players against the others.
    let (told, _) = compare(&["--players-a", "1-6", "--players-b", "7-12"], &[&usual]);
    assert_eq!((&told["a"]["players"], &told["b"]["players"]), (&Value::from(6), &Value::from(6)), "{told}");
}

#[test]
fn what_cannot_be_compared_or_said_again_is_told() {
    let place = folder("likeness-refused");
    let frontier = record(
        &place,
        "frontier",
        &["--game", "frontier", "--players", "4"],
        &["--game", "frontier", "--players", "4"],
        3,
    );
    let precinct = record(&place, "precinct", &["--players", "4", "--npcs", "4"], &["--players", "4"], 3);
    let [frontier, precinct] = [frontier, precinct].map(|path| path.display().to_string());
    let diary = place.join("diary.throngrec");
    fs::write(&diary, "a diary").expect("a folder of ours");
    let diary = diary.display().to_string();
    let refused = |words: &[&str], parts: &[&str]| {
        let mut command = throng(&[&["bots"], words].concat());
        command.env("THRONG_PRIVATE_KEY", KEY);
        finish(command, WITHIN).check_refused(parts);
    };
    refused(&["--compare", &precinct, &frontier], &["is a recording of precinct, and", "one of frontier"]);
    refused(&["--compare", &precinct, &diary], &["diary.throngrec: these bytes are no recording"]);
    refused(&["--compare", "nowhere", &precinct], &["nowhere", "No such file"]);
    refused(&["--compare", &precinct], &["nobody of the players `browser` plays in it", "--players-a"]);
    refused(&["--compare", &precinct, "--players-a", "people"], &["`people` names no players"]);
    refused(&["--players-a", "all", "--connect", "127.0.0.1:9"], &["--compare"]);
    refused(
        &["--connect", "127.0.0.1:9", "--inputs", &frontier],
        &["the recording is of frontier, and this is precinct", "--game frontier"],
    );
    refused(&["--connect", "127.0.0.1:9", "--inputs", &diary], &["these bytes are no recording"]);
    refused(
        &["--connect", "127.0.0.1:9", "--inputs", &precinct, "--inputs-of", "browser"],
        &["nobody of the players `browser`"],
    );
    refused(&["--players", "4"], &["--connect"]);
}

/// What is done by 15 % more, as words for the server and for the bots; and which measures are to tell so.
struct Plant {
    measures: &'static [&'static str],
    size: &'static [&'static str],
    manner: &'static [&'static str],
}

/// A game's pairs: how large it is, and what is planted.
struct Pairs {
    game: &'static str,
    size: &'static [&'static str],
    plants: &'static [Plant],
}

const PRECINCT: Pairs = Pairs {
    game: "precinct",
    size: &["--npcs", "400"],
    plants: &[
        Plant { measures: &["casts", "paths"], size: &["--npcs", "460"], manner: &[] },
        Plant { measures: &["inputs"], size: &["--npcs", "400"], manner: &["--hz", "23"] },
    ],
};

/// What walks there finds its way by itself, and takes steps instead of paths.
const FRONTIER: Pairs = Pairs {
    game: "frontier",
    size: &["--npcs", "400"],
    plants: &[
        Plant { measures: &["casts"], size: &["--npcs", "400"], manner: &["--bot-casts", "1.15"] },
        Plant { measures: &["thoughts"], size: &["--npcs", "460"], manner: &[] },
        Plant { measures: &["inputs"], size: &["--npcs", "400"], manner: &["--hz", "23"] },
    ],
};

/// There is nobody but players, who do as much as the round lets them.
const DUEL: Pairs =
    Pairs { game: "duel", size: &[], plants: &[Plant { measures: &["inputs"], size: &[], manner: &["--hz", "147"] }] };

impl Pairs {
    /// The promise: the same behaviour twice has nothing named, and what is done by 15 % more is.
    fn check(&self, pairs: std::ops::Range<u32>) {
        let _alone = alone();
        let place = folder(&format!("likeness-{}-{}", self.game, pairs.start));
        let players = ["--game", self.game, "--players", "40"];
        for pair in pairs {
            let of = |name: &str, size: &[&str], seed: u32, manner: &[&str]| {
                let seed = seed.to_string();
                let manner = [&players[..], &["--seed", seed.as_str()], manner].concat();
                record(&place, &format!("{name}-{pair}"), &[&players[..], size].concat(), &manner, 90)
            };
            let (one, other) = (2 * pair + 1, 2 * pair + 2);
            let usual = of("usual", self.size, one, &[]);
            let (same, _) = compare(&[], &[&usual, &of("same", self.size, other, &[])]);
            println!("{}, pair {pair}: the same: {:?}", self.game, named(&same));
            assert_eq!(named(&same), Vec::<&str>::new(), "{same}");
            for (number, plant) in self.plants.iter().enumerate() {
                let more = of(&format!("more-{number}"), plant.size, other, plant.manner);
                let (told, _) = compare(&[], &[&usual, &more]);
                println!("{}, pair {pair}: 15 % more {:?}: {:?}", self.game, plant.measures, named(&told));
                for measure in plant.measures {
                    assert_eq!(row(&told, measure)["verdict"], "more", "{measure}: {told}");
                }
            }
        }
    }
}

macro_rules! pairs {
    ($($name:ident: $game:ident, $pairs:expr;)*) => {$(
        #[test]
        #[ignore = "full form: a quarter of a game's twenty pairs, half an hour"]
        fn $name() {
            $game.check($pairs);
        }
    )*};
}

pairs! {
    precinct_pairs_0_to_4: PRECINCT, 0..5;
    precinct_pairs_5_to_9: PRECINCT, 5..10;
    precinct_pairs_10_to_14: PRECINCT, 10..15;
    precinct_pairs_15_to_19: PRECINCT, 15..20;
    frontier_pairs_0_to_4: FRONTIER, 0..5;
    frontier_pairs_5_to_9: FRONTIER, 5..10;
    frontier_pairs_10_to_14: FRONTIER, 10..15;
    frontier_pairs_15_to_19: FRONTIER, 15..20;
    duel_pairs_0_to_4: DUEL, 0..5;
    duel_pairs_5_to_9: DUEL, 5..10;
    duel_pairs_10_to_14: DUEL, 10..15;
    duel_pairs_15_to_19: DUEL, 15..20;
}
