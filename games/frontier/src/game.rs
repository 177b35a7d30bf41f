//! Frontier as a game for the toolbox: what it is made for, its options, its bots, and its world by a command line.

use throng_bots::Scenario;
use throng_faults::FaultSwitch;
use throng_game::{Arguments, Game, GameOption, Options};
use throng_replication::ReplicationRules;

use crate::{
    FrontierBot, FrontierSettings,
    bot::{BotGuide, ONE_PLACE, SCENARIOS},
    schema::schema,
    server::build,
};

const SCAN_EVERYTHING: GameOption = GameOption::switch(
    "scan-everything",
    "Ask everybody who is near instead of keeping lists of it, to see what neighbour lists save",
);
const NO_THROTTLES: GameOption = GameOption::switch(
    "no-throttles",
    "Let the game send whatever changes, as often as it changes and however far away, to see what throttles save",
)
.for_bots_too();

/// The game, with which an executable has every command.
pub fn game() -> Game {
    Game::new("frontier", schema, |server, arguments| {
        let settings = settings(arguments);
        build(server, &settings)?;
        if settings.no_throttles {
            let radii = server.replication_rules().radii;
            server.set_replication_rules(ReplicationRules { radii, ..ReplicationRules::default() });
        }
        Ok(())
    })
    .page(throng_pages::PLAY_FRONTIER)
    .about("everybody in one world, a wide landscape with camps of NPCs")
    .version(env!("CARGO_PKG_VERSION"))
    .players(2_000, 4_096)
    .npcs(10_000, 40_000)
    .option(GameOption::ALL_AWAKE)
    .option(SCAN_EVERYTHING)
    .option(NO_THROTTLES)
    .option(BOT_CASTS)
    // There is one world, so none can be costlier than the others.
    .faults(|fault| fault != FaultSwitch::CostlyHideout)
    .scenarios(&SCENARIOS)
    .bots(bots)
}

fn settings(arguments: &Arguments) -> FrontierSettings {
    let is_given = |option: GameOption| arguments.options.has(option.name());
    let mut settings = FrontierSettings {
        players: arguments.players as usize,
        npcs: arguments.npcs as usize,
        keep_awake: is_given(GameOption::ALL_AWAKE),
        scan_everything: is_given(SCAN_EVERYTHING),
        no_throttles: is_given(NO_THROTTLES),
        one_hearth: arguments.scenario == ONE_PLACE,
        ..FrontierSettings::default()
    };
    arguments.faults.iter().for_each(|&fault| settings.inject(fault));
    settings
}

/// How bots can be made more like people.
const BOT_CASTS: GameOption =
    GameOption::number("bot-casts", "TIMES", "How often bots cast in a fight, of what they do anyhow", 0.0, 4.0)
        .for_bots_too()
        .fits("casts");

fn bots(options: &Options, scenario: Scenario) -> impl Fn(usize) -> FrontierBot + use<> {
    let guide = BotGuide::load(!options.has(NO_THROTTLES.name()));
    let casts = options.value(BOT_CASTS.name()).unwrap_or(1.0);
    move |_bot| FrontierBot::in_scenario(guide.clone(), scenario).casting(casts)
}
