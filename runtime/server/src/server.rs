//! The server: what is put together before the first frame, and the loop that runs frames until it is told to stop.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use throng_metrics::game::GameTotals;
use throng_net::{
    protocol::{PrivateKey, ProtocolId, ServerHandshake, ServerHandshakeSettings},
    transport::{ServerTransport, Tunnels, udp::UdpTransport},
};
use throng_platform::{
    clock::{Clock, MonotonicClock},
    cores,
    heartbeat::{Heartbeat, StallLog},
    random,
    steal::{HostRecords, StealRecords},
    time::Nanos,
};
use throng_profiler::{Recorder, RecorderFigures, log_category, log_info, log_warn};
use throng_replication::{InterestSettings, ReplicationRules, Schema};
use throng_scheduler::{Finished, FrameGrid, Hertz, LongTaskPool, Scheduled, ShortTaskPool};
use throng_world::{
    MailItem,
    ids::{WorldId, WorldKindId},
    system_order::OrderError,
    tunable::{Tunable, Tune, TunedValues, as_written},
    world_builder::Kind,
    world_kind::WorldKind,
};

use crate::{
    accounts::Bookkeeper,
    address_table::AddressTable,
    analytics::Analytics,
    browser_counts::BrowserWatch,
    directory::{CaughtDirectory, Directory, Everybody},
    held::HeldWorlds,
    host_rest::HostRest,
    host_watch::HostWatch,
    hosted_world::{HostWorker, HostedWorld},
    lifecycle::{Answer, AskedByWorld, NewWorld, Pending, WorldError},
    long_tasks::{Later, LongTaskControl},
    mailboxes::Mailboxes,
    metrics::{PublishedMetrics, ServerMetrics},
    overload::Overload,
    packet_report::PacketSums,
    parking::{Parking, Which},
    questions::{Asked, HostedCommand, WorldRow},
    recorder_turns::RecorderTurns,
    recording::{About, RecordingControl, RecordingCounter, RecordingError},
    remake::Reloads,
    report::Build,
    saves::{SavedNow, Saves, SavesStatus, StoreOpenError, StoreToOpen},
    seeds::Seeds,
    settings::{ServerSettings, Settings},
    stranded::Stranded,
    suggested_budgets::SuggestedBudgets,
    tick_trace::TickTrace,
    timeline::Timeline,
    token_journal::{StartedTokenJournal, TokenJournalError, start_as_set},
    totals::Totals,
    tuning::{TunableRow, TuneError, TunedChange, Tuning},
    uploads::Uploads,
    watch::WatchSums,
    watchdog::Watchdog,
    windows::{Measure, StatusWindow},
    worker_post::WorkerPost,
    world_hash::WorldHash,
    world_maker::WorldMaker,
    worlds::Worlds,
};

log_category!(UDP = "net.udp");
log_category!(ADDRESS = "server.address");
log_category!(HOST = "server.host");

/// Tokens opened per frame for addresses that are proven, as a multiple of those for any: here a flood needs real
/// addresses, and each of them gets its share only.
const PROVEN_OPENINGS_FACTOR: u32 = 4;

/// Everything that comes from outside: the same server runs on a real host or in a simulation.
pub struct Environment {
    pub clock: Arc<dyn Clock>,
    pub transport: Box<dyn ServerTransport>,
    /// What the host took of our cores, by which a missed tick is told to be its doing.
    pub steal: Box<dyn StealRecords>,
    /// Seeds the handshake's secrets, and what games draw; from the operating system, or fixed in a simulation.
    pub seed: [u8; 32],
    pub private_key: PrivateKey,
    /// Addresses that connect tokens name; those of the transport if empty.
    pub public_addresses: Vec<SocketAddr>,
    pub workers_count: usize,
}

