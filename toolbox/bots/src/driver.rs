//! The loop that drives the bots of one thread: send some in, sleep, read, think, tell.
//!
//! The loop sleeps until 2 ms after its last wake, then in epoll until something can be read or a bot
//! is due. Under load the second wait returns at once with everything that came in the meantime: 500
//! wakes a second instead of 20,000. With few bots it is the second wait that sleeps.
//!
//! A driver has its own bots, sockets, epoll and random source. With the others it shares what nobody changes
//! ([`Plan`]), and the few facts of the [`Course`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_client::{Client, DisconnectReason, RetrySettings};
use throng_platform::clock::{Clock, MonotonicClock};
use throng_platform::poll::Epoll;
use throng_platform::process::thread_cpu_time;
use throng_platform::random;
use throng_platform::time::Nanos;
use throng_platform::udp::{BindOptions, UdpSocket};
use throng_profiler::scoped;
use throng_replication::Schema;

use crate::batch::BotBatch;
use crate::behaviour::Behaviour;
use crate::bot::{Bot, Buffers, Findings};
use crate::course::Course;
use crate::error::SwarmError;
use crate::report::LatencyHistogram;
use crate::tally::Tally;
use crate::tokens::{TokenSource, Tokens};
use crate::told::Told;
use crate::turns::Turns;

/// The least time between two wakes. Longer saves system calls and adds to what bots measure.
pub(crate) const WAKE_PERIOD: Nanos = Nanos::from_millis(2);

/// Kernel buffer of each bot's socket (bytes). A bot reads every few ms; this holds over 100 packets.
const SOCKET_BUFFER_BYTES: usize = 256 * 1024;

/// Goodbyes said at once, and the pause before the next, which is longer by as many threads as say some: 1,000 bots are
/// gone within 0.2 s.
const GOODBYES_AT_ONCE: usize = 25;
const GOODBYE_PAUSE: Nanos = Nanos::from_millis(4);

/// Makes the behaviour of the bot with this index.
pub(crate) type MakeBehaviour = dyn Fn(usize) -> Box<dyn Behaviour> + Send + Sync;

/// What all drivers of a swarm are given: its settings, as far as they are theirs, and what bots are made of.
pub(crate) struct Plan {
    /// Shows all of them the same time.
    pub clock: MonotonicClock,
    pub connect: SocketAddr,
    pub seconds: Option<u64>,
    pub tick_hz: u32,
    pub seed: u64,
    pub tokens: Arc<Tokens>,
    pub join_per_second: u32,
    pub retry: RetrySettings,
    pub status_every: Nanos,
    pub schema: Arc<Schema>,
    pub make_behaviour: Box<MakeBehaviour>,
    pub course: Course,
}

/// What a driver saw from beginning to end.
pub(crate) struct Outcome {
    /// Sums over its bots when the report's span began, and at the end.
    pub span_since: Tally,
    pub tally: Tally,
    /// Samples of the span.
    pub latency: LatencyHistogram,
    /// The first ones, and when they came.
    pub state_errors: Vec<(Nanos, String)>,
    /// The first of its bots that never got in, and why.
    pub connect_failure: Option<(usize, DisconnectReason)>,
    /// Why it could not go on.
    pub error: Option<SwarmError>,
}

/// Drives one batch of bots.
pub(crate) struct Driver {
    plan: Arc<Plan>,
    batch: BotBatch,
    told: Sender<Told>,
    tokens: TokenSource,
    turns: Turns,
    epoll: Epoll,
    buffers: Buffers,
    /// Bots that have been sent in, dead ones included; the place is the token in epoll.
    bots: Vec<Bot>,
    readable: Vec<u64>,
    last_wake: Nanos,
    cpu_at_start: Nanos,
    /// The course knows that all have been sent in, and that none is left.
    is_sent_in: bool,
    is_gone: bool,
    /// When to stop; known once the last bot of all was sent in.
    end: Nanos,
    next_status: Nanos,
    findings: Findings,
    /// Samples of the report's span without those of the current status interval.
    latency: LatencyHistogram,
    span_since: Option<Tally>,
}

