//! World maker: has worlds built and torn down, away from the frame.
//!
//! To build a world costs 0.1 ms and more, to drop one with its entities not much less, and neither may wait in a frame or
//! take a worker: they are long tasks (`long_tasks`). What has been built comes back over a queue that the frame thread
//! looks into once a frame. In a simulation everything is done at once on the calling thread and handed out one frame
//! later, so that the same requests give the same game.
//!
//! What is saved of a world is read before it is built, by threads that may wait for the disk
//! ([`WorldReader`]): no long task does, and nobody who builds worlds of the kind waits for it. An order whose record is not
//! there in time is not carried out ([`WorldError::NotRead`]).
//!
//! ```text
//! ordered --> in line --> its record is read --> is read --> long task: build, take it up --> made
//!    |           '---- not in time ----+--> not made            ^
//!    '------------------------ nothing is saved of it ---------- held
//! ```
//!
//! Few orders are long tasks at a time, the others are held here, in their order: while dropped worlds pile up none is
//! started, and what was started before must not add many to them. Those that are held or not built yet are bounded; one
//! more is refused. Nothing that is to be dropped ever is.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use throng_platform::time::Nanos;
use throng_profiler::{Scope, site};
use throng_replication::{InterestSettings, ReplicationRules, Schema};
use throng_scheduler::{LongKind, LongTask, LongTasks, Results, TooManyWait};
use throng_world::{GameWorld, ids::WorldId, world_builder::Kind};

use crate::{
    hosted_world::HostedWorld,
    lifecycle::{Answer, NewWorld, WorldError},
    long_tasks::{DROP_WORLD, MAKE_WORLD, REMAKE_WORLD, dropping},
    saves::{Asked, Load, Record, WorldReader},
    settings::LongTaskSettings,
};

/// Orders that are long tasks at a time at most: as many as can be put into their places in a frame.
const STARTED_MAX: usize = 64;

/// Records of worlds that are being read, or wait in memory for a long task.
const READING_MAX: usize = 64;

/// Between two frames no more than this counts for a read: this process stood still, and the store cannot have answered.
const LOOKED_MAX: Nanos = Nanos::from_millis(500);

/// By when a world that panicked is to be back: its players wait in it, and are promised no more than two seconds.
const REMADE_WITHIN: Nanos = Nanos::from_secs(2);

/// What a world is built from.
pub(crate) struct Order {
    pub id: WorldId,
    pub kind: Arc<Mutex<Kind>>,
    /// The kind's.
    pub name: Arc<str>,
    pub new: NewWorld,
    /// What is saved of it, until that is read, and then what was read.
    pub load: Option<Load>,
    pub record: Option<Record>,
    pub schema: Arc<Schema>,
    pub interest: InterestSettings,
    pub rules: ReplicationRules,
}

/// An order whose record is waited for.
struct Reading<T> {
    /// By the time that counts for reads.
    until: Nanos,
    order: Box<Order>,
    asked: T,
}

/// An order that was carried out.
pub(crate) struct Made {
    pub id: WorldId,
    pub plan: NewWorld,
    pub world: Built,
    pub answer: Answer<WorldId>,
}

/// The world, and whether it was loaded.
type Built = Result<(Box<GameWorld>, bool), WorldError>;

/// Who has worlds built.
pub(crate) struct WorldMaker {
    tasks: LongTasks,
    make: LongKind,
    remake: LongKind,
    drop: LongKind,
    settings: LongTaskSettings,
    built: Arc<Results<(WorldId, Built)>>,
    /// Taken from there and not handed out yet.
    arrived: VecDeque<(WorldId, Built)>,
    /// For its memory.
    taken: Vec<(WorldId, Built)>,
    /// Orders whose records are to be read, and are being read.
    in_line: VecDeque<Reading<()>>,
    reading: VecDeque<Reading<Asked>>,
    /// Time in which reads were let through, and when it was last looked at.
    read_time: Nanos,
    looked_at: Nanos,
    /// Orders whose records were read, and that have not been started. Before those that are held.
    read: VecDeque<(Nanos, Box<Order>)>,
    /// Orders that have not been started, and by when they should be done.
    held: VecDeque<(Nanos, Box<Order>)>,
    /// Orders that are long tasks.
    started: usize,
    /// Dropped worlds pile up.
    is_holding: bool,
    /// Worlds that have been ordered and not come yet, with their plans, and who waits for them.
    outstanding: VecDeque<(WorldId, NewWorld, Answer<WorldId>)>,
}

