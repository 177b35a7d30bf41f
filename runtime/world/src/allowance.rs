//! Allowance: how many packets, bytes and messages one client may send, in a moment and in the long run.
//!
//! A bucket for each fills at a fixed rate and holds one second's worth, so that a lag burst passes and a flood does not.
//! A client that stays over is dismissed, later if it was silent before: a line that stood still hands over at once what
//! was said meanwhile. Messages have a bucket of their own, because a packet holds two hundred of the
//! shortest ones, and it is messages that cost a game its time. There a message counts as much as its
//! [price](throng_replication::ClientInput::price), so that what all of a client's messages cost its world has a bound too.
//!
//! There are two for each client. Its world charges what has opened, so that only the client itself can use it up:
//! whoever forges its address cannot have it dismissed. The host's address table has a wider one for what merely claims
//! to be the client's, which keeps a flood from costing more than so many decryptions; it drops and never dismisses.
//! What is over it may still pass on the server's common reserve, so that a client whose address is being forged keeps
//! its place for as long as the reserve lasts.
//!
//! Looked at once per datagram and once per message; a few arithmetic operations.

use throng_platform::time::Nanos;

use crate::bucket::Bucket;

/// Times the client's own allowance that the address table lets through to be opened: at 300 packets/s and 0.3 us each,
/// a flood under one client's address costs 0.4 ms of each second.
const ADDRESS_FACTOR: u32 = 4;

/// Packets that may pass in a second over their clients' allowances at the address table, of all clients together. To
/// find that they are forged costs 0.3 us each, 0.7 us if they are long: 12 to 28 ms of each second on the workers.
const RESERVE_PACKETS_PER_S: u32 = 40_000;

/// The same in bytes. A mailbox holds 1 MiB: a fifth of it for a world at 20 Hz that gets all of the reserve.
const RESERVE_BYTES_PER_S: u32 = 4 << 20;

/// What of the reserve may come at once, in seconds: no more than one tick's.
const RESERVE_HOLDS_S: f64 = 0.05;

/// What a client's buckets hold, in seconds.
const HOLDS_S: f64 = 1.0;

#[derive(Debug, Clone)]
pub struct Allowance {
    packets: Bucket,
    bytes: Bucket,
    messages: Bucket,
    filled_at: Nanos,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Drop,
    /// Over for so long that the client is to go.
    Dismiss,
}

impl Allowance {
    pub fn new(packets_per_s: u32, bytes_per_s: u32, now: Nanos) -> Self {
        Self::holding(HOLDS_S, packets_per_s, bytes_per_s, now)
    }

    fn holding(holds_s: f64, packets_per_s: u32, bytes_per_s: u32, now: Nanos) -> Self {
        let bucket = |per_s| Bucket::new(per_s, holds_s);
        let (packets, bytes) = (bucket(packets_per_s), bucket(bytes_per_s));
        Self { packets, bytes, messages: Bucket::Unlimited, filled_at: now }
    }

    /// With a limit of messages, which there is none of otherwise: so many of price 1.
    pub fn with_messages(self, messages_per_s: u32) -> Self {
        Self { messages: Bucket::new(messages_per_s, HOLDS_S), ..self }
    }

    /// The server's own, for what is over its client's at the address table.
    pub fn reserve(now: Nanos) -> Self {
        Self::holding(RESERVE_HOLDS_S, RESERVE_PACKETS_PER_S, RESERVE_BYTES_PER_S, now)
    }

    /// The address table's: so much wider that an honest client's own never falls under it.
    pub fn of_address(packets_per_s: u32, bytes_per_s: u32, now: Nanos) -> Self {
        let wider = |rate: u32| rate.saturating_mul(ADDRESS_FACTOR);
        Self::new(wider(packets_per_s), wider(bytes_per_s), now)
    }

    pub fn spend(&mut self, size_bytes: usize, now: Nanos) -> Verdict {
        let Self { packets, bytes, messages, filled_at } = self;
        let elapsed_s = now.saturating_sub(std::mem::replace(filled_at, now)).as_secs_f64();
        [&mut *packets, &mut *bytes, messages].into_iter().for_each(|bucket| bucket.fill(elapsed_s));
        let size_bytes = size_bytes as f64;
        if !packets.has(1.0) {
            return packets.refuse(1.0);
        }
        if !bytes.has(size_bytes) {
            return bytes.refuse(size_bytes);
        }
        packets.take(1.0);
        bytes.take(size_bytes);
        Verdict::Pass
    }

    /// For a message of the datagram that was last spent for, at its price in units of work. One whose price is above what
    /// the allowance holds costs all of it.
    pub fn spend_message(&mut self, price: u32) -> Verdict {
        self.messages.spend(f64::from(price))
    }

