//! The client's way in: from a connect token to a sealed link.
//!
//! ```text
//! Hello --cookie--> Request --challenge--> Response --keep-alive--> Connected
//!   ^                  |                    |    ^
//!   +------ 3 s -------+                    |  queued
//!   +----------------- 5 s -----------------+
//! ```
//!
//! Without a cookie the way begins at Request. Each step is said again every 100 to 300 ms until the answer comes.
//! A server that has not let us in within the token's timeout is given up for the next of the token's list;
//! after the last the handshake has failed. A server that tells us our place in its line has our patience: each
//! answer begins both times anew, and the response is said again every 400 to 600 ms only. The times are drawn by
//! lot: clients that began together must not ask together ever after, since a server looks at so many a frame.
//!
//! Sans-IO: [`ClientHandshake::poll`] fills a buffer, [`ClientHandshake::handle`] takes a datagram. It
//! never allocates after it is made, and no bytes make it panic.

use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use throng_platform::time::Nanos;

use super::cookie::{COOKIE_LIFE, Cookie, read_cookie, write_cookie_request, write_hello};
use super::denial::DenialReason;
use super::link::{LinkKeys, SEQUENCE_START_MAX, SealedLink};
use super::packet::{CHALLENGE_BODY_BYTES, HANDSHAKE_BYTES_MAX, Kind, REQUEST_BODY_BYTES, REQUEST_BYTES, SealedHeader};
use super::queued::QueueState;
use super::token::ConnectToken;

/// Five tries a second: at 20 % loss each way, 99 % of steps are through within a second.
const RESEND_EVERY: RangeInclusive<Nanos> = Nanos::from_millis(100)..=Nanos::from_millis(300);

/// Often enough that the server does not take us for silent (5 s), and seldom enough that it can answer thousands.
const RESEND_IN_LINE_EVERY: RangeInclusive<Nanos> = Nanos::from_millis(400)..=Nanos::from_millis(600);

/// A server forgets an unanswered challenge after 5 s; then the client starts over.
const RESPONSE_LIFE: Nanos = Nanos::from_secs(5);

/// How the handshake begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientHandshakeSettings {
    /// Prove the address first. `true` for our servers (they drop plain requests unless told otherwise),
    /// `false` for any other netcode 1.02 server.
    pub cookie_first: bool,
}

impl Default for ClientHandshakeSettings {
    fn default() -> Self {
        Self { cookie_first: true }
    }
}

/// Where a handshake stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandshakeState {
    Connecting,
    /// Call [`ClientHandshake::into_link`].
    Connected,
    Failed(HandshakeFailure),
}

/// Why a handshake came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HandshakeFailure {
    #[error("{0}")]
    Denied(DenialReason),
    #[error("no server answered")]
    TimedOut,
    #[error("no server answered, and the connect token has expired by now: log in again")]
    TokenExpired,
}

/// One attempt to connect with one token.
pub struct ClientHandshake {
    step: Step,
    step_since: Nanos,
    next_send: Nanos,
    /// Since when the current server is being tried. Of all answers short of admission only a place in line
    /// prolongs it: a server that hands out cookies and then drops the token would keep us for ever.
    server_since: Nanos,
    settings: ClientHandshakeSettings,
    server_addresses: Vec<SocketAddr>,
    server_index: usize,
    token: ConnectToken,
    request_body: [u8; REQUEST_BODY_BYTES],
    link: SealedLink,
    rng: ChaCha20Rng,
    client_number: u64,
    /// What a response echoes. Means something from `Step::Response` on.
    challenge: [u8; CHALLENGE_BODY_BYTES],
    /// What the server last said about our waiting, and under which sequence.
    queue: Option<(QueueState, u64)>,
}

#[derive(Clone, Copy)]
enum Step {
    Hello,
    Request(Option<Cookie>),
    Response,
    Connected,
    Failed(HandshakeFailure),
}

