//! Interest: which entities each client hears about.
//!
//! An entity becomes relevant inside the enter radius around the client's own entity and stays so up to the
//! leave radius, so that nobody flickers at the edge. Entities without a place, and the client's own, are
//! always relevant, wherever they are, and so are those of the client's team; owner-only ones are relevant to
//! their own client alone, and visibility-filtered ones to those that a filter allows to see them.
//!
//! Sets are rebuilt every few ticks rather than every tick, each client in its turn: once in `period_ticks` while
//! it moves, half as often while it stands. At 20 ticks/s and 7 m/s a player moves 1.4 m in the 4 ticks between two
//! rebuilds, and two that run at each other come 5.6 m closer in the 8 ticks in which one that stands is not looked
//! at, well inside the 10 m between the two radii. That bounds how late things come into view, and go. What
//! must not wait does not: who dies, becomes owner-only or is denied leaves in the same tick. A client that stands in a
//! world in which nothing moves is not looked at at all. Worlds of up to 64 slots are compared one by one, every tick.
//!
//! Around each place there are the rings of `rings`: what is found is sorted into them by its distance.
//!
//! Cost: about 8 us per 1,000 entities for the grid, about 0.4 us per client that is due with 50 relevant.
//! Never allocates in a steady state.

use crate::{
    source::{
        entities::{Entities, Relevance},
        fault::Fault,
        rings::Rings,
    },
    view::{grid::Grid, slot_set::SlotSet},
};

/// How far clients see, and how much they are told.
#[derive(Clone, Debug, PartialEq)]
pub struct InterestSettings {
    /// An entity nearer than this becomes relevant (m, > 0). Default 60.
    /// Too low → things pop up in view; too high → bytes and time grow with its square.
    pub enter_radius_m: f32,
    /// A relevant entity stays so up to this distance (m, at least `enter_radius_m`). Default 70.
    /// Too near to `enter_radius_m` → entities on the edge come and go; too high → as above.
    pub leave_radius_m: f32,
    /// Side of a grid cell (m, > 0). Default 16.
    /// Too low → many cells to visit; too high → many entities to compare in each.
    pub cell_m: f32,
    /// A client's set is rebuilt once in so many ticks (ticks, >= 1). Default 4.
    /// Too low → time; too high → things come into view late, and stay in view late.
    pub period_ticks: u32,
    /// What one client may be sent per tick (bytes). Default 2,400 = two full packets.
    /// Too low → far entities update seldom; too high → one crowd fills the client's line.
    pub budget_bytes_per_tick: u32,
    /// Most replicated entities of a world [1 to `SLOTS_MAX`]. Default 65,536. Above it, spawns are refused.
    pub entities_max: u32,
    /// Packets of one client that may be unanswered [1 to 64]. Default 64. Older ones count as lost.
    pub packets_in_flight_max: u8,
}

impl Default for InterestSettings {
    fn default() -> Self {
        Self {
            enter_radius_m: 60.0,
            leave_radius_m: 70.0,
            cell_m: 16.0,
            period_ticks: 4,
            budget_bytes_per_tick: 2400,
            entities_max: 65_536,
            packets_in_flight_max: 64,
        }
    }
}

/// Slots up to which a world is small: every client is looked at in every tick.
const SMALL_WORLD_SLOTS: usize = 64;

/// Whether a world is compared one by one, every tick.
pub(crate) fn is_small(entities: &Entities) -> bool {
    entities.slots.len() <= SMALL_WORLD_SLOTS
}

/// Where everything is, for all clients. One per world.
#[derive(Default)]
pub(crate) struct Finder {
    grid: Grid,
    /// Entities without a place, and those with one.
    everywhere: SlotSet,
    placed: SlotSet,
    filtered: SlotSet,
    /// Visibility-filtered entities by place, and those that are also relevant to clients elsewhere.
    filtered_grid: Grid,
    filtered_anywhere: Vec<u32>,
    /// Team and slot of all that are in one, sorted.
    teams: Vec<(u16, u32)>,
    /// The arrangement that it knows.
    built: Option<u64>,
    /// How often all was sorted anew.
    #[cfg(test)]
    builds: u32,
}

/// What a client hears of, apart from where it is.
pub(crate) struct Listening<'a> {
    pub centre: Option<[f32; 2]>,
    pub own: Option<u32>,
    /// 0: none.
    pub team: u16,
    /// Visibility-filtered slots that it may hear of, sorted.
    pub allowed: &'a [u32],
}

