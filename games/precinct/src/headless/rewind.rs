//! Shots into the past in a world that ships: a player hits what it saw where it saw it, and nothing that is older than
//! anybody may see. Beside each promise is a world that breaks it: one that looks at the present alone, or one that
//! believes all that clients say.

use throng_platform::time::Nanos;
use throng_rewind::{ecs::Shoots, view_limits::ViewLimits};

use super::*;
use crate::past::Past;

/// The rate of the dark zone.
const TICKS_PER_S: u16 = 30;
/// Between two places of the runner. (m) A body is 0.4 m wide to each side, and a marksman's shot strays by 0.2 m: who
/// aims at the place of one tick may hit it in the ticks beside that, and in no other.
const STEP_M: f32 = 0.6;
/// Ticks until the runner is in the same place again.
const PLACES: u32 = 16;
/// How many ticks ago the oldest view is, of 200 ms.
const CLAMP_TICKS: u32 = 6;

/// A world that knows the present alone.
const PRESENT_ALONE: ViewLimits = ViewLimits { back_max: Nanos::ZERO, ..ViewLimits::new(TICKS_PER_S) };
/// A world that believes whatever a client says that it saw in the last 2 s.
const CREDULOUS: ViewLimits = ViewLimits {
    back_max: Nanos::from_secs(2),
    interpolation_max: Nanos::from_secs(2),
    ..ViewLimits::new(TICKS_PER_S)
};

/// A marksman at a crossing, and before him a runner, who goes over it and begins again.
struct Crossing {
    zone: Headless,
    marksman: Entity,
    runner: Entity,
    /// Where the runner was in each tick.
    places: Vec<Vec3>,
}

impl Crossing {
    /// After more ticks than anybody keeps. `limits`: in place of the game's.
    fn new(limits: Option<ViewLimits>) -> Self {
        let mut zone = Headless::new(Destination::DarkZone, 0, 3);
        if let Some(limits) = limits {
            zone.ecs_mut().resource_mut::<Arena>().past = Past::new(limits, 2);
        }
        let (marksman, runner) = (zone.arrive(1), zone.arrive(2));
        zone.put(marksman, Vec3::new(16.0, 0.0, 13.0));
        let mut crossing = Self { zone, marksman, runner, places: Vec::new() };
        (0..2 * u32::from(TICKS_PER_S) + 10).for_each(|_| crossing.run());
        crossing
    }

    /// The tick that comes next.
    fn tick(&self) -> u32 {
        self.zone.world.ticks_done()
    }

    /// One tick, in which the runner goes on.
    fn run(&mut self) {
        let tick = self.tick();
        let aside_m = (tick % PLACES) as f32 * STEP_M - 4.6;
        self.zone.put(self.runner, Vec3::new(16.0 + aside_m, 0.0, 17.0));
        self.places.resize(tick as usize, Vec3::NAN);
        self.places.push(self.zone.get::<Pose>(self.runner).feet());
        self.zone.tick();
    }

    /// Fires in the next tick at where the runner was in one tick, says that it was shown another, and has a line that
    /// explains everything. Whether the runner is hurt.
    fn fire(&mut self, aimed: u32, claimed: u32) -> bool {
        let way = self.places[aimed as usize] + CHEST - (self.zone.get::<Pose>(self.marksman).feet() + EYE);
        let (yaw, pitch) = (way.x.atan2(way.z), way.y.atan2(way.x.hypot(way.z)));
        let input = Input::new([0.0, 0.0], yaw, pitch, true, false);
        let seen = SeenMoment {
            tick: claimed,
            part: 0,
            newest_tick: claimed + 1,
            acked_tick: 0,
            round_trip: Nanos::from_secs(1),
        };
        *self.zone.ecs_mut().get_mut::<Weapon>(self.marksman).unwrap() = Weapon::new(WeaponKind::Marksman);
        self.zone.world.input_seen(ClientKey(1), &input, seen);
        let health = self.zone.get::<Vitals>(self.runner).health;
        self.run();
        self.zone.get::<Vitals>(self.runner).health < health
    }

