//! Directory: the game's answer to "where does this client start?".

use throng_net::protocol::{ClientId, UserData};
use throng_platform::time::Nanos;

use throng_world::ids::WorldId;

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

/// Places clients. Called by the frame thread, in its serial part: answer from memory.
pub trait Directory: Send {
    fn place(&mut self, client_id: ClientId, user_data: &UserData) -> Placement;

    /// The client is gone: its connection has ended, or it went away, or was sent away, while its world was
    /// [pending](Placement::Pending). Not called after a refusal.
    fn left(&mut self, client_id: ClientId);

    /// Once in every frame, before clients are placed: for what takes time, such as retiring a world a while after its
    /// owner left.
    fn frame(&mut self, now: Nanos) {
        let _ = now;
    }

    /// A world has ended, because it was retired or because it panicked: nobody can be placed in it any more.
    fn world_ended(&mut self, world: WorldId) {
        let _ = world;
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
