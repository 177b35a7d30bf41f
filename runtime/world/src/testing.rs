//! Testing: a world by itself, for headless tests of games.
//!
//! A [`TestWorld`] is the world that ships: built from the game's own kind, with its systems in their shipped order,
//! its change marks collected and its orders carried out in each tick. What it has done beside its ticks is done after the
//! tick, and its result is there in the next one. Nothing is around it: no server, no network,
//! no clock. Players are scripted: a test says who comes and goes and what they say, and the next tick's systems find
//! it where they always do.
//!
//! These players have no connection. A test may ask what messages they were sent ([`TestWorld::told`]); what clients hear
//! beside those, and what becomes of all of it on a bad network, is the simulator's to test.
//!
//! Runs on the caller's thread and allocates nothing of its own in a steady tick, so a test can count what a game
//! allocates there.

mod checkpoints;
mod operator;

use std::{collections::BTreeMap, sync::Arc};

use bevy_ecs::prelude::*;
use throng_metrics::game::GameTotals;
use throng_net::protocol::ClientId;
use throng_pack::{HasSchema, PackError, pack_body, unpack_body};
use throng_platform::{allocator::thread_counts, time::Nanos};
use throng_replication::{
    ClientInput, ClientMessage, ClientRequest, InterestSettings, MESSAGE_HEADER_BYTES, MESSAGE_KIND, ReplicationRules,
    Schema,
};

pub use checkpoints::goes_on_alike_after_a_load;

use crate::{
    client_batch::InTick,
    console::WorldConsole,
    game_world::GameWorld,
    ids::{ClientKey, WorldId, WorldKindId},
    inbox::{InboxMessage, MessageKind},
    mail::{Mail, MailItem},
    nowhere::Nowhere,
    report::TickReport,
    seen_moment::SeenMoment,
    tick_resources::Arrival,
    transfer::{Transfer, WorldMessage},
    tunable::TunedValues,
    worker::{Alone, Worker},
    world_builder::Kind,
    world_kind::WorldKind,
};

/// A world in a test, with scripted players.
pub struct TestWorld {
    world: GameWorld,
    mail: Mail,
    worker: Worker,
    counted: GameTotals,
    /// Of each client's last input.
    numbers: BTreeMap<ClientKey, u16>,
    /// Where what clients say is packed.
    packed: Vec<u8>,
    /// Of its kind.
    console: WorldConsole,
    /// What was tuned so far.
    tuned: Arc<TunedValues>,
}

impl TestWorld {
    /// A world of a game's kind.
    ///
    /// # Panics
    /// If its systems cannot be put in an order.
    pub fn new(kind: impl WorldKind, schema: &Arc<Schema>, seed: u64) -> Self {
        Self::with_id(kind, schema, WorldId::new(0, 0), seed, None)
    }

    /// The same for kinds that look at their id, or at what they are asked for with: a packed value
    /// ([`envelope::write`](throng_pack::envelope::write)).
    ///
    /// # Panics
    /// If its systems cannot be put in an order.
    pub fn with_id(
        kind: impl WorldKind,
        schema: &Arc<Schema>,
        id: WorldId,
        seed: u64,
        parameters: Option<&[u8]>,
    ) -> Self {
        let console = kind.console();
        let mut kind = Kind::new(WorldKindId(0), Box::new(kind));
        let built = kind.build_world(id, seed, parameters, schema, &InterestSettings::default());
        Self {
            world: built.expect("the systems can be put in an order"),
            mail: Mail::default(),
            worker: Worker::new(0, Box::new(Nowhere::default())),
            counted: GameTotals::default(),
            numbers: BTreeMap::new(),
            packed: Vec::new(),
            console,
            tuned: Arc::default(),
        }
    }

    /// Runs one tick, as a host does, and returns what it did and asks for: messages to other worlds, say.
    pub fn tick(&mut self) -> &mut TickReport {
        let report = self.world.report_mut();
        report.leaving.clear();
        report.messages.clear();
        report.failed.clear();
        self.world.told_mut().clear();
        let period = Nanos(1_000_000_000 / u64::from(self.world.rate().0));
        let now = Nanos(period.0 * (u64::from(self.world.ticks()) + 1));
        let before = thread_counts().allocations;
        let in_tick = InTick::begin();
        self.world.tick(now, &mut self.mail, &mut self.worker, &Alone);
        drop(in_tick);
        self.world.count_allocations(thread_counts().allocations - before);
        self.counted.take(&mut self.worker.game);
        self.counted.end_frame(|_, _| ());
        let id = self.world.id();
        for task in self.world.report_mut().long_tasks.drain(..) {
            let message = task.run_here(id).expect("a loss keeps its type's limits");
            self.mail.push(MailItem::Message(message));
        }
        self.world.check();
        self.world.report_mut()
    }