impl Driver {
    /// A driver for the calling thread. Status by status, it tells `told` about its bots.
    pub fn new(plan: Arc<Plan>, batch: BotBatch, epoll: Epoll, told: Sender<Told>) -> Self {
        Self {
            batch,
            told,
            tokens: TokenSource::new(plan.tokens.clone(), plan.connect, random::seed()),
            turns: Turns::new(Nanos::ZERO, batch, plan.tick_hz),
            epoll,
            buffers: Buffers::new(),
            bots: Vec::with_capacity(batch.count()),
            readable: Vec::new(),
            last_wake: Nanos::ZERO,
            cpu_at_start: thread_cpu_time(),
            is_sent_in: false,
            is_gone: false,
            end: Nanos::MAX,
            next_status: plan.status_every,
            findings: Findings::new(),
            latency: LatencyHistogram::new(),
            span_since: None,
            plan,
        }
    }

    /// Sends the bots in, lets them play until the run is over, and lets them say goodbye.
    pub fn drive(mut self) -> Outcome {
        let error = self.play().err();
        if error.is_some() {
            // At once: goodbyes take a while, and the others would play on.
            self.plan.course.cut_short();
        }
        let outcome = self.outcome(error);
        self.say_goodbye();
        outcome
    }

    fn play(&mut self) -> Result<(), SwarmError> {
        while !self.is_over() {
            self.send_in_due()?;
            self.wait()?;
            self.receive()?;
            self.think()?;
            self.tell_due();
        }
        Ok(())
    }

    /// A thread without bots goes on for as long as another has some: its figures are those of the same time.
    fn is_over(&mut self) -> bool {
        if self.is_sent_in && !self.is_gone && !self.bots.iter().any(Bot::is_alive) {
            self.is_gone = true;
            self.plan.course.batch_is_gone();
        }
        self.now() >= self.end || self.plan.course.is_over()
    }

    fn now(&self) -> Nanos {
        self.plan.clock.now()
    }

    fn next_join_at(&self) -> Nanos {
        if self.bots.len() == self.batch.count() {
            return Nanos::MAX;
        }
        let bot = self.batch.bot(self.bots.len()) as u64;
        Nanos(bot.saturating_mul(1_000_000_000) / u64::from(self.plan.join_per_second))
    }

    fn send_in_due(&mut self) -> Result<(), SwarmError> {
        while self.next_join_at() <= self.now() {
            self.send_in()?;
        }
        if !self.is_sent_in && self.bots.len() == self.batch.count() {
            self.is_sent_in = true;
            self.plan.course.batch_is_sent_in(self.now());
        }
        if self.span_since.is_none()
            && let Some(at) = self.plan.course.all_sent_in_at()
        {
            self.begin_span(at);
        }
        Ok(())
    }

    fn send_in(&mut self) -> Result<(), SwarmError> {
        let place = self.bots.len();
        let bot = self.batch.bot(place);
        let (now, unix_s) = (self.now(), self.plan.clock.unix_seconds());
        let token = self.tokens.next(bot, unix_s).map_err(|source| SwarmError::Token { bot, source })?;
        let server = token.server_addresses().first().copied().unwrap_or(self.plan.connect);
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
        self.epoll.add(&socket, place as u64).map_err(SwarmError::Epoll)?;
        // The seeds of links come from the operating system: the caller may show a token twice.
        let client = Client::new(token, self.plan.schema.clone(), now, random::seed()).with_retries(self.plan.retry);
        let rng = Xoshiro256PlusPlus::seed_from_u64(self.plan.seed.wrapping_add(bot as u64));
        self.bots.push(Bot::new(bot, client, (self.plan.make_behaviour)(bot), rng, socket, now));
        Ok(())
    }

    /// Everybody has been on the way since `at`: what the report's rates and latencies cover begins here.
    fn begin_span(&mut self, at: Nanos) {
        self.span_since = Some(self.tally());
        self.latency = LatencyHistogram::new();
        self.findings.latency = LatencyHistogram::new();
        if let Some(seconds) = self.plan.seconds {
            self.end = at.saturating_add(Nanos(seconds.saturating_mul(1_000_000_000)));
        }
    }

