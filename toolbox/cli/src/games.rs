//! Which games the command knows, and how each is put into a server or a swarm: one row of [`GAMES`] per game.

use std::sync::Arc;

use clap::{Args, ValueEnum, builder::PossibleValue};
use frontier::{FrontierBot, FrontierSettings};
use precinct::{PrecinctBot, PrecinctSettings};
use throng::{Server, server::ServerError};
use throng_bots::{Behaviour, Scenario};
use throng_faults::FaultSwitch;
use throng_replication::{ReplicationRules, Schema};

/// Makes the behaviour of a swarm's bot with this index, on the thread that drives it.
pub type MakeBehaviour = Box<dyn Fn(usize) -> Box<dyn Behaviour> + Send + Sync>;

/// A game that ships with the command.
struct Row {
    name: &'static str,
    about: &'static str,
    /// What it is made for, and how many there are unless somebody says otherwise.
    players: u32,
    npcs: u32,
    /// Options of [`GameArguments`] and [`GameFlags`] that it understands beside its size.
    options: &'static [&'static str],
    /// Whether it has the place where a fault is put in.
    knows_fault: fn(FaultSwitch) -> bool,
    schema: fn() -> Arc<Schema>,
    /// How its bots can play, the usual way first.
    scenarios: &'static [Scenario],
    /// Loads what a swarm's bots share.
    behaviours: fn(&GameFlags, Scenario) -> MakeBehaviour,
    /// Creates the game's worlds in a server.
    build: fn(&GameArguments, &mut Server) -> Result<(), ServerError>,
}

/// All games, the usual one first.
static GAMES: [Game; 2] = [
    Game(&Row {
        name: "precinct",
        about: "every player has a world of its own with NPCs, and can walk into a shared hub and dark zone",
        players: 1_000,
        npcs: 20_000,
        options: &[INJECT, ALL_AWAKE],
        knows_fault: |_| true,
        schema: precinct::schema,
        scenarios: &precinct::bot::SCENARIOS,
        behaviours: |_, scenario| {
            let (guide, itinerary) = (precinct::bot::BotGuide::load(), precinct::bot::Itinerary::of(scenario));
            Box::new(move |_bot| Box::new(PrecinctBot::with_itinerary(guide.clone(), itinerary.clone())))
        },
        build: build_precinct,
    }),
    Game(&Row {
        name: "frontier",
        about: "everybody in one world, a wide landscape with camps of NPCs",
        players: 2_000,
        npcs: 10_000,
        options: &[INJECT, ALL_AWAKE, SCAN_EVERYTHING, NO_THROTTLES],
        // There is one world, so none can be costlier than the others.
        knows_fault: |fault| fault != FaultSwitch::CostlyHideout,
        schema: frontier::schema,
        scenarios: &frontier::bot::SCENARIOS,
        behaviours: |flags, scenario| {
            let guide = frontier::bot::BotGuide::load(!flags.no_throttles);
            Box::new(move |_bot| Box::new(FrontierBot::in_scenario(guide.clone(), scenario)))
        },
        build: build_frontier,
    }),
];

const INJECT: &str = "--inject";
const ALL_AWAKE: &str = "--all-awake";
const SCAN_EVERYTHING: &str = "--scan-everything";
const NO_THROTTLES: &str = "--no-throttles";
const SCENARIO: &str = "--scenario";

fn build_precinct(arguments: &GameArguments, server: &mut Server) -> Result<(), ServerError> {
    let mut settings = PrecinctSettings {
        players: arguments.players() as usize,
        npcs: arguments.npcs() as usize,
        keep_awake: arguments.all_awake,
        ..PrecinctSettings::default()
    };
    arguments.inject.iter().for_each(|&fault| settings.inject(fault));
    precinct::build(server, &settings).map(drop)
}

fn build_frontier(arguments: &GameArguments, server: &mut Server) -> Result<(), ServerError> {
    let mut settings = FrontierSettings {
        players: arguments.players() as usize,
        npcs: arguments.npcs() as usize,
        keep_awake: arguments.all_awake,
        scan_everything: arguments.scan_everything,
        no_throttles: arguments.flags.no_throttles,
        one_hearth: arguments.scenario_name() == frontier::bot::ONE_PLACE.name,
        ..FrontierSettings::default()
    };
    arguments.inject.iter().for_each(|&fault| settings.inject(fault));
    frontier::build(server, &settings)?;
    if settings.no_throttles {
        let radii = server.replication_rules().radii;
        server.set_replication_rules(ReplicationRules { radii, ..ReplicationRules::default() });
    }
    Ok(())
}

