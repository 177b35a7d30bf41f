//! Options: the words of a command line that are a game's own.
//!
//! A list of names and texts and no type of a library for command lines, so that a game need not be built with one.

use std::{fmt::Display, str::FromStr};

/// A switch or a value that a game takes on its command line.
#[derive(Debug, Clone, Copy)]
pub struct GameOption {
    name: &'static str,
    about: &'static str,
    /// How the value is called, and what is taken for one. `None`: a switch.
    value: Option<(&'static str, Accepted)>,
    bots_too: bool,
    fits: Option<&'static str>,
}

/// What is taken for a value.
#[derive(Debug, Clone, Copy)]
enum Accepted {
    /// What can be read; otherwise, why not.
    Parsed(fn(&str) -> Result<(), String>),
    /// A number from the one to the other, both included.
    Within(f32, f32),
}

impl GameOption {
    /// Worlds tick while nobody is in them, so that all NPCs live from the start. A load run gives it to a game that has
    /// it: otherwise the first players would find a world that costs less than it will.
    pub const ALL_AWAKE: Self = Self::switch(
        "all-awake",
        "Keep worlds ticking in which no player has been yet, so that all NPCs live from the start",
    );

    /// Is given or not: `--name`. Lower case, words joined by hyphens; `about` is what `--help` says.
    pub const fn switch(name: &'static str, about: &'static str) -> Self {
        Self { name, about, value: None, bots_too: false, fits: None }
    }

    /// Is given with a value, which is read as a `T`: `--name VALUE`. `value_name` stands for it in `--help`, with the
    /// unit in it: `M_PER_S`. What cannot be read is refused in the words of `T`'s error.
    pub const fn value<T: FromStr<Err: Display>>(
        name: &'static str,
        value_name: &'static str,
        about: &'static str,
    ) -> Self {
        let accepted = Accepted::Parsed(|text| text.parse::<T>().map(drop).map_err(|error| error.to_string()));
        Self { name, about, value: Some((value_name, accepted)), bots_too: false, fits: None }
    }

    /// Is given with a number from `least` to `most`, which is read as an `f32`. `--help` tells the range behind `about`, and what is
    /// beyond it is refused with it.
    pub const fn number(
        name: &'static str,
        value_name: &'static str,
        about: &'static str,
        least: f32,
        most: f32,
    ) -> Self {
        Self { name, about, value: Some((value_name, Accepted::Within(least, most))), bots_too: false, fits: None }
    }

    /// Bots are told of it, too: it changes how they play or what they understand. Otherwise it is the server's alone.
    #[must_use]
    pub const fn for_bots_too(mut self) -> Self {
        self.bots_too = true;
        self
    }

    /// Its value is a number with which bots do so much more or less of this measure of load, such as `metres` or a counter of the
    /// game: `bots --compare --fit` says what it has to be for bots to be like recorded players.
    #[must_use]
    pub const fn fits(mut self, measure: &'static str) -> Self {
        self.fits = Some(measure);
        self
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What measure of load grows with its value.
    pub fn fitted_measure(&self) -> Option<&'static str> {
        self.fits
    }

    pub fn about(&self) -> &'static str {
        self.about
    }

    /// How its value is called; `None` for a switch.
    pub fn value_name(&self) -> Option<&'static str> {
        self.value.map(|(name, _)| name)
    }

    /// The least and the most that a [number](Self::number) may be.
    pub fn range(&self) -> Option<(f32, f32)> {
        match self.value {
            Some((_, Accepted::Within(least, most))) => Some((least, most)),
            _ => None,
        }
    }

    pub fn is_for_bots_too(&self) -> bool {
        self.bots_too
    }

    /// Why a text is no value of this option.
    pub fn check(&self, text: &str) -> Result<(), String> {
        match self.value {
            None => Ok(()),
            Some((_, Accepted::Parsed(check))) => check(text),
            Some((_, Accepted::Within(least, most))) => match text.parse::<f32>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("it is a number from {least} to {most}")),
            },
        }
    }
}
