//! Directory: the game's answer to "where does this client start?".

use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_net::protocol::{ClientId, UserData};
use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_error};

use throng_world::ids::WorldId;

mod one_world;

pub use one_world::OneWorld;

/// Where a client that has just connected is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    World(WorldId),
    /// Its world is being made. The client waits and is told so; the question is asked again in every frame, until
    /// the answer is another one, the client goes away, or `placement_timeout_s` is over.
    Pending,
    /// Not let in; the reason is logged and counted.
    Refuse(&'static str),
}

/// Where a player was when last saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SavedPlace {
    /// Nothing was ever saved of this player.
    pub is_new: bool,
    /// The number that their world is saved under; `None`: they were in a world without.
    pub save_id: Option<u64>,
    /// The world that has this number now, if there is one.
    pub world: Option<WorldId>,
}

/// Places clients. Called by the frame thread, in its serial part: answer from memory.
pub trait Directory: Send {
    fn place(&mut self, client_id: ClientId, user_data: &UserData) -> Placement;

    /// As [`place`](Self::place), for a server that keeps saves: besides, where the player was when last saved. The
    /// player arrives with what was saved of them, wherever they are placed.
    fn place_saved(&mut self, client_id: ClientId, user_data: &UserData, saved: SavedPlace) -> Placement {
        let _ = saved;
        self.place(client_id, user_data)
    }

    /// The client is gone: its connection has ended, or it went away, or was sent away, while its world was
    /// [pending](Placement::Pending). Not called after a refusal. Called for one whose world panicked, too, and then it is
    /// placed anew.
    fn left(&mut self, client_id: ClientId);

    /// Once in every frame, before clients are placed: for what takes time, such as retiring a world a while after its
    /// owner left.
    fn frame(&mut self, now: Nanos) {
        let _ = now;
    }

    /// A world has ended, because it was retired, because it panicked, or because what was done in it had to be undone: nobody can be placed in it any more.
    fn world_ended(&mut self, world: WorldId) {
        let _ = world;
    }
}

log_category!(DIRECTORY = "server.directory");

/// A game's directory, whose panics end neither the frame nor the worlds. It is asked again afterwards: what it knows may
/// be half changed then, and a server that lets nobody in is no better.
pub(crate) struct CaughtDirectory {
    of_game: Box<dyn Directory>,
    /// Since they were last taken.
    panics: u64,
    /// Of [`Directory::frame`], since the start.
    frame_panics: u32,
    /// Worlds that are parked, see [`crate::parked_worlds`]: the game knows their ids, and nobody can be placed there.
    held: Vec<WorldId>,
}

/// After so many panics of [`Directory::frame`] it is called no more: each writes to stderr from the frame's thread, and
/// comes again in the next frame.
const FRAME_PANICS_MAX: u32 = 8;

impl CaughtDirectory {
    pub fn new(of_game: Box<dyn Directory>) -> Self {
        Self { of_game, panics: 0, frame_panics: 0, held: Vec::new() }
    }

    /// Another directory of the game. Worlds that are held stay so.
    pub fn replace_by(&mut self, of_game: Box<dyn Directory>) {
        *self = Self { held: std::mem::take(&mut self.held), ..Self::new(of_game) };
    }

    /// Nobody is placed there from now on.
    pub fn hold(&mut self, world: WorldId) {
        self.held.push(world);
    }

    pub fn hold_no_longer(&mut self, world: WorldId) {
        self.held.retain(|held| *held != world);
    }

    pub fn take_panics(&mut self) -> u64 {
        std::mem::take(&mut self.panics)
    }

    /// Nobody goes into a world that is not there.
    fn unless_held(&self, answer: Option<Placement>) -> Placement {
        match answer {
            Some(Placement::World(world)) if self.held.contains(&world) => Placement::Refuse("its world is parked"),
            Some(placement) => placement,
            None => Placement::Refuse("the game's directory panicked"),
        }
    }

    fn ask<T>(&mut self, question: &'static str, ask: impl FnOnce(&mut dyn Directory) -> T) -> Option<T> {
        let answer = catch_unwind(AssertUnwindSafe(|| ask(&mut *self.of_game))).ok();
        if answer.is_none() {
            self.panics += 1;
            log_error!(DIRECTORY, question, "the game's directory panicked; the server goes on");
        }
        answer
    }
}

impl Directory for CaughtDirectory {
    fn place(&mut self, client_id: ClientId, user_data: &UserData) -> Placement {
        let answer = self.ask("place", |of_game| of_game.place(client_id, user_data));
        self.unless_held(answer)
    }

    fn place_saved(&mut self, client_id: ClientId, user_data: &UserData, saved: SavedPlace) -> Placement {
        let answer = self.ask("place", |of_game| of_game.place_saved(client_id, user_data, saved));
        self.unless_held(answer)
    }

    fn left(&mut self, client_id: ClientId) {
        self.ask("left", |of_game| of_game.left(client_id));
    }

    fn frame(&mut self, now: Nanos) {
        if self.frame_panics >= FRAME_PANICS_MAX || self.ask("frame", |of_game| of_game.frame(now)).is_some() {
            return;
        }
        self.frame_panics += 1;
        if self.frame_panics == FRAME_PANICS_MAX {
            log_error!(DIRECTORY, "the game's directory panics in every frame, and is told of frames no more");
        }
    }

    fn world_ended(&mut self, world: WorldId) {
        self.ask("world_ended", |of_game| of_game.world_ended(world));
    }
}

/// Puts everybody in one world.
pub struct Everybody(pub WorldId);

impl Directory for Everybody {
    fn place(&mut self, _: ClientId, _: &UserData) -> Placement {
        Placement::World(self.0)
    }

    fn left(&mut self, _: ClientId) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics over client 7, and in every frame.
    struct Faulty;

    impl Directory for Faulty {
        fn place(&mut self, client_id: ClientId, _: &UserData) -> Placement {
            assert_ne!(client_id.0, 7, "a bug in a game");
            Placement::World(WorldId::new(0, 0))
        }

        fn left(&mut self, client_id: ClientId) {
            assert_ne!(client_id.0, 7, "a bug in a game");
        }

        fn frame(&mut self, _: Nanos) {
            std::panic::panic_any("a bug in a game")
        }
    }

    #[test]
    fn a_panic_refuses_the_one_and_lets_the_others_in() {
        let mut directory = CaughtDirectory::new(Box::new(Faulty));
        let mut place = |id| directory.place(ClientId(id), &[0; 256]);
        assert_eq!(place(6), Placement::World(WorldId::new(0, 0)));
        assert_eq!(place(7), Placement::Refuse("the game's directory panicked"));
        assert_eq!(place(8), Placement::World(WorldId::new(0, 0)));
        directory.left(ClientId(7));
        directory.left(ClientId(6));
        directory.frame(Nanos::ZERO);
        directory.world_ended(WorldId::new(0, 0));
        assert_eq!((directory.take_panics(), directory.take_panics()), (3, 0));
        (0..1_000).for_each(|frame| directory.frame(Nanos(frame)));
        assert_eq!(directory.take_panics(), u64::from(FRAME_PANICS_MAX) - 1, "then it is left alone");
    }
}
