//! Components: what is replicated of an entity, and how finely.
//!
//! 2 cm steps are at most 1 cm off, 7 bits of yaw at most 1.4 degrees. A pose is 17 + 13 + 17 + 7 bits: 7 bytes.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use throng_replication::{Protocol, Replicate, Schema, ecs::Placed};

#[derive(Component, Clone, Replicate)]
pub struct Pose {
    #[replicate(min = -1024.0, max = 1024.0, step = 0.02)]
    pub east: f32,
    #[replicate(min = -64.0, max = 64.0, step = 0.02)]
    pub up: f32,
    #[replicate(min = -1024.0, max = 1024.0, step = 0.02)]
    pub north: f32,
    #[replicate(angle, bits = 7)]
    pub yaw: f32,
}

#[derive(Component, Clone, Replicate)]
pub struct Health {
    pub points: u16,
}

/// Which entity of the scene this is. Never changes.
#[derive(Component, Clone, Replicate)]
pub struct Number {
    pub number: u32,
}

impl From<peers_scenario::Pose> for Pose {
    fn from(pose: peers_scenario::Pose) -> Self {
        let [east, up, north] = pose.place;
        Self { east, up, north, yaw: pose.yaw }
    }
}

impl Placed for Pose {
    fn place(&self) -> [f32; 2] {
        [self.east, self.north]
    }
}

pub fn protocol() -> Protocol {
    Protocol::new().component::<Pose>().component::<Health>().component::<Number>()
}

pub fn schema() -> Arc<Schema> {
    protocol().schema()
}
