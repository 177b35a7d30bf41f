//! System order: computed once per world kind, followed by every world of that kind.
//!
//! A Bevy `Schedule` in every world costs 79-86 KB and 92-375 µs to build (20 component types, 10 systems), and what it
//! computes is the same for each world of a kind. So the schedules of a kind's first world are built as templates, the
//! topological orders are read off them as indices, and each world holds only its own boxed systems. The steps of all
//! labels that run in a tick are one list, so a label without systems costs nothing.
//!
//! Bevy's ordering (`before`, `after`, `chain`, sets), run conditions on systems and on sets, and its automatic sync
//! points for `Commands` are kept. A set's conditions are asked before the first of its systems under that label. Which
//! systems have commands to apply at a sync point is known, too: only they are asked.
//!
//! Cost: once per kind, about what Bevy needs to build its schedules; building a world's systems again is linear in
//! their number.

use std::{any::TypeId, sync::Arc};

use bevy_ecs::{
    prelude::*,
    schedule::{
        ConditionWithAccess, InternedScheduleLabel, NodeId, Schedule, ScheduleGraph, Schedules, SingleThreadedExecutor,
        SystemKey, SystemSetKey, SystemWithAccess,
    },
    system::{IntoSystem, ScheduleSystem, System},
};
use throng_profiler::Site;

use crate::{
    failures::Throttle,
    system_list::SystemList,
    tick_time::asks_for_clock,
    world_systems::{OwnSystem, WorldSystems},
};

/// Most systems a world kind may have, under all labels.
pub const SYSTEMS_MAX: usize = 1024;

/// What a world kind's systems do in a tick, in order. Shared by every world of the kind.
#[derive(Debug, Default)]
pub struct SystemOrder {
    pub(crate) kind: String,
    /// Of a tick.
    pub(crate) steps: Vec<Step>,
    /// Before the first tick.
    pub(crate) startup: Vec<Step>,
    /// In the order of registration; those that run in ticks come first.
    pub(crate) systems: Vec<Known>,
    /// Per set that has conditions: the systems that they guard. Those of ticks come first.
    pub(crate) guarded: Vec<Vec<usize>>,
    /// Systems and sets that are done with before the first tick come after these.
    pub(crate) tick_systems_count: usize,
    pub(crate) tick_sets_count: usize,
}

/// A system as the kind's first world has it.
#[derive(Debug)]
pub(crate) struct Known {
    /// Where its time is recorded.
    pub site: &'static Site,
    pub name: String,
    system_type: TypeId,
    pub throttle: Throttle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask the conditions of a set.
    Ask(usize),
    /// Run the system that was registered as number `.0`.
    Run(usize),
    /// Apply what this system has queued (`Commands`).
    Apply(usize),
}

/// A kind's systems cannot be put in an order, or they ask for what no world has.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    #[error("the systems of world kind `{kind}` under `{label}` cannot be ordered: {reason}")]
    Unsolvable { kind: String, label: String, reason: String },
    #[error("world kind `{kind}` has {count} systems; at most {SYSTEMS_MAX} are supported")]
    TooMany { kind: String, count: usize },
    #[error(
        "world kind `{kind}` registered {found} systems for a new world and {expected} for its first: a kind must always \
         add the same systems, in the same order"
    )]
    Changed { kind: String, expected: usize, found: usize },
    #[error(
        "world kind `{kind}` registered `{found}` for a new world where its first had `{expected}`: a kind must always \
         add the same systems, in the same order"
    )]
    Replaced { kind: String, expected: String, found: String },
    #[error(
        "world kind `{kind}` adds `{system}` to the schedule `{label}`, which no tick runs: use one of Bevy's labels, such \
         as Update, or put yours into `MainScheduleOrder` with a plugin"
    )]
    NeverRun { kind: String, label: String, system: String },
    #[error(
        "world kind `{kind}` has `{what}`, which is tied to one thread (`NonSend`): a world is ticked by whichever worker \
         is free"
    )]
    TiedToThread { kind: String, what: String },
    #[error("a startup system of world kind `{kind}` failed: {system}: {error}")]
    Startup { kind: String, system: String, error: String },
    #[error("a plugin of world kind `{kind}` is not ready when it has been built; worlds wait for nobody")]
    NotReady { kind: String },
    #[error("world kind `{kind}` has {what}: a world is ticked by its server, and by nobody else")]
    NotAWorlds { kind: String, what: String },
    #[error(
        "world kind `{kind}` asks for a fixed time step of {asked:?}; it ticks at {rate} Hz, and its fixed schedules run \
         once in each tick"
    )]
    Timestep { kind: String, asked: std::time::Duration, rate: u16 },
    #[error(
        "world kind `{kind}` asks for `Time<Real>`, in {by}: a world reads no clock, since a replay must give the same \
         world. Use `Time`, which follows ticks"
    )]
    RealTime { kind: String, by: String },
}

