//! Never: states that only a bug of our own can make, met in a server that is to go on.
//!
//! [`never!`](crate::never!) stands where such a state would show. With debug assertions (tests, the simulator, a
//! developer's own build) it panics with its text. In a release build it counts, and the code behind it recovers at
//! that spot:
//!
//! ```
//! use throng_platform::never;
//!
//! /// The last label of a row; rows have one at least.
//! fn last(row: &[u16]) -> u16 {
//!     let Some(label) = row.last() else {
//!         never!("a row without labels");
//!         return 0;
//!     };
//!     *label
//! }
//! assert_eq!(last(&[3, 4]), 4);
//!
//! // With a condition it says whether that held, as `assert!` the other way round.
//! let (gone, listed) = (2, 3);
//! let gone = if never!(gone > listed, "{gone} of {listed} are gone") { listed } else { gone };
//! # assert_eq!(gone, 2);
//! ```
//!
//! Bytes from outside never lead here (they are refused with a typed error), and neither does what an operator wrote.
//!
//! Whoever runs the process reads [`count`] for its metrics and logs what [`take_unlogged`] gives: each spot once, with
//! its place in the source. Nothing here formats, allocates or locks, so any thread may meet a spot in the middle of a
//! tick. Asks nothing of Linux: it is here because every crate of the server can reach this one.

use std::{
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

/// Spots that are remembered by name; those met after them are only counted.
pub const SPOTS_MAX: usize = 64;

static SPOTS: [OnceLock<&'static Spot>; SPOTS_MAX] = [const { OnceLock::new() }; SPOTS_MAX];

/// Places in `SPOTS` that have been given away; may be above `SPOTS_MAX`.
static SPOTS_COUNT: AtomicUsize = AtomicUsize::new(0);

/// All spots together. Written by whoever meets one, read for metrics; says nothing about other memory, so relaxed.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// A place in the source that should never be reached. Made by [`never!`](crate::never!), one each.
#[derive(Debug)]
pub struct Spot {
    what: &'static str,
    file: &'static str,
    line: u32,
    count: AtomicU64,
    is_logged: AtomicBool,
}

impl Spot {
    #[doc(hidden)]
    pub const fn new(what: &'static str, file: &'static str, line: u32) -> Self {
        Self { what, file, line, count: AtomicU64::new(0), is_logged: AtomicBool::new(false) }
    }

    /// What was found, as the source says it: names in braces are not filled in.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// How often it was met since the process began.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Counts, and enters the spot into the list when it is met for the first time.
    #[doc(hidden)]
    #[cold]
    pub fn meet(&'static self) {
        COUNT.fetch_add(1, Relaxed);
        if self.count.fetch_add(1, Relaxed) == 0
            && let Some(place) = SPOTS.get(SPOTS_COUNT.fetch_add(1, Relaxed))
        {
            // The place was given to nobody else, so it is empty.
            let _ = place.set(self);
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, file, line, .. } = self;
        write!(out, "this should never happen, and a bug made it: {what} ({file}:{line})")
    }
}

/// How often any spot was met since the process began.
pub fn count() -> u64 {
    COUNT.load(Relaxed)
}

/// Spots that were met and have not been given out by this function yet, each once; up to [`SPOTS_MAX`] in the
/// process's life.
pub fn take_unlogged() -> impl Iterator<Item = &'static Spot> {
    SPOTS.iter().filter_map(OnceLock::get).copied().filter(|spot| !spot.is_logged.swap(true, Relaxed))
}

/// Says that a state should never occur: see [the module](mod@crate::never). `never!("text")`, or
/// `never!(condition, "text")`, which gives the condition's value. The text may name variables in braces, as in
/// `panic!`; only a panic fills them in.
#[macro_export]
macro_rules! never {
    ($what:literal $(, $value:expr)* $(,)?) => {{
        static SPOT: $crate::never::Spot = $crate::never::Spot::new($what, file!(), line!());
        SPOT.meet();
        if cfg!(debug_assertions) {
            panic!($what $(, $value)*);
        }
    }};
    ($condition:expr, $what:literal $(, $value:expr)* $(,)?) => {{
        let is_met: bool = $condition;
        if is_met {
            $crate::never!($what $(, $value)*);
        }
        is_met
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spot_is_counted_each_time_and_given_out_once() {
        static SPOT: Spot = Spot::new("a row without labels", "view.rs", 7);
        let before = count();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| SPOT.meet()));
            }
        });
        assert_eq!(SPOT.count(), 4000);
        assert!(count() >= before + 4000);
        let is_it = |spot: &&Spot| std::ptr::eq(*spot, &SPOT);
        assert_eq!(take_unlogged().filter(is_it).count(), 1);
        SPOT.meet();
        assert_eq!(take_unlogged().filter(is_it).count(), 0);
        assert_eq!(SPOT.to_string(), "this should never happen, and a bug made it: a row without labels (view.rs:7)");
    }

    #[test]
    fn what_holds_is_no_spot() {
        let (gone, listed) = (2, 3);
        assert!(!never!(gone > listed, "{gone} of {listed} are gone"));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "4 of 3 are gone")]
    fn tests_hear_of_it() {
        let (gone, listed) = (4, 3);
        never!(gone > listed, "{gone} of {listed} are gone");
    }

    #[test]
    #[cfg(not(debug_assertions))]
    fn a_live_server_goes_on() {
        let (gone, listed) = (4, 3);
        let before = count();
        assert!(never!(gone > listed, "{gone} of {listed} are gone"));
        never!("no labels");
        assert!(count() >= before + 2);
    }
}
