//! UDP sockets that take and give datagrams in batches.
//!
//! At 1,000 players and 20 ticks a second a server moves 40,000 datagrams a second. One system call for
//! each was measured at 5.1 us, in batches of 64 at 3.2 us, so the whole path here is `recvmmsg` and
//! `sendmmsg` on buffers that are allocated once. Sockets never block: what cannot be taken now is
//! dropped and counted, because a late snapshot is worth less than the next one.
//!
//! - [`ReceiveBatch`]: up to 64 datagrams of at most 2,048 bytes; longer ones are dropped and counted.
//! - [`SendBatch`]: up to 64 datagrams of at most 1,400 bytes, written in place by whoever seals them.
//!
//! A socket may be used by several threads at once, each with batches of its own. Cost: 128 KiB per
//! receive batch, 88 KiB per send batch, no allocation after creation.

mod bind;
mod receive;
mod send;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

pub use bind::{BindError, BindOptions, BindWarning};
pub use receive::{RECEIVE_BYTES_MAX, ReceiveBatch};
pub use send::{SEND_BYTES_MAX, SendBatch, SendOutcome};

use crate::raw_address::{RAW_ADDRESS_BYTES, RawAddress};

/// Datagrams moved by one system call. Measured on loopback: 32 to 512 are equal.
pub const BATCH_DATAGRAMS_MAX: usize = 64;

/// One non-blocking UDP socket.
pub struct UdpSocket {
    fd: OwnedFd,
    local: SocketAddr,
}

impl UdpSocket {
    /// Opens a socket on `address` (port 0: the kernel picks one).
    ///
    /// An IPv6 socket takes IPv6 only, so that an address never comes in two forms: bind one per family.
    /// Warnings say what works but less well than asked, and how to mend it.
    pub fn bind(address: SocketAddr, options: &BindOptions) -> Result<(UdpSocket, Vec<BindWarning>), BindError> {
        bind::bind(address, options)
    }

    /// Where the socket really is, with the port that the kernel picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Replaces the contents of `batch` by the datagrams that wait, oldest first.
    ///
    /// Returns how many were taken from the socket, 0 when none waits. Call again while it returns
    /// [`BATCH_DATAGRAMS_MAX`], as often as the caller's budget allows.
    pub fn receive_batch(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.receive(self.fd.as_raw_fd())
    }

    /// Sends what `batch` holds, in order, and empties it.
    ///
    /// Never blocks and never fails as a whole: when the socket's buffer is full the rest is dropped, and
    /// a datagram that the kernel refuses (no route, address filtered) is dropped alone. Both are counted.
    pub fn send_batch(&self, batch: &mut SendBatch) -> SendOutcome {
        batch.send(self.fd.as_raw_fd())
    }

