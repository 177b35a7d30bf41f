//! Clip: a movement of a skeleton, as columns that are quick to read at any moment.
//!
//! What an artist's program writes are keys: at these times this bone is turned so. Reading those means a search for each
//! bone. So keys are read once, when a clip is made, and written down again at even times, all bones of a moment side by
//! side:
//!
//! ```text
//!            x of all bones   y ..   z ..   turn x ..   turn y ..   turn z ..   turn w ..
//! frame 0   [..............|......|......|...........|...........|...........|...........]
//! frame 1   [..............|......|......|...........|...........|...........|...........]
//! ```
//!
//! A moment between two frames is one loop over two neighbours in memory, the same for all numbers. Turns of neighbours
//! are on the same side (a turn and its negative are the same turn), so that loop needs no look at them.
//!
//! Made once and shared. Memory: 28 bytes for each bone and frame, so 40 KB for a second of 24 bones.

use glam::{Quat, Vec3};

use crate::skeleton::{Skeleton, usable_place, usable_turn};

/// Frames of a clip in a second: as fine as artists' programs write keys.
pub const FRAMES_PER_S: u32 = 60;

/// Longest clip (s).
pub const CLIP_S_MAX: f32 = 60.0;

/// Numbers of a bone: a place and a turn.
pub(crate) const NUMBERS_PER_BONE: usize = 7;

/// A movement by its keys.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeyedClip {
    pub name: String,
    /// Whether it begins again at its end. Its last keys are those of its first moment then.
    pub is_loop: bool,
    pub tracks: Vec<Track>,
}

/// How one bone moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    pub bone: u16,
    /// When the keys hold (s), ascending from 0 on.
    pub times_s: Vec<f32>,
    pub keys: Keys,
}

/// What a bone has instead of its rest, as seen from its parent; one for each time.
#[derive(Debug, Clone, PartialEq)]
pub enum Keys {
    Places(Vec<Vec3>),
    Turns(Vec<Quat>),
}

/// What makes keys no clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClipError {
    #[error("the clip has no key")]
    Empty,
    #[error("track {track} is of a bone that the skeleton does not have")]
    NoSuchBone { track: usize },
    #[error("track {track} has not as many keys as times, or none")]
    Count { track: usize },
    #[error("times of track {track} do not ascend from 0 on, or go beyond {CLIP_S_MAX} s")]
    Times { track: usize },
    #[error("key {key} of track {track} is not usable: not finite, or a turn without a length")]
    NotUsable { track: usize, key: usize },
}

/// A movement, ready to be read at any moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Clip {
    name: String,
    is_loop: bool,
    duration_s: f32,
    bones: usize,
    /// Frames after the first.
    steps: usize,
    frames: Vec<f32>,
}

impl Clip {
    /// Reads the keys of a skeleton's movement. Bones without a track stay as they rest.
    pub fn new(skeleton: &Skeleton, keyed: &KeyedClip) -> Result<Self, ClipError> {
        for (track, one) in keyed.tracks.iter().enumerate() {
            check_track(skeleton, track, one)?;
        }
        let ends = keyed.tracks.iter().filter_map(|track| track.times_s.last());
        let duration_s = ends.copied().reduce(f32::max).ok_or(ClipError::Empty)?;
        let steps = ((duration_s * FRAMES_PER_S as f32).ceil() as usize).max(1);
        let bones = skeleton.len();
        let mut clip = Self {
            name: keyed.name.clone(),
            is_loop: keyed.is_loop,
            duration_s,
            bones,
            steps,
            frames: Vec::with_capacity((steps + 1) * bones * NUMBERS_PER_BONE),
        };
        let mut before: Vec<Quat> = skeleton.bones().iter().map(|bone| bone.turn).collect();
        for frame in 0..=steps {
            let at_s = duration_s * frame as f32 / steps as f32;
            clip.push_frame(skeleton, keyed, at_s, &mut before);
        }
        Ok(clip)
    }

