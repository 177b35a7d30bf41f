//! Replayed worlds: those of one thread, as their parts lead them on.
//!
//! ```text
//! built, or a checkpoint where there is no world --> ticks --> hash: held against the world as it is
//!      ^                                               |
//!      '------ number of a part missing: a gap <-------'--> ended
//! ```

use std::{
    collections::HashMap,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::PoisonError,
};

use throng_metrics::game::GameTotals;
use throng_pack::envelope;
use throng_replication::StateParts;
use throng_scheduler::Hertz;
use throng_world::{GameWorld, checkpoint::PlayerEntities, game_world::ReplayWorker, ids::WorldId};

use super::{
    Gap, ReplayGame, ReplayReport, divergence,
    watch::{DoneTick, ReplayWatch},
};
use crate::recording::{Block, CheckpointReason, Group, PartNumbers, RecordedHash, RecordedTicks, WorldPlan};

#[derive(Default)]
struct Replayed {
    plan: WorldPlan,
    /// `None`: there is no state from which it can go on.
    world: Option<Box<GameWorld>>,
    numbers: PartNumbers,
    /// Ticks done when a hash held last.
    equal_at: Option<u32>,
    has_diverged: bool,
    /// It has done all ticks that are wanted.
    is_done: bool,
}

pub(super) struct ReplayedWorlds<'g> {
    game: &'g ReplayGame,
    worker: ReplayWorker,
    to_tick: Option<u32>,
    worlds: HashMap<WorldId, Replayed>,
    parts: StateParts,
    report: ReplayReport,
    at_ms: u32,
    watch: Option<Watched<'g>>,
}

/// Somebody who hears of each tick, and what games count meanwhile.
struct Watched<'g> {
    watch: &'g mut dyn ReplayWatch,
    totals: GameTotals,
    /// Of one tick.
    counted: Vec<(usize, u64)>,
}

impl Watched<'_> {
    fn note_done(&mut self, id: WorldId, world: &GameWorld, worker: &mut ReplayWorker) {
        self.counted.clear();
        worker.take_counted(&mut self.totals);
        let counted = &mut self.counted;
        self.totals.end_frame(|counter, count| counted.push((counter, count)));
        self.watch.done(&DoneTick { id, world, counted });
    }
}

impl<'g> ReplayedWorlds<'g> {
    pub fn new(game: &'g ReplayGame, worker: ReplayWorker, to_tick: Option<u32>) -> Self {
        Self {
            game,
            worker,
            to_tick,
            worlds: HashMap::new(),
            parts: StateParts::default(),
            report: ReplayReport::default(),
            at_ms: 0,
            watch: None,
        }
    }

    /// Lets somebody hear of each tick.
    pub fn watched(mut self, watch: &'g mut dyn ReplayWatch) -> Self {
        self.watch = Some(Watched { watch, totals: GameTotals::default(), counted: Vec::new() });
        self
    }

    pub fn finish(mut self) -> ReplayReport {
        for (id, Replayed { world, .. }) in self.worlds {
            if catch_unwind(AssertUnwindSafe(|| drop(world))).is_err() {
                note_failure(&mut self.report, &mut self.watch, id, "it panicked while it was dropped".to_owned());
            }
        }
        self.report
    }

    /// Who watches wants nothing more.
    pub fn is_over(&self) -> bool {
        self.watch.as_ref().is_some_and(|watched| watched.watch.is_over())
    }

    /// Takes what a group has for our worlds.
    pub fn take_group(&mut self, group: &Group, is_ours: impl Fn(WorldId) -> bool) {
        self.at_ms = group.at_ms;
        let mut current = None;
        // A block that cannot be read ends the group; numbers of parts tell what is missing then.
        for block in group.blocks().map_while(Result::ok) {
            match block {
                Block::About(_) | Block::Closed { .. } => {}
                Block::World(world, plan) => {
                    if is_ours(world) {
                        self.worlds.entry(world).or_default().plan = plan;
                    }
                }
                Block::Part { world, number } => {
                    current = is_ours(world).then_some(world);
                    if current.is_some() {
                        self.begin_part(world, number);
                    }
                }
                block => {
                    if let Some(world) = current {
                        self.take_block_of_game(world, block);
                    }
                }
            }
        }
    }

