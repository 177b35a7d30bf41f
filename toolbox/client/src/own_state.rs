//! Own state: what the server says of the entity that a player steers, for prediction.

/// A component of the own entity, as the server has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnState<'a, T> {
    /// As it came: rounded as the component declares.
    pub state: &'a T,
    /// The newest tick for which it is surely true.
    pub tick: u32,
    /// The newest input that this tick had taken; if it had taken none of this stay, the last one before the stay, and 0
    /// if there was none.
    pub input: u16,
}
