//! `[replication]`, `[components.NAME]` and `[events."NAME"]`: who is told what, how far and how often.
//!
//! A file says only what is to differ from the game's own rules, which differ from the usual ones
//! (`throng_replication::rules`). Names are the replicated ones, as declared or in lower case with dashes:
//! `PlayerVitals` is `player-vitals`.

use serde::Deserialize;
use serde::de::IgnoredAny;
use throng_replication::Schema;
use throng_replication::rules::{
    EventRule, InterestRadii, KindRule, RATE_MIN_PER_S, ReplicationRules, TIERS_MAX, Tier, plain_name,
};

use crate::settings::document::{Document, Named};
use crate::settings::{Checks, Mistake, Section};

/// Above any tick rate: at once.
const RATE_MAX_PER_S: f32 = 1000.0;

/// Names that a rules file may speak of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleNames {
    /// Component kinds, in the schema's order.
    pub components: Vec<&'static str>,
    /// Event kinds, in the schema's order.
    pub events: Vec<&'static str>,
    /// Kinds of worlds, in the order in which they were added.
    pub world_kinds: Vec<String>,
}

impl RuleNames {
    /// All that a game replicates, and its kinds of worlds.
    pub fn of(schema: &Schema, world_kinds: Vec<String>) -> Self {
        Self {
            components: schema.kind_names().collect(),
            events: schema.events().iter().map(|event| event.name).collect(),
            world_kinds,
        }
    }
}

/// What a file says of replication; `None` and absent where it says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicationFileRules {
    pub radii: Option<InterestRadii>,
    pub scan_range_m: Option<f32>,
    pub tiers: Option<Vec<Tier>>,
    pub catch_up_m: Option<f32>,
    pub keepalive_s: Option<f32>,
    /// By index in [`RuleNames::components`].
    pub components: Vec<(usize, KindRule)>,
    /// By index in [`RuleNames::events`].
    pub events: Vec<(usize, EventRule)>,
    /// Ranges with their places in the file, for what can be said of them only when the worlds are known.
    pub(super) said: Vec<SaidRange>,
}

/// A range that a file says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SaidRange {
    /// Where, without a message.
    pub place: Mistake,
    pub of: RangeOf,
    pub range_m: f32,
}

/// What a range is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeOf {
    Component,
    Event,
    Enter,
    Scan,
}

impl ReplicationFileRules {
    /// The game's rules with what the file says on top. `game` has a rule for every name that the file was checked
    /// against; what it has none for is left out.
    pub fn complete(&self, mut game: ReplicationRules) -> ReplicationRules {
        game.radii = self.radii.or(game.radii);
        game.scan_range_m = self.scan_range_m.or(game.scan_range_m);
        if let Some(tiers) = &self.tiers {
            game.tiers.clone_from(tiers);
        }
        game.catch_up_m = self.catch_up_m.unwrap_or(game.catch_up_m);
        game.keepalive_s = self.keepalive_s.unwrap_or(game.keepalive_s);
        for (index, said) in &self.components {
            if let Some(rule) = game.components.get_mut(*index) {
                rule.range_m = said.range_m.or(rule.range_m);
                rule.updates_per_s_max = said.updates_per_s_max.or(rule.updates_per_s_max);
            }
        }
        for (index, said) in &self.events {
            if let Some(rule) = game.events.get_mut(*index) {
                rule.range_m = said.range_m.or(rule.range_m);
                rule.per_s_max = said.per_s_max.or(rule.per_s_max);
            }
        }
        game
    }
}

pub(super) fn read(document: &Document<'_>, names: &RuleNames, mistakes: &mut Vec<Mistake>) -> ReplicationFileRules {
    let whole: WholeWorld = document.section("replication", mistakes);
    let WholeWorld { enter_radius_m, leave_radius_m, scan_range_m, catch_up_m, keepalive_s, .. } = whole;
    let is_name = |written: &str, known: &str| plain_name(written) == plain_name(known);
    let components =
        document.named_sections::<OneComponent>("components", "component", &names.components, is_name, mistakes);
    let events = document.named_sections::<OneEvent>("events", "event", &names.events, is_name, mistakes);
    let of_component =
        |section: &OneComponent| KindRule { range_m: section.range_m, updates_per_s_max: section.updates_per_s_max };
    let of_event = |section: &OneEvent| EventRule { range_m: section.range_m, per_s_max: section.per_s_max };
    let of_world = [("enter_radius_m", RangeOf::Enter, enter_radius_m), ("scan_range_m", RangeOf::Scan, scan_range_m)];
    let of_world = of_world.into_iter().filter_map(|(key, of, range_m)| {
        Some(SaidRange { place: document.key("replication", key)?, of, range_m: range_m? })
    });
    let of_components = components.iter().filter_map(|named| said(named, RangeOf::Component, named.section.range_m));
    let of_events = events.iter().filter_map(|named| said(named, RangeOf::Event, named.section.range_m));
    let mut said: Vec<SaidRange> = of_world.chain(of_components).chain(of_events).collect();
    said.sort_by_key(|said| said.place.line);
    ReplicationFileRules {
        radii: enter_radius_m.zip(leave_radius_m).map(|(enter_m, leave_m)| InterestRadii { enter_m, leave_m }),
        scan_range_m,
        said,
        tiers: read_tiers(document, mistakes),
        catch_up_m,
        keepalive_s,
        components: components.iter().map(|named| (named.index, of_component(&named.section))).collect(),
        events: events.iter().map(|named| (named.index, of_event(&named.section))).collect(),
    }
}

