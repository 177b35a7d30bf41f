//! The promise: a steady tick allocates nothing, from the Bevy world to the client's packet.

use bevy_ecs::prelude::*;
use throng_metrics::Counters;
use throng_platform::allocator::{CountingAllocator, thread_counts};
use throng_replication::{
    ArrayVec, EntityLink, InterestSettings, NetId, Replicate, ReplicationRules, SchemaBuilder, Team, Traffic, View,
    ViewScratch, VisibilityFiltered, WorldReplication,
    ecs::{Collector, Placed, Replicated},
    listeners::Listeners,
    rules::Tier,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(Component, Clone, Replicate)]
struct Pose {
    #[replicate(min = -150.0, max = 150.0, step = 0.02)]
    place: [f32; 3],
    #[replicate(angle, bits = 7)]
    heading: f32,
}

impl Placed for Pose {
    fn place(&self) -> [f32; 2] {
        [self.place[0], self.place[1]]
    }
}

/// Refers to other entities: it is cloned before it is encoded.
#[derive(Component, Clone, Default, Replicate)]
struct Chased {
    by: ArrayVec<EntityLink, 3>,
}

/// Centre and radius of a circle that an entity runs on, once in 100 ticks.
#[derive(Component)]
struct Round([f32; 2], f32);

#[test]
fn a_steady_tick_allocates_nothing() {
    check(false);
}

#[test]
fn a_steady_tick_with_rules_and_secrets_allocates_nothing() {
    check(true);
}

/// 200 entities go round and come and go in each other's view; 20 clients hear those near them.
fn check(ruled: bool) {
    let schema = SchemaBuilder::new().component::<Pose>().component::<Chased>().build();
    let mut world = World::new();
    let mut collector = Collector::new(schema.clone());
    collector.replicate::<Pose>(&mut world);
    collector.replicate::<Chased>(&mut world);
    collector.placed_by::<Pose>(&mut world);
    let settings = InterestSettings { enter_radius_m: 20.0, leave_radius_m: 25.0, ..InterestSettings::default() };
    let mut replication = WorldReplication::new(schema.clone(), settings);
    if ruled {
        let tier = |to_m, updates_per_s| Tier { to_m, updates_per_s };
        let tiers = vec![tier(5.0, 20.0), tier(15.0, 10.0), tier(20.0, 4.0)];
        let rules = ReplicationRules { tiers, ..ReplicationRules::for_schema(&schema) };
        replication.set_rules(&rules.resolved(20.0), 20.0, []);
    }
    let entities: Vec<Entity> = (0..200)
        .map(|index| {
            let centre = [(index % 20) as f32 * 10.0 - 100.0, (index / 20) as f32 * 20.0 - 100.0];
            let pose = Pose { place: [0.0; 3], heading: 0.0 };
            let round = Round(centre, 5.0 + (index % 7) as f32 * 5.0);
            let mut entity = world.spawn((Replicated::default(), pose, round, Chased::default()));
            if ruled && index % 5 == 4 {
                entity.insert((VisibilityFiltered, Team(1 + index as u16 % 3)));
            }
            entity.id()
        })
        .collect();
    let mut views: Vec<View> = (0..20).map(|_| replication.new_view(0)).collect();
    let (mut scratch, mut traffic) = (ViewScratch::default(), Traffic::new(&schema));
    let mut listeners = Listeners::default();
    let mut circling = world.query::<(&Round, &mut Pose)>();
    let mut packet = [0; 1200];
    let mut sample = Vec::with_capacity(256);
    let (mut updates, mut spawns) = (0, 0);
    let mut heard = Vec::with_capacity(64);
    for tick in 1..=1200_u32 {
        let before = thread_counts();
        let angle = tick as f32 / 100.0 * std::f32::consts::TAU;
        for (Round(centre, radius), mut pose) in circling.iter_mut(&mut world) {
            pose.place = [centre[0] + radius * angle.cos(), centre[1] + radius * angle.sin(), 0.0];
            pose.heading = angle;
        }
        for index in (tick as usize % 10..200).step_by(10) {
            let mut chased = world.get_mut::<Chased>(entities[index]).unwrap();
            chased.by.truncate(2);
            chased.by.insert(0, entities[(index + tick as usize) % 200].into());
        }
        replication.begin_tick(tick);
        collector.collect(&mut world, &mut replication);
        world.clear_trackers();
        if tick == 1 {
            for (view, entity) in views.iter_mut().zip(&entities) {
                view.set_own(collector.net_id(&world, *entity));
            }
        }
        if ruled {
            replication.prepare_visibility_filter();
            for (number, view) in (0..).zip(&mut views) {
                let may_see = |id: &NetId| !(id.slot + tick / 25 + number).is_multiple_of(4);
                if tick % 2 == 0 {
                    replication.filter_visibility(view, &mut scratch, &mut |id| may_see(&id));
                    continue;
                }
                replication.filter_visibility_in_batch(view, &mut scratch, &mut |ids, answers| {
                    for (at, id) in ids.iter().enumerate() {
                        answers[at / 64] |= u64::from(may_see(id)) << (at % 64);
                    }
                });
            }
            replication
                .set_team(collector.net_id(&world, entities[tick as usize % 20]).unwrap(), Some(tick as u16 % 4));
            heard.clear();
            listeners.build(&replication, views.iter().map(Some));
            listeners.near([0.0; 2], 20.0, &mut heard);
            let seventh = collector.net_id(&world, entities[7]).unwrap();
            heard.retain(|index| replication.hears(&views[*index as usize], seventh));
        }
        replication.settle();
        for view in &mut views {
            replication.refresh(view, &mut scratch);
            sample.clear();
            assert!(replication.write_audit_sample(view, &mut traffic, &mut sample));
        }
        replication.settle();
        for view in &mut views {
            for part in 0..10 {
                let number = (tick * 10 + part) as u16;
                if replication.write_snapshot(view, &mut traffic, 0, &mut packet) == 0 {
                    break;
                }
                replication.sent(view, number);
                let answered = number.wrapping_sub(40);
                if number.is_multiple_of(7) { replication.lost(view, answered) } else { view.acked(answered) }
            }
        }
        let mut stats = replication.take_stats();
        views.iter_mut().for_each(|view| stats.merge(&view.take_counts()));
        if tick > 600 {
            let made = thread_counts() - before;
            assert_eq!((made.allocations, made.frees), (0, 0), "in tick {tick}");
            updates += stats.entity_updates;
            spawns += stats.spawns;
        }
    }
    assert!(updates > 20_000 && spawns > 1_000, "{updates} updates, {spawns} spawns");
}
