//! What clients said reaches the systems that ask for it, as values of its kind, and nothing else does.

use std::sync::Arc;

use bevy_ecs::system::RunSystemOnce;
use throng_pack::{Pack, PackError};
use throng_platform::time::Nanos;
use throng_replication::{PackedId, Schema};

use super::*;
use crate::{client_batch::ClientBatch, declared::Declared, opened::Opened, prelude::*, testing::TestWorld};

#[derive(Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "test.walk")]
struct Walk {
    #[pack(min = -100, max = 100)]
    x: i8,
}

impl ClientInput for Walk {}

/// Says what was seen.
#[derive(Debug, Clone, Copy, PartialEq, Pack)]
struct Shoot;

impl ClientInput for Shoot {
    const SAYS_SEEN: bool = true;
}

#[derive(Debug, Clone, PartialEq, Pack)]
struct PickUp {
    thing: u32,
}

impl ClientRequest for PickUp {}

#[derive(Debug, Clone, PartialEq, Pack)]
struct Leave;

impl ClientRequest for Leave {}

#[derive(Debug, Clone, PartialEq, Pack)]
struct Pockets {
    #[pack(max = 10)]
    coins: u8,
}

impl ClientMessage for Pockets {}

/// What systems read, tick by tick.
#[derive(Resource, Default)]
struct Heard(Vec<String>);

/// What came of the messages that were sent.
#[derive(Resource, Default)]
struct Told(Vec<Result<(), PackError>>);

struct Yard;

impl WorldKind for Yard {
    fn name(&self) -> &str {
        "yard"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().input::<Walk>().input::<Shoot>().request::<Leave>().request::<PickUp>().message::<Pockets>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world
            .init_resource::<Heard>()
            .init_resource::<Told>()
            .add_systems(Update, (come_and_go, walk, shoot, pick_up).chain());
    }
}

fn schema() -> Arc<Schema> {
    Yard.protocol().schema()
}

fn come_and_go(
    arrivals: Res<Arrivals>,
    departures: Res<Departures>,
    inbox: Res<Inbox>,
    mut outbox: ResMut<Outbox>,
    mut heard: ResMut<Heard>,
    mut commands: Commands,
) {
    for arrival in &arrivals.0 {
        outbox.set_player(arrival.client, commands.spawn_empty().id());
    }
    for &client in &departures.0 {
        let player = inbox.players().entity(client);
        heard.0.push(format!("{} goes and had a player: {}", client.0, player.is_some()));
    }
}

fn walk(walks: Inputs<Walk>, mut heard: ResMut<Heard>) {
    for (sender, walk) in walks.read() {
        assert_eq!(sender.seen, None, "its kind does not say");
        heard.0.push(format!("{} walks {} as {}", sender.client.0, walk.x, sender.entity.is_some()));
    }
}

fn shoot(mut shots: Inputs<Shoot>, mut heard: ResMut<Heard>) {
    let newest: Vec<_> = shots.newest().map(|(sender, Shoot)| sender).collect();
    assert!(shots.read().map(|(sender, Shoot)| sender).eq(newest), "each has shot once");
    for (sender, Shoot) in shots.read() {
        let seen = sender.seen.map(|seen| (seen.tick, seen.part, seen.newest_tick));
        heard.0.push(format!("{} shoots at what it saw at {seen:?}", sender.client.0));
    }
}

fn pick_up(
    asked: Requests<PickUp>,
    leave: Requests<Leave>,
    mut outbox: ResMut<Outbox>,
    mut told: ResMut<Told>,
    mut heard: ResMut<Heard>,
) {
    for (sender, &PickUp { thing }) in asked.read() {
        assert_eq!((sender.seen, sender.number), (None, None), "no request says");
        heard.0.push(format!("{} wants {thing}", sender.client.0));
        told.0.push(outbox.send(sender.client, &Pockets { coins: thing as u8 }));
    }
    for (sender, Leave) in leave.read() {
        heard.0.push(format!("{} wants to leave", sender.client.0));
    }
}

fn take(world: &mut TestWorld) -> Vec<String> {
    std::mem::take(&mut world.ecs_mut().resource_mut::<Heard>().0)
}

#[test]
fn what_is_said_is_read_by_its_kind_with_its_player() {
    let mut world = TestWorld::new(Yard, &schema(), 1);
    world.arrive(ClientKey(7));
    world.input(ClientKey(7), &Walk { x: 3 });
    world.tick();
    assert_eq!(take(&mut world), ["7 walks 3 as false"], "it has no player yet");
    world.request(ClientKey(7), &PickUp { thing: 9 });
    world.input(ClientKey(7), &Walk { x: -100 });
    world.request(ClientKey(7), &Leave);
    world.request(ClientKey(7), &PickUp { thing: 11 });
    world.input(ClientKey(8), &Walk { x: 1 });
    world.tick();
    let expect = ["7 walks -100 as true", "8 walks 1 as false", "7 wants 9", "7 wants 11", "7 wants to leave"];
    assert_eq!(take(&mut world), expect);
    let told: Vec<bool> = world.ecs().resource::<Told>().0.iter().map(Result::is_ok).collect();
    assert_eq!(told, [true, false], "eleven coins are above the limit");
    assert_eq!(world.told::<Pockets>(ClientKey(7)), [Pockets { coins: 9 }]);
    assert!(world.told::<Pockets>(ClientKey(8)).is_empty());
    world.tick();
    assert_eq!(take(&mut world), [""; 0], "once");
    assert!(world.told::<Pockets>(ClientKey(7)).is_empty());
}

