//! Copies: for each entity that the server shows there is one of the app.

use std::collections::HashMap;

use bevy_app::prelude::*;
use bevy_ecs::prelude::*;
use throng_client::{prelude::NetId, udp::UdpClient};

use crate::systems::ClientSystems;

/// An entity of the server's, by the name that it has with all clients. Made and taken away by the plugin: one that the
/// app has despawned comes again with the next update, for as long as the server shows it.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[component(immutable)]
pub struct NetEntity(pub NetId);

/// The entity that the player steers.
#[derive(Component, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnPlayer;

/// Which entity is whose copy.
#[derive(Resource, Default)]
pub(crate) struct Copies {
    by_id: HashMap<NetId, Entity>,
    own: Option<Entity>,
    /// The stay in a world in which they are: the next one has other entities by the same names.
    epoch: Option<u8>,
}

pub(crate) fn add(app: &mut App) {
    app.init_resource::<Copies>().add_systems(PreUpdate, follow.in_set(ClientSystems::Receive));
}

/// Makes copies of what has come, and takes away those of what is gone.
pub(crate) fn follow(
    mut commands: Commands,
    player: Option<NonSend<UdpClient>>,
    mut copies: ResMut<Copies>,
    alive: Query<(), With<NetEntity>>,
) {
    let Some(player) = player else { return };
    let (replicas, copies) = (player.client.replicas(), &mut *copies);
    // A client that is on its way in, after another one, has no world yet: what was shown stays until it has.
    let Some(epoch) = replicas.epoch() else {
        copies.epoch = None;
        return;
    };
    let is_other_stay = copies.epoch.replace(epoch) != Some(epoch);
    copies.by_id.retain(|id, entity| {
        let is_there = !is_other_stay && replicas.contains(*id);
        if !is_there {
            commands.entity(*entity).try_despawn();
        }
        is_there && alive.contains(*entity)
    });
    for id in replicas.ids() {
        copies.by_id.entry(id).or_insert_with(|| commands.spawn(NetEntity(id)).id());
    }
    let own = player.client.own_entity().and_then(|id| copies.by_id.get(&id).copied());
    if copies.own != own {
        if let Some(before) = copies.own {
            commands.entity(before).try_remove::<OwnPlayer>();
        }
        if let Some(own) = own {
            // The app may have despawned it.
            commands.entity(own).try_insert(OwnPlayer);
        }
        copies.own = own;
    }
}
