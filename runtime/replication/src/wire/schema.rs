//! Schema: which components are replicated, which events, inputs, requests and messages there are, and in which order
//! they stand on the wire.
//!
//! Server and client build the same schema from the same list; `hash` tells whether they did. It is made
//! once at start, shared behind an `Arc`, and never changes. A game declares it as the protocols of its kinds of worlds
//! (`Protocol`); the builder alone is for what has no world, such as tests of the codec.

use std::{any::TypeId, sync::Arc};

use throng_metrics::game::CounterSite;

use crate::{
    replicas::replica_column::{ReplicaColumn, ReplicaColumnOf},
    wire::{
        event::{EventId, EventKind, ReplicatedEvent},
        packed::{ClientInput, ClientMessage, ClientRequest, PACKED_KINDS_MAX, PackedId, PackedKind},
        quantise::mix,
        replicate::Replicate,
        shape::FieldShape,
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

#[derive(Clone, Copy)]
pub(crate) struct Kind {
    type_id: TypeId,
    pub name: &'static str,
    layout: u64,
    pub bytes_max: usize,
    pub exact_bytes_max: usize,
    pub new_replica_column: fn() -> Box<dyn ReplicaColumn>,
    shape: fn() -> FieldShape,
}

/// The replicated component kinds of a game, its event kinds, and what its clients and worlds say to each other, in wire
/// order.
pub struct Schema {
    kinds: Vec<Kind>,
    events: Vec<EventKind>,
    inputs: Vec<PackedKind>,
    requests: Vec<PackedKind>,
    messages: Vec<PackedKind>,
    /// What could not be read of each kind of inputs, and of requests.
    refused: [Vec<CounterSite>; 2],
    hash: u64,
    /// Most bytes of the encoded values of a mask, by its low and its high byte.
    values_bytes_max: [[u16; 256]; 2],
}

/// Collects kinds; their order is their order on the wire.
#[derive(Default, Clone)]
pub struct SchemaBuilder {
    kinds: Vec<Kind>,
    events: Vec<EventKind>,
    inputs: Vec<PackedKind>,
    requests: Vec<PackedKind>,
    messages: Vec<PackedKind>,
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
        assert!(self.kinds.iter().all(|kind| kind.type_id != TypeId::of::<T>()), "`{name}` is in the schema twice");
        assert!(T::BYTES_MAX <= 255, "`{name}` takes {} bytes; 255 are possible", T::BYTES_MAX);
        assert!(T::EXACT_BYTES_MAX <= 255, "`{name}` takes {} exact bytes; 255 are possible", T::EXACT_BYTES_MAX);
        self.add_component(Kind {
            type_id: TypeId::of::<T>(),
            name,
            layout: T::LAYOUT,
            bytes_max: T::BYTES_MAX,
            exact_bytes_max: T::EXACT_BYTES_MAX,
            new_replica_column: || Box::new(ReplicaColumnOf::<T>::default()),
            shape: T::shape,
        });
        self
    }

    fn add_component(&mut self, kind: Kind) {
        let name = kind.name;
        assert!(self.kinds.len() < KINDS_MAX, "`{name}` would be the 17th replicated component; 16 are possible");
        self.kinds.push(kind);
    }

    /// Adds a kind of events.
    ///
    /// # Panics
    /// If `T` is there already, takes above 255 bytes, or if there are `EVENTS_MAX` kinds already: the program's own
    /// mistake, at start.
    pub fn event<T: ReplicatedEvent>(mut self) -> Self {
        let name = T::NAME;
        assert!(self.events.iter().all(|kind| !kind.is::<T>()), "`{name}` is in the schema twice");
        assert!(T::BYTES_MAX <= 255, "`{name}` takes {} bytes; 255 are possible", T::BYTES_MAX);
        self.add_event(EventKind::of::<T>());
        self
    }

    fn add_event(&mut self, kind: EventKind) {
        let name = kind.name;
        assert!(
            self.events.len() < EVENTS_MAX,
            "`{name}` would be event kind {}; {EVENTS_MAX} are possible",
            EVENTS_MAX + 1
        );
        self.events.push(kind);
    }

    /// Adds a kind of inputs.
    ///
    /// # Panics
    /// If `T` is there already, takes above [`INPUT_BYTES_MAX`](crate::wire::packed::INPUT_BYTES_MAX) bytes or has a rate beyond 1 to 1,000 a second, or if there are
    /// [`PACKED_KINDS_MAX`] kinds already: the program's own mistake, at start.
    pub fn input<T: ClientInput>(mut self) -> Self {
        check_rate(T::SCHEMA.name, T::PER_S_MAX);
        add_new(&mut self.inputs, PackedKind::of_input::<T>());
        self
    }

    /// Adds a kind of requests.
    ///
    /// # Panics
    /// If `T` is there already, takes above [`REQUEST_BYTES_MAX`](crate::wire::packed::REQUEST_BYTES_MAX) bytes or has a rate beyond 1 to 1,000 a second, or if there are
    /// [`PACKED_KINDS_MAX`] kinds already: the program's own mistake, at start.
    pub fn request<T: ClientRequest>(mut self) -> Self {
        check_rate(T::SCHEMA.name, T::PER_S_MAX);
        add_new(&mut self.requests, PackedKind::of_request::<T>());
        self
    }

    /// Adds a kind of messages to clients.
    ///
    /// # Panics
    /// If `T` is there already, takes above [`MESSAGE_BYTES_MAX`](crate::wire::packed::MESSAGE_BYTES_MAX) bytes, or if there are [`PACKED_KINDS_MAX`] kinds
    /// already: the program's own mistake, at start.
    pub fn message<T: ClientMessage>(mut self) -> Self {
        add_new(&mut self.messages, PackedKind::of_message::<T>());
        self
    }

    /// Adds what `other` has and this has not, in its order, behind what is here.
    ///
    /// # Panics
    /// If that makes too many kinds.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for kind in &other.kinds {
            if self.kinds.iter().all(|known| known.type_id != kind.type_id) {
                self.add_component(*kind);
            }
        }
        for kind in &other.events {
            if self.events.iter().all(|known| !known.is_same(kind)) {
                self.add_event(*kind);
            }
        }
        for (own, others) in [
            (&mut self.inputs, &other.inputs),
            (&mut self.requests, &other.requests),
            (&mut self.messages, &other.messages),
        ] {
            for kind in others {
                if own.iter().all(|known| !known.is_same(kind)) {
                    add(own, *kind);
                }
            }
        }
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
        let packed = [(7, &self.inputs), (8, &self.requests), (9, &self.messages)];
        let hash = packed
            .into_iter()
            .fold(hash, |hash, (sort, kinds)| kinds.iter().fold(hash, |hash, kind| kind.mix_into(hash, sort)));
        let Self { kinds, events, inputs, requests, messages } = self;
        let refused =
            [&inputs, &requests].map(|kinds| kinds.iter().map(|kind| CounterSite::new(kind.refused_name)).collect());
        Arc::new(Schema { kinds, events, inputs, requests, messages, refused, hash, values_bytes_max })
    }
}

