//! Watch: what a bot is told, held against what must be true.
//!
//! Places lie inside the landscape, nobody has more than full health, the living have some, names and words are such as
//! the world accepts, a player in the world has an entity of its own before long, and an event comes from no farther
//! than it may. What is not so is a violation, counted by what it broke.
//!
//! Ranges are judged by what this client knows of the places, and that is old: its own place by a round trip, another's
//! by the rate of its tier, both by a black-out of the network, and a reliable event may come later still. So an event
//! is too far only if it is farther than its range and [`TOLERANCE_M`] from everywhere that this player was in the last
//! seconds; and whoever was teleported a moment ago is not judged. An event at an entity that the client does not hold
//! (yet) is counted, not judged.

use throng_bots::BehaviourCounters;
use throng_client::Client;
use throng_platform::time::Nanos;
use throng_replication::NetId;

use super::senses::Place;
use crate::{
    components::{HEALTH_MAX, Kind, Look, NAME_BYTES_MAX, Name, Pose, Vitals},
    landscape::{EDGE_M, distance_m2},
    protocol::SAY_BYTES_MAX,
    traits::{LEVEL_MAX, Traits},
};

/// How much farther than its range an event may seem to be: two who run apart for three seconds. (m)
const TOLERANCE_M: f32 = 3.0 * 2.0 * Traits::of(Kind::Player).chase_m_per_s;
/// How far outside the landscape a place may be by rounding. (m)
const EDGE_SLACK_M: f32 = 0.05;
/// Who is so far from where it was a thought ago has not walked there, even if nothing was heard for a second or two.
/// (m)
const JUMP_M: f32 = 30.0;
/// After a teleport, places that were known are wrong for so long.
const TELEPORT_REST: Nanos = Nanos::from_secs(5);
/// Teleports that are remembered; the oldest are forgotten first.
const TELEPORTS_MAX: usize = 16;
/// Own places that are remembered, and how often one is.
const PLACES: usize = 4;
const PLACE_PERIOD: Nanos = Nanos::from_secs(1);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Violations {
    place: u64,
    vitals: u64,
    look: u64,
    words: u64,
    range: u64,
    body: u64,
    unreadable: u64,
    land: u64,
}

/// What one bot has found wrong.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Watch {
    violations: Violations,
    /// Events at entities that it did not hold.
    unknown_sources: u64,
    /// Where the own player is, as of the last thought.
    own: Option<Place>,
    /// Own places of the last seconds, and when the newest was added.
    places: Vec<Place>,
    place_added: Nanos,
    teleports: Vec<(Nanos, NetId)>,
    own_teleport: Option<Nanos>,
}

impl Watch {
    /// A new stay: what it knew of places does not hold.
    pub fn enter(&mut self) {
        self.own = None;
        self.places.clear();
        self.teleports.clear();
        self.own_teleport = None;
    }

    /// Notes where the own player is.
    pub fn note_place(&mut self, now: Nanos, at: Place) {
        // Nobody is told of the teleports of those who are visibility-filtered, not even themselves.
        if self.own.replace(at).is_some_and(|before| distance_m2(before, at) > JUMP_M * JUMP_M) {
            self.own_teleport = Some(now);
            self.places.clear();
        }
        if !self.places.is_empty() && now < self.place_added + PLACE_PERIOD {
            return;
        }
        self.place_added = now;
        if self.places.len() == PLACES {
            self.places.remove(0);
        }
        self.places.push(at);
    }

    pub fn teleported(&mut self, now: Nanos, who: NetId, to: Place, own: Option<NetId>) {
        self.violations.place += u64::from(!is_inside(to));
        if Some(who) == own {
            self.own_teleport = Some(now);
            self.places.clear();
        }
        if self.teleports.len() == TELEPORTS_MAX {
            self.teleports.remove(0);
        }
        self.teleports.push((now, who));
    }

    /// An event at `who`, who is at `place` as far as the client knows, and whose kind is heard for `range_m`.
    pub fn check_range(&mut self, now: Nanos, who: NetId, place: Option<Place>, range_m: f32) {
        let Some(place) = place else {
            self.unknown_sources += 1;
            return;
        };
        let rests = |at: Nanos| now < at + TELEPORT_REST;
        let is_uncertain = self.own_teleport.is_some_and(rests)
            || self.teleports.iter().any(|&(at, other)| other == who && rests(at))
            || self.places.is_empty();
        let limit_m = range_m + TOLERANCE_M;
        let is_near = |own: &Place| distance_m2(*own, place) <= limit_m * limit_m;
        self.violations.range += u64::from(!is_uncertain && !self.places.iter().any(is_near));
    }

    /// Somebody's name and words, as an event told them. NPCs have no name.
    pub fn check_words(&mut self, name: &str, words: &str) {
        let is_name = name.is_empty() || speech::accept_name(name.as_bytes(), NAME_BYTES_MAX).is_ok();
        let is_line = speech::accept_line(words.as_bytes(), SAY_BYTES_MAX).is_ok();
        self.violations.words += u64::from(!is_name) + u64::from(!is_line);
    }

    /// An event that cannot be read.
    pub fn unreadable(&mut self) {
        self.violations.unreadable += 1;
    }

    /// Messages that no client of this game understands.
    pub fn strange_messages(&mut self, count: u64) {
        self.violations.unreadable += count;
    }

    /// What was told of land and cannot be true. Who was teleported a moment ago is not judged.
    pub fn land(&mut self, now: Nanos, wrong: u64) {
        let rests = self.own_teleport.is_some_and(|at| now < at + TELEPORT_REST);
        self.violations.land += if rests { 0 } else { wrong };
    }

    /// Where the own player was last.
    pub fn own_place(&self) -> Option<Place> {
        self.own
    }

