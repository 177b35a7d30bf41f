//! Log-in: attempts, why they failed, and when the next one is due.
//!
//! ```text
//!   attempt -> failed -> rest 0.5 to 1 s -> fresh token -> attempt -> failed -> rest 1 to 2 s -> ...
//! ```
//!
//! Rests double up to a maximum and are drawn from their upper half, so that those who were sent away together do
//! not come again together. Bounded in attempts; fewer where the server does not answer at all. A refusal by the
//! game itself is final, and so is a token that is not for this server.
//!
//! A token is good for one attempt at most, so the owner brings a fresh one for each: where from is its own affair,
//! and may take as long as it needs (`Client::wants_token`, `Client::try_again`).

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use throng_net::protocol::{DenialReason, HandshakeFailure};
use throng_platform::time::Nanos;

/// How often a client tries to come in, and how long it rests between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// Attempts in all (> 0; default 8, which take up to a minute and their own time). Too few: a rush that the
    /// server's line cannot hold keeps players out. Too many: they learn late that nobody lets them in.
    pub attempts_max: u32,
    /// Attempts that may end without an answer (> 0; default 2). Too few: a server that starts is missed. Too many:
    /// one that is not there is found out late, for each takes the token's timeout.
    pub timeouts_max: u32,
    /// The first rest at most (default 1 s), and any (default 16 s). Too short: those who were sent away make the
    /// rush longer. Too long: they wait although there is room.
    pub rest_first: Nanos,
    pub rest_max: Nanos,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self { attempts_max: 8, timeouts_max: 2, rest_first: Nanos::from_secs(1), rest_max: Nanos::from_secs(16) }
    }
}

/// A client's way in, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoginStats {
    /// Attempts begun, the first included.
    pub attempts: u32,
    /// Denials by reason, in the order of [`DenialReason::ALL`].
    pub denied: [u32; DenialReason::ALL.len()],
    /// Attempts that ended without an answer.
    pub timeouts: u32,
}

pub(crate) struct Login {
    settings: RetrySettings,
    pub stats: LoginStats,
    /// While the client rests: when the next attempt is due.
    pub next_at: Option<Nanos>,
    rng: ChaCha20Rng,
}

impl Login {
    /// One attempt, begun now, and no other.
    pub fn new(seed: [u8; 32]) -> Self {
        let settings = RetrySettings { attempts_max: 1, ..RetrySettings::default() };
        let stats = LoginStats { attempts: 1, ..LoginStats::default() };
        // The handshake draws nonces from this seed; a rest tells a watcher nothing about them.
        let rng = ChaCha20Rng::from_seed(seed.map(|byte| byte ^ 0xA5));
        Self { settings, stats, next_at: None, rng }
    }

    pub fn set(&mut self, settings: RetrySettings) {
        self.settings = settings;
    }

    /// The attempt has failed. True: another one is due after a rest.
    pub fn failed(&mut self, failure: HandshakeFailure, now: Nanos) -> bool {
        let may_pass = match failure {
            HandshakeFailure::Denied(reason) => {
                self.stats.denied[reason as usize] += 1;
                reason.may_pass()
            }
            HandshakeFailure::TimedOut | HandshakeFailure::TokenExpired => {
                self.stats.timeouts += 1;
                self.stats.timeouts < self.settings.timeouts_max
            }
        };
        if !may_pass || self.stats.attempts >= self.settings.attempts_max {
            return false;
        }
        self.next_at = Some(now + self.rest());
        true
    }

    /// An attempt begins.
    pub fn begun(&mut self) {
        self.next_at = None;
        self.stats.attempts += 1;
    }

    fn rest(&mut self) -> Nanos {
        let doublings = (self.stats.attempts - 1).min(32);
        let longest = self.settings.rest_first.0.saturating_mul(1 << doublings).min(self.settings.rest_max.0);
        Nanos(self.rng.random_range(longest / 2..=longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: HandshakeFailure = HandshakeFailure::Denied(DenialReason::QueueFull);

    fn login(settings: RetrySettings) -> Login {
        let mut login = Login::new([1; 32]);
        login.set(settings);
        login
    }

    #[test]
    fn rests_double_up_to_their_maximum_and_are_never_all_alike() {
        let mut rests: Vec<Vec<u64>> = Vec::new();
        for seed in 0..50 {
            let mut login = Login::new([seed; 32]);
            login.set(RetrySettings::default());
            let mut rests_of_one = Vec::new();
            while login.failed(FULL, Nanos::ZERO) {
                rests_of_one.push(login.next_at.expect("a rest").0);
                login.begun();
            }
            assert_eq!((login.stats.attempts, login.stats.denied[DenialReason::QueueFull as usize]), (8, 8));
            rests.push(rests_of_one);
        }
        for (attempt, longest_s) in [1, 2, 4, 8, 16, 16, 16].into_iter().enumerate() {
            let longest = Nanos::from_secs(longest_s).0;
            assert!(rests.iter().all(|rests| (longest / 2..=longest).contains(&rests[attempt])), "rest {attempt}");
            let early = rests.iter().filter(|rests| rests[attempt] < longest / 4 * 3).count();
            assert!((10..=40).contains(&early), "{early} of 50 in the first half of the span");
        }
    }

    #[test]
    fn what_will_not_pass_is_not_tried_again() {
        let check = |failure, expect| assert_eq!(login(RetrySettings::default()).failed(failure, Nanos::ZERO), expect);
        for reason in DenialReason::ALL {
            let is_final = [DenialReason::RefusedByGame, DenialReason::OtherServer, DenialReason::OtherProtocol];
            check(HandshakeFailure::Denied(reason), !is_final.contains(&reason));
        }
        check(HandshakeFailure::TimedOut, true);
        assert!(!Login::new([1; 32]).failed(FULL, Nanos::ZERO), "unless told so, a client tries once");
    }

    #[test]
    fn a_server_that_does_not_answer_is_given_up_sooner() {
        let mut login = login(RetrySettings::default());
        assert!(login.failed(HandshakeFailure::TimedOut, Nanos::ZERO));
        login.begun();
        assert!(login.failed(FULL, Nanos::ZERO), "it answers after all");
        login.begun();
        assert!(!login.failed(HandshakeFailure::TimedOut, Nanos::ZERO));
        assert_eq!((login.stats.attempts, login.stats.timeouts), (3, 2));
    }
}
