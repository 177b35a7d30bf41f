//! Replay: the server of a simulation writes a recording as a live one does, and its worlds come again from that.
//!
//! Same kinds of worlds, same inputs in the same ticks: so every world must have the same state at every tick, on however
//! many threads. What does not come again has read something that it should not have: a clock, a random device, the order
//! in which threads finished.
//!
//! Logins, travel and the making of worlds are not done again: a recording begins where their results enter a world. That
//! the server does these alike with any number of workers is told by two simulations of one seed
//! ([`first_difference`](crate::first_difference)).
//!
//! Costs a hash of every world in every tick, and a folder on the disk.

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use throng::{
    Server,
    ids::WorldId,
    inspection::WorldHash,
    recording::{RecordingFiles, SegmentHeading},
    replay::{ReplayOptions, ReplayReport},
    server::ServerError,
    world::input_log::Entry,
    world_kind::Hertz,
};

use crate::settings::SimulationSettings;

/// The recording of one simulation, in a temporary folder that is removed with this.
pub struct SimulationRecording {
    folder: PathBuf,
    settings: SimulationSettings,
}

/// Where something was said that a recording does not hold any more.
#[derive(Debug, Clone, Copy)]
struct LeftOut {
    world: WorldId,
    tick: u32,
}

impl SimulationRecording {
    /// Makes the folder. A simulation of [`settings`](Self::settings) records into it, until
    /// [`Simulation::end_recording`](crate::Simulation::end_recording).
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn new(settings: &SimulationSettings) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("throng-simulation-{}-{number}", std::process::id()));
        // Left by a process of the same number that was killed.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut settings = settings.clone();
        settings.server.recording.folder = Some(folder.clone());
        // A hash in every tick, which names the tick of a difference.
        settings.server.recording.hash_period_s = 0;
        settings.hash = true;
        Self { folder, settings }
    }

    /// Those that it was made with; beside them the server records, and every tick leaves a hash.
    pub fn settings(&self) -> &SimulationSettings {
        &self.settings
    }

    /// Replays the recording on so many threads. `build` is that of the simulation.
    ///
    /// # Errors
    /// As `build`.
    ///
    /// # Panics
    /// If nothing was recorded, or `build` is of another game.
    pub fn replay<T>(
        &self,
        threads: usize,
        build: impl FnOnce(&mut Server) -> Result<T, ServerError>,
    ) -> Result<ReplayReport, ServerError> {
        let recording = self.open();
        let mut server = Server::for_replay(&self.settings.server, self.settings.schema.clone(), recording.about());
        build(&mut server)?;
        let options = ReplayOptions { threads, ..ReplayOptions::default() };
        Ok(server.into_replay().replay(&recording, &options).unwrap_or_else(|error| panic!("{error}")))
    }

    /// Asserts that a replay on so many threads comes to the recorded state after every tick of every world, of which the
    /// simulation has left `hashes`.
    ///
    /// # Panics
    /// If it does not, and if [`Simulation::end_recording`](crate::Simulation::end_recording) was not called before.
    #[track_caller]
    pub fn check<T>(
        &self,
        threads: usize,
        hashes: &[WorldHash],
        build: impl FnOnce(&mut Server) -> Result<T, ServerError>,
    ) {
        let report = self.replay(threads, build).expect("it was set up once already");
        if let Some(divergence) = report.divergences.first() {
            panic!("seed {}, {threads} threads: {divergence}", self.settings.seed);
        }
        let Self { settings, .. } = self;
        assert!(
            report.faults.is_empty(),
            "end the recording first, with `Simulation::end_recording`: {:?}",
            report.faults
        );
        assert!(report.is_equal() && report.is_whole(), "seed {}, {threads} threads: {report:?}", settings.seed);
        let count = hashes.len() as u64;
        assert_eq!((report.ticks, report.hashes_equal), (count, count), "every tick leaves a hash: {report:?}");
    }

    /// Asserts that a replay is told apart that lacks one input or request of a player: the negative control of
    /// [`check`](Self::check). The tick is named, and an entity. An input that says what the one before said is not missed, so up
    /// to so many are left out in turn, one apart from the other.
    ///
    /// # Panics
    /// If none of them is missed.
    #[track_caller]
    pub fn check_lack_is_noticed<T, B: FnOnce(&mut Server) -> Result<T, ServerError>>(
        &self,
        tries: usize,
        build: impl Fn() -> B,
    ) {
        let replay = |blocks: &[u8]| {
            let lacking = Self::new(&self.settings);
            let path = lacking.folder.join("recording-000000000001-000001.throngrec");
            fs::write(&path, SegmentHeading { number: 1, recording_id: 1 }.seal(blocks))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            lacking.replay(2, build()).expect("it was set up once already")
        };
        // Written anew with nothing left out it is what it was.
        let (blocks, count, _) = self.without_message(usize::MAX);
        let report = replay(&blocks);
        assert!(report.is_equal() && report.is_whole(), "written anew: {report:?}");
        let noticed = (1..=tries).find_map(|part| {
            let (blocks, _, left_out) = self.without_message(count * part / (tries + 1));
            Some((left_out?, replay(&blocks).divergences.into_iter().next()?))
        });
        let Some((left_out, divergence)) = noticed else {
            panic!("{tries} of {count} were left out in turn and nobody noticed");
        };
        println!("without an input of tick {} of world {}: {divergence}", left_out.tick, left_out.world);
        let tick = divergence.ticks - 1;
        assert_eq!(divergence.world, left_out.world);
        assert!(tick >= left_out.tick && divergence.equal_at == Some(tick), "{left_out:?}: {divergence}");
        assert!(!divergence.entities.is_empty(), "no entity is named: {divergence}");
    }

    fn open(&self) -> RecordingFiles {
        RecordingFiles::open(&self.folder).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The blocks of the recording without one input or request, the one that comes after so many others; how many there are;
    /// and where it was.
    fn without_message(&self, number: usize) -> (Vec<u8>, usize, Option<LeftOut>) {
        let (mut blocks, mut count, mut left_out) = (Vec::new(), 0, None);
        self.open().read(|group| {
            blocks.extend(group.with_ticks(|world, ticks, out| {
                // What is left out does not depend on the rate.
                for tick in ticks.read(Hertz(1)) {
                    let tick = tick.expect("it was recorded whole");
                    let mut entry_left_out = usize::MAX;
                    for (index, entry) in tick.entries().enumerate() {
                        let is_message = matches!(entry, Ok(Entry::Message(_)));
                        if is_message && count == number {
                            entry_left_out = index;
                            left_out = Some(LeftOut { world, tick: tick.tick });
                        }
                        count += usize::from(is_message);
                    }
                    tick.write_without(entry_left_out, out);
                }
            }));
            true
        });
        (blocks, count, left_out)
    }
}

impl Drop for SimulationRecording {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
