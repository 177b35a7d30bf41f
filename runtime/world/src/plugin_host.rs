//! Plugin host: a `bevy_app::App` for as long as a world is being made, so that Bevy's plugins can be built into it.
//!
//! While a plugin is built, the world in the making is the main world of this app, with the schedules and their order as
//! the resources that plugins look for. Afterwards they are taken out again; when the kind has been built, `finish` and
//! `cleanup` of all plugins are called and the app is dropped. No `App` and no `Schedule` stays in a world (but for those
//! of state transitions, see `system_list`).
//!
//! Refused by name: an app's runner and sub-apps, `NonSend` data and schedules that nobody would run, and plugins that are
//! not ready at once. What an app does beside its world goes unheard: `AppExit` ends nothing, since a world is ended by
//! its server. Plugins that register types need this crate's feature `bevy_reflect`, as Bevy's crates do.
//!
//! Bevy's `TimePlugin` may be added, and is not needed: its systems that read a clock are left out, and so is
//! `Time<Real>` (`tick_time` has what stands in for them).
//!
//! Cost: some 20 µs when a world is made, and some 15 KB of memory in each world whose kind uses it: what has been a
//! resource keeps its room. Kinds without Bevy plugins and states have no app.

use bevy_app::{App, AppExit, FixedMainScheduleOrder, MainScheduleOrder, PluginsState, ScheduleRunnerPlugin};
use bevy_ecs::{message::MessageRegistry, prelude::*, schedule::Schedules};
use bevy_time::{Real, Time, TimePlugin};

use crate::{system_list::SystemList, system_order::OrderError};

/// The app of one world in the making.
pub(crate) struct PluginHost {
    app: App,
}

impl PluginHost {
    pub fn new() -> Self {
        Self { app: App::empty() }
    }

    /// Lets `work` see the world as the app's main world, with its schedules.
    pub fn lend(&mut self, ecs: &mut World, systems: &mut SystemList, work: impl FnOnce(&mut App)) {
        let app = &mut self.app;
        std::mem::swap(app.world_mut(), ecs);
        let world = app.world_mut();
        world.insert_resource(std::mem::take(&mut systems.schedules));
        world.insert_resource(std::mem::take(&mut systems.main));
        world.insert_resource(std::mem::take(&mut systems.fixed));
        if !world.contains_resource::<Messages<AppExit>>() {
            MessageRegistry::register_message::<AppExit>(world);
        }
        #[cfg(feature = "bevy_reflect")]
        world.init_resource::<AppTypeRegistry>();
        work(app);
        let world = app.world_mut();
        systems.schedules = world.remove_resource::<Schedules>().unwrap_or_default();
        systems.main = world.remove_resource::<MainScheduleOrder>().unwrap_or_default();
        systems.fixed = world.remove_resource::<FixedMainScheduleOrder>().unwrap_or_default();
        std::mem::swap(app.world_mut(), ecs);
    }

    /// Ends the building of all plugins.
    ///
    /// # Errors
    /// What a plugin wants that a world has not.
    pub fn finish(mut self, kind: &str, ecs: &mut World, systems: &mut SystemList) -> Result<(), OrderError> {
        let mut state = PluginsState::Adding;
        self.lend(ecs, systems, |app| {
            state = app.plugins_state();
            if state == PluginsState::Ready {
                app.finish();
                app.cleanup();
            }
        });
        if state == PluginsState::Adding {
            return Err(OrderError::NotReady { kind: kind.into() });
        }
        let not_a_worlds = |what: String| OrderError::NotAWorlds { kind: kind.into(), what };
        if self.app.is_plugin_added::<ScheduleRunnerPlugin>() {
            return Err(not_a_worlds("a runner, that of `ScheduleRunnerPlugin`".into()));
        }
        if let Some(label) = self.app.sub_apps().sub_apps.keys().next() {
            return Err(not_a_worlds(format!("the sub-app `{label:?}`")));
        }
        if self.app.is_plugin_added::<TimePlugin>() {
            systems.replace_time_systems();
            ecs.remove_resource::<Time<Real>>();
        }
        Ok(())
    }
}
