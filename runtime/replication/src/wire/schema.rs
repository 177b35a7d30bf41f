//! Schema: which components are replicated, which events there are, and in which order they stand on the wire.
//!
//! Server and client build the same schema from the same list; `hash` tells whether they did. It is made
//! once at start, shared behind an `Arc`, and never changes.

use std::{any::TypeId, sync::Arc};

use crate::{
    replicas::replica_column::{ReplicaColumn, ReplicaColumnOf},
    wire::{
        event::{EventId, EventKind, ReplicatedEvent},
        quantise::mix,
        replicate::Replicate,
    },
};

/// Component kinds in a schema. Masks on the wire are one or two bytes.
pub const KINDS_MAX: usize = 16;

/// Event kinds in a schema. Far below the byte that an event's kind is on the wire.
pub const EVENTS_MAX: usize = 64;

/// All quantised components of one entity together, and all exact ones. (bytes)
///
/// A spawn carries every component at once and must fit into one packet beside acks and headers; so whatever
/// a game can create can be sent, and nobody is ever thrown out for looking at it.
pub const ENTITY_BYTES_MAX: usize = 1000;

/// A component kind's place in the schema: its bit in masks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentIndex(pub(crate) u8);

impl ComponentIndex {
    pub fn index(self) -> usize {
        self.0.into()
    }
}

pub(crate) struct Kind {
    type_id: TypeId,
    pub name: &'static str,
    layout: u64,
    pub bytes_max: usize,
    pub exact_bytes_max: usize,
    pub new_replica_column: fn() -> Box<dyn ReplicaColumn>,
}

/// The replicated component kinds and the event kinds of a game, in wire order.
pub struct Schema {
    kinds: Vec<Kind>,
    events: Vec<EventKind>,
    hash: u64,
    /// Most bytes of the encoded values of a mask, by its low and its high byte.
    values_bytes_max: [[u16; 256]; 2],
}

/// Collects component kinds; their order is their order on the wire.
#[derive(Default)]
pub struct SchemaBuilder {
    kinds: Vec<Kind>,
    events: Vec<EventKind>,
}

impl SchemaBuilder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kind.
    ///
    /// # Panics
    /// If `T` is there already, has encodings above 255 bytes, or makes an entity larger than
    /// `ENTITY_BYTES_MAX`, or if there are `KINDS_MAX` kinds already: the program's own mistake, at start.
    pub fn component<T: Replicate>(mut self) -> Self {
        let name = T::NAME;
        assert!(self.kinds.len() < KINDS_MAX, "`{name}` would be the 17th replicated component; 16 are possible");
        assert!(self.kinds.iter().all(|kind| kind.type_id != TypeId::of::<T>()), "`{name}` is in the schema twice");
        assert!(T::BYTES_MAX <= 255, "`{name}` takes {} bytes; 255 are possible", T::BYTES_MAX);
        assert!(T::EXACT_BYTES_MAX <= 255, "`{name}` takes {} exact bytes; 255 are possible", T::EXACT_BYTES_MAX);
        self.kinds.push(Kind {
            type_id: TypeId::of::<T>(),
            name,
            layout: T::LAYOUT,
            bytes_max: T::BYTES_MAX,
            exact_bytes_max: T::EXACT_BYTES_MAX,
            new_replica_column: || Box::new(ReplicaColumnOf::<T>::default()),
        });
        self
    }

    /// Adds a kind of events.
    ///
    /// # Panics
    /// If `T` is there already, takes above 255 bytes, or if there are `EVENTS_MAX` kinds already: the program's own
    /// mistake, at start.
    pub fn event<T: ReplicatedEvent>(mut self) -> Self {
        let name = T::NAME;
        assert!(
            self.events.len() < EVENTS_MAX,
            "`{name}` would be event kind {}; {EVENTS_MAX} are possible",
            EVENTS_MAX + 1
        );
        assert!(self.events.iter().all(|kind| !kind.is::<T>()), "`{name}` is in the schema twice");
        assert!(T::BYTES_MAX <= 255, "`{name}` takes {} bytes; 255 are possible", T::BYTES_MAX);
        self.events.push(EventKind::of::<T>());
        self
    }

    pub fn build(self) -> Arc<Schema> {
        let sum = |bytes: fn(&Kind) -> usize| self.kinds.iter().map(bytes).sum::<usize>();
        let (bytes, exact_bytes) = (sum(|kind| kind.bytes_max), sum(|kind| kind.exact_bytes_max));
        assert!(bytes <= ENTITY_BYTES_MAX, "an entity takes up to {bytes} bytes; {ENTITY_BYTES_MAX} are possible");
        assert!(
            exact_bytes <= ENTITY_BYTES_MAX,
            "an entity takes up to {exact_bytes} exact bytes; {ENTITY_BYTES_MAX} are possible"
        );
        let mut values_bytes_max = [[0; 256]; 2];
        for (index, kind) in self.kinds.iter().enumerate() {
            for (mask, bytes) in values_bytes_max[index / 8].iter_mut().enumerate() {
                if mask >> (index % 8) & 1 == 1 {
                    *bytes += kind.bytes_max as u16;
                }
            }
        }
        let hash = self.kinds.iter().fold(self.kinds.len() as u64, |hash, kind| {
            let named = kind.name.bytes().fold(hash, |hash, byte| mix(hash, byte.into()));
            let sized = mix(named, (kind.bytes_max << 16 | kind.exact_bytes_max) as u64);
            mix(sized, kind.layout)
        });
        let hash = self.events.iter().fold(hash, |hash, event| event.mix_into(hash));
        Arc::new(Schema { kinds: self.kinds, events: self.events, hash, values_bytes_max })
    }
}

