//! The shape of every packet: kinds, the prefix byte, sequence bytes, sizes.
//!
//! ```text
//!  prefix          sequence         body, sealed         tag
//! +---------------+----------------+--------------------+---------+
//! | n<<4 | kind   | n bytes, LE    | depends on kind    | 16 B    |   kinds 1 to 6, 10
//! +---------------+----------------+--------------------+---------+
//! | kind          | body, in the clear                            |   kinds 0, 7, 8, 9
//! +---------------+-----------------------------------------------+
//! ```
//!
//! The low four bits of the prefix are the kind, the high four say how many bytes of the sequence follow.
//! We write 1 to 8 of them, as the standard says; we also read 0, which means sequence 0, because
//! renetcode writes that.
//!
//! Pure functions on slices: nothing is copied but the few header bytes, nothing allocates.

use super::cipher::TAG_BYTES;
use super::queued::QUEUED_BODY_BYTES;

/// Largest datagram of a connected client that is worth sending or looking at (bytes).
pub const PACKET_BYTES_MAX: usize = 1300;

/// Largest payload of one packet (bytes). netcode's own figure; it leaves room for any header within an
/// IPv6 path of 1,280 bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1200;

/// Largest packet of the handshake (bytes): the request that carries a cookie.
pub const HANDSHAKE_BYTES_MAX: usize = COOKIE_REQUEST_BYTES;

const _: () = assert!(HEADER_BYTES_MAX + PAYLOAD_BYTES_MAX + TAG_BYTES <= PACKET_BYTES_MAX);

pub(super) const VERSION: [u8; 13] = *b"NETCODE 1.02\0";

/// Prefix byte and eight sequence bytes.
pub(super) const HEADER_BYTES_MAX: usize = 1 + 8;

pub(super) const TOKEN_NONCE_BYTES: usize = 24;
pub(super) const PRIVATE_TOKEN_BYTES: usize = 1024;

/// version, protocol id, expiry, nonce, private token.
pub(super) const REQUEST_BODY_BYTES: usize = 13 + 8 + 8 + TOKEN_NONCE_BYTES + PRIVATE_TOKEN_BYTES;
/// The plain netcode request.
pub(super) const REQUEST_BYTES: usize = 1 + REQUEST_BODY_BYTES;
const _: () = assert!(REQUEST_BYTES == 1078);

pub(super) const COOKIE_BYTES: usize = 16;
/// kind, cookie, the client's number, then the body of a plain request.
pub(super) const COOKIE_REQUEST_BYTES: usize = 1 + COOKIE_BYTES + 8 + REQUEST_BODY_BYTES;
/// As large as the request that follows: what it provokes is smaller, and a path too narrow for the
/// request shows at once.
pub(super) const HELLO_BYTES: usize = COOKIE_REQUEST_BYTES;
/// kind, the client's number echoed, cookie.
pub(super) const COOKIE_REPLY_BYTES: usize = 1 + 8 + COOKIE_BYTES;
const _: () = assert!(COOKIE_REPLY_BYTES <= 40 && COOKIE_REPLY_BYTES < HELLO_BYTES);

pub(super) const CHALLENGE_TOKEN_BYTES: usize = 300;
/// The challenge's number and the challenge token; the response echoes both.
pub(super) const CHALLENGE_BODY_BYTES: usize = 8 + CHALLENGE_TOKEN_BYTES;
pub(super) const KEEP_ALIVE_BODY_BYTES: usize = 4 + 4;
/// What a *denied* of ours may say: the reason.
pub(super) const DENIED_BODY_BYTES_MAX: usize = 1;

/// The packet that is repeated until the client is in.
pub(super) const RESPONSE_BYTES_MAX: usize = HEADER_BYTES_MAX + CHALLENGE_BODY_BYTES + TAG_BYTES;
/// The shortest that it can be still exceeds all that it may be answered with.
const _: () = assert!(HEADER_BYTES_MAX + QUEUED_BODY_BYTES + TAG_BYTES < 1 + CHALLENGE_BODY_BYTES + TAG_BYTES);

/// Largest answer of the handshake: a challenge. Smaller than every request that can provoke it.
pub(super) const REPLY_BYTES_MAX: usize = HEADER_BYTES_MAX + CHALLENGE_BODY_BYTES + TAG_BYTES;
const _: () = assert!(REPLY_BYTES_MAX < REQUEST_BYTES);

