//! Nowhere: a network on which nobody is, for a world that ticks by itself.

use std::net::SocketAddr;

use throng_net::{
    protocol::PACKET_BYTES_MAX,
    transport::{DatagramSender, PacketSink, SendOutcome},
};

/// A network on which nobody is.
pub(crate) struct Nowhere([u8; PACKET_BYTES_MAX]);

impl Default for Nowhere {
    fn default() -> Self {
        Self([0; PACKET_BYTES_MAX])
    }
}

impl PacketSink for Nowhere {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn commit(&mut self, _to: SocketAddr, _len: usize) {}
}

impl DatagramSender for Nowhere {
    fn flush(&mut self) -> SendOutcome {
        SendOutcome::default()
    }
}