/// What `find` found. One per thread; holds buffers only.
#[derive(Default)]
pub(crate) struct Found {
    /// Inside the enter radius, and inside the leave radius.
    pub near: SlotSet,
    pub kept: SlotSet,
    /// The ring of what is in `kept`, by slot; of others an old one. Unused when there is one ring only.
    rings: Vec<u8>,
}

impl Found {
    fn reset(&mut self, slots_count: usize, rings_count: usize) {
        self.near.reset(slots_count);
        self.kept.reset(slots_count);
        self.rings.resize(if rings_count > 1 { slots_count } else { 0 }, 0);
    }

    fn insert(&mut self, slot: u32, ring: usize) {
        self.near.insert(slot);
        self.kept.insert(slot);
        if let Some(held) = self.rings.get_mut(slot as usize) {
            *held = ring as u8;
        }
    }

    /// The ring in which a slot of `kept` is.
    #[inline]
    pub fn ring(&self, slot: u32) -> usize {
        self.rings.get(slot as usize).copied().unwrap_or(0).into()
    }

    pub fn heap_bytes(&self) -> usize {
        self.near.heap_bytes() + self.kept.heap_bytes() + self.rings.capacity()
    }
}

impl Finder {
    /// Takes in where everything is now, unless it knows.
    pub fn rebuild(&mut self, entities: &mut Entities, cell_m: f32) {
        let before = self.built.replace(entities.arrangement);
        if before == Some(entities.arrangement) {
            return;
        }
        let changes = before.map(|before| entities.arrangement - before);
        let is_followed = changes == Some(entities.moved.len() as u64)
            && entities.moved.iter().all(|slot| match entities.slots[*slot as usize].relevance {
                Relevance::At(place) => self.grid.move_to(*slot, place),
                _ => false,
            });
        entities.moved.clear();
        if is_followed {
            return;
        }
        #[cfg(test)]
        {
            self.builds += 1;
        }
        self.grid.clear();
        self.filtered_grid.clear();
        self.filtered_anywhere.clear();
        self.teams.clear();
        for set in [&mut self.everywhere, &mut self.placed, &mut self.filtered] {
            set.reset(entities.slots.len());
        }
        let alive = entities.slots.iter().enumerate();
        for (slot, row) in alive.filter(|(_, row)| row.alive) {
            let index = slot as u32;
            match row.relevance {
                Relevance::Everywhere => self.everywhere.insert(index),
                Relevance::OwnerOnly => continue,
                Relevance::At(_) if entities.fault == Fault::MissInterest && slot % 4 == 3 => {}
                Relevance::At(place) => {
                    self.grid.push(index, place);
                    self.placed.insert(index);
                }
            }
            if row.team != 0 {
                self.teams.push((row.team, index));
            }
            if row.filtered {
                self.filtered.insert(index);
                if let Relevance::At(place) = row.relevance {
                    self.filtered_grid.push(index, place);
                }
                if row.team != 0 || row.relevance == Relevance::Everywhere {
                    self.filtered_anywhere.push(index);
                }
            }
        }
        self.teams.sort_unstable();
        self.grid.sort(cell_m);
        self.filtered_grid.sort(cell_m);
    }

    /// Fills `slots` with the visibility-filtered entities that are within `radius_m` of a client, or that may be
    /// relevant to it wherever it is; in order.
    pub fn filtered_near(&self, centre: Option<[f32; 2]>, radius_m: f32, slots: &mut Vec<u32>) {
        slots.clear();
        slots.extend_from_slice(&self.filtered_anywhere);
        if let Some(centre) = centre {
            let is_near =
                |place: [f32; 2]| (place[0] - centre[0]).powi(2) + (place[1] - centre[1]).powi(2) <= radius_m.powi(2);
            self.filtered_grid.look_around(centre, radius_m, |items| {
                slots.extend(items.iter().filter(|item| is_near(item.place)).map(|item| item.index));
            });
        }
        slots.sort_unstable();
        slots.dedup();
    }

    /// Entities of a team. [team: from 1]
    fn of_team(&self, team: u16) -> &[(u16, u32)] {
        let begin = self.teams.partition_point(|(other, _)| *other < team);
        let end = self.teams.partition_point(|(other, _)| *other <= team);
        &self.teams[begin..end]
    }

    /// Fills `found` for a client; without a centre only what is relevant anywhere is there.
    pub fn find(
        &self,
        entities: &Entities,
        who: &Listening<'_>,
        settings: &InterestSettings,
        rings: &Rings,
        found: &mut Found,
    ) {
        found.reset(entities.slots.len(), rings.count());
        if let Some(centre) = who.centre {
            self.find_around(centre, settings, rings, found);
        }
        for set in [&mut found.near, &mut found.kept] {
            set.insert_all(&self.everywhere);
        }
        if rings.count() > 1 {
            self.everywhere.iter().for_each(|slot| found.rings[slot as usize] = 0);
        }
        if who.team != 0 {
            for (_, slot) in self.of_team(who.team) {
                // Who is here already has its ring.
                if !found.kept.contains(*slot) {
                    found.insert(*slot, rings.count() - 1);
                }
                found.near.insert(*slot);
            }
        }
        if entities.filtered_count > 0 {
            self.drop_denied(who, found);
        }
        if let Some(own) = who.own {
            found.insert(own, 0);
        }
    }

