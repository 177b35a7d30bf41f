//! Replay: the worlds of a recording are made again and do their ticks again, without sockets, clients or a clock.
//!
//! What entered a world is all that it needs, and what worlds say to each other is among it. So each world is replayed by
//! itself ([`replayed_worlds`]), worlds are shared out to threads ([`threads`]), and the result is the same on any number of these.
//! Each hash in the recording is held against the world as it is then; where they differ the world, the ticks between
//! which it happened, the entities and the components are named ([`divergence`]).
//!
//! ```text
//! segments -> group of blocks -> every thread, each takes the parts of its worlds: build, load, tick, hash
//! ```
//!
//! What is missing or damaged is told, and worlds are picked up again from their next checkpoints. A recording of another
//! build is replayed as far as its checkpoints can be loaded and its inputs read; its hashes need not hold.
//!
//! Memory: that of the worlds, one segment as it is stored (an eighth of `max_mb`, so usually 128 MiB), and at most six unpacked groups,
//! which all threads share. With [`ReplayOptions::to_tick`] the recording is read twice: first to find the last group that is wanted.
//! Allocates freely: nobody waits for it.

mod divergence;
mod extent;
mod replayed_worlds;
#[cfg(test)]
mod tests;
mod threads;
mod watch;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use throng_net::{
    protocol::PrivateKey,
    transport::{Impairment, MemoryNetwork},
};
use throng_platform::{clock::ManualClock, steal::ManualSteal};
use throng_profiler::{Recorder, RecorderControl};
use throng_replication::{InterestSettings, ReplicationRules, Schema};
use throng_world::{game_world::ReplayWorker, ids::WorldId, world_builder::Kind};

pub use divergence::{DivergedEntity, Divergence, WhatDiffers};
pub use extent::Extent;
pub use watch::{DoneTick, ReplayWatch};

pub use crate::recording::OtherGame;

use self::replayed_worlds::ReplayedWorlds;
use crate::{
    Server,
    recording::{About, Block, FileFault, Group, RecordingFiles},
    report::Build,
    server::Environment,
    settings::{RecordingSettings, Settings},
    tuning::Tuning,
};

/// What a recording's worlds are made from again: the kinds of worlds of a game's server.
pub struct ReplayGame {
    name: String,
    version: String,
    commit: String,
    kinds: HashMap<Arc<str>, Arc<Mutex<Kind>>>,
    schema: Arc<Schema>,
    interest: InterestSettings,
    rules: ReplicationRules,
    tuning: Arc<Tuning>,
    /// What threads do is kept for a capture, if there is one.
    recorder: Mutex<Option<Recorder>>,
}

/// How to replay.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    /// Threads [1 to 256].
    pub threads: usize,
    /// As fast as it was recorded, in steps of about a second; otherwise as fast as it goes.
    pub real_time: bool,
    /// Each world ends after this tick, and the replay with the last of them: a world that is made later in the recording
    /// is waited for, and what comes behind all of them is not read. For that the recording is gone through once more, before.
    pub to_tick: Option<u32>,
    /// This world alone.
    pub world: Option<WorldId>,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self { threads: 1, real_time: false, to_tick: None, world: None }
    }
}

/// Gaps that are told one by one.
const GAPS_MAX: usize = 1_000;
/// With more of its ticks left out than this a recording was not replayed.
const SKIPPED_SHARE_MAX: f64 = 0.1;

/// What came of it.
#[derive(Debug, Default)]
pub struct ReplayReport {
    /// Worlds that were replayed, each counted once for each time that it was picked up.
    pub worlds: u64,
    pub ticks: u64,
    /// Ticks that could not be done, since there is no state before them.
    pub ticks_skipped: u64,
    /// Hashes that hold.
    pub hashes_equal: u64,
    /// Of each world the first, in the order in which they were recorded. What comes after it follows from it, and is not
    /// held against hashes.
    pub divergences: Vec<Divergence>,
    /// Stretches that are missing; at most 1,000 of them are told one by one.
    pub gaps: Vec<Gap>,
    /// How many there are.
    pub gaps_count: u64,
    /// Worlds that could not be made or led on, and why.
    pub failures: Vec<(WorldId, String)>,
    /// What was wrong with the files.
    pub faults: Vec<FileFault>,
    /// One number for all states that were hashed: the same on any number of threads.
    pub states: u64,
    pub took: Duration,
    /// The recording is of another build, whose hashes need not hold.
    pub is_other_build: bool,
}

/// A stretch of a world that is not in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub world: WorldId,
    /// Ticks done before it; `None` if nobody wrote that down.
    pub after: Option<u32>,
    /// Ticks done where the recording goes on.
    pub until: Option<u32>,
}

impl ReplayReport {
    /// No state differs from the recorded one, and no world failed. It does not ask whether anything is missing.
    pub fn is_equal(&self) -> bool {
        self.divergences.is_empty() && self.failures.is_empty()
    }

    /// Nothing is missing of what the server recorded: no stretch, no end of a file, no state that ticks need.
    pub fn is_whole(&self) -> bool {
        self.gaps_count == 0 && self.faults.is_empty() && self.ticks_skipped == 0
    }

    /// Whether so many ticks were left out, more than a tenth, that the recording was not replayed.
    pub fn skips_too_much(&self) -> bool {
        self.ticks_skipped as f64 > SKIPPED_SHARE_MAX * (self.ticks + self.ticks_skipped) as f64
    }

    fn note_gap(&mut self, gap: Gap) {
        self.gaps_count += 1;
        if self.gaps.len() < GAPS_MAX {
            self.gaps.push(gap);
        }
    }

