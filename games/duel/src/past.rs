//! The past: where everybody was and how they stood in the last ticks, and the shots that are judged by it.
//!
//! A shot hits what its shooter saw. Its input says which moment of the world that was, the moment is held against what
//! the server knows of his line ([`ViewLimits`]), and the shot is cast at the bodies of that moment, limb by limb.
//!
//! The slot of a body in the history is its player's seat. While nobody can be hurt nothing is recorded and no pose is
//! sampled, but for the end of the phase in which one buys: the first shots of a round are at moments of that. Without
//! such a phase history begins with the round, and who claims to have seen what was before is judged by its first tick.
//! Bodies play `idle`, `walk` and `run` by their speed, in the
//! time of the world, so a client knows how somebody stands from what it is told anyway.
//!
//! Sketch of the cost: with ten bodies, some 50 ns each tick to record them, 0.8 µs for the poses of those whose turn
//! it is, and 2 µs for a shot that passes a body.

use std::sync::{Arc, OnceLock};

use glam::{Quat, Vec3};
use throng::prelude::*;
use throng_platform::time::Nanos;
use throng_query::{casts::Ray, geometry::LevelGeometry};
use throng_replication::table_resource;
use throng_rewind::{
    history::{Body, History, HistorySettings},
    past_casts::{PastCasts, PastHit, PastShot},
    person,
    pose_sampler::PoseSampler,
    rig::{Playing, Rig},
    saved::SavedHistory,
    view_limits::{Admitted, ShooterView, ViewLimits},
    view_time::ViewTime,
};

use crate::{
    components::{Clock, Phase, Player, Pose, Vitals},
    movement::{Motion, RUN_M_PER_S, WALK_M_PER_S},
    protocol::TICK_HZ,
    rounds::Rounds,
    teams::SEATS,
    weapons::{BodyPart, WeaponKind, ticks_of},
};

/// How far a shot reaches (m): across the map.
pub const RANGE_M: f32 = 120.0;
/// How far back a shooter is believed.
pub const LIMITS: ViewLimits = ViewLimits::new(TICK_HZ);
/// In the order of a person's limbs, which ends with both legs: thigh, shin and foot of each.
const LEGS_FIRST: u16 = 12;

/// A shot of this tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shot {
    pub seat: u8,
    pub weapon: WeaponKind,
}

/// History, shots and room to cast them in.
pub struct Past(Box<Parts>);

table_resource!(Past);

/// What a [`Past`] points to.
pub struct Parts {
    pub history: History,
    casts: PastCasts,
    /// Fired in this tick: by whom, and the casts that they are.
    shots: Vec<Shot>,
    past_shots: Vec<PastShot>,
    hits: Vec<Option<PastHit>>,
}

impl Default for Past {
    fn default() -> Self {
        let settings = HistorySettings::new(TICK_HZ, SEATS as u32);
        let mut history = History::new(&settings, vec![rig()]).expect("a history of ten people, 200 ms long");
        for seat in 0..SEATS as u32 {
            assert!(history.insert(seat, 0), "there is a slot for each seat");
        }
        Self(Box::new(Parts {
            history,
            casts: PastCasts::default(),
            shots: Vec::with_capacity(SEATS),
            past_shots: Vec::with_capacity(SEATS),
            hits: Vec::with_capacity(SEATS),
        }))
    }
}

impl Past {
    /// Where everybody was, as it is packed. Between two ticks no shot waits.
    pub fn save(&self) -> SavedHistory {
        self.history.save()
    }

    pub fn load(&mut self, saved: SavedHistory) {
        if !self.history.restore(&saved) {
            // Of another build's people: shots are at where everybody is, until there is a past again.
            *self = Self::default();
        }
    }
}

impl StateHash for Past {
    /// Where everybody was, and how they stand in the newest tick. How they stood before was in the hash of that tick.
    fn hash_state(&self, hasher: &mut StateHasher) {
        // The rest is room to cast in. Between two ticks no shot waits.
        let Parts { history, casts: _, shots, past_shots: _, hits: _ } = &**self;
        let Some((oldest, newest)) = history.ticks() else { return hasher.write_u64(u64::MAX) };
        hasher.write_u64((shots.len() as u64) << 32 | u64::from(newest - oldest));
        let (mut sampler, mut limbs) = (PoseSampler::default(), Vec::new());
        for slot in 0..SEATS as u32 {
            for tick in oldest..=newest {
                let place = history.transform_at(slot, ViewTime::of_tick(tick));
                let (at, rotation) = place.unwrap_or((Vec3::NAN, Quat::NAN));
                at.to_array().into_iter().chain(rotation.to_array()).for_each(|number| hasher.write_f32(number));
            }
            history.limbs_at(slot, ViewTime::of_tick(newest), &mut sampler, &mut limbs);
            let ends = limbs.iter().flat_map(|limb| [limb.from, limb.to]);
            ends.flat_map(|end| end.to_array()).for_each(|number| hasher.write_f32(number));
        }
    }
}

impl std::ops::Deref for Past {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl std::ops::DerefMut for Past {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

/// The body of everybody, made once in a process.
fn rig() -> Arc<Rig> {
    static RIG: OnceLock<Arc<Rig>> = OnceLock::new();
    RIG.get_or_init(|| Arc::new(person::rig())).clone()
}

impl Parts {
    /// Adds a shot that leaves an eye at the moment that its shooter saw.
    ///
    /// Of a moment before history began its first tick is taken.
    pub fn fire(&mut self, shot: Shot, eye: Vec3, direction: Vec3, at: ViewTime) {
        let at = self.history.ticks().map_or(at, |(oldest, _)| at.max(ViewTime::of_tick(oldest)));
        let ray = Ray { origin: eye, direction, distance_m_max: RANGE_M };
        self.past_shots.push(PastShot { ray, at, shooter: Some(u32::from(shot.seat)) });
        self.shots.push(shot);
    }

