//! Host watch: whether a tick was missed because the host took a core away, or by our own doing.
//!
//! A server that holds its ticks must not be blamed for a hypervisor that gave its cores to somebody else, and must not
//! hide behind one. So missed ticks are all counted, and a part of them is counted again as the host's: those for which
//! both of this holds.
//!
//! 1. One of our cores was taken for [`TAKEN_MIN`] or more while the tick was due and had not started: by the kernel's
//!    records of steal ([`throng_platform::steal`]), or because it stood still for everybody, by the heartbeat
//!    ([`throng_platform::heartbeat`]), whose stalls are added up core by core.
//! 2. The tick would have been in time, had it started earlier by just as much. So 40 ms that are taken from a world
//!    that hangs for 2 s excuse 40 ms of it and no more, and only once.
//!
//! Both may tell of the same stretch: of a core, the one that says more counts, never the sum of the two.
//!
//! Everything else is our own, also where the host may well have been to blame:
//!
//! - A thread waited for a core that another process had. The kernel tells the wait, but not who had the core: another
//!   thread of ours, the bots of a load run, which are the load, or a stranger. To know that is to look at every process
//!   of the host, before and after.
//! - The whole machine stood still, nobody keeps account of it, and there is no heartbeat. On such a core all states of
//!   `/proc/stat` together add up to less than the time that went by. But so they do with nothing amiss, since they are
//!   samples: on a core that worked in bursts of 0.5 to 3 ms they were behind by up to 61 ms in a second, and ahead by up
//!   to 78; on one that was busy all the time, 10 either way.
//! - Several cores were taken in turn. The most of one core counts, not the sum: two cores that are gone at once delay a
//!   tick by one of the two.
//! - Less than 25 ms was taken.
//!
//! Theft while a tick runs that had started late for another reason is taken for theft before its start, up to the
//! reading that follows; it is then spent, and excuses nothing after it.
//!
//! Stalls have a begin and an end, and count with what of them lies in the time in question. The records of steal are
//! coarser: they come in steps of 10 ms, so three steps count: 20 to 40 ms. They do not tell whose thread was on the core.
//! Theft shortly before the time in question is taken for theft in it: back to the last reading. On a host that steals
//! a little all the time that is soon 25 ms (of 250 ms of a core, 30 and more were stolen 62 times in 25 minutes of two
//! cores), so there the records are read more often.
//!
//! Owned by the frame thread. Cost: a comparison per frame and a load per core, and a reading of the records (27 us) in
//! frames in which a missed tick comes home; besides, four times a second, and fifty times where the host steals. Never
//! allocates after its start.

use std::{collections::VecDeque, sync::Arc};

use throng_platform::{
    clock::Clock,
    steal::{CoreStall, StealRecords},
    time::Nanos,
};

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

/// Stalls that are kept: on 64 cores that stand still at once, four times in a row.
const STALLS_KEPT: usize = 256;

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
    /// The last ones, as they were told.
    stalls: VecDeque<CoreStall>,
    /// By core, for the time that was asked about last.
    stalled: Vec<Nanos>,
    /// Not taken yet.
    stall_counts: StallCounts,
}

/// What stalls there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StallCounts {
    pub stalls: u64,
    pub stalled: Nanos,
    pub longest: Nanos,
}

impl HostWatch {
    pub fn new(mut records: Box<dyn StealRecords>, clock: Arc<dyn Clock>) -> Self {
        let first = Reading { at: clock.now(), stolen: records.read().to_vec() };
        Self {
            records,
            clock,
            stalled: vec![Nanos::ZERO; first.stolen.len()],
            readings: vec![first; READINGS_KEPT].into(),
            looks_closely_until: Nanos::ZERO,
            stalls: VecDeque::with_capacity(STALLS_KEPT),
            stall_counts: StallCounts::default(),
        }
    }

    /// Cores whose stalls are told.
    pub fn stall_cores(&self) -> usize {
        self.records.stall_cores()
    }

    /// Stalls that were told since the last call. Once a frame.
    pub fn take_stall_counts(&mut self) -> StallCounts {
        self.hear_of_stalls();
        std::mem::take(&mut self.stall_counts)
    }

    fn hear_of_stalls(&mut self) {
        let Self { records, stalls, stall_counts, .. } = self;
        records.take_stalls(&mut |stall| {
            let length = stall.end.saturating_sub(stall.begin);
            stall_counts.stalls += 1;
            stall_counts.stalled += length;
            stall_counts.longest = stall_counts.longest.max(length);
            if stalls.len() == STALLS_KEPT {
                stalls.pop_front();
            }
            stalls.push_back(stall);
        });
    }

