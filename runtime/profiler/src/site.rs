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
use crate::end_hook;
use crate::rules::KindBudgets;
use crate::world_kind::{self, KIND_ROWS, KindNumber};

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
    /// What one scope may take at least (ticks), see [`Site::budget_ticks`]. Written when rules change.
    budget_ticks: AtomicU64,
    name: &'static str,
    file: &'static str,
    line: u32,
    category: Option<Category>,
    /// What the code itself says it may take; rules come before it. (ns, 0 = nothing said)
    own_budget_ns: u64,
    /// See [`Site::fits_rate`].
    fits_rate: bool,
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
            fits_rate: false,
            word: AtomicU64::new(0),
            budget_ticks: AtomicU64::new(u64::MAX),
        }
    }

    /// What one scope may take (µs). Longer ones fire the trigger `scope`.
    pub const fn budget_us(self, budget_us: u64) -> Site {
        self.budget_ns(budget_us * 1_000)
    }

    /// The same in ns, for what takes less than a microsecond. A reading of the clock takes 10 to 20.
    pub const fn budget_ns(mut self, budget_ns: u64) -> Site {
        self.own_budget_ns = budget_ns;
        self
    }

    /// Whether the code's budget is one for kinds of worlds of 30 Hz and slower, of which faster ones have the same share
    /// of their period ([`world_kind::fitted`]). What rules say holds at every rate.
    pub const fn fits_rate(mut self, fits_rate: bool) -> Site {
        self.fits_rate = fits_rate;
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

    /// What budgets and metrics add up: the name up to its last dot, or all of it. Type arguments are not counted:
    /// `easings.plugin.ease<throng.Place>` belongs to `easings.plugin`.
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

    /// What one scope may take (ns), if anything was said; in a kind of world it may be something else.
    pub fn allowed_ns(&'static self) -> Option<u64> {
        let least = self.budget_ticks();
        let ticks = self.id().map_or(least, |id| budget_ticks_in(id, KindNumber::NONE, least));
        (ticks != u64::MAX).then(|| Calibration::get().ns(ticks))
    }

    /// What one scope may take (ticks), `u64::MAX` for anything: in the kind of world in which it may take least. What
    /// takes more is looked at more closely ([`budget_ticks_in`]).
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
        let subsystem = registry.subsystem(self.subsystem_name(), self.category_name());
        let id = SiteId(registry.sites.len() as u32);
        registry.apply_budget(self, id);
        let word = u64::from(id.0) | u64::from(subsystem.0) << 32;
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

/// The heading of each subsystem, by number: that of its first scope that was registered. What is outside of every scope
/// is under a heading of its own, `outside`. Allocates.
pub fn subsystem_categories() -> Vec<&'static str> {
    registry().subsystem_categories.clone()
}

/// The number of the subsystem of this name, if anything of it was recorded.
pub(crate) fn subsystem_number(name: &str) -> Option<usize> {
    registry().subsystems.iter().position(|&other| other == name)
}

/// How many subsystems there are.
pub fn subsystems_count() -> usize {
    registry().subsystems.len()
}

/// Sets what one scope may take, by the site's name, and what is another in one kind of world; names not given keep what
/// their code says. Kept for sites that register later.
pub fn set_budgets(budgets_ns: Vec<(String, u64)>, of_kinds: Vec<KindBudgets>) {
    let mut registry = registry();
    registry.budgets_ns = budgets_ns;
    registry.of_kinds = of_kinds;
    drop(registry);
    apply_budgets();
}

/// Looks up anew what every site may take: there are kinds of worlds that were not known before.
pub(crate) fn apply_budgets() {
    let registry = registry();
    for (id, site) in (1..).map(SiteId).zip(&registry.sites) {
        registry.apply_budget(site, id);
    }
}

/// What one scope of the site may take in this kind of world (ticks), if it may take `least` in the kind in which it may
/// take least. Asked for scopes that took more than that.
#[inline]
pub(crate) fn budget_ticks_in(id: SiteId, kind: KindNumber, least: u64) -> u64 {
    let row = |kind: KindNumber| BY_KIND[(id.0 as usize % SITES_MAX) * KIND_ROWS + kind.row()].load(Ordering::Relaxed);
    match (row(KindNumber::NONE), row(kind)) {
        (0, _) => least,
        (of_all, 0) => of_all,
        (_, of_kind) => of_kind,
    }
}