    /// How many have been fired and are still to be cast.
    pub fn waiting(&self) -> usize {
        self.shots.len()
    }

    /// Casts them all; the shots with what they hit, in the order in which they were fired. None is left.
    pub fn cast(&mut self, level: &LevelGeometry) -> impl Iterator<Item = (Shot, PastHit)> {
        let Self { history, casts, shots, past_shots, hits } = self;
        let counts = casts.cast(history, Some(level), past_shots, hits);
        count!("shots.bodies", counts.bodies);
        count!("shots.unrecorded", counts.unrecorded);
        past_shots.clear();
        shots.drain(..).zip(hits.iter().copied()).filter_map(|(shot, hit)| Some((shot, hit?)))
    }
}

/// Whether there is to be a history of this tick: a round is played, or will be before it is out of reach.
pub fn is_to_be_kept(tick: Res<TickInfo>, rounds: Res<Rounds>) -> bool {
    let Clock { phase, ends_tick, .. } = rounds.clock;
    // And a tick for moments between two.
    let back_ticks = ticks_of((LIMITS.back_max.0 / 1_000_000) as u32, TICK_HZ) + 1;
    phase.is_live() || (phase == Phase::Buy && tick.tick.saturating_add(back_ticks) >= ends_tick)
}

/// Everybody who lives is recorded as it stands.
pub fn record(tick: Res<TickInfo>, mut past: ResMut<Past>, players: Query<(&Player, &Vitals, &Motion, &Pose)>) {
    let history = &mut past.history;
    history.begin_tick(tick.tick);
    for (player, vitals, motion, pose) in &players {
        if vitals.is_alive {
            history.place(player.seat.into(), &body(motion, pose.yaw, tick.tick));
        }
    }
    history.end_tick();
}

/// The moment at which a shot is judged that is fired in `tick`. `seen` is what the shooter was shown when the input
/// was made, and for how many ticks that has been held since, in which what it is shown has gone on.
pub fn judged_at(view: &mut ShooterView, tick: u32, seen: Option<(SeenMoment, u32)>) -> Admitted {
    let newest = tick.saturating_sub(1);
    let Some((seen, held_ticks)) = seen else {
        return LIMITS.admit(view, newest, ViewTime::of_tick(newest), Nanos::ZERO);
    };
    view.acknowledged(seen.acked_tick);
    let claimed = ViewTime::new(seen.tick.saturating_add(held_ticks), seen.part);
    LIMITS.admit(view, newest, claimed, seen.round_trip)
}

/// What of a body a limb is.
pub fn part_of(limb: u16) -> BodyPart {
    match limb {
        person::HEAD => BodyPart::Head,
        LEGS_FIRST.. => BodyPart::Leg,
        _ => BodyPart::Body,
    }
}

/// How somebody is recorded in `tick`.
pub fn body(motion: &Motion, yaw: f32, tick: u32) -> Body {
    Body::standing(motion.at, yaw, playing(motion.speed_m_per_s(), tick))
}

/// Clips by their places in a person's rig.
const IDLE: u16 = 0;
const WALK: u16 = 1;
const RUN: u16 = 2;
/// After so long all clips, of 3.0, 1.1 and 0.7 s, are at their beginning again (s). Times stay small enough to be
/// exact.
const LOOPS_S: u32 = 231;

/// What a body plays at this speed: one clip on its way to the next, all of them in the time of the world.
fn playing(speed_m_per_s: f32, tick: u32) -> Playing {
    let at_s = (tick % (LOOPS_S * u32::from(TICK_HZ))) as f32 / f32::from(TICK_HZ);
    if speed_m_per_s < WALK_M_PER_S {
        return Playing::fade((IDLE, at_s), (WALK, at_s), speed_m_per_s / WALK_M_PER_S);
    }
    let fraction = (speed_m_per_s - WALK_M_PER_S) / (RUN_M_PER_S - WALK_M_PER_S);
    Playing::fade((WALK, at_s), (RUN, at_s), fraction.min(1.0))
}

#[cfg(test)]
mod tests {
    use throng_rewind::view_limits::ViewVerdict;

    use super::*;

    #[test]
    fn clips_and_limbs_are_where_they_are_thought_to_be() {
        let rig = rig();
        assert_eq!([IDLE, WALK, RUN].map(Some), ["idle", "walk", "run"].map(|name| rig.find_clip(name)));
        assert_eq!(rig.limbs(), usize::from(LEGS_FIRST) + 6);
        let parts = [0, 2, 11, 12, 17].map(part_of);
        assert_eq!(parts, [BodyPart::Head, BodyPart::Body, BodyPart::Body, BodyPart::Leg, BodyPart::Leg]);
    }

    /// Promise: while an input is held, what its player is shown goes on with the ticks, and so does what it is judged
    /// by.
    #[test]
    fn a_held_trigger_is_judged_by_what_is_seen_now() {
        let round_trip = Nanos::from_millis(40);
        let seen = SeenMoment { tick: 990, part: 7, newest_tick: 992, acked_tick: 991, round_trip };
        let mut view = ShooterView::default();
        for held in 0..30 {
            let judged = judged_at(&mut view, 1_001 + held, Some((seen, held)));
            assert_eq!(judged, Admitted { at: ViewTime::new(990 + held, 7), verdict: ViewVerdict::AsClaimed });
        }
        assert_eq!(judged_at(&mut ShooterView::default(), 500, None).at, ViewTime::of_tick(499));
    }
}
