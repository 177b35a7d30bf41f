//! Promise: a recorded world comes again, tick by tick, on any number of threads; where it does not, tick, entity and
//! component are named.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bevy_ecs::prelude::*;
use rand::RngCore;
use throng_metrics::game::counter_name;
use throng_pack::Pack;
use throng_platform::clock::{Clock, ManualClock};
use throng_replication::{ClientInput, SchemaBuilder, StateHash, StateHasher};
use throng_world::{input_log::LoggedTick, prelude::*};

use super::{DoneTick, Extent, OtherGame, ReplayGame, ReplayOptions, ReplayReport, ReplayWatch, WhatDiffers};
use crate::{
    lifecycle::NewWorld,
    recording::{
        Block, FaultKind, FileFault, Group, RecordingControl, RecordingFiles, SegmentFault, SegmentFile, SegmentReader,
        WorldPlan, segments_in,
    },
    report::Build,
    server::Server,
    settings::Settings,
    testing::{TestKind, environment},
};

#[derive(Component, Pack, Clone, Copy)]
#[pack(name = "test.count")]
struct Count(u32);

impl ClientInput for Count {}

#[derive(Component, Pack, Clone, Copy)]
#[pack(name = "test.luck")]
struct Luck(u32);

impl StateHash for Count {
    fn hash_state(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.0.into());
    }
}

impl StateHash for Luck {
    fn hash_state(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.0.into());
    }
}

/// What a later build has, too.
#[derive(Component, Pack, Clone, Copy)]
#[pack(name = "test.mark")]
struct Mark;

impl StateHash for Mark {
    fn hash_state(&self, _: &mut StateHasher) {}
}

/// What another run does in another way, from this tick on.
#[derive(Resource, Clone)]
struct Plant(Arc<AtomicU32>);

/// What the game has drawn from its server, and puts into each world.
#[derive(Resource)]
struct Run(u64);

fn count(mut counts: Query<&mut Count>) {
    throng_metrics::count!("dice.counted", counts.iter().count());
    counts.iter_mut().for_each(|mut count| count.0 += 1);
}

fn draw(
    tick: Res<TickInfo>,
    (plant, run): (Res<Plant>, Res<Run>),
    mut rng: ResMut<WorldRng>,
    mut all: Query<(&Count, &mut Luck)>,
) {
    for (index, (count, mut luck)) in all.iter_mut().enumerate() {
        luck.0 = luck.0.wrapping_add(count.0 ^ rng.0.next_u32() ^ run.0 as u32);
        if index == 1 && tick.tick == plant.0.load(Ordering::Relaxed) {
            luck.0 ^= 1;
        }
    }
}

/// Says something to the next world now and then, who counts it.
fn tell(tick: Res<TickInfo>, mut outbox: ResMut<Outbox>, messages: Res<WorldMessages>, mut counts: Query<&mut Count>) {
    if tick.tick.is_multiple_of(7) {
        let to = WorldId::new(1 - tick.world.index() as u32, 0);
        outbox.post(tick.world, to, &tick.world).unwrap();
    }
    for _ in &messages.0 {
        counts.iter_mut().take(1).for_each(|mut count| count.0 += 1_000);
    }
}

const NEVER: u32 = u32::MAX;

/// Worlds of one rate tick in every third frame.
const FRAMES_PER_TICK: u64 = 3;

