//! The two worlds, and the server that has one of each: a field where everybody begins, and a barn beside it.

use throng::{Server, console::integer, directory::OneWorld, lifecycle::NewWorld, prelude::*, server::ServerError};

use crate::{
    flowers::{self, FlowersPlugin},
    players::{Ground, PlayersPlugin, SPEED},
    protocol::{FIELD_HALF_M, Position, protocol},
    sheep::SheepPlugin,
};

pub const FIELD_DOOR: Position = Position { x: 0.0, z: 20.0 };
pub const BARN_DOOR: Position = Position { x: 0.0, z: -9.0 };
/// Half of the barn's side (m).
pub const BARN_HALF_M: f32 = 10.0;
const FLOWERS: u32 = 100;
/// What the worlds are saved under: the same in every run, and no other world's.
const FIELD_SAVE: u64 = 1;
const BARN_SAVE: u64 = 2;

/// What the worlds are to be like.
#[derive(Clone, Copy)]
pub struct Plan {
    pub sheep: u32,
    pub are_asleep: bool,
    pub seed: u64,
}

/// Makes the worlds in a server that has none yet.
pub fn open(server: &mut Server, plan: &Plan) -> Result<(), ServerError> {
    let barn = server.add_kind(Barn)?;
    let barn = server.create_world_as(NewWorld::new(barn, plan.seed).saved_as(BARN_SAVE))?;
    let field = server.add_kind(Field { plan: *plan, barn })?;
    let field = NewWorld::new(field, plan.seed).saved_as(FIELD_SAVE);
    let first = server.create_world_as(field.clone())?;
    // Everybody begins in the field; if it ever ends, it is made again.
    server.set_directory(OneWorld::new(server.control(), field, first));
    Ok(())
}

pub struct Field {
    pub plan: Plan,
    pub barn: WorldId,
}

impl WorldKind for Field {
    fn name(&self) -> &str {
        "field"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        protocol()
    }

    fn console(&self) -> WorldConsole {
        let console = WorldConsole::new().tunable(&SPEED);
        console.operate("flowers.sow", "lets so many flowers grow", integer("count", 1..=100), flowers::sow)
    }

    fn build(&self, world: &mut WorldBuilder) {
        let Plan { sheep, are_asleep, .. } = self.plan;
        let ground = Ground { half_m: FIELD_HALF_M, door: FIELD_DOOR, leads_to: Some(self.barn) };
        world.add_plugins((PlayersPlugin(ground), FlowersPlugin(FLOWERS), SheepPlugin { count: sheep, are_asleep }));
    }
}

pub struct Barn;

impl WorldKind for Barn {
    fn name(&self) -> &str {
        "barn"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        protocol()
    }

    fn console(&self) -> WorldConsole {
        WorldConsole::new().tunable(&SPEED)
    }

    fn build(&self, world: &mut WorldBuilder) {
        let ground = Ground { half_m: BARN_HALF_M, door: BARN_DOOR, leads_to: None };
        world.add_plugins(PlayersPlugin(ground));
    }
}