    /// Sleeps; `readable` then has the places of bots whose sockets have something.
    #[scoped("idle.bots")]
    fn wait(&mut self) -> Result<(), SwarmError> {
        self.plan.clock.sleep_until(self.last_wake + WAKE_PERIOD);
        let next = self.turns.next_at().min(self.next_status).min(self.next_join_at()).min(self.end);
        let timeout_ms = next.saturating_sub(self.now()).as_micros() / 1_000;
        let timeout_ms = u16::try_from(timeout_ms).unwrap_or(u16::MAX);
        self.epoll.wait(&mut self.readable, timeout_ms).map_err(SwarmError::Epoll)?;
        self.last_wake = self.now();
        Ok(())
    }

    /// Reads every socket that has something: those of `readable`, then those that did not fit into it.
    #[scoped("bots.receive")]
    fn receive(&mut self) -> Result<(), SwarmError> {
        let unix_s = self.plan.clock.unix_seconds();
        let mut left = self.bots.len();
        while !self.readable.is_empty() {
            for &token in &self.readable {
                if let Some(bot) = self.bots.get_mut(token as usize) {
                    bot.receive(self.plan.clock.now(), unix_s, &mut self.buffers, &mut self.findings);
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
        let clock = &self.plan.clock;
        let unix_s = clock.unix_seconds();
        // Only the turns that are due now: those that come due meanwhile must not keep the sockets waiting.
        let due = clock.now();
        while let Some(place) = self.turns.take(due) {
            let Some(bot) = self.bots.get_mut(place) else { continue };
            if bot.wants_token(clock.now()) {
                let number = self.batch.bot(place);
                let token = self.tokens.next(number, unix_s);
                let token = token.map_err(|source| SwarmError::Token { bot: number, source })?;
                bot.try_again(token, clock.now(), random::seed());
            }
            bot.think(clock.now(), unix_s, &mut self.buffers);
        }
        Ok(())
    }

    fn tell_due(&mut self) {
        let now = self.now();
        if now < self.next_status {
            return;
        }
        while self.next_status <= now {
            self.next_status += self.plan.status_every;
        }
        let tally = self.tally();
        self.tell(tally, self.next_status);
    }

    fn tell(&mut self, tally: Tally, next: Nanos) {
        let latency = std::mem::replace(&mut self.findings.latency, LatencyHistogram::new());
        self.latency.add(&latency);
        if self.told.send(Told { thread: self.batch.thread, next, tally, latency }).is_err() {
            // Nobody waits for the report any more.
            self.plan.course.cut_short();
        }
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally {
            at: self.now(),
            cpu: thread_cpu_time().saturating_sub(self.cpu_at_start),
            players_wanted: self.batch.count() as u64,
            players_audited: self.batch.bots().filter(|&bot| self.plan.tokens.is_audited(bot)).count() as u64,
            thinks_due: self.turns.due(),
            thinks_skipped: self.turns.skipped(),
            ..Tally::default()
        };
        self.bots.iter().for_each(|bot| bot.count_into(&mut tally));
        tally
    }

    fn outcome(&mut self, error: Option<SwarmError>) -> Outcome {
        let tally = self.tally();
        self.tell(tally.clone(), Nanos::MAX);
        let failures = self.bots.iter().enumerate();
        let mut failures = failures.filter_map(|(place, bot)| Some((self.batch.bot(place), bot.connect_failure()?)));
        Outcome {
            connect_failure: failures.next(),
            span_since: self.span_since.take().unwrap_or_default(),
            tally,
            latency: std::mem::replace(&mut self.latency, LatencyHistogram::new()),
            state_errors: std::mem::take(&mut self.findings.state_errors),
            error,
        }
    }

    fn say_goodbye(&mut self) {
        let pause = Nanos(GOODBYE_PAUSE.0 * self.batch.threads as u64);
        for some in self.bots.chunks_mut(GOODBYES_AT_ONCE) {
            let now = self.plan.clock.now();
            if some.iter().any(Bot::is_alive) {
                some.iter_mut().for_each(|bot| bot.close(now, &mut self.buffers));
                self.plan.clock.sleep_until(now + pause);
            }
        }
    }
}

/// A thread that cannot go on, or whose bot panics, takes the whole swarm with it. Otherwise the run is over anyway.
impl Drop for Driver {
    fn drop(&mut self) {
        self.plan.course.cut_short();
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
