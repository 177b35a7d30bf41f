//! Memory growth: threads that allocate too fast and scopes that leak, looked for once a second on the recorder's own
//! thread.
//!
//! A thread that allocates too fast shows in the difference of a second; a leak only over many. What is found goes to
//! the frame's thread, which knows about cooldowns.

use std::sync::atomic::Ordering;

use throng_capture::model::TriggerKind;

use crate::capture_builder::Clock;
use crate::hand_off::HandOff;
use crate::triggers::{Cause, Fired};
use crate::world_kind::KindNumber;
use crate::{memory, thread};

/// Growth must be steady for so long to be called a leak. (s)
const LEAK_WINDOW_S: u64 = 30;

#[derive(Default)]
pub(crate) struct MemoryGrowth {
    /// When it looked last (ticks).
    looked_at: u64,
    /// Bytes that each thread had allocated by then, by index.
    allocated: Vec<u64>,
}

impl MemoryGrowth {
    /// Looks if a second has passed.
    pub fn look(&mut self, now: u64, clock: &Clock, hand_off: &HandOff) {
        let passed_ns = clock.calibration.ns(now.saturating_sub(self.looked_at));
        if passed_ns < 1_000_000_000 {
            return;
        }
        let is_first = self.looked_at == 0;
        self.looked_at = now;
        memory::note(clock.ns(now), hand_off.population.load(Ordering::Relaxed));
        let rules = hand_off.rules();
        let fired = |kind, cause, measured| Fired {
            kind,
            cause,
            world_kind: KindNumber::NONE,
            measured,
            allowed: rules.trigger(kind).threshold,
            world: None,
            at: now,
            frame: 0,
        };
        // This thread allocates to build captures; that is no problem to report.
        let own = thread::current_index();
        for cells in thread::all().into_iter().filter(|cells| Some(cells.index()) != own) {
            let index = cells.index() as usize;
            self.allocated.resize(self.allocated.len().max(index + 1), 0);
            let bytes = cells.allocated_bytes();
            let before = std::mem::replace(&mut self.allocated[index], bytes);
            let per_s = u128::from(bytes - before) * 1_000_000_000 / u128::from(passed_ns);
            // What a thread allocated before it was first looked at has no known duration, so it has no rate.
            let is_new = is_first || before == 0;
            if !is_new && per_s as u64 > rules.trigger(TriggerKind::MemoryRate).threshold {
                hand_off.notice(fired(TriggerKind::MemoryRate, Cause::Thread(index as u32), per_s as u64));
            }
        }
        let growth_min = rules.trigger(TriggerKind::Leak).threshold.saturating_mul(LEAK_WINDOW_S);
        if let Some(leak) = memory::leak(LEAK_WINDOW_S, growth_min) {
            hand_off.notice(fired(TriggerKind::Leak, Cause::Memory(leak.site), leak.bytes_per_s));
        }
    }
}
