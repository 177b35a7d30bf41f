//! Body: where somebody is in a district, as clients are told and as the server knows.

use bevy_ecs::component::Component;
use glam::Vec3;
use throng_pack::Pack;
use throng_query::nav::sectors::SectorPoint;
use throng_replication::{Replicate, ecs::Placed};

/// Where somebody stands and looks, in a level that is wider than [`Pose`](crate::components::Pose) tells: 7 bytes, x and z
/// in steps of 3.2 cm.
#[derive(Component, Replicate, Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "precinct.far_pose")]
pub struct FarPose {
    #[replicate(min = -1030.0, max = 1030.0, step = 0.032)]
    pub x: f32,
    #[replicate(min = -20.0, max = 60.0, step = 0.01)]
    pub y: f32,
    #[replicate(min = -1030.0, max = 1030.0, step = 0.032)]
    pub z: f32,
    /// Radians; 0 looks along +z, a quarter turn along +x.
    #[replicate(angle, bits = 8)]
    pub yaw: f32,
}

impl FarPose {
    pub fn new(feet: Vec3, yaw: f32) -> Self {
        Self { x: feet.x, y: feet.y, z: feet.z, yaw }
    }

    pub fn feet(&self) -> Vec3 {
        Vec3::new(self.x, self.y, self.z)
    }

    pub fn set_feet(&mut self, feet: Vec3) {
        (self.x, self.y, self.z) = (feet.x, feet.y, feet.z);
    }
}

impl Placed for FarPose {
    fn place(&self) -> [f32; 2] {
        [self.x, self.z]
    }
}

/// What somebody stands on; nothing until there is ground where it is.
#[derive(Component, Debug, Clone, Copy, Default, PartialEq, Pack)]
#[pack(name = "precinct.footing")]
pub struct Footing(pub Option<SectorPoint>);
