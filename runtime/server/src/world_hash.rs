//! World hash: a world's state at a tick as one number, by which two runs are compared.

use throng_world::ids::WorldId;

/// A world's state at the end of a tick, as one number: equal for equal histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorldHash {
    pub world: WorldId,
    pub tick: u32,
    pub hash: u64,
}
