//! Opening a socket, with errors that an operator can act on.
//!
//! Runs at start, on any thread. What the kernel refuses becomes an error naming the address and the fix;
//! what it grants only in part becomes a warning, because a server with small buffers still serves.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;

use super::UdpSocket;
use super::send::Segmentation;

/// How a socket is opened.
#[derive(Clone, Debug)]
pub struct BindOptions {
    /// Lets several sockets share one port; the kernel spreads clients over them by address. Default:
    /// false, so that a second server on the same port is an error and not half a server.
    pub reuse_port: bool,
    /// Bytes of datagrams the kernel keeps between two frames. Default: 4 MiB, about 50 ms of 40,000
    /// datagrams a second with the kernel's own cost for each. Too low → bursts are lost without a
    /// trace; too high → a server that was stopped for a while works through old datagrams first.
    pub receive_buffer_bytes: usize,
    /// Bytes of datagrams the kernel takes before it has sent them. Default: 4 MiB. Too low → the end of
    /// a frame's sends is dropped (counted in [`super::SendOutcome`]); too high → only memory.
    pub send_buffer_bytes: usize,
}

impl Default for BindOptions {
    fn default() -> BindOptions {
        BindOptions { reuse_port: false, receive_buffer_bytes: 4 << 20, send_buffer_bytes: 4 << 20 }
    }
}

/// Why there is no socket.
#[derive(Debug, Error)]
pub enum BindError {
    #[error(
        "UDP port {} of {} is already in use: choose another port, or stop its owner (`ss -lunp sport = :{}` names it)",
        address.port(), address.ip(), address.port()
    )]
    AddressInUse { address: SocketAddr },
    #[error("no network interface of this host has the address {}: use 0.0.0.0 for all of IPv4, [::] for all of IPv6, or one of `ip -brief address`", address.ip())]
    AddressNotAvailable { address: SocketAddr },
    #[error("this process may not open UDP port {0}: choose one from 1024 up, or run `sysctl -w net.ipv4.ip_unprivileged_port_start={0}`", address.port())]
    NotPermitted { address: SocketAddr },
    #[error("no file descriptor is left for a socket on {address}: raise the limit with `ulimit -n {wanted}`")]
    OpenFiles { address: SocketAddr, wanted: u64 },
    #[error("cannot open a UDP socket on {address}: {source}")]
    Other { address: SocketAddr, source: io::Error },
}

/// What works less well than asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BindWarning {
    #[error(
        "the kernel granted {granted_bytes} of {wanted_bytes} bytes of receive buffer, so bursts may be lost: run `sysctl -w net.core.rmem_max={wanted_bytes}`"
    )]
    SmallReceiveBuffer { wanted_bytes: usize, granted_bytes: usize },
    #[error(
        "the kernel granted {granted_bytes} of {wanted_bytes} bytes of send buffer, so bursts may be dropped: run `sysctl -w net.core.wmem_max={wanted_bytes}`"
    )]
    SmallSendBuffer { wanted_bytes: usize, granted_bytes: usize },
    #[error(
        "the kernel does not know UDP_SEGMENT, so each datagram costs the way to the device alone: Linux 4.18 and later know it"
    )]
    NoSegmentation,
}

pub(super) fn bind(address: SocketAddr, options: &BindOptions) -> Result<(UdpSocket, Vec<BindWarning>), BindError> {
    let name_cause = |source: io::Error| bind_error(address, source);
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP)).map_err(name_cause)?;
    socket.set_nonblocking(true).map_err(name_cause)?;
    if address.is_ipv6() {
        socket.set_only_v6(true).map_err(name_cause)?;
    }
    if options.reuse_port {
        socket.set_reuse_port(true).map_err(name_cause)?;
    }
    let receive = grow(&socket, Buffer::Receive, options.receive_buffer_bytes).map_err(name_cause)?;
    let send = grow(&socket, Buffer::Send, options.send_buffer_bytes).map_err(name_cause)?;
    socket.bind(&address.into()).map_err(name_cause)?;
    let local = socket.local_addr().map_err(name_cause)?.as_socket().unwrap_or(address);
    let segmentation = Segmentation::detect(socket.as_raw_fd());
    let no_segmentation = (!segmentation.is_used()).then_some(BindWarning::NoSegmentation);
    let socket = UdpSocket { fd: socket.into(), local, segmentation };
    Ok((socket, receive.into_iter().chain(send).chain(no_segmentation).collect()))
}

