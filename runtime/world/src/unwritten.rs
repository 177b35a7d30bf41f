//! Unwritten: events that refer to entities, as values, until the entities' ids are known.
//!
//! Events are said while systems run, and an entity gets its id after them. One list for each kind of event that needs
//! it, made when the first such event is said; lists keep their memory, so a steady tick allocates nothing.

use std::any::Any;

use bevy_ecs::prelude::*;
use throng_replication::{EVENT_BYTES_MAX, EventId, ReplicatedEvent, ecs::write_event_in};

/// Writes one event's message and returns its length.
pub(crate) type Write<'a> = dyn Fn(EventId, &mut [u8; EVENT_BYTES_MAX]) -> usize + 'a;

/// Events of all kinds, each kind in a list of its own.
#[derive(Default)]
pub(crate) struct Unwritten(Vec<Box<dyn Kept>>);

impl Unwritten {
    /// Keeps the event that was said in this place.
    pub(crate) fn keep<T: ReplicatedEvent>(&mut self, place: usize, event: &T) {
        let mut lists = self.0.iter();
        let kind = lists.position(|kept| (&**kept as &dyn Any).is::<OfKind<T>>()).unwrap_or_else(|| {
            self.0.push(Box::new(OfKind::<T>(Vec::new())));
            self.0.len() - 1
        });
        let kept: &mut dyn Any = &mut *self.0[kind];
        if let Some(OfKind(events)) = kept.downcast_mut::<OfKind<T>>() {
            events.push((place, T::clone(event)));
        }
    }

    /// Hands `each` the place of every event and what writes it.
    pub(crate) fn write_all(&self, ecs: &World, each: &mut dyn FnMut(usize, &Write<'_>)) {
        self.0.iter().for_each(|kept| kept.write_all(ecs, each));
    }

    pub(crate) fn clear(&mut self) {
        self.0.iter_mut().for_each(|kept| kept.clear());
    }
}

/// A list whose kind is known to itself alone.
trait Kept: Any + Send + Sync {
    fn write_all(&self, ecs: &World, each: &mut dyn FnMut(usize, &Write<'_>));
    fn clear(&mut self);
}

/// Places and events of one kind.
struct OfKind<T>(Vec<(usize, T)>);

impl<T: ReplicatedEvent> Kept for OfKind<T> {
    fn write_all(&self, ecs: &World, each: &mut dyn FnMut(usize, &Write<'_>)) {
        for (place, event) in &self.0 {
            each(*place, &|kind, out| write_event_in(ecs, kind, event, out));
        }
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}
