//! Extent: how much there is to replay, for who replays a recording in pieces and has to know how many there will be.
//!
//! Reads the groups and replays nothing. Cost: that of unpacking what is counted.

use std::collections::HashMap;

use throng_scheduler::Hertz;
use throng_world::ids::WorldId;

use crate::recording::{Block, FileFault, Group, PartNumbers, RecordingFiles};

/// How many ticks of how many worlds a recording has, of those that have a state before them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extent {
    /// How many tick at one time: all ticks divided by those of the busiest world, rounded up. Those that rest count for less.
    pub worlds: u32,
    /// Ticks of all worlds that were written within the first time that was asked for.
    pub ticks_at_first: u64,
    /// Those after it.
    pub ticks_after: u64,
    /// Ticks that have no state before them.
    pub ticks_skipped: u64,
    /// What is wrong with the files.
    pub faults: Vec<FileFault>,
}

/// A world, as its parts come by.
struct Seen {
    rate_hz: u16,
    /// There is a state that its next tick follows from.
    has_state: bool,
    numbers: PartNumbers,
}

impl Extent {
    /// Of the first `until_ms` of a recording, of which the first `first_ms` are counted apart.
    pub fn of(recording: &RecordingFiles, first_ms: u32, until_ms: u32) -> Self {
        let (mut extent, mut worlds, mut began_ms) = (Self::default(), HashMap::new(), None);
        // Of the world that has most in each group.
        let mut ticks_of_one = 0;
        let faults = recording.read(|group| {
            let at_ms = group.at_ms.saturating_sub(*began_ms.get_or_insert(group.at_ms));
            if at_ms >= until_ms {
                return false;
            }
            let ticks_of_each = ticks_in(&group, &mut worlds, &mut extent.ticks_skipped);
            let ticks: u64 = ticks_of_each.values().sum();
            ticks_of_one += ticks_of_each.values().max().copied().unwrap_or(0);
            *(if at_ms < first_ms { &mut extent.ticks_at_first } else { &mut extent.ticks_after }) += ticks;
            true
        });
        let ticks = extent.ticks_at_first + extent.ticks_after;
        let worlds = ticks.div_ceil(ticks_of_one.max(1)) as u32;
        Self { worlds, faults, ..extent }
    }
}

fn ticks_in(group: &Group, worlds: &mut HashMap<WorldId, Seen>, skipped: &mut u64) -> HashMap<WorldId, u64> {
    let (mut current, mut ticks) = (None, HashMap::new());
    for block in group.blocks().map_while(Result::ok) {
        match (block, current) {
            (Block::World(world, plan), _) => {
                let seen = Seen { rate_hz: plan.rate_hz, has_state: false, numbers: PartNumbers::default() };
                worlds.entry(world).or_insert(seen).rate_hz = plan.rate_hz;
            }
            (Block::Part { world, number }, _) => {
                current = Some(world);
                let Some(seen) = worlds.get_mut(&world) else { continue };
                seen.has_state &= seen.numbers.follows(number);
            }
            (Block::Built | Block::Checkpoint { .. }, Some(world)) => {
                worlds.entry(world).and_modify(|seen| seen.has_state = true);
            }
            (Block::Ended(_), Some(world)) => drop(worlds.remove(&world)),
            (Block::Ticks(recorded), Some(world)) => {
                let Some(seen) = worlds.get(&world) else { continue };
                let count = recorded.read(Hertz(seen.rate_hz)).map_while(Result::ok).count() as u64;
                *(if seen.has_state { ticks.entry(world).or_default() } else { &mut *skipped }) += count;
            }
            _ => {}
        }
    }
    ticks
}
