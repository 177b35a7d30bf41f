//! Habits: what bots of every game do, whatever they play.
//!
//! Notice that they get nowhere, that they have no body, and do something once in a while. Plain counters, without a
//! clock: a bot thinks at a fixed rate, so thoughts are its time. Nothing here allocates; a few nanoseconds each.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_client::Client;
use throng_platform::time::Nanos;
use throng_replication::ClientInput;

use crate::Behaviour;

/// Says the same whenever it thinks: for who is only to be there.
#[derive(Debug, Clone)]
pub struct Repeats<T>(pub T);

impl<T: ClientInput> Behaviour for Repeats<T> {
    fn think(&mut self, now: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        // Between two worlds it is refused; the next turn is soon.
        let _ = client.send_input(now, &self.0);
    }
}

/// Notices that somebody who wants to walk gets nowhere: into a wall, a fence, a crowd.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    at: [f32; 2],
    thoughts: u32,
}

impl Progress {
    /// Nearer than this to where it was is nowhere. (m)
    const STEP_M: f32 = 1.0;

    /// Notes where the walker is now, in the plane, and answers for how many thoughts it has got nowhere.
    pub fn note(&mut self, place: [f32; 2]) -> u32 {
        let way = [place[0] - self.at[0], place[1] - self.at[1]];
        if way[0].hypot(way[1]) > Self::STEP_M {
            self.at = place;
            self.thoughts = 0;
        } else {
            self.thoughts = self.thoughts.saturating_add(1);
        }
        self.thoughts
    }

    /// For how many thoughts it has got nowhere.
    pub fn thoughts(&self) -> u32 {
        self.thoughts
    }

    /// Begins anew, with another goal.
    pub fn forget(&mut self) {
        self.thoughts = 0;
    }
}

/// Notices that a player in a world has no entity of its own for too long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bodiless {
    thoughts: u32,
}

impl Bodiless {
    /// Thoughts without an own entity, at which something is wrong: five seconds of a bot that thinks at 20 Hz.
    pub const THOUGHTS_MAX: u32 = 100;

    /// Another thought without. True once for every time that it has been too long.
    pub fn another_thought(&mut self) -> bool {
        self.thoughts = self.thoughts.saturating_add(1);
        self.thoughts == Self::THOUGHTS_MAX
    }

    /// It has one, or is in another world.
    pub fn forget(&mut self) {
        self.thoughts = 0;
    }
}

/// True once in so many seconds on average, for a bot that thinks `tick_hz` times a second. `seconds` > 0.
pub fn once_in(seconds: f32, tick_hz: f32, rng: &mut impl Rng) -> bool {
    rng.random::<f32>() * seconds * tick_hz < 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn who_stands_still_gets_nowhere_and_who_walks_does_not() {
        let mut progress = Progress::default();
        assert_eq!(progress.note([5.0, 0.0]), 0);
        for thought in 1..=10 {
            assert_eq!(progress.note([5.0, thought as f32 * 0.09]), thought);
        }
        assert_eq!(progress.note([5.0, 1.1]), 0);
        progress.note([5.0, 1.1]);
        assert_eq!(progress.thoughts(), 1);
        progress.forget();
        assert_eq!(progress.thoughts(), 0);
    }

    #[test]
    fn a_missing_body_is_told_once() {
        let mut bodiless = Bodiless::default();
        let told = (0..1_000).filter(|_| bodiless.another_thought()).count();
        assert_eq!(told, 1);
        bodiless.forget();
        assert_eq!((0..Bodiless::THOUGHTS_MAX).filter(|_| bodiless.another_thought()).count(), 1);
    }

    #[test]
    fn once_in_a_while_is_as_often_as_it_says() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let times = (0..200_000).filter(|_| once_in(10.0, 20.0, &mut rng)).count();
        assert!((900..1_100).contains(&times), "{times} times in 1,000 periods");
    }
}
