//! Difference: where a replayed world is not what was recorded of it.
//!
//! A recorded hash has a part for each component and each entity. So both the components and the entities are known that
//! differ, and which of the two belong together as far as the entity has that component: of one entity with one component
//! that differs, exactly.

use std::fmt;

use bevy_ecs::entity::Entity;
use throng_replication::StateParts;
use throng_world::{GameWorld, ids::WorldId};

use crate::recording::{RecordedHash, short, shorter};

/// Entities that are named, at most.
const ENTITIES_MAX: usize = 8;

/// The first hash of a world that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    pub world: WorldId,
    pub kind: String,
    /// Ticks done when a hash held last; `None`: this was the first.
    pub equal_at: Option<u32>,
    /// Ticks done when this one did not.
    pub ticks: u32,
    /// Ticks that the recorded world had done; another number only if one of both has lost ticks.
    pub ticks_recorded: u32,
    /// Since the recording began.
    pub at_ms: u32,
    /// Components of which some value differs, by name. None where [`other_components`](Self::other_components).
    pub components: Vec<String>,
    /// The recorded build hashed more or fewer components than this one, so which of them differ cannot be said.
    pub other_components: bool,
    /// The first entities that differ, by place.
    pub entities: Vec<DivergedEntity>,
    pub entities_count: usize,
    /// The source of chance has been asked another number of times.
    pub random_differs: bool,
}

/// An entity that is not as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DivergedEntity {
    /// Its place in the world.
    pub place: u32,
    pub what: WhatDiffers,
    /// Its components among those that differ.
    pub components: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhatDiffers {
    Value,
    /// The recorded world has it, the replayed one has not.
    Missing,
    /// The other way round.
    Unexpected,
}

pub(super) fn find(
    world: &mut GameWorld,
    recorded: &RecordedHash<'_>,
    (random, parts): (u64, &StateParts),
    equal_at: Option<u32>,
    at_ms: u32,
) -> Divergence {
    let names: Vec<&str> = world.collector().hashed().collect();
    let other_components = recorded.columns().len() != parts.columns.len();
    let columns = recorded.columns().zip(&parts.columns).zip(&names).filter(|_| !other_components);
    let components: Vec<String> =
        columns.filter(|((was, is), _)| *was != short(**is)).map(|(_, name)| (*name).to_owned()).collect();
    let (found, entities_count) = entities(recorded, parts);
    let entities = found
        .into_iter()
        .map(|(place, what, entity)| {
            let has = entity.map(|entity| world.hash_of_entity(entity)).unwrap_or_default();
            let has = has.into_iter().map(|(name, _)| name.to_owned());
            DivergedEntity { place, what, components: has.filter(|name| components.contains(name)).collect() }
        })
        .collect();
    Divergence {
        world: world.id(),
        kind: world.name().to_string(),
        equal_at,
        ticks: world.ticks(),
        ticks_recorded: recorded.ticks,
        at_ms,
        components,
        other_components,
        entities,
        entities_count,
        random_differs: recorded.random != short(random),
    }
}

type Found = (u32, WhatDiffers, Option<Entity>);

/// Both lists are in the order of places.
fn entities(recorded: &RecordedHash<'_>, parts: &StateParts) -> (Vec<Found>, usize) {
    let (mut found, mut count) = (Vec::new(), 0);
    let mut tell = |one: Found| {
        count += 1;
        if found.len() < ENTITIES_MAX {
            found.push(one);
        }
    };
    let (mut was, mut is) = (recorded.entities().peekable(), parts.of_entities().peekable());
    loop {
        match (was.peek().copied(), is.peek().copied()) {
            (None, None) => break,
            (Some((place, _)), there) if there.is_none_or(|(entity, _)| place < entity.index_u32()) => {
                tell((place, WhatDiffers::Missing, None));
                was.next();
            }
            (then, Some((entity, hash))) => {
                match then.filter(|(place, _)| *place == entity.index_u32()) {
                    None => tell((entity.index_u32(), WhatDiffers::Unexpected, Some(entity))),
                    Some((place, recorded)) => {
                        if recorded != shorter(hash) {
                            tell((place, WhatDiffers::Value, Some(entity)));
                        }
                        was.next();
                    }
                }
                is.next();
            }
            (Some(_), None) => break,
        }
    }
    (found, count)
}

impl Divergence {
    /// True if the tick is known exactly: the state one tick earlier was compared, and equal.
    pub fn is_exact(&self) -> bool {
        self.equal_at.unwrap_or(0) + 1 >= self.ticks
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tick = self.ticks.saturating_sub(1);
        write!(f, "world {} ({}) diverges ", self.world, self.kind)?;
        match self.equal_at {
            Some(_) if self.is_exact() => write!(f, "in tick {tick}")?,
            Some(equal_at) => write!(f, "after tick {}, in tick {tick} at the latest", equal_at.saturating_sub(1))?,
            None => write!(f, "in tick {tick} or before; this was its first hash")?,
        }
        if self.ticks != self.ticks_recorded {
            write!(f, "; the recorded one had done {} ticks by then, and not {}", self.ticks_recorded, self.ticks)?;
        }
        match &self.components[..] {
            _ if self.other_components => write!(f, "; the recorded build hashed other components, so none is named")?,
            [] => {}
            components => write!(f, "; components: {}", components.join(", "))?,
        }
        for DivergedEntity { place, what, components } in &self.entities {
            write!(f, "; entity {place}")?;
            match what {
                WhatDiffers::Value if components.is_empty() => write!(f, " has another value")?,
                WhatDiffers::Value => write!(f, " has another {}", components.join(", "))?,
                WhatDiffers::Missing => write!(f, " is missing")?,
                WhatDiffers::Unexpected => write!(f, " should not be there")?,
            }
        }
        if self.entities_count > self.entities.len() {
            write!(f, "; and {} entities more", self.entities_count - self.entities.len())?;
        }
        if self.random_differs {
            write!(f, "; chance was asked another number of times")?;
        }
        Ok(())
    }
}
