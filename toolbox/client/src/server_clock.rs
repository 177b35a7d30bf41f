//! Server clock: which tick's snapshot comes now, as an even time.
//!
//! Snapshots come unevenly, and the two hosts' clocks do not run equally fast. So it is smoothed when each tick comes, over
//! some 0.4 s, and how much faster the server's ticks are than this host's clock says, over some 5 s. What is read is an
//! even time that follows:
//!
//! ```text
//!   offset by snapshots    . .   .  .  . |  .   .  . .        jitter; | the way has become longer
//!   what is believed       - - - - - - - - / - - - - -        smoothed
//!   what is read           ---------------__________          never back, at most 2 % faster or slower than time
//! ```
//!
//! | what happens | what it does |
//! |---|---|
//! | it is less than 0.5 s off | runs up to 2 % faster or slower, so that what is off is gone within seconds |
//! | it is 0.5 s or more behind: the world went on while nothing came | jumps there |
//! | snapshots come 0.5 s or more later or earlier than expected | begins anew: jumps there, or stands still until it is right |
//! | it is 0.5 s beyond the newest snapshot | stands still: nobody knows whether the world goes on |
//!
//! A server that has too little time slows a world's, and says so in its snapshots ([`TimeFactor`]). Then all of this is in
//! slowed time: from the moment at which such a snapshot comes, the client's time goes by at that factor, so the world's
//! snapshots come as evenly as ever and there is nothing to make up for, but that a world which had too little time for a second
//! lost some of it before it was slowed. In slow motion nobody sees a quarter more or less of it: so then what is off is gone by up to a
//! quarter of the time.
//!
//! The view of the world ([`view_clock`](crate::view_clock)) and the time of inputs ([`input_clock`](crate::input_clock))
//! are both taken from it, so they never drift apart.
//!
//! Sans-IO, on its client's thread; a few numbers, some additions for each snapshot and each reading.

use throng_platform::time::Nanos;
use throng_replication::TimeFactor;

/// How long what snapshots say is smoothed. (ns) Eight snapshots at 20 Hz, fifty at 128 Hz.
const SMOOTHING_NS: i64 = 400_000_000;

/// How slowly a drift is believed. (ns) Slow enough for jitter of 10 ms to look like a few hundred millionths.
const DRIFT_SMOOTHING_NS: i64 = 5_000_000_000;

/// A server whose ticks come this much faster or slower than they should has another trouble than its clock. (parts in
/// 10^9) Equal to what the reading may run faster.
const DRIFT_MAX_PPB: i64 = 20_000_000;

/// Farther off than this is not jitter: the world or the line has stood still. (ns)
const APART_MAX_NS: i64 = 500_000_000;

/// What is off is to be gone in this time, as far as the speed allows. (ns)
const CATCH_UP_NS: i64 = 1_000_000_000;

/// The reading runs faster or slower by one part in so many: 2 %, which nobody sees or hears.
const SPEED_PARTS: i64 = 50;

/// The same in a world whose time is slowed.
const SLOWED_SPEED_PARTS: i64 = 4;

const NS_PER_S: i64 = 1_000_000_000;

/// The clock of one stay in a world. All times of the server are nanoseconds since its tick 0.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    time: SlowedTime,
    line: Option<Line>,
    newest_tick: u32,
    reading: Option<Reading>,
    /// It has begun anew, and what was read is not right yet.
    is_apart: bool,
    jumps: u64,
}

/// The client's time as it goes where the world's is slowed: without a jump, and never back.
#[derive(Debug, Clone, Copy, Default)]
struct SlowedTime {
    factor: TimeFactor,
    /// What it was when the factor became that, by the clock and slowed.
    clock_ns: i64,
    slowed_ns: i64,
}

/// What is believed of when ticks come. All in slowed time, as what follows.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// When tick 0 would have come (ns of the client's time); before its beginning, mostly.
    offset_ns: i64,
    /// By how much the offset grows. (parts in 10^9)
    drift_ppb: i64,
    heard_at_ns: i64,
    heard_count: i64,
    /// Mean distance of what came from what was expected.
    jitter_ns: i64,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    at_ns: i64,
    server_ns: i64,
}

