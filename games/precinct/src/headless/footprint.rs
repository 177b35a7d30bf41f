//! The footprint of a world that ships: what its tick asks for beforehand, against what it reads by the sizes of its types.

use bevy_ecs::component::ComponentId;
use throng_replication::{Replicate, ecs::Replicated};

use super::*;
use crate::components::Door;

/// What the processor fetches at once. (bytes)
const LINE_BYTES: usize = 64;

/// What Bevy keeps of a value beside it, and change detection reads: when it last changed. (bytes)
const CHANGE_TICK_BYTES: usize = 4;

/// All values of entities and resources, and when they changed. (bytes)
fn value_bytes(ecs: &World) -> usize {
    let of_component = |id: &ComponentId| match ecs.components().get_info(*id).map_or(0, |info| info.layout().size()) {
        0 => 0,
        size => size + CHANGE_TICK_BYTES,
    };
    let of_archetype = |components: &[ComponentId]| components.iter().map(of_component).sum::<usize>();
    ecs.archetypes().iter().map(|archetype| archetype.len() as usize * of_archetype(archetype.components())).sum()
}

/// What replication keeps of a component of one entity: its encoded value in whole words, its exact value, the length of
/// either, and when it changed. (bytes)
fn column_bytes<T: Replicate>() -> usize {
    T::BYTES_MAX.next_multiple_of(8) + T::EXACT_BYTES_MAX + 2 + CHANGE_TICK_BYTES
}

/// What a hideout of so many NPCs asks for, and what its types say that it reads. (bytes)
fn asked_and_read(npcs: usize) -> (usize, usize) {
    let mut hideout = Headless::hideout(npcs, 4);
    hideout.arrive(1);
    // Looked at once in 64 ticks.
    hideout.ticks(130);
    let replicated = hideout.ecs_mut().query::<&Replicated>().iter(hideout.ecs()).count();
    let columns = [
        column_bytes::<Pose>(),
        column_bytes::<Vitals>(),
        column_bytes::<Character>(),
        column_bytes::<Action>(),
        column_bytes::<Door>(),
    ];
    let read = value_bytes(hideout.ecs()) + replicated * columns.iter().sum::<usize>();
    (hideout.world.footprint_lines() * LINE_BYTES, read)
}

/// Promise: all that a tick reads of an NPC by the sizes of its types is asked for, and little else. Taken between two
/// sizes of a world, so that what it has once (systems, lists' ends) does not count.
#[test]
fn a_hideout_asks_for_what_its_tick_reads_of_each_npc() {
    let ((asked_small, read_small), (asked_large, read_large)) = (asked_and_read(19), asked_and_read(99));
    let ratio = (asked_large - asked_small) as f64 / (read_large - read_small) as f64;
    println!(
        "asked for {asked_small} and {asked_large} B, read {read_small} and {read_large} B: {ratio:.3} of each NPC"
    );
    // 1.12 as it is, since rows of slots and of owners are not counted above; 1.02 without the columns' encoded values.
    assert!((1.05..1.25).contains(&ratio), "{ratio}");
}
