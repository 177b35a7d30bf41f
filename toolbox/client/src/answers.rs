//! Answers: which input each tick took in last, so that a value of a tick can be held against what was predicted.
//!
//! Each snapshot says the newest input that its tick took in. A component's value says for which tick it is true, and it is
//! told only when it has changed. So a value that came with tick 7 is also that of tick 9, if the snapshots of 8 and 9 came
//! and had nothing of it:
//!
//! ```text
//!   snapshots come      6   7   8   9   -   11  12         10 was lost, or there was nothing to say
//!   inputs they tell    40  41  42  43      45  46
//!   the value came          *
//!   it holds until              ....9                      in 10 it may have changed
//! ```
//!
//! What a lost packet had to say is said again once its loss is noticed, and that takes less than a second. So a value that
//! was not told again holds a second ago in any case. Of a tick that is told in several packets one has what is new of the
//! own entity, and that one says the input. The others say 0, and the tick has not come with them.
//!
//! Sans-IO, on its client's thread. A ring of 256 ticks, made at the start; no allocation after.

use std::collections::VecDeque;

use crate::input_number::is_at_or_after;

/// Ticks that are remembered: the second that is needed at any rate, 2 s at 128 Hz.
const TICKS_MAX: usize = 256;
const _: () = assert!(TICKS_MAX > TOLD_AGAIN_S as usize * u8::MAX as usize);

/// How long it takes at most until what was lost is told again. (s) Two round trips and 50 ms to notice, half a one to
/// tell: 0.8 s at a round trip of 300 ms.
const TOLD_AGAIN_S: u32 = 1;

/// Inputs that can be on their way: 32 s at 128 Hz, more than a connection outlives. A number further back is none that
/// this stay's world has taken.
const ON_THEIR_WAY_MAX: u16 = 4_096;

/// What snapshots said of one stay in a world.
#[derive(Debug)]
pub(crate) struct Answers {
    /// By tick, oldest first.
    told: VecDeque<Answer>,
    /// The last input before this stay.
    input_before_stay: u16,
    /// The newest input that this stay's world has taken, if it has taken any.
    input_newest: Option<u16>,
}

/// The newest input that a tick took in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub tick: u32,
    pub input: u16,
}

impl Default for Answers {
    fn default() -> Self {
        Self { told: VecDeque::with_capacity(TICKS_MAX), input_before_stay: 0, input_newest: None }
    }
}

impl Answers {
    /// Another stay, with other ticks. Inputs up to `last_number` were for the one before.
    pub fn left_world(&mut self, last_number: u16) {
        self.told.clear();
        (self.input_before_stay, self.input_newest) = (last_number, None);
    }

    /// A snapshot has come that says `input`; the last one sent is `last_number`. A snapshot that was overtaken takes its
    /// place among the others.
    pub fn heard(&mut self, tick: u32, input: u16, last_number: u16) {
        if input == 0 && self.input_newest.is_some() {
            // Another packet of the tick says it.
            return;
        }
        let input = self.of_this_stay(input, last_number);
        let place = self.told.partition_point(|answer| answer.tick < tick);
        if let Some(told) = self.told.get_mut(place).filter(|answer| answer.tick == tick) {
            // Until the world's first input is heard of, the packets that do not say it look as if there were none.
            if told.input == self.input_before_stay {
                told.input = input;
            }
            return;
        }
        if self.told.len() == TICKS_MAX {
            if place == 0 {
                return;
            }
            self.told.pop_front();
            self.told.insert(place - 1, Answer { tick, input });
        } else {
            self.told.insert(place, Answer { tick, input });
        }
    }

    /// The input that a snapshot says was taken; the last one before this stay, as long as its world has taken none and says
    /// any number.
    fn of_this_stay(&mut self, input: u16, last_number: u16) -> u16 {
        let Self { input_before_stay: before, input_newest: newest, .. } = self;
        // It has taken none, though 0 lies between two numbers where they go round.
        if input == 0 {
            return newest.unwrap_or(*before);
        }
        let is_after_those_before = newest.is_some() || (input != *before && is_at_or_after(input, *before));
        if is_after_those_before && last_number.wrapping_sub(input) < ON_THEIR_WAY_MAX {
            *newest = Some(input);
        }
        newest.unwrap_or(*before)
    }

