//! What a crash report is told about a server: which thread had which scopes open, in which world and tick, and the
//! last seconds' capture. And where what enters the worlds is recorded, the last of that is written.
//!
//! All of it is in the recorder already; here it is read. Runs on the thread of the crash reports' state writer, 4
//! times a second and at the end, when the crashed thread may hold a lock for ever: what is known from an earlier time
//! is not asked for again.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use throng::{
    Server,
    ids::WorldId,
    parking::Culprit,
    recording::RecordingControl,
    watchdog::StackSource,
    world_facts::{Ticking, WorldFacts, WorldFollower},
};
use throng_crash::{
    self as crash, CrashGuard, CrashSettings, CrashSite, LiveStacks, ProcessState, StateSource, ThreadState,
    WorldState, culprits,
};
use throng_platform::{allocator::hand_memory_back, threads::this_thread_id};
use throng_profiler::{
    RecorderControl, SiteId, site,
    thread::{self, ThreadCells},
};

use crate::executable::Executable;

/// The name of the capture beside a report.
const CAPTURE_FILE: &str = "last.capture";

/// What recorder and server know.
pub struct RecorderSource {
    /// Without one there is no capture, and nobody knows of scopes. One may come later.
    recorder: Box<dyn Fn() -> Option<RecorderControl> + Send>,
    worlds: Box<dyn WorldsSource>,
    recording: Option<RecordingControl>,
    facts: BTreeMap<String, String>,
    threads: Vec<&'static ThreadCells>,
    sites: HashMap<SiteId, &'static str>,
}

/// Those of a recording, which is replayed.
impl WorldsSource for HashMap<u32, WorldFacts> {
    fn facts(&self, number: u32) -> Option<WorldFacts> {
        self.get(&number).cloned()
    }
}

/// What is known of worlds, by their numbers.
pub trait WorldsSource: Send {
    /// Worlds may have come and gone.
    fn catch_up(&mut self) {}

    fn facts(&self, number: u32) -> Option<WorldFacts>;

    /// The threads that are in ticks.
    fn ticking(&self) -> Vec<Ticking> {
        Vec::new()
    }
}

impl WorldsSource for WorldFollower {
    fn catch_up(&mut self) {
        self.catch_up();
    }

    fn facts(&self, number: u32) -> Option<WorldFacts> {
        self.facts(number).cloned()
    }

    fn ticking(&self) -> Vec<Ticking> {
        self.ticking()
    }
}

/// From now on a death of this server is reported in `folder`, until the guard is dropped. Before its worlds are made.
pub fn install(
    folder: &Path,
    server: &mut Server,
    executable: Executable,
) -> Result<CrashGuard, Box<dyn std::error::Error>> {
    let settings = CrashSettings::new(folder, executable.full_name(), server.game())?;
    let published = server.control().published();
    let recorder = Box::new(move || published.recorder().cloned());
    let source = RecorderSource::new(recorder, Box::new(server.follow_worlds()), BTreeMap::new());
    Ok(crash::install(settings, source.with_recording(server.control().recording().clone()))?)
}

/// How long who has the recording's locks is waited for; a dying server has a second and a half for all that is attached.
const RECORDING_WITHIN: Duration = Duration::from_millis(400);

/// How long a death is held against the world that it came of.
const DEATHS_COUNT_FOR: Duration = Duration::from_secs(24 * 3_600);
/// A server that comes later than this after the death tries that world once more: somebody may have repaired it.
const PARKED_AFTER_DEATH: Duration = Duration::from_secs(600);

/// Worlds that servers of this game died of just now, by the reports in `folder`: how often, in a day.
pub fn culprits(folder: &Path, game: &str) -> Vec<Culprit> {
    let mut culprits: Vec<Culprit> = Vec::new();
    let deaths = culprits::recent(folder, game, DEATHS_COUNT_FOR);
    let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // The newest first, which says what it was called last.
    for death in deaths.into_iter().rev() {
        let is_new = now_unix_s.saturating_sub(death.died_at_unix_s) <= PARKED_AFTER_DEATH.as_secs();
        for world in death.worlds {
            let (Some(kind), Some(seed), Some(plan)) = (world.kind, world.seed, world.plan) else { continue };
            let place = world.keeps_place.then(|| WorldId::from_number(world.id));
            let is_it =
                |it: &&mut Culprit| it.kind == kind && (it.plan == plan || (place.is_some() && it.place == place));
            match culprits.iter_mut().find(is_it) {
                Some(known) => known.deaths += 1,
                None if is_new => culprits.push(Culprit { kind, seed, plan, place, deaths: 1 }),
                None => {}
            }
        }
    }
    culprits
}

/// Stacks for the watchdog, by what reports of deaths are made with.
pub fn stacks() -> Box<dyn StackSource> {
    Box::new(WatchedStacks::default())
}

