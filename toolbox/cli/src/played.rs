//! What is played: the game that a command line is about, and the words that the executable's games bring along.
//!
//! Words of a game are flags of the commands that run it: `--players`, `--npcs`, `--inject` and `--scenario`, where the
//! game has such, and its own options. Several games in one executable share a command line, which has the words of all
//! and `--game` to choose; what the chosen game does not understand is refused with what it does.

use std::collections::{BTreeMap, BTreeSet};

use clap::{
    Arg, ArgAction, ArgMatches, Command, builder::PossibleValue, builder::PossibleValuesParser, parser::ValueSource,
    value_parser,
};
use throng_bots::Scenario;
use throng_faults::FaultSwitch;
use throng_game::{Arguments, Game, GameOption, MakeBehaviour, Options};
use throng_lab::load_report::condition;

/// Commands that make a game's worlds, and the one that plays in them.
const SERVING: [&str; 5] = ["demo", "serve", "load", "preflight", "workload"];
const PLAYING: &str = "bots";

const GAME: &str = "game";
const PLAYERS: &str = "players";
const NPCS: &str = "npcs";
const INJECT: &str = "inject";
const SCENARIO: &str = "scenario";

/// Adds the words of `games` to the commands that are about games.
pub fn add_words(mut command: Command, games: &[Game]) -> Command {
    assert!(!games.is_empty(), "an executable needs a game");
    let name_of = |index: usize| games[index].name();
    assert!((1..games.len()).all(|at| (0..at).all(|other| name_of(at) != name_of(other))), "two games have one name");
    for name in SERVING {
        command = command.mut_subcommand(name, |serving| with_words(serving, games, true));
    }
    command.mut_subcommand(PLAYING, |playing| with_words(playing, games, false))
}

/// Adds those of `serve` to a command that is to understand them.
pub fn add_serving_words(command: Command, games: &[Game]) -> Command {
    with_words(command, games, true)
}

fn with_words(mut command: Command, games: &[Game], is_serving: bool) -> Command {
    let mut words = Vec::new();
    if games.len() > 1 {
        let named = |game: &Game| PossibleValue::new(game.name()).help(described(game));
        let names = PossibleValuesParser::new(games.iter().map(named));
        let word = word(GAME).value_name("GAME").help("The game to run").value_parser(names);
        words.push(word.default_value(games[0].name()));
    }
    if is_serving {
        words.extend(size_words(games));
    }
    words.push(word(SCENARIO).value_name("NAME").help(
        "How everybody plays: `usual`, which is the default, or one of the game's worst cases, such as everybody in \
         one place. An unknown name is answered with those that the game has",
    ));
    for option in all_options(games).filter(|option| is_serving || option.is_for_bots_too()) {
        words.push(own_word(option, games));
    }
    for word in words {
        let is_free = command.get_arguments().all(|other| other.get_long() != word.get_long());
        assert!(is_free, "--{} is taken by the command {}", word.get_id(), command.get_name());
        command = command.arg(word);
    }
    command
}

fn word(name: &'static str) -> Arg {
    Arg::new(name).long(name).help_heading("Game")
}

fn size_words(games: &[Game]) -> Vec<Arg> {
    let mut words = Vec::new();
    let players_max = games.iter().map(|game| game.players_size().max).max().unwrap_or(1);
    words.push(
        word(PLAYERS)
            .help("Players that worlds are made for; without it, as many as the game is made for")
            .value_parser(value_parser!(u32).range(1..=i64::from(players_max))),
    );
    if let Some(npcs_max) = games.iter().filter_map(|game| game.npcs_size().map(|size| size.max)).max() {
        words.push(
            word(NPCS)
                .help("NPCs over all worlds; without it, as many as the game is made for")
                .value_parser(value_parser!(u32).range(0..=i64::from(npcs_max))),
        );
    }
    if games.iter().any(|game| !game.known_faults().is_empty()) {
        words.push(
            word(INJECT)
                .value_name("FAULT")
                .action(ArgAction::Append)
                .help(
                    "Put a fault in, to see it found: a test switch that the game has a place for, such as `slow-world` \
                     or `hung-world`",
                )
                .value_parser(value_parser!(FaultSwitch)),
        );
    }
    words
}

