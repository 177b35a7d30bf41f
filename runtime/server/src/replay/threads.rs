//! Threads: each has worlds of its own, and takes from every group what is theirs.
//!
//! Which thread has a world follows from its id. Nobody waits for another but the reader, which is at most
//! [`GROUPS_WAITING_MAX`] groups ahead of the slowest.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use throng_profiler::{
    Recorder,
    thread::{ThreadClass, register},
};
use throng_world::{game_world::ReplayWorker, ids::WorldId};

use super::{ReplayGame, ReplayOptions, ReplayReport, replayed_worlds::ReplayedWorlds};
use crate::recording::{Group, RecordingFiles};

/// To the flight recorder a group is a frame, which has no budget.
const GROUP_BUDGET_NS: u64 = 3_600_000_000_000;

/// Groups are some megabytes each.
const GROUPS_WAITING_MAX: usize = 4;

pub(super) fn replay(
    game: &ReplayGame,
    recording: &RecordingFiles,
    options: &ReplayOptions,
    tunables: &[Option<usize>],
    mut recorder: Option<&mut Recorder>,
) -> ReplayReport {
    let count = options.threads.clamp(1, 256);
    thread::scope(|scope| {
        let (senders, threads): (Vec<SyncSender<Arc<Group>>>, Vec<_>) = (0..count)
            .map(|number| {
                let (sender, groups) = sync_channel(GROUPS_WAITING_MAX);
                let work = move || run(game, options, tunables, (number, count), &groups);
                (sender, scope.spawn(work))
            })
            .unzip();
        let mut frame = 0;
        let mut pace = options.real_time.then(Pace::default);
        let faults = super::read(recording, options, |group| {
            pace.iter_mut().for_each(|pace| pace.wait_for(group.at_ms));
            frame += 1;
            let group = Arc::new(group);
            if let Some(recorder) = &mut recorder {
                recorder.frame_begin(frame, GROUP_BUDGET_NS);
            }
            let is_taken = senders.iter().all(|sender| sender.send(group.clone()).is_ok());
            if let Some(recorder) = &mut recorder {
                recorder.frame_end();
            }
            is_taken
        });
        drop(senders);
        // What threads still have to do is a frame, too: the last that a capture shows.
        if let Some(recorder) = &mut recorder {
            recorder.frame_begin(frame + 1, GROUP_BUDGET_NS);
        }
        let mut report = ReplayReport { faults, ..ReplayReport::default() };
        for thread in threads {
            report.merge(thread.join().expect("what a game's code does is caught"));
        }
        if let Some(recorder) = &mut recorder {
            recorder.frame_end();
        }
        report
    })
}

fn run(
    game: &ReplayGame,
    options: &ReplayOptions,
    tunables: &[Option<usize>],
    (number, count): (usize, usize),
    groups: &Receiver<Arc<Group>>,
) -> ReplayReport {
    // A world that ends the process here is named in the report of that.
    register(ThreadClass::ShortTask);
    let mut worker = ReplayWorker::new(number);
    worker.tunables = tunables.to_vec();
    let is_ours = |world: WorldId| {
        let thread = (world.index() + world.generation() as usize) % count;
        thread == number && options.world.is_none_or(|wanted| wanted == world)
    };
    let mut worlds = ReplayedWorlds::new(game, worker, options.to_tick);
    for group in groups {
        worlds.take_group(&group, is_ours);
    }
    worlds.finish()
}

/// Time as it was when the recording was made.
#[derive(Default)]
struct Pace {
    /// Now and then.
    began: Option<(Instant, u32)>,
}

impl Pace {
    fn wait_for(&mut self, at_ms: u32) {
        let (began, first_ms) = *self.began.get_or_insert((Instant::now(), at_ms));
        let due = began + Duration::from_millis(at_ms.saturating_sub(first_ms).into());
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}
