//! Triggers: when something was bad enough to be kept.
//!
//! Looked at once a frame on the frame's thread, with what the frame summed up and what scopes and locks have noted
//! meanwhile. A cause is what it is about (this scope, that lock, that thread) in one kind of world, which is also what
//! has a folder of captures. After a capture it rests: in the time of its cooldown a scope is saved for a few other
//! worlds, and nothing else is. The cooldown doubles as often as a cause does not go away: the tenth capture of it tells
//! no more than the first ones, and would cost as much. What rests is counted. A cause is remembered in a list of fixed
//! size, so a steady frame neither allocates nor formats.

use throng_capture::model::TriggerKind;

use crate::rules::{KindBudgets, Rules};
use crate::site::SiteId;
use crate::world_kind::{self, KIND_ROWS, KindNumber};

/// A trigger that has fired: what is to be saved, and why.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Fired {
    pub kind: TriggerKind,
    pub cause: Cause,
    /// The kind of world that it happened in.
    pub world_kind: KindNumber,
    /// In the trigger's unit, see [`TriggerKind`].
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
    /// What a subsystem takes in a tick, on average.
    SubsystemPerTick(u32),
    Scope(SiteId),
    Lock(u32),
    Thread(u32),
    /// Late ticks.
    Tick,
    /// All of them together.
    Workers,
    Memory(Option<SiteId>),
}

/// Causes that are remembered at most. With more of them the one that has not fired for longest is forgotten, and may
/// be saved early.
const CAUSES_MAX: usize = 128;

/// Captures of one scope within one cooldown, each of another world: of a thousand sick ones the first few tell enough.
const WORLDS_PER_COOLDOWN_MAX: usize = 4;

/// When so many captures of one kind of trigger were saved within a first cooldown, a scope has one in it, and no others
/// for other worlds.
const MANY_PER_COOLDOWN: usize = 8;

/// Captures of one kind of trigger within a first cooldown, whatever their causes.
const CAPTURES_PER_COOLDOWN_MAX: usize = 32;

/// How often a cause's cooldown doubles: 30 s become 16 minutes at most.
const DOUBLINGS_MAX: u32 = 5;

/// A cause is gone when it has not fired for so many of its first cooldowns, 5 minutes with 30 s, or for the one that it
/// is in, if that is longer: what comes then is news.
const QUIET_COOLDOWNS: u64 = 10;

/// A cause that has fired and was saved.
#[derive(Debug)]
struct Remembered {
    kind: TriggerKind,
    cause: Cause,
    world_kind: KindNumber,
    /// When it last fired, saved or not (ticks).
    fired_at: u64,
    /// When its cooldown began (ticks): with a capture.
    rests_since: u64,
    /// How often the cooldown has doubled.
    doublings: u32,
    /// Its last captures; the next one takes the place of the oldest.
    saved: [Option<SavedWorld>; WORLDS_PER_COOLDOWN_MAX],
    saved_count: usize,
}

/// A capture of a cause.
#[derive(Copy, Clone, Debug)]
struct SavedWorld {
    world: Option<u32>,
    at: u64,
    /// As the cause's were then: so long this world is not saved again for it.
    doublings: u32,
}

/// What a capture of a cause would be.
#[derive(Copy, Clone, Debug)]
enum Turn {
    /// The one that its cooldown begins with.
    First { doublings: u32 },
    /// One of another world in its cooldown.
    AnotherWorld,
}

impl Remembered {
    fn new(fired: &Fired) -> Remembered {
        let Fired { kind, cause, world_kind, at, .. } = *fired;
        let saved = [None; WORLDS_PER_COOLDOWN_MAX];
        Remembered { kind, cause, world_kind, fired_at: at, rests_since: at, doublings: 0, saved, saved_count: 0 }
    }

    fn is_of(&self, fired: &Fired) -> bool {
        (self.kind, self.cause, self.world_kind) == (fired.kind, fired.cause, fired.world_kind)
    }

