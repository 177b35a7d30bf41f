//! Promise, on recordings of a whole server with players: the same behaviour twice has nothing named; what is done by 15 % more,
//! casts, paths or packets, is named and nothing else; recorded inputs that are said again are the same load.
//!
//! Servers are simulated, so each recording is the same in every run. Times of subsystems are this machine's, and no test looks
//! at them.

mod forged;
mod yard;

use std::{collections::BTreeMap, sync::Arc};

use throng::{
    recording::{Group, RecordingFiles, SegmentReader, WorldPlan, segments_in},
    replay::{DoneTick, OtherGame, ReplayOptions, ReplayWatch},
};
use throng_likeness::{
    Cell, Comparison, InputsError, Measure, PlaysInputs, Profile, RecordedInputs, Sort, Verdict, Who, profile_in_turns,
    profile_sides,
};
use throng_metrics::game::counter_name;
use throng_world::{ids::WorldId, input_log::LoggedTick};

use yard::{CHANGED_TICK, Manner, Recorded, game, schema};

/// How many pairs of recordings there are in a test that runs always.
const PAIRS: u64 = 2;

fn compare(a: &Recorded, b: &Recorded) -> Comparison {
    let sides = [a, b].map(|recorded| (recorded.game(), recorded.open()));
    let [(game_a, a), (game_b, b)] = &sides;
    let profiled = profile_in_turns((game_a, a, Who::All), (game_b, b, Who::All)).expect("they are of this game");
    for profiled in &profiled {
        assert!(profiled.replay.is_equal() && profiled.replay.ticks > 1_000, "{:?}", profiled.replay);
    }
    let [a, b] = &profiled;
    Comparison::of_recordings([("a", a), ("b", b)])
}

/// What is named, but for times.
fn named(comparison: &Comparison) -> Vec<&str> {
    let rows = comparison.rows.iter().filter(|row| row.measure.sort != Sort::Times && row.verdict.is_named());
    let mut named: Vec<&str> = rows.map(|row| &*row.measure.name).collect();
    named.extend(comparison.places.iter().filter(|places| places.verdict.is_named()).map(|_| "places"));
    named.sort_unstable();
    named
}

fn check_pairs(pairs: u64) {
    for seed in 1..=pairs {
        let usual = Recorded::play(seed, 16, Manner::USUAL);
        let found = |manner: Manner| compare(&usual, &Recorded::play(seed + 500, 16, manner));
        let check = |manner: Manner, expect: &[&str]| {
            let comparison = found(manner);
            assert_eq!(named(&comparison), expect, "seed {seed}: {comparison:#?}");
        };
        check(Manner::USUAL, &[]);
        check(Manner { casts: 1.15, ..Manner::USUAL }, &["casts"]);
        check(Manner { paths: 1.15, ..Manner::USUAL }, &["paths"]);
        // Who says more has more done for it, too.
        let comparison = found(Manner { hz: 23, ..Manner::USUAL });
        let named = named(&comparison);
        assert!(["bytes", "casts", "inputs", "paths"].iter().all(|name| named.contains(name)), "{comparison:#?}");
    }
}

#[test]
fn the_same_behaviour_has_nothing_named_and_15_percent_more_is() {
    check_pairs(PAIRS);
}

#[test]
#[ignore = "full form: 20 pairs of each, some minutes"]
fn the_same_behaviour_has_nothing_named_and_15_percent_more_is_in_twenty_pairs() {
    check_pairs(20);
}

#[test]
fn who_is_elsewhere_is_told_where() {
    let (usual, other) =
        (Recorded::play(1, 40, Manner::USUAL), Recorded::play(2, 40, Manner { x_m: 60.0, ..Manner::USUAL }));
    let comparison = compare(&usual, &other);
    let places = comparison.places.expect("players have places");
    assert_eq!(places.verdict, Verdict::Elsewhere);
    assert!(places.most.iter().all(|place| &*place.cell.kind == "yard" && place.a != place.b), "{places:?}");
}