/// One of [`GAMES`].
#[derive(Clone, Copy)]
pub struct Game(&'static Row);

impl ValueEnum for Game {
    fn value_variants<'a>() -> &'a [Self] {
        &GAMES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let Row { name, about, players, npcs, .. } = self.0;
        Some(PossibleValue::new(name).help(format!("{about}; for {players} players and {npcs} NPCs")))
    }
}

impl Game {
    pub fn name(self) -> &'static str {
        self.0.name
    }

    pub fn schema(self) -> Arc<Schema> {
        (self.0.schema)()
    }

    /// What makes the behaviours of a swarm's bots. Loads what they share.
    pub fn behaviours(self, flags: &GameFlags) -> Result<MakeBehaviour, String> {
        self.check_options(flags.given())?;
        Ok((self.0.behaviours)(flags, self.scenario(flags)?))
    }

    /// How its bots are to play.
    pub fn scenario(self, flags: &GameFlags) -> Result<Scenario, String> {
        let found = Scenario::find(self.0.scenarios, flags.scenario_name());
        found.map_err(|error| format!("--scenario: with --game {} {error}", self.name()))
    }

    fn check_options(self, given: impl Iterator<Item = &'static str>) -> Result<(), String> {
        let Row { name, options, .. } = self.0;
        for option in given {
            if !options.contains(&option) {
                let with = GAMES.iter().filter(|game| game.0.options.contains(&option)).map(|game| game.name());
                return Err(format!(
                    "{option} does nothing in {name}: it is for --game {}; with --game {name} there are {}",
                    with.collect::<Vec<_>>().join(" and "),
                    options.join(", ")
                ));
            }
        }
        Ok(())
    }
}

/// What bots must know of a server's game beside its name.
#[derive(Debug, Clone, Default, Args)]
pub struct GameFlags {
    /// Let the game send whatever changes, as often as it changes and however far away, to see what throttles save
    /// (frontier).
    #[arg(long)]
    pub no_throttles: bool,
    /// How everybody plays: `usual`, which is the default, or one of the game's worst cases, such as everybody in one
    /// place. An unknown name is answered with those that the game has.
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
}

impl GameFlags {
    fn given(&self) -> impl Iterator<Item = &'static str> {
        self.no_throttles.then_some(NO_THROTTLES).into_iter()
    }

    fn scenario_name(&self) -> &str {
        self.scenario.as_deref().unwrap_or(Scenario::USUAL)
    }

    fn to_arguments(&self) -> Vec<String> {
        let scenario = self.scenario.iter().flat_map(|name| [SCENARIO.to_owned(), name.clone()]);
        self.given().map(String::from).chain(scenario).collect()
    }
}

/// What shapes a game's worlds; the same words for `serve`, `load` and `demo`.
#[derive(Clone, Args)]
pub struct GameArguments {
    /// The game to run.
    #[arg(long, value_enum, default_value = GAMES[0].0.name)]
    pub game: Game,
    /// Players that worlds are made for; without it, as many as the game is made for.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4000))]
    players: Option<u32>,
    /// NPCs over all worlds; without it, as many as the game is made for.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=40_000))]
    npcs: Option<u32>,
    /// Put a fault in, to see it found: a test switch that the game has a place for, such as `slow-world` or
    /// `hung-world`.
    #[arg(long, value_name = "FAULT")]
    inject: Vec<FaultSwitch>,
    /// Keep worlds ticking in which no player has been yet, so that all NPCs live from the start.
    #[arg(long)]
    pub all_awake: bool,
    /// Ask everybody who is near instead of keeping lists of it, to see what neighbour lists save (frontier).
    #[arg(long)]
    scan_everything: bool,
    #[command(flatten)]
    flags: GameFlags,
}

impl GameArguments {
    pub fn players(&self) -> u32 {
        self.players.unwrap_or(self.game.0.players)
    }

    pub fn npcs(&self) -> u32 {
        self.npcs.unwrap_or(self.game.0.npcs)
    }

    /// Refuses what the game does not understand, with what it does.
    pub fn check(&self) -> Result<(), String> {
        self.game.check_options(self.given())?;
        self.scenario()?;
        let Row { name, knows_fault, .. } = self.game.0;
        match self.inject.iter().find(|&&fault| !knows_fault(fault)) {
            None => Ok(()),
            Some(fault) => {
                let known: Vec<String> =
                    FaultSwitch::all().filter(|&it| knows_fault(it)).map(|it| it.to_string()).collect();
                Err(format!(
                    "--inject {fault} has no place in {name}; with --game {name} there are {}",
                    known.join(", ")
                ))
            }
        }
    }

    /// How bots are to play.
    pub fn scenario(&self) -> Result<Scenario, String> {
        self.game.scenario(&self.flags)
    }

    fn scenario_name(&self) -> &str {
        self.flags.scenario_name()
    }

    /// Creates the game's worlds in `server`. To be checked before.
    pub fn build(&self, server: &mut Server) -> Result<(), ServerError> {
        (self.game.0.build)(self, server)
    }

    /// The same arguments for a child process that serves.
    pub fn to_arguments(&self) -> Vec<String> {
        let size = ["--players".into(), self.players().to_string(), "--npcs".into(), self.npcs().to_string()];
        let game = ["--game".into(), self.game.name().into()];
        let mut arguments: Vec<String> = game.into_iter().chain(size).collect();
        for fault in &self.inject {
            arguments.extend([INJECT.into(), fault.to_string()]);
        }
        let own = self.given().filter(|option| ![INJECT, NO_THROTTLES].contains(option));
        arguments.extend(own.map(String::from));
        arguments.extend(self.flags.to_arguments());
        arguments
    }

