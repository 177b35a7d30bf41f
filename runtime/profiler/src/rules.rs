//! Rules: budgets and triggers, as an operator writes them; plain data that can be exchanged while the recorder runs.
//!
//! The server reads them from its rules file and hands them over whole ([`crate::RecorderControl::set_rules`]); what is
//! wrong in the file never gets here. Defaults suit a server on a machine that it has for itself; those in time follow from
//! the rates of its worlds.

use throng_capture::model::{TriggerKind, Unit};

use crate::world_kind;

/// How far back the recorder remembers, where it has the memory (s): the longest pre-roll.
pub const HISTORY_S: f32 = 10.0;

/// When captures are saved, and what scopes and subsystems may take.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// One rule per kind of trigger, in the order of [`TriggerKind::ALL`].
    triggers: [TriggerRule; TriggerKind::ALL.len()],
    /// What the scopes of a subsystem may take together in one frame, over all threads (ns), by its name.
    pub subsystem_budgets_ns: Vec<(String, u64)>,
    /// What one scope may take (ns), by its name; comes before what the code says.
    pub scope_budgets_ns: Vec<(String, u64)>,
    /// What is another in one kind of world, each kind once.
    pub kind_budgets: Vec<KindBudgets>,
    /// All captures together (bytes): the folder that takes most gives its oldest first.
    pub captures_disk_budget_bytes: u64,
}

/// [`Rules::captures_disk_budget_bytes`] if nobody sets one: eight loud causes, and as many quiet ones as there are.
pub const CAPTURES_DISK_BUDGET_BYTES: u64 = 2 << 30;

/// What the worlds of one kind may take; comes before what holds for all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KindBudgets {
    /// The kind's name.
    pub kind: String,
    /// What the scopes of a subsystem may take in the worlds of this kind together in one frame (ns), by its name. They
    /// then do not count for what the subsystem may take in all others.
    pub subsystems_ns: Vec<(String, u64)>,
    /// What one scope may take in a world of this kind (ns), by its name.
    pub scopes_ns: Vec<(String, u64)>,
    /// What the scopes of a subsystem may take together in one tick of one world of this kind (ns), by its name: the mean
    /// of the ticks of a second and more. It is the same however many worlds there are.
    pub per_tick_ns: Vec<(String, u64)>,
}

/// When one kind of trigger fires, and what becomes of its captures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriggerRule {
    pub is_on: bool,
    /// What is too much, in the kind's unit: ns for times, bytes/s for rates, bytes for sizes, % for shares. Without
    /// meaning for `manual`, `crash` and `stuck-tick`, and for `subsystem` and `scope`, which have budgets instead.
    pub threshold: u64,
    /// The threshold is one for worlds of 30 Hz and slower; at faster rates it is the same share of a period
    /// ([`world_kind::fitted`]). So it is with times that nobody has set.
    pub fits_rate: bool,
    /// After a capture, the same cause in the same kind of world saves no other one for so long (s), but a scope in three
    /// other worlds; it is counted instead. A cause that stays saves ever more seldom: the time doubles with each turn, up
    /// to 32 times this, until the cause has not fired for ten times this and for as long as its doubled time. Other
    /// causes have cooldowns of their own. Too low → one cause fills its disk budget; too high → its changes are not seen.
    pub cooldown_s: f32,
    /// How much of what came before is saved (s). More than the recorder's memory holds → as much as there is.
    pub pre_roll_s: f32,
    /// How much of what comes after is saved (s). The file is written when it has passed.
    pub post_roll_s: f32,
    /// The captures of each folder of this kind, one per cause and kind of world (bytes); the oldest go first. Too low →
    /// a cause that stays shows its last hour and not its first; too high → a few loud causes fill
    /// [`Rules::captures_disk_budget_bytes`].
    pub disk_budget_bytes: u64,
}

impl TriggerRule {
    /// What is too much where ticks have this period.
    pub fn threshold_at(&self, period_ns: Option<u64>) -> u64 {
        if self.fits_rate { world_kind::fitted(self.threshold, period_ns) } else { self.threshold }
    }
}

impl Rules {
    pub fn trigger(&self, kind: TriggerKind) -> &TriggerRule {
        &self.triggers[place(kind)]
    }