#[test]
fn people_beside_bots_in_one_server_are_told_apart() {
    // The simulator's players have ids from 1 on.
    let recorded =
        Recorded::play_mixed(
            3,
            24,
            |player| if player < 12 { Manner::USUAL } else { Manner { casts: 1.3, ..Manner::USUAL } },
        );
    let profiled = profile_sides(&recorded.game(), &recorded.open(), [Who::Ids(1, 12), Who::Ids(13, 24)]).unwrap();
    let [a, b] = &profiled.profiles;
    assert_eq!((a.players.len(), b.players.len()), (12, 12));
    // They share their world, so what that counts is nobody's, and what each says and does is its own.
    assert!(a.shared_share() > 0.99 && b.shared_share() > 0.99);
    let comparison = Comparison::of_sides("mixed", &profiled);
    assert!(
        comparison.rows.iter().all(|row| !matches!(row.measure.sort, Sort::Counts | Sort::Times)),
        "{comparison:#?}"
    );
    assert_eq!(named(&comparison), [""; 0], "{comparison:#?}");
    let inputs = comparison.rows.iter().find(|row| &*row.measure.name == "inputs").expect("all say something");
    assert_eq!(inputs.verdict, Verdict::Within);
    // And all together cost what the world counted.
    let all = profile_sides(&recorded.game(), &recorded.open(), [Who::All, Who::Browser]).unwrap();
    assert_eq!((all.profiles[0].players.len(), all.profiles[1].players.len()), (24, 0));
    let (casts, counted) = (sum(&all.profiles[0], "casts", Sort::Counts), Casts::of(&recorded).counted());
    assert!(counted > 10_000 && (casts - counted as f64).abs() < 0.01, "{casts} and {counted}");
    assert!(all.profiles[0].shared_share() < 1e-9);
    // One world has all of it, and for each of two sides only what is their own.
    let (casts, inputs) = (Measure::new(Sort::Counts, "casts"), Measure::new(Sort::Packets, "inputs"));
    let spreads = |side: &Profile| [&casts, &inputs].map(|measure| side.worlds.spread(measure));
    assert_eq!([&all.profiles[0], a, b].map(spreads), [[1.0, 1.0], [0.0, 1.0], [0.0, 1.0]]);
    // In so small a yard one has some of the 23 others in its cell, and of half of them half as many.
    let [all, half] = [&all.profiles[0], a].map(|side| side.company);
    assert!(all > 1.0 && half > 0.4 * all && half < 0.6 * all, "{all} and {half}");
}

/// What the only world of a recording counts as casts, tick by tick.
#[derive(Default)]
struct Casts(Vec<(u32, u64)>);

impl Casts {
    fn of(recorded: &Recorded) -> Self {
        let mut casts = Self::default();
        let replayed = recorded.game().replay_watched(&recorded.open(), &ReplayOptions::default(), &mut casts);
        assert!(replayed.expect("it is of this game").is_equal());
        casts
    }

    /// Without the beginning: ten seconds, or a sixth of what is shorter than a minute.
    fn counted(&self) -> u64 {
        let first = self.0.first().expect("it ticks").0;
        let at_s = |tick: u32| f64::from(tick - first) / 20.0;
        let seconds = self.0.iter().map(|(tick, _)| at_s(*tick)).fold(0.0, f64::max);
        let begin_s = f64::min(10.0, seconds * (1.0 / 6.0));
        self.0.iter().filter(|(tick, _)| at_s(*tick) >= begin_s).map(|(_, casts)| casts).sum()
    }
}

impl ReplayWatch for Casts {
    fn begins(&mut self, _: WorldId, _: &WorldPlan, tick: &LoggedTick<'_>) {
        self.0.push((tick.tick, 0));
    }

    fn done(&mut self, tick: &DoneTick<'_>) {
        let casts = tick.counted.iter().filter(|(counter, _)| counter_name(*counter) == "casts");
        self.0.last_mut().expect("it has begun").1 += casts.map(|(_, count)| count).sum::<u64>();
    }

    fn ended(&mut self, _: WorldId) {}
}

fn sum(profile: &Profile, name: &str, sort: Sort) -> f64 {
    let measure = Measure::new(sort, name);
    profile.players.iter().filter_map(|player| player.values.get(&measure)).flatten().sum()
}

