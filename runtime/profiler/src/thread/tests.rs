//! Scopes from begin to record, each test on a thread of its own.

use std::sync::MutexGuard;

use super::*;
use crate::pool::PoolSettings;
use crate::record::Read;
use crate::{Phases, Scope, scope, site, start_recording, switch_recording};

/// One after the other: switching recording off is for the whole process, and so is the queue of overruns.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    start_recording(PoolSettings { blocks_max: 64, reserve: 4, history: u64::MAX });
    alone
}

/// Runs on a new thread; its cells are there when it is gone.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> (T, &'static ThreadCells) {
    std::thread::scope(|scope| {
        let body = || {
            register(ThreadClass::ShortTask);
            let result = work();
            (result, current_index().expect("it is registered"))
        };
        let (result, index) =
            std::thread::Builder::new().name("tested".into()).spawn_scoped(scope, body).unwrap().join().unwrap();
        (result, all()[index as usize])
    })
}

/// Everything that a thread has recorded, block by block, oldest first.
fn blocks(cells: &ThreadCells) -> Vec<Vec<Read>> {
    let pinned = pool().pin(0, cells.block().into_iter());
    let owned = pinned.blocks().filter(|(owner, _)| *owner == cells.index());
    owned.map(|(_, records)| records.map(Record::read).collect()).collect()
}

/// Names, beginnings and ends of a thread's scopes, in the order in which they ended.
fn scopes(cells: &ThreadCells) -> Vec<(&'static str, u64, u64)> {
    let scope = |read| match read {
        Read::Scope { site, begin, length } => Some((crate::site::get(SiteId(site))?.name(), begin, begin + length)),
        _ => None,
    };
    blocks(cells).into_iter().flatten().filter_map(scope).collect()
}

