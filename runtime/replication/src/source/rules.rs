//! Rules: how far each sort of component and event is heard, and how often it may be told.
//!
//! Most bytes of a crowded world are about things that hardly matter to who gets them: a say is heard 15 m away, a
//! health bar matters as a percentage, an animation once a second. What may be left out differs from game to game and
//! from evening to evening, so it stands in rules that are replaced while the world runs: a game gives its own, an
//! operator's file goes on top. Without any, everything is told at once to everybody who holds the entity.
//!
//! Rules are made far from any tick, in metres and seconds ([`ReplicationRules`]); a world works with a
//! [`ResolvedRules`] of them: plain arrays by kind, squared metres and whole ticks of its own rate. Replacing is one
//! pointer, between two ticks.
//!
//! Never decides who may know of an entity at all: that is interest's. A rule can only keep back or delay.
//! Cost: a look at an array. About 1 KB per tick rate.

use crate::wire::schema::{EVENTS_MAX, KINDS_MAX, Schema};

/// Tiers of distance at most. More are refused by the rules file and cut off by [`ReplicationRules::resolved`].
pub const TIERS_MAX: usize = 8;

/// Rarest rate that a rule may ask for (1/s): what is owed is told once in 100 s at least. Rarer ones are taken as
/// this.
pub const RATE_MIN_PER_S: f32 = 0.01;

/// How far messages of these kinds are heard (m), unless the game or an operator says otherwise: the figures that the
/// EQEmu team came to on servers with some thousand players, from "Developer Blog - Server Optimizations".
///
/// They hold for components and events of which the last part of the name is one of these: `say`, `chat.say`,
/// `Position`.
pub const USUAL_RANGES_M: [(&str, f32); 13] = [
    ("say", 15.0),
    ("damage", 50.0),
    ("spell", 75.0),
    ("song", 75.0),
    ("stun", 75.0),
    ("critical", 80.0),
    ("door", 100.0),
    ("emote", 135.0),
    ("animation", 135.0),
    ("particles", 135.0),
    ("cast", 200.0),
    ("position", 300.0),
    ("scan", 600.0),
];

/// How often a component of these names is told of one entity at most (1/s), from the same source and with the same say
/// of game and operator.
pub const USUAL_RATES_PER_S: [(&str, f32); 1] = [("animation", 1.0)];

/// How often clients at some distance are told of changes.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Tier {
    /// The tier holds entities up to this far from the client (m, > 0).
    /// Too low → what is well in view moves in jumps; too high → nothing is saved.
    pub to_m: f32,
    /// Changes of one entity that one client is told in a second [1/s, `RATE_MIN_PER_S` and more]. From the world's
    /// tick rate on: every tick. Too low → late and jumpy; too high → bytes.
    pub updates_per_s: f32,
}

/// What holds for one component kind.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct KindRule {
    /// Beyond it, clients that hold the entity are not told of this component's changes (m). None: as far as they hold
    /// it. Too low → copies are stale in view; too high → bytes.
    pub range_m: Option<f32>,
    /// Changes of one entity's component that are encoded in a second, for all clients (1/s, >= `RATE_MIN_PER_S`). What
    /// comes earlier waits, and goes with the value that is newest then. None: every tick's. Too low → late; too high →
    /// bytes.
    pub updates_per_s_max: Option<f32>,
}

/// What holds for one event kind.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct EventRule {
    /// How far it is heard (m). None: in the whole world.
    pub range_m: Option<f32>,
    /// Events that one source entity may send in a second (1/s, >= `RATE_MIN_PER_S`); more are dropped and counted.
    /// None: any number.
    pub per_s_max: Option<f32>,
}

/// How far clients see.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct InterestRadii {
    /// As [`InterestSettings::enter_radius_m`](crate::InterestSettings::enter_radius_m).
    pub enter_m: f32,
    /// As [`InterestSettings::leave_radius_m`](crate::InterestSettings::leave_radius_m), at least `enter_m`.
    pub leave_m: f32,
}

