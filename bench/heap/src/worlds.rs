//! Worlds that allocate all the time: entities with vectors come and go, and large blocks among them.
//!
//! Worlds are claimed by whichever thread is free, frame by frame, as the server does it, so that blocks are often
//! given back by another thread than the one that took them. What a world does depends on its seed alone, and so does
//! the hash.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_profiler::scope;

/// How much there is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) worlds: usize,
    pub(crate) entities: usize,
    pub(crate) frames: usize,
    /// Frames before those that are measured.
    pub(crate) warm_up: usize,
    /// Time from one frame's beginning to the next one's, if it is ready by then: allocators do things after a while.
    pub(crate) frame_period: Duration,
}

pub(crate) struct Outcome {
    /// Blocks that were asked for, resized and given back in the measured frames, the same for every allocator.
    pub(crate) operations: u64,
    /// Length of each measured frame.
    pub(crate) frames: Vec<Duration>,
    pub(crate) hash: u64,
}

/// Runs the plan with this many threads. `begin` is called when the warm-up is over.
pub(crate) fn run(plan: Plan, threads: usize, begin: impl Fn() + Sync) -> Outcome {
    let worlds: Vec<Mutex<Busy>> =
        (0..plan.worlds).map(|seed| Mutex::new(Busy::new(seed as u64, plan.entities))).collect();
    let next = AtomicUsize::new(0);
    let barrier = Barrier::new(threads);
    let frames = Mutex::new(Vec::with_capacity(plan.frames));
    let operations = || worlds.iter().map(|world| locked(world).operations).sum::<u64>();
    let operations_before = Mutex::new(0);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (worlds, next, barrier, frames, begin) = (&worlds, &next, &barrier, &frames, &begin);
            let (operations, operations_before) = (&operations, &operations_before);
            scope.spawn(move || {
                for frame in 0..plan.warm_up + plan.frames {
                    if thread == 0 {
                        next.store(0, Ordering::Relaxed);
                        if frame == plan.warm_up {
                            *locked(operations_before) = operations();
                            begin();
                        }
                    }
                    barrier.wait();
                    let begin = Instant::now();
                    while let Some(world) = worlds.get(next.fetch_add(1, Ordering::Relaxed)) {
                        locked(world).tick(frame);
                    }
                    barrier.wait();
                    let length = begin.elapsed();
                    if thread == 0 {
                        if frame >= plan.warm_up {
                            locked(frames).push(length);
                        }
                        std::thread::sleep(plan.frame_period.saturating_sub(length));
                    }
                }
            });
        }
    });
    let operations = operations() - *locked(&operations_before);
    let hash = worlds.iter().fold(0, |hash: u64, world| hash.rotate_left(7) ^ locked(world).hash);
    Outcome { operations, frames: frames.into_inner().unwrap_or_else(PoisonError::into_inner), hash }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Component)]
struct Bag(Vec<u64>);

/// One world and what it has.
struct Busy {
    world: World,
    entities: Vec<Entity>,
    large: Vec<Vec<u64>>,
    random: Xoshiro256PlusPlus,
    target: usize,
    match_offset: usize,
    operations: u64,
    hash: u64,
}

/// Entities that are replaced, and vectors that grow, in a tick.
const REPLACED: usize = 12;
const GROWN: usize = 6;
/// Large blocks that a world has at a time.
const LARGE: usize = 3;
/// One tick in this many replaces a large block.
const LARGE_EVERY: u32 = 8;
/// Frames from one beginning of a match to the next: then everything goes and comes anew.
const MATCH_FRAMES: usize = 250;

impl Busy {
    fn new(seed: u64, target: usize) -> Busy {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut busy = Busy {
            world: World::new(),
            entities: Vec::new(),
            large: Vec::new(),
            random,
            target,
            match_offset: seed as usize * 37 % MATCH_FRAMES,
            operations: 0,
            hash: seed,
        };
        busy.begin_match();
        busy
    }

    fn tick(&mut self, frame: usize) {
        scope!("bench.tick");
        // Matches of different worlds begin at different frames.
        if (frame + self.match_offset) % MATCH_FRAMES == MATCH_FRAMES - 1 {
            self.begin_match();
            return;
        }
        for _ in 0..REPLACED {
            let at = self.random.random_range(0..self.entities.len());
            let gone = self.entities.swap_remove(at);
            self.world.despawn(gone);
            self.spawn();
            self.operations += 1;
        }
        for _ in 0..GROWN {
            let at = self.random.random_range(0..self.entities.len());
            if let Some(mut bag) = self.world.get_mut::<Bag>(self.entities[at]) {
                let more = bag.0.len().min(2_048);
                bag.0.reserve_exact(more);
                bag.0.extend((0..more).map(|word| word as u64));
                self.hash = mix(self.hash, bag.0.len() as u64);
                self.operations += 1;
            }
        }
        if self.random.random_ratio(1, LARGE_EVERY) {
            let at = self.random.random_range(0..self.large.len());
            self.large[at] = Vec::new();
            self.large[at] = self.large_block();
            self.operations += 2;
        }
    }

    fn begin_match(&mut self) {
        self.operations += self.entities.len() as u64 + self.large.len() as u64;
        for gone in std::mem::take(&mut self.entities) {
            self.world.despawn(gone);
        }
        self.large.clear();
        (0..self.target).for_each(|_| self.spawn());
        for _ in 0..LARGE {
            let block = self.large_block();
            self.large.push(block);
            self.operations += 1;
        }
    }

    /// An entity with 16 B to 64 KiB, small ones as likely as large ones on a logarithmic scale.
    fn spawn(&mut self) {
        let words = 2.0_f64.powf(self.random.random_range(1.0..13.0)) as usize;
        let mut bag = Vec::with_capacity(words);
        bag.resize(words, self.random.random::<u64>());
        self.hash = mix(self.hash, bag[words / 2]);
        self.entities.push(self.world.spawn(Bag(bag)).id());
        self.operations += 1;
    }

    /// 256 KiB to 8 MiB, of which every page is written.
    fn large_block(&mut self) -> Vec<u64> {
        const PAGE_WORDS: usize = 512;
        let words = 2.0_f64.powf(self.random.random_range(15.0..20.0)) as usize;
        let mut block = Vec::with_capacity(words);
        for page in block.spare_capacity_mut()[..words].chunks_mut(PAGE_WORDS) {
            page[0].write(words as u64);
        }
        block.push(self.random.random());
        self.hash = mix(self.hash, block[0]);
        block
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
}
