//! Promise: what one is used to from Bevy works in a world, or is refused by name.

mod habits;

use std::time::Duration;

use bevy_app::{App, AppExit, Plugin, PluginGroup, PluginGroupBuilder};
use bevy_ecs::{prelude::*, schedule::ScheduleLabel, system::SystemParam};
use bevy_state::prelude::*;
use bevy_time::{Fixed, Real, TimePlugin, Virtual, common_conditions::on_real_timer};
use habits::{Log, check, refusal, say, ticked};
use throng_world::prelude::*;

#[derive(Component, Default)]
struct Sheep;

#[derive(Component, Default)]
struct Wool(u32);

#[derive(Component, Default)]
#[require(Wool)]
struct Shorn;

#[derive(Resource, Default)]
struct Grass(u32);

#[derive(SystemSet, Debug, Clone, PartialEq, Eq, Hash)]
enum Part {
    Early,
    Late,
}

#[test]
fn systems_closures_tuples_and_order() {
    check(
        |world| {
            world.add_systems(Update, (say("b").after(Part::Early).before(Part::Late), say("a").in_set(Part::Early)));
            world.add_systems(Update, (say("c"), say("d")).chain().after(Part::Early).in_set(Part::Late));
            world.configure_sets(Update, Part::Late.run_if(|log: Res<Log>| log.0.len() > 1));
            world.add_systems(Update, say("b2").before(Part::Late).after(Part::Early));
        },
        1,
        |log| assert!(log.starts_with(&["a"]) && log.ends_with(&["c", "d"]) && log.len() == 5, "{log:?}"),
    );
}

#[test]
fn conditions() {
    fn off() -> bool {
        false
    }
    check(
        |world| {
            world.init_resource::<Grass>();
            world.add_systems(PreUpdate, |mut grass: ResMut<Grass>, mut tick: Local<u32>| {
                *tick += 1;
                if *tick == 2 {
                    grass.0 += 1;
                }
            });
            world.add_systems(Update, say("changed").run_if(resource_changed::<Grass>.and_then(not(off))));
            world.add_systems(Update, say("never").run_if(off));
        },
        3,
        // A resource that is new counts as changed, as in Bevy.
        |log| assert_eq!(log, ["changed", "changed"]),
    );
}

#[test]
fn every_label_of_bevys_has_its_turn() {
    const START: [&str; 3] = ["pre-startup", "startup", "post-startup"];
    const TICK: [&str; 10] =
        ["first", "pre", "fixed first", "fixed pre", "fixed", "fixed post", "fixed last", "update", "post", "last"];
    check(
        |world| {
            world.add_systems(Last, say("last")).add_systems(PostUpdate, say("post"));
            world.add_systems(Update, say("update")).add_systems(FixedLast, say("fixed last"));
            world.add_systems(FixedPostUpdate, say("fixed post")).add_systems(FixedUpdate, say("fixed"));
            world.add_systems(FixedPreUpdate, say("fixed pre")).add_systems(FixedFirst, say("fixed first"));
            world.add_systems(PreUpdate, say("pre")).add_systems(First, say("first"));
            world.add_systems(PostStartup, say("post-startup")).add_systems(Startup, say("startup"));
            world.add_systems(PreStartup, say("pre-startup"));
        },
        2,
        |log| assert_eq!(log, [&START[..], &TICK, &TICK].concat()),
    );
}

#[derive(SystemParam)]
struct Flock<'w, 's> {
    sheep: Query<'w, 's, Entity, With<Sheep>>,
    grass: Option<Res<'w, Grass>>,
}

#[test]
fn parameters() {
    check(
        |world| {
            world.world_mut().spawn((Sheep, Shorn));
            world.add_systems(Update, |flock: Flock, one: Single<&Wool>, mut log: ResMut<Log>| {
                assert!(flock.sheep.iter().count() == 1 && flock.grass.is_none() && one.0 < 2);
                log.0.push("derived");
            });
            world.add_systems(Update, |mut both: ParamSet<(Query<&mut Wool>, Query<&Wool>)>| {
                both.p0().par_iter_mut().for_each(|mut wool| wool.0 = 1);
                assert_eq!(both.p1().iter().map(|wool| wool.0).sum::<u32>(), 1);
            });
            world.add_systems(
                Update,
                (|| 7_u32).pipe(|In(seven): In<u32>, mut log: ResMut<Log>| {
                    log.0.push(if seven == 7 { "piped" } else { "lost" });
                }),
            );
        },
        1,
        |log| assert!(log.contains(&"derived") && log.contains(&"piped"), "{log:?}"),
    );
}