    fn find_around(&self, centre: [f32; 2], settings: &InterestSettings, rings: &Rings, found: &mut Found) {
        let (enter2, leave2) = (settings.enter_radius_m.powi(2), settings.leave_radius_m.powi(2));
        let is_simple = rings.count() == 1;
        let farthest2 = self.grid.farthest_m2(centre);
        if farthest2 <= enter2 && (is_simple || rings.at(farthest2) == 0) {
            // Everything is inside: nothing to compare.
            found.near.insert_all(&self.placed);
            found.kept.insert_all(&self.placed);
            found.rings.fill(0);
            return;
        }
        let Found { near, kept, rings: by_slot } = found;
        self.grid.look_around(centre, settings.leave_radius_m, |items| {
            for item in items {
                let (x, y) = (item.place[0] - centre[0], item.place[1] - centre[1]);
                let distance2 = x * x + y * y;
                if distance2 <= leave2 {
                    kept.insert(item.index);
                    if distance2 <= enter2 {
                        near.insert(item.index);
                    }
                    if !is_simple {
                        by_slot[item.index as usize] = rings.at(distance2) as u8;
                    }
                }
            }
        });
    }

    /// Takes out what the visibility filter denies this client.
    fn drop_denied(&self, who: &Listening<'_>, found: &mut Found) {
        for set in [&mut found.near, &mut found.kept] {
            set.take_all_but(&self.filtered, who.allowed);
        }
    }

    pub fn heap_bytes(&self) -> usize {
        let sets = [&self.everywhere, &self.placed, &self.filtered];
        self.grid.heap_bytes()
            + self.filtered_grid.heap_bytes()
            + self.filtered_anywhere.capacity() * 4
            + self.teams.capacity() * 8
            + sets.map(SlotSet::heap_bytes).iter().sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::{source::rules::ResolvedRules, testing::schema, wire::ids::NetId};

    fn slots(set: &SlotSet) -> Vec<u32> {
        let mut slots: Vec<_> = set.iter_descending().collect();
        assert_eq!(slots.len(), set.len());
        slots.reverse();
        assert_eq!(slots, set.iter().collect::<Vec<_>>());
        slots
    }

    fn world(places: &[[f32; 2]]) -> Entities {
        let mut entities = Entities::new(schema(), InterestSettings::default().entities_max);
        for place in places {
            let id = entities.spawn().unwrap();
            entities.set_place(id, *place);
        }
        entities
    }

    /// Everything near, or kept, for a client without a team.
    fn found(
        finder: &Finder,
        entities: &Entities,
        centre: Option<[f32; 2]>,
        own: Option<u32>,
        settings: &InterestSettings,
    ) -> [Vec<u32>; 2] {
        let mut found = Found::default();
        let rings = Rings::new(&ResolvedRules::default(), 0b111, 20);
        finder.find(entities, &Listening { centre, own, team: 0, allowed: &[] }, settings, &rings, &mut found);
        [slots(&found.near), slots(&found.kept)]
    }

    #[test]
    fn the_grid_finds_what_comparing_everything_finds() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut finder = Finder::default();
        for round in 0..60 {
            let settings = InterestSettings {
                enter_radius_m: rng.random_range(1.0..80.0),
                leave_radius_m: 90.0,
                cell_m: rng.random_range(0.5..40.0),
                ..InterestSettings::default()
            };
            let side = [10.0, 300.0, 1e6][round % 3];
            let places: Vec<_> =
                (0..rng.random_range(0..500)).map(|_| [(); 2].map(|()| rng.random_range(-side..side))).collect();
            let mut entities = world(&places);
            finder.built = None;
            finder.rebuild(&mut entities, settings.cell_m);
            for centre in [[0.0, 0.0], [side, -side], [3e38, 0.0], [-1e9, 12.0], [rng.random_range(-side..side), 0.0]] {
                let within = |radius: f32| -> Vec<u32> {
                    let is_within = |place: &[f32; 2]| {
                        (place[0] - centre[0]).powi(2) + (place[1] - centre[1]).powi(2) <= radius.powi(2)
                    };
                    (0..).zip(&places).filter(|(_, place)| is_within(place)).map(|(slot, _)| slot).collect()
                };
                let wanted = [settings.enter_radius_m, settings.leave_radius_m].map(within);
                assert_eq!(found(&finder, &entities, Some(centre), None, &settings), wanted);
            }
        }
    }

