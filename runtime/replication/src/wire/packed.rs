//! Packed: what a client and its world say to each other beside components and events.
//!
//! Each kind is a plain struct or enum with `#[derive(Pack)]` that says which of three it is:
//!
//! ```text
//!          byte 0   1       2       3       4      5..
//!          +------+-------+-------+-------+------+------------+
//! input    | 1    | epoch | number u16    | kind | packed ..  |   client to world, unreliable, newest counts
//!          +------+-------+-------+-------+------+------------+
//! request  | 5    | epoch | kind  | packed ..                 |   client to world, reliable and in order
//!          +------+-------+-------+---------------------------+
//! message  | 6    | kind  | packed ..                         |   world to client, reliable and in order
//!          +------+-------+-----------------------------------+
//! ```
//!
//! `epoch` is that of the client's stay in its world, so that one world is not given what was meant for another.
//! `kind` is the place in the schema, among inputs, requests or messages. Inputs of a kind that says what its player was
//! shown have four bytes more ahead of what they pack ([`Seen`](super::seen::Seen)). The packed bytes have no envelope:
//! both ends have the same schema, whose hash covers names, fields and limits of all of them.
//!
//! A limit of bytes follows from the type. How many a client may send in a second is said with it, and is the world's
//! part to hold. Sans-IO; allocates nothing beside what a value with a list in it takes.

use std::{any::TypeId, marker::PhantomData};

use throng_pack::{HasSchema, PackError};

use crate::wire::{
    quantise::mix,
    unpacked::{Unpacked, UnpackedAt},
};

/// First byte of a request.
pub const REQUEST_KIND: u8 = 5;
/// First byte of a message to a client.
pub const MESSAGE_KIND: u8 = 6;

/// Bytes ahead of what a request packs.
pub const REQUEST_HEADER_BYTES: usize = 3;
/// Bytes ahead of what a message packs.
pub const MESSAGE_HEADER_BYTES: usize = 2;

/// Most bytes of a packed input, which repeats 20 to 128 times a second.
pub const INPUT_BYTES_MAX: usize = 511;
/// Repeats of an input at most, whatever its kind says ([`ClientInput::REPEATS`]).
pub const INPUT_REPEATS_MAX: u8 = 7;
/// Most bytes of a packed request.
pub const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of a packed message.
pub const MESSAGE_BYTES_MAX: usize = 60 * 1024;

/// Kinds of inputs, of requests and of messages in a schema; of each so many.
pub const PACKED_KINDS_MAX: usize = 64;

/// What a player wants in this moment: sent unreliably, numbered, several times a second. A lost one is not sent again
/// unless its kind says so, so it says what holds (keys that are down), not what has changed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no input of a client",
    label = "implement `ClientInput` for it, beside `#[derive(Pack)]`"
)]
pub trait ClientInput: HasSchema + Send + Sync + 'static {
    /// Most in a second and of a client, which may come at once. What is above is dropped and counted. [1 to 1000]
    ///
    /// Too low: honest clients on a bad line, whose inputs come in a lump, lose some. Too high: a client costs the world
    /// more than others do.
    const PER_S_MAX: u16 = 128;

    /// Whether each says which moment of the world its player was shown, for which it takes four bytes more: for shots, and
    /// for whatever else is judged by what was seen. A world reads it with the input, beside who sent it.
    const SAYS_SEEN: bool = false;

    /// In how many of the next packets each is said again, so that as many packets may be lost in a row at no cost: for
    /// inputs that are steps which the client has predicted. [0 to 7; default 0]
    ///
    /// The world takes each once, by its number, and so many repeats of it do not count for the client's allowance of
    /// messages; more do. Too few → what was lost is missing, and the client's prediction is corrected. Too many → each
    /// costs its bytes again with every packet.
    const REPEATS: u8 = 0;

    /// How much work it means for its world at worst, in units of what an ordinary input costs. (at least 1)
    ///
    /// A world reads no clock, since the same mail must give the same world. So what one client may cost it is bounded by
    /// prices: they are charged to the client's allowance of messages (`client_messages_per_s_max`), and what is above it
    /// no system sees. Asked where datagrams are opened, on any worker, while the world waits: it takes nanoseconds, waits
    /// for nothing and never panics.
    fn price(&self) -> u32 {
        1
    }
}

