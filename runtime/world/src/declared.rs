//! Declared: which inputs and requests a kind of world takes, how long, and how many of a client.
//!
//! Held where a client's datagrams are opened, so that a system never sees what was not declared or is too much. Counted
//! in ticks: a kind's allowance grows with each tick by as much of its rate as a tick is of a second, up to a second's
//! worth. So the same mail gives the same world.
//!
//! One of each kind of world, shared by its worlds and never changed; what a client has used up lies with the client.
//! Cost: a few additions for each message; a list for each client that says something.

use std::sync::Arc;

use throng_replication::{
    ClientInput, ClientMessage, ClientRequest, PackedId, PackedKind, Protocol, Schema, Unpacked, UnpackedAt,
};
use throng_scheduler::Hertz;

use crate::opened::MessageKind;

/// What a kind of world takes from its clients.
pub(crate) struct Declared {
    pub schema: Arc<Schema>,
    ticks_per_s: u32,
    /// By place in the schema; none for what other kinds of worlds take.
    inputs: Box<[Option<PackedKind>]>,
    requests: Box<[Option<PackedKind>]>,
}

/// What became of something that a client said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Taken,
    /// Its kind is not taken here, or is never so long.
    Refused,
    /// More than its kind may come in a second.
    Excess,
}

/// How much a client has left, kind by kind: in units of which a message costs as many as the world has ticks in a
/// second. Empty before it says something.
#[derive(Debug, Default)]
pub(crate) struct Spent(Vec<Left>);

#[derive(Debug, Clone, Copy)]
struct Left {
    units: u32,
    /// As of this tick.
    tick: u32,
}

impl Spent {
    /// The client is in another world now, with other ticks.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Declared {
    /// # Panics
    /// If the schema lacks something of the protocol: the program's own mistake, when the world is built.
    pub fn new(protocol: &Protocol, schema: &Arc<Schema>, rate: Hertz) -> Self {
        if let Some(name) = schema.lacks(protocol.declared()) {
            panic!("`{name}` is declared by this kind of world but is not in the server's schema")
        }
        let [inputs, requests] = schema.declares(protocol.declared());
        let own = |kinds: &[PackedKind], declared: &[bool]| {
            kinds.iter().zip(declared).map(|(kind, declared)| declared.then_some(*kind)).collect()
        };
        Self {
            schema: schema.clone(),
            ticks_per_s: rate.0.into(),
            inputs: own(schema.inputs(), &inputs),
            requests: own(schema.requests(), &requests),
        }
    }

    /// # Panics
    /// If `T` is not declared: the program's own mistake.
    pub fn input<T: ClientInput>(&self) -> PackedId {
        let id = self.schema.input_of::<T>().filter(|id| self.inputs[id.index()].is_some());
        id.unwrap_or_else(|| not_declared(T::SCHEMA.name, "input"))
    }

    /// # Panics
    /// If `T` is not declared: the program's own mistake.
    pub fn request<T: ClientRequest>(&self) -> PackedId {
        let id = self.schema.request_of::<T>().filter(|id| self.requests[id.index()].is_some());
        id.unwrap_or_else(|| not_declared(T::SCHEMA.name, "request"))
    }

    /// # Panics
    /// If `T` is not in the schema: the program's own mistake.
    pub fn message<T: ClientMessage>(&self) -> PackedId {
        self.schema.message_of::<T>().unwrap_or_else(|| not_declared(T::SCHEMA.name, "message"))
    }

    /// Unpacks a message, at the end of its kind's values, and says what it costs its world; `None` for bytes that are no
    /// value of a kind that is declared here.
    pub fn unpack(&self, kind: MessageKind, packed: &[u8], into: &mut Unpacked) -> Option<UnpackedAt> {
        let (own, place) = self.find(kind);
        own?.unpack(packed, into, place)
    }

    /// The place of a kind among inputs and requests together.
    pub fn place(&self, kind: MessageKind) -> usize {
        self.find(kind).1
    }

    /// The same for one that a system reads.
    ///
    /// # Panics
    /// If `T` is not declared: the program's own mistake.
    pub fn place_of_input<T: ClientInput>(&self) -> usize {
        self.input::<T>().index()
    }

    /// As [`place_of_input`](Self::place_of_input).
    pub fn place_of_request<T: ClientRequest>(&self) -> usize {
        self.inputs.len() + self.request::<T>().index()
    }

    /// Counts a message that a system would have read, were it a value.
    pub fn count_unreadable(&self, kind: MessageKind) {
        match kind {
            MessageKind::Input { kind, .. } => self.schema.count_refused_input(kind),
            MessageKind::Request { kind } => self.schema.count_refused_request(kind),
        }
    }

    /// Whether messages of this kind say what their player was shown.
    pub fn says_seen(&self, kind: MessageKind) -> bool {
        self.find(kind).0.is_some_and(|own| own.says_seen)
    }

    /// In how many further packets a client says each of this kind.
    pub fn repeats(&self, kind: MessageKind) -> u8 {
        self.find(kind).0.map_or(0, |own| own.repeats)
    }

    /// Takes a message of so many packed bytes, or says what is wrong with it.
    pub fn hear(&self, spent: &mut Spent, tick: u32, kind: MessageKind, bytes: usize) -> Heard {
        let (own, place) = self.find(kind);
        self.take(own, spent, place, tick, bytes)
    }

    /// Whether a request counts though its client has left the world that it was in when it asked.
    pub fn is_for_any_world(&self, request: PackedId) -> bool {
        let own = self.requests.get(request.index()).and_then(Option::as_ref);
        own.is_some_and(|own| own.is_for_any_world)
    }

