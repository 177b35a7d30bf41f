//! Connect tokens for whoever opens the page, where the settings say that everybody may play.
//!
//! Each is for a client id of its own, drawn by chance from 2^62 on, far from those that a login service gives. 20 a second
//! at most, and 100 at once, of one address one a second and 10 at once: a page that is loaded again and again is told to
//! wait, and whoever asks without an end takes them from nobody else. This host may ask for all.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use throng_net::protocol::{
    ClientId, ConnectToken, PrivateKey, ProtocolId, TOKEN_BYTES, TokenRequest, household, user_data,
};
use throng_platform::clock::Clock;
use throng_platform::clock::MonotonicClock;
use throng_platform::random;

/// How long a token may be shown: a page shows it at once. (s)
const LIFE_S: u64 = 60;
/// As other clients have it.
const TIMEOUT_S: i32 = 10;
const OF_ALL: Rate = Rate { per_s: 20.0, at_once: 100.0 };
const OF_ONE: Rate = Rate { per_s: 1.0, at_once: 10.0 };
/// Addresses that are remembered for as long as they have not all of theirs back; with more, newcomers are told to wait.
const REMEMBERED_MAX: usize = 4_096;

/// Makes tokens for one server.
pub struct TokenGiver {
    protocol_id: ProtocolId,
    private_key: PrivateKey,
    /// By which the server knows itself.
    server_addresses: Vec<SocketAddr>,
    clock: MonotonicClock,
    state: Mutex<State>,
}

struct State {
    rng: ChaCha20Rng,
    of_all: Bucket,
    of_one: HashMap<u128, Bucket>,
}

struct Rate {
    per_s: f64,
    at_once: f64,
}

/// Fills with time.
struct Bucket {
    left: f64,
    at_s: f64,
}

impl Bucket {
    fn full(rate: &Rate, now_s: f64) -> Self {
        Self { left: rate.at_once, at_s: now_s }
    }

    /// What is in it now.
    fn fill(&mut self, rate: &Rate, now_s: f64) -> f64 {
        self.left = (self.left + (now_s - self.at_s) * rate.per_s).min(rate.at_once);
        self.at_s = now_s;
        self.left
    }
}

impl State {
    /// Takes one for whoever asks from there.
    fn take(&mut self, from: IpAddr, now_s: f64) -> bool {
        if self.of_all.fill(&OF_ALL, now_s) < 1.0 {
            return false;
        }
        if !from.to_canonical().is_loopback() {
            if self.of_one.len() == REMEMBERED_MAX {
                self.of_one.retain(|_, bucket| bucket.fill(&OF_ONE, now_s) < OF_ONE.at_once);
            }
            let from = household(from);
            if self.of_one.len() == REMEMBERED_MAX && !self.of_one.contains_key(&from) {
                return false;
            }
            let bucket = self.of_one.entry(from).or_insert_with(|| Bucket::full(&OF_ONE, now_s));
            if bucket.fill(&OF_ONE, now_s) < 1.0 {
                return false;
            }
            bucket.left -= 1.0;
        }
        self.of_all.left -= 1.0;
        true
    }
}

/// A token, and who it is for.
pub(crate) struct Given {
    pub token: [u8; TOKEN_BYTES],
    pub expires_unix_s: u64,
}

impl TokenGiver {
    /// For the server that has the same key and knows itself by one of these addresses.
    pub fn new(protocol_id: ProtocolId, private_key: PrivateKey, server_addresses: Vec<SocketAddr>) -> Self {
        let rng = ChaCha20Rng::from_seed(random::seed());
        let state = Mutex::new(State { rng, of_all: Bucket::full(&OF_ALL, 0.0), of_one: HashMap::new() });
        Self { protocol_id, private_key, server_addresses, clock: MonotonicClock::new(), state }
    }

    /// `None`: too many were asked for lately.
    pub(crate) fn give(&self, from: IpAddr, asks_for_audit: bool) -> Option<Given> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now_s = self.clock.now().as_secs_f64();
        if !state.take(from, now_s) {
            return None;
        }
        let created_unix_s = self.clock.unix_seconds();
        let request = TokenRequest {
            protocol_id: self.protocol_id,
            client_id: ClientId(ClientId::BROWSER_FIRST.0 | state.rng.next_u64() >> 2),
            server_addresses: self.server_addresses.clone(),
            created_unix_s,
            expires_unix_s: created_unix_s + LIFE_S,
            timeout_s: TIMEOUT_S,
            user_data: user_data(&[], asks_for_audit).expect("nothing always fits"),
        };
        let token = ConnectToken::generate(&request, &self.private_key, &mut state.rng).ok()?;
        Some(Given { token: token.to_bytes(), expires_unix_s: request.expires_unix_s })
    }
}
