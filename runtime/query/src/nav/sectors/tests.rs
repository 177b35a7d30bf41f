//! Streaming and damage, as worlds see them.

use std::sync::Arc;

use glam::Vec3;
use throng_pack::envelope;

use super::testing::{SIDE_M, level_of, settings, stream, town};
use super::*;
use crate::geometry::Aabb;
use crate::nav::WalkOutcome;

const ONE_SECTOR: StreamSettings = StreamSettings { radius_m: 4.0, keep_m: 6.0, pending_max: 4 };

fn middle(row: u16, column: u16) -> Vec3 {
    Vec3::new(f32::from(column) + 0.5, 0.0, f32::from(row) + 0.5) * SIDE_M
}

fn store_of(level: SectorLevel) -> Arc<SectorStore> {
    SectorStore::new(level, StoreLimits { idle_bytes_max: 0, ..StoreLimits::default() })
}

fn ids(sectors: &WorldSectors) -> Vec<(u16, u16)> {
    sectors.resident().map(|sector| (sector.id().row, sector.id().column)).collect()
}

#[test]
fn sectors_follow_a_player_and_are_kept_for_a_while() {
    let mut sectors = WorldSectors::new(store_of(town(1, 4)), ONE_SECTOR);
    assert_eq!(stream(&mut sectors, &[middle(1, 1)]), 1);
    assert_eq!(ids(&sectors), [(1, 1)]);
    let side = Vec3::new(2.0 * SIDE_M, 0.0, 1.5 * SIDE_M);
    assert_eq!(stream(&mut sectors, &[side - Vec3::X * 3.0]), 1);
    assert_eq!(ids(&sectors), [(1, 1), (1, 2)]);
    // To and fro over the side: nothing comes or goes.
    for x in [8.0, -8.0, 5.0, -9.0] {
        assert_eq!(stream(&mut sectors, &[side + Vec3::X * x]), 0);
        assert!(sectors.released().is_none());
    }
    stream(&mut sectors, &[middle(1, 2) + Vec3::X]);
    assert_eq!(ids(&sectors), [(1, 2)]);
    let released = sectors.released().unwrap();
    assert_eq!(released.count(), 1);
    assert_eq!(sectors.store().counts().resident, 2, "dropped by whoever drops it, not by the world");
    drop(released);
    assert_eq!(sectors.store().counts().resident, 1);
    assert_eq!(sectors.counts(), StreamCounts { streamed: 2, released: 1, ..StreamCounts::default() });
}

#[test]
fn the_nearest_are_asked_for_first_and_so_many_at_a_time() {
    let settings = StreamSettings { radius_m: 40.0, pending_max: 3, ..ONE_SECTOR };
    let mut sectors = WorldSectors::new(store_of(town(1, 4)), settings);
    sectors.follow([middle(2, 1)]);
    let works: Vec<SectorWork> = std::iter::from_fn(|| sectors.next_work()).collect();
    assert_eq!(works.len(), 3);
    assert_eq!(works[0].id(), SectorId { row: 2, column: 1 });
    sectors.check();
}

/// Promise: who leaves while a sector is on its way leaves nothing behind, and the world never drops it itself.
#[test]
fn a_sector_whose_player_has_left_is_an_orphan() {
    let store = store_of(town(1, 4));
    let mut sectors = WorldSectors::new(store.clone(), ONE_SECTOR);
    sectors.follow([middle(0, 0)]);
    let (begun, waiting) = (sectors.next_work().unwrap(), WorldSectors::new(store.clone(), ONE_SECTOR));
    drop(waiting);
    let done = begun.run();
    sectors.follow([]);
    assert!(sectors.take(done));
    sectors.check();
    assert_eq!((sectors.counts().orphaned, sectors.resident().count(), sectors.pending_count()), (1, 0, 0));
    assert_eq!(store.counts().resident, 1);
    drop(sectors.released().unwrap());
    assert_eq!((store.counts().resident, store.counts().bytes), (0, 0));

    // Left before it was begun: it is not baked at all.
    sectors.follow([middle(0, 0)]);
    let work = sectors.next_work().unwrap();
    sectors.follow([]);
    assert!(sectors.take(work.run()));
    assert_eq!((sectors.counts().orphaned, store.counts().baked), (2, 1));

    // Back again before that is known: it is baked after all.
    sectors.follow([middle(0, 0)]);
    let work = sectors.next_work().unwrap();
    sectors.follow([]);
    sectors.follow([middle(0, 0)]);
    assert!(sectors.take(work.run()));
    assert_eq!(sectors.resident().count(), 1);
}