/// What players are said to have done is what they were told to do: so many inputs a second, and so many casts and paths with each.
#[test]
fn a_profile_holds_what_was_done() {
    let recorded = Recorded::play(4, 8, Manner::USUAL);
    let profiled = profile_sides(&recorded.game(), &recorded.open(), [Who::All, Who::Browser]).unwrap();
    let profile = &profiled.profiles[0];
    let (played, inputs) = (profile.played_s(), sum(profile, "inputs", Sort::Packets));
    // Eight players at 20 Hz, but for the first seconds, in which they come.
    assert!((8.0 * 45.0..=8.0 * 51.0).contains(&played), "{played}");
    assert!((inputs / played - 20.0).abs() < 0.2, "{inputs} in {played} s");
    let [casts, paths] = ["casts", "paths"].map(|name| sum(profile, name, Sort::Counts) / inputs);
    assert!((casts - 4.0).abs() < 0.1 && (paths - 1.0).abs() < 0.05, "{casts} casts and {paths} paths for each input");
    let mut cells: BTreeMap<Cell, u32> = BTreeMap::new();
    for ((_, cell), seconds) in profile.players.iter().flat_map(|player| &player.places) {
        *cells.entry(cell.clone()).or_default() += seconds;
    }
    let seconds: u32 = cells.values().sum();
    assert!((f64::from(seconds) - played).abs() < 0.05 * played && cells.len() > 3, "{seconds} s in {cells:?}");
    let stay = sum(profile, "time in yard", Sort::Worlds);
    assert!((stay - played).abs() < 1e-6, "{stay}");
    assert!(sum(profile, "metres", Sort::Walks) > played, "they walk");
    assert!(profile.measures_of(Sort::Times) > 0, "a replay's subsystems have times");
}

/// A world that rests ticks once in ten seconds, and those who sit in it are there all the time.
#[test]
fn who_says_nothing_is_there_for_as_long_as_it_is_there() {
    const PLAYERS: f64 = 8.0;
    let recorded = Recorded::sit(9, PLAYERS as usize);
    let profiled = profile_sides(&recorded.game(), &recorded.open(), [Who::All, Who::Browser]).unwrap();
    assert!(profiled.replay.is_equal() && profiled.replay.ticks < 100, "{:?}", profiled.replay);
    let profile = &profiled.profiles[0];
    let (played_s, length_s) = (profile.played_s(), profile.length_s);
    // The first rest begins before the time that is looked at.
    assert!(
        (played_s / PLAYERS - length_s).abs() < 10.5 && length_s > 35.0,
        "{played_s} of {PLAYERS} times {length_s}"
    );
    let places: u32 = profile.players.iter().flat_map(|player| player.places.values()).sum();
    assert!((f64::from(places) - played_s).abs() < PLAYERS + 1.0, "{places} s have a place, of {played_s}");
    // All sit within reach of all.
    let near = sum(profile, "players within 32 m", Sort::Crowd);
    assert_eq!(near, f64::from(places) * (PLAYERS - 1.0));
}