    /// Adds up for how long each core stood still within a time. In one pass: a stall makes the ticks of a thousand
    /// worlds late at once.
    fn add_up_stalls(&mut self, from: Nanos, to: Nanos) {
        self.stalled.fill(Nanos::ZERO);
        for stall in &self.stalls {
            if let Some(sum) = self.stalled.get_mut(stall.core) {
                *sum += stall.end.min(to).saturating_sub(stall.begin.max(from));
            }
        }
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
        self.hear_of_stalls();
        self.add_up_stalls(from, started);
        let before = self.readings.partition_point(|reading| reading.at <= from).saturating_sub(1);
        let after = self.readings.partition_point(|reading| reading.at < started).min(READINGS_KEPT - 1);
        let (before, after) = (&self.readings[before], &self.readings[after]);
        let stolen = after.stolen.iter().zip(&before.stolen).map(|(after, before)| after.saturating_sub(*before));
        let by_core = stolen.zip(&self.stalled).map(|(stolen, stalled)| stolen.max(*stalled));
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

    /// A tick starts 60 ms late, and meanwhile cores stood still: core, begin and end in ms of these 60, which may be
    /// before them; and this was stolen of the first one.
    #[track_caller]
    fn check_stalls(stalls: &[(usize, i64, i64)], stolen_ms: u64, expect: (u64, u64)) {
        let mut scene = Scene::new();
        scene.steady_ms(1_000);
        let due = scene.clock.now();
        let at = |ms: i64| Nanos(due.0.saturating_add_signed(ms * 1_000_000));
        scene.pass(60, [stolen_ms, 0]);
        for &(core, begin_ms, end_ms) in stalls {
            scene.steal.stall(CoreStall { core, begin: at(begin_ms), end: at(end_ms) });
        }
        assert_eq!(scene.starts_late_by(60), expect);
    }

    #[test]
    fn a_core_that_stood_still_was_the_hosts_without_any_record_of_steal() {
        check_stalls(&[(0, 5, 35)], 0, (3, 30));
        check_stalls(&[(1, 0, 60)], 0, (6, 60));
        check_stalls(&[(0, 5, 29)], 0, (0, 0));
        // Short ones add up, each core's by themselves.
        check_stalls(&[(0, 0, 15), (0, 20, 35)], 0, (3, 30));
        check_stalls(&[(0, 0, 15), (1, 20, 35)], 0, (0, 0));
    }

    #[test]
    fn of_a_stall_what_lies_in_the_time_counts() {
        check_stalls(&[(0, -40, -5)], 0, (0, 0));
        check_stalls(&[(0, -40, 30)], 0, (3, 30));
        // Another core was still gone when the tick started.
        check_stalls(&[(1, 30, 90)], 0, (3, 30));
    }

    #[test]
    fn what_both_records_tell_counts_once() {
        check_stalls(&[(0, 0, 30)], 30, (3, 30));
        check_stalls(&[(0, 0, 30)], 50, (5, 50));
        check_stalls(&[(0, 0, 15)], 20, (0, 0));
    }

    #[test]
    fn a_stall_excuses_once() {
        let mut scene = Scene::new();
        scene.steady_ms(100);
        let begin = scene.clock.now();
        scene.pass(50, [0, 0]);
        scene.steal.stall(CoreStall { core: 0, begin, end: scene.clock.now() });
        assert_eq!(scene.starts_late_by(50), (5, 50));
        // Every world that was late for it.
        assert_eq!(scene.starts_late_by(40), (4, 40));
        scene.pass(60, [0, 0]);
        assert_eq!(scene.starts_late_by(60), (0, 0));
    }

    #[test]
    fn stalls_are_counted_whatever_they_excuse() {
        let mut scene = Scene::new();
        let ms = Nanos::from_millis;
        (1..=300).for_each(|n| scene.steal.stall(CoreStall { core: 1, begin: ms(10 * n), end: ms(10 * n + 5) }));
        scene.steal.stall(CoreStall { core: 0, begin: ms(1), end: ms(9) });
        let counts = scene.watch.take_stall_counts();
        assert_eq!(counts, StallCounts { stalls: 301, stalled: ms(1_508), longest: ms(8) });
        assert_eq!(scene.watch.take_stall_counts(), StallCounts::default());
        assert_eq!(scene.watch.stalls.len(), STALLS_KEPT);
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
