//! A command of one executable's own, beside those that all have: `throng new` is one.

use clap::{ArgMatches, Command};

/// A command that an executable brings along.
pub struct OwnCommand {
    /// Its name, its words and what `--help` says.
    pub words: Command,
    /// Does it. An error is printed behind the executable's name, and ends it with status 2.
    pub run: fn(&ArgMatches) -> Result<(), Box<dyn std::error::Error>>,
}

/// Adds them to those that there are.
pub fn add_words(mut command: Command, own: &[OwnCommand]) -> Command {
    for one in own {
        let name = one.words.get_name();
        assert!(command.get_subcommands().all(|other| other.get_name() != name), "two commands are called {name}");
        command = command.subcommand(one.words.clone());
    }
    command
}

/// The one that was typed, with its words.
pub fn find<'m, 'o>(own: &'o [OwnCommand], matches: &'m ArgMatches) -> Option<(&'o OwnCommand, &'m ArgMatches)> {
    let (name, words) = matches.subcommand()?;
    own.iter().find(|one| one.words.get_name() == name).map(|one| (one, words))
}
