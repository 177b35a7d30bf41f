//! Checkpoints of worlds, by whoever can write where they are kept, checksums included.
//!
//! Promise: one is refused with a reason, or makes a world that ticks, holds together, and can be saved and loaded again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::world::checkpoint::{CheckpointHeading, PlayerEntities};
use throng_fuzz::kept;

fuzz_target!(|bytes: &[u8]| {
    // As it is: nothing that is not as it was written gets further than its heading.
    let _ = kept::world().load(bytes, PlayerEntities::Stay);
    let Some((first, body)) = bytes.split_first() else { return };
    let players = if first & 1 == 0 { PlayerEntities::Stay } else { PlayerEntities::LeftOut };
    let sealed = CheckpointHeading { players: PlayerEntities::Stay }.seal(body);
    let mut world = kept::world();
    if world.load(&sealed, players).is_err() {
        return;
    }
    world.ticks(3);
    let again = world.checkpoint(PlayerEntities::Stay).expect("all that was read can be written");
    let mut loaded = kept::world();
    loaded.load(&again, PlayerEntities::Stay).expect("what a world writes it reads");
    assert!(loaded.checkpoint(PlayerEntities::Stay).expect("a checkpoint") == again);
});
