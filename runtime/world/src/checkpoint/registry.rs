//! Registry: what a kind of world keeps in its checkpoints. One per kind, for all of its worlds.

use std::{any::type_name, marker::PhantomData};

use bevy_ecs::{
    component::ComponentId,
    prelude::*,
    system::{RunSystemError, RunSystemOnce},
    world::{EntityRef, World},
};
use throng_pack::{HasSchema, PackError, Schema, envelope::Heading, pack_body};

use super::error::LoadError;

/// A component or a resource that is kept.
pub(crate) trait Kept: Send + Sync {
    /// Its name in Rust.
    fn name(&self) -> &'static str;
    /// Of what is packed.
    fn schema(&self) -> &'static Schema;
    fn write_heading(&self, out: &mut Vec<u8>);
    /// `None` if no world of this process has one.
    fn component_id(&self, world: &World) -> Option<ComponentId>;
    fn register(&self, world: &mut World) -> ComponentId;
    /// Appends the value of an entity that has one.
    fn pack(&self, entity: EntityRef<'_>, out: &mut Vec<u8>) -> Result<(), PackError>;
    fn unpack(&self, heading: &Heading, value: &[u8], entity: &mut EntityWorldMut<'_>) -> Result<(), LoadError>;
}

/// While an entity is being put together by a load.
#[derive(Component)]
pub(crate) struct Loading;

/// What a kind keeps, and what it knows not to be kept.
#[derive(Default)]
pub(crate) struct Registry {
    pub kept: Vec<Box<dyn Kept>>,
    /// How many of `kept` are the engine's.
    pub engine_count: usize,
    /// Names of types that are not state.
    pub transient: Vec<&'static str>,
    /// Names under which older builds packed what is not kept any more.
    pub dropped: Vec<&'static str>,
    pub after_load: Vec<AfterLoad>,
}

/// Something to be done after a load; says what failed.
type AfterLoad = Box<dyn Fn(&mut World) -> Result<(), LoadError> + Send + Sync>;

impl Registry {
    /// Whether the game has registered anything.
    pub fn is_in_use(&self) -> bool {
        self.kept.len() > self.engine_count
    }

    pub fn add<T: Component + HasSchema>(&mut self) {
        self.push(Box::new(Itself::<T>(PhantomData)));
    }

    pub fn add_as<T: Component, P: HasSchema + 'static>(&mut self, save: fn(&T) -> P, load: fn(P) -> T) {
        let put = |load: &fn(P) -> T, saved, entity: &mut EntityWorldMut<'_>| {
            entity.insert(load(saved));
            Ok(())
        };
        self.push(Box::new(As { save, load, put }));
    }

    pub fn add_part<T: Component<Mutability = bevy_ecs::component::Mutable>, P: HasSchema + 'static>(
        &mut self,
        save: fn(&T) -> P,
        load: fn(&mut T, P),
    ) {
        // The rest is as the world was built.
        let put = |load: &fn(&mut T, P), saved, entity: &mut EntityWorldMut<'_>| {
            let mut whole = entity.get_mut::<T>().ok_or(LoadError::NoResource { name: type_name::<T>() })?;
            load(&mut whole, saved);
            Ok(())
        };
        self.push(Box::new(As { save, load, put }));
    }

    fn push(&mut self, kept: Box<dyn Kept>) {
        // Plugins may share a component.
        if self.kept.iter().all(|known| known.name() != kept.name()) {
            let name = kept.name();
            let same = self.kept.iter().find(|known| known.schema().id == kept.schema().id);
            assert!(same.is_none(), "`{name}` and `{}` are packed under one name", same.map_or("", |kept| kept.name()));
            self.kept.push(kept);
        }
    }

    pub fn transient<T: 'static>(&mut self) {
        self.transient.push(type_name::<T>());
    }

    pub fn after_load<M>(&mut self, system: impl IntoSystem<(), (), M> + Clone + Send + Sync + 'static) {
        self.after_load.push(Box::new(move |world| {
            match world.run_system_once(system.clone()) {
                // One that skips itself has nothing to do.
                Ok(()) | Err(RunSystemError::Skipped(_)) => Ok(()),
                Err(RunSystemError::Failed(error)) => Err(LoadError::AfterLoad { error: error.to_string() }),
            }
        }));
    }
}

/// A type that is packed as it is.
struct Itself<T>(PhantomData<fn() -> T>);

impl<T: Component + HasSchema> Kept for Itself<T> {
    fn name(&self) -> &'static str {
        type_name::<T>()
    }

    fn schema(&self) -> &'static Schema {
        T::SCHEMA
    }

    fn write_heading(&self, out: &mut Vec<u8>) {
        Heading::write::<T>(out);
    }

    fn component_id(&self, world: &World) -> Option<ComponentId> {
        world.components().component_id::<T>()
    }

    fn register(&self, world: &mut World) -> ComponentId {
        world.register_component::<T>()
    }

    fn pack(&self, entity: EntityRef<'_>, out: &mut Vec<u8>) -> Result<(), PackError> {
        entity.get::<T>().map_or(Ok(()), |value| pack_body(value, out))
    }

    fn unpack(&self, heading: &Heading, value: &[u8], entity: &mut EntityWorldMut<'_>) -> Result<(), LoadError> {
        entity.insert(heading.unpack::<T>(value)?);
        Ok(())
    }
}

/// A type that is packed as another one; `load` is a function of the game's, and `put` does with an entity what it says.
struct As<T, P, L> {
    save: fn(&T) -> P,
    load: L,
    put: fn(&L, P, &mut EntityWorldMut<'_>) -> Result<(), LoadError>,
}

impl<T: Component, P: HasSchema + 'static, L: Send + Sync> Kept for As<T, P, L> {
    fn name(&self) -> &'static str {
        type_name::<T>()
    }

    fn schema(&self) -> &'static Schema {
        P::SCHEMA
    }

    fn write_heading(&self, out: &mut Vec<u8>) {
        Heading::write::<P>(out);
    }

    fn component_id(&self, world: &World) -> Option<ComponentId> {
        world.components().component_id::<T>()
    }

    fn register(&self, world: &mut World) -> ComponentId {
        world.register_component::<T>()
    }

    fn pack(&self, entity: EntityRef<'_>, out: &mut Vec<u8>) -> Result<(), PackError> {
        entity.get::<T>().map_or(Ok(()), |value| pack_body(&(self.save)(value), out))
    }

    fn unpack(&self, heading: &Heading, value: &[u8], entity: &mut EntityWorldMut<'_>) -> Result<(), LoadError> {
        (self.put)(&self.load, heading.unpack::<P>(value)?, entity)
    }
}