fn own_word(option: GameOption, games: &[Game]) -> Arg {
    let with: Vec<&str> = games.iter().filter(|game| has(game, option.name())).map(Game::name).collect();
    let of = if with.len() < games.len() { format!(" ({})", with.join(", ")) } else { String::new() };
    let range = option.range().map_or_else(String::new, |(least, most)| format!(" [{least} to {most}]"));
    let word = word(option.name()).help(format!("{}{range}{of}", option.about()));
    match option.value_name() {
        Some(value_name) => word.value_name(value_name).allow_hyphen_values(true),
        None => word.action(ArgAction::SetTrue),
    }
}

fn described(game: &Game) -> String {
    let npcs = game.npcs_size().map_or_else(String::new, |npcs| format!(" and {} NPCs", npcs.usual));
    format!("{}; for {} players{npcs}", game.description(), game.players_size().usual)
}

/// The options of all games, each name once.
fn all_options(games: &[Game]) -> impl Iterator<Item = GameOption> {
    let mut all: Vec<GameOption> = Vec::new();
    for option in games.iter().flat_map(Game::options) {
        match all.iter().find(|other| other.name() == option.name()) {
            None => all.push(*option),
            Some(other) => {
                let sort = |option: &GameOption| (option.value_name().is_some(), option.is_for_bots_too());
                assert!(
                    sort(other) == sort(option),
                    "two games have another kind of option by the name --{}",
                    option.name()
                );
            }
        }
    }
    all.into_iter()
}

fn has(game: &Game, option: &str) -> bool {
    game.options().iter().any(|own| own.name() == option)
}

/// What becomes of words that a game does not understand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Misfits {
    Refused,
    /// They are for another game.
    LeftOut,
}

/// A command line, of which games are told.
struct Told<'g, 'w> {
    games: &'g [Game],
    words: &'w ArgMatches,
    is_serving: bool,
    /// In front of what is said of a game.
    with_game: String,
    misfits: Misfits,
}

impl<'g> Told<'g, '_> {
    fn options(&self, game: &Game) -> Result<Options, String> {
        let Self { games, words, is_serving, .. } = *self;
        let mut options = Options::none_of(game.options());
        for option in all_options(games).filter(|option| is_serving || option.is_for_bots_too()) {
            let name = option.name();
            let value: Option<String> = option.value_name().and_then(|_| one(words, name));
            if value.is_none() && one::<bool>(words, name) != Some(true) {
                continue;
            }
            if has(game, name) {
                options.give(name, value)?;
            } else if self.misfits == Misfits::Refused {
                return Err(misplaced(&format!("--{name}"), game, games, |game| has(game, name)));
            }
        }
        Ok(options)
    }

    fn faults(&self) -> Vec<FaultSwitch> {
        let faults = self.words.try_get_many::<FaultSwitch>(INJECT).ok().flatten();
        faults.into_iter().flatten().copied().collect()
    }

    fn played(&self, game: &'g Game, scenario: Scenario, options: Options) -> Result<Played<'g>, String> {
        let Self { games, words, is_serving, misfits, .. } = *self;
        let has_size = [PLAYERS, NPCS].map(|word| one::<u32>(words, word).is_some());
        let players = one(words, PLAYERS).filter(|_| is_serving).unwrap_or(game.players_size().usual);
        let players_max = game.players_size().max;
        let players = match misfits {
            Misfits::LeftOut => players.min(players_max),
            Misfits::Refused if players > players_max => {
                return Err(format!(
                    "--players: {players} is not in 1..={players_max}, which {} is made for",
                    game.name()
                ));
            }
            Misfits::Refused => players,
        };
        let npcs: Option<u32> = one(words, NPCS);
        let npcs = match (npcs, game.npcs_size(), misfits) {
            (Some(_), None, Misfits::Refused) => {
                return Err(misplaced("--npcs", game, games, |game| game.npcs_size().is_some()));
            }
            (Some(npcs), Some(size), Misfits::Refused) if npcs > size.max => {
                return Err(format!("--npcs: {npcs} is not in 0..={}, which {} is made for", size.max, game.name()));
            }
            (_, None, _) => 0,
            (npcs, Some(size), _) => npcs.map_or(size.usual, |npcs| npcs.min(size.max)),
        };

        let (mut faults, known) = (self.faults(), game.known_faults());
        let is_known = |fault: &FaultSwitch| known.iter().any(|other| other.name() == fault.name());
        match misfits {
            Misfits::LeftOut => faults.retain(is_known),
            Misfits::Refused => {
                if let Some(fault) = faults.iter().find(|fault| !is_known(fault)) {
                    let known = listed(known.iter().map(FaultSwitch::to_string));
                    let (name, with_game) = (game.name(), &self.with_game);
                    return Err(format!("--inject {fault} has no place in {name}; {with_game}{known}"));
                }
            }
        }
        let arguments = Arguments { players, npcs, scenario, faults, options };
        Ok(Played { game, arguments, has_size, spare_players: 0, is_one_of_several: games.len() > 1 })
    }
}

