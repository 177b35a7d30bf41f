//! A yard: players walk about it, and each of their inputs says how many casts and paths it costs.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{
    Server,
    prelude::*,
    recording::{Block, Group, RecordingFiles, SegmentHeading},
    replay::ReplayGame,
    settings::Settings,
};
use throng_bots::Behaviour;
use throng_client::Client;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings, Totals};

const HALF_M: f32 = 100.0;
/// At which its worlds tick.
const RATE: Hertz = Hertz(20);
/// How long is played (s).
const SECONDS: f64 = 60.0;
/// After so long somebody looks into the yard and may have changed it, where that is wanted (s).
const CHANGED_AT_S: u32 = 35;
/// In about this tick.
pub const CHANGED_TICK: u32 = CHANGED_AT_S * RATE.0 as u32;

#[derive(Component, Replicate, Pack, Debug, Clone, Copy)]
#[pack(name = "yard.place")]
struct Place {
    #[replicate(min = -HALF_M, max = HALF_M, step = 0.01)]
    x: f32,
    #[replicate(min = -HALF_M, max = HALF_M, step = 0.01)]
    z: f32,
}

impl Placed for Place {
    fn place(&self) -> [f32; 2] {
        [self.x, self.z]
    }
}

#[derive(Pack, Debug, Clone, Copy)]
pub struct Stroll {
    /// Decimetres.
    x: i8,
    z: i8,
    casts: u8,
    paths: u8,
}

impl ClientInput for Stroll {}

/// Stands somewhere else.
#[derive(Pack, Debug, Clone, Copy)]
pub struct Jump {
    x_m: i8,
}

impl ClientRequest for Jump {}

#[derive(Component, Pack)]
#[pack(name = "yard.owner")]
struct Owner(ClientKey);

struct Yard;

impl WorldKind for Yard {
    fn name(&self) -> &str {
        "yard"
    }

    fn tick_rate(&self) -> Hertz {
        RATE
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Place>().input::<Stroll>().request::<Jump>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.checkpoint::<Place>().checkpoint::<Owner>();
        world.placed_by::<Place>().add_systems(Update, (come_and_go, stroll, jump).chain());
    }
}

/// A bench in the yard: people sit on it, and its world rests while nobody says anything.
struct Bench;

impl WorldKind for Bench {
    fn name(&self) -> &str {
        "bench"
    }

    fn tick_rate(&self) -> Hertz {
        RATE
    }

    fn pace(&self) -> Pace {
        Pace::Reactive
    }

    fn protocol(&self) -> Protocol {
        Yard.protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.placed_by::<Place>().add_systems(Update, come_and_go);
    }
}

fn come_and_go(
    arrivals: Res<Arrivals>,
    departures: Res<Departures>,
    mut outbox: ResMut<Outbox>,
    owned: Query<(Entity, &Owner)>,
    mut commands: Commands,
) {
    for arrival in &arrivals.0 {
        let own = commands.spawn((Replicated::default(), Place { x: 0.0, z: 0.0 }, Owner(arrival.client))).id();
        outbox.set_player(arrival.client, own);
    }
    for (own, _) in owned.iter().filter(|(_, owner)| departures.0.contains(&owner.0)) {
        commands.entity(own).despawn();
    }
}

fn stroll(strolls: Inputs<Stroll>, mut places: Query<&mut Place>) {
    for (sender, stroll) in strolls.read() {
        count!("casts", stroll.casts);
        count!("paths", stroll.paths);
        let Some(Ok(mut place)) = sender.entity.map(|own| places.get_mut(own)) else { continue };
        place.x = (place.x + f32::from(stroll.x) / 10.0).clamp(-HALF_M, HALF_M);
        place.z = (place.z + f32::from(stroll.z) / 10.0).clamp(-HALF_M, HALF_M);
    }
}

fn jump(jumps: Requests<Jump>, mut places: Query<&mut Place>) {
    for (sender, jump) in jumps.read() {
        let Some(Ok(mut place)) = sender.entity.map(|own| places.get_mut(own)) else { continue };
        place.x = f32::from(jump.x_m);
    }
}

pub fn schema() -> Arc<Schema> {
    Yard.protocol().schema()
}

/// Of a game in which nobody jumps.
pub fn other_schema() -> Arc<Schema> {
    Protocol::new().component::<Place>().input::<Stroll>().schema()
}