    fn begin_part(&mut self, id: WorldId, number: u32) {
        let replayed = self.worlds.entry(id).or_default();
        if replayed.numbers.follows(number) {
            return;
        }
        if let Some(world) = replayed.world.take() {
            note_gap(&mut self.report, &mut self.watch, Gap { world: id, after: Some(world.ticks()), until: None });
        }
    }

    /// Making a world, its ticks, its hash and its end all run the game's code, on what the recording says.
    fn take_block_of_game(&mut self, id: WorldId, block: Block<'_>) {
        if catch_unwind(AssertUnwindSafe(|| self.take_block(id, block))).is_ok() {
            return;
        }
        // It may be picked up again from its next checkpoint. To drop what is left of it runs the game's code once more.
        mem::forget(self.worlds.get_mut(&id).and_then(|replayed| replayed.world.take()));
        note_failure(&mut self.report, &mut self.watch, id, "it panicked while it was hashed or dropped".to_owned());
    }

    fn take_block(&mut self, id: WorldId, block: Block<'_>) {
        match block {
            Block::Built => {
                if let Some(replayed) = self.worlds.get_mut(&id) {
                    replayed.is_done = false;
                }
                self.make(id, None);
            }
            Block::Checkpoint { why, ticks, bytes } => self.take_checkpoint(id, why, ticks, bytes),
            Block::Ticks(ticks) => self.take_ticks(id, ticks),
            Block::Hash(hash) => self.take_hash(id, &hash),
            Block::Ended(_) => {
                self.worlds.remove(&id);
                self.watch.iter_mut().for_each(|watched| watched.watch.ended(id));
            }
            Block::About(_) | Block::World(..) | Block::Part { .. } | Block::Closed { .. } => {}
        }
    }

    fn take_checkpoint(&mut self, id: WorldId, why: CheckpointReason, ticks: u32, bytes: &[u8]) {
        let replayed = self.worlds.entry(id).or_default();
        if replayed.is_done {
            return;
        }
        match why {
            // It is there, and goes on as it is: what it does is to be its own.
            CheckpointReason::Regular if replayed.world.is_some() => return,
            CheckpointReason::Begin { after: Some(after) } => {
                let gap = Gap { world: id, after: Some(after), until: Some(ticks) };
                note_gap(&mut self.report, &mut self.watch, gap);
            }
            _ => {}
        }
        self.make(id, Some(bytes));
    }

    /// Builds the world, and loads a checkpoint into it.
    fn make(&mut self, id: WorldId, checkpoint: Option<&[u8]>) {
        let Some(replayed) = self.worlds.get_mut(&id) else { return };
        let (game, plan) = (self.game, &replayed.plan);
        let was_there = replayed.world.take().is_some();
        let why = match catch_unwind(AssertUnwindSafe(|| make(game, id, plan, checkpoint))) {
            Ok(Ok(world)) => {
                if replayed.has_diverged {
                    // The recording's own state: from here on hashes say something again, and the first difference stays.
                    replayed.equal_at = None;
                }
                if is_behind(self.to_tick, &world) {
                    replayed.is_done = true;
                    return;
                }
                replayed.world = Some(world);
                self.report.worlds += u64::from(!was_there);
                return;
            }
            Ok(Err(why)) => why,
            Err(_) => "it panicked while it was made".to_owned(),
        };
        note_failure(&mut self.report, &mut self.watch, id, why);
    }