/// A server cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Bind(#[from] throng_platform::udp::BindError),
    #[error(transparent)]
    Settings(#[from] crate::settings::SettingsError),
    #[error(transparent)]
    TokenJournal(#[from] TokenJournalError),
    #[error(transparent)]
    Store(#[from] StoreOpenError),
    #[error(transparent)]
    Systems(#[from] OrderError),
    #[error(transparent)]
    World(#[from] WorldError),
    #[error("browsers have no way to the frame: {0}; raise the limit of open files (`ulimit -n`)")]
    Tunnels(std::io::Error),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("a server needs at least one world")]
    NoWorld,
    #[error("a thread cannot start: {0}; raise `ulimit -u` or the container's pids limit")]
    Thread(std::io::Error),
    #[error("world kind `{kind}` ticks at {rate} Hz; 1 to 255 are possible")]
    TickRate { kind: String, rate: u16 },
    #[error(
        "world kind `{kind}` declares `{name}`, which is not in the server's schema; make the schema from the protocols \
         of all kinds (`Protocol::union`), on the server and in its clients"
    )]
    NotInSchema { kind: String, name: &'static str },
}

/// An order to a running server from another thread.
pub(crate) enum Command {
    MeasureBegin,
    MeasureEnd,
    Rules(Arc<ReplicationRules>),
    CreateWorld(NewWorld, Answer<WorldId>),
    CreateWorldFor(NewWorld, WorldId, u64),
    RetireWorld(WorldId, Answer<()>),
    ParkWorlds(Which, Answer<usize>),
    UnparkWorlds(Option<Which>, Answer<usize>),
    AdmitPlayer(u64, Answer<()>),
    ListWorlds(Answer<Vec<WorldRow>>),
    Ask(Asked),
    Tune(Arc<TunedValues>, Answer<()>),
    SaveNow(Answer<SavedNow>),
    SavesStatus(Answer<SavesStatus>),
}

/// A handle to a running server, for other threads.
#[derive(Clone)]
pub struct ServerControl {
    commands: Arc<Mutex<Vec<Command>>>,
    /// Written by any thread, read by the frame thread once a frame: nothing else depends on its order.
    stop: Arc<AtomicBool>,
    pub(crate) published: Arc<PublishedMetrics>,
    pub(crate) tuning: Arc<Tuning>,
    recording: RecordingControl,
}

impl ServerControl {
    /// Starts the steady window that the report is about.
    pub fn measure_begin(&self) {
        self.push(Command::MeasureBegin);
    }

    /// Ends it.
    pub fn measure_end(&self) {
        self.push(Command::MeasureEnd);
    }

    /// Puts other replication rules into force, in every world with its next tick.
    pub fn set_replication_rules(&self, rules: ReplicationRules) {
        self.push(Command::Rules(Arc::new(rules)));
    }

    /// Asks for a world. It is built beside the frames and ticks from the first frame after it is ready; its own ticks
    /// count from then.
    pub fn create_world(&self, new: NewWorld) -> Pending<WorldId> {
        let (pending, answer) = Pending::new();
        self.push(Command::CreateWorld(new, answer));
        pending
    }

    /// Has a world end. Clients that are still in it are disconnected and told; mail for it is counted as undeliverable
    /// from now on. The answer comes when it is gone from the frame; its memory is freed beside the frames.
    pub fn retire_world(&self, world: WorldId) -> Pending<()> {
        let (pending, answer) = Pending::new();
        self.push(Command::RetireWorld(world, answer));
        pending
    }

    /// Takes a world out, such as `7` or `7.2`, or all of the kind of this name, and has none made by their plans, or of that
    /// kind, until somebody ends that ([`crate::parking`]). Their clients are placed anew by the game, or told that they
    /// cannot be. The answer is how many worlds that takes out; each goes when it is home from its tick.
    pub fn park_worlds(&self, which: &str) -> Pending<usize> {
        let (pending, answer) = Pending::new();
        self.push(Command::ParkWorlds(Which::named(which), answer));
        pending
    }

    /// Has worlds made again by plans that are [parked](crate::parking): of the world that had this id, of the kind of this
    /// name, or by all. The answer is how many plans that were.
    pub fn unpark_worlds(&self, which: Option<&str>) -> Pending<usize> {
        let (pending, answer) = Pending::new();
        self.push(Command::UnparkWorlds(which.map(Which::named), answer));
        pending
    }

    /// The tunables of all kinds of worlds, by name, and what holds for each.
    pub fn tunables(&self) -> Vec<TunableRow> {
        self.tuning.rows()
    }

    /// Changes a tunable; the log says by whom. It holds in each world with its next tick once the frame's thread has
    /// answered.
    ///
    /// # Errors
    /// If there is none of this name, or the value is not in its range: nothing is changed.
    pub fn tune(&self, name: &str, value: f64, by: &str) -> Result<(TunedChange, Pending<()>), TuneError> {
        let (pending, answer) = Pending::new();
        let change = self.tuning.set(name, value, by, |values| self.push(Command::Tune(values, answer)))?;
        Ok((change, pending))
    }

    /// Reads the settings' file again and puts into force what `[game]` says of tunables; what is not named there gets
    /// its default. Returns where the file is and what is changed. All else in the file takes a restart.
    ///
    /// # Errors
    /// If anything is wrong with the file: nothing is changed.
    pub fn reload_tunables(&self, by: &str) -> Result<(PathBuf, Vec<TunedChange>, Pending<()>), TuneError> {
        let (pending, answer) = Pending::new();
        let (path, changes) = self.tuning.reload(by, |values| self.push(Command::Tune(values, answer)))?;
        Ok((path, changes, pending))
    }

    /// Recordings of what enters the worlds.
    pub fn recording(&self) -> &RecordingControl {
        &self.recording
    }

    /// Somebody wants the server to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the server after it has told its clients.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Metrics and health as of the last second.
    pub fn published(&self) -> Arc<PublishedMetrics> {
        self.published.clone()
    }

    pub(crate) fn push(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push(command);
    }
}

/// A world kind as the frame knows it.
pub(crate) struct KindRow {
    pub name: Arc<str>,
    pub rate: Hertz,
    /// Locked by whoever builds a world of it.
    pub kind: Arc<Mutex<Kind>>,
}

/// A game server in one process.
pub struct Server {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) transport: Box<dyn ServerTransport>,
    pub(crate) addresses: AddressTable,
    pub(crate) directory: CaughtDirectory,
    pub(crate) schema: Arc<Schema>,
    pub(crate) interest: InterestSettings,
    pub(crate) rules: ReplicationRules,
    pub(crate) kinds: Vec<KindRow>,
    /// Commands of all kinds.
    pub(crate) hosted_commands: Vec<HostedCommand>,
    /// What holds for tunables, for worlds that come.
    pub(crate) tuned: Arc<TunedValues>,
    pub(crate) game: String,

    pub(crate) worlds: Worlds,
    pub(crate) mailboxes: Mailboxes,
    pub(crate) maker: WorldMaker,
    pub(crate) long_tasks: LongTaskControl,
    /// Worlds that other worlds wait for.
    pub(crate) asked_by_worlds: Vec<AskedByWorld>,
    /// Worlds that are to end and have not yet.
    pub(crate) ending: VecDeque<WorldId>,
    /// Clients whose worlds panicked.
    pub(crate) stranded: VecDeque<Stranded>,
    /// Worlds that panicked and are being made again.
    pub(crate) reloads: Reloads,
    /// Between two checkpoints of a world; 0: none are taken (s).
    pub(crate) checkpoint_period_s: u32,
    /// What these worlds were made from.
    pub(crate) parking: Parking,
    /// Those that are not there though the program knows them.
    pub(crate) held: HeldWorlds,
    /// Worlds came or went and the recorder has not been told.
    pub(crate) worlds_changed: bool,
    pub(crate) recorder_told_at: Nanos,
    pub(crate) hashes_wanted: bool,
    pub(crate) pool: ShortTaskPool<HostedWorld>,
    pub(crate) due: Vec<Scheduled<HostedWorld>>,
    pub(crate) finished: Vec<Finished<HostedWorld>>,
    pub(crate) timeline: Timeline,
    /// Knows which missed ticks are the host's.
    pub(crate) host_watch: HostWatch,
    /// The frame that is being run, or was run last; `None` before the first.
    pub(crate) frame_number: Option<u64>,

    /// What was counted in the frame that is running, and since the start.
    pub(crate) counts: Totals,
    pub(crate) totals: Totals,
    /// What games counted.
    pub(crate) game_totals: GameTotals,
    /// What was sent since the last status, and in the steady window.
    pub(crate) packets: PacketSums,
    pub(crate) packets_of_window: PacketSums,
    pub(crate) measure: Measure,
    pub(crate) status: StatusWindow,
    /// Added up for those who watch, while somebody does.
    pub(crate) watch_sums: WatchSums,
    /// Made by `prepare`.
    pub(crate) metrics: Option<ServerMetrics>,
    pub(crate) overload: Overload,
    pub(crate) allocations_before: u64,
    /// When the frame's thread last woke up from waiting for packets with nothing due.
    pub(crate) woke_at: Nanos,
    pub(crate) impossible_before: u64,
    /// Written by the workers, see `HostWorker`.
    pub(crate) send_dropped: Arc<AtomicU64>,
    /// Filled while hashes are wanted, see `inspection`.
    pub(crate) hashes: Vec<WorldHash>,
    pub(crate) trace: TickTrace,
    /// False in a comparison: worlds are then taken in the order of their deadlines alone.
    pub(crate) uses_cost_estimates: bool,
    pub(crate) control: ServerControl,
    /// Keeps what threads did, for captures. Without one nothing is recorded.
    pub(crate) recorder: Option<Recorder>,
    /// Compares the cost of frames with and without recording, if asked to.
    pub(crate) recorder_turns: Option<RecorderTurns>,
    /// What the game says that subsystems may take in a frame, see `flight_recorder`.
    pub(crate) suggested_budgets: SuggestedBudgets,
    /// Which build this is, for metrics and report.
    pub(crate) build: Option<Build>,
    /// Tells when a core stands still, see `host_watch`; on a real host alone.
    pub(crate) heartbeat: Option<Heartbeat>,
    /// Whether anybody looks at the host.
    pub(crate) host_rest: HostRest,
    /// Names worlds that are stuck; see `watchdog`.
    pub(crate) watchdog: Option<Watchdog>,
    /// What each worker is at.
    pub(crate) posts: Arc<[Arc<WorkerPost>]>,
    /// Reads what the process uses; on a real host alone.
    _bookkeeper: Option<Bookkeeper>,
    pub(crate) seeds: Seeds,
    pub(crate) browsers: Option<BrowserWatch>,
    token_addresses: Vec<SocketAddr>,
    /// What is kept of players and worlds.
    pub(crate) saves: Option<Saves>,
    pub(crate) store_to_open: StoreToOpen,
    /// What enters the worlds, in files.
    pub(crate) recording: RecordingControl,
    pub(crate) recording_counter: RecordingCounter,
    /// What a recording says of the server, as far as it is known before it begins.
    pub(crate) recorded: About,
    /// Has what games emit exported; none unless it is started.
    pub(crate) analytics: Option<Analytics>,
    /// When it is to be gone, once it was told to stop.
    pub(crate) ends_by: Option<std::time::Instant>,
    /// Counted by whoever uploads the server's files.
    pub(crate) uploads: Uploads,
}

impl Server {
    /// A server on a real host: real clock, UDP, the operating system's randomness. Binds its sockets; warnings about
    /// what the host did not grant are logged.
    pub fn bind(settings: &Settings, schema: Arc<Schema>, private_key: PrivateKey) -> Result<Self, ServerError> {
        let ServerSettings { workers, reserved_cores, .. } = settings.server;
        let usable_cores = cores::usable().count;
        let workers_count = workers.count(reserved_cores, usable_cores);
        let (transport, warnings) = UdpTransport::bind(
            settings.server.address,
            usize::from(settings.server.sockets),
            settings.server.receive_buffer_bytes,
            settings.server.send_buffer_bytes,
        )?;
        warnings.iter().for_each(|warning| log_warn!(UDP, %warning, "a socket is not as it was asked for"));
        for public in settings.server.public_addresses_of_other_family() {
            let address = settings.server.address;
            log_warn!(
                UDP, %address, %public,
                "players who connect to this public address reach nobody, unless something before this host translates: a socket \
                 takes IPv4 or IPv6, and [server] address is of the other one"
            );
        }
        let (transport, tunnels): (Box<dyn ServerTransport>, _) = match settings.browser.address {
            Some(_) => {
                let places = settings.browser.clients_max as usize;
                let (transport, tunnels) = Tunnels::beside(transport, places).map_err(ServerError::Tunnels)?;
                (Box::new(transport), Some(tunnels))
            }
            None => (Box::new(transport), None),
        };
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let journal = start_as_set(settings, |name| std::env::var(name).ok(), &clock)?;
        let heartbeat = settings.server.host_heartbeat.then(start_heartbeat).flatten();
        let stalls = heartbeat.as_ref().map(|heartbeat| heartbeat.log().reader());
        let steal = Box::new(HostRecords::open(stalls, &*clock));
        let environment = Environment {
            clock,
            transport,
            steal,
            seed: random::seed(),
            private_key,
            public_addresses: settings.server.public_addresses.clone(),
            workers_count,
        };
        let threads = settings.long_tasks.threads.count(reserved_cores, usable_cores);
        let waiting_max = settings.long_tasks.waiting_max as usize;
        let long_tasks = LongTaskPool::with_threads(threads, waiting_max, environment.clock.clone());
        let long_tasks = long_tasks.map_err(ServerError::Thread)?;
        let mut server = Self::assemble(settings, schema, environment, journal, long_tasks);
        server.heartbeat = heartbeat;
        server.browsers = tunnels.map(BrowserWatch::new);
        server.store_to_open = StoreToOpen::of(settings);
        let bookkeeper = Bookkeeper::start(server.control.published(), workers_count);
        server._bookkeeper = Some(bookkeeper.map_err(ServerError::Thread)?);
        Ok(server)
    }

    /// Where clients come in that have no UDP, for whoever holds their streams; `None` unless `[browser] address` says that
    /// there are some.
    pub fn tunnels(&self) -> Option<Tunnels> {
        self.browsers.as_ref().map(|watch| watch.tunnels.clone())
    }

    /// Stalls of the host, for a recorder; `None` where there is no heartbeat.
    pub fn stall_log(&self) -> Option<StallLog> {
        self.heartbeat.as_ref().map(Heartbeat::log)
    }

    /// A server in surroundings that the caller provides: for simulations and tests. Touches no file: used tokens are
    /// remembered in memory, whatever `[server] token_journal` says. Worlds that are asked for are built at once and
    /// come with the next frame, so that the same requests give the same game.
    pub fn with_environment(settings: &Settings, schema: Arc<Schema>, environment: Environment) -> Self {
        let long_tasks = LongTaskPool::inline(environment.clock.clone());
        Self::assemble(settings, schema, environment, None, long_tasks)
    }

    pub(crate) fn assemble(
        settings: &Settings,
        schema: Arc<Schema>,
        environment: Environment,
        journal: Option<StartedTokenJournal>,
        long_tasks: LongTaskPool,
    ) -> Self {
        let Environment { clock, mut transport, steal, seed, private_key, mut public_addresses, workers_count } =
            environment;
        if public_addresses.is_empty() {
            public_addresses.extend(reachable_as(transport.local_addr()));
        }
        let token_addresses = public_addresses.clone();
        let clients_max = settings.server.clients_max as usize;
        let protocol_id = ProtocolId(settings.server.protocol_id);
        let handshake_settings = ServerHandshakeSettings {
            plain_netcode: settings.server.plain_netcode,
            openings_per_frame_max: settings.server.openings_per_frame_max,
            proven_openings_per_frame_max: settings.server.openings_per_frame_max * PROVEN_OPENINGS_FACTOR,
            queue_max: settings.server.join_queue_max as usize,
            admissions_per_frame_max: settings.server.joins_per_frame_max,
            timeout_s_max: settings.server.timeout_s,
            ..ServerHandshakeSettings::new(protocol_id, private_key, public_addresses, clients_max)
        };
        let send_dropped = Arc::new(AtomicU64::default());
        let posts: Arc<[Arc<WorkerPost>]> = (0..workers_count.max(1)).map(|_| Arc::default()).collect();
        let later = Later::new(long_tasks.tasks(), settings.long_tasks.drop_within());
        let workers: Vec<_> = (posts.iter().enumerate())
            .map(|(worker, post)| {
                let (sender, clock) = (transport.sender(worker), clock.clone());
                HostWorker::new(worker, sender, clock, send_dropped.clone(), clients_max, post.clone(), later.clone())
            })
            .collect();
        let workers_count = workers.len();
        let server_handshake = match journal {
            Some(StartedTokenJournal { journal, used }) => {
                ServerHandshake::with_journal(handshake_settings, seed, used, Box::new(journal))
            }
            None => ServerHandshake::new(handshake_settings, seed),
        };
        let addresses = AddressTable::new(server_handshake, transport.sender(workers_count), &settings.server);
        let replication = &settings.replication;
        let interest = InterestSettings {
            cell_m: replication.cell_m,
            period_ticks: replication.period_ticks,
            budget_bytes_per_tick: replication.budget_bytes_per_tick,
            ..InterestSettings::default()
        };
        let published = Arc::new(PublishedMetrics::new(clock.clone()));
        let recording = RecordingControl::new(&settings.recording);
        published.set_long_task_source(long_tasks.tasks().clone());
        Self {
            pool: ShortTaskPool::new(workers, clock.clone()),
            host_watch: HostWatch::new(steal, clock.clone()),
            clock,
            transport,
            addresses,
            directory: CaughtDirectory::new(Box::new(Everybody(WorldId::new(0, 0)))),
            rules: ReplicationRules { radii: replication.radii(), ..ReplicationRules::for_schema(&schema) },
            schema,
            interest,
            kinds: Vec::new(),
            hosted_commands: Vec::new(),
            tuned: Arc::default(),
            game: String::from("custom"),
            worlds: Worlds::default(),
            mailboxes: Mailboxes::default(),
            maker: WorldMaker::new(long_tasks.tasks(), &settings.long_tasks),
            long_tasks: LongTaskControl::new(long_tasks, settings.long_tasks.clone(), workers_count),
            asked_by_worlds: Vec::new(),
            ending: VecDeque::new(),
            stranded: VecDeque::new(),
            reloads: Reloads::default(),
            checkpoint_period_s: settings.server.checkpoint_period_s,
            parking: Parking::default(),
            held: HeldWorlds::default(),
            worlds_changed: false,
            recorder_told_at: Nanos::ZERO,
            hashes_wanted: false,
            due: Vec::new(),
            finished: Vec::new(),
            timeline: Timeline { begin: Nanos::ZERO, grid: FrameGrid::for_rates(&[]) },
            frame_number: None,
            counts: Totals::default(),
            totals: Totals::default(),
            game_totals: GameTotals::default(),
            packets: PacketSums::default(),
            packets_of_window: PacketSums::default(),
            measure: Measure::default(),
            status: StatusWindow::default(),
            watch_sums: WatchSums::default(),
            metrics: None,
            overload: Overload::new(settings.overload.clone()),
            allocations_before: 0,
            woke_at: Nanos::ZERO,
            impossible_before: 0,
            send_dropped,
            hashes: Vec::new(),
            trace: TickTrace::default(),
            uses_cost_estimates: true,
            control: ServerControl {
                commands: Arc::default(),
                stop: Arc::default(),
                published,
                tuning: Arc::new(settings.tuning()),
                recording: recording.clone(),
            },
            recorder: None,
            recorder_turns: None,
            suggested_budgets: SuggestedBudgets::default(),
            build: None,
            heartbeat: None,
            host_rest: HostRest::default(),
            watchdog: None,
            posts,
            _bookkeeper: None,
            seeds: Seeds::new(seed),
            browsers: None,
            token_addresses,
            saves: None,
            store_to_open: StoreToOpen::untouched(settings),
            recorded: About { settings: settings.text_for_recording(), ..About::default() },
            recording,
            recording_counter: RecordingCounter::default(),
            analytics: None,
            ends_by: None,
            uploads: Uploads::default(),
        }
    }

    /// The game's name in reports.
    pub fn set_game(&mut self, name: &str) {
        self.game = name.into();
    }

    /// Which build of the program this is, for metrics and report; before the first frame.
    pub fn set_build(&mut self, build: Build) {
        self.build = Some(build);
    }

    /// What it was given by `set_game`.
    pub fn game(&self) -> &str {
        &self.game
    }

    pub fn add_kind(&mut self, kind: impl WorldKind) -> Result<WorldKindId, ServerError> {
        let id = WorldKindId(self.kinds.len() as u16);
        let Hertz(rate) = kind.tick_rate();
        if !(1..=255).contains(&rate) {
            return Err(ServerError::TickRate { kind: kind.name().into(), rate });
        }
        let (name, rate): (Arc<str>, _) = (kind.name().into(), kind.tick_rate());
        let console = kind.console();
        let kind = Kind::new(id, Box::new(kind));
        if let Some(lacking) = self.schema.lacks(kind.protocol().declared()) {
            return Err(ServerError::NotInSchema { kind: kind.name.to_string(), name: lacking });
        }
        self.tuned = self.control.tuning.add(console.tunables())?;
        self.host_commands(id, &name, console.commands());
        let kind = Arc::new(Mutex::new(kind));
        self.kinds.push(KindRow { name, rate, kind });
        Ok(id)
    }

    /// The names of all kinds of worlds, in the order in which they were added.
    pub fn world_kind_names(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|row| &*row.name)
    }

    /// How far and how often what is heard, in all worlds; before the first frame. Without it, the usual ranges by name
    /// ([`ReplicationRules::for_schema`]) and the radii of the settings. A running server is told by
    /// [`ServerControl::set_replication_rules`].
    pub fn set_replication_rules(&mut self, rules: ReplicationRules) {
        for hosted in self.worlds.iter_mut().filter_map(|slot| slot.home.as_mut()) {
            hosted.world.set_rules(&rules);
        }
        self.rules = rules;
    }

    /// The rules that new worlds get.
    pub fn replication_rules(&self) -> &ReplicationRules {
        &self.rules
    }

    /// What clients are told of, and how.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// What holds for a tunable at first, in place of what the settings say: for a program's own command line. After the
    /// kinds of worlds that read it.
    ///
    /// # Errors
    /// If there is no kind that reads it, or the value is not in its range.
    pub fn set_tunable<T: Tune>(&mut self, tunable: &Tunable<T>, value: T) -> Result<(), TuneError> {
        let mut values = None;
        self.control.tuning.set(tunable.name(), as_written(value), "the command line", |all| values = Some(all))?;
        self.tuned = values.expect("it was handed over");
        self.worlds_tuned();
        Ok(())
    }

    fn worlds_tuned(&self) {
        self.worlds.iter().for_each(|slot| slot.mailbox.push(MailItem::Tuned(self.tuned.clone())));
    }

    pub fn set_directory(&mut self, directory: impl Directory + 'static) {
        self.directory.replace_by(Box::new(directory));
    }

    /// A seed for a world, for games whose operator gives none: nobody foretells it, and in a simulation it follows from
    /// the simulation's own.
    pub fn draw_seed(&mut self) -> u64 {
        self.seeds.draw()
    }

    pub fn control(&self) -> ServerControl {
        self.control.clone()
    }

    /// The address that clients connect to.
    pub fn local_addr(&self) -> SocketAddr {
        self.transport.local_addr()
    }

    /// The addresses that a connect token for this server names; it knows itself by each of them.
    pub fn token_addresses(&self) -> &[SocketAddr] {
        &self.token_addresses
    }

    /// Whether the costliest of equally urgent worlds starts first (the default). Off shows what that is worth.
    pub fn use_cost_estimates(&mut self, is_on: bool) {
        self.uses_cost_estimates = is_on;
    }

    /// Ticks that each world has missed since the start, by world id.
    pub fn ticks_missed_by_world(&self) -> Vec<u64> {
        self.worlds.iter().map(|slot| slot.ticks_missed).collect()
    }

    /// Id, kind and seed of every world.
    pub fn worlds(&self) -> impl Iterator<Item = (WorldId, &str, u64)> {
        self.worlds.iter().map(|slot| (slot.id, &*slot.name, slot.plan.seed))
    }

    pub fn worlds_count(&self) -> usize {
        self.worlds.len()
    }

    /// Threads that run worlds.
    pub fn workers_count(&self) -> usize {
        self.pool.worker_count()
    }

    /// Lays the frame grid for the rates of all kinds and spreads the worlds that there are over it. Call once, after
    /// the last kind is added; `run` does.
    pub fn prepare(&mut self, now: Nanos) -> Result<(), ServerError> {
        if self.worlds.is_empty() && self.held.is_empty() {
            return Err(ServerError::NoWorld);
        }
        let mut rates: Vec<Hertz> = self.kinds.iter().map(|row| row.rate).collect();
        rates.sort_unstable();
        rates.dedup();
        let grid = FrameGrid::for_rates(&rates);
        self.timeline = Timeline { begin: now, grid };
        self.lay_worlds_into(grid);
        let mut metrics = ServerMetrics::new();
        if let Some(build) = &self.build {
            metrics.tell_build(build);
        }
        metrics.tell_heartbeats(self.host_watch.stall_cores());
        let kind_names: Vec<_> = self.kinds.iter().map(|row| row.name.clone()).collect();
        metrics.tell_kinds(&kind_names);
        self.metrics = Some(metrics);
        self.control.published.set_kind_names(kind_names);
        self.allocations_before = throng_platform::allocator::thread_counts().allocations;
        self.measure.begin(now, RecorderFigures::default(), self.control.published.accounts().try_read());
        self.introduce_to_recorder();
        self.introduce_to_recording()?;
        Ok(())
    }

    /// Commands of other threads, taken once a frame.
    pub(crate) fn obey_commands(&mut self, now: Nanos) {
        let commands = std::mem::take(&mut *self.control.commands.lock().unwrap_or_else(PoisonError::into_inner));
        for command in commands {
            match command {
                Command::MeasureBegin => {
                    let recorder = self.recorder_figures();
                    self.measure.begin(now, recorder, self.control.published.accounts().try_read());
                    self.packets_of_window.clear();
                    self.recorder_turns.iter_mut().for_each(RecorderTurns::begin);
                }
                Command::MeasureEnd => self.end_measure(now),
                Command::Rules(rules) => {
                    self.rules = (*rules).clone();
                    self.mailboxes.iter().for_each(|mailbox| mailbox.push(MailItem::Rules(rules.clone())));
                }
                Command::CreateWorld(new, answer) => self.order_world(new, answer),
                Command::CreateWorldFor(new, asker, number) => {
                    let (pending, answer) = Pending::new();
                    self.order_world(new, answer);
                    self.asked_by_worlds.push(AskedByWorld { asker, number, pending });
                }
                Command::RetireWorld(world, answer) => self.retire_world(world, answer),
                Command::ParkWorlds(which, answer) => answer.give(self.park_worlds(&which, now)),
                Command::UnparkWorlds(which, answer) => answer.give(Ok(self.unpark_worlds(which.as_ref(), now))),
                Command::ListWorlds(answer) => self.list_worlds(answer),
                Command::SavesStatus(answer) => answer.give(self.saves_status().ok_or(WorldError::NotSaving)),
                Command::SaveNow(answer) => self.save_now(answer),
                Command::AdmitPlayer(player, answer) => answer.give(self.admit_player(player)),
                Command::Ask(asked) => self.deliver_question(asked),
                Command::Tune(values, answer) => {
                    self.tuned = values;
                    self.worlds_tuned();
                    answer.give(Ok(()));
                }
            }
        }
    }
}

/// Where real-time priority is not permitted there is none, and whoever reads the log is told how to permit it.
fn start_heartbeat() -> Option<Heartbeat> {
    Heartbeat::start()
        .inspect_err(|reason| log_info!(HOST, %reason, "no heartbeat: cores that the host holds up are not seen"))
        .ok()
}

/// The addresses by which clients know a server that was not told: its own, or loopback if it listens everywhere.
fn reachable_as(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    log_warn!(
        ADDRESS,
        "listening on every interface, but only clients on this host can connect: set [server] public_addresses to what \
         players connect to"
    );
    let loopback: [std::net::IpAddr; 2] = [std::net::Ipv4Addr::LOCALHOST.into(), std::net::Ipv6Addr::LOCALHOST.into()];
    loopback.map(|ip| SocketAddr::new(ip, bound.port())).to_vec()
}