    /// Whether a system that fails panics, as in a debug build, or is told of in the report, as in a release build.
    pub fn panic_on_failure(&mut self, panics: bool) {
        self.world.panic_on_failure(panics);
    }

    pub fn ticks(&mut self, count: u32) {
        (0..count).for_each(|_| _ = self.tick());
    }

    /// How many ticks are done.
    pub fn ticks_done(&self) -> u32 {
        self.world.ticks()
    }

    /// A client comes with the next tick, newly connected; the id that its token says is its key.
    pub fn arrive(&mut self, client: ClientKey) {
        self.take_in(client, None, None);
    }

    /// A client comes with the next tick, out of another world and with what it carries.
    ///
    /// # Errors
    /// What this world has against its transfer; then nobody comes.
    pub fn arrive_from<T: HasSchema>(
        &mut self,
        client: ClientKey,
        from: WorldId,
        carries: &T,
    ) -> Result<(), PackError> {
        let transfer = Transfer::of(carries)?;
        self.world.check_transfer(&transfer)?;
        self.take_in(client, Some(from), Some(transfer));
        Ok(())
    }

    /// A client logs in with the next tick, with what is saved of its player.
    ///
    /// # Errors
    /// As [`Self::arrive_from`].
    pub fn arrive_saved<T: HasSchema>(&mut self, client: ClientKey, has: &T) -> Result<(), PackError> {
        let transfer = Transfer::of(has)?;
        self.world.check_transfer(&transfer)?;
        self.take_in(client, None, Some(transfer));
        Ok(())
    }

    fn take_in(&mut self, client: ClientKey, from: Option<WorldId>, transfer: Option<Transfer>) {
        let client_id = ClientId(client.0.into());
        let user_data = Box::new([0; 256]);
        self.world.note_arrival(Arrival { client, client_id, user_data, from, transfer, refused: None });
    }

    /// A client's connection has ended when the next tick begins.
    pub fn leave(&mut self, client: ClientKey) {
        self.world.note_departure(client);
    }

    /// A client sends its next input, which the next tick's systems read. Nobody counts how many.
    ///
    /// # Panics
    /// If the world does not declare `T`, or the input breaks its type's limits.
    pub fn input<T: ClientInput>(&mut self, client: ClientKey, input: &T) {
        let number = self.next_number(client);
        self.input_numbered(client, number, input);
    }

    /// The same under a number of the test's own: an input that was overtaken, say.
    ///
    /// # Panics
    /// If the world does not declare `T`, or the input breaks its type's limits.
    pub fn input_numbered<T: ClientInput>(&mut self, client: ClientKey, number: u16, input: &T) {
        let kind = self.world.declared().input::<T>();
        self.say_packed(client, MessageKind::Input { number, kind }, None, input);
    }

    /// The same of a kind that says what was seen ([`ClientInput::SAYS_SEEN`]).
    ///
    /// # Panics
    /// If the world does not declare `T`, or the input breaks its type's limits.
    pub fn input_seen<T: ClientInput>(&mut self, client: ClientKey, input: &T, seen: SeenMoment) {
        let number = self.next_number(client);
        let kind = self.world.declared().input::<T>();
        self.say_packed(client, MessageKind::Input { number, kind }, Some(seen), input);
    }

    /// Inputs of a client are numbered one after the other, as a real one numbers them.
    fn next_number(&mut self, client: ClientKey) -> u16 {
        let number = self.numbers.entry(client).or_default();
        *number = number.wrapping_add(1);
        *number
    }

    /// A client sends a request, which the next tick's systems read. Nobody counts how many.
    ///
    /// # Panics
    /// If the world does not declare `T`, or the request breaks its type's limits.
    pub fn request<T: ClientRequest>(&mut self, client: ClientKey, request: &T) {
        let kind = self.world.declared().request::<T>();
        self.say_packed(client, MessageKind::Request { kind }, None, request);
    }

    fn say_packed(&mut self, client: ClientKey, kind: MessageKind, seen: Option<SeenMoment>, value: &impl HasSchema) {
        let mut bytes = std::mem::take(&mut self.packed);
        bytes.clear();
        pack_body(value, &mut bytes).expect("what is said keeps its type's limits");
        self.world.note_message(&InboxMessage { client, kind, is_late: false, seen, bytes: &bytes });
        self.packed = bytes;
    }

    /// A client says something, which the next tick's systems find in their inbox: any bytes of any client, as a hostile
    /// one may send them.
    pub fn say(&mut self, client: ClientKey, kind: MessageKind, bytes: &[u8]) {
        self.world.note_message(&InboxMessage { client, kind, is_late: false, seen: None, bytes });
    }

