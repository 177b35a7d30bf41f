//! Entity ids: which ids a world will give next, so that after a load it gives the same ones.
//!
//! Bevy gives the ids of despawned entities again, those that were freed last first. It keeps them in two lists: what was
//! freed lately waits in a short one, unseen by whoever asks for an id, until that is full. Neither can be read, so both
//! are emptied through the front door and filled again as they were:
//!
//! ```text
//! alloc <-- shared: f4 f3 f2 f1 | never used: n n+1 ..        free --> recent: up to 128, then all move to `shared`
//! ```
//!
//! Ids that were never used have generation 0 and all others a later one, which is how they are told apart. A few of the
//! never used ones lie at the end of `shared` afterwards, where they are given in the order in which they would have been.
//!
//! Cost: some 400 calls of a few nanoseconds, and two for each free id.

use bevy_ecs::{
    entity::{Entity, EntityGeneration, EntityIndex},
    world::World,
};

/// How many ids wait in the list of what was freed lately, in Bevy 0.20. A test notices when it is another number.
pub(super) const RECENT_MAX: usize = 128;

/// The ids that a world will give.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FreeIds {
    /// Given first to last, before any that was never used.
    pub shared: Vec<Entity>,
    /// In the order in which they were freed. Empty if nothing was ever freed, and never again.
    pub recent: Vec<Entity>,
    /// The first index that was never used.
    pub unused: u32,
}

/// What is left when an allocator has been emptied: ids that were never used.
struct Unused {
    /// Taken out of it, from the lowest on.
    taken: Vec<Entity>,
    /// They stand in its recent list, as many as were found there.
    recent_count: usize,
}

impl FreeIds {
    /// The ids that `world` will give; it gives the same ones afterwards.
    pub fn of(world: &mut World) -> Self {
        if !has_freed(world) {
            return Self { unused: first_unused(world), ..Self::default() };
        }
        let (free, unused) = empty(world);
        fill(world, &free, unused);
        free
    }

    /// Makes a world that was just built give these, and no other index below `unused`.
    ///
    /// Returns false, with the world spoilt, if it has given more than these already.
    #[must_use]
    pub fn restore(&self, world: &mut World) -> bool {
        let (first, unused) = if has_freed(world) {
            if self.recent.is_empty() {
                return false;
            }
            let (found, unused) = empty(world);
            (found.unused, unused)
        } else {
            (first_unused(world), Unused { taken: Vec::new(), recent_count: 0 })
        };
        if first > self.unused {
            return false;
        }
        if self.recent.is_empty() {
            // Nothing was ever freed, here or there.
            world.entity_allocator().alloc_many(self.unused - first).for_each(drop);
            return self.shared.is_empty();
        }
        fill(world, self, unused);
        true
    }
}

/// Brings an index that nobody has to the generation of `entity`, and returns how many generations that took; none if it
/// is beyond it already.
pub(super) fn age(world: &mut World, entity: Entity, steps_max: u32) -> Option<u32> {
    let wanted = entity.generation().to_bits();
    let mut steps = 0;
    loop {
        let now = world.entities().resolve_from_index(entity.index());
        if now == entity {
            return Some(steps);
        }
        if now.generation().to_bits() > wanted || steps >= steps_max {
            return None;
        }
        world.spawn_empty_at(now).ok()?;
        world.despawn_no_free(now)?;
        steps += 1;
    }
}

/// Whether an entity was ever despawned. Looks at all indices.
fn has_freed(world: &World) -> bool {
    let entities = world.entities();
    (0..entities.len()).filter_map(EntityIndex::from_raw_u32).any(|index| {
        entities.resolve_from_index(index).generation() != EntityGeneration::FIRST && !entities.is_index_spawned(index)
    })
}

/// The first index that was never used, where nothing was ever freed.
fn first_unused(world: &World) -> u32 {
    let spawned = world.archetypes().iter().flat_map(|archetype| archetype.entities());
    spawned.map(|entity| entity.id().index_u32() + 1).max().unwrap_or(0)
}

fn was_used(entity: Entity) -> bool {
    entity.generation() != EntityGeneration::FIRST
}

