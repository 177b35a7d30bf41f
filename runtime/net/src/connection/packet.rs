//! The packet: what one sealed payload says, byte by byte. Drawn again, with golden bytes, in
//! `docs/spec/channels.md`.
//!
//! ```text
//!  0          2          4                     8
//!  | sequence |   ack    |      ack bits       | chunk | chunk | ...
//!
//!  chunk:    15 14 13            0
//!           | kind |   length     | unreliable (0):                  length bytes
//!           | kind |   length     | fragment (1), last fragment (2): | fragment id u16 | length bytes |
//! ```
//!
//! All numbers are little-endian. Bit `i` of the ack bits says that packet `ack - i` has arrived, so bit 0
//! is set as soon as anything has; a packet without acks has `ack` and `ack bits` zero.
//!
//! No length is ever declared beyond the bytes that follow it: a message of many fragments ends with its last
//! fragment, and says no size before. So there is nothing to allocate on a stranger's word.
//!
//! Pure functions over slices; nothing here allocates.

use super::blocks::BLOCK_BYTES;
use super::sequence::{FragmentId, PacketSequence};
use crate::protocol::PAYLOAD_BYTES_MAX;

pub const HEADER_BYTES: usize = 8;
/// What an unreliable message costs beside its own bytes.
pub const UNRELIABLE_OVERHEAD_BYTES: usize = 2;
/// What a fragment of a reliable message costs beside its own bytes.
pub const FRAGMENT_OVERHEAD_BYTES: usize = 4;
/// A reliable message is cut into fragments of this size; only its last fragment may be shorter. Three whole
/// blocks of the pool, and three of them fill a packet: 8 + 3 x (4 + 378) = 1,154 of 1,200 bytes.
pub const FRAGMENT_BYTES_MAX: usize = 3 * BLOCK_BYTES;

const _: () = assert!(HEADER_BYTES + 3 * (FRAGMENT_OVERHEAD_BYTES + FRAGMENT_BYTES_MAX) <= PAYLOAD_BYTES_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX <= LENGTH_MASK as usize);

const KIND_SHIFT: u32 = 14;
const LENGTH_MASK: u16 = (1 << KIND_SHIFT) - 1;
const KIND_UNRELIABLE: u16 = 0;
const KIND_FRAGMENT: u16 = 1;
const KIND_LAST_FRAGMENT: u16 = 2;

/// Which packets of the other side have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acks {
    pub newest: PacketSequence,
    /// Bit `i`: packet `newest - i` has arrived. Zero: nothing has.
    pub bits: u32,
}

impl Acks {
    /// What of it is about the newest `count` packets.
    pub fn newest_of(self, count: usize) -> Self {
        let kept = 1_u32.checked_shl(count as u32).map_or(u32::MAX, |after| after - 1);
        Self { bits: self.bits & kept, ..self }
    }