    /// What a capture of this moment would be; `None` if the cause rests. `first` is the first cooldown (ticks).
    fn turn(&mut self, fired: &Fired, first: u64) -> Option<Turn> {
        let cooldown = first << self.doublings;
        let is_news = fired.at.saturating_sub(self.fired_at) >= cooldown.max(QUIET_COOLDOWNS * first);
        self.fired_at = fired.at;
        let rests = |saved: &SavedWorld| fired.at.saturating_sub(saved.at) < first << saved.doublings;
        if self.saved().any(|saved| saved.world == fired.world && rests(saved)) {
            return None;
        }
        if fired.at.saturating_sub(self.rests_since) < cooldown {
            // What the worlds of a kind wait for is the same in all of them; what they do may not be.
            let has_worlds = matches!(fired.cause, Cause::Scope(_)) && fired.world.is_some();
            let is_open = has_worlds && self.saved_since(self.rests_since) < WORLDS_PER_COOLDOWN_MAX;
            return is_open.then_some(Turn::AnotherWorld);
        }
        Some(Turn::First { doublings: if is_news { 0 } else { DOUBLINGS_MAX.min(self.doublings + 1) } })
    }

    fn keep(&mut self, fired: &Fired, turn: Turn) {
        if let Turn::First { doublings } = turn {
            self.rests_since = fired.at;
            self.doublings = doublings;
        }
        let saved = SavedWorld { world: fired.world, at: fired.at, doublings: self.doublings };
        self.saved[self.saved_count % WORLDS_PER_COOLDOWN_MAX] = Some(saved);
        self.saved_count += 1;
    }

    fn saved(&self) -> impl Iterator<Item = &SavedWorld> {
        self.saved.iter().flatten()
    }

    fn saved_since(&self, at: u64) -> usize {
        self.saved().filter(|saved| saved.at >= at).count()
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
    /// What each subsystem may take in a frame in each kind of world (ns), by its number and the kind's row; the first of
    /// a row is for all worlds of the other kinds together.
    subsystem_budgets_ns: Vec<[Option<u64>; KIND_ROWS]>,
    /// The same for one tick of one world; of kinds alone.
    per_tick_budgets_ns: Vec<[Option<u64>; KIND_ROWS]>,
    /// Kinds of worlds that were there when they were looked up.
    kind_rows: usize,
    /// In no order.
    remembered: Vec<Remembered>,
    pub counts: TriggerCounts,
    /// Length of a second (ticks).
    second: u64,
}

impl Triggers {
    pub fn new(rules: Rules, second: u64) -> Triggers {
        let remembered = Vec::with_capacity(CAUSES_MAX);
        Triggers {
            rules,
            subsystem_budgets_ns: Vec::new(),
            per_tick_budgets_ns: Vec::new(),
            kind_rows: 0,
            remembered,
            counts: TriggerCounts::default(),
            second,
        }
    }

    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
        self.subsystem_budgets_ns.clear();
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Looks up the budgets of all subsystems when there are more of them than before, or more kinds of worlds: then
    /// `names` of both are asked for.
    pub fn meet(
        &mut self,
        subsystems: usize,
        kind_rows: usize,
        names: impl FnOnce() -> (Vec<&'static str>, Vec<&'static str>),
    ) {
        if self.subsystem_budgets_ns.len() >= subsystems && self.kind_rows == kind_rows {
            return;
        }
        self.kind_rows = kind_rows;
        let (subsystems, kinds) = names();
        let said = |budgets: &[(String, u64)], name: &str| {
            budgets.iter().find(|(other, _)| other == name).map(|(_, budget_ns)| *budget_ns)
        };
        let budgets = |name: &str, of_all: Option<u64>, of_kind: fn(&KindBudgets) -> &Vec<(String, u64)>| {
            let mut by_kind = [None; KIND_ROWS];
            by_kind[KindNumber::NONE.row()] = of_all;
            for (row, kind) in (1..KIND_ROWS).zip(&kinds) {
                let budgets = self.rules.kind_budgets.iter().find(|budgets| budgets.kind == *kind);
                by_kind[row] = budgets.and_then(|budgets| said(of_kind(budgets), name));
            }
            by_kind
        };
        let (mut per_frame, mut per_tick) = (Vec::new(), Vec::new());
        for name in subsystems {
            let of_all = said(&self.rules.subsystem_budgets_ns, name);
            per_frame.push(budgets(name, of_all, |budgets| &budgets.subsystems_ns));
            per_tick.push(budgets(name, None, |budgets| &budgets.per_tick_ns));
        }
        (self.subsystem_budgets_ns, self.per_tick_budgets_ns) = (per_frame, per_tick);
    }

