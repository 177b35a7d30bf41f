//! End hook: a test switch that has every scope of one subsystem do something more before it ends.
//!
//! With it a slowdown can be planted where the code has its own, to see whether it is found. Whatever the hook takes is of the
//! scope that ends, and is charged to the subsystem. Scopes of the subsystem end the slow way then, as those do that take longer than
//! their budget; without a hook, and for all other scopes, nothing is asked.

use std::sync::OnceLock;

use crate::site;

/// Takes what the calling thread has spent in the subsystem until now (time of the processor's counter), what hooks took
/// included. Must not open scopes.
pub type Hook = fn(own_ticks: u64);

pub(crate) struct EndHook {
    pub subsystem: u32,
    pub act: Hook,
}

static HOOK: OnceLock<EndHook> = OnceLock::new();

/// Has scopes of this subsystem call `act` at their ends, for the life of the process. False if nothing of the subsystem was recorded
/// yet, or there is a hook already.
pub fn set(subsystem: &str, act: Hook) -> bool {
    let Some(number) = site::subsystem_number(subsystem) else { return false };
    let is_set = HOOK.set(EndHook { subsystem: number as u32, act }).is_ok();
    site::apply_budgets();
    is_set
}

#[inline]
pub(crate) fn of_subsystem(subsystem: u32) -> Option<&'static EndHook> {
    HOOK.get().filter(|hook| hook.subsystem == subsystem)
}