/// That is no failure: in this world one would panic.
#[test]
fn what_is_skipped_by_design_waits_for_its_turn() {
    check(
        |world| {
            world.add_systems(Update, |_: Populated<&Sheep>, mut log: ResMut<Log>| log.0.push("populated"));
            world.add_systems(Update, |_: Single<&Sheep>, mut log: ResMut<Log>| log.0.push("single"));
            world.add_systems(Update, |_: If<Res<Grass>>, mut log: ResMut<Log>| log.0.push("if"));
            world.add_systems(PostUpdate, |mut commands: Commands| {
                commands.spawn(Sheep);
                commands.insert_resource(Grass(1));
            });
        },
        2,
        |log| assert!(log.len() == 3 && ["if", "populated", "single"].iter().all(|word| log.contains(word)), "{log:?}"),
    );
}

#[test]
fn exclusive_and_one_shot_systems_and_commands() {
    fn shear(mut log: ResMut<Log>) {
        log.0.push("shear");
    }
    check(
        |world| {
            let id = world.world_mut().register_system(shear);
            world.add_systems(
                Update,
                (
                    |mut commands: Commands| _ = commands.spawn(Sheep),
                    |sheep: Query<&Sheep>, mut log: ResMut<Log>| log.0.push(["none", "one"][sheep.iter().count()]),
                    move |world: &mut World| world.run_system(id).expect("it is registered"),
                    move |mut commands: Commands| commands.run_system(id),
                )
                    .chain(),
            );
        },
        1,
        |log| assert_eq!(log, ["one", "shear", "shear"]),
    );
}

#[test]
fn changes_removals_and_children() {
    fn grow(wool: Query<Ref<Wool>>, mut log: ResMut<Log>) {
        for wool in &wool {
            log.0.push(if wool.is_added() { "added" } else { "old" });
        }
    }
    check(
        |world| {
            world.add_systems(Startup, |mut commands: Commands| {
                commands.spawn(Sheep).with_child(Shorn);
            });
            world.add_systems(Update, grow);
            world.add_systems(PostUpdate, |parents: Query<(Entity, &Children)>, mut commands: Commands| {
                parents.iter().for_each(|(parent, _)| commands.entity(parent).despawn());
            });
            world.add_systems(Last, |mut gone: RemovedComponents<Wool>, mut log: ResMut<Log>| {
                gone.read().for_each(|_| log.0.push("gone"));
            });
        },
        2,
        |log| assert_eq!(log, ["added", "gone"]),
    );
}

#[test]
fn filters_of_changes() {
    fn look(added: Query<(), Added<Wool>>, changed: Query<(), Changed<Wool>>, mut log: ResMut<Log>) {
        log.0.push(match (added.iter().count(), changed.iter().count()) {
            (1, 1) => "new",
            (0, 1) => "changed",
            (0, 0) => "as it was",
            _ => "odd",
        });
    }
    check(
        |world| {
            world.world_mut().spawn(Wool(0));
            world.add_systems(Update, look);
            world.add_systems(PostUpdate, |mut wool: Single<&mut Wool>, tick: Res<TickInfo>| {
                if tick.tick == 0 {
                    wool.0 += 1;
                }
            });
        },
        3,
        |log| assert_eq!(log, ["new", "changed", "as it was"]),
    );
}

#[derive(Message)]
struct Bleat(u32);