impl ClientHandshake {
    /// Begins a handshake. `seed` must be fresh for every one: the link's sequences start at a number
    /// drawn from it, which keeps a token that is shown twice from sealing two packets under one nonce.
    pub fn new(token: ConnectToken, settings: ClientHandshakeSettings, now: Nanos, seed: [u8; 32]) -> Self {
        let mut rng = ChaCha20Rng::from_seed(seed);
        let keys = LinkKeys {
            sealing: &token.client_to_server_key,
            opening: &token.server_to_client_key,
            protocol_id: token.protocol_id,
            first_sequence: rng.random_range(0..SEQUENCE_START_MAX),
        };
        let link = SealedLink::new(keys, token.timeout_s(), now);
        let mut handshake = Self {
            step: Step::Hello,
            step_since: now,
            next_send: now,
            server_since: now,
            settings,
            server_addresses: token.server_addresses().to_vec(),
            server_index: 0,
            request_body: token.request_body(),
            token,
            link,
            client_number: 0,
            challenge: [0; CHALLENGE_BODY_BYTES],
            queue: None,
            rng,
        };
        handshake.start_over(now);
        handshake
    }

    /// Gives the datagram that is due now, if any, and where it goes. Call it at least every 50 ms.
    /// `unix_s` only tells an expired token from a dead server when the handshake fails: a client's clock
    /// is not trusted to judge a token.
    pub fn poll(&mut self, now: Nanos, unix_s: u64, out: &mut [u8; 1400]) -> Option<(SocketAddr, usize)> {
        self.pass_time(now, unix_s);
        if now < self.next_send {
            return None;
        }
        let len = match &self.step {
            Step::Hello => write_hello(self.token.protocol_id, self.client_number, out),
            Step::Request(cookie) => write_request(cookie.as_ref(), self.client_number, &self.request_body, out),
            Step::Response => self.link.seal_response(&self.challenge, out, now),
            Step::Connected | Step::Failed(_) => return None,
        };
        self.next_send = self.draw_time(now, RESEND_EVERY);
        Some((self.server_address(), len))
    }

    /// Takes a datagram from the server. Whatever does not belong to the current step is dropped. In place:
    /// the datagram's bytes are lost.
    pub fn handle(&mut self, now: Nanos, datagram: &mut [u8]) {
        if let Step::Hello = self.step {
            if let Some(cookie) = read_cookie(datagram, self.client_number) {
                self.enter(Step::Request(Some(cookie)), now);
            }
            return;
        }
        let Some(header) = SealedHeader::read(datagram) else {
            return;
        };
        match (self.step, header.kind) {
            (Step::Request(_), Kind::Challenge) => {
                let Ok(body) = self.link.open_handshake(header, datagram) else {
                    return;
                };
                self.challenge = body.try_into().expect("the header's size was checked");
                self.enter(Step::Response, now);
            }
            (Step::Request(_) | Step::Response, Kind::Denied) => {
                let Ok(body) = self.link.open_handshake(header, datagram) else {
                    return;
                };
                let reason = DenialReason::from_body(body);
                // That one is named wrongly; what the others of the token say of themselves may be true.
                if reason == DenialReason::OtherServer && self.server_index + 1 < self.server_addresses.len() {
                    return;
                }
                self.enter(Step::Failed(HandshakeFailure::Denied(reason)), now);
            }
            (Step::Response, Kind::Queued) => {
                let Ok(body) = self.link.open_handshake(header, datagram) else {
                    return;
                };
                let is_news = self.queue.is_none_or(|(_, sequence)| header.sequence > sequence);
                if let Some(state) = QueueState::from_body(body).filter(|_| is_news) {
                    self.wait_in_line(state, header.sequence, now);
                }
            }
            (Step::Response, Kind::KeepAlive) => {
                let Ok(_) = self.link.open(datagram, now) else {
                    return;
                };
                self.link.begin(now, true);
                self.enter(Step::Connected, now);
            }
            _ => {}
        }
    }

    pub fn state(&self) -> HandshakeState {
        match self.step {
            Step::Connected => HandshakeState::Connected,
            Step::Failed(failure) => HandshakeState::Failed(failure),
            _ => HandshakeState::Connecting,
        }
    }

    /// What the server last said about our waiting; `None` when it has said nothing, or we are in, or out.
    pub fn queue(&self) -> Option<QueueState> {
        self.queue.map(|(state, _)| state).filter(|_| matches!(self.step, Step::Response))
    }

    /// The server that is being tried, or that was reached.
    pub fn server_address(&self) -> SocketAddr {
        self.server_addresses[self.server_index]
    }

