//! Contract: lists answer what a scan over everybody answers, whatever moves, comes and goes; both sides of a pair
//! agree; nothing allocates once everybody is in.

use proptest::prelude::*;
use throng_platform::allocator::{CountingAllocator, thread_counts};

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Insert(u32, [f32; 2]),
    Remove(u32),
    Moved(u32, [f32; 2]),
    /// Everybody by so much, turned a little for each index.
    MoveAll([f32; 2]),
    Groups(u32, u32),
    /// Other ranges: range and skin.
    Ranges(f32, f32),
}

const INDEXES: u32 = 80;

/// Runs the steps with lists and with scans of everybody, and asks both the same after each.
fn check(settings: NeighbourSettings, steps: &[Step]) -> NeighbourCounts {
    let mut lists = NeighbourLists::new(NeighbourSettings { mode: NeighbourMode::Lists, ..settings });
    let mut scans = NeighbourLists::new(NeighbourSettings { mode: NeighbourMode::ScanAll, ..settings });
    for (number, step) in steps.iter().enumerate() {
        let outcomes = [&mut lists, &mut scans].map(|neighbours| apply(neighbours, step));
        assert_eq!(outcomes[0], outcomes[1], "{step:?}");
        if number % 8 == 0 || steps.len() < 60 {
            lists.check();
        }
        for index in (number as u32 % 7..INDEXES).step_by(7) {
            for (radius_m, groups) in [(0.0, ANYONE), (7.0, 1), (settings.range_m, ANYONE), (settings.range_m * 3.0, 6)]
            {
                assert_eq!(
                    ask(&lists, index, radius_m, groups),
                    ask(&scans, index, radius_m, groups),
                    "after step {number}, {step:?}: {index} asks {radius_m} m, groups {groups:x}"
                );
            }
        }
    }
    check_batches(&lists, settings.range_m);
    lists.counts()
}