/// Loaded at the start, so that a stuck world does not wait for it.
#[derive(Default)]
struct WatchedStacks(Option<LiveStacks>);

impl StackSource for WatchedStacks {
    fn prepare(&mut self) {
        // Names are known from the first stack on: its own. If it fails, it fails again when it is needed, and is told.
        let _ = hand_memory_back(|| self.stack_of(this_thread_id()));
    }

    fn stack_of(&mut self, thread_id: u32) -> Result<Vec<String>, String> {
        let stacks = match &mut self.0 {
            Some(stacks) => stacks,
            none => none.insert(LiveStacks::load().map_err(|error| error.to_string())?),
        };
        let frames = stacks.of_thread(thread_id).map_err(|error| error.to_string())?;
        Ok(frames.iter().map(crash::Frame::in_brief).collect())
    }

    fn last_words(&mut self, why: &str, details: &str) {
        crash::last_words::say(why, details);
    }
}

impl RecorderSource {
    pub fn new(
        recorder: Box<dyn Fn() -> Option<RecorderControl> + Send>,
        worlds: Box<dyn WorldsSource>,
        facts: BTreeMap<String, String>,
    ) -> Self {
        Self { recorder, worlds, recording: None, facts, threads: Vec::new(), sites: HashMap::new() }
    }

    /// With a recording, of which the last is written when the server dies.
    pub fn with_recording(self, recording: RecordingControl) -> Self {
        Self { recording: Some(recording), ..self }
    }

    fn thread_state(&mut self, cells: &'static ThreadCells) -> ThreadState {
        let inputs = cells.last_inputs();
        let world = cells.world().map(|(id, tick)| WorldState {
            tick: Some(u64::from(tick)),
            last_inputs: inputs.iter().map(|(client, number)| format!("client {client}, input {number}")).collect(),
            ..self.world_state(id)
        });
        ThreadState {
            tid: cells.tid(),
            name: cells.name().to_owned(),
            class: cells.class().name().to_owned(),
            world,
            open_scopes: cells.open_scopes().map(|(id, _)| self.site_name(id).to_owned()).collect(),
        }
    }

    fn world_state(&self, id: u32) -> WorldState {
        let facts = self.worlds.facts(id);
        WorldState {
            id,
            kind: facts.as_ref().map(|facts| facts.kind.to_string()),
            seed: facts.as_ref().map(|facts| facts.seed),
            plan: facts.as_ref().map(|facts| facts.plan),
            keeps_place: facts.is_some_and(|facts| facts.keeps_place),
            ..WorldState::default()
        }
    }

    /// Adds how long ticks have been running, and threads that the recorder does not know.
    fn add_ticking(&self, threads: &mut Vec<ThreadState>) {
        for Ticking { thread_id, world, ms } in self.worlds.ticking() {
            let known = threads.iter().position(|thread| thread.tid == thread_id).unwrap_or_else(|| {
                threads.push(ThreadState { tid: thread_id, name: "worker".to_owned(), ..ThreadState::default() });
                threads.len() - 1
            });
            let state = threads[known].world.get_or_insert_with(|| self.world_state(world));
            // The two were read one after the other, and the thread has gone on.
            if state.id == world {
                state.ticking_ms = Some(ms);
            }
        }
    }

    fn site_name(&mut self, id: SiteId) -> &'static str {
        let look_up = || site::get(id).map_or("unknown", site::Site::name);
        self.sites.entry(id).or_insert_with(look_up)
    }
}

impl StateSource for RecorderSource {
    fn state(&mut self) -> ProcessState {
        if thread::count() != self.threads.len() {
            self.threads = thread::all();
        }
        self.worlds.catch_up();
        let living = self.threads.iter().copied().filter(|cells| cells.is_alive()).collect::<Vec<_>>();
        let mut threads = living.into_iter().map(|cells| self.thread_state(cells)).collect();
        self.add_ticking(&mut threads);
        ProcessState { facts: self.facts.clone(), threads, ..ProcessState::default() }
    }

    fn attach(&mut self, site: &CrashSite, folder: &Path) {
        // First, since it takes some milliseconds, and a capture may take all that is left.
        if let Some(recording) = &self.recording {
            recording.write_last(RECORDING_WITHIN);
        }
        let culprit = self.threads.iter().find(|cells| cells.tid() == site.tid);
        let world = culprit.and_then(|cells| cells.world()).map(|(id, _)| id);
        let unfinished = folder.join("last.unfinished");
        // A death without its capture is still a death with a report.
        if (self.recorder)().is_some_and(|recorder| recorder.save_crash(&unfinished, world).is_ok()) {
            let _ = fs::rename(unfinished, folder.join(CAPTURE_FILE));
        }
    }
}
