//! Controls: what a player's client wants, input by input, and which steps of its body come of that in a tick.
//!
//! One input is one step, and its client has taken it already ([`crate::prediction`]). So all of them are taken, in the
//! order of their numbers, and no step is made up as long as inputs can be expected:
//!
//! ```text
//!   tick               40  41  42  43  44  45        46
//!   inputs that come    7   8   -   -   -  9 10 11 12  13     9 to 11 were lost, and come again with 12
//!   steps               1   1   0   0   0   4           1
//!   saved               0   0   1   2   3   0           0
//! ```
//!
//! Each tick grants a body a step. One that is not taken is saved, [`SAVED_MAX`] at most, and what comes late uses them: so
//! three packets lost in a row, or a lump after a late one, leave the body where it would be without. Beyond that a tick
//! makes its step without the client: by the last input, for [`HOLD_MS`]; a client that is silent for longer wants nothing,
//! and nothing is saved for it. What was saved and not needed for a second is forfeited.
//!
//! So a body's own time is never ahead of its match's, and at most [`SAVED_MAX`] ticks behind. Whatever a client sends, in
//! any numbers and order, in any `T` ticks its body makes `T + SAVED_MAX` steps at most, and in the long run one a tick: a
//! fast clock, a burst or a replay gains nothing. An input whose turn has gone, because a later one was taken, is dropped,
//! and so are those that nothing was saved for, the oldest first.
//!
//! Sketch of the cost: some 20 ns for each player and tick; nothing is allocated.

use throng::prelude::*;
use throng_platform::time::Nanos;

use crate::{movement::Wish, protocol::Input, weapons::ticks_of};

/// Steps that are saved for inputs that come late (62 ms). Too few → a lump after a late packet loses some; too many → who
/// holds inputs back is so many steps elsewhere in one tick: with 8, half the width of a body.
pub const SAVED_MAX: u8 = 8;
/// How long a player goes on without inputs (ms).
pub const HOLD_MS: u32 = 250;

/// Steps of one tick: its own, and all that were saved.
const STEPS_MAX: usize = SAVED_MAX as usize + 1;

/// More saved steps than a client repeats inputs: three lost packets, and as many late ones.
const _: () = assert!(SAVED_MAX > 2 * <Input as ClientInput>::REPEATS);

/// An input, its number, and what its player was shown.
#[derive(Pack, Debug, Clone, Copy, PartialEq)]
#[pack(name = "duel.received_input")]
pub struct ReceivedInput {
    pub number: u16,
    pub input: Input,
    #[pack(via = SavedSeen)]
    pub seen: Option<SeenMoment>,
}

/// What a player was shown, as it is packed.
#[derive(Pack, Debug, Clone, Copy)]
#[pack(name = "duel.seen")]
struct SavedSeen(Option<SavedMoment>);

#[derive(Pack, Debug, Clone, Copy)]
#[pack(name = "duel.seen_moment")]
struct SavedMoment {
    tick: u32,
    part: u8,
    newest_tick: u32,
    acked_tick: u32,
    round_trip_ns: u64,
}

impl From<Option<SeenMoment>> for SavedSeen {
    fn from(seen: Option<SeenMoment>) -> Self {
        Self(seen.map(|SeenMoment { tick, part, newest_tick, acked_tick, round_trip }| SavedMoment {
            tick,
            part,
            newest_tick,
            acked_tick,
            round_trip_ns: round_trip.0,
        }))
    }
}

impl From<SavedSeen> for Option<SeenMoment> {
    fn from(SavedSeen(seen): SavedSeen) -> Self {
        seen.map(|SavedMoment { tick, part, newest_tick, acked_tick, round_trip_ns }| SeenMoment {
            tick,
            part,
            newest_tick,
            acked_tick,
            round_trip: Nanos(round_trip_ns),
        })
    }
}

/// What became of an input that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It waits for the tick.
    InTime,
    /// A later one, or this one, was taken before.
    Late,
    /// There are more than a tick can ever take: the oldest is dropped.
    Excess,
}

