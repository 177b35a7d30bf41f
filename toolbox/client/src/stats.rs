//! What a client counts.

/// Totals since the client was made. Plain data, copied out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientStats {
    /// Snapshots applied to the replicas.
    pub snapshots: u64,
    /// Snapshots and audit samples of a world that was left already: normal for one round trip after a travel.
    pub old_epoch_messages: u64,
    /// Messages that were authentic and yet unreadable, or that a server never sends. Not zero: one
    /// side has a bug, or they were built from different schemas.
    pub protocol_errors: u64,
    /// Journeys that came to nothing: the server could not take us where we were sent.
    pub travels_refused: u64,
    /// Datagrams that were not taken: strangers', repeated, or late ones of the handshake.
    pub datagrams_refused: u64,
    /// Game messages dropped because the game did not read.
    pub messages_dropped: u64,
    /// Inputs handed to the connection.
    pub inputs_sent: u64,
    /// Inputs that no snapshot answered: their world was left, or the answer took too long.
    pub inputs_unanswered: u64,
    /// How often the clock that follows the server's was half a second off or more, and began anew.
    pub clock_jumps: u64,
    /// Samples of `input_to_update` that nobody took.
    pub samples_lost: u64,
    /// Component values that were applied, as the replicas count them.
    pub entity_updates: u64,
    /// Values checked against the server's exact state.
    pub state_checks: u64,
    /// Of these: wrong, missing, or there when they should be gone.
    pub state_errors: u64,
    /// Checks left undecided because a newer value had come.
    pub state_checks_superseded: u64,
}
