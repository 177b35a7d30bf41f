//! Drawn: where a player's program draws somebody, which is a little behind where it was told last that it is.
//!
//! A program shows the world evenly, at a moment between two snapshots that it has
//! ([`Client::seen`](throng_client::Client::seen)), and a shot is judged by that moment. So what is aimed at is where
//! somebody is drawn, and not the newest that is known. In between it walks straight, as the server has it, too.
//!
//! One for each whom a program keeps an eye on. Sans-IO; a few numbers.

use glam::Vec3;
use throng_replication::Seen;

/// Places that are kept: at 20 looks a second, 0.4 s.
const PLACES_MAX: usize = 8;

/// Somebody's last places.
#[derive(Debug, Clone, Copy, Default)]
pub struct Drawn {
    /// With the ticks that they were told of, ascending.
    places: [(u32, Vec3); PLACES_MAX],
    count: usize,
}

impl Drawn {
    /// It is somebody else from now on.
    pub fn forget(&mut self) {
        self.count = 0;
    }

    /// Notes where it is as of the newest tick that was told of. Further places of the same tick say nothing; beyond
    /// eight the oldest is dropped.
    pub fn note(&mut self, tick: u32, feet: Vec3) {
        if self.places[..self.count].last().is_some_and(|(newest, _)| tick <= *newest) {
            return;
        }
        if self.count == PLACES_MAX {
            self.places.copy_within(1.., 0);
            self.count -= 1;
        }
        self.places[self.count] = (tick, feet);
        self.count += 1;
    }

    /// Where it is drawn at a moment; `None` for one before all that is known of it.
    pub fn at(&self, seen: Seen) -> Option<Vec3> {
        let (tick, part) = seen.moment();
        let places = &self.places[..self.count];
        let after = places.partition_point(|(told, _)| *told <= tick);
        let (from_tick, from) = *places.get(after.checked_sub(1)?)?;
        let Some((to_tick, to)) = places.get(after).copied() else { return Some(from) };
        let elapsed = (tick - from_tick) as f32 + f32::from(part) / 256.0;
        Some(from + (to - from) * (elapsed / (to_tick - from_tick) as f32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x_at(drawn: &Drawn, newest_tick: u32, behind_parts: u16) -> Option<f32> {
        drawn.at(Seen { newest_tick, behind_parts }).map(|place| place.x)
    }

    #[test]
    fn somebody_is_drawn_on_the_straight_way_between_two_places() {
        let mut drawn = Drawn::default();
        assert_eq!(x_at(&drawn, 7, 0), None);
        for tick in [10, 11, 13, 13] {
            drawn.note(tick, Vec3::X * tick as f32);
        }
        let moments = [(10, 1), (10, 0), (11, 128), (13, 256), (13, 384), (13, 0), (14, 0)];
        let expect = [None, Some(10.0), Some(10.5), Some(12.0), Some(11.5), Some(13.0), Some(13.0)];
        assert_eq!(moments.map(|(newest, behind)| x_at(&drawn, newest, behind)), expect);
        (14..40).for_each(|tick| drawn.note(tick, Vec3::X * tick as f32));
        assert_eq!([31, 32, 39].map(|tick| x_at(&drawn, tick, 0)), [None, Some(32.0), Some(39.0)]);
        drawn.forget();
        assert_eq!(x_at(&drawn, 39, 0), None);
    }
}
