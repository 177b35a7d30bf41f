//! System order: computed once per world kind, followed by every world of that kind.
//!
//! A Bevy `Schedule` in every world costs 79-86 KB and 92-375 µs to build (20 component types, 10 systems), and what it
//! computes is the same for each world of a kind. So the schedule of a kind's first world is built as a template, the
//! topological order is read off it as indices, and each world holds only its own boxed systems in that order.
//! Running them ourselves is also where each system's time is taken: every system is a scope of its own, which it may
//! split into phases ([`Phases::split`]).
//!
//! Bevy's ordering (`before`, `after`, `chain`, sets), run conditions on systems and on sets, and its automatic sync
//! points for `Commands` are kept. Everything runs on the world's thread, one system after the other.
//!
//! Cost: 7-60 ns per system run beside the system's own work; building a world's systems again is linear in their
//! number.

use std::sync::Arc;

use bevy_ecs::{
    prelude::*,
    schedule::{
        ConditionWithAccess, IntoScheduleConfigs, NodeId, Schedule, ScheduleGraph, SystemKey, SystemSetKey,
        SystemWithAccess,
    },
    system::{IntoSystem, ScheduleSystem, System},
};
use throng_profiler::{Category, Phases, Site, site::intern};

/// Most systems a world kind may have; the conditions' bookkeeping is sized by it.
pub const SYSTEMS_MAX: usize = 256;

/// What a world kind's systems do in a tick, in order. Shared by every world of the kind.
#[derive(Debug)]
pub struct SystemOrder {
    steps: Vec<Step>,
    /// Where each system's time is recorded, in the order of registration.
    sites: Vec<&'static Site>,
    /// Per set that has conditions: the systems that they guard, as indices in the order of registration.
    guarded: Vec<Vec<usize>>,
    systems_count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Run the system that was registered as number `.0`.
    Run(usize),
    /// Apply what the systems so far have queued (`Commands`).
    Sync,
}

/// A kind's systems cannot be put in an order.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    #[error("the systems of world kind `{kind}` cannot be ordered: {reason}")]
    Unsolvable { kind: String, reason: String },
    #[error("world kind `{kind}` has {count} systems; at most {SYSTEMS_MAX} are supported")]
    TooMany { kind: String, count: usize },
    #[error(
        "world kind `{kind}` registered {found} systems for a new world and {expected} for its first: a kind must always \
         add the same systems, in the same order"
    )]
    Changed { kind: String, expected: usize, found: usize },
}

/// Systems as a world kind registers them, before they are put in order.
#[derive(Default)]
pub struct SystemList {
    schedule: Schedule,
    /// Headings for systems whose scope begins with a name; the longest that fits counts.
    categories: Vec<(&'static str, Category)>,
}

impl SystemList {
    /// Adds systems, with Bevy's ordering and conditions.
    pub fn add<M>(&mut self, systems: impl IntoScheduleConfigs<ScheduleSystem, M>) {
        self.schedule.add_systems(systems);
    }

    /// Configures sets: order between them, conditions on them.
    pub fn configure_sets<M>(&mut self, sets: impl IntoScheduleConfigs<bevy_ecs::schedule::InternedSystemSet, M>) {
        self.schedule.configure_sets(sets);
    }

    /// Gives systems of a module, such as `precinct.movement`, a heading in captures; without one it is
    /// [`Category::GAMEPLAY`].
    pub fn categorise(&mut self, scopes: &'static str, category: Category) {
        self.categories.push((scopes, category));
    }

    /// Builds Bevy's schedule in `world` and reads the order off it. The systems themselves are used up.
    pub fn into_order(mut self, kind: &str, world: &mut World) -> Result<SystemOrder, OrderError> {
        let systems = self.schedule.graph().systems.iter();
        let (registered, sites): (Vec<_>, Vec<_>) =
            systems.map(|(key, system, _)| (key, self.site_of(&system.name().to_string()))).unzip();
        if registered.len() > SYSTEMS_MAX {
            return Err(OrderError::TooMany { kind: kind.into(), count: registered.len() });
        }
        // Building moves conditions out of the graph: note which systems those of sets guard before it.
        let graph = self.schedule.graph();
        let guarded = graph
            .system_sets
            .iter()
            .filter(|(_, _, conditions)| !conditions.is_empty())
            .map(|(set, _, _)| members_of(graph, set, &registered))
            .collect();
        let unsolvable = |reason: String| OrderError::Unsolvable { kind: kind.into(), reason };
        if let Err(error) = self.schedule.initialize(world) {
            return Err(unsolvable(error.to_string(self.schedule.graph(), world)));
        }
        let steps = self
            .schedule
            .systems()
            .map_err(|_| unsolvable("the schedule was not built".into()))?
            .map(|(key, _)| {
                let index = registered.iter().position(|&known| known == key);
                index.map_or(Step::Sync, Step::Run)
            })
            .collect();
        Ok(SystemOrder { steps, sites, guarded, systems_count: registered.len() })
    }

