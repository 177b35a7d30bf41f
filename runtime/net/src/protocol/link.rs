//! The sealed link: what a client and a server hold of each other once the handshake is over.
//!
//! Two keys, the counter of what was sent, the replay window of what was received, and the two times that a
//! timeout needs. Owned by value by whoever speaks with that client; it moves between worlds and threads
//! with its connection.
//!
//! **No (key, nonce) pair is sealed twice.** The nonce is the sequence, so three rules hold it:
//! 1. a link is not `Clone`, so there is one counter per link;
//! 2. a link's sequences start at a random number below 2^48, so two links that were given the same keys (a
//!    token shown to two servers of its list, or shown again after a crash that lost the journal) overlap
//!    with a chance of about 2n / 2^48 for n packets each: 7e-8 for 138 hours at 20 packets a second. The
//!    price is six sequence bytes a packet where netcode's counters, which start at zero, need two or three;
//! 3. what the server seals before there is a link (challenge, denied) counts from 2^63 upwards, where no
//!    link ever gets: it stops at [`SEQUENCE_END`].
//!
//! Runs on the thread of its world. Never allocates after it is made. Cost: see `cipher`.

use std::fmt;

use thiserror::Error;
use throng_platform::time::Nanos;

use super::ProtocolId;
use super::cipher::{KEY_BYTES, PacketCipher, TAG_BYTES};
use super::mark::SequenceMark;
use super::packet::{
    CHALLENGE_BODY_BYTES, HEADER_BYTES_MAX, KEEP_ALIVE_BODY_BYTES, Kind, PAYLOAD_BYTES_MAX, SealedHeader, VERSION,
};
use super::replay::ReplayWindow;

/// Links start their sequences below this.
pub(super) const SEQUENCE_START_MAX: u64 = 1 << 48;
/// No link seals this sequence or a later one: 146 million years at 1,000 packets a second.
const SEQUENCE_END: u64 = 1 << 62;
/// The handshake's packets count from here.
pub(super) const HANDSHAKE_SEQUENCE_START: u64 = 1 << 63;
/// Forgeries after which a key is no longer trusted: the integrity limit of ChaCha20-Poly1305 (RFC 9001, 6.6).
const FORGERIES_MAX: u64 = 1 << 36;

/// One side's end of an authenticated, encrypted, replay-proof path.
pub struct SealedLink {
    sealing: PacketCipher,
    opening: PacketCipher,
    /// Version, protocol id, and a place for the prefix byte: authenticated with every packet.
    additional: [u8; 22],
    send_sequence: u64,
    replay: ReplayWindow,
    mark: SequenceMark,
    forgeries: u64,
    last_sent: Nanos,
    last_received: Nanos,
    timeout: Nanos,
    confirmed: bool,
    /// What our keep-alives say: the server its client's slot and the number of slots, the client zeros.
    keep_alive: [u8; KEEP_ALIVE_BODY_BYTES],
}

/// What an authenticated packet says.
#[derive(PartialEq, Eq, Debug)]
pub enum Opened<'a> {
    /// 1 to [`PAYLOAD_BYTES_MAX`] bytes, in the datagram's own memory.
    Payload(&'a [u8]),
    KeepAlive,
    /// The other side is gone. Nothing more will come.
    Disconnect,
}

/// Why a datagram was not taken. Count it and carry on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum OpenError {
    #[error("not a packet of a connected client")]
    Malformed,
    #[error("a packet of the handshake, late or repeated")]
    Handshake,
    #[error("received already, or older than the replay window")]
    Replayed,
    #[error("does not authenticate")]
    Forged,
    #[error("too many forgeries for this key: the link takes nothing more")]
    Exhausted,
}

/// The keys of one link, seen from one side, and where its counter starts.
pub(super) struct LinkKeys<'a> {
    pub sealing: &'a [u8; KEY_BYTES],
    pub opening: &'a [u8; KEY_BYTES],
    pub protocol_id: ProtocolId,
    pub first_sequence: u64,
}

impl SealedLink {
    pub(super) fn new(keys: LinkKeys<'_>, timeout_s: i32, now: Nanos) -> Self {
        assert!(keys.first_sequence < SEQUENCE_END);
        let mut additional = [0; 22];
        additional[..13].copy_from_slice(&VERSION);
        additional[13..21].copy_from_slice(&keys.protocol_id.0.to_le_bytes());
        Self {
            sealing: PacketCipher::new(keys.sealing),
            opening: PacketCipher::new(keys.opening),
            additional,
            send_sequence: keys.first_sequence,
            replay: ReplayWindow::new(),
            mark: SequenceMark::new(),
            forgeries: 0,
            last_sent: now,
            last_received: now,
            timeout: timeout_of(timeout_s),
            confirmed: false,
            keep_alive: [0; KEEP_ALIVE_BODY_BYTES],
        }
    }

