//! What several unit tests of the host share.

use throng_world::prelude::*;

/// A world in which nothing happens.
pub(crate) struct Empty;

impl WorldKind for Empty {
    fn name(&self) -> &str {
        "empty"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, _: &mut WorldBuilder) {}
}
