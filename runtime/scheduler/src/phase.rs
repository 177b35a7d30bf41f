//! Which frames a world ticks in.
//!
//! All worlds of one rate in the same frame would make that frame long and leave the next ones empty, so
//! each world's ticks are shifted by a frame against its neighbour's. When the rate does not divide the
//! frame rate, a tick is due in the first frame at or after its ideal time: 20 Hz on 128 frames a second
//! ticks every 6 or 7 frames, never twice in one, and exactly 20 times in every second.
//!
//! ```text
//! 20 Hz on 60 frames/s   frame  0 1 2 3 4 5 6 7 8
//!   world 0                     x . . x . . x . .
//!   world 1                     . x . . x . . x .
//!   world 2                     . . x . . x . . x
//! ```
//!
//! A world whose time is slowed ticks at a share of its rate, and its phase is stretched by as much. Such worlds are many
//! at once when their host has too little for all, so they are spread over the whole of the longer period.
//!
//! Plain arithmetic on 6 bytes; nothing is counted up, so that a frame that was skipped changes nothing.

use crate::rates::{FRAME_HZ_MAX, FrameGrid, Hertz, gcd};

// A hundredfold rate must fit where a rate is kept.
const _: () = assert!(FRAME_HZ_MAX * 100 <= u16::MAX as u32);

/// One world's place in the grid.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TickPhase {
    rate_hz: u16,
    frame_hz: u16,
    /// Progress towards the next tick at frame 0, in parts of `frame_hz`; each frame adds `rate_hz`.
    progress: u16,
}

impl TickPhase {
    /// The phase of the world with this index among those of its rate.
    ///
    /// # Panics
    /// When the rate is zero or above the grid's.
    pub fn new(index: usize, rate: Hertz, grid: FrameGrid) -> TickPhase {
        Self::of(index, u32::from(rate.0), u32::from(grid.frame_hz()))
    }

    /// The phase of a world whose time runs at so many percent: it is due that much less often, evenly.
    ///
    /// # Panics
    /// As [`new`](Self::new), and unless `percent` is 1 to 100.
    pub fn stretched(index: usize, rate: Hertz, grid: FrameGrid, percent: u8) -> TickPhase {
        assert!((1..=100).contains(&percent), "time at {percent} %");
        let (rate_parts, frame_parts) = (u32::from(rate.0) * u32::from(percent), u32::from(grid.frame_hz()) * 100);
        let common = gcd(frame_parts, rate_parts);
        Self::of(index, rate_parts / common, frame_parts / common)
    }

    fn of(index: usize, rate_hz: u32, frame_hz: u32) -> TickPhase {
        assert!((1..=frame_hz).contains(&rate_hz), "{rate_hz} Hz on a grid of {frame_hz} Hz");
        // The pattern of due frames repeats after so many frames; so many shifts are different.
        let pattern_frames = frame_hz / gcd(frame_hz, rate_hz);
        let shift_frames = (index % pattern_frames as usize) as u32;
        let progress = (pattern_frames - shift_frames) * rate_hz % frame_hz;
        TickPhase { rate_hz: rate_hz as u16, frame_hz: frame_hz as u16, progress: progress as u16 }
    }

    /// Whether the world ticks in this frame.
    pub fn due(self, frame: u64) -> bool {
        self.progress_at(frame) < u64::from(self.rate_hz)
    }

    /// The first frame from `frame` on in which the world ticks.
    pub fn next_due(self, frame: u64) -> u64 {
        if self.due(frame) {
            return frame;
        }
        let missing = u64::from(self.frame_hz) - self.progress_at(frame);
        frame + missing.div_ceil(self.rate_hz.into())
    }

    /// The frame in which the world is due for the `count`th time after `frame`, in which it is due itself.
    pub fn due_after(self, frame: u64, count: u64) -> u64 {
        debug_assert!(self.due(frame), "counted from a frame in which it is due");
        let frame_hz = u128::from(self.frame_hz);
        let steps = (self.due_up_to(frame) + u128::from(count)) * frame_hz;
        // It may have been due in frame 0 before anything was counted.
        let steps = steps.saturating_sub(self.progress.into());
        steps.div_ceil(u128::from(self.rate_hz)) as u64
    }

