//! The promise: what is on its way to the disk is the newest of each record, is written under the right that it was cut under,
//! and a store that stands still is known to.

mod ends;
mod log_ins;

use std::{
    collections::BTreeSet,
    io,
    ops::RangeInclusive,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use bevy_ecs::prelude::*;
use throng_net::protocol::ClientId;
use throng_persistence::{
    Commit, Done, Embedded, Key, Lease, LeaseRequest, Outcome, Reads, Refusal, Saved, Store, StoreError, Ticket,
    Writer, WriterSettings,
    commit::{Order, Request},
    disk::MemoryDisk,
    refused_keys::RefusedKeys,
    store::{Balances, Each},
    writer::Full,
};
use throng_platform::{
    allocator::{CountingAllocator, thread_counts},
    clock::{Clock, ManualClock},
    ticks,
    time::Nanos,
};
use throng_profiler::log::{CategoryFilter, Lines, lines_between};
use throng_replication::SchemaBuilder;
use throng_scheduler::{Hertz, LongTaskPool};
use throng_world::{
    ids::{WorldId, WorldKindId},
    saving::WorldState,
    transfer::Transfer,
    world_builder::WorldBuilder,
    world_kind::WorldKind,
};
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

use super::{
    commits::{Answered, Commits, Parcel, Undone},
    held_lease::LeaseTerms,
    players::{LogIn, Players},
    reader::{PlayerReader, Reader},
    record,
};
use crate::{
    lifecycle::{NewWorld, Pending, WorldError},
    server::Server,
    settings::Settings,
    testing::{self, SleptClock, TestKind},
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const QUEUE_BYTES_MAX: usize = 150_000;

/// A real store in memory that does each batch when it is told to, and fails where it is told so.
struct Told {
    store: Embedded,
    tell: Receiver<Result<(), StoreError>>,
}

impl Store for Told {
    fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        // Nobody tells any more: the test is over.
        self.tell.recv().unwrap_or(Ok(()))?;
        self.store.apply(orders, refused)
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        self.store.settle()
    }

    fn reader(&self) -> Arc<dyn Reads> {
        self.store.reader()
    }
}

struct Scene {
    commits: Commits,
    teller: Sender<Result<(), StoreError>>,
    reads: Arc<dyn Reads>,
}

impl Scene {
    fn new() -> Scene {
        let (teller, tell) = channel();
        let store = Embedded::on(Box::new(MemoryDisk::default())).unwrap();
        let settings =
            WriterSettings { gather: Nanos::ZERO, queue_bytes_max: QUEUE_BYTES_MAX, ..WriterSettings::default() };
        let writer = Writer::start(Box::new(Told { store, tell }), settings).unwrap();
        Scene { reads: writer.reads(), commits: Commits::new(writer), teller }
    }

    fn add(&mut self, key: Key, value: &[u8]) {
        let mut commit = Commit::new();
        commit.put_bytes(key, value.to_vec());
        self.commits.add(Parcel::of_cut(HUB, commit, Vec::new(), None));
    }

    /// A cut has this player under this lease.
    fn add_player(&mut self, lease: &Lease, has: &Transfer) {
        let mut commit = Commit::new();
        commit.put_bytes(lease.key, record::of_player(None, has)).under(lease);
        self.commits.add(Parcel::of_cut(HUB, commit, Vec::new(), None));
    }

    /// A process takes a player; none before has prolonged its lease.
    fn take(&mut self, player: u64, owner: u64, now_ms: u64) -> Lease {
        let take = LeaseRequest::Take { key: Key::player(player), owner, now_ms, for_ms: 1_000 };
        // A store that has failed is up again a moment after it has said so.
        while !self.commits.lease(take, Nanos::ZERO) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.teller.send(Ok(())).unwrap();
        match self.answer() {
            Answered::Lease { outcome: Ok(Done::Leased(lease)), .. } => lease,
            _ => panic!("it was free"),
        }
    }

    fn answer(&mut self) -> Answered {
        let began = Instant::now();
        loop {
            if let Some(answer) = self.commits.take_answer() {
                return answer;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "no answer");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Its answer comes before the store is up again.
    fn submit(&mut self) {
        let began = Instant::now();
        self.commits.submit(Nanos::ZERO);
        while self.commits.full == Some(Full::Down) {
            assert!(began.elapsed() < Duration::from_secs(20), "it stays down");
            std::thread::sleep(Duration::from_millis(1));
            self.commits.submit(Nanos::ZERO);
        }
    }

    fn value(&self, key: Key) -> Option<Vec<u8>> {
        self.reads.get(key).unwrap().map(|saved| saved.value)
    }
}

#[test]
fn a_store_that_stands_still_is_away_though_it_has_not_failed() {
    let mut scene = Scene::new();
    let world = Key::world(1);
    let at = |ms| Nanos::from_secs(100) + Nanos::from_millis(ms);
    scene.add(world, b"one");
    scene.commits.submit(at(0));
    assert_eq!([0, 1_999, 2_000].map(|ms| scene.commits.is_away(at(ms))), [false, false, true]);
    // What comes later does not make it younger.
    scene.add(world, b"two");
    scene.commits.submit(at(1_900));
    assert!(scene.commits.is_away(at(2_000)) && scene.commits.full.is_none());
    // This process stood still itself, and the store cannot have answered meanwhile.
    scene.commits.stood_still(Nanos::from_secs(1));
    assert_eq!([2_999, 3_000].map(|ms| scene.commits.is_away(at(ms))), [false, true]);

    scene.teller.send(Ok(())).unwrap();
    assert!(matches!(scene.answer(), Answered::Saved(_)));
    assert!(!scene.commits.is_away(at(4_899)), "the younger one counts now");
    assert!(scene.commits.is_away(at(4_900)));
    scene.teller.send(Ok(())).unwrap();
    assert!(matches!(scene.answer(), Answered::Saved(_)));
    assert!(!scene.commits.is_away(at(60_000)), "nothing is waited for");
    assert_eq!(scene.value(world).as_deref(), Some(&b"two"[..]));
}

/// Frames with nothing new while the disk is away, and many records wait.
#[test]
fn what_waits_for_a_disk_costs_frames_no_allocation() {
    let mut scene = Scene::new();
    scene.add(Key::world(0), b"the one that fails");
    scene.commits.submit(Nanos::ZERO);
    scene.teller.send(Err(StoreError::DiskFull)).unwrap();
    assert!(matches!(scene.answer(), Answered::Refused(Refusal::Store(_))));
    // It is opened anew and hangs in the next one, which is as much as may wait.
    scene.add(Key::world(0), &[7; 100_000]);
    scene.submit();
    (1..1_000).for_each(|world| scene.add(Key::world(world), &[7; 100]));
    let mut of_frame = || {
        let before = thread_counts();
        scene.commits.submit(Nanos::ZERO);
        assert!(scene.commits.take_answer().is_none());
        assert!(matches!(scene.commits.full, Some(Full::Bytes { .. })), "{:?}", scene.commits.full);
        (thread_counts() - before).allocations
    };
    assert_eq!([(); 3].map(|()| of_frame()), [0; 3]);
}

const ADA: ClientId = ClientId(1);
/// Where she is.
const HUB: WorldId = WorldId::new(0, 0);

fn purse(coins: u32) -> Transfer {
    Transfer::of(&Purse { coins }).unwrap()
}

#[derive(Debug, PartialEq, throng_pack::Pack)]
#[pack(name = "test.purse")]
struct Purse {
    coins: u32,
}

/// The players of a process, number 1, on the scene's store.
struct Process {
    players: Players,
    reader: PlayerReader,
    now: Nanos,
}

impl Process {
    fn new(scene: &Scene) -> Process {
        Process::reading(scene.reads.clone())
    }

    fn reading(reads: Arc<dyn Reads>) -> Process {
        let players = Players::new(LeaseTerms { owner: 1, length: Nanos::from_secs(1) }, reads);
        Process { players, reader: Reader::inline(Nanos::from_secs(1)), now: Nanos::from_secs(1) }
    }

    /// Logs her in, and says what was loaded of her.
    fn log_in(&mut self, scene: &mut Scene, unix_ms: u64) -> Option<Transfer> {
        for _ in 0..2 {
            assert_eq!(self.players.log_in(ADA, self.now), LogIn::Wait);
            self.players.step(self.now, unix_ms, &mut scene.commits, &mut self.reader);
            scene.teller.send(Ok(())).unwrap();
            match scene.answer() {
                Answered::Lease { key, is_release, outcome } => {
                    let Scene { commits, .. } = scene;
                    self.players.take_answer(key.id as u64, is_release, outcome, self.now, commits, &mut self.reader);
                }
                _ => continue,
            }
            self.players.step(self.now, unix_ms, &mut scene.commits, &mut self.reader);
            assert!(matches!(self.players.log_in(ADA, self.now), LogIn::Ready { .. }));
            return self.players.take_loaded(ADA);
        }
        panic!("no answer about her lease");
    }
}

/// Her lease is over by the answer to its prolonging, while what this process has of her is still on its way; she logs in
/// again, and the lease is this process's once more.
#[test]
fn what_was_on_its_way_when_a_lease_was_lost_is_neither_loaded_nor_written() {
    let mut scene = Scene::new();
    let mut process = Process::new(&scene);
    assert_eq!(process.log_in(&mut scene, 0), None, "she is new");
    let ours = process.players.lease(ADA.0).unwrap();
    let theirs = scene.take(ADA.0, 2, 1_000);
    scene.add_player(&theirs, &purse(70));
    scene.commits.submit(process.now);
    scene.teller.send(Ok(())).unwrap();
    assert!(matches!(scene.answer(), Answered::Saved(_)));

    scene.add_player(&ours, &purse(100));
    scene.commits.submit(process.now);
    scene.add_player(&ours, &purse(101));
    let lost = Err(Refusal::Stale { key: Key::player(ADA.0), ours: ours.fence, newest: theirs.fence });
    let Process { players, reader, now } = &mut process;
    players.take_answer(ADA.0, false, lost, *now, &mut scene.commits, reader);
    assert_eq!(players.take_lost(), [ADA], "she is sent away");
    let undone = scene.commits.undo(BTreeSet::from([Key::player(ADA.0)]));
    assert_eq!(
        undone,
        Undone { worlds: BTreeSet::from([HUB]), numbers: BTreeSet::new(), players: BTreeSet::from([ADA]) }
    );
    assert!(scene.commits.newest(Key::player(ADA.0)).is_none(), "what is on its way is older than what there is");

    // The store says of the commit in flight what there is to say.
    scene.teller.send(Ok(())).unwrap();
    assert!(matches!(scene.answer(), Answered::Refused(Refusal::Stale { .. })));
    assert_eq!(process.log_in(&mut scene, 9_000), Some(purse(70)));
    scene.commits.submit(process.now);
    assert_eq!(scene.value(Key::player(ADA.0)), Some(record::of_player(None, &purse(70))));
}

/// The same when nobody has said yet that the lease was lost: it is the older one that the cut counts under.
#[test]
fn a_cut_is_written_under_the_lease_that_it_was_taken_under() {
    let mut scene = Scene::new();
    let first = scene.take(ADA.0, 1, 0);
    scene.add_player(&first, &purse(100));
    scene.commits.submit(Nanos::ZERO);
    scene.teller.send(Err(StoreError::DiskFull)).unwrap();
    assert!(matches!(scene.answer(), Answered::Refused(Refusal::Store(_))));
    // While it waits to be handed in again another process has her, and then this one.
    let theirs = scene.take(ADA.0, 2, 1_000);
    let again = scene.take(ADA.0, 1, 2_000);
    assert_eq!([first.fence, theirs.fence, again.fence], [1, 2, 3]);
    scene.submit();
    scene.teller.send(Ok(())).unwrap();
    assert!(matches!(scene.answer(), Answered::Refused(Refusal::Stale { ours: 1, newest: 3, .. })));
    assert_eq!(scene.value(Key::player(ADA.0)), None);
}

/// A store of which nothing can be read while that is set: the connection for it is dead, and it writes as ever.
struct Deaf {
    store: Embedded,
    is_deaf: Arc<AtomicBool>,
}

struct DeafReads {
    reads: Arc<dyn Reads>,
    is_deaf: Arc<AtomicBool>,
}

impl Store for Deaf {
    fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        self.store.apply(orders, refused)
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        self.store.settle()
    }

    fn reader(&self) -> Arc<dyn Reads> {
        Arc::new(DeafReads { reads: self.store.reader(), is_deaf: self.is_deaf.clone() })
    }
}

impl Reads for DeafReads {
    fn get(&self, key: Key) -> Result<Option<Saved>, StoreError> {
        if self.is_deaf.load(Ordering::SeqCst) {
            return Err(StoreError::Io { kind: io::ErrorKind::NotConnected, text: "it is gone".into() });
        }
        self.reads.get(key)
    }

    fn range(&self, keys: RangeInclusive<Key>, each: Each<'_>) -> Result<(), StoreError> {
        self.reads.range(keys, each)
    }

    fn visit(&self, each: Each<'_>) -> Result<Balances, StoreError> {
        self.reads.visit(each)
    }

    fn damaged(&self) -> u64 {
        self.reads.damaged()
    }
}

#[test]
fn who_logs_in_waits_for_a_store_that_cannot_be_read_now() {
    let mut scene = Scene::new();
    let is_deaf = Arc::new(AtomicBool::new(true));
    let mut process = Process::reading(Arc::new(DeafReads { reads: scene.reads.clone(), is_deaf: is_deaf.clone() }));
    let Process { players, reader, now } = &mut process;
    assert_eq!(players.log_in(ADA, *now), LogIn::Wait);
    players.step(*now, 0, &mut scene.commits, reader);
    scene.teller.send(Ok(())).unwrap();
    let Answered::Lease { key, is_release, outcome } = scene.answer() else { panic!("her lease was asked for") };
    players.take_answer(key.id as u64, is_release, outcome, *now, &mut scene.commits, reader);
    for is_back in [false, false, true] {
        is_deaf.store(!is_back, Ordering::SeqCst);
        *now += Nanos::from_secs(1);
        // One step asks, the next one takes what was read.
        (0..2).for_each(|_| players.step(*now, 0, &mut scene.commits, reader));
        assert_eq!(players.log_in(ADA, *now) == LogIn::Wait, !is_back);
    }
    assert_eq!(
        (players.log_in(ADA, *now), players.records_unreadable),
        (LogIn::Ready { world: None, is_new: true }, 0)
    );
}

struct Nothing;

impl WorldState for Nothing {
    fn save(&self, _: &mut World, _: &[Entity]) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    fn load(&self, _: &mut World, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// A server with one kind of worlds, which are saved, and its frames on a clock of the test's.
struct Host {
    server: Server,
    clock: ManualClock,
    kind: WorldKindId,
    frame: u64,
}

impl Host {
    fn new(store: Box<dyn Store>, kind: impl WorldKind) -> Host {
        let clock = ManualClock::new();
        let environment = testing::environment(Arc::new(SleptClock::new(clock.clone())));
        let server = Server::with_environment(&Settings::default(), SchemaBuilder::new().build(), environment);
        Host::with(server, clock, store, kind)
    }

    /// Worlds are made on so many threads, and what is saved of them is read on threads, too, within 20 s.
    fn with_threads(threads: usize, store: Box<dyn Store>, kind: impl WorldKind) -> Host {
        let clock = ManualClock::new();
        let slept: Arc<dyn Clock> = Arc::new(SleptClock::new(clock.clone()));
        let mut settings = Settings::default();
        settings.saves.load_within_s = 20;
        let pool = LongTaskPool::with_threads(threads, 1_000, slept.clone()).unwrap();
        let schema = SchemaBuilder::new().build();
        let mut server = Server::assemble(&settings, schema, testing::environment(slept), None, pool);
        server.store_to_open.is_inline = false;
        Host::with(server, clock, store, kind)
    }

    fn with(mut server: Server, clock: ManualClock, store: Box<dyn Store>, kind: impl WorldKind) -> Host {
        server.save_in(store).unwrap();
        // A server has a world.
        let empty = server.add_kind(testing::empty()).unwrap();
        server.create_world(empty, 0).unwrap();
        let kind = server.add_kind(kind).unwrap();
        Host { server, clock, kind, frame: 0 }
    }

    fn run(&mut self, frames: u64) {
        if self.frame == 0 {
            self.server.prepare(Nanos::ZERO).unwrap();
        }
        for _ in 0..frames {
            self.clock.set(self.server.start_of_frame(self.frame));
            self.server.frame(self.frame);
            self.frame += 1;
            // Worlds are made on a thread of its own.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Until it is there.
    fn answer<T>(&mut self, pending: &Pending<T>) -> Result<T, WorldError> {
        let began = Instant::now();
        loop {
            if let Some(answer) = pending.try_take() {
                return answer;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "no answer");
            self.run(1);
        }
    }
}

fn kept() -> TestKind<impl Fn(&mut WorldBuilder) + Send + Sync + 'static> {
    TestKind::new("kept", Hertz(20), |world: &mut WorldBuilder| _ = world.save_world(Nothing))
}

fn in_memory() -> Box<dyn Store> {
    Box::new(Embedded::on(Box::new(MemoryDisk::default())).unwrap())
}

#[test]
fn a_world_waits_for_a_store_that_cannot_be_read_now() {
    let is_deaf = Arc::new(AtomicBool::new(true));
    let store = Embedded::on(Box::new(MemoryDisk::default())).unwrap();
    let mut host = Host::new(Box::new(Deaf { store, is_deaf: is_deaf.clone() }), kept());
    let pending = host.server.control().create_world(NewWorld::new(host.kind, 0).saved_as(7));
    host.run(150);
    assert!(pending.try_take().is_none(), "it is neither made nor refused");
    is_deaf.store(false, Ordering::SeqCst);
    host.answer(&pending).unwrap();
}

/// Who comes here stays until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>, Arc<AtomicUsize>);

impl Gate {
    fn stay_if(&self, is_held: bool) {
        if is_held {
            self.stay();
        }
    }

    fn stay(&self) {
        self.1.fetch_add(1, Ordering::SeqCst);
        let (is_open, opened) = &*self.0;
        let _open = opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap();
        self.1.fetch_sub(1, Ordering::SeqCst);
    }

    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn staying(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }
}

/// A store that does not answer who reads this record.
struct Hangs {
    store: Embedded,
    key: Key,
    gate: Gate,
}

/// The reads of a store, before each of which something is done to whoever reads that record.
struct ReadsAfter<F>(Arc<dyn Reads>, F);

impl Store for Hangs {
    fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        self.store.apply(orders, refused)
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        self.store.settle()
    }

    fn reader(&self) -> Arc<dyn Reads> {
        let (key, gate) = (self.key, self.gate.clone());
        Arc::new(ReadsAfter(self.store.reader(), move |read| gate.stay_if(read == key)))
    }
}

impl<F: Fn(Key) + Send + Sync> Reads for ReadsAfter<F> {
    fn get(&self, key: Key) -> Result<Option<Saved>, StoreError> {
        (self.1)(key);
        self.0.get(key)
    }

    fn range(&self, keys: RangeInclusive<Key>, each: Each<'_>) -> Result<(), StoreError> {
        self.0.range(keys, each)
    }

    fn visit(&self, each: Each<'_>) -> Result<Balances, StoreError> {
        self.0.visit(each)
    }

    fn damaged(&self) -> u64 {
        self.0.damaged()
    }
}

fn wait_until(mut is_so: impl FnMut() -> bool, what: &str) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A store that never answers one world's read: others of its kind are made meanwhile, on the one thread that there is for that, saved
/// ones as well; whoever ordered it is told, and may order it again.
#[test]
fn a_world_whose_record_does_not_come_is_not_made_and_costs_no_other() {
    let gate = Gate::default();
    let store = Embedded::on(Box::new(MemoryDisk::default())).unwrap();
    let mut host = Host::with_threads(1, Box::new(Hangs { store, key: Key::world(7), gate: gate.clone() }), kept());
    let begun = ticks::now();
    // One that is alone is never asked for a line that another thread logs first.
    let _beside = tracing_subscriber::registry().set_default();
    let subscriber = tracing_subscriber::registry().with(CategoryFilter).with(Lines::new());
    let _kept_for_the_test = subscriber.set_default();
    let order = |host: &Host, new: NewWorld| host.server.control().create_world(new);
    let seven = NewWorld::new(host.kind, 0).saved_as(7);
    let hung = order(&host, seven.clone());
    wait_until(
        || {
            host.run(1);
            gate.staying() == 1
        },
        "nobody reads it",
    );
    // This process stands still for an hour, and the store with it.
    host.frame += 60 * 3_600;
    host.run(1);
    for new in [NewWorld::new(host.kind, 1), NewWorld::new(host.kind, 2).saved_as(8)] {
        let pending = order(&host, new);
        host.answer(&pending).unwrap();
    }
    assert!(hung.try_take().is_none(), "its time is not over");
    assert!(matches!(host.answer(&order(&host, seven.clone())), Err(WorldError::SaveInUse(7))));

    let error = host.answer(&hung).unwrap_err();
    assert_eq!(error, WorldError::NotRead { kind: "kept".into(), id: 7, within_s: 20 });
    assert_eq!(host.server.count_of("saves.worlds_not_read"), 1);
    let lines = lines_between(begun, ticks::now());
    let told: Vec<_> = lines.iter().map(|line| line.text()).filter(|line| line.contains("could not be made")).collect();
    let [line] = told[..] else { panic!("{told:?}") };
    assert!(line.contains("world=1 ") && line.contains("saved as 7") && line.contains("`kept`"), "{line}");
    let pending = order(&host, NewWorld::new(host.kind, 3).saved_as(9));
    host.answer(&pending).unwrap();
    let worlds = host.server.worlds().count();

    // The answer comes after all, and nobody acts upon it.
    gate.open();
    wait_until(|| gate.staying() == 0, "it is read");
    host.run(60);
    assert_eq!(host.server.worlds().count(), worlds);
    let again = order(&host, seven);
    host.answer(&again).unwrap();
    assert_eq!(host.server.worlds().count(), worlds + 1);
}

/// When no thread that reads comes back, whoever orders a saved world is told so, and the rest is made.
#[test]
fn a_store_that_answers_nobody_keeps_no_world_that_is_not_in_it() {
    let gate = Gate::default();
    let store = Embedded::on(Box::new(MemoryDisk::default())).unwrap();
    let mut host = Host::with_threads(1, Box::new(Hangs { store, key: Key::world(7), gate: gate.clone() }), kept());
    // As if each of them was another world's.
    let Some(saves) = &mut host.server.saves else { panic!("it saves") };
    let reads = saves.reads.clone();
    let load = || super::Load { id: 7, newest: None, reads: reads.clone(), journal: None };
    let asked: Vec<_> = (0..40).map(|_| saves.world_reader.ask(load())).collect();
    wait_until(
        || {
            host.run(60);
            gate.staying() == 16
        },
        "as many threads as may be",
    );
    let saved = host.server.control().create_world(NewWorld::new(host.kind, 1).saved_as(8));
    let other = host.server.control().create_world(NewWorld::new(host.kind, 2));
    host.answer(&other).unwrap();
    assert!(matches!(host.answer(&saved), Err(WorldError::NotRead { id: 8, .. })));
    assert_eq!(gate.staying(), 16);

    let Some(saves) = &mut host.server.saves else { panic!("it saves") };
    assert!(asked.iter().all(|asked| saves.world_reader.give_up(asked)));
    gate.open();
    let saved = host.server.control().create_world(NewWorld::new(host.kind, 1).saved_as(8));
    host.answer(&saved).unwrap();
}

/// What a world takes up of its record costs those of its kind nothing but a thread.
#[test]
fn a_world_that_takes_long_to_load_does_not_keep_others_of_its_kind() {
    struct LoadsLong(Gate);

    impl WorldState for LoadsLong {
        fn save(&self, _: &mut World, _: &[Entity]) -> Result<Vec<u8>, String> {
            Ok(Vec::new())
        }

        fn load(&self, _: &mut World, _: &[u8]) -> Result<(), String> {
            self.0.stay();
            Ok(())
        }
    }

    let gate = Gate::default();
    let of_worlds = gate.clone();
    let mut store = Embedded::on(Box::new(MemoryDisk::default())).unwrap();
    let mut commit = Commit::new();
    commit.put_bytes(Key::world(7), record::of_world("kept", &[]));
    let order = Order { ticket: Ticket(0), seen: Ticket(0), request: Request::Commit(commit) };
    store.apply(&[order], &mut RefusedKeys::default()).unwrap().pop().unwrap().unwrap();
    let build = move |world: &mut WorldBuilder| _ = world.save_world(LoadsLong(of_worlds.clone()));
    let mut host = Host::with_threads(2, Box::new(store), TestKind::new("kept", Hertz(20), build));
    let long = host.server.control().create_world(NewWorld::new(host.kind, 1).saved_as(7));
    wait_until(
        || {
            host.run(1);
            gate.staying() == 1
        },
        "it is loaded",
    );
    let other = host.server.control().create_world(NewWorld::new(host.kind, 2));
    host.answer(&other).unwrap();
    assert!(long.try_take().is_none());
    gate.open();
    host.answer(&long).unwrap();
    assert_eq!(host.server.count_of("saves.worlds_loaded"), 1);
}

/// A world that sleeps, and one that ends, before either has ticked twenty times: neither was what ended the server before.
#[test]
fn a_suspect_that_sleeps_or_ends_in_good_order_is_forgiven() {
    let path = std::env::temp_dir().join(format!("throng-forgiven-{}", std::process::id()));
    let of_seven = || std::fs::read_to_string(&path).unwrap().contains("\n7 ");
    let begin = |kind: TestKind<_>| {
        std::fs::write(&path, "throng: loads of worlds that are saved, 1\n7 1 waits\n").unwrap();
        let mut host = Host::new(in_memory(), kind);
        host.server.journal_loads_in(&path).unwrap();
        let world = host.server.create_world_as(NewWorld::new(host.kind, 0).saved_as(7)).unwrap();
        assert!(of_seven());
        (host, world)
    };
    let (mut host, _) = begin(kept().dormant());
    host.run(20);
    assert!(!of_seven());

    let (mut host, world) = begin(kept());
    host.run(2);
    assert!(of_seven(), "it ticks, and has not ticked enough");
    let ended = host.server.control().retire_world(world);
    host.answer(&ended).unwrap();
    assert!(!of_seven());
    std::fs::remove_file(&path).unwrap();
}