/// What a packet is. Numbers 0 to 6 are netcode's; 7 to 9 are our cookie extension, 10 is our queue's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Request = 0,
    Denied = 1,
    Challenge = 2,
    Response = 3,
    KeepAlive = 4,
    Payload = 5,
    Disconnect = 6,
    Hello = 7,
    Cookie = 8,
    CookieRequest = 9,
    Queued = 10,
}

impl Kind {
    /// Reads the kind out of a prefix byte. `None` for a kind nobody defined, and for packets in the clear
    /// that claim sequence bytes.
    pub(super) fn of_prefix(prefix: u8) -> Option<Self> {
        let kind = match prefix & 0x0F {
            0 => Self::Request,
            1 => Self::Denied,
            2 => Self::Challenge,
            3 => Self::Response,
            4 => Self::KeepAlive,
            5 => Self::Payload,
            6 => Self::Disconnect,
            7 => Self::Hello,
            8 => Self::Cookie,
            9 => Self::CookieRequest,
            10 => Self::Queued,
            _ => return None,
        };
        let sequence_bytes = prefix >> 4;
        let well_formed = if kind.is_sealed() { sequence_bytes <= 8 } else { sequence_bytes == 0 };
        well_formed.then_some(kind)
    }

    pub(super) fn is_sealed(self) -> bool {
        !matches!(self, Self::Request | Self::Hello | Self::Cookie | Self::CookieRequest)
    }

    /// Whether a body of this many bytes may belong to this kind. Checked before any cipher runs.
    pub(super) fn allows_body(self, body_bytes: usize) -> bool {
        match self {
            Self::Denied => body_bytes <= DENIED_BODY_BYTES_MAX,
            Self::Disconnect => body_bytes == 0,
            Self::Queued => body_bytes == QUEUED_BODY_BYTES,
            Self::Challenge | Self::Response => body_bytes == CHALLENGE_BODY_BYTES,
            Self::KeepAlive => body_bytes == KEEP_ALIVE_BODY_BYTES,
            Self::Payload => (1..=PAYLOAD_BYTES_MAX).contains(&body_bytes),
            Self::Request => body_bytes == REQUEST_BODY_BYTES,
            Self::Hello => body_bytes == HELLO_BYTES - 1,
            Self::Cookie => body_bytes == COOKIE_REPLY_BYTES - 1,
            Self::CookieRequest => body_bytes == COOKIE_REQUEST_BYTES - 1,
        }
    }
}

/// Whether a datagram has the shape of a step of the handshake that a client takes. It is a glance at its first bytes and
/// its length: what it says is for the handshake to judge.
pub fn is_handshake_step(datagram: &[u8]) -> bool {
    let Some((&prefix, body)) = datagram.split_first() else { return false };
    match Kind::of_prefix(prefix) {
        Some(kind @ (Kind::Request | Kind::Hello | Kind::CookieRequest)) => kind.allows_body(body.len()),
        Some(Kind::Response) => SealedHeader::read(datagram).is_some(),
        _ => false,
    }
}

/// The header of a sealed packet, read but not yet believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SealedHeader {
    pub kind: Kind,
    pub prefix: u8,
    pub sequence: u64,
    /// Where the sealed body starts.
    pub body_at: usize,
}

impl SealedHeader {
    /// Reads the header. `None` when the datagram cannot be a sealed packet of that kind: unknown kind, or
    /// a size the kind never has.
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let (&prefix, after_prefix) = datagram.split_first()?;
        let kind = Kind::of_prefix(prefix)?;
        if !kind.is_sealed() {
            return None;
        }
        let sequence_bytes = usize::from(prefix >> 4);
        let written = after_prefix.get(..sequence_bytes)?;
        let body_bytes = after_prefix.len().checked_sub(sequence_bytes + TAG_BYTES)?;
        if !kind.allows_body(body_bytes) {
            return None;
        }
        let mut sequence = [0; 8];
        sequence[..sequence_bytes].copy_from_slice(written);
        Some(Self { kind, prefix, sequence: u64::from_le_bytes(sequence), body_at: 1 + sequence_bytes })
    }

    /// Bytes of prefix and sequence.
    pub(super) fn bytes(sequence: u64) -> usize {
        1 + sequence_bytes_of(sequence)
    }

    /// Writes prefix and sequence at the start of `out`.
    pub(super) fn write(kind: Kind, sequence: u64, out: &mut [u8]) -> Self {
        let sequence_bytes = sequence_bytes_of(sequence);
        let prefix = kind as u8 | (sequence_bytes as u8) << 4;
        out[0] = prefix;
        out[1..=sequence_bytes].copy_from_slice(&sequence.to_le_bytes()[..sequence_bytes]);
        Self { kind, prefix, sequence, body_at: 1 + sequence_bytes }
    }
}