impl ServerClock {
    /// Another stay, with other ticks.
    pub fn left_world(&mut self) {
        *self = Self { jumps: self.jumps, ..Self::default() };
    }

    /// A snapshot of this tick has come, from which on time runs at `factor`. Further ones of a tick, and those that were
    /// overtaken, say nothing.
    pub fn heard(&mut self, now: Nanos, tick: u32, tick_hz: u8, factor: TimeFactor) {
        if self.line.is_some() && tick <= self.newest_tick {
            return;
        }
        let ticks = i64::from(tick - self.newest_tick.min(tick));
        self.newest_tick = tick;
        let now_ns = self.time.at(ns_of(now));
        self.time.run_at(factor, ns_of(now));
        let came_ns = now_ns.saturating_sub(server_ns_of(tick, tick_hz));
        self.line = Some(match self.line {
            Some(line) => line.follow(now_ns, came_ns, ticks * period_ns(tick_hz)).unwrap_or_else(|| {
                self.jumps += 1;
                self.is_apart = true;
                Line { jitter_ns: line.jitter_ns, ..Line::new(now_ns, came_ns) }
            }),
            None => Line::new(now_ns, came_ns),
        });
    }

    /// The time of the server whose snapshot comes now, if snapshots come as they mostly do. (ns since its tick 0) Never
    /// less than it was; a `now` that is earlier than the last one counts as that one. `None` before the first
    /// snapshot.
    pub fn read(&mut self, now: Nanos, tick_hz: u8) -> Option<i64> {
        // No time counts twice.
        let now_ns = self.reading.map_or(i64::MIN, |before| before.at_ns).max(self.time.at(ns_of(now)));
        let line = self.line?;
        let right_ns = now_ns.saturating_sub(line.offset_at(now_ns));
        let followed_ns = match self.reading {
            None => right_ns,
            Some(before) if self.is_apart => before.server_ns.max(right_ns),
            Some(before) => before.follow(now_ns, right_ns, line.drift_ppb, self.time.speed_parts()),
        };
        self.is_apart &= followed_ns > right_ns;
        let server_ns = followed_ns.min(server_ns_of(self.newest_tick, tick_hz).saturating_add(APART_MAX_NS));
        self.reading = Some(Reading { at_ns: now_ns, server_ns });
        Some(server_ns)
    }

    /// How fast the world's time runs, as far as is known.
    pub fn time_factor(&self) -> TimeFactor {
        self.time.factor
    }

    /// How far off the even time snapshots come on average. (ns)
    pub fn jitter_ns(&self) -> i64 {
        self.line.map_or(0, |line| line.jitter_ns)
    }

    /// How often it was so far off that it began anew, in all stays.
    pub fn jumps(&self) -> u64 {
        self.jumps
    }
}

impl SlowedTime {
    fn at(self, clock_ns: i64) -> i64 {
        if self.factor.is_usual() && self.clock_ns == self.slowed_ns {
            return clock_ns;
        }
        let since_ns = clock_ns.saturating_sub(self.clock_ns);
        self.slowed_ns.saturating_add(part_of(since_ns, self.factor.percent().into(), 100))
    }

    /// The reading runs faster or slower by one part in so many.
    fn speed_parts(self) -> i64 {
        if self.factor.is_usual() { SPEED_PARTS } else { SLOWED_SPEED_PARTS }
    }

    fn run_at(&mut self, factor: TimeFactor, clock_ns: i64) {
        if factor != self.factor {
            *self = Self { factor, clock_ns, slowed_ns: self.at(clock_ns) };
        }
    }
}

impl Line {
    fn new(now_ns: i64, came_ns: i64) -> Self {
        Self { offset_ns: came_ns, drift_ppb: 0, heard_at_ns: now_ns, heard_count: 1, jitter_ns: 0 }
    }