/// Takes all ids out of a world in which some were freed.
fn empty(world: &mut World) -> (FreeIds, Unused) {
    let mut free = FreeIds::default();
    let first = loop {
        match world.entity_allocator().alloc() {
            entity if was_used(entity) => free.shared.push(entity),
            entity => break entity,
        }
    };
    free.unused = first.index_u32();
    // As many as the recent list can hold, on top of what is in it: so that moves to where it can be taken.
    let pushed: Vec<Entity> = world.entity_allocator().alloc_many(RECENT_MAX as u32).collect();
    let allocator = world.entity_allocator_mut();
    pushed.iter().for_each(|entity| allocator.free(*entity));
    let mut taken = vec![first];
    loop {
        match world.entity_allocator().alloc() {
            entity if was_used(entity) => free.recent.push(entity),
            entity => {
                taken.push(entity);
                // Those that were pushed before the list was full lie on top of what was in it.
                if !free.recent.is_empty() {
                    break;
                }
            }
        }
    }
    free.recent.reverse();
    let recent_count = free.recent.len();
    (free, Unused { taken, recent_count })
}

/// Puts ids into an emptied allocator: `recent` is not empty.
fn fill(world: &mut World, free: &FreeIds, unused: Unused) {
    let Unused { mut taken, recent_count } = unused;
    let take = |world: &mut World, taken: &mut Vec<Entity>, count: usize| {
        taken.extend(world.entity_allocator().alloc_many(count as u32));
    };
    // The recent list is filled up with what can be spared; the next one moves all of it away, and is the first in it.
    let missing = (RECENT_MAX - recent_count).saturating_sub(taken.len());
    take(world, &mut taken, missing);
    let kept = taken.len() - (RECENT_MAX - recent_count);
    let allocator = world.entity_allocator_mut();
    taken.drain(kept..).for_each(|entity| allocator.free(entity));
    let (oldest, newer) = free.recent.split_first().expect("something was freed");
    allocator.free(*oldest);
    take(world, &mut taken, RECENT_MAX);
    let allocator = world.entity_allocator_mut();
    newer.iter().for_each(|entity| allocator.free(*entity));
    // Enough of those that were never used that they find no room in the recent list.
    let wanted = free.unused as usize + RECENT_MAX;
    let last = taken.iter().map(|entity| entity.index_u32() as usize).max().unwrap_or_default();
    take(world, &mut taken, wanted.saturating_sub(last));
    taken.retain(|entity| entity.index_u32() >= free.unused);
    taken.sort_unstable_by_key(|entity| std::cmp::Reverse(entity.index_u32()));
    taken.extend(free.shared.iter().rev());
    world.entity_allocator_mut().free_many(&taken);
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Spawns and despawns at random; returns the ids that were given.
    fn live(world: &mut World, rng: &mut Xoshiro256PlusPlus, steps: u32) -> Vec<Entity> {
        let mut given = Vec::new();
        let mut alive: Vec<Entity> = spawned(world).collect();
        alive.sort();
        for _ in 0..steps {
            if alive.is_empty() || rng.random_bool(0.52) {
                alive.push(world.spawn_empty().id());
                given.extend(alive.last());
            } else {
                world.despawn(alive.swap_remove(rng.random_range(0..alive.len())));
            }
        }
        given
    }

    /// All but resources.
    fn spawned(world: &World) -> impl Iterator<Item = Entity> {
        world.archetypes().empty().entities().iter().map(|at| at.id())
    }

    fn restored(from: &World, free: &FreeIds) -> World {
        let mut world = World::new();
        assert!(free.restore(&mut world));
        for entity in free.shared.iter().chain(&free.recent) {
            age(&mut world, *entity, u32::MAX).expect("a later generation");
        }
        for entity in spawned(from) {
            age(&mut world, entity, u32::MAX).expect("a later generation");
            world.spawn_empty_at(entity).expect("nobody has it");
        }
        world
    }

    /// Promise: whoever asks a world for its free ids changes nothing, and a world that is given them goes on alike.
    #[test]
    fn ids_are_given_alike_before_and_after_a_load() {
        for seed in 0..60 {
            let steps = [0, 1, 7, 100, 300, 1_000][seed as usize % 6];
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut asked, mut unasked) = (World::new(), World::new());
            assert_eq!(live(&mut asked, &mut rng.clone(), steps), live(&mut unasked, &mut rng, steps));
            for _ in 0..3 {
                let free = FreeIds::of(&mut asked);
                assert_eq!(FreeIds::of(&mut asked), free, "seed {seed}");
                let mut loaded = restored(&asked, &free);
                assert_eq!(FreeIds::of(&mut loaded), free, "seed {seed}");
                let expect = live(&mut unasked, &mut rng.clone(), 400);
                assert_eq!(live(&mut loaded, &mut rng.clone(), 400), expect, "seed {seed}, loaded");
                assert_eq!(live(&mut asked, &mut rng, 400), expect, "seed {seed}, asked");
            }
        }
    }
}
