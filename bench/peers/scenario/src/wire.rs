//! Wire: how packets get from one process to the other: frames in a pipe.
//!
//! ```text
//! | client (u32 LE) | length (u32 LE) | packet .. |      client at or above END: a mark of the driver, with its text
//! ```
//!
//! A side writes all frames of a turn, then END; it reads until END before it writes, and reads while the other
//! writes. So neither waits for ever, and neither keeps what it sends.

use std::io::{self, BufWriter, Read, Write};

/// The turn is over.
pub(crate) const END: u32 = u32::MAX - 8;
/// Everybody is connected: ticks begin.
pub(crate) const CONNECTED: u32 = END + 1;
/// The run is over: the clients' report is asked for, and follows.
pub(crate) const REPORT: u32 = END + 2;
/// Addresses of the clients' sockets.
pub(crate) const ADDRESSES: u32 = END + 3;

/// Where packets go to the other process. They are not kept: memory is the peer's to use.
pub struct Outbox {
    to: BufWriter<Box<dyn Write>>,
    pub(crate) packets: u64,
    pub(crate) packet_bytes: u64,
    pub(crate) hash: u64,
}

impl Outbox {
    pub(crate) fn new(to: impl Write + 'static) -> Self {
        let to = BufWriter::with_capacity(1 << 16, Box::new(to) as Box<dyn Write>);
        Self { to, packets: 0, packet_bytes: 0, hash: 0 }
    }

    /// Adds a packet from or to `client`.
    pub fn push(&mut self, client: u32, packet: &[u8]) {
        debug_assert!(client < END);
        self.packets += 1;
        self.packet_bytes += packet.len() as u64;
        let (words, rest) = packet.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word)).chain(rest.iter().map(|&byte| byte.into()));
        self.hash =
            words.fold(self.hash, |hash, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        self.frame(client, packet);
    }

    /// Counts packets that went through sockets; their bytes are in no hash.
    pub fn count_many(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.packet_bytes += bytes;
    }

    /// Ends the turn.
    pub(crate) fn end(&mut self, mark: u32, text: &[u8]) {
        self.frame(mark, text);
        self.to.flush().expect("the other process listens");
    }

    fn frame(&mut self, mark: u32, text: &[u8]) {
        let parts = [&mark.to_le_bytes()[..], &(text.len() as u32).to_le_bytes(), text];
        for part in parts {
            self.to.write_all(part).expect("the other process listens");
        }
    }
}

/// Reads frames until a mark of the driver, which is returned with its text in `text`.
pub(crate) fn read_turn(
    from: &mut impl Read,
    text: &mut Vec<u8>,
    mut each: impl FnMut(u32, &mut [u8]),
) -> io::Result<u32> {
    loop {
        let mut header = [0; 8];
        from.read_exact(&mut header)?;
        let [client, len] = [0, 4].map(|at| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes")));
        text.resize(len as usize, 0);
        from.read_exact(text)?;
        if client >= END {
            return Ok(client);
        }
        each(client, text);
    }
}
