//! Host watch: whether a tick was missed because the host took a core away, or by our own doing.
//!
//! A server that holds its ticks must not be blamed for a hypervisor that gave its cores to somebody else, and must not
//! hide behind one. So missed ticks are all counted, and a part of them is counted again as the host's: those for which
//! both of this holds.
//!
//! 1. One of our cores was stolen for [`TAKEN_MIN`] or more, by the kernel's records ([`throng_platform::steal`]), while
//!    the tick was due and had not started.
//! 2. The tick would have been in time, had it started earlier by just as much. So 40 ms that are stolen from a world
//!    that hangs for 2 s excuse 40 ms of it and no more, and only once.
//!
//! Everything else is our own, also where the host may well have been to blame:
//!
//! - A thread waited for a core that another process had. The kernel tells the wait, but not who had the core: another
//!   thread of ours, the bots of a load run, which are the load, or a stranger. To know that is to look at every process
//!   of the host, before and after.
//! - The whole machine stood still, and nobody keeps account of it. On such a core all states of `/proc/stat` together
//!   add up to less than the time that went by. But so they do with nothing amiss, since they are samples: on a core
//!   that worked in bursts of 0.5 to 3 ms they were behind by up to 61 ms in a second, and ahead by up to 78; on one that
//!   was busy all the time, 10 either way.
//! - Several cores were stolen in turn. The most of one core counts, not the sum: two cores that are gone at once delay a
//!   tick by one of the two.
//! - Less than 25 ms was stolen.
//!
//! Theft while a tick runs that had started late for another reason is taken for theft before its start, up to the
//! reading that follows; it is then spent, and excuses nothing after it.
//!
//! The records come in steps of 10 ms, so three steps count: 20 to 40 ms. They do not tell whose thread was on the core.
//! Theft shortly before the time in question is taken for theft in it: back to the last reading. On a host that steals
//! a little all the time that is soon 25 ms (of 250 ms of a core, 30 and more were stolen 62 times in 25 minutes of two
//! cores), so there the records are read more often.
//!
//! Owned by the frame thread. Cost: a comparison per frame, and a reading of the records (27 us) in frames in which a
//! missed tick comes home; besides, four times a second, and fifty times where the host steals. Never allocates after its
//! start.

use std::{collections::VecDeque, sync::Arc};

use throng_platform::{clock::Clock, steal::StealRecords, time::Nanos};

/// What the host takes of a core is its doing from here on.
pub(crate) const TAKEN_MIN: Nanos = Nanos::from_millis(25);

/// The records are read so often with nothing amiss. Less often, and older theft is taken for new; more often, and a
/// reading of a host with many cores is a share of the frame thread's time.
const LOOK_PERIOD: Nanos = Nanos::from_millis(250);

/// And so often for a [`LOOK_PERIOD`] after theft was seen: two steps of the records.
const CLOSE_LOOK_PERIOD: Nanos = Nanos::from_millis(20);

/// Readings that are kept: half a second of 128 Hz in which every frame has missed ticks, and longer otherwise. Of a
/// time before the oldest, only the theft since then is known.
const READINGS_KEPT: usize = 64;

/// What the records said at one moment.
#[derive(Clone)]
struct Reading {
    at: Nanos,
    /// By core, since the host's start.
    stolen: Vec<Nanos>,
}

pub(crate) struct HostWatch {
    records: Box<dyn StealRecords>,
    clock: Arc<dyn Clock>,
    /// The oldest first; always [`READINGS_KEPT`].
    readings: VecDeque<Reading>,
    /// Theft was seen a short while ago.
    looks_closely_until: Nanos,
}

impl HostWatch {
    pub fn new(mut records: Box<dyn StealRecords>, clock: Arc<dyn Clock>) -> Self {
        let first = Reading { at: clock.now(), stolen: records.read().to_vec() };
        Self { records, clock, readings: vec![first; READINGS_KEPT].into(), looks_closely_until: Nanos::ZERO }
    }