/// All rules of a game, in metres and seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicationRules {
    /// How far clients see in every world. None: as each world was made. What is told of an entity is told to those who
    /// hold it, so no range below reaches farther.
    pub radii: Option<InterestRadii>,
    /// How far a game's own neighbour lists reach, if it keeps any (m). None: as the game has it. Too low → questions
    /// beyond it look at everybody; too high → long lists.
    pub scan_range_m: Option<f32>,
    /// Ascending by distance, at most [`TIERS_MAX`]. The last one goes on to the leave radius. None: every change at
    /// once.
    pub tiers: Vec<Tier>,
    /// A client that has come so far since its last catch-up gets all it is owed at once, whatever the tier (m, > 0).
    /// Too low → the tiers save nothing for who runs; too high → who arrives somewhere sees what was long ago.
    pub catch_up_m: f32,
    /// What a client holds and hears nothing of, because it is out of a component's range, is brought up to date once
    /// in so long (s, > 0). Too low → the ranges save nothing; too high → far copies stay wrong for long.
    pub keepalive_s: f32,
    /// By kind, in the schema's order; kinds beyond its end have no rule.
    pub components: Vec<KindRule>,
    /// By event kind, in the schema's order; as above.
    pub events: Vec<EventRule>,
}

impl Default for ReplicationRules {
    /// No tiers, no ranges, no throttles: everything at once to everybody who holds it.
    fn default() -> Self {
        Self {
            radii: None,
            scan_range_m: None,
            tiers: Vec::new(),
            catch_up_m: 50.0,
            keepalive_s: 10.0,
            components: Vec::new(),
            events: Vec::new(),
        }
    }
}

impl ReplicationRules {
    /// The rules of a game that has said nothing else: the usual ranges by name, and tiers that halve the rate twice on
    /// the way to what is far. `events` are the schema's, with the range that the game declared.
    ///
    /// An event with a declared range keeps it, be it infinite; one without has its usual range, or the whole world.
    pub fn usual<'n>(
        components: impl IntoIterator<Item = &'n str>,
        events: impl IntoIterator<Item = (&'n str, Option<f32>)>,
    ) -> Self {
        let of_kind = |name| KindRule { range_m: usual_range_m(name), updates_per_s_max: usual_rate_per_s(name) };
        let of_event = |(name, declared): (&str, Option<f32>)| EventRule {
            range_m: declared.or_else(|| usual_range_m(name)).filter(|range_m| range_m.is_finite()),
            per_s_max: None,
        };
        Self {
            tiers: vec![
                // Faster than any world ticks: at once.
                Tier { to_m: 40.0, updates_per_s: 1000.0 },
                Tier { to_m: 80.0, updates_per_s: 10.0 },
                Tier { to_m: 160.0, updates_per_s: 5.0 },
            ],
            components: components.into_iter().map(of_kind).collect(),
            events: events.into_iter().map(of_event).collect(),
            ..Self::default()
        }
    }

    /// As [`usual`](Self::usual), with the names of a schema.
    pub fn for_schema(schema: &Schema) -> Self {
        let events = schema.events().iter().map(|event| (event.name, event.range_m));
        Self::usual(schema.kind_names(), events)
    }

    /// The rules for worlds of one tick rate (ticks/s, > 0). Allocates nothing; called when rules or worlds are new.
    pub fn resolved(&self, ticks_per_s: f32) -> ResolvedRules {
        let mut resolved = ResolvedRules {
            radii: self.radii,
            catch_up_m2: squared(Some(self.catch_up_m)),
            keepalive_ticks: (self.keepalive_s * ticks_per_s).ceil().max(1.0) as u32,
            ..ResolvedRules::default()
        };
        for (index, tier) in self.tiers.iter().take(TIERS_MAX).enumerate() {
            resolved.tier_to_m2[index] = squared(Some(tier.to_m));
            resolved.tier_period_ticks[index] = period_ticks(Some(tier.updates_per_s), ticks_per_s);
            resolved.tiers_count = index + 1;
        }
        // The last one goes on.
        if let Some(last) = resolved.tiers_count.checked_sub(1) {
            resolved.tier_to_m2[last] = f32::INFINITY;
        }
        for (index, rule) in self.components.iter().take(KINDS_MAX).enumerate() {
            resolved.kind_range_m2[index] = squared(rule.range_m);
            resolved.kind_period_ticks[index] = period_ticks(rule.updates_per_s_max, ticks_per_s);
            resolved.ranged_kinds |= u16::from(rule.range_m.is_some_and(f32::is_finite)) << index;
        }
        for (index, rule) in self.events.iter().take(EVENTS_MAX).enumerate() {
            resolved.event_range_m2[index] = squared(rule.range_m);
            resolved.event_period_ticks[index] = period_ticks(rule.per_s_max, ticks_per_s);
        }
        resolved
    }
}

