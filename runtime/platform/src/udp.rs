//! UDP sockets that take and give datagrams in batches.
//!
//! At 1,000 players and 20 ticks a second a server moves 40,000 datagrams a second. One system call for each was
//! measured at 5.1 us, in batches of 64 at 3.2 us, so the whole path here is `recvmmsg` and `sendmmsg` on buffers that
//! are allocated once, and datagrams to one receiver go out together (see `send`). Sockets never block: what cannot be
//! taken now is dropped and counted, because a late snapshot is worth less than the next one.
//!
//! - [`ReceiveBatch`]: up to 64 datagrams of at most 2,048 bytes; longer ones are dropped and counted.
//! - [`SendBatch`]: up to 64 datagrams of at most 1,400 bytes, written in place by whoever seals them.
//!
//! A socket may be used by several threads at once, each with batches of its own. Measured on loopback, to 200
//! receivers in turns (`what_a_datagram_costs`): 4.3 us a datagram when each goes out alone, 1.6 us in trains of three,
//! 1.1 us in trains of eight. Cost: 128 KiB per receive batch, 88 KiB per send batch, no allocation after creation.

mod bind;
mod receive;
mod send;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;

pub use bind::{BindError, BindOptions, BindWarning};
pub use receive::{RECEIVE_BYTES_MAX, ReceiveBatch};
pub use send::{SEND_BYTES_MAX, SendBatch, SendOutcome};

use send::Segmentation;

use crate::raw_address::{RAW_ADDRESS_BYTES, RawAddress};

/// Datagrams moved by one system call. Measured on loopback: 32 to 512 are equal.
pub const BATCH_DATAGRAMS_MAX: usize = 64;

/// One non-blocking UDP socket.
pub struct UdpSocket {
    fd: OwnedFd,
    local: SocketAddr,
    segmentation: Segmentation,
}

