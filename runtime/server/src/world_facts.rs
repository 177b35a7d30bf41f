//! World facts: what worlds are made from, for whoever has to say it when the server is dead.
//!
//! A report of a death names the world that the dying thread was in, and the next server parks that world's plan
//! ([`crate::parking`]). The frame's thread may be the one that died, so nobody can ask it then: it tells of worlds that
//! come and go when they do, through a queue that the reporting thread reads four times a second and once more at the end.
//! Neither waits for the other.
//!
//! Cost: a message of 40 bytes for each world that comes or goes; nothing where nobody follows.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};

use throng_platform::clock::Clock;
use throng_world::ids::WorldId;

use crate::{
    lifecycle::NewWorld,
    worker_post::{Running, WorkerPost},
};

/// What does not change about a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldFacts {
    pub id: WorldId,
    /// The name of its kind.
    pub kind: Arc<str>,
    pub seed: u64,
    /// See [`NewWorld::digest`].
    pub plan: u64,
    /// The program made it itself, and knows it by its id.
    pub keeps_place: bool,
}

/// A thread that is in a world's tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticking {
    pub thread_id: u32,
    /// By [`WorldId::number`].
    pub world: u32,
    /// For how long.
    pub ms: u64,
}

enum News {
    Came(WorldFacts),
    Went(WorldId),
}

/// The frame thread's end.
#[derive(Default)]
pub(crate) struct WorldNews(Option<Sender<News>>);

impl WorldNews {
    pub fn came(&self, id: WorldId, kind: &Arc<str>, plan: &NewWorld, keeps_place: bool) {
        // It fails when the follower is gone.
        let tell = |news: &Sender<News>| {
            let (seed, plan) = (plan.seed, plan.digest(kind));
            let _ = news.send(News::Came(WorldFacts { id, kind: kind.clone(), seed, plan, keeps_place }));
        };
        self.0.iter().for_each(tell);
    }

    pub fn went(&self, id: WorldId) {
        self.0.iter().for_each(|news| drop(news.send(News::Went(id))));
    }
}

/// Knows the worlds that there are, and what workers are at. For one thread, beside the frames.
pub struct WorldFollower {
    news: Receiver<News>,
    worlds: HashMap<u32, WorldFacts>,
    posts: Arc<[Arc<WorkerPost>]>,
    clock: Arc<dyn Clock>,
}

impl WorldFollower {
    /// And the end that it is told by.
    pub(crate) fn new(posts: Arc<[Arc<WorkerPost>]>, clock: Arc<dyn Clock>) -> (Self, WorldNews) {
        let (sender, news) = channel();
        (Self { news, worlds: HashMap::new(), posts, clock }, WorldNews(Some(sender)))
    }

    /// Takes in what was told since the last call.
    pub fn catch_up(&mut self) {
        for news in self.news.try_iter() {
            match news {
                News::Came(facts) => drop(self.worlds.insert(facts.id.number(), facts)),
                News::Went(id) => drop(self.worlds.remove(&id.number())),
            }
        }
    }

    /// By [`WorldId::number`].
    pub fn facts(&self, number: u32) -> Option<&WorldFacts> {
        self.worlds.get(&number)
    }

    /// The threads that are in ticks.
    pub fn ticking(&self) -> Vec<Ticking> {
        let now = self.clock.now();
        let running = self.posts.iter().filter_map(|post| post.running());
        let ticking = running.map(|Running { thread_id, world, since, .. }| Ticking {
            thread_id,
            world: world.number(),
            ms: now.saturating_sub(since).as_micros() / 1_000,
        });
        ticking.collect()
    }
}
