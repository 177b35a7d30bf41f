//! Update of messages: once in a tick, those of two ticks ago are dropped.
//!
//! Does what Bevy's `message_update_system` does in a world that updates in every tick. That one takes the registry out of
//! the world and puts it back, which moves an entity to another archetype and back: in a small world that is more than
//! all else that a tick does with messages. Here its content changes hands, and the resource stays.

use bevy_ecs::{change_detection::Tick, message::MessageRegistry, prelude::*};

pub(crate) fn update_messages(world: &mut World, mut last_run: Local<Tick>) {
    let Some(mut resource) = world.get_resource_mut::<MessageRegistry>() else { return };
    let mut registry = std::mem::take(&mut *resource);
    registry.run_updates(world, *last_run);
    if let Some(mut resource) = world.get_resource_mut::<MessageRegistry>() {
        *resource = registry;
    }
    *last_run = world.change_tick();
}
