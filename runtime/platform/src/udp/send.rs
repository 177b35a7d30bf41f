//! Datagrams given to a socket by one `sendmmsg`, those of one receiver as one message.
//!
//! Most of what a datagram costs is the kernel's way from the socket to the device: routing, filters, the device's
//! queue. With generic segmentation offload (`UDP_SEGMENT`) consecutive datagrams of one size to one receiver go that
//! way once, and are cut apart at its end, by the device if it can. Who receives them cannot tell. The last of such a
//! run may be shorter, as a train's last packet is.
//!
//! ```text
//! batch:     a 1,200 | a 1,200 | a 310 | b 1,200 | b 1,200 | a 90 | c 90
//! messages: [a 1,200   a 1,200   a 310][b 1,200   b 1,200][a 90][c 90]
//! ```
//!
//! A message that the kernel or the device will not cut (a path with a smaller MTU, a device without checksums) is sent
//! again in single datagrams, in its place.

use std::io;
use std::net::SocketAddr;
use std::ops::AddAssign;
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

    pub(super) fn send(&mut self, fd: RawFd, segmentation: &Segmentation) -> SendOutcome {
        let count = std::mem::take(&mut self.count);
        self.send_slots(fd, 0..count, segmentation, segmentation.is_used())
    }

    fn send_slots(
        &mut self,
        fd: RawFd,
        slots: Range<usize>,
        segmentation: &Segmentation,
        may_merge: bool,
    ) -> SendOutcome {
        let mut outcome = SendOutcome::default();
        if slots.is_empty() {
            return outcome;
        }
        let mut parts: [libc::iovec; BATCH_DATAGRAMS_MAX] = std::array::from_fn(|slot| libc::iovec {
            iov_base: self.buffers[slot].as_mut_ptr().cast(),
            iov_len: usize::from(self.lengths[slot]),
        });
        // SAFETY: a header is plain data for which zero means "none".
        let mut headers: [libc::mmsghdr; BATCH_DATAGRAMS_MAX] = unsafe { std::mem::zeroed() };
        let mut controls = [SegmentControl::ZERO; BATCH_DATAGRAMS_MAX];
        // The slots of each message.
        let mut runs: [Range<usize>; BATCH_DATAGRAMS_MAX] = [const { 0..0 }; BATCH_DATAGRAMS_MAX];
        let mut messages = 0;
        let mut next = slots.start;
        while next < slots.end {
            let run = if may_merge { next..self.run_end(next, slots.end) } else { next..next + 1 };
            next = run.end;
            let (receiver, len) = &mut self.receivers[run.start];
            let header = &mut headers[messages].msg_hdr;
            header.msg_name = receiver.as_mut_ptr().cast();
            header.msg_namelen = *len;
            header.msg_iov = &raw mut parts[run.start];
            header.msg_iovlen = run.len() as _;
            if run.len() > 1 {
                controls[messages] = SegmentControl::new(self.lengths[run.start]);
                header.msg_control = (&raw mut controls[messages]).cast();
                header.msg_controllen = size_of::<SegmentControl>() as _;
            }
            runs[messages] = run;
            messages += 1;
        }

        let mut at = 0;
        while at < messages {
            let rest = &mut headers[at..messages];
            // SAFETY: every header points to an address, a run of parts with their buffers, and a control message if it
            // has one, that all live until after the call, and says how long they are.
            let sent = unsafe {
                let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
                libc::sendmmsg(fd, rest.as_mut_ptr(), rest.len() as u32, flags)
            };
            if sent > 0 {
                let done = &runs[at..at + sent as usize];
                outcome.sent += done.iter().map(Range::len).sum::<usize>();
                segmentation.merged.fetch_add(done.iter().map(|run| run.len() as u64 - 1).sum(), Ordering::Relaxed);
                at += sent as usize;
                continue;
            }
            // A failure is about the first message of the rest: those before it were reported as sent.
            let error = io::Error::last_os_error();
            match after_failure(&error) {
                After::Retry => {}
                After::DropRest => {
                    outcome.dropped += slots.end - runs[at].start;
                    return outcome;
                }
                After::DropOne if runs[at].len() == 1 => {
                    outcome.dropped += 1;
                    at += 1;
                }
                After::DropOne => {
                    segmentation.refuse(&error);
                    outcome += self.send_slots(fd, runs[at].clone(), segmentation, false);
                    at += 1;
                }
            }
        }
        outcome
    }

    /// Where the run of datagrams ends that may go out as one message with the one in `first`.
    fn run_end(&self, first: usize, end: usize) -> usize {
        let size = self.lengths[first];
        let mut bytes = usize::from(size);
        let mut slot = first + 1;
        while slot < end && slot - first < SEGMENTS_MAX {
            let len = self.lengths[slot];
            bytes += usize::from(len);
            // An empty datagram would be no segment at all.
            if len == 0 || len > size || bytes > MESSAGE_BYTES_MAX || self.receivers[slot] != self.receivers[first] {
                break;
            }
            slot += 1;
            if len < size {
                break;
            }
        }
        slot
    }
}