#[test]
fn the_world_may_end_while_work_is_done() {
    let store = store_of(town(1, 4));
    let mut sectors = WorldSectors::new(store.clone(), ONE_SECTOR);
    stream(&mut sectors, &[middle(0, 0)]);
    sectors.follow([middle(0, 0), middle(3, 3)]);
    let work = sectors.next_work().unwrap();
    drop(sectors);
    assert_eq!(store.counts().resident, 0);
    work.run();
    assert_eq!((store.counts().baked, store.counts().resident), (2, 0));
}

#[test]
fn what_is_lost_or_refused_is_asked_for_again_later() {
    let store = SectorStore::new(town(1, 4), StoreLimits { bytes_max: 1, idle_bytes_max: 0 });
    let mut sectors = WorldSectors::new(store.clone(), ONE_SECTOR);
    stream(&mut sectors, &[middle(0, 0)]);
    let players = [middle(0, 0), middle(2, 2)];
    assert_eq!(stream(&mut sectors, &players), 1);
    assert_eq!((sectors.counts().refused, sectors.resident().count()), (1, 1));
    assert_eq!(stream(&mut sectors, &players), 0, "not at once");
    let works = (0..10).map(|_| stream(&mut sectors, &players)).sum::<usize>();
    assert_eq!(works, 1);

    let mut sectors = WorldSectors::new(store_of(town(1, 4)), ONE_SECTOR);
    sectors.follow([middle(0, 0)]);
    let work = sectors.next_work().unwrap();
    sectors.started(work.ticket(), 77);
    assert!(sectors.lost(77) && !sectors.lost(77));
    sectors.check();
    assert!((0..10).map(|_| stream(&mut sectors, &[middle(0, 0)])).sum::<usize>() == 1);
}

/// A floor of two sectors with a wall from side to side, whose middle piece is box 2.
fn walled() -> (SectorLevel, Aabb) {
    let wall = |from: f32, to: f32| Aabb::new(Vec3::new(19.0, 0.0, from), Vec3::new(20.0, 4.0, to));
    let floor = Aabb::new(Vec3::new(0.0, -1.0, 0.0), Vec3::new(2.0 * SIDE_M, 0.0, SIDE_M));
    let middle = wall(8.0, 12.0);
    (level_of(&[floor, wall(0.0, 8.0), middle, wall(12.0, SIDE_M)]), middle)
}

fn passes(sectors: &WorldSectors) -> bool {
    let from = sectors.nearest(Vec3::new(5.0, 0.0, 10.0), 1.0).unwrap();
    sectors.walk_straight(from, Vec3::new(30.0, 0.0, 10.0)).unwrap().outcome == WalkOutcome::Arrived
}

/// Promise: damage is one world's alone, and the old mesh answers until the new one is there.
#[test]
fn damage_opens_a_way_in_its_world_alone() {
    let (level, _) = walled();
    let store = store_of(level);
    let all = StreamSettings { radius_m: 100.0, ..ONE_SECTOR };
    let [mut one, mut other] = [(); 2].map(|()| WorldSectors::new(store.clone(), all));
    let player = [middle(0, 0)];
    for sectors in [&mut one, &mut other] {
        stream(sectors, &player);
        assert!(!passes(sectors));
    }
    assert_eq!(store.counts().baked, 2, "shared");
    assert!(one.change(Damage::Removed { solid: 2 }));
    assert!(!one.change(Damage::Removed { solid: 2 }) && !one.change(Damage::Removed { solid: 4 }));
    one.check();
    assert!(!passes(&one), "until it is baked again");
    let standing = one.nearest(Vec3::new(18.0, 0.0, 10.0), 1.0).unwrap();
    assert_eq!(stream(&mut one, &player), 2, "the wall grows into both sectors' margins");
    assert!(passes(&one) && !passes(&other));
    assert_ne!(one.up_to_date(standing), Some(standing), "a point of before is looked up anew");
    assert!(one.up_to_date(standing).unwrap().position().distance(standing.position()) < 0.1);

    let rubble = Aabb::new(Vec3::new(30.0, 0.0, -1.0), Vec3::new(31.0, 3.0, SIDE_M + 1.0));
    assert!(other.change(Damage::Added { min: rubble.min, max: rubble.max }));
    assert!(!other.change(Damage::Added { min: rubble.max, max: rubble.min }));
    stream(&mut other, &player);
    let from = other.nearest(Vec3::new(25.0, 0.0, 10.0), 1.0).unwrap();
    let stop = other.walk_straight(from, Vec3::new(38.0, 0.0, 10.0)).unwrap();
    assert!(stop.outcome == WalkOutcome::Stopped && stop.end.position().x < 30.0, "{stop:?}");

    let counts = store.counts();
    assert_eq!((counts.damaged, counts.baked), (3, 2));
    drop((one, other));
    let counts = store.counts();
    assert_eq!((counts.resident, counts.bytes, counts.damaged, counts.damaged_bytes), (0, 0, 0, 0));
}

