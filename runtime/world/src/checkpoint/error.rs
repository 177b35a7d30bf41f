//! Errors: why there is no checkpoint, or why one cannot be loaded.

use thiserror::Error;
use throng_pack::{Fault, PackError};

/// Why a world gave no checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckpointError {
    #[error("worlds of kind `{kind}` register nothing for checkpoints: see `WorldBuilder::checkpoint`")]
    NothingRegistered { kind: String },
    /// A component or a resource breaks the limits of its type.
    #[error("a value cannot be kept: {0}")]
    Value(#[from] PackError),
    #[error("the checkpoint would take more than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("the state of the world's random source cannot be told")]
    Random,
}

/// Why a world could not be made from a checkpoint. It is not to be ticked then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    #[error("these bytes are no checkpoint")]
    NoCheckpoint,
    #[error("the checkpoint has format {got}, and this program reads {known}")]
    UnknownVersion { got: u16, known: u16 },
    #[error("the checkpoint was not written to its end, or bytes follow it")]
    WrongLength,
    #[error("the checkpoint is damaged")]
    Damaged,
    #[error("the checkpoint is of a world of kind `{got}`, this one is of kind `{kind}`")]
    OtherKind { got: String, kind: String },
    #[error("the checkpoint is of a world at {got} Hz, this one has {rate}")]
    OtherRate { got: u16, rate: u16 },
    #[error("only a world that was just built takes a checkpoint")]
    HasTicked,
    /// The game has lost a type, or calls it otherwise.
    #[error(
        "the checkpoint holds values of `{name}` (version {version}), and this build's kind of world keeps no such type: start the \
         build that wrote it, or say that those are to be dropped (`WorldBuilder::checkpoint_dropped`)"
    )]
    UnknownType { name: String, version: u16 },
    /// A newer build wrote it.
    #[error(
        "the checkpoint holds values of `{name}` of version {got}, and this build knows version {known}: start the build that wrote it"
    )]
    NewerType { name: &'static str, got: u16, known: u16 },
    #[error("a value in the checkpoint: {0}")]
    Value(#[from] PackError),
    #[error("the checkpoint: {0}")]
    Bytes(#[from] Fault),
    #[error("the resource `{name}` is to be changed by the checkpoint, and the world has none")]
    NoResource { name: &'static str },
    #[error("the checkpoint names an entity that cannot be: {bits:016x}")]
    Entity { bits: u64 },
    #[error("the checkpoint's entities contradict each other, or those that the world was built with")]
    Entities,
    #[error("the checkpoint's ids of replicated entities contradict each other, or are too many")]
    ReplicatedIds,
    #[error("a system that is to run after a load failed: {error}")]
    AfterLoad { error: String },
}
