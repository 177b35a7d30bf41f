//! System list: what a kind's `build` and its plugins have added, by schedule label, before it becomes an order.
//!
//! Labels are those of `bevy_app`. In a tick they run as in Bevy: `First`, `PreUpdate`, `StateTransition` (if the kind
//! has states), `FixedFirst`, `FixedPreUpdate`, `FixedUpdate`, `FixedPostUpdate`, `FixedLast`, `Update`, `SpawnScene`,
//! `PostUpdate`, `Last`; each once, the fixed ones too. Before the first tick, when the world is made:
//! `StateTransition`, `PreStartup`, `Startup`, `PostStartup`. A plugin that puts a label of its own into Bevy's
//! `MainScheduleOrder` or `FixedMainScheduleOrder` has it run there. What is added to any other label would never run,
//! and is refused.
//!
//! The one exception are the schedules of state transitions (`OnEnter`, `OnExit`, `OnTransition`): `bevy_state` runs
//! them by their label, out of the world. So a world that uses them, and no other, holds Bevy's `Schedules`.

use std::any::TypeId;

use bevy_app::{FixedMainScheduleOrder, MainScheduleOrder, RunFixedMainLoop};
use bevy_ecs::{
    prelude::*,
    schedule::{InternedScheduleLabel, InternedSystemSet, IntoScheduleConfigs, Schedule, ScheduleLabel, Schedules},
    system::{IntoSystem, ScheduleSystem, System},
};
use bevy_state::state::StateTransition;
use bevy_time::{run_fixed_main_schedule, time_system};
use throng_profiler::{Category, Site, site::intern};

/// Systems as a world kind registers them, before they are put in order.
#[derive(Default)]
pub struct SystemList {
    pub(crate) schedules: Schedules,
    pub(crate) main: MainScheduleOrder,
    pub(crate) fixed: FixedMainScheduleOrder,
    /// Headings for systems whose scope begins with a name; the longest that fits counts.
    categories: Vec<(&'static str, Category)>,
    /// Subsystems for systems whose scope would begin with a name; the longest that fits counts.
    subsystems: Vec<(&'static str, &'static str)>,
    /// Systems that the engine does the work of: they are left out.
    replaced: Vec<TypeId>,
}

/// The labels that run, in their order.
pub(crate) struct Labels {
    pub tick: Vec<InternedScheduleLabel>,
    pub startup: Vec<InternedScheduleLabel>,
}

impl Labels {
    /// Each label once: those of a tick, then those that run before the first tick only.
    pub fn each(&self) -> impl Iterator<Item = InternedScheduleLabel> {
        let startup_only = self.startup.iter().filter(|label| !self.tick.contains(label));
        self.tick.iter().chain(startup_only).copied()
    }

    pub fn is_of_tick(&self, label: InternedScheduleLabel) -> bool {
        self.tick.contains(&label)
    }

    fn have_states(&self) -> bool {
        self.tick.contains(&StateTransition.intern())
    }
}

impl SystemList {
    /// Adds systems under a label, with Bevy's ordering and conditions.
    pub fn add<M>(&mut self, label: impl ScheduleLabel, systems: impl IntoScheduleConfigs<ScheduleSystem, M>) {
        self.schedules.add_systems(label, systems);
    }

    /// Configures sets under a label: order between them, conditions on them.
    #[track_caller]
    pub fn configure_sets<M>(
        &mut self,
        label: impl ScheduleLabel,
        sets: impl IntoScheduleConfigs<InternedSystemSet, M>,
    ) {
        self.schedules.configure_sets(label, sets);
    }

    /// Gives systems of a module, such as `precinct.movement`, a heading in captures; without one it is
    /// [`Category::GAMEPLAY`].
    pub fn categorise(&mut self, scopes: &'static str, category: Category) {
        self.categories.push((scopes, category));
    }

    /// Counts the systems of a module, such as `precinct.npc`, and of those below it as one subsystem: with `ai` the scope
    /// of `precinct::npc::perception::perceive` is `ai.perceive`. So two of them should not have one name.
    pub fn name_subsystem(&mut self, scopes: &'static str, subsystem: &'static str) {
        self.subsystems.push((scopes, subsystem));
    }

    /// Leaves out those systems of Bevy's `TimePlugin` that read a clock and run the fixed schedules by it.
    pub(crate) fn replace_time_systems(&mut self) {
        self.replaced = vec![
            System::system_type(&IntoSystem::into_system(time_system)),
            System::system_type(&IntoSystem::into_system(run_fixed_main_schedule)),
        ];
    }

    /// Whether Bevy's `TimePlugin` was added.
    pub(crate) fn has_time_plugin(&self) -> bool {
        !self.replaced.is_empty()
    }

    pub(crate) fn is_replaced(&self, system: &ScheduleSystem) -> bool {
        self.replaced.contains(&system.system_type())
    }