    /// A system's scope is its path with dots: `precinct.npc.perception.perceive`.
    fn site_of(&self, path: &str) -> &'static Site {
        let name = path.replace("::", ".");
        let fitting = self.categories.iter().filter(|(scopes, _)| name.starts_with(scopes));
        let category = fitting.max_by_key(|(scopes, _)| scopes.len()).map(|(_, category)| *category);
        intern(&name, Some(category.unwrap_or(Category::GAMEPLAY)))
    }

    /// Takes the systems out, ready to run in `world` in the order that the kind's first world gave.
    pub fn into_systems(
        mut self,
        kind: &str,
        order: Arc<SystemOrder>,
        world: &mut World,
    ) -> Result<WorldSystems, OrderError> {
        let graph = self.schedule.graph_mut();
        let keys: Vec<_> = graph.systems.iter().map(|(key, _, _)| key).collect();
        if keys.len() != order.systems_count {
            return Err(OrderError::Changed { kind: kind.into(), expected: order.systems_count, found: keys.len() });
        }
        let mut systems = Vec::with_capacity(keys.len());
        for key in keys {
            let conditions = graph.systems.get_conditions_mut(key).map(std::mem::take);
            let Some(slot) = graph.systems.get_mut(key) else { continue };
            let nothing: ScheduleSystem = Box::new(IntoSystem::into_system(|| {}));
            let mut system = std::mem::replace(slot, SystemWithAccess::new(nothing));
            system.initialize(world);
            systems.push(OwnSystem { system, conditions: ready(conditions, world) });
        }
        let set_keys: Vec<_> = graph
            .system_sets
            .iter()
            .filter(|(_, _, conditions)| !conditions.is_empty())
            .map(|(key, _, _)| key)
            .collect();
        let sets = set_keys
            .into_iter()
            .map(|key| ready(graph.system_sets.get_conditions_mut(key).map(std::mem::take), world))
            .collect();
        Ok(WorldSystems { order, systems, sets, skipped: [false; SYSTEMS_MAX] })
    }
}

/// The systems below a set, as indices into `registered`.
fn members_of(graph: &ScheduleGraph, set: SystemSetKey, registered: &[SystemKey]) -> Vec<usize> {
    let mut open = vec![NodeId::Set(set)];
    let mut members = Vec::new();
    while let Some(node) = open.pop() {
        match node {
            NodeId::System(key) => members.extend(registered.iter().position(|&known| known == key)),
            NodeId::Set(_) => open.extend(graph.hierarchy().neighbors(node)),
        }
    }
    members
}

fn ready(conditions: Option<Vec<ConditionWithAccess>>, world: &mut World) -> Vec<ConditionWithAccess> {
    let mut conditions = conditions.unwrap_or_default();
    for condition in &mut conditions {
        condition.initialize(world);
    }
    conditions
}

struct OwnSystem {
    system: SystemWithAccess,
    conditions: Vec<ConditionWithAccess>,
}

/// The systems of one world, with their state, in registration order.
pub struct WorldSystems {
    order: Arc<SystemOrder>,
    systems: Vec<OwnSystem>,
    /// Conditions of the sets that have any, parallel to `order.guarded`.
    sets: Vec<Vec<ConditionWithAccess>>,
    skipped: [bool; SYSTEMS_MAX],
}