impl SystemList {
    /// Builds Bevy's schedules in `world` and reads the order off them. The systems themselves are used up.
    pub fn into_order(mut self, kind: &str, world: &mut World) -> Result<SystemOrder, OrderError> {
        let labels = self.labels();
        let mut order = SystemOrder { kind: kind.into(), ..SystemOrder::default() };
        let mut steps = Vec::new();
        for label in labels.each() {
            if let Some(schedule) = self.schedules.remove(label) {
                steps.push((label, order.read(&self, schedule, world)?));
            }
            if labels.is_of_tick(label) {
                order.tick_systems_count = order.systems.len();
                order.tick_sets_count = order.guarded.len();
            }
        }
        if order.systems.len() > SYSTEMS_MAX {
            return Err(OrderError::TooMany { kind: kind.into(), count: order.systems.len() });
        }
        let all_of = |labels: &[InternedScheduleLabel]| -> Vec<Step> {
            let found = labels.iter().filter_map(|label| steps.iter().find(|(known, _)| known == label));
            found.flat_map(|(_, steps)| steps).copied().collect()
        };
        (order.steps, order.startup) = (all_of(&labels.tick), all_of(&labels.startup));
        self.take_transitions(&labels).map_err(|(label, system)| never_run(kind, label, system))?;
        Ok(order)
    }

    /// Takes the systems out, ready to run in `world` in the order that the kind's first world gave.
    pub fn into_systems(
        mut self,
        kind: &str,
        order: Arc<SystemOrder>,
        world: &mut World,
    ) -> Result<WorldSystems, OrderError> {
        let labels = self.labels();
        let mut systems = Vec::with_capacity(order.systems.len());
        let mut sets = Vec::with_capacity(order.guarded.len());
        for label in labels.each() {
            let Some(mut schedule) = self.schedules.remove(label) else { continue };
            self.take_systems(&mut schedule, world, &mut systems, &mut sets)
                .map_err(|by| OrderError::RealTime { kind: kind.into(), by })?;
        }
        let expected = order.systems.len();
        if systems.len() != expected {
            return Err(OrderError::Changed { kind: kind.into(), expected, found: systems.len() });
        }
        if let Some((own, known)) =
            systems.iter().zip(&order.systems).find(|(own, known)| own.system.system_type() != known.system_type)
        {
            let (expected, found) = (known.name.clone(), own.system.name().to_string());
            return Err(OrderError::Replaced { kind: kind.into(), expected, found });
        }
        let transitions = self.take_transitions(&labels).map_err(|(label, system)| never_run(kind, label, system))?;
        keep_transitions(kind, transitions, world)?;
        Ok(WorldSystems::new(order, systems, sets))
    }

    /// # Errors
    /// Who asks for the time of a clock.
    fn take_systems(
        &self,
        schedule: &mut Schedule,
        world: &mut World,
        systems: &mut Vec<OwnSystem>,
        sets: &mut Vec<Vec<ConditionWithAccess>>,
    ) -> Result<(), String> {
        let graph = schedule.graph_mut();
        let keys: Vec<_> = self.own_keys(graph);
        for key in keys {
            let conditions = graph.systems.get_conditions_mut(key).map(std::mem::take);
            let Some(slot) = graph.systems.get_mut(key) else { continue };
            let nothing: ScheduleSystem = Box::new(IntoSystem::into_system(|| {}));
            let mut system = std::mem::replace(slot, SystemWithAccess::new(nothing));
            let access = system.initialize(world);
            if asks_for_clock(&access, world) {
                return Err(format!("the system `{}`", system.name()));
            }
            systems.push(OwnSystem::new(system, ready(conditions, world)?));
        }
        for key in conditioned_sets(graph) {
            sets.push(ready(graph.system_sets.get_conditions_mut(key).map(std::mem::take), world)?);
        }
        Ok(())
    }

    /// The systems of a schedule that is not built yet, without those that the engine stands in for.
    fn own_keys(&self, graph: &ScheduleGraph) -> Vec<SystemKey> {
        let own = graph.systems.iter().filter(|(_, system, _)| !self.is_replaced(system));
        own.map(|(key, _, _)| key).collect()
    }
}

