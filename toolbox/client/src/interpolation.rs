//! Interpolation: what others do, shown evenly between the values that came.
//!
//! Values come with the ticks in which they changed; what is drawn is a moment between two ticks, which the client's view
//! clock says ([`Client::seen`](crate::Client::seen)). So the last values of each entity are kept by tick, and the moment is
//! looked up among them:
//!
//! ```text
//!   ticks             20   21   22   23   ...   40   41   42
//!   values came       a    b    c                    d    e           none from 23 to 40: it stood still
//!   shown at 21.5          (b+c)/2
//!   shown at 40.5          c c c c c c c c c c c c c (c+d)/2          it moves off in the last tick, not over all of them
//! ```
//!
//! After its newest value an entity is held there: the server would have told, had it moved. Nobody is carried on beyond all
//! that was heard: the view clock stands still there, since what would be drawn is a guess, and whoever shoots at it shoots at
//! what the server has not said.
//!
//! Sans-IO; a [`Track`] is a value of its own, for one component of one entity. Allocates nothing (beside what the game's
//! values do). Memory: 32 values. Cost: a look at a few of them.

use throng_platform::time::Nanos;
use throng_replication::Seen;

/// Values kept of an entity. At 128 Hz and a delay of 100 ms 13 are looked at.
const VALUES_MAX: usize = 32;

/// What can be shown between two of its values.
pub trait Interpolate: Clone {
    /// The value so far from this one to a later one: 0 is this one, 1 the later [0 to 1]. What has no middle, such as a
    /// flag, is this one's below 1.
    fn between(&self, later: &Self, share: f32) -> Self;
}

/// How values are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InterpolationSettings {
    /// Values that are further apart are those of an entity that stood still, and moved off in the last tick. (> 0; default
    /// 200 ms: four ticks at 20 Hz, and whoever a tier has told of five times a second, at any rate) Too short: who is far
    /// away and told of seldom jerks. Too long: who stood still glides off early.
    pub gap_max: Nanos,
}

impl Default for InterpolationSettings {
    fn default() -> Self {
        Self { gap_max: Nanos::from_millis(200) }
    }
}

/// A moment of a world: a tick, and how much of the next one has gone by [0 to 1).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Moment {
    pub tick: u32,
    pub part: f32,
}

impl From<Seen> for Moment {
    fn from(seen: Seen) -> Self {
        let (tick, part) = seen.moment();
        Self { tick, part: f32::from(part) / 256.0 }
    }
}

/// What a shown value is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampling {
    /// Two values around the moment.
    Between,
    /// The newest one: nothing else was told since.
    Held,
    /// The oldest one that is kept: the moment is before it.
    First,
}

/// The last values of one component of one entity.
#[derive(Debug, Clone)]
pub struct Track<T> {
    /// A ring; the newest is at `newest`.
    values: [Option<(u32, T)>; VALUES_MAX],
    newest: usize,
}

impl<T> Default for Track<T> {
    fn default() -> Self {
        Self { values: [const { None }; VALUES_MAX], newest: 0 }
    }
}

impl<T: Interpolate> Track<T> {
    /// Takes a value that is true for this tick, if it is newer than those before it.
    pub fn push(&mut self, tick: u32, value: T) {
        match &self.values[self.newest] {
            Some((newest, _)) if tick <= *newest => return,
            None => {}
            Some(_) => self.newest = (self.newest + 1) % VALUES_MAX,
        }
        self.values[self.newest] = Some((tick, value));
    }

    /// The tick of the newest value.
    pub fn newest_tick(&self) -> Option<u32> {
        self.values[self.newest].as_ref().map(|(tick, _)| *tick)
    }

    /// The newest value, as it came.
    pub fn newest(&self) -> Option<&T> {
        self.values[self.newest].as_ref().map(|(_, value)| value)
    }

    /// Forgets everything: the entity was put elsewhere, and nobody is to see it slide there.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The value at a moment of a world that ticks so often a second. `None` before the first value.
    pub fn sample(&self, at: Moment, tick_hz: u8, settings: &InterpolationSettings) -> Option<(T, Sampling)> {
        let mut newer: Option<&(u32, T)> = None;
        for one in self.newest_first() {
            if one.0 <= at.tick {
                return Some(match newer {
                    Some(newer) => (between(one, newer, at, ticks_of(settings.gap_max, tick_hz)), Sampling::Between),
                    None => (one.1.clone(), Sampling::Held),
                });
            }
            newer = Some(one);
        }
        newer.map(|(_, oldest)| (oldest.clone(), Sampling::First))
    }

    fn newest_first(&self) -> impl Iterator<Item = &(u32, T)> {
        let places = (0..VALUES_MAX).map(|back| (self.newest + VALUES_MAX - back) % VALUES_MAX);
        places.map_while(|place| self.values[place].as_ref())
    }
}

