//! Random: the state of a world's source of chance, as four numbers.
//!
//! The generator takes its state as a seed and gives it only as text for people; so that is read. A test holds it against
//! the generator itself, whose text is part of what the build's lock file pins.

use std::fmt::{self, Write};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// `None` if the text is not as it was.
pub(super) fn state(rng: &Xoshiro256PlusPlus) -> Option<[u64; 4]> {
    let mut numbers = Numbers::default();
    write!(numbers, "{rng:?}").ok()?;
    (numbers.count == 4 && restore(numbers.found) == *rng).then_some(numbers.found)
}

pub(super) fn restore(state: [u64; 4]) -> Xoshiro256PlusPlus {
    let mut seed = [0; 32];
    for (bytes, number) in seed.chunks_exact_mut(8).zip(state) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    Xoshiro256PlusPlus::from_seed(seed)
}

/// Takes the numbers between the brackets out of a text, without keeping any of it.
#[derive(Default)]
struct Numbers {
    found: [u64; 4],
    count: usize,
    is_inside: bool,
    in_number: bool,
}

impl Write for Numbers {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.is_inside = self.is_inside && byte != b']' || byte == b'[';
            if !self.is_inside || !byte.is_ascii_digit() {
                self.in_number = false;
                continue;
            }
            self.count += usize::from(!std::mem::replace(&mut self.in_number, true));
            let number = self.found.get_mut(self.count - 1).ok_or(fmt::Error)?;
            let digit = u64::from(byte - b'0');
            *number = number.checked_mul(10).and_then(|number| number.checked_add(digit)).ok_or(fmt::Error)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::RngCore;

    use super::*;

    #[test]
    fn a_generator_goes_on_from_its_state() {
        for seed in 0..100 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            (0..seed).for_each(|_| _ = rng.next_u64());
            let mut again = restore(state(&rng).expect("its text is as it was"));
            assert_eq!([(); 9].map(|()| again.next_u64()), [(); 9].map(|()| rng.next_u64()));
        }
    }
}
