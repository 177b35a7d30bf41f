//! Pauses between tries that grow, and end at once when the server does.

use std::time::Duration;

/// The first pause.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest one.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Doubles from [`PAUSE_MIN`] to [`PAUSE_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    failures: u32,
}

impl Pauses {
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// How long to wait now that it failed once more.
    pub fn failed(&mut self) -> Duration {
        let pause = PAUSE_MIN.saturating_mul(1 << self.failures.min(16)).min(PAUSE_MAX);
        self.failures += 1;
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_begin_anew_after_a_success() {
        let mut pauses = Pauses::default();
        let ms: Vec<_> = (0..9).map(|_| pauses.failed().as_millis()).collect();
        assert_eq!(ms, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        pauses.succeeded();
        assert_eq!(pauses.failed(), PAUSE_MIN);
    }
}
