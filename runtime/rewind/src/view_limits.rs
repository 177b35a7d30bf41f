//! View limits: how far into the past a shooter is believed, whatever he says.
//!
//! An input says at which moment of the world it was made. Nobody can check that by itself, so it is held against what
//! the server knows: how long this client's line takes, which snapshot it has acknowledged, what was said with earlier
//! inputs, and how far back anybody may shoot at all. What is out of bounds is moved to the nearest moment in bounds, and
//! said so: a player on a bad line still hits what stands still, and whoever delays his packets on purpose gains nothing
//! beyond the clamp.
//!
//! ```text
//!   clamp            latency + interpolation + slack        newest tick
//!     |                        |                                |
//! ----+------------------------+----------- believed -----------+---->
//!                   ^ acknowledged snapshot - interpolation - slack, where that is later
//!                                    ^ never before what this shooter was shown already
//! ```
//!
//! The round trip is smoothed, and a client that answers late for a while makes it long: by itself it would then explain
//! views that are older than what its player was shown. A snapshot that the client has acknowledged it had, so it shows
//! nothing older than that one and its interpolation. Who wants to claim an old view must leave newer snapshots
//! unacknowledged at that time, which is a slow line in every respect, and the clamp is for those.
//!
//! Reads no clock; keeps two moments for each shooter, in a value that lies with its player. Any thread, allocates
//! nothing.

use throng_pack::Pack;
use throng_platform::time::Nanos;

use crate::view_time::ViewTime;

/// What is believed of a kind of world's shooters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewLimits {
    /// Rate of the world whose ticks are meant (Hz, above 0).
    pub ticks_per_s: u16,
    /// The clamp: nobody shoots further back than this.
    ///
    /// Too low → players on long lines miss what they saw. Too high → players are hit long after they took cover.
    pub back_max: Nanos,
    /// How far behind its newest snapshot a client may draw the world.
    ///
    /// Too low → a client with a careful delay is moved forward. Too high → room to claim an older view than was seen.
    pub interpolation_max: Nanos,
    /// For jitter, and for ticks that inputs and snapshots waited for.
    pub slack: Nanos,
}

impl ViewLimits {
    /// 200 ms at most, of which 100 ms may be interpolation and 30 ms are slack.
    pub const fn new(ticks_per_s: u16) -> Self {
        Self {
            ticks_per_s,
            back_max: Nanos::from_millis(200),
            interpolation_max: Nanos::from_millis(100),
            slack: Nanos::from_millis(30),
        }
    }
}

/// What a shooter was shown last, and what he is known to have; with its player, for as long as that is in the world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pack)]
#[pack(name = "throng.shooter_view")]
pub struct ShooterView {
    newest: ViewTime,
    acked_tick: u32,
}

impl ShooterView {
    /// His client has acknowledged a snapshot of this tick. To be said ahead of [`ViewLimits::admit`]; without it the
    /// round trip alone is what a claim is held against. An earlier tick than before says nothing.
    pub fn acknowledged(&mut self, tick: u32) {
        self.acked_tick = self.acked_tick.max(tick);
    }

    /// The latest moment that was admitted of him, and the newest tick that his client has acknowledged: all that is
    /// kept, for a world's state hash.
    pub fn kept(&self) -> (ViewTime, u32) {
        let Self { newest, acked_tick } = *self;
        (newest, acked_tick)
    }
}

/// Whether a claim was believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewVerdict {
    /// As it was said.
    AsClaimed,
    /// After the newest tick: moved to that.
    Ahead,
    /// Older than this client's line explains, or than what it has acknowledged: moved forward.
    BeyondLatency,
    /// Older than anybody may see: moved forward.
    BeyondClamp,
    /// Before what this shooter was shown already: moved there.
    Backwards,
}

/// The moment at which a shot is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    pub at: ViewTime,
    /// Of several reasons to move it, the first in the order of the world's time.
    pub verdict: ViewVerdict,
}