/// What a player's client wants, as of this tick.
#[derive(Component, Pack, Debug, Clone, Default)]
#[pack(name = "duel.controls")]
pub struct Controls {
    /// Of those that were taken, the number of the newest.
    newest: Option<u16>,
    /// Ticks since an input was taken.
    held_ticks: u32,
    /// Steps that inputs may still use which come late.
    saved: u8,
    /// Of these, how many were not needed in this period, and how long that lasts already.
    unneeded: u8,
    period_ticks: u16,
    /// The newest input that was taken.
    now: Option<ReceivedInput>,
    /// What hands do in this tick.
    acting: Option<ReceivedInput>,
    /// This tick's.
    steps: ArrayVec<Wish, STEPS_MAX>,
    /// For the next tick, by number.
    arrived: ArrayVec<ReceivedInput, STEPS_MAX>,
}

impl StateHash for Controls {
    fn hash_state(&self, hasher: &mut StateHasher) {
        // What is of one tick alone follows from the rest, and from what came for it.
        let Self { newest, held_ticks, saved, unneeded, period_ticks, now, acting: _, steps: _, arrived } = self;
        hasher.write_u64((arrived.len() as u64) << 33 | u64::from(now.is_some()) << 32 | u64::from(*held_ticks));
        let known = newest.map_or(u64::MAX, u64::from);
        hasher.write_u64(known << 32 | u64::from(*period_ticks) << 16 | u64::from(*unneeded) << 8 | u64::from(*saved));
        for ReceivedInput { number, input, seen } in now.iter().chain(arrived) {
            hasher.write_u64((*number).into());
            input.hash_state(hasher);
            hasher.write_u64(seen.map_or(u64::MAX, |seen| u64::from(seen.tick) << 8 | u64::from(seen.part)));
        }
    }
}

impl Controls {
    /// Takes an input that came, for the tick that begins next.
    pub fn take(&mut self, received: ReceivedInput) -> Taken {
        let is_known = self.newest.is_some_and(|newest| !is_before(newest, received.number));
        if is_known || self.arrived.iter().any(|other| other.number == received.number) {
            return Taken::Late;
        }
        let later = self.arrived.iter().position(|other| is_before(received.number, other.number));
        let place = later.unwrap_or(self.arrived.len());
        if !self.arrived.is_full() {
            self.arrived.insert(place, received);
            return Taken::InTime;
        }
        if let Some(place) = place.checked_sub(1) {
            self.arrived.remove(0);
            self.arrived.insert(place, received);
        }
        Taken::Excess
    }

    /// Begins a tick: what came and may be taken is. How many inputs were dropped, since nothing was saved for them.
    pub fn advance(&mut self, tick_hz: u16) -> usize {
        self.steps.clear();
        let granted = usize::from(self.saved) + 1;
        let excess = self.arrived.len().saturating_sub(granted);
        self.arrived.drain(..excess);
        if let Some(newest) = self.arrived.last().copied() {
            self.saved = (granted - self.arrived.len()) as u8;
            self.steps.extend(self.arrived.iter().map(|received| Wish::from(&received.input)));
            // A trigger that was pulled and let go within a lump is pulled.
            let firing = self.arrived.iter().rfind(|received| received.input.fire()).copied();
            (self.now, self.acting) = (Some(newest), firing.or(Some(newest)));
            (self.newest, self.held_ticks) = (Some(newest.number), 0);
            self.arrived.clear();
        } else {
            self.go_without(tick_hz);
        }
        self.forfeit(tick_hz);
        excess
    }

    /// A tick for which nothing came.
    fn go_without(&mut self, tick_hz: u16) {
        self.held_ticks = self.held_ticks.saturating_add(1);
        if self.held_ticks > ticks_of(HOLD_MS, tick_hz) {
            (self.now, self.saved) = (None, 0);
            self.steps.push(Wish::default());
        } else if self.saved < SAVED_MAX {
            self.saved += 1;
        } else {
            self.steps.push(self.now.map_or_else(Wish::default, |received| Wish::from(&received.input)));
            // It is as far behind as it may be, and needs all.
            self.unneeded = 0;
        }
        self.acting = self.now;
    }

    /// What was not needed for a second is not needed.
    fn forfeit(&mut self, tick_hz: u16) {
        self.unneeded = self.unneeded.min(self.saved);
        self.period_ticks += 1;
        if self.period_ticks >= tick_hz {
            self.saved -= self.unneeded;
            (self.unneeded, self.period_ticks) = (self.saved, 0);
        }
    }