/// Rules as one world looks at them: squared metres, whole ticks, arrays by kind.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedRules {
    /// How far clients see; none: as the world was made.
    pub radii: Option<InterestRadii>,
    /// Tiers in use. 0: everything at once.
    pub tiers_count: usize,
    /// Squared distance up to which each tier goes, ascending; infinite for the last one. (m²)
    pub tier_to_m2: [f32; TIERS_MAX],
    /// An entity of the tier is told at most once in so many ticks. [ticks, >= 1]
    pub tier_period_ticks: [u32; TIERS_MAX],
    pub catch_up_m2: f32,
    /// [ticks, >= 1]
    pub keepalive_ticks: u32,
    /// Squared range of each component kind; infinite without one. (m²)
    pub kind_range_m2: [f32; KINDS_MAX],
    /// A component's changes are encoded at most once in so many ticks. [ticks, >= 1]
    pub kind_period_ticks: [u32; KINDS_MAX],
    /// Kinds with a range: nothing needs a look at the others.
    pub ranged_kinds: u16,
    /// Squared range of each event kind; infinite without one. (m²)
    pub event_range_m2: [f32; EVENTS_MAX],
    /// One source's events of a kind are at least so many ticks apart. [ticks, >= 1]
    pub event_period_ticks: [u32; EVENTS_MAX],
}

impl Default for ResolvedRules {
    fn default() -> Self {
        Self {
            radii: None,
            tiers_count: 0,
            tier_to_m2: [f32::INFINITY; TIERS_MAX],
            tier_period_ticks: [1; TIERS_MAX],
            catch_up_m2: f32::INFINITY,
            keepalive_ticks: u32::MAX,
            kind_range_m2: [f32::INFINITY; KINDS_MAX],
            kind_period_ticks: [1; KINDS_MAX],
            ranged_kinds: 0,
            event_range_m2: [f32::INFINITY; EVENTS_MAX],
            event_period_ticks: [1; EVENTS_MAX],
        }
    }
}

impl ResolvedRules {
    /// The tier of an entity that is so far away. 0 is the nearest; also what there is without tiers.
    #[inline]
    pub fn tier_at(&self, distance_m2: f32) -> usize {
        // Of at most eight, so counted rather than searched: no branch to guess wrong.
        let below = |to_m2: &&f32| **to_m2 < distance_m2;
        self.tier_to_m2[..self.tiers_count.saturating_sub(1)].iter().filter(below).count()
    }

    /// Ticks between two updates of an entity that is so far away. [ticks, >= 1]
    #[inline]
    pub fn period_at(&self, distance_m2: f32) -> u32 {
        self.tier_period_ticks[self.tier_at(distance_m2)]
    }

    /// The kinds of `mask` that are heard so far away.
    #[inline]
    pub fn heard_at(&self, mask: u16, distance_m2: f32) -> u16 {
        let mut ranged = mask & self.ranged_kinds;
        let mut heard = mask;
        while ranged != 0 {
            let kind = ranged.trailing_zeros();
            ranged &= ranged - 1;
            if self.kind_range_m2[kind as usize] < distance_m2 {
                heard &= !(1 << kind);
            }
        }
        heard
    }
}

/// A name as rules compare it: `PlayerVitals`, `player_vitals` and `player-vitals` are one.
pub fn plain_name(name: &str) -> String {
    let mut plain = String::with_capacity(name.len() + 4);
    let mut before = '.';
    for letter in name.chars() {
        if letter.is_uppercase() && before.is_lowercase() {
            plain.push('-');
        }
        plain.extend(if letter == '_' { '-' } else { letter }.to_lowercase());
        before = letter;
    }
    plain
}

fn usual_range_m(name: &str) -> Option<f32> {
    find_usual(&USUAL_RANGES_M, name)
}

fn usual_rate_per_s(name: &str) -> Option<f32> {
    find_usual(&USUAL_RATES_PER_S, name)
}

