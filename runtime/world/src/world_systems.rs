//! World systems: those of one world, run in the order of its kind.
//!
//! Running them ourselves is where each system's time is taken: every system is a scope of its own, which it may split
//! into phases ([`Phases::split`]). Everything runs on the world's thread, one system after the other, whichever features
//! of Bevy are on: `par_iter` is a loop.
//!
//! As in Bevy, every condition is asked also after one has said no, so that each can keep state of its own; a system
//! whose set is off still has its own conditions asked.
//!
//! Cost: 7-60 ns per system run beside the system's own work.

use std::sync::Arc;

use bevy_ecs::{
    error::BevyError,
    prelude::*,
    schedule::{ConditionWithAccess, SystemWithAccess},
    system::{RunSystemError, System},
};
use throng_platform::{prefetch::FootprintDraft, time::Nanos};
use throng_profiler::{Phases, site};

use crate::{
    failures::{Catching, Caught, FailedSystem, take_caught},
    system_order::{Known, OrderError, Step, SystemOrder},
};

pub(crate) struct OwnSystem {
    pub system: SystemWithAccess,
    conditions: Vec<ConditionWithAccess>,
    /// A set that it is in is off in this run.
    is_off: bool,
}

impl OwnSystem {
    pub fn new(system: SystemWithAccess, conditions: Vec<ConditionWithAccess>) -> Self {
        Self { system, conditions, is_off: false }
    }
}

/// The systems of one world, with their state, in registration order.
pub struct WorldSystems {
    order: Arc<SystemOrder>,
    systems: Vec<OwnSystem>,
    /// Conditions of the sets that have any, parallel to `order.guarded`.
    sets: Vec<Vec<ConditionWithAccess>>,
    failures: Failures,
}

/// What failed in a run.
pub(crate) struct Failures {
    /// All of them.
    pub count: u64,
    /// Those that are to have a line in the log.
    pub lines: Vec<FailedSystem>,
    on_failure: OnFailure,
    now: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnFailure {
    Panic,
    /// A line, unless there was one just now.
    Tell,
    /// A line in any case.
    TellAll,
}

impl Failures {
    fn new() -> Self {
        let on_failure = if cfg!(debug_assertions) { OnFailure::Panic } else { OnFailure::Tell };
        Self { count: 0, lines: Vec::new(), on_failure, now: Nanos::ZERO }
    }

    #[cold]
    fn add_system(&mut self, order: &SystemOrder, system: usize, error: &BevyError) {
        self.add(order, system, 1, error, |known| known.name.clone());
    }

    #[cold]
    fn add_condition(
        &mut self,
        order: &SystemOrder,
        system: usize,
        condition: &ConditionWithAccess,
        error: &BevyError,
    ) {
        self.add(order, system, 1, error, |known| format!("{}, a condition of {}", condition.name(), known.name));
    }

    /// What Bevy ran in a system's step.
    #[cold]
    fn add_caught(&mut self, order: &SystemOrder, system: usize, caught: &Caught) {
        let Caught { times, first, error } = caught;
        self.add(order, system, *times, error, |known| format!("{}, {} in {}", first.name(), first.kind(), known.name));
    }

    fn add(
        &mut self,
        order: &SystemOrder,
        system: usize,
        times: u64,
        error: &BevyError,
        named: impl Fn(&Known) -> String,
    ) {
        let known = &order.systems[system];
        self.count += times;
        let times = match self.on_failure {
            OnFailure::Panic => {
                let error = error.to_string();
                panic!("system `{}` of world kind `{}` failed: {}", named(known), order.kind, error.trim_end())
            }
            OnFailure::Tell => known.throttle.count(self.now, times),
            OnFailure::TellAll => Some(times),
        };
        if let Some(times) = times {
            let error = error.to_string().trim_end().to_string();
            self.lines.push(FailedSystem { system: named(known), error, times });
        }
    }
}

impl WorldSystems {
    pub(crate) fn new(order: Arc<SystemOrder>, systems: Vec<OwnSystem>, sets: Vec<Vec<ConditionWithAccess>>) -> Self {
        Self { order, systems, sets, failures: Failures::new() }
    }