impl SystemOrder {
    /// Reads the steps of one label off its schedule.
    fn read(&mut self, list: &SystemList, mut schedule: Schedule, world: &mut World) -> Result<Vec<Step>, OrderError> {
        let label = format!("{:?}", schedule.label());
        let (first, first_set) = (self.systems.len(), self.guarded.len());
        let registered = list.own_keys(schedule.graph());
        for &key in &registered {
            let Some(system) = schedule.graph().systems.get(key) else { continue };
            let (system, name) = (system.system(), system.system().name().to_string());
            let site = list.site_of(&name);
            self.systems.push(Known { site, name, system_type: system.system_type(), throttle: Throttle::default() });
        }
        // Building moves conditions out of the graph: note which systems those of sets guard before it.
        let graph = schedule.graph();
        let guarded: Vec<_> =
            conditioned_sets(graph).into_iter().map(|set| members_of(graph, set, &registered, first)).collect();
        if let Err(error) = schedule.initialize(world) {
            let reason = error.to_string(schedule.graph(), world);
            return Err(OrderError::Unsolvable { kind: self.kind.clone(), label, reason });
        }
        let not_built = |_| OrderError::Unsolvable {
            kind: self.kind.clone(),
            label: label.clone(),
            reason: "the schedule was not built".into(),
        };
        let mut steps = Vec::new();
        let mut asked = vec![false; guarded.len()];
        let mut unapplied = Vec::new();
        for (key, system) in schedule.systems_with_access().map_err(not_built)? {
            let index = registered.iter().position(|&known| known == key).map(|index| first + index);
            let is_sync = system.system_type() == TypeId::of::<ApplyDeferred>();
            if is_sync {
                steps.extend(unapplied.drain(..).map(Step::Apply));
            }
            let Some(index) = index.filter(|_| !is_sync) else { continue };
            if !system.is_send() && !system.access().is_exclusive() {
                return Err(OrderError::TiedToThread { kind: self.kind.clone(), what: system.name().to_string() });
            }
            for (set, members) in guarded.iter().enumerate() {
                if members.contains(&index) && !std::mem::replace(&mut asked[set], true) {
                    steps.push(Step::Ask(first_set + set));
                }
            }
            steps.push(Step::Run(index));
            if system.has_deferred() {
                unapplied.push(index);
            }
        }
        steps.extend(unapplied.into_iter().map(Step::Apply));
        self.guarded.extend(guarded);
        Ok(steps)
    }
}

fn never_run(kind: &str, label: String, system: String) -> OrderError {
    OrderError::NeverRun { kind: kind.into(), label, system }
}

/// Leaves the schedules of state transitions in the world, where `bevy_state` finds them; built, so that no tick has to.
fn keep_transitions(kind: &str, transitions: Vec<Schedule>, world: &mut World) -> Result<(), OrderError> {
    if transitions.is_empty() {
        return Ok(());
    }
    let mut kept = Schedules::new();
    for mut schedule in transitions {
        schedule.set_executor(SingleThreadedExecutor::new());
        if let Err(error) = schedule.initialize(world) {
            let (label, reason) = (format!("{:?}", schedule.label()), error.to_string(schedule.graph(), world));
            return Err(OrderError::Unsolvable { kind: kind.into(), label, reason });
        }
        kept.insert(schedule);
    }
    world.insert_resource(kept);
    Ok(())
}

fn conditioned_sets(graph: &ScheduleGraph) -> Vec<SystemSetKey> {
    let conditioned = graph.system_sets.iter().filter(|(_, _, conditions)| !conditions.is_empty());
    conditioned.map(|(set, _, _)| set).collect()
}

/// The systems below a set; the first of `registered` is number `first`.
fn members_of(graph: &ScheduleGraph, set: SystemSetKey, registered: &[SystemKey], first: usize) -> Vec<usize> {
    let mut open = vec![NodeId::Set(set)];
    let mut members = Vec::new();
    while let Some(node) = open.pop() {
        match node {
            NodeId::System(key) => {
                members.extend(registered.iter().position(|&known| known == key).map(|index| first + index));
            }
            NodeId::Set(_) => open.extend(graph.hierarchy().neighbors(node)),
        }
    }
    members
}

/// # Errors
/// The one that asks for the time of a clock.
fn ready(conditions: Option<Vec<ConditionWithAccess>>, world: &mut World) -> Result<Vec<ConditionWithAccess>, String> {
    let mut conditions = conditions.unwrap_or_default();
    for condition in &mut conditions {
        let access = condition.initialize(world);
        if asks_for_clock(&access, world) {
            return Err(format!("the condition `{}`", condition.name()));
        }
    }
    Ok(conditions)
}