/// The chosen game, and what shapes its worlds and its bots.
pub struct Played<'g> {
    pub game: &'g Game,
    pub arguments: Arguments,
    /// Whether players and NPCs were said, and are not those that the game is made for.
    has_size: [bool; 2],
    /// Players for whom the server has room beside the bots.
    spare_players: u32,
    /// Whether `--game` has to be said.
    is_one_of_several: bool,
}

impl<'g> Played<'g> {
    /// What the command line says. Refuses what the game does not understand, with what it does.
    pub fn of(games: &'g [Game], matches: &ArgMatches) -> Result<Self, String> {
        let (command, words) = matches.subcommand().ok_or("no command")?;
        let named: Option<String> = one(words, GAME);
        let game = games.iter().find(|game| named.as_deref().is_none_or(|name| game.name() == name));
        let game = game.ok_or("no such game")?;
        let with_game = if games.len() > 1 { format!("with --game {} ", game.name()) } else { String::new() };
        let scenario: Option<String> = one(words, SCENARIO);
        let scenario = Scenario::find(game.known_scenarios(), scenario.as_deref().unwrap_or(Scenario::USUAL));
        let misfits = Misfits::Refused;
        let told = Told { games, words, is_serving: command != PLAYING, with_game, misfits };
        // After what a game understands of itself: that is told first.
        let options = told.options(game)?;
        let scenario = scenario.map_err(|error| format!("--scenario: {}{error}", told.with_game))?;
        told.played(game, scenario, options)
    }

    /// Every scenario of every game, or of the one that is named, or all that are called as the one that is named: each with
    /// what it understands of the words, of the size that is wanted or the largest that it can be.
    pub fn every(games: &'g [Game], matches: &ArgMatches) -> Result<Vec<Self>, String> {
        let (_, words) = matches.subcommand().ok_or("no command")?;
        // The usual game is named by nobody.
        let is_word = words.try_contains_id(GAME).unwrap_or(false);
        let is_named = is_word && words.value_source(GAME) == Some(ValueSource::CommandLine);
        let named: Option<String> = one(words, GAME).filter(|_| is_named);
        let wanted: Option<String> = one(words, SCENARIO);
        let misfits = if is_named { Misfits::Refused } else { Misfits::LeftOut };
        let told = Told { games, words, is_serving: true, with_game: String::new(), misfits };
        let mut every = Vec::new();
        for game in games.iter().filter(|game| named.as_deref().is_none_or(|name| game.name() == name)) {
            let scenarios = game.known_scenarios().iter();
            for scenario in scenarios.filter(|one| wanted.as_deref().is_none_or(|name| one.name == name)) {
                every.push(told.played(game, *scenario, told.options(game)?)?);
            }
        }
        if every.is_empty() {
            let known = games.iter().flat_map(|game| game.known_scenarios().iter().map(|scenario| scenario.name));
            let known: BTreeSet<&str> = known.collect();
            let known = listed(known.into_iter().map(str::to_owned));
            return Err(format!("--scenario: `{}` is none of these games; {known}", wanted.unwrap_or_default()));
        }
        for fault in told.faults() {
            if every.iter().all(|played| !played.arguments.faults.contains(&fault)) {
                return Err(format!("--inject {fault} has no place in any of these games"));
            }
        }
        Ok(every)
    }

