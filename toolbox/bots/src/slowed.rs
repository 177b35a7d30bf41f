//! Slowed: bots think in the time of their world.
//!
//! A thought is a bot's tick: it says one input with each, and counts its time by them. A server that has too little time
//! slows a world's, and a bot that went on at its rate would say more inputs than the world has ticks for. So it leaves out
//! thoughts, evenly, as a player's program does that goes by `Client::due_inputs`. It still polls at each of its turns.

use throng_client::TimeFactor;

/// Which of a bot's turns it thinks in.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlowedThoughts {
    /// Hundredths of a thought that have come together.
    hundredths: u32,
}

impl SlowedThoughts {
    /// Its turn has come. Returns whether it thinks.
    pub fn take_turn(&mut self, factor: TimeFactor) -> bool {
        self.hundredths += u32::from(factor.percent());
        let thinks = self.hundredths >= 100;
        if thinks {
            self.hundredths -= 100;
        }
        thinks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_of_a_hundred_turns_are_thoughts_and_no_two_are_far_apart() {
        for percent in [10, 37, 50, 99, 100] {
            let mut thoughts = SlowedThoughts::default();
            let turns: Vec<usize> =
                (0..1_000).filter(|_| thoughts.take_turn(TimeFactor::from_percent(percent))).collect();
            assert_eq!(turns.len(), 10 * percent as usize);
            let gap_max = turns.windows(2).map(|pair| pair[1] - pair[0]).max();
            assert!(gap_max <= Some(100_usize.div_ceil(percent as usize)), "{percent} %: {gap_max:?}");
        }
    }
}
