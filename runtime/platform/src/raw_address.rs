//! Socket addresses in the kernel's form, 28 bytes, which hold IPv4 and IPv6 alike.
//!
//! `sockaddr_storage` would be 128 bytes per datagram, most of it unused: two cache lines read and
//! written for nothing at every one of 100,000 datagrams a second.

use std::mem;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// An address as `recvmmsg` writes it and `sendmmsg` reads it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct RawAddress(libc::sockaddr_in6);

/// Of the same host and port, in the same words. An IPv4 address leaves the fields zero that it does not reach.
impl PartialEq for RawAddress {
    fn eq(&self, other: &RawAddress) -> bool {
        let RawAddress(libc::sockaddr_in6 { sin6_family, sin6_port, sin6_flowinfo, sin6_addr, sin6_scope_id }) = self;
        *sin6_family == other.0.sin6_family
            && *sin6_port == other.0.sin6_port
            && *sin6_flowinfo == other.0.sin6_flowinfo
            && sin6_addr.s6_addr == other.0.sin6_addr.s6_addr
            && *sin6_scope_id == other.0.sin6_scope_id
    }
}

/// Room for the larger of the two forms.
pub const RAW_ADDRESS_BYTES: u32 = mem::size_of::<libc::sockaddr_in6>() as u32;

const _: () = assert!(mem::size_of::<libc::sockaddr_in>() <= mem::size_of::<libc::sockaddr_in6>());
const _: () = assert!(mem::align_of::<libc::sockaddr_in>() <= mem::align_of::<libc::sockaddr_in6>());

impl RawAddress {
    /// No address yet; [`RawAddress::get`] answers `None`.
    pub const EMPTY: RawAddress = RawAddress(libc::sockaddr_in6 {
        sin6_family: libc::AF_UNSPEC as u16,
        sin6_port: 0,
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
        sin6_scope_id: 0,
    });

    /// The kernel's form of `address`, and how many of its bytes count.
    pub fn new(address: SocketAddr) -> (RawAddress, u32) {
        let mut raw = RawAddress::EMPTY;
        match address {
            SocketAddr::V4(address) => {
                let short = libc::sockaddr_in {
                    sin_family: libc::AF_INET as u16,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                    sin_zero: [0; 8],
                };
                // SAFETY: a `sockaddr_in` fits in a `sockaddr_in6` in size and alignment (asserted above).
                unsafe { raw.as_mut_ptr().cast::<libc::sockaddr_in>().write(short) };
                (raw, mem::size_of::<libc::sockaddr_in>() as u32)
            }
            SocketAddr::V6(address) => {
                raw.0.sin6_family = libc::AF_INET6 as u16;
                raw.0.sin6_port = address.port().to_be();
                raw.0.sin6_flowinfo = address.flowinfo();
                raw.0.sin6_addr.s6_addr = address.ip().octets();
                raw.0.sin6_scope_id = address.scope_id();
                (raw, RAW_ADDRESS_BYTES)
            }
        }
    }

    /// The address, or `None` for a family that is neither IPv4 nor IPv6.
    pub fn get(&self) -> Option<SocketAddr> {
        match i32::from(self.0.sin6_family) {
            libc::AF_INET => {
                // SAFETY: the family says that these bytes are a `sockaddr_in`; it fits and any bytes are a valid one.
                let short = unsafe { (&raw const self.0).cast::<libc::sockaddr_in>().read() };
                let ip = short.sin_addr.s_addr.to_ne_bytes().into();
                Some(SocketAddrV4::new(ip, u16::from_be(short.sin_port)).into())
            }
            libc::AF_INET6 => {
                let raw = &self.0;
                let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
                Some(SocketAddrV6::new(ip, u16::from_be(raw.sin6_port), raw.sin6_flowinfo, raw.sin6_scope_id).into())
            }
            _ => None,
        }
    }

    pub fn as_mut_ptr(&mut self) -> *mut libc::sockaddr_in6 {
        &raw mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_come_back_as_they_went_in() {
        for text in ["127.0.0.1:40000", "255.1.2.3:1", "[::1]:40000", "[fe80::1%7]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            let (raw, len) = RawAddress::new(address);
            assert_eq!(raw.get(), Some(address));
            assert!(len <= RAW_ADDRESS_BYTES);
        }
    }

    #[test]
    fn addresses_are_equal_when_host_and_port_are() {
        let texts =
            ["127.0.0.1:40000", "127.0.0.1:40001", "127.0.0.2:40000", "[::1]:40000", "[fe80::1%7]:1", "[fe80::1%8]:1"];
        for a in texts {
            for b in texts {
                let raw = |text: &str| RawAddress::new(text.parse().unwrap());
                assert_eq!(raw(a) == raw(b), a == b, "{a} and {b}");
            }
        }
    }

    #[test]
    fn nothing_is_not_an_address() {
        assert_eq!(RawAddress::EMPTY.get(), None);
    }
}
