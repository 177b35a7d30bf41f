//! Pace: whose inputs come faster than time goes, for operators.
//!
//! A client makes one input for each tick of its match. One whose clock was made fast makes more. It gains no step by that,
//! for [`controls`](crate::controls) holds every body to its match's time; but it tries, and what is dropped there
//! (`inputs_excess`) does not tell it from a line that brings honest inputs late and all at once. That one has sent as many
//! as there were ticks all the same. So what is asked here is not how many come in a tick, but how far a seat's inputs are
//! ahead of the ticks:
//!
//! ```text
//!   with each tick    - 1.03    never below 0
//!   with each input   + 1       one that would bring it above 42 is over the rate: counted, and not added
//! ```
//!
//! An honest client that is behind its server makes up to 2 % more until it is right again. So a clock that is 1.10 times as
//! fast is found within 5 s, and a line that holds inputs back for up to 300 ms makes nobody look like one. A server that
//! stands still for longer makes everybody look so at once. The account is the seat's, where what is saved for late inputs
//! is the stay's: who connects again has no new one.
//!
//! `inputs_over_rate` counts such inputs. They are taken as any other, and nothing of the account goes into the match. Cost:
//! some nanoseconds for each input.

use throng_replication::table_resource;

use crate::{protocol::TICK_HZ, teams::SEATS};

// In hundredths of an input.
const INPUT: u32 = 100;
/// What a tick takes off. Too low → honest clients whose clocks catch up are over the rate; too high → clocks that are a
/// little fast are not.
const TICK: u32 = 103;
/// Too low → honest clients on uneven lines are over the rate; too high → fast clocks are found late.
const AHEAD_MAX: u32 = 42 * INPUT;

/// Of a clock that is 1.10 times as fast an input is over the rate within 5 s.
const _: () = assert!(5 * TICK_HZ as u32 * (INPUT * 110 / 100 - TICK) >= AHEAD_MAX + INPUT);
/// An even line that holds back what it carries for 300 ms, with a tick's input before that and after it.
const _: () = assert!(300 * TICK_HZ as u32 / 1_000 * INPUT + 2 * INPUT <= AHEAD_MAX);

/// How the inputs of each seat come.
#[derive(Debug, Default)]
pub struct Pace {
    /// How far they are ahead of the ticks, by seat.
    ahead: [u32; SEATS],
    /// Those over the rate since the match began, by seat.
    over: [u32; SEATS],
}

table_resource!(Pace);

impl Pace {
    /// How many inputs of a seat were over the rate since the match began.
    pub fn over(&self, seat: u8) -> u32 {
        self.over[usize::from(seat)]
    }

    pub fn begin_tick(&mut self) {
        self.ahead.iter_mut().for_each(|ahead| *ahead = ahead.saturating_sub(TICK));
    }

    /// An input has come; whether it is over the rate.
    pub fn note(&mut self, seat: u8) -> bool {
        let (ahead, over) = (&mut self.ahead[usize::from(seat)], &mut self.over[usize::from(seat)]);
        let is_over = *ahead + INPUT > AHEAD_MAX;
        if is_over {
            *over = over.saturating_add(1);
        } else {
            *ahead += INPUT;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tick in which a clock is found that is so many hundredths as fast, of so many ticks.
    fn found(hundredths: u32, ticks: u32) -> Option<u32> {
        let (mut pace, mut due) = (Pace::default(), 0);
        (0..ticks).find(|_| {
            pace.begin_tick();
            due += hundredths;
            let inputs = due / 100;
            due %= 100;
            (0..inputs).filter(|_| pace.note(3)).count() > 0
        })
    }

    #[test]
    fn a_fast_clock_is_found_within_five_seconds_and_one_that_catches_up_is_not() {
        let ticks = 5 * u32::from(TICK_HZ);
        assert!([110, 125, 200, 1_000].into_iter().all(|fast| found(fast, ticks).is_some()));
        assert!(found(1_000, ticks).is_some_and(|tick| tick < 5), "the faster, the sooner");
        assert_eq!([98, 100, 102].map(|honest| found(honest, 100 * ticks)), [None; 3]);
    }

    #[test]
    fn a_lump_is_nothing_and_what_is_over_the_rate_is_forgotten() {
        let mut pace = Pace::default();
        let mut lump = |inputs: u32| {
            pace.begin_tick();
            (0..inputs).filter(|_| pace.note(0)).count()
        };
        assert_eq!([lump(40), lump(1), lump(60)], [0, 0, 57], "of 60 more three have their place");
        assert_eq!((0..42).map(|_| lump(0)).sum::<usize>(), 0);
        assert_eq!(lump(42), 0, "it has drained");
        assert_eq!((pace.over(0), pace.over(1)), (57, 0));
    }
}
