//! Shown: where a bot's client draws the others, which is a little behind where it was told last that they are.
//!
//! A program shows the world evenly, at a moment between two snapshots that it has ([`Client::seen`]); that moment goes
//! with each input, and shots are judged by it. So what is aimed at is where somebody is drawn, as the client library
//! interpolates it.
//!
//! Sketch of the cost: some 30 ns for each player who is told; 6 KB.

use glam::Vec3;
use throng_client::{
    Client,
    interpolation::{Interpolate, InterpolationSettings, Moment, Track},
};
use throng_platform::time::Nanos;

use crate::{
    components::{Player, Pose},
    teams::SEATS,
};

/// Where somebody's feet are.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place(Vec3);

impl Interpolate for Place {
    fn between(&self, later: &Self, share: f32) -> Self {
        Self(self.0 + (later.0 - self.0) * share)
    }
}

/// The last places of everybody who is told of.
#[derive(Default)]
pub struct Shown {
    tracks: [Track<Place>; SEATS],
}

impl Shown {
    /// Another round, in which everybody stands elsewhere.
    pub fn forget(&mut self) {
        self.tracks.iter_mut().filter(|track| track.newest().is_some()).for_each(Track::clear);
    }

    /// Takes what has come; where everybody who is told of is drawn now, by seat.
    pub fn look(&mut self, now: Nanos, client: &mut Client) -> [Option<Vec3>; SEATS] {
        let mut places = [None; SEATS];
        let Some(at) = client.seen(now).map(Moment::from) else { return places };
        let Some(tick_hz) = client.world().map(|world| world.tick_hz) else { return places };
        let replicas = client.replicas();
        for (id, player) in replicas.iter::<Player>() {
            let told = replicas.get::<Pose>(id).zip(replicas.tick_of::<Pose>(id));
            let Some(((pose, tick), seat)) = told.zip(Some(usize::from(player.seat)).filter(|seat| *seat < SEATS))
            else {
                continue;
            };
            let track = &mut self.tracks[seat];
            track.push(tick, Place(pose.feet()));
            let sampled = track.sample(at, tick_hz, &InterpolationSettings::default());
            places[seat] = sampled.map(|(Place(feet), _)| feet);
        }
        // Who comes back into sight comes back where it is, and not from where it was.
        let gone = self.tracks.iter_mut().zip(&places).filter(|(_, place)| place.is_none());
        gone.filter(|(track, _)| track.newest().is_some()).for_each(|(track, _)| track.clear());
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_between_two_is_on_the_straight_way() {
        let (from, to) = (Place(Vec3::ZERO), Place(Vec3::new(4.0, 0.0, -2.0)));
        assert_eq!(from.between(&to, 0.5), Place(Vec3::new(2.0, 0.0, -1.0)));
    }
}
