//! Opening: one datagram of a client becomes messages that its world reads, or is counted as what it is instead.
//!
//! ```text
//! datagram -> unseal -> charge the datagram -> each message: look at its header -> hear -> unpack -> charge -> hand over
//! ```
//!
//! Bytes of the network: whatever they are, they are counted and passed over, and never a panic. What has opened is the
//! client's own, so from there on it counts against the client's allowance, and only what the world is to read counts at
//! its price. An input that comes again as often as its kind declares is free.
//!
//! On any worker, for a batch of clients. Allocates nothing once its lists have grown, but for messages with lists in
//! them. Cost: some 1 µs per datagram, most of it the cipher's.

use throng_net::{
    connection::{Channel, MessageSink},
    control::{self, SchemaHash},
};
use throng_platform::time::Nanos;
use throng_profiler::{log_warn, thread::note_input};
use throng_replication::{PackedId, REQUEST_HEADER_BYTES, SEEN_BYTES, Seen, UnpackedAt};

use super::{CLIENTS, Stage};
use crate::{
    allowance::Verdict,
    client::Client,
    declared::{Declared, Heard},
    input_window::{InputOrder, InputWindow},
    opened::{Buffer, MessageKind, Opened},
    report::TickStats,
};

/// First byte, epoch, number and kind, ahead of what an input says.
const INPUT_HEADER_BYTES: usize = 5;

/// Messages of one datagram that have been opened and not been looked at.
#[derive(Default)]
pub(super) struct Unread {
    messages: Vec<(Channel, usize, usize)>,
    assembled: Vec<u8>,
}

/// Opens the datagrams of a batch, one after the other.
pub(super) struct Opener<'a> {
    pub stage: Stage,
    pub declared: &'a Declared,
    pub buffer: &'a mut Buffer,
    pub opened: &'a mut Vec<Opened>,
    pub unread: &'a mut Unread,
    pub stats: &'a mut TickStats,
}