    /// The packets named, newest first.
    pub fn sequences(self) -> impl Iterator<Item = PacketSequence> {
        let mut bits = self.bits;
        std::iter::from_fn(move || {
            if bits == 0 {
                return None;
            }
            let back = bits.trailing_zeros();
            bits &= bits - 1;
            Some(self.newest.back(back as u16))
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketHeader {
    pub sequence: PacketSequence,
    pub acks: Acks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk<'a> {
    /// A whole message.
    Unreliable(&'a [u8]),
    /// One part of a reliable message; `last` ends the message.
    Fragment { id: FragmentId, last: bool, bytes: &'a [u8] },
}

/// Why a payload is not a packet. The peer holds the key, so it is broken or hostile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedPacket {
    #[error("shorter than its header or a chunk")]
    Truncated,
    #[error("ack bits do not include the acked packet")]
    AckBits,
    #[error("a chunk of a kind that does not exist")]
    UnknownChunk,
    #[error("a chunk without bytes")]
    EmptyChunk,
    #[error("a fragment longer than {FRAGMENT_BYTES_MAX} bytes, or a shorter one that is not the last")]
    FragmentLength,
}

/// Reads a packet. The whole of it is checked before anything is returned, so a packet takes effect
/// completely or not at all.
pub fn parse(payload: &[u8]) -> Result<(PacketHeader, Chunks<'_>), MalformedPacket> {
    let (header, chunks) = payload.split_at_checked(HEADER_BYTES).ok_or(MalformedPacket::Truncated)?;
    let header = PacketHeader {
        sequence: PacketSequence(u16::from_le_bytes([header[0], header[1]])),
        acks: Acks {
            newest: PacketSequence(u16::from_le_bytes([header[2], header[3]])),
            bits: u32::from_le_bytes([header[4], header[5], header[6], header[7]]),
        },
    };
    let no_acks = header.acks == Acks::default();
    if !no_acks && header.acks.bits & 1 == 0 {
        return Err(MalformedPacket::AckBits);
    }
    let mut rest = chunks;
    while !rest.is_empty() {
        (_, rest) = split_chunk(rest)?;
    }
    Ok((header, Chunks { rest: chunks }))
}

/// The chunks of a packet that [`parse`] has checked.
#[derive(Debug, Clone)]
pub struct Chunks<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        let (chunk, rest) = split_chunk(self.rest).ok()?;
        self.rest = rest;
        Some(chunk)
    }
}

fn split_chunk(bytes: &[u8]) -> Result<(Chunk<'_>, &[u8]), MalformedPacket> {
    let (tag, rest) = split_u16(bytes)?;
    let len = (tag & LENGTH_MASK) as usize;
    if len == 0 {
        return Err(MalformedPacket::EmptyChunk);
    }
    let last = match tag >> KIND_SHIFT {
        KIND_UNRELIABLE => {
            let (bytes, rest) = rest.split_at_checked(len).ok_or(MalformedPacket::Truncated)?;
            return Ok((Chunk::Unreliable(bytes), rest));
        }
        KIND_FRAGMENT => false,
        KIND_LAST_FRAGMENT => true,
        _ => return Err(MalformedPacket::UnknownChunk),
    };
    if len > FRAGMENT_BYTES_MAX || (!last && len < FRAGMENT_BYTES_MAX) {
        return Err(MalformedPacket::FragmentLength);
    }
    let (id, rest) = split_u16(rest)?;
    let (bytes, rest) = rest.split_at_checked(len).ok_or(MalformedPacket::Truncated)?;
    Ok((Chunk::Fragment { id: FragmentId(id), last, bytes }, rest))
}

fn split_u16(bytes: &[u8]) -> Result<(u16, &[u8]), MalformedPacket> {
    let (number, rest) = bytes.split_first_chunk::<2>().ok_or(MalformedPacket::Truncated)?;
    Ok((u16::from_le_bytes(*number), rest))
}

/// Writes a packet into a buffer of the largest payload.
pub struct PacketWriter<'a> {
    out: &'a mut [u8; PAYLOAD_BYTES_MAX],
    len: usize,
}

impl<'a> PacketWriter<'a> {
    pub fn begin(out: &'a mut [u8; PAYLOAD_BYTES_MAX], header: PacketHeader) -> Self {
        out[0..2].copy_from_slice(&header.sequence.0.to_le_bytes());
        out[2..4].copy_from_slice(&header.acks.newest.0.to_le_bytes());
        out[4..8].copy_from_slice(&header.acks.bits.to_le_bytes());
        PacketWriter { out, len: HEADER_BYTES }
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing but the header.
    pub fn is_empty(&self) -> bool {
        self.len == HEADER_BYTES
    }

    /// Bytes left, the overhead of a further chunk included.
    pub fn space(&self) -> usize {
        PAYLOAD_BYTES_MAX - self.len
    }

    /// Opens an unreliable message of `len` bytes, which the caller fills. It must fit.
    pub fn unreliable(&mut self, len: usize) -> &mut [u8] {
        self.put_u16(tag(KIND_UNRELIABLE, len));
        self.reserve(len)
    }

    /// Opens a fragment of `len` bytes, which the caller fills. It must fit.
    pub fn fragment(&mut self, id: FragmentId, last: bool, len: usize) -> &mut [u8] {
        debug_assert!(len <= FRAGMENT_BYTES_MAX);
        debug_assert!(last || len == FRAGMENT_BYTES_MAX);
        self.put_u16(tag(if last { KIND_LAST_FRAGMENT } else { KIND_FRAGMENT }, len));
        self.put_u16(id.0);
        self.reserve(len)
    }

    fn put_u16(&mut self, number: u16) {
        self.reserve(2).copy_from_slice(&number.to_le_bytes());
    }

    fn reserve(&mut self, len: usize) -> &mut [u8] {
        let at = self.len;
        self.len += len;
        &mut self.out[at..at + len]
    }
}

fn tag(kind: u16, len: usize) -> u16 {
    debug_assert!(len > 0, "a chunk without bytes is malformed");
    kind << KIND_SHIFT | len as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(payload: &[u8], expect: Result<Vec<Chunk<'_>>, MalformedPacket>) {
        assert_eq!(parse(payload).map(|(_, chunks)| chunks.collect()), expect, "{payload:02x?}");
    }

    /// A header that acks nothing, and then `chunks`.
    fn packet(chunks: &[u8]) -> Vec<u8> {
        [&[0; HEADER_BYTES], chunks].concat()
    }

    #[test]
    fn what_is_written_is_read() {
        let header =
            PacketHeader { sequence: PacketSequence(0xfffe), acks: Acks { newest: PacketSequence(3), bits: 0b1011 } };
        let mut out = [0; PAYLOAD_BYTES_MAX];
        let mut writer = PacketWriter::begin(&mut out, header);
        writer.unreliable(3).copy_from_slice(b"abc");
        writer.fragment(FragmentId(9), false, FRAGMENT_BYTES_MAX).fill(7);
        writer.fragment(FragmentId(10), true, 1).fill(8);
        let len = writer.len();
        let (read, chunks) = parse(&out[..len]).unwrap();
        assert_eq!(read, header);
        assert_eq!(
            chunks.collect::<Vec<_>>(),
            [
                Chunk::Unreliable(b"abc"),
                Chunk::Fragment { id: FragmentId(9), last: false, bytes: &[7; FRAGMENT_BYTES_MAX] },
                Chunk::Fragment { id: FragmentId(10), last: true, bytes: &[8] },
            ]
        );
        let acked: Vec<u16> = read.acks.sequences().map(|sequence| sequence.0).collect();
        assert_eq!(acked, [3, 2, 0]);
    }

    #[test]
    fn a_payload_that_lies_about_its_length_is_refused() {
        check(&[], Err(MalformedPacket::Truncated));
        check(&[0; HEADER_BYTES - 1], Err(MalformedPacket::Truncated));
        check(&packet(&[]), Ok(vec![]));
        check(&packet(&[1]), Err(MalformedPacket::Truncated));
        check(&packet(&[1, 0]), Err(MalformedPacket::Truncated));
        check(&packet(&[1, 0, 5]), Ok(vec![Chunk::Unreliable(&[5])]));
        check(&packet(&[0xff, 0x3f, 5]), Err(MalformedPacket::Truncated));
        check(&packet(&[0, 0]), Err(MalformedPacket::EmptyChunk));
        check(&packet(&[1, 0xc0, 5]), Err(MalformedPacket::UnknownChunk));
        check(&packet(&[2, 0x80, 1, 0, 9]), Err(MalformedPacket::Truncated));
    }

    #[test]
    fn fragments_have_the_one_length_except_the_last() {
        check(&packet(&[1, 0x40, 1, 0, 9]), Err(MalformedPacket::FragmentLength));
        check(&packet(&[0xff, 0xbf, 1, 0, 9]), Err(MalformedPacket::FragmentLength));
        check(&packet(&[1, 0x80, 1, 0, 9]), Ok(vec![Chunk::Fragment { id: FragmentId(1), last: true, bytes: &[9] }]));
    }

    #[test]
    fn ack_bits_must_include_the_acked_packet() {
        check(&[0, 0, 5, 0, 0, 0, 0, 0], Err(MalformedPacket::AckBits));
        check(&[0, 0, 5, 0, 2, 0, 0, 0], Err(MalformedPacket::AckBits));
        check(&[0, 0, 5, 0, 3, 0, 0, 0], Ok(vec![]));
    }
}
