//! Fault: deliberately broken replication, with which tests show that clients notice.

/// Test switch: a deliberately broken encoder, to show that broken copies do not go unseen.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Encoded values go out with a wrong bit.
    CorruptEncoding,
    /// Despawns are counted as sent and are not.
    LoseDespawns,
    /// Despawns go out tick after tick, although they arrived.
    RepeatDespawns,
    /// Updates of every fourth slot are counted as sent and are not.
    SkipUpdates,
    /// Changes of every fourth slot are not seen at all.
    MissChanges,
    /// Every fourth slot is overlooked when interest is worked out.
    MissInterest,
}