    /// What is declared of a kind, and its place among inputs and requests together.
    fn find(&self, kind: MessageKind) -> (Option<&PackedKind>, usize) {
        let (declared, kind, first) = match kind {
            MessageKind::Input { kind, .. } => (&self.inputs, kind, 0),
            MessageKind::Request { kind } => (&self.requests, kind, self.inputs.len()),
        };
        (declared.get(kind.index()).and_then(Option::as_ref), first + kind.index())
    }

    fn take(&self, own: Option<&PackedKind>, spent: &mut Spent, place: usize, tick: u32, bytes: usize) -> Heard {
        let Some(own) = own.filter(|own| bytes <= own.bytes_max) else { return Heard::Refused };
        let per_s_max = u32::from(own.per_s_max);
        if spent.0.is_empty() {
            let full = self
                .inputs
                .iter()
                .chain(self.requests.iter())
                .map(|own| Left { units: own.map_or(0, |own| u32::from(own.per_s_max) * self.ticks_per_s), tick });
            spent.0.extend(full);
        }
        let left = &mut spent.0[place];
        let most = per_s_max * self.ticks_per_s;
        let grown = tick.wrapping_sub(left.tick).saturating_mul(per_s_max);
        *left = Left { units: left.units.saturating_add(grown).min(most), tick };
        match left.units.checked_sub(self.ticks_per_s) {
            None => Heard::Excess,
            Some(units) => {
                left.units = units;
                Heard::Taken
            }
        }
    }
}

#[cold]
fn not_declared(name: &str, sort: &str) -> ! {
    panic!("`{name}` is used here but not declared: add `.{sort}::<..>()` to the protocol of this kind of world")
}

#[cfg(test)]
mod tests {
    use throng_pack::Pack;

    use super::*;

    #[derive(Pack)]
    struct Walk(i8, i8);

    impl ClientInput for Walk {
        const PER_S_MAX: u16 = 40;
    }

    #[derive(Pack)]
    struct Look(u8);

    impl ClientInput for Look {}

    #[derive(Pack)]
    struct PickUp;

    impl ClientRequest for PickUp {
        const PER_S_MAX: u16 = 2;

        fn price(&self) -> u32 {
            9
        }
    }

    fn input(kind: u8) -> MessageKind {
        MessageKind::Input { number: 7, kind: PackedId(kind) }
    }

    fn request(kind: u8) -> MessageKind {
        MessageKind::Request { kind: PackedId(kind) }
    }

    fn declared() -> Declared {
        let own = Protocol::new().input::<Walk>().request::<PickUp>();
        let other = Protocol::new().input::<Look>();
        Declared::new(&own, &Protocol::union([&other, &own]), Hertz(20))
    }

    #[test]
    fn what_is_not_declared_here_or_too_long_is_refused() {
        let (declared, mut spent) = (declared(), Spent::default());
        assert_eq!((declared.input::<Walk>(), declared.request::<PickUp>()), (PackedId(1), PackedId(0)));
        assert_eq!(declared.hear(&mut spent, 7, input(1), 2), Heard::Taken);
        assert_eq!(declared.hear(&mut spent, 7, input(1), 3), Heard::Refused, "three bytes");
        assert_eq!(declared.hear(&mut spent, 7, input(0), 1), Heard::Refused, "of another kind of world");
        assert_eq!(declared.hear(&mut spent, 7, input(2), 0), Heard::Refused, "there are two");
        assert_eq!(declared.hear(&mut spent, 7, request(1), 0), Heard::Refused, "there is one");
        assert_eq!(declared.hear(&mut spent, 7, request(0), 0), Heard::Taken);
    }

    #[test]
    #[should_panic(expected = "`Look` is used here but not declared")]
    fn what_another_kind_of_world_takes_is_not_read_here() {
        declared().input::<Look>();
    }

    #[test]
    fn what_costs_its_world_more_has_the_price_that_its_type_says() {
        let declared = declared();
        let mut values = Unpacked::default();
        let mut price = |kind, packed: &[u8]| declared.unpack(kind, packed, &mut values).map(|value| value.price);
        assert_eq!((price(request(0), &[]), price(input(1), &[0, 0])), (Some(9), Some(1)));
        for (kind, packed) in [(request(0), &[1][..]), (request(1), &[]), (input(1), &[]), (input(0), &[1])] {
            assert_eq!(price(kind, packed), None, "it is none: {kind:?} {packed:?}");
        }
    }

    /// Promise: a client gets a second's worth at once, and its rate from then on, in every world the same.
    #[test]
    fn excess_is_refused_by_ticks() {
        let (declared, mut spent) = (declared(), Spent::default());
        let mut taken_in = |tick: u32, count: usize| {
            (0..count).filter(|_| declared.hear(&mut spent, tick, input(1), 2) == Heard::Taken).count()
        };
        assert_eq!(taken_in(100, 60), 40, "a second's worth");
        assert_eq!(taken_in(100, 5), 0);
        assert_eq!(taken_in(101, 5), 2, "40 a second are 2 in a tick");
        assert_eq!(taken_in(111, 60), 20, "half a second later");
        assert_eq!(taken_in(5_000, 60), 40);
        spent.clear();
        let mut requests_in = |tick: u32, count: usize| {
            (0..count).filter(|_| declared.hear(&mut spent, tick, request(0), 0) == Heard::Taken).count()
        };
        assert_eq!(requests_in(0, 5), 2);
        assert_eq!((requests_in(9, 5), requests_in(10, 5)), (0, 1), "one in ten ticks");
    }
}