impl WorldMaker {
    pub fn new(tasks: &LongTasks, settings: &LongTaskSettings) -> Self {
        Self {
            make: tasks.kind(MAKE_WORLD),
            remake: tasks.kind(REMAKE_WORLD),
            drop: tasks.kind(DROP_WORLD),
            tasks: tasks.clone(),
            settings: settings.clone(),
            built: Arc::default(),
            arrived: VecDeque::new(),
            taken: Vec::new(),
            in_line: VecDeque::new(),
            reading: VecDeque::new(),
            read_time: Nanos::ZERO,
            looked_at: Nanos::ZERO,
            read: VecDeque::new(),
            held: VecDeque::new(),
            started: 0,
            is_holding: false,
            outstanding: VecDeque::new(),
        }
    }

    /// Has a world built. Where too many wait, whoever asked is told so at once. `reader`: who reads what is saved of it.
    pub fn make(
        &mut self,
        order: Order,
        answer: Answer<WorldId>,
        reader: Option<&mut WorldReader>,
    ) -> Result<(), TooManyWait> {
        let (id, waiting_max) = (order.id, self.settings.waiting_max as usize);
        if self.outstanding.len() >= waiting_max {
            answer.give(Err(WorldError::TooManyWait(waiting_max)));
            return Err(TooManyWait);
        }
        self.outstanding.push_back((id, order.new.clone(), answer));
        let order = Box::new(order);
        match reader.filter(|_| order.load.is_some()) {
            Some(reader) => {
                self.look_at_clock();
                self.in_line.push_back(Reading { until: self.read_time + reader.within(), order, asked: () });
                self.read(reader);
            }
            None => {
                self.held.push_back((self.make_deadline(), order));
                self.start_held();
            }
        }
        Ok(())
    }

    fn make_deadline(&self) -> Nanos {
        self.tasks.now().saturating_add(self.settings.make_within())
    }

    /// Once a frame: has records read, takes what was read, and gives up what is not there in time.
    pub fn read(&mut self, reader: &mut WorldReader) {
        self.look_at_clock();
        reader.step(self.looked_at);
        self.take_read(reader);
        self.give_up_reads(reader);
        while !self.is_holding && self.reading.len() + self.read.len() < READING_MAX {
            let Some(Reading { until, mut order, asked: () }) = self.in_line.pop_front() else { break };
            let Some(load) = order.load.take() else { continue };
            self.reading.push_back(Reading { until, order, asked: reader.ask(load) });
        }
        // Without threads it is there.
        self.take_read(reader);
        self.start_held();
    }

    fn look_at_clock(&mut self) {
        let now = self.tasks.now();
        let looked = now.saturating_sub(std::mem::replace(&mut self.looked_at, now)).min(LOOKED_MAX);
        if !self.is_holding {
            self.read_time += looked;
        }
    }

    fn take_read(&mut self, reader: &mut WorldReader) {
        while let Some((number, record)) = reader.take() {
            let Some(place) = self.reading.iter().position(|reading| reading.asked.number == number) else { continue };
            if let Some(Reading { mut order, .. }) = self.reading.remove(place) {
                order.record = Some(record);
                self.read.push_back((self.make_deadline(), order));
            }
        }
    }

    fn give_up_reads(&mut self, reader: &mut WorldReader) {
        let now = self.read_time;
        let within_s = reader.within().0 / 1_000_000_000;
        let not_read = |order: &Order| {
            let id = order.new.save_id().unwrap_or_default();
            (order.id, Err(WorldError::NotRead { kind: order.name.to_string(), id, within_s }))
        };
        // Both are in the order of their times.
        while self.in_line.front().is_some_and(|reading| now >= reading.until) {
            self.arrived.extend(self.in_line.pop_front().map(|reading| not_read(&reading.order)));
        }
        while self.reading.front().is_some_and(|reading| now >= reading.until && reader.give_up(&reading.asked)) {
            self.arrived.extend(self.reading.pop_front().map(|reading| not_read(&reading.order)));
        }
    }

