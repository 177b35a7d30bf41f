//! What a world promises to all its clients: the same bytes however they are shared out, secrets kept, and no cost
//! where nothing happens.

use super::*;
use crate::{
    source::rules::{KindRule, ReplicationRules, Tier},
    testing::{Health, TestWorld, ViewId, pose, schema},
};

/// 40 entities and as many clients, which hear those around them.
fn crowd() -> (TestWorld, Vec<ViewId>) {
    let settings = InterestSettings { enter_radius_m: 8.0, leave_radius_m: 9.0, ..InterestSettings::default() };
    let mut world = TestWorld::new(schema(), settings);
    let views = (0..40)
        .map(|index| {
            let id = world.spawn().unwrap();
            world.set_place(id, [index as f32, 0.0]);
            world.update(ComponentIndex(0), id, &pose(index as f32));
            let view = world.add_client(0);
            world.set_own(view, Some(id));
            view
        })
        .collect();
    (world, views)
}

/// Rules with tiers of 1, 2 and 4 ticks and a component that is heard 6 m away.
fn rules() -> ResolvedRules {
    let tier = |to_m, updates_per_s| Tier { to_m, updates_per_s };
    let rules = ReplicationRules {
        tiers: vec![tier(3.0, 20.0), tier(5.0, 10.0), tier(7.0, 5.0)],
        components: vec![KindRule::default(), KindRule { range_m: Some(6.0), updates_per_s_max: None }],
        keepalive_s: 1.0,
        ..ReplicationRules::default()
    };
    rules.resolved(20.0)
}

/// Everything a crowd is sent in 60 ticks, some of it lost, with its clients served on so many threads at once.
fn told_to_a_crowd(threads: usize) -> (Vec<(ViewId, Vec<u8>)>, Counts) {
    type Batch = (Vec<(ViewId, View)>, ViewScratch, Traffic);

    fn serve(world: &WorldReplication, (views, scratch, traffic): &mut Batch, tick: u32) -> Vec<(ViewId, Vec<u8>)> {
        let mut messages = Vec::new();
        for (id, view) in views {
            let mut out = [0; 200];
            world.refresh(view, scratch);
            view.acked(tick as u16 - 1);
            (1..=3).for_each(|part| world.lost(view, tick as u16 - 1 + part * 1000));
            for part in 0..4 {
                let len = world.write_snapshot(view, traffic, 0, &mut out);
                world.sent(view, tick as u16 + part * 1000);
                messages.push((*id, out[..len].to_vec()));
            }
        }
        messages
    }
    let (mut crowd, ids) = crowd();
    crowd.set_rules(&rules(), 20.0);
    let mut batches: Vec<Batch> = Vec::new();
    for part in ids.chunks(ids.len().div_ceil(threads)) {
        let views = part.iter().map(|id| (*id, crowd.views[id.0 as usize].take().unwrap()));
        batches.push((views.collect(), ViewScratch::default(), Traffic::new(&schema())));
    }
    let mut world = Arc::new(crowd.into_world());
    let mut all = Vec::new();
    for tick in 1..60 {
        let changed = Arc::get_mut(&mut world).expect("no batch is out");
        changed.begin_tick(tick);
        for slot in 0..40 {
            let x = slot as f32 + ((tick * 3 + slot * 13) % 40).abs_diff(20) as f32 * 0.2;
            let id = NetId { slot, generation: 1 };
            changed.set_place(id, [x, 0.0]);
            changed.update(ComponentIndex(0), id, &pose(x));
            changed.update(ComponentIndex(1), id, &Health { points: tick as u16 / 7 });
        }
        changed.settle();
        let serving = batches.drain(..).map(|mut batch| {
            let world = world.clone();
            std::thread::spawn(move || (serve(&world, &mut batch, tick), batch))
        });
        for thread in serving.collect::<Vec<_>>() {
            let (messages, batch) = thread.join().unwrap();
            all.extend(messages);
            batch.0.iter().for_each(|(_, view)| view.check());
            batches.push(batch);
        }
    }
    let mut counts = Counts::default();
    batches.iter().for_each(|(_, _, traffic)| counts.add(traffic.total()));
    (all, counts)
}

