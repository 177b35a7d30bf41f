//! A field to walk about on, with sheep and flowers, and a barn to go into. A small game with every command of the toolbox.
//!
//! `cargo run --release -- demo`

mod bot;
mod flowers;
mod players;
mod protocol;
mod sheep;
#[cfg(test)]
mod tests;
mod worlds;

use std::process::ExitCode;

use serde::Deserialize;
use throng::settings::{Checks, Section};
use throng_cli::{Game, GameOption};

use crate::{bot::Bot, players::SPEED, protocol::protocol, worlds::Plan};

fn main() -> ExitCode {
    throng_cli::main(game())
}

/// All that the commands know of the game.
fn game() -> Game {
    Game::with_settings(
        env!("CARGO_PKG_NAME"),
        || protocol().schema(),
        |server, arguments, settings: &GameSettings| {
            let plan =
                Plan { sheep: arguments.npcs, are_asleep: arguments.options.has("at-night"), seed: settings.seed };
            worlds::open(server, &plan)?;
            if let Some(speed) = arguments.options.value("speed") {
                server.set_tunable(&SPEED, speed)?;
            }
            Ok(())
        },
    )
    .page(include_str!("page.html"))
    .about("a field to walk about on, with sheep and flowers, and a barn to go into")
    .version(env!("CARGO_PKG_VERSION"))
    .commit(env!("THRONG_COMMIT"))
    .players(50, 1_000)
    .npcs(200, 5_000)
    .option(GameOption::switch("at-night", "Let the sheep sleep"))
    .option(GameOption::value::<f32>("speed", "M_PER_S", "How fast players walk, instead of the settings"))
    .bots(|_options, _scenario| |_bot: usize| Bot::default())
}

/// `[game]` of `throng.toml`.
#[derive(Debug, Deserialize)]
#[serde(default)]
struct GameSettings {
    /// How fast players walk [m/s, 0.1 to 20]. Default 6. Worlds read the tunable of this name.
    speed_m_per_s: f32,
    /// Where the worlds' chance begins: who grazes where. Default 1.
    seed: u64,
}

impl Default for GameSettings {
    fn default() -> Self {
        Self { speed_m_per_s: SPEED.default(), seed: 1 }
    }
}

impl Section for GameSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.tunable(&SPEED, self.speed_m_per_s);
    }
}