    /// Whether dropped worlds pile up, so that no order is started.
    pub fn hold(&mut self, is_holding: bool) {
        self.is_holding = is_holding;
        self.start_held();
    }

    /// What orders that have not been started will cost.
    pub fn held_cost(&self) -> Nanos {
        Nanos(self.tasks.usual_cost(self.make).0 * (self.read.len() + self.held.len()) as u64)
    }

    fn start_held(&mut self) {
        while !self.is_holding && self.started < STARTED_MAX {
            let Some((deadline, order)) = self.read.pop_front().or_else(|| self.held.pop_front()) else { return };
            let (id, built) = (order.id, self.built.clone());
            let run = Box::new(move || built.put((id, carry_out(*order))));
            self.started += 1;
            if self
                .tasks
                .start(LongTask { kind: self.make, deadline, cost: None, frees: None, about: Some(id.bits()), run })
                .is_err()
            {
                let error = WorldError::TooManyWait(self.settings.waiting_max as usize);
                self.arrived.push_back((id, Err(error)));
                self.started -= 1;
            }
        }
    }

    /// The server ends: what has not been started is not made.
    pub fn drop_orders(&mut self) {
        self.in_line.clear();
        self.reading.clear();
        self.read.clear();
        self.held.clear();
    }

    /// Ends a world, with all that is in it. A panic on that way has been told of by its own message; others go on.
    pub fn drop_world(&mut self, world: Box<HostedWorld>) {
        let deadline = self.tasks.now().saturating_add(self.settings.drop_within());
        // What frees memory is never refused.
        let about = Some(world.world.id().bits());
        let _ = self.tasks.start(LongTask { about, ..dropping(self.drop, deadline, 0, world) });
    }

    /// Has a world made again that panicked; `remake` says itself when that is done. The most urgent of all that is made,
    /// since players wait in it, and never refused: there are no more of these than worlds.
    pub fn remake(&mut self, id: WorldId, remake: Box<dyn FnOnce() + Send>) {
        let deadline = self.tasks.now().saturating_add(REMADE_WITHIN);
        let task =
            LongTask { kind: self.remake, deadline, cost: None, frees: Some(0), about: Some(id.bits()), run: remake };
        let started = self.tasks.start(task);
        debug_assert!(started.is_ok(), "what frees something is never refused");
    }

    /// A world that has been built since this was last asked.
    pub fn take_made(&mut self) -> Option<Made> {
        if self.outstanding.is_empty() {
            return None;
        }
        if self.arrived.is_empty() {
            self.built.take(&mut self.taken);
            self.started -= self.taken.len();
            self.arrived.extend(self.taken.drain(..));
        }
        let (id, world) = self.arrived.pop_front()?;
        // Nearly always the first one: they are begun in their order.
        let place = self.outstanding.iter().position(|(ordered, ..)| *ordered == id)?;
        let (id, plan, answer) = self.outstanding.remove(place)?;
        Some(Made { id, plan, world, answer })
    }

    /// Worlds that have been ordered and not come yet.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }
}

fn carry_out(order: Order) -> Built {
    let Order { id, kind, name, new, load: _, record, schema, interest, rules } = order;
    let _scope = Scope::begin(site::intern(&format!("{MAKE_WORLD}@{name}"), None));
    let build = || {
        let built = {
            // Others wait for it who want a world of the kind.
            let mut kind = kind.lock().unwrap_or_else(PoisonError::into_inner);
            kind.build_world(id, new.seed, new.parameters.as_deref(), &schema, &interest)
        };
        let mut world = built.map_err(|error| WorldError::Systems(error.to_string()))?;
        let is_loaded = record.map_or(Ok(false), |record| record.into_world(&mut world))?;
        world.set_rules(&rules);
        Ok((Box::new(world), is_loaded))
    };
    match catch_unwind(AssertUnwindSafe(build)) {
        Ok(built) => built,
        Err(_) => Err(WorldError::Panicked(name.to_string())),
    }
}