/// What a player asks for once: sent reliably and in order, to the world that the player is in.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no request of a client",
    label = "implement `ClientRequest` for it, beside `#[derive(Pack)]`"
)]
pub trait ClientRequest: HasSchema + Send + Sync + 'static {
    /// Most in a second and of a client, which may come at once. What is above is dropped and counted. [1 to 1000]
    const PER_S_MAX: u16 = 20;

    /// Whether it is meant for whichever world the player is in when it arrives, as a name for oneself is.
    ///
    /// Otherwise it is for the world in which it was asked. A client hears of a journey a round trip late, and what it
    /// asks for in that time would be done by a world that it has not seen: a second `GoThrough` would take it back
    /// through the door. So the world that it is in by then drops such a request and counts it (`net.requests_stale`).
    const FOR_ANY_WORLD: bool = false;

    /// How much work it means for its world at worst, as for [`ClientInput::price`].
    fn price(&self) -> u32 {
        1
    }
}

/// What a world tells one client: sent reliably and in order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no message to a client",
    label = "implement `ClientMessage` for it, beside `#[derive(Pack)]`"
)]
pub trait ClientMessage: HasSchema + Send + Sync + 'static {}

/// A kind's place in the schema among those of its sort: inputs, requests or messages.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackedId(pub u8);

impl PackedId {
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// What the schema knows of a kind of inputs, requests or messages.
#[derive(Copy, Clone)]
pub struct PackedKind {
    type_id: TypeId,
    /// As its `#[pack(name = ..)]` says, or its type's.
    pub name: &'static str,
    /// Most bytes of a packed value.
    pub bytes_max: usize,
    /// Most in a second and of a client; of what worlds say, 0: that has no limit.
    pub per_s_max: u16,
    /// A request that counts in whichever world it arrives.
    pub is_for_any_world: bool,
    /// Whether it carries what its player was shown; never of requests and messages.
    pub says_seen: bool,
    /// In how many further packets a client says it again; 0 for requests and messages.
    pub repeats: u8,
    /// The counter of those that could not be read.
    pub(crate) refused_name: &'static str,
    /// What it is made of.
    pub schema: &'static throng_pack::Schema,
    hash: u64,
    check: fn(&[u8]) -> Result<(), PackError>,
    unpack: Unpack,
}

/// Adds a value to those of the kind's place.
type Unpack = fn(&[u8], &mut Unpacked, usize) -> Option<UnpackedAt>;

impl PackedKind {
    /// # Panics
    /// If a value can take more than `most` bytes: the program's own mistake, at start.
    fn of<T: HasSchema + 'static>(per_s_max: u16, most: usize, unpack: Unpack) -> Self {
        let name = T::SCHEMA.name;
        assert!(T::BYTES_MAX <= most, "`{name}` takes up to {} bytes; {most} are possible", T::BYTES_MAX);
        Self {
            type_id: TypeId::of::<T>(),
            name,
            bytes_max: T::BYTES_MAX,
            per_s_max,
            is_for_any_world: false,
            says_seen: false,
            repeats: 0,
            refused_name: RefusedName::<T>::NAME,
            schema: T::SCHEMA,
            hash: T::SCHEMA.hash(),
            check: |bytes| throng_pack::unpack_body::<T>(bytes).map(drop),
            unpack,
        }
    }

    pub(crate) fn is<T: 'static>(&self) -> bool {
        self.type_id == TypeId::of::<T>()
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.type_id == other.type_id
    }

    pub(crate) fn of_input<T: ClientInput>() -> Self {
        let unpack: Unpack = |bytes, into, place| into.push(place, bytes, T::price);
        let own = Self::of::<T>(T::PER_S_MAX, INPUT_BYTES_MAX, unpack);
        Self { says_seen: T::SAYS_SEEN, repeats: T::REPEATS.min(INPUT_REPEATS_MAX), ..own }
    }

    pub(crate) fn of_request<T: ClientRequest>() -> Self {
        let unpack: Unpack = |bytes, into, place| into.push(place, bytes, T::price);
        Self { is_for_any_world: T::FOR_ANY_WORLD, ..Self::of::<T>(T::PER_S_MAX, REQUEST_BYTES_MAX, unpack) }
    }

    pub(crate) fn of_message<T: ClientMessage>() -> Self {
        Self::of::<T>(0, MESSAGE_BYTES_MAX, |_, _, _| None)
    }

    /// Unpacks an input or a request, at the end of the values at `place`, and says what it costs its world; `None` for
    /// bytes that are none.
    pub fn unpack(&self, bytes: &[u8], into: &mut Unpacked, place: usize) -> Option<UnpackedAt> {
        (self.unpack)(bytes, into, place)
    }

    /// Whether the bytes are those of a value. For a client, which then knows that it can be read.
    pub fn check(&self, bytes: &[u8]) -> Result<(), PackError> {
        (self.check)(bytes)
    }

    /// Folds all that both ends must agree on into the schema's hash. How often it may come, and
    /// in which world, is the server's alone.
    /// `sort` tells inputs, requests and messages apart.
    pub(crate) fn mix_into(&self, hash: u64, sort: u64) -> u64 {
        let hash = mix(mix(hash, sort), self.hash);
        if self.says_seen { mix(hash, SAYS_SEEN_MARK) } else { hash }
    }
}