/// Datagrams that one message is cut into at most; the kernel's own maximum (`UDP_MAX_SEGMENTS`).
const SEGMENTS_MAX: usize = 64;

/// Bytes of one message at most: 65,535 less the headers of IPv6 with extensions.
const MESSAGE_BYTES_MAX: usize = 65_000;

/// Whether a socket's kernel and device cut messages into datagrams.
pub(super) struct Segmentation {
    /// Written at bind, and by the sender that finds that the device does not; read by each send. Nothing else depends
    /// on it.
    is_used: AtomicBool,
    /// Datagrams that went along with another. For statistics, as the next.
    pub merged: AtomicU64,
    /// Messages that were sent again in single datagrams.
    pub refused: AtomicU64,
    /// The device has refused, and nobody has been told yet.
    untold: AtomicBool,
}

impl Segmentation {
    /// Asks the kernel; since Linux 4.18 it knows.
    pub fn detect(fd: RawFd) -> Segmentation {
        let mut size: libc::c_int = 0;
        let mut len = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: both pointers are to values of the sizes that are said.
        let answer =
            unsafe { libc::getsockopt(fd, libc::SOL_UDP, libc::UDP_SEGMENT, (&raw mut size).cast(), &raw mut len) };
        Segmentation {
            is_used: AtomicBool::new(answer == 0),
            merged: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            untold: AtomicBool::new(false),
        }
    }

    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub fn set_used(&self, is_used: bool) {
        self.is_used.store(is_used, Ordering::Relaxed);
    }

    fn refuse(&self, error: &io::Error) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        // The device, and it will not change its mind; other errors are about one message or one path.
        if error.raw_os_error() == Some(libc::EIO) && self.is_used.swap(false, Ordering::Relaxed) {
            self.untold.store(true, Ordering::Relaxed);
        }
    }

    /// True once, after the device has refused.
    pub fn take_refusal(&self) -> bool {
        self.untold.load(Ordering::Relaxed) && self.untold.swap(false, Ordering::Relaxed)
    }
}

/// What a message says of its datagrams' size: a control message, as `cmsg(3)` wants it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct SegmentControl {
    len: usize,
    level: libc::c_int,
    kind: libc::c_int,
    size_bytes: u16,
    padding: [u8; 6],
}

const _: () = {
    assert!(std::mem::offset_of!(SegmentControl, size_bytes) == size_of::<libc::cmsghdr>());
    assert!(std::mem::offset_of!(SegmentControl, level) == std::mem::offset_of!(libc::cmsghdr, cmsg_level));
    assert!(std::mem::offset_of!(SegmentControl, kind) == std::mem::offset_of!(libc::cmsghdr, cmsg_type));
    // SAFETY: plain arithmetic.
    assert!(size_of::<SegmentControl>() == unsafe { libc::CMSG_SPACE(2) } as usize);
};

impl SegmentControl {
    const ZERO: SegmentControl = SegmentControl { len: 0, level: 0, kind: 0, size_bytes: 0, padding: [0; 6] };

    fn new(size_bytes: u16) -> SegmentControl {
        let len = size_of::<libc::cmsghdr>() + size_of::<u16>();
        SegmentControl { len, level: libc::SOL_UDP, kind: libc::UDP_SEGMENT, size_bytes, padding: [0; 6] }
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