#[test]
fn messages_are_read_once_and_do_not_pile_up() {
    let world = check(
        |world| {
            world.add_message::<Bleat>();
            world.add_systems(Update, |mut bleats: MessageWriter<Bleat>, tick: Res<TickInfo>| {
                bleats.write(Bleat(tick.tick));
            });
            world.add_systems(PostUpdate, |mut bleats: MessageReader<Bleat>, tick: Res<TickInfo>| {
                let heard: Vec<_> = bleats.read().map(|bleat| bleat.0).collect();
                assert_eq!(heard, [tick.tick]);
            });
        },
        100,
        |_| (),
    );
    assert_eq!(world.ecs().resource::<Messages<Bleat>>().len(), 2, "of this tick and of the one before");
}

#[derive(Event)]
struct Wolf;

#[test]
fn events_are_observed() {
    check(
        |world| {
            world.add_observer(|_: On<Wolf>, mut log: ResMut<Log>| log.0.push("run"));
            world.add_observer(|_: On<Add<Sheep>>, mut log: ResMut<Log>| log.0.push("born"));
            world.add_systems(Update, |mut commands: Commands| {
                commands.trigger(Wolf);
                commands.spawn(Sheep);
            });
        },
        1,
        |log| assert_eq!(log, ["run", "born"]),
    );
}

/// The way round: observers that the Bevy world itself is given, for all entities or for one.
#[test]
fn observers_are_added_to_the_bevy_world_too() {
    #[derive(EntityEvent)]
    struct Shear(Entity);

    check(
        |world| {
            let ecs = world.world_mut();
            ecs.add_observer(|_: On<Wolf>, mut log: ResMut<Log>| log.0.push("run"));
            let sheep = ecs.spawn(Sheep).observe(|_: On<Shear>, mut log: ResMut<Log>| log.0.push("shorn")).id();
            let lamb = ecs.spawn((Sheep, ChildOf(sheep))).id();
            world.add_systems(Update, move |mut commands: Commands, parents: Query<&ChildOf>| {
                assert_eq!(parents.get(lamb).map(ChildOf::parent).ok(), Some(sheep));
                commands.trigger(Wolf);
                commands.trigger(Shear(sheep));
                commands.trigger(Shear(lamb));
            });
        },
        1,
        |log| assert_eq!(log, ["run", "shorn"]),
    );
}

/// Without the clock of this machine: see `tick_time`.
#[test]
fn time_and_timers_go_by_ticks() {
    check(
        |world| {
            world.add_systems(Update, |time: Res<Time>, tick: Res<TickInfo>| {
                assert_eq!(time.elapsed(), Duration::from_millis(50) * (tick.tick + 1));
                assert_eq!(time.delta(), Duration::from_millis(50));
            });
            world.add_systems(FixedUpdate, |time: Res<Time>, fixed: Res<Time<Fixed>>| {
                assert_eq!((time.delta(), fixed.elapsed()), (fixed.timestep(), time.elapsed()));
            });
            world.add_systems(Startup, |time: Res<Time>| assert_eq!(time.elapsed(), Duration::ZERO));
            world.add_systems(Update, say("second").run_if(on_timer(Duration::from_secs(1))));
            world.add_systems(Update, |time: Res<Time>, mut timer: Local<Option<Timer>>, mut log: ResMut<Log>| {
                let timer = timer.get_or_insert_with(|| Timer::from_seconds(1.5, TimerMode::Once));
                if timer.tick(time.delta()).just_finished() {
                    log.0.push("rung");
                }
            });
        },
        41,
        |log| assert_eq!(log, ["second", "rung", "second"]),
    );
}

#[test]
fn virtual_time_may_be_paused_and_the_fixed_schedules_run_on() {
    check(
        |world| {
            world.add_systems(Last, |mut time: ResMut<Time<Virtual>>| time.pause());
            world.add_systems(FixedUpdate, say("fixed"));
            world.add_systems(Update, |time: Res<Time>, virt: Res<Time<Virtual>>, mut log: ResMut<Log>| {
                assert_eq!(time.elapsed(), virt.elapsed());
                log.0.push(if time.delta().is_zero() { "stands" } else { "goes" });
            });
        },
        2,
        |log| assert_eq!(log, ["fixed", "goes", "fixed", "stands"]),
    );
}

