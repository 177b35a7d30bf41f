//! Components and helpers that several tests share.

use std::sync::Arc;

use crate::{
    Replicate,
    schema::{Schema, SchemaBuilder},
};

/// 3 x 14 + 7 bits: 7 bytes.
#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Pose {
    #[replicate(min = -150.0, max = 150.0, step = 0.02)]
    pub place: [f32; 3],
    #[replicate(angle, bits = 7)]
    pub heading: f32,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Health {
    #[replicate(bits = 10)]
    pub points: u16,
}

#[derive(Copy, Clone, Debug, PartialEq, Replicate)]
pub enum Mood {
    Calm,
    Wary,
    Angry,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Flag {
    pub raised: bool,
    pub mood: Mood,
}

/// Pose, health and flag, in this order.
pub fn schema() -> Arc<Schema> {
    SchemaBuilder::new().component::<Pose>().component::<Health>().component::<Flag>().build()
}

pub fn pose(x: f32) -> Pose {
    Pose { place: [x, 0.0, 0.0], heading: 0.0 }
}