    /// The client's end of the link.
    ///
    /// # Panics
    /// If the state is not [`HandshakeState::Connected`].
    pub fn into_link(self) -> SealedLink {
        assert_eq!(self.state(), HandshakeState::Connected, "a link exists once connected");
        self.link
    }

    fn pass_time(&mut self, now: Nanos, unix_s: u64) {
        if matches!(self.step, Step::Connected | Step::Failed(_)) {
            return;
        }
        let tried = now.saturating_sub(self.server_since);
        if tried >= self.link.timeout() {
            self.try_next_server(now, unix_s);
            return;
        }
        // With no timeout only the token's end stops the attempt, at twice the clock error servers forgive.
        let may_end = self.link.timeout() == Nanos::MAX && self.queue().is_none();
        if may_end && unix_s >= self.token.expires_unix_s().saturating_add(120) {
            self.enter(Step::Failed(HandshakeFailure::TokenExpired), now);
            return;
        }
        let in_step = now.saturating_sub(self.step_since);
        let stale = match self.step {
            Step::Request(Some(_)) => in_step >= COOKIE_LIFE,
            Step::Response => in_step >= RESPONSE_LIFE,
            _ => false,
        };
        if stale {
            self.start_over(now);
        }
    }

    fn try_next_server(&mut self, now: Nanos, unix_s: u64) {
        if self.server_index + 1 < self.server_addresses.len() {
            self.server_index += 1;
            self.queue = None;
            self.server_since = now;
            self.start_over(now);
            return;
        }
        let failure = match unix_s >= self.token.expires_unix_s() {
            true => HandshakeFailure::TokenExpired,
            false => HandshakeFailure::TimedOut,
        };
        self.enter(Step::Failed(failure), now);
    }

    fn start_over(&mut self, now: Nanos) {
        self.client_number = self.rng.next_u64();
        let first = if self.settings.cookie_first { Step::Hello } else { Step::Request(None) };
        self.enter(first, now);
    }

    fn wait_in_line(&mut self, state: QueueState, sequence: u64, now: Nanos) {
        self.queue = Some((state, sequence));
        self.step_since = now;
        self.server_since = now;
        self.next_send = self.draw_time(now, RESEND_IN_LINE_EVERY);
    }

    fn draw_time(&mut self, now: Nanos, after: RangeInclusive<Nanos>) -> Nanos {
        now + Nanos(self.rng.random_range(after.start().0..=after.end().0))
    }

    fn enter(&mut self, step: Step, now: Nanos) {
        self.step = step;
        self.step_since = now;
        self.next_send = now;
    }
}

impl fmt::Debug for ClientHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientHandshake")
            .field("state", &self.state())
            .field("server_address", &self.server_address())
            .finish_non_exhaustive()
    }
}

fn write_request(
    cookie: Option<&Cookie>,
    client_number: u64,
    body: &[u8; REQUEST_BODY_BYTES],
    out: &mut [u8],
) -> usize {
    let (body_at, len) = match cookie {
        Some(cookie) => (write_cookie_request(cookie, client_number, out), HANDSHAKE_BYTES_MAX),
        None => {
            out[0] = Kind::Request as u8;
            (1, REQUEST_BYTES)
        }
    };
    out[body_at..len].copy_from_slice(body);
    len
}

#[cfg(test)]
mod tests {
    use super::super::{ClientId, PrivateKey, ProtocolId, TokenRequest};
    use super::*;

    const CREATED_UNIX_S: u64 = 1_000;