    /// Reads the records if the last reading is old. Once a frame.
    pub fn look_if_due(&mut self, now: Nanos) {
        let period = if now < self.looks_closely_until { CLOSE_LOOK_PERIOD } else { LOOK_PERIOD };
        if now >= self.newest_at() + period {
            self.look(now);
        }
    }

    /// Of `missed` ticks of a world whose next one started at `started`, those that are the host's, for what it took
    /// since `from`. `missed_if_at` says how many one that started then had missed.
    pub fn share_of(
        &mut self,
        missed: u64,
        from: Nanos,
        started: Nanos,
        missed_if_at: impl Fn(Nanos) -> u64,
    ) -> HostShare {
        if self.newest_at() < started {
            self.look(self.clock.now());
        }
        let before = self.readings.partition_point(|reading| reading.at <= from).saturating_sub(1);
        let after = self.readings.partition_point(|reading| reading.at < started).min(READINGS_KEPT - 1);
        let (before, after) = (&self.readings[before], &self.readings[after]);
        let by_core = after.stolen.iter().zip(&before.stolen).map(|(after, before)| after.saturating_sub(*before));
        let taken = by_core.max().unwrap_or_default();
        if taken < TAKEN_MIN {
            return HostShare::default();
        }
        match missed - missed_if_at(started.saturating_sub(taken)) {
            0 => HostShare::default(),
            missed => HostShare { missed, taken, until: after.at },
        }
    }

    fn look(&mut self, now: Nanos) {
        let stolen = self.records.read();
        if self.readings[READINGS_KEPT - 1].stolen != stolen {
            self.looks_closely_until = now + LOOK_PERIOD;
        }
        // The oldest makes room.
        self.readings.rotate_left(1);
        let reading = &mut self.readings[READINGS_KEPT - 1];
        reading.at = now;
        reading.stolen.copy_from_slice(stolen);
    }

    fn newest_at(&self) -> Nanos {
        self.readings[READINGS_KEPT - 1].at
    }
}

/// What of a miss is the host's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HostShare {
    pub missed: u64,
    /// The most that it took of one core for that, and up to when; zero if nothing is the host's. What it took until
    /// then is no excuse for the world's next ticks.
    pub taken: Nanos,
    pub until: Nanos,
}

#[cfg(test)]
mod tests {
    use throng_platform::{clock::ManualClock, steal::ManualSteal};

    use super::*;

    /// A watch over two cores whose records and clock the test moves.
    struct Scene {
        clock: ManualClock,
        steal: ManualSteal,
        watch: HostWatch,
    }

    const PERIOD_MS: u64 = 10;

    impl Scene {
        fn new() -> Self {
            let (clock, steal) = (ManualClock::new(), ManualSteal::new(2));
            let watch = HostWatch::new(Box::new(steal.clone()), Arc::new(clock.clone()));
            Self { clock, steal, watch }
        }

        /// Time goes by, of which so much is stolen of each core.
        fn pass(&mut self, time_ms: u64, stolen_ms: [u64; 2]) {
            self.clock.advance(Nanos::from_millis(time_ms));
            for (core, stolen_ms) in stolen_ms.into_iter().enumerate() {
                self.steal.steal(core, Nanos::from_millis(stolen_ms));
            }
        }

        /// Frames with nothing amiss.
        fn steady_ms(&mut self, time_ms: u64) {
            for _ in 0..time_ms {
                self.pass(1, [0, 0]);
                self.watch.look_if_due(self.clock.now());
            }
        }

        /// A tick that was due so long ago starts now: missed are all whole periods. Gives those of the host, and what
        /// it took (ms).
        fn starts_late_by(&mut self, late_ms: u64) -> (u64, u64) {
            let started = self.clock.now();
            let due = started - Nanos::from_millis(late_ms);
            let missed_if_at = |at: Nanos| at.saturating_sub(due).as_micros() / (PERIOD_MS * 1_000);
            let share = self.watch.share_of(missed_if_at(started), due, started, missed_if_at);
            (share.missed, share.taken.as_micros() / 1_000)
        }
    }