    pub fn trigger_mut(&mut self, kind: TriggerKind) -> &mut TriggerRule {
        &mut self.triggers[place(kind)]
    }
}

fn place(kind: TriggerKind) -> usize {
    // The order of `ALL` is the order of declaration, which a test holds.
    kind as usize
}

/// The kind's threshold if nobody sets one; of times, at rates up to 30 Hz.
fn default_threshold(kind: TriggerKind) -> u64 {
    const MS: u64 = 1_000_000;
    match kind {
        // Told by somebody else, who says what is allowed.
        TriggerKind::Manual | TriggerKind::Crash | TriggerKind::StuckTick => 0,
        TriggerKind::Subsystem | TriggerKind::Scope => 0,
        // A period at 20 Hz, one and a half at 30 and more; a frame is closed on time, so only its serial parts can make it
        // this long.
        TriggerKind::Frame => 50 * MS,
        // A tenth of a period at 20 Hz, 1.2 ms at 128.
        TriggerKind::Tick => 5 * MS,
        // What is left is a millisecond of a frame at 50 Hz: the next few players do not fit.
        TriggerKind::WorkersBusy => 95,
        TriggerKind::LockWait => 5 * MS,
        // A few turns of the kernel's scheduler (about 3 ms each), within one frame; at 128 Hz one of them is too long.
        TriggerKind::RunQueue => 10 * MS,
        TriggerKind::MemoryRate => 8 << 20,
        TriggerKind::LargeAllocation => 256 << 10,
        TriggerKind::Leak => 100 << 10,
    }
}

impl Default for Rules {
    fn default() -> Rules {
        let rule = |kind| TriggerRule {
            is_on: true,
            threshold: default_threshold(kind),
            fits_rate: kind.unit() == Unit::Nanoseconds,
            cooldown_s: if kind == TriggerKind::Manual { 0.0 } else { 30.0 },
            pre_roll_s: 1.0,
            // It is saved while it is stuck.
            post_roll_s: if kind == TriggerKind::StuckTick { 0.0 } else { 0.25 },
            disk_budget_bytes: 256 << 20,
        };
        Rules {
            triggers: TriggerKind::ALL.map(rule),
            subsystem_budgets_ns: Vec::new(),
            scope_budgets_ns: Vec::new(),
            kind_budgets: Vec::new(),
            captures_disk_budget_bytes: CAPTURES_DISK_BUDGET_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_rule_of_its_own() {
        let mut rules = Rules::default();
        for (place_in_all, kind) in TriggerKind::ALL.into_iter().enumerate() {
            assert_eq!(place(kind), place_in_all);
            rules.trigger_mut(kind).threshold = place_in_all as u64;
        }
        let thresholds = TriggerKind::ALL.map(|kind| rules.trigger(kind).threshold);
        assert_eq!(thresholds, std::array::from_fn(|place| place as u64));
    }

    /// Promise: at 128 Hz a tick that is late by 15 % of its period is told, as at 30 Hz; what was set is what holds.
    #[test]
    fn times_that_nobody_set_follow_the_rate() {
        const MS: u64 = 1_000_000;
        let at_hz = |hz: u64| Some(1_000_000_000 / hz);
        let mut rules = Rules::default();
        let in_time = [TriggerKind::Frame, TriggerKind::Tick, TriggerKind::LockWait, TriggerKind::RunQueue];
        let thresholds = |rules: &Rules, period| in_time.map(|kind| rules.trigger(kind).threshold_at(period));
        for unchanged in [None, at_hz(10), at_hz(20), at_hz(30)] {
            assert_eq!(thresholds(&rules, unchanged), [50 * MS, 5 * MS, 5 * MS, 10 * MS]);
        }
        assert_eq!(thresholds(&rules, at_hz(128)), [11_718_750, 1_171_875, 1_171_875, 2_343_750]);
        let busy = rules.trigger(TriggerKind::WorkersBusy);
        assert_eq!(busy.threshold_at(at_hz(128)), 95, "a share is one at any rate");
        rules.trigger_mut(TriggerKind::Tick).fits_rate = false;
        assert_eq!(thresholds(&rules, at_hz(128))[1], 5 * MS);
    }
}