/// A clock's time would differ in a replay.
#[test]
fn the_time_of_a_clock_is_refused_with_the_name_of_who_asks() {
    fn hurry(_: Res<Time<Real>>) {}
    fn wait() {}
    let check = |build: fn(&mut WorldBuilder), by: &str| {
        let error = refusal(build);
        assert!(["`Time<Real>`", "`habits`", by].iter().all(|name| error.contains(name)), "{error}");
    };
    check(|world| _ = world.add_systems(Update, hurry), "hurry`");
    check(|world| _ = world.add_plugins(TimePlugin).add_systems(Update, (wait, hurry).chain()), "hurry`");
    check(|world| _ = world.add_systems(Update, wait.run_if(on_real_timer(Duration::from_secs(1)))), "::on_real_timer");
    check(
        |world| {
            world.add_systems(Update, wait.in_set(Part::Early));
            world.configure_sets(Update, Part::Early.run_if(on_real_timer(Duration::from_secs(1))));
        },
        "::on_real_timer",
    );
    check(|world| _ = world.add_observer(|_: On<Wolf>, _: Option<Res<Time<Real>>>| ()), "an observer");
    ticked(|world| _ = world.add_plugins(TimePlugin).add_systems(Update, |_: Query<EntityRef>| ()), 1);
}

#[derive(States, Debug, Clone, Default, PartialEq, Eq, Hash)]
enum Season {
    #[default]
    Summer,
    Winter,
}

#[derive(SubStates, Debug, Clone, Default, PartialEq, Eq, Hash)]
#[source(Season = Season::Winter)]
enum Snow {
    #[default]
    Falls,
}

#[test]
fn states_change_and_their_schedules_run() {
    check(
        |world| {
            world.init_state::<Season>().add_sub_state::<Snow>();
            world.add_systems(Startup, say("startup"));
            world.add_systems(OnEnter(Season::Summer), say("summer"));
            world.add_systems(OnExit(Season::Summer), say("summer ends"));
            world.add_systems(OnTransition { exited: Season::Summer, entered: Season::Winter }, say("cold"));
            world.add_systems(OnEnter(Snow::Falls), say("snow"));
            world.add_systems(Update, say("green").run_if(in_state(Season::Summer)));
            world.add_systems(Update, say("white").run_if(in_state(Season::Winter)));
            world.add_systems(Last, |mut next: ResMut<NextState<Season>>, tick: Res<TickInfo>| {
                if tick.tick == 1 {
                    next.set(Season::Winter);
                }
            });
        },
        3,
        |log| {
            assert_eq!(log, ["summer", "startup", "green", "green", "summer ends", "cold", "snow", "white"]);
        },
    );
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Cold;

impl ComputedStates for Cold {
    type SourceStates = Season;

    fn compute(season: Season) -> Option<Self> {
        (season == Season::Winter).then_some(Self)
    }
}

#[test]
fn a_state_may_begin_with_any_value_and_others_be_computed_from_it() {
    check(
        |world| {
            world.insert_state(Season::Winter).add_computed_state::<Cold>();
            world.add_systems(OnEnter(Cold), say("cold"));
            world.add_systems(Update, say("shivers").run_if(in_state(Cold)));
        },
        1,
        |log| assert_eq!(log, ["cold", "shivers"]),
    );
}

#[test]
fn a_kind_without_states_holds_no_schedule() {
    let world = ticked(
        |world| {
            world.add_systems(Update, say("tick")).add_plugins(Shepherd);
        },
        1,
    );
    assert!(!world.ecs().contains_resource::<bevy_ecs::schedule::Schedules>());
}

/// A plugin as it is written for Bevy.
struct Shepherd;

impl Plugin for Shepherd {
    fn build(&self, app: &mut App) {
        app.init_resource::<Grass>().add_message::<Bleat>();
        app.add_systems(Startup, |mut commands: Commands| _ = commands.spawn(Sheep));
        app.add_systems(FixedUpdate, say("tends"));
        app.add_systems(Update, (say("counts"), say("sleeps")).chain());
    }

    fn finish(&self, app: &mut App) {
        app.world_mut().resource_mut::<Grass>().0 = 5;
    }
}

struct Ours;
impl WorldPlugin for Ours {
    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(PostUpdate, say("ours"));
    }
}