impl WorldSystems {
    /// Runs every system once, in order. Allocates nothing itself; a panicking system unwinds through here.
    ///
    /// `phases` goes from system to system: each has its own scope. The last one's is open at the end.
    pub fn run(&mut self, world: &mut World, phases: &mut Phases) {
        self.skipped[..self.systems.len()].fill(false);
        for (conditions, members) in self.sets.iter_mut().zip(&self.order.guarded) {
            if !all_hold(conditions, world) {
                members.iter().for_each(|&index| self.skipped[index] = true);
            }
        }
        for index in 0..self.order.steps.len() {
            match self.order.steps[index] {
                Step::Run(index) => {
                    let own = &mut self.systems[index];
                    if self.skipped[index] || !all_hold(&mut own.conditions, world) {
                        continue;
                    }
                    phases.next(self.order.sites[index]);
                    // A system that skips itself (a missing `Single`, say) is a result, not an error.
                    let _ = own.system.run_without_applying_deferred((), world);
                }
                Step::Sync => self.apply_deferred(world),
            }
        }
        self.apply_deferred(world);
    }

    /// Bevy compares change ticks by their distance; old ones must be moved along before they wrap.
    pub fn check_change_ticks(&mut self, world: &mut World) {
        let Some(check) = world.check_change_ticks() else { return };
        for own in &mut self.systems {
            own.system.check_change_tick(check);
            for condition in &mut own.conditions {
                condition.check_change_tick(check);
            }
        }
        for conditions in &mut self.sets {
            for condition in conditions {
                condition.check_change_tick(check);
            }
        }
    }

    fn apply_deferred(&mut self, world: &mut World) {
        for own in &mut self.systems {
            if own.system.has_deferred() {
                own.system.apply_deferred(world);
            }
        }
    }
}

/// Every condition is asked, also after one has said no, so that each can keep state of its own.
fn all_hold(conditions: &mut [ConditionWithAccess], world: &mut World) -> bool {
    let mut hold = true;
    for condition in conditions {
        hold &= condition.run((), world).unwrap_or(false);
    }
    hold
}

#[cfg(test)]
mod tests {
    use throng_profiler::site;

    use super::*;

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

    /// Registers by `register` in a template and in two further worlds; every one of them must log `expect`.
    fn check(register: impl Fn(&mut SystemList), expect: &[&str]) {
        let mut template = SystemList::default();
        register(&mut template);
        let order = Arc::new(template.into_order("test", &mut World::new()).unwrap());
        for _ in 0..2 {
            let mut world = World::new();
            world.init_resource::<Log>();
            let mut list = SystemList::default();
            register(&mut list);
            let mut systems = list.into_systems("test", order.clone(), &mut world).unwrap();
            systems.run(&mut world, &mut Phases::begin(site!("world.systems")));
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
        check(|list| list.add((say("a"), say("b"), say("c")).chain()), &["a", "b", "c"]);
    }

    #[test]
    fn sets_order_systems_that_were_added_the_other_way_round() {
        check(
            |list| {
                list.configure_sets((Phase::First, Phase::Last).chain());
                list.add(say("late").in_set(Phase::Last));
                list.add(say("early").in_set(Phase::First));
            },
            &["early", "late"],
        );
    }

    #[test]
    fn commands_are_applied_between_dependent_systems() {
        check(|list| list.add((spawn, count).chain()), &["some"]);
    }

    #[test]
    fn conditions_on_systems_and_sets_are_kept() {
        check(
            |list| {
                list.configure_sets(Phase::First.run_if(|| false));
                list.add((say("never"), say("nor this")).chain().in_set(Phase::First));
                list.add((say("off").run_if(|| false), say("on").run_if(|| true)).chain());
                list.add((say("x"), say("y")).run_if(|| false));
            },
            &["on"],
        );
    }

    #[test]
    fn a_cycle_is_an_error_that_names_the_kind() {
        let mut list = SystemList::default();
        list.configure_sets((Phase::First, Phase::Last).chain());
        list.configure_sets((Phase::Last, Phase::First).chain());
        list.add((say("a").in_set(Phase::First), say("b").in_set(Phase::Last)));
        let error = list.into_order("knot", &mut World::new()).unwrap_err();
        assert!(error.to_string().contains("world kind `knot`"), "{error}");
    }

    #[test]
    fn a_world_with_other_systems_than_its_kind_is_refused() {
        let mut list = SystemList::default();
        list.add(spawn);
        let order = Arc::new(list.into_order("test", &mut World::new()).unwrap());
        let error = SystemList::default()
            .into_systems("test", order, &mut World::new())
            .err()
            .expect("fewer systems than the kind has");
        assert!(matches!(error, OrderError::Changed { expected: 1, found: 0, .. }));
    }
}
