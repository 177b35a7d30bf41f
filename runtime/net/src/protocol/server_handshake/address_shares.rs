//! Shares of a frame's openings: what one address may take while others want some.
//!
//! Whoever has proven an address may show tokens as fast as its line carries, each of 2.6 us, and a frame opens a
//! limited number. First come, first served would give all of them to whoever sends most. So each address has a share of
//! every second: within it, all of the frame's openings are there for it; above it, half of them. The other half is
//! left to those who ask little. A thousand players behind one address come in at that half's rate.
//!
//! Addresses are counted by a keyed hash, in a table of fixed size: IPv4 by the whole address, IPv6 by its first 56
//! bits, which is what one household is given. Two that fall together share for a second, then the key changes with the
//! window. To take the reserved half, too, needs 960 addresses at 256 openings a frame and 60 frames a second.
//!
//! Cost: one hash of 16 bytes, about 20 ns, for datagrams with a good cookie only; 8 KiB, cleared once a second.

use std::hash::BuildHasher;
use std::net::IpAddr;

use rand::RngCore;
use throng_platform::time::Nanos;

use super::super::keyed_hash::KeyedState;

/// Openings of one address in a second that count as asking little. An honest client needs one, and some more where
/// datagrams are lost.
const SHARE_PER_S: u16 = 8;

const WINDOW: Nanos = Nanos::from_secs(1);

/// For a thousand attackers' addresses, an honest one falls together with one of them once in four seconds.
const COUNTS: usize = 4_096;

pub(super) struct AddressShares {
    hash: KeyedState,
    /// The window that `counts` is of.
    window: u64,
    counts: Box<[u16; COUNTS]>,
}

impl AddressShares {
    pub(super) fn new(rng: &mut impl RngCore) -> Self {
        Self { hash: KeyedState::new(rng), window: 0, counts: Box::new([0; COUNTS]) }
    }

    /// Counts an opening that this address asks for, and says whether it is within its share.
    pub(super) fn ask(&mut self, from: IpAddr, now: Nanos) -> bool {
        let window = now.0 / WINDOW.0;
        if window != self.window {
            self.window = window;
            self.counts.fill(0);
        }
        let hash = self.hash.hash_one((window, household(from))) as usize;
        let count = &mut self.counts[hash % COUNTS];
        *count = count.saturating_add(1);
        *count <= SHARE_PER_S
    }
}

/// What one attacker has for the price of one: an address, or the network of 56 bits that a household is given of IPv6.
pub fn household(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => u128::from(address) & !(u128::MAX >> 56),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    fn shares() -> AddressShares {
        AddressShares::new(&mut ChaCha20Rng::seed_from_u64(1))
    }

    fn granted(shares: &mut AddressShares, from: &str, asked: usize, at: Nanos) -> usize {
        (0..asked).filter(|_| shares.ask(from.parse().expect("an address"), at)).count()
    }

    #[test]
    fn each_address_has_its_share_of_each_second() {
        let mut shares = shares();
        let now = Nanos::from_millis(1_500);
        assert_eq!(granted(&mut shares, "10.0.0.1", 100_000, now), 8);
        assert_eq!(granted(&mut shares, "10.0.0.2", 3, now), 3, "who asks little has it, whatever others ask");
        assert_eq!(granted(&mut shares, "::ffff:10.0.0.1", 1, now), 0, "the same address in another form");
        assert_eq!(granted(&mut shares, "10.0.0.1", 9, Nanos::from_secs(2)), 8, "a new second");
    }

    #[test]
    fn a_household_shares_its_ipv6_addresses() {
        let mut shares = shares();
        let now = Nanos::ZERO;
        assert_eq!(granted(&mut shares, "2001:db8:1:100::1", 9, now), 8);
        assert_eq!(granted(&mut shares, "2001:db8:1:1ff::77", 1, now), 0, "of the same /56");
        assert_eq!(granted(&mut shares, "2001:db8:1:200::1", 1, now), 1);
    }

    /// Two that fall together in one window part in the next.
    #[test]
    fn who_shares_a_count_with_another_does_so_for_one_window() {
        let mut shares = shares();
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        (0..8 * 40_000).for_each(|n| _ = shares.ask(address(n % 40_000), Nanos::ZERO));
        let unlucky: Vec<u32> = (100_000..100_400).filter(|&n| !shares.ask(address(n), Nanos::ZERO)).collect();
        assert_eq!(unlucky.len(), 400, "so many that every count is used up");
        let still = unlucky.iter().filter(|&&n| !shares.ask(address(n), Nanos::from_secs(1))).count();
        assert_eq!(still, 0);
    }
}