/// Promise: a shot comes with what its shooter saw, and with nobody else's, whichever way a system reads it.
#[test]
fn what_was_seen_is_read_with_its_input() {
    let mut world = TestWorld::new(Yard, &schema(), 1);
    let round_trip = Nanos::from_millis(60);
    let seen = |tick, part| SeenMoment { tick, part, newest_tick: tick + 2, acked_tick: tick + 1, round_trip };
    world.input_seen(ClientKey(7), &Shoot, seen(40, 128));
    world.input(ClientKey(7), &Walk { x: 1 });
    world.request(ClientKey(7), &PickUp { thing: 9 });
    world.input_seen(ClientKey(8), &Shoot, seen(41, 3));
    world.tick();
    let expect = [
        "7 walks 1 as false",
        "7 shoots at what it saw at Some((40, 128, 42))",
        "8 shoots at what it saw at Some((41, 3, 43))",
        "7 wants 9",
    ];
    assert_eq!(take(&mut world), expect);
}

#[test]
fn a_player_is_known_until_its_departure_has_been_seen() {
    let mut world = TestWorld::new(Yard, &schema(), 1);
    world.arrive(ClientKey(7));
    world.tick();
    let players = |world: &TestWorld| world.ecs().resource::<Inbox>().players().iter().count();
    assert_eq!(players(&world), 1);
    world.leave(ClientKey(7));
    world.tick();
    assert_eq!(take(&mut world), ["7 goes and had a player: true"]);
    assert_eq!(players(&world), 0);
}

/// Promise: bytes of a hostile client are passed over and counted by their kind.
#[test]
fn what_is_no_value_is_counted_and_never_seen() {
    let mut world = TestWorld::new(Yard, &schema(), 1);
    let (walk, pick_up) = (PackedId(0), PackedId(1));
    let input = MessageKind::Input { number: 1, kind: walk };
    for bytes in [&[][..], &[101], &[0x9B], &[1, 1]] {
        world.say(ClientKey(7), input, bytes);
    }
    for bytes in [&[][..], &[0xFF], &[0x80, 0], &[0xFF, 0xFF, 0xFF, 0xFF, 0x1F]] {
        world.say(ClientKey(7), MessageKind::Request { kind: pick_up }, bytes);
    }
    world.say(ClientKey(7), input, &[100]);
    world.tick();
    assert_eq!(take(&mut world), ["7 walks 100 as false"]);
    let counted = world.counted();
    assert_eq!((counted.of("refused.test.walk"), counted.of("refused.pick_up")), (4, 4));
}

/// Promise: what holds is the newest input of each client. Read one by one, the last that arrives would win, and a packet
/// that was overtaken would turn a player round for a tick.
#[test]
fn of_each_client_the_newest_input_counts_and_none_that_was_overtaken() {
    let declared = Arc::new(Declared::new(&Yard.protocol(), &schema(), Hertz(20)));
    let mut inbox = Inbox::new(declared.clone());
    let mut batches = [ClientBatch::empty()];
    let walk = |number| MessageKind::Input { number, kind: PackedId(0) };
    let leave = MessageKind::Request { kind: PackedId(0) };
    let said = [(8, walk(4), false), (7, walk(2), false), (7, walk(3), false), (7, walk(1), true), (9, walk(5), true)];
    for (number, (client, kind, is_late)) in (0..).zip(said.into_iter().chain([(8, leave, false)])) {
        let packed = match kind {
            MessageKind::Input { number, .. } => vec![number as u8],
            MessageKind::Request { .. } => Vec::new(),
        };
        let ClientBatch { buffer, opened, .. } = &mut batches[0];
        let begin = buffer.bytes.len() as u32;
        buffer.bytes.extend_from_slice(&packed);
        let end = buffer.bytes.len() as u32;
        let value = declared.unpack(kind, &packed, &mut buffer.values).map(|value| value.index);
        opened.push(Opened { number, client: ClientKey(client), kind, is_late, seen: None, begin, end, value });
    }
    inbox.take_opened(&mut batches);
    let mut world = World::new();
    world.insert_resource(inbox);
    let newest = |mut walks: Inputs<Walk>| -> Vec<(u32, i8)> {
        let once: Vec<_> = walks.newest().map(|(sender, walk)| (sender.client.0, walk.x)).collect();
        assert!(walks.newest().map(|(sender, walk)| (sender.client.0, walk.x)).eq(once.iter().copied()), "anew");
        let told = walks.read().map(|(sender, _)| (sender.number, sender.is_late));
        let arrived = [(4, false), (2, false), (3, false), (1, true), (5, true)];
        assert!(told.eq(arrived.map(|(number, is_late)| (Some(number), is_late))), "all in the order of their arrival");
        once
    };
    assert_eq!(world.run_system_once(newest).unwrap(), [(7, 3), (8, 4)], "9 said nothing new");
}

struct Deaf;

impl WorldKind for Deaf {
    fn name(&self) -> &str {
        "deaf"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.init_resource::<Heard>().add_systems(Update, walk);
    }
}

#[test]
#[should_panic(expected = "`test.walk` is used here but not declared")]
fn a_kind_that_the_world_does_not_declare_is_named() {
    TestWorld::new(Deaf, &schema(), 1).tick();
}

#[test]
#[should_panic(expected = "`test.walk` is declared by this kind of world but is not in the server's schema")]
fn a_schema_that_lacks_something_is_refused() {
    TestWorld::new(Yard, &Deaf.protocol().schema(), 1);
}