/// Promise: time that is missing is nobody's, whatever became of it, so what is left is done as often as all of it was.
#[test]
fn what_is_missing_is_nobodys_time_and_changes_no_rate() {
    const PLAYERS: f64 = 8.0;
    let profiled =
        |recorded: &Recorded| profile_sides(&recorded.game(), &recorded.open(), [Who::All, Who::Browser]).unwrap();
    let recorded = Recorded::play_changed(10, PLAYERS as usize, Manner::USUAL);
    let whole = profiled(&recorded);
    assert!(whole.replay.is_equal() && whole.replay.is_whole(), "{:?}", whole.replay);
    // Less than the longest rest of a world, and more than a tenth of all.
    let lost = CHANGED_TICK - 160..CHANGED_TICK - 20;
    for (lacking, gaps, failures) in [(recorded.without_parts(&lost), 1, 0), (recorded.with_garbled_ticks(&lost), 0, 1)]
    {
        let left = profiled(&lacking);
        assert_eq!((left.replay.gaps_count, left.replay.failures.len()), (gaps, failures), "{:?}", left.replay);
        let missing_s = (whole.replay.ticks - left.replay.ticks) as f64 / 20.0;
        assert!((6.0..10.0).contains(&missing_s), "{missing_s}");
        let [whole, left] = [&whole, &left].map(|profiled| &profiled.profiles[0]);
        // But for the tick in which they are found again.
        let less_s = whole.played_s() - left.played_s();
        assert!((less_s / PLAYERS - missing_s).abs() < 0.06, "{less_s} of {PLAYERS} times {missing_s}");
        for (name, sort, apart_max) in [
            ("inputs", Sort::Packets, 0.005),
            ("bytes", Sort::Packets, 0.005),
            ("casts", Sort::Counts, 0.01),
            ("paths", Sort::Counts, 0.01),
            ("metres", Sort::Walks, 0.05),
            ("players within 32 m", Sort::Crowd, 0.05),
        ] {
            let [of_whole, of_left] = [whole, left].map(|profile| sum(profile, name, sort) / profile.played_s());
            let apart = (of_left / of_whole - 1.0).abs();
            assert!(of_whole > 0.0 && apart < apart_max, "{name}: {of_whole} and {of_left}");
        }
        let places: u32 = left.players.iter().flat_map(|player| player.places.values()).sum();
        assert!((f64::from(places) / left.played_s() - 1.0).abs() < 0.03, "{places} s have a place");
    }
}

/// Promise: bots that say what was recorded are the same load, though their server's worlds have another seed.
#[test]
fn inputs_that_are_said_again_are_the_same_load() {
    let recorded = Recorded::play(5, 8, Manner::USUAL);
    let inputs = RecordedInputs::read(&recorded.open(), Who::All, "yard", &schema()).unwrap();
    // A tick holds what came since the one before, so a second may have one more.
    assert!(inputs.players() == 8 && (20..=21).contains(&inputs.inputs_hz()), "{} Hz", inputs.inputs_hz());
    assert!((55..=61).contains(&inputs.length_s()), "{}", inputs.length_s());
    let plays = PlaysInputs::new(Arc::new(inputs));
    let (again, totals) = Recorded::play_with(6, 20, 8, |player| Box::new(plays.bot(player)));
    assert_eq!(totals.counter("unfit"), 0);
    assert!(totals.counter("inputs_played") > 8 * 20 * 50 && totals.counter("requests_played") > 100, "{totals:?}");
    let comparison = compare(&recorded, &again);
    for name in ["inputs", "requests", "bytes", "casts", "paths"] {
        let row = comparison.rows.iter().find(|row| &*row.measure.name == name).expect("all of it is done");
        assert!(row.difference_percent.is_some_and(|percent| percent.abs() < 2.0), "{row:?}");
    }
    let nobody = RecordedInputs::read(&recorded.open(), Who::Browser, "yard", &schema()).unwrap_err();
    assert_eq!(
        nobody.to_string(),
        "nobody of the players `browser` says anything in this recording; name others, or all"
    );
}

#[test]
fn another_game_or_schema_is_refused_and_nothing_is_lost() {
    let recorded = Recorded::play(7, 2, Manner::USUAL);
    let before = recorded.bytes();
    let read = |game: &str| RecordedInputs::read(&recorded.open(), Who::All, game, &schema());
    let error = read("hall").unwrap_err();
    assert!(matches!(&error, InputsError::OtherGame(OtherGame::Name { .. })), "{error}");
    assert_eq!(error.to_string(), "the recording is of yard, and this is hall; name it with --game yard");
    let other = yard::other_schema();
    let error = RecordedInputs::read(&recorded.open(), Who::All, "yard", &other).unwrap_err();
    assert!(error.to_string().starts_with("the recording's schema is "), "{error}");
    let hall = yard::game_called("hall", &recorded.open());
    let opened = recorded.open();
    let refused = profile_in_turns((&recorded.game(), &opened, Who::All), (&hall, &opened, Who::All)).unwrap_err();
    assert!(matches!(refused, OtherGame::Name { .. }), "{refused}");
    assert_eq!(recorded.bytes(), before);
}

