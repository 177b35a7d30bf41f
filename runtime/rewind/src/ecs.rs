//! ECS: bodies as components, recorded by a system.
//!
//! A kind of world adds [`RewindPlugin`] with its own components for where somebody is ([`Stands`]) and for the tick, and
//! gives everybody who can be hit a [`Hittable`]. At the end of each tick all of them are recorded; a [`Plays`] beside
//! it says how they stand. Who dies, or enters a shelter, loses the component; in a phase in which nobody can be hit,
//! [`Inner::is_recording`] is false, and nothing is recorded or sampled.
//!
//! The only room of the crate that knows Bevy. Cost: the query, and what [`History`] takes.

use std::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use bevy_app::{App, Last, Plugin};
use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};
use glam::{Quat, Vec3};
use throng_pack::Pack;

use crate::{
    history::{Body, History, HistoryError, HistorySettings},
    rig::{Playing, Rig},
    shooter::Shooter,
};

/// Says where an entity is, and how it is turned.
pub trait Stands: Component {
    /// Its place (m) and turn, from which its rig is measured.
    fn stands(&self) -> (Vec3, Quat);

    /// Whether it did not move here from where it was a tick before.
    fn jumped(&self) -> bool {
        false
    }
}

/// Says which tick is being run: the world's own number, in which clients name what they saw.
pub trait TellsTick {
    type Source: Resource;

    fn tick(source: &Self::Source) -> u32;
}

/// How a body stands, beside its [`Hittable`].
#[derive(Component, Debug, Clone, Copy, Default, PartialEq)]
pub struct Plays(pub Playing);

/// An entity that can be hit, with the rig of this place among the plugin's. An entity without one is passed by shots.
///
/// What is taken away and inserted again, and what a clone has, begins without a past.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq)]
#[component(on_insert = begin_without_slot, on_discard = give_slot_back)]
pub struct Hittable {
    rig: u16,
    slot: Option<u32>,
}

impl Hittable {
    pub fn new(rig: u16) -> Self {
        Self { rig, slot: None }
    }

    /// The slot that shots name, once a tick has recorded it; [`Inner::entity_of`] is the other way round.
    pub fn slot(&self) -> Option<u32> {
        self.slot
    }
}

/// A player who shoots: what it was shown.
#[derive(Component, Debug, Clone, Copy, Default, PartialEq, Eq, Pack)]
#[pack(name = "throng.shoots")]
pub struct Shoots(pub Shooter);

/// The history of a world, and whose slots it has.
///
/// Behind a pointer: Bevy keeps room for 64 of each resource.
#[derive(Resource)]
pub struct Rewind(Box<Inner>);

/// What a [`Rewind`] points to.
pub struct Inner {
    pub history: History,
    /// False in a phase in which nobody can be hit. Its end needs nothing more: the next tick that is recorded begins
    /// history anew.
    pub is_recording: bool,
    /// By slot.
    entities: Vec<Option<Entity>>,
    free: Vec<u32>,
    /// Bodies that found no slot, in all ticks.
    without_slot: u64,
}

impl Deref for Rewind {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl DerefMut for Rewind {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.0
    }
}

impl Rewind {
    pub fn new(history: History) -> Self {
        let slots = history.slots();
        let entities = vec![None; slots as usize];
        let free = (0..slots).rev().collect();
        Self(Box::new(Inner { history, is_recording: true, entities, free, without_slot: 0 }))
    }
}

impl Inner {
    /// Whose slot it is.
    pub fn entity_of(&self, slot: u32) -> Option<Entity> {
        *self.entities.get(slot as usize)?
    }

    /// Bodies that were not recorded because all slots were taken, counted in each tick.
    pub fn without_slot(&self) -> u64 {
        self.without_slot
    }

    fn take_slot(&mut self, entity: Entity, rig: u16) -> Option<u32> {
        let slot = self.free.pop()?;
        if !self.history.insert(slot, rig) {
            self.free.push(slot);
            return None;
        }
        self.entities[slot as usize] = Some(entity);
        Some(slot)
    }

    fn free_slot(&mut self, slot: u32) {
        if let Some(entity) = self.entities.get_mut(slot as usize)
            && entity.take().is_some()
        {
            self.history.remove(slot);
            self.free.push(slot);
        }
    }
}

/// Records all [`Hittable`]s that [`Stands`] as `S` says, in ticks of `T`, in `Last`.
pub struct RewindPlugin<S, T> {
    settings: HistorySettings,
    rigs: Vec<Arc<Rig>>,
    kind: PhantomData<fn() -> (S, T)>,
}

impl<S, T> RewindPlugin<S, T> {
    /// # Errors
    /// If these settings or rigs make no history: here, and not when a world is made.
    pub fn new(settings: HistorySettings, rigs: Vec<Arc<Rig>>) -> Result<Self, HistoryError> {
        History::new(&settings, rigs.clone())?;
        Ok(Self { settings, rigs, kind: PhantomData })
    }
}

impl<S: Stands, T: TellsTick + 'static> Plugin for RewindPlugin<S, T> {
    fn build(&self, app: &mut App) {
        if let Ok(history) = History::new(&self.settings, self.rigs.clone()) {
            app.insert_resource(Rewind::new(history));
            app.add_systems(Last, record::<S, T>);
        }
    }
}

