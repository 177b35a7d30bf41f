//! Tick means: what a tick of a world of some kind takes of each subsystem, on average of a second and more.
//!
//! A frame's sum grows with the number of worlds, and one frame's is as uneven as the host. So a budget for one tick is
//! held against the mean of many: those of a window, which is over when a second has passed and enough ticks have ended.
//! A tick that is under way at a frame's end has its time in this frame and its end in the next, which the window
//! evens out.
//!
//! On the frame's thread, once a frame: an addition for each kind of world and subsystem. Never allocates but at its
//! start.

use crate::site::SUBSYSTEMS_MAX;
use crate::world_kind::{KIND_ROWS, KindNumber};

/// Ticks of a window at least: of fewer a single one without a core would be the mean.
const TICKS_MIN: u64 = 100;

#[derive(Debug)]
pub(crate) struct TickMeans {
    /// Length of a second (ticks of the counter).
    second: u64,
    /// By the row of the kind of world.
    windows: Box<[Window; KIND_ROWS]>,
}

/// Ticks of one kind of world, since the last look at them.
#[derive(Debug, Copy, Clone)]
struct Window {
    /// When it began (ticks of the counter); none before its first frame.
    since: Option<u64>,
    ended: u64,
    /// What each subsystem took (ticks of the counter), by number.
    taken: [u64; SUBSYSTEMS_MAX],
}

impl TickMeans {
    pub fn new(second: u64) -> TickMeans {
        let empty = Window { since: None, ended: 0, taken: [0; SUBSYSTEMS_MAX] };
        TickMeans { second, windows: Box::new([empty; KIND_ROWS]) }
    }

    /// A tick of a world of this kind has ended.
    pub fn tick_ended(&mut self, kind: KindNumber) {
        self.windows[kind.row()].ended += 1;
    }

    /// A frame has ended at `now`, in which the worlds of the row's kind took this. With the frame that ends a window,
    /// the number of its ticks and what they took together, by subsystem; the next window begins.
    pub fn frame(
        &mut self,
        row: usize,
        taken: &[u64; SUBSYSTEMS_MAX],
        now: u64,
    ) -> Option<(u64, [u64; SUBSYSTEMS_MAX])> {
        let window = &mut self.windows[row % KIND_ROWS];
        window.taken.iter_mut().zip(taken).for_each(|(sum, taken)| *sum += taken);
        let since = *window.since.get_or_insert(now);
        if window.ended < TICKS_MIN || now.saturating_sub(since) < self.second {
            return None;
        }
        let over = (window.ended, window.taken);
        *window = Window { since: Some(now), ended: 0, taken: [0; SUBSYSTEMS_MAX] };
        Some(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: the mean is that of a tick, however many worlds tick in a frame, and no window is shorter than a second
    /// or than a hundred ticks.
    #[test]
    fn a_mean_is_of_a_second_and_of_many_ticks() {
        let kind = KindNumber::of_row(3);
        let mut taken = [0; SUBSYSTEMS_MAX];
        for worlds in [1, 60] {
            let mut means = TickMeans::new(1_000);
            taken[2] = 5 * worlds;
            let over = (0..).find_map(|frame| {
                (0..worlds).for_each(|_| means.tick_ended(kind));
                means.frame(3, &taken, frame * 50).map(|over| (frame, over))
            });
            let (frame, (ended, taken)) = over.expect("it goes on until one is over");
            assert_eq!((frame, ended), if worlds == 1 { (99, 100) } else { (20, 21 * 60) });
            assert_eq!((taken[2], taken[3]), (5 * ended, 0));
            assert_eq!(means.frame(3, &[0; SUBSYSTEMS_MAX], frame * 50 + 2_000), None, "no tick has ended since");
        }
    }
}