/// Any number of threads writes the same bytes.
#[test]
fn several_threads_write_what_one_writes() {
    let (alone, counts) = told_to_a_crowd(1);
    let bytes: usize = alone.iter().map(|(_, message)| message.len()).sum();
    assert_eq!(counts.bytes, bytes as u64);
    let mut hasher = crate::StateHasher::new(0, 0);
    alone.iter().for_each(|(_, message)| hasher.write_bytes(message));
    // Faster but different is not faster: whoever changes this number says why.
    assert_eq!(hasher.finish(), 1905508069749457885);
    assert!(bytes > 100_000, "{bytes} bytes");
    for threads in [2, 8] {
        assert!(told_to_a_crowd(threads) == (alone.clone(), counts), "on {threads} threads");
    }
}

/// One client at 0 and entities at these places, known to it.
fn stage(places: &[f32], settings: InterestSettings) -> (TestWorld, ViewId, Vec<NetId>) {
    let mut world = TestWorld::new(schema(), settings);
    let view = world.add_client(0);
    world.set_view(view, [0.0; 2]);
    world.begin_tick(1);
    let ids = places.iter().map(|x| {
        let id = world.spawn().unwrap();
        world.set_place(id, [*x, 0.0]);
        world.update(ComponentIndex(0), id, &pose(0.0));
        world.update(ComponentIndex(1), id, &Health { points: 0 });
        id
    });
    let ids: Vec<_> = ids.collect();
    world.refresh_interest();
    let mut out = [0; 8000];
    assert!(world.write_snapshot(view, 0, &mut out) > 0);
    world.sent(view, 1);
    world.acked(view, 1);
    (world, view, ids)
}

/// What a client is told in a tick, as replicas make of it.
fn tell(world: &mut TestWorld, view: ViewId, replicas: &mut crate::Replicas) -> usize {
    world.refresh_interest();
    let mut out = [0; 8000];
    let len = world.write_snapshot(view, 0, &mut out);
    world.sent(view, world.tick() as u16);
    world.acked(view, world.tick() as u16);
    if len > 0 {
        replicas.apply(&out[..len]).unwrap();
    }
    len
}

#[test]
fn entities_are_told_as_often_as_their_tier_says() {
    let (mut world, view, ids) = stage(&[1.0, 4.0, 6.5], InterestSettings::default());
    world.set_rules(&rules(), 20.0);
    let mut told = [[0; 2]; 3];
    let (mut entities_told, mut out) = (0, [0; 1200]);
    // The rules are new: everything is told once.
    for tick in 2..202 {
        world.begin_tick(tick);
        for id in &ids {
            world.update(ComponentIndex(0), *id, &pose(tick as f32 * 0.1));
            world.update(ComponentIndex(1), *id, &Health { points: tick as u16 });
        }
        world.refresh_interest();
        let len = world.write_snapshot(view, 0, &mut out);
        world.sent(view, tick as u16);
        world.acked(view, tick as u16);
        for (id, mask) in crate::testing::model_test::masks(&out[..len]) {
            entities_told += 1;
            told[id as usize][0] += u32::from(mask & 1 != 0);
            told[id as usize][1] += u32::from(mask & 2 != 0);
        }
    }
    let near = |count: u32, expect: u32| count.abs_diff(expect) <= 2;
    assert!(near(told[0][0], 200) && near(told[1][0], 100) && near(told[2][0], 50), "{told:?}");
    // The last is beyond the range of its health: once a second.
    assert!(near(told[0][1], 200) && near(told[1][1], 100) && near(told[2][1], 10), "{told:?}");
    assert!(entities_told < 370);
}

