//! Input window: which of a client's numbered inputs were taken, so that each counts once however often it comes.
//!
//! A client says its inputs again in the next packets, in case one is lost (`ClientInput::REPEATS`). What comes again is
//! known by its number:
//!
//! ```text
//!   number       ... 37  38  39  40  41  42          42 is the newest
//!   taken             1   1   0   1   1   1          39 was lost: it may still come, late, and once
//!              <- known ----------------- 64 -->
//! ```
//!
//! What is older than the window may have been taken or not, and is not taken any more. So of the last 64 numbers none is
//! taken twice, whatever a client sends. A number comes again when a client has gone half-way round and more: that is
//! another input, and costs it as much as any.
//!
//! A client that does as its inputs' kind declares says each again so often, and pays nothing for that. So each input that is
//! taken lets as many come again free; what is beyond is charged as any other message. Which ones come again is not asked: at
//! worst a client gets [`INPUT_REPEATS_MAX`] looks at a number for each input that it has paid for.
//!
//! With its client. Cost: a subtraction and a shift for each input; 16 bytes.

use throng_replication::INPUT_REPEATS_MAX;

/// Numbers that are remembered, the newest included. At 128 inputs a second half a second: a packet that is later than
/// that was repeated long ago.
const WINDOW: u16 = u64::BITS as u16;

/// Repeats that may still come free, at most: all those of as many inputs as are remembered. A client keeps half as many.
const REPEATS_LEFT_MAX: u16 = WINDOW * INPUT_REPEATS_MAX as u16;

/// How an input stands to those that were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputOrder {
    /// After all of them.
    Newest,
    /// Before the newest, and not taken yet.
    Late,
    /// Taken already, or too old to tell.
    Known,
}

const _: () = assert!(size_of::<InputWindow>() == 16);

/// The inputs of one stay in a world.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InputWindow {
    /// `None`: none was taken yet.
    newest: Option<u16>,
    /// Bit `i`: the input `i` numbers before the newest was taken.
    taken: u64,
    /// Repeats that may still come free.
    repeats_left: u16,
}

impl InputWindow {
    /// The number of the newest input, if there was one.
    pub fn newest(&self) -> Option<u16> {
        self.newest
    }

    /// How input `number` stands to those that were taken. Numbers wrap: the shorter way round is the true one.
    pub fn order_of(&self, number: u16) -> InputOrder {
        let Some(newest) = self.newest else { return InputOrder::Newest };
        let behind = newest.wrapping_sub(number);
        if (number.wrapping_sub(newest) as i16) > 0 {
            InputOrder::Newest
        } else if behind >= WINDOW || self.taken >> behind & 1 == 1 {
            InputOrder::Known
        } else {
            InputOrder::Late
        }
    }

    /// Notes that input `number` is taken; says how it stood to the others.
    pub fn take(&mut self, number: u16) -> InputOrder {
        let order = self.order_of(number);
        match order {
            InputOrder::Newest => {
                let ahead = self.newest.map_or(WINDOW, |newest| number.wrapping_sub(newest));
                self.taken = self.taken.checked_shl(ahead.into()).unwrap_or(0) | 1;
                self.newest = Some(number);
            }
            InputOrder::Late => self.taken |= 1 << self.newest.map_or(0, |newest| newest.wrapping_sub(number)),
            InputOrder::Known => {}
        }
        order
    }

    /// An input of a kind that is said again so often was taken.
    pub fn expect_repeats(&mut self, count: u8) {
        self.repeats_left = (self.repeats_left + u16::from(count.min(INPUT_REPEATS_MAX))).min(REPEATS_LEFT_MAX);
    }

