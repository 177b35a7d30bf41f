//! A pair of sockets that keep messages apart, for two processes of one program; a message may bring a descriptor
//! along.
//!
//! One end is given to a process that is started, and tells each side when the other is gone: it reads an empty
//! message. For lines that carry a few messages in a process's life; receiving allocates.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg, socketpair,
};

/// The largest message; what is longer is cut off by the kernel.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Both ends. They close by themselves in every process that is started from this one and not given one.
pub fn new() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

/// Sends a message, with a descriptor beside it if there is one: the other side gets a descriptor of its own.
pub fn send(end: BorrowedFd, message: &[u8], descriptor: Option<BorrowedFd>) -> io::Result<()> {
    let descriptor = descriptor.map(|descriptor| [descriptor.as_raw_fd()]);
    let beside = descriptor.as_ref().map(|descriptors| ControlMessage::ScmRights(descriptors));
    sendmsg::<()>(end.as_raw_fd(), &[IoSlice::new(message)], beside.as_slice(), MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

/// Waits for the next message, and the descriptor that came with it. The message is empty when the other side is gone.
pub fn receive(end: BorrowedFd) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut message = vec![0; MESSAGE_BYTES_MAX];
    let mut beside = nix::cmsg_space!([RawFd; 1]);
    loop {
        let mut into = [IoSliceMut::new(&mut message)];
        let received = recvmsg::<()>(end.as_raw_fd(), &mut into, Some(&mut beside), MsgFlags::MSG_CMSG_CLOEXEC);
        let (len, descriptor) = match received {
            Ok(received) => (received.bytes, descriptor_in(received.cmsgs()?)),
            Err(Errno::EINTR) => continue,
            Err(Errno::ECONNRESET) => (0, None),
            Err(error) => return Err(error.into()),
        };
        message.truncate(len);
        return Ok((message, descriptor));
    }
}

fn descriptor_in(beside: impl Iterator<Item = ControlMessageOwned>) -> Option<OwnedFd> {
    let mut found = None;
    for message in beside {
        let ControlMessageOwned::ScmRights(descriptors) = message else { continue };
        for descriptor in descriptors {
            // SAFETY: the kernel made this descriptor for us with this message, and nobody else knows of it.
            found = Some(unsafe { OwnedFd::from_raw_fd(descriptor) });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    use nix::sys::memfd::{MFdFlags, memfd_create};

    use super::*;

    #[test]
    fn messages_stay_apart_and_a_descriptor_leads_to_the_same_file() {
        let (one, other) = new().unwrap();
        let mut file = File::from(memfd_create(c"throng-test", MFdFlags::MFD_CLOEXEC).unwrap());
        file.write_all(b"shared").unwrap();
        file.rewind().unwrap();
        send(one.as_fd(), b"first", Some(file.as_fd())).unwrap();
        send(one.as_fd(), b"second", None).unwrap();
        let (message, descriptor) = receive(other.as_fd()).unwrap();
        assert_eq!(message, b"first");
        let mut text = String::new();
        File::from(descriptor.unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "shared");
        let (message, descriptor) = receive(other.as_fd()).unwrap();
        assert!(message == b"second" && descriptor.is_none());
    }

    #[test]
    fn an_end_that_is_gone_reads_as_an_empty_message_and_cannot_be_sent_to() {
        let (one, other) = new().unwrap();
        drop(one);
        assert!(receive(other.as_fd()).unwrap().0.is_empty());
        assert!(send(other.as_fd(), b"lost", None).is_err());
    }
}
