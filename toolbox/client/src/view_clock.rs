//! View clock: which moment of its world a player is shown.
//!
//! Snapshots come at uneven times, and what is drawn straight out of them jumps. So a renderer draws the world a little
//! behind the newest one: it goes on evenly between snapshots that have come already, and a late one is not missed. How
//! much later is the interpolation delay; two ticks, if the program says nothing.
//!
//! ```text
//!   snapshots come     |     |      |    |     |
//!   ticks              7     8      9    10    11
//!   shown                   ...7....8.....9....           even, never back, never beyond the newest
//! ```
//!
//! When each tick comes is the [server clock](crate::server_clock)'s affair. A moment that was shown once is not followed by
//! an earlier one: the server would take the earlier one for a lie, and a player would see everybody twitch.
//!
//! Sans-IO, on its client's thread; a few numbers.

use throng_platform::time::Nanos;
use throng_replication::Seen;

use crate::server_clock::{ServerClock, ns_of, server_ns_of};

/// Ticks that a world is shown late where nobody says otherwise.
const DELAY_TICKS: u32 = 2;

const PARTS_PER_TICK: i64 = 256;
const NS_PER_S: i64 = 1_000_000_000;

/// What is shown in one stay in a world.
#[derive(Debug, Default)]
pub(crate) struct ViewClock {
    /// `None`: some ticks.
    delay: Option<Nanos>,
    shown_parts: i64,
}

impl ViewClock {
    pub fn set_delay(&mut self, delay: Nanos) {
        self.delay = Some(delay);
    }

    /// How far behind the newest snapshot a world of this rate is shown. (ns)
    pub fn delay_ns(&self, tick_hz: u8) -> i64 {
        self.delay.map_or(server_ns_of(DELAY_TICKS, tick_hz), ns_of)
    }

    /// Another stay, with other ticks.
    pub fn left_world(&mut self) {
        *self = Self { delay: self.delay, ..Self::default() };
    }

    /// The moment that is shown now. `newest_tick` is the newest that the client has heard of, which before the first
    /// snapshot is the one in which it came.
    pub fn seen(&mut self, now: Nanos, clock: &mut ServerClock, newest_tick: u32, tick_hz: u8) -> Seen {
        let newest_parts = i64::from(newest_tick) * PARTS_PER_TICK;
        let due_parts = clock.read(now, tick_hz).map_or(newest_parts, |server_ns| {
            let shown_ns = i128::from(server_ns) - i128::from(self.delay_ns(tick_hz));
            let parts = shown_ns * i128::from(i64::from(tick_hz.max(1)) * PARTS_PER_TICK) / i128::from(NS_PER_S);
            parts.clamp(0, newest_parts.into()) as i64
        });
        // Never back; and no farther behind than can be said.
        let shown_parts = due_parts.max(self.shown_parts.min(newest_parts));
        let behind_parts = (newest_parts - shown_parts).min(u16::MAX.into());
        self.shown_parts = newest_parts - behind_parts;
        Seen { newest_tick, behind_parts: behind_parts as u16 }
    }
}

#[cfg(test)]
mod tests {
    use throng_replication::TimeFactor;

    use super::*;

    /// A client's two clocks, as one.
    #[derive(Default)]
    struct Clocks {
        server: ServerClock,
        view: ViewClock,
    }

    impl Clocks {
        fn heard(&mut self, now: Nanos, tick: u32, tick_hz: u8) {
            self.server.heard(now, tick, tick_hz, TimeFactor::USUAL);
        }

        fn seen(&mut self, now: Nanos, newest_tick: u32, tick_hz: u8) -> Seen {
            self.view.seen(now, &mut self.server, newest_tick, tick_hz)
        }

        fn left_world(&mut self) {
            self.server.left_world();
            self.view.left_world();
        }
    }

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// Hears 20 ticks a second from tick 100 at 1 s on, each so much late.
    fn hear(clock: &mut Clocks, late_ms: &[u64]) {
        for (number, late_ms) in late_ms.iter().enumerate() {
            clock.heard(ms(1_000 + 50 * number as u64 + late_ms), 100 + number as u32, 20);
        }
    }

    #[test]
    fn the_world_is_shown_two_ticks_late_and_goes_on_between_snapshots() {
        let mut clock = Clocks::default();
        hear(&mut clock, &[0; 10]);
        let moments = [0, 10, 25, 50, 75, 99].map(|later| clock.seen(ms(1_450 + later), 109, 20).moment());
        assert_eq!(moments, [(107, 0), (107, 51), (107, 128), (108, 0), (108, 128), (108, 250)]);
        clock.view.set_delay(ms(150));
        clock.left_world();
        hear(&mut clock, &[0; 10]);
        assert_eq!(clock.seen(ms(1_450), 109, 20).moment(), (106, 0), "a program may say how much");
    }

    #[test]
    fn before_a_snapshot_and_after_the_last_it_shows_the_newest() {
        let mut clock = Clocks::default();
        assert_eq!(clock.seen(ms(7), 500, 20), Seen { newest_tick: 500, behind_parts: 0 });
        clock.left_world();
        hear(&mut clock, &[0]);
        assert_eq!(clock.seen(ms(9_000), 100, 20), Seen { newest_tick: 100, behind_parts: 0 });
    }

    /// Promise: what is shown goes on evenly however unevenly snapshots come, and never back.
    #[test]
    fn snapshots_that_come_unevenly_are_shown_evenly() {
        let mut clock = Clocks::default();
        let late_ms = [0, 20, 5, 30, 0, 10, 25, 0, 15, 40, 0, 0, 35, 5, 0, 30, 10, 0, 20, 0];
        let mut before = 0;
        for (number, late) in late_ms.iter().cycle().take(400).enumerate() {
            let at = ms(1_000 + 50 * number as u64 + late);
            clock.heard(at, 100 + number as u32, 20);
            for later in [0, 5, 9] {
                let (tick, part) = clock.seen(at + ms(later), 100 + number as u32, 20).moment();
                let parts = u64::from(tick) * 256 + u64::from(part);
                assert!(parts >= before, "never back");
                if number > 40 {
                    // 13 ms late on average, two ticks behind.
                    let even = (50.0 * number as f64 + *late as f64 + later as f64 - 113.0) / 50.0 + 100.0;
                    let off_ms = (parts as f64 / 256.0 - even).abs() * 50.0;
                    assert!(off_ms < 5.0, "{off_ms} ms off");
                }
                before = parts;
            }
        }
    }

    #[test]
    fn after_a_standstill_it_follows_at_once() {
        let mut clock = Clocks::default();
        hear(&mut clock, &[0; 10]);
        clock.heard(ms(9_000), 110, 20);
        clock.heard(ms(9_050), 111, 20);
        assert_eq!(clock.seen(ms(9_100), 111, 20).moment(), (110, 0));
    }

    #[test]
    fn no_time_and_no_tick_is_too_much() {
        let mut clock = Clocks::default();
        for (now, tick, tick_hz) in
            [(0, u32::MAX, 1), (u64::MAX, 0, 255), (1, u32::MAX, 0), (u64::MAX, u32::MAX, 255), (0, 0, 0)]
        {
            clock.heard(Nanos(now), tick, tick_hz);
            clock.view.set_delay(Nanos(now));
            let seen = clock.seen(Nanos(now), tick, tick_hz);
            assert_eq!(seen.newest_tick, tick);
        }
    }
}
