//! Which games the command knows, and how each is put into a server or a swarm.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use precinct::{Inject, PrecinctSettings};
use throng::{Server, server::ServerError};
use throng_bots::Behaviour;
use throng_replication::Schema;

/// A game that ships with the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Game {
    /// Every player has a world of its own with NPCs, and can walk into a shared hub and dark zone.
    Precinct,
}

/// What shapes a game's worlds; the same words for `serve`, `load` and `demo`.
#[derive(Debug, Clone, Args)]
pub struct GameArguments {
    /// The game to run.
    #[arg(long, value_enum, default_value = "precinct")]
    pub game: Game,
    /// Players that worlds are made for.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=4000))]
    pub players: u32,
    /// NPCs over all worlds.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(0..=40_000))]
    pub npcs: u32,
    /// Put a fault in, to see it found: one of the game's test switches, such as `dear-hideout`, `slow-world` or `hung-world`.
    #[arg(long, value_name = "FAULT")]
    pub inject: Vec<Inject>,
    /// Keep worlds ticking in which no player has been yet, so that all NPCs live from the start.
    #[arg(long)]
    pub all_awake: bool,
}

impl Game {
    pub fn name(self) -> &'static str {
        match self {
            Self::Precinct => "precinct",
        }
    }

    pub fn schema(self) -> Arc<Schema> {
        match self {
            Self::Precinct => precinct::schema(),
        }
    }

    /// Makes the behaviours of a swarm's bots, one after the other. Loads what they share.
    pub fn behaviours(self) -> impl FnMut(usize) -> Box<dyn Behaviour> {
        match self {
            Self::Precinct => {
                let guide = precinct::bot::BotGuide::load();
                move |_bot| Box::new(precinct::PrecinctBot::new(guide.clone())) as Box<dyn Behaviour>
            }
        }
    }
}

impl GameArguments {
    /// Creates the game's worlds in `server`.
    pub fn build(&self, server: &mut Server) -> Result<(), ServerError> {
        match self.game {
            Game::Precinct => {
                let mut settings = PrecinctSettings {
                    players: self.players as usize,
                    npcs: self.npcs as usize,
                    keep_awake: self.all_awake,
                    ..PrecinctSettings::default()
                };
                self.inject.iter().for_each(|&fault| settings.inject(fault));
                precinct::build(server, &settings)?;
            }
        }
        Ok(())
    }

    /// The same arguments for a child process.
    pub fn to_arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "--game".into(),
            self.game.name().into(),
            "--players".into(),
            self.players.to_string(),
            "--npcs".into(),
            self.npcs.to_string(),
        ];
        for fault in &self.inject {
            arguments.extend(["--inject".into(), fault.to_string()]);
        }
        if self.all_awake {
            arguments.push("--all-awake".into());
        }
        arguments
    }
}
