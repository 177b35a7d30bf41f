//! The largest value of the last N seconds, however often and by whomever it is read.
//!
//! A maximum that is reset when it is scraped tells each of two scrapers half of the truth, and a gauge
//! that is read every 15 seconds misses the one frame that took 900 ms. So the maximum slides: one slot
//! per second, N seconds and the one that is running, and reading changes nothing.
//!
//! Cost: 16 bytes per second of window; 2 ns to record, one pass over the slots to read.

use throng_platform::time::Nanos;

/// A maximum over the last [`WindowMax::window_s`] seconds, and up to one second longer.
#[derive(Clone, Debug)]
pub struct WindowMax {
    slots: Box<[Slot]>,
}

#[derive(Copy, Clone, Debug, Default)]
struct Slot {
    /// The second that the slot speaks of, counted from 1; 0 = none yet.
    second: u64,
    max: u64,
}

impl WindowMax {
    /// A window of `window_s` seconds [1..=3,600]. Too short → the worst moment leaves before anyone looks;
    /// too long → an old one hides whether things got better.
    pub fn new(window_s: u32) -> WindowMax {
        assert!((1..=3_600).contains(&window_s));
        WindowMax { slots: vec![Slot::default(); window_s as usize + 1].into() }
    }

    pub fn window_s(&self) -> u32 {
        self.slots.len() as u32 - 1
    }

    /// Takes `value`, seen at `now`, into account. A moment that is already behind the window is ignored.
    pub fn record(&mut self, now: Nanos, value: u64) {
        let second = second_of(now);
        let index = second as usize % self.slots.len();
        let slot = &mut self.slots[index];
        if slot.second < second {
            *slot = Slot { second, max: value };
        } else if slot.second == second {
            slot.max = slot.max.max(value);
        }
    }

    /// The largest value recorded in the window that ends at `now`; 0 when there was none.
    pub fn max(&self, now: Nanos) -> u64 {
        let newest = second_of(now);
        let oldest = newest.saturating_sub(u64::from(self.window_s())).max(1);
        let in_window = self.slots.iter().filter(|slot| (oldest..=newest).contains(&slot.second));
        in_window.map(|slot| slot.max).max().unwrap_or(0)
    }
}

fn second_of(now: Nanos) -> u64 {
    now.0 / 1_000_000_000 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_bad_frame_in_five_minutes_is_seen_by_every_scrape() {
        let mut frame_ms = WindowMax::new(300);
        for second in 0..1_000 {
            let now = Nanos::from_secs(second);
            frame_ms.record(now, if second == 500 { 900 } else { 16 });
            for _scraper in 0..3 {
                let expected = if (500..=800).contains(&second) { 900 } else { 16 };
                assert_eq!(frame_ms.max(now), expected, "at second {second}");
            }
        }
    }

    #[test]
    fn silence_ends_at_zero() {
        let mut window = WindowMax::new(10);
        assert_eq!(window.max(Nanos::ZERO), 0);
        window.record(Nanos::from_millis(500), 7);
        assert_eq!(window.max(Nanos::from_millis(10_999)), 7);
        assert_eq!(window.max(Nanos::from_secs(11)), 0);
        assert_eq!(window.max(Nanos::from_secs(100_000)), 0);
    }

    proptest! {
        #[test]
        fn agrees_with_keeping_every_value(
            window_s in 1_u32..20,
            steps in prop::collection::vec((0_u64..8_000, 0_u64..100), 1..200),
        ) {
            let mut window = WindowMax::new(window_s);
            let mut all = Vec::new();
            let mut now = Nanos::ZERO;
            for (pause_ms, value) in steps {
                now += Nanos::from_millis(pause_ms);
                window.record(now, value);
                all.push((now.0 / 1_000_000_000, value));
                let oldest = (now.0 / 1_000_000_000).saturating_sub(u64::from(window_s));
                let expected = all.iter().filter(|(second, _)| *second >= oldest).map(|(_, value)| *value).max();
                prop_assert_eq!(window.max(now), expected.unwrap());
            }
        }
    }
}
