//! The promise: the bytes in `docs/spec/replication.md` are the bytes that are sent, and a client reads them so.

use throng_replication::{
    ArrayVec, ComponentIndex, EntityLink, InterestSettings, NetId, Reader, Replicas, Replicate, ReplicationRules,
    Schema, SchemaBuilder, TimeFactor, Traffic, ViewScratch, WorldReplication, Writer, rules::KindRule,
};

const SPEC: &str = include_str!("../../../docs/spec/replication.md");

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Pose {
    #[replicate(min = -150.0, max = 150.0, step = 0.02)]
    place: [f32; 3],
    #[replicate(angle, bits = 7)]
    heading: f32,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Health {
    #[replicate(bits = 10)]
    points: u16,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
enum Order {
    Stay,
    Follow(EntityLink),
    Wait { ticks: u8 },
}

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Guard {
    morale: i8,
    #[replicate(bits = 4)]
    step: i8,
    #[replicate(min = -10, max = 10)]
    bonus: i16,
    post: Option<u8>,
    friends: ArrayVec<EntityLink, 2>,
    order: Order,
}

/// The bytes of the block "```golden NAME" in the document: two hexadecimal digits each, up to a `#` in a line.
fn golden(name: &str) -> Vec<u8> {
    let (_, rest) = SPEC.split_once(&format!("```golden {name}\n")).unwrap_or_else(|| panic!("no block `{name}`"));
    let (block, _) = rest.split_once("```").expect("the block ends");
    let bytes = block.lines().flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
    bytes.map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits")).collect()
}

fn check(name: &str, sent: &[u8]) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(" ");
    assert_eq!(hex(sent), hex(&golden(name)), "the document (right) says otherwise in `{name}`");
}

struct Story {
    schema: std::sync::Arc<Schema>,
    world: WorldReplication,
    ids: Vec<NetId>,
    replicas: Replicas,
}

fn pose(x: f32) -> Pose {
    Pose { place: [x, 0.0, 1.0], heading: 0.0 }
}

/// What the document tells: four entities at tick 6; one moves, one is hurt, one goes and one comes at tick 7.
fn story() -> (Story, [Vec<u8>; 3]) {
    story_at(TimeFactor::USUAL)
}

/// The same where time runs like this from tick 7 on.
fn story_at(factor: TimeFactor) -> (Story, [Vec<u8>; 3]) {
    let schema = SchemaBuilder::new().component::<Pose>().component::<Health>().build();
    let (poses, healths): (ComponentIndex, ComponentIndex) =
        (schema.kind_of::<Pose>().unwrap(), schema.kind_of::<Health>().unwrap());
    let mut world = WorldReplication::new(schema.clone(), InterestSettings::default());
    let (mut scratch, mut traffic) = (ViewScratch::default(), Traffic::new(&schema));
    let mut view = world.new_view(3);
    let mut replicas = Replicas::new(schema.clone());
    let mut out = [0; 1200];
    world.begin_tick(6);
    let mut ids: Vec<NetId> = (0..4).map(|_| world.spawn().unwrap()).collect();
    for (index, id) in ids.iter().enumerate() {
        world.update(poses, *id, &pose(index as f32));
        world.update(healths, *id, &Health { points: 100 });
    }
    world.settle();
    world.refresh(&mut view, &mut scratch);
    let len = world.write_snapshot(&mut view, &mut traffic, 512, &mut out);
    world.sent(&mut view, 1);
    replicas.apply(&out[..len]).unwrap();
    view.acked(1);

    world.set_time_factor(factor);
    world.begin_tick(7);
    world.update(poses, ids[0], &pose(0.5));
    world.update(healths, ids[1], &Health { points: 70 });
    world.despawn(ids[2]);
    ids.push(world.spawn().unwrap());
    world.update(poses, ids[4], &pose(-150.0));
    world.settle();
    world.refresh(&mut view, &mut scratch);
    let len = world.write_snapshot(&mut view, &mut traffic, 513, &mut out);
    world.sent(&mut view, 2);
    let mut samples = [Vec::new(), Vec::new()];
    // Audit samples go round; the second is about entity 1, the fourth about what left.
    for turn in 0..4 {
        let mut sample = Vec::new();
        assert!(world.write_audit_sample(&mut view, &mut traffic, &mut sample));
        match turn {
            0 => samples[0] = sample,
            3 => samples[1] = sample,
            _ => {}
        }
    }
    let [present, absent] = samples;
    (Story { schema, world, ids, replicas }, [out[..len].to_vec(), present, absent])
}

#[test]
fn fields_go_as_the_document_says() {
    let friends = [EntityLink::from(NetId { slot: 5, generation: 1 })].into_iter().collect();
    let guard = Guard { morale: -3, step: 2, bonus: 7, post: Some(9), friends, order: Order::Wait { ticks: 20 } };
    let mut bytes = [0; 32];
    for (name, exact) in [("fields", false), ("fields-exact", true)] {
        let mut out = Writer::new(&mut bytes);
        if exact {
            guard.encode_exact(&mut out)
        } else {
            guard.encode(&mut out)
        }
        let len = out.len();
        check(name, &bytes[..len]);
    }
    assert_eq!(Guard::decode(&mut Reader::new(&golden("fields"))), Ok(guard.clone()));
    assert_eq!(Guard::decode_exact(&mut Reader::new(&golden("fields-exact"))), Ok(guard));
    for order in [Order::Stay, Order::Follow(EntityLink::NONE)] {
        let mut out = Writer::new(&mut bytes);
        order.encode(&mut out);
        assert_eq!(out.len(), 1);
        assert_eq!(Order::decode(&mut Reader::new(&bytes)), Ok(order));
    }
}

#[test]
fn the_server_sends_the_documents_bytes() {
    let (_, [snapshot, present, absent]) = story();
    check("snapshot", &snapshot);
    check("audit-sample-present", &present);
    check("audit-sample-tombstone", &absent);
}

#[test]
fn a_client_reads_the_documents_bytes_as_the_document_says() {
    let (Story { ids, mut replicas, world, schema }, _) = story();
    let header = replicas.apply(&golden("snapshot")).unwrap();
    assert_eq!((header.epoch, header.tick, header.input), (3, 7, 513));
    let close = |id: NetId, x: f32| (replicas.get::<Pose>(id).unwrap().place[0] - x).abs() <= 0.01;
    assert!(close(ids[0], 0.5) && close(ids[1], 1.0) && close(ids[3], 3.0) && close(ids[4], -150.0));
    assert_eq!(replicas.get::<Health>(ids[1]), Some(&Health { points: 70 }));
    assert_eq!(replicas.get::<Health>(ids[4]), None);
    assert!(!replicas.contains(ids[2]) && !world.contains(ids[2]));
    replicas.hold_audit_sample(&golden("audit-sample-present"), 7).unwrap();
    replicas.hold_audit_sample(&golden("audit-sample-tombstone"), 7).unwrap();
    replicas.check_audit_samples();
    // Two components of the one, and that the other is not there.
    assert_eq!((replicas.counts().state_checks, replicas.counts().state_errors), (3, 0));
    assert_eq!(schema.kinds_count(), 2);
}

/// An audit sample about an entity whose health is out of range.
#[test]
fn an_audit_sample_keeps_silent_about_what_may_be_late() {
    let schema = SchemaBuilder::new().component::<Pose>().component::<Health>().build();
    let mut world = WorldReplication::new(schema.clone(), InterestSettings::default());
    let health = KindRule { range_m: Some(10.0), updates_per_s_max: None };
    let rules = ReplicationRules { components: vec![KindRule::default(), health], ..ReplicationRules::default() };
    world.set_rules(&rules.resolved(20.0), 20.0, []);
    let (mut scratch, mut traffic) = (ViewScratch::default(), Traffic::new(&schema));
    let mut view = world.new_view(3);
    view.look_at([0.0; 2]);
    world.begin_tick(7);
    let id = world.spawn().unwrap();
    world.set_place(id, [40.0, 0.0]);
    world.update(schema.kind_of::<Pose>().unwrap(), id, &pose(40.0));
    world.update(schema.kind_of::<Health>().unwrap(), id, &Health { points: 100 });
    world.settle();
    world.refresh(&mut view, &mut scratch);
    let (mut out, mut sample) = ([0; 1200], Vec::new());
    let len = world.write_snapshot(&mut view, &mut traffic, 0, &mut out);
    assert!(world.write_audit_sample(&mut view, &mut traffic, &mut sample));
    check("audit-sample-partial", &sample);
    let mut replicas = Replicas::new(schema);
    replicas.apply(&out[..len]).unwrap();
    replicas.hold_audit_sample(&golden("audit-sample-partial"), 7).unwrap();
    replicas.check_audit_samples();
    assert_eq!((replicas.counts().state_checks, replicas.counts().state_errors), (1, 0));
}

#[test]
fn a_slowed_world_says_so_ahead_of_the_same_records() {
    let (Story { mut replicas, ids, .. }, [sent, ..]) = story_at(TimeFactor::from_percent(40));
    let expected = [golden("slowed"), golden("snapshot")[8..].to_vec()].concat();
    assert_eq!(sent, expected);
    let header = replicas.apply(&expected).unwrap();
    assert_eq!((header.tick, header.input, header.time_factor.percent()), (7, 513, 40));
    assert_eq!(replicas.get::<Pose>(ids[0]), Some(&pose(0.5)));
    for percent in [0, 9, 101, 255] {
        let mut wrong = expected.clone();
        wrong[8] = percent;
        assert!(replicas.apply(&wrong).is_err(), "{percent} %");
    }
    assert!(replicas.apply(&expected[..8]).is_err());
}

/// Promise: whoever is in a slowed world hears it in each of its ticks, and for some ticks after that it is over, though there
/// be nothing else to say.
#[test]
fn a_quiet_world_says_how_fast_its_time_runs() {
    let (Story { mut world, schema, .. }, _) = story();
    let (mut scratch, mut traffic) = (ViewScratch::default(), Traffic::new(&schema));
    let mut view = world.new_view(9);
    let mut tick = |number: u16, percent: u32| {
        world.set_time_factor(TimeFactor::from_percent(percent));
        world.begin_tick(number.into());
        world.settle();
        world.refresh(&mut view, &mut scratch);
        let mut said = Vec::new();
        loop {
            let mut out = [0; 1200];
            let len = world.write_snapshot(&mut view, &mut traffic, 0, &mut out);
            if len == 0 {
                break;
            }
            world.sent(&mut view, number);
            said.push((out[0], len));
        }
        view.acked(number);
        said
    };
    tick(8, 100);
    assert_eq!(tick(9, 100), []);
    for number in 10..15 {
        assert_eq!(tick(number, 30), [(7, 9)], "tick {number}");
    }
    for number in 15..35 {
        assert_eq!(tick(number, 100), [(2, 8)], "tick {number}");
    }
    assert_eq!(tick(35, 100), []);
}