struct Group;
impl PluginGroup for Group {
    fn build(self) -> PluginGroupBuilder {
        PluginGroupBuilder::start::<Self>().add(Shepherd)
    }
}

#[test]
fn bevys_plugins_and_groups_are_plugins() {
    let builds: [fn(&mut WorldBuilder); 3] = [
        |world| _ = world.add_plugins((Shepherd, Ours)),
        |world| _ = world.add_plugins((Group, Ours)),
        |world| _ = world.add_plugins(Ours).add_plugins(Shepherd),
    ];
    for build in builds {
        let mut world = check(build, 2, |log| {
            assert_eq!(log, ["tends", "counts", "sleeps", "ours", "tends", "counts", "sleeps", "ours"]);
        });
        assert_eq!(world.ecs().resource::<Grass>().0, 5);
        assert_eq!(world.ecs_mut().query::<&Sheep>().iter(world.ecs()).count(), 1);
    }
}

#[test]
fn bevys_own_plugins_run() {
    check(
        |world| {
            world.add_plugins((TimePlugin, bevy_state::app::StatesPlugin));
            world.add_plugins(|app: &mut App| _ = app.init_state::<Season>().add_message::<Bleat>());
            world.add_systems(OnEnter(Season::Summer), say("summer"));
            world.add_systems(Update, |time: Res<Time>, mut bleats: MessageWriter<Bleat>| {
                assert_eq!(time.delta(), Duration::from_millis(50));
                bleats.write(Bleat(0));
            });
            world.add_systems(FixedUpdate, say("fixed"));
            world.add_systems(Last, |bleats: Res<Messages<Bleat>>| assert!(bleats.len() <= 2));
        },
        3,
        |log| assert_eq!(log, ["summer", "fixed", "fixed", "fixed"]),
    );
}

#[derive(ScheduleLabel, Debug, Clone, PartialEq, Eq, Hash)]
struct Midnight;

/// A label of a plugin's own runs where the plugin has put it.
#[test]
fn a_label_that_is_put_into_bevys_order_runs() {
    check(
        |world| {
            world.add_plugins(|app: &mut App| {
                app.world_mut().resource_mut::<bevy_app::MainScheduleOrder>().insert_after(Update, Midnight);
            });
            world.add_systems(PostUpdate, say("after"));
            world.add_systems(Midnight, say("midnight"));
            world.add_systems(Update, say("before"));
        },
        1,
        |log| assert_eq!(log, ["before", "midnight", "after"]),
    );
}

#[test]
fn what_no_world_has_is_refused_by_name() {
    let check = |build: fn(&mut WorldBuilder), names: &[&str]| {
        let error = refusal(build);
        assert!(names.iter().all(|name| error.contains(name)) && error.contains("`habits`"), "{error}");
    };
    check(|world| _ = world.add_systems(Midnight, say("never")), &["Midnight", "MainScheduleOrder"]);
    check(|world| _ = world.add_systems(OnEnter(Season::Summer), say("never")), &["OnEnter(Summer)"]);
    check(|world| _ = world.add_systems(StateTransition, say("never")), &["StateTransition"]);
    check(|world| _ = world.add_systems(bevy_app::RunFixedMainLoop, say("never")), &["RunFixedMainLoop"]);
    check(
        |world| _ = world.add_plugins(|app: &mut App| _ = app.insert_non_send(std::rc::Rc::new(3))),
        &["Rc", "NonSend"],
    );
    check(
        |world| _ = world.add_plugins(bevy_app::ScheduleRunnerPlugin::default()),
        &["runner", "ScheduleRunnerPlugin"],
    );
    check(|world| _ = world.insert_resource(Time::<Fixed>::from_hz(50.0)), &["20ms", "20 Hz"]);
    check(
        |world| _ = world.add_plugins(|app: &mut App| app.insert_sub_app(Beside, bevy_app::SubApp::new())),
        &["sub-app", "Beside"],
    );
    check(|world| _ = world.add_plugins(NeverReady), &["ready"]);
    check(|world| _ = world.add_systems(Startup, |_: Res<Grass>| ()), &["startup", "Grass"]);
    check(
        |world| _ = world.add_systems(Startup, fetch),
        &["startup", "fetch", "fetch_a_sheep", "the pasture is empty"],
    );
}

