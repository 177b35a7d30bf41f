//! Kept state: how a kind of world says what its checkpoints hold (`checkpoint`).

use bevy_ecs::{component::Mutable, prelude::*};
use throng_pack::HasSchema;

use crate::world_builder::WorldBuilder;

impl WorldBuilder {
    /// Keeps `T`, a component or a resource, in checkpoints of the world: what is not kept is gone when a world is loaded
    /// after a panic or a restart. `T` derives `Pack`; its versions are read as those of any packed value.
    ///
    /// A kind that registers nothing has no checkpoints.
    ///
    /// # Panics
    /// If another type is packed under the same name.
    pub fn checkpoint<T: Component + HasSchema>(&mut self) -> &mut Self {
        self.checkpoints.add::<T>();
        self
    }

    /// Keeps `T` as a `P`: a type of another crate, or one that holds what cannot be packed.
    ///
    /// # Panics
    /// As [`Self::checkpoint`].
    pub fn checkpoint_as<T: Component, P: HasSchema + 'static>(
        &mut self,
        save: fn(&T) -> P,
        load: fn(P) -> T,
    ) -> &mut Self {
        self.checkpoints.add_as(save, load);
        self
    }

    /// Keeps a part of `T`, a resource that is there when the world has been built: the rest stays as it was built.
    ///
    /// # Panics
    /// As [`Self::checkpoint`].
    pub fn checkpoint_part<T: Component<Mutability = Mutable>, P: HasSchema + 'static>(
        &mut self,
        save: fn(&T) -> P,
        load: fn(&mut T, P),
    ) -> &mut Self {
        self.checkpoints.add_part(save, load);
        self
    }

    /// Says that `T`, a component or a resource, is no state: it is as the world was built, follows from what is kept and
    /// is made again by a system of [`Self::after_load`], or lasts no longer than a tick. For those who look for what a
    /// kind forgets ([`TestWorld::forgotten`](crate::testing::TestWorld::forgotten)).
    pub fn transient<T: Component>(&mut self) -> &mut Self {
        self.checkpoints.transient::<T>();
        self
    }

    /// Says that what an older build kept under this name (`#[pack(name = "..")]`) is not kept any more: its values are
    /// dropped when a world is loaded. Otherwise a checkpoint that has any is refused, since what a build does not know it would
    /// lose in silence. An entity that had nothing else is not there then.
    pub fn checkpoint_dropped(&mut self, name: &'static str) -> &mut Self {
        self.checkpoints.dropped.push(name);
        self
    }

    /// Runs a system after each load of a checkpoint, before the first tick: it makes what follows from the kept state.
    /// Whoever's player was left out is among the [`Departures`](crate::tick_resources::Departures) that it sees. A system
    /// that fails fails the load.
    pub fn after_load<M>(&mut self, system: impl IntoSystem<(), (), M> + Clone + Send + Sync + 'static) -> &mut Self {
        self.checkpoints.after_load(system);
        self
    }
}
