//! Clock: which second of a recording a tick of a world was in.
//!
//! Ticks have numbers and no times, and groups are written when their thread comes to it. So a world's time goes by its ticks, and it
//! begins when the recording has come as far as that: worlds hand over what they have about once a second, so one may be that second
//! off against another.

use std::collections::HashMap;

use throng_world::ids::WorldId;

#[derive(Debug, Default)]
pub(crate) struct WorldClocks {
    worlds: HashMap<WorldId, Begun>,
    now_s: f64,
}

#[derive(Debug, Clone, Copy)]
struct Begun {
    at_s: f64,
    tick: u32,
}

impl WorldClocks {
    /// The time of a world's tick since the recording's beginning (s), in its own seconds.
    pub fn at(&mut self, world: WorldId, rate_hz: u16, tick: u32) -> f64 {
        let begun = *self.worlds.entry(world).or_insert(Begun { at_s: self.now_s, tick });
        let at_s = begun.at_s + f64::from(tick.saturating_sub(begun.tick)) / f64::from(rate_hz.max(1));
        self.now_s = self.now_s.max(at_s);
        at_s
    }

    /// There is no more of it.
    pub fn forget(&mut self, world: WorldId) {
        self.worlds.remove(&world);
    }

    /// How far the recording has come (s).
    pub fn now_s(&self) -> f64 {
        self.now_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_begins_when_the_recording_has_come_so_far() {
        let mut clocks = WorldClocks::default();
        let (first, second) = (WorldId::new(0, 0), WorldId::new(1, 0));
        assert_eq!((clocks.at(first, 20, 400), clocks.at(first, 20, 440)), (0.0, 2.0));
        assert_eq!((clocks.at(second, 128, 0), clocks.at(second, 128, 64)), (2.0, 2.5));
        assert_eq!((clocks.at(first, 20, 420), clocks.now_s()), (1.0, 2.5));
        clocks.forget(first);
        assert_eq!(clocks.at(first, 20, 7), 2.5);
    }
}
