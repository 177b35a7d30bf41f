//! Placing: a log-in's way to the game's directory, past what is saved of the player.
//!
//! The address table asks where a client is to be, and gets an answer in every frame. With saves on, the player is loaded
//! first; meanwhile the answer is that they wait. Then the directory is asked, and told where they were.
//!
//! Frame thread. Cost: without saves the directory's own.

use throng_net::protocol::{ClientId, UserData};
use throng_platform::time::Nanos;
use throng_world::transfer::Transfer;

use super::{Saves, players::LogIn};
use crate::directory::{Directory, Placement, SavedPlace};

/// Says where clients are to be, and with what.
pub(crate) trait Placing {
    fn place(&mut self, client_id: ClientId, user_data: &UserData) -> Placement;

    /// As [`Directory::left`].
    fn left(&mut self, client_id: ClientId);

    /// What a client that is let in now comes with.
    fn carried(&mut self, client_id: ClientId) -> Option<Transfer>;
}

impl<D: Directory + ?Sized> Placing for D {
    fn place(&mut self, client_id: ClientId, user_data: &UserData) -> Placement {
        Directory::place(self, client_id, user_data)
    }

    fn left(&mut self, client_id: ClientId) {
        Directory::left(self, client_id);
    }

    fn carried(&mut self, _: ClientId) -> Option<Transfer> {
        None
    }
}

/// A directory that is asked of players who are loaded.
pub(crate) struct WithSaves<'a, D> {
    pub directory: &'a mut D,
    pub saves: Option<&'a mut Saves>,
    pub now: Nanos,
}

impl<D: Directory> Placing for WithSaves<'_, D> {
    fn place(&mut self, client_id: ClientId, user_data: &UserData) -> Placement {
        let Some(saves) = &mut self.saves else { return Directory::place(self.directory, client_id, user_data) };
        match saves.players.log_in(client_id, self.now) {
            LogIn::Wait => Placement::Pending,
            LogIn::Refuse(reason) => {
                saves.players.gave_up(client_id);
                Placement::Refuse(reason)
            }
            LogIn::Ready { world: save_id, is_new } => {
                let world = save_id.and_then(|id| saves.worlds.get(&id).copied());
                let saved = SavedPlace { is_new, save_id, world };
                let placement = self.directory.place_saved(client_id, user_data, saved);
                if matches!(placement, Placement::Refuse(_)) {
                    saves.players.gave_up(client_id);
                }
                placement
            }
        }
    }

    fn left(&mut self, client_id: ClientId) {
        // Of one who was never loaded the directory has not heard.
        if self.saves.as_mut().is_none_or(|saves| saves.players.gave_up(client_id)) {
            Directory::left(self.directory, client_id);
        }
    }

    fn carried(&mut self, client_id: ClientId) -> Option<Transfer> {
        let saves = self.saves.as_mut()?;
        let has = saves.players.take_loaded(client_id);
        saves.counts.players_loaded += u64::from(has.is_some());
        has
    }
}
