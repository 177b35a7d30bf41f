//! Arguments: the words after a command's name, as typed values.
//!
//! An argument says its name, what it may be, and reads one word. An error names the argument and its range, so that
//! nobody has to look into a manual: `count: 0 is too low; it may be 1 to 100`.

use std::{fmt::Display, ops::RangeInclusive, str::FromStr};

use throng_net::protocol::ClientId;

use crate::ids::WorldId;

/// What help says of an argument.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentAbout {
    pub name: &'static str,
    /// What it may be, such as `a whole number, 1 to 100`.
    pub may_be: String,
    /// The words that it may be, if they are few: for completion.
    pub choices: Vec<&'static str>,
    pub is_optional: bool,
}

/// One argument of a command.
pub trait Argument: Send + Sync + 'static {
    type Value: Send + 'static;

    fn about(&self) -> ArgumentAbout;

    /// What the word says. The error says what is wrong with it, without the argument's name.
    fn read(&self, word: &str) -> Result<Self::Value, String>;

    /// What it is when it is left out; `None`: it must not be.
    fn left_out(&self) -> Option<Self::Value> {
        None
    }
}

/// All arguments of a command: one, a tuple of some, or `()` for none.
pub trait Arguments: Send + Sync + 'static {
    type Values: Send + 'static;

    fn about(&self) -> Vec<ArgumentAbout>;

    /// The values of the words. The error names the argument.
    fn read(&self, words: &[&str]) -> Result<Self::Values, String>;
}

/// A whole number in a range.
pub fn integer(name: &'static str, range: RangeInclusive<i64>) -> Integer {
    Integer { name, range }
}

/// A number in a range.
pub fn number(name: &'static str, range: RangeInclusive<f64>) -> Number {
    Number { name, range }
}

/// A word of so many characters at most.
pub fn text(name: &'static str, characters_max: usize) -> TextArgument {
    TextArgument { name, characters_max }
}

/// One of some words.
pub fn one_of(name: &'static str, choices: &'static [&'static str]) -> OneOf {
    OneOf { name, choices }
}

/// A world of the server, as `world.list` shows it: `7`, or `7.2` for the third in its place.
pub fn world(name: &'static str) -> WorldArgument {
    WorldArgument { name }
}

/// A player, by the client id of the connect token.
pub fn player(name: &'static str) -> PlayerArgument {
    PlayerArgument { name }
}

/// An argument that may be left out. After it there are none that may not.
pub fn optional<A: Argument>(argument: A) -> OptionalArgument<A> {
    OptionalArgument(argument)
}

/// See [`integer`].
pub struct Integer {
    name: &'static str,
    range: RangeInclusive<i64>,
}

/// See [`number`].
pub struct Number {
    name: &'static str,
    range: RangeInclusive<f64>,
}

/// See [`text`].
pub struct TextArgument {
    name: &'static str,
    characters_max: usize,
}

/// See [`one_of`].
pub struct OneOf {
    name: &'static str,
    choices: &'static [&'static str],
}

/// See [`world`].
pub struct WorldArgument {
    name: &'static str,
}

/// See [`player`].
pub struct PlayerArgument {
    name: &'static str,
}

/// See [`optional`].
pub struct OptionalArgument<A>(A);

fn about(name: &'static str, may_be: impl Into<String>) -> ArgumentAbout {
    ArgumentAbout { name, may_be: may_be.into(), choices: Vec::new(), is_optional: false }
}

/// The number that a word says, if it lies in the range.
pub(crate) fn in_range<N: FromStr + PartialOrd + Display>(
    word: &str,
    range: &RangeInclusive<N>,
    what: &str,
) -> Result<N, String> {
    let (low, high) = (range.start(), range.end());
    let value: N = word.parse().map_err(|_| format!("{word} is not {what}; it may be {low} to {high}"))?;
    let wrong = match () {
        () if value < *low => "is too low",
        () if value > *high => "is too high",
        () if !range.contains(&value) => "is not a number",
        () => return Ok(value),
    };
    Err(format!("{word} {wrong}; it may be {low} to {high}"))
}

impl Argument for Integer {
    type Value = i64;

    fn about(&self) -> ArgumentAbout {
        about(self.name, format!("a whole number, {} to {}", self.range.start(), self.range.end()))
    }

    fn read(&self, word: &str) -> Result<i64, String> {
        in_range(word, &self.range, "a whole number")
    }
}

impl Argument for Number {
    type Value = f64;

    fn about(&self) -> ArgumentAbout {
        about(self.name, format!("a number, {} to {}", self.range.start(), self.range.end()))
    }

    fn read(&self, word: &str) -> Result<f64, String> {
        in_range(word, &self.range, "a number")
    }
}

impl Argument for TextArgument {
    type Value = String;

    fn about(&self) -> ArgumentAbout {
        about(self.name, format!("a word of up to {} characters", self.characters_max))
    }

    fn read(&self, word: &str) -> Result<String, String> {
        match word.chars().count() {
            count if count > self.characters_max => {
                Err(format!("it has {count} characters; it may have up to {}", self.characters_max))
            }
            _ => Ok(word.to_owned()),
        }
    }
}