/// For sites that have a budget of their own in some kind of world: what a scope may take in each (ticks), 0 where
/// nothing is said; the first of a site's row is what holds in all others. Written when rules change, each for its own
/// sake: relaxed. The kernel gives it memory only where it is written, a page for 32 sites.
static BY_KIND: [AtomicU64; SITES_MAX * KIND_ROWS] = [const { AtomicU64::new(0) }; SITES_MAX * KIND_ROWS];

fn subsystem_of(name: &str) -> &str {
    let path = name.split('<').next().filter(|path| !path.is_empty()).unwrap_or(name);
    path.rsplit_once('.').map_or(path, |(subsystem, _)| subsystem)
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry::new());

struct Registry {
    sites: Vec<&'static Site>,
    interned: Vec<&'static Site>,
    subsystems: Vec<&'static str>,
    /// Of each, in the same order.
    subsystem_categories: Vec<&'static str>,
    budgets_ns: Vec<(String, u64)>,
    of_kinds: Vec<KindBudgets>,
}

fn registry() -> MutexGuard<'static, Registry> {
    // Whole between any two statements that could panic under it.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    const fn new() -> Registry {
        Registry {
            sites: Vec::new(),
            interned: Vec::new(),
            subsystems: Vec::new(),
            subsystem_categories: Vec::new(),
            budgets_ns: Vec::new(),
            of_kinds: Vec::new(),
        }
    }

    fn subsystem(&mut self, name: &'static str, category: &'static str) -> SubsystemId {
        if self.subsystems.is_empty() {
            self.subsystems.push("outside");
            self.subsystem_categories.push("outside");
        }
        let known = self.subsystems.iter().position(|&other| other == name);
        let place = known.unwrap_or_else(|| {
            let is_last = self.subsystems.len() == SUBSYSTEMS_MAX - 1;
            if self.subsystems.len() < SUBSYSTEMS_MAX {
                self.subsystems.push(if is_last { "other" } else { name });
                self.subsystem_categories.push(if is_last { Category::OTHER.name() } else { category });
            }
            self.subsystems.len() - 1
        });
        SubsystemId(place as u32)
    }

    fn apply_budget(&self, site: &Site, id: SiteId) {
        let said = |budgets: &[(String, u64)]| budgets.iter().find(|(name, _)| name == site.name).map(|(_, ns)| *ns);
        // Never 0, which stands for nothing.
        let ticks = |ns: u64| Calibration::get().ticks(ns).max(1);
        let of_code = (site.own_budget_ns > 0).then_some(site.own_budget_ns);
        let of_rules = said(&self.budgets_ns);
        let of_all = of_rules.or(of_code).map_or(u64::MAX, ticks);
        let mut by_kind = [0; KIND_ROWS];
        if let Some(of_code) = of_code.filter(|_| site.fits_rate && of_rules.is_none()) {
            for (row, of_kind) in by_kind.iter_mut().enumerate().skip(1) {
                let fitted = world_kind::fitted(of_code, world_kind::period_ns(KindNumber::of_row(row)));
                *of_kind = if fitted < of_code { ticks(fitted) } else { 0 };
            }
        }
        let names = if self.of_kinds.is_empty() { Vec::new() } else { world_kind::names() };
        for (row, name) in (1..).zip(names) {
            let budgets = self.of_kinds.iter().find(|budgets| budgets.kind == name);
            if let Some(of_kind) = budgets.and_then(|budgets| said(&budgets.scopes_ns)) {
                by_kind[row] = ticks(of_kind);
            }
        }
        let mut least_of_kind = by_kind.into_iter().filter(|&ticks| ticks > 0).min();
        let subsystem = self.subsystems.iter().position(|&name| name == site.subsystem_name());
        if subsystem.is_some_and(|number| end_hook::of_subsystem(number as u32).is_some()) {
            // Every scope of it is looked at more closely.
            least_of_kind = Some(0);
        }
        by_kind[0] = if least_of_kind.is_some() { of_all } else { 0 };
        let place = (id.0 as usize % SITES_MAX) * KIND_ROWS;
        for (word, ticks) in BY_KIND[place..].iter().zip(by_kind) {
            // To read it asks for no memory.
            if word.load(Ordering::Relaxed) != ticks {
                word.store(ticks, Ordering::Relaxed);
            }
        }
        site.budget_ticks.store(least_of_kind.map_or(of_all, |least| least.min(of_all)), Ordering::Relaxed);
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
    fn a_generic_system_is_of_the_subsystem_that_it_is_written_in() {
        let subsystem = |name| intern(name, None).subsystem_name();
        assert_eq!(subsystem("test_easings.plugin.ease<(), test_game.places.Place>"), "test_easings.plugin");
        assert_eq!(subsystem("test_ease<test_game.places.Place>"), "test_ease");
        assert_eq!(subsystem("<test_game.places.Place>.settle"), "<test_game.places.Place>");
    }

    /// Promise: what is added up by subsystem can be added up by heading, too.
    #[test]
    fn a_subsystem_is_under_the_heading_of_its_first_scope() {
        static SIGHT: Site = Site::new("test_headed.sight", "here.rs", 1).category(Category::FOG_OF_WAR);
        static LATER: Site = Site::new("test_headed.later", "here.rs", 2);
        static FROM_NAME: Site = Site::new("physics.test_headed.cast", "here.rs", 3);
        let numbers = [&SIGHT, &LATER, &FROM_NAME].map(|site| word_parts(site.word()).1.0 as usize);
        let categories = subsystem_categories();
        assert_eq!(numbers.map(|number| categories[number]), ["fog-of-war", "fog-of-war", "physics"]);
        assert_eq!(categories[0], "outside");
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
        let budget_us = || SITE.allowed_ns().map(|ns| (ns as f64 / 1_000.0).round() as u64);
        assert_eq!(budget_us(), Some(500));
        set_budgets(vec![("test.budget".into(), 200_000)], Vec::new());
        assert_eq!(budget_us(), Some(200));

        // In one kind of world more, in another less, and that one comes later.
        let (zone, scope) = (world_kind::number_of("site_test.zone"), "test.budget".to_owned());
        let of_kind = |kind: &str, us: u64| KindBudgets {
            kind: kind.into(),
            scopes_ns: vec![(scope.clone(), us * 1_000)],
            ..KindBudgets::default()
        };
        let of_kinds = vec![of_kind("site_test.zone", 900), of_kind("site_test.cave", 100)];
        set_budgets(vec![("test.budget".into(), 200_000)], of_kinds);
        let id = SITE.id().unwrap();
        let us = |ticks: u64| (Calibration::get().ns(ticks) as f64 / 1_000.0).round() as u64;
        let us_in = |kind| us(budget_ticks_in(id, kind, SITE.budget_ticks()));
        assert_eq!((budget_us(), us_in(zone), us(SITE.budget_ticks())), (Some(200), 900, 200));
        let cave = world_kind::number_of("site_test.cave");
        apply_budgets();
        assert_eq!((us_in(cave), us_in(zone), us(SITE.budget_ticks())), (100, 900, 100));
        assert_eq!((budget_us(), us_in(KindNumber::NONE)), (Some(200), 200));

        set_budgets(Vec::new(), Vec::new());
        assert_eq!((budget_us(), us_in(zone)), (Some(500), 500));
    }

    /// Promise: what the engine's scopes may take follows from the rate of the kind of world, where no rule says
    /// otherwise.
    #[test]
    fn a_kind_at_128_hz_has_its_budgets_from_its_period() {
        static TICK: Site = Site::new("test_rate.tick", "here.rs", 1).budget_us(25_000).fits_rate(true);
        static FIXED: Site = Site::new("test_rate.fixed", "here.rs", 2).budget_us(25_000);
        let [slow, fast] = ["site_test.slow", "site_test.fast"].map(world_kind::number_of);
        world_kind::set_period(slow, 50_000_000);
        world_kind::set_period(fast, 7_812_500);
        apply_budgets();
        let us_in = |site: &'static Site, kind| {
            let ticks = budget_ticks_in(site.id().unwrap(), kind, site.budget_ticks());
            (Calibration::get().ns(ticks) as f64 / 1_000.0).round() as u64
        };
        assert_eq!([KindNumber::NONE, slow, fast].map(|kind| us_in(&TICK, kind)), [25_000, 25_000, 5_859]);
        assert_eq!([KindNumber::NONE, slow, fast].map(|kind| us_in(&FIXED, kind)), [25_000; 3]);
        let of_none = TICK.allowed_ns().map(|ns| (ns as f64 / 1_000.0).round() as u64);
        assert_eq!(of_none, Some(25_000), "what is in no world has no rate");
    }
}
