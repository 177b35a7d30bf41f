//! Peeker's advantage: by how much who comes round a corner sees before he is seen.
//!
//! Who steps out sees at once who holds the corner: his own step is predicted. The holder sees him when the step has come to
//! the server, has waited for its tick, has come to the holder and has waited for the moment that is drawn there:
//!
//! ```text
//!   peeker's frame + peeker's way to the server + wait for the tick + the tick's work
//!                  + the way to the holder + interpolation delay + holder's frame
//! ```
//!
//! After Riot's "On Peeker's Advantage & Ranked" (VALORANT, 13 May 2020,
//! <https://playvalorant.com/en-us/news/game-updates/04-on-peeker-s-advantage-ranked/>): enemy's client frame, enemy's one
//! way, server frame, your one way, interpolation delay. There a wait is counted as the whole frame, which is the worst
//! case; here both are said. The tick's work and the holder's frame are not in that sum.
//!
//! Plain arithmetic, for reports and for settings screens.

use throng_platform::time::Nanos;

/// What peeker's advantage is made of. All times are of one occasion, none is a sum of both players'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peek {
    /// Ways there and back, without the wait for ticks.
    pub peeker_rtt: Nanos,
    pub holder_rtt: Nanos,
    /// The world's tick rate. (Hz, > 0; 0 counts as 1)
    pub tick_hz: u16,
    /// Ticks that the server lets an input wait, beyond the one that takes it.
    pub input_delay_ticks: u16,
    /// From the tick's begin until its packet leaves.
    pub processing: Nanos,
    /// How far behind the newest snapshot the holder's client shows the world.
    pub interpolation_delay: Nanos,
    /// How long a picture stands on each client's screen. Zero: as for bots, which draw nothing.
    pub peeker_frame: Nanos,
    pub holder_frame: Nanos,
}

/// By how much the peeker sees first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeekersAdvantage {
    /// Where each wait (for a frame, for a tick) is half of what it can be.
    pub mean: Nanos,
    /// Where each is all of it; Riot's sum, the tick's work and the holder's frame added.
    pub most: Nanos,
}

impl Peek {
    /// Two players with the same line, at this rate and delay; no work, no frames, no waiting inputs.
    pub fn even(rtt: Nanos, tick_hz: u16, interpolation_delay: Nanos) -> Self {
        Self {
            peeker_rtt: rtt,
            holder_rtt: rtt,
            tick_hz,
            input_delay_ticks: 0,
            processing: Nanos::ZERO,
            interpolation_delay,
            peeker_frame: Nanos::ZERO,
            holder_frame: Nanos::ZERO,
        }
    }

    /// The advantage. Times that do not fit in 64 bits of nanoseconds count as never.
    pub fn advantage(&self) -> PeekersAdvantage {
        let period_ns = 1_000_000_000 / u64::from(self.tick_hz.max(1));
        let sure = [
            Nanos(self.peeker_rtt.0 / 2),
            Nanos(u64::from(self.input_delay_ticks) * period_ns),
            self.processing,
            Nanos(self.holder_rtt.0 / 2),
            self.interpolation_delay,
        ];
        let waits = [self.peeker_frame, Nanos(period_ns), self.holder_frame];
        let sure = sure.into_iter().fold(Nanos::ZERO, Nanos::saturating_add);
        let waits = waits.into_iter().fold(Nanos::ZERO, Nanos::saturating_add);
        PeekersAdvantage { mean: sure.saturating_add(Nanos(waits.0 / 2)), most: sure.saturating_add(waits) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Nanos {
        Nanos::from_micros(us)
    }

    /// Riot's own figures: 17.5 ms each way, 128 ticks a second, 7.8125 ms of interpolation delay, 60 frames a second.
    #[test]
    fn riots_sum_is_the_worst_case_without_the_holders_frame() {
        let delay = Nanos(7_812_500);
        let peek = Peek { peeker_frame: us(16_667), ..Peek::even(us(35_000), 128, delay) };
        let sum = 16_667_000 + 17_500_000 + 7_812_500 + 17_500_000 + 7_812_500;
        assert_eq!(peek.advantage().most, Nanos(sum));
        assert_eq!(peek.advantage().mean, Nanos(sum - (16_667_000 + 7_812_500) / 2));
    }

    #[test]
    fn each_part_counts_once() {
        let check = |peek: Peek, mean_ms: f64, most_ms: f64| {
            let PeekersAdvantage { mean, most } = peek.advantage();
            assert_eq!((mean.as_millis_f64(), most.as_millis_f64()), (mean_ms, most_ms), "{peek:?}");
        };
        let even = Peek::even(us(60_000), 20, us(100_000));
        check(even, 185.0, 210.0);
        check(Peek { peeker_rtt: us(20_000), ..even }, 165.0, 190.0);
        check(Peek { holder_rtt: us(20_000), ..even }, 165.0, 190.0);
        check(Peek { input_delay_ticks: 2, ..even }, 285.0, 310.0);
        check(Peek { processing: us(3_000), ..even }, 188.0, 213.0);
        check(Peek { peeker_frame: us(10_000), holder_frame: us(6_000), ..even }, 193.0, 226.0);
        check(Peek::even(Nanos::ZERO, 0, Nanos::ZERO), 500.0, 1_000.0);
    }
}
