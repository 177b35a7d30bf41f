//! World maker: builds worlds and tears them down, away from the frame.
//!
//! A thread of low priority takes orders one after the other: to build a world costs 0.1 ms and more, to drop one with
//! its entities not much less, and neither may wait in a frame or take a worker. What it has built comes back over a
//! queue that the frame thread looks into once a frame, in the order of the orders. In a simulation everything is done
//! at once on the calling thread and handed out one frame later, so that the same requests give the same game.
//!
//! If the thread dies, those who wait for a world are told so, and so is whoever asks for one from then on.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, TryRecvError, channel},
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
}

/// An order that was carried out.
pub(crate) struct Made {
    pub id: WorldId,
    pub plan: NewWorld,
    pub world: Built,
    pub answer: Answer<WorldId>,
}

type Built = Result<Box<GameWorld>, WorldError>;

/// What is to be done, in its order.
enum Job {
    Make(Box<Order>),
    Drop(Box<HostedWorld>),
}

/// Who builds worlds.
pub(crate) struct WorldMaker {
    thread: Option<(Sender<Job>, Receiver<Built>)>,
    /// Built at once, for the next frame.
    made_here: VecDeque<Built>,
    /// Worlds that have been ordered and not come yet, with their plans, and who waits for them.
    outstanding: VecDeque<(WorldId, NewWorld, Answer<WorldId>)>,
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
        Self { thread: None, made_here: VecDeque::new(), outstanding: VecDeque::new() }
    }

    pub fn make(&mut self, order: Order, answer: Answer<WorldId>) {
        self.outstanding.push_back((order.id, order.new.clone(), answer));
        match &self.thread {
            // That the thread is gone is noticed by `take_made`.
            Some((jobs, _)) => _ = jobs.send(Job::Make(Box::new(order))),
            None => self.made_here.push_back(carry_out(order)),
        }
    }

    /// Ends a world, with all that is in it.
    pub fn drop_world(&mut self, world: Box<HostedWorld>) {
        match &self.thread {
            // With the thread gone it ends here.
            Some((jobs, _)) => _ = jobs.send(Job::Drop(world)),
            None => drop(world),
        }
    }

    /// A world that has been built since this was last asked.
    pub fn take_made(&mut self) -> Option<Made> {
        let world = match &self.thread {
            Some((_, made)) => match made.try_recv() {
                Ok(world) => world,
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => Err(WorldError::NoMaker),
            },
            None => self.made_here.pop_front()?,
        };
        let (id, plan, answer) = self.outstanding.pop_front()?;
        Some(Made { id, plan, world, answer })
    }

    /// Worlds that have been ordered and not come yet.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }
}

fn work(orders: &Receiver<Job>, done: &Sender<Built>) {
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

fn carry_out(order: Order) -> Built {
    let Order { id, kind, new, schema, interest, rules } = order;
    let mut kind = kind.lock().unwrap_or_else(PoisonError::into_inner);
    let name = kind.name.to_string();
    let build = || {
        let world = kind.build_world(id, new.seed, new.parameters.as_deref(), &schema, &interest);
        world.map(|mut world| {
            world.set_rules(&rules);
            Box::new(world)
        })
    };
    match catch_unwind(AssertUnwindSafe(build)) {
        Ok(built) => built.map_err(|error| WorldError::Systems(error.to_string())),
        Err(_) => Err(WorldError::Panicked(name)),
    }
}

#[cfg(test)]
mod tests {
    use throng_replication::SchemaBuilder;
    use throng_world::prelude::*;

    use super::*;
    use crate::{lifecycle::Pending, testing::empty};

    fn order(maker: &mut WorldMaker, index: u32) -> Pending<WorldId> {
        let schema = SchemaBuilder::new().build();
        let kind = Arc::new(Mutex::new(Kind::new(WorldKindId(0), Box::new(empty()))));
        let new = NewWorld::new(WorldKindId(0), u64::from(index) + 7);
        let (interest, rules) = (InterestSettings::default(), ReplicationRules::for_schema(&schema));
        let (pending, answer) = Pending::new();
        maker.make(Order { id: WorldId::new(index, 0), kind, new, schema, interest, rules }, answer);
        pending
    }

    /// Those who wait when the thread dies, and those who ask later.
    #[test]
    fn worlds_that_a_dead_maker_owes_come_back_as_errors_and_none_stays_outstanding() {
        let ((jobs, orders), (done, made)) = (channel(), channel());
        let mut maker = WorldMaker { thread: Some((jobs, made)), ..WorldMaker::inline() };
        let waiting = order(&mut maker, 0);
        assert!(maker.take_made().is_none() && waiting.try_take().is_none(), "not yet");
        drop((orders, done));
        let later = order(&mut maker, 1);
        assert_eq!(maker.outstanding(), 2);
        for index in 0..2 {
            let Made { id, plan, world, answer } = maker.take_made().expect("it is owed");
            assert_eq!((id, plan.seed), (WorldId::new(index, 0), u64::from(index) + 7));
            answer.give(Err(world.err().expect("nobody made it")));
        }
        for pending in [waiting, later] {
            assert_eq!(pending.try_take(), Some(Err(WorldError::NoMaker)));
        }
        assert!(maker.take_made().is_none() && maker.outstanding() == 0);
    }
}