    /// Opens a datagram in place. On an error its bytes are lost, and nothing of the link has changed but a
    /// count of forgeries.
    pub fn open<'a>(&mut self, datagram: &'a mut [u8], now: Nanos) -> Result<Opened<'a>, OpenError> {
        let header = SealedHeader::read(datagram).ok_or_else(|| refusal_of(datagram))?;
        match header.kind {
            Kind::KeepAlive | Kind::Payload | Kind::Disconnect => {}
            _ => return Err(OpenError::Handshake),
        }
        if !self.replay.is_fresh(header.sequence) {
            return Err(OpenError::Replayed);
        }
        let body = self.open_body(header, datagram)?;
        self.replay.take(header.sequence);
        self.mark.set(self.replay.newest().unwrap_or(header.sequence));
        self.last_received = now;
        self.confirmed = true;
        Ok(match header.kind {
            Kind::Payload => Opened::Payload(body),
            Kind::Disconnect => Opened::Disconnect,
            _ => Opened::KeepAlive,
        })
    }

    /// Seals a payload that `write` puts where it belongs in `out`, a packet's buffer of
    /// [`PACKET_BYTES_MAX`](super::PACKET_BYTES_MAX) bytes, and of which it gives the length [1 to
    /// [`PAYLOAD_BYTES_MAX`]]. Gives the datagram's length; 0 when the link has used up its sequences.
    pub fn seal_with(
        &mut self,
        out: &mut [u8],
        now: Nanos,
        write: impl FnOnce(&mut [u8; PAYLOAD_BYTES_MAX]) -> usize,
    ) -> usize {
        let place = out[SealedHeader::bytes(self.send_sequence)..].first_chunk_mut();
        let len = write(place.expect("a packet's buffer has room for the longest payload"));
        assert!((1..=PAYLOAD_BYTES_MAX).contains(&len), "a payload has 1 to 1,200 bytes");
        let Some(sequence) = self.take_sequence(now) else { return 0 };
        self.seal_body(Kind::Payload, sequence, len, out)
    }

    /// As [`seal_with`](Self::seal_with), for a payload that lies elsewhere.
    pub fn seal_payload(&mut self, payload: &[u8], out: &mut [u8], now: Nanos) -> usize {
        self.seal_with(out, now, |place| {
            place[..payload.len()].copy_from_slice(payload);
            payload.len()
        })
    }

    /// Seals a keep-alive. Send one about every 100 ms when there is nothing else to say, and, on the
    /// server, ahead of each packet until the link is [`confirmed`](Self::confirmed): the client knows of
    /// its admission from a keep-alive only.
    pub fn seal_keep_alive(&mut self, out: &mut [u8], now: Nanos) -> usize {
        let body = self.keep_alive;
        self.seal_next(Kind::KeepAlive, &body, out, now)
    }

    /// Seals a goodbye. Nothing confirms it, so send several, each sealed anew.
    pub fn seal_disconnect(&mut self, out: &mut [u8], now: Nanos) -> usize {
        self.seal_next(Kind::Disconnect, &[], out, now)
    }

    /// When the last authentic packet came in; at first, when the link was made.
    pub fn last_received(&self) -> Nanos {
        self.last_received
    }

    /// Counts so much less of the other side's silence: this side did not listen for so long.
    pub fn forgive_silence(&mut self, now: Nanos, by: Nanos) {
        self.last_received = (self.last_received + by).min(now);
    }

    /// When the last packet was sealed; at first, when the link was made.
    pub fn last_sent(&self) -> Nanos {
        self.last_sent
    }

    /// How long the other side may be silent: as the token says, on a server no longer than its own limit. `Nanos::MAX` =
    /// for ever.
    pub fn timeout(&self) -> Nanos {
        self.timeout
    }

    /// Follows the newest sequence that opens here, wherever the link moves to. On a server it starts where the
    /// handshake ended.
    pub fn sequence_mark(&self) -> SequenceMark {
        self.mark.clone()
    }

    /// Whether the other side is known to hold its half of the link too.
    pub fn confirmed(&self) -> bool {
        self.confirmed
    }

    /// The server's half: what its keep-alives tell the client.
    pub(super) fn set_slot(&mut self, client_index: u32, clients_max: u32) {
        self.keep_alive[..4].copy_from_slice(&client_index.to_le_bytes());
        self.keep_alive[4..].copy_from_slice(&clients_max.to_le_bytes());
    }

    /// Starts the timeouts anew: the handshake ends here, for a client with a keep-alive of the server.
    pub(super) fn begin(&mut self, now: Nanos, confirmed: bool) {
        self.last_received = now;
        self.last_sent = now;
        self.confirmed = confirmed;
    }

    /// Opens a packet of the handshake, which is not held against the replay window: the server's half and the
    /// client take each of them in one state only.
    pub(super) fn open_handshake<'a>(
        &mut self,
        header: SealedHeader,
        datagram: &'a mut [u8],
    ) -> Result<&'a [u8], OpenError> {
        self.open_body(header, datagram)
    }

    /// Says which response is the newest: the packets that follow are counted with it.
    pub(super) fn count_from(&self, sequence: u64) {
        self.mark.set(sequence);
    }

    /// Seals a response, counted with the packets that will follow it.
    pub(super) fn seal_response(
        &mut self,
        challenge: &[u8; CHALLENGE_BODY_BYTES],
        out: &mut [u8],
        now: Nanos,
    ) -> usize {
        self.seal_next(Kind::Response, challenge, out, now)
    }

    /// Seals one of the handshake's packets under a count of their own.
    pub(super) fn seal_for_handshake(&self, kind: Kind, sequence: u64, body: &[u8], out: &mut [u8]) -> usize {
        assert!(sequence >= HANDSHAKE_SEQUENCE_START, "the handshake's count stays apart from the link's");
        self.seal(kind, sequence, body, out)
    }

    fn seal_next(&mut self, kind: Kind, body: &[u8], out: &mut [u8], now: Nanos) -> usize {
        let Some(sequence) = self.take_sequence(now) else { return 0 };
        self.seal(kind, sequence, body, out)
    }

    /// The next packet's number, unless all are used up.
    fn take_sequence(&mut self, now: Nanos) -> Option<u64> {
        let sequence = self.send_sequence;
        if sequence >= SEQUENCE_END {
            return None;
        }
        self.send_sequence += 1;
        self.last_sent = now;
        Some(sequence)
    }

    fn seal(&self, kind: Kind, sequence: u64, body: &[u8], out: &mut [u8]) -> usize {
        debug_assert!(out.len() >= HEADER_BYTES_MAX);
        out[SealedHeader::bytes(sequence)..][..body.len()].copy_from_slice(body);
        self.seal_body(kind, sequence, body.len(), out)
    }

    /// Seals a body of `len` bytes that stands where it belongs.
    fn seal_body(&self, kind: Kind, sequence: u64, len: usize, out: &mut [u8]) -> usize {
        let header = SealedHeader::write(kind, sequence, out);
        let end = header.body_at + len + TAG_BYTES;
        self.sealing.seal(sequence, &self.additional_of(header.prefix), &mut out[header.body_at..end]);
        end
    }

    fn open_body<'a>(&mut self, header: SealedHeader, datagram: &'a mut [u8]) -> Result<&'a [u8], OpenError> {
        if self.forgeries >= FORGERIES_MAX {
            return Err(OpenError::Exhausted);
        }
        let additional = self.additional_of(header.prefix);
        match self.opening.open(header.sequence, &additional, &mut datagram[header.body_at..]) {
            Ok(body) => Ok(body),
            Err(_) => {
                self.forgeries += 1;
                Err(OpenError::Forged)
            }
        }
    }

    fn additional_of(&self, prefix: u8) -> [u8; 22] {
        let mut additional = self.additional;
        additional[21] = prefix;
        additional
    }
}

