//! Inputs: their numbers and answers, what is said again, what was seen, and those that are packed already.

use super::*;

#[test]
fn inputs_carry_epoch_and_number_and_are_answered_by_snapshots() {
    let mut stage = Stage::connected(nothing_replicated());
    assert_eq!(stage.client.send_raw_input(stage.now, &[5]), Err(SendInputError::NotInWorld));
    stage.say_enter(EnterWorld { epoch: 0, ..HIDEOUT });
    stage.step();
    assert_eq!(stage.client.send_raw_input(stage.now, &[0; INPUT_BYTES_MAX + 1]), Err(SendInputError::TooLarge));

    assert_eq!(stage.client.send_raw_input(stage.now, &[5, 6]), Ok(1));
    stage.step();
    assert_eq!(stage.inputs_at_server(), [vec![control::INPUT, 0, 1, 0, 5, 6]]);
    stage.step();
    assert_eq!(stage.inputs_at_server(), [[0u8; 0]; 0], "an input is sent once");

    assert_eq!(stage.client.send_raw_input(stage.now, &[7]), Ok(2));
    assert_eq!(stage.client.send_raw_input(stage.now, &[]), Ok(3));
    stage.step();
    assert_eq!(stage.inputs_at_server(), [vec![control::INPUT, 0, 2, 0, 7], vec![control::INPUT, 0, 3, 0]]);

    stage.say(&empty_snapshot(0, 501, 2));
    stage.step();
    assert_eq!(stage.samples_ms(), [40, 20], "of the first two, from their own sending");
    stage.say(&empty_snapshot(0, 502, 3));
    stage.step();
    assert_eq!(stage.samples_ms(), [30]);
    assert_eq!((stage.client.newest_tick(), stage.client.stats().snapshots), (502, 2));
}

/// A step, said again in three packets.
#[derive(Pack)]
struct Stride(u8);

impl ClientInput for Stride {
    const REPEATS: u8 = 3;
}

/// Promise: an input of a kind that is repeated comes with each of the next packets, in order, until a snapshot has it.
#[test]
fn inputs_of_a_repeated_kind_are_said_again_until_they_are_answered() {
    let mut stage = Stage::connected(SchemaBuilder::new().input::<Stride>().build());
    stage.say_enter(EnterWorld { epoch: 0, ..HIDEOUT });
    stage.step();
    let stride = |stage: &mut Stage, length: u8| {
        stage.client.send_input(stage.now, &Stride(length)).expect("in a world");
        stage.step();
        stage.inputs_at_server()
    };
    let said = |number: u8| vec![control::INPUT, 0, number, 0, 0, number];
    assert_eq!(stride(&mut stage, 1), [said(1)]);
    assert_eq!(stride(&mut stage, 2), [1, 2].map(said));
    assert_eq!(stride(&mut stage, 3), [1, 2, 3].map(said));
    assert_eq!(stride(&mut stage, 4), [1, 2, 3, 4].map(said));
    assert_eq!(stride(&mut stage, 5), [2, 3, 4, 5].map(said), "three times again");
    stage.say(&empty_snapshot(0, 501, 5));
    stage.step();
    stage.at_server.clear();
    assert_eq!(stride(&mut stage, 6), [said(6)], "what was taken is not said again");
    stage.say(&empty_snapshot(1, 90, 0));
    stage.step();
    stage.say_enter(EnterWorld { epoch: 1, world: 2, ..HIDEOUT });
    stage.step();
    stage.at_server.clear();
    stage.client.send_input(stage.now, &Stride(7)).expect("in a world");
    stage.step();
    assert_eq!(stage.inputs_at_server(), [vec![control::INPUT, 1, 7, 0, 0, 7]], "nor what was for another world");
}

#[test]
fn what_was_seen_is_said_with_the_input_and_never_goes_back() {
    let mut stage = Stage::connected(SchemaBuilder::new().input::<Fire>().build());
    assert_eq!(stage.client.seen(stage.now), None);
    assert_eq!(stage.client.send_input(stage.now, &Fire(1)), Err(SendInputError::NotInWorld));
    stage.say_enter(EnterWorld { epoch: 0, ..HIDEOUT });
    stage.step();
    assert_eq!(stage.client.seen(stage.now), Some(Seen { newest_tick: 500, behind_parts: 0 }), "as it came in");
    stage.client.set_interpolation_delay(Nanos::from_millis(150));
    let mut before = (500, 0);
    for tick in 501..520 {
        stage.say(&empty_snapshot(0, tick, 0));
        for _ in 0..5 {
            stage.step();
            stage.client.send_input(stage.now, &Fire(1)).expect("in a world");
            let seen = stage.client.seen(stage.now).expect("in a world");
            assert!(seen.moment() >= before);
            before = seen.moment();
        }
    }
    assert_eq!(before, (516, 204), "40 ms after the last came, and 150 ms behind");
    stage.step();
    let said = stage.inputs_at_server();
    let last = said.last().expect("they were sent");
    assert_eq!((&last[..5], &last[9..]), (&[control::INPUT, 0, 95, 0, 0][..], &[1][..]));
    assert_eq!(Seen::decode([last[5], last[6], last[7], last[8]], 521).moment(), before);
}

#[test]
fn what_is_packed_already_is_said_as_its_value_would_be() {
    let mut stage = Stage::connected(SchemaBuilder::new().input::<Fire>().input::<Stride>().build());
    stage.say_enter(EnterWorld { epoch: 0, ..HIDEOUT });
    stage.step();
    let mut said = |say: &dyn Fn(&mut Client, Nanos)| {
        stage.at_server.clear();
        say(&mut stage.client, stage.now);
        stage.step();
        stage.inputs_at_server().pop().expect("it was sent")
    };
    for (kind, value) in [(0, 1), (1, 9)] {
        let by_value = said(&|client, now| {
            let sent = if kind == 0 {
                client.send_input(now, &Fire(value as i8))
            } else {
                client.send_input(now, &Stride(value))
            };
            sent.expect("in a world");
        });
        let packed =
            said(&|client, now| _ = client.send_packed_input(now, PackedId(kind), &[value]).expect("in a world"));
        // All but the number, and the moment that was shown.
        assert_eq!((by_value[4], by_value.last(), by_value.len()), (packed[4], packed.last(), packed.len()));
    }
    let refused =
        |stage: &mut Stage, kind, packed: &[u8]| stage.client.send_packed_input(stage.now, PackedId(kind), packed);
    assert!(matches!(refused(&mut stage, 2, &[1]), Err(SendInputError::NotInSchema(_))));
    assert!(matches!(refused(&mut stage, 1, &[1, 2, 3]), Err(SendInputError::Value(_))));
    assert!(matches!(stage.client.request_packed(PackedId(0), &[]), Err(SendMessageError::NotInSchema(_))));
}
