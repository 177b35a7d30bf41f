//! Tunables: values that an operator changes while worlds run, each declared in one line with its range.
//!
//! ```
//! use throng_world::tunable::{Tunable, Tuned};
//!
//! static WALK: Tunable<f32> = Tunable::new("walk_m_per_s", 6.0, 0.1..=20.0, "m/s", "how fast players walk");
//!
//! fn walk(tuned: Tuned) {
//!     let speed = tuned.get(&WALK);
//! #   let _ = speed;
//! }
//! ```
//!
//! A kind of world names its tunables ([`WorldConsole::tunable`](crate::console::WorldConsole::tunable)). What holds at
//! first is the key of the same name in `[game]` of the settings, or the default; the host changes it live. A change comes
//! to a world as mail, so it holds from the beginning of a tick, in all of its systems alike, and two runs with the same
//! mail agree. It is in no snapshot and in no state hash.
//!
//! Systems read it with one look at a list of numbers: 1 ns, no lock and no atomic write. A world keeps a pointer to the
//! values of all, and nothing while none has been changed or set.

use std::{
    fmt::Display,
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use bevy_ecs::{prelude::*, system::SystemParam};
use throng_replication::table_resource;

use crate::console::is_command_name;

/// A tunable that no host knows.
const UNKNOWN: u32 = u32::MAX;

/// The number that the next tunable of the process gets.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A value that can be changed while worlds run.
pub struct Tunable<T> {
    name: &'static str,
    default: T,
    range: RangeInclusive<T>,
    unit: &'static str,
    help: &'static str,
    /// Its place in [`TunedValues`]. Written once, by whoever first makes it known; nothing else depends on it, so relaxed
    /// order is enough.
    number: AtomicU32,
}

impl<T> Tunable<T> {
    /// `name` is the key in `[game]` and what the console calls it; `unit` stands after its range, and may be empty; `help`
    /// says in a line what it is. Too low, too high: say there what goes wrong.
    pub const fn new(
        name: &'static str,
        default: T,
        range: RangeInclusive<T>,
        unit: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, default, range, unit, help, number: AtomicU32::new(UNKNOWN) }
    }

    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub const fn range(&self) -> &RangeInclusive<T> {
        &self.range
    }

    pub const fn unit(&self) -> &'static str {
        self.unit
    }
}

impl<T: Copy> Tunable<T> {
    pub const fn default(&self) -> T {
        self.default
    }
}

/// A type that a tunable may have.
pub trait Tune: Copy + PartialOrd + Display + Send + Sync + 'static {
    /// Whether it has no digits after a point.
    const IS_WHOLE: bool;
    /// From a value in the tunable's range.
    fn from_f64(value: f64) -> Self;
}

macro_rules! tune {
    ($($number:ty, $is_whole:literal;)*) => {$(
        impl Tune for $number {
            const IS_WHOLE: bool = $is_whole;

            fn from_f64(value: f64) -> Self {
                value as Self
            }
        }
    )*};
}

// All of their values are values of an f64.
tune! {
    f32, false;
    f64, false;
    u8, true;
    u16, true;
    u32, true;
    i32, true;
}

/// A tunable of any type, as a host has it. All figures are as people write them: 0.1 is 0.1, though no `f32` is.
pub trait AnyTunable: Sync {
    fn name(&self) -> &'static str;
    fn unit(&self) -> &'static str;
    fn help(&self) -> &'static str;
    fn default_value(&self) -> f64;
    fn low(&self) -> f64;
    fn high(&self) -> f64;
    fn is_whole(&self) -> bool;
    /// Its place among the process's tunables; it gets one when this is first asked.
    fn number(&self) -> usize;
}

impl<T: Tune> AnyTunable for Tunable<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn unit(&self) -> &'static str {
        self.unit
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn default_value(&self) -> f64 {
        as_written(self.default)
    }

    fn low(&self) -> f64 {
        as_written(*self.range.start())
    }

    fn high(&self) -> f64 {
        as_written(*self.range.end())
    }

    fn is_whole(&self) -> bool {
        T::IS_WHOLE
    }

    fn number(&self) -> usize {
        let known = self.number.load(Ordering::Relaxed);
        if known != UNKNOWN {
            return known as usize;
        }
        let fresh = NEXT.fetch_add(1, Ordering::Relaxed);
        // Two servers of one process may make it known at once; the number of the second is then nobody's.
        let was = self.number.compare_exchange(UNKNOWN, fresh, Ordering::Relaxed, Ordering::Relaxed);
        was.err().unwrap_or(fresh) as usize
    }
}

/// A value as people write it, through its shortest decimal form: 0.1 of an `f32` would otherwise be 0.10000000149.
pub fn as_written<T: Tune>(value: T) -> f64 {
    value.to_string().parse().unwrap_or(f64::NAN)
}

/// What is wrong with the declaration of a tunable, if anything is: a program's own mistake.
pub fn wrong_with(tunable: &dyn AnyTunable) -> Option<String> {
    let (name, default) = (tunable.name(), tunable.default_value());
    match () {
        () if !is_command_name(name) => Some(format!("`{name}` is no name for a tunable")),
        () if !(tunable.low()..=tunable.high()).contains(&default) => {
            Some(format!("the default of `{name}`, {default}, is not in its range"))
        }
        () => None,
    }
}