    /// The messages of one kind that the last tick sent a client, in order.
    ///
    /// # Panics
    /// If `T` is not in the schema.
    pub fn told<T: ClientMessage>(&self, client: ClientKey) -> Vec<T> {
        let header = [MESSAGE_KIND, self.world.declared().message::<T>().0];
        let told = self.world.told().into_iter().flat_map(Told::iter);
        let of_kind = told.filter(|(to, message)| *to == client && message.starts_with(&header));
        let read = |message: &[u8]| unpack_body(&message[MESSAGE_HEADER_BYTES..]).expect("the world has packed it");
        of_kind.map(|(_, message)| read(message)).collect()
    }

    /// Another world says something, which the next tick's systems find among its messages.
    ///
    /// # Errors
    /// If the message breaks its type's limits.
    pub fn post<T: HasSchema>(&mut self, from: WorldId, message: &T) -> Result<(), PackError> {
        self.mail.push(MailItem::Message(WorldMessage::of(from, message)?));
        Ok(())
    }

    /// Puts an operator's rules into force, as of the next tick.
    pub fn set_rules(&mut self, rules: &ReplicationRules) {
        self.world.set_rules(rules);
    }

    /// The store of the saves goes away, or is back, as of the next tick: where the kind saves something.
    pub fn set_saves_away(&mut self, is_away: bool) {
        self.world.set_saves_away(is_away);
    }

    /// What the game has counted in all ticks so far, and its gauges as they stand.
    pub fn counted(&self) -> Counted {
        let (counters, gauges) = self.counted.by_name();
        Counted { counters, gauges }
    }

    /// One number for the world's state as it is now: the same for the same state.
    pub fn state_hash(&mut self) -> u64 {
        self.world.state_hash()
    }

    /// Lines of memory that its ticks ask for before they need them; 0 for a world that is not small.
    pub fn footprint_lines(&self) -> usize {
        self.world.footprint_lines()
    }

    /// The world itself, for what a test does that no player can.
    #[cfg(test)]
    pub(crate) fn game_world_mut(&mut self) -> &mut GameWorld {
        &mut self.world
    }

    /// The world's entities and resources.
    pub fn ecs(&self) -> &World {
        self.world.ecs()
    }

    pub fn ecs_mut(&mut self) -> &mut World {
        self.world.ecs_mut()
    }
}

/// What clients without a connection were told in a tick.
#[derive(Default)]
pub(crate) struct Told {
    bytes: Vec<u8>,
    /// Whom, and where the message ends.
    messages: Vec<(ClientKey, usize)>,
}

impl Told {
    pub fn push(&mut self, client: ClientKey, message: &[u8]) {
        self.bytes.extend_from_slice(message);
        self.messages.push((client, self.bytes.len()));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.messages.clear();
    }

    fn iter(&self) -> impl Iterator<Item = (ClientKey, &[u8])> {
        let mut begin = 0;
        self.messages.iter().map(move |&(client, end)| (client, &self.bytes[std::mem::replace(&mut begin, end)..end]))
    }
}

/// What a game counted, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    pub counters: BTreeMap<&'static str, u64>,
    pub gauges: BTreeMap<&'static str, i64>,
}

impl Counted {
    /// A counter; 0 if nothing was ever counted by this name.
    pub fn of(&self, counter: &str) -> u64 {
        self.counters.get(counter).copied().unwrap_or_default()
    }