    /// The newest tick of which a value is surely true that was told for `told_tick`, and the input that it includes.
    /// `None`: no such tick is remembered.
    pub fn holds_until(&self, told_tick: u32, tick_hz: u8) -> Option<Answer> {
        let newest = self.told.back()?;
        let first = self.told.partition_point(|answer| answer.tick < told_tick);
        let unbroken = self.told.range(first..).zip(told_tick..).take_while(|(answer, tick)| answer.tick == *tick);
        let unbroken_count = unbroken.count();
        let in_any_case = newest.tick.saturating_sub(TOLD_AGAIN_S * u32::from(tick_hz));
        let old_count = self.told.partition_point(|answer| answer.tick <= in_any_case);
        let last = (first + unbroken_count).max(old_count).checked_sub(1)?;
        self.told.get(last).copied().filter(|answer| answer.tick >= told_tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Snapshots of these ticks have come, each with an input 100 less than its tick.
    fn answers(ticks: impl IntoIterator<Item = u32>) -> Answers {
        let mut answers = Answers::default();
        ticks.into_iter().for_each(|tick| answers.heard(tick, tick as u16 - 100, tick as u16 - 100));
        answers
    }

    fn check(answers: &Answers, told_tick: u32, expect: Option<u32>) {
        let expect = expect.map(|tick| Answer { tick, input: tick as u16 - 100 });
        assert_eq!(answers.holds_until(told_tick, 20), expect, "told for {told_tick}");
    }

    #[test]
    fn a_value_holds_for_as_long_as_every_snapshot_came() {
        let answers = answers([206, 207, 208, 209, 211, 212]);
        check(&answers, 207, Some(209));
        check(&answers, 211, Some(212));
        check(&answers, 212, Some(212));
        check(&answers, 210, None);
        check(&answers, 213, None);
        check(&Answers::default(), 7, None);
    }

    #[test]
    fn what_was_lost_is_told_again_within_a_second() {
        let odd = || (0..60).map(|number| 201 + 2 * number);
        check(&answers(odd()), 201, Some(299));
        check(&answers(odd()), 299, Some(299));
        check(&answers(odd()), 305, Some(305));
        check(&answers(odd().rev()), 201, Some(299));
    }

    /// Promise: of a tick whose packet with the own entity was lost nothing is believed, whatever else came of it.
    #[test]
    fn a_tick_has_come_with_the_packet_that_says_its_input() {
        let mut answers = answers([206, 207]);
        answers.heard(208, 0, 108);
        answers.heard(209, 109, 109);
        check(&answers, 207, Some(207));
        answers.heard(208, 108, 109);
        answers.heard(208, 0, 109);
        check(&answers, 207, Some(209));
        let mut first = Answers::default();
        first.heard(7, 0, 1);
        first.heard(7, 1, 1);
        assert_eq!(first.holds_until(7, 20), Some(Answer { tick: 7, input: 1 }), "in whichever order they come");
    }

    #[test]
    fn old_ticks_are_forgotten_and_come_back_no_more() {
        let mut answers = answers(1_000..3_000);
        assert_eq!(answers.told.len(), TICKS_MAX);
        answers.heard(1_500, 2_900, 2_900);
        answers.heard(2_999, 2_899, 2_900);
        assert_eq!((answers.told.len(), answers.told[0].tick), (TICKS_MAX, 3_000 - TICKS_MAX as u32));
        check(&answers, 2_900, Some(2_999));
        check(&answers, 1_000, Some(2_979));
        answers.left_world(2_900);
        check(&answers, 2_900, None);
    }

    /// Promise: a world that has taken no input yet, and says any number, confirms none.
    #[test]
    fn what_a_world_says_before_it_has_taken_an_input_is_the_last_one_before_it() {
        let mut answers = Answers::default();
        answers.left_world(40_000);
        let mut said = |tick, input, last_number| {
            answers.heard(tick, input, last_number);
            answers.holds_until(tick, 20).map(|answer| answer.input)
        };
        assert_eq!(said(7, 0, 40_003), Some(40_000));
        assert_eq!(said(8, 39_990, 40_004), Some(40_000));
        assert_eq!(said(9, 40_002, 40_004), Some(40_002));
        assert_eq!(said(10, 0, 40_005), None, "it has taken some, and this packet is not the one that says them");
        assert_eq!(said(11, 40_005, 40_005), Some(40_005));
    }

    /// Promise: the same holds where numbers go round, between 65,535 and 1.
    #[test]
    fn a_world_that_has_taken_none_confirms_none_where_numbers_go_round() {
        let mut answers = Answers::default();
        answers.left_world(65_534);
        let mut said = |tick, input, last_number| {
            answers.heard(tick, input, last_number);
            answers.holds_until(tick, 20).map(|answer| answer.input)
        };
        assert_eq!(said(7, 0, 2), Some(65_534));
        assert_eq!(said(8, 65_535, 2), Some(65_535));
        assert_eq!(said(9, 1, 3), Some(1));
    }
}