fn between<T: Interpolate>((tick, value): &(u32, T), (later_tick, later): &(u32, T), at: Moment, gap_max: u64) -> T {
    let apart = later_tick - tick;
    // It stood still until the tick before it was told of again.
    let (begin, apart) = if u64::from(apart) > gap_max { (later_tick - 1, 1) } else { (*tick, apart) };
    let share = ticks_from(begin, at) / apart as f32;
    if share <= 0.0 { value.clone() } else { value.between(later, share.min(1.0)) }
}

/// Ticks that begin within this time: updates of a rate that is no part of the tick rate are a tick more apart now and then.
fn ticks_of(time: Nanos, tick_hz: u8) -> u64 {
    time.0.saturating_mul(tick_hz.max(1).into()).div_ceil(1_000_000_000)
}

/// How far a moment is after a tick. (ticks; below 0: before it)
fn ticks_from(tick: u32, at: Moment) -> f32 {
    (i64::from(at.tick) - i64::from(tick)) as f32 + at.part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Place(f32);

    impl Interpolate for Place {
        fn between(&self, later: &Self, share: f32) -> Self {
            Self(self.0 + (later.0 - self.0) * share)
        }
    }

    fn track(values: &[(u32, f32)]) -> Track<Place> {
        let mut track = Track::default();
        values.iter().for_each(|(tick, value)| track.push(*tick, Place(*value)));
        track
    }

    fn at(ticks: f32) -> Moment {
        Moment { tick: ticks as u32, part: ticks.fract() }
    }

    #[track_caller]
    fn check(track: &Track<Place>, ticks: f32, expect: (f32, Sampling)) {
        let sampled = track.sample(at(ticks), 20, &InterpolationSettings::default());
        let (Place(value), sampling) = sampled.expect("it has values");
        assert!((value - expect.0).abs() < 1e-4, "{value} at {ticks}");
        assert_eq!(sampling, expect.1, "at {ticks}");
    }

    #[test]
    fn a_moment_between_two_values_is_between_them() {
        let track = track(&[(20, 1.0), (21, 2.0), (23, 6.0)]);
        check(&track, 20.0, (1.0, Sampling::Between));
        check(&track, 20.25, (1.25, Sampling::Between));
        check(&track, 21.5, (3.0, Sampling::Between));
        check(&track, 22.5, (5.0, Sampling::Between));
        check(&track, 19.5, (1.0, Sampling::First));
        assert_eq!(Track::<Place>::default().sample(at(7.0), 20, &InterpolationSettings::default()), None);
    }

    /// Promise: who stood still does not glide towards where it is told of next.
    #[test]
    fn who_stood_still_moves_off_in_the_last_tick() {
        let track = track(&[(20, 1.0), (40, 3.0)]);
        check(&track, 30.0, (1.0, Sampling::Between));
        check(&track, 39.0, (1.0, Sampling::Between));
        check(&track, 39.5, (2.0, Sampling::Between));
        check(&track, 40.0, (3.0, Sampling::Held));
    }

    /// Promise: who is told of five times a second is shown evenly, and who stood still for longer moves off in the last
    /// tick, at every rate.
    #[test]
    fn a_gap_is_as_long_at_every_rate() {
        for tick_hz in [5, 10, 20, 30, 60, 128, 255] {
            let shown_at_half = |apart: u32| {
                let track = track(&[(100, 1.0), (100 + apart, 3.0)]);
                let half = Moment { tick: 100 + apart / 2, part: (apart % 2) as f32 / 2.0 };
                track.sample(half, tick_hz, &InterpolationSettings::default()).expect("it has values").0
            };
            let fifth = u32::from(tick_hz).div_ceil(5);
            assert_eq!(shown_at_half(fifth), Place(2.0), "at {tick_hz} Hz");
            assert_eq!(shown_at_half(fifth + 1), Place(1.0), "at {tick_hz} Hz");
        }
        let track = track(&[(0, 1.0), (u32::MAX, 3.0)]);
        let always = InterpolationSettings { gap_max: Nanos(u64::MAX) };
        let sampled = track.sample(Moment { tick: u32::MAX / 2, part: 0.5 }, 255, &always);
        assert_eq!(sampled, Some((Place(2.0), Sampling::Between)), "no time is too long");
    }

    #[test]
    fn after_the_newest_value_it_is_held() {
        let track = track(&[(20, 1.0), (21, 2.0)]);
        check(&track, 21.5, (2.0, Sampling::Held));
        check(&track, 31.0, (2.0, Sampling::Held));
    }

    #[test]
    fn the_ring_keeps_the_newest_and_takes_nothing_old() {
        let mut track = Track::default();
        (0..100).for_each(|tick| track.push(tick, Place(tick as f32)));
        track.push(98, Place(7.0));
        assert_eq!((track.newest_tick(), track.newest()), (Some(99), Some(&Place(99.0))));
        check(&track, 68.5, (68.5, Sampling::Between));
        check(&track, 60.0, (68.0, Sampling::First));
        track.clear();
        assert_eq!(track.newest_tick(), None);
    }

    #[test]
    fn what_is_seen_is_a_moment() {
        assert_eq!(Moment::from(Seen { newest_tick: 10, behind_parts: 384 }), Moment { tick: 8, part: 0.5 });
    }
}
