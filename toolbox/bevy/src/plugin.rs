//! Plugin: which components the app has of the server's entities, and how each is shown.

use bevy_app::prelude::*;
use bevy_ecs::{component::Mutable, prelude::*};
use throng_client::{
    interpolation::{Interpolate, InterpolationSettings},
    prediction::{Predict, PredictionSettings},
    prelude::{ClientInput, Replicate},
};

use crate::{
    confirmed, connection,
    copies::{self, OwnPlayer},
    interpolated, predicted,
    systems::ClientSystems,
};

/// A client of a Throng server, for a Bevy app. See the crate's front page.
#[derive(Default)]
pub struct ClientPlugin {
    parts: Vec<Part>,
    interpolation: InterpolationSettings,
    prediction: PredictionSettings,
    predicts: bool,
}

/// Registers one component, or what moves one.
type Part = Box<dyn Fn(&mut App) + Send + Sync>;

impl ClientPlugin {
    /// Without components: entities come and go, and have a [`NetEntity`](crate::NetEntity) only.
    pub fn new() -> Self {
        Self::default()
    }

    /// How components that are named from here on are interpolated.
    #[must_use]
    pub fn with_interpolation(mut self, settings: InterpolationSettings) -> Self {
        self.interpolation = settings;
        self
    }

    /// How corrections of what is predicted from here on are shown.
    #[must_use]
    pub fn with_prediction(mut self, settings: PredictionSettings) -> Self {
        self.prediction = settings;
        self
    }

    /// Entities have a `T` as the server said it last. It is written, and so counts as changed, when it is another value.
    #[must_use]
    pub fn component<T: Component<Mutability = Mutable> + Replicate + PartialEq>(mut self) -> Self {
        self.parts.push(Box::new(|app: &mut App| {
            confirmed::add::<T>(app);
            app.add_systems(PostUpdate, confirmed::show::<T>.in_set(ClientSystems::Show));
        }));
        self
    }

    /// Entities have a `T` that goes on evenly, a little behind what the server said last. It counts as changed while it is
    /// on its way.
    #[must_use]
    pub fn interpolated<T>(mut self) -> Self
    where
        T: Component<Mutability = Mutable> + Replicate + Interpolate + PartialEq,
    {
        let settings = self.interpolation;
        self.parts.push(Box::new(move |app: &mut App| interpolated::add::<T, ()>(app, settings)));
        self
    }

    /// The entity of the own player has a state that is ahead of the server, by this model; others have it interpolated.
    /// The player's inputs are said in [`Wish`](crate::Wish).
    ///
    /// # Panics
    /// If there is one already: a player steers by one kind of inputs, one for each tick.
    #[must_use]
    pub fn predicted<P>(mut self, model: P) -> Self
    where
        P: Predict + Clone + Send + Sync + 'static,
        P::State: Component<Mutability = Mutable> + Interpolate + PartialEq,
        P::Input: ClientInput,
    {
        assert!(!self.predicts, "an app predicts one state of its player, by one kind of inputs");
        self.predicts = true;
        let (interpolation, prediction) = (self.interpolation, self.prediction);
        self.parts.push(Box::new(move |app: &mut App| {
            interpolated::add::<P::State, Without<OwnPlayer>>(app, interpolation);
            predicted::add(app, model.clone(), prediction);
        }));
        self
    }
}

impl Plugin for ClientPlugin {
    fn build(&self, app: &mut App) {
        let in_post_update = (ClientSystems::Step, ClientSystems::Show, ClientSystems::Send);
        app.configure_sets(PostUpdate, in_post_update.chain());
        connection::add(app);
        copies::add(app);
        self.parts.iter().for_each(|part| part(app));
    }
}