/// How datagrams to one receiver went out together, since the socket was opened.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SegmentationStats {
    /// Whether consecutive datagrams of one size to one receiver go out as one message: the kernel knows how, and the
    /// device has not refused.
    pub is_used: bool,
    /// Datagrams that went along with another and cost little.
    pub merged: u64,
    /// Messages that the kernel refused to cut; they were sent again as single datagrams.
    pub refused: u64,
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
        batch.send(self.fd.as_raw_fd(), &self.segmentation)
    }

    /// How often the batches' datagrams went out together.
    pub fn segmentation(&self) -> SegmentationStats {
        let Segmentation { merged, refused, .. } = &self.segmentation;
        SegmentationStats {
            is_used: self.segmentation.is_used(),
            merged: merged.load(Ordering::Relaxed),
            refused: refused.load(Ordering::Relaxed),
        }
    }

    /// True once, when the device has turned out not to cut messages: from then on datagrams go out one by one, at two
    /// to three times the cost. To be told to an operator.
    pub fn take_segmentation_refusal(&self) -> bool {
        self.segmentation.take_refusal()
    }

    /// Ends or begins sending datagrams to one receiver together, for comparisons. On by itself where the kernel knows
    /// how.
    #[cfg(test)]
    fn use_segmentation(&self, is_used: bool) {
        self.segmentation.set_used(is_used);
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

    /// Sends datagrams of these receivers (0 to 2) and sizes in one batch, merged where possible or not at all; what
    /// each receiver got.
    fn deliver(datagrams: &[(usize, usize)], merged: bool) -> (Vec<Vec<Vec<u8>>>, SegmentationStats) {
        let sender = loopback();
        sender.use_segmentation(merged && sender.segmentation().is_used);
        let receivers = [loopback(), loopback(), loopback()];
        let mut outgoing = SendBatch::new();
        for (number, &(to, size)) in datagrams.iter().enumerate() {
            let bytes = &mut outgoing.buffer()[..size];
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = (number * 7 + at) as u8;
            }
            outgoing.commit(receivers[to].local_addr(), size);
        }
        assert_eq!(sender.send_batch(&mut outgoing), SendOutcome { sent: datagrams.len(), dropped: 0 });
        let mut incoming = ReceiveBatch::new();
        let arrived = (0..).zip(&receivers).map(|(index, receiver)| {
            let expected = datagrams.iter().filter(|(to, _)| *to == index).count();
            let mut arrived = Vec::new();
            while arrived.len() < expected {
                assert!(wait_readable(&[receiver.as_fd()], Some(Nanos::from_secs(60))).unwrap());
                receiver.receive_batch(&mut incoming).unwrap();
                arrived.extend(incoming.iter_mut().map(|(_, bytes)| bytes.to_vec()));
            }
            arrived
        });
        (arrived.collect(), sender.segmentation())
    }

    /// Promise: whether datagrams go out together or not, every receiver gets the same bytes in the same order.
    #[test]
    fn datagrams_that_go_out_together_arrive_as_they_were() {
        let check = |datagrams: &[(usize, usize)], expect_merged: u64| {
            let (single, _) = deliver(datagrams, false);
            let (merged, stats) = deliver(datagrams, true);
            assert_eq!(single, merged, "{datagrams:?}");
            if stats.is_used {
                assert_eq!((stats.merged, stats.refused), (expect_merged, 0), "{datagrams:?}");
            }
        };
        check(&[(0, 100)], 0);
        check(&[(0, 1_200), (0, 1_200), (0, 310), (1, 1_200), (1, 1_200), (0, 90), (2, 90)], 3);
        // Longer than the first, empty, or after a shorter one: a message of its own.
        check(&[(0, 100), (0, 101), (0, 101), (0, 100), (0, 100), (0, 0), (0, 0), (0, 5)], 2);
        // As many as a message takes in bytes, and in a batch.
        check(&[(1, SEND_BYTES_MAX); BATCH_DATAGRAMS_MAX], 62);
        check(&[(1, 1); BATCH_DATAGRAMS_MAX], 63);
        let mut seed = 1_u64;
        for _ in 0..200 {
            let mut next = |below: u64| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed >> 33) % below
            };
            let sizes = [0, 1, 90, 700, 1_200, 1_200, 1_200];
            let count = next(BATCH_DATAGRAMS_MAX as u64) as usize;
            let mut to = 0;
            let datagrams: Vec<(usize, usize)> = (0..count)
                .map(|_| {
                    if next(3) == 0 {
                        to = next(3) as usize;
                    }
                    (to, sizes[next(sizes.len() as u64) as usize])
                })
                .collect();
            assert_eq!(deliver(&datagrams, false).0, deliver(&datagrams, true).0, "{datagrams:?}");
        }
    }

    /// A message that cannot be cut costs nothing but the second call: larger datagrams than the path's MTU are single
    /// ones.
    #[test]
    fn what_the_kernel_refuses_to_cut_is_sent_in_single_datagrams() {
        let (sender, receiver) = (loopback(), loopback());
        if !sender.segmentation().is_used {
            return;
        }
        let no_checksums: libc::c_int = 1;
        // SAFETY: the pointer is to a value of the size that is said.
        let answer = unsafe {
            let size = size_of::<libc::c_int>() as libc::socklen_t;
            libc::setsockopt(
                sender.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_NO_CHECK,
                (&raw const no_checksums).cast(),
                size,
            )
        };
        assert_eq!(answer, 0);
        // Without checksums the kernel does not cut (`udp_send_skb`).
        let mut outgoing = SendBatch::new();
        for number in 0..3 {
            outgoing.buffer()[0] = number;
            outgoing.commit(receiver.local_addr(), 100);
        }
        assert_eq!(sender.send_batch(&mut outgoing), SendOutcome { sent: 3, dropped: 0 });
        assert_eq!((sender.segmentation().merged, sender.segmentation().refused), (0, 1));
        // The device's word is final, and told once; another error is about the message that it came for.
        let is_final = !sender.segmentation().is_used;
        assert_eq!([sender.take_segmentation_refusal(), sender.take_segmentation_refusal()], [is_final, false]);
        let mut bytes = [0; 128];
        for number in 0..3 {
            assert!(wait_readable(&[receiver.as_fd()], Some(Nanos::from_secs(60))).unwrap());
            assert_eq!(receiver.recv_from(&mut bytes).unwrap(), Some((100, sender.local_addr())));
            assert_eq!(bytes[0], number);
        }
    }

    /// The kernel's cost of a datagram as one server sends them: trains to many receivers, with and without going out
    /// together.
    #[test]
    #[ignore = "prints times: cargo test --release -p throng-platform -- --ignored --nocapture what_a_datagram_costs"]
    fn what_a_datagram_costs() {
        let sender = loopback();
        // Not read: what arrives is counted in and dropped by a small buffer, as most of a server's work is on the way
        // there.
        let options = BindOptions { receive_buffer_bytes: 4 << 10, ..BindOptions::default() };
        let receivers: Vec<UdpSocket> =
            (0..200).map(|_| UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap().0).collect();
        for train in [1, 3, 4, 8] {
            let mut best = [f64::MAX; 2];
            for turn in 0..10 {
                sender.use_segmentation(turn % 2 == 1);
                let mut outgoing = SendBatch::new();
                let mut sent = 0;
                let begin = std::time::Instant::now();
                for round in 0..20_000 {
                    for number in 0..train {
                        let size = if number + 1 == train { 700 } else { 1_200 };
                        outgoing.commit(receivers[round % receivers.len()].local_addr(), size);
                        if outgoing.len() >= 48 && number + 1 == train {
                            sent += sender.send_batch(&mut outgoing).sent;
                        }
                    }
                }
                let us = begin.elapsed().as_secs_f64() * 1e6 / sent as f64;
                best[turn % 2] = best[turn % 2].min(us);
            }
            println!("train of {train}: {:.2} us alone, {:.2} us together", best[0], best[1]);
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
