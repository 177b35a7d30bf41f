//! The loop that drives all bots: send some in, sleep, read, think, tell.
//!
//! The loop sleeps until 2 ms after its last wake, then in epoll until something can be read or a bot
//! is due. Under load the second wait returns at once with everything that came in the meantime: 500
//! wakes a second instead of 20,000. With few bots it is the second wait that sleeps.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_client::{Client, RetrySettings};
use throng_platform::clock::{Clock, MonotonicClock};
use throng_platform::limits::raise_open_files;
use throng_platform::poll::Epoll;
use throng_platform::process::thread_cpu_time;
use throng_platform::random;
use throng_platform::signals::StopFlag;
use throng_platform::time::Nanos;
use throng_platform::udp::{BindOptions, UdpSocket};
use throng_profiler::scoped;
use throng_replication::Schema;

use crate::behaviour::Behaviour;
use crate::bot::{Bot, Buffers, Findings};
use crate::error::SwarmError;
use crate::report::{LatencyHistogram, SwarmReport, SwarmStatus};
use crate::settings::SwarmSettings;
use crate::tally::Tally;
use crate::tokens::TokenSource;
use crate::turns::Turns;

/// The least time between two wakes. Longer saves system calls and adds to what bots measure.
const WAKE_PERIOD: Nanos = Nanos::from_millis(2);

/// Files that this process has open beside the bots' sockets: the usual three, epoll, logs, reports.
const FILES_BESIDE_SOCKETS: u64 = 64;

/// Kernel buffer of each bot's socket (bytes). A bot reads every few ms; this holds over 100 packets.
const SOCKET_BUFFER_BYTES: usize = 256 * 1024;

/// Goodbyes said at once, and the pause before the next: 1,000 bots are gone within 0.2 s.
const GOODBYES_AT_ONCE: usize = 25;
const GOODBYE_PAUSE: Nanos = Nanos::from_millis(4);

/// One run in progress.
pub(crate) struct Driver<F> {
    clock: MonotonicClock,
    connect: SocketAddr,
    players: usize,
    seed: u64,
    join_per_second: u32,
    retry: RetrySettings,
    status_every: Nanos,
    seconds: Option<u64>,
    schema: Arc<Schema>,
    make_behaviour: F,
    tokens: TokenSource,
    turns: Turns,
    epoll: Epoll,
    buffers: Buffers,
    /// Bots that have been sent in, dead ones included; the index is the token in epoll.
    bots: Vec<Bot>,
    readable: Vec<u64>,
    last_wake: Nanos,
    cpu_at_start: Nanos,
    /// When to stop; known once the last bot was sent in.
    end: Nanos,
    next_status: Nanos,
    findings: Findings,
    /// Samples of the report's span without those of the current status interval.
    latency: LatencyHistogram,
    interval_since: Tally,
    span_since: Tally,
}

impl<F: Fn(usize) -> Box<dyn Behaviour>> Driver<F> {
    pub fn begin(settings: SwarmSettings, schema: Arc<Schema>, make_behaviour: F) -> Result<Self, SwarmError> {
        let SwarmSettings { connect, players, seconds, tick_hz, seed, tokens, join_per_second, retry, status_every } =
            settings;
        if players == 0 {
            return Err(SwarmError::NoPlayers);
        }
        if !(1..=1_000).contains(&tick_hz) {
            return Err(SwarmError::TickRate { tick_hz });
        }
        raise_open_files(players as u64 + FILES_BESIDE_SOCKETS)
            .map_err(|source| SwarmError::OpenFiles { players, source })?;
        Ok(Self {
            clock: MonotonicClock::new(),
            connect,
            players,
            seed,
            join_per_second: join_per_second.max(1),
            retry,
            status_every: status_every.max(WAKE_PERIOD),
            seconds,
            schema,
            make_behaviour,
            tokens: TokenSource::new(tokens, connect, random::seed()),
            turns: Turns::new(Nanos::ZERO, players, tick_hz),
            epoll: Epoll::new().map_err(SwarmError::Epoll)?,
            buffers: Buffers::new(),
            bots: Vec::with_capacity(players),
            readable: Vec::new(),
            last_wake: Nanos::ZERO,
            cpu_at_start: thread_cpu_time(),
            end: Nanos::MAX,
            next_status: status_every,
            findings: Findings::new(),
            latency: LatencyHistogram::new(),
            interval_since: Tally::default(),
            span_since: Tally::default(),
        })
    }

