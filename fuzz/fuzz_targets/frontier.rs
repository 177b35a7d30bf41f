//! What reaches a game of Frontier from outside: inputs and messages of its players at the world, events and snapshots
//! of a server at its players.
//!
//! Promise: each is taken or refused; what is taken is in range, fits where it goes next, and says the same when said
//! again.

#![no_main]

use std::{
    f32::consts::TAU,
    fmt::Debug,
    sync::{Arc, LazyLock},
};

use frontier::{
    components::{NAME_BYTES_MAX, Pose},
    events,
    landscape::HALF_SIDE_M,
    protocol::{Input, SAY_BYTES_MAX, Wish},
};
use libfuzzer_sys::fuzz_target;
use throng_pack::{Pack, pack_body, unpack_body};
use throng_replication::{EVENT_BYTES_MAX, EventIn, Replicas, ReplicatedEvent, Schema, write_event};

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(frontier::schema);

const REPLICAS_MAX: usize = 16;

/// In the order of their ids, which is of no matter here.
const EVENTS: [fn(&EventIn<'_>); 12] = [
    check_event::<events::Say>,
    check_event::<events::Damage>,
    check_event::<events::Critical>,
    check_event::<events::Cast>,
    check_event::<events::Landed>,
    check_event::<events::Stun>,
    check_event::<events::Song>,
    check_event::<events::DoorMoved>,
    check_event::<events::Emote>,
    check_event::<events::Particles>,
    check_event::<events::Teleport>,
    check_event::<events::Purse>,
];

fuzz_target!(|bytes: &[u8]| {
    if let Some(input) = taken::<Input>(bytes) {
        let [x, z] = input.direction();
        assert!(x.hypot(z) <= 1.0 + 1e-6);
        assert!((0.0..=TAU).contains(&input.heading()));
    }
    match taken::<Wish>(bytes) {
        Some(Wish::Say(words)) => assert!(words.len() <= SAY_BYTES_MAX && !words.chars().any(char::is_control)),
        Some(Wish::Name(name)) => assert!(name.is_ascii() && name.len() <= NAME_BYTES_MAX),
        _ => {}
    }
    if let Some(event) = EventIn::split(bytes)
        && let Some(check) = EVENTS.get(event.id.index())
    {
        check(&event);
    }
    let mut copies = Replicas::with_limit(SCHEMA.clone(), REPLICAS_MAX);
    if copies.apply(bytes).is_ok() {
        assert!(copies.len() <= REPLICAS_MAX);
        // The ends of a range are reached to within half a step.
        let is_there = |pose: &Pose| pose.x.abs().max(pose.z.abs()) <= HALF_SIDE_M + 0.02 && pose.heading.is_finite();
        assert!(copies.iter::<Pose>().all(|(_, pose)| is_there(pose)));
    }
});

fn taken<T: Pack>(bytes: &[u8]) -> Option<T> {
    let value = unpack_body::<T>(bytes).ok()?;
    let mut again = Vec::new();
    pack_body(&value, &mut again).expect("what was read can be written");
    assert_eq!(again, bytes);
    Some(value)
}

fn check_event<T: ReplicatedEvent + Debug + PartialEq>(event: &EventIn<'_>) {
    let Ok(said) = event.decode::<T>() else { return };
    let mut again = [0; EVENT_BYTES_MAX];
    let len = write_event(event.id, &said, &mut again);
    let event = EventIn::split(&again[..len]).expect("an event was written");
    assert_eq!(event.decode::<T>().as_ref(), Ok(&said));
}