    pub fn bodiless(&mut self, for_too_long: bool) {
        self.violations.body += u64::from(for_too_long);
    }

    /// Looks at everything that the client holds.
    pub fn check(&mut self, client: &Client, own: NetId) {
        let replicas = client.replicas();
        let outside = replicas.iter::<Pose>().filter(|(_, pose)| !is_inside([pose.x, pose.z])).count();
        let unwell = |vitals: &Vitals| vitals.health > HEALTH_MAX || (vitals.health == 0) == vitals.alive;
        let unwell = replicas.iter::<Vitals>().filter(|(_, vitals)| unwell(vitals)).count();
        let strange = replicas.iter::<Look>().filter(|(_, look)| !(1..=LEVEL_MAX).contains(&look.level)).count();
        let not_oneself = replicas.get::<Look>(own).is_some_and(|look| look.kind != Kind::Player);
        let is_name =
            |name: &Name| name.text.is_empty() || speech::accept_name(name.text.as_bytes(), NAME_BYTES_MAX).is_ok();
        let nameless = replicas.iter::<Name>().filter(|(_, name)| !is_name(name)).count();
        self.violations.place += outside as u64;
        self.violations.vitals += unwell as u64;
        self.violations.look += (strange + usize::from(not_oneself)) as u64;
        self.violations.words += nameless as u64;
    }

    /// Adds `violations`, and of each kind that there were how many.
    pub fn count_into(&self, counters: BehaviourCounters) -> BehaviourCounters {
        let Violations { place, vitals, look, words, range, body, unreadable, land } = self.violations;
        let kinds = [
            ("violations_place", place),
            ("violations_vitals", vitals),
            ("violations_look", look),
            ("violations_words", words),
            ("violations_range", range),
            ("violations_body", body),
            ("violations_unreadable", unreadable),
            ("violations_land", land),
        ];
        let all = kinds.iter().map(|(_, count)| count).sum();
        let counters = counters.with("violations", all).with("events_of_unknown_sources", self.unknown_sources);
        let there_were = kinds.into_iter().filter(|(_, count)| *count > 0);
        there_were.fold(counters, |counters, (name, count)| counters.with(name, count))
    }
}

fn is_inside(place: Place) -> bool {
    // What is not a number is not inside.
    place.iter().all(|metres| metres.abs() <= EDGE_M + EDGE_SLACK_M)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOMEBODY: NetId = NetId { slot: 9, generation: 1 };
    const ONESELF: NetId = NetId { slot: 3, generation: 1 };

    fn violations(watch: &Watch) -> u64 {
        let counters = watch.count_into(BehaviourCounters::new());
        counters.iter().find(|(name, _)| *name == "violations").map_or(0, |(_, count)| count)
    }

    /// At second 10 something with a range of 15 m happens at x = `at_m`; the bot has been at x = 0 for some seconds.
    #[track_caller]
    fn check(prepare: impl FnOnce(&mut Watch), at_m: f32, expect: u64) {
        let mut watch = Watch::default();
        (0..10).for_each(|second| watch.note_place(Nanos::from_secs(second), [0.0, 0.0]));
        prepare(&mut watch);
        watch.check_range(Nanos::from_secs(10), SOMEBODY, Some([at_m, 0.0]), 15.0);
        assert_eq!(violations(&watch), expect);
    }

    #[test]
    fn an_event_from_too_far_is_a_violation() {
        check(|_| {}, 14.0, 0);
        check(|_| {}, 15.0 + TOLERANCE_M - 0.1, 0);
        check(|_| {}, 15.0 + TOLERANCE_M + 0.1, 1);
        check(|_| {}, f32::NAN, 1);
    }

    #[test]
    fn who_was_elsewhere_a_moment_ago_may_have_heard_it_there() {
        let walks = |watch: &mut Watch| {
            (1..=4).for_each(|second| watch.note_place(Nanos::from_secs(10 + second), [second as f32 * 29.0, 0.0]));
        };
        check(walks, -10.0, 0);
        check(walks, 170.0, 0);
        check(walks, -50.0, 1);
        check(walks, 180.0, 1);
        check(|watch| watch.note_place(Nanos::from_secs(10), [500.0, 0.0]), 900.0, 0);
        check(|watch| watch.teleported(Nanos::from_secs(9), SOMEBODY, [5.0, 5.0], Some(ONESELF)), 900.0, 0);
        check(|watch| watch.teleported(Nanos::from_secs(2), SOMEBODY, [5.0, 5.0], Some(ONESELF)), 900.0, 1);
        check(|watch| watch.teleported(Nanos::from_secs(9), ONESELF, [5.0, 5.0], Some(ONESELF)), 900.0, 0);
        check(Watch::enter, 900.0, 0);
    }

    #[test]
    fn words_are_such_as_the_world_accepts() {
        let mut watch = Watch::default();
        watch.check_words("Wren 7", "well met");
        watch.check_words("", "grrr");
        assert_eq!(violations(&watch), 0);
        watch.check_words("<b>", "well met");
        watch.check_words("Wren 7", "two\nlines");
        assert_eq!(violations(&watch), 2);
    }

    #[test]
    fn a_place_beyond_the_edge_is_a_violation() {
        let mut watch = Watch::default();
        watch.teleported(Nanos::ZERO, SOMEBODY, [EDGE_M, -EDGE_M], None);
        assert_eq!(violations(&watch), 0);
        watch.teleported(Nanos::ZERO, SOMEBODY, [EDGE_M + 0.5, 0.0], None);
        watch.teleported(Nanos::ZERO, SOMEBODY, [0.0, f32::NAN], None);
        assert_eq!(violations(&watch), 2);
    }
}
