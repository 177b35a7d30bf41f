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
//! A world that is too large to be packed in every cut has a map of cells ([`WorldState::take_cells`]): a cut holds those that
//! have changed, each as a record of its own, and the game reads them when somebody comes near.
//!
//! All of a cut is of one moment, so what went from hand to hand, or to the floor, is in it once. A cut is taken at the end
//! of a tick: when the host or the game asks for one, in each tick in which somebody travels, and within
//! [`LEAVERS_WAIT`] of a connection's end. Who travels is in the cut of the world that they leave, with what they carry;
//! whose connection has ended, with what they had then: that is packed at once, and waits for the cut. What the game finds
//! out about them in the tick after, it says itself ([`Outbox::left_with`]).
//!
//! Those who leave may share a cut, since nothing is taken from them any more or given to them: what they left with is as
//! true in a later moment of the world as in that one. Who travels may not: where they arrive they give and take at once,
//! and that world's cut must not be on disk before this one's.
//!
//! On the world's own thread, in its tick; nothing where the kind saves nothing, or the host keeps no saves. Cost: packing
//! everything, some microseconds for each player, and what the world's own state takes. Allocates, in ticks with a cut.

use bevy_ecs::prelude::*;
use throng_net::protocol::ClientId;
use throng_pack::{HasSchema, PackError, envelope};
use throng_platform::time::Nanos;

#[cfg(test)]
mod tests;
mod unfinished;

pub use unfinished::{CutMark, SavesLeft};
pub(crate) use unfinished::{Packed, TickSaves};

#[cfg(doc)]
use crate::tick_resources::Outbox;
use crate::{ids::ClientKey, transfer::Transfer};

/// Who has left waits so long at most for a cut of their world: with five who leave a second it is taken once, not five
/// times. Too short → a busy world packs everybody for each of them; too long → who comes back at once waits for it, and a
/// crash undoes more of what they did last.
pub const LEAVERS_WAIT: Nanos = Nanos::from_secs(1);

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
    /// In words for the log: nothing of the world and its players is saved then, and who travels in that tick is back.
    fn save(&self, ecs: &mut World, players: &[Entity]) -> Result<Vec<u8>, String>;

    /// Puts it into a fresh world, before its first tick.
    ///
    /// # Errors
    /// In words for the log: the world is not made then.
    fn load(&self, ecs: &mut World, bytes: &[u8]) -> Result<(), String>;

    /// What has changed of the world's map since this was last asked, for a map that is too large to be packed as a whole:
    /// each cell is a record of its own, in the same commit as all else of the cut. `tick` is the last one that it holds.
    /// Asked last, when nothing else of the cut can fail.
    ///
    /// # Errors
    /// In words for the log: nothing of the world and its players is saved then, and these cells have to come again.
    fn take_cells(&self, ecs: &mut World, tick: u32) -> Result<Vec<CellToSave>, String> {
        let _ = (ecs, tick);
        Ok(Vec::new())
    }

    /// The cells that were taken in this tick are on disk, and whoever reads the store finds them. Comes with the mail of a
    /// later tick, before its systems, in the order of ticks. A world that was made again after a panic may hear of cells that
    /// it does not remember to have given.
    fn cells_saved(&self, ecs: &mut World, tick: u32) {
        let _ = (ecs, tick);
    }
}

/// A cell of a world's map, as it is to be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellToSave {
    /// Which: a number of the game's. Cells with numbers beside each other lie beside each other in the store, and are read
    /// and written at less cost.
    pub cell: u64,
    /// `None`: nothing is to be kept of it any more.
    pub value: Option<Vec<u8>>,
}

type SavePlayer = dyn Fn(&mut World, PlayerToSave) -> Option<Result<Transfer, PackError>> + Send + Sync;

/// What a player is saved as.
pub(crate) struct PlayerHook {
    pub pack: Box<SavePlayer>,
    /// Whether a traveller carries one of those.
    pub is_one: fn(&Transfer) -> bool,
}

/// What the world itself is saved as.
pub(crate) enum WorldHook {
    State(Box<dyn WorldState>),
    /// Its checkpoint, without its players' entities.
    Checkpoint,
}

