//! Datagrams given to a socket by one `sendmmsg`.

use std::io;
use std::net::SocketAddr;
use std::ops::AddAssign;
use std::os::fd::RawFd;

use super::BATCH_DATAGRAMS_MAX;
use crate::raw_address::RawAddress;

/// The longest datagram that is sent: fits an Ethernet frame with room for tunnels on the way.
pub const SEND_BYTES_MAX: usize = 1_400;

/// Datagrams on their way out, written in place.
///
/// ```
/// use throng_platform::udp::{BindOptions, SendBatch, UdpSocket};
/// let (socket, _warnings) = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &BindOptions::default())?;
/// let mut batch = SendBatch::new();
/// batch.buffer()[..5].copy_from_slice(b"hello");
/// batch.commit(socket.local_addr(), 5);
/// assert_eq!(socket.send_batch(&mut batch).sent, 1);
/// # Ok::<(), throng_platform::udp::BindError>(())
/// ```
pub struct SendBatch {
    buffers: Box<[[u8; SEND_BYTES_MAX]]>,
    receivers: Box<[(RawAddress, u32)]>,
    lengths: Box<[u16]>,
    count: usize,
}

/// What became of a batch.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "dropped datagrams are to be counted"]
pub struct SendOutcome {
    pub sent: usize,
    pub dropped: usize,
}

impl AddAssign for SendOutcome {
    fn add_assign(&mut self, other: SendOutcome) {
        self.sent += other.sent;
        self.dropped += other.dropped;
    }
}

impl SendBatch {
    #[allow(clippy::new_without_default, reason = "88 KiB should not appear by default")]
    pub fn new() -> SendBatch {
        SendBatch {
            buffers: vec![[0; SEND_BYTES_MAX]; BATCH_DATAGRAMS_MAX].into(),
            receivers: [(RawAddress::EMPTY, 0); BATCH_DATAGRAMS_MAX].into(),
            lengths: [0; BATCH_DATAGRAMS_MAX].into(),
            count: 0,
        }
    }

    /// The next free slot's bytes; they hold whatever was there before.
    ///
    /// # Panics
    /// When the batch is full.
    pub fn buffer(&mut self) -> &mut [u8; SEND_BYTES_MAX] {
        assert!(!self.is_full(), "send the batch before filling it further");
        &mut self.buffers[self.count]
    }

    /// Makes the first `len` bytes of [`SendBatch::buffer`] a datagram for `to`.
    ///
    /// # Panics
    /// When the batch is full, or `len` exceeds [`SEND_BYTES_MAX`].
    pub fn commit(&mut self, to: SocketAddr, len: usize) {
        assert!(!self.is_full(), "send the batch before filling it further");
        assert!(len <= SEND_BYTES_MAX);
        self.receivers[self.count] = RawAddress::new(to);
        self.lengths[self.count] = len as u16;
        self.count += 1;
    }

    pub fn is_full(&self) -> bool {
        self.count == BATCH_DATAGRAMS_MAX
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub(super) fn send(&mut self, fd: RawFd) -> SendOutcome {
        let count = std::mem::take(&mut self.count);
        let mut outcome = SendOutcome::default();
        if count == 0 {
            return outcome;
        }
        let mut parts: [libc::iovec; BATCH_DATAGRAMS_MAX] = std::array::from_fn(|slot| libc::iovec {
            iov_base: self.buffers[slot].as_mut_ptr().cast(),
            iov_len: usize::from(self.lengths[slot]),
        });
        let mut headers: [libc::mmsghdr; BATCH_DATAGRAMS_MAX] = std::array::from_fn(|slot| {
            let (receiver, len) = &mut self.receivers[slot];
            // SAFETY: a header is plain data for which zero means "none".
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_name = receiver.as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = *len;
            header.msg_hdr.msg_iov = &raw mut parts[slot];
            header.msg_hdr.msg_iovlen = 1;
            header
        });
        let mut rest = &mut headers[..count];
        while !rest.is_empty() {
            // SAFETY: every header points to a buffer, an address and one part that live until after the call,
            // and says how long they are.
            let sent = unsafe {
                let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
                libc::sendmmsg(fd, rest.as_mut_ptr(), rest.len() as u32, flags)
            };
            // A failure is about the first datagram of the rest: those before it were reported as sent.
            let done = match sent {
                1.. => {
                    outcome.sent += sent as usize;
                    sent as usize
                }
                _ => match after_failure(&io::Error::last_os_error()) {
                    After::Retry => 0,
                    After::DropOne => {
                        outcome.dropped += 1;
                        1
                    }
                    After::DropRest => {
                        outcome.dropped += rest.len();
                        rest.len()
                    }
                },
            };
            rest = &mut rest[done..];
        }
        outcome
    }
}

enum After {
    Retry,
    DropOne,
    DropRest,
}

fn after_failure(error: &io::Error) -> After {
    match error.raw_os_error() {
        Some(libc::EINTR) => After::Retry,
        // The socket's or the device's buffer is full; so it is for the others.
        Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => After::DropRest,
        _ => After::DropOne,
    }
}