    /// The same, so many ticks before the newest that anybody can have been told of.
    fn fire_ago(&mut self, aimed_ago: u32, claimed_ago: u32) -> bool {
        let newest = self.tick() - 1;
        self.fire(newest - aimed_ago, newest - claimed_ago)
    }

    fn set_health(&mut self, health: u8) {
        self.zone.ecs_mut().get_mut::<Vitals>(self.runner).unwrap().health = health;
    }

    /// Another shooter, who was shown nothing yet.
    fn change_shooter(&mut self) {
        *self.zone.ecs_mut().get_mut::<Shoots>(self.marksman).unwrap() = Shoots::default();
    }
}

#[test]
fn a_runner_is_hit_where_it_was_seen_and_not_where_it_is() {
    for ago in 0..=CLAMP_TICKS {
        assert!(Crossing::new(None).fire_ago(ago, ago), "{ago} ticks ago");
        if ago >= 2 {
            assert!(!Crossing::new(None).fire_ago(0, ago), "{ago} ticks ago it was not there yet");
            // The control: who looks at the present misses what was seen.
            assert!(!Crossing::new(Some(PRESENT_ALONE)).fire_ago(ago, ago), "{ago} ticks ago");
        }
    }
}

#[test]
fn a_view_of_a_second_ago_is_judged_at_the_clamp() {
    let second = u32::from(TICKS_PER_S);
    let mut crossing = Crossing::new(None);
    assert!(!crossing.fire_ago(second, second), "it was there, a second ago");
    assert_eq!(crossing.zone.tally().of("views_beyond_clamp"), 1);
    assert!(Crossing::new(None).fire_ago(CLAMP_TICKS, second), "it is judged as far back as anybody is");
    assert!(Crossing::new(Some(CREDULOUS)).fire_ago(second, second), "there is something to gain");
}

#[test]
fn nobody_is_shown_what_was_before_what_it_shot_at_last() {
    let mut crossing = Crossing::new(None);
    assert!(crossing.fire_ago(1, 1));
    assert!(!crossing.fire_ago(5, 5), "it saw the runner three ticks later already");
    assert_eq!(crossing.zone.tally().of("views_backwards"), 1);
    // The control: somebody else may have seen it there.
    crossing.change_shooter();
    assert!(crossing.fire_ago(5, 5));
}

/// Promise: whatever is claimed and aimed at, in whatever order, what is hit was there within the clamp.
#[test]
fn r15_claims_of_any_age_hit_nothing_beyond_the_clamp() {
    // One tick for the width of the body, and one for a hand that shakes.
    let old_ticks = CLAMP_TICKS + 2;
    let play = |limits: Option<ViewLimits>| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(15);
        let mut crossing = Crossing::new(limits);
        let (mut hits, mut old_hits) = (0, 0);
        for script in 0..200 {
            crossing.change_shooter();
            for _ in 0..4 {
                let newest = crossing.tick() - 1;
                let aimed_ago = rng.random_range(0..PLACES - 2);
                let claimed = match script % 4 {
                    0 => newest - rng.random_range(0..60),
                    1 => rng.random_range(0..2 * newest),
                    _ => newest - aimed_ago,
                };
                crossing.set_health(HEALTH_MAX);
                let is_hit = crossing.fire(newest - aimed_ago, claimed);
                hits += u32::from(is_hit);
                old_hits += u32::from(is_hit && aimed_ago > old_ticks);
            }
        }
        (hits, old_hits)
    };
    let (hits, old_hits) = play(None);
    assert!(hits > 60, "{hits} hits: they play");
    assert_eq!(old_hits, 0);
    let (_, gained) = play(Some(CREDULOUS));
    assert!(gained > 20, "{gained}: a world that believes claims gives something away");
}

/// Promise: who has died is not hurt again by who still sees it live.
#[test]
fn nobody_dies_twice() {
    let play = |health| {
        let mut crossing = Crossing::new(None);
        crossing.set_health(health);
        let are_hits = [crossing.fire_ago(2, 2), crossing.fire_ago(3, 3)];
        (are_hits, ["hits", "deaths"].map(|count| crossing.zone.tally().of(count)))
    };
    assert_eq!(play(1), ([true, false], [1, 1]));
    assert_eq!(play(HEALTH_MAX), ([true, true], [2, 0]), "the second shot hits who lives");
}