    fn take_ticks(&mut self, id: WorldId, ticks: RecordedTicks<'_>) {
        let Some(replayed) = self.worlds.get_mut(&id).filter(|replayed| !replayed.is_done) else { return };
        let rate = Hertz(replayed.plan.rate_hz);
        let Some(world) = &mut replayed.world else {
            self.report.ticks_skipped += ticks.read(rate).map_while(Result::ok).count() as u64;
            return;
        };
        for tick in ticks.read_from(world.ticks(), rate) {
            let (number, worker) = (world.ticks(), &mut self.worker);
            if let (Some(watched), Ok(tick)) = (&mut self.watch, &tick) {
                watched.watch.begins(id, &replayed.plan, tick);
            }
            let done = catch_unwind(AssertUnwindSafe(|| {
                world.replay_tick(&tick.map_err(|fault| fault.to_string())?, worker).map_err(|error| error.to_string())
            }));
            let why = match done {
                Ok(Ok(())) => {
                    self.report.ticks += 1;
                    if let Some(watched) = &mut self.watch {
                        watched.note_done(id, world, &mut self.worker);
                    }
                    if is_behind(self.to_tick, world) {
                        replayed.is_done = true;
                        return;
                    }
                    continue;
                }
                Ok(Err(why)) => format!("tick {number}: {why}"),
                Err(_) => {
                    // What the thread lent it is gone with it.
                    let fresh = ReplayWorker::new(0);
                    let tunables = mem::replace(&mut self.worker, fresh).tunables;
                    self.worker.tunables = tunables;
                    format!("it panicked in tick {number}")
                }
            };
            note_failure(&mut self.report, &mut self.watch, id, why);
            replayed.world = None;
            return;
        }
    }

    fn take_hash(&mut self, id: WorldId, recorded: &RecordedHash<'_>) {
        let Some(replayed) = self.worlds.get_mut(&id).filter(|replayed| !replayed.is_done) else { return };
        let Some(world) = &mut replayed.world else { return };
        let (whole, random) = world.hash_in_parts(&mut self.parts);
        self.report.states = self.report.states.wrapping_add(mixed(id, world.ticks(), whole));
        self.watch.iter_mut().for_each(|watched| watched.watch.hashed(id, whole));
        if replayed.has_diverged {
            return;
        }
        if (recorded.ticks, recorded.whole, recorded.random) == (world.ticks(), whole, crate::recording::short(random))
        {
            self.report.hashes_equal += 1;
            replayed.equal_at = Some(world.ticks());
            return;
        }
        replayed.has_diverged = true;
        let divergence = divergence::find(world, recorded, (random, &self.parts), replayed.equal_at, self.at_ms);
        self.report.divergences.push(divergence);
    }
}

/// Whether a world has done the tick that is its last.
fn is_behind(to_tick: Option<u32>, world: &GameWorld) -> bool {
    to_tick.is_some_and(|last| world.ticks() > last)
}

fn note_gap(report: &mut ReplayReport, watch: &mut Option<Watched<'_>>, gap: Gap) {
    watch.iter_mut().for_each(|watched| watched.watch.gap(gap.world));
    report.note_gap(gap);
}

fn note_failure(report: &mut ReplayReport, watch: &mut Option<Watched<'_>>, id: WorldId, why: String) {
    watch.iter_mut().for_each(|watched| watched.watch.failed(id, &why));
    report.failures.push((id, why));
}

fn make(game: &ReplayGame, id: WorldId, plan: &WorldPlan, checkpoint: Option<&[u8]>) -> Result<Box<GameWorld>, String> {
    let kind = game.kinds.get(&*plan.kind);
    let kind = kind.ok_or_else(|| format!("this build knows no kind of worlds `{}`", plan.kind))?;
    let built = {
        let mut kind = kind.lock().unwrap_or_else(PoisonError::into_inner);
        kind.build_world(id, plan.seed, plan.parameters.as_deref(), &game.schema, &game.interest)
    };
    let mut world = built.map_err(|error| error.to_string())?;
    if world.rate().0 != plan.rate_hz {
        return Err(format!(
            "worlds of kind `{}` tick at {} Hz in this build, and were recorded at {} Hz",
            plan.kind,
            world.rate().0,
            plan.rate_hz
        ));
    }
    world.set_rules(&game.rules);
    if let Some(checkpoint) = checkpoint {
        let loaded = world.load_checkpoint(checkpoint, PlayerEntities::Stay);
        loaded.map_err(|error| format!("its checkpoint cannot be loaded: {error}"))?;
    }
    world.keep_saves(plan.is_saved, plan.is_saved && plan.saves_world);
    Ok(Box::new(world))
}

/// States of all worlds and ticks are added up.
fn mixed(world: WorldId, ticks: u32, hash: u64) -> u64 {
    let mut bytes = Vec::new();
    let _ = envelope::write(&world, &mut bytes);
    let seed = u64::from(crc32fast::hash(&bytes)) << 32 | u64::from(ticks);
    (seed ^ hash).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) ^ hash
}