/// Never prints a key.
impl fmt::Debug for SealedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedLink")
            .field("send_sequence", &self.send_sequence)
            .field("newest_received", &self.replay.newest())
            .field("confirmed", &self.confirmed)
            .finish_non_exhaustive()
    }
}

fn timeout_of(timeout_s: i32) -> Nanos {
    match u64::try_from(timeout_s) {
        Ok(seconds) if seconds > 0 => Nanos::from_secs(seconds),
        _ => Nanos::MAX,
    }
}

/// Tells a late request or cookie from noise.
fn refusal_of(datagram: &[u8]) -> OpenError {
    let kind = datagram.first().and_then(|&prefix| Kind::of_prefix(prefix));
    match kind {
        Some(kind) if !kind.is_sealed() && kind.allows_body(datagram.len() - 1) => OpenError::Handshake,
        _ => OpenError::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos::from_secs(3);

    fn pair(first_sequence: u64) -> (SealedLink, SealedLink) {
        let make = |sealing: [u8; 32], opening: [u8; 32]| {
            let protocol_id = ProtocolId(5);
            let keys = LinkKeys { sealing: &sealing, opening: &opening, protocol_id, first_sequence };
            SealedLink::new(keys, 10, Nanos::ZERO)
        };
        (make([1; 32], [2; 32]), make([2; 32], [1; 32]))
    }

    #[test]
    fn payloads_of_every_size_come_through_once() {
        let (mut here, mut there) = pair(1 << 40);
        let mut out = [0; 1400];
        for size in 1..=PAYLOAD_BYTES_MAX {
            let payload = vec![size as u8; size];
            let len = here.seal_payload(&payload, &mut out, NOW);
            assert_eq!(len, 1 + 6 + size + TAG_BYTES);
            assert_eq!(there.open(&mut out[..len].to_vec(), NOW), Ok(Opened::Payload(&payload)));
            assert_eq!(there.open(&mut out[..len], NOW), Err(OpenError::Replayed));
        }
    }

    #[test]
    fn what_came_and_went_is_dated_and_confirms() {
        let (mut here, mut there) = pair(0);
        let mut out = [0; 100];
        assert_eq!((here.timeout(), here.confirmed()), (Nanos::from_secs(10), false));
        let len = here.seal_keep_alive(&mut out, NOW);
        assert_eq!((here.last_sent(), here.last_received()), (NOW, Nanos::ZERO));
        assert_eq!(there.open(&mut out[..len], NOW), Ok(Opened::KeepAlive));
        assert_eq!((there.last_sent(), there.last_received(), there.confirmed()), (Nanos::ZERO, NOW, true));
        let len = there.seal_disconnect(&mut out, NOW);
        assert_eq!(here.open(&mut out[..len], NOW), Ok(Opened::Disconnect));
    }

    #[test]
    fn a_forgery_moves_neither_window_nor_time() {
        let (mut here, mut there) = pair(100);
        let mut out = [0; 1400];
        let len = here.seal_payload(b"genuine", &mut out, NOW);
        let mut forged = out;
        forged[1..2].copy_from_slice(&[255]);
        assert_eq!(there.open(&mut forged[..len], NOW), Err(OpenError::Forged));
        assert_eq!((there.last_received(), there.confirmed(), there.replay.newest()), (Nanos::ZERO, false, None));
        let mark = there.sequence_mark();
        assert_eq!(there.open(&mut out[..len], NOW), Ok(Opened::Payload(b"genuine")));
        let len = here.seal_payload(b"the next", &mut out, NOW);
        assert!(mark.is_plausible(&out[..len]));
    }

    #[test]
    fn a_key_that_was_forged_too_often_is_given_up() {
        let (mut here, mut there) = pair(0);
        there.forgeries = FORGERIES_MAX;
        let mut out = [0; 100];
        let len = here.seal_keep_alive(&mut out, NOW);
        assert_eq!(there.open(&mut out[..len], NOW), Err(OpenError::Exhausted));
    }

    #[test]
    fn the_last_sequences_are_sealed_and_none_after_them() {
        let (mut here, mut there) = pair(SEQUENCE_END - 2);
        let mut out = [0; 1400];
        for _ in 0..2 {
            let len = here.seal_payload(b"last words", &mut out, NOW);
            assert_eq!(there.open(&mut out[..len], NOW), Ok(Opened::Payload(b"last words")));
        }
        assert_eq!(here.seal_payload(b"one more", &mut out, NOW), 0);
        assert_eq!(here.seal_keep_alive(&mut out, NOW), 0);
    }

    #[test]
    fn packets_of_the_handshake_are_told_from_noise() {
        let (here, mut there) = pair(0);
        let mut out = [0; 1400];
        let len = here.seal_for_handshake(Kind::Denied, HANDSHAKE_SEQUENCE_START, &[], &mut out);
        assert_eq!(there.open(&mut out[..len], NOW), Err(OpenError::Handshake));
        let mut request = [0; 1078];
        assert_eq!(there.open(&mut request, NOW), Err(OpenError::Handshake));
        for noise in [&mut [][..], &mut [0x15], &mut [0xFF; 40], &mut [0; 1077]] {
            assert_eq!(there.open(noise, NOW), Err(OpenError::Malformed));
        }
    }

    #[test]
    fn a_timeout_of_nothing_is_none() {
        for (timeout_s, expect) in [(-1, Nanos::MAX), (0, Nanos::MAX), (1, Nanos::from_secs(1))] {
            assert_eq!(timeout_of(timeout_s), expect);
        }
    }
}