    /// In how many frames after `after` and up to `until` the world ticks, however many these are.
    pub fn due_count(self, after: u64, until: u64) -> u64 {
        self.due_up_to(until).saturating_sub(self.due_up_to(after)) as u64
    }

    /// How often it was due up to a frame, counted from some beginning.
    fn due_up_to(self, frame: u64) -> u128 {
        (u128::from(frame) * u128::from(self.rate_hz) + u128::from(self.progress)) / u128::from(self.frame_hz)
    }

    fn progress_at(self, frame: u64) -> u64 {
        let frame_hz = u64::from(self.frame_hz);
        (frame % frame_hz * u64::from(self.rate_hz) + u64::from(self.progress)) % frame_hz
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(frame_hz: u16) -> FrameGrid {
        FrameGrid::for_rates(&[Hertz(frame_hz)])
    }

    fn due_frames(index: usize, rate: u16, grid: FrameGrid, frames: u64) -> Vec<u64> {
        let phase = TickPhase::new(index, Hertz(rate), grid);
        (0..frames).filter(|frame| phase.due(*frame)).collect()
    }

    #[test]
    fn neighbours_tick_in_turns() {
        assert_eq!(due_frames(0, 20, grid(60), 9), [0, 3, 6]);
        assert_eq!(due_frames(1, 20, grid(60), 9), [1, 4, 7]);
        assert_eq!(due_frames(2, 20, grid(60), 9), [2, 5, 8]);
        assert_eq!(due_frames(3, 20, grid(60), 9), [0, 3, 6]);
    }

    #[test]
    fn a_rate_that_does_not_divide_ticks_in_the_first_frame_after_its_time() {
        let ideal: Vec<u64> = (0..20).map(|tick| (tick * 128_u64).div_ceil(20)).collect();
        assert_eq!(due_frames(0, 20, grid(128), 128), ideal);
    }

    #[test]
    fn the_average_rate_is_exact_and_steps_are_even() {
        for frame_hz in [60, 75, 100, 128, 256] {
            for rate in 1..=frame_hz {
                for index in [0, 1, 5, 31, 1_000] {
                    let due = due_frames(index, rate, grid(frame_hz), u64::from(frame_hz) * 3);
                    assert_eq!(due.len(), usize::from(rate) * 3, "{rate} Hz on {frame_hz}");
                    let (short, long) = (frame_hz / rate, frame_hz.div_ceil(rate));
                    let even = |pair: &[u64]| (u64::from(short)..=u64::from(long)).contains(&(pair[1] - pair[0]));
                    assert!(due.windows(2).all(even), "{rate} Hz on {frame_hz}");
                }
            }
        }
    }

    #[test]
    fn a_thousand_worlds_load_all_frames_alike() {
        for (frame_hz, rate) in [(60, 20), (128, 20), (128, 30), (128, 60), (128, 128), (60, 1)] {
            let grid = grid(frame_hz);
            let phases: Vec<_> = (0..1_000).map(|index| TickPhase::new(index, Hertz(rate), grid)).collect();
            let loads: Vec<usize> =
                (0..u64::from(frame_hz)).map(|frame| phases.iter().filter(|phase| phase.due(frame)).count()).collect();
            let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
            let ideal = 1_000 * usize::from(rate) / usize::from(frame_hz);
            assert!(most - least <= 1 + ideal / 50, "{rate} Hz on {frame_hz}: {least}..={most} worlds per frame");
        }
    }

    /// Promise: at so many percent a world ticks so many percent as often, evenly, and many such worlds load all frames
    /// alike.
    #[test]
    fn slowed_worlds_tick_evenly_and_are_spread_over_the_longer_period() {
        for (frame_hz, rate) in [(60, 20), (128, 20), (128, 128), (60, 30)] {
            let grid = grid(frame_hz);
            for percent in [10, 17, 37, 50, 62, 80, 99, 100] {
                let phases: Vec<_> =
                    (0..1_000).map(|index| TickPhase::stretched(index, Hertz(rate), grid, percent)).collect();
                let seconds = 100;
                let frames = u64::from(frame_hz) * seconds;
                let due: Vec<u64> = (0..frames).filter(|frame| phases[7].due(*frame)).collect();
                let expect = u64::from(rate) * u64::from(percent) * seconds / 100;
                assert_eq!(due.len() as u64, expect, "{rate} Hz at {percent} %");
                let gap = f64::from(frame_hz) * 100.0 / (f64::from(rate) * f64::from(percent));
                let even = |pair: &[u64]| ((pair[1] - pair[0]) as f64 - gap).abs() < 1.0;
                assert!(due.windows(2).all(even), "{rate} Hz at {percent} % on {frame_hz}");
                let load = |frame: u64| phases.iter().filter(|phase| phase.due(frame)).count() as f64;
                let loads: Vec<f64> = (0..u64::from(frame_hz)).map(load).collect();
                let ideal = 1_000.0 / gap;
                assert!(loads.iter().all(|load| (load - ideal).abs() <= 2.0 + ideal / 20.0), "{percent} %: {loads:?}");
            }
        }
    }

    #[test]
    fn at_full_speed_a_stretched_phase_is_the_usual_one() {
        for index in 0..7 {
            let (usual, stretched) =
                (TickPhase::new(index, Hertz(20), grid(60)), TickPhase::stretched(index, Hertz(20), grid(60), 100));
            assert!((0..300).all(|frame| usual.due(frame) == stretched.due(frame)), "{index}");
        }
    }

    #[test]
    fn due_frames_are_counted_as_if_one_by_one() {
        for (frame_hz, rate) in [(60, 20), (128, 20), (128, 30), (60, 1), (60, 60), (75, 64)] {
            let phase = TickPhase::new(7, Hertz(rate), grid(frame_hz));
            for (after, until) in [(0, 0), (0, 1), (3, 400), (59, 61), (127, 128), (100, 99), (1_000, 5_000)] {
                let one_by_one = (after + 1..=until).filter(|frame| phase.due(*frame)).count() as u64;
                assert_eq!(phase.due_count(after, until), one_by_one, "{rate} Hz on {frame_hz}, {after} to {until}");
            }
            let (begin, century) = (12_345, 100 * 365 * 24 * 3_600);
            assert_eq!(phase.due_count(begin, begin + century * u64::from(frame_hz)), century * u64::from(rate));
        }
    }

    #[test]
    fn frames_that_are_due_are_found_as_if_one_by_one() {
        for (frame_hz, rate) in [(60, 20), (128, 20), (128, 30), (60, 1), (60, 60), (75, 64)] {
            for index in [0, 1, 7] {
                let phases = [
                    TickPhase::new(index, Hertz(rate), grid(frame_hz)),
                    TickPhase::stretched(index, Hertz(rate), grid(frame_hz), 37),
                ];
                for phase in phases {
                    let due: Vec<u64> = (0..2_000).filter(|frame| phase.due(*frame)).collect();
                    for (count, frame) in due.iter().enumerate() {
                        assert_eq!(phase.due_after(due[0], count as u64), *frame, "{rate} Hz on {frame_hz}");
                        assert_eq!(phase.due_after(*frame, 0), *frame);
                    }
                }
            }
        }
    }

    #[test]
    fn next_due_is_the_first_frame_that_is_due() {
        for (frame_hz, rate) in [(60, 20), (128, 20), (128, 30), (60, 1), (60, 60)] {
            let phase = TickPhase::new(7, Hertz(rate), grid(frame_hz));
            for frame in 0..300 {
                let expected = (frame..).find(|frame| phase.due(*frame)).unwrap();
                assert_eq!(phase.next_due(frame), expected, "{rate} Hz on {frame_hz} from {frame}");
            }
        }
    }
}