    /// The same for one that was sent reliably. A client that is to stay cannot lose it, and inputs that came before it in
    /// a lump may have used up all: so as much as the allowance holds may be taken ahead of time, which makes two seconds'
    /// worth at once.
    pub fn spend_reliable_message(&mut self, price: u32) -> Verdict {
        self.messages.spend_ahead(f64::from(price))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `per_s` packets of 100 B for `seconds` to an allowance of 100 packets/s and 1 MB/s.
    fn check(per_s: u64, seconds: u64, expect: Verdict) {
        let mut allowance = Allowance::new(100, 1_000_000, Nanos::ZERO);
        let mut last = Verdict::Pass;
        for packet in 0..per_s * seconds {
            last = allowance.spend(100, Nanos(packet * 1_000_000_000 / per_s));
            if last == Verdict::Dismiss {
                break;
            }
        }
        assert_eq!(last, expect, "{per_s} packets/s for {seconds} s");
    }

    #[test]
    fn a_steady_client_is_never_touched() {
        check(100, 600, Verdict::Pass);
    }

    #[test]
    fn a_flood_is_dismissed() {
        check(20_000, 2, Verdict::Dismiss);
    }

    #[test]
    fn a_flood_of_few_and_long_packets_is_dismissed() {
        let mut allowance = Allowance::new(300, 128_000, Nanos::ZERO);
        let mut packets = (0..250 * 30).map(|packet| allowance.spend(1_200, Nanos(packet * 1_000_000_000 / 250)));
        assert!(packets.any(|verdict| verdict == Verdict::Dismiss));
    }

    #[test]
    fn a_burst_after_a_blackout_passes() {
        let mut allowance = Allowance::new(100, 1_000_000, Nanos::ZERO);
        for burst in 1..10 {
            let now = Nanos::from_secs(burst * 10);
            assert!((0..100).all(|_| allowance.spend(100, now) == Verdict::Pass));
            assert_eq!(allowance.spend(100, now), Verdict::Drop);
        }
    }

    #[test]
    fn the_reserve_gives_little_at_once_and_much_in_the_long_run() {
        let mut reserve = Allowance::reserve(Nanos::ZERO);
        let mut passed = |now| (0..100_000).filter(|_| reserve.spend(20, now) == Verdict::Pass).count();
        assert_eq!(passed(Nanos::ZERO), 2_000);
        assert_eq!((1..=1_000).map(|ms| passed(Nanos::from_millis(ms))).sum::<usize>(), 40_000);
        assert_eq!(passed(Nanos::from_secs(100)), 2_000);
    }

    #[test]
    fn messages_have_a_limit_of_their_own() {
        let mut allowance = Allowance::new(100, 1_000_000, Nanos::ZERO).with_messages(500);
        let mut passed = |ms, count| {
            assert_eq!(allowance.spend(1_200, Nanos::from_millis(ms)), Verdict::Pass);
            (0..count).filter(|_| allowance.spend_message(1) == Verdict::Pass).count()
        };
        assert_eq!(passed(0, 600), 500, "a second's worth at once");
        assert_eq!(passed(100, 200), 50);
        assert_eq!(passed(10_000, 600), 500);
        let verdicts = (0..3_200).map(|_| allowance.spend_message(1));
        assert_eq!(verdicts.last(), Some(Verdict::Dismiss), "who goes on is not just in a hurry");
        let mut unlimited = Allowance::new(100, 1_000_000, Nanos::ZERO);
        assert!((0..100_000).all(|_| unlimited.spend_message(1) == Verdict::Pass));
    }

    /// The promise of the price: whatever a client sends, its world does no more for it than for so many ordinary
    /// messages.
    #[test]
    fn dear_messages_buy_no_more_work_than_ordinary_ones() {
        let work_in_10_s = |price: u32| {
            let mut allowance = Allowance::new(100, 1_000_000, Nanos::ZERO).with_messages(500);
            let passed = (0..200).flat_map(|tick| {
                assert_eq!(allowance.spend(1_200, Nanos::from_millis(tick * 50)), Verdict::Pass);
                (0..200).map(|_| allowance.spend_message(price)).collect::<Vec<_>>()
            });
            passed.filter(|verdict| *verdict == Verdict::Pass).count() as u32 * price
        };
        let ordinary = work_in_10_s(1);
        for price in [2, 7, 50, 400] {
            assert!(work_in_10_s(price) <= ordinary, "{price}: {} of {ordinary}", work_in_10_s(price));
        }
    }

    #[test]
    fn what_is_taken_ahead_of_time_comes_in_first() {
        let mut allowance = Allowance::new(100, 1_000_000, Nanos::ZERO).with_messages(500);
        let mut passed = 0;
        for tick in 0..200 {
            assert_eq!(allowance.spend(1_200, Nanos::from_millis(tick * 50)), Verdict::Pass);
            passed += (0..200).filter(|_| allowance.spend_reliable_message(7) == Verdict::Pass).count() * 7;
        }
        assert!(passed <= 2 * 500 + 500 * 10, "{passed}");
    }

    #[test]
    fn bytes_count_as_well_as_packets() {
        let mut allowance = Allowance::new(1000, 10_000, Nanos::ZERO);
        let passed = (0..100).filter(|_| allowance.spend(1000, Nanos::ZERO) == Verdict::Pass).count();
        assert_eq!(passed, 10);
    }
}