    fn push_frame(&mut self, skeleton: &Skeleton, keyed: &KeyedClip, at_s: f32, before: &mut [Quat]) {
        let begin = self.frames.len();
        self.frames.resize(begin + self.bones * NUMBERS_PER_BONE, 0.0);
        let mut places: Vec<Vec3> = skeleton.bones().iter().map(|bone| bone.place).collect();
        let mut turns: Vec<Quat> = skeleton.bones().iter().map(|bone| bone.turn).collect();
        for track in &keyed.tracks {
            let bone = usize::from(track.bone);
            let (key, fraction) = key_at(&track.times_s, at_s);
            let next = (key + 1).min(track.times_s.len() - 1);
            match &track.keys {
                Keys::Places(keys) => places[bone] = keys[key].lerp(keys[next], fraction),
                Keys::Turns(keys) => turns[bone] = keys[key].normalize().slerp(keys[next].normalize(), fraction),
            }
        }
        let frame = &mut self.frames[begin..];
        for bone in 0..self.bones {
            let turn = if turns[bone].dot(before[bone]) < 0.0 { -turns[bone] } else { turns[bone] };
            before[bone] = turn;
            let numbers = places[bone].to_array().into_iter().chain(turn.to_array());
            numbers.enumerate().for_each(|(column, number)| frame[column * self.bones + bone] = number);
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_loop(&self) -> bool {
        self.is_loop
    }

    pub fn duration_s(&self) -> f32 {
        self.duration_s
    }

    /// The frames around a moment, and how far it is from one to the other. Any number is a moment: a loop goes on for
    /// ever in both directions, another clip stays at its ends, and what is not finite is the beginning.
    pub(crate) fn around(&self, at_s: f32) -> (&[f32], &[f32], f32) {
        let within_s = match (self.duration_s > 0.0 && at_s.is_finite(), self.is_loop) {
            (false, _) => 0.0,
            (true, true) => at_s.rem_euclid(self.duration_s),
            (true, false) => at_s.clamp(0.0, self.duration_s),
        };
        let frames = if self.duration_s > 0.0 { within_s / self.duration_s * self.steps as f32 } else { 0.0 };
        let first = (frames as usize).min(self.steps - 1);
        let fraction = (frames - first as f32).clamp(0.0, 1.0);
        let numbers = self.bones * NUMBERS_PER_BONE;
        let (one, other) = self.frames[first * numbers..(first + 2) * numbers].split_at(numbers);
        (one, other, fraction)
    }

    /// How far from its parent a bone comes at most (m).
    pub(crate) fn farthest_m(&self, bone: usize) -> f32 {
        let frames = self.frames.chunks_exact(self.bones * NUMBERS_PER_BONE);
        let places = frames.map(|frame| Vec3::from_array(std::array::from_fn(|axis| frame[axis * self.bones + bone])));
        places.map(Vec3::length).fold(0.0, f32::max)
    }

    pub(crate) fn bones(&self) -> usize {
        self.bones
    }
}

fn check_track(skeleton: &Skeleton, track: usize, one: &Track) -> Result<(), ClipError> {
    if usize::from(one.bone) >= skeleton.len() {
        return Err(ClipError::NoSuchBone { track });
    }
    let count = match &one.keys {
        Keys::Places(keys) => keys.len(),
        Keys::Turns(keys) => keys.len(),
    };
    if count != one.times_s.len() || count == 0 {
        return Err(ClipError::Count { track });
    }
    let in_range = one.times_s.iter().all(|time_s| (0.0..=CLIP_S_MAX).contains(time_s));
    if !in_range || !one.times_s.is_sorted() {
        return Err(ClipError::Times { track });
    }
    let bad = match &one.keys {
        Keys::Places(keys) => keys.iter().position(|key| !usable_place(*key)),
        Keys::Turns(keys) => keys.iter().position(|key| usable_turn(*key).is_none()),
    };
    bad.map_or(Ok(()), |key| Err(ClipError::NotUsable { track, key }))
}

/// The key at or before a moment, the first if there is none, and how far it is to the next.
fn key_at(times_s: &[f32], at_s: f32) -> (usize, f32) {
    let next = times_s.partition_point(|time_s| *time_s <= at_s);
    if next == 0 || next == times_s.len() {
        return (next.saturating_sub(1), 0.0);
    }
    let (before_s, next_s) = (times_s[next - 1], times_s[next]);
    (next - 1, (at_s - before_s) / (next_s - before_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skeleton::Bone;

    fn skeleton() -> Skeleton {
        let bone = |parent| Bone { name: String::new(), parent, place: Vec3::Y, turn: Quat::IDENTITY };
        Skeleton::new(vec![bone(None), bone(Some(0))]).unwrap()
    }

    fn turning(is_loop: bool) -> KeyedClip {
        let turns = vec![Quat::IDENTITY, Quat::from_rotation_x(1.0), -Quat::from_rotation_x(2.0)];
        let track = Track { bone: 1, times_s: vec![0.0, 0.5, 1.0], keys: Keys::Turns(turns) };
        KeyedClip { name: "turn".into(), is_loop, tracks: vec![track] }
    }

    fn turn_of(clip: &Clip, bone: usize, at_s: f32) -> Quat {
        let (one, other, fraction) = clip.around(at_s);
        let number = |column: usize| {
            let index = column * clip.bones() + bone;
            one[index] + (other[index] - one[index]) * fraction
        };
        Quat::from_array(std::array::from_fn(|axis| number(3 + axis))).normalize()
    }

    #[test]
    fn a_moment_is_read_as_its_keys_say() {
        let clip = Clip::new(&skeleton(), &turning(false)).unwrap();
        for (at_s, angle) in [(0.0, 0.0), (0.25, 0.5), (0.5, 1.0), (0.9, 1.8), (1.0, 2.0), (7.0, 2.0), (-1.0, 0.0)] {
            let turn = turn_of(&clip, 1, at_s);
            assert!(turn.dot(Quat::from_rotation_x(angle)).abs() > 0.999_99, "{at_s} s: {turn}");
            assert!(turn_of(&clip, 0, at_s).dot(Quat::IDENTITY).abs() > 0.999_99);
        }
        assert_eq!(clip.farthest_m(1), 1.0);
    }

    #[test]
    fn a_loop_has_no_end_and_no_moment_is_wrong() {
        let clip = Clip::new(&skeleton(), &turning(true)).unwrap();
        for (at_s, same_as_s) in [(1.25, 0.25), (-0.75, 0.25), (f32::NAN, 0.0), (f32::INFINITY, 0.0)] {
            assert!(turn_of(&clip, 1, at_s).dot(turn_of(&clip, 1, same_as_s)) > 0.999_9, "{at_s} s");
        }
        for at_s in [f32::MAX, -f32::MAX, f32::MIN_POSITIVE, -f32::MIN_POSITIVE, 1e9, -0.0] {
            assert!(turn_of(&clip, 1, at_s).is_finite(), "{at_s} s");
        }
    }

    #[test]
    fn a_clip_of_one_moment_is_that_pose() {
        let track = Track { bone: 0, times_s: vec![0.0], keys: Keys::Places(vec![Vec3::X]) };
        let clip = Clip::new(&skeleton(), &KeyedClip { tracks: vec![track], ..KeyedClip::default() }).unwrap();
        let (one, other, fraction) = clip.around(3.0);
        assert_eq!((one[0], other[0], fraction), (1.0, 1.0, 0.0));
    }

    #[test]
    fn what_is_no_clip_is_refused_by_track_and_key() {
        let with = |change: fn(&mut Track)| {
            let mut keyed = turning(false);
            change(&mut keyed.tracks[0]);
            Clip::new(&skeleton(), &keyed).map(drop)
        };
        assert_eq!(with(|track| track.bone = 2), Err(ClipError::NoSuchBone { track: 0 }));
        assert_eq!(with(|track| _ = track.times_s.pop()), Err(ClipError::Count { track: 0 }));
        assert_eq!(with(|track| track.times_s[1] = 2.0), Err(ClipError::Times { track: 0 }));
        assert_eq!(with(|track| track.times_s[0] = f32::NAN), Err(ClipError::Times { track: 0 }));
        assert_eq!(with(|track| track.times_s[2] = 61.0), Err(ClipError::Times { track: 0 }));
        let bad =
            with(|track| track.keys = Keys::Turns(vec![Quat::IDENTITY, Quat::from_array([0.0; 4]), Quat::IDENTITY]));
        assert_eq!(bad, Err(ClipError::NotUsable { track: 0, key: 1 }));
        assert_eq!(Clip::new(&skeleton(), &KeyedClip::default()).map(drop), Err(ClipError::Empty));
    }
}