    /// Loads what a swarm's bots share, and returns what makes their behaviours.
    pub fn behaviours(&self) -> Result<MakeBehaviour, String> {
        let loaded = self.game.load_bots(&self.arguments.options, self.arguments.scenario);
        loaded.ok_or_else(|| format!("{} has no bots; the game is given some with `Game::bots`", self.game.name()))
    }

    /// The same for a demo: as many bots as were asked for, else [`Game::demo_bots`], on a server with room for
    /// `spare_players` more [0 to the game's maximum less the bots; more are cut to that].
    pub fn for_demo(&self, spare_players: u32) -> Self {
        let arguments = self.arguments.clone();
        let bots = if self.has_size[0] { arguments.players } else { self.game.usual_demo_bots() };
        let spare_players = spare_players.min(self.game.players_size().max.saturating_sub(bots));
        Self { arguments: Arguments { players: bots, ..arguments }, spare_players, ..*self }
    }

    /// The same words for a child process that serves.
    pub fn to_words(&self) -> Vec<String> {
        let Arguments { players, npcs, faults, options, .. } = &self.arguments;
        let players = players + self.spare_players;
        let mut words = self.game_words();
        words.extend(["--players".to_owned(), players.to_string()]);
        if self.game.npcs_size().is_some() {
            words.extend(["--npcs".to_owned(), npcs.to_string()]);
        }
        for fault in faults {
            words.extend([format!("--{INJECT}"), fault.to_string()]);
        }
        words.extend(options.to_words());
        words.extend(self.scenario_words());
        words
    }

    /// The same for one that is to start quickly: unless a size was said, so many players at most, and as many NPCs for each
    /// as usual.
    pub fn to_small_words(&self, players_max: u32) -> Vec<String> {
        let (Arguments { players, npcs, .. }, [has_players, has_npcs]) = (&self.arguments, self.has_size);
        let players = if has_players { *players } else { (*players).min(players_max) };
        let in_proportion = u64::from(*npcs) * u64::from(players) / u64::from(self.game.players_size().usual.max(1));
        let npcs = if has_npcs { *npcs } else { in_proportion as u32 };
        let small = Self { arguments: Arguments { players, npcs, ..self.arguments.clone() }, ..*self };
        small.to_words()
    }

    /// The words with which more was said than the game's name: how large it is, and how it is played.
    pub fn said_words(&self) -> Vec<String> {
        let sizes = [PLAYERS, NPCS].iter().zip(self.has_size).filter(|(_, is_said)| *is_said);
        let mut words: Vec<String> = sizes.map(|(word, _)| format!("--{word}")).collect();
        words.extend(self.arguments.faults.iter().map(|fault| format!("--{INJECT} {fault}")));
        words.extend(self.arguments.options.to_words());
        words.extend(self.scenario_words());
        words
    }

    /// The same for a child process of bots.
    pub fn to_bots_words(&self) -> Vec<String> {
        let mut words = self.game_words();
        words.extend(self.arguments.options.to_bots_words());
        words.extend(self.scenario_words());
        words
    }

    /// What of it shapes the load, for the report of a run whose server and bots are told the words above, and these options besides.
    pub fn conditions(&self, more_options: &[String]) -> BTreeMap<String, String> {
        let Arguments { npcs, faults, options, .. } = &self.arguments;
        let mut conditions = BTreeMap::new();
        let mut say =
            |key: &str, value: String| _ = (!value.is_empty()).then(|| conditions.insert(key.to_owned(), value));
        let npcs = self.game.npcs_size().map(|_| npcs.to_string());
        say(condition::NPCS, npcs.unwrap_or_default());
        say(condition::FAULTS, in_order(faults.iter().map(FaultSwitch::to_string)));
        say(condition::OPTIONS, in_order(options.to_words().into_iter().chain(more_options.iter().cloned())));
        conditions
    }

    /// Whether the game can keep worlds ticking that are empty, and was not told to yet.
    pub fn could_be_all_awake(&self) -> bool {
        let name = GameOption::ALL_AWAKE.name();
        has(self.game, name) && !self.arguments.options.has(name)
    }

    fn game_words(&self) -> Vec<String> {
        let words = ["--game".to_owned(), self.game.name().to_owned()];
        words.into_iter().filter(|_| self.is_one_of_several).collect()
    }

