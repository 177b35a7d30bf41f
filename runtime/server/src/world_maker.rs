//! World maker: builds worlds and tears them down, away from the frame.
//!
//! A thread of low priority takes orders one after the other: to build a world costs 0.1 ms and more, to drop one with
//! its entities not much less, and neither may wait in a frame or take a worker. What it has built comes back over a
//! queue that the frame thread looks into once a frame. In a simulation everything is done at once on the calling
//! thread and handed out one frame later, so that the same requests give the same game.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
};

use throng_platform::threads::{Priority, spawn_named};
use throng_replication::{InterestSettings, ReplicationRules, Schema};
use throng_world::{GameWorld, ids::WorldId, world_builder::Kind};

use crate::{
    hosted_world::HostedWorld,
    lifecycle::{Answer, NewWorld, WorldError},
};

/// What a world is built from.
pub(crate) struct Order {
    pub id: WorldId,
    pub kind: Arc<Mutex<Kind>>,
    pub new: NewWorld,
    pub schema: Arc<Schema>,
    pub interest: InterestSettings,
    pub rules: ReplicationRules,
    pub answer: Answer<WorldId>,
}

/// An order that was carried out.
pub(crate) struct Made {
    pub id: WorldId,
    pub seed: u64,
    pub world: Result<Box<GameWorld>, WorldError>,
    pub answer: Answer<WorldId>,
}

/// What is to be done, in its order.
enum Job {
    Make(Box<Order>),
    Drop(Box<HostedWorld>),
}

/// Who builds worlds.
pub(crate) struct WorldMaker {
    thread: Option<(Sender<Job>, Receiver<Made>)>,
    /// Built at once, for the next frame.
    made_here: VecDeque<Made>,
    /// Worlds that have been ordered and not come yet.
    outstanding: usize,
}

impl WorldMaker {
    /// Builds on a thread of its own.
    pub fn with_thread() -> std::io::Result<Self> {
        let (jobs, orders) = channel();
        let (done, made) = channel();
        spawn_named("world-maker", Priority::Low, move || work(&orders, &done))?;
        Ok(Self { thread: Some((jobs, made)), ..Self::inline() })
    }

    /// Builds on the calling thread.
    pub fn inline() -> Self {
        Self { thread: None, made_here: VecDeque::new(), outstanding: 0 }
    }

    pub fn make(&mut self, order: Order) {
        self.outstanding += 1;
        match &self.thread {
            // A thread that is gone has answered for what it had; the answer in this order says that the server is
            // closing.
            Some((jobs, _)) => _ = jobs.send(Job::Make(Box::new(order))),
            None => self.made_here.push_back(carry_out(order)),
        }
    }

    /// Ends a world, with all that is in it.
    pub fn drop_world(&mut self, world: Box<HostedWorld>) {
        match &self.thread {
            Some((jobs, _)) => _ = jobs.send(Job::Drop(world)),
            None => drop(world),
        }
    }

    /// A world that has been built since this was last asked.
    pub fn take_made(&mut self) -> Option<Made> {
        let made = match &self.thread {
            Some((_, made)) => made.try_recv().ok(),
            None => self.made_here.pop_front(),
        }?;
        self.outstanding -= 1;
        Some(made)
    }

    /// Worlds that have been ordered and not come yet.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }
}

fn work(orders: &Receiver<Job>, done: &Sender<Made>) {
    // Ends with the server, which drops its end.
    for job in orders {
        match job {
            Job::Make(order) => {
                if done.send(carry_out(*order)).is_err() {
                    return;
                }
            }
            // A world whose end panics has been told of by the panic's own message; others go on.
            Job::Drop(world) => _ = catch_unwind(AssertUnwindSafe(|| drop(world))),
        }
    }
}

fn carry_out(order: Order) -> Made {
    let Order { id, kind, new, schema, interest, rules, answer } = order;
    let mut kind = kind.lock().unwrap_or_else(PoisonError::into_inner);
    let name = kind.name.to_string();
    let build = || {
        let world = kind.build_world(id, new.seed, new.parameters.as_deref(), &schema, &interest);
        world.map(|mut world| {
            world.set_rules(&rules);
            Box::new(world)
        })
    };
    let world = match catch_unwind(AssertUnwindSafe(build)) {
        Ok(built) => built.map_err(|error| WorldError::Systems(error.to_string())),
        Err(_) => Err(WorldError::Panicked(name)),
    };
    Made { id, seed: new.seed, world, answer }
}
