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
//! With its client. Cost: a subtraction and a shift for each input; 16 bytes.

/// Numbers that are remembered, the newest included. At 128 inputs a second half a second: a packet that is later than
/// that was repeated long ago.
const WINDOW: u16 = u64::BITS as u16;

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