/// Promise: thinned, who is told at once goes on being told at once, and all others half as often; nothing that had
/// changed is left out when that begins, or ends.
#[test]
fn thinned_rings_are_told_half_as_often_and_nothing_is_left_out() {
    let (mut world, view, ids) = stage(&[1.0, 4.0, 6.5], InterestSettings::default());
    world.set_rules(&rules(), 20.0);
    let mut out = [0; 1200];
    let mut tick = 1;
    // How often each was told in so many ticks, with a change in each of the first ones.
    let mut told = |world: &mut TestWorld, ticks: u32, changing: u32| {
        let mut told = [0; 3];
        for index in 0..ticks {
            tick += 1;
            world.begin_tick(tick);
            if index < changing {
                ids.iter().for_each(|id| _ = world.update(ComponentIndex(0), *id, &pose(tick as f32 * 0.1)));
            }
            world.refresh_interest();
            let len = world.write_snapshot(view, 0, &mut out);
            world.sent(view, tick as u16);
            world.acked(view, tick as u16);
            for (id, mask) in crate::testing::model_test::masks(&out[..len]) {
                told[id as usize] += u32::from(mask & 1 != 0);
            }
        }
        told
    };
    told(&mut world, 40, 40);
    assert_eq!(told(&mut world, 80, 80), [80, 40, 20]);
    world.set_thinned(true);
    assert_eq!(told(&mut world, 80, 80), [80, 20, 10]);
    assert_eq!(told(&mut world, 8, 1), [1, 1, 1], "what changed once comes with the next turn");
    for (waited, is_thinned) in (0..8).flat_map(|waited| [(waited, false), (waited, true), (waited, false)]) {
        let before = told(&mut world, 1 + waited, 1);
        world.set_thinned(is_thinned);
        let after = told(&mut world, 8, 0);
        let each = std::iter::zip(before, after).map(|(before, after)| before + after);
        assert!(each.min() >= Some(1), "{waited} ticks after a change, thinned: {is_thinned}: {before:?}, {after:?}");
    }
    told(&mut world, 16, 16);
    assert_eq!(told(&mut world, 80, 80), [80, 40, 20], "as the rules say again");
}

/// Promise: other radii hold from the next refresh on, also for who stands where nothing moves, and the world's own
/// again without them.
#[test]
fn radii_of_rules_hold_in_place_of_the_worlds_own() {
    let (mut world, view, ids) = stage(&[5.0, 50.0, 90.0], InterestSettings::default());
    let told = |world: &mut TestWorld, radii: Option<InterestRadii>, tick: u32| {
        let rules = ReplicationRules { radii, ..ReplicationRules::default() };
        world.set_rules(&rules.resolved(20.0), 20.0);
        world.begin_tick(tick);
        world.refresh_interest();
        ids.iter().map(|id| world.hears(view, *id)).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut world, None, 2), [true, true, false]);
    assert_eq!(told(&mut world, Some(InterestRadii { enter_m: 8.0, leave_m: 9.0 }), 3), [true, false, false]);
    assert_eq!(told(&mut world, Some(InterestRadii { enter_m: 95.0, leave_m: 99.0 }), 4), [true, true, true]);
    assert_eq!(world.own_radii(), InterestRadii { enter_m: 60.0, leave_m: 70.0 });
    assert_eq!(told(&mut world, None, 5), [true, true, false]);
}

#[test]
fn what_is_urgent_goes_at_once_and_travel_brings_what_waited() {
    let (mut world, view, ids) = stage(&[6.5, 6.6, 6.7, 6.8, 6.9], InterestSettings::default());
    world.set_rules(&rules(), 20.0);
    let masks = |world: &mut TestWorld| {
        let mut out = [0; 1200];
        world.refresh_interest();
        let len = world.write_snapshot(view, 0, &mut out);
        world.sent(view, world.tick() as u16);
        world.acked(view, world.tick() as u16);
        crate::testing::model_test::masks(&out[..len])
    };
    // The keepalive has told what was told before.
    for tick in 2..40 {
        world.begin_tick(tick);
        masks(&mut world);
    }
    for tick in 40..60 {
        world.begin_tick(tick);
        world.update(ComponentIndex(0), ids[3], &pose(tick as f32));
        world.set_urgent(ids[3]);
        assert_eq!(masks(&mut world), [(3, 1)], "in tick {tick}");
    }
    world.begin_tick(60);
    ids.iter().for_each(|id| _ = world.update(ComponentIndex(0), *id, &pose(1.0)));
    assert!(masks(&mut world).len() < 4);
    world.begin_tick(61);
    world.set_view(view, [50.0, 0.0]);
    assert_eq!(masks(&mut world).len(), 5);
}