/// Mixed into the schema's hash for a kind that carries what was seen: who does not expect that reads other bytes.
const SAYS_SEEN_MARK: u64 = 0x5EE4;

/// Room for the name of a counter.
const REFUSED_NAME_BYTES_MAX: usize = 96;

/// `refused.pick_up` for a `PickUp`: put together by the compiler, so that nothing is leaked.
struct RefusedName<T>(PhantomData<T>);

impl<T: HasSchema> RefusedName<T> {
    const TEXT: &'static ([u8; REFUSED_NAME_BYTES_MAX], usize) = &refused_name(T::SCHEMA.name);
    const NAME: &'static str = {
        let (text, _) = Self::TEXT.0.split_at(Self::TEXT.1);
        match core::str::from_utf8(text) {
            Ok(name) => name,
            Err(_) => panic!("it is made of ASCII"),
        }
    };
}

const fn refused_name(name: &str) -> ([u8; REFUSED_NAME_BYTES_MAX], usize) {
    let mut text = [0; REFUSED_NAME_BYTES_MAX];
    let prefix = b"refused.";
    let mut len = 0;
    while len < prefix.len() {
        text[len] = prefix[len];
        len += 1;
    }
    let name = name.as_bytes();
    let mut index = 0;
    while index < name.len() && len + 2 <= REFUSED_NAME_BYTES_MAX {
        let byte = name[index];
        if byte.is_ascii_uppercase() {
            if index > 0 && (name[index - 1].is_ascii_lowercase() || name[index - 1].is_ascii_digit()) {
                text[len] = b'_';
                len += 1;
            }
            text[len] = byte.to_ascii_lowercase();
        } else if byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'.' {
            text[len] = byte;
        } else {
            text[len] = b'_';
        }
        len += 1;
        index += 1;
    }
    (text, len)
}

#[cfg(test)]
mod tests {
    use throng_pack::Pack;

    use super::*;

    #[derive(Pack)]
    #[pack(name = "test.aim")]
    struct Aim(i8);

    impl ClientInput for Aim {}

    #[derive(Pack)]
    #[pack(name = "test.aim")]
    struct AimThatSays(i8);

    impl ClientInput for AimThatSays {
        const SAYS_SEEN: bool = true;
    }

    /// Promise: a client that says what it saw to a server that does not expect it is of another version.
    #[test]
    fn what_was_seen_is_part_of_the_schema() {
        let [plain, saying] = [PackedKind::of_input::<Aim>(), PackedKind::of_input::<AimThatSays>()];
        assert_eq!((plain.says_seen, saying.says_seen), (false, true));
        assert_eq!(plain.hash, saying.hash, "their values are the same");
        assert_ne!(plain.mix_into(1, 7), saying.mix_into(1, 7));
    }

    #[test]
    fn a_counter_is_named_after_its_kind() {
        let check = |name: &str, expect: &str| {
            let (text, len) = refused_name(name);
            assert_eq!(std::str::from_utf8(&text[..len]), Ok(expect));
        };
        check("PickUp", "refused.pick_up");
        check("meadow.walk", "refused.meadow.walk");
        check("Walk2D", "refused.walk2_d");
        check("a-b", "refused.a_b");
        let (_, len) = refused_name(&"Ab".repeat(100));
        assert!(len <= REFUSED_NAME_BYTES_MAX);
    }
}