    /// One finder follows a world that changes in every way; another one is made anew each time.
    #[test]
    fn what_is_followed_is_found_as_if_it_were_sorted_anew() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let settings = InterestSettings::default();
        let places: Vec<[f32; 2]> = (0..400).map(|_| [(); 2].map(|()| rng.random_range(0.0..600.0))).collect();
        let mut entities = world(&places);
        let mut finder = Finder::default();
        let mut slots_near = [Vec::new(), Vec::new()];
        let mut sorted_anew = 0;
        for turn in 0..600 {
            let slot = rng.random_range(0..400_u32);
            let id = NetId { slot, generation: entities.slots[slot as usize].generation };
            match rng.random_range(0..40) {
                0 if entities.despawn(id) => {
                    entities.release_due();
                }
                1 => _ = entities.spawn().map(|id| entities.set_place(id, [rng.random_range(0.0..600.0), 3.0])),
                2 => entities.set_visibility_filtered(id, rng.random()),
                3 => entities.set_team(id, rng.random_range(0..3)),
                4 => entities.set_relevance(id, Relevance::OwnerOnly),
                5 => entities.set_relevance(id, Relevance::Everywhere),
                _ => {
                    for _ in 0..rng.random_range(1..70) {
                        let slot = rng.random_range(0..entities.slots.len());
                        let row = entities.slots[slot];
                        if let Relevance::At(place) = row.relevance {
                            let id = NetId { slot: slot as u32, generation: row.generation };
                            entities.set_place(id, place.map(|at| at + rng.random_range(-0.4..0.4)));
                        }
                    }
                }
            }
            let builds = finder.builds;
            finder.rebuild(&mut entities, settings.cell_m);
            sorted_anew += finder.builds - builds;
            let mut anew = Finder::default();
            anew.rebuild(&mut entities, settings.cell_m);
            let centre = Some([rng.random_range(0.0..600.0), rng.random_range(0.0..600.0)]);
            let of = |finder: &Finder| found(finder, &entities, centre, None, &settings);
            assert_eq!(of(&finder), of(&anew), "turn {turn}");
            for (finder, slots) in [&finder, &anew].into_iter().zip(&mut slots_near) {
                finder.filtered_near(centre, settings.leave_radius_m, slots);
            }
            assert_eq!(slots_near[0], slots_near[1], "turn {turn}");
        }
        assert!((20..400).contains(&sorted_anew), "both ways are wanted: {sorted_anew} of 600");
    }

    #[test]
    fn what_has_no_place_is_everywhere_and_what_is_owner_only_is_nowhere() {
        let mut entities = world(&[[1000.0, 0.0]]);
        let (placeless, owned) = (entities.spawn().unwrap(), entities.spawn().unwrap());
        entities.set_relevance(owned, Relevance::OwnerOnly);
        let mut finder = Finder::default();
        finder.rebuild(&mut entities, 16.0);
        let settings = InterestSettings::default();
        assert_eq!(found(&finder, &entities, Some([0.0; 2]), None, &settings)[0], [placeless.slot]);
        let [near, _] = found(&finder, &entities, None, Some(owned.slot), &settings);
        assert_eq!(near, [placeless.slot, owned.slot]);
    }

    #[test]
    fn teams_are_heard_anywhere_and_the_filtered_only_by_who_may() {
        let mut entities = world(&[[1000.0, 0.0], [1.0, 0.0], [2.0, 0.0]]);
        let ids = [0, 1, 2].map(|slot| NetId { slot, generation: 1 });
        entities.set_team(ids[0], 7);
        entities.set_visibility_filtered(ids[1], true);
        let mut finder = Finder::default();
        finder.rebuild(&mut entities, 16.0);
        let rings = Rings::new(&ResolvedRules::default(), 0b111, 20);
        let check = |team: u16, allowed: &[u32], own: Option<u32>, expect: &[u32]| {
            let mut found = Found::default();
            let who = Listening { centre: Some([0.0; 2]), own, team, allowed };
            finder.find(&entities, &who, &InterestSettings::default(), &rings, &mut found);
            assert_eq!(slots(&found.near), expect);
        };
        check(0, &[], None, &[2]);
        check(7, &[], None, &[0, 2]);
        check(8, &[], None, &[2]);
        check(7, &[1], None, &[0, 1, 2]);
        check(0, &[], Some(1), &[1, 2]);
    }
}
