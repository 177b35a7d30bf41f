//! Sites: the places in the code that record scopes, each known once for the whole process.
//!
//! A site is a `static` beside the code that it measures, or is made at run time by [`intern`] for places that have no
//! code of their own, such as a game's systems. It gets its number, its subsystem and its budget with its first scope;
//! from then on entering it reads one word.
//!
//! Any thread. Registration takes a lock and allocates, once per site.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use throng_platform::ticks::Calibration;

use crate::category::Category;

/// Sites at most; later ones are not recorded. 24 bits would allow more; so many would be a mistake.
pub const SITES_MAX: usize = 4096;

/// Subsystems at most. Number 0 is what is outside of every scope; what comes after the last is counted with `other`.
pub const SUBSYSTEMS_MAX: usize = 64;

/// Number of a site [1..]; also its place in a capture's list, less one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

/// Number of a subsystem [0..SUBSYSTEMS_MAX].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubsystemId(pub u32);

/// A place that records scopes. What a scope reads of it comes first and lies in one line of memory.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Site {
    /// Number in the lower half, subsystem in the upper one; 0 until registered. Written once under the registry's
    /// lock; the value is all there is to see, so relaxed order is enough.
    word: AtomicU64,
    /// What one scope may take (ticks); `u64::MAX` when nothing is said. Written when rules change.
    budget_ticks: AtomicU64,
    name: &'static str,
    file: &'static str,
    line: u32,
    category: Option<Category>,
    /// What the code itself says it may take; rules come before it. (ns, 0 = nothing said)
    own_budget_ns: u64,
}

impl Site {
    /// A site of this name, usually made by [`scope!`](crate::scope!).
    pub const fn new(name: &'static str, file: &'static str, line: u32) -> Site {
        Site {
            name,
            file,
            line,
            category: None,
            own_budget_ns: 0,
            word: AtomicU64::new(0),
            budget_ticks: AtomicU64::new(u64::MAX),
        }
    }

    /// What one scope may take (µs). Longer ones fire the trigger `scope`.
    pub const fn budget_us(mut self, budget_us: u64) -> Site {
        self.own_budget_ns = budget_us * 1_000;
        self
    }

    /// The heading, where it does not follow from the name.
    pub const fn category(mut self, category: Category) -> Site {
        self.category = Some(category);
        self
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What budgets and metrics add up: the name up to its last dot, or all of it.
    pub fn subsystem_name(&self) -> &'static str {
        subsystem_of(self.name)
    }

    pub fn category_name(&self) -> &'static str {
        self.category.unwrap_or_else(|| Category::of(self.name)).name()
    }

    /// File and line of the code.
    pub fn place(&self) -> (&'static str, u32) {
        (self.file, self.line)
    }

    /// Its number; registers it if need be. `None` when there are too many.
    pub fn id(&'static self) -> Option<SiteId> {
        let word = self.word();
        (word != 0).then(|| word_parts(word).0)
    }

    /// What one scope may take (ns), if anything was said.
    pub fn budget_ns(&self) -> Option<u64> {
        let ticks = self.budget_ticks();
        (ticks != u64::MAX).then(|| Calibration::get().ns(ticks))
    }

    #[inline(always)]
    pub(crate) fn budget_ticks(&self) -> u64 {
        self.budget_ticks.load(Ordering::Relaxed)
    }

    /// Number and subsystem; 0 if it cannot be registered.
    #[inline(always)]
    pub(crate) fn word(&'static self) -> u64 {
        let word = self.word.load(Ordering::Relaxed);
        if word != 0 { word } else { self.register() }
    }

    #[cold]
    fn register(&'static self) -> u64 {
        let mut registry = registry();
        let known = self.word.load(Ordering::Relaxed);
        if known != 0 || registry.sites.len() >= SITES_MAX {
            return known;
        }
        registry.sites.push(self);
        let subsystem = registry.subsystem(self.subsystem_name());
        registry.apply_budget(self);
        let word = registry.sites.len() as u64 | u64::from(subsystem.0) << 32;
        self.word.store(word, Ordering::Relaxed);
        word
    }
}

/// Takes a registered site's word apart. Subsystems are so few that there is room beside them for what an open scope
/// adds.
#[inline(always)]
pub(crate) fn word_parts(word: u64) -> (SiteId, SubsystemId) {
    (SiteId(word as u32), SubsystemId((word >> 32) as u32 % SUBSYSTEMS_MAX as u32))
}