    /// Runs what is to run before the first tick, and lets go of it.
    ///
    /// # Errors
    /// The first system that failed.
    pub fn start(&mut self, world: &mut World) -> Result<(), OrderError> {
        if self.order.startup.is_empty() {
            return Ok(());
        }
        let at_start = Failures { on_failure: OnFailure::TellAll, ..Failures::new() };
        let in_ticks = std::mem::replace(&mut self.failures, at_start);
        self.follow(|order| &order.startup, world, &mut Phases::begin(site!("world.startup")));
        let failures = std::mem::replace(&mut self.failures, in_ticks);
        if let Some(FailedSystem { system, error, .. }) = failures.lines.into_iter().next() {
            return Err(OrderError::Startup { kind: self.order.kind.clone(), system, error });
        }
        self.systems.truncate(self.order.tick_systems_count);
        self.sets.truncate(self.order.tick_sets_count);
        Ok(())
    }

    /// Runs every system of a tick once, in order. Allocates nothing itself; a panicking system unwinds through here.
    ///
    /// `phases` goes from system to system: each has its own scope. The last one's is open at the end.
    pub fn run(&mut self, world: &mut World, phases: &mut Phases, now: Nanos) {
        self.failures.now = now;
        self.follow(|order| &order.steps, world, phases);
    }

    fn follow(&mut self, steps: impl Fn(&SystemOrder) -> &[Step], world: &mut World, phases: &mut Phases) {
        // The order is borrowed, not counted: all workers share that counter.
        let Self { order, systems, sets, failures } = self;
        let order: &SystemOrder = order;
        let _catching = Catching::begin();
        for &step in steps(order) {
            let index = match step {
                Step::Run(index) => {
                    let own = &mut systems[index];
                    let hold = all_hold(&mut own.conditions, world, &mut |condition, error| {
                        failures.add_condition(order, index, condition, error);
                    });
                    if !std::mem::take(&mut own.is_off) && hold {
                        phases.next(order.systems[index].site);
                        // A system that skips itself (no `Single`, say) is a result, not an error.
                        if let Err(RunSystemError::Failed(error)) = own.system.run_without_applying_deferred((), world)
                        {
                            failures.add_system(order, index, &error);
                        }
                    }
                    index
                }
                Step::Apply(index) => {
                    systems[index].system.apply_deferred(world);
                    index
                }
                Step::Ask(set) => {
                    let members = &order.guarded[set];
                    let hold = all_hold(&mut sets[set], world, &mut |condition, error| {
                        failures.add_condition(order, members[0], condition, error);
                    });
                    if !hold {
                        members.iter().for_each(|&index| systems[index].is_off = true);
                    }
                    members[0]
                }
            };
            if let Some(caught) = take_caught() {
                failures.add_caught(order, index, &caught);
            }
        }
    }

    /// Notes what every tick reads, beside itself.
    pub fn note_lists(&self, footprint: &mut FootprintDraft) {
        footprint.note(&*self.systems);
        for own in &self.systems {
            footprint.note(&**own.system.system());
            note_conditions(&own.conditions, footprint);
        }
        footprint.note(&*self.sets);
        self.sets.iter().for_each(|conditions| note_conditions(conditions, footprint));
    }

    /// What failed since it was last emptied.
    pub(crate) fn failures_mut(&mut self) -> &mut Failures {
        &mut self.failures
    }

    /// Whether a failure panics: as in a debug build, or as in a release build.
    pub fn panic_on_failure(&mut self, panics: bool) {
        self.failures.on_failure = if panics { OnFailure::Panic } else { OnFailure::Tell };
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
}

fn note_conditions(conditions: &[ConditionWithAccess], footprint: &mut FootprintDraft) {
    footprint.note(conditions);
    conditions.iter().for_each(|own| footprint.note(&*own.condition));
}

/// Asks every condition. One that cannot be asked says no, and is told with its name.
fn all_hold(
    conditions: &mut [ConditionWithAccess],
    world: &mut World,
    failed: &mut impl FnMut(&ConditionWithAccess, &BevyError),
) -> bool {
    let mut hold = true;
    for condition in conditions {
        hold &= match condition.run((), world) {
            Ok(holds) => holds,
            Err(RunSystemError::Skipped(_)) => false,
            Err(RunSystemError::Failed(error)) => {
                failed(condition, &error);
                false
            }
        };
    }
    hold
}

#[cfg(test)]
mod tests;
