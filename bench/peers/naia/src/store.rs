//! Store: the ECS that naia reads from and writes to: entities are indices, components lie in a short list each.
//!
//! What naia asks for ownership by clients is not here: nothing of it happens in this bench.

use naia_shared::{
    ComponentFieldUpdate, ComponentKind, ComponentKinds, ComponentUpdate, EntityAndGlobalEntityConverter,
    GlobalWorldManagerType, LocalEntityAndGlobalEntityConverter, ReplicaDynMut, ReplicaDynMutWrapper, ReplicaDynRef,
    ReplicaDynRefWrapper, ReplicaMutTrait, ReplicaMutWrapper, ReplicaRefTrait, ReplicaRefWrapper, Replicate,
    ReplicatedComponent, SerdeErr, WorldMutType, WorldRefType,
};

type Components = Vec<(ComponentKind, Box<dyn Replicate>)>;

/// All entities; `None` where one was.
#[derive(Default)]
pub struct Store {
    entities: Vec<Option<Components>>,
    free: Vec<u32>,
}

pub struct Reading<'a>(pub &'a Store);
pub struct Writing<'a>(pub &'a mut Store);

impl Store {
    fn components(&self, entity: &u32) -> &[(ComponentKind, Box<dyn Replicate>)] {
        self.entities.get(*entity as usize).and_then(Option::as_deref).unwrap_or(&[])
    }

    fn dynamic(&self, entity: &u32, kind: &ComponentKind) -> Option<&dyn Replicate> {
        let found = self.components(entity).iter().find(|(own, _)| own == kind);
        found.map(|(_, component)| component.as_ref())
    }

    fn dynamic_mut(&mut self, entity: &u32, kind: &ComponentKind) -> Option<&mut Box<dyn Replicate>> {
        let components = self.entities.get_mut(*entity as usize)?.as_mut()?;
        components.iter_mut().find(|(own, _)| own == kind).map(|(_, component)| component)
    }

    pub fn get<R: ReplicatedComponent>(&self, entity: u32) -> Option<&R> {
        self.dynamic(&entity, &ComponentKind::of::<R>())?.to_any().downcast_ref()
    }

    pub fn get_mut<R: ReplicatedComponent>(&mut self, entity: u32) -> Option<&mut R> {
        self.dynamic_mut(&entity, &ComponentKind::of::<R>())?.to_any_mut().downcast_mut()
    }

    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        let present = self.entities.iter().enumerate().filter(|(_, entity)| entity.is_some());
        present.map(|(index, _)| index as u32)
    }
}

/// A component by reference, as naia's wrappers want it.
struct ByRef<'a, R>(&'a R);

impl<R: Replicate> ReplicaRefTrait<R> for ByRef<'_, R> {
    fn to_ref(&self) -> &R {
        self.0
    }
}

struct ByMut<'a, R>(&'a mut R);

impl<R: Replicate> ReplicaRefTrait<R> for ByMut<'_, R> {
    fn to_ref(&self) -> &R {
        self.0
    }
}

impl<R: Replicate> ReplicaMutTrait<R> for ByMut<'_, R> {
    fn to_mut(&mut self) -> &mut R {
        self.0
    }
}

macro_rules! reading {
    ($handle:ident) => {
        impl WorldRefType<u32> for $handle<'_> {
            fn has_entity(&self, entity: &u32) -> bool {
                self.0.entities.get(*entity as usize).is_some_and(Option::is_some)
            }

            fn entities(&self) -> Vec<u32> {
                self.0.ids().collect()
            }

            fn has_component<R: ReplicatedComponent>(&self, entity: &u32) -> bool {
                self.has_component_of_kind(entity, &ComponentKind::of::<R>())
            }

            fn has_component_of_kind(&self, entity: &u32, kind: &ComponentKind) -> bool {
                self.0.dynamic(entity, kind).is_some()
            }

            fn component<'a, R: ReplicatedComponent>(&'a self, entity: &u32) -> Option<ReplicaRefWrapper<'a, R>> {
                self.0.get(*entity).map(|component| ReplicaRefWrapper::new(ByRef(component)))
            }

            fn component_of_kind<'a>(&'a self, entity: &u32, kind: &ComponentKind) -> Option<ReplicaDynRefWrapper<'a>> {
                self.0.dynamic(entity, kind).map(|component| ReplicaDynRefWrapper::new(ReplicaDynRef::new(component)))
            }
        }
    };
}
reading!(Reading);
reading!(Writing);