/// How many bytes a sequence takes on the wire: 1 to 8.
fn sequence_bytes_of(sequence: u64) -> usize {
    (8 - sequence.leading_zeros() as usize / 8).max(1)
}

/// The body of a connection request, as it came: nothing in it is believed yet.
pub(super) struct RequestBody<'a> {
    pub version: &'a [u8; 13],
    pub protocol_id: u64,
    pub expires_unix_s: u64,
    pub nonce: &'a [u8; TOKEN_NONCE_BYTES],
    pub private_token: &'a mut [u8; PRIVATE_TOKEN_BYTES],
}

impl<'a> RequestBody<'a> {
    pub(super) fn read(body: &'a mut [u8; REQUEST_BODY_BYTES]) -> Self {
        let (version, rest) = body.split_first_chunk_mut::<13>().expect("a body has its fixed size");
        let (protocol_id, rest) = rest.split_first_chunk_mut::<8>().expect("a body has its fixed size");
        let (expires, rest) = rest.split_first_chunk_mut::<8>().expect("a body has its fixed size");
        let (nonce, rest) = rest.split_first_chunk_mut::<TOKEN_NONCE_BYTES>().expect("a body has its fixed size");
        let private_token = rest.first_chunk_mut::<PRIVATE_TOKEN_BYTES>().expect("a body has its fixed size");
        Self {
            version,
            protocol_id: u64::from_le_bytes(*protocol_id),
            expires_unix_s: u64::from_le_bytes(*expires),
            nonce,
            private_token,
        }
    }

    /// The tag of the private token: it names the token, and no two tokens share one.
    pub(super) fn token_mac(&self) -> [u8; TAG_BYTES] {
        *self.private_token.last_chunk().expect("a private token is longer than its tag")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_was_written() {
        for shift in 0..64 {
            for sequence in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut datagram = [0; HEADER_BYTES_MAX + KEEP_ALIVE_BODY_BYTES + TAG_BYTES];
                let written = SealedHeader::write(Kind::KeepAlive, sequence, &mut datagram);
                let len = written.body_at + KEEP_ALIVE_BODY_BYTES + TAG_BYTES;
                assert_eq!(SealedHeader::read(&datagram[..len]), Some(written), "sequence {sequence}");
            }
        }
    }

    #[test]
    fn sequence_zero_takes_one_byte_and_is_also_read_from_none() {
        let mut datagram = [0; 1 + TAG_BYTES];
        datagram[0] = Kind::Disconnect as u8;
        let header = SealedHeader::read(&datagram).expect("renetcode writes sequence 0 in no bytes");
        assert_eq!((header.sequence, header.body_at), (0, 1));
        assert_eq!(SealedHeader::write(Kind::Disconnect, 0, &mut datagram).body_at, 2);
    }

    #[test]
    fn prefixes_nobody_writes_are_refused() {
        for prefix in 0..=u8::MAX {
            let (kind, sequence_bytes) = (prefix & 0x0F, prefix >> 4);
            let expect = match kind {
                1..=6 | 10 => sequence_bytes <= 8,
                0 | 7..=9 => sequence_bytes == 0,
                _ => false,
            };
            assert_eq!(Kind::of_prefix(prefix).is_some(), expect, "prefix {prefix:#04x}");
        }
    }

    #[test]
    fn a_size_the_kind_never_has_is_refused() {
        let mut datagram = [0; 2048];
        datagram[0] = 0x10 | Kind::Payload as u8;
        for len in 0..datagram.len() {
            let expect = len > 2 + TAG_BYTES && len <= 2 + TAG_BYTES + PAYLOAD_BYTES_MAX;
            assert_eq!(SealedHeader::read(&datagram[..len]).is_some(), expect, "{len} bytes");
        }
    }
}