    /// A gauge; 0 if it was never set.
    pub fn standing(&self, gauge: &str) -> i64 {
        self.gauges.get(gauge).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use throng_pack::Pack;
    use throng_replication::{PackedId, SchemaBuilder};

    use super::*;
    use crate::prelude::*;

    #[derive(Debug, PartialEq, Pack)]
    #[pack(name = "test.hero")]
    struct Hero(#[pack(max = 100)] u8);

    #[derive(Debug, PartialEq, Pack)]
    #[pack(name = "test.note")]
    struct Note(u32);

    /// What systems found, tick by tick.
    #[derive(Resource, Default, Debug, PartialEq)]
    struct Seen(Vec<String>);

    struct Watching;

    impl WorldKind for Watching {
        fn name(&self) -> &str {
            "watching"
        }

        fn tick_rate(&self) -> Hertz {
            Hertz(20)
        }

        fn build(&self, world: &mut WorldBuilder) {
            let read = || throng_metrics::count!("reads");
            world.accept_transfers::<Hero>().init_resource::<Seen>().add_systems(Update, (look, answer, read).chain());
        }
    }

    fn look(
        tick: Res<TickInfo>,
        arrivals: Res<Arrivals>,
        departures: Res<Departures>,
        inbox: Res<Inbox>,
        messages: Res<WorldMessages>,
        mut seen: ResMut<Seen>,
    ) {
        let mut note = |what: String| seen.0.push(format!("{}: {what}", tick.tick));
        for Arrival { client, from, transfer, .. } in &arrivals.0 {
            let hero = transfer.as_ref().and_then(|transfer| transfer.read::<Hero>().ok());
            note(format!("{} comes from {from:?} with {hero:?}", client.0));
        }
        departures.0.iter().for_each(|client| note(format!("{} goes", client.0)));
        inbox.iter().for_each(|message| note(format!("{} says {:?}", message.client.0, message.bytes)));
        messages.0.iter().for_each(|message| note(format!("{} posts {:?}", message.from, message.read::<Note>())));
    }

    fn answer(tick: Res<TickInfo>, messages: Res<WorldMessages>, mut outbox: ResMut<Outbox>) {
        for message in &messages.0 {
            outbox.post(tick.world, message.from, &Note(tick.tick)).unwrap();
        }
    }

    /// Promise: what a test brings is seen by the systems of the next tick, once.
    /// Clients and games would stand still if a tick came twice.
    #[test]
    #[should_panic(expected = "has used up its ticks")]
    fn a_world_that_has_used_up_its_ticks_ends() {
        let mut world = TestWorld::new(Watching, &SchemaBuilder::new().build(), 1);
        world.world.set_ticks(u32::MAX);
        world.tick();
    }

    #[test]
    fn what_is_brought_is_seen_in_the_next_tick_and_only_there() {
        let [here, elsewhere] = [3, 8].map(|index| WorldId::new(index, 0));
        let mut world = TestWorld::with_id(Watching, &SchemaBuilder::new().build(), here, 1, None);
        world.ticks(2);
        world.arrive(ClientKey(1));
        world.arrive_from(ClientKey(2), elsewhere, &Hero(60)).unwrap();
        world.say(ClientKey(1), MessageKind::Request { kind: PackedId(0) }, &[16, 17]);
        world.post(elsewhere, &Note(5)).unwrap();
        let answers: Vec<_> =
            world.tick().messages.iter().map(|(to, message)| (*to, message.read::<Note>().unwrap())).collect();
        assert_eq!(answers, [(elsewhere, Note(2))]);
        world.leave(ClientKey(2));
        assert!(world.tick().messages.is_empty());
        world.ticks(3);
        let expect = [
            "2: 1 comes from None with None",
            "2: 2 comes from Some(WorldId { index: 8, generation: 0 }) with Some(Hero(60))",
            "2: 1 says [16, 17]",
            "2: 8 posts Ok(Note(5))",
            "3: 2 goes",
        ];
        assert_eq!(world.ecs().resource::<Seen>().0, expect);
        assert_eq!((world.ticks_done(), world.counted().of("reads")), (7, 7));
    }

    /// Asks for a long task in its first tick, and notes what comes.
    struct Patient;

    impl WorldKind for Patient {
        fn name(&self) -> &str {
            "patient"
        }

        fn tick_rate(&self) -> Hertz {
            Hertz(20)
        }

        fn build(&self, world: &mut WorldBuilder) {
            let ask = |tick: Res<TickInfo>, mut outbox: ResMut<Outbox>, mut seen: ResMut<Seen>| {
                if tick.tick == 1 {
                    let terms = LongTaskTerms::new("test.task").within_ms(700);
                    let numbers =
                        [outbox.start_long_task(terms, || Note(9)), outbox.start_long_task(terms, || Hero(200))];
                    seen.0.push(format!("asked for {:?}", numbers.map(|number| number.0)));
                }
            };
            let take = |tick: Res<TickInfo>, messages: Res<WorldMessages>, mut seen: ResMut<Seen>| {
                for message in &messages.0 {
                    let text = match message.read::<Note>() {
                        Ok(note) => format!("{}: {note:?} from {}", tick.tick, message.from),
                        Err(_) => format!("{}: {:?}", tick.tick, message.read::<LongTaskLost>()),
                    };
                    seen.0.push(text);
                }
            };
            world.init_resource::<Seen>().add_systems(Update, (ask, take).chain());
        }
    }

    /// Promise: what a long task brings is a message in a later tick, and if it brings nothing, that is one.
    #[test]
    fn what_a_long_task_brings_comes_as_a_message_of_the_world_to_itself() {
        let mut world = TestWorld::with_id(Patient, &SchemaBuilder::new().build(), WorldId::new(6, 0), 1, None);
        world.ticks(4);
        let expect = [
            "asked for [65536, 65537]",
            "2: Note(9) from 6",
            "2: Ok(LongTaskLost { number: 65537, loss: BreaksLimits })",
        ];
        assert_eq!(world.ecs().resource::<Seen>().0, expect);
    }

    #[test]
    fn who_carries_what_the_world_cannot_read_does_not_come() {
        let mut world = TestWorld::new(Watching, &SchemaBuilder::new().build(), 1);
        assert!(world.arrive_from(ClientKey(1), WorldId::new(1, 0), &Note(7)).is_err());
        world.tick();
        assert_eq!(*world.ecs().resource::<Seen>(), Seen::default());
    }
}