#[test]
fn who_is_denied_leaves_at_once_and_comes_back_at_once() {
    // More than a small world: sets are rebuilt in turns.
    let places: Vec<f32> = (0..100).map(|index| index as f32 * 0.1).collect();
    let settings = InterestSettings { period_ticks: 50, budget_bytes_per_tick: 65_536, ..InterestSettings::default() };
    let (mut world, view, ids) = stage(&places, settings);
    let mut replicas = crate::Replicas::new(schema());
    let mut asked = 0;
    for (tick, may_see) in (2..).zip([true, true, false, false, true, false, true]) {
        world.begin_tick(tick);
        if tick == 2 {
            // From here on the replicas listen: everything is told again.
            ids.iter().for_each(|id| world.remove(ComponentIndex(1), *id));
        }
        world.set_visibility_filtered(ids[7], true);
        world.update(ComponentIndex(0), ids[7], &pose(tick as f32));
        world.filter_visibility(&mut |_, id| {
            assert_eq!(id, ids[7]);
            asked += 1;
            may_see
        });
        tell(&mut world, view, &mut replicas);
        assert_eq!(replicas.contains(ids[7]), may_see, "in tick {tick}");
        assert_eq!(world.hears(view, ids[7]), may_see);
        let mut sample = Vec::new();
        (0..200).for_each(|_| _ = world.write_audit_sample(view, &mut sample));
    }
    assert_eq!(asked, 7);
    // Not asked in a tick: denied.
    world.begin_tick(9);
    tell(&mut world, view, &mut replicas);
    assert!(!replicas.contains(ids[7]) && replicas.contains(ids[8]));
    // No filter is asked about it any more.
    for tick in 10..110 {
        world.begin_tick(tick);
        world.set_visibility_filtered(ids[7], false);
        tell(&mut world, view, &mut replicas);
    }
    assert!(replicas.contains(ids[7]));
    world.begin_tick(111);
    world.set_owner_only(ids[7]);
    tell(&mut world, view, &mut replicas);
    assert!(!replicas.contains(ids[7]));
}

/// A packet is given up between two messages of a tick: what it carried is owed again, and this tick's change is not
/// lost over it.
#[test]
fn a_loss_between_two_messages_of_a_tick_loses_nothing_else() {
    let places: Vec<f32> = (0..60).map(|index| index as f32 * 0.1).collect();
    let settings =
        InterestSettings { packets_in_flight_max: 1, budget_bytes_per_tick: 65_536, ..InterestSettings::default() };
    let (mut world, view, ids) = stage(&places, settings);
    let mut out = [0; 100];
    world.begin_tick(2);
    world.update(ComponentIndex(1), ids[50], &Health { points: 5 });
    world.refresh_interest();
    assert!(world.write_snapshot(view, 0, &mut out) > 0);
    world.sent(view, 2);
    let mut masks = 0;
    for tick in 3..6 {
        world.begin_tick(tick);
        if tick == 3 {
            ids.iter().for_each(|id| _ = world.update(ComponentIndex(0), *id, &pose(9.0)));
        }
        world.refresh_interest();
        for part in 0..20 {
            let len = world.write_snapshot(view, 0, &mut out);
            world.sent(view, tick as u16 * 20 + part);
            let of_50 = crate::testing::model_test::masks(&out[..len]).into_iter().filter(|(slot, _)| *slot == 50);
            of_50.for_each(|(_, mask)| masks |= mask);
            world.acked(view, tick as u16 * 20 + part);
        }
    }
    assert_eq!(masks, 0b11);
}

