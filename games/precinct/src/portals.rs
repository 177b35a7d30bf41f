//! Portals: places in the level that lead to another world.
//!
//! A player that walks into a portal leaves for the world behind it at the end of the tick, by the runtime's own
//! travel: the connection moves along, nothing is loaded, and the player's state goes with it as a
//! [`Traveller`](crate::travel::Traveller). All worlds share one level, so every world has all three portals; the one
//! that leads to the world's own kind does nothing.
//!
//! Who goes through the portal from the hub to the dark zone comes out of the dark zone's portal to the hub: at one of
//! its exits, just outside, where nobody stands. A portal takes a player only after the player has been seen well away
//! from all portals, so that nobody who comes out of one is sent back by a step in the wrong direction.

use std::sync::{Arc, OnceLock};

use bevy_ecs::component::Component;
use glam::Vec3;
use throng::prelude::*;
use throng_pack::Pack;
use throng_query::nav::NavPoint;

use crate::{actors::Actors, components::BODY_RADIUS_M, level::Level, rules::Rules};

/// Names of the kinds of worlds, as clients hear them.
pub const HIDEOUT: &str = "hideout";
pub const HUB: &str = "hub";
pub const DARK_ZONE: &str = "dark_zone";

/// A player within this distance of a portal's middle is taken. (m)
pub const PORTAL_RADIUS_M: f32 = 2.0;
/// A player farther than this from the middle of every portal may be taken by one. (m)
pub const PORTAL_CLEAR_M: f32 = 6.0;
/// How far exits are from the middle of their portal: two rings. (m)
const EXIT_RINGS_M: [f32; 2] = [2.6, 3.6];
const EXITS_PER_RING: usize = 12;
/// Farther than this from everybody an exit is free. (m)
const EXIT_FREE_M: f32 = 2.5 * BODY_RADIUS_M;
/// A portal is put on the walkable ground nearest to its planned place, at most so far away. (m)
const REACH_M: f32 = 6.0;

/// Where a portal leads; also which kind of world a world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.destination")]
pub enum Destination {
    /// The hideout of whoever walks through.
    Hideout,
    Hub,
    DarkZone,
}

impl Destination {
    /// The rules that hold there.
    pub fn rules(self) -> Rules {
        match self {
            Self::Hideout => Rules::HIDEOUT,
            Self::Hub => Rules::HUB,
            Self::DarkZone => Rules::DARK_ZONE,
        }
    }
}

#[derive(Debug)]
pub struct Portal {
    pub leads_to: Destination,
    pub middle: Vec3,
    /// Where players come out: on the ground outside of it, nearer ones first.
    exits: Vec<NavPoint>,
}

impl Portal {
    pub fn holds(&self, feet: Vec3) -> bool {
        self.is_within(feet, PORTAL_RADIUS_M)
    }

    fn is_within(&self, feet: Vec3, distance_m: f32) -> bool {
        feet.distance_squared(self.middle) <= distance_m * distance_m
    }

    /// The first exit that is free, counted from the one with this number; if none is, the one with the most room.
    pub fn exit(&self, first: usize, actors: &Actors) -> NavPoint {
        let count = self.exits.len();
        let mut best = (f32::NEG_INFINITY, self.exits[0]);
        for number in 0..count {
            let exit = self.exits[(first + number) % count];
            let room_m2 = actors.nearest_m2(exit.position());
            if room_m2 >= EXIT_FREE_M * EXIT_FREE_M {
                return exit;
            }
            if room_m2 > best.0 {
                best = (room_m2, exit);
            }
        }
        best.1
    }
}

/// Places around a portal from which one can walk straight into it.
fn exits(level: &Level, middle: NavPoint) -> Vec<NavPoint> {
    let directions = (0..EXITS_PER_RING).map(|number| number as f32 / EXITS_PER_RING as f32 * std::f32::consts::TAU);
    let places = EXIT_RINGS_M.into_iter().flat_map(|ring_m| {
        directions.clone().map(move |angle| (ring_m, Vec3::new(angle.sin(), 0.0, angle.cos()) * ring_m))
    });
    let exits: Vec<NavPoint> = places
        .map(|(ring_m, aside)| (ring_m, level.navmesh.walk_straight(middle, middle.position() + aside).end))
        // Not those that a wall has stopped.
        .filter(|(ring_m, exit)| exit.position().distance(middle.position()) >= ring_m - 0.1)
        .map(|(_, exit)| exit)
        .collect();
    assert!(!exits.is_empty(), "there is room around every portal");
    exits
}

/// The three portals of the level.
#[derive(Debug, Clone)]
pub struct Portals(Arc<[Portal; 3]>);

impl Portals {
    /// In the middle of three streets around the plaza, 16 m from the crossings where players stand up.
    pub fn of(level: &Level) -> Self {
        let planned = [
            (Destination::Hideout, Vec3::new(0.0, 0.0, 16.0)),
            (Destination::Hub, Vec3::new(16.0, 0.0, 0.0)),
            (Destination::DarkZone, Vec3::new(-16.0, 0.0, 0.0)),
        ];
        Self(Arc::new(planned.map(|(leads_to, middle)| {
            let on_ground = level.navmesh.nearest(middle, REACH_M).expect("streets can be walked on");
            Portal { leads_to, middle: on_ground.position(), exits: exits(level, on_ground) }
        })))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Portal> {
        self.0.iter()
    }

    pub fn to(&self, destination: Destination) -> &Portal {
        self.0.iter().find(|portal| portal.leads_to == destination).expect("there is a portal to each")
    }
}

/// The worlds that all players share. Known once the server has made them; read by every world's portals.
#[derive(Debug, Clone, Default)]
pub struct SharedWorlds(Arc<OnceLock<[WorldId; 2]>>);

impl SharedWorlds {
    /// Says which worlds they are, once, before the server runs.
    pub fn set(&self, hub: WorldId, dark_zone: WorldId) {
        self.0.set([hub, dark_zone]).expect("the shared worlds are made once");
    }

