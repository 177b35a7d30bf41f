//! Turnover: worlds that come and go by the thousand beside the game's own.
//!
//! Not a fault of the server but a load on it: none of the game's worlds may miss a tick for it, and all memory comes
//! back.

use std::{io, thread::sleep, time::Duration};

use bevy_ecs::prelude::*;
use throng::{
    lifecycle::NewWorld,
    prelude::*,
    server::{Server, ServerControl, ServerError},
};
use throng_platform::threads::{Priority, spawn_named};
use throng_profiler::{log_category, log_error, log_info};

log_category!(FAULTS = "faults");

/// When it begins: players should be in by then.
const BEGIN_AFTER: Duration = Duration::from_secs(5);

/// A world that is not there after this long is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Things of a world that come and go with it.
const THINGS: u32 = 20;

/// Worlds that come and go: so many in all, so many at once, each staying so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turnover {
    pub worlds: usize,
    pub at_once: usize,
    pub stay_ms: u64,
}

#[derive(Component)]
struct Thing(u32);

/// A world in which things count.
struct PassingWorld;

impl WorldKind for PassingWorld {
    fn name(&self) -> &str {
        "passing"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(Update, count);
        let things = (0..THINGS).map(Thing);
        world.world_mut().spawn_batch(things.collect::<Vec<_>>());
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

fn count(mut things: Query<&mut Thing>) {
    things.iter_mut().for_each(|mut thing| thing.0 = thing.0.wrapping_add(1));
}

impl Turnover {
    /// Adds the kind of world and starts the thread that asks for worlds.
    pub(crate) fn start(self, server: &mut Server) -> Result<(), ServerError> {
        let kind = server.add_kind(PassingWorld)?;
        let control = server.control();
        self.spawn(control, kind).map_err(ServerError::Thread)
    }

    fn spawn(self, control: ServerControl, kind: WorldKindId) -> io::Result<()> {
        spawn_named("turnover", Priority::Low, move || {
            sleep(BEGIN_AFTER);
            let (mut came, mut went) = (0, 0);
            while came < self.worlds {
                let seeds = came..self.worlds.min(came + self.at_once);
                let asked: Vec<_> = seeds.map(|seed| control.create_world(NewWorld::new(kind, seed as u64))).collect();
                let made: Vec<_> = asked.iter().filter_map(|pending| pending.wait(PATIENCE)?.ok()).collect();
                if made.len() < asked.len() {
                    log_error!(FAULTS, missing = asked.len() - made.len(), "worlds were asked for and did not come");
                    return;
                }
                came += made.len();
                sleep(Duration::from_millis(self.stay_ms));
                let asked: Vec<_> = made.into_iter().map(|world| control.retire_world(world)).collect();
                went += asked.iter().filter_map(|pending| pending.wait(PATIENCE)?.ok()).count();
            }
            log_info!(FAULTS, came, went, "all passing worlds came and went");
        })?;
        Ok(())
    }
}
