//! The reliable channel: every message once, in order, or the connection ends.
//!
//! A message is cut into fragments when it is queued, and fragments are numbered through all messages. So there is
//! one sequence to acknowledge, repeat, and put in order, and a small message is simply one fragment.
//!
//! ```text
//!   messages    |    A    |        B        | C |
//!   fragments   | 0 | 1 > | 2 | 3 | 4 | 5 > | 6>|     > ends its message
//!                 ^ first fragment of the oldest message not yet acked whole: the window starts here
//! ```
//!
//! The window of [`WINDOW_FRAGMENTS`] is a promise of both sides. The receiver's starts at the first fragment of
//! the message it waits for; everything the sender knows to be acked whole is before that, so the sender's
//! window never passes the receiver's. A fragment beyond it is an attempt to make us remember more than was
//! agreed, and ends the connection.
//!
//! Fragments have no timers: a fragment is repeated when the packet it rode on is lost, so each rides on one
//! packet at a time and is sent no oftener than the path needs.

mod patience;
mod receiver;
mod sender;

pub use receiver::{FragmentRefusal, ReliableReceiver};
pub use sender::{ReliableSender, SendError};

use super::blocks::blocks_for;
use super::packet::FRAGMENT_BYTES_MAX;
use throng_platform::time::Nanos;

/// The longest reliable message (bytes).
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Fragments between the oldest message that is not whole and the newest fragment sent.
pub const WINDOW_FRAGMENTS: usize = 256;
/// Blocks that queued messages may occupy: 112 KiB, one message of the largest size and most of a second.
/// Beyond that [`SendError::Full`].
pub const SEND_BLOCKS_MAX: usize = 896;
/// Blocks that the receiving window may occupy.
pub const RECEIVE_BLOCKS_MAX: usize = WINDOW_FRAGMENTS * blocks_for(FRAGMENT_BYTES_MAX);
/// How long the channel may stand still while the other side is heard: a peer that acks no fragment, or that
/// leaves a message unfinished, is not given memory for longer. Two seconds more than a blackout that a
/// player survives.
pub const STALL_MAX: Nanos = Nanos::from_secs(12);

// The largest message fits the window, and the queue.
const _: () = assert!(MESSAGE_BYTES_MAX.div_ceil(FRAGMENT_BYTES_MAX) <= WINDOW_FRAGMENTS);
const _: () =
    assert!(MESSAGE_BYTES_MAX.div_ceil(FRAGMENT_BYTES_MAX) * blocks_for(FRAGMENT_BYTES_MAX) <= SEND_BLOCKS_MAX);
