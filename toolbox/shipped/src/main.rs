//! The `throng` command as it ships: with the games that are in this repository.
//!
//! This crate alone knows the commit, which `build.rs` finds out; all others are handed it as a value.

mod new;

use std::process::ExitCode;

use throng_cli::Executable;

const EXECUTABLE: Executable =
    Executable { name: "throng", version: env!("CARGO_PKG_VERSION"), commit: env!("THRONG_COMMIT") };

fn main() -> ExitCode {
    let games = vec![precinct::game(), frontier::game(), duel::game()];
    throng_cli::main_with_commands(EXECUTABLE, games, &[new::command()])
}

#[cfg(test)]
mod tests {
    use throng_bots::Scenario;

    #[test]
    fn every_game_can_be_played_as_usual_and_has_its_worst_cases() {
        for game in [precinct::game(), frontier::game(), duel::game()] {
            let names: Vec<&str> = game.known_scenarios().iter().map(|scenario| scenario.name).collect();
            assert_eq!(names[0], Scenario::USUAL);
            assert!(names.len() > 1 && (1..names.len()).all(|at| !names[..at].contains(&names[at])), "{names:?}");
        }
    }
}