/// What was told at an entity's turn far away, and lost, is owed again when the loss is known after it has come near.
#[test]
fn a_loss_is_made_good_whatever_ring_the_entity_is_in_by_then() {
    let (mut world, view, ids) = stage(&[5.0], InterestSettings::default());
    let tier = |to_m, updates_per_s| Tier { to_m, updates_per_s };
    let tiers = vec![tier(3.0, 20.0), tier(9.0, 2.5)];
    world.set_rules(&ReplicationRules { tiers, ..ReplicationRules::default() }.resolved(20.0), 20.0);
    let mut told = Vec::new();
    let mut out = [0; 1200];
    for tick in 2..30 {
        world.begin_tick(tick);
        match tick {
            9 => _ = world.update(ComponentIndex(1), ids[0], &Health { points: 5 }),
            17 => world.set_place(ids[0], [1.0, 0.0]),
            _ => {}
        }
        world.refresh_interest();
        if tick == 17 {
            world.lost(view, 16);
        }
        let len = world.write_snapshot(view, 0, &mut out);
        if crate::testing::model_test::masks(&out[..len]) == [(0, 2)] {
            told.push(tick);
        }
        world.sent(view, tick as u16);
        if tick != 16 {
            world.acked(view, tick as u16);
        }
    }
    assert_eq!(told, [16, 17]);
}

/// A slot's owner that came and went before anything of it was sent is not named as absent, though the client may still
/// hold the owner before.
#[test]
fn a_tombstone_sample_names_nobody_of_whom_the_client_was_never_told() {
    let (mut world, view, ids) = stage(&[1.0], InterestSettings { entities_max: 1, ..InterestSettings::default() });
    // Its line takes nothing in these ticks.
    let first_tick = world.tick() + 1;
    world.begin_tick(first_tick);
    world.despawn(ids[0]);
    world.refresh_interest();
    world.begin_tick(first_tick + 1);
    let next = world.spawn().unwrap();
    world.set_place(next, [1.0, 0.0]);
    world.refresh_interest();
    assert!(next.slot == ids[0].slot && world.hears(view, next));
    world.begin_tick(first_tick + 2);
    world.set_place(next, [1000.0, 0.0]);
    world.refresh_interest();
    let mut named = Vec::new();
    let mut sample = Vec::new();
    while world.write_audit_sample(view, &mut sample) {
        // Slot 0 is a byte; its generation follows.
        named.push(sample[8]);
        sample.clear();
    }
    assert_eq!(named, [ids[0].generation]);
}

/// Even where interest is not looked at in between.
#[test]
fn nothing_of_what_is_owner_only_goes_out_before_interest_is_refreshed() {
    for by_filter in [false, true] {
        let (mut world, view, ids) = stage(&[1.0, 2.0], InterestSettings::default());
        world.begin_tick(2);
        if by_filter {
            world.set_visibility_filtered(ids[0], true);
            world.filter_visibility(&mut |_, _| true);
            assert_eq!(world.write_snapshot(view, 0, &mut [0; 1200]), 0);
            world.begin_tick(3);
            world.filter_visibility(&mut |_, _| false);
        } else {
            world.set_owner_only(ids[0]);
        }
        ids.iter().for_each(|id| _ = world.update(ComponentIndex(0), *id, &pose(9.0)));
        assert!(!world.hears(view, ids[0]));
        let mut out = [0; 1200];
        let len = world.write_snapshot(view, 0, &mut out);
        assert_eq!(crate::testing::model_test::masks(&out[..len]), [(1, 1)]);
    }
}

#[test]
fn listeners_are_found_by_place_and_by_what_they_hear() {
    let (mut world, views) = crowd();
    let ids: Vec<_> = (0..40).map(|slot| NetId { slot, generation: 1 }).collect();
    world.refresh_interest();
    let near = |world: &mut TestWorld, place, range_m| {
        let mut near = Vec::new();
        world.views_near(place, range_m, &mut near);
        near.sort();
        near
    };
    let hearing = |world: &TestWorld| -> Vec<ViewId> {
        views.iter().copied().filter(|view| world.hears(*view, ids[0])).collect()
    };
    assert_eq!(near(&mut world, [10.2, 0.0], 2.0), views[9..=12]);
    assert_eq!(near(&mut world, [0.0, 0.0], 5.0), views[0..=5]);
    assert_eq!(hearing(&world), views[0..=8], "within the 8 m in which it is heard");
    world.begin_tick(1);
    world.set_visibility_filtered(ids[0], true);
    world.filter_visibility(&mut |view, _| view == views[3]);
    world.refresh_interest();
    assert_eq!(hearing(&world), [views[0], views[3]]);
    world.set_view_team(views[5], Some(2));
    assert!(world.view(views[5]).is_of_team(2) && !world.view(views[5]).is_of_team(0));
    assert!(!world.view(views[4]).is_of_team(0), "0 is no team");
}

