//! Protocol: what both sides of lightyear must agree on.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy::time::TimeUpdateStrategy;
use lightyear::prelude::*;
use peers_scenario::{PACKED_BYTES, Pose as ScenePose, pack, unpack};
use serde::{Deserialize, Serialize};

/// 20 ticks a second.
pub const TICK: Duration = Duration::from_millis(50);

#[derive(Component, Clone, Copy)]
pub struct Pose(pub ScenePose);

/// A pose as it is sent.
#[derive(Serialize, Deserialize)]
pub struct Packed([u8; PACKED_BYTES]);

impl From<Pose> for Packed {
    fn from(pose: Pose) -> Self {
        Self(pack(&pose.0))
    }
}

impl From<Packed> for Pose {
    fn from(packed: Packed) -> Self {
        Self(unpack(&packed.0))
    }
}

#[derive(Component, Serialize, Deserialize)]
pub struct Health(pub u16);

/// Which entity of the scene this is.
#[derive(Component, Serialize, Deserialize)]
pub struct Number(pub u32);

/// An app with the plugins of one side, and the protocol after them, as lightyear wants it.
pub fn app(add_side: impl FnOnce(&mut App)) -> App {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, StatesPlugin));
    app.insert_resource(TimeUpdateStrategy::ManualDuration(TICK));
    add_side(&mut app);
    app.component::<Pose>().replicate_as::<Packed>();
    app.component::<Health>().replicate();
    app.component::<Number>().replicate_once();
    app.finish();
    app.cleanup();
    app
}

/// A made up address for each client.
pub fn address(client: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(0x0A01_0000 + client)), 2000)
}