    fn merge(&mut self, other: Self) {
        self.worlds += other.worlds;
        self.ticks += other.ticks;
        self.ticks_skipped += other.ticks_skipped;
        self.hashes_equal += other.hashes_equal;
        self.divergences.extend(other.divergences);
        self.gaps.extend(other.gaps);
        self.gaps_count += other.gaps_count;
        self.failures.extend(other.failures);
        self.states = self.states.wrapping_add(other.states);
    }
}

impl Server {
    /// A server of which nothing is wanted but [`into_replay`](Self::into_replay): no clock, no sockets, no files, whatever
    /// the settings say. Its game draws the seeds that it drew when that was recorded.
    pub fn for_replay(settings: &Settings, schema: Arc<Schema>, about: &About) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let environment = Environment {
            clock: Arc::new(ManualClock::new()),
            transport: Box::new(MemoryNetwork::new(0, Impairment::NONE).server(address)),
            steal: Box::new(ManualSteal::new(1)),
            seed: [0; 32],
            private_key: PrivateKey::new([0; 32]),
            public_addresses: vec![address],
            workers_count: 1,
        };
        let mut settings = settings.clone();
        settings.recording = RecordingSettings::default();
        let mut server = Self::with_environment(&settings, schema, environment);
        server.seeds.draw_again(&about.draws);
        server
    }

    /// Gives up the server and keeps what worlds are made from: those that it has are dropped, and nothing was bound or
    /// begun that need not be.
    pub fn into_replay(mut self) -> ReplayGame {
        let Build { version, commit } = self.build.clone().unwrap_or_default();
        ReplayGame {
            name: self.game.clone(),
            version,
            commit,
            kinds: self.kinds.iter().map(|row| (row.name.clone(), row.kind.clone())).collect(),
            schema: self.schema.clone(),
            interest: self.interest.clone(),
            rules: self.rules.clone(),
            tuning: self.control.tuning.clone(),
            recorder: Mutex::new(self.recorder.take()),
        }
    }
}

impl ReplayGame {
    /// # Errors
    /// If a recording is not of this game, or inputs are of another schema.
    pub fn check(&self, about: &About) -> Result<(), OtherGame> {
        about.check_game(&self.name, &self.schema)
    }

    /// What its clients say, and are told.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// For captures of what the replay's threads do.
    pub fn recorder(&self) -> Option<RecorderControl> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Recorder::control)
    }

    /// Whether it was recorded by another build than this one.
    pub fn is_other_build(&self, about: &About) -> bool {
        (&about.version, &about.commit) != (&self.version, &self.commit)
    }

    /// Replays a recording. Takes the calling thread for as long as that takes.
    ///
    /// # Errors
    /// If it is not of this game.
    pub fn replay(&self, recording: &RecordingFiles, options: &ReplayOptions) -> Result<ReplayReport, OtherGame> {
        let about = recording.about();
        self.check(about)?;
        let began = Instant::now();
        let tunables = self.tuning.numbers_of(&about.tunables);
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        let report = threads::replay(self, recording, options, &tunables, recorder.as_mut());
        Ok(self.finished(report, about, began))
    }

    /// Replays a recording on the calling thread, which tells `watch` of each tick. How many threads the options say does not
    /// matter.
    ///
    /// # Errors
    /// If it is not of this game.
    pub fn replay_watched(
        &self,
        recording: &RecordingFiles,
        options: &ReplayOptions,
        watch: &mut dyn ReplayWatch,
    ) -> Result<ReplayReport, OtherGame> {
        let about = recording.about();
        self.check(about)?;
        let began = Instant::now();
        let mut worker = ReplayWorker::new(0);
        worker.tunables = self.tuning.numbers_of(&about.tunables);
        let mut worlds = ReplayedWorlds::new(self, worker, options.to_tick).watched(watch);
        let is_wanted = |world: WorldId| options.world.is_none_or(|wanted| wanted == world);
        let faults = read(recording, options, |group| {
            worlds.take_group(&group, is_wanted);
            !worlds.is_over()
        });
        let report = ReplayReport { faults, ..worlds.finish() };
        Ok(self.finished(report, about, began))
    }

    fn finished(&self, mut report: ReplayReport, about: &About, began: Instant) -> ReplayReport {
        report.divergences.sort_by_key(|divergence| (divergence.at_ms, divergence.world, divergence.ticks));
        report.gaps.sort_by_key(|gap| (gap.world, gap.until));
        report.gaps.truncate(GAPS_MAX);
        report.is_other_build = self.is_other_build(about);
        report.took = began.elapsed();
        report
    }
}

/// Gives the groups of a recording in order, as [`RecordingFiles::read`] does, up to the last of which anything is wanted.
fn read(recording: &RecordingFiles, options: &ReplayOptions, mut each: impl FnMut(Group) -> bool) -> Vec<FileFault> {
    let wanted = options.to_tick.and_then(|last| groups_to_tick(recording, last, options.world));
    if wanted == Some(0) {
        return Vec::new();
    }
    let mut read = 0;
    recording.read(|group| {
        read += 1;
        each(group) && wanted != Some(read)
    })
}

/// How many groups there are up to the last with a tick that is wanted; `None` if that is the last of all. Reads all of the
/// recording, and replays nothing.
fn groups_to_tick(recording: &RecordingFiles, last: u32, wanted: Option<WorldId>) -> Option<usize> {
    let (mut read, mut count) = (0, 0);
    recording.read(|group| {
        read += 1;
        let mut is_ours = false;
        for block in group.blocks().map_while(Result::ok) {
            match block {
                Block::Part { world, .. } => is_ours = wanted.is_none_or(|wanted| wanted == world),
                Block::Ticks(ticks) if is_ours && ticks.first_tick().is_some_and(|first| first <= last) => count = read,
                _ => {}
            }
        }
        true
    });
    (count < read).then_some(count)
}