    fn scenario_words(&self) -> Vec<String> {
        let name = self.arguments.scenario.name;
        let words = [format!("--{SCENARIO}"), name.to_owned()];
        words.into_iter().filter(|_| name != Scenario::USUAL).collect()
    }
}

/// Words in one order, in whichever they were said.
fn in_order(words: impl Iterator<Item = String>) -> String {
    words.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ")
}

/// What was given for a word, which this command may not have.
fn one<T: Clone + Send + Sync + 'static>(words: &ArgMatches, name: &str) -> Option<T> {
    words.try_get_one(name).ok().flatten().cloned()
}

/// A word of another game: whose it is, and what this one understands.
fn misplaced(word: &str, game: &Game, games: &[Game], has: impl Fn(&Game) -> bool) -> String {
    let with: Vec<&str> = games.iter().filter(|game| has(game)).map(Game::name).collect();
    let inject = (!game.known_faults().is_empty()).then(|| format!("--{INJECT}"));
    let own = game.options().iter().map(|option| format!("--{}", option.name()));
    let name = game.name();
    format!(
        "{word} does nothing in {name}: it is for --game {}; with --game {name} {}",
        with.join(" and "),
        listed(inject.into_iter().chain(own))
    )
}

fn listed(words: impl Iterator<Item = String>) -> String {
    match words.collect::<Vec<_>>().join(", ") {
        words if words.is_empty() => "there are none".to_owned(),
        words => format!("there are {words}"),
    }
}

#[cfg(test)]
mod tests {
    use throng::replication::SchemaBuilder;
    use throng_bots::Joins;

    use super::*;
    use crate::{Cli, Executable, command_line};
    use clap::CommandFactory;

    const EXECUTABLE: Executable = Executable { name: "woods", version: "1.2.3", commit: "unknown" };
    const CROWD: Scenario = Scenario { name: "crowd", about: "everybody in one place", joins: Joins::InTurn };
    const USUAL: Scenario = Scenario { name: Scenario::USUAL, about: "as people play", joins: Joins::InTurn };

    fn named(name: &'static str) -> Game {
        Game::new(name, || SchemaBuilder::new().build(), |_, _| Ok(())).about("a game")
    }

    /// Many NPCs, worst cases, faults.
    fn wood() -> Game {
        named("wood")
            .players(1_000, 4_000)
            .npcs(20_000, 40_000)
            .option(GameOption::ALL_AWAKE)
            .faults(|_| true)
            .scenarios(&[USUAL, CROWD, Scenario::LOG_IN_AT_ONCE])
    }

    /// No NPCs, options of its own.
    fn shore() -> Game {
        named("shore")
            .players(2_000, 3_000)
            .option(GameOption::switch("scan-everything", "Ask everybody"))
            .option(GameOption::switch("no-throttles", "Send all").for_bots_too())
            .option(GameOption::value::<f32>("tide", "M", "How high it is"))
            .faults(|fault| fault != FaultSwitch::CostlyHideout)
    }

    /// What is played by a command line, as words for its two children, or why it is refused.
    fn words(games: &[Game], line: &str) -> Result<(String, String), String> {
        let words = ["woods"].into_iter().chain(line.split_whitespace());
        let matches = command_line(EXECUTABLE, games).try_get_matches_from(words).map_err(|error| error.to_string())?;
        let played = Played::of(games, &matches)?;
        Ok((played.to_words().join(" "), played.to_bots_words().join(" ")))
    }

    #[track_caller]
    fn check(games: &[Game], line: &str, serve: &str, bots: &str) {
        let found = words(games, line).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((found.0.as_str(), found.1.as_str()), (serve, bots));
        assert_eq!(
            words(games, &format!("serve {serve}")).map(|again| again.0).as_deref(),
            Ok(serve),
            "a child's word"
        );
        let joining = format!("bots --connect 127.0.0.1:9 {bots}");
        assert_eq!(words(games, &joining).map(|again| again.1).as_deref(), Ok(bots), "a child's word");
    }