/// What happens nowhere costs nothing: no entry is looked at, no byte written, whatever the number of entities.
#[test]
fn a_world_in_which_nothing_changes_costs_its_clients_alone() {
    for ruled in [false, true] {
        let (mut world, views) = crowd();
        for index in 0..3000 {
            let id = world.spawn().unwrap();
            world.set_place(id, [index as f32 * 0.01, 5.0]);
            world.update(ComponentIndex(0), id, &pose(1.0));
        }
        views.iter().for_each(|view| world.set_budget(*view, 1 << 20));
        if ruled {
            world.set_rules(&rules(), 20.0);
        }
        let mut out = vec![0; 1 << 16];
        let mut tick = |world: &mut TestWorld, tick: u32| {
            world.begin_tick(tick);
            world.refresh_interest();
            for view in &views {
                world.write_snapshot(*view, 0, &mut out);
                world.sent(*view, tick as u16);
                world.acked(*view, tick as u16);
            }
            world.take_stats()
        };
        let first = tick(&mut world, 1);
        assert!(first.spawns > 20_000 && first.entries_visited > 20_000);
        (2..30).for_each(|number| _ = tick(&mut world, number));
        for number in 30..60 {
            let stats = tick(&mut world, number);
            let expect = ReplicationStats { answers_unknown: 40, ..ReplicationStats::default() };
            assert_eq!(stats, expect, "in tick {number}");
        }
    }
}

/// A late client gets what others were told long ago.
#[test]
fn a_late_client_gets_the_exact_state() {
    let (mut world, _, ids) = stage(&[1.0, 4.0, 6.5, 30.0], InterestSettings::default());
    world.set_rules(&rules(), 20.0);
    world.begin_tick(2);
    ids.iter().for_each(|id| _ = world.update(ComponentIndex(1), *id, &Health { points: 77 }));
    (3..300).for_each(|tick| world.begin_tick(tick));
    let late = world.add_client(1);
    world.set_view(late, [0.0; 2]);
    let mut replicas = crate::Replicas::new(schema());
    tell(&mut world, late, &mut replicas);
    assert_eq!(replicas.len(), 4);
    assert!(replicas.iter::<Health>().all(|(_, health)| health.points == 77));
}

/// A client cannot make up what it got: unknown packets are counted, and change nothing.
#[test]
fn answers_to_packets_never_sent_are_counted_and_mean_nothing() {
    let mut world = TestWorld::new(schema(), InterestSettings::default());
    let view = world.add_client(0);
    let id = world.spawn().unwrap();
    world.refresh_interest();
    let mut out = [0; 1200];
    assert!(world.write_snapshot(view, 0, &mut out) > 0);
    world.sent(view, 5);
    (100..200).for_each(|packet| world.acked(view, packet));
    world.lost(view, 4);
    assert_eq!(world.take_stats().answers_unknown, 101);
    // The spawn is not acknowledged: a change is a spawn again.
    world.begin_tick(1);
    world.update(ComponentIndex(0), id, &pose(1.0));
    assert!(world.write_snapshot(view, 0, &mut out) > 0);
    assert_eq!(world.take_stats().spawns, 1);
    world.acked(view, 5);
    assert_eq!(world.take_stats().answers_unknown, 0);
}

/// Promise: a client has what it has acknowledged. What was lost, was answered already or was never sent says nothing.
#[test]
fn the_newest_tick_that_a_client_has_acknowledged_is_known() {
    let (mut world, view, ids) = stage(&[1.0], InterestSettings::default());
    assert_eq!(world.view(view).acked_tick(), 1);
    for tick in 2..7 {
        world.begin_tick(tick);
        world.update(ComponentIndex(0), ids[0], &pose(tick as f32));
        world.refresh_interest();
        assert!(world.write_snapshot(view, 0, &mut [0; 1200]) > 0);
        world.sent(view, tick as u16);
    }
    world.lost(view, 6);
    for (packet, expect) in [(4, 4), (2, 4), (6, 4), (99, 4), (5, 5), (5, 5)] {
        world.acked(view, packet);
        assert_eq!(world.view(view).acked_tick(), expect, "packet {packet}");
    }
    let late = world.add_client(1);
    assert_eq!(world.view(late).acked_tick(), 0, "it has heard nothing yet");
}