impl Argument for OneOf {
    type Value = &'static str;

    fn about(&self) -> ArgumentAbout {
        let choices = self.choices.to_vec();
        ArgumentAbout { choices, ..about(self.name, format!("one of {}", self.choices.join(", "))) }
    }

    fn read(&self, word: &str) -> Result<&'static str, String> {
        let choice = self.choices.iter().find(|choice| **choice == word).copied();
        choice.ok_or_else(|| format!("there is no {word}; it may be {}", self.choices.join(", ")))
    }
}

impl Argument for WorldArgument {
    type Value = WorldId;

    fn about(&self) -> ArgumentAbout {
        about(self.name, "a world as `world.list` shows it, such as 7 or 7.2")
    }

    fn read(&self, word: &str) -> Result<WorldId, String> {
        let (index, generation) = word.split_once('.').unwrap_or((word, "0"));
        match (index.parse(), generation.parse()) {
            (Ok(index), Ok(generation)) => Ok(WorldId::new(index, generation)),
            _ => Err(format!("{word} is not a world; `world.list` shows what there is, such as 7 or 7.2")),
        }
    }
}

impl Argument for PlayerArgument {
    type Value = ClientId;

    fn about(&self) -> ArgumentAbout {
        about(self.name, "a player as `player.list` shows it, a whole number")
    }

    fn read(&self, word: &str) -> Result<ClientId, String> {
        let id = word.parse().map(ClientId);
        id.map_err(|_| format!("{word} is not a player; `player.list` shows who is there, by a whole number"))
    }
}

impl<A: Argument> Argument for OptionalArgument<A> {
    type Value = Option<A::Value>;

    fn about(&self) -> ArgumentAbout {
        ArgumentAbout { is_optional: true, ..self.0.about() }
    }

    fn read(&self, word: &str) -> Result<Self::Value, String> {
        self.0.read(word).map(Some)
    }

    fn left_out(&self) -> Option<Self::Value> {
        Some(None)
    }
}

/// The value of the next word, or of its absence.
fn next<A: Argument>(argument: &A, words: &mut std::slice::Iter<'_, &str>) -> Result<A::Value, String> {
    let ArgumentAbout { name, may_be, .. } = argument.about();
    match words.next() {
        Some(word) => argument.read(word).map_err(|wrong| format!("{name}: {wrong}")),
        None => argument.left_out().ok_or_else(|| format!("{name} is missing: {may_be}")),
    }
}

fn end(mut words: std::slice::Iter<'_, &str>, arguments: &[ArgumentAbout]) -> Result<(), String> {
    let Some(word) = words.next() else { return Ok(()) };
    let names: Vec<_> = arguments.iter().map(|argument| argument.name).collect();
    Err(match names[..] {
        [] => format!("it takes no `{word}`, only --json"),
        _ => format!("it takes no `{word}` after {}", names.join(" ")),
    })
}

impl Arguments for () {
    type Values = ();

    fn about(&self) -> Vec<ArgumentAbout> {
        Vec::new()
    }

    fn read(&self, words: &[&str]) -> Result<(), String> {
        end(words.iter(), &[])
    }
}

macro_rules! one_argument {
    ($([$($generics:tt)*] $argument:ty),* $(,)?) => {$(
        impl $($generics)* Arguments for $argument {
            type Values = <Self as Argument>::Value;

            fn about(&self) -> Vec<ArgumentAbout> {
                vec![Argument::about(self)]
            }

            fn read(&self, words: &[&str]) -> Result<Self::Values, String> {
                let mut words = words.iter();
                let value = next(self, &mut words)?;
                end(words, &Arguments::about(self)).map(|()| value)
            }
        }
    )*};
}

one_argument!([] Integer, [] Number, [] TextArgument, [] OneOf, [] WorldArgument, [] PlayerArgument);
one_argument!([<A: Argument>] OptionalArgument<A>);

macro_rules! several_arguments {
    ($($argument:ident),+) => {
        impl<$($argument: Argument),+> Arguments for ($($argument,)+) {
            type Values = ($($argument::Value,)+);

            fn about(&self) -> Vec<ArgumentAbout> {
                #[allow(non_snake_case, reason = "one variable per type parameter, of the same name")]
                let ($($argument,)+) = self;
                vec![$($argument.about()),+]
            }

            fn read(&self, words: &[&str]) -> Result<Self::Values, String> {
                #[allow(non_snake_case, reason = "one variable per type parameter, of the same name")]
                let ($($argument,)+) = self;
                let mut words = words.iter();
                let values = ($(next($argument, &mut words)?,)+);
                end(words, &self.about()).map(|()| values)
            }
        }
    };
}

several_arguments!(A);
several_arguments!(A, B);
several_arguments!(A, B, C);
several_arguments!(A, B, C, D);

/// Asserts that what may be left out comes last: words have their meaning by their place.
pub(super) fn check_order(command: &str, arguments: &[ArgumentAbout]) {
    let is_in_order = arguments.is_sorted_by_key(|argument| argument.is_optional);
    assert!(is_in_order, "`{command}` has an argument that must be given after one that need not be");
}