    #[track_caller]
    fn check_refused(games: &[Game], line: &str, parts: &[&str]) {
        let refused = words(games, line).expect_err("it makes no sense");
        parts.iter().for_each(|part| assert!(refused.contains(part), "{part:?} is not in {refused}"));
    }

    /// Promise: what shapes the load is told, in whichever order and however it is said.
    #[test]
    fn conditions_are_what_shapes_the_load() {
        let both = [wood(), shore()];
        let check = |line: &str, expect: &[(&str, &str)]| {
            let words = ["woods"].into_iter().chain(line.split_whitespace());
            let matches = command_line(EXECUTABLE, &both).get_matches_from(words);
            let plan = crate::load::plan(&Played::of(&both, &matches).unwrap(), 60, 0).unwrap();
            let told: Vec<_> = plan.conditions.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            assert_eq!(told, expect, "{line}");
        };
        check("load", &[("npcs", "20000"), ("options", "--all-awake")]);
        check("load --all-awake --npcs 7", &[("npcs", "7"), ("options", "--all-awake")]);
        check("load --game shore", &[]);
        for line in ["--no-throttles --scan-everything --tide 1.5", "--tide 1.5 --scan-everything --no-throttles"] {
            let options = ("options", "--no-throttles --scan-everything --tide=1.5");
            check(&format!("load --game shore {line}"), &[options]);
        }
        check("load --game shore --inject slow-world --inject alloc-rate", &[("faults", "alloc-rate slow-world")]);
    }

    #[test]
    fn every_game_has_its_own_size_unless_another_is_given_and_children_get_the_same() {
        let both = [wood(), shore()];
        check(&both, "serve", "--game wood --players 1000 --npcs 20000", "--game wood");
        check(&both, "load --game shore", "--game shore --players 2000", "--game shore");
        check(&both, "demo --players 7 --npcs 0", "--game wood --players 7 --npcs 0", "--game wood");
        check(
            &both,
            "load --game shore --tide 1.5 --no-throttles --scan-everything --inject alloc-rate",
            "--game shore --players 2000 --inject alloc-rate --scan-everything --no-throttles --tide=1.5",
            "--game shore --no-throttles",
        );
        check(
            &both,
            "load --scenario crowd",
            "--game wood --players 1000 --npcs 20000 --scenario crowd",
            "--game wood --scenario crowd",
        );
    }

    #[test]
    fn a_demo_has_room_for_players_beside_its_bots() {
        let both = [wood().demo_bots(995), shore()];
        let words_of = |line: &str| {
            let words = ["woods"].into_iter().chain(line.split_whitespace());
            let matches = command_line(EXECUTABLE, &both).get_matches_from(words);
            let demo = Played::of(&both, &matches).expect("a game").for_demo(16);
            (demo.arguments.players, demo.to_words().join(" "))
        };
        assert_eq!(words_of("demo"), (995, "--game wood --players 1011 --npcs 20000".to_owned()));
        assert_eq!(words_of("demo --players 20"), (20, "--game wood --players 36 --npcs 20000".to_owned()));
        assert_eq!(words_of("demo --game shore"), (2_000, "--game shore --players 2016".to_owned()));
        assert_eq!(words_of("demo --game shore --players 2990"), (2_990, "--game shore --players 3000".to_owned()));
    }

    #[test]
    fn the_only_game_need_not_be_named() {
        let only = [shore()];
        check(&only, "load --no-throttles", "--players 2000 --no-throttles", "--no-throttles");
        check_refused(&only, "load --game shore", &["--game"]);
        check_refused(&only, "load --npcs 3", &["--npcs"]);
        check_refused(&only, "load --all-awake", &["--all-awake"]);
        let plain = [named("plain")];
        check(&plain, "serve", "--players 100", "");
        check_refused(&plain, "serve --inject slow-world", &["--inject"]);
    }

