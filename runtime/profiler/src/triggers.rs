//! Triggers: when something was bad enough to be kept.
//!
//! Looked at once a frame on the frame's thread, with what the frame summed up and what scopes and locks have noted
//! meanwhile. The same cause (this scope in this world, that lock, that thread) fires again only after its cooldown,
//! which doubles with every capture of a cause that does not go away: the tenth capture of it tells no more than the
//! first ones, and would push them out of the disk budget. What is inside a cooldown is counted. A cause is remembered
//! in a list of fixed size, so a steady frame neither allocates nor formats.

use throng_capture::model::TriggerKind;

use crate::rules::Rules;
use crate::site::SiteId;

/// A trigger that has fired: what is to be saved, and why.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Fired {
    pub kind: TriggerKind,
    pub cause: Cause,
    /// In the kind's unit, see [`TriggerKind`].
    pub measured: u64,
    pub allowed: u64,
    pub world: Option<u32>,
    /// When (ticks).
    pub at: u64,
    pub frame: u64,
}

/// What it is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Frame,
    Subsystem(u32),
    Scope {
        site: SiteId,
        world: Option<u32>,
    },
    Lock(u32),
    Thread(u32),
    /// Late ticks of one kind of world, by the kind's number.
    Tick(u32),
    Memory(Option<SiteId>),
}

/// Causes that are remembered at most. With more of them the one that has not fired for longest is forgotten, and may
/// be saved early.
const CAUSES_MAX: usize = 64;

/// Captures of one kind within one cooldown, whatever their causes: of a thousand sick worlds the first few tell
/// enough.
const CAPTURES_PER_COOLDOWN_MAX: usize = 8;

/// How often a cause's cooldown doubles: 30 s become 16 minutes at most.
const DOUBLINGS_MAX: u32 = 5;

/// A cause is gone when it has not fired for so many of its first cooldowns, 5 minutes with 30 s, or for the one that it
/// is in, if that is longer: what comes then is news.
const QUIET_COOLDOWNS: u64 = 10;

/// A cause that has fired.
#[derive(Debug)]
struct Remembered {
    kind: TriggerKind,
    cause: Cause,
    /// When it was saved last, and when it last fired, saved or not (ticks).
    saved_at: u64,
    fired_at: u64,
    /// How often its cooldown has doubled.
    doublings: u32,
}

impl Remembered {
    fn cooldown(&self, first: u64) -> u64 {
        first << self.doublings
    }
}

/// What became of the triggers since the start.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TriggerCounts {
    /// Inside the cooldown of their cause.
    pub in_cooldown: u64,
    /// Too many were waiting to be saved.
    pub crowded_out: u64,
}

#[derive(Debug)]
pub(crate) struct Triggers {
    rules: Rules,
    /// What each subsystem may take in a frame (ns), by its number.
    subsystem_budgets_ns: Vec<Option<u64>>,
    /// In no order.
    remembered: Vec<Remembered>,
    pub counts: TriggerCounts,
    /// Length of a second (ticks).
    second: u64,
}