    fn offset_at(&self, now_ns: i64) -> i64 {
        let since_ns = now_ns.saturating_sub(self.heard_at_ns).clamp(-APART_MAX_NS, APART_MAX_NS);
        self.offset_ns.saturating_add(part_of(since_ns, self.drift_ppb, NS_PER_S))
    }

    /// Takes in a snapshot that is `ticks_ns` of ticks newer than the one before it. `None`: it is too far off.
    fn follow(self, now_ns: i64, came_ns: i64, ticks_ns: i64) -> Option<Self> {
        let expected_ns = self.offset_at(now_ns);
        let off_ns = came_ns.saturating_sub(expected_ns);
        if off_ns.saturating_abs() >= APART_MAX_NS {
            return None;
        }
        let heard_count = self.heard_count.saturating_add(1);
        // The first ones are averaged, so that an odd first one is soon forgotten; and at most half of one is believed, so
        // that a slow world's snapshots are smoothed, too.
        let share_ns = ticks_ns.max(SMOOTHING_NS / heard_count).min(SMOOTHING_NS / 2);
        let drift_ns = part_of(off_ns, ticks_ns.min(SMOOTHING_NS), DRIFT_SMOOTHING_NS);
        let drift_ppb = self.drift_ppb + part_of(drift_ns, NS_PER_S, DRIFT_SMOOTHING_NS);
        Some(Self {
            offset_ns: expected_ns + part_of(off_ns, share_ns, SMOOTHING_NS),
            drift_ppb: drift_ppb.clamp(-DRIFT_MAX_PPB, DRIFT_MAX_PPB),
            heard_at_ns: now_ns,
            heard_count,
            jitter_ns: self.jitter_ns + part_of(off_ns.abs() - self.jitter_ns, share_ns, SMOOTHING_NS),
        })
    }
}

impl Reading {
    /// What is to be read next where `right_ns` would be right, and falls behind time by the drift. Never less than before.
    fn follow(self, now_ns: i64, right_ns: i64, drift_ppb: i64, speed_parts: i64) -> i64 {
        let elapsed_ns = now_ns.saturating_sub(self.at_ns).max(0);
        let steady_ns = self.server_ns.saturating_add(elapsed_ns);
        let off_ns = right_ns.saturating_sub(steady_ns);
        if off_ns >= APART_MAX_NS {
            return right_ns;
        }
        let drift_ns = part_of(elapsed_ns, drift_ppb, NS_PER_S);
        let faster_ns = part_of(off_ns, elapsed_ns.min(CATCH_UP_NS), CATCH_UP_NS) - drift_ns;
        let faster_ns_max = elapsed_ns / speed_parts;
        steady_ns.saturating_add(faster_ns.clamp(-faster_ns_max, faster_ns_max))
    }
}

/// `value * part / whole`, towards zero.
fn part_of(value: i64, part: i64, whole: i64) -> i64 {
    (i128::from(value) * i128::from(part) / i128::from(whole)) as i64
}

/// The time at which a tick begins. (ns since tick 0)
pub(crate) fn server_ns_of(tick: u32, tick_hz: u8) -> i64 {
    i64::from(tick) * NS_PER_S / i64::from(tick_hz.max(1))
}

/// How long a tick takes. (ns)
pub(crate) fn period_ns(tick_hz: u8) -> i64 {
    NS_PER_S / i64::from(tick_hz.max(1))
}

