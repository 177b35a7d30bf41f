//! Message kinds: the first bytes by which both sides tell the messages of replication apart.
//!
//! An event's is with its layout (`event`). What follows these bytes is drawn where it is written: `view::snapshot` and
//! `view::audit_sample`.

/// First byte of a snapshot message.
pub const SNAPSHOT_KIND: u8 = 2;

/// Kind, epoch, tick, input number.
pub const SNAPSHOT_HEADER_BYTES: usize = 8;

/// First byte of a snapshot of a world whose time is slowed; its header has one byte more, the time factor.
pub const SLOWED_SNAPSHOT_KIND: u8 = 7;

/// First byte of an audit sample message.
pub const AUDIT_SAMPLE_KIND: u8 = 3;
