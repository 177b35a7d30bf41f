//! Duel as a game for the toolbox: what it is made for, its settings and options, its bots, and its worlds by a command
//! line.

use std::str::FromStr;

use throng_bots::Scenario;
use throng_game::{Game, GameOption, Options};

use crate::{
    bot::{BotGuide, DuelBot, Manner},
    protocol::TICK_HZ,
    scenarios::{NO_BUY, SCENARIOS},
    schema::schema,
    server::build,
    settings::{DuelSettings, ROUNDS_TO_WIN_MAX},
};

/// Rounds that win a match, as they are given on a command line.
#[derive(Debug, PartialEq, Eq)]
struct RoundsToWin(u8);

impl FromStr for RoundsToWin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rounds = text.parse().ok().filter(|rounds| (1..=ROUNDS_TO_WIN_MAX).contains(rounds));
        rounds.map(Self).ok_or_else(|| format!("a match is won by 1 to {ROUNDS_TO_WIN_MAX} rounds"))
    }
}

/// Some two rounds, after a warm-up: from then on matches buy at different times.
const SETTLES_AFTER_S: u32 = 200;

const ROUNDS: GameOption = GameOption::value::<RoundsToWin>(
    "rounds-to-win",
    "ROUNDS",
    "Rounds that win a match, instead of the settings (1 to 30)",
);

/// The game, with which an executable has every command.
pub fn game() -> Game {
    Game::with_settings("duel", schema, |server, arguments, settings: &DuelSettings| {
        let mut settings = settings.clone();
        if arguments.scenario == NO_BUY {
            settings.buy_s = 0.0;
        }
        if let Some(RoundsToWin(rounds)) = arguments.options.value(ROUNDS.name()) {
            settings.rounds_to_win = rounds;
        }
        let players = arguments.players as usize;
        arguments.faults.iter().for_each(|&fault| settings.inject(fault, players));
        build(server, &settings)?;
        Ok(())
    })
    .page(throng_pages::PLAY_DUEL)
    .about("five against five at 128 Hz, in rounds; matches are worlds that come and go")
    .version(env!("CARGO_PKG_VERSION"))
    .players(200, 4_000)
    // Nineteen matches, and one in which half of the seats are free.
    .demo_bots(195)
    .option(ROUNDS)
    .option(BOT_PACE)
    .option(BOT_MISS)
    .option(BOT_THROWS)
    .faults(|_| true)
    .scenarios(&SCENARIOS)
    .bots(bots)
    .bots_at(TICK_HZ.into())
    .settles_after(SETTLES_AFTER_S)
}

/// How bots can be made more like people, who stand about, keep their grenades, and aim better or worse.
const BOT_PACE: GameOption = GameOption::number(
    "bot-pace",
    "SHARE",
    "Of the time in which bots have somewhere to go, how much they go; they stand about otherwise",
    0.0,
    1.0,
)
.for_bots_too()
.fits("metres");
const BOT_MISS: GameOption = GameOption::number(
    "bot-miss",
    "TIMES",
    "By how much bots miss what they aim at, of what they do anyhow; who misses more shoots more for a kill",
    0.0,
    4.0,
)
.for_bots_too()
.fits("shots");
const BOT_THROWS: GameOption = GameOption::number(
    "bot-throws",
    "SHARE",
    "Of the rounds, in how many bots throw the grenades that they have",
    0.0,
    1.0,
)
.for_bots_too()
.fits("grenades");

fn bots(options: &Options, _: Scenario) -> impl Fn(usize) -> DuelBot + use<> {
    let guide = BotGuide::load();
    let given = |option: GameOption| options.value(option.name()).unwrap_or(1.0);
    let manner = Manner { pace: given(BOT_PACE), miss: given(BOT_MISS), throws: given(BOT_THROWS) };
    move |_bot| DuelBot::new(guide.clone()).with_manner(manner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bots_send_as_often_as_players_do() {
        assert_eq!(game().bots_hz(), u32::from(TICK_HZ));
    }

    #[test]
    fn rounds_beyond_the_range_are_refused_with_the_range() {
        assert_eq!((ROUNDS.check("1"), ROUNDS.check("30")), (Ok(()), Ok(())));
        for text in ["0", "31", "200", "256", "-1", "many", ""] {
            let error = ROUNDS.check(text).expect_err(text);
            assert!(error.contains("1 to 30"), "{text}: {error}");
        }
    }
}