    /// What a subsystem may take in one tick of a world of a kind, by its row.
    pub fn per_tick_budget_ns(&self, number: usize, kind_row: usize) -> Option<u64> {
        *self.per_tick_budgets_ns.get(number)?.get(kind_row)?
    }

    /// What a subsystem may take in a frame in the worlds of a kind, by its row.
    pub fn subsystem_budget_ns(&self, number: usize, kind_row: usize) -> Option<u64> {
        *self.subsystem_budgets_ns.get(number)?.get(kind_row)?
    }

    /// The kind's threshold if it is on, for what concerns all worlds: those that tick most often.
    pub fn threshold(&self, kind: TriggerKind) -> Option<u64> {
        let rule = self.rules.trigger(kind);
        rule.is_on.then(|| rule.threshold_at(world_kind::shortest_period_ns()))
    }

    /// The same for what concerns the worlds of one kind.
    pub fn threshold_in(&self, kind: TriggerKind, world_kind: KindNumber) -> Option<u64> {
        let rule = self.rules.trigger(kind);
        rule.is_on.then(|| rule.threshold_at(world_kind::period_ns(world_kind)))
    }

    /// Whether this is to be saved: its kind is on, and its cause has not been saved lately.
    pub fn admit(&mut self, fired: &Fired) -> bool {
        let rule = self.rules.trigger(fired.kind);
        if !rule.is_on {
            return false;
        }
        let first = (f64::from(rule.cooldown_s) * self.second as f64) as u64;
        let known = self.remembered.iter().position(|known| known.is_of(fired));
        let turn = match known {
            Some(place) => self.remembered[place].turn(fired, first),
            None => Some(Turn::First { doublings: 0 }),
        };
        let saved_max = |turn: &Turn| match turn {
            Turn::First { .. } => CAPTURES_PER_COOLDOWN_MAX,
            Turn::AnotherWorld => MANY_PER_COOLDOWN,
        };
        let Some(turn) = turn.filter(|turn| self.saved_lately(fired, first) < saved_max(turn)) else {
            self.counts.in_cooldown += 1;
            return false;
        };
        let place = known.unwrap_or_else(|| self.remember(fired));
        self.remembered[place].keep(fired, turn);
        true
    }

    /// Captures of this kind of trigger within the last first cooldown.
    fn saved_lately(&self, fired: &Fired, first: u64) -> usize {
        let since = fired.at.saturating_add(1).saturating_sub(first);
        let of_kind = self.remembered.iter().filter(|known| known.kind == fired.kind && first > 0);
        of_kind.map(|known| known.saved_since(since)).sum()
    }

