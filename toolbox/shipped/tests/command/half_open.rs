//! Handshakes that are begun under many addresses and given up at their last step, and what every address said and
//! heard.

use std::{collections::HashMap, net::SocketAddr};

use throng_net::protocol::{ClientHandshake, ClientHandshakeSettings, ConnectToken};
use throng_platform::{
    clock::{Clock, MonotonicClock},
    random,
};

use crate::strangers::Sources;

/// Longer than a cookie, shorter than a challenge: which of the two an answer is.
const CHALLENGE_BYTES_MIN: usize = 100;

/// Bytes to and from every address.
#[derive(Default)]
pub struct Ledger {
    sent: HashMap<usize, u64>,
    heard: HashMap<usize, u64>,
    pub sent_bytes: u64,
    pub heard_bytes: u64,
    pub answers: u64,
    /// The largest quotient of bytes heard and bytes sent that any address had at any moment.
    pub worst: f64,
    pub worst_source: usize,
}

impl Ledger {
    pub fn sent(&mut self, source: usize, bytes: usize) {
        *self.sent.entry(source).or_default() += bytes as u64;
        self.sent_bytes += bytes as u64;
    }

    /// Taken before the source says more, so that every prefix of the exchange is looked at.
    fn heard(&mut self, source: usize, bytes: usize) {
        let heard = self.heard.entry(source).or_default();
        *heard += bytes as u64;
        self.heard_bytes += bytes as u64;
        self.answers += 1;
        let sent = self.sent.get(&source).copied().unwrap_or_default();
        let ratio = *heard as f64 / sent as f64;
        if ratio > self.worst {
            (self.worst, self.worst_source) = (ratio, source);
        }
    }

    pub fn sources(&self) -> usize {
        self.sent.len()
    }
}

/// Strangers who show a good token each and never answer the challenge.
pub struct HalfOpen {
    pub sources: Sources,
    pub ledger: Ledger,
    server: SocketAddr,
    cookie_first: bool,
    clock: MonotonicClock,
    walks: HashMap<usize, ClientHandshake>,
    /// Handshakes that the server waits for.
    pub challenged: u64,
}

impl HalfOpen {
    /// `cookie_first` = the address is proven first; without it, plain netcode.
    pub fn new(server: SocketAddr, cookie_first: bool) -> Self {
        Self {
            sources: Sources::open(),
            ledger: Ledger::default(),
            server,
            cookie_first,
            clock: MonotonicClock::new(),
            walks: HashMap::new(),
            challenged: 0,
        }
    }

    /// Sends anything as `source`.
    pub fn send(&mut self, source: usize, datagram: &[u8]) {
        if self.sources.send(source, self.server, datagram) {
            self.ledger.sent(source, datagram.len());
        }
    }

    /// Begins a handshake as `source`.
    pub fn begin(&mut self, source: usize, token: ConnectToken) {
        let settings = ClientHandshakeSettings { cookie_first: self.cookie_first };
        let handshake = ClientHandshake::new(token, settings, self.clock.now(), random::seed());
        self.walks.insert(source, handshake);
        self.say_next(source);
    }

    fn say_next(&mut self, source: usize) {
        let mut datagram = [0; 1_400];
        let (now, unix_s) = (self.clock.now(), self.clock.unix_seconds());
        let said = self.walks.get_mut(&source).and_then(|walk| walk.poll(now, unix_s, &mut datagram));
        if let Some((_, len)) = said {
            self.send(source, &datagram[..len]);
        }
    }

    /// Takes the answers, and says the step that follows.
    pub fn listen(&mut self) {
        let mut datagram = [0; 2_048];
        while let Some((source, len)) = self.sources.receive(&mut datagram) {
            self.ledger.heard(source, len);
            if len >= CHALLENGE_BYTES_MIN {
                self.challenged += u64::from(self.walks.remove(&source).is_some());
            } else if let Some(walk) = self.walks.get_mut(&source) {
                walk.handle(self.clock.now(), &mut datagram[..len]);
                self.say_next(source);
            }
        }
    }

    /// Waits for answers on the way.
    pub fn listen_on(&mut self, for_ms: u64) {
        for _ in 0..for_ms / 5 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            self.listen();
        }
    }
}
