//! Declared counters: each is written down once, with its name, unit, help and advice, in the struct that counts it.
//!
//! [`counters!`](crate::counters) makes a plain struct of `u64` fields, so that counting is an addition to a field.
//! Everything else goes by the declarations: adding up two structs, publishing, reports, the console and the operator's
//! page visit every field, so a counter that was added is in all of them. A struct may hold others as groups; whoever
//! visits it visits theirs.
//!
//! ```
//! use throng_metrics::{Counters, counters};
//!
//! counters! {
//!     /// What a mill did in a day.
//!     pub struct Mill {
//!         Sum sacks: "mill.sacks", "sacks", "Sacks filled.", "Good: it is harvest time.";
//!         Max sacks_waiting: "mill.sacks_waiting", "sacks", "Most sacks that waited for the miller.", "Hire a hand.";
//!     }
//! }
//!
//! let mut week = Mill::default();
//! for (sacks, sacks_waiting) in [(10, 2), (12, 7), (9, 0)] {
//!     week.merge(&Mill { sacks, sacks_waiting });
//! }
//! assert_eq!((week.sacks, week.sacks_waiting), (31, 7));
//! let mut names = Vec::new();
//! week.each(&mut |counter, value| names.push((counter.name, value)));
//! assert_eq!(names, [("mill.sacks", 31), ("mill.sacks_waiting", 7)]);
//! ```

/// How two values of a counter become one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// They are added up. Exposed as a counter.
    Sum,
    /// The larger one stands. Exposed as a maximum over a sliding window, since no sum means anything.
    Max,
}

impl Merge {
    #[inline]
    pub const fn of(self, one: u64, other: u64) -> u64 {
        match self {
            Merge::Sum => one + other,
            Merge::Max if one < other => other,
            Merge::Max => one,
        }
    }
}

/// What is known of a counter besides its value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Dotted, the subsystem first, such as `net.packets_in`.
    pub name: &'static str,
    /// What is counted, such as `packets`.
    pub unit: &'static str,
    /// What it says: a sentence.
    pub help: &'static str,
    /// What an operator does when it grows: a sentence or two.
    pub advice: &'static str,
    pub merge: Merge,
}

impl Counter {
    /// Checks the name: evaluated while compiling, so a wrong one does not compile.
    pub const fn new(
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        advice: &'static str,
        merge: Merge,
    ) -> Counter {
        assert!(is_name(name), "a counter's name is made of a-z, 0-9, `_` and `.`, a letter first");
        assert!(!unit.is_empty() && !help.is_empty() && !advice.is_empty(), "a counter says its unit, help and advice");
        Counter { name, unit, help, advice, merge }
    }
}

/// Whether Prometheus takes a name, once its dots are underscores.
pub(crate) const fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut index = 0;
    while index < bytes.len() {
        if !matches!(bytes[index], b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.') {
            return false;
        }
        index += 1;
    }
    !bytes.is_empty() && bytes[0].is_ascii_lowercase()
}

/// A struct of counters. Made by [`counters!`](crate::counters).
pub trait Counters: Default {
    /// Adds what `other` counted: each field by its rule.
    fn merge(&mut self, other: &Self);
    /// Visits all counters with their values, in the order of declaration, groups last.
    fn each(&self, visit: &mut dyn FnMut(&'static Counter, u64));
    /// The same, to change them.
    fn each_mut(&mut self, visit: &mut dyn FnMut(&'static Counter, &mut u64));

    /// All counters of the struct and of its groups.
    fn declared() -> Vec<&'static Counter> {
        let mut all = Vec::new();
        Self::default().each(&mut |counter, _| all.push(counter));
        all
    }
}

/// Declares a struct of counters: a line each of rule, field, name, unit, help and advice. See [`Counters`] and
/// the [module](crate::declared) for an example. Groups follow in a second block: `with { field: OtherCounters, }`.
#[macro_export]
macro_rules! counters {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Name:ident {
            $($rule:ident $field:ident: $name:literal, $unit:literal, $help:literal, $advice:literal;)*
        }
        $(with { $($(#[$group_meta:meta])* $group:ident: $Group:ty,)* })?
    ) => {
        $(#[$meta])*
        #[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
        $vis struct $Name {
            $(#[doc = $help] pub $field: u64,)*
            $($($(#[$group_meta])* pub $group: $Group,)*)?
        }

        impl $crate::Counters for $Name {
            #[inline]
            fn merge(&mut self, other: &Self) {
                $(self.$field = $crate::Merge::$rule.of(self.$field, other.$field);)*
                $($($crate::Counters::merge(&mut self.$group, &other.$group);)*)?
            }

            fn each(&self, visit: &mut dyn FnMut(&'static $crate::Counter, u64)) {
                $({
                    const COUNTER: $crate::Counter =
                        $crate::Counter::new($name, $unit, $help, $advice, $crate::Merge::$rule);
                    visit(&COUNTER, self.$field);
                })*
                $($($crate::Counters::each(&self.$group, visit);)*)?
            }

            fn each_mut(&mut self, visit: &mut dyn FnMut(&'static $crate::Counter, &mut u64)) {
                $({
                    const COUNTER: $crate::Counter =
                        $crate::Counter::new($name, $unit, $help, $advice, $crate::Merge::$rule);
                    visit(&COUNTER, &mut self.$field);
                })*
                $($($crate::Counters::each_mut(&mut self.$group, visit);)*)?
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    counters! {
        struct Inner {
            Sum read: "inner.read", "bytes", "Bytes read.", "Read less.";
            Max longest: "inner.longest", "bytes", "Longest read.", "Read in parts.";
        }
    }

    counters! {
        struct Outer {
            Sum opened: "outer.opened", "files", "Files opened.", "Close them.";
        }
        with {
            inner: Inner,
        }
    }

    #[test]
    fn each_field_is_merged_by_its_rule_in_groups_too() {
        let mut sum = Outer::default();
        for (opened, read, longest) in [(1, 10, 5), (2, 20, 9), (0, 5, 3)] {
            sum.merge(&Outer { opened, inner: Inner { read, longest } });
        }
        assert_eq!(sum, Outer { opened: 3, inner: Inner { read: 35, longest: 9 } });
    }

    #[test]
    fn every_field_is_visited_and_can_be_changed() {
        let mut counters = Outer::default();
        let mut next = 0;
        counters.each_mut(&mut |_, value| {
            next += 1;
            *value = next;
        });
        assert_eq!(counters, Outer { opened: 1, inner: Inner { read: 2, longest: 3 } });
        let names: Vec<&str> = Outer::declared().iter().map(|counter| counter.name).collect();
        assert_eq!(names, ["outer.opened", "inner.read", "inner.longest"]);
    }

    #[test]
    fn names_are_what_a_scraper_takes() {
        for good in ["a", "net.packets_in", "r2.d2"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "2fast", ".a", "Net", "a b", "a-b", "a\"", "ä"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