impl WorldMutType<u32> for Writing<'_> {
    fn spawn_entity(&mut self) -> u32 {
        let store = &mut *self.0;
        if let Some(entity) = store.free.pop() {
            store.entities[entity as usize] = Some(Vec::new());
            return entity;
        }
        store.entities.push(Some(Vec::new()));
        store.entities.len() as u32 - 1
    }

    fn local_duplicate_entity(&mut self, entity: &u32) -> u32 {
        let copy = self.spawn_entity();
        self.local_duplicate_components(&copy, entity);
        copy
    }

    fn local_duplicate_components(&mut self, to: &u32, from: &u32) {
        let copies: Components =
            self.0.components(from).iter().map(|(kind, component)| (*kind, component.copy_to_box())).collect();
        self.0.entities[*to as usize] = Some(copies);
    }

    fn despawn_entity(&mut self, entity: &u32) {
        if self.0.entities[*entity as usize].take().is_some() {
            self.0.free.push(*entity);
        }
    }

    fn component_kinds(&mut self, entity: &u32) -> Vec<ComponentKind> {
        self.0.components(entity).iter().map(|(kind, _)| *kind).collect()
    }

    fn component_mut<'a, R: ReplicatedComponent>(&'a mut self, entity: &u32) -> Option<ReplicaMutWrapper<'a, R>> {
        self.0.get_mut(*entity).map(|component| ReplicaMutWrapper::new(ByMut(component)))
    }

    fn component_mut_of_kind<'a>(&'a mut self, entity: &u32, kind: &ComponentKind) -> Option<ReplicaDynMutWrapper<'a>> {
        let component = self.0.dynamic_mut(entity, kind)?;
        Some(ReplicaDynMutWrapper::new(ReplicaDynMut::new(component.as_mut())))
    }

    fn component_apply_update(
        &mut self,
        converter: &dyn LocalEntityAndGlobalEntityConverter,
        entity: &u32,
        kind: &ComponentKind,
        update: ComponentUpdate,
    ) -> Result<(), SerdeErr> {
        self.0.dynamic_mut(entity, kind).map_or(Ok(()), |component| component.read_apply_update(converter, update))
    }

    fn component_apply_field_update(
        &mut self,
        converter: &dyn LocalEntityAndGlobalEntityConverter,
        entity: &u32,
        kind: &ComponentKind,
        update: ComponentFieldUpdate,
    ) -> Result<(), SerdeErr> {
        let component = self.0.dynamic_mut(entity, kind);
        component.map_or(Ok(()), |component| component.read_apply_field_update(converter, update))
    }

    fn mirror_entities(&mut self, to: &u32, from: &u32) {
        for kind in self.component_kinds(from) {
            self.mirror_components(to, from, &kind);
        }
    }

    fn mirror_components(&mut self, to: &u32, from: &u32, kind: &ComponentKind) {
        let Some(copy) = self.0.dynamic(from, kind).map(Replicate::copy_to_box) else { return };
        if let Some(component) = self.0.dynamic_mut(to, kind) {
            component.mirror(copy.as_ref());
        }
    }

    fn insert_component<R: ReplicatedComponent>(&mut self, entity: &u32, component: R) {
        self.insert_boxed_component(entity, Box::new(component));
    }

    fn insert_boxed_component(&mut self, entity: &u32, component: Box<dyn Replicate>) {
        let kind = component.kind();
        self.remove_component_of_kind(entity, &kind);
        if let Some(Some(components)) = self.0.entities.get_mut(*entity as usize) {
            components.push((kind, component));
        }
    }

    fn remove_component<R: ReplicatedComponent>(&mut self, entity: &u32) -> Option<R> {
        let removed = self.remove_component_of_kind(entity, &ComponentKind::of::<R>())?;
        removed.to_boxed_any().downcast().ok().map(|component| *component)
    }

    fn remove_component_of_kind(&mut self, entity: &u32, kind: &ComponentKind) -> Option<Box<dyn Replicate>> {
        let components = self.0.entities.get_mut(*entity as usize)?.as_mut()?;
        let index = components.iter().position(|(own, _)| own == kind)?;
        Some(components.swap_remove(index).1)
    }

    fn entity_publish(
        &mut self,
        _kinds: &ComponentKinds,
        _converter: &dyn EntityAndGlobalEntityConverter<u32>,
        _manager: &dyn GlobalWorldManagerType,
        _entity: &u32,
    ) {
    }

    fn component_publish(
        &mut self,
        _kinds: &ComponentKinds,
        _converter: &dyn EntityAndGlobalEntityConverter<u32>,
        _manager: &dyn GlobalWorldManagerType,
        _entity: &u32,
        _kind: &ComponentKind,
    ) {
    }

    fn entity_unpublish(&mut self, _entity: &u32) {}

    fn component_unpublish(&mut self, _entity: &u32, _kind: &ComponentKind) {}

    fn entity_enable_delegation(
        &mut self,
        _kinds: &ComponentKinds,
        _converter: &dyn EntityAndGlobalEntityConverter<u32>,
        _manager: &dyn GlobalWorldManagerType,
        _entity: &u32,
    ) {
    }

    fn component_enable_delegation(
        &mut self,
        _kinds: &ComponentKinds,
        _converter: &dyn EntityAndGlobalEntityConverter<u32>,
        _manager: &dyn GlobalWorldManagerType,
        _entity: &u32,
        _kind: &ComponentKind,
    ) {
    }

    fn entity_disable_delegation(&mut self, _entity: &u32) {}

    fn component_disable_delegation(&mut self, _entity: &u32, _kind: &ComponentKind) {}
}
