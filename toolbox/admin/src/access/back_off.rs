//! Back-off: who shows wrong keys waits before showing another.
//!
//! [`FAILURES_MAX`] wrong keys of one address within [`WITHIN`] close the port to its keys for [`PAUSE_MIN`]; each time
//! that it happens again the pause doubles, up to [`PAUSE_MAX`]. An address that was quiet for that long after its pause
//! begins anew. An IPv6 address stands for its /64, which is what one customer has.
//!
//! While the pause lasts, no key of that address is compared: not the right one either, since whoever guesses would see
//! the difference. So a program with a wrong key on a host delays the keys of others there; what needs no key is
//! answered as ever.
//!
//! The table holds [`SOURCES_MAX`] addresses, some 200 KB; when it is full, the one is forgotten that has shown no wrong
//! key and not had to wait for the longest time. Runs on the admin thread alone, with the time as an argument.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use throng_platform::time::Nanos;

/// A person who pastes the wrong key notices before that; a script does not.
pub(crate) const FAILURES_MAX: usize = 5;
pub(crate) const WITHIN: Nanos = Nanos::from_secs(30);
pub(crate) const PAUSE_MIN: Nanos = Nanos::from_secs(30);
pub(crate) const PAUSE_MAX: Nanos = Nanos::from_secs(600);
pub(crate) const SOURCES_MAX: usize = 1024;

/// All addresses that lately showed a wrong key.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    sources: HashMap<IpAddr, Failures>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    /// When the last wrong keys came since the last pause, the newest at the end.
    at: [Option<Nanos>; FAILURES_MAX],
    last_at: Nanos,
    /// No key is compared until then.
    until: Nanos,
    /// How long the last pause was; zero before the first.
    pause: Nanos,
}

impl BackOff {
    /// For how long still no key from there is compared.
    pub(crate) fn left(&self, from: IpAddr, now: Nanos) -> Option<Nanos> {
        let until = self.sources.get(&source(from))?.until;
        (until > now).then(|| until - now)
    }

    /// Notes a wrong key.
    pub(crate) fn fail(&mut self, from: IpAddr, now: Nanos) {
        let from = source(from);
        if !self.sources.contains_key(&from) && self.sources.len() == SOURCES_MAX {
            let oldest = self.sources.iter().min_by_key(|(_, failures)| failures.quiet_since()).map(|(from, _)| *from);
            if let Some(oldest) = oldest {
                self.sources.remove(&oldest);
            }
        }
        self.sources.entry(from).or_default().add(now);
    }

    #[cfg(test)]
    pub(crate) fn sources_count(&self) -> usize {
        self.sources.len()
    }
}

impl Failures {
    /// Later than now while it waits: many addresses do not free one from its pause.
    fn quiet_since(&self) -> Nanos {
        self.last_at.max(self.until)
    }

    fn add(&mut self, now: Nanos) {
        if now > self.until.saturating_add(PAUSE_MAX) {
            self.pause = Nanos::ZERO;
        }
        self.at.rotate_left(1);
        self.at[FAILURES_MAX - 1] = Some(now);
        self.last_at = now;
        if self.at[0].is_some_and(|first| now.saturating_sub(first) <= WITHIN) {
            self.pause = self.pause.saturating_add(self.pause).clamp(PAUSE_MIN, PAUSE_MAX);
            self.until = now + self.pause;
            self.at = [None; FAILURES_MAX];
        }
    }
}

/// What counts as one asker.
fn source(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Nanos = Nanos::from_secs;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Wrong keys from `from`, all at once; how long it must wait then (s).
    fn fail(table: &mut BackOff, from: &str, times: usize, now: Nanos) -> Option<f64> {
        (0..times).for_each(|_| table.fail(ip(from), now));
        table.left(ip(from), now).map(Nanos::as_secs_f64)
    }

    #[test]
    fn five_wrong_keys_within_half_a_minute_are_too_many() {
        let mut table = BackOff::default();
        assert_eq!(fail(&mut table, "192.0.2.1", 4, S(100)), None);
        assert_eq!(fail(&mut table, "192.0.2.1", 1, S(130)), Some(30.0));
        assert_eq!(table.left(ip("192.0.2.1"), S(159)), Some(S(1)));
        assert_eq!(table.left(ip("192.0.2.1"), S(160)), None);
        assert_eq!(table.left(ip("192.0.2.2"), S(131)), None, "another address");

        let mut slow = BackOff::default();
        for at in (0..1_000).map(|index| S(8 * index)) {
            assert_eq!(fail(&mut slow, "192.0.2.1", 1, at), None, "five within 32 s");
        }
    }

    #[test]
    fn each_pause_is_twice_the_last_up_to_ten_minutes_and_is_forgotten_after_a_quiet_time() {
        let mut table = BackOff::default();
        let mut now = S(5);
        for expect in [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0] {
            assert_eq!(fail(&mut table, "192.0.2.1", FAILURES_MAX, now), Some(expect));
            now += S(expect as u64);
        }
        now += PAUSE_MAX;
        assert_eq!(fail(&mut table, "192.0.2.1", FAILURES_MAX, now), Some(600.0), "it was not quiet for long enough");
        now += PAUSE_MAX + PAUSE_MAX + S(1);
        assert_eq!(fail(&mut table, "192.0.2.1", FAILURES_MAX, now), Some(30.0));
    }

    #[test]
    fn a_customers_ipv6_addresses_are_one_and_an_ipv4_address_is_one_however_it_is_written() {
        let mut table = BackOff::default();
        fail(&mut table, "2001:db8:0:7::1", 4, S(1));
        assert_eq!(fail(&mut table, "2001:db8:0:7:ffff::9", 1, S(1)), Some(30.0));
        assert_eq!(table.left(ip("2001:db8:0:8::1"), S(1)), None);
        fail(&mut table, "::ffff:192.0.2.1", FAILURES_MAX, S(1));
        assert!(table.left(ip("192.0.2.1"), S(1)).is_some());
        assert_eq!(table.left(ip("192.0.2.2"), S(1)), None);
    }

    #[test]
    fn the_table_is_bounded_and_forgets_the_oldest() {
        let mut table = BackOff::default();
        let address = |index: u32| IpAddr::from((0x0a00_0000 + index).to_be_bytes());
        for index in 0..100_000 {
            table.fail(address(index), S(1) + Nanos(u64::from(index)));
            assert!(table.sources.len() <= SOURCES_MAX);
        }
        assert_eq!(table.sources_count(), SOURCES_MAX);
        let kept = |index| table.sources.contains_key(&address(index));
        assert!(kept(99_999) && kept(100_000 - SOURCES_MAX as u32) && !kept(100_000 - SOURCES_MAX as u32 - 1));
    }
}
