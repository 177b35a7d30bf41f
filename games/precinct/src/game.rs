//! Precinct as a game for the toolbox: what it is made for, its bots, and its worlds by a command line.

use throng_bots::Scenario;
use throng_game::{Arguments, Game, GameOption, Options};

use crate::{
    PrecinctBot, PrecinctSettings,
    bot::{BotGuide, DISTRICT, Itinerary, SCENARIOS},
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

fn bots(_: &Options, scenario: Scenario) -> impl Fn(usize) -> PrecinctBot + use<> {
    let (guide, itinerary) = (BotGuide::load(), Itinerary::of(scenario));
    move |_bot| PrecinctBot::with_itinerary(guide.clone(), itinerary.clone())
}
