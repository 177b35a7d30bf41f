//! Promise: what one is used to from Bevy works in a world, or is refused by name.

mod habits;

use std::time::Duration;

use bevy_app::{App, Plugin, PluginGroup, PluginGroupBuilder};
use bevy_ecs::{prelude::*, schedule::ScheduleLabel, system::SystemParam};
use bevy_state::prelude::*;
use bevy_time::{Fixed, Real, Virtual};
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
    check(
        |world| {
            world.add_systems(Update, |real: Res<Time<Real>>, virt: Res<Time<Virtual>>| {
                assert_eq!(real.elapsed(), virt.elapsed());
            });
        },
        3,
        |_| (),
    );
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
            world.add_plugins((bevy_time::TimePlugin, bevy_state::app::StatesPlugin));
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

/// The first of these was silent: the system never ran, and nothing said so.
#[test]
fn what_fails_is_told_with_its_name() {
    fn starving(_: Res<Grass>) {}
    fn strikes() -> Result {
        Err("no wool, no work".into())
    }
    let mut world = habits::made(|world| _ = world.add_systems(Update, (starving, strikes).chain()));
    world.panic_on_failure(false);
    let report = world.tick();
    assert_eq!(report.stats.systems_failed, 2);
    let told: Vec<_> = report.failed.iter().map(|failed| (failed.system.as_str(), failed.error.as_str())).collect();
    assert!(told[0].0.ends_with("starving") && told[0].1.contains("Grass"), "{told:?}");
    assert!(told[1].0.ends_with("strikes") && told[1].1.contains("no wool"), "{told:?}");
    let report = world.tick();
    assert_eq!((report.stats.systems_failed, report.failed.len()), (2, 0), "counted, and told a while ago");
}