fn find_usual(table: &[(&str, f32)], name: &str) -> Option<f32> {
    let plain = plain_name(name);
    let last = plain.rsplit('.').next()?;
    table.iter().find(|(usual, _)| *usual == last).map(|(_, figure)| *figure)
}

fn squared(range_m: Option<f32>) -> f32 {
    range_m.map_or(f32::INFINITY, |range_m| range_m * range_m)
}

/// Whole ticks, rounded so that the rate is never above the one asked for.
fn period_ticks(per_s: Option<f32>, ticks_per_s: f32) -> u32 {
    // A hundredth of a tick is forgiven, so that 20 in 60 is every third tick whatever the last bit says.
    per_s.map_or(1.0, |per_s| (ticks_per_s / per_s.max(RATE_MIN_PER_S) - 0.01).ceil()).max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_ranges_go_by_the_last_part_of_a_name() {
        let check = |name, declared, expect| {
            let rules = ReplicationRules::usual([name], [(name, declared)]);
            assert_eq!(rules.events[0].range_m, expect, "{name}");
            if declared.is_none() {
                assert_eq!(rules.components[0].range_m, expect, "{name}");
            }
        };
        check("say", None, Some(15.0));
        check("chat.say", None, Some(15.0));
        check("chat.Say", None, Some(15.0));
        check("Position", None, Some(300.0));
        check("chat.whisper", None, None);
        check("says", None, None);
        check("say.loud", None, None);
        check("chat.say", Some(40.0), Some(40.0));
        check("chat.say", Some(f32::INFINITY), None);
    }

    #[test]
    fn names_are_one_however_they_are_written() {
        let check = |name, expect| assert_eq!(plain_name(name), expect);
        check("Vitals", "vitals");
        check("PlayerVitals", "player-vitals");
        check("player_vitals", "player-vitals");
        check("chat.Say", "chat.say");
        check("NPC", "npc");
        check("Pose2D", "pose2d");
    }

    #[test]
    fn rates_become_whole_ticks_and_never_too_many() {
        let check = |per_s, ticks_per_s, expect| assert_eq!(period_ticks(per_s, ticks_per_s), expect, "{per_s:?}");
        check(None, 20.0, 1);
        check(Some(1000.0), 20.0, 1);
        check(Some(20.0), 20.0, 1);
        check(Some(20.0), 30.0, 2);
        check(Some(20.0), 60.0, 3);
        check(Some(1.0), 20.0, 20);
        check(Some(3.0), 20.0, 7);
        check(Some(0.0), 20.0, 2000);
        check(Some(f32::NAN), 20.0, 2000);
    }

    #[test]
    fn tiers_are_found_by_distance_and_the_last_goes_on() {
        let rules = ReplicationRules::usual([], []).resolved(20.0);
        let check = |distance_m: f32, expect| assert_eq!(rules.period_at(distance_m * distance_m), expect);
        check(0.0, 1);
        check(40.0, 1);
        check(40.1, 2);
        check(80.0, 2);
        check(100.0, 4);
        check(1e6, 4);
        assert_eq!(ReplicationRules::default().resolved(20.0).period_at(1e9), 1);
    }

    #[test]
    fn a_component_is_heard_within_its_range() {
        let rules = ReplicationRules::usual(["Position", "Vitals", "animation"], []).resolved(20.0);
        assert_eq!(rules.ranged_kinds, 0b101);
        assert_eq!(rules.heard_at(0b111, 135.0 * 135.0), 0b111);
        assert_eq!(rules.heard_at(0b111, 136.0 * 136.0), 0b011);
        assert_eq!(rules.heard_at(0b111, 301.0 * 301.0), 0b010);
        assert_eq!(rules.heard_at(0b010, f32::INFINITY), 0b010);
    }

    #[test]
    fn too_many_tiers_and_kinds_are_cut_off() {
        let rules = ReplicationRules {
            tiers: (1..20).map(|step| Tier { to_m: step as f32, updates_per_s: 1.0 }).collect(),
            components: vec![KindRule::default(); 40],
            events: vec![EventRule::default(); 400],
            ..ReplicationRules::default()
        };
        assert_eq!(rules.resolved(20.0).tiers_count, TIERS_MAX);
    }
}
