//! How many threads run worlds, and how many cores they leave to others.
//!
//! Workers are tied to no core: the kernel puts whoever wants to run on whichever core is idle, and a core that no
//! worker needs is found by the frame's thread, by threads of low priority (recorder, saver, admin, world maker), by
//! the kernel's own work for the network, and by other processes. So a core is reserved by starting a worker less.

use serde::Deserialize;
use serde::de::{Deserializer, Unexpected, Visitor};

/// How many threads run worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// One per core that this process may use and that is not reserved.
    Auto,
    Count(u16),
}

impl Workers {
    /// How many that are on a host where this process may use so many cores: one at least.
    pub fn count(self, reserved: ReservedCores, usable_cores: usize) -> usize {
        match self {
            Self::Auto => usable_cores.saturating_sub(reserved.count(usable_cores)).max(1),
            Self::Count(count) => usize::from(count),
        }
    }
}

impl<'de> Deserialize<'de> for Workers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let count = auto_or_count(from, "\"auto\" or a whole number from 1 to 256")?;
        Ok(count.map_or(Self::Auto, Self::Count))
    }
}

/// How many of the usable cores have no worker, while their number is up to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservedCores {
    /// As many as the host can spare, see [`ReservedCores::count`].
    Auto,
    Count(u8),
}

impl ReservedCores {
    /// How many that are of so many usable cores.
    ///
    /// | usable cores | reserved | why |
    /// |---|---|---|
    /// | up to 4 | 0 | one is a quarter of the worlds' time and more; who else wants to run takes turns with the workers |
    /// | 5 to 15 | 1 | the frame's thread and those of low priority find a core at once; at most a fifth of the worlds' time |
    /// | from 16 on | 2 | a capture is written, or the network served, beside the frame's thread; at most an eighth |
    ///
    /// No more than two however large the host is: the frame is one thread, and the recorder's is the only other that
    /// is ever busy for long.
    pub fn count(self, usable_cores: usize) -> usize {
        match (self, usable_cores) {
            (Self::Count(count), _) => usize::from(count),
            (Self::Auto, ..=4) => 0,
            (Self::Auto, 5..=15) => 1,
            (Self::Auto, _) => 2,
        }
    }
}

impl<'de> Deserialize<'de> for ReservedCores {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let count = auto_or_count(from, "\"auto\" or a whole number from 0 to 255")?;
        Ok(count.map_or(Self::Auto, Self::Count))
    }
}

/// Reads a number, or `None` for the word `auto`. `expected` is what a mistake says that there should be.
pub(super) fn auto_or_count<'de, D: Deserializer<'de>, N: TryFrom<i64>>(
    from: D,
    expected: &'static str,
) -> Result<Option<N>, D::Error> {
    struct AutoOrCount<N>(&'static str, std::marker::PhantomData<N>);
    impl<N: TryFrom<i64>> Visitor<'_> for AutoOrCount<N> {
        type Value = Option<N>;
        fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str(self.0)
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Option<N>, E> {
            match text {
                "auto" => Ok(None),
                _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
            }
        }
        fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<Option<N>, E> {
            let known = N::try_from(count).map_err(|_| E::invalid_value(Unexpected::Signed(count), &self))?;
            Ok(Some(known))
        }
    }
    from.deserialize_any(AutoOrCount(expected, std::marker::PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_leaves_as_many_cores_free_as_the_host_can_spare() {
        let workers = |cores| Workers::Auto.count(ReservedCores::Auto, cores);
        let expect = [(1, 1), (2, 2), (4, 4), (5, 4), (8, 7), (15, 14), (16, 14), (38, 36), (128, 126)];
        assert_eq!(expect.map(|(cores, _)| (cores, workers(cores))), expect);
        assert!((1..300).map(workers).is_sorted(), "a larger host has no fewer workers");
    }

    #[test]
    fn as_many_cores_are_left_free_as_the_operator_says_and_one_worker_remains() {
        let workers = |reserved, cores| Workers::Auto.count(ReservedCores::Count(reserved), cores);
        let expect = [(0, 38, 38), (2, 38, 36), (2, 3, 1), (2, 2, 1), (255, 2, 1)];
        assert_eq!(expect.map(|(reserved, cores, _)| (reserved, cores, workers(reserved, cores))), expect);
    }

    #[test]
    fn a_fixed_number_of_workers_is_what_it_says() {
        assert_eq!(Workers::Count(3).count(ReservedCores::Auto, 38), 3);
        assert_eq!(Workers::Count(40).count(ReservedCores::Auto, 38), 40);
    }
}
