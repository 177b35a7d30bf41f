//! Promise: systems run as in Bevy, in every world of a kind, and what fails is told.

use std::sync::Arc;

use bevy_app::{FixedUpdate, Last, PostUpdate, PreUpdate, Startup, Update};
use bevy_ecs::{prelude::*, schedule::ScheduleLabel};

use super::*;
use crate::system_list::SystemList;

#[derive(Resource, Default)]
struct Log(Vec<&'static str>);

#[derive(Component)]
struct Thing;

fn say(word: &'static str) -> impl FnMut(ResMut<Log>) + Clone {
    move |mut log| log.0.push(word)
}

fn spawn(mut commands: Commands) {
    commands.spawn(Thing);
}

fn count(things: Query<&Thing>, mut log: ResMut<Log>) {
    log.0.push(if things.is_empty() { "none" } else { "some" });
}

fn phases() -> Phases {
    Phases::begin(site!("world.systems"))
}

/// The systems of a world and the world, with a log.
fn made(register: impl Fn(&mut SystemList), worlds: usize) -> Vec<(WorldSystems, World)> {
    let mut template = SystemList::default();
    register(&mut template);
    let order = Arc::new(template.into_order("test", &mut World::new()).unwrap());
    let make = || {
        let mut world = World::new();
        world.init_resource::<Log>();
        let mut list = SystemList::default();
        register(&mut list);
        let mut systems = list.into_systems("test", order.clone(), &mut world).unwrap();
        systems.start(&mut world).unwrap();
        (systems, world)
    };
    (0..worlds).map(|_| make()).collect()
}

/// Registers by `register` in a template and in two further worlds; every one of them must log `expect` until its first
/// tick is over.
fn check(register: impl Fn(&mut SystemList), expect: &[&str]) {
    for (mut systems, mut world) in made(register, 2) {
        systems.run(&mut world, &mut phases(), Nanos::ZERO);
        assert_eq!(world.resource::<Log>().0, expect);
    }
}

#[derive(SystemSet, Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    First,
    Last,
}

#[test]
fn chains_run_in_their_order() {
    check(|list| list.add(Update, (say("a"), say("b"), say("c")).chain()), &["a", "b", "c"]);
}

#[test]
fn labels_run_in_bevys_order_whatever_the_order_of_their_coming() {
    check(
        |list| {
            list.add(Last, say("last"));
            list.add(Update, say("update"));
            list.add(FixedUpdate, say("fixed"));
            list.add(Startup, say("startup"));
            list.add(PreUpdate, say("pre"));
            list.add(PostUpdate, say("post"));
        },
        &["startup", "pre", "fixed", "update", "post", "last"],
    );
}

#[test]
fn startup_runs_once_and_leaves_nothing() {
    let register = |list: &mut SystemList| {
        list.add(Startup, (say("startup"), say("too")).chain());
        list.add(Update, say("update"));
    };
    let (mut systems, mut world) = made(register, 1).remove(0);
    (0..2).for_each(|_| systems.run(&mut world, &mut phases(), Nanos::ZERO));
    assert_eq!(world.resource::<Log>().0, ["startup", "too", "update", "update"]);
    assert_eq!(systems.systems.len(), 1);
}

#[test]
fn sets_order_systems_that_were_added_the_other_way_round() {
    check(
        |list| {
            list.configure_sets(Update, (Phase::First, Phase::Last).chain());
            list.add(Update, say("late").in_set(Phase::Last));
            list.add(Update, say("early").in_set(Phase::First));
        },
        &["early", "late"],
    );
}

#[test]
fn commands_are_applied_between_dependent_systems_and_at_the_end_of_a_label() {
    check(|list| list.add(Update, (spawn, count).chain()), &["some"]);
    check(
        |list| {
            list.add(PreUpdate, spawn);
            list.add(Update, count);
        },
        &["some"],
    );
    check(|list| list.add(Update, (spawn, ApplyDeferred, count).chain_ignore_deferred()), &["some"]);
    check(|list| list.add(Update, (spawn, count).chain_ignore_deferred()), &["none"]);
}

#[test]
fn conditions_on_systems_and_sets_are_kept() {
    check(
        |list| {
            list.configure_sets(Update, Phase::First.run_if(|| false));
            list.add(Update, (say("never"), say("nor this")).chain().in_set(Phase::First));
            list.add(Update, (say("off").run_if(|| false), say("on").run_if(|| true)).chain());
            list.add(Update, (say("x"), say("y")).run_if(|| false));
        },
        &["on"],
    );
}

/// Asked at the begin of the tick, the condition would not see what the first system said.
#[test]
fn a_set_is_asked_when_its_first_system_is_due() {
    check(
        |list| {
            list.configure_sets(Update, Phase::Last.run_if(|log: Res<Log>| log.0.contains(&"first")));
            list.add(Update, (say("first"), say("in the set").in_set(Phase::Last)).chain());
        },
        &["first", "in the set"],
    );
}

