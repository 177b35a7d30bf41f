//! What a connection counted since it began.

/// Counts of one connection, all since it began. Plain numbers: the caller merges them into its metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionStats {
    /// Packets, and the bytes of their datagrams without UDP and IP headers.
    pub packets_sent: u64,
    pub bytes_sent: u64,
    pub packets_received: u64,
    pub bytes_received: u64,
    /// Our packets by fate.
    pub packets_acked: u64,
    pub packets_lost: u64,
    /// Datagrams that did not open: forged, replayed, or not of this connection.
    pub unopened: u64,
    /// Packets whose number was seen before.
    pub duplicates: u64,
    /// Packets that came after 32 newer ones.
    pub late: u64,
    /// Authentic payloads that are not packets: the peer is broken or hostile.
    pub malformed: u64,
    /// Packets that acknowledged what was never sent: likewise.
    pub acks_of_unsent: u64,
    /// Unreliable messages that made room for newer ones.
    pub unreliable_dropped: u64,
    /// Messages given to `send_packet` that were longer than its room: our own bug.
    pub oversize_dropped: u64,
    /// Fragments of reliable messages that were sent again.
    pub fragments_resent: u64,
    /// Fragments of reliable messages that had arrived before.
    pub fragments_duplicate: u64,
}