    /// Whether anything is in the fixed schedules.
    pub(crate) fn has_fixed_systems(&self) -> bool {
        let of = |label: &InternedScheduleLabel| self.schedules.get(*label);
        self.fixed.labels.iter().filter_map(of).any(|schedule| schedule.graph().systems.iter().next().is_some())
    }

    /// What runs, in which order.
    pub(crate) fn labels(&self) -> Labels {
        let fixed_loop = RunFixedMainLoop.intern();
        let mut tick = Vec::with_capacity(self.main.labels.len() + self.fixed.labels.len());
        for &label in &self.main.labels {
            if label == fixed_loop {
                tick.extend_from_slice(&self.fixed.labels);
            } else {
                tick.push(label);
            }
        }
        Labels { tick, startup: self.main.startup_labels.clone() }
    }

    /// Takes what is left when all labels that run are taken out: the schedules of state transitions.
    ///
    /// # Errors
    /// The label and a system of a schedule that nobody would run.
    pub(crate) fn take_transitions(&mut self, labels: &Labels) -> Result<Vec<Schedule>, (String, String)> {
        let left = self.schedules.iter().map(|(_, schedule)| schedule.label());
        let mut left: Vec<_> = left.map(|label| (format!("{label:?}"), label)).collect();
        // Maps have no order, and which error is told must not depend on luck.
        left.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut transitions = Vec::new();
        for (name, label) in left {
            let Some(schedule) = self.schedules.remove(label) else { continue };
            let mut systems = schedule.graph().systems.iter().filter(|(_, system, _)| !self.is_replaced(system));
            let Some((_, first, _)) = systems.next() else { continue };
            let is_transition = ["OnEnter(", "OnExit(", "OnTransition {"].iter().any(|begin| name.starts_with(begin));
            if !is_transition || !labels.have_states() {
                return Err((name, first.name().to_string()));
            }
            drop(systems);
            transitions.push(schedule);
        }
        Ok(transitions)
    }

    /// A system's scope is its path with dots, `precinct.npc.perception.perceive`, or its own name in the subsystem that was
    /// named for it.
    pub(crate) fn site_of(&self, path: &str) -> &'static Site {
        let path = path.replace("::", ".");
        let category = Some(fitting(&self.categories, &path).unwrap_or(Category::GAMEPLAY));
        let Some(subsystem) = fitting(&self.subsystems, &path) else { return intern(&path, category) };
        // What stands in angle brackets are types, with paths of their own.
        let own = path.split('<').next().and_then(|plain| plain.rfind('.')).map_or(0, |dot| dot + 1);
        intern(&format!("{subsystem}.{}", &path[own..]), category)
    }
}

/// What is said of the longest name that the path begins with.
fn fitting<T: Copy>(said: &[(&'static str, T)], path: &str) -> Option<T> {
    let is_within =
        |scopes: &str| path.strip_prefix(scopes).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '<']));
    let fitting = said.iter().filter(|(scopes, _)| is_within(scopes));
    fitting.max_by_key(|(scopes, _)| scopes.len()).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, name: &str, subsystem: &str, category: Category) {
        let mut list = SystemList::default();
        list.categorise("zoo.npc.walk", Category::MOVEMENT);
        list.name_subsystem("zoo.npc", "zoo.minds");
        list.name_subsystem("zoo.npc.paths", "zoo.ways");
        let site = list.site_of(path);
        assert_eq!((site.name(), site.subsystem_name(), site.category_name()), (name, subsystem, category.name()));
    }

    #[test]
    fn a_name_that_only_begins_like_a_module_is_another() {
        check("zoo::npcs::feed", "zoo.npcs.feed", "zoo.npcs", Category::GAMEPLAY);
    }

    #[test]
    fn a_systems_scope_is_its_path_unless_its_module_has_a_subsystem() {
        check("zoo::keepers::feed", "zoo.keepers.feed", "zoo.keepers", Category::GAMEPLAY);
        check("zoo::npc::brain::think", "zoo.minds.think", "zoo.minds", Category::GAMEPLAY);
        check("zoo::npc::walk::follow", "zoo.minds.follow", "zoo.minds", Category::MOVEMENT);
        check("zoo::npc::paths::solve", "zoo.ways.solve", "zoo.ways", Category::GAMEPLAY);
        let of_types = "zoo::npc::brain::think<zoo::npc::Lion>";
        assert_eq!(SystemList::default().site_of(of_types).name(), "zoo.npc.brain.think<zoo.npc.Lion>");
        let mut list = SystemList::default();
        list.name_subsystem("zoo.npc", "zoo.minds");
        assert_eq!(list.site_of(of_types).name(), "zoo.minds.think<zoo.npc.Lion>");
    }
}