    pub fn play(&mut self, stop: &StopFlag, on_status: &mut dyn FnMut(&SwarmStatus)) -> Result<(), SwarmError> {
        while !self.is_over() && !stop.requested() {
            self.send_in_due()?;
            self.wait()?;
            self.receive()?;
            self.think()?;
            self.tell_due(on_status);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let all_are_sent_in = self.bots.len() == self.players;
        self.clock.now() >= self.end || (all_are_sent_in && !self.bots.iter().any(Bot::is_alive))
    }

    fn next_join_at(&self) -> Nanos {
        if self.bots.len() == self.players {
            return Nanos::MAX;
        }
        Nanos((self.bots.len() as u64).saturating_mul(1_000_000_000) / u64::from(self.join_per_second))
    }

    fn send_in_due(&mut self) -> Result<(), SwarmError> {
        while self.next_join_at() <= self.clock.now() {
            self.send_in()?;
            if self.bots.len() == self.players {
                self.begin_span();
            }
        }
        Ok(())
    }

    fn send_in(&mut self) -> Result<(), SwarmError> {
        let bot = self.bots.len();
        let (now, unix_s) = (self.clock.now(), self.clock.unix_seconds());
        let token = self.tokens.next(bot, unix_s).map_err(|source| SwarmError::Token { bot, source })?;
        let server = token.server_addresses().first().copied().unwrap_or(self.connect);
        let options = BindOptions {
            reuse_port: false,
            receive_buffer_bytes: SOCKET_BUFFER_BYTES,
            send_buffer_bytes: SOCKET_BUFFER_BYTES,
        };
        let (socket, warnings) =
            UdpSocket::bind(any_port_for(server), &options).map_err(|source| SwarmError::Socket { bot, source })?;
        if bot == 0 {
            warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        }
        self.epoll.add(&socket, bot as u64).map_err(SwarmError::Epoll)?;
        // The seeds of links come from the operating system: the caller may show a token twice.
        let client = Client::new(token, self.schema.clone(), now, random::seed()).with_retries(self.retry);
        let rng = Xoshiro256PlusPlus::seed_from_u64(self.seed.wrapping_add(bot as u64));
        self.bots.push(Bot::new(bot, client, (self.make_behaviour)(bot), rng, socket, now));
        Ok(())
    }

    /// Everybody is on the way: what the report's rates and latencies cover begins here.
    fn begin_span(&mut self) {
        self.span_since = self.tally();
        self.latency = LatencyHistogram::new();
        self.findings.latency = LatencyHistogram::new();
        if let Some(seconds) = self.seconds {
            self.end = self.span_since.at.saturating_add(Nanos(seconds.saturating_mul(1_000_000_000)));
        }
    }

    /// Sleeps; `readable` then names bots whose sockets have something.
    #[scoped("idle.bots")]
    fn wait(&mut self) -> Result<(), SwarmError> {
        self.clock.sleep_until(self.last_wake + WAKE_PERIOD);
        let next = self.turns.next_at().min(self.next_status).min(self.next_join_at()).min(self.end);
        let timeout_ms = next.saturating_sub(self.clock.now()).as_micros() / 1_000;
        let timeout_ms = u16::try_from(timeout_ms).unwrap_or(u16::MAX);
        self.epoll.wait(&mut self.readable, timeout_ms).map_err(SwarmError::Epoll)?;
        self.last_wake = self.clock.now();
        Ok(())
    }

    /// Reads every socket that has something: those of `readable`, then those that did not fit into it.
    #[scoped("bots.receive")]
    fn receive(&mut self) -> Result<(), SwarmError> {
        let unix_s = self.clock.unix_seconds();
        let mut left = self.bots.len();
        while !self.readable.is_empty() {
            for &token in &self.readable {
                if let Some(bot) = self.bots.get_mut(token as usize) {
                    bot.receive(self.clock.now(), unix_s, &mut self.buffers, &mut self.findings);
                }
            }
            left = left.saturating_sub(self.readable.len());
            if left == 0 {
                // Each had a chance; a flood of datagrams must not keep the others from thinking.
                break;
            }
            self.epoll.wait(&mut self.readable, 0).map_err(SwarmError::Epoll)?;
        }
        Ok(())
    }

    #[scoped("bots.think")]
    fn think(&mut self) -> Result<(), SwarmError> {
        let unix_s = self.clock.unix_seconds();
        // Only the turns that are due now: those that come due meanwhile must not keep the sockets waiting.
        let due = self.clock.now();
        while let Some(index) = self.turns.take(due) {
            let Some(bot) = self.bots.get_mut(index) else { continue };
            if bot.wants_token(self.clock.now()) {
                let token =
                    self.tokens.next(index, unix_s).map_err(|source| SwarmError::Token { bot: index, source })?;
                bot.try_again(token, self.clock.now(), random::seed());
            }
            bot.think(self.clock.now(), unix_s, &mut self.buffers);
        }
        Ok(())
    }

    fn tell_due(&mut self, on_status: &mut dyn FnMut(&SwarmStatus)) {
        if self.clock.now() < self.next_status {
            return;
        }
        let tally = self.tally();
        let latency = self.findings.latency.percentiles();
        on_status(&SwarmStatus {
            elapsed_s: tally.at.as_secs_f64(),
            players_joining: tally.joining,
            figures: SwarmReport::between(&self.interval_since, &tally, latency),
        });
        self.latency.take(&mut self.findings.latency);
        while self.next_status <= tally.at {
            self.next_status += self.status_every;
        }
        self.interval_since = tally;
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally {
            at: self.clock.now(),
            cpu: thread_cpu_time().saturating_sub(self.cpu_at_start),
            players_wanted: self.players as u64,
            thinks_due: self.turns.due(),
            thinks_skipped: self.turns.skipped(),
            ..Tally::default()
        };
        self.bots.iter().for_each(|bot| bot.count_into(&mut tally));
        tally
    }

    pub fn report(&mut self) -> SwarmReport {
        let mut tally = self.tally();
        tally.connect_failures += std::mem::take(&mut tally.joining);
        self.latency.take(&mut self.findings.latency);
        let state_error_examples = std::mem::take(&mut self.findings.state_errors);
        let report = SwarmReport::between(&self.span_since, &tally, self.latency.percentiles());
        SwarmReport { state_error_examples, ..report }
    }

    pub fn say_goodbye(&mut self) {
        for some in self.bots.chunks_mut(GOODBYES_AT_ONCE) {
            let now = self.clock.now();
            if some.iter().any(Bot::is_alive) {
                some.iter_mut().for_each(|bot| bot.close(now, &mut self.buffers));
                self.clock.sleep_until(now + GOODBYE_PAUSE);
            }
        }
    }

    pub fn nobody_got_in(&self) -> SwarmError {
        SwarmError::NobodyGotIn {
            address: self.connect,
            tried: self.bots.len() as u64,
            first_failure: self.bots.iter().find_map(Bot::connect_failure),
        }
    }
}

/// Any free port, of the family that reaches `server`.
fn any_port_for(server: SocketAddr) -> SocketAddr {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(any, 0)
}
