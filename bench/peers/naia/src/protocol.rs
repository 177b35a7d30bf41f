//! Protocol: what both sides of naia must agree on.

use std::time::Duration;

use naia_shared::{ConnectionConfig, Property, Protocol, Replicate, Serde};
use peers_scenario::PACKED_BYTES;

/// 20 ticks a second. (ms)
pub const TICK_MS: u64 = 50;

#[derive(Serde, Clone, PartialEq)]
pub struct Packed {
    pub bytes: [u8; PACKED_BYTES],
}

#[derive(Replicate)]
pub struct Pose {
    pub packed: Property<Packed>,
}

#[derive(Replicate)]
pub struct Health {
    pub points: Property<u16>,
}

/// Which entity of the scene this is.
#[derive(Replicate)]
pub struct Number {
    pub number: Property<u32>,
}

pub fn protocol() -> Protocol {
    Protocol::builder()
        .tick_interval(Duration::from_millis(TICK_MS))
        .add_component::<Pose>()
        .add_component::<Health>()
        .add_component::<Number>()
        .build()
}

/// Without a cap of bytes.
pub fn connection() -> ConnectionConfig {
    let mut config = ConnectionConfig::default();
    config.bandwidth.target_bytes_per_sec = 1 << 30;
    config
}
