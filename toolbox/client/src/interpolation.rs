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
//! After its newest value an entity is held there: the server would have told, had it moved. Only a moment beyond all that
//! was heard can be carried on along the last two values, for a bounded time and only where a program asks for it: what is
//! drawn so is a guess, and whoever shoots at it shoots at what the server has not said.
//!
//! Sans-IO; a [`Track`] is a value of its own, for one component of one entity. Allocates nothing (beside what the game's
//! values do). Memory: 32 values. Cost: a look at a few of them.

use throng_replication::Seen;

/// Values kept of an entity. At 128 Hz and a delay of 100 ms 13 are looked at.
const VALUES_MAX: usize = 32;

/// What can be shown between two of its values.
pub trait Interpolate: Clone {
    /// The value so far from this one to a later one: 0 is this one, 1 the later; above 1 it is beyond that one
    /// (extrapolated). What has no middle, such as a flag, is this one's below 1.
    fn between(&self, later: &Self, share: f32) -> Self;
}

/// How values are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InterpolationSettings {
    /// Values that are further apart are those of an entity that stood still, and moved off in the last tick. (ticks, > 0;
    /// default 4) Too few: who is far away and told of seldom jerks. Too many: who stood still glides off early.
    pub gap_ticks_max: u32,
    /// How far beyond everything that was heard an entity is carried on. (ticks; default 0)
    pub extrapolation_ticks_max: f32,
}

impl Default for InterpolationSettings {
    fn default() -> Self {
        Self { gap_ticks_max: 4, extrapolation_ticks_max: 0.0 }
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
    /// The last two, carried on for so many ticks.
    Extrapolated { ticks: f32 },
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

    /// The value at a moment. `heard_tick` is the newest tick of which anything was heard, of whatever entity:
    /// [`Client::newest_tick`](crate::Client::newest_tick). `None` before the first value.
    pub fn sample(&self, at: Moment, heard_tick: u32, settings: &InterpolationSettings) -> Option<(T, Sampling)> {
        let mut newer: Option<&(u32, T)> = None;
        for one in self.newest_first() {
            if one.0 <= at.tick {
                return Some(match newer {
                    Some(newer) => (between(one, newer, at, settings.gap_ticks_max), Sampling::Between),
                    None => self.after(one, at, heard_tick, settings),
                });
            }
            newer = Some(one);
        }
        newer.map(|(_, oldest)| (oldest.clone(), Sampling::First))
    }

    /// The value at a moment after the newest one.
    fn after(&self, newest: &(u32, T), at: Moment, heard_tick: u32, settings: &InterpolationSettings) -> (T, Sampling) {
        let (newest_tick, value) = newest;
        let beyond_heard = ticks_from(heard_tick, at);
        let ticks = beyond_heard.min(settings.extrapolation_ticks_max);
        let before = self.newest_first().nth(1).filter(|(tick, _)| newest_tick - tick <= settings.gap_ticks_max);
        match before {
            // Who was not told of in the newest tick stands still.
            Some((before_tick, before)) if ticks > 0.0 && *newest_tick >= heard_tick => {
                let apart = (newest_tick - before_tick) as f32;
                (before.between(value, 1.0 + ticks / apart), Sampling::Extrapolated { ticks })
            }
            _ => (value.clone(), Sampling::Held),
        }
    }

    fn newest_first(&self) -> impl Iterator<Item = &(u32, T)> {
        let places = (0..VALUES_MAX).map(|back| (self.newest + VALUES_MAX - back) % VALUES_MAX);
        places.map_while(|place| self.values[place].as_ref())
    }
}

fn between<T: Interpolate>((tick, value): &(u32, T), (later_tick, later): &(u32, T), at: Moment, gap_max: u32) -> T {
    let apart = later_tick - tick;
    // It stood still until the tick before it was told of again.
    let (begin, apart) = if apart > gap_max { (later_tick - 1, 1) } else { (*tick, apart) };
    let share = ticks_from(begin, at) / apart as f32;
    if share <= 0.0 { value.clone() } else { value.between(later, share.min(1.0)) }
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
    fn check(track: &Track<Place>, ticks: f32, heard_tick: u32, expect: (f32, Sampling)) {
        let settings = InterpolationSettings { extrapolation_ticks_max: 2.0, ..InterpolationSettings::default() };
        let (Place(value), sampling) = track.sample(at(ticks), heard_tick, &settings).expect("it has values");
        assert!((value - expect.0).abs() < 1e-4, "{value} at {ticks}");
        assert_eq!(sampling, expect.1, "at {ticks}");
    }

    #[test]
    fn a_moment_between_two_values_is_between_them() {
        let track = track(&[(20, 1.0), (21, 2.0), (23, 6.0)]);
        check(&track, 20.0, 23, (1.0, Sampling::Between));
        check(&track, 20.25, 23, (1.25, Sampling::Between));
        check(&track, 21.5, 23, (3.0, Sampling::Between));
        check(&track, 22.5, 23, (5.0, Sampling::Between));
        check(&track, 19.5, 23, (1.0, Sampling::First));
        assert_eq!(Track::<Place>::default().sample(at(7.0), 7, &InterpolationSettings::default()), None);
    }

    /// Promise: who stood still does not glide towards where it is told of next.
    #[test]
    fn who_stood_still_moves_off_in_the_last_tick() {
        let track = track(&[(20, 1.0), (40, 3.0)]);
        check(&track, 30.0, 41, (1.0, Sampling::Between));
        check(&track, 39.0, 41, (1.0, Sampling::Between));
        check(&track, 39.5, 41, (2.0, Sampling::Between));
        check(&track, 40.0, 41, (3.0, Sampling::Held));
    }

    #[test]
    fn after_the_newest_value_it_is_held_as_long_as_the_server_is_heard() {
        let track = track(&[(20, 1.0), (21, 2.0)]);
        check(&track, 24.5, 30, (2.0, Sampling::Held));
        check(&track, 31.0, 30, (2.0, Sampling::Held));
    }

    /// Promise: extrapolation goes no farther than is asked for, and is told.
    #[test]
    fn beyond_all_that_was_heard_it_is_carried_on_for_a_bounded_time() {
        let moving = track(&[(20, 1.0), (21, 2.0)]);
        check(&moving, 21.5, 21, (2.5, Sampling::Extrapolated { ticks: 0.5 }));
        check(&moving, 23.0, 21, (4.0, Sampling::Extrapolated { ticks: 2.0 }));
        check(&moving, 29.0, 21, (4.0, Sampling::Extrapolated { ticks: 2.0 }));
        let moved_off = track(&[(10, 1.0), (21, 2.0)]);
        check(&moved_off, 22.0, 21, (2.0, Sampling::Held));
        let sampled = moving.sample(at(22.0), 21, &InterpolationSettings::default());
        assert_eq!(sampled, Some((Place(2.0), Sampling::Held)), "unless asked for it is not");
    }

    #[test]
    fn the_ring_keeps_the_newest_and_takes_nothing_old() {
        let mut track = Track::default();
        (0..100).for_each(|tick| track.push(tick, Place(tick as f32)));
        track.push(98, Place(7.0));
        assert_eq!((track.newest_tick(), track.newest()), (Some(99), Some(&Place(99.0))));
        check(&track, 68.5, 99, (68.5, Sampling::Between));
        check(&track, 60.0, 99, (68.0, Sampling::First));
        track.clear();
        assert_eq!(track.newest_tick(), None);
    }

    #[test]
    fn what_is_seen_is_a_moment() {
        assert_eq!(Moment::from(Seen { newest_tick: 10, behind_parts: 384 }), Moment { tick: 8, part: 0.5 });
    }
}