    /// A tick starts 60 ms late, which is six periods, and meanwhile this was stolen.
    #[track_caller]
    fn check(stolen_ms: [u64; 2], expect: (u64, u64)) {
        let mut scene = Scene::new();
        scene.steady_ms(1_000);
        scene.pass(60, stolen_ms);
        assert_eq!(scene.starts_late_by(60), expect);
    }

    #[test]
    fn a_miss_is_the_hosts_from_25_ms_on() {
        check([0, 0], (0, 0));
        check([20, 0], (0, 0));
        check([24, 24], (0, 0));
        check([30, 0], (3, 30));
        check([0, 60], (6, 60));
        check([25, 0], (3, 25));
    }

    #[test]
    fn cores_that_are_stolen_at_once_count_once() {
        check([40, 30], (4, 40));
    }

    #[test]
    fn theft_excuses_no_more_than_it_took() {
        let mut scene = Scene::new();
        scene.steady_ms(100);
        scene.pass(2_000, [40, 0]);
        assert_eq!(scene.starts_late_by(2_000), (4, 40));
    }

    #[test]
    fn time_that_goes_by_without_a_record_is_our_own() {
        let mut scene = Scene::new();
        scene.steady_ms(100);
        scene.pass(300, [0, 0]);
        assert_eq!(scene.starts_late_by(300), (0, 0));
    }

    #[test]
    fn every_world_that_was_late_for_the_same_theft_is_excused() {
        let mut scene = Scene::new();
        scene.steady_ms(100);
        scene.pass(50, [50, 0]);
        assert_eq!(scene.starts_late_by(50), (5, 50));
        assert_eq!(scene.starts_late_by(40), (4, 50));
        // In a later frame.
        scene.pass(8, [0, 0]);
        assert_eq!(scene.starts_late_by(58), (5, 50));
    }

    #[test]
    fn a_theft_is_over_when_it_is_over() {
        let mut scene = Scene::new();
        scene.steady_ms(100);
        scene.pass(50, [50, 0]);
        assert_eq!(scene.starts_late_by(50), (5, 50));
        scene.pass(1, [0, 0]);
        scene.pass(60, [0, 0]);
        assert_eq!(scene.starts_late_by(60), (0, 0), "the records were read when the host was to blame");

        let mut scene = Scene::new();
        scene.steady_ms(100);
        scene.pass(10, [50, 0]);
        scene.steady_ms(LOOK_PERIOD.as_micros() / 1_000);
        scene.pass(60, [0, 0]);
        assert_eq!(scene.starts_late_by(60), (0, 0), "and a quarter of a second later anyway");
    }

    /// An eighth of a core makes 30 ms in 250, but not in 60, however long ago the last reading was.
    #[test]
    fn a_host_that_steals_a_little_all_the_time_does_not_excuse_us() {
        for thefts in 20..30 {
            let mut scene = Scene::new();
            for _ in 0..thefts {
                scene.pass(0, [10, 0]);
                scene.steady_ms(80);
            }
            scene.pass(60, [10, 0]);
            assert_eq!(scene.starts_late_by(60), (0, 0), "after {thefts} thefts");
        }
    }

    #[test]
    fn of_what_is_older_than_all_readings_the_later_part_is_known() {
        let mut scene = Scene::new();
        scene.pass(100, [40, 0]);
        for _ in 0..READINGS_KEPT {
            scene.steady_ms(250);
        }
        scene.pass(30, [30, 0]);
        let since_start_ms = scene.clock.now().as_micros() / 1_000;
        assert_eq!(scene.starts_late_by(since_start_ms), (3, 30));
    }
}
