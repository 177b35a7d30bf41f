//! Outline: what is known of a recording before it is replayed: how long it is, and who its players are.
//!
//! Reads all ticks and does none of them. Cost: some 5 ns a byte, which is a hundredth of a replay.

use std::collections::HashMap;

use throng::recording::{Block, FileFault, Group, RecordingFiles, WorldPlan};
use throng_world::{
    ids::{ClientKey, WorldId},
    input_log::{Entry, LoggedTick},
    prelude::Hertz,
};

use crate::clock::WorldClocks;

/// A recording, seen from far.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// How long it is by the time of its worlds (s).
    pub length_s: f64,
    /// Client ids, of those who came while it was recorded.
    pub clients: HashMap<ClientKey, u64>,
}

impl Outline {
    pub fn of(recording: &RecordingFiles) -> Self {
        let (mut outline, mut clocks) = (Self::default(), WorldClocks::default());
        each_tick(recording, |world, plan, tick| {
            clocks.at(world, plan.rate_hz, tick.tick);
            for entry in tick.entries().map_while(Result::ok) {
                if let Entry::Arrival(arrival) = entry {
                    outline.clients.insert(arrival.client, arrival.client_id.0);
                }
            }
            true
        });
        outline.length_s = clocks.now_s();
        outline
    }
}

/// Gives every tick that is recorded, in the order in which they stand there, until `each` returns false. What cannot be read is
/// left out, and what was wrong with the files is returned.
pub(crate) fn each_tick(
    recording: &RecordingFiles,
    mut each: impl FnMut(WorldId, &WorldPlan, &LoggedTick<'_>) -> bool,
) -> Vec<FileFault> {
    let mut plans: HashMap<WorldId, WorldPlan> = HashMap::new();
    recording.read(|group| ticks_of_group(&group, &mut plans, &mut each))
}

fn ticks_of_group(
    group: &Group,
    plans: &mut HashMap<WorldId, WorldPlan>,
    each: &mut impl FnMut(WorldId, &WorldPlan, &LoggedTick<'_>) -> bool,
) -> bool {
    let mut current = None;
    for block in group.blocks().map_while(Result::ok) {
        match block {
            Block::World(world, plan) => _ = plans.insert(world, plan),
            Block::Part { world, .. } => current = Some(world),
            Block::Ticks(ticks) => {
                let Some((world, plan)) = current.and_then(|world| Some((world, plans.get(&world)?))) else { continue };
                for tick in ticks.read(Hertz(plan.rate_hz)).map_while(Result::ok) {
                    if !each(world, plan, &tick) {
                        return false;
                    }
                }
            }
            _ => {}
        }
    }
    true
}