/// Promise: a world that is made again from a checkpoint and told the same answers as the first.
#[test]
fn a_checkpoint_holds_damage_and_what_is_on_its_way() {
    let (level, _) = walled();
    let store = store_of(level);
    let all = StreamSettings { radius_m: 100.0, ..ONE_SECTOR };
    let mut first = WorldSectors::new(store.clone(), all);
    stream(&mut first, &[middle(0, 0)]);
    first.change(Damage::Removed { solid: 2 });
    first.follow([middle(0, 0)]);
    let works: Vec<SectorWork> = std::iter::from_fn(|| first.next_work()).collect();
    assert_eq!(works.len(), 2);
    let mut bytes = Vec::new();
    envelope::write(&first.save(), &mut bytes).unwrap();

    let mut second = WorldSectors::new(store.clone(), all);
    second.load(envelope::read(&bytes).unwrap());
    second.check();
    assert!(!passes(&second));
    for work in works {
        let done = work.run();
        assert!(first.take(done) && second.take(done));
        assert_eq!(first.save(), second.save());
    }
    assert!(passes(&first) && passes(&second));
    assert_eq!(first.damage(), second.damage());
}

#[test]
fn unusable_settings_are_named() {
    let boxes = [Aabb::new(Vec3::ZERO, Vec3::splat(90.0))];
    let check = |settings: SectorSettings, expect: &str| {
        let geometry = crate::geometry::LevelGeometry::from_boxes(&boxes).unwrap();
        let error = SectorLevel::new(geometry, settings).err().unwrap().to_string();
        assert!(error.contains(expect), "{error}");
    };
    let with = |change: fn(&mut SectorSettings)| {
        let mut settings = settings();
        change(&mut settings);
        settings
    };
    check(with(|settings| settings.cells_per_side = 8), "cells_per_side is 8");
    check(with(|settings| settings.bake.cell_m = 0.0), "cell_m is 0");
    check(with(|settings| settings.bake.reachable_from = Some(Vec3::ZERO)), "reachable_from");
    check(with(|settings| (settings.bake.cell_m, settings.cells_per_side) = (0.01, 32)), "cell_m");
}

#[test]
fn roofs_are_left_out_where_they_are_too_high() {
    let floor = Aabb::new(Vec3::new(0.0, -1.0, 0.0), Vec3::new(SIDE_M, 0.0, SIDE_M));
    let house = Aabb::new(Vec3::new(4.0, 0.0, 4.0), Vec3::new(12.0, 5.0, 12.0));
    for (ground_m_max, has_roof) in [(f32::INFINITY, true), (2.0, false)] {
        let geometry = crate::geometry::LevelGeometry::from_boxes(&[floor, house]).unwrap();
        let level = SectorLevel::new(geometry, SectorSettings { ground_m_max, ..settings() }).unwrap();
        let mut sectors = WorldSectors::new(store_of(level), ONE_SECTOR);
        stream(&mut sectors, &[middle(0, 0)]);
        let on_roof = sectors.nearest(Vec3::new(8.0, 5.0, 8.0), 1.0);
        assert_eq!(on_roof.is_ok(), has_roof);
    }
}