    /// What the body wants in each step of this tick; in most there is one.
    pub fn steps(&self) -> &[Wish] {
        &self.steps
    }

    /// What hands and eyes do in this tick: as the newest input says, or of several that were taken together the newest that
    /// pulls the trigger. Nothing, if its client has been silent for too long.
    pub fn input(&self) -> Option<&Input> {
        self.acting.as_ref().map(|received| &received.input)
    }

    /// What the player was shown when that input was made, and for how many ticks it has been held since.
    pub fn seen(&self) -> Option<(SeenMoment, u32)> {
        Some((self.acting?.seen?, self.held_ticks))
    }

    /// It wants nothing any more: another round begins. What its client sends goes on, and so does what is saved.
    pub fn clear(&mut self) {
        (self.now, self.acting, self.held_ticks) = (None, None, 0);
        self.steps.clear();
        self.arrived.clear();
    }
}

/// Whether one number comes before another. Numbers wrap: the shorter way round is the true one.
fn is_before(number: u16, other: u16) -> bool {
    (other.wrapping_sub(number) as i16) > 0
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::{
        map::{Map, layout::middle_of},
        movement::{Motion, step},
    };

    const TICK_HZ: u16 = 128;

    /// An input that is told from others by how far it goes.
    fn received(number: u16) -> ReceivedInput {
        ReceivedInput { number, input: Input::new([0.0, f32::from(number % 100) / 100.0], 0.0, 0.0), seen: None }
    }

    /// Takes these for the next tick, and says which of them are its steps, by number below 100.
    fn tick(controls: &mut Controls, numbers: impl IntoIterator<Item = u16>) -> Vec<u16> {
        numbers.into_iter().for_each(|number| _ = controls.take(received(number)));
        controls.advance(TICK_HZ);
        controls.steps().iter().map(|wish| (wish.direction[1] * 100.0).round() as u16).collect()
    }

    #[test]
    fn inputs_that_were_overtaken_are_taken_in_the_order_of_their_numbers() {
        let mut controls = Controls::default();
        assert_eq!(tick(&mut controls, [1]), [1]);
        assert_eq!([tick(&mut controls, []), tick(&mut controls, [])], [[0_u16; 0]; 2]);
        assert_eq!(tick(&mut controls, [4, 2, 3, 2, 4]), [2, 3, 4]);
        assert_eq!(controls.take(received(3)), Taken::Late, "its turn has gone");
        assert_eq!(tick(&mut controls, [5]), [5]);
        let mut controls = Controls::default();
        tick(&mut controls, [65_535]);
        tick(&mut controls, []);
        assert_eq!(tick(&mut controls, [1, 0]), [0, 1], "numbers wrap");
    }

    /// Promise: a body whose client's packets are lost, up to three in a row, is where it would be without, as soon as the
    /// next one comes.
    #[test]
    fn three_lost_in_a_row_cost_nothing() {
        let (map, dt_s, repeats) = (Map::load(), 1.0 / f32::from(TICK_HZ), u16::from(Input::REPEATS));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let wishes: Vec<Input> = (0..4_000)
            .scan(0.0, |angle: &mut f32, number| {
                *angle += if number % 30 == 0 { rng.random_range(-2.0..2.0) } else { 0.0 };
                Some(Input::new([angle.sin(), angle.cos()], *angle, 0.0))
            })
            .collect();
        let mut without = Motion::standing(middle_of(8, 4));
        let (mut body, mut controls, mut lost, mut lost_count) = (without, Controls::default(), 0, 0);
        for (number, input) in (0_u16..).zip(&wishes) {
            step(&mut without, &Wish::from(input), None, &map, dt_s);
            let is_lost = lost < repeats && rng.random_bool(0.2);
            if is_lost {
                (lost, lost_count) = (lost + 1, lost_count + 1);
            } else {
                for number in number.saturating_sub(repeats)..=number {
                    controls.take(ReceivedInput { number, input: wishes[usize::from(number)], seen: None });
                }
                lost = 0;
            }
            assert_eq!(controls.advance(TICK_HZ), 0);
            controls.steps().iter().for_each(|wish| step(&mut body, wish, None, &map, dt_s));
            assert!(is_lost || body == without, "input {number}: {body:?} instead of {without:?}");
        }
        assert!(lost_count > 500, "{lost_count}");
    }

    /// Promise: whatever numbers come, in whatever order and however many, no body makes more steps in any time than the
    /// time has ticks, and what was saved.
    #[test]
    fn hostile_numbers_gain_no_speed() {
        for seed in 0..50 {
            let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut controls, mut honest, mut ahead, mut most) = (Controls::default(), 0_u16, 0_i64, 0);
            for _ in 0..5_000 {
                honest = honest.wrapping_add(1);
                let came = if rng.random_bool(0.5) { 0 } else { rng.random_range(0..20) };
                for _ in 0..came {
                    let number = match rng.random_range(0..3) {
                        0 => rng.random(),
                        1 => honest.wrapping_add(rng.random_range(0..40)).wrapping_sub(20),
                        _ => honest.wrapping_add(0x8000).wrapping_add(rng.random_range(0..3)),
                    };
                    controls.take(received(number));
                }
                controls.advance(TICK_HZ);
                // The most that any run of ticks that ends here has over its length.
                ahead = (ahead + controls.steps().len() as i64 - 1).max(0);
                most = most.max(ahead);
            }
            assert!(most <= i64::from(SAVED_MAX), "seed {seed}: {most} steps more than ticks");
        }
    }

    #[test]
    fn of_a_burst_a_tick_takes_the_newest_that_it_may() {
        let mut controls = Controls::default();
        let excess = (1..=16).filter(|number| controls.take(received(*number)) == Taken::Excess).count();
        assert_eq!((excess, controls.advance(TICK_HZ)), (7, 8), "nothing was saved yet");
        assert_eq!(controls.steps().len(), 1);
        assert_eq!(controls.input(), Some(&received(16).input));
        assert_eq!(tick(&mut controls, [17]), [17]);
    }

    #[test]
    fn a_silent_client_stands_still_after_a_quarter_of_a_second() {
        let mut controls = Controls::default();
        tick(&mut controls, [50]);
        let moving: usize = (0..100).map(|_| tick(&mut controls, []).iter().filter(|step| **step == 50).count()).sum();
        assert_eq!(moving, 32 - usize::from(SAVED_MAX), "250 ms on credit, less what is saved for what comes late");
        assert_eq!((controls.input(), controls.steps()), (None, &[Wish::default()][..]));
        assert_eq!(tick(&mut controls, [52, 53]), [53], "nothing was saved for it");
    }

    /// Promise: who sends less often than the match ticks is as fast as anybody: the last input goes on.
    #[test]
    fn who_sends_seldom_goes_on_by_the_last_input() {
        let mut controls = Controls::default();
        let mut steps = |tick_number: u16| {
            let number = tick_number.is_multiple_of(6).then_some(tick_number / 6);
            tick(&mut controls, number).len()
        };
        (0..128).for_each(|number| _ = steps(number));
        assert!((128..1_280).all(|number| steps(number) == 1));
    }

    /// Promise: what was saved in an outage is gone two seconds after it.
    #[test]
    fn what_is_not_needed_is_forfeited() {
        let mut controls = Controls::default();
        tick(&mut controls, [1]);
        (0..20).for_each(|_| _ = tick(&mut controls, []));
        assert_eq!(controls.saved, SAVED_MAX);
        for number in 2..2 + 2 * TICK_HZ {
            assert_eq!(tick(&mut controls, [number]).len(), 1);
        }
        assert_eq!(controls.saved, 0);
    }

    /// A lump of three, of which the middle one pulls the trigger.
    #[test]
    fn a_trigger_that_was_pulled_and_let_go_between_two_ticks_is_pulled() {
        let mut controls = Controls::default();
        tick(&mut controls, [1]);
        (0..2).for_each(|_| _ = tick(&mut controls, []));
        let firing = ReceivedInput { input: Input::new([0.0; 2], 1.0, 0.0).and_fire(), ..received(3) };
        [received(2), firing, received(4)]
            .into_iter()
            .for_each(|received| assert_eq!(controls.take(received), Taken::InTime));
        controls.advance(TICK_HZ);
        assert_eq!((controls.input(), controls.steps().len()), (Some(&firing.input), 3));
        controls.advance(TICK_HZ);
        assert_eq!(controls.input(), Some(&received(4).input), "held is what was said last");
    }
}
