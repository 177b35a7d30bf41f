//! What one browser may send in a second: packets and bytes, above which what comes is dropped.

use throng::settings::ServerSettings;
use tokio::time::Instant;

/// Packets above its allowance that a browser may send; a page that was in the background sends a burst at most.
const EXCESS_MAX: u32 = 1_000;

/// What one browser may send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub packets_per_s: f64,
    pub bytes_per_s: f64,
}

impl Limits {
    /// The server's own are counted in its frames; these keep a flood from coming so far.
    pub fn of(server: &ServerSettings) -> Self {
        let with_slack = |limit: u32| 1.5 * f64::from(limit);
        Self {
            packets_per_s: with_slack(server.client_packets_per_s_max),
            bytes_per_s: with_slack(server.client_bytes_per_s_max),
        }
    }
}

/// Two buckets that fill with time, a second's worth each.
pub(crate) struct Allowance {
    limits: Limits,
    packets: f64,
    bytes: f64,
    at: Instant,
    excess: u32,
}

impl Allowance {
    pub fn new(limits: Limits) -> Self {
        Self { limits, packets: limits.packets_per_s, bytes: limits.bytes_per_s, at: Instant::now(), excess: 0 }
    }

    /// Whether a packet of so many bytes is let through.
    pub fn take(&mut self, bytes: usize) -> bool {
        let Limits { packets_per_s, bytes_per_s } = self.limits;
        let now = Instant::now();
        let elapsed_s = (now - self.at).as_secs_f64();
        self.at = now;
        self.packets = (self.packets + elapsed_s * packets_per_s).min(packets_per_s);
        self.bytes = (self.bytes + elapsed_s * bytes_per_s).min(bytes_per_s);
        let bytes = bytes as f64;
        if self.packets < 1.0 || self.bytes < bytes {
            self.excess += 1;
            return false;
        }
        self.packets -= 1.0;
        self.bytes -= bytes;
        true
    }

    /// Whether so much was above it that whoever sends is no player.
    pub fn is_exceeded(&self) -> bool {
        self.excess > EXCESS_MAX
    }
}
