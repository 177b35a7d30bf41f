//! Shares: how much of what strangers may take one of them has, by the address that it comes from.
//!
//! A household is an address, and of IPv6 the network of 56 bits that one is given: within it there are addresses without
//! number. This host has all.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use throng_net::protocol::household;

const SHARE_MIN: usize = 8;

/// Whom a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub SocketAddr);

/// How many connections each address has.
pub(crate) struct Shares {
    max: usize,
    held: Mutex<HashMap<u128, usize>>,
}

impl Shares {
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, held: Mutex::default() })
    }

    /// What one address may have of so many.
    pub fn of_each(all: usize) -> usize {
        (all / 8).max(SHARE_MIN)
    }

    /// `None`: the address has its share. This host has all.
    pub fn take(self: &Arc<Self>, from: IpAddr) -> Option<Share> {
        let is_own = from.to_canonical().is_loopback();
        let from = household(from);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(from).or_default();
        if *count >= self.max && !is_own {
            return None;
        }
        *count += 1;
        Some(Share { shares: self.clone(), of: from })
    }
}

/// One connection of an address; given back when it is dropped.
pub(crate) struct Share {
    shares: Arc<Shares>,
    of: u128,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.shares.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_household_has_one_share_and_another_its_own() {
        let shares = Shares::new(2);
        let take = |address: &str| shares.take(address.parse().unwrap());
        let held = [take("2001:db8::1"), take("2001:db8::ffff:2")];
        assert!(held.iter().all(Option::is_some));
        assert!(take("2001:db8:0:0:9::").is_none(), "a third one of the same network");
        assert!(take("2001:db8:0:100::1").is_some() && take("192.0.2.1").is_some());
        let mapped = [take("192.0.2.1"), take("::ffff:192.0.2.1")];
        assert!(mapped.iter().all(Option::is_some) && take("192.0.2.1").is_none());
        drop(held);
        assert!(take("2001:db8::3").is_some(), "what is given back is there again");
        assert!((0..9).all(|_| std::mem::ManuallyDrop::new(take("127.0.0.1")).is_some()), "this host has all");
    }
}