/// Many asked at once answer what each answers alone.
fn check_batches(neighbours: &NeighbourLists, range_m: f32) {
    let askers: Vec<(u32, u32)> = (0..INDEXES).rev().map(|index| (index, [1, 4, ANYONE][index as usize % 3])).collect();
    for radius_m in [range_m * 0.3, range_m, range_m * 2.0] {
        let (mut nearest, mut found, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        neighbours.nearest_each(radius_m, &askers, &mut nearest);
        neighbours.near_each(radius_m, &askers, &mut found, &mut ends);
        let mut begin = 0;
        for (number, (index, groups)) in askers.iter().enumerate() {
            assert_eq!(nearest[number], neighbours.nearest_of(*index, radius_m, *groups).unwrap_or(NOBODY));
            let mut near = Vec::new();
            neighbours.near_of(*index, radius_m, *groups, &mut near);
            assert_eq!(found[begin..ends[number] as usize], near);
            begin = ends[number] as usize;
        }
    }
}

fn apply(neighbours: &mut NeighbourLists, step: &Step) -> bool {
    match step {
        Step::Insert(index, place_m) => neighbours.insert(*index, *place_m),
        Step::Remove(index) => neighbours.remove(*index),
        Step::Moved(index, place_m) => neighbours.moved(*index, *place_m),
        Step::Groups(index, groups) => neighbours.set_groups(*index, *groups),
        Step::Ranges(range_m, skin_m) => {
            neighbours.set_ranges(*range_m, *skin_m);
            true
        }
        Step::MoveAll([dx, dz]) => {
            let places = (0..INDEXES).map(|index| match neighbours.place(index) {
                Some([x, z]) if index % 3 != 0 => [x + dx, z + dz],
                Some([x, z]) => [x - dz, z + dx],
                None => [f32::NAN; 2],
            });
            let (x_m, z_m): (Vec<f32>, Vec<f32>) = places.map(|[x, z]| (x, z)).unzip();
            neighbours.move_all(&x_m, &z_m);
            true
        }
    }
}

type Answer = (Vec<u32>, Option<u32>, Vec<u32>);

fn ask(neighbours: &NeighbourLists, index: u32, radius_m: f32, groups: u32) -> Answer {
    let (mut near, mut near_place) = (Vec::new(), Vec::new());
    neighbours.near_of(index, radius_m, groups, &mut near);
    neighbours.near_place_of([index as f32, 3.0], radius_m, groups, &mut near_place);
    (near, neighbours.nearest_of(index, radius_m, groups), near_place)
}

/// By arithmetic alone, so that the scan too is held against something.
fn check_scan(places: &[[f32; 2]], radius_m: f32) {
    let mut neighbours =
        NeighbourLists::new(NeighbourSettings { mode: NeighbourMode::ScanAll, ..NeighbourSettings::default() });
    for (index, place_m) in places.iter().enumerate() {
        assert_eq!(neighbours.insert(index as u32, *place_m), place_m.iter().all(|m| m.abs() <= PLACE_MAX_M));
    }
    for (index, [x, z]) in places.iter().enumerate().filter(|(index, _)| neighbours.contains(*index as u32)) {
        let distance_m2 = |other: usize| (x - places[other][0]).powi(2) + (z - places[other][1]).powi(2);
        let expect: Vec<u32> = (0..places.len())
            .filter(|other| {
                *other != index && neighbours.contains(*other as u32) && distance_m2(*other) <= radius_m * radius_m
            })
            .map(|other| other as u32)
            .collect();
        let nearest =
            expect.iter().copied().reduce(|a, b| if distance_m2(b as usize) < distance_m2(a as usize) { b } else { a });
        let mut near = Vec::new();
        neighbours.near(index as u32, radius_m, &mut near);
        assert_eq!(near, expect);
        assert_eq!(neighbours.nearest_of(index as u32, radius_m, ANYONE), nearest);
    }
}

fn coordinate() -> impl Strategy<Value = f32> {
    prop_oneof![
        20 => -80.0_f32..80.0,
        4 => (-8_i32..8).prop_map(|step| step as f32 * 5.0),
        1 => -1e6_f32..1e6,
        1 => prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(f32::MAX), Just(-PLACE_MAX_M)],
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let place = || [coordinate(), coordinate()];
    prop_oneof![
        6 => (0..INDEXES, place()).prop_map(|(index, place_m)| Step::Insert(index, place_m)),
        1 => (0..INDEXES).prop_map(Step::Remove),
        3 => (0..INDEXES, place()).prop_map(|(index, place_m)| Step::Moved(index, place_m)),
        3 => [-4.0_f32..4.0, -4.0_f32..4.0].prop_map(Step::MoveAll),
        2 => (0..INDEXES, 0_u32..8).prop_map(|(index, groups)| Step::Groups(index, groups)),
        1 => (1.0_f32..60.0, 0.1_f32..20.0).prop_map(|(range_m, skin_m)| Step::Ranges(range_m, skin_m)),
    ]
}

proptest! {
    #[test]
    fn lists_answer_what_a_scan_answers(
        steps in prop::collection::vec(step(), 0..200),
        range_m in 1.0_f32..60.0,
        skin_m in 0.1_f32..20.0,
        list_max in prop_oneof![Just(4), Just(16), Just(100)],
    ) {
        check(NeighbourSettings { mode: NeighbourMode::Lists, range_m, skin_m, list_max }, &steps);
    }

    #[test]
    fn a_scan_answers_what_arithmetic_answers(
        places in prop::collection::vec([coordinate(), coordinate()], 0..100),
        radius_m in 0.0_f32..100.0,
    ) {
        check_scan(&places, radius_m);
    }
}

const SETTINGS: NeighbourSettings =
    NeighbourSettings { mode: NeighbourMode::Lists, range_m: 20.0, skin_m: 4.0, list_max: 8 };

/// `count` in a row, a metre apart.
fn row(count: u32) -> Vec<Step> {
    (0..count).map(|index| Step::Insert(index, [index as f32, 0.0])).collect()
}

#[test]
fn idle_entities_are_never_scanned_again() {
    let mut steps = row(5);
    steps.extend(std::iter::repeat_n(Step::MoveAll([0.0, 0.0]), 50));
    assert_eq!(check(SETTINGS, &steps).scans, 5);
}

#[test]
fn walkers_are_scanned_less_than_once_for_each_half_skin() {
    let mut steps = vec![Step::Insert(1, [0.0; 2])];
    steps.extend((0..1_000).map(|number| Step::Moved(1, [number as f32 * 0.1, 0.0])));
    // 100 m in pieces of up to 4 m; of 2 m, if references did not lie ahead.
    let scans = check(SETTINGS, &steps).scans;
    assert!((25..=32).contains(&scans), "{scans}");
}

#[test]
fn removal_cleans_both_sides() {
    let mut steps = row(6);
    steps.push(Step::Remove(2));
    let counts = check(SETTINGS, &steps);
    assert_eq!((counts.pairs_entered, counts.pairs_left), (15, 5));
    steps.extend((0..6).filter(|index| *index != 2).map(Step::Remove));
    assert_eq!(check(SETTINGS, &steps).pairs_left, 15);
}

#[test]
fn a_crowd_drops_its_lists_and_gets_them_back() {
    let mut steps = row(20);
    let crowded = check(SETTINGS, &steps);
    assert!(crowded.lists_dropped >= 20 && crowded.fallbacks > 0, "{crowded:?}");
    steps.extend((6..20).map(Step::Remove));
    let before = check(SETTINGS, &steps).fallbacks;
    steps.extend(std::iter::repeat_n(Step::MoveAll([0.0, 0.0]), 7));
    // Of all questions in seven steps, only the one beyond the range.
    let after = check(SETTINGS, &steps).fallbacks;
    assert_eq!(after - before, 2 * 6, "near and nearest, once for each of six");
}

/// Promise: other ranges are in force at once, and change who answers, never the answer.
#[test]
fn a_wider_range_is_answered_from_lists_at_once() {
    let mut neighbours = NeighbourLists::new(NeighbourSettings { list_max: 64, ..SETTINGS });
    row(40).iter().for_each(|step| assert!(apply(&mut neighbours, step)));
    let fallbacks_of_30_m = |neighbours: &NeighbourLists| {
        let before = neighbours.counts().fallbacks;
        let mut near = Vec::new();
        neighbours.near(0, 30.0, &mut near);
        assert_eq!(near, (1..=30).collect::<Vec<_>>());
        neighbours.counts().fallbacks - before
    };
    assert_eq!(fallbacks_of_30_m(&neighbours), 1, "beyond the range");
    let before = neighbours.lengths();
    neighbours.set_ranges(30.0, 4.0);
    neighbours.check();
    assert_eq!(fallbacks_of_30_m(&neighbours), 0);
    let wide = neighbours.lengths();
    assert_eq!((wide.lists, wide.longest), (40, 39));
    assert!(wide.entries > before.entries && wide.mean() > 30.0, "{before:?}, then {wide:?}");
    neighbours.set_ranges(20.0, 4.0);
    neighbours.check();
    assert_eq!((fallbacks_of_30_m(&neighbours), neighbours.lengths()), (1, before));
    let counts = neighbours.counts();
    assert_eq!((counts.pairs_entered - counts.pairs_left) * 2, before.entries);
}

#[test]
fn what_is_not_usable_is_refused_and_counted() {
    let mut neighbours = NeighbourLists::new(SETTINGS);
    assert!(neighbours.insert(3, [1.0, 2.0]));
    assert!(!neighbours.insert(3, [1.0, 2.0]), "in use");
    assert!(!neighbours.insert(4, [f32::NAN, 2.0]));
    assert!(!neighbours.insert(u32::MAX, [0.0; 2]));
    assert!(!neighbours.moved(3, [f32::INFINITY, 0.0]));
    assert!(!neighbours.moved(9, [0.0; 2]));
    assert!(!neighbours.remove(0));
    let nan = [f32::NAN; 5];
    neighbours.move_all(&nan, &nan);
    let mut near = Vec::new();
    neighbours.near(3, f32::NAN, &mut near);
    neighbours.near(3, -1.0, &mut near);
    neighbours.near_place_of([0.0, f32::NAN], 1.0, ANYONE, &mut near);
    assert_eq!((near.len(), neighbours.counts().refused), (0, 10));
    assert_eq!(neighbours.place(3), Some([1.0, 2.0]));
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_steady_tick_does_not_allocate() {
    const COUNT: u32 = 500;
    let place = |index: u32, tick: u32| {
        let angle = tick as f32 * 0.05 + index as f32;
        [(index % 25) as f32 * 8.0 + angle.sin() * 9.0, (index / 25) as f32 * 8.0 + angle.cos() * 9.0]
    };
    for mode in [NeighbourMode::Lists, NeighbourMode::ScanAll] {
        let mut neighbours = NeighbourLists::new(NeighbourSettings { mode, list_max: 32, ..SETTINGS });
        (0..COUNT).for_each(|index| assert!(neighbours.insert(index, place(index, 0))));
        let mut found = Vec::with_capacity(COUNT as usize);
        let (mut x_m, mut z_m) = (vec![0.0; COUNT as usize], vec![0.0; COUNT as usize]);
        let before = thread_counts().allocations;
        for tick in 1..200 {
            for index in 0..COUNT {
                [x_m[index as usize], z_m[index as usize]] = place(index, tick);
            }
            neighbours.move_all(&x_m, &z_m);
            assert!(
                neighbours.remove(tick)
                    && neighbours.insert(tick, place(tick, tick))
                    && neighbours.set_groups(tick, tick)
            );
            for index in 0..COUNT {
                found.clear();
                neighbours.near(index, 15.0, &mut found);
                neighbours.nearest_of(index, 90.0, 5);
            }
        }
        assert_eq!(thread_counts().allocations - before, 0, "{mode:?}");
        let counts = neighbours.counts();
        assert!(mode == NeighbourMode::ScanAll || (counts.scans > 1_000 && counts.lists_dropped > 0), "{counts:?}");
    }
}
