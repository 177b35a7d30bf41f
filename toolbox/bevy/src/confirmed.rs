//! Confirmed: components as the server said them, whatever is shown of them.

use bevy_app::prelude::*;
use bevy_ecs::{component::Mutable, prelude::*};
use throng_client::{prelude::Replicate, udp::UdpClient};

use crate::{
    copies::{self, NetEntity},
    systems::ClientSystems,
};

/// A component of an entity as the server said it last; `T` itself is what is shown.
#[derive(Component, Debug, Clone, PartialEq)]
pub struct Confirmed<T: Replicate> {
    /// As it came: rounded as the component declares.
    pub value: T,
    /// The tick for which it is true.
    pub tick: u32,
}

pub(crate) fn add<T: Component<Mutability = Mutable> + Replicate>(app: &mut App) {
    app.add_systems(PreUpdate, take::<T>.in_set(ClientSystems::Receive).after(copies::follow));
}

/// Takes over what has changed. A component that comes is shown as it is from the first update on.
pub(crate) fn take<T: Component<Mutability = Mutable> + Replicate>(
    mut commands: Commands,
    player: Option<NonSend<UdpClient>>,
    mut entities: Query<(Entity, &NetEntity, Option<&mut Confirmed<T>>)>,
) {
    let Some(player) = player else { return };
    let replicas = player.client.replicas();
    if replicas.epoch().is_none() {
        return;
    }
    for (entity, NetEntity(id), confirmed) in &mut entities {
        let told = replicas.get::<T>(*id).zip(replicas.tick_of::<T>(*id));
        match (told, confirmed) {
            (Some((value, tick)), Some(mut confirmed)) if confirmed.tick != tick => {
                *confirmed = Confirmed { value: value.clone(), tick };
            }
            (Some((value, tick)), None) => {
                commands.entity(entity).insert((Confirmed { value: value.clone(), tick }, value.clone()));
            }
            (None, Some(_)) => {
                commands.entity(entity).remove::<(Confirmed<T>, T)>();
            }
            _ => {}
        }
    }
}

/// Shows what the server said. Said again, it has not changed.
pub(crate) fn show<T: Component<Mutability = Mutable> + Replicate + PartialEq>(
    mut changed: Query<(&Confirmed<T>, &mut T), Changed<Confirmed<T>>>,
) {
    for (confirmed, mut shown) in &mut changed {
        if *shown != confirmed.value {
            *shown = confirmed.value.clone();
        }
    }
}
