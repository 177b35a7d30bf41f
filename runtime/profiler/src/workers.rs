//! Workers: whether they are busy through whole frames, which comes before ticks are late.
//!
//! A frame that ends in time says nothing of how much more it could hold. So at each frame's end it is added up how
//! long the workers had nothing to do since the end before, between frames too; several frames in a row with next to
//! nothing of that fire the trigger. A worker that waits for batches of its own world counts as idle: it would take
//! others. Frame's thread; a few loads for each worker and frame.

use throng_capture::model::WORKERS_BUSY_FRAMES;

/// The subsystem of scopes in which a thread waits for something to do.
pub(crate) const IDLE: &str = "idle";

/// What the workers have done so far.
#[derive(Debug, Default)]
pub(crate) struct WorkersWatch {
    /// As it was at the end of the frame before.
    before: WorkersSum,
    /// Frames in a row that were busier than allowed, and what the workers could have done and did not do in them
    /// (ticks).
    busy_frames: usize,
    capacity: u64,
    idle: u64,
}

/// All workers at a moment.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkersSum {
    pub count: usize,
    /// For how long they were idle since each began (ticks).
    pub idle: u64,
    pub at: u64,
}

impl WorkersWatch {
    /// A frame ends. Returns how busy the workers were in percent when as many frames in a row as make the trigger were busier
    /// than allowed.
    pub fn frame_end(&mut self, now: WorkersSum, allowed_percent: u64) -> Option<u64> {
        let before = std::mem::replace(&mut self.before, now);
        let capacity = now.at.saturating_sub(before.at).saturating_mul(now.count as u64);
        let idle = now.idle.saturating_sub(before.idle).min(capacity);
        // Those that came or went have another past.
        if before.count != now.count || busy_percent(idle, capacity) <= allowed_percent {
            *self = WorkersWatch { before: now, ..WorkersWatch::default() };
            return None;
        }
        self.busy_frames += 1;
        self.capacity += capacity;
        self.idle += idle;
        if self.busy_frames < WORKERS_BUSY_FRAMES {
            return None;
        }
        let measured = busy_percent(self.idle, self.capacity);
        *self = WorkersWatch { before: now, ..WorkersWatch::default() };
        Some(measured)
    }
}

/// Whole per cent; 0 where nothing could have been done.
fn busy_percent(idle: u64, capacity: u64) -> u64 {
    (100 * u128::from(capacity - idle)).checked_div(capacity.into()).unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 1_000;

    /// Two workers, frame after frame idle together for so long; what fired at which frame.
    fn check(idle: &[u64], expect: &[(usize, u64)]) {
        let mut watch = WorkersWatch::default();
        let mut now = WorkersSum { count: 2, idle: 500, at: 70_000 };
        watch.frame_end(now, 95);
        let mut fired = Vec::new();
        for (frame, idle) in idle.iter().enumerate() {
            (now.idle, now.at) = (now.idle + idle, now.at + PERIOD);
            fired.extend(watch.frame_end(now, 95).map(|measured| (frame, measured)));
        }
        assert_eq!(fired, expect);
    }

    #[test]
    fn enough_busy_frames_in_a_row_fire_and_begin_anew() {
        check(&[20; 3 * WORKERS_BUSY_FRAMES - 1], &[(WORKERS_BUSY_FRAMES - 1, 99), (2 * WORKERS_BUSY_FRAMES - 1, 99)]);
        check(&[0; WORKERS_BUSY_FRAMES], &[(WORKERS_BUSY_FRAMES - 1, 100)]);
    }

    #[test]
    fn one_frame_with_time_left_begins_the_count_anew() {
        let mut idle = vec![20; 2 * WORKERS_BUSY_FRAMES - 1];
        idle[WORKERS_BUSY_FRAMES - 1] = 100;
        check(&idle, &[]);
        idle.push(20);
        check(&idle, &[(2 * WORKERS_BUSY_FRAMES - 1, 99)]);
    }

    #[test]
    fn a_frame_at_what_is_allowed_is_not_over_it() {
        check(&[100; 2 * WORKERS_BUSY_FRAMES], &[]);
    }

    #[test]
    fn workers_that_come_or_go_and_none_at_all_fire_nothing() {
        let mut watch = WorkersWatch::default();
        for frame in 0..4 * WORKERS_BUSY_FRAMES {
            let now = WorkersSum { count: 1 + frame % 2, idle: 0, at: frame as u64 * PERIOD };
            assert_eq!(watch.frame_end(now, 95), None);
        }
        for frame in 0..4 * WORKERS_BUSY_FRAMES {
            assert_eq!(watch.frame_end(WorkersSum { at: frame as u64 * PERIOD, ..WorkersSum::default() }, 95), None);
        }
    }
}
