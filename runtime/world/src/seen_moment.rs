//! Seen moment: which moment of the world a player was shown when an input was made, and what the server knows of that.
//!
//! The moment is what the client says ([`Seen`]). The server has measured how long its line takes, and knows which
//! snapshot it has acknowledged: a game that judges shots by the one holds it against the others
//! (`throng_rewind::view_limits`). Noted where the datagram is opened, because there all of it is at hand.

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
    /// The newest tick of which the client had acknowledged a snapshot when the world's last tick ended; 0 before the
    /// first. It had that one, whatever it says: an honest client's `newest_tick` is this or later, unless its input was
    /// overtaken.
    pub acked_tick: u32,
    /// Of the client's line, as the server has measured it: smoothed, with what inputs and snapshots wait for ticks. In the
    /// world's time, of which less goes by where it is slowed.
    pub round_trip: Nanos,
}

impl SeenMoment {
    pub(crate) fn new(seen: Seen, acked_tick: u32, round_trip: Nanos) -> Self {
        let (tick, part) = seen.moment();
        Self { tick, part, newest_tick: seen.newest_tick, acked_tick, round_trip }
    }
}