    /// The same for a child process of bots.
    pub fn to_bots_arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--game".to_owned(), self.game.name().to_owned()];
        arguments.extend(self.flags.to_arguments());
        arguments
    }

    /// Whether the game can keep worlds ticking that are empty, and was not told to yet.
    pub fn could_be_all_awake(&self) -> bool {
        self.game.0.options.contains(&ALL_AWAKE) && !self.all_awake
    }

    /// The options beside game and size that were given.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let options =
            [(INJECT, !self.inject.is_empty()), (ALL_AWAKE, self.all_awake), (SCAN_EVERYTHING, self.scan_everything)];
        options.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).chain(self.flags.given())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        game: GameArguments,
    }

    fn parse(arguments: &[&str]) -> GameArguments {
        let given = ["throng"].into_iter().chain(arguments.iter().copied());
        Cli::try_parse_from(given).unwrap_or_else(|error| panic!("{error}")).game
    }

    #[test]
    fn every_game_has_its_own_size_unless_another_is_given() {
        let check = |arguments: &[&str], expect| {
            let game = parse(arguments);
            assert_eq!((game.game.name(), game.players(), game.npcs()), expect);
        };
        check(&[], ("precinct", 1_000, 20_000));
        check(&["--game", "frontier"], ("frontier", 2_000, 10_000));
        check(&["--game", "frontier", "--players", "7", "--npcs", "0"], ("frontier", 7, 0));
    }

    #[test]
    fn what_a_game_does_not_understand_is_refused_with_what_it_does() {
        let check = |arguments: &[&str], expect: Result<(), &str>| {
            assert_eq!(
                parse(arguments).check().as_ref().map_err(String::as_str),
                expect.as_ref().map_err(|text| *text)
            );
        };
        check(&["--inject", "hung-world", "--all-awake"], Ok(()));
        check(&["--game", "frontier", "--scan-everything", "--no-throttles", "--inject", "hung-world"], Ok(()));
        check(
            &["--scan-everything"],
            Err(
                "--scan-everything does nothing in precinct: it is for --game frontier; with --game precinct there are --inject, \
                 --all-awake",
            ),
        );
        check(
            &["--no-throttles"],
            Err(
                "--no-throttles does nothing in precinct: it is for --game frontier; with --game precinct there are --inject, \
                 --all-awake",
            ),
        );
        check(
            &["--game", "frontier", "--inject", "stolen-cores", "--inject", "dear-hideout"],
            Err(
                "--inject dear-hideout has no place in frontier; with --game frontier there are hung-world, slow-world, spikes, \
                 lock-inversion, stolen-cores, long-tasks, alloc-rate, over-budget, big-alloc, leak, turnover",
            ),
        );
        assert!(GAMES[0].behaviours(&GameFlags { no_throttles: true, ..GameFlags::default() }).is_err());
    }

    #[test]
    fn every_game_can_be_played_as_usual_and_has_its_worst_cases() {
        for game in GAMES {
            let names: Vec<&str> = game.0.scenarios.iter().map(|scenario| scenario.name).collect();
            assert_eq!(names[0], Scenario::USUAL);
            assert!(names.len() > 1 && (1..names.len()).all(|at| !names[..at].contains(&names[at])), "{names:?}");
        }
        let check = |arguments: &[&str], expect: &str| {
            assert_eq!(parse(arguments).scenario().map(|scenario| scenario.name), Ok(expect));
        };
        check(&[], "usual");
        check(&["--scenario", "dark-zone"], "dark-zone");
        check(&["--game", "frontier", "--scenario", "one-place"], "one-place");
        let refused = parse(&["--game", "frontier", "--scenario", "dark-zone"]).check().unwrap_err();
        for part in ["--game frontier", "`dark-zone`", "one-place", "log-in-at-once"] {
            assert!(refused.contains(part), "{part:?} is not in {refused}");
        }
    }

    #[test]
    fn a_child_gets_the_same_arguments() {
        let check = |arguments: &[&str], serve: &str, bots: &str| {
            let game = parse(arguments);
            assert_eq!(
                (game.to_arguments().join(" ").as_str(), game.to_bots_arguments().join(" ").as_str()),
                (serve, bots)
            );
            let again = game.to_arguments();
            assert_eq!(parse(&again.iter().map(String::as_str).collect::<Vec<_>>()).to_arguments(), again);
        };
        check(&[], "--game precinct --players 1000 --npcs 20000", "--game precinct");
        check(
            &["--game", "frontier", "--no-throttles", "--scan-everything", "--inject", "alloc-rate"],
            "--game frontier --players 2000 --npcs 10000 --inject alloc-rate --scan-everything --no-throttles",
            "--game frontier --no-throttles",
        );
        check(
            &["--scenario", "dark-zone"],
            "--game precinct --players 1000 --npcs 20000 --scenario dark-zone",
            "--game precinct --scenario dark-zone",
        );
    }
}