    /// A place for a cause that is not known, if need be that of the quietest.
    fn remember(&mut self, fired: &Fired) -> usize {
        let quietest = || (0..self.remembered.len()).min_by_key(|&place| self.remembered[place].fired_at);
        match quietest().filter(|_| self.remembered.len() == CAUSES_MAX) {
            Some(place) => {
                self.remembered[place] = Remembered::new(fired);
                place
            }
            None => {
                self.remembered.push(Remembered::new(fired));
                self.remembered.len() - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triggers() -> Triggers {
        Triggers::new(Rules::default(), 1_000)
    }

    /// Scope 1 in this world, all of them of one kind.
    fn fired(world: u32, at: u64) -> Fired {
        let (kind, cause, world_kind) = (TriggerKind::Scope, Cause::Scope(SiteId(1)), KindNumber::of_row(1));
        Fired { kind, cause, world_kind, measured: 2, allowed: 1, world: Some(world), at, frame: 0 }
    }

    /// The same scope in a world of another kind.
    fn of_another_kind(at: u64) -> Fired {
        Fired { world_kind: KindNumber::of_row(2), ..fired(9, at) }
    }

    fn of_scope(site: u32, at: u64) -> Fired {
        Fired { cause: Cause::Scope(SiteId(site)), ..fired(3, at) }
    }

    #[test]
    fn a_world_rests_after_a_capture_and_others_do_not() {
        let mut triggers = triggers();
        assert!(triggers.admit(&fired(3, 0)));
        assert!(!triggers.admit(&fired(3, 29_999)));
        assert!(triggers.admit(&fired(4, 29_999)));
        assert!(triggers.admit(&of_another_kind(29_999)));
        assert!(triggers.admit(&fired(3, 30_000)));
        assert!(!triggers.admit(&fired(4, 30_000)), "it was saved a moment ago");
        assert_eq!(triggers.counts, TriggerCounts { in_cooldown: 2, crowded_out: 0 });
    }

    /// Promise: a cause that never goes away is saved ever more seldom, down to one in 16 minutes; one that comes back
    /// after a quiet time is saved at once, and then again after its first cooldown.
    #[test]
    fn a_cause_that_stays_is_saved_ever_more_seldom() {
        const MINUTE: u64 = 60_000;
        let mut triggers = triggers();
        let saved: Vec<u64> = (0..60 * 60).map(|s| s * 1_000).filter(|&at| triggers.admit(&fired(3, at))).collect();
        let minutes = saved.iter().map(|&at| at as f64 / MINUTE as f64).collect::<Vec<_>>();
        assert_eq!(minutes, [0.0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 47.5]);
        let back = saved[7] + 60 * MINUTE;
        assert!(triggers.admit(&fired(3, back)));
        assert!(!triggers.admit(&fired(3, back + 29_000)));
        assert!(triggers.admit(&fired(3, back + 30_000)));
        // Every 40 s is not gone in between.
        let saved = (0..15).filter(|n| triggers.admit(&of_scope(2, n * 40_000))).count();
        assert_eq!(saved, 5);
    }

    /// Promise: it is saved seldom also among many others, of which more fire than a cooldown lets through.
    #[test]
    fn a_cause_that_stays_among_many_others_keeps_its_cooldown() {
        let mut triggers = triggers();
        let mut saved = Vec::new();
        for s in 0..30 * 60 {
            let at = s * 1_000;
            if triggers.admit(&fired(3, at)) {
                saved.push(s);
            }
            (0..40).for_each(|site| _ = triggers.admit(&of_scope(2 + site, at)));
        }
        assert_eq!(saved.len(), 6, "{saved:?}");
    }

    #[test]
    fn late_ticks_of_other_worlds_of_the_kind_rest_too() {
        let mut triggers = triggers();
        let late = |world| Fired { kind: TriggerKind::Tick, cause: Cause::Tick, ..fired(world, 0) };
        assert!(triggers.admit(&late(3)));
        assert!(!triggers.admit(&late(4)));
    }

    /// Promise: a scope that is too slow in a thousand worlds all day, ever other ones, is one cause that stays. It
    /// keeps no other kind of world from being saved.
    #[test]
    fn what_stays_in_ever_other_worlds_is_saved_ever_more_seldom_and_leaves_other_kinds_alone() {
        let mut triggers = triggers();
        let mut saved = 0;
        for s in 0..60 * 60 {
            let worlds = (0..20).map(|n| s as u32 * 20 + n);
            saved += worlds.filter(|&world| triggers.admit(&fired(world, s * 1_000))).count();
        }
        // Eight cooldowns began in the hour.
        assert_eq!(saved, 8 * WORLDS_PER_COOLDOWN_MAX);
        assert!(triggers.admit(&of_another_kind(60 * 60 * 1_000)));
    }

    #[test]
    fn many_causes_are_saved_once_each_and_a_few_of_them_for_other_worlds() {
        let mut triggers = triggers();
        let in_world = |site, world| Fired { world: Some(world), ..of_scope(site, 0) };
        let causes = |triggers: &mut Triggers, world| (0..100).filter(|&n| triggers.admit(&in_world(n, world))).count();
        assert_eq!(causes(&mut triggers, 1), CAPTURES_PER_COOLDOWN_MAX);
        assert_eq!(causes(&mut triggers, 2), 0);
    }

    #[test]
    fn what_is_off_does_not_fire() {
        let mut rules = Rules::default();
        rules.trigger_mut(TriggerKind::Scope).is_on = false;
        let mut triggers = Triggers::new(rules, 1_000);
        assert!(!triggers.admit(&fired(3, 0)));
        assert_eq!(triggers.threshold(TriggerKind::Scope), None);
    }

    #[test]
    fn memory_of_causes_is_bounded() {
        let mut triggers = triggers();
        // Far enough apart to be admitted, all of them.
        for site in 0..CAUSES_MAX as u32 + 1 {
            assert!(triggers.admit(&of_scope(site, u64::from(site) * 10_000)));
        }
        assert_eq!(triggers.remembered.len(), CAUSES_MAX);
    }

    #[test]
    fn of_many_sick_worlds_the_first_few_are_kept() {
        let mut triggers = triggers();
        let admitted = (0..100).filter(|&world| triggers.admit(&fired(world, 0))).count();
        assert_eq!((admitted, triggers.counts.in_cooldown), (WORLDS_PER_COOLDOWN_MAX, 96));
    }

    #[test]
    fn budgets_are_found_for_subsystems_that_come_later() {
        let mut rules = Rules::default();
        rules.subsystem_budgets_ns = vec![("ai".into(), 1_000)];
        let mut triggers = Triggers::new(rules, 1_000);
        triggers.meet(2, 1, || (vec!["outside", "net"], Vec::new()));
        assert_eq!((triggers.subsystem_budget_ns(1, 0), triggers.subsystem_budget_ns(2, 0)), (None, None));
        triggers.meet(3, 1, || (vec!["outside", "net", "ai"], Vec::new()));
        assert_eq!(triggers.subsystem_budget_ns(2, 0), Some(1_000));
        triggers.meet(3, 1, || panic!("nothing is new"));
    }

    #[test]
    fn a_kind_of_world_has_budgets_for_one_tick() {
        let mut rules = Rules::default();
        let per_tick_ns = vec![("ai".to_owned(), 500)];
        rules.kind_budgets = vec![KindBudgets { kind: "duel".into(), per_tick_ns, ..KindBudgets::default() }];
        let mut triggers = Triggers::new(rules, 1_000);
        triggers.meet(2, 3, || (vec!["outside", "ai"], vec!["hub", "duel"]));
        assert_eq!([0, 1, 2].map(|row| triggers.per_tick_budget_ns(1, row)), [None, None, Some(500)]);
        assert_eq!([0, 1, 2].map(|row| triggers.subsystem_budget_ns(1, row)), [None; 3]);
    }

    #[test]
    fn a_kind_of_world_has_the_budgets_that_were_given_to_it() {
        let mut rules = Rules::default();
        rules.subsystem_budgets_ns = vec![("ai".into(), 1_000)];
        let of_zone = [("ai", 7_000), ("net", 500)].map(|(name, ns)| (name.to_owned(), ns));
        rules.kind_budgets =
            vec![KindBudgets { kind: "zone".into(), subsystems_ns: of_zone.into(), ..KindBudgets::default() }];
        let mut triggers = Triggers::new(rules, 1_000);
        let names = |kinds: &[&'static str]| (vec!["outside", "net", "ai"], kinds.to_vec());
        triggers.meet(3, 2, || names(&["hub"]));
        assert_eq!((triggers.subsystem_budget_ns(2, 0), triggers.subsystem_budget_ns(2, 1)), (Some(1_000), None));
        triggers.meet(3, 3, || names(&["hub", "zone"]));
        let of_ai = [0, 1, 2].map(|row| triggers.subsystem_budget_ns(2, row));
        assert_eq!(of_ai, [Some(1_000), None, Some(7_000)]);
        let of_net = [0, 1, 2].map(|row| triggers.subsystem_budget_ns(1, row));
        assert_eq!(of_net, [None, None, Some(500)]);
    }
}