fn check_rate(name: &str, per_s_max: u16) {
    assert!((1..=1_000).contains(&per_s_max), "`{name}` may come {per_s_max} times a second; 1 to 1,000 are possible");
}

/// Adds a kind that must not be there already.
fn add_new(kinds: &mut Vec<PackedKind>, kind: PackedKind) {
    assert!(kinds.iter().all(|known| !known.is_same(&kind)), "`{}` is in the schema twice", kind.name);
    add(kinds, kind);
}

fn add(kinds: &mut Vec<PackedKind>, kind: PackedKind) {
    let name = kind.name;
    assert!(
        kinds.len() < PACKED_KINDS_MAX,
        "`{name}` would be kind {}; {PACKED_KINDS_MAX} are possible",
        PACKED_KINDS_MAX + 1
    );
    kinds.push(kind);
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

    /// What the component kinds are made of, in the order of their ids. Allocates.
    pub fn component_shapes(&self) -> impl Iterator<Item = FieldShape> + '_ {
        self.kinds.iter().map(|kind| (kind.shape)())
    }

    /// The kind of the event `T`, if the game has it. A search through at most 64 entries.
    pub fn event_of<T: ReplicatedEvent>(&self) -> Option<EventId> {
        self.events.iter().position(EventKind::is::<T>).map(|index| EventId(index as u8))
    }

    /// All event kinds; an [`EventId`]'s index is the place in it.
    pub fn events(&self) -> &[EventKind] {
        &self.events
    }

    /// The kind of the input `T`, if the game has it. A search through a few entries, as are the next two.
    pub fn input_of<T: ClientInput>(&self) -> Option<PackedId> {
        place_of::<T>(&self.inputs)
    }

    /// The kind of the request `T`, if the game has it.
    pub fn request_of<T: ClientRequest>(&self) -> Option<PackedId> {
        place_of::<T>(&self.requests)
    }

    /// The kind of the message `T`, if the game has it.
    pub fn message_of<T: ClientMessage>(&self) -> Option<PackedId> {
        place_of::<T>(&self.messages)
    }

    /// All kinds of inputs; a [`PackedId`]'s index is the place in it.
    pub fn inputs(&self) -> &[PackedKind] {
        &self.inputs
    }

    /// All kinds of requests, as [`inputs`](Self::inputs).
    pub fn requests(&self) -> &[PackedKind] {
        &self.requests
    }

    /// Counts an input that its world could not read, by its kind. In a tick; elsewhere it does nothing.
    pub fn count_refused_input(&self, kind: PackedId) {
        self.refused[0][kind.index()].add(1);
    }

    /// The same for a request.
    pub fn count_refused_request(&self, kind: PackedId) {
        self.refused[1][kind.index()].add(1);
    }

    /// All kinds of messages, as [`inputs`](Self::inputs).
    pub fn messages(&self) -> &[PackedKind] {
        &self.messages
    }

    /// The name of something in `declared` that is not in this schema.
    pub fn lacks(&self, declared: &SchemaBuilder) -> Option<&'static str> {
        let component = declared.kinds.iter().find(|kind| self.kinds.iter().all(|own| own.type_id != kind.type_id));
        let event = || declared.events.iter().find(|kind| self.events.iter().all(|own| !own.is_same(kind)));
        let packed = || {
            let sorts = [
                (&declared.inputs, &self.inputs),
                (&declared.requests, &self.requests),
                (&declared.messages, &self.messages),
            ];
            sorts
                .into_iter()
                .find_map(|(kinds, own)| kinds.iter().find(|kind| own.iter().all(|known| !known.is_same(kind))))
        };
        let name = component.map(|kind| kind.name).or_else(|| event().map(|kind| kind.name));
        name.or_else(|| packed().map(|kind| kind.name))
    }

    /// For each kind of inputs, and of requests, whether `declared` has it.
    pub fn declares(&self, declared: &SchemaBuilder) -> [Vec<bool>; 2] {
        let among = |kinds: &[PackedKind], own: &[PackedKind]| {
            own.iter().map(|kind| kinds.iter().any(|known| known.is_same(kind))).collect()
        };
        [among(&declared.inputs, &self.inputs), among(&declared.requests, &self.requests)]
    }

    /// A number that is the same for programs that understand each other: over the names, sizes, ranges and steps of
    /// components and events, and over the names, fields and limits of inputs, requests and messages, in order.
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

