//! Price: how much work a message of a client means for its world.
//!
//! A world reads no clock, since the same mail must give the same world. So what one client may cost it is bounded by
//! price: the kind of world says what each message costs, in units of work of which an ordinary input is one, and the
//! price is charged to the client's allowance of messages ([`allowance`](crate::allowance)). What is above it is refused
//! before a system sees it, and a client that goes on is dismissed. Then no client has its world do more than
//! `client_messages_per_s_max` units of work a second, whatever it sends.
//!
//! A price is a bound, and not a measurement: what a message costs at worst, rounded up. It follows from the bytes
//! alone, which nobody has looked into yet.
//!
//! Prices are asked for where datagrams are opened, on any worker: a few nanoseconds a message.

use crate::inbox::MessageKind;

/// What a message costs its world, in units of work: 1 for an ordinary input. 0 counts as 1, since to open a message
/// costs something too.
///
/// A plain function that holds nothing and waits for nothing, as workers call it while their world waits for them. Any
/// bytes may come, so it must not panic.
pub type MessagePrice = fn(MessageKind, &[u8]) -> u32;

/// Every message costs the same.
pub(crate) fn ordinary(_: MessageKind, _: &[u8]) -> u32 {
    1
}