    /// Each of them; none before they are set.
    pub fn iter(&self) -> impl Iterator<Item = WorldId> {
        self.0.get().into_iter().flatten().copied()
    }

    /// The world that a destination is to a player whose hideout is in this world; `None` if that is not known.
    pub fn world(&self, destination: Destination, home: Option<WorldId>) -> Option<WorldId> {
        let &[hub, dark_zone] = self.0.get()?;
        match destination {
            Destination::Hideout => home,
            Destination::Hub => Some(hub),
            Destination::DarkZone => Some(dark_zone),
        }
    }
}

/// Whether a portal may take the player: only once it has been seen away from all of them since it arrived.
#[derive(Component, Debug, Clone, Copy, Default, Pack)]
#[pack(name = "precinct.portal_watch")]
pub struct PortalWatch {
    was_away: bool,
}

impl PortalWatch {
    /// Notes where a player stands in a world of the kind `here`. If a portal takes the player from there: where to.
    pub fn pass(&mut self, portals: &Portals, here: Destination, feet: Vec3) -> Option<Destination> {
        let Some(portal) = portals.iter().find(|portal| portal.is_within(feet, PORTAL_CLEAR_M)) else {
            self.was_away = true;
            return None;
        };
        let takes = self.was_away && portal.holds(feet) && portal.leads_to != here;
        takes.then_some(portal.leads_to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{page, rules::Side};

    #[test]
    fn exits_lie_outside_of_every_portal_and_near_their_own() {
        let level = Level::load();
        let portals = Portals::of(&level);
        for portal in portals.iter() {
            assert!(portal.exits.len() >= EXITS_PER_RING, "{portal:?}");
            for exit in &portal.exits {
                assert!(level.navmesh.holds(*exit));
                assert!(portals.iter().all(|other| !other.holds(exit.position())));
                assert!(portal.is_within(exit.position(), 4.0));
            }
        }
    }

    #[test]
    fn those_who_come_out_one_after_the_other_do_not_stand_in_each_other() {
        let level = Level::load();
        let portals = Portals::of(&level);
        let portal = portals.to(Destination::Hub);
        let mut actors = Actors::default();
        let side = Side { npc: false, faction: crate::components::Faction::Agents };
        for number in 0..EXITS_PER_RING {
            let exit = portal.exit(5, &actors);
            let room_m = actors.nearest_m2(exit.position()).sqrt();
            assert!(room_m >= EXIT_FREE_M, "{room_m} m for number {number}");
            let slot = actors.add_player();
            actors.place(slot, bevy_ecs::entity::Entity::PLACEHOLDER, exit, side);
        }
        // However many come: there is always one.
        for _ in 0..100 {
            let exit = portal.exit(0, &actors);
            let slot = actors.add_player();
            actors.place(slot, bevy_ecs::entity::Entity::PLACEHOLDER, exit, side);
        }
    }

    /// Promise: the page that plays draws the portals where they are; `UPDATE_EXPECT=1 cargo test -p precinct --lib portals`
    /// writes them anew, and `cargo xtask web` the page.
    #[test]
    fn the_page_draws_these_portals() {
        let mut lines = String::new();
        for Portal { leads_to, middle, .. } in Portals::of(&Level::shared()).iter() {
            let world = match leads_to {
                Destination::Hideout => HIDEOUT,
                Destination::Hub => HUB,
                Destination::DarkZone => DARK_ZONE,
            };
            lines += &format!("  {{ leadsTo: {world:?}, x: {:.2}, z: {:.2} }},\n", middle.x, middle.z);
        }
        let text = format!(
            "// Portals of the city block, made of games/precinct/src/portals.rs by `UPDATE_EXPECT=1 cargo test -p precinct --lib portals`.\n\n\
             /** Who is so near to a portal's middle is taken (m). */\n\
             export const PORTAL_RADIUS_M = {PORTAL_RADIUS_M:?};\n\
             /** Who has been farther than this from all of them since coming into a world may be taken (m). */\n\
             export const PORTAL_CLEAR_M = {PORTAL_CLEAR_M:?};\n\n\
             /** The middle of each, and the kind of world that it leads to. */\n\
             export const PORTALS = [\n{lines}] as const;\n"
        );
        page::check("play/precinct/portal_places.ts", &text);
    }

    #[test]
    fn a_portal_takes_only_who_has_been_away_from_it() {
        let level = Level::load();
        let portals = Portals::of(&level);
        let hub = portals.to(Destination::Hub).middle;
        let mut watch = PortalWatch::default();
        assert_eq!(watch.pass(&portals, Destination::Hideout, hub), None);
        assert_eq!(watch.pass(&portals, Destination::Hideout, hub + Vec3::X * 3.0), None);
        assert_eq!(watch.pass(&portals, Destination::Hideout, hub), None, "it turned around at the exit");
        assert_eq!(watch.pass(&portals, Destination::Hideout, hub + Vec3::X * 7.0), None);
        assert_eq!(watch.pass(&portals, Destination::Hub, hub), None, "one is there already");
        assert_eq!(watch.pass(&portals, Destination::Hideout, hub), Some(Destination::Hub));
    }
}
