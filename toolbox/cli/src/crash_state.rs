//! What a crash report is told about a server: which thread had which scopes open, in which world and tick, and the
//! last seconds' capture.
//!
//! All of it is in the recorder already; here it is read. Runs on the thread of the crash reports' state writer, 4
//! times a second and at the end, when the crashed thread may hold a lock for ever: what is known from an earlier time
//! is not asked for again.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

use throng::{Server, watchdog::StackSource};
use throng_crash::{
    self as crash, CrashGuard, CrashSettings, CrashSite, LiveStacks, ProcessState, StateSource, ThreadState, WorldState,
};
use throng_platform::{allocator::hand_memory_back, threads::this_thread_id};
use throng_profiler::{
    RecorderControl, SiteId, site,
    thread::{self, ThreadCells},
};

use crate::executable::Executable;

/// The name of the capture beside a report.
const CAPTURE_FILE: &str = "last.capture";

/// What the recorder knows.
pub struct RecorderSource {
    /// Without one there is no capture, and nobody knows of scopes.
    recorder: Option<RecorderControl>,
    /// By id; worlds that are made later have an id and no more.
    worlds: HashMap<u32, WorldFacts>,
    facts: BTreeMap<String, String>,
    threads: Vec<&'static ThreadCells>,
    sites: HashMap<SiteId, &'static str>,
}

/// What does not change about a world.
#[derive(Clone, Debug)]
pub struct WorldFacts {
    pub kind: String,
    pub seed: Option<u64>,
}

/// From now on a death of this server is reported in `folder`, until the guard is dropped.
pub fn install(
    folder: &Path,
    server: &Server,
    executable: Executable,
) -> Result<CrashGuard, Box<dyn std::error::Error>> {
    let facts = |kind: &str, seed| WorldFacts { kind: kind.to_owned(), seed: Some(seed) };
    let worlds = server.worlds().map(|(id, kind, seed)| (id.number(), facts(kind, seed))).collect();
    let settings = CrashSettings::new(folder, executable.full_name(), server.game())?;
    Ok(crash::install(settings, RecorderSource::new(server.recorder_control(), worlds, BTreeMap::new()))?)
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
        recorder: Option<RecorderControl>,
        worlds: HashMap<u32, WorldFacts>,
        facts: BTreeMap<String, String>,
    ) -> Self {
        Self { recorder, worlds, facts, threads: Vec::new(), sites: HashMap::new() }
    }

    fn thread_state(&mut self, cells: &'static ThreadCells) -> ThreadState {
        let inputs = cells.last_inputs();
        let world = cells.world().map(|(id, tick)| {
            let facts = self.worlds.get(&id);
            WorldState {
                id,
                kind: facts.map(|facts| facts.kind.clone()),
                tick: Some(u64::from(tick)),
                seed: facts.and_then(|facts| facts.seed),
                last_inputs: inputs.iter().map(|(client, number)| format!("client {client}, input {number}")).collect(),
            }
        });
        ThreadState {
            tid: cells.tid(),
            name: cells.name().to_owned(),
            class: cells.class().name().to_owned(),
            world,
            open_scopes: cells.open_scopes().map(|(id, _)| self.site_name(id).to_owned()).collect(),
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
        let living = self.threads.iter().copied().filter(|cells| cells.is_alive()).collect::<Vec<_>>();
        ProcessState {
            facts: self.facts.clone(),
            threads: living.into_iter().map(|cells| self.thread_state(cells)).collect(),
            ..ProcessState::default()
        }
    }

    fn attach(&mut self, site: &CrashSite, folder: &Path) {
        let culprit = self.threads.iter().find(|cells| cells.tid() == site.tid);
        let world = culprit.and_then(|cells| cells.world()).map(|(id, _)| id);
        let unfinished = folder.join("last.unfinished");
        // A death without its capture is still a death with a report.
        if self.recorder.as_ref().is_some_and(|recorder| recorder.save_crash(&unfinished, world).is_ok()) {
            let _ = fs::rename(unfinished, folder.join(CAPTURE_FILE));
        }
    }
}