#[test]
fn a_cycle_is_an_error_that_names_the_kind() {
    let mut list = SystemList::default();
    list.configure_sets(Update, (Phase::First, Phase::Last).chain());
    list.configure_sets(Update, (Phase::Last, Phase::First).chain());
    list.add(Update, (say("a").in_set(Phase::First), say("b").in_set(Phase::Last)));
    let error = list.into_order("knot", &mut World::new()).unwrap_err();
    assert!(error.to_string().contains("world kind `knot` under `Update`"), "{error}");
}

#[test]
fn a_world_with_other_systems_than_its_kind_is_refused() {
    let order = || {
        let mut list = SystemList::default();
        list.add(Update, spawn);
        Arc::new(list.into_order("test", &mut World::new()).unwrap())
    };
    let error = SystemList::default().into_systems("test", order(), &mut World::new()).err();
    assert!(matches!(error, Some(OrderError::Changed { expected: 1, found: 0, .. })));
    let mut other = SystemList::default();
    other.add(Update, count);
    let error = other.into_systems("test", order(), &mut World::new()).err();
    assert!(matches!(error, Some(OrderError::Replaced { .. })));
}

#[derive(ScheduleLabel, Debug, Clone, PartialEq, Eq, Hash)]
struct Never;

#[test]
fn a_label_that_no_tick_runs_is_refused_by_name() {
    let mut list = SystemList::default();
    list.add(Never, spawn);
    let error = list.into_order("test", &mut World::new()).unwrap_err().to_string();
    assert!(error.contains("`Never`") && error.contains("spawn") && error.contains("`test`"), "{error}");
}

#[test]
fn a_system_that_is_tied_to_a_thread_is_refused() {
    let mut list = SystemList::default();
    list.add(Update, |_: Option<NonSend<u32>>| ());
    let error = list.into_order("test", &mut World::new()).unwrap_err();
    assert!(matches!(error, OrderError::TiedToThread { .. }), "{error}");
    let mut list = SystemList::default();
    list.add(Update, |_: &mut World| ());
    assert!(list.into_order("test", &mut World::new()).is_ok(), "what has the whole world is on its thread");
}

#[derive(Resource)]
struct Absent;

fn needs_what_is_absent(_: Res<Absent>) {}

fn is_asked_in_vain(_: Res<Absent>) -> bool {
    true
}

fn fails() -> Result {
    Err("it is Sunday".into())
}

fn failing(list: &mut SystemList) {
    list.add(Update, (needs_what_is_absent, say("not me").run_if(is_asked_in_vain), fails, say("me")).chain());
}

/// The result of such a system was dropped.
#[test]
fn what_fails_is_counted_each_time_and_told_with_its_name_once_in_ten_seconds() {
    let (mut systems, mut world) = made(failing, 1).remove(0);
    systems.panic_on_failure(false);
    for tick in 0..=10 {
        systems.run(&mut world, &mut phases(), Nanos(tick * 1_000_000_000));
    }
    assert_eq!(systems.failures.count, 33);
    let lines = &systems.failures.lines;
    assert_eq!(lines.iter().map(|line| line.times).collect::<Vec<_>>(), [1, 1, 1, 10, 10, 10]);
    assert!(lines[0].system.ends_with("needs_what_is_absent") && lines[0].error.contains("Absent"), "{:?}", lines[0]);
    assert!(lines[1].system.contains("is_asked_in_vain, a condition of"), "{:?}", lines[1]);
    assert!(lines[2].system.ends_with("fails") && lines[2].error.contains("it is Sunday"), "{:?}", lines[2]);
    assert_eq!(world.resource::<Log>().0, ["me"; 11]);
}

#[test]
#[should_panic(expected = "needs_what_is_absent` of world kind `test` failed")]
fn in_a_debug_build_a_failed_system_panics_with_its_name() {
    let (mut systems, mut world) = made(failing, 1).remove(0);
    systems.panic_on_failure(true);
    systems.run(&mut world, &mut phases(), Nanos::ZERO);
}

#[test]
fn a_system_that_is_skipped_by_design_has_not_failed() {
    let register = |list: &mut SystemList| {
        list.add(Update, (|_: Single<&Thing>| (), |_: Populated<&Thing>| (), |_: If<Res<Absent>>| ()));
    };
    let (mut systems, mut world) = made(register, 1).remove(0);
    systems.panic_on_failure(true);
    systems.run(&mut world, &mut phases(), Nanos::ZERO);
    assert_eq!(systems.failures.count, 0);
}

/// The first world's failure must not keep the second's quiet.
#[test]
fn a_world_whose_startup_fails_is_not_made_and_no_other_is() {
    let list = || {
        let mut list = SystemList::default();
        list.add(Startup, needs_what_is_absent);
        list
    };
    let order = Arc::new(list().into_order("test", &mut World::new()).unwrap());
    for _ in 0..2 {
        let mut world = World::new();
        let mut systems = list().into_systems("test", order.clone(), &mut world).unwrap();
        let error = systems.start(&mut world).unwrap_err().to_string();
        assert!(error.contains("needs_what_is_absent") && error.contains("Absent"), "{error}");
    }
}