/// A time as a number that can be taken from another: 73 years are enough.
pub(crate) fn ns_of(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const HZ: u8 = 50;

    /// A server that ticks, a line that carries, and a client that looks once a millisecond.
    struct Rig {
        clock: ServerClock,
        rng: ChaCha8Rng,
        /// What the client's clock says.
        now_ns: i64,
        /// Snapshots on their way: when they come, and of which tick.
        on_their_way: Vec<(i64, u32, TimeFactor)>,
        next_tick: u32,
        /// The server's own time, and how much faster it runs. (parts in 10^6)
        server_ns: i64,
        fast_ppm: i64,
        way_ms: i64,
        jitter_ms: i64,
        is_silent: bool,
        /// How fast the server's time runs, and is to run from its next tick on.
        factor: TimeFactor,
        next_factor: TimeFactor,
        readings: Vec<i64>,
    }

    impl Rig {
        fn new(way_ms: i64, jitter_ms: i64) -> Self {
            Self {
                clock: ServerClock::default(),
                rng: ChaCha8Rng::seed_from_u64(5),
                now_ns: 7 * NS_PER_S,
                on_their_way: Vec::new(),
                next_tick: 5_000,
                server_ns: server_ns_of(5_000, HZ),
                fast_ppm: 0,
                way_ms,
                jitter_ms,
                is_silent: false,
                factor: TimeFactor::USUAL,
                next_factor: TimeFactor::USUAL,
                readings: Vec::new(),
            }
        }

        /// Runs so long; returns how far off the reading is at most, from that a way without jitter would give. (us)
        fn run(&mut self, ms: i64) -> i64 {
            let mut off_us_max = 0;
            for _ in 0..ms {
                self.now_ns += 1_000_000;
                self.server_ns += (1_000_000 + self.fast_ppm) * i64::from(self.factor.percent()) / 100;
                while self.server_ns >= server_ns_of(self.next_tick, HZ) {
                    self.factor = self.next_factor;
                    let jitter_us = self.rng.random_range(0..=2_000 * self.jitter_ms);
                    let way_ns = self.way_ms * 1_000_000 + (jitter_us - 1_000 * self.jitter_ms) * 1_000;
                    if !self.is_silent {
                        self.on_their_way.push((self.now_ns + way_ns.max(0), self.next_tick, self.factor));
                    }
                    self.next_tick += 1;
                }
                let now = Nanos(self.now_ns as u64);
                let now_ns = self.now_ns;
                for (_, tick, factor) in self.on_their_way.extract_if(.., |(at_ns, ..)| *at_ns <= now_ns) {
                    self.clock.heard(now, tick, HZ, factor);
                }
                if let Some(reading) = self.clock.read(now, HZ) {
                    self.readings.push(reading);
                    let way_ns = self.way_ms * 1_000_000 * i64::from(self.factor.percent()) / 100;
                    let right_ns = self.server_ns - way_ns;
                    off_us_max = off_us_max.max((reading - right_ns).abs() / 1_000);
                }
            }
            off_us_max
        }

        /// Asserts that the clock never went back, nor was more than 2 % faster or slower than time.
        fn check_is_even(&self) {
            for pair in self.readings.windows(2) {
                let step_ns = pair[1] - pair[0];
                assert!((980_000..=1_020_000).contains(&step_ns), "{step_ns} ns in a millisecond");
            }
        }
    }

    #[test]
    fn on_a_steady_line_it_is_right_from_the_first_snapshot_on() {
        let mut rig = Rig::new(40, 0);
        assert!(rig.run(10_000) <= 1_000, "within the millisecond in which a tick ends");
        rig.check_is_even();
        assert_eq!(rig.clock.jumps(), 0);
    }

    /// Promise: the clock is even however unevenly snapshots come.
    #[test]
    fn jitter_is_smoothed_and_it_never_goes_back() {
        let mut rig = Rig::new(60, 30);
        rig.run(5_000);
        let off_us = rig.run(30_000);
        // What overtakes others counts, and what was overtaken does not: that makes 6 ms.
        assert!(off_us < 15_000, "{off_us} us off with 30 ms of jitter each way");
        rig.check_is_even();
        let jitter_ms = rig.clock.jitter_ns() / 1_000_000;
        assert!((10..=20).contains(&jitter_ms), "{jitter_ms} ms: half of 30 on average");
    }

    #[test]
    fn a_way_that_becomes_longer_or_shorter_is_followed_without_a_jump() {
        for (way_ms, then_ms) in [(40, 140), (140, 40)] {
            let mut rig = Rig::new(way_ms, 0);
            rig.run(3_000);
            rig.way_ms = then_ms;
            // 100 ms at 20 ms a second, and what is left in another second or two.
            rig.run(9_000);
            assert!(rig.run(1_000) <= 5_000, "{way_ms} to {then_ms}");
            rig.check_is_even();
            assert_eq!(rig.clock.jumps(), 0);
        }
    }

    #[test]
    fn a_server_whose_clock_is_faster_or_slower_is_followed() {
        for fast_ppm in [-5_000, -100, 100, 5_000] {
            let mut rig = Rig::new(40, 5);
            rig.fast_ppm = fast_ppm;
            rig.run(240_000);
            let off_us = rig.run(10_000);
            // Without the drift it would be 7 ms behind a clock that is 5,000 millionths faster.
            assert!(off_us < 4_000, "{fast_ppm}: {off_us} us");
            rig.check_is_even();
        }
    }

    #[test]
    fn it_stands_still_in_silence_and_jumps_when_the_world_went_on() {
        let mut rig = Rig::new(40, 0);
        rig.run(2_000);
        rig.is_silent = true;
        rig.run(3_000);
        let silent = rig.readings[rig.readings.len() - 1];
        let newest = server_ns_of(rig.clock.newest_tick, HZ);
        assert_eq!(silent, newest + APART_MAX_NS, "no farther than it may be off");
        rig.is_silent = false;
        rig.run(100);
        let after = rig.readings[rig.readings.len() - 1];
        assert!(after > silent + 2 * NS_PER_S, "it is there at once");
        assert!(rig.readings.windows(2).all(|pair| pair[1] >= pair[0]));
        assert!(rig.run(1_000) <= 1_000);
    }

    /// The world stood still while time went on: what was read ahead is waited for.
    #[test]
    fn a_world_that_stood_still_is_waited_for_and_nothing_goes_back() {
        let mut rig = Rig::new(40, 0);
        rig.run(2_000);
        rig.fast_ppm = -1_000_000;
        rig.run(3_000);
        rig.fast_ppm = 0;
        rig.run(3_000);
        assert!(rig.readings.windows(2).all(|pair| pair[1] >= pair[0]), "never back");
        assert_eq!(rig.clock.jumps(), 1, "its ticks come three seconds later than they did");
        assert!(rig.run(1_000) <= 1_000, "and it is right again");
    }

    /// Promise: whoever asks with an earlier time between two later ones does not make the clock run faster.
    #[test]
    fn times_that_go_to_and_fro_count_once() {
        let mut rig = Rig::new(40, 0);
        rig.run(2_000);
        let begin_ns = rig.now_ns;
        let mut read = |ns: i64| rig.clock.read(Nanos(ns as u64), HZ).expect("it has heard snapshots");
        let before = read(begin_ns);
        for step in 1..=100 {
            let later_ns = begin_ns + step * 1_000_000;
            let later = read(later_ns);
            assert_eq!(read(later_ns - 30_000_000), later, "an earlier time counts as the later one");
        }
        let elapsed_ns = read(begin_ns + 100_000_000) - before;
        assert!((98_000_000..=102_000_000).contains(&elapsed_ns), "{elapsed_ns} ns in 100 ms");
    }

    /// Promise: whatever comes when, and whenever it is read, it never goes back, and stands no farther than it may beyond the
    /// newest snapshot. Ways become longer and shorter, by little and by much, faster than the clock can follow; worlds and
    /// lines stand still; and programs ask with times that go to and fro.
    #[test]
    fn it_never_goes_back_whatever_comes_and_whenever_it_is_read() {
        let (mut jumps, mut waits) = (0, 0);
        for seed in 0..100 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut clock = ServerClock::default();
            let (mut now_ms, mut way_ms) = (100_000_i64, 1_000_i64);
            let mut before_ns = i64::MIN;
            for step in 0..4_000 {
                now_ms += if rng.random_bool(0.002) { rng.random_range(0..3_000) } else { rng.random_range(0..20) };
                if rng.random_bool(0.02) {
                    // Mostly too little for it to begin anew.
                    let most_ms = if rng.random_bool(0.1) { 3_000 } else { 450 };
                    way_ms = (way_ms + rng.random_range(-most_ms..=most_ms)).clamp(0, 5_000);
                }
                let jitter_ms = rng.random_range(0..30);
                let tick = (now_ms - way_ms - jitter_ms) * i64::from(HZ) / 1_000;
                clock.heard(Nanos(now_ms as u64 * 1_000_000), tick as u32, HZ, TimeFactor::USUAL);
                let read_ms = if rng.random_bool(0.2) { now_ms - rng.random_range(0..500) } else { now_ms };
                let reading_ns = clock.read(Nanos(read_ms as u64 * 1_000_000), HZ).expect("it has heard snapshots");
                assert!(reading_ns >= before_ns, "seed {seed}, step {step}: back by {} ns", before_ns - reading_ns);
                assert!(reading_ns <= server_ns_of(clock.newest_tick, HZ) + APART_MAX_NS, "seed {seed}, step {step}");
                waits += u32::from(reading_ns == before_ns);
                before_ns = reading_ns;
            }
            jumps += clock.jumps();
        }
        assert!(jumps > 100 && waits > 1_000, "all of it was tried: {jumps} jumps, {waits} waits");
    }

    /// A server whose ticks take too long is slower than the clock may become.
    #[test]
    fn a_server_that_does_not_keep_its_rate_is_not_run_away_from() {
        let mut rig = Rig::new(40, 0);
        rig.run(2_000);
        rig.fast_ppm = -200_000;
        rig.run(20_000);
        assert!(rig.readings.windows(2).all(|pair| pair[1] >= pair[0]), "never back");
        let newest = server_ns_of(rig.clock.newest_tick, HZ);
        assert!(rig.readings[rig.readings.len() - 1] <= newest + APART_MAX_NS);
    }

    /// Promise: where the world's time is slowed the clock goes as slowly, from the tick on that says so; nothing piles up
    /// meanwhile, and nothing is to be made up for when it is over.
    #[test]
    fn a_world_whose_time_is_slowed_is_followed_without_corrections() {
        for (way_ms, jitter_ms) in [(0, 0), (40, 0), (40, 5)] {
            let mut rig = Rig::new(way_ms, jitter_ms);
            rig.run(5_000);
            for percent in [62, 23, 10, 37, 100, 10, 100] {
                rig.next_factor = TimeFactor::from_percent(percent);
                // Until that is heard the clock runs on: for a tick that is under way, and the way itself.
                rig.run(1_000);
                let before = rig.readings[rig.readings.len() - 1];
                let off_us = rig.run(20_000);
                let went_ms = (rig.readings[rig.readings.len() - 1] - before) / 1_000_000;
                assert_eq!(rig.clock.time_factor().percent(), percent as u8);
                let expect_ms = 200 * i64::from(percent);
                assert!((went_ms - expect_ms).abs() <= 60, "{percent} %: {went_ms} ms of 20 s");
                // A tick's worth, and what snapshots differ by.
                assert!(off_us <= 20_000 + 3_000 * jitter_ms, "{percent} %, {way_ms} ms: {off_us} us off");
            }
            assert!(rig.readings.windows(2).all(|pair| pair[1] >= pair[0]), "never back");
            assert_eq!(rig.clock.jumps(), 0);
        }
    }

    /// What the promise is held against: a client that is not told runs ahead of the world, and begins anew again and again.
    #[test]
    fn a_client_that_is_not_told_of_it_jumps() {
        let mut rig = Rig::new(40, 0);
        rig.run(5_000);
        rig.fast_ppm = -620_000;
        rig.run(20_000);
        assert!(rig.clock.jumps() >= 10, "{}", rig.clock.jumps());
    }

    #[test]
    fn another_stay_begins_anew() {
        let mut rig = Rig::new(40, 0);
        rig.run(2_000);
        rig.clock.left_world();
        assert_eq!(rig.clock.read(Nanos(rig.now_ns as u64), HZ), None);
        rig.clock.heard(Nanos(rig.now_ns as u64), 3, HZ, TimeFactor::USUAL);
        assert_eq!(rig.clock.read(Nanos(rig.now_ns as u64), HZ), Some(server_ns_of(3, HZ)));
    }
}
