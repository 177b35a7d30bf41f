//! Free ports for instances, one after the other.
//!
//! Below those that the kernel hands out by itself, so that no connection takes one between the moment in which it was
//! found free and the instance's start; unless the first one is among these.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;

/// The last one that the kernel does not hand out, if nobody has set `net.ipv4.ip_local_port_range`.
const LAST: u16 = 32_767;

/// Counts up from a first port; those that somebody has are passed over.
#[derive(Debug)]
pub(crate) struct Ports {
    left: RangeInclusive<u16>,
}

impl Ports {
    pub fn from(first: u16) -> Self {
        Self { left: first..=if first <= LAST { LAST } else { u16::MAX } }
    }

    /// `None` when there are no more.
    pub fn take(&mut self) -> Option<u16> {
        self.left.find(|port| is_free(*port))
    }
}

/// On all addresses, both for UDP and for TCP: what the program does with it is its own affair.
fn is_free(port: u16) -> bool {
    let address = (Ipv4Addr::UNSPECIFIED, port);
    UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_ports_are_passed_over_and_none_is_given_twice() {
        let taken = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let first = taken.local_addr().unwrap().port();
        let mut ports = Ports::from(first);
        let found: Vec<u16> = (0..3).filter_map(|_| ports.take()).collect();
        assert!(found.iter().all(|port| *port > first) && found.is_sorted_by(|one, other| one < other), "{found:?}");
        for last in [LAST, u16::MAX] {
            let mut ports = Ports::from(last);
            assert!(ports.take().is_none_or(|port| port == last) && ports.take().is_none());
        }
    }
}
