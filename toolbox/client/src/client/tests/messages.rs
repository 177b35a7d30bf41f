//! Messages, requests and inputs as values of a game, with their bytes as the document draws them.

use super::*;

#[derive(Pack, Debug, PartialEq)]
struct Pockets {
    #[pack(max = 100)]
    coins: u8,
}

impl ClientMessage for Pockets {}

#[derive(Pack, Debug, PartialEq)]
struct Farewell;

impl ClientMessage for Farewell {}

#[derive(Pack, Debug, PartialEq)]
struct Walk {
    #[pack(max = 9)]
    x: u8,
}

impl ClientInput for Walk {}

#[derive(Pack, Debug, PartialEq)]
struct PickUp {
    #[pack(max = 9)]
    thing: u8,
}

impl ClientRequest for PickUp {}

fn said() -> Arc<Schema> {
    SchemaBuilder::new().message::<Farewell>().message::<Pockets>().input::<Walk>().request::<PickUp>().build()
}

#[test]
fn messages_are_values_and_wait_until_they_are_cleared() {
    let mut stage = Stage::in_world(said());
    stage.server().send_reliable(&[control::MESSAGE, 1, 100]).expect("room");
    stage.server().send_reliable(&[control::MESSAGE, 0]).expect("room");
    stage.step();
    let read: Vec<_> = stage.client.messages().map(|message| (message.name(), message.read::<Pockets>())).collect();
    assert_eq!(read, [("Pockets", Some(Pockets { coins: 100 })), ("Farewell", None)]);
    stage.client.clear_messages();
    assert_eq!(stage.client.messages().count(), 0);
}

/// Promise: a message that is none is a fault of the server's and never shown to the game.
#[test]
fn messages_that_are_none_are_counted_and_never_seen() {
    let mut stage = Stage::in_world(said());
    let bad: [&[u8]; 6] = [
        &[control::MESSAGE],
        &[control::MESSAGE, 2],
        &[control::MESSAGE, 1],
        &[control::MESSAGE, 1, 101],
        &[control::MESSAGE, 0, 0],
        &[16, 1],
    ];
    for (index, message) in bad.iter().enumerate() {
        stage.server().send_reliable(message).expect("room");
        stage.step();
        assert_eq!(stage.client.stats().protocol_errors, index as u64 + 1, "{message:?}");
    }
    stage.say(&[control::MESSAGE, 1, 5]);
    stage.step();
    assert_eq!(stage.client.stats().protocol_errors, bad.len() as u64 + 1, "messages are reliable");
    assert_eq!(stage.client.messages().count(), 0);
}

#[test]
fn what_we_say_has_its_kind_and_its_limits() {
    let mut stage = Stage::in_world(said());
    assert_eq!(stage.client.send_input(stage.now, &Walk { x: 9 }), Ok(1));
    assert!(matches!(stage.client.send_input(stage.now, &Walk { x: 10 }), Err(SendInputError::Value(_))));
    stage.client.request(&PickUp { thing: 7 }).expect("connected");
    assert!(matches!(stage.client.request(&PickUp { thing: 10 }), Err(SendMessageError::Value(_))));
    stage.step();
    let mut said = stage.at_server.clone();
    said.sort_by_key(|(_, message)| message[0]);
    let expect = [
        (Channel::Unreliable, vec![control::INPUT, 0, 1, 0, 0, 9]),
        (Channel::Reliable, vec![control::REQUEST, 0, 0, 7]),
    ];
    assert_eq!(said, expect);

    let mut stranger = Stage::in_world(nothing_replicated());
    let refused = stranger.client.send_input(stranger.now, &Walk { x: 1 });
    assert_eq!(refused, Err(SendInputError::NotInSchema("Walk")));
    assert!(matches!(stranger.client.request(&PickUp { thing: 1 }), Err(SendMessageError::NotInSchema("PickUp"))));
}

/// What a player is called, in all worlds.
#[derive(Pack, Debug, PartialEq)]
struct CallMe(u8);

impl ClientRequest for CallMe {
    const FOR_ANY_WORLD: bool = true;
}

#[test]
fn requests_carry_the_stay_in_which_they_were_asked() {
    let mut stage = Stage::connected(SchemaBuilder::new().request::<PickUp>().request::<CallMe>().build());
    let request = |kind: u8, epoch: u8| vec![control::REQUEST, epoch, kind, 7];
    assert!(matches!(stage.client.request(&PickUp { thing: 7 }), Err(SendMessageError::NotInWorld)));
    stage.client.request(&CallMe(7)).expect("it is for any world");
    stage.step();
    assert_eq!(stage.inputs_at_server(), [request(1, 0)]);
    stage.say_enter(EnterWorld { epoch: 3, ..HIDEOUT });
    stage.step();
    stage.client.request(&PickUp { thing: 7 }).expect("in a world");
    stage.step();
    assert_eq!(stage.inputs_at_server(), [request(0, 3)]);
    stage.say(&empty_snapshot(4, 90, 0));
    stage.step();
    assert!(matches!(stage.client.request(&PickUp { thing: 7 }), Err(SendMessageError::NotInWorld)), "between two");
}

/// Two moves and a flag: three bytes.
#[derive(Pack)]
struct Turn(i8, i8, bool);

impl ClientInput for Turn {}

#[derive(Pack)]
struct Bow;

impl ClientRequest for Bow {}

#[derive(Pack, Debug, PartialEq)]
struct Coins(u16);

impl ClientMessage for Coins {}

/// Promise: the bytes in docs/spec/messages.md are those that go over the wire.
#[test]
fn the_document_has_the_bytes_that_are_sent() {
    let document = include_str!("../../../../../docs/spec/messages.md");
    let (_, drawn) = document.split_once("```text\n").expect("a drawing");
    let (drawn, _) = drawn.split_once("```").expect("its end");
    let byte = |hex: &str| u8::from_str_radix(hex, 16).expect("two digits");
    let drawn: Vec<Vec<u8>> = drawn.lines().map(|line| line.split(' ').map(byte).collect()).collect();

    let schema = SchemaBuilder::new().input::<Turn>().input::<Fire>();
    let schema = schema.request::<PickUp>().request::<Bow>().message::<Coins>().build();
    let mut stage = Stage::connected(schema);
    stage.say_enter(EnterWorld { epoch: 2, ..HIDEOUT });
    stage.step();
    for _ in 0..8 {
        stage.at_server.clear();
        stage.client.send_input(stage.now, &Turn(10, -10, true)).expect("in a world");
        stage.step();
    }
    assert_eq!(stage.inputs_at_server(), [drawn[0].clone()]);
    stage.client.request(&Bow).expect("connected");
    stage.step();
    assert_eq!(stage.inputs_at_server(), [drawn[1].clone()]);
    stage.server().send_reliable(&drawn[2]).expect("room");
    stage.step();
    assert_eq!(stage.client.messages().next().and_then(|message| message.read()), Some(Coins(300)));
    stage.say(&empty_snapshot(2, 501, 8));
    stage.step();
    stage.at_server.clear();
    stage.client.send_input(stage.now, &Fire(10)).expect("in a world");
    stage.step();
    assert_eq!(stage.inputs_at_server(), [drawn[3].clone()]);
}