/// The site of this name made at run time; always the same for the same name. Allocates the first time.
pub fn intern(name: &str, category: Option<Category>) -> &'static Site {
    let mut registry = registry();
    if let Some(known) = registry.interned.iter().find(|site| site.name == name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let site: &'static Site = Box::leak(Box::new(Site { category, ..Site::new(name, "", 0) }));
    registry.interned.push(site);
    site
}

/// A registered site by its number.
pub fn get(id: SiteId) -> Option<&'static Site> {
    registry().sites.get((id.0 as usize).checked_sub(1)?).copied()
}

/// All registered sites, in the order of their numbers. Allocates.
pub fn all() -> Vec<&'static Site> {
    registry().sites.clone()
}

/// Names of all subsystems, by number; the first is what is outside of every scope. Allocates.
pub fn subsystems() -> Vec<&'static str> {
    registry().subsystems.clone()
}

/// How many subsystems there are.
pub fn subsystems_count() -> usize {
    registry().subsystems.len()
}

/// Sets what one scope may take, by the site's name; names not given keep what their code says. Kept for sites that
/// register later.
pub fn set_budgets(budgets_ns: Vec<(String, u64)>) {
    let mut registry = registry();
    registry.budgets_ns = budgets_ns;
    for site in registry.sites.clone() {
        registry.apply_budget(site);
    }
}

fn subsystem_of(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(subsystem, _)| subsystem)
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry::new());

struct Registry {
    sites: Vec<&'static Site>,
    interned: Vec<&'static Site>,
    subsystems: Vec<&'static str>,
    budgets_ns: Vec<(String, u64)>,
}

fn registry() -> MutexGuard<'static, Registry> {
    // Whole between any two statements that could panic under it.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    const fn new() -> Registry {
        Registry { sites: Vec::new(), interned: Vec::new(), subsystems: Vec::new(), budgets_ns: Vec::new() }
    }

    fn subsystem(&mut self, name: &'static str) -> SubsystemId {
        if self.subsystems.is_empty() {
            self.subsystems.push("outside");
        }
        let known = self.subsystems.iter().position(|&other| other == name);
        let place = known.unwrap_or_else(|| {
            let is_last = self.subsystems.len() == SUBSYSTEMS_MAX - 1;
            if self.subsystems.len() < SUBSYSTEMS_MAX {
                self.subsystems.push(if is_last { "other" } else { name });
            }
            self.subsystems.len() - 1
        });
        SubsystemId(place as u32)
    }

    fn apply_budget(&self, site: &Site) {
        let rule = self.budgets_ns.iter().find(|(name, _)| name == site.name).map(|(_, ns)| *ns);
        let budget_ns = rule.or((site.own_budget_ns > 0).then_some(site.own_budget_ns));
        let ticks = budget_ns.map_or(u64::MAX, |ns| Calibration::get().ticks(ns));
        site.budget_ticks.store(ticks, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_a_number_a_subsystem_and_a_category() {
        static SITE: Site = Site::new("replication.interest.refresh", "here.rs", 7);
        let id = SITE.id().unwrap();
        assert_eq!(get(id).map(Site::name), Some("replication.interest.refresh"));
        assert_eq!((SITE.subsystem_name(), SITE.category_name()), ("replication.interest", "replication"));
        assert_eq!(SITE.id(), Some(id));
        let (_, subsystem) = word_parts(SITE.word());
        assert_eq!(subsystems()[subsystem.0 as usize], "replication.interest");
    }

    #[test]
    fn names_made_at_run_time_are_made_once() {
        let one = intern("game.test_system", None);
        assert!(std::ptr::eq(one, intern(&String::from("game.test_system"), None)));
        assert_eq!(one.category_name(), "gameplay");
        assert_eq!(intern("test_fog", Some(Category::FOG_OF_WAR)).category_name(), "fog-of-war");
    }

    #[test]
    fn rules_come_before_what_the_code_says() {
        static SITE: Site = Site::new("test.budget", "here.rs", 1).budget_us(500);
        SITE.id();
        let budget_us = || SITE.budget_ns().map(|ns| (ns as f64 / 1_000.0).round() as u64);
        assert_eq!(budget_us(), Some(500));
        set_budgets(vec![("test.budget".into(), 200_000)]);
        assert_eq!(budget_us(), Some(200));
        set_budgets(Vec::new());
        assert_eq!(budget_us(), Some(500));
    }
}