    #[test]
    fn what_a_game_does_not_understand_is_refused_with_what_it_does() {
        let both = [wood(), shore()];
        check_refused(
            &both,
            "serve --scan-everything",
            &[
                "--scan-everything does nothing in wood: it is for --game shore; with --game wood there are --inject, --all-awake",
            ],
        );
        check_refused(&both, "bots --connect 127.0.0.1:9 --no-throttles", &["--no-throttles does nothing in wood"]);
        check_refused(&both, "serve --game shore --npcs 4", &["--npcs does nothing in shore: it is for --game wood"]);
        check_refused(
            &both,
            "serve --game shore --inject stolen-cores --inject dear-hideout",
            &[
                "--inject dear-hideout has no place in shore; with --game shore there are hung-world, stuck-world, slow-world",
            ],
        );
        check_refused(&both, "serve --game shore --tide high", &["--tide high: invalid float literal"]);
        check_refused(&both, "serve --game shore --players 3500", &["--players: 3500 is not in 1..=3000"]);
        check_refused(&both, "serve --players 0", &["--players", "1..=4000"]);
        check_refused(&both, "serve --game duel", &["duel", "wood", "shore"]);
        check_refused(&both, "serve --scenario rush", &["--scenario: with --game wood", "`rush`", "crowd"]);
    }

    /// What a day plays, each as words of its server.
    fn every(games: &[Game], line: &str) -> Result<Vec<String>, String> {
        let words = ["woods"].into_iter().chain(line.split_whitespace());
        let matches = command_line(EXECUTABLE, games).get_matches_from(words);
        Ok(Played::every(games, &matches)?.iter().map(|played| played.to_words().join(" ")).collect())
    }

    #[test]
    fn a_day_plays_every_scenario_of_every_game() {
        let both = [wood(), shore()];
        assert_eq!(
            every(&both, "load --daily").unwrap(),
            [
                "--game wood --players 1000 --npcs 20000",
                "--game wood --players 1000 --npcs 20000 --scenario crowd",
                "--game wood --players 1000 --npcs 20000 --scenario log-in-at-once",
                "--game shore --players 2000",
                "--game shore --players 2000 --scenario log-in-at-once",
            ]
        );
        // Each has what it understands, and no more than it can.
        assert_eq!(
            every(&both, "load --daily --players 3500 --npcs 7 --tide 2 --inject dear-hideout --scenario usual")
                .unwrap(),
            ["--game wood --players 3500 --npcs 7 --inject dear-hideout", "--game shore --players 3000 --tide=2"]
        );
        assert_eq!(
            every(&both, "load --daily --game shore --inject rare-crash=300").unwrap(),
            [
                "--game shore --players 2000 --inject rare-crash=300",
                "--game shore --players 2000 --inject rare-crash=300 --scenario log-in-at-once",
            ]
        );
        assert_eq!(every(&both, "load --daily --scenario crowd").unwrap().len(), 1);
        assert_eq!(every(&[shore()], "load --daily").unwrap().len(), 2);
        let check_refused = |line: &str, part: &str| {
            let refused = every(&both, line).expect_err("it makes no sense");
            assert!(refused.contains(part), "{part:?} is not in {refused}");
        };
        check_refused(
            "load --daily --scenario rush",
            "`rush` is none of these games; there are crowd, log-in-at-once, usual",
        );
        check_refused("load --daily --game shore --npcs 4", "--npcs does nothing in shore");
        check_refused("load --daily --game shore --scenario crowd", "`crowd` is none of these games");
        check_refused("load --daily --game shore --inject dear-hideout", "has no place in shore");
    }

    #[test]
    fn a_load_run_keeps_awake_what_can_be() {
        let games = [wood(), shore()];
        let could_be = |line: &str| {
            let words = ["woods"].into_iter().chain(line.split_whitespace());
            let matches = command_line(EXECUTABLE, &games).get_matches_from(words);
            Played::of(&games, &matches).map(|played| played.could_be_all_awake())
        };
        assert_eq!(could_be("load"), Ok(true));
        assert_eq!(could_be("load --all-awake"), Ok(false));
        assert_eq!(could_be("load --game shore"), Ok(false));
    }

    #[test]
    #[should_panic(expected = "--seconds is taken by the command demo")]
    fn an_option_that_a_command_has_already_is_a_bug() {
        command_line(EXECUTABLE, &[wood().option(GameOption::switch("seconds", "Count them"))]);
    }

    /// Clap's own checks of all words.
    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
        command_line(EXECUTABLE, &[wood(), shore()]).debug_assert();
        command_line(EXECUTABLE, &[named("plain")]).debug_assert();
    }
}
