//! The game of a recording, made again in this executable: for `replay`, and for whoever replays to compare or to measure.

mod no_saves;

use std::path::Path;

use clap::Args;
use throng::{
    Server,
    recording::{About, Block, RecordingFiles, WorldPlan},
    replay::ReplayGame,
};
use throng_game::Game;

use crate::{
    executable::Executable,
    played::{self, Played},
    serve::ServeArguments,
};

use no_saves::NoSaves;

/// The command whose words a recording has.
const SERVE: &str = "serve";

/// The flight recorder of a replay.
#[derive(Clone, Copy)]
pub enum ReplayRecorder<'a> {
    Off,
    /// It runs, and saves nothing.
    On,
    /// It runs, and its captures go into this folder.
    Captures(&'a Path),
}

/// A recorded game, made again.
pub struct RecordedGame {
    pub game: ReplayGame,
    /// Why the recorder goes by the default rules and not by the recorded ones, where it runs and does.
    pub rules_missing: Option<String>,
}

/// The game that was recorded, in this build, of the size and with the settings that it had. `path` is what mistakes say of the
/// recording.
pub fn game_of(
    recording: &RecordingFiles,
    path: &Path,
    recorder: ReplayRecorder<'_>,
    executable: Executable,
    games: &[Game],
) -> Result<RecordedGame, Box<dyn std::error::Error>> {
    let about = recording.about();
    check_game(about, path, games)?;
    let words = served_words(about, executable, games);
    let serve = played::add_serving_words(ServeArguments::augment_args(clap::Command::new(SERVE)), games);
    let matches = clap::Command::new(executable.name)
        .subcommand(serve)
        .try_get_matches_from(words)
        .map_err(|error| format!("this build does not understand how the game was started: {error}"))?;
    let played = Played::of(games, &matches)?;
    let (settings, build_worlds) = played.game.settings_of("the recording's settings", &about.settings)?;
    let mut server = Server::for_replay(&settings, played.game.schema(), about);
    server.set_build(executable.build());
    server.set_game(played.game.name());
    if about.has_store.unwrap_or_else(|| has_saved_world(recording)) {
        server.save_in(Box::new(NoSaves))?;
    }
    build_worlds(&mut server, &played.arguments)?;
    let captures = match recorder {
        ReplayRecorder::Off => return Ok(RecordedGame { game: server.into_replay(), rules_missing: None }),
        ReplayRecorder::On => None,
        ReplayRecorder::Captures(folder) => Some(folder),
    };
    let (rules, rules_missing) = match server.recorded_rules(about) {
        Ok(rules) => (rules, None),
        Err(error) => (Default::default(), Some(error.to_string())),
    };
    let mut settings = settings;
    if captures.is_none() {
        (settings.recorder.on, settings.recorder.captures) = (true, None);
    }
    server.start_replay_recorder(&settings, captures, executable.full_name(), rules)?;
    Ok(RecordedGame { game: server.into_replay(), rules_missing })
}

/// That this executable has the game of a recording.
pub fn check_game(about: &About, path: &Path, games: &[Game]) -> Result<(), String> {
    if games.iter().any(|game| game.name() == about.game) {
        return Ok(());
    }
    let known: Vec<&str> = games.iter().map(Game::name).collect();
    Err(format!(
        "{}: the recording is of {}, and this executable has {}; replay it with the game's own",
        path.display(),
        about.game,
        known.join(", ")
    ))
}

/// Whether a saved world is in the recording: then the server kept saves. Reads up to the first; all where there is none.
fn has_saved_world(recording: &RecordingFiles) -> bool {
    let mut is_found = false;
    recording.read(|group| {
        let mut blocks = group.blocks().map_while(Result::ok);
        is_found = blocks.any(|block| matches!(block, Block::World(_, WorldPlan { is_saved: true, .. })));
        !is_found
    });
    is_found
}

/// The recorded words, as those of this executable: one with a single game has no word for it.
fn served_words(about: &About, executable: Executable, games: &[Game]) -> Vec<String> {
    let mut words = vec![executable.name.to_owned(), SERVE.to_owned()];
    let mut recorded = about.arguments.clone();
    let names_game = recorded.first().is_some_and(|word| word == "--game") && recorded.len() >= 2;
    if names_game {
        recorded.drain(..2);
    }
    if games.len() > 1 {
        words.extend(["--game".to_owned(), about.game.clone()]);
    }
    words.extend(recorded);
    words
}