impl Opener<'_> {
    /// Opens a datagram of the client, and notes the game's messages in it. `number` is the datagram's place among the
    /// world's mail.
    pub fn open(&mut self, client: &mut Client, number: u32, sealed: &[u8]) {
        if !self.unseal(client, sealed) {
            return;
        }
        let verdict = charge_datagram(client, sealed.len(), self.stage.now);
        for index in 0..self.unread.messages.len() {
            let (channel, begin, end) = self.unread.messages[index];
            let message =
                Message::of(channel, &self.buffer.bytes[..end], begin, (client.epoch, &client.inputs), self.declared);
            self.read(client, number, &message, &verdict);
        }
    }

    /// Opens the datagram at the end of the buffer's bytes, followed there by the messages that were put together with
    /// it. False: it is not the client's, or breaks the rules of the channels.
    fn unseal(&mut self, client: &mut Client, sealed: &[u8]) -> bool {
        let Unread { messages, assembled } = &mut *self.unread;
        messages.clear();
        assembled.clear();
        let bytes = &mut self.buffer.bytes;
        let begin = bytes.len();
        bytes.extend_from_slice(sealed);
        let end = bytes.len();
        self.stats.datagrams_in += 1;
        self.stats.bytes_in += sealed.len() as u64;
        let datagram = &mut bytes[begin..];
        let address = datagram.as_ptr().addr();
        let mut found = Found { messages, address, begin, end, assembled };
        if client.connection.receive(self.stage.now, datagram, &mut found).is_err() {
            self.stats.datagrams_refused += 1;
            return false;
        }
        bytes.extend_from_slice(&self.unread.assembled);
        true
    }

    /// Gives the world a message, or counts why not. `verdict` is that on its datagram.
    fn read(&mut self, client: &mut Client, number: u32, message: &Message, verdict: &Verdict) {
        if matches!(message.said, Said::KnownInput) && client.inputs.take_repeat() {
            self.stats.inputs_repeated += 1;
            return;
        }
        let heard = message.hear(client, verdict, self.stage.tick, self.declared);
        // What the world is not given is no work for it: it counts as one message, and no more.
        let unpacked = match heard {
            Some((kind, Heard::Taken)) => self.unpack(kind, message),
            _ => None,
        };
        let price = unpacked.map_or(1, |value| value.price);
        // What was sent reliably and its world is to have is not lost by a client that stays.
        let is_owed = message.channel == Channel::Reliable && matches!(heard, Some((_, Heard::Taken)));
        if !self.charge_message(client, price, is_owed) {
            if let (Some((kind, _)), Some(_)) = (heard, unpacked) {
                self.buffer.values.forget_last(self.declared.place(kind));
            }
            return;
        }
        match (message.said, heard) {
            (_, Some((kind, Heard::Taken))) => {
                client.meter.spent.work += u64::from(price);
                self.stats.message_work += u64::from(price);
                self.hand_over(client, number, kind, message, unpacked);
            }
            (_, Some((_, Heard::Excess))) => self.stats.said_over_limit += 1,
            (_, Some((_, Heard::Refused))) | (Said::Nothing, None) => self.stats.messages_refused += 1,
            (Said::Game(_), None) => self.stats.inputs_over_allowance += 1,
            (Said::KnownInput, None) => self.stats.inputs_repeated += 1,
            (Said::StaleInput, None) => self.stats.inputs_stale += 1,
            (Said::StaleRequest, None) => self.stats.requests_stale += 1,
            // It says so more than once, in case of loss.
            (Said::OtherSchema(_), None) if client.is_gone() => {}
            (Said::OtherSchema(schema), None) => {
                self.stats.schema_mismatches += 1;
                tell_of_mismatch(client, schema);
                client.leave("it was built from another version of the game");
            }
        }
    }

    fn unpack(&mut self, kind: MessageKind, message: &Message) -> Option<UnpackedAt> {
        let Buffer { bytes, values } = &mut *self.buffer;
        self.declared.unpack(kind, &bytes[message.begin..message.end], values)
    }

    /// Takes a message's price off the client's allowance. False: there is not so much left, so its world does not get
    /// it, and a client leaves that is owed it or has been over its allowance for long.
    fn charge_message(&mut self, client: &mut Client, price: u32, is_owed: bool) -> bool {
        let verdict = if is_owed {
            client.allowance.spend_reliable_message(price)
        } else {
            client.allowance.spend_message(price)
        };
        client.meter.spent.messages += 1;
        if verdict == Verdict::Pass {
            return true;
        }
        client.meter.spent.refused += 1;
        let refused = if price > 1 {
            &mut self.stats.dear_messages_over_allowance
        } else {
            &mut self.stats.messages_over_allowance
        };
        *refused += 1;
        if verdict == Verdict::Dismiss || is_owed {
            client.leave("sent more messages than its allowance");
        }
        false
    }

    /// Puts a message among those that the world's systems will read.
    fn hand_over(
        &mut self,
        client: &mut Client,
        number: u32,
        kind: MessageKind,
        message: &Message,
        unpacked: Option<UnpackedAt>,
    ) {
        let mut is_late = false;
        if let MessageKind::Input { number, .. } = kind {
            is_late = client.inputs.take(number) == InputOrder::Late;
            client.inputs.expect_repeats(self.declared.repeats(kind));
            self.stats.inputs_late += u64::from(is_late);
            note_input(client.key.0, number);
        }
        let seen =
            message.seen.map(|seen| client.seen_moment(Seen::decode(seen, self.stage.tick), self.stage.time_factor));
        let (client, value) = (client.key, unpacked.map(|value| value.index));
        let (begin, end) = (message.begin as u32, message.end as u32);
        self.opened.push(Opened { number, client, kind, is_late, seen, begin, end, value });
    }
}

/// Takes a datagram that has opened off the client's allowance: it is the client's own, so this is what counts against
/// it.
fn charge_datagram(client: &mut Client, size_bytes: usize, now: Nanos) -> Verdict {
    let verdict = client.allowance.spend(size_bytes, now);
    if verdict == Verdict::Dismiss {
        client.leave("sent more than its allowance");
    }
    client.meter.spent.packets_in += 1;
    client.meter.spent.bytes_in += size_bytes as u64;
    verdict
}

fn tell_of_mismatch(client: &Client, schema: u64) {
    let client = client.client_id().0;
    log_warn!(
        CLIENTS,
        client,
        schema = format_args!("{schema:016x}"),
        "a client goes by another schema than this server, and leaves: bring both to the same version of the game"
    );
}

/// Where the messages of one datagram lie in the bytes of its batch, once what was put together follows the datagram
/// there.
struct Found<'a> {
    messages: &'a mut Vec<(Channel, usize, usize)>,
    /// Where the datagram lies in memory, and in the batch's bytes.
    address: usize,
    begin: usize,
    end: usize,
    assembled: &'a mut Vec<u8>,
}

