//! Shooter: what a player was shown when it pulled the trigger, for as long as it holds that.
//!
//! A client says with an input what its player was shown. An input may be lost, and a trigger that is held fires on: with
//! the aim of the last input that came, and at what the player is shown by now. That went on as fast as the world did, so
//! the claim is carried on tick by tick. Left where it was, who loses packets would shoot ever further back than he sees.
//!
//! Belongs to a player while that is in a world: a value of 56 bytes. Any thread; allocates nothing.

use throng_pack::Pack;
use throng_platform::time::Nanos;

use crate::{
    view_limits::{Admitted, ShooterView, ViewLimits},
    view_time::ViewTime,
};

/// What a client says that its player was shown when an input was made, and what the server knows of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "throng.view_claim")]
pub struct Claim {
    /// As the client says.
    pub at: ViewTime,
    /// The newest tick of which the client has acknowledged a snapshot; 0 before the first.
    pub acked_tick: u32,
    /// Of the client's line, as the server has measured it, with what inputs and snapshots wait for ticks.
    #[pack(via = Ns)]
    pub round_trip: Nanos,
}

/// A duration as it is packed (ns).
#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "throng.ns")]
struct Ns(u64);

impl From<Nanos> for Ns {
    fn from(nanos: Nanos) -> Self {
        Self(nanos.0)
    }
}

impl From<Ns> for Nanos {
    fn from(ns: Ns) -> Self {
        Self(ns.0)
    }
}

/// The moment of a shot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShotMoment {
    /// As its client says.
    pub claimed: ViewTime,
    /// At which it is judged.
    pub admitted: Admitted,
}

/// A player who shoots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pack)]
#[pack(name = "throng.shooter")]
pub struct Shooter {
    view: ShooterView,
    newest: Option<Newest>,
}

/// The newest claim, and the tick in which it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "throng.newest_claim")]
struct Newest {
    came: u32,
    claim: Claim,
}

impl Shooter {
    /// An input that pulls the trigger came in this tick.
    pub fn claims(&mut self, tick: u32, claim: Claim) {
        self.view.acknowledged(claim.acked_tick);
        self.newest = Some(Newest { came: tick, claim });
    }

    /// The moment at which a shot is judged that is fired in this tick. Who has claimed nothing shoots at what there was
    /// at the end of the last tick.
    pub fn judge(&mut self, limits: &ViewLimits, tick: u32) -> ShotMoment {
        let newest_tick = tick.saturating_sub(1);
        let (claimed, round_trip) = match self.newest {
            Some(Newest { came, claim }) => (claim.at.after_ticks(tick.saturating_sub(came)), claim.round_trip),
            None => (ViewTime::of_tick(newest_tick), Nanos::ZERO),
        };
        ShotMoment { claimed, admitted: limits.admit(&mut self.view, newest_tick, claimed, round_trip) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view_limits::ViewVerdict;

    /// 50 ms are a tick: the clamp is four of them.
    const LIMITS: ViewLimits = ViewLimits::new(20);

    fn claim(at: ViewTime) -> Claim {
        Claim { at, acked_tick: 0, round_trip: Nanos::from_millis(100) }
    }

    #[track_caller]
    fn check(shooter: &mut Shooter, tick: u32, expect: ViewTime, verdict: ViewVerdict) {
        assert_eq!(shooter.judge(&LIMITS, tick).admitted, Admitted { at: expect, verdict });
    }

    #[test]
    fn a_trigger_that_is_held_fires_at_what_goes_on() {
        let mut shooter = Shooter::default();
        shooter.claims(100, claim(ViewTime::new(96, 77)));
        for later in 0..10 {
            check(&mut shooter, 100 + later, ViewTime::new(96 + later, 77), ViewVerdict::AsClaimed);
        }
        let moment = shooter.judge(&LIMITS, 110);
        assert_eq!(moment.claimed, ViewTime::new(106, 77));
    }

    #[test]
    fn who_says_nothing_shoots_at_the_end_of_the_last_tick() {
        let mut shooter = Shooter::default();
        check(&mut shooter, 0, ViewTime::of_tick(0), ViewVerdict::AsClaimed);
        check(&mut shooter, 31, ViewTime::of_tick(30), ViewVerdict::AsClaimed);
    }

    #[test]
    fn what_it_claims_is_held_against_the_limits() {
        let mut shooter = Shooter::default();
        shooter.claims(100, claim(ViewTime::of_tick(60)));
        check(&mut shooter, 100, ViewTime::of_tick(95), ViewVerdict::BeyondClamp);
        // 100 ms of line, 130 ms of interpolation and slack; but it has acknowledged what is newer.
        shooter.claims(104, Claim { acked_tick: 102, ..claim(ViewTime::of_tick(99)) });
        let explained = ViewTime::of_tick(102).before(ViewTime::parts_in(Nanos::from_millis(130), 20));
        check(&mut shooter, 104, explained, ViewVerdict::BeyondLatency);
        shooter.claims(105, claim(ViewTime::of_tick(99)));
        check(&mut shooter, 105, ViewTime::of_tick(100), ViewVerdict::BeyondClamp);
        shooter.claims(105, claim(ViewTime::of_tick(104)));
        check(&mut shooter, 105, ViewTime::of_tick(104), ViewVerdict::AsClaimed);
        shooter.claims(106, claim(ViewTime::of_tick(103)));
        check(&mut shooter, 106, ViewTime::of_tick(104), ViewVerdict::Backwards);
    }
}
