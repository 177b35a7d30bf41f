//! What a game is told when its worlds are made: how large it is to be, and which of its options were given.

use std::str::FromStr;

use throng_bots::Scenario;
use throng_faults::FaultSwitch;

use crate::option::GameOption;

/// What shapes a game's worlds.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// Players that worlds are to be made for: those of the command line, or as many as the game is made for.
    pub players: u32,
    /// NPCs over all worlds, likewise; 0 in a game that says nothing of them.
    pub npcs: u32,
    /// How bots are going to play.
    pub scenario: Scenario,
    /// Faults to put in: only such as the game has a place for.
    pub faults: Vec<FaultSwitch>,
    /// The game's own.
    pub options: Options,
}

/// Which of a game's options were given.
#[derive(Debug, Clone, Default)]
pub struct Options {
    declared: Vec<GameOption>,
    given: Vec<(&'static str, Option<String>)>,
}

impl Options {
    /// None of these is given yet.
    pub fn none_of(declared: &[GameOption]) -> Self {
        Self { declared: declared.to_vec(), given: Vec::new() }
    }

    /// Takes one as given; `value` is `None` for a switch. Says what is wrong with the value.
    ///
    /// # Panics
    /// When the game has no such option.
    pub fn give(&mut self, name: &str, value: Option<String>) -> Result<(), String> {
        let option = self.declared(name);
        if let Some(text) = &value {
            option.check(text).map_err(|reason| format!("--{name} {text}: {reason}"))?;
        }
        self.given.push((option.name(), value));
        Ok(())
    }

    /// Whether it was given.
    ///
    /// # Panics
    /// When the game has no such option.
    pub fn has(&self, name: &str) -> bool {
        let name = self.declared(name).name();
        self.given.iter().any(|(given, _)| *given == name)
    }

    /// The value that was given.
    ///
    /// # Panics
    /// When the game has no such option, or declares it with a type that takes what `T` does not.
    pub fn value<T: FromStr>(&self, name: &str) -> Option<T> {
        let name = self.declared(name).name();
        let text = self.given.iter().find(|(given, _)| *given == name).and_then(|(_, text)| text.as_deref())?;
        let read = text.parse().ok();
        assert!(read.is_some(), "--{name} {text} was declared as a value of another type");
        read
    }

    /// The same as words of a command line, for a process that serves.
    pub fn to_words(&self) -> Vec<String> {
        self.words(|_| true)
    }

    /// For a process of bots: those that bots are told of.
    pub fn to_bots_words(&self) -> Vec<String> {
        self.words(GameOption::is_for_bots_too)
    }

    fn words(&self, is_wanted: impl Fn(&GameOption) -> bool) -> Vec<String> {
        let wanted = self.given.iter().filter(|(name, _)| is_wanted(self.declared(name)));
        // One word: a value may begin with a `-`.
        wanted
            .map(|(name, value)| {
                value.as_ref().map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}"))
            })
            .collect()
    }

    fn declared(&self, name: &str) -> &GameOption {
        let found = self.declared.iter().find(|option| option.name() == name);
        found.unwrap_or_else(|| panic!("the game declares no option --{name}; see Game::option"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: [GameOption; 4] = [
        GameOption::switch("at-night", "Begin at night"),
        GameOption::value::<f32>("speed", "M_PER_S", "How fast players are").for_bots_too(),
        GameOption::number("haste", "TIMES", "How much faster bots are", 0.5, 4.0),
        GameOption::ALL_AWAKE,
    ];

    #[test]
    fn what_was_given_is_read_and_goes_on_to_those_whom_it_is_for() {
        let mut options = Options::none_of(&DECLARED);
        assert!(!options.has("at-night") && options.value::<f32>("speed").is_none());
        options.give("at-night", None).unwrap();
        options.give("speed", Some("2.5".to_owned())).unwrap();
        assert!(options.has("at-night") && !options.has("all-awake"));
        assert_eq!(options.value::<f32>("speed"), Some(2.5));
        assert_eq!(options.to_words(), ["--at-night", "--speed=2.5"]);
        assert_eq!(options.to_bots_words(), ["--speed=2.5"]);
    }

    #[test]
    fn a_value_that_is_none_is_refused_with_the_option() {
        let refused = Options::none_of(&DECLARED).give("speed", Some("fast".to_owned())).unwrap_err();
        assert_eq!(refused, "--speed fast: invalid float literal");
    }

    #[test]
    fn a_number_beyond_its_range_is_refused_with_the_range() {
        let mut options = Options::none_of(&DECLARED);
        for text in ["0.4", "4.01", "-1", "NaN", "inf", "much", ""] {
            let refused = options.give("haste", Some(text.to_owned())).unwrap_err();
            assert_eq!(refused, format!("--haste {text}: it is a number from 0.5 to 4"));
        }
        options.give("haste", Some("4".to_owned())).unwrap();
        assert_eq!(options.value::<f32>("haste"), Some(4.0));
    }

    #[test]
    #[should_panic(expected = "the game declares no option --at-noon")]
    fn an_option_that_is_asked_for_and_was_never_declared_is_a_bug() {
        Options::none_of(&DECLARED).has("at-noon");
    }
}
