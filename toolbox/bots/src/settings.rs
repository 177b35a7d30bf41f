//! What a swarm is told to do.

use std::net::SocketAddr;

use throng_client::RetrySettings;
use throng_platform::threads::Priority;
use throng_platform::time::Nanos;

use crate::tokens::Tokens;

/// What a swarm does.
#[derive(Debug)]
pub struct SwarmSettings {
    /// The server. Tokens that the caller makes name their own addresses; this one is then for errors.
    pub connect: SocketAddr,
    /// How many bots (> 0).
    pub players: usize,
    /// How long to play after the last bot was sent in (s); `None` = until stopped.
    pub seconds: Option<u64>,
    /// How often a bot thinks and sends an input [Hz, 1 to 1,000; default [`TICK_HZ`](Self::TICK_HZ)]. The rate of the
    /// game's players: lower flatters the server, higher overloads it.
    pub tick_hz: u32,
    /// Seed of the bots' behaviour; bot `i` behaves the same in every run, as far as the server does.
    pub seed: u64,
    /// Who makes the connect tokens.
    pub tokens: Tokens,
    /// How many bots are sent in per second (> 0; default 120). More than the server lets in, by default 8
    /// per frame and so 480 a second: they wait in its line. Too few: the run takes longer.
    pub join_per_second: u32,
    /// How often a bot that was not let in tries again.
    pub retry: RetrySettings,
    /// How many threads drive the bots, at most one per bot; `None` = one for 8,000 thoughts a second, which are those of
    /// 400 bots at 20 Hz, and no more than there are cores for this process. Too few: they are late, see
    /// `thinks_skipped_share`. Too many: they wake for nothing.
    pub threads: Option<usize>,
    /// Of the bots' threads (default: normal). [`Priority::Load`] is for bots that share a host with their server: its
    /// workers then need not wait until a bot's turn is over. Where the server fills the cores, such bots are late.
    pub priority: Priority,
    /// How often the status is told (> 0; default 1 s).
    pub status_every: Nanos,
}

impl SwarmSettings {
    /// The rate of bots of which nothing else is said (Hz).
    pub const TICK_HZ: u32 = 20;

    /// Settings with every default, to be changed by field.
    pub fn new(connect: SocketAddr, players: usize, tokens: Tokens) -> Self {
        Self {
            connect,
            players,
            seconds: None,
            tick_hz: Self::TICK_HZ,
            seed: 1,
            tokens,
            join_per_second: 120,
            retry: RetrySettings::default(),
            threads: None,
            priority: Priority::Normal,
            status_every: Nanos::from_secs(1),
        }
    }
}