/// What a kind says of its saves.
#[derive(Default)]
pub(crate) struct SaveHooks {
    pub player: Option<PlayerHook>,
    pub world: Option<WorldHook>,
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
        self.world = Some(WorldHook::State(Box::new(state)));
    }

    pub fn save_world_by_checkpoint(&mut self) {
        self.world = Some(WorldHook::Checkpoint);
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

/// The store of the saves, as the host saw it before this tick: for games that tell their players. Worlds of kinds that save
/// something have it. What players do while it is away is not lost with that: it is on disk when the store is back, unless the
/// server ends before.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SaveStore {
    /// It takes nothing: it has failed, is full, or has not answered for 2 s. Play goes on, and nothing gets on disk.
    pub is_away: bool,
    /// It went away or came back with this tick.
    pub has_turned: bool,
}

/// A world and its players between two ticks.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The last tick that it holds.
    pub tick: u32,
    /// `None`: the host saves its players only.
    pub world: Option<Vec<u8>>,
    /// Parts of its map that have changed since the last cut.
    pub cells: Vec<CellToSave>,
    /// Everybody who is here or whose connection has ended, with what they have.
    pub players: Vec<(ClientId, Transfer)>,
    /// Those who travel away with this tick and carry what players of this kind are saved as; where, the host knows.
    pub travellers: Vec<ClientId>,
    /// Those who were to be in it and have what their type does not allow: what was saved of them before is older than the rest.
    pub left_out: Vec<ClientId>,
    /// Items that came to be since the last cut, less those that ceased to be, by kind.
    pub items: Vec<(u32, i64)>,
    /// Wishes of the game that it answers.
    pub requests: Vec<SaveRequest>,
}

/// What a tick has to say of saves.
#[derive(Debug, Default)]
pub struct SaveReport {
    pub cut: Option<Box<Cut>>,
    /// A cut could not be taken, and why: nothing of it is to be saved, and who travels with this tick has to come back.
    pub failed: Option<String>,
    /// Players who have what their type does not allow: the cut is without them, and what was saved of them before stays.
    pub left_out: Vec<LeftOut>,
    /// Those whose departure the game has seen: nothing more of them follows.
    pub departed: Vec<ClientId>,
    /// The same of those who were left out when they left: what they had is nowhere, and what was saved of them before is older than
    /// the next cut.
    pub departed_unsaved: Vec<ClientId>,
    /// Travellers who carry something else than what players of this kind are saved as.
    pub strangers: Vec<ClientId>,
}

/// A player who could not be packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub client: ClientId,
    /// Said the first time, until they can be packed again.
    pub why: Option<String>,
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
    /// In so many ticks there is one for those who have left.
    pub cut_within: Option<u32>,
    /// Connections that ended in the tick before, which the game sees in this one.
    pub seen: Vec<(ClientKey, ClientId)>,
    /// What those left with who have left since the last cut, and did not travel.
    pub left_with: Vec<(ClientId, Transfer)>,
    /// Those whom the game has seen go, and who may wait for a cut.
    pub departed: Vec<ClientId>,
    /// Those who could not be packed when that was last tried.
    pub left_out: Vec<ClientId>,
    /// Those of them who have left since, and of whom the game has not said what they left with.
    pub left_unsaved: Vec<ClientId>,
    /// Since the last cut.
    pub items: Vec<(u32, i64)>,
    pub requests: Vec<SaveRequest>,
    /// What this tick has brought: it counts when the tick is over.
    pub of_tick: TickSaves,
    /// What the game said in this tick.
    pub wishes: SaveWishes,
    /// Until the tick in which the game reads them is over.
    pub answers_are_there: bool,
    /// As the host said last, and what of it the game has not seen.
    pub store: SaveStore,
    /// Of the newest cut, by which a replay is told from one that went another way.
    pub mark: Option<CutMark>,
    /// What ticks bring has been saved before.
    pub is_replaying: bool,
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
    /// Hands on all that was said; the numbers go on. Both keep their memory: what is counted in each tick allocates in none.
    pub fn hand_on(&mut self, to: &mut SaveWishes) {
        to.requests.append(&mut self.requests);
        to.items.append(&mut self.items);
        to.left_with.append(&mut self.left_with);
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
