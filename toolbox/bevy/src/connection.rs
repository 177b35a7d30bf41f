//! Connection: the socket is read at the beginning of an update, and written at its end.

use bevy_app::prelude::*;
use bevy_ecs::prelude::*;
use throng_client::{prelude::ClientEvent, udp::UdpClient};

use crate::{copies, systems::ClientSystems};

/// Something happened to the connection, or to the place of its player: a message of the app.
#[derive(Message, Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientChange(pub ClientEvent);

/// How often the socket could not be read. Whether the connection is over says [`ClientChange`]; a network device may
/// have gone and come back.
#[derive(Resource, Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SocketErrors(pub u64);

pub(crate) fn add(app: &mut App) {
    app.add_message::<ClientChange>().init_resource::<SocketErrors>();
    app.add_systems(PreUpdate, receive.in_set(ClientSystems::Receive).before(copies::follow));
    app.add_systems(PostUpdate, send.in_set(ClientSystems::Send));
}

fn receive(
    player: Option<NonSendMut<UdpClient>>,
    mut changes: MessageWriter<ClientChange>,
    mut errors: ResMut<SocketErrors>,
) {
    let Some(mut player) = player else { return };
    if player.update().is_err() {
        errors.0 += 1;
    }
    while let Some(event) = player.client.next_event() {
        changes.write(ClientChange(event));
    }
}

fn send(player: Option<NonSendMut<UdpClient>>, mut errors: ResMut<SocketErrors>) {
    let Some(mut player) = player else { return };
    // Before what comes with the update, which nobody has read.
    player.client.clear_messages();
    if player.update().is_err() {
        errors.0 += 1;
    }
}