/// Whether a value may be a tunable's; the error says what it may be.
pub fn check(tunable: &dyn AnyTunable, value: f64) -> Result<f64, String> {
    let (low, high, unit) = (tunable.low(), tunable.high(), tunable.unit());
    let wrong = match () {
        () if value < low => "is too low",
        () if value > high => "is too high",
        () if !(low..=high).contains(&value) => "is not a number",
        () if tunable.is_whole() && value.fract() != 0.0 => "is not a whole number",
        () => return Ok(value),
    };
    Err(format!("{value} {wrong}; it may be {low} to {high} {unit}").trim_end().to_owned())
}

/// The values of a server's tunables, by number: a copy is changed and put into force as a whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TunedValues {
    values: Vec<Option<f64>>,
}

impl TunedValues {
    /// What holds for a tunable: what was set, or its default.
    pub fn value(&self, tunable: &dyn AnyTunable) -> f64 {
        self.values.get(tunable.number()).copied().flatten().unwrap_or_else(|| tunable.default_value())
    }

    /// # Errors
    /// If the value is not in the range: nothing is changed then.
    pub fn set(&mut self, tunable: &dyn AnyTunable, value: f64) -> Result<(), String> {
        let (value, number) = (check(tunable, value)?, tunable.number());
        if number >= self.values.len() {
            self.values.resize(number + 1, None);
        }
        self.values[number] = Some(value);
        Ok(())
    }

    /// By number, in the order of numbers: what was set.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Option<f64>> {
        self.values.iter().copied()
    }

    /// What was in force before, in this process.
    pub(crate) fn from_values(values: impl Iterator<Item = Option<f64>>) -> Self {
        Self { values: values.collect() }
    }

    /// The same by other numbers; `numbers` says which for each. None: they stay.
    pub(crate) fn renumbered(self, numbers: &[Option<usize>]) -> Self {
        if numbers.is_empty() {
            return self;
        }
        let mut values = Vec::new();
        for (value, number) in self.values.into_iter().zip(numbers) {
            if let Some(number) = *number {
                if number >= values.len() {
                    values.resize(number + 1, None);
                }
                values[number] = value;
            }
        }
        Self { values }
    }

    #[inline]
    fn get<T: Tune>(&self, tunable: &Tunable<T>) -> T {
        let number = tunable.number.load(Ordering::Relaxed);
        match self.values.get(number as usize) {
            Some(Some(value)) => T::from_f64(*value),
            _ => tunable.default,
        }
    }
}

/// What holds in a world.
pub(crate) struct TunedInWorld(pub(crate) Arc<TunedValues>);

table_resource!(TunedInWorld);

/// What a system reads tunables with. The same in all systems of a tick. In `Startup` systems defaults hold.
#[derive(SystemParam)]
pub struct Tuned<'w> {
    values: Option<Res<'w, TunedInWorld>>,
}

impl Tuned<'_> {
    /// What holds in this tick.
    #[inline]
    pub fn get<T: Tune>(&self, tunable: &Tunable<T>) -> T {
        self.values.as_ref().map_or(tunable.default, |values| values.0.get(tunable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static SPEED: Tunable<f32> = Tunable::new("test.speed", 0.1, 0.1..=20.0, "m/s", "how fast");
    static COUNT: Tunable<u16> = Tunable::new("test.count", 3, 1..=9, "", "how many");

    #[test]
    fn values_are_as_people_write_them_and_outside_of_the_range_nothing_is_changed() {
        assert_eq!((SPEED.default_value(), SPEED.high()), (0.1, 20.0));
        let mut values = TunedValues::default();
        assert_eq!((values.get(&SPEED), values.get(&COUNT)), (0.1, 3));
        for (tunable, value, wrong) in [
            (&SPEED as &dyn AnyTunable, 0.05, "0.05 is too low; it may be 0.1 to 20 m/s"),
            (&SPEED, 21.0, "21 is too high; it may be 0.1 to 20 m/s"),
            (&SPEED, f64::NAN, "NaN is not a number; it may be 0.1 to 20 m/s"),
            (&COUNT, 2.5, "2.5 is not a whole number; it may be 1 to 9"),
        ] {
            assert_eq!(values.set(tunable, value), Err(wrong.to_owned()));
        }
        assert_eq!(values, TunedValues::default());
        values.set(&SPEED, 0.3).unwrap();
        values.set(&COUNT, 9.0).unwrap();
        assert_eq!((values.get(&SPEED), values.get(&COUNT)), (0.3, 9));
        assert_eq!((values.value(&SPEED), values.value(&COUNT)), (0.3, 9.0));
    }

    #[test]
    fn a_declaration_is_held_to_its_own_range() {
        static LOW: Tunable<i32> = Tunable::new("test.low", 0, 1..=9, "", "");
        static NAMELESS: Tunable<i32> = Tunable::new("Test", 1, 1..=9, "", "");
        assert_eq!(wrong_with(&SPEED), None);
        assert!(wrong_with(&LOW).unwrap().contains("default"));
        assert!(wrong_with(&NAMELESS).unwrap().contains("no name"));
    }
}
