//! Swinging: doors are hung into a new world, shut when their time has come, and told to clients.
//!
//! What a closed door stops, and who opens one, is in [`crate::doors`]. Runs in ticks in which a door is open or has
//! just been turned, and costs nothing in others.

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_replication::ecs::Replicated;

use crate::{
    arena::{Arena, ArenaParts},
    components::{Door, Pose},
    scene::Scene,
};

/// Hangs a door into every doorway of a world's level. Its scene and arena must be in it already.
pub fn hang(world: &mut World) {
    let level = world.resource::<Scene>().level.clone();
    for doorway in &level.doorways {
        let pose = Pose::new(doorway.middle(), doorway.along.x.atan2(doorway.along.z));
        let entity = world.spawn((Replicated::default(), pose, Door { open: false })).id();
        world.resource_mut::<Arena>().doors.hang(entity, *doorway);
    }
}

/// Whether there is anything for [`swing`] to do.
pub fn some_are_open(arena: Res<Arena>) -> bool {
    !arena.doors.are_at_rest()
}

/// Shuts doors, and tells clients of those that were opened or shut.
pub fn swing(tick: Res<TickInfo>, mut arena: ResMut<Arena>, mut shown: Query<&mut Door>) {
    let ArenaParts { doors, actors, .. } = &mut **arena;
    doors.shut(&tick, actors.places());
    doors.take_turned(|entity, open| {
        if let Ok(mut door) = shown.get_mut(entity) {
            door.set_if_neq(Door { open });
        }
    });
    throng::gauge!("doors_open", doors.open_count());
}
