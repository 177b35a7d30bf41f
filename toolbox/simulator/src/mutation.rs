//! Mutation: messages that are almost right, for tests of what reads them.
//!
//! Bytes drawn at random are refused at the first check; a few changes to a message that is right get behind it.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Makes one to three small changes: a bit turned over, the end cut off, a byte added at the end or anywhere.
pub fn mutate(message: &mut Vec<u8>, rng: &mut impl Rng) {
    for _ in 0..rng.random_range(1..4) {
        match rng.random_range(0..4) {
            0 if !message.is_empty() => {
                let at = rng.random_range(0..message.len());
                message[at] ^= 1 << rng.random_range(0..8);
            }
            1 => message.truncate(rng.random_range(0..=message.len())),
            2 => message.push(rng.random()),
            _ => {
                let at = rng.random_range(0..=message.len());
                message.insert(at, rng.random());
            }
        }
    }
}

/// `count` mutations of these messages, in turns; the same ones for the same seed.
pub fn mutations(messages: &[Vec<u8>], count: usize, seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    messages.iter().cycle().take(count).map(move |message| {
        let mut mutated = message.clone();
        mutate(&mut mutated, &mut rng);
        mutated
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_are_near_what_they_are_made_from() {
        let messages = [vec![0; 20], vec![]];
        let made: Vec<Vec<u8>> = mutations(&messages, 1_000, 3).collect();
        assert_eq!(made.len(), 1_000);
        assert!(made.iter().all(|message| message.len() <= 23));
        let turned = made.iter().filter(|message| message.len() == 20 && message.iter().any(|&byte| byte != 0)).count();
        let cut = made.iter().step_by(2).filter(|message| message.len() < 20).count();
        assert!(turned > 50 && cut > 50, "{turned} with turned bits, {cut} cut short");
        assert!(made.iter().eq(&mutations(&messages, 1_000, 3).collect::<Vec<_>>()));
    }
}
