//! Histories: the hashes that two runs left, and where they part.

use std::fmt;

use throng::inspection::WorldHash;

/// The first place where two runs are not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// What the first run has there; `None` if it ended before.
    pub expected: Option<WorldHash>,
    /// What the second run has there.
    pub found: Option<WorldHash>,
}

/// Where the second run parts from the first; `None` if every world had the same state at every tick.
pub fn first_difference(expected: &[WorldHash], found: &[WorldHash]) -> Option<Difference> {
    (0..expected.len().max(found.len()))
        .map(|index| Difference { expected: expected.get(index).copied(), found: found.get(index).copied() })
        .find(|pair| pair.expected != pair.found)
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tell = |hash: Option<WorldHash>| match hash {
            Some(WorldHash { world, tick, hash }) => {
                format!("world {world} at tick {tick} has state {hash:016x}")
            }
            None => "the run was over".to_owned(),
        };
        write!(f, "expected: {}; found: {}", tell(self.expected), tell(self.found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng::ids::WorldId;

    fn check(expected: &[(u32, u32, u64)], found: &[(u32, u32, u64)], part_at: Option<&str>) {
        let history = |ticks: &[(u32, u32, u64)]| -> Vec<_> {
            ticks.iter().map(|&(world, tick, hash)| WorldHash { world: WorldId::new(world, 0), tick, hash }).collect()
        };
        let difference = first_difference(&history(expected), &history(found));
        assert_eq!(difference.map(|difference| difference.to_string()).as_deref(), part_at);
    }

    #[test]
    fn the_first_difference_names_world_and_tick() {
        check(&[(0, 0, 1), (1, 0, 2)], &[(0, 0, 1), (1, 0, 2)], None);
        check(
            &[(0, 0, 1), (1, 0, 2), (0, 1, 3)],
            &[(0, 0, 1), (1, 0, 9), (0, 1, 9)],
            Some(
                "expected: world 1 at tick 0 has state 0000000000000002; found: world 1 at tick 0 has state 0000000000000009",
            ),
        );
        check(
            &[(0, 0, 1)],
            &[(0, 0, 1), (0, 1, 1)],
            Some("expected: the run was over; found: world 0 at tick 1 has state 0000000000000001"),
        );
    }
}