/// How somebody plays.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Times as many casts and paths with each input.
    pub casts: f64,
    pub paths: f64,
    /// Inputs a second, of all who play.
    pub hz: u32,
    /// Around where it walks.
    pub x_m: f32,
}

impl Manner {
    pub const USUAL: Self = Self { casts: 1.0, paths: 1.0, hz: 20, x_m: 0.0 };
}

struct Stroller {
    manner: Manner,
    way: [i8; 2],
}

impl Behaviour for Stroller {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let own = client.own_entity().and_then(|own| client.replicas().get::<Place>(own).copied());
        let Some(own) = own else { return };
        let homeward = [self.manner.x_m - own.x, -own.z].map(|way_m| way_m.clamp(-15.0, 15.0) as i8 / 4);
        if rng.random_bool(0.1) {
            self.way = homeward.map(|way| way + rng.random_range(-3..=3));
        }
        // Of eight throws each, so that there are four casts and one path on average.
        let mut throws = |chance: f64| (0..8).filter(|_| rng.random_bool(chance)).count() as u8;
        let (casts, paths) = (throws(0.5 * self.manner.casts), throws(0.125 * self.manner.paths));
        let [x, z] = self.way;
        let _ = client.send_input(now, &Stroll { x, z, casts, paths });
        if rng.random_bool(0.05) {
            let _ = client.request(&Jump { x_m: (own.x + rng.random_range(-2.0..2.0)) as i8 });
        }
    }
}

/// Says nothing.
struct Sitter;

impl Behaviour for Sitter {
    fn think(&mut self, _: Nanos, _: &mut Client, _: &mut Xoshiro256PlusPlus) {}
}

/// Removed with all that is in it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("throng-likeness-{name}-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder of ours");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A recording of a minute in the yard.
pub struct Recorded {
    pub folder: PathBuf,
    _removed: Folder,
}

impl Recorded {
    pub fn play(seed: u64, players: usize, manner: Manner) -> Self {
        Self::play_with(seed, manner.hz, players, |_| Box::new(Stroller { manner, way: [0, 0] })).0
    }

    /// Each in a manner of its own, all at 20 Hz.
    pub fn play_mixed(seed: u64, players: usize, manner: impl Fn(usize) -> Manner) -> Self {
        Self::play_with(seed, 20, players, |player| Box::new(Stroller { manner: manner(player), way: [0, 0] })).0
    }

    pub fn play_with(
        seed: u64,
        hz: u32,
        players: usize,
        behaviour: impl Fn(usize) -> Box<dyn Behaviour>,
    ) -> (Self, Totals) {
        Self::play_in(Yard, (seed, hz, players), behaviour, |simulation, _| simulation.run_for(SECONDS))
    }

    /// As [`play`](Self::play), with one state of the yard in the recording, from which a replay can go on: after
    /// [`CHANGED_TICK`].
    pub fn play_changed(seed: u64, players: usize, manner: Manner) -> Self {
        let stroller = |_| -> Box<dyn Behaviour> { Box::new(Stroller { manner, way: [0, 0] }) };
        let run = |simulation: &mut Simulation, world: WorldId| {
            simulation.run_for(CHANGED_AT_S.into());
            let asked = simulation.server_mut().control().ask_world(world, &[], |_| ());
            simulation.run_for(SECONDS - f64::from(CHANGED_AT_S));
            assert!(matches!(asked.try_take(), Some(Ok(()))), "somebody was in the world");
        };
        Self::play_in(Yard, (seed, manner.hz, players), stroller, run).0
    }

    /// They sit on a bench and say nothing.
    pub fn sit(seed: u64, players: usize) -> Self {
        let run = |simulation: &mut Simulation, _| simulation.run_for(SECONDS);
        Self::play_in(Bench, (seed, 20, players), |_| Box::new(Sitter), run).0
    }