/// Records a tick: everybody who can be hit, where and how they stand.
pub fn record<S: Stands, T: TellsTick + 'static>(
    tick: Res<T::Source>,
    mut rewind: ResMut<Rewind>,
    mut bodies: Query<(Entity, &mut Hittable, &S, Option<&Plays>)>,
) {
    let rewind = &mut *rewind.0;
    if !rewind.is_recording {
        return;
    }
    rewind.history.begin_tick(T::tick(&tick));
    for (entity, mut hittable, stands, plays) in &mut bodies {
        if hittable.slot.is_none() {
            let slot = rewind.take_slot(entity, hittable.rig);
            rewind.without_slot += u64::from(slot.is_none());
            hittable.slot = slot;
        }
        let Some(slot) = hittable.slot else { continue };
        let (at, rotation) = stands.stands();
        let playing = plays.map_or_else(Playing::default, |plays| plays.0);
        rewind.history.place(slot, &Body { at, rotation, jumped: stands.jumped(), playing });
    }
    rewind.history.end_tick();
}

fn begin_without_slot(mut world: DeferredWorld<'_>, context: HookContext) {
    if let Some(mut inserted) = world.get_mut::<Hittable>(context.entity) {
        inserted.slot = None;
    }
}

fn give_slot_back(mut world: DeferredWorld<'_>, context: HookContext) {
    let slot = world.get::<Hittable>(context.entity).and_then(Hittable::slot);
    if let Some(slot) = slot
        && let Some(mut rewind) = world.get_resource_mut::<Rewind>()
    {
        rewind.free_slot(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view_time::ViewTime;

    #[derive(Component)]
    struct At(f32);

    impl Stands for At {
        fn stands(&self) -> (Vec3, Quat) {
            (Vec3::X * self.0, Quat::IDENTITY)
        }
    }

    #[derive(Resource, Default)]
    struct Ticks(u32);

    struct OfTicks;

    impl TellsTick for OfTicks {
        type Source = Ticks;

        fn tick(source: &Ticks) -> u32 {
            source.0
        }
    }

    fn app(slots: u32) -> App {
        let rig = Arc::new(Rig::upright(0.4, 1.8).unwrap());
        let mut app = App::empty();
        app.add_plugins(RewindPlugin::<At, OfTicks>::new(HistorySettings::new(20, slots), vec![rig]).unwrap());
        app.init_resource::<Ticks>();
        app
    }

    /// One tick, in which those who have a place move by 1 m.
    fn tick(app: &mut App) {
        let world = app.world_mut();
        world.resource_mut::<Ticks>().0 += 1;
        world.query::<&mut At>().iter_mut(world).for_each(|mut at| at.0 += 1.0);
        world.run_system_cached(record::<At, OfTicks>).unwrap();
    }

    fn x_at(app: &App, slot: u32, tick: u32) -> Option<f32> {
        let rewind = app.world().resource::<Rewind>();
        rewind.history.transform_at(slot, ViewTime::of_tick(tick)).map(|(at, _)| at.x)
    }

    #[test]
    fn everybody_with_the_component_is_recorded_and_found_by_slot() {
        let mut app = app(4);
        let entity = app.world_mut().spawn((At(10.0), Hittable::new(0))).id();
        app.world_mut().spawn(At(0.0));
        (0..3).for_each(|_| tick(&mut app));
        let slot = app.world().get::<Hittable>(entity).and_then(Hittable::slot).unwrap();
        assert_eq!([1, 2, 3].map(|tick| x_at(&app, slot, tick)), [Some(11.0), Some(12.0), Some(13.0)]);
        let rewind = app.world().resource::<Rewind>();
        assert_eq!(rewind.entity_of(slot), Some(entity));
        assert_eq!(rewind.history.counts().placed, 3);
    }

    #[test]
    fn who_goes_gives_its_slot_to_another_without_its_past() {
        let mut app = app(1);
        let first = app.world_mut().spawn((At(10.0), Hittable::new(0))).id();
        tick(&mut app);
        let second = app.world_mut().spawn((At(20.0), Hittable::new(0))).id();
        tick(&mut app);
        assert_eq!(app.world().resource::<Rewind>().without_slot(), 1, "there is one slot");
        app.world_mut().despawn(first);
        tick(&mut app);
        assert_eq!(app.world().resource::<Rewind>().entity_of(0), Some(second));
        assert_eq!((x_at(&app, 0, 2), x_at(&app, 0, 3)), (None, Some(22.0)));
    }

    #[test]
    fn a_clone_has_a_slot_of_its_own() {
        let mut app = app(2);
        let first = app.world_mut().spawn((At(1.0), Hittable::new(0))).id();
        tick(&mut app);
        let copy = *app.world().get::<Hittable>(first).unwrap();
        let second = app.world_mut().spawn((At(5.0), copy)).id();
        tick(&mut app);
        let slots = [first, second].map(|entity| app.world().get::<Hittable>(entity).and_then(Hittable::slot));
        assert_eq!(slots, [Some(0), Some(1)]);
        app.world_mut().despawn(second);
        tick(&mut app);
        assert_eq!(x_at(&app, 0, 3), Some(4.0), "the first is still there");
    }

    #[test]
    fn nothing_is_recorded_while_nobody_can_be_hit() {
        let mut app = app(1);
        app.world_mut().spawn((At(0.0), Hittable::new(0)));
        tick(&mut app);
        app.world_mut().resource_mut::<Rewind>().is_recording = false;
        (0..3).for_each(|_| tick(&mut app));
        app.world_mut().resource_mut::<Rewind>().is_recording = true;
        tick(&mut app);
        assert_eq!([1, 2, 4, 5].map(|tick| x_at(&app, 0, tick)), [None, None, None, Some(5.0)]);
        assert_eq!(app.world().resource::<Rewind>().history.counts().placed, 2);
    }
}