/// A world is ticked and ended by its server.
#[test]
fn who_would_run_or_end_the_app_is_not_heard() {
    check(
        |world| {
            world.add_plugins(|app: &mut App| _ = app.set_runner(|_| unreachable!("nobody calls it")));
            world.add_systems(
                Update,
                (|mut exits: MessageWriter<AppExit>| _ = exits.write(AppExit::Success), say("on")),
            );
        },
        2,
        |log| assert_eq!(log, ["on", "on"]),
    );
}

#[derive(bevy_app::AppLabel, Debug, Clone, PartialEq, Eq, Hash)]
struct Beside;

struct NeverReady;
impl Plugin for NeverReady {
    fn build(&self, _: &mut App) {}

    fn ready(&self, _: &App) -> bool {
        false
    }
}

/// A command that fails, and the system that gives it.
fn fetch(mut commands: Commands) {
    fn fetch_a_sheep(_: &mut World) -> Result {
        Err("the pasture is empty".into())
    }
    commands.queue(fetch_a_sheep);
}

/// Bevy's default is to panic, which would park the world.
#[test]
fn what_fails_beside_systems_is_told_with_the_system_that_it_came_of() {
    fn bark(_: On<Wolf>) -> Result {
        Err("the dog sleeps".into())
    }
    fn cry(mut commands: Commands) {
        commands.trigger(Wolf);
    }
    fn heat() -> Result {
        Err("no coal".into())
    }
    let mut world = habits::made(|world| {
        world.init_state::<Season>().add_observer(bark).add_systems(OnEnter(Season::Winter), heat);
        world.add_systems(Update, (fetch, cry, say("on")).chain());
        world.add_systems(Update, |mut next: ResMut<NextState<Season>>, tick: Res<TickInfo>| {
            if tick.tick == 0 {
                next.set(Season::Winter);
            }
        });
    });
    world.panic_on_failure(false);
    let mut failed_in = |expect: u64| {
        let report = world.tick();
        assert_eq!(report.stats.systems_failed, expect);
        report.failed.iter().map(|failed| format!("{} ({})", failed.system, failed.error)).collect::<Vec<_>>()
    };
    let told = failed_in(2);
    assert!(told.len() == 2 && told[0].contains("fetch_a_sheep, command in ") && told[0].contains("empty"), "{told:?}");
    assert!(told[1].contains("bark, observer in ") && told[1].contains("cry (the dog sleeps"), "{told:?}");
    let told = failed_in(3);
    assert!(told.len() == 1 && told[0].contains("heat, system in ") && told[0].contains("no coal"), "{told:?}");
    assert_eq!(world.ecs().resource::<Log>().0, ["on", "on"], "the rest of the tick went on");
}

#[test]
#[should_panic(expected = "fetch_a_sheep, command in ")]
fn a_command_that_fails_parks_its_world_in_a_debug_build() {
    ticked(|world| _ = world.add_systems(Update, fetch), 1);
}

/// The first of these was silent: the system never ran, and nothing said so.
#[test]
fn what_fails_is_told_with_its_name() {
    fn starving(_: Res<Grass>) {}
    fn strikes() -> Result {
        Err("no wool, no work".into())
    }
    fn unsure(_: Res<Grass>) -> bool {
        true
    }
    let mut world = habits::made(|world| {
        world.add_systems(Update, (starving, strikes, say("never").run_if(unsure)).chain());
    });
    world.panic_on_failure(false);
    let report = world.tick();
    assert_eq!(report.stats.systems_failed, 3);
    let told: Vec<_> = report.failed.iter().map(|failed| (failed.system.as_str(), failed.error.as_str())).collect();
    assert!(told[0].0.ends_with("starving") && told[0].1.contains("Grass"), "{told:?}");
    assert!(told[1].0.ends_with("strikes") && told[1].1.contains("no wool"), "{told:?}");
    assert!(told[2].0.contains("unsure, a condition of ") && told[2].1.contains("Grass"), "{told:?}");
    let report = world.tick();
    assert_eq!((report.stats.systems_failed, report.failed.len()), (3, 0), "counted, and told a while ago");
}