fn names(scopes: &[(&'static str, u64, u64)]) -> Vec<&'static str> {
    scopes.iter().map(|(name, ..)| *name).collect()
}

/// Promise: what a hook takes is of the scope that ends and of its subsystem, for scopes and for phases, and of nobody else.
#[test]
fn what_a_hook_takes_is_of_the_scope_that_ends() {
    const TAKES: u64 = 1_000_000;
    fn spin(_: u64) {
        let until = ticks::now() + TAKES;
        while ticks::now() < until {
            std::hint::spin_loop();
        }
    }
    let _alone = alone();
    crate::site::intern("hooked.scope", None).id();
    assert!(!end_hook::set("no_such_subsystem", spin));
    assert!(end_hook::set("hooked", spin));
    let ((), cells) = on_a_thread(|| {
        scope!("unhooked.around");
        {
            scope!("hooked.scope");
        }
        let mut phases = Phases::begin(site!("hooked.phase"));
        phases.next(site!("unhooked.phase"));
        drop(phases);
        drop(Phases::divide(site!("unhooked.divided"), site!("hooked.first")));
    });
    let scopes = scopes(cells);
    let length = |name| scopes.iter().find(|(other, ..)| *other == name).map(|(_, begin, end)| end - begin).unwrap();
    for name in ["hooked.scope", "hooked.phase", "hooked.first"] {
        assert!(length(name) >= TAKES, "{name}: {scopes:?}");
    }
    let end = |name| scopes.iter().find(|(other, ..)| *other == name).unwrap().2;
    let begin = |name| scopes.iter().find(|(other, ..)| *other == name).unwrap().1;
    assert_eq!(begin("unhooked.phase"), end("hooked.phase"));
    assert_eq!(end("unhooked.divided"), end("hooked.first"));
    let taken = |name| {
        let number = crate::site::subsystem_number(name).unwrap();
        cells.subsystem_ticks().nth(number).unwrap()
    };
    let whole = length("unhooked.around");
    assert!(taken("hooked") >= 3 * TAKES && taken("hooked") + taken("unhooked") <= whole, "{scopes:?}");
    let noted = std::iter::from_fn(overruns::take).filter(|overrun| overrun.thread == cells.index());
    assert_eq!(noted.count(), 0, "no budget is broken");
}

/// Promise: what a subsystem took is known by kind of world, and all kinds together are the whole.
#[test]
fn time_is_charged_to_the_kind_of_world() {
    let _alone = alone();
    let zone = crate::world_kind::number_of("thread_test.zone");
    let ((), cells) = on_a_thread(|| {
        scope!("kinds_a.before");
        {
            let _world = enter_world(zone, 7, 99);
            scope!("kinds_b.inside");
        }
        scope!("kinds_b.after");
    });
    let place = |name: &str| crate::site::subsystems().iter().position(|&other| other == name).unwrap();
    let of = |kind, name: &str| cells.subsystem_ticks_of(kind).nth(place(name)).unwrap();
    let (inside, outside) = (of(zone, "kinds_b"), of(KindNumber::NONE, "kinds_b"));
    assert!(inside > 0 && outside > 0, "{inside} {outside}");
    assert_eq!(subsystem_ticks(cells, "kinds_b"), inside + outside);
    assert_eq!(cells.kind_of_world(), KindNumber::NONE);
}

fn subsystem_ticks(cells: &ThreadCells, name: &str) -> u64 {
    let place = crate::site::subsystems().iter().position(|&other| other == name).expect("a scope has used it");
    cells.subsystem_ticks().nth(place).unwrap()
}

fn this_thread() -> &'static ThreadCells {
    cells().expect("it is registered")
}

#[test]
fn open_scopes_are_seen_while_they_are_open_and_recorded_when_they_end() {
    let _alone = alone();
    let (open, cells) = on_a_thread(|| {
        scope!("nesting.outer");
        scope!("nesting.inner");
        let open: Vec<SiteId> = this_thread().open_scopes().map(|(site, _)| site).collect();
        assert_eq!(current_site(), open.last().copied());
        open
    });
    let open: Vec<&str> = open.into_iter().map(|id| crate::site::get(id).unwrap().name()).collect();
    assert_eq!(open, ["nesting.outer", "nesting.inner"]);
    assert_eq!(cells.open_scopes().count(), 0);
    let scopes = scopes(cells);
    assert_eq!(names(&scopes), ["nesting.inner", "nesting.outer"]);
    let [(_, inner_begin, inner_end), (_, outer_begin, outer_end)] = scopes[..] else { panic!("{scopes:?}") };
    assert!(outer_begin <= inner_begin && inner_begin <= inner_end && inner_end <= outer_end);
    assert_eq!(cells.scopes(), 2);
}

#[test]
fn the_times_of_all_subsystems_are_the_wall_time_to_the_tick() {
    let _alone = alone();
    let ((from, to), cells) = on_a_thread(|| {
        let from = this_thread().charged_at.load(Ordering::Relaxed);
        for _ in 0..100 {
            scope!("whole_a.outer");
            {
                scope!("whole_b.inner");
                let mut phases = Phases::begin(site!("whole_c.first"));
                phases.next(site!("whole_a.second"));
            }
            scope!("whole_b.last");
        }
        (from, this_thread().charged_at.load(Ordering::Relaxed))
    });
    assert_eq!(cells.subsystem_ticks().sum::<u64>(), to - from);
    // Each by itself: what its scopes took, less the scopes of others inside.
    let total = |name: &str| {
        scopes(cells).iter().filter(|(other, ..)| *other == name).map(|(_, begin, end)| end - begin).sum::<u64>()
    };
    let phases = total("whole_c.first") + total("whole_a.second");
    assert_eq!(subsystem_ticks(cells, "whole_c"), total("whole_c.first"));
    assert_eq!(subsystem_ticks(cells, "whole_b"), total("whole_b.inner") - phases + total("whole_b.last"));
    let outer = total("whole_a.outer") - total("whole_b.inner") - total("whole_b.last");
    assert_eq!(subsystem_ticks(cells, "whole_a"), outer + total("whole_a.second"));
}

#[test]
fn a_phase_begins_at_the_very_tick_at_which_the_last_one_ended() {
    let _alone = alone();
    let ((), cells) = on_a_thread(|| {
        scope!("phases.around");
        let mut phases = Phases::begin(site!("phases.one"));
        assert_eq!(this_thread().open_scopes().count(), 2);
        phases.next(site!("phases.two"));
        assert_eq!(this_thread().open_scopes().count(), 2, "one takes the other's place");
        phases.next(site!("phases.three"));
    });
    let scopes = scopes(cells);
    assert_eq!(names(&scopes), ["phases.one", "phases.two", "phases.three", "phases.around"]);
    assert_eq!((scopes[0].2, scopes[1].2), (scopes[1].1, scopes[2].1));
    assert_eq!(cells.open_scopes().count(), 0);
}

#[test]
fn a_scope_that_is_phases_begins_and_ends_with_them() {
    let _alone = alone();
    let ((), cells) = on_a_thread(|| {
        scope!("divided.before");
        let mut phases = Phases::divide(site!("divided_whole.tick"), site!("divided_parts.first"));
        assert_eq!(this_thread().open_scopes().count(), 3);
        phases.next(site!("divided_parts.last"));
    });
    let scopes = scopes(cells);
    let expect = ["divided_parts.first", "divided_parts.last", "divided_whole.tick", "divided.before"];
    assert_eq!(names(&scopes), expect);
    let [first, last, whole, _] = scopes[..] else { panic!("{scopes:?}") };
    assert_eq!((first.1, first.2, last.2), (whole.1, last.1, whole.2));
    assert_eq!(cells.open_scopes().count(), 0);
    // All of it is the phases': nothing is left for what is around them.
    assert_eq!(subsystem_ticks(cells, "divided_parts"), whole.2 - whole.1);
    assert_eq!(subsystem_ticks(cells, "divided_whole"), 0);
}

#[test]
fn a_callee_has_phases_in_the_place_of_its_callers() {
    let _alone = alone();
    let callee = || {
        let mut phases = Phases::split(site!("callee_a.first"));
        {
            scope!("callee_b.inner");
        }
        phases.next(site!("callee_a.second"));
        let mut phases = Phases::go_on(site!("callee_a.never"));
        phases.next(site!("callee_a.third"));
    };
    let ((from, to), cells) = on_a_thread(|| {
        let from = this_thread().charged_at.load(Ordering::Relaxed);
        let mut phases = Phases::begin(site!("caller.before"));
        phases.next(site!("caller.renamed"));
        callee();
        let open = this_thread().open_scopes().map(|(id, _)| crate::site::get(id).unwrap().name());
        assert_eq!(open.collect::<Vec<_>>(), ["callee_a.third"], "it is left open");
        phases.next(site!("caller.after"));
        drop(phases);
        (from, this_thread().charged_at.load(Ordering::Relaxed))
    });
    let scopes = scopes(cells);
    let expect =
        ["caller.before", "callee_b.inner", "callee_a.first", "callee_a.second", "callee_a.third", "caller.after"];
    assert_eq!(names(&scopes), expect);
    let gapless = [0, 2, 3, 4, 5].map(|place: usize| scopes[place]);
    assert!(gapless.windows(2).all(|pair| pair[0].2 == pair[1].1), "{scopes:?}");
    assert_eq!(cells.open_scopes().count(), 0);
    assert_eq!(cells.subsystem_ticks().sum::<u64>(), to - from);
    let inner = scopes[1].2 - scopes[1].1;
    assert_eq!(subsystem_ticks(cells, "callee_b"), inner);
    assert_eq!(subsystem_ticks(cells, "callee_a"), scopes[4].2 - scopes[2].1 - inner);
}

/// A scope's end knows what has begun, and nothing may stand in its place.
#[test]
fn a_callee_without_a_phase_around_it_begins_its_own() {
    let _alone = alone();
    let ((), cells) = on_a_thread(|| {
        drop(Phases::split(site!("alone.split")));
        scope!("alone.scope");
        drop(Phases::go_on(site!("alone.go_on")));
        assert_eq!(this_thread().open_scopes().count(), 1);
    });
    assert_eq!(names(&scopes(cells)), ["alone.split", "alone.go_on", "alone.scope"]);
}

#[test]
fn a_phase_over_its_budget_is_noted_by_the_name_that_it_had_at_its_end() {
    let _alone = alone();
    while overruns::take().is_some() {}
    let ((), cells) = on_a_thread(|| {
        let wait = |ns| {
            let until = ticks::monotonic_ns() + ns;
            while ticks::monotonic_ns() < until {}
        };
        let mut phases = Phases::divide(site!("late.whole", budget_us = 2), site!("late.caller", budget_us = 1));
        {
            let mut phases = Phases::split(site!("late.within", budget_us = 60_000_000));
            wait(10_000);
            phases.next(site!("late.over", budget_us = 1));
            wait(10_000);
        }
        phases.next(site!("late.after"));
    });
    let noted = std::iter::from_fn(overruns::take).filter(|overrun| overrun.thread == cells.index());
    let noted: Vec<_> = noted.map(|overrun| crate::site::get(overrun.site).unwrap().name()).collect();
    assert_eq!(noted, ["late.over", "late.whole"]);
}

#[test]
fn a_scope_over_its_budget_is_noted_with_thread_and_world() {
    let _alone = alone();
    while overruns::take().is_some() {}
    let ((), cells) = on_a_thread(|| {
        let _world = enter_world(KindNumber::NONE, 7, 99);
        let wait = |ns| {
            let until = ticks::monotonic_ns() + ns;
            while ticks::monotonic_ns() < until {}
        };
        scope!("overrun.within", budget_us = 60_000_000);
        scope!("overrun.over", budget_us = 1);
        wait(10_000);
    });
    let noted: Vec<Overrun> =
        std::iter::from_fn(overruns::take).filter(|overrun| overrun.thread == cells.index()).collect();
    let [overrun] = noted[..] else { panic!("one was over: {noted:?}") };
    assert_eq!(crate::site::get(overrun.site).unwrap().name(), "overrun.over");
    assert_eq!((overrun.world, overrun.thread), (Some((7, 99)), cells.index()));
    let over = scopes(cells)[0];
    assert_eq!((overrun.ticks, overrun.at), (over.2 - over.1, over.2));
}

#[test]
fn what_is_nested_too_deep_is_counted_and_not_recorded() {
    let _alone = alone();
    let before = too_deep_count();
    let ((), cells) = on_a_thread(|| {
        let mut open = Vec::new();
        open.resize_with(DEPTH_MAX + 9, || Scope::begin(site!("deep.scope")));
        assert_eq!(this_thread().open_scopes().count(), DEPTH_MAX - 1);
        // Phases that do not fit are no reason to close a place that is another's.
        let mut phases = Phases::begin(site!("deep.phase"));
        phases.next(site!("deep.phase"));
        drop(phases);
        while open.pop().is_some() {}
        scope!("deep.after");
    });
    assert_eq!(too_deep_count() - before, 10 + 2);
    assert_eq!(scopes(cells).len(), DEPTH_MAX - 1 + 1);
    assert_eq!(cells.open_scopes().count(), 0);
}

#[test]
fn allocations_are_charged_to_the_innermost_scope() {
    let _alone = alone();
    let ((), cells) = on_a_thread(|| {
        scope!("allocating.outer");
        count_allocation(10);
        {
            scope!("allocating.inner");
            count_allocation(100);
            count_allocation(200);
            count_free();
        }
        {
            scope!("allocating.none");
        }
        count_allocation(1);
    });
    let records: Vec<Read> = blocks(cells).concat();
    let allocations_after = |name: &str| {
        let is_it = |read: &Read| matches!(read, Read::Scope { site, .. } if crate::site::get(SiteId(*site)).unwrap().name() == name);
        match records.get(records.iter().position(is_it).unwrap() + 1) {
            Some(Read::Allocations { count, frees, bytes }) => Some((*count, *frees, *bytes)),
            _ => None,
        }
    };
    assert_eq!(allocations_after("allocating.inner"), Some((2, 1, 300)));
    assert_eq!(allocations_after("allocating.none"), None);
    assert_eq!(allocations_after("allocating.outer"), Some((2, 0, 11)));
    assert_eq!((cells.allocations_and_frees(), cells.allocated_bytes()), ((4, 1), 311));
}

#[test]
fn every_block_says_which_world_it_begins_in() {
    let _alone = alone();
    let ((), cells) = on_a_thread(|| {
        let _world = enter_world(KindNumber::NONE, 5, 9);
        for _ in 0..3_000 {
            scope!("worlds.scope");
        }
    });
    let blocks = blocks(cells);
    assert!(blocks.len() >= 3, "{} blocks", blocks.len());
    for block in &blocks {
        assert!(matches!(block[0], Read::World { world: Some(5), tick: 9, .. }), "{:?}", block[0]);
    }
    assert!(matches!(blocks.concat().last(), Some(Read::World { world: None, .. })));
    assert_eq!(scopes(cells).len(), 3_000, "none is lost between two blocks");
}

/// A place that many worlds had before makes a number of more than 24 bits.
#[test]
fn worlds_that_come_late_into_their_places_are_told_apart() {
    let _alone = alone();
    let ((), cells) = on_a_thread(|| {
        for place in [7, 8] {
            let _world = enter_world(KindNumber::NONE, place | 20 << 20, 9);
            assert_eq!(this_thread().world(), Some((place | 20 << 20, 9)));
        }
    });
    let world = |read| match read {
        Read::World { world, .. } => world,
        _ => None,
    };
    let mut told: Vec<u32> = blocks(cells).into_iter().flatten().filter_map(world).collect();
    told.dedup();
    assert_eq!(told, [7 | 4 << 20, 8 | 4 << 20]);
}

#[test]
fn what_a_thread_has_recorded_is_there_when_it_is_gone() {
    let _alone = alone();
    let ((), cells) = on_a_thread(|| {
        assert!(this_thread().is_alive());
        scope!("gone.scope");
    });
    assert!(!cells.is_alive());
    assert_eq!((cells.name(), cells.class(), cells.block()), ("tested", ThreadClass::ShortTask, None));
    assert_eq!(names(&scopes(cells)), ["gone.scope"]);
}

#[test]
fn nothing_is_recorded_while_recording_is_off() {
    let _alone = alone();
    let ((), cells) = on_a_thread(|| {
        switch_recording(false);
        {
            let _world = enter_world(KindNumber::NONE, 5, 9);
            scope!("off.scope");
            Phases::begin(site!("off.phase")).next(site!("off.phase"));
            record_large_allocation(1 << 20);
            assert_eq!((current_site(), this_thread().world()), (None, Some((5, 9))));
        }
        switch_recording(true);
    });
    assert_eq!(blocks(cells), Vec::<Vec<Read>>::new());
    assert_eq!(cells.scopes(), 0);
}

#[test]
fn recording_may_be_switched_in_the_midst_of_scopes() {
    let _alone = alone();
    let ((), cells) = on_a_thread(|| {
        {
            let _world = enter_world(KindNumber::NONE, 5, 9);
            scope!("switched.begun_on");
            let mut phases = Phases::begin(site!("switched.phase_on"));
            switch_recording(false);
            scope!("switched.while_off");
            phases.next(site!("switched.phase_after"));
        }
        assert_eq!((this_thread().open_scopes().count(), this_thread().world()), (0, None), "what has begun ends");
        {
            scope!("switched.begun_off");
            let mut phases = Phases::begin(site!("switched.phase_off"));
            switch_recording(true);
            phases.next(site!("switched.phase_on_again"));
        }
        assert_eq!(this_thread().open_scopes().count(), 0, "what has not begun does not end");
    });
    let expect = ["switched.phase_on", "switched.phase_after", "switched.begun_on", "switched.phase_on_again"];
    assert_eq!(names(&scopes(cells)), expect);
}

#[test]
fn scopes_that_end_in_another_order_leave_none_open() {
    let _alone = alone();
    let ((), cells) = on_a_thread(|| {
        let (outer, inner) = (Scope::begin(site!("crossed.outer")), Scope::begin(site!("crossed.inner")));
        drop(outer);
        drop(inner);
        assert_eq!(this_thread().open_scopes().count(), 0);
        scope!("crossed.after");
    });
    assert_eq!(names(&scopes(cells)), ["crossed.outer", "crossed.inner", "crossed.after"]);
}

#[test]
fn a_counter_that_goes_backwards_makes_a_scope_of_no_length() {
    let _alone = alone();
    let ((), cells) = on_a_thread(|| {
        let begun = begin(site!("backwards.scope", budget_us = 1)).unwrap();
        end(Begun { at: begun.at + (1 << 40), ..begun });
    });
    let scopes = scopes(cells);
    assert_eq!(names(&scopes), ["backwards.scope"]);
    assert_eq!(scopes[0].1, scopes[0].2);
}

#[test]
fn a_long_scope_keeps_its_length() {
    let _alone = alone();
    const LENGTH: u64 = 5 << 32;
    let ((), cells) = on_a_thread(|| {
        let begun = begin(site!("long.scope")).unwrap();
        end(Begun { at: begun.at - LENGTH, ..begun });
    });
    let (_, begin, end) = scopes(cells)[0];
    assert!((LENGTH..LENGTH + LENGTH / 1_000).contains(&(end - begin)), "{}", end - begin);
}