    /// Sends one datagram; for those who have one at a time, such as a bot.
    pub fn send_to(&self, datagram: &[u8], to: SocketAddr) -> SendOutcome {
        let (mut raw, len) = RawAddress::new(to);
        // SAFETY: `datagram` is readable for its length, and `raw` holds an address of `len` bytes.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                datagram.as_ptr().cast(),
                datagram.len(),
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
                raw.as_mut_ptr().cast(),
                len,
            )
        };
        if sent >= 0 { SendOutcome { sent: 1, dropped: 0 } } else { SendOutcome { sent: 0, dropped: 1 } }
    }

    /// Takes one datagram, cut to the length of `into`; `None` when none waits.
    pub fn recv_from(&self, into: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        let mut raw = RawAddress::EMPTY;
        let mut len = RAW_ADDRESS_BYTES;
        // SAFETY: `into` is writable for its length, `raw` for `len` bytes.
        let received = unsafe {
            libc::recvfrom(
                self.fd.as_raw_fd(),
                into.as_mut_ptr().cast(),
                into.len(),
                libc::MSG_DONTWAIT,
                raw.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        if received < 0 {
            return nothing_or_error();
        }
        Ok(raw.get().map(|from| (received as usize, from)))
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for UdpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// The last system call's failure, unless it only means "not now".
fn nothing_or_error<T: Default>() -> io::Result<T> {
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(T::default()),
        // An ICMP answer to an earlier send; it says nothing about what waits to be received.
        io::ErrorKind::ConnectionRefused => Ok(T::default()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::wait_readable;
    use crate::time::Nanos;

    fn loopback() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &BindOptions::default()).unwrap().0
    }

    /// Sends datagrams of the given bytes in one batch and returns what arrives.
    fn exchange(from: &UdpSocket, to: &UdpSocket, datagrams: &[Vec<u8>]) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut outgoing = SendBatch::new();
        for datagram in datagrams {
            outgoing.buffer()[..datagram.len()].copy_from_slice(datagram);
            outgoing.commit(to.local_addr(), datagram.len());
        }
        assert_eq!(outgoing.len(), datagrams.len());
        assert_eq!(from.send_batch(&mut outgoing), SendOutcome { sent: datagrams.len(), dropped: 0 });
        assert!(outgoing.is_empty());

        let mut incoming = ReceiveBatch::new();
        let mut arrived = Vec::new();
        while arrived.len() < datagrams.len() {
            assert!(wait_readable(&[to.as_fd()], Some(Nanos::from_secs(60))).unwrap());
            to.receive_batch(&mut incoming).unwrap();
            arrived.extend(incoming.iter_mut().map(|(from, bytes)| (from, bytes.to_vec())));
        }
        arrived
    }

    #[test]
    fn full_batches_arrive_both_ways_in_order_with_their_senders() {
        let (a, b) = (loopback(), loopback());
        let datagrams: Vec<Vec<u8>> = (0..BATCH_DATAGRAMS_MAX).map(|n| vec![n as u8; 1 + n * 20]).collect();
        for (from, to) in [(&a, &b), (&b, &a)] {
            let expected: Vec<_> = datagrams.iter().map(|bytes| (from.local_addr(), bytes.clone())).collect();
            assert_eq!(exchange(from, to, &datagrams), expected);
        }
    }

    #[test]
    fn ipv6_works_the_same_where_the_host_has_it() {
        let bind = || UdpSocket::bind("[::1]:0".parse().unwrap(), &BindOptions::default());
        let (Ok((a, _)), Ok((b, _))) = (bind(), bind()) else {
            return;
        };
        assert_eq!(exchange(&a, &b, &[vec![1, 2, 3]]), [(a.local_addr(), vec![1, 2, 3])]);
    }

    #[test]
    fn a_datagram_too_long_for_the_batch_is_dropped_and_counted() {
        let (a, b) = (loopback(), loopback());
        for bytes in [RECEIVE_BYTES_MAX, RECEIVE_BYTES_MAX + 1, 5] {
            assert_eq!(a.send_to(&vec![9; bytes], b.local_addr()).sent, 1);
        }
        let mut incoming = ReceiveBatch::new();
        let mut taken = 0;
        let mut lengths = Vec::new();
        while taken < 3 {
            assert!(wait_readable(&[b.as_fd()], Some(Nanos::from_secs(60))).unwrap());
            taken += b.receive_batch(&mut incoming).unwrap();
            lengths.extend(incoming.iter_mut().map(|(_, bytes)| bytes.len()));
        }
        assert_eq!(lengths, [RECEIVE_BYTES_MAX, 5]);
        assert_eq!(incoming.truncated(), 1);
    }

    #[test]
    fn nothing_to_receive_is_not_an_error() {
        let socket = loopback();
        let mut batch = ReceiveBatch::new();
        assert_eq!(socket.receive_batch(&mut batch).unwrap(), 0);
        assert_eq!(batch.iter_mut().count(), 0);
        assert_eq!(socket.recv_from(&mut [0; 16]).unwrap(), None);
    }

    #[test]
    fn a_datagram_that_cannot_be_sent_does_not_take_the_others_with_it() {
        let (a, b) = (loopback(), loopback());
        let mut outgoing = SendBatch::new();
        // An IPv6 address on an IPv4 socket is refused by the kernel.
        for to in [b.local_addr(), "[::1]:9".parse().unwrap(), b.local_addr()] {
            outgoing.buffer()[0] = 1;
            outgoing.commit(to, 1);
        }
        assert_eq!(a.send_batch(&mut outgoing), SendOutcome { sent: 2, dropped: 1 });
    }

    #[test]
    fn single_datagrams_go_and_come() {
        let (a, b) = (loopback(), loopback());
        assert_eq!(a.send_to(b"hello", b.local_addr()), SendOutcome { sent: 1, dropped: 0 });
        assert!(wait_readable(&[b.as_fd()], Some(Nanos::from_secs(60))).unwrap());
        let mut bytes = [0; 16];
        assert_eq!(b.recv_from(&mut bytes).unwrap(), Some((5, a.local_addr())));
        assert_eq!(&bytes[..5], b"hello");
    }
}
