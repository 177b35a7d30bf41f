//! Engine types: components of the engine's own that belong to every checkpoint, and how they are packed.

use std::any::type_name;

use bevy_ecs::{entity_disabling::DefaultQueryFilters, error::FallbackErrorHandler, observer::Observer};
use bevy_time::{Fixed, Time, Virtual};
use throng_pack::Pack;
use throng_replication::{NetId, Team, VisibilityFiltered, Weight, ecs::Replicated};

use super::registry::{Loading, Registry};
use crate::{
    events::Events,
    inbox::Inbox,
    saving::{SaveAnswers, SaveStore},
    tick_resources::{Arrivals, Departures, MayBeDormant, Outbox, ScanRange, TickInfo, WorldMessages, WorldRng},
    tunable::TunedInWorld,
};

/// Its place among the registered types.
pub(super) const REPLICATED: usize = 0;

/// `Replicated`, with the id that clients know the entity by.
#[derive(Debug, Pack)]
#[pack(name = "throng.replicated")]
pub(super) struct SavedReplicated {
    pub id: Option<NetId>,
}

#[derive(Debug, Pack)]
#[pack(name = "throng.team")]
struct SavedTeam(u16);

#[derive(Debug, Pack)]
#[pack(name = "throng.weight")]
struct SavedWeight(f32);

#[derive(Debug, Pack)]
#[pack(name = "throng.visibility_filtered")]
struct SavedFiltered;

/// What every kind keeps, before what its game does.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add_as::<Replicated, SavedReplicated>(
        |replicated| SavedReplicated { id: replicated.id() },
        |_| Replicated::default(),
    );
    registry.add_as::<Team, SavedTeam>(|team| SavedTeam(team.0), |saved| Team(saved.0));
    registry.add_as::<Weight, SavedWeight>(|weight| SavedWeight(weight.0), |saved| Weight(saved.0));
    registry.add_as::<VisibilityFiltered, SavedFiltered>(|_| SavedFiltered, |_| VisibilityFiltered);
    registry.engine_count = registry.kept.len();
    registry
}

/// The engine's own in every world that are not kept as they are: `save` and `load` know what of them is state, the host
/// gives some again, and the rest is empty between two ticks.
pub(crate) const OF_EACH_WORLD: &[fn() -> &'static str] = &[
    type_name::<TickInfo>,
    type_name::<WorldRng>,
    type_name::<MayBeDormant>,
    type_name::<ScanRange>,
    type_name::<Inbox>,
    type_name::<Outbox>,
    type_name::<SaveAnswers>,
    type_name::<SaveStore>,
    type_name::<Events>,
    type_name::<Arrivals>,
    type_name::<Departures>,
    type_name::<WorldMessages>,
    type_name::<TunedInWorld>,
    type_name::<FallbackErrorHandler>,
    type_name::<DefaultQueryFilters>,
    type_name::<Time>,
    type_name::<Time<Virtual>>,
    type_name::<Time<Fixed>>,
    type_name::<Observer>,
    type_name::<Loading>,
    throng_replication::ecs::journal_name,
];