fn place_of<T: 'static>(kinds: &[PackedKind]) -> Option<PackedId> {
    kinds.iter().position(PackedKind::is::<T>).map(|index| PackedId(index as u8))
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
    use throng_pack::Pack;

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

    #[derive(Debug, PartialEq, Pack)]
    struct Walk(i8, i8);

    impl ClientInput for Walk {}

    #[derive(Debug, PartialEq, Pack)]
    struct PickUp {
        #[pack(max = 1_000)]
        thing: u32,
    }

    impl ClientRequest for PickUp {
        const PER_S_MAX: u16 = 5;
    }

    #[derive(Debug, PartialEq, Pack)]
    struct Pockets(u16);

    impl ClientMessage for Pockets {}

    #[test]
    fn what_is_said_is_part_of_the_schema() {
        let said = SchemaBuilder::new().input::<Walk>().request::<PickUp>().message::<Pockets>();
        let schema = said.clone().build();
        assert_eq!(schema.input_of::<Walk>(), Some(PackedId(0)));
        assert_eq!(schema.request_of::<PickUp>(), Some(PackedId(0)));
        assert_eq!(schema.message_of::<Pockets>(), Some(PackedId(0)));
        assert_eq!((schema.requests()[0].name, schema.requests()[0].per_s_max), ("PickUp", 5));
        assert!(schema.requests()[0].check(&[7]).is_ok());
        assert!(schema.requests()[0].check(&[0xFF, 0x7F]).is_err(), "above its range");
        assert!(schema.requests()[0].check(&[7, 7]).is_err(), "bytes after the end");
        let hashes = [
            SchemaBuilder::new(),
            SchemaBuilder::new().input::<Walk>(),
            SchemaBuilder::new().request::<PickUp>(),
            SchemaBuilder::new().message::<Pockets>(),
            said,
        ]
        .map(|builder| builder.build().hash());
        for (index, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..index].contains(hash), "{index} is as one before it");
        }
    }

    /// A range that differs is another schema: one end would send what the other refuses.
    #[test]
    fn limits_of_what_is_said_count() {
        mod other {
            #[derive(throng_pack::Pack)]
            pub struct PickUp {
                #[pack(max = 1_001)]
                pub thing: u32,
            }
            impl super::ClientRequest for PickUp {}
        }
        let hash = |builder: SchemaBuilder| builder.build().hash();
        let own = hash(SchemaBuilder::new().request::<PickUp>());
        assert_ne!(own, hash(SchemaBuilder::new().request::<other::PickUp>()));
    }

    #[test]
    fn a_union_has_everything_once_and_in_order() {
        let hub = SchemaBuilder::new().component::<Pose>().input::<Walk>();
        let arena = SchemaBuilder::new().component::<Health>().component::<Pose>().input::<Walk>().request::<PickUp>();
        let union = hub.clone().and(&arena).build();
        let expect = SchemaBuilder::new().component::<Pose>().component::<Health>().input::<Walk>().request::<PickUp>();
        assert_eq!(union.hash(), expect.build().hash());
        assert_eq!((union.lacks(&hub), union.lacks(&arena)), (None, None));
        assert_eq!(hub.clone().build().lacks(&arena), Some("Health"));
        assert_eq!(SchemaBuilder::new().component::<Pose>().component::<Health>().build().lacks(&arena), Some("Walk"));
        assert_eq!(union.declares(&hub), [vec![true], vec![false]]);
    }

    #[test]
    #[should_panic(expected = "`Walk` is in the schema twice")]
    fn an_input_is_added_once() {
        let _ = SchemaBuilder::new().input::<Walk>().input::<Walk>();
    }

    #[test]
    #[should_panic(expected = "`Pose` is in the schema twice")]
    fn a_kind_is_added_once() {
        let _ = SchemaBuilder::new().component::<Pose>().component::<Pose>();
    }
}
