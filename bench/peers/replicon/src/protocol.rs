//! Protocol: what both sides of bevy_replicon must agree on.

use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy_replicon::prelude::*;
use bevy_replicon::shared::AuthMethod;
use peers_scenario::{PACKED_BYTES, Pose as ScenePose, pack, unpack};
use serde::{Deserialize, Serialize};

/// Messages beyond it are split; as large as Throng's payloads.
pub const MESSAGE_BYTES_MAX: usize = 1200;

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

/// An app with all that both sides have.
pub fn app() -> App {
    let mut app = App::new();
    let shared = RepliconSharedPlugin { auth_method: AuthMethod::None };
    app.add_plugins((MinimalPlugins, StatesPlugin, RepliconPlugins.set(shared).set(ServerPlugin::new(PostUpdate))));
    app.replicate_as::<Pose, Packed>().replicate::<Health>().replicate_once::<Number>();
    app.finish();
    app
}
