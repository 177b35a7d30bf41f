//! Bots like players: recordings of real servers held against each other, and a recording's inputs said again over UDP.
//!
//! The full form is twenty pairs of recordings of each game and more, one game after the other or side by side.

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

/// What `bots --compare --json` says, with its exit status: 1 if anything is named, and otherwise 2 if of more than half of all measures,
/// or of those of packets, too little was played.
#[track_caller]
fn compare(words: &[&str], recordings: &[&Path]) -> (Value, Option<i32>) {
    let paths: Vec<String> = recordings.iter().map(|path| path.display().to_string()).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let finished = finish(throng(&[&["bots", "--json", "--compare"][..], &paths, words].concat()), WITHIN);
    let (told, status) = (finished.json(), finished.status.code());
    let is_alike = told["named"].as_array().expect("there is a list of them").is_empty();
    let rows: Vec<&Value> = told["rows"].as_array().expect("there are rows").iter().collect();
    let packets: Vec<&Value> = rows.iter().copied().filter(|row| row["sort"] == "packets").collect();
    let all: Vec<&Value> = rows.into_iter().chain(Some(&told["places"]).filter(|places| !places.is_null())).collect();
    let is_unclear = |rows: &[&Value]| 2 * rows.iter().filter(|row| row["verdict"] == "unclear").count() > rows.len();
    let is_too_little = is_unclear(&all) || is_unclear(&packets);
    let expect = if !is_alike {
        1
    } else if is_too_little {
        2
    } else {
        0
    };
    assert_eq!(status, Some(expect), "{told}\n{}", finished.stderr);
    let is_said = (told["too_little"].is_string(), finished.stderr.contains("too little was played"));
    assert_eq!(is_said, (is_too_little, is_too_little), "{told}\n{}", finished.stderr);
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

/// What is done by 15 % more, or elsewhere, as words for the server and for the bots; and which measures are to tell so.
struct Plant {
    measures: &'static [&'static str],
    size: &'static [&'static str],
    manner: &'static [&'static str],
}

/// A game's pairs: how large it is, and what is planted.
struct Pairs {
    game: &'static str,
    players: &'static str,
    size: &'static [&'static str],
    plants: &'static [Plant],
}

const PRECINCT: Pairs = Pairs {
    game: "precinct",
    players: "300",
    size: &["--npcs", "3000"],
    plants: &[
        Plant { measures: &["casts", "paths"], size: &["--npcs", "3450"], manner: &[] },
        Plant { measures: &["inputs"], size: &["--npcs", "3000"], manner: &["--hz", "23"] },
    ],
};

/// What walks there finds its way by itself, and takes steps instead of paths. Spells take their time and their rest, so bots who ask for 15 %
/// more of them cast hardly more often; and what one world does in five minutes says too little for 15 % of it.
const FRONTIER: Pairs = Pairs {
    game: "frontier",
    players: "1000",
    size: &["--npcs", "3000"],
    plants: &[
        Plant { measures: &["inputs"], size: &["--npcs", "3000"], manner: &["--hz", "23"] },
        Plant { measures: &["places"], size: &["--npcs", "3000"], manner: &["--scenario", "one-place"] },
    ],
};

/// A client of it says one thing a tick, whatever its rate, and what players do comes in rounds that all matches begin at once:
/// of five minutes that says too little for anything of 15 % to be planted.
const DUEL: Pairs = Pairs { game: "duel", players: "100", size: &[], plants: &[] };

/// Recordings of the usual behaviour: each held against each other one makes 21 pairs.
const USUAL: u32 = 7;
/// Of each plant: each held against each usual one makes 21 pairs more.
const MORE: u32 = 3;
/// Of a recording (s): the interval has to be less than 15 % wide to each side. The guide of bots like players says how wide they are.
const SECONDS: u32 = 300;

impl Pairs {
    /// The promise: the same behaviour twice has nothing named, and what is done by 15 % more is.
    fn check(&self) {
        let _alone = alone();
        let place = folder(&format!("likeness-{}", self.game));
        let players = ["--game", self.game, "--players", self.players];
        let of = |name: &str, seed: u32, size: &[&str], manner: &[&str]| {
            let seed_word = seed.to_string();
            let manner = [&players[..], &["--seed", &seed_word], manner].concat();
            record(&place, &format!("{name}-{seed}"), &[&players[..], size].concat(), &manner, SECONDS)
        };
        let usual: Vec<PathBuf> = (1..=USUAL).map(|seed| of("usual", seed, self.size, &[])).collect();
        let after = |number: usize| usual[number + 1..].iter();
        let same: Vec<_> =
            usual.iter().enumerate().flat_map(|(number, one)| after(number).map(move |other| (one, other))).collect();
        let mut wrong = Vec::new();
        for (pair, told) in compare_all(&same) {
            println!("{pair}: {:?}", named(&told));
            if !named(&told).is_empty() {
                wrong.push(format!("{pair}: {told}"));
            }
        }
        for (number, plant) in (0..).zip(self.plants) {
            let first = USUAL + 1 + MORE * number;
            let more: Vec<PathBuf> =
                (first..first + MORE).map(|seed| of("more", seed, plant.size, plant.manner)).collect();
            let pairs: Vec<_> = more.iter().flat_map(|more| usual.iter().map(move |one| (one, more))).collect();
            for (pair, told) in compare_all(&pairs) {
                for measure in plant.measures {
                    let (told, is_right) = told_of(&told, measure);
                    println!("{pair}: {told}");
                    if !is_right {
                        wrong.push(format!("{pair}: {told}"));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} are wrong: {wrong:#?}", wrong.len());
    }
}

/// What is told of a measure that was planted, and whether it is right.
fn told_of(comparison: &Value, measure: &str) -> (String, bool) {
    if measure == "places" {
        let places = &comparison["places"];
        let told = format!(
            "{} of the time elsewhere, {} by chance: {}",
            places["elsewhere"], places["by_chance"], places["verdict"]
        );
        return (told, places["verdict"] == "elsewhere");
    }
    let row = row(comparison, measure);
    let told = format!("{measure} {} %, from {}: {}", row["difference_percent"], row["low_percent"], row["verdict"]);
    (told, row["verdict"] == "more")
}

/// What is told of each pair, with its name; two pairs at a time.
fn compare_all(pairs: &[(&PathBuf, &PathBuf)]) -> Vec<(String, Value)> {
    let name = |recording: &Path| recording.file_name().expect("it has a name").to_string_lossy().into_owned();
    let one_by_one = |pairs: &[(&PathBuf, &PathBuf)]| -> Vec<(String, Value)> {
        let pairs = pairs.iter();
        pairs
            .map(|(one, other)| (format!("{} and {}", name(one), name(other)), compare(&[], &[one, other]).0))
            .collect()
    };
    let (first, second) = pairs.split_at(pairs.len() / 2);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| one_by_one(second));
        let mut told = one_by_one(first);
        told.extend(second.join().expect("it compares"));
        told
    })
}

macro_rules! pairs {
    ($($name:ident: $game:ident;)*) => {$(
        #[test]
        #[ignore = "full form: twenty-one pairs of recordings of a game, and as many for each plant, an hour and a half"]
        fn $name() {
            $game.check();
        }
    )*};
}

pairs! {
    pairs_of_precinct: PRECINCT;
    pairs_of_frontier: FRONTIER;
    pairs_of_duel: DUEL;
}