fn kind(plant: &Arc<AtomicU32>, keeps_checkpoints: bool, run: u64) -> impl WorldKind + use<> {
    let plant = Plant(plant.clone());
    TestKind::new("dice", Hertz(20), move |world| {
        world.hash::<Count>().hash::<Luck>();
        if keeps_checkpoints {
            world.checkpoint::<Count>().checkpoint::<Luck>().transient::<Plant>().transient::<Run>();
        }
        world.insert_resource(plant.clone()).insert_resource(Run(run));
        (0..3).for_each(|at| _ = world.world_mut().spawn((Count(at), Luck(0))));
        world.add_systems(throng_world::bevy_app::Update, (count, draw, tell).chain());
    })
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Self(std::env::temp_dir().join(format!("throng-replay-{name}-{}", std::process::id())));
        let _ = fs::remove_dir_all(&folder.0);
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn settings(folder: &Path) -> Settings {
    let mut settings = Settings::default();
    settings.recording.folder = Some(folder.to_owned());
    settings.recording.segment_s = 1;
    settings.recording.hash_period_s = 0;
    settings.server.checkpoint_period_s = 1;
    settings
}

/// A server without kinds of worlds.
fn empty_server(settings: &Settings) -> (Server, ManualClock) {
    let clock = ManualClock::new();
    let environment = environment(Arc::new(clock.clone()));
    let mut server = Server::with_environment(settings, SchemaBuilder::new().build(), environment);
    server.set_game("dice");
    (server, clock)
}

fn server(settings: &Settings, plant: &Arc<AtomicU32>, keeps_checkpoints: bool) -> (Server, ManualClock) {
    let (mut server, clock) = empty_server(settings);
    let run = server.draw_seed();
    server.add_kind(kind(plant, keeps_checkpoints, run)).unwrap();
    (server, clock)
}

/// The game that was recorded there.
fn game(recording: &Path, plant: u32) -> ReplayGame {
    let about = RecordingFiles::open(recording).map(|recording| recording.about().clone()).unwrap_or_default();
    let mut server = Server::for_replay(&Settings::default(), SchemaBuilder::new().build(), &about);
    server.set_game("dice");
    let run = server.draw_seed();
    server.add_kind(kind(&Arc::new(AtomicU32::new(plant)), true, run)).unwrap();
    server.into_replay()
}

/// Two worlds that talk to each other, for so many ticks, each of which takes so long.
fn record(name: &str, ticks: u64, real: Duration, keeps_checkpoints: bool) -> Folder {
    record_by(Build::default(), name, ticks, real, keeps_checkpoints)
}

/// The same by a server of this build.
fn record_by(build: Build, name: &str, ticks: u64, real: Duration, keeps_checkpoints: bool) -> Folder {
    let folder = Folder::new(name);
    let (mut server, clock) = server(&settings(&folder.0), &Arc::new(AtomicU32::new(NEVER)), keeps_checkpoints);
    server.set_build(build);
    run_two_worlds(&mut server, &clock, ticks, real);
    folder
}

/// Makes two worlds of the only kind, runs them for so many ticks, and ends the recording.
fn run_two_worlds(server: &mut Server, clock: &ManualClock, ticks: u64, real: Duration) {
    for seed in [5, 6] {
        server.create_world_as(NewWorld::new(WorldKindId(0), seed)).unwrap();
    }
    server.prepare(clock.now()).unwrap();
    for frame in 0..ticks * FRAMES_PER_TICK {
        clock.set(server.start_of_frame(frame));
        server.frame(frame);
        std::thread::sleep(real / FRAMES_PER_TICK as u32);
    }
    server.end_recording();
}

/// What somebody hears who watches a replay of the game that was recorded there.
fn watched(folder: &Path) -> Heard {
    let mut heard = Heard::default();
    let recording = RecordingFiles::open(folder).unwrap();
    game(folder, NEVER).replay_watched(&recording, &ReplayOptions::default(), &mut heard).unwrap();
    heard
}

fn replay(folder: &Path, game: ReplayGame, threads: usize) -> ReplayReport {
    let recording = RecordingFiles::open(folder).unwrap();
    game.replay(&recording, &ReplayOptions { threads, ..ReplayOptions::default() }).unwrap()
}

#[test]
fn recorded_worlds_come_again_on_any_number_of_threads() {
    let folder = record("equal", 200, Duration::ZERO, true);
    let reports = [1, 2, 3].map(|threads| replay(&folder.0, game(&folder.0, NEVER), threads));
    for report in &reports {
        assert!(report.is_equal(), "{report:?}");
        assert_eq!((report.worlds, report.ticks, report.hashes_equal), (2, 400, 400), "{report:?}");
        assert!(report.is_whole(), "{report:?}");
        assert_eq!(report.states, reports[0].states);
    }
}

#[test]
fn a_kind_without_checkpoints_is_replayed_from_its_build() {
    let folder = record("built", 60, Duration::ZERO, false);
    let report = replay(&folder.0, game(&folder.0, NEVER), 2);
    assert!(report.is_equal(), "{report:?}");
    assert_eq!((report.worlds, report.ticks, report.hashes_equal), (2, 120, 120), "{report:?}");
}

/// Promise: what somebody did to a world of such a kind ends its record, and no state with it is held against a replay without it.
#[test]
fn a_kind_without_checkpoints_is_recorded_until_somebody_changes_it() {
    let folder = Folder::new("changed");
    let (mut server, clock) = server(&settings(&folder.0), &Arc::new(AtomicU32::new(NEVER)), false);
    let world = server.create_world_as(NewWorld::new(WorldKindId(0), 5)).unwrap();
    server.prepare(clock.now()).unwrap();
    let control = server.control();
    let mut changes = Vec::new();
    for frame in 0..60 * FRAMES_PER_TICK {
        if frame == 30 * FRAMES_PER_TICK {
            changes.push(control.ask_world(world, &[], |world| _ = world.ecs_mut().spawn((Count(9), Luck(0)))));
        }
        clock.set(server.start_of_frame(frame));
        server.frame(frame);
    }
    server.end_recording();
    let report = replay(&folder.0, game(&folder.0, NEVER), 1);
    assert!(report.is_equal(), "{report:?}");
    assert!((29..=32).contains(&report.ticks) && report.hashes_equal + 1 >= report.ticks, "{report:?}");
}

/// Promise: a recording that begins at a checkpoint has a hash there, if one was due before.
#[test]
fn a_hash_that_was_due_before_the_first_checkpoint_comes_with_it() {
    let folder = Folder::new("due");
    let mut settings = settings(&folder.0);
    (settings.recording.at_start, settings.recording.hash_period_s) = (false, 2);
    settings.server.checkpoint_period_s = 3;
    let (mut server, clock) = server(&settings, &Arc::new(AtomicU32::new(NEVER)), true);
    server.create_world_as(NewWorld::new(WorldKindId(0), 5)).unwrap();
    server.prepare(clock.now()).unwrap();
    let control = server.recording.clone();
    // A hash is due in each second one, and in any stretch of less than three seconds there may be no checkpoint.
    for frame in 0..12 * 20 * FRAMES_PER_TICK {
        if frame == FRAMES_PER_TICK {
            control.start().unwrap();
        }
        clock.set(server.start_of_frame(frame));
        server.frame(frame);
    }
    server.end_recording();
    let first = |wanted: fn(&Block<'_>) -> bool| {
        let mut blocks = 0;
        let mut found = None;
        RecordingFiles::open(&folder.0).unwrap().read(|group| {
            for block in group.blocks().map_while(Result::ok) {
                blocks += 1;
                found = found.or_else(|| wanted(&block).then_some(blocks));
            }
            true
        });
        found.expect("it is there")
    };
    let checkpoint = first(|block| matches!(block, Block::Checkpoint { .. }));
    let hash = first(|block| matches!(block, Block::Hash(_)));
    let ticks = first(|block| matches!(block, Block::Ticks(_)));
    assert!(checkpoint < hash && hash < ticks, "{checkpoint}, {hash}, {ticks}");
}

/// Promise: a gap is told as long as it is: what is lost is all that was not handed over, not only what comes after the loss is noticed.
#[test]
fn a_gap_begins_where_the_recording_ends() {
    let folder = Folder::new("gap");
    let mut settings = settings(&folder.0);
    (settings.recording.segment_s, settings.recording.hash_period_s) = (60, 60);
    let (mut server, clock) = server(&settings, &Arc::new(AtomicU32::new(NEVER)), true);
    server.create_world_as(NewWorld::new(WorldKindId(0), 5)).unwrap();
    server.prepare(clock.now()).unwrap();
    let recording = server.recording.clone();
    let ticks = 200;
    for frame in 0..ticks * FRAMES_PER_TICK {
        if frame == 90 * FRAMES_PER_TICK + 1 {
            // As where a group of parts did not get to the disk.
            recording.queue().unwrap().break_all();
        }
        clock.set(server.start_of_frame(frame));
        server.frame(frame);
    }
    server.end_recording();
    let report = replay(&folder.0, game(&folder.0, NEVER), 1);
    let [gap] = report.gaps[..] else { panic!("{report:?}") };
    let missing = gap.until.unwrap() - gap.after.unwrap();
    assert_eq!((report.ticks + u64::from(missing), report.ticks_skipped), (ticks, 0), "{report:?}");
    assert!(gap.after < Some(90) && gap.until > Some(90), "{gap:?}");
    let heard = watched(&folder.0);
    let [(_, done)] = heard.gaps[..] else { panic!("{:?}", heard.gaps) };
    let [(_, last), (_, next)] = heard.done[done - 1..=done] else { panic!("it goes on: {done}") };
    assert_eq!((Some(last + 1), Some(next)), (gap.after, gap.until), "who watches hears of it between the two ticks");
}

#[test]
fn the_first_difference_names_tick_entity_and_component() {
    let folder = record("planted", 60, Duration::ZERO, true);
    let report = replay(&folder.0, game(&folder.0, 33), 2);
    assert_eq!(report.divergences.len(), 2, "each world has one: {report:?}");
    let divergence = &report.divergences[0];
    assert_eq!((divergence.equal_at, divergence.ticks), (Some(33), 34));
    assert!(!divergence.random_differs);
    assert_eq!(divergence.entities_count, 1);
    let [entity] = &divergence.entities[..] else { panic!("{divergence:?}") };
    assert_eq!(entity.what, WhatDiffers::Value);
    let luck = std::any::type_name::<Luck>();
    assert_eq!((&divergence.components[..], &entity.components[..]), (&[luck.to_owned()][..], &[luck.to_owned()][..]));
    let told = divergence.to_string();
    for part in ["(dice) diverges in tick 33;", luck, &format!("entity {} has another", entity.place)] {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
}

/// Promise: of a build that hashes other components nobody is told which of them differ.
#[test]
fn a_build_with_other_components_names_none() {
    let folder = record("components", 60, Duration::ZERO, true);
    let mut server = Server::for_replay(&Settings::default(), SchemaBuilder::new().build(), &Default::default());
    server.set_game("dice");
    let run = server.draw_seed();
    let more = TestKind::new("dice", Hertz(20), move |world| {
        kind(&Arc::new(AtomicU32::new(33)), true, run).build(world);
        world.hash::<Mark>().checkpoint::<Mark>();
    });
    server.add_kind(more).unwrap();
    let report = replay(&folder.0, server.into_replay(), 1);
    let divergence = &report.divergences[0];
    assert!(divergence.other_components && divergence.components.is_empty(), "{divergence:?}");
    let told = divergence.to_string();
    assert!(told.contains("hashed other components") && !told.contains("Luck"), "{told}");
}

/// Two worlds of 140 ticks each, in three segments or more.
fn record_segments(name: &str) -> (Folder, Vec<SegmentFile>) {
    let folder = record(name, 140, Duration::from_millis(30), true);
    let segments = segments_in(&folder.0).unwrap();
    assert!(segments.len() >= 3, "{segments:?}");
    (folder, segments)
}

#[test]
fn the_extent_counts_what_a_replay_does() {
    let (folder, _) = record_segments("extent");
    let whole = replay(&folder.0, game(&folder.0, NEVER), 1);
    assert!(whole.is_equal() && whole.ticks == 280 && whole.worlds == 2, "{whole:?}");
    let recording = RecordingFiles::open(&folder.0).unwrap();
    let first = Extent::of(&recording, 1_500, u32::MAX);
    assert_eq!((first.worlds, first.ticks_at_first + first.ticks_after), (2, 280));
    assert!(first.ticks_at_first > 0 && first.ticks_after > 0, "{first:?}");
    let begin = Extent::of(&recording, 0, 1_500);
    assert_eq!((begin.ticks_at_first, begin.ticks_after), (0, first.ticks_at_first), "the same groups");
}

#[test]
fn who_watches_a_replay_ends_it_with_a_group() {
    let (folder, _) = record_segments("watcher-ends");
    let recording = RecordingFiles::open(&folder.0).unwrap();
    let mut wants = Wants { ticks: 1, ..Wants::default() };
    game(&folder.0, NEVER).replay_watched(&recording, &ReplayOptions::default(), &mut wants).unwrap();
    assert!((1..280).contains(&wants.done), "it ends with the group: {}", wants.done);
}

/// Promise: what is missing is told, and worlds are picked up from their next checkpoints.
#[test]
fn a_segment_that_is_missing_in_the_middle_is_a_gap() {
    let (folder, segments) = record_segments("middle-missing");
    fs::remove_file(&segments[1].path).unwrap();
    let report = replay(&folder.0, game(&folder.0, NEVER), 2);
    assert!(report.is_equal() && report.ticks < 280, "{report:?}");
    assert!(
        report.ticks_skipped > 0 && report.gaps_count == 2 && report.gaps.len() == 2 && report.worlds == 4,
        "{report:?}"
    );
    assert_eq!(report.faults.iter().map(|fault| &fault.what).collect::<Vec<_>>(), [&FaultKind::Missing { from: 2 }]);
    let extent = Extent::of(&RecordingFiles::open(&folder.0).unwrap(), 0, u32::MAX);
    let of_extent = (extent.ticks_after, extent.ticks_skipped, &extent.faults);
    assert_eq!(
        of_extent,
        (report.ticks, report.ticks_skipped, &report.faults),
        "what has no state before it does not count"
    );
    let heard = watched(&folder.0);
    assert_eq!(heard.gaps.len(), 2, "{:?}", heard.gaps);
    for (world, done) in heard.gaps {
        let of_it = |(at, _): &&(WorldId, u32)| *at == world;
        let (before, after) = heard.done.split_at(done);
        let (last, next) = (before.iter().rfind(of_it).unwrap().1, after.iter().find(of_it).unwrap().1);
        assert!(next > last + 1, "{world}: {last}, {next}");
    }
}

/// Promise: the oldest segments can be dropped, and what is left is all that there is: it has no gap.
#[test]
fn later_segments_can_be_replayed_without_the_earlier_ones() {
    let (folder, segments) = record_segments("first-missing");
    fs::remove_file(&segments[0].path).unwrap();
    let report = replay(&folder.0, game(&folder.0, NEVER), 2);
    assert!(report.is_equal() && report.worlds == 2 && report.gaps.is_empty(), "{report:?}");
    // Where a world is loaded its state is held against the one that was there, too.
    assert!(report.ticks + report.ticks_skipped < 280 && report.hashes_equal >= report.ticks, "{report:?}");
    // What is there begins behind the tick that is to be the last.
    let options = ReplayOptions { to_tick: Some(5), ..ReplayOptions::default() };
    let recording = RecordingFiles::open(&folder.0).unwrap();
    let report = game(&folder.0, NEVER).replay(&recording, &options).unwrap();
    assert_eq!((report.worlds, report.ticks), (0, 0), "{report:?}");
}

/// Promise: a file is that segment alone. In one that began late its checkpoints may be behind all its ticks.
#[test]
fn a_segment_is_replayed_by_itself() {
    let (folder, segments) = record_segments("alone");
    let ticks_in = |path: &Path| Extent::of(&RecordingFiles::open(path).unwrap(), 0, u32::MAX).ticks_after;
    let alone = segments[1..].iter().max_by_key(|segment| ticks_in(&segment.path)).unwrap();
    let report = replay(&alone.path, game(&folder.0, NEVER), 1);
    assert!(report.is_equal() && report.worlds == 2 && report.ticks > 0, "{report:?}");
    assert_eq!(ticks_in(&alone.path), report.ticks);
}

#[test]
fn what_is_before_damage_is_replayed() {
    let folder = record("damage", 80, Duration::from_millis(25), true);
    let path = &segments_in(&folder.0).unwrap()[0].path;
    let good = fs::read(path).unwrap();
    let groups: Vec<Group> = SegmentReader::new(&good).unwrap().map(Result::unwrap).collect();
    let ticks_of = |group: &Group| -> u64 {
        let ticks = group.blocks().map(|block| match block.unwrap() {
            Block::Ticks(ticks) => ticks.read(Hertz(20)).count() as u64,
            _ => 0,
        });
        ticks.sum()
    };
    let damaged = groups.iter().rposition(|group| ticks_of(group) > 0).unwrap();
    let before: u64 = groups[..damaged].iter().map(ticks_of).sum();
    assert!(before > 0, "what is written each second is a group: {}", groups.len());
    let mut bytes = good.clone();
    bytes[groups[damaged].at + 30] ^= 1;
    fs::write(path, &bytes).unwrap();
    // That segment alone: in those behind it worlds are picked up again.
    let report = replay(path, game(&folder.0, NEVER), 1);
    assert!(report.is_equal() && !report.is_whole(), "{report:?}");
    assert_eq!((report.ticks, report.hashes_equal), (before, before), "{report:?}");
    let at = groups[damaged].at;
    let what = FaultKind::Segment(SegmentFault::Damaged { at });
    assert_eq!(report.faults, [FileFault { path: path.clone(), what }]);
    let text = format!("{}: the recording is damaged at byte {at}", path.display());
    assert_eq!(report.faults[0].to_string(), text, "its text begins with the file");
    // What it is of the others say, too.
    fs::write(path, b"throng.toml").unwrap();
    let report = replay(&folder.0, game(&folder.0, NEVER), 1);
    assert!(report.is_equal() && report.ticks > 0, "{report:?}");
    assert_eq!(report.faults[0], FileFault { path: path.clone(), what: SegmentFault::NoRecording.into() });
    let error = RecordingFiles::open(path).unwrap_err().to_string();
    assert!(error.contains("these bytes are no recording"), "{error}");
    // A server that died in its first second has written a heading, and no more.
    fs::write(path, &good[..28]).unwrap();
    let error = RecordingFiles::open(path).unwrap_err().to_string();
    assert!(error.contains("name a segment of an earlier recording"), "{error}");
}

#[test]
fn a_recording_of_another_game_is_refused() {
    let folder = record("other", 20, Duration::ZERO, true);
    let recording = RecordingFiles::open(&folder.0).unwrap();
    let mut other = game(&folder.0, NEVER);
    other.name = "cards".to_owned();
    let error = other.replay(&recording, &ReplayOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "the recording is of dice, and this is cards; name it with --game dice");
}

#[test]
fn a_recording_of_another_schema_is_refused_and_names_the_build_that_wrote_it() {
    let old = Build { version: "0.1.0".to_owned(), commit: "old".to_owned() };
    let folder = record_by(old, "schema", 20, Duration::ZERO, true);
    let recording = RecordingFiles::open(&folder.0).unwrap();
    let mut other = game(&folder.0, NEVER);
    let recorded = other.schema.hash();
    other.schema = SchemaBuilder::new().input::<Count>().build();
    let here = other.schema.hash();
    let refusal = OtherGame::Schema { game: "dice".to_owned(), recorded, here, build: "0.1.0 (old)".to_owned() };
    assert_eq!(other.check(recording.about()), Err(refusal.clone()));
    let error = other.replay(&recording, &ReplayOptions::default()).unwrap_err();
    assert_eq!(error, refusal);
    assert!(error.to_string().ends_with("replay it with the build that wrote it, 0.1.0 (old)"), "{error}");
}

#[test]
fn a_replay_ends_after_the_tick_that_is_wanted() {
    let folder = record("until", 100, Duration::ZERO, true);
    let recording = RecordingFiles::open(&folder.0).unwrap();
    let options = ReplayOptions { to_tick: Some(40), world: Some(WorldId::new(1, 0)), ..ReplayOptions::default() };
    let report = game(&folder.0, NEVER).replay(&recording, &options).unwrap();
    assert_eq!((report.worlds, report.ticks), (1, 41), "{report:?}");
    assert!(report.is_equal());
}

/// Promise: a replay to a tick ends there, however long the recording goes on, and waits for worlds that are made later.
#[test]
fn what_comes_behind_the_wanted_tick_of_all_worlds_is_not_read() {
    const TICKS: u64 = 120;
    let folder = Folder::new("behind");
    let (mut server, clock) = server(&settings(&folder.0), &Arc::new(AtomicU32::new(NEVER)), true);
    server.create_world_as(NewWorld::new(WorldKindId(0), 5)).unwrap();
    server.prepare(clock.now()).unwrap();
    for frame in 0..TICKS * FRAMES_PER_TICK {
        if frame == TICKS / 3 * FRAMES_PER_TICK {
            server.create_world_as(NewWorld::new(WorldKindId(0), 6)).unwrap();
        }
        clock.set(server.start_of_frame(frame));
        server.frame(frame);
        // Groups are written once a second.
        std::thread::sleep(Duration::from_millis(15));
    }
    server.end_recording();
    // Who reads as far as that hears of it.
    let last = segments_in(&folder.0).unwrap().pop().unwrap().path;
    let good = fs::read(&last).unwrap();
    fs::write(&last, &good[..good.len() - 1]).unwrap();
    let recording = RecordingFiles::open(&folder.0).unwrap();
    let game = game(&folder.0, NEVER);
    let to_tick = |to_tick, world: Option<u32>| {
        let world = world.map(|index| WorldId::new(index, 0));
        let options = ReplayOptions { threads: 2, to_tick: Some(to_tick), world, ..ReplayOptions::default() };
        let report = game.replay(&recording, &options).unwrap();
        assert!(report.is_equal(), "{report:?}");
        let watched = game.replay_watched(&recording, &options, &mut Heard::default()).unwrap();
        assert_eq!((watched.ticks, watched.faults.len()), (report.ticks, report.faults.len()));
        (report.worlds, report.ticks, report.faults.len())
    };
    assert_eq!(to_tick(9, None), (2, 20, 0), "the second comes to it when the first is far beyond");
    assert_eq!(to_tick(9, Some(0)), (1, 10, 0));
    let (worlds, ticks, faults) = to_tick(TICKS as u32, None);
    assert!(worlds == 2 && ticks > TICKS && faults == 1, "nobody comes to it: {ticks} ticks");
}

/// Promise: of another build inputs are replayed to the end; states that differ are found and are no failure of it.
#[test]
fn a_recording_of_another_build_is_replayed_and_said_to_be_one() {
    let old = Build { version: "0.1.0".to_owned(), commit: "old".to_owned() };
    let folder = record_by(old, "build", 60, Duration::ZERO, true);
    let of_build = |commit: &str, plant| {
        let mut game = game(&folder.0, plant);
        (game.version, game.commit) = ("0.1.0".to_owned(), commit.to_owned());
        replay(&folder.0, game, 2)
    };
    let own = of_build("old", NEVER);
    assert!(own.is_equal() && !own.is_other_build && own.hashes_equal == 120, "{own:?}");
    let later = of_build("new", NEVER);
    assert!(later.is_equal() && later.is_other_build && later.hashes_equal == 120, "{later:?}");
    // The later build does something in another way; what comes after it is replayed as well.
    let other = of_build("new", 33);
    assert!(other.is_other_build && !other.is_equal() && other.failures.is_empty(), "{other:?}");
    assert_eq!((other.ticks, other.divergences.len(), other.hashes_equal), (120, 2, 66), "{other:?}");
}

/// The tick of the first world in which its process dies: the last of the recording is written by another thread meanwhile.
const DIES_IN_TICK: u32 = 33;

#[derive(Resource, Clone, Default)]
struct Dying(Arc<Mutex<Option<RecordingControl>>>);

fn die(tick: Res<TickInfo>, dying: Res<Dying>) {
    if (tick.tick, tick.world) == (DIES_IN_TICK, WorldId::new(0, 0))
        && let Some(recording) = dying.0.lock().unwrap().take()
    {
        let written = std::thread::spawn(move || recording.write_last(Duration::from_secs(5))).join();
        assert!(written.unwrap(), "nobody has its locks for long");
    }
}

fn mortal(dying: &Dying) -> impl WorldKind + use<> {
    let dying = dying.clone();
    TestKind::new("dice", Hertz(20), move |world| {
        world.hash::<Count>().checkpoint::<Count>().transient::<Dying>();
        world.insert_resource(dying.clone());
        (0..3).for_each(|at| _ = world.world_mut().spawn(Count(at)));
        world.add_systems(throng_world::bevy_app::Update, (count, die).chain());
    })
}

/// Promise: of a server that dies the recording ends with the tick that it died in, and that tick comes again.
#[test]
fn the_tick_that_a_server_dies_in_is_in_its_recording() {
    let (folder, dying) = (Folder::new("dies"), Dying::default());
    let (mut server, clock) = empty_server(&settings(&folder.0));
    server.add_kind(mortal(&dying)).unwrap();
    *dying.0.lock().unwrap() = Some(server.control().recording().clone());
    run_two_worlds(&mut server, &clock, 60, Duration::ZERO);
    assert!(dying.0.lock().unwrap().is_none(), "it has died");

    let recording = RecordingFiles::open(&folder.0).unwrap();
    let mut again = Server::for_replay(&Settings::default(), SchemaBuilder::new().build(), recording.about());
    again.set_game("dice");
    again.add_kind(mortal(&Dying::default())).unwrap();
    let game = again.into_replay();
    let of_world = |index| {
        let options = ReplayOptions { world: Some(WorldId::new(index, 0)), ..ReplayOptions::default() };
        let report = game.replay(&recording, &options).unwrap();
        assert!(report.is_equal() && report.gaps.is_empty(), "{report:?}");
        (report.ticks, report.hashes_equal)
    };
    // It has a hash of each tick that was over.
    let until_it = u64::from(DIES_IN_TICK);
    assert_eq!(of_world(0), (until_it + 1, until_it));
    let (ticks, equal) = of_world(1);
    assert!((until_it..=until_it + 1).contains(&ticks) && ticks - equal <= 1, "{ticks} ticks, {equal} states");
}

/// Hears all ticks, in their order, and what was counted in each.
#[derive(Default)]
struct Heard {
    begun: Vec<(WorldId, u32)>,
    done: Vec<(WorldId, u32)>,
    counted: u64,
    /// Worlds of which a stretch was missing, and how many ticks were done before that was told.
    gaps: Vec<(WorldId, usize)>,
}

impl ReplayWatch for Heard {
    fn begins(&mut self, world: WorldId, plan: &WorldPlan, tick: &LoggedTick<'_>) {
        assert_eq!((plan.kind.as_str(), plan.rate_hz), ("dice", 20));
        self.begun.push((world, tick.tick));
    }

    fn done(&mut self, tick: &DoneTick<'_>) {
        self.done.push((tick.id, tick.world.ticks() - 1));
        let own = tick.counted.iter().filter(|(counter, _)| counter_name(*counter) == "dice.counted");
        self.counted += own.map(|(_, count)| count).sum::<u64>();
        assert_eq!(tick.world.players_here().count(), 0);
    }

    fn gap(&mut self, world: WorldId) {
        self.gaps.push((world, self.done.len()));
    }

    fn ended(&mut self, _: WorldId) {}
}

#[test]
fn who_watches_a_replay_hears_each_tick_and_changes_nothing() {
    let folder = record("watched", 100, Duration::ZERO, true);
    let recording = RecordingFiles::open(&folder.0).unwrap();
    let mut heard = Heard::default();
    let watched = game(&folder.0, NEVER).replay_watched(&recording, &ReplayOptions::default(), &mut heard).unwrap();
    assert!(watched.is_equal(), "{watched:?}");
    assert_eq!(watched.states, replay(&folder.0, game(&folder.0, NEVER), 2).states);
    assert_eq!((heard.begun.len(), &heard.begun), (200, &heard.done));
    assert_eq!(heard.counted, 200 * 3, "three dice in each tick");
    let of_one: Vec<u32> = heard.done.iter().filter(|(world, _)| world.index() == 1).map(|(_, tick)| *tick).collect();
    assert_eq!(of_one, (0..100).collect::<Vec<_>>());
}

/// Counts ticks up to so many, then wants no more; and hears what fails and what is hashed.
#[derive(Default)]
struct Wants {
    ticks: usize,
    done: usize,
    failed: Vec<String>,
    hashes: usize,
}

impl ReplayWatch for Wants {
    fn begins(&mut self, _: WorldId, _: &WorldPlan, _: &LoggedTick<'_>) {}

    fn done(&mut self, _: &DoneTick<'_>) {
        self.done += 1;
    }

    fn ended(&mut self, _: WorldId) {}

    fn failed(&mut self, _: WorldId, why: &str) {
        self.failed.push(why.to_owned());
    }

    fn hashed(&mut self, _: WorldId, _: u64) {
        self.hashes += 1;
    }

    fn is_over(&self) -> bool {
        self.done >= self.ticks
    }
}

#[test]
fn who_watches_a_replay_hears_what_fails_and_what_is_hashed() {
    let folder = record("heard", 20, Duration::ZERO, true);
    let recording = RecordingFiles::open(&folder.0).unwrap();
    let mut wants = Wants { ticks: usize::MAX, ..Wants::default() };
    game(&folder.0, NEVER).replay_watched(&recording, &ReplayOptions::default(), &mut wants).unwrap();
    assert_eq!((wants.done, wants.hashes, &wants.failed[..]), (40, 40, &[][..]));
    let mut without = Server::for_replay(&Settings::default(), SchemaBuilder::new().build(), recording.about());
    without.set_game("dice");
    let report = without.into_replay().replay_watched(&recording, &ReplayOptions::default(), &mut wants).unwrap();
    assert_eq!((report.failures.len(), wants.done), (wants.failed.len(), 40), "{report:?}");
    assert_eq!(wants.failed[0], "this build knows no kind of worlds `dice`");
}

/// Where a game's code panics in a replay, as it did not when it was recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    Never,
    Hashed,
    Dropped,
}

#[derive(Component)]
struct Brittle(Breaks);

impl StateHash for Brittle {
    fn hash_state(&self, _: &mut StateHasher) {
        assert!(self.0 != Breaks::Hashed, "its hash cannot be taken");
    }
}

impl Drop for Brittle {
    fn drop(&mut self) {
        assert!(self.0 != Breaks::Dropped, "it cannot be dropped");
    }
}

fn brittle(breaks: Breaks) -> impl WorldKind + use<> {
    TestKind::new("dice", Hertz(20), move |world| {
        world.hash::<Brittle>();
        // Of two worlds one breaks.
        let breaks = if world.id().index() == 0 { breaks } else { Breaks::Never };
        world.world_mut().spawn(Brittle(breaks));
    })
}

/// Promise: whatever a game's code panics on, its world is named, and the others are replayed.
#[test]
fn a_world_that_panics_while_it_is_hashed_or_dropped_is_named() {
    let folder = Folder::new("brittle");
    let (mut server, clock) = empty_server(&settings(&folder.0));
    server.add_kind(brittle(Breaks::Never)).unwrap();
    run_two_worlds(&mut server, &clock, 20, Duration::ZERO);
    let recording = RecordingFiles::open(&folder.0).unwrap();
    for (breaks, ticks, skipped) in [(Breaks::Hashed, 21, 19), (Breaks::Dropped, 40, 0)] {
        let mut again = Server::for_replay(&Settings::default(), SchemaBuilder::new().build(), recording.about());
        again.set_game("dice");
        again.add_kind(brittle(breaks)).unwrap();
        let report = again.into_replay().replay(&recording, &ReplayOptions::default()).unwrap();
        let [(world, why)] = &report.failures[..] else { panic!("{report:?}") };
        assert_eq!((world.index(), report.ticks, report.ticks_skipped), (0, ticks, skipped), "{report:?}");
        assert!(why.starts_with("it panicked while it was "), "{why}");
    }
}