fn said<T>(named: &Named<T>, of: RangeOf, range_m: Option<f32>) -> Option<SaidRange> {
    let place = named.keys.iter().find(|place| place.key == "range_m")?.clone();
    Some(SaidRange { place, of, range_m: range_m? })
}

const TIERS: &str = "replication.tiers";

fn read_tiers(document: &Document<'_>, mistakes: &mut Vec<Mistake>) -> Option<Vec<Tier>> {
    let listed = document.listed_sections::<OneTier>(TIERS, mistakes)?;
    let shown = format!("[{TIERS}]");
    if let Some((place, _)) = listed.get(TIERS_MAX) {
        let message = format!("there are {}; {TIERS_MAX} are possible", listed.len());
        mistakes.push(document.mistake(place.clone(), &shown, "", message));
    }
    let mut tiers: Vec<Tier> = Vec::new();
    for (place, section) in listed {
        let tier = Tier { to_m: section.to_m.unwrap_or(0.0), updates_per_s: section.updates_per_s.unwrap_or(0.0) };
        if let Some(before) = tiers.last().filter(|before| section.to_m.is_some() && before.to_m >= tier.to_m) {
            let message = format!(
                "{} is not beyond the tier before, which goes to {}; put the nearest first",
                tier.to_m, before.to_m
            );
            mistakes.push(document.mistake(place, &shown, "to_m", message));
        }
        tiers.push(tier);
    }
    Some(tiers)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WholeWorld {
    enter_radius_m: Option<f32>,
    leave_radius_m: Option<f32>,
    scan_range_m: Option<f32>,
    catch_up_m: Option<f32>,
    keepalive_s: Option<f32>,
    /// Read as a list of sections.
    #[allow(dead_code)]
    tiers: Option<IgnoredAny>,
}

impl Section for WholeWorld {
    fn check(&self, checks: &mut Checks<'_>) {
        for (key, value) in [
            ("enter_radius_m", self.enter_radius_m),
            ("leave_radius_m", self.leave_radius_m),
            ("scan_range_m", self.scan_range_m),
        ] {
            check_opt(key, value, 1.0, 10_000.0, "m", checks);
        }
        match (self.enter_radius_m, self.leave_radius_m) {
            (Some(enter_m), Some(leave_m)) if leave_m < enter_m => checks.mistake(
                "leave_radius_m",
                format!("{leave_m} is less than enter_radius_m, {enter_m}; make it at least that, better a tenth more"),
            ),
            // What the other is without a rule differs from world to world.
            (Some(_), None) => checks.mistake("enter_radius_m", "stands alone; write leave_radius_m beside it"),
            (None, Some(_)) => checks.mistake("leave_radius_m", "stands alone; write enter_radius_m beside it"),
            _ => {}
        }
        check_opt("catch_up_m", self.catch_up_m, 1.0, f32::INFINITY, "m", checks);
        check_opt("keepalive_s", self.keepalive_s, 0.1, 3600.0, "s", checks);
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OneTier {
    to_m: Option<f32>,
    updates_per_s: Option<f32>,
}

impl Section for OneTier {
    fn check(&self, checks: &mut Checks<'_>) {
        for (key, example) in [("to_m", "40"), ("updates_per_s", "20")] {
            if !checks.has(key) {
                checks.mistake(key, format!("is missing; a tier needs it, such as `{key} = {example}`"));
            }
        }
        check_opt("to_m", self.to_m, 0.1, f32::INFINITY, "m", checks);
        check_opt("updates_per_s", self.updates_per_s, RATE_MIN_PER_S, RATE_MAX_PER_S, "1/s", checks);
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OneComponent {
    range_m: Option<f32>,
    updates_per_s_max: Option<f32>,
}

impl Section for OneComponent {
    fn check(&self, checks: &mut Checks<'_>) {
        check_opt("range_m", self.range_m, 0.1, f32::INFINITY, "m", checks);
        check_opt("updates_per_s_max", self.updates_per_s_max, RATE_MIN_PER_S, RATE_MAX_PER_S, "1/s", checks);
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OneEvent {
    range_m: Option<f32>,
    per_s_max: Option<f32>,
}

impl Section for OneEvent {
    fn check(&self, checks: &mut Checks<'_>) {
        check_opt("range_m", self.range_m, 0.1, f32::INFINITY, "m", checks);
        check_opt("per_s_max", self.per_s_max, RATE_MIN_PER_S, RATE_MAX_PER_S, "1/s", checks);
    }
}

fn check_opt(key: &str, value: Option<f32>, low: f32, high: f32, unit: &str, checks: &mut Checks<'_>) {
    if let Some(value) = value {
        checks.range(key, value, low..=high, unit);
    }
}
