//! Strangers: one socket that writes under many addresses, and one that writes under anybody's.
//!
//! All of 127.0.0.0/8 is this host's, so [`Sources`] needs no privilege to have 100,000 addresses, and hears every byte
//! that is sent back to any of them. To the server they are as many strangers. Under an address and port that somebody
//! else has, only a raw socket writes: the [`Forger`], which needs root.

use std::{
    io::{IoSlice, IoSliceMut},
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket},
    os::fd::{AsRawFd, OwnedFd},
};

use nix::{
    cmsg_space,
    libc::{self, in_pktinfo},
    sys::socket::{
        AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn,
        recvmsg, sendmsg, sendto, setsockopt, socket, sockopt,
    },
};
use throng_platform::testing::not_permitted;

/// Enough for all that a server answers between two looks.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;

/// A socket of many addresses and one port.
pub struct Sources {
    socket: UdpSocket,
}

impl Sources {
    pub fn open() -> Self {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a free port");
        socket.set_nonblocking(true).expect("a socket of ours");
        setsockopt(&socket, sockopt::Ipv4PacketInfo, &true).expect("the kernel says to whom a datagram came");
        // What is refused without privilege is a smaller buffer.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES));
        Self { socket }
    }

    /// The address of a stranger [0 to 2^23 - 1].
    pub fn address(number: usize) -> Ipv4Addr {
        Ipv4Addr::from(0x7f01_0000 + number as u32)
    }

    /// The number of a stranger.
    fn number(address: Ipv4Addr) -> Option<usize> {
        u32::from(address).checked_sub(0x7f01_0000).map(|number| number as usize)
    }

    /// Sends as stranger `number`; says whether the kernel took it.
    pub fn send(&self, number: usize, to: SocketAddr, datagram: &[u8]) -> bool {
        let from = in_pktinfo {
            ipi_ifindex: 0,
            ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(Self::address(number).octets()) },
            ipi_addr: libc::in_addr { s_addr: 0 },
        };
        let to = SockaddrIn::from(v4(to));
        let parts = [IoSlice::new(datagram)];
        let control = [ControlMessage::Ipv4PacketInfo(&from)];
        sendmsg(self.socket.as_raw_fd(), &parts, &control, MsgFlags::MSG_DONTWAIT, Some(&to)).is_ok()
    }

    /// What was sent to one of them: the stranger's number and the length.
    pub fn receive(&self, datagram: &mut [u8]) -> Option<(usize, usize)> {
        let mut control = cmsg_space!(in_pktinfo);
        let mut parts = [IoSliceMut::new(datagram)];
        let fd = self.socket.as_raw_fd();
        let received = recvmsg::<SockaddrIn>(fd, &mut parts, Some(&mut control), MsgFlags::MSG_DONTWAIT).ok()?;
        let to = received.cmsgs().ok()?.find_map(|message| match message {
            ControlMessageOwned::Ipv4PacketInfo(info) => Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes())),
            _ => None,
        })?;
        Some((Self::number(to)?, received.bytes))
    }
}

/// A socket that writes under any address and port.
pub struct Forger {
    socket: OwnedFd,
    packet: Vec<u8>,
}

const IP_HEADER_BYTES: usize = 20;
const UDP_HEADER_BYTES: usize = 8;

impl Forger {
    /// `None` where this process may not, and the tests are to go without.
    pub fn open() -> Option<Self> {
        let opened = socket(AddressFamily::Inet, SockType::Raw, SockFlag::SOCK_NONBLOCK, SockProtocol::Raw);
        match opened {
            Ok(socket) => Some(Self { socket, packet: Vec::new() }),
            Err(error) => {
                not_permitted(&format!("a raw socket, which takes CAP_NET_RAW: {error}"));
                None
            }
        }
    }

    /// Sends as `from`; says whether the kernel took it.
    pub fn send(&mut self, from: SocketAddr, to: SocketAddr, payload: &[u8]) -> bool {
        let (from, to) = (v4(from), v4(to));
        let udp_bytes = UDP_HEADER_BYTES + payload.len();
        let packet = &mut self.packet;
        packet.clear();
        // Version 4, five words of header; length, identity and sum are the kernel's; 64 hops of UDP.
        packet.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, libc::IPPROTO_UDP as u8, 0, 0]);
        packet.extend(from.ip().octets());
        packet.extend(to.ip().octets());
        assert_eq!(packet.len(), IP_HEADER_BYTES);
        for half in [from.port(), to.port(), udp_bytes as u16, 0] {
            // A sum of 0 says that there is none.
            packet.extend(half.to_be_bytes());
        }
        packet.extend(payload);
        let to = SockaddrIn::from(SocketAddrV4::new(*to.ip(), 0));
        sendto(self.socket.as_raw_fd(), packet, &to, MsgFlags::MSG_DONTWAIT).is_ok()
    }
}

fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => panic!("{address}: these tests run on IPv4"),
    }
}

#[test]
fn what_is_sent_as_a_stranger_is_answered_to_that_stranger() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let sources = Sources::open();
    let to = server.local_addr().expect("it has one");
    let mut bytes = [0; 16];
    for number in [0, 255, 65_536, 99_999] {
        assert!(sources.send(number, to, b"hello"));
        let (len, from) = server.recv_from(&mut bytes).expect("loopback loses nothing");
        assert_eq!((&bytes[..len], from.ip()), (&b"hello"[..], Sources::address(number).into()));
        server.send_to(b"answer", from).expect("loopback takes it");
        assert_eq!(sources.receive(&mut bytes), Some((number, 6)));
    }
    assert_eq!(sources.receive(&mut bytes), None);
}

#[test]
fn what_is_forged_comes_from_whoever_it_names() {
    let Some(mut forger) = Forger::open() else { return };
    let server = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    server.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("a socket of ours");
    for from in ["127.9.8.7:5", "127.0.0.1:40000"] {
        let from = from.parse().expect("an address");
        assert!(forger.send(from, server.local_addr().expect("it has one"), b"forged"));
        let mut bytes = [0; 16];
        let (len, heard_from) = server.recv_from(&mut bytes).expect("loopback loses nothing");
        assert_eq!((&bytes[..len], heard_from), (&b"forged"[..], from));
    }
}
