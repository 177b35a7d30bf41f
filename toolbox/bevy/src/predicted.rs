//! Predicted: what the own player does is shown at once, ahead of the server.

use bevy_app::prelude::*;
use bevy_ecs::{component::Mutable, prelude::*};
use throng_client::{
    interpolation::Interpolate,
    prediction::{Predict, PredictionSettings, PredictionStats, Predictor},
    prelude::{ClientInput, NetId},
    udp::UdpClient,
};

use crate::{
    copies::{self, OwnPlayer},
    systems::ClientSystems,
};

/// What the player wants: sent with each tick of the server for as long as it stands here. `None`: nothing is sent.
#[derive(Resource, Debug, Clone)]
pub struct Wish<I: ClientInput>(pub Option<I>);

/// What is predicted of the own player.
#[derive(Resource)]
pub struct Prediction<P>
where
    P: Predict + Send + Sync + 'static,
    P::Input: Send + Sync,
{
    predictor: Predictor<P>,
    /// Of which entity, in which stay in a world.
    of: Option<NetId>,
    epoch: Option<u8>,
}

impl<P> Prediction<P>
where
    P: Predict + Send + Sync + 'static,
    P::Input: Send + Sync,
{
    /// Corrections so far.
    pub fn stats(&self) -> PredictionStats {
        self.predictor.stats()
    }

    /// The state after the last input that was sent, without the way from where it was shown before a correction.
    pub fn predicted(&self) -> Option<&P::State> {
        self.predictor.predicted()
    }
}

pub(crate) fn add<P>(app: &mut App, model: P, settings: PredictionSettings)
where
    P: Predict + Send + Sync + 'static,
    P::State: Component<Mutability = Mutable> + Interpolate + PartialEq,
    P::Input: ClientInput,
{
    app.insert_resource(Prediction { predictor: Predictor::new(model, settings), of: None, epoch: None });
    app.insert_resource(Wish::<P::Input>(None));
    app.add_systems(PreUpdate, reconcile::<P>.in_set(ClientSystems::Receive).after(copies::follow));
    app.add_systems(PostUpdate, step::<P>.in_set(ClientSystems::Step));
    app.add_systems(PostUpdate, show::<P>.in_set(ClientSystems::Show));
}

/// Holds what the server says against what was predicted.
fn reconcile<P>(player: Option<NonSend<UdpClient>>, mut prediction: ResMut<Prediction<P>>)
where
    P: Predict + Send + Sync + 'static,
    P::Input: Send + Sync,
{
    let Some(player) = player else { return };
    let Prediction { predictor, of, epoch } = &mut *prediction;
    let (own, stay) = (player.client.own_entity(), player.client.replicas().epoch());
    if *epoch != stay {
        predictor.left_world();
    } else if *of != own {
        predictor.reset();
    }
    (*of, *epoch) = (own, stay);
    if let Some(told) = player.client.own_state::<P::State>() {
        predictor.reconcile(player.now(), told.input, told.state);
    }
}

/// Sends the inputs that are due, and takes their steps.
fn step<P>(player: Option<NonSendMut<UdpClient>>, mut prediction: ResMut<Prediction<P>>, wish: Res<Wish<P::Input>>)
where
    P: Predict + Send + Sync + 'static,
    P::Input: ClientInput,
{
    let Some(mut player) = player else { return };
    let now = player.now();
    // Asked for in any case, so that a wish that comes later does not begin with a burst.
    let due = player.client.due_inputs(now);
    let Some(input) = &wish.0 else { return };
    for _ in 0..due {
        // Between two worlds nothing is sent.
        if let Ok(number) = player.client.send_input(now, input) {
            prediction.predictor.apply(number, input.clone());
        }
    }
}

/// Shows the own player where it is predicted. Who stands still is not changed.
fn show<P>(
    player: Option<NonSend<UdpClient>>,
    prediction: Res<Prediction<P>>,
    mut own: Query<&mut P::State, With<OwnPlayer>>,
) where
    P: Predict + Send + Sync + 'static,
    P::State: Component<Mutability = Mutable> + PartialEq,
    P::Input: Send + Sync,
{
    let Some(player) = player else { return };
    let Some(state) = prediction.predictor.shown(player.now()) else { return };
    for mut shown in &mut own {
        if *shown != state {
            *shown = state.clone();
        }
    }
}
