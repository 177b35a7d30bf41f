//! One world: a directory for games in which everybody is in the same one.

use throng_net::protocol::{ClientId, UserData};
use throng_profiler::log_error;
use throng_world::ids::WorldId;

use super::{DIRECTORY, Directory, Placement};
use crate::{
    lifecycle::{NewWorld, Pending, WorldError},
    server::ServerControl,
};

/// Puts everybody in one world, and has it made again, by the same plan, when it has ended and somebody wants in. After a
/// panic those are the players who were in it.
pub struct OneWorld {
    control: ServerControl,
    plan: NewWorld,
    world: State,
}

enum State {
    There(WorldId),
    Asked(Pending<WorldId>),
    Ended,
}

impl OneWorld {
    /// `world` was made by `plan`.
    pub fn new(control: ServerControl, plan: NewWorld, world: WorldId) -> Self {
        Self { control, plan, world: State::There(world) }
    }
}

impl Directory for OneWorld {
    fn place(&mut self, _: ClientId, _: &UserData) -> Placement {
        match &self.world {
            State::There(world) => return Placement::World(*world),
            State::Ended => self.world = State::Asked(self.control.create_world(self.plan.clone())),
            State::Asked(answer) => match answer.try_take() {
                None => {}
                Some(Ok(world)) => {
                    self.world = State::There(world);
                    return Placement::World(world);
                }
                // Whoever asks is told, so the log is not.
                Some(Err(WorldError::Parked { .. })) => {
                    self.world = State::Ended;
                    return Placement::Refuse("its world is parked, and is not made for now");
                }
                Some(Err(error)) => {
                    log_error!(DIRECTORY, %error, "the world that everybody is in cannot be made again");
                    self.world = State::Ended;
                    return Placement::Refuse("its world cannot be made");
                }
            },
        }
        Placement::Pending
    }

    fn left(&mut self, _: ClientId) {}

    fn world_ended(&mut self, world: WorldId) {
        if matches!(self.world, State::There(ours) if ours == world) {
            self.world = State::Ended;
        }
    }
}