impl MessageSink for Found<'_> {
    fn message(&mut self, channel: Channel, bytes: &[u8]) {
        let offset = bytes.as_ptr().addr().wrapping_sub(self.address);
        if offset < self.end - self.begin {
            let begin = self.begin + offset;
            self.messages.push((channel, begin, begin + bytes.len()));
        } else {
            self.message_in_parts(channel, std::iter::once(bytes));
        }
    }

    fn message_in_parts<'b>(&mut self, channel: Channel, parts: impl Iterator<Item = &'b [u8]>) {
        let begin = self.end + self.assembled.len();
        parts.for_each(|part| self.assembled.extend_from_slice(part));
        self.messages.push((channel, begin, self.end + self.assembled.len()));
    }
}

/// A message whose header has been looked at.
struct Message {
    channel: Channel,
    said: Said,
    /// What its player was shown, of a kind that says so.
    seen: Option<[u8; SEEN_BYTES]>,
    /// It is of such a kind, and ends before it has said so.
    is_cut_short: bool,
    /// Where its value lies in the batch's bytes, or what claims to be one.
    begin: usize,
    end: usize,
}

impl Message {
    /// The message that `bytes` end with, from `begin` on.
    fn of(channel: Channel, bytes: &[u8], begin: usize, expected: (u8, &InputWindow), declared: &Declared) -> Self {
        let said = Said::of(channel, &bytes[begin..], expected, declared);
        let begin = begin + said.header_bytes();
        let says_seen = matches!(said, Said::Game(kind) if declared.says_seen(kind));
        let seen = bytes[begin..].first_chunk::<SEEN_BYTES>().copied().filter(|_| says_seen);
        let begin = if seen.is_some() { begin + SEEN_BYTES } else { begin };
        Self { channel, said, seen, is_cut_short: says_seen && seen.is_none(), begin, end: bytes.len() }
    }

    /// Whether its world takes it, by what is declared of its kind. `None`: it is not for the game, or an input of a
    /// client that is over its allowance.
    fn hear(
        &self,
        client: &mut Client,
        verdict: &Verdict,
        tick: u32,
        declared: &Declared,
    ) -> Option<(MessageKind, Heard)> {
        match self.said {
            Said::Game(MessageKind::Input { .. }) if *verdict != Verdict::Pass => None,
            Said::Game(kind) if self.is_cut_short => Some((kind, Heard::Refused)),
            Said::Game(kind) => Some((kind, declared.hear(&mut client.spent, tick, kind, self.end - self.begin))),
            Said::KnownInput | Said::StaleInput | Said::StaleRequest | Said::OtherSchema(_) | Said::Nothing => None,
        }
    }
}

/// What a message is, before anybody looks into it.
#[derive(Clone, Copy)]
enum Said {
    /// For the game.
    Game(MessageKind),
    /// An input that was taken before, or is too old to tell.
    KnownInput,
    /// For a world that the client has left, as the next.
    StaleInput,
    StaleRequest,
    /// The client was built from another version of the game, with this schema hash.
    OtherSchema(u64),
    /// Nothing that a client may say.
    Nothing,
}

impl Said {
    fn of(channel: Channel, message: &[u8], (client_epoch, inputs): (u8, &InputWindow), declared: &Declared) -> Self {
        match (channel, message) {
            (Channel::Unreliable, &[control::INPUT, epoch, low, high, kind, ..]) if epoch == client_epoch => {
                let number = u16::from_le_bytes([low, high]);
                match inputs.order_of(number) {
                    InputOrder::Newest | InputOrder::Late => {
                        Self::Game(MessageKind::Input { number, kind: PackedId(kind) })
                    }
                    InputOrder::Known => Self::KnownInput,
                }
            }
            (Channel::Unreliable, [control::INPUT, _, _, _, _, ..]) => Self::StaleInput,
            (Channel::Reliable, &[control::REQUEST, epoch, kind, ..]) => {
                let kind = PackedId(kind);
                let is_for_here = epoch == client_epoch || declared.is_for_any_world(kind);
                if is_for_here { Self::Game(MessageKind::Request { kind }) } else { Self::StaleRequest }
            }
            _ => SchemaHash::decode(message).map_or(Self::Nothing, |SchemaHash(hash)| Self::OtherSchema(hash)),
        }
    }

    /// What the game is not given of the message.
    fn header_bytes(&self) -> usize {
        match self {
            Self::Game(MessageKind::Input { .. }) => INPUT_HEADER_BYTES,
            Self::Game(MessageKind::Request { .. }) => REQUEST_HEADER_BYTES,
            Self::KnownInput | Self::StaleInput | Self::StaleRequest | Self::OtherSchema(_) | Self::Nothing => 0,
        }
    }
}