impl ViewLimits {
    /// The moment at which an input is judged that was made at `claimed`, as its client says. `tick` is the newest that
    /// clients can have been told of: the one before the tick that is being run, also in a phase that is not recorded.
    /// `round_trip` is what the server has measured of this client's line, waiting for ticks included; what the client has
    /// acknowledged was said to `shooter`.
    ///
    /// Never before the clamp, never after `tick`, never before what was admitted of this shooter earlier.
    pub fn admit(&self, shooter: &mut ShooterView, tick: u32, claimed: ViewTime, round_trip: Nanos) -> Admitted {
        let newest = ViewTime::of_tick(tick);
        let before = |at: ViewTime, duration| at.before(ViewTime::parts_in(duration, self.ticks_per_s));
        let clamp = before(newest, self.back_max);
        let shown_late = self.interpolation_max.saturating_add(self.slack);
        // What a client acknowledges later than now, nobody has.
        let acked = ViewTime::of_tick(shooter.acked_tick).min(newest);
        let explained = before(newest, round_trip.saturating_add(shown_late)).max(before(acked, shown_late));
        let (at, verdict) = if claimed > newest {
            (newest, ViewVerdict::Ahead)
        } else if claimed < clamp {
            (clamp.max(explained), ViewVerdict::BeyondClamp)
        } else if claimed < explained {
            (explained, ViewVerdict::BeyondLatency)
        } else {
            (claimed, ViewVerdict::AsClaimed)
        };
        // A world that has gone back, which none does, believes nobody's future.
        let shown = shooter.newest.min(newest);
        let admitted =
            if at < shown { Admitted { at: shown, verdict: ViewVerdict::Backwards } } else { Admitted { at, verdict } };
        shooter.newest = admitted.at;
        admitted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: ViewLimits = ViewLimits::new(100);

    /// 10 ms are a tick; the world is at 1,000.
    #[track_caller]
    fn check(claimed_tick: u32, round_trip_ms: u64, expect_tick: u32, verdict: ViewVerdict) {
        let mut shooter = ShooterView::default();
        let claimed = ViewTime::of_tick(claimed_tick);
        let admitted = LIMITS.admit(&mut shooter, 1_000, claimed, Nanos::from_millis(round_trip_ms));
        assert_eq!(admitted, Admitted { at: ViewTime::of_tick(expect_tick), verdict });
    }

    #[test]
    fn what_the_line_explains_is_believed_and_no_more() {
        check(993, 20, 993, ViewVerdict::AsClaimed);
        check(985, 20, 985, ViewVerdict::AsClaimed);
        check(984, 20, 985, ViewVerdict::BeyondLatency);
        check(1_001, 20, 1_000, ViewVerdict::Ahead);
        check(1_000, 0, 1_000, ViewVerdict::AsClaimed);
        check(0, 20, 985, ViewVerdict::BeyondClamp);
    }

    /// Promise: nothing older than the clamp, however long the line is or is made to be.
    #[test]
    fn nobody_is_believed_beyond_the_clamp() {
        check(980, 500, 980, ViewVerdict::AsClaimed);
        check(979, 500, 980, ViewVerdict::BeyondClamp);
        check(0, u64::MAX / 1_000_000, 980, ViewVerdict::BeyondClamp);
    }

    /// Promise: a round trip that was made long explains no view that is older than what the client has acknowledged.
    #[test]
    fn who_has_acknowledged_a_newer_snapshot_is_not_believed_to_see_an_old_one() {
        let rtt = Nanos::from_millis(500);
        let check = |acked_ticks: &[u32], claimed_tick, expect_tick, verdict| {
            let mut shooter = ShooterView::default();
            acked_ticks.iter().for_each(|tick| shooter.acknowledged(*tick));
            let admitted = LIMITS.admit(&mut shooter, 1_000, ViewTime::of_tick(claimed_tick), rtt);
            assert_eq!(admitted, Admitted { at: ViewTime::of_tick(expect_tick), verdict });
        };
        check(&[], 981, 981, ViewVerdict::AsClaimed);
        check(&[998], 981, 985, ViewVerdict::BeyondLatency);
        check(&[998], 985, 985, ViewVerdict::AsClaimed);
        check(&[998, 990], 981, 985, ViewVerdict::BeyondLatency);
        check(&[998], 0, 985, ViewVerdict::BeyondClamp);
        check(&[950], 981, 981, ViewVerdict::AsClaimed);
        check(&[u32::MAX], 987, 987, ViewVerdict::AsClaimed);
        check(&[u32::MAX], 986, 987, ViewVerdict::BeyondLatency);
    }

    #[test]
    fn a_shooter_never_sees_the_same_moment_twice_from_the_other_side() {
        let mut shooter = ShooterView::default();
        let rtt = Nanos::from_millis(60);
        let mut admit = |tick, claimed| LIMITS.admit(&mut shooter, tick, claimed, rtt);
        assert_eq!(admit(1_000, ViewTime::new(992, 100)).verdict, ViewVerdict::AsClaimed);
        let back = admit(1_001, ViewTime::new(992, 99));
        assert_eq!(back, Admitted { at: ViewTime::new(992, 100), verdict: ViewVerdict::Backwards });
        assert_eq!(admit(1_001, ViewTime::new(992, 101)).verdict, ViewVerdict::AsClaimed);
    }

    proptest! {
        /// Promise: whatever a client says and however its line is, each of its views is within the clamp, is not in the
        /// future and is not before the last.
        #[test]
        fn every_view_is_within_bounds(
            claims in prop::collection::vec((any::<u32>(), 0_u32..3, any::<u8>(), any::<u64>(), any::<u32>()), 1..200),
            first_tick in any::<u32>(),
        ) {
            let mut shooter = ShooterView::default();
            let (mut tick, mut before) = (first_tick, ViewTime::default());
            let back_parts = ViewTime::parts_in(LIMITS.back_max, LIMITS.ticks_per_s);
            for (claimed, later, part, round_trip, acked) in claims {
                tick = tick.saturating_add(later);
                let near = if claimed % 2 == 0 { claimed } else { tick.saturating_sub(claimed % 64) };
                shooter.acknowledged(if acked.is_multiple_of(8) { acked } else { tick.saturating_sub(acked % 64) });
                let admitted = LIMITS.admit(&mut shooter, tick, ViewTime::new(near, part), Nanos(round_trip));
                prop_assert!(admitted.at <= ViewTime::of_tick(tick));
                prop_assert!(ViewTime::of_tick(tick).parts_since(admitted.at) <= back_parts);
                prop_assert!(admitted.at >= before);
                before = admitted.at;
            }
        }
    }
}
