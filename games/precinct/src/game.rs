//! Precinct as a game for the toolbox: what it is made for, its bots, and its worlds by a command line.

use throng_bots::Scenario;
use throng_game::{Arguments, Game, GameOption, Options};

use crate::{
    PrecinctBot, PrecinctSettings,
    bot::{BotGuide, DISTRICT, Itinerary, Manner, SCENARIOS},
    district,
    server::build,
    worlds::schema,
};

/// The game, with which an executable has every command.
pub fn game() -> Game {
    Game::new("precinct", schema, |server, arguments| {
        if arguments.scenario == DISTRICT {
            let keep_awake = arguments.options.has(GameOption::ALL_AWAKE.name());
            district::build(server, arguments.players as usize, arguments.npcs as usize, keep_awake)?;
        } else {
            build(server, &settings(arguments))?;
        }
        Ok(())
    })
    .page(throng_pages::PLAY_PRECINCT)
    .about("every player has a world of its own with NPCs, and can walk into a shared hub and dark zone")
    .version(env!("CARGO_PKG_VERSION"))
    .players(1_000, 4_000)
    .npcs(20_000, 40_000)
    .option(GameOption::ALL_AWAKE)
    .option(BOT_PACE)
    .option(BOT_SHOTS)
    .faults(|_| true)
    .scenarios(&SCENARIOS)
    .bots(bots)
}

fn settings(arguments: &Arguments) -> PrecinctSettings {
    let mut settings = PrecinctSettings {
        players: arguments.players as usize,
        npcs: arguments.npcs as usize,
        keep_awake: arguments.options.has(GameOption::ALL_AWAKE.name()),
        ..PrecinctSettings::default()
    };
    arguments.faults.iter().for_each(|&fault| settings.inject(fault));
    settings
}

/// How bots can be made more like people, who stand about and wait.
const BOT_PACE: GameOption = GameOption::number(
    "bot-pace",
    "SHARE",
    "Of the time, how much bots are on their way; they stand about otherwise",
    0.0,
    1.0,
)
.for_bots_too()
.fits("metres");
const BOT_SHOTS: GameOption =
    GameOption::number("bot-shots", "SHARE", "Of the moments in which bots could fire, in how many they do", 0.0, 1.0)
        .for_bots_too()
        .fits("shots");

fn bots(options: &Options, scenario: Scenario) -> impl Fn(usize) -> PrecinctBot + use<> {
    let (guide, itinerary) = (BotGuide::load(), Itinerary::of(scenario));
    let share = |option: GameOption| options.value(option.name()).unwrap_or(1.0);
    let manner = Manner { pace: share(BOT_PACE), shots: share(BOT_SHOTS) };
    move |_bot| PrecinctBot::with_itinerary(guide.clone(), itinerary.clone()).with_manner(manner)
}
