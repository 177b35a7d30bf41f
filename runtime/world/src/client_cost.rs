//! Client cost: what one client takes of its server, so that an operator sees who takes most.
//!
//! Counted where a client is served anyway, and given to the host once a second ([`GameWorld::take_client_costs`]). The
//! host knows how long batches of clients take, and gives each client its part by [`line_units`]. What a client costs its
//! world's systems is no time but the work that its messages asked for, by their [price](throng_replication::ClientInput::price).
//!
//! Cost: seven additions per client and tick, in memory that is in use there.
//!
//! [`GameWorld::take_client_costs`]: crate::game_world::GameWorld::take_client_costs

use throng_net::protocol::ClientId;
use throng_platform::time::Nanos;

/// Bytes that take as long to open or to seal as what every packet takes beside its bytes: a forged datagram takes
/// 0.3 us to refuse and one of 1,200 bytes 0.7 us, which is 0.33 ns a byte.
const PACKET_UNITS: u64 = 900;

/// How packets of all sizes compare in the time to open or to seal them.
pub fn line_units(packets: u64, bytes: u64) -> u64 {
    packets * PACKET_UNITS + bytes
}

/// What a client took since it was last asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Of those that opened.
    pub packets_in: u64,
    pub bytes_in: u64,
    /// Inputs among them, but for those that came again as often as their kind declares.
    pub messages: u64,
    /// What its messages asked of its world, those that were refused not among them.
    pub work: u64,
    /// Messages that were refused because it sent more than its allowance.
    pub refused: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
}

/// A client with what it took in a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientCost {
    pub client_id: ClientId,
    pub elapsed: Nanos,
    pub spent: Spent,
}

/// Kept with a client.
#[derive(Debug, Default)]
pub(crate) struct CostMeter {
    pub spent: Spent,
    /// `None` before it was first asked.
    asked_at: Option<Nanos>,
}

impl CostMeter {
    /// What was taken since it was last asked, and since when; the first time there is no since.
    pub fn take(&mut self, now: Nanos) -> Option<(Nanos, Spent)> {
        let spent = std::mem::take(&mut self.spent);
        let since = self.asked_at.replace(now)?;
        Some((now.saturating_sub(since), spent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_told_once_and_with_its_time() {
        let mut meter = CostMeter::default();
        meter.spent.work = 7;
        assert_eq!(meter.take(Nanos::from_secs(5)), None, "nobody knows since when");
        meter.spent.work = 9;
        let expect = Spent { work: 9, ..Spent::default() };
        assert_eq!(meter.take(Nanos::from_secs(6)), Some((Nanos::from_secs(1), expect)));
        assert_eq!(meter.take(Nanos::from_secs(8)), Some((Nanos::from_secs(2), Spent::default())));
    }
}