    fn server(n: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], n))
    }

    fn handshake(servers: u16, timeout_s: i32, cookie_first: bool) -> ClientHandshake {
        let request = TokenRequest {
            protocol_id: ProtocolId(1),
            client_id: ClientId(1),
            server_addresses: (0..servers).map(server).collect(),
            created_unix_s: CREATED_UNIX_S,
            expires_unix_s: CREATED_UNIX_S + 30,
            timeout_s,
            user_data: [0; 256],
        };
        let rng = &mut ChaCha20Rng::seed_from_u64(1);
        let token = ConnectToken::generate(&request, &PrivateKey::new([1; 32]), rng).unwrap();
        ClientHandshake::new(token, ClientHandshakeSettings { cookie_first }, Nanos::ZERO, [7; 32])
    }

    /// Polls every 50 ms for some time into silence; gives where and when something was said.
    fn poll_for(handshake: &mut ClientHandshake, seconds: u64) -> Vec<(u64, SocketAddr, u8)> {
        let mut out = [0; 1400];
        let mut said = Vec::new();
        for millis in (0..seconds * 1_000).step_by(50) {
            let unix_s = CREATED_UNIX_S + millis / 1_000;
            if let Some((to, _)) = handshake.poll(Nanos::from_millis(millis), unix_s, &mut out) {
                said.push((millis, to, out[0]));
            }
        }
        said
    }

    #[test]
    fn every_server_of_the_token_is_tried_for_the_timeout_and_five_times_a_second() {
        let mut handshake = handshake(3, 2, true);
        let said = poll_for(&mut handshake, 10);
        for (number, tries) in said.chunk_by(|one, next| one.1 == next.1).enumerate() {
            assert_eq!((tries[0].0, tries[0].1), (2_000 * number as u64, server(number as u16)));
            assert!((8..=14).contains(&tries.len()), "{} tries in 2 s", tries.len());
            assert!(tries.iter().all(|(_, _, kind)| *kind == Kind::Hello as u8));
            assert!(tries.windows(2).all(|pair| (100..=350).contains(&(pair[1].0 - pair[0].0))), "{tries:?}");
        }
        assert_eq!(said.last().map(|(_, to, _)| *to), Some(server(2)));
        assert_eq!(handshake.state(), HandshakeState::Failed(HandshakeFailure::TimedOut));
    }

    #[test]
    fn a_failure_after_the_tokens_end_says_so() {
        let mut patient = handshake(1, 40, false);
        poll_for(&mut patient, 41);
        assert_eq!(patient.state(), HandshakeState::Failed(HandshakeFailure::TokenExpired));
        let mut endless = handshake(1, 0, false);
        poll_for(&mut endless, 149);
        assert_eq!(endless.state(), HandshakeState::Connecting);
        poll_for(&mut endless, 151);
        assert_eq!(endless.state(), HandshakeState::Failed(HandshakeFailure::TokenExpired));
    }

    #[test]
    fn a_cookie_that_brought_nothing_is_asked_for_again() {
        let mut handshake = handshake(1, 20, true);
        let mut hello = [0; 1400];
        handshake.poll(Nanos::ZERO, CREATED_UNIX_S, &mut hello).unwrap();
        let mut cookie = [9; 25];
        cookie[0] = Kind::Cookie as u8;
        cookie[1..9].copy_from_slice(&hello[22..30]);
        let mut strangers = cookie;
        strangers[1] ^= 1;
        handshake.handle(Nanos::ZERO, &mut strangers);
        assert!(matches!(handshake.step, Step::Hello), "the answer to another hello");
        handshake.handle(Nanos::ZERO, &mut cookie);
        let kinds: Vec<u8> = poll_for(&mut handshake, 4).into_iter().map(|(_, _, kind)| kind).collect();
        let (requests, hellos) = kinds.split_at(kinds.partition_point(|&kind| kind == Kind::CookieRequest as u8));
        assert!((11..=20).contains(&requests.len()) && (3..=7).contains(&hellos.len()), "{kinds:?}");
        assert!(hellos.iter().all(|&kind| kind == Kind::Hello as u8));
    }

    /// A server that answers every hello and drops every token: another key, or a token that was used.
    #[test]
    fn cookies_alone_do_not_keep_a_client() {
        let mut handshake = handshake(1, 10, true);
        let mut out = [0; 1400];
        for millis in (0..10_100).step_by(50) {
            let now = Nanos::from_millis(millis);
            let said = handshake.poll(now, CREATED_UNIX_S, &mut out);
            if said.is_some() && out[0] == Kind::Hello as u8 {
                let mut cookie = [9; 25];
                cookie[0] = Kind::Cookie as u8;
                cookie[1..9].copy_from_slice(&out[22..30]);
                handshake.handle(now, &mut cookie);
            }
        }
        assert_eq!(handshake.state(), HandshakeState::Failed(HandshakeFailure::TimedOut));
    }

    #[test]
    fn settings_choose_the_first_word() {
        for (cookie_first, expect) in [(true, Kind::Hello), (false, Kind::Request)] {
            let said = poll_for(&mut handshake(1, 10, cookie_first), 1);
            assert!(said.iter().all(|(_, _, kind)| *kind == expect as u8) && said.len() >= 3, "{said:?}");
        }
    }
}
