//! Portals: places in the level that lead to another world.
//!
//! Who walks into a portal leaves for the world behind it at the end of the tick, by the runtime's own travel: the
//! connection moves along, nothing is loaded, and what the player is goes with it as a
//! [`Traveller`](crate::travel::Traveller). All worlds share one level, so each has all portals; the one that leads to
//! the kind of world one is in does nothing.
//!
//! A portal lets a player through only after it has seen the player outside, so that nobody who stands up inside is
//! sent off again.

use std::sync::{Arc, OnceLock};

use bevy_ecs::component::Component;
use glam::Vec3;
use throng::prelude::*;

use crate::{level::Level, rules::Rules};

/// How near to its middle a portal takes a player. (m)
pub const PORTAL_RADIUS_M: f32 = 2.0;
/// How far from where the level plans it a portal may be put to stand on the ground. (m)
const REACH_M: f32 = 6.0;

/// Where a portal leads; also which kind of world a world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

#[derive(Debug, Clone, Copy)]
pub struct Portal {
    pub leads_to: Destination,
    pub middle: Vec3,
}

impl Portal {
    pub fn holds(&self, feet: Vec3) -> bool {
        feet.distance_squared(self.middle) <= PORTAL_RADIUS_M * PORTAL_RADIUS_M
    }
}

/// The three portals of the level.
#[derive(Debug, Clone, Copy)]
pub struct Portals([Portal; 3]);

impl Portals {
    /// In the middle of three streets around the plaza, 16 m from the crossings where players stand up.
    pub fn of(level: &Level) -> Self {
        let planned = [
            (Destination::Hideout, Vec3::new(0.0, 0.0, 16.0)),
            (Destination::Hub, Vec3::new(16.0, 0.0, 0.0)),
            (Destination::DarkZone, Vec3::new(-16.0, 0.0, 0.0)),
        ];
        Self(planned.map(|(leads_to, middle)| {
            let on_ground = level.navmesh.nearest(middle, REACH_M).expect("streets can be walked on");
            Portal { leads_to, middle: on_ground.position() }
        }))
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

    /// The world that a destination is to a player with this home; `None` before they are set.
    pub fn world(&self, destination: Destination, home: WorldId) -> Option<WorldId> {
        let &[hub, dark_zone] = self.0.get()?;
        Some(match destination {
            Destination::Hideout => home,
            Destination::Hub => hub,
            Destination::DarkZone => dark_zone,
        })
    }
}

/// Whether a portal may take the player: it has been seen outside of all of them since it came.
#[derive(Component, Debug, Clone, Copy, Default)]
pub struct PortalWatch {
    was_outside: bool,
}

impl PortalWatch {
    /// Where a player that stands at `feet` in a world of the kind `here` is taken, if it stands in a portal that takes
    /// it.
    pub fn pass(&mut self, portals: &Portals, here: Destination, feet: Vec3) -> Option<Destination> {
        let Some(portal) = portals.iter().find(|portal| portal.holds(feet)) else {
            self.was_outside = true;
            return None;
        };
        let takes = self.was_outside && portal.leads_to != here;
        takes.then_some(portal.leads_to)
    }
}