fn bind_error(address: SocketAddr, source: io::Error) -> BindError {
    match source.raw_os_error() {
        Some(libc::EADDRINUSE) => BindError::AddressInUse { address },
        Some(libc::EADDRNOTAVAIL) => BindError::AddressNotAvailable { address },
        Some(libc::EACCES | libc::EPERM) => BindError::NotPermitted { address },
        Some(libc::EMFILE) => {
            let (soft, _) = crate::limits::open_files().unwrap_or((1024, 0));
            BindError::OpenFiles { address, wanted: soft.saturating_mul(2) }
        }
        _ => BindError::Other { address, source },
    }
}

#[derive(Clone, Copy)]
enum Buffer {
    Receive,
    Send,
}

/// Asks for a buffer, as a privileged process first, since that one may pass the host's maximum.
fn grow(socket: &Socket, which: Buffer, wanted_bytes: usize) -> io::Result<Option<BindWarning>> {
    let forced = match which {
        Buffer::Receive => setsockopt(socket, sockopt::RcvBufForce, &wanted_bytes),
        Buffer::Send => setsockopt(socket, sockopt::SndBufForce, &wanted_bytes),
    };
    if forced.is_err() {
        match which {
            Buffer::Receive => socket.set_recv_buffer_size(wanted_bytes)?,
            Buffer::Send => socket.set_send_buffer_size(wanted_bytes)?,
        }
    }
    let reserved_bytes = match which {
        Buffer::Receive => socket.recv_buffer_size()?,
        Buffer::Send => socket.send_buffer_size()?,
    };
    // Linux reserves twice what was asked, half of it for its own bookkeeping (socket(7), SO_RCVBUF).
    let granted_bytes = reserved_bytes / 2;
    if granted_bytes >= wanted_bytes {
        return Ok(None);
    }
    Ok(Some(match which {
        Buffer::Receive => BindWarning::SmallReceiveBuffer { wanted_bytes, granted_bytes },
        Buffer::Send => BindWarning::SmallSendBuffer { wanted_bytes, granted_bytes },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback_with(options: &BindOptions) -> (UdpSocket, Vec<BindWarning>) {
        UdpSocket::bind("127.0.0.1:0".parse().unwrap(), options).unwrap()
    }

    #[test]
    fn a_used_port_is_named() {
        let (first, _) = loopback_with(&BindOptions::default());
        let port = first.local_addr().port();
        let Err(error) = UdpSocket::bind(first.local_addr(), &BindOptions::default()) else {
            panic!("two servers on one port");
        };
        assert!(matches!(error, BindError::AddressInUse { .. }), "{error:?}");
        assert!(error.to_string().contains(&format!("UDP port {port} of 127.0.0.1 is already in use")), "{error}");
        assert!(error.to_string().contains(&format!("sport = :{port}")), "{error}");
    }

    #[test]
    fn several_sockets_share_a_port_when_asked() {
        let options = BindOptions { reuse_port: true, ..BindOptions::default() };
        let (first, _) = loopback_with(&options);
        let (second, _) = UdpSocket::bind(first.local_addr(), &options).unwrap();
        assert_eq!(first.local_addr(), second.local_addr());
    }

    #[test]
    fn an_address_of_another_host_is_named() {
        // TEST-NET-1 belongs to nobody.
        let Err(error) = UdpSocket::bind("192.0.2.1:0".parse().unwrap(), &BindOptions::default()) else {
            panic!("bound to an address of the documentation");
        };
        assert!(error.to_string().contains("192.0.2.1"), "{error}");
    }

    #[test]
    fn a_buffer_that_is_granted_in_full_brings_no_warning() {
        let options =
            BindOptions { receive_buffer_bytes: 64 << 10, send_buffer_bytes: 64 << 10, ..BindOptions::default() };
        assert_eq!(loopback_with(&options).1, []);
    }

    #[test]
    fn warnings_carry_the_command_that_ends_them() {
        let receive = BindWarning::SmallReceiveBuffer { wanted_bytes: 8_388_608, granted_bytes: 212_992 };
        assert!(receive.to_string().contains("`sysctl -w net.core.rmem_max=8388608`"), "{receive}");
        let send = BindWarning::SmallSendBuffer { wanted_bytes: 8_388_608, granted_bytes: 212_992 };
        assert!(send.to_string().contains("`sysctl -w net.core.wmem_max=8388608`"), "{send}");
    }
}
