//! Table resource: a resource that takes as much memory as it needs, where each of a thousand worlds has one.
//!
//! Bevy 0.20 keeps what derives `Resource` in a sparse set with room for 64 values from the start, of which a resource
//! uses one: 1 KB for nothing, and 64 times the size of the value. In a table there is room for four. A look-up costs
//! the same: either is found by the resource's entity.

/// Makes types resources that are kept in a table, in place of `#[derive(Resource)]`. For those of every world.
///
/// ```
/// use bevy_ecs::prelude::*;
///
/// struct Score(u32);
/// throng_replication::table_resource!(Score);
///
/// let mut world = World::new();
/// world.insert_resource(Score(0));
/// world.resource_mut::<Score>().0 += 1;
/// assert_eq!(world.resource::<Score>().0, 1);
/// ```
#[macro_export]
macro_rules! table_resource {
    ($($resource:ty),+ $(,)?) => {$(
        impl $crate::ecs::bevy::Component for $resource {
            const STORAGE_TYPE: $crate::ecs::bevy::StorageType = $crate::ecs::bevy::StorageType::Table;
            type Mutability = $crate::ecs::bevy::Mutable;

            fn register_required_components(
                id: $crate::ecs::bevy::ComponentId,
                required: &mut $crate::ecs::bevy::RequiredComponentsRegistrator,
            ) {
                required.register_required(move || $crate::ecs::bevy::IsResource::new(id));
            }
        }

        impl $crate::ecs::bevy::Resource for $resource {}
    )+};
}

#[cfg(test)]
mod tests {
    use bevy_ecs::prelude::*;

    struct Counter(u32);
    crate::table_resource!(Counter);

    fn count(mut counter: ResMut<Counter>) {
        counter.0 += 1;
    }

    #[test]
    fn it_is_a_resource_as_any_other() {
        let mut world = World::new();
        world.insert_resource(Counter(0));
        world.run_system_cached(count).unwrap();
        assert!(world.is_resource_changed::<Counter>());
        world.insert_resource(Counter(7));
        assert_eq!(world.resource::<Counter>().0, 7);
        assert_eq!(world.remove_resource::<Counter>().map(|counter| counter.0), Some(7));
        assert!(world.get_resource::<Counter>().is_none());
    }

    #[test]
    fn it_is_in_no_sparse_set() {
        let mut world = World::new();
        let before = world.storages().sparse_sets.len();
        world.insert_resource(Counter(0));
        assert_eq!(world.storages().sparse_sets.len(), before);
    }
}
