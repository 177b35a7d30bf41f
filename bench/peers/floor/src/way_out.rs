//! Way out: datagrams by `sendmmsg`, 64 to a call; several to one client as segments of one (UDP GSO).

use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg, sendmsg};

const BATCH: usize = 64;
/// So many packets to one client go as segments.
const SEGMENTS_MIN: usize = 3;

pub struct WayOut {
    socket: UdpSocket,
    headers: MultiHeaders<SockaddrStorage>,
}

impl WayOut {
    pub fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        Self { socket, headers: MultiHeaders::preallocate(BATCH, None) }
    }

    /// Sends packets of client after client; `packet_bytes` is the length of all but a client's last.
    pub fn send(&mut self, clients: &[(SockaddrStorage, &[u8])], packet_bytes: usize) {
        let fd = self.socket.as_raw_fd();
        if clients.iter().any(|(_, bytes)| bytes.len() > packet_bytes * (SEGMENTS_MIN - 1)) {
            for (address, bytes) in clients.iter().filter(|(_, bytes)| !bytes.is_empty()) {
                // The kernel takes 64 kB of segments at once.
                for part in bytes.chunks(packet_bytes * 48) {
                    let segments = [ControlMessage::UdpGsoSegments(&(packet_bytes as u16))];
                    let control = if part.len() > packet_bytes { &segments[..] } else { &[] };
                    let sent = sendmsg(fd, &[IoSlice::new(part)], control, MsgFlags::empty(), Some(address));
                    assert_eq!(sent, Ok(part.len()), "the kernel takes all segments");
                }
            }
            return;
        }
        let packets: Vec<(SockaddrStorage, [IoSlice<'_>; 1])> = clients
            .iter()
            .flat_map(|(address, bytes)| bytes.chunks(packet_bytes).map(|packet| (*address, [IoSlice::new(packet)])))
            .collect();
        for batch in packets.chunks(BATCH) {
            let addresses: Vec<Option<SockaddrStorage>> = batch.iter().map(|(address, _)| Some(*address)).collect();
            let slices = batch.iter().map(|(_, slices)| slices);
            let sent = sendmmsg(fd, &mut self.headers, slices, &addresses, [], MsgFlags::empty());
            assert_eq!(sent.expect("the kernel takes them").count(), batch.len());
        }
    }
}

pub fn storage(address: SocketAddr) -> SockaddrStorage {
    address.into()
}