    fn play_in(
        kind: impl WorldKind,
        (seed, hz, players): (u64, u32, usize),
        behaviour: impl Fn(usize) -> Box<dyn Behaviour>,
        run: impl FnOnce(&mut Simulation, WorldId),
    ) -> (Self, Totals) {
        let removed = Folder::new("played");
        let mut settings = SimulationSettings::new(schema(), seed);
        settings.think_hz = hz;
        settings.server.recording.folder = Some(removed.0.clone());
        let (mut simulation, world) = Simulation::new(&settings, |server| {
            server.set_game("yard");
            let kind = server.add_kind(kind)?;
            server.create_world(kind, seed)
        })
        .expect("it can be built");
        (0..players).for_each(|player| _ = simulation.join(behaviour(player)));
        run(&mut simulation, world);
        let totals = simulation.totals();
        assert_eq!(totals.playing, players as u64, "{totals:?}");
        simulation.end_recording();
        (Self { folder: removed.0.clone(), _removed: removed }, totals)
    }

    /// The same where the parts that begin in these ticks did not come to the disk.
    pub fn without_parts(&self, ticks: &Range<u32>) -> Self {
        self.written_anew(|group| without_parts(group, ticks))
    }

    /// The same where no ticks can be read in the parts that begin in these.
    pub fn with_garbled_ticks(&self, ticks: &Range<u32>) -> Self {
        self.written_anew(|group| {
            group.with_ticks(|_, recorded, out| {
                let is_garbled = recorded.first_tick().is_some_and(|first| ticks.contains(&first));
                out.extend_from_slice(if is_garbled { &[1; 40] } else { recorded.bytes() });
            })
        })
    }

    fn written_anew(&self, blocks_of: impl Fn(&Group) -> Vec<u8>) -> Self {
        let mut blocks = Vec::new();
        let faults = self.open().read(|group| {
            blocks.extend(blocks_of(&group));
            true
        });
        assert_eq!(faults, [], "it was recorded whole");
        let removed = Folder::new("anew");
        let segment = SegmentHeading { number: 1, recording_id: 1 }.seal(&blocks);
        fs::write(removed.0.join("recording-000000000001-000001.throngrec"), segment).expect("a folder of ours");
        Self { folder: removed.0.clone(), _removed: removed }
    }

    pub fn open(&self) -> RecordingFiles {
        RecordingFiles::open(&self.folder).expect("it was recorded")
    }

    pub fn game(&self) -> ReplayGame {
        game(&self.open())
    }

    /// All that is in its files.
    pub fn bytes(&self) -> Vec<Vec<u8>> {
        let read = |path: &Path| fs::read(path).expect("it can be read");
        let segments = throng::recording::segments_in(&self.folder).expect("it was recorded");
        segments.iter().map(|segment| read(&segment.path)).collect()
    }
}

pub fn game(recording: &RecordingFiles) -> ReplayGame {
    game_called("yard", recording)
}

pub fn game_called(name: &str, recording: &RecordingFiles) -> ReplayGame {
    let mut server = Server::for_replay(&Settings::default(), schema(), recording.about());
    server.set_game(name);
    server.add_kind(Yard).expect("there is none of that name");
    server.add_kind(Bench).expect("there is none of that name");
    server.into_replay()
}

/// The blocks of a group without the parts that begin in these ticks.
fn without_parts(group: &Group, ticks: &Range<u32>) -> Vec<u8> {
    let bytes = group.with_ticks(|_, recorded, out| out.extend_from_slice(recorded.bytes()));
    let (mut rest, mut kept, mut part, mut is_lost) = (&bytes[..], Vec::new(), Vec::new(), false);
    for block in group.blocks() {
        match block.expect("it is whole") {
            Block::Ticks(recorded) => is_lost |= recorded.first_tick().is_some_and(|first| ticks.contains(&first)),
            Block::About(_) | Block::World(..) | Block::Part { .. } | Block::Closed { .. } => {
                let whole = std::mem::take(&mut part);
                kept.extend(if std::mem::take(&mut is_lost) { Vec::new() } else { whole });
            }
            _ => {}
        }
        // Its kind, and the length of what follows.
        let length = rest[1..5].try_into().map(u32::from_le_bytes).expect("four bytes");
        let (block, behind) = rest.split_at(5 + length as usize);
        part.extend_from_slice(block);
        rest = behind;
    }
    kept.extend(if is_lost { Vec::new() } else { part });
    kept
}

/// How many ticks of its worlds are written in a group.
pub fn ticks_in(group: &Group) -> u64 {
    let ticks = group.blocks().map(|block| match block.expect("it is whole") {
        Block::Ticks(ticks) => ticks.read(RATE).count() as u64,
        _ => 0,
    });
    ticks.sum()
}
