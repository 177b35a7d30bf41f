//! Seen moment: which moment of the world a player was shown when an input was made, and how long its client's line takes.
//!
//! The first is what the client says ([`Seen`]), the second what the server has measured: a game that judges shots by the
//! one holds it against the other (`throng_rewind::view_limits`). Noted where the datagram is opened, because there both
//! are at hand.

use throng_platform::time::Nanos;
use throng_replication::Seen;

/// What a client says that its player was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenMoment {
    /// The tick at or before the moment.
    pub tick: u32,
    /// 256ths of a tick after that.
    pub part: u8,
    /// Tick of the newest snapshot that the client had: the moment is so far behind it as the client interpolates.
    pub newest_tick: u32,
    /// Of the client's line, as the server has measured it: smoothed, with what inputs and snapshots wait for ticks.
    pub round_trip: Nanos,
}

impl SeenMoment {
    pub(crate) fn new(seen: Seen, round_trip: Nanos) -> Self {
        let (tick, part) = seen.moment();
        Self { tick, part, newest_tick: seen.newest_tick, round_trip }
    }
}