impl Triggers {
    pub fn new(rules: Rules, second: u64) -> Triggers {
        let remembered = Vec::with_capacity(CAUSES_MAX);
        Triggers { rules, subsystem_budgets_ns: Vec::new(), remembered, counts: TriggerCounts::default(), second }
    }

    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
        self.subsystem_budgets_ns.clear();
    }

    /// What a subsystem may take in a frame. `names` are asked for when there are more subsystems than before.
    pub fn subsystem_budget_ns(
        &mut self,
        number: usize,
        count: usize,
        names: impl Fn() -> Vec<&'static str>,
    ) -> Option<u64> {
        if self.subsystem_budgets_ns.len() < count {
            let budgets = &self.rules.subsystem_budgets_ns;
            let budget = |name: &&str| budgets.iter().find(|(other, _)| other == name).map(|(_, ns)| *ns);
            self.subsystem_budgets_ns = names().iter().map(budget).collect();
        }
        self.subsystem_budgets_ns.get(number).copied().flatten()
    }

    /// The kind's threshold if it is on.
    pub fn threshold(&self, kind: TriggerKind) -> Option<u64> {
        let rule = self.rules.trigger(kind);
        rule.is_on.then_some(rule.threshold)
    }

    /// Whether this is to be saved: its kind is on, and its cause has not been saved lately.
    pub fn admit(&mut self, fired: &Fired) -> bool {
        let rule = self.rules.trigger(fired.kind);
        if !rule.is_on {
            return false;
        }
        let first = (f64::from(rule.cooldown_s) * self.second as f64) as u64;
        let known = self.remembered.iter().position(|known| (known.kind, known.cause) == (fired.kind, fired.cause));
        let mut doublings = 0;
        if let Some(place) = known {
            let known = &mut self.remembered[place];
            let cooldown = known.cooldown(first);
            let is_news = fired.at.saturating_sub(known.fired_at) >= cooldown.max(QUIET_COOLDOWNS * first);
            known.fired_at = fired.at;
            if fired.at.saturating_sub(known.saved_at) < cooldown {
                self.counts.in_cooldown += 1;
                return false;
            }
            doublings = if is_news { 0 } else { DOUBLINGS_MAX.min(known.doublings + 1) };
        }
        let is_recent = |known: &&Remembered| fired.at.saturating_sub(known.saved_at) < first;
        let of_kind = self.remembered.iter().filter(|known| known.kind == fired.kind).filter(is_recent);
        if of_kind.count() >= CAPTURES_PER_COOLDOWN_MAX {
            self.counts.in_cooldown += 1;
            return false;
        }
        let quietest = || (0..self.remembered.len()).min_by_key(|&place| self.remembered[place].fired_at);
        if let Some(place) = known.or_else(|| quietest().filter(|_| self.remembered.len() == CAUSES_MAX)) {
            self.remembered.swap_remove(place);
        }
        let Fired { kind, cause, at, .. } = *fired;
        self.remembered.push(Remembered { kind, cause, saved_at: at, fired_at: at, doublings });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triggers() -> Triggers {
        Triggers::new(Rules::default(), 1_000)
    }

    fn fired(cause: Cause, at: u64) -> Fired {
        Fired { kind: TriggerKind::Scope, cause, measured: 2, allowed: 1, world: None, at, frame: 0 }
    }

    const IN_WORLD_3: Cause = Cause::Scope { site: SiteId(1), world: Some(3) };
    const IN_WORLD_4: Cause = Cause::Scope { site: SiteId(1), world: Some(4) };

    #[test]
    fn a_cause_rests_after_a_capture_and_others_do_not() {
        let mut triggers = triggers();
        assert!(triggers.admit(&fired(IN_WORLD_3, 0)));
        assert!(!triggers.admit(&fired(IN_WORLD_3, 29_999)));
        assert!(triggers.admit(&fired(IN_WORLD_4, 29_999)));
        assert!(triggers.admit(&fired(IN_WORLD_3, 30_000)));
        assert_eq!(triggers.counts, TriggerCounts { in_cooldown: 1, crowded_out: 0 });
    }

    /// Promise: a cause that never goes away is saved ever more seldom, down to one in 16 minutes; one that comes back
    /// after a quiet time is saved at once, and then again after its first cooldown.
    #[test]
    fn a_cause_that_stays_is_saved_ever_more_seldom() {
        const MINUTE: u64 = 60_000;
        let mut triggers = triggers();
        let saved: Vec<u64> =
            (0..60 * 60).map(|s| s * 1_000).filter(|&at| triggers.admit(&fired(IN_WORLD_3, at))).collect();
        let minutes = saved.iter().map(|&at| at as f64 / MINUTE as f64).collect::<Vec<_>>();
        assert_eq!(minutes, [0.0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 47.5]);
        let back = saved[7] + 60 * MINUTE;
        assert!(triggers.admit(&fired(IN_WORLD_3, back)));
        assert!(!triggers.admit(&fired(IN_WORLD_3, back + 29_000)));
        assert!(triggers.admit(&fired(IN_WORLD_3, back + 30_000)));
        // Every 40 s is not gone in between.
        let saved = (0..15).filter(|n| triggers.admit(&fired(IN_WORLD_4, n * 40_000))).count();
        assert_eq!(saved, 5);
    }

    /// Promise: it is saved seldom also among many others, of which more fire than a cooldown lets through or than are
    /// remembered.
    #[test]
    fn a_cause_that_stays_among_many_others_keeps_its_cooldown() {
        let mut triggers = triggers();
        let others = |s: u64| (0..20).map(move |n| Cause::Scope { site: SiteId(2), world: Some((s * 20 + n) as u32) });
        let mut saved = Vec::new();
        for s in 0..30 * 60 {
            let at = s * 1_000;
            if triggers.admit(&fired(IN_WORLD_3, at)) {
                saved.push(s);
            }
            others(s).for_each(|cause| _ = triggers.admit(&fired(cause, at)));
        }
        assert_eq!(saved.len(), 6, "{saved:?}");
    }

    #[test]
    fn what_is_off_does_not_fire() {
        let mut rules = Rules::default();
        rules.trigger_mut(TriggerKind::Scope).is_on = false;
        let mut triggers = Triggers::new(rules, 1_000);
        assert!(!triggers.admit(&fired(IN_WORLD_3, 0)));
        assert_eq!(triggers.threshold(TriggerKind::Scope), None);
    }

    #[test]
    fn memory_of_causes_is_bounded() {
        let mut triggers = triggers();
        let in_world = |world| Cause::Scope { site: SiteId(1), world: Some(world) };
        // Far enough apart to be admitted, all of them.
        for world in 0..CAUSES_MAX as u32 + 1 {
            assert!(triggers.admit(&fired(in_world(world), u64::from(world) * 10_000)));
        }
        assert_eq!(triggers.remembered.len(), CAUSES_MAX);
    }

    #[test]
    fn of_many_sick_worlds_the_first_few_are_kept() {
        let mut triggers = triggers();
        let in_world = |world| Cause::Scope { site: SiteId(1), world: Some(world) };
        let admitted = (0..100).filter(|&world| triggers.admit(&fired(in_world(world), 0))).count();
        assert_eq!((admitted, triggers.counts.in_cooldown), (CAPTURES_PER_COOLDOWN_MAX, 92));
    }

    #[test]
    fn budgets_are_found_for_subsystems_that_come_later() {
        let mut rules = Rules::default();
        rules.subsystem_budgets_ns = vec![("ai".into(), 1_000)];
        let mut triggers = Triggers::new(rules, 1_000);
        assert_eq!(triggers.subsystem_budget_ns(1, 2, || vec!["outside", "net"]), None);
        assert_eq!(triggers.subsystem_budget_ns(2, 3, || vec!["outside", "net", "ai"]), Some(1_000));
    }
}