    /// An input came that is known. Returns whether it is one of those that were to be expected, which are then one fewer.
    pub fn take_repeat(&mut self) -> bool {
        let is_expected = self.repeats_left > 0;
        self.repeats_left -= u16::from(is_expected);
        is_expected
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn taken(numbers: &[u16]) -> Vec<InputOrder> {
        let mut window = InputWindow::default();
        numbers.iter().map(|number| window.take(*number)).collect()
    }

    #[test]
    fn each_number_is_taken_once_and_a_late_one_is_told() {
        use InputOrder::{Known, Late, Newest};
        assert_eq!(taken(&[1, 2, 3]), [Newest; 3]);
        assert_eq!(taken(&[1, 1, 2, 1, 2]), [Newest, Known, Newest, Known, Known]);
        assert_eq!(taken(&[5, 7, 6, 6]), [Newest, Newest, Late, Known]);
        assert_eq!(taken(&[100, 37, 36]), [Newest, Late, Known], "what is 64 before the newest is too old");
        assert_eq!(taken(&[5, 5_000, 6, 5]), [Newest, Newest, Known, Known]);
        assert_eq!(taken(&[65_535, 0, 65_534, 0]), [Newest, Newest, Late, Known], "numbers wrap");
        assert_eq!(taken(&[0, 0x8000, 0x7FFF]), [Newest, Known, Newest], "half-way round is behind");
    }

    /// Promise: of three packets lost in a row nothing is missing when each input comes in four, and nothing comes twice.
    #[test]
    fn inputs_that_come_in_four_packets_each_are_taken_once_and_in_order() {
        let mut window = InputWindow::default();
        let mut order = Vec::new();
        for packet in 0_u16..1_000 {
            if packet % 10 < 3 {
                continue;
            }
            let numbers = (0..4).rev().map(|before| packet.wrapping_add(64_000).wrapping_sub(before));
            order.extend(numbers.filter(|number| window.take(*number) == InputOrder::Newest));
        }
        let expect: Vec<u16> = (0..1_000).map(|packet: u16| packet.wrapping_add(64_000)).collect();
        assert_eq!(order, expect, "the first packet that comes has the three before it");
    }

    /// Says so many inputs at 1 in a packet, each in the next packets so often again; of ten packets the first so many are
    /// lost. Returns how many repeats were charged.
    fn charged(inputs: u16, declared: u8, said_again: u16, lost_of_ten: u16) -> usize {
        let mut window = InputWindow::default();
        let mut charged = 0;
        for packet in (0..inputs).filter(|packet| packet % 10 >= lost_of_ten) {
            for number in packet.saturating_sub(said_again)..=packet {
                match window.take(number) {
                    InputOrder::Newest | InputOrder::Late => window.expect_repeats(declared),
                    InputOrder::Known => charged += usize::from(!window.take_repeat()),
                }
            }
        }
        charged
    }

    /// Promise: who repeats as declared pays for no repeat, whatever is lost.
    #[test]
    fn repeats_are_free_as_far_as_they_are_declared() {
        for repeats in 0..=INPUT_REPEATS_MAX {
            for lost_of_ten in 0..10 {
                assert_eq!(charged(5_000, repeats, repeats.into(), lost_of_ten), 0, "{repeats}, {lost_of_ten} lost");
            }
        }
    }

    /// Promise: what is beyond is charged, and no silence saves up more than a window's worth.
    #[test]
    fn repeats_beyond_what_is_declared_are_charged() {
        let all = |said_again: usize| (0..5_000).map(|packet: usize| packet.min(said_again)).sum::<usize>();
        assert_eq!(charged(5_000, 0, 7, 0), all(7));
        // Those of the last input find nothing to be free.
        assert_eq!(charged(5_000, 3, 7, 0), all(7) - 3 * 4_999);
        assert_eq!(charged(5_000, 255, 20, 0), all(20) - 7 * 4_999, "more than 7 cannot be declared");
        let mut window = InputWindow::default();
        for number in 0..10_000 {
            window.take(number);
            window.expect_repeats(7);
        }
        assert_eq!((0..10_000).filter(|_| window.take_repeat()).count(), 448, "64 times 7");
    }

    /// Promise: whatever numbers a client says, none of the last 64 is taken twice.
    #[test]
    fn no_number_is_taken_twice_against_a_naive_model() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut window = InputWindow::default();
        let mut model: BTreeSet<i64> = BTreeSet::new();
        let mut newest = -1_i64;
        for _ in 0..200_000 {
            let number = (newest + rng.random_range(-70..20)).max(0);
            let expect = if number > newest {
                InputOrder::Newest
            } else if newest - number >= 64 || model.contains(&number) {
                InputOrder::Known
            } else {
                InputOrder::Late
            };
            assert_eq!(window.take(number as u16), expect, "{number} after {newest}");
            if expect != InputOrder::Known {
                model.insert(number);
                newest = newest.max(number);
                model = model.split_off(&(newest - 64));
            }
        }
        assert!(newest > 70_000, "it went round: {newest}");
    }
}