/// 1,000 worlds of this size are a few megabytes.
#[test]
fn a_small_world_takes_a_few_kilobytes() {
    let mut world = TestWorld::new(schema(), InterestSettings::default());
    let ids: Vec<_> = (0..20).map(|_| world.spawn().unwrap()).collect();
    let view = world.add_client(0);
    world.set_view(view, [0.0; 2]);
    for tick in 1..100 {
        world.begin_tick(tick);
        for id in &ids {
            world.set_place(*id, [tick as f32 * 0.1, 0.0]);
            world.update(ComponentIndex(0), *id, &pose(tick as f32 * 0.1));
        }
        world.refresh_interest();
        assert!(world.write_snapshot(view, 0, &mut [0; 1200]) > 0);
        world.sent(view, tick as u16);
    }
    let view = size_of::<View>() + world.view(view).heap_bytes();
    let around = world.scratch.heap_bytes() + world.traffic.heap_bytes();
    let bytes = size_of::<WorldReplication>() + world.heap_bytes() + view + around;
    assert!(bytes <= 10_240, "{bytes} bytes");
}

#[test]
fn the_turn_of_a_client_that_left_is_given_again() {
    let (mut world, views) = crowd();
    let turns = |world: &TestWorld| world.views.iter().flatten().map(|view| view.turn).collect::<Vec<_>>();
    let before = turns(&world);
    world.remove_client(views[3]);
    assert_eq!(world.add_client(1), views[3]);
    assert_eq!(turns(&world), before);
}

/// What the clients of two worlds are told whose ticks take turns: one with a single ring, one with several and more
/// entities. Packets are short, so that they fill.
fn told_in_turns(mut shared: Option<UpdateBuffers>) -> Vec<Vec<u8>> {
    let settings = InterestSettings { enter_radius_m: 300.0, leave_radius_m: 310.0, ..InterestSettings::default() };
    let mut worlds = [(20, None), (300, Some(rules()))].map(|(entities_count, rules)| {
        let mut world = TestWorld::new(schema(), settings.clone());
        if let Some(rules) = rules {
            world.set_rules(&rules, 20.0);
        }
        let ids: Vec<NetId> = (0..entities_count).map(|_| world.spawn().unwrap()).collect();
        let view = world.add_client(0);
        world.set_own(view, Some(ids[0]));
        (world, ids, view)
    });
    let mut told = Vec::new();
    for tick in 1..40 {
        for (world, ids, view) in &mut worlds {
            if let Some(buffers) = &mut shared {
                world.swap_buffers(buffers);
            }
            world.begin_tick(tick);
            for (index, id) in ids.iter().enumerate() {
                let x = (index % 40) as f32 * 0.3 + (tick % 5) as f32 * 0.1;
                world.set_place(*id, [x, 0.0]);
                world.update(ComponentIndex(0), *id, &pose(x));
            }
            world.refresh_interest();
            for part in 0..3 {
                let mut out = [0; 100];
                let len = world.write_snapshot(*view, tick as u16 + part * 1000, &mut out);
                world.sent(*view, tick as u16 + part * 1000);
                told.push(out[..len].to_vec());
            }
            (0..3).for_each(|part| world.acked(*view, tick as u16 + part * 1000));
            if let Some(buffers) = &mut shared {
                world.swap_buffers(buffers);
            }
        }
    }
    told
}

#[test]
fn whose_buffers_the_updates_are_put_together_in_changes_no_byte() {
    let told = told_in_turns(None);
    let filled = told.chunks(3).filter(|messages| messages.iter().filter(|message| !message.is_empty()).count() > 1);
    assert!(filled.count() > 60, "packets fill, in both worlds");
    assert!(told == told_in_turns(Some(UpdateBuffers::default())));
}