/// A file whose bytes were changed is read as far as it is good; nothing panics, whatever they are.
#[test]
fn damaged_recordings_are_read_as_far_as_they_are_good() {
    let recorded = Recorded::play(8, 2, Manner::USUAL);
    let segment = segments_in(&recorded.folder).unwrap().remove(0).path;
    let good = std::fs::read(&segment).unwrap();
    let game = recorded.game();
    // The end of each group, and the ticks that are written up to there.
    let groups: Vec<Group> = SegmentReader::new(&good).unwrap().map(Result::unwrap).collect();
    let ends = groups.iter().skip(1).map(|group| group.at).chain([good.len()]);
    let whole: Vec<(usize, u64)> = ends
        .zip(&groups)
        .scan(0, |ticks, (end, group)| {
            *ticks += yard::ticks_in(group);
            Some((end, *ticks))
        })
        .collect();
    for step in 0..60_usize {
        let mut bytes = good.clone();
        let at = step * (good.len() - 1) / 59;
        match step % 3 {
            0 => bytes[at] ^= 0x40,
            1 => bytes.truncate(at),
            _ => bytes[at..].fill(0),
        }
        std::fs::write(&segment, &bytes).unwrap();
        let is_good = |end: usize| bytes.get(..end) == Some(&good[..end]);
        let opened = RecordingFiles::open(&recorded.folder);
        assert_eq!(opened.is_ok(), is_good(whole[0].0), "what it is of stands in the first group; byte {at}");
        let Ok(recording) = opened else { continue };
        let ticks = whole.iter().rev().find(|(end, _)| is_good(*end)).map_or(0, |(_, ticks)| *ticks);
        let read = RecordedInputs::read(&recording, Who::All, "yard", &schema());
        if let Ok(inputs) = &read {
            assert!(inputs.players() <= 2 && ticks > 0);
        }
        if step % 10 == 0 {
            let profiled = profile_sides(&game, &recording, [Who::All, Who::Browser]).unwrap();
            assert_eq!(profiled.replay.ticks, ticks, "byte {at}: {:?}", profiled.replay);
            let (profile, ticks_s) = (&profiled.profiles[0], ticks as f64 / 20.0);
            let (played_s, inputs) = (profile.played_s(), sum(profile, "inputs", Sort::Packets));
            assert!(played_s <= 2.0 * ticks_s, "byte {at}: {played_s} s of two players in {ticks_s} s");
            // Each is within an input of what it says in a second.
            assert!((inputs - 20.0 * played_s).abs() < 0.2 * played_s + 3.0, "byte {at}: {inputs} in {played_s} s");
        }
    }
    std::fs::write(&segment, &good).unwrap();
    assert!(profile_sides(&game, &recorded.open(), [Who::All, Who::Browser]).unwrap().replay.is_equal());
}

/// Bytes that are a recording by every checksum, and hostile: what they say is held against the schema, and worlds that cannot do
/// it are told.
#[test]
fn a_forged_recording_is_no_reason_to_fall_over() {
    for (name, ticks) in forged::hostile_ticks() {
        let folder = yard::Folder::new(&format!("forged-{name}"));
        forged::write(&folder.0, &ticks);
        let recording = RecordingFiles::open(&folder.0).expect("it is a recording by all its checksums");
        let game = game(&recording);
        let profiled =
            profile_sides(&game, &recording, [Who::All, Who::Browser]).expect("it says that it is of this game");
        let comparison = Comparison::of_sides(name, &profiled);
        assert!(serde_json::to_string(&comparison).is_ok());
        if let Ok(inputs) = RecordedInputs::read(&recording, Who::All, "yard", &schema()) {
            let (hz, plays) = (inputs.inputs_hz(), PlaysInputs::new(Arc::new(inputs)));
            assert!((1..=1_000).contains(&hz));
            let (_, totals) = Recorded::play_with(1, 20, 1, |player| Box::new(plays.bot(player)));
            assert_eq!((totals.playing, totals.protocol_errors), (1, 0), "{name}: {totals:?}");
        }
    }
}