impl Schema {
    /// The kind of `T`, if the game replicates it. A search through at most 16 entries.
    pub fn kind_of<T: Replicate>(&self) -> Option<ComponentIndex> {
        let wanted = TypeId::of::<T>();
        self.kinds.iter().position(|kind| kind.type_id == wanted).map(|index| ComponentIndex(index as u8))
    }

    /// Name of a kind, for reports.
    pub fn name_of(&self, kind: ComponentIndex) -> &'static str {
        self.kinds[kind.index()].name
    }

    /// Names of the component kinds, in the order of their ids.
    pub fn kind_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.kinds.iter().map(|kind| kind.name)
    }

    /// The kind of the event `T`, if the game has it. A search through at most 64 entries.
    pub fn event_of<T: ReplicatedEvent>(&self) -> Option<EventId> {
        self.events.iter().position(EventKind::is::<T>).map(|index| EventId(index as u8))
    }

    /// All event kinds; an [`EventId`]'s index is the place in it.
    pub fn events(&self) -> &[EventKind] {
        &self.events
    }

    /// A number that is the same for programs that understand each other's snapshots: over the kinds' names,
    /// sizes, ranges and steps, in order.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn kinds_count(&self) -> usize {
        self.kinds.len()
    }

    pub(crate) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Bytes of a mask on the wire.
    pub(crate) fn mask_bytes(&self) -> usize {
        if self.kinds.len() <= 8 { 1 } else { 2 }
    }

    /// Mask with a bit for every kind there is.
    pub(crate) fn every_kind(&self) -> u16 {
        ((1_u32 << self.kinds.len()) - 1) as u16
    }

    /// Most bytes that the encoded values of a mask can take.
    #[inline]
    pub(crate) fn values_bytes_max(&self, mask: u16) -> usize {
        let [low, high] = mask.to_le_bytes();
        usize::from(self.values_bytes_max[0][usize::from(low)] + self.values_bytes_max[1][usize::from(high)])
    }
}

/// Indexes of the components in a mask, lowest first.
pub(crate) fn bits(mask: u16) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let kind = rest.trailing_zeros() as usize;
        rest &= rest.wrapping_sub(1);
        (kind < 16).then_some(kind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Flag, Health, Pose};

    #[test]
    fn order_gives_the_wire_id() {
        let schema = SchemaBuilder::new().component::<Pose>().component::<Health>().build();
        assert_eq!(schema.kind_of::<Pose>(), Some(ComponentIndex(0)));
        assert_eq!(schema.kind_of::<Health>(), Some(ComponentIndex(1)));
        assert_eq!(schema.kind_of::<Flag>(), None);
        assert_eq!(schema.values_bytes_max(0b11), Pose::BYTES_MAX + Health::BYTES_MAX);
        assert_eq!(schema.every_kind(), 0b11);
    }

    #[test]
    fn the_hash_tells_schemas_apart() {
        let one = SchemaBuilder::new().component::<Pose>().component::<Health>().build();
        let same = SchemaBuilder::new().component::<Pose>().component::<Health>().build();
        let other = SchemaBuilder::new().component::<Health>().component::<Pose>().build();
        assert_eq!(one.hash(), same.hash());
        assert_ne!(one.hash(), other.hash());
    }

    #[test]
    #[should_panic(expected = "`Pose` is in the schema twice")]
    fn a_kind_is_added_once() {
        let _ = SchemaBuilder::new().component::<Pose>().component::<Pose>();
    }
}
