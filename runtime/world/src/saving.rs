//! Saving: what of a world and its players is kept, and the cut in which it is taken.
//!
//! A **cut** is what a world and everybody in it are and have between two ticks, as bytes: the world without its players'
//! entities, and each player as they would be on a journey. So whoever is loaded arrives as a traveller does, and a game
//! has saves with two lines:
//!
//! ```text
//! world.accept_transfers::<Hero>()                        what travellers carry, and what is loaded
//!      .save_players(|ecs, player| Some(Hero { .. }))     the same, of one who is here
//! ```
//!
//! All of a cut is of one moment, so what went from hand to hand, or to the floor, is in it once. A cut is taken at the end
//! of a tick: when the host or the game asks for one, and in each tick in which somebody leaves. Who travels is in the
//! cut of the world that they leave, with what they carry; whose connection has ended, with what they had then. What the
//! game finds out about them in the tick after, it says itself ([`Outbox::left_with`]).
//!
//! On the world's own thread, in its tick; nothing where the kind saves nothing, or the host keeps no saves. Cost: packing
//! everything, some microseconds for each player, and what the world's own state takes. Allocates, in ticks with a cut.

use bevy_ecs::prelude::*;
use throng_net::protocol::ClientId;
use throng_pack::{HasSchema, PackError, envelope};

#[cfg(doc)]
use crate::tick_resources::Outbox;
use crate::{ids::ClientKey, transfer::Transfer};

/// One who is in a world, or was until this tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayerToSave {
    pub client: ClientKey,
    pub client_id: ClientId,
    /// What the game has made their own; `None` if nothing yet.
    pub entity: Option<Entity>,
}

/// How a world's own state becomes bytes, and is made of them again.
pub trait WorldState: Send + Sync + 'static {
    /// All that is to be there again, without the entities of players.
    ///
    /// # Errors
    /// In words for the log: nothing of the world and its players is saved then.
    fn save(&self, ecs: &mut World, players: &[Entity]) -> Result<Vec<u8>, String>;

    /// Puts it into a fresh world, before its first tick.
    ///
    /// # Errors
    /// In words for the log: the world is not made then.
    fn load(&self, ecs: &mut World, bytes: &[u8]) -> Result<(), String>;
}

type SavePlayer = dyn Fn(&mut World, PlayerToSave) -> Option<Result<Transfer, PackError>> + Send + Sync;

/// What a player is saved as.
pub(crate) struct PlayerHook {
    pub pack: Box<SavePlayer>,
    /// Whether a traveller carries one of those.
    pub is_one: fn(&Transfer) -> bool,
}

/// What a kind says of its saves.
#[derive(Default)]
pub(crate) struct SaveHooks {
    pub player: Option<PlayerHook>,
    pub world: Option<Box<dyn WorldState>>,
}

impl SaveHooks {
    pub fn save_players<T: HasSchema>(
        &mut self,
        of: impl Fn(&mut World, PlayerToSave) -> Option<T> + Send + Sync + 'static,
    ) {
        let pack = move |ecs: &mut World, player| of(ecs, player).map(|value| Transfer::of(&value));
        let is_one: fn(&Transfer) -> bool =
            |transfer| envelope::Envelope::parse(transfer.bytes()).is_ok_and(|(it, _)| it.holds::<T>());
        self.player = Some(PlayerHook { pack: Box::new(pack), is_one });
    }

    pub fn save_world(&mut self, state: impl WorldState) {
        self.world = Some(Box::new(state));
    }
}

/// The number of a game's wish to be saved, by which its answer is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SaveRequest(pub u32);

/// What became of a wish to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaveAnswer {
    pub request: SaveRequest,
    /// All that the world and its players had at the end of the tick that asked is on disk. False: the host keeps no
    /// saves of this world. While a disk is full or dead there is no answer.
    pub is_on_disk: bool,
}

/// Answers to [`Outbox::save`] that have come since the last tick.
#[derive(Default)]
pub struct SaveAnswers(pub Vec<SaveAnswer>);

/// A world and its players between two ticks.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The last tick that it holds.
    pub tick: u32,
    /// `None`: the host saves its players only.
    pub world: Option<Vec<u8>>,
    /// Everybody who is here or whose connection has ended, with what they have.
    pub players: Vec<(ClientId, Transfer)>,
    /// Those who travel away with this tick and carry what players of this kind are saved as; where, the host knows.
    pub travellers: Vec<ClientId>,
    /// Items that came to be since the last cut, less those that ceased to be, by kind.
    pub items: Vec<(u32, i64)>,
    /// Wishes of the game that it answers.
    pub requests: Vec<SaveRequest>,
}

/// What a tick has to say of saves.
#[derive(Debug, Default)]
pub struct SaveReport {
    pub cut: Option<Box<Cut>>,
    /// A cut could not be taken, and why: nothing of it is to be saved.
    pub failed: Option<String>,
    /// Those whose departure the game has seen: nothing more of them follows.
    pub departed: Vec<ClientId>,
    /// Travellers who carry something else than what players of this kind are saved as.
    pub strangers: Vec<ClientId>,
}

/// A world's saves.
#[derive(Default)]
pub(crate) struct Saving {
    pub hooks: SaveHooks,
    /// The host keeps saves; of the world itself too, if it `saves_world`.
    pub is_on: bool,
    pub saves_world: bool,
    /// At the end of this tick.
    pub is_wanted: bool,
    /// Connections that ended in this tick, and those that ended in the one before, which the game sees in this one.
    pub gone: Vec<(ClientKey, ClientId)>,
    pub seen: Vec<(ClientKey, ClientId)>,
    pub travellers: Vec<(ClientId, Transfer)>,
    /// What those are saved with who are out of the world already, and do not travel.
    pub have_instead: Vec<(ClientId, Transfer)>,
    pub items: Vec<(u32, i64)>,
    pub requests: Vec<SaveRequest>,
    /// What the game said in this tick.
    pub wishes: SaveWishes,
    /// Until the tick in which the game reads them is over.
    pub answers_are_there: bool,
}

impl Saving {
    pub fn of(hooks: SaveHooks) -> Saving {
        Saving { hooks, ..Saving::default() }
    }

    pub fn says_players(&self) -> bool {
        self.hooks.player.is_some()
    }
}

/// What a game has said of saves in a tick.
#[derive(Debug, Default)]
pub(crate) struct SaveWishes {
    pub newest: u32,
    pub requests: Vec<SaveRequest>,
    pub items: Vec<(u32, i64)>,
    pub left_with: Vec<(ClientKey, Transfer)>,
}

impl SaveWishes {
    /// All that was said; the numbers go on.
    pub fn take(&mut self) -> SaveWishes {
        let newest = self.newest;
        std::mem::replace(self, SaveWishes { newest, ..SaveWishes::default() })
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.items.is_empty() && self.left_with.is_empty()
    }
}

pub(crate) fn add_items(items: &mut Vec<(u32, i64)>, kind: u32, count: i64) {
    match items.iter_mut().find(|(other, _)| *other == kind) {
        Some((_, sum)) => *sum += count,
        None => items.push((kind, count)),
    }
}
