//! Interpolated: components at the moment of the world that is shown, between the values that came.

use std::marker::PhantomData;

use bevy_app::prelude::*;
use bevy_ecs::{component::Mutable, prelude::*, query::QueryFilter};
use throng_client::{
    interpolation::{Interpolate, InterpolationSettings, Moment, Track},
    prelude::Replicate,
    udp::UdpClient,
};

use crate::{
    confirmed::{self, Confirmed},
    systems::ClientSystems,
};

/// The last values of a component.
#[derive(Component)]
pub(crate) struct Tracked<T: Interpolate + Send + Sync + 'static>(Track<T>);

/// How a component is interpolated.
#[derive(Resource)]
pub(crate) struct Settings<T: Send + Sync + 'static> {
    settings: InterpolationSettings,
    of: PhantomData<fn() -> T>,
}

/// `F`: on which entities it is shown.
pub(crate) fn add<T, F>(app: &mut App, settings: InterpolationSettings)
where
    T: Component<Mutability = Mutable> + Replicate + Interpolate + PartialEq,
    F: QueryFilter + 'static,
{
    confirmed::add::<T>(app);
    app.insert_resource(Settings::<T> { settings, of: PhantomData });
    app.add_systems(PostUpdate, (track::<T>, show::<T, F>).chain().in_set(ClientSystems::Show));
}

/// Keeps what has come. Of several values that came in one update it has the newest.
fn track<T: Component<Mutability = Mutable> + Replicate + Interpolate>(
    mut commands: Commands,
    new: Query<(Entity, &Confirmed<T>), Without<Tracked<T>>>,
    mut known: Query<(&Confirmed<T>, &mut Tracked<T>)>,
    mut gone: RemovedComponents<Confirmed<T>>,
) {
    for (confirmed, mut tracked) in &mut known {
        if tracked.0.newest_tick() != Some(confirmed.tick) {
            tracked.0.push(confirmed.tick, confirmed.value.clone());
        }
    }
    for (entity, confirmed) in &new {
        let mut track = Track::default();
        track.push(confirmed.tick, confirmed.value.clone());
        commands.entity(entity).insert(Tracked(track));
    }
    for entity in gone.read() {
        commands.entity(entity).try_remove::<Tracked<T>>();
    }
}

/// Shows the moment. Who stands still is not changed.
fn show<T, F>(
    player: Option<NonSendMut<UdpClient>>,
    settings: Res<Settings<T>>,
    mut entities: Query<(&Tracked<T>, &mut T), F>,
) where
    T: Component<Mutability = Mutable> + Replicate + Interpolate + PartialEq,
    F: QueryFilter + 'static,
{
    let Some(mut player) = player else { return };
    let now = player.now();
    let Some(moment) = player.client.seen(now).map(Moment::from) else { return };
    let Some(tick_hz) = player.client.world().map(|world| world.tick_hz) else { return };
    for (tracked, mut shown) in &mut entities {
        if let Some((value, _)) = tracked.0.sample(moment, tick_hz, &settings.settings) {
            shown.set_if_neq(value);
        }
    }
}
