//! Datagrams taken from a socket by one `recvmmsg`.

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use super::{BATCH_DATAGRAMS_MAX, nothing_or_error};
use crate::raw_address::{RAW_ADDRESS_BYTES, RawAddress};

/// The longest datagram that is taken. A valid one has at most 1,300 bytes; the rest of the slot lets a
/// longer one be told from a valid one without a second look.
pub const RECEIVE_BYTES_MAX: usize = 2_048;

/// Room for one batch, used again and again.
pub struct ReceiveBatch {
    buffers: Box<[[u8; RECEIVE_BYTES_MAX]]>,
    senders: Box<[RawAddress]>,
    lengths: Box<[u16]>,
    count: usize,
    truncated: u64,
}

/// Stands in `lengths` for a datagram that was cut off and must not be looked at.
const CUT_OFF: u16 = u16::MAX;
const _: () = assert!(RECEIVE_BYTES_MAX < CUT_OFF as usize);

impl ReceiveBatch {
    #[allow(clippy::new_without_default, reason = "128 KiB should not appear by default")]
    pub fn new() -> ReceiveBatch {
        ReceiveBatch {
            buffers: vec![[0; RECEIVE_BYTES_MAX]; BATCH_DATAGRAMS_MAX].into(),
            senders: [RawAddress::EMPTY; BATCH_DATAGRAMS_MAX].into(),
            lengths: [0; BATCH_DATAGRAMS_MAX].into(),
            count: 0,
            truncated: 0,
        }
    }

    /// The datagrams of the last receive, oldest first, writable so that they can be opened in place.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (SocketAddr, &mut [u8])> {
        let slots = self.buffers.iter_mut().zip(&self.senders).zip(&self.lengths).take(self.count);
        slots.filter(|(_, len)| **len != CUT_OFF).filter_map(|((buffer, sender), len)| {
            let from = sender.get()?;
            Some((from, &mut buffer[..usize::from(*len)]))
        })
    }

    /// Datagrams dropped since creation because they were longer than [`RECEIVE_BYTES_MAX`].
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    pub(super) fn receive(&mut self, fd: RawFd) -> io::Result<usize> {
        self.count = 0;
        // The kernel's view of the slots is built anew each time: 5 KiB on the stack, next to nothing beside
        // the call, and no pointer outlives it.
        let mut parts: [libc::iovec; BATCH_DATAGRAMS_MAX] = std::array::from_fn(|slot| libc::iovec {
            iov_base: self.buffers[slot].as_mut_ptr().cast(),
            iov_len: RECEIVE_BYTES_MAX,
        });
        let mut headers: [libc::mmsghdr; BATCH_DATAGRAMS_MAX] = std::array::from_fn(|slot| {
            // SAFETY: a header is plain data for which zero means "none".
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_name = self.senders[slot].as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = RAW_ADDRESS_BYTES;
            header.msg_hdr.msg_iov = &raw mut parts[slot];
            header.msg_hdr.msg_iovlen = 1;
            header
        });
        // SAFETY: every header points to a buffer, an address and one part that live until after the call,
        // and says how long they are.
        let received = unsafe {
            libc::recvmmsg(
                fd,
                headers.as_mut_ptr(),
                BATCH_DATAGRAMS_MAX as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if received < 0 {
            return nothing_or_error();
        }
        self.count = received as usize;
        for (slot, header) in headers[..self.count].iter().enumerate() {
            let cut_off = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            self.truncated += u64::from(cut_off);
            self.lengths[slot] = if cut_off { CUT_OFF } else { header.msg_len as u16 };
        }
        Ok(self.count)
    }
}
