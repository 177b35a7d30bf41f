//! Zone: what a system of the world works on, and the few things that many of them do.
//!
//! One system parameter holds the rows, the neighbour lists, the minds, the tick's deeds, whom players aim at, chance, and
//! the server's resources for events: all systems run one after the other on the world's thread, and each would otherwise name the
//! same ten. What many systems do is here and in the modules below: to move somebody, to hurt, to tell those around.
//! What one system does is in its own module. The zone knows the state and no system.
//!
//! Allocates nothing in a steady tick.

mod aiming;
mod casting;
mod effects;
mod moving;
mod seeing;
mod telling;

pub use telling::FIGHTER_WEIGHT;

use bevy_ecs::{prelude::*, system::SystemParam};
use rand::Rng;
use throng::prelude::*;

use crate::{
    actors::Actors,
    aims::Aims,
    deeds::{Blow, Deeds},
    landscape::{Land, distance_m2},
    neighbours::{Neighbours, Question},
    npc::Minds,
    roster::Roster,
};

/// Buffers that systems borrow for a moment, so that they can walk a copy of a list while they change it.
#[derive(Resource, Default)]
pub struct Scratch(Vec<Vec<u32>>);

impl Scratch {
    /// An empty buffer with room from before.
    pub fn take(&mut self) -> Vec<u32> {
        self.0.pop().unwrap_or_default()
    }

    pub fn give_back(&mut self, mut buffer: Vec<u32>) {
        buffer.clear();
        self.0.push(buffer);
    }
}

/// All that systems work on.
#[derive(SystemParam)]
pub struct Zone<'w> {
    pub tick: Res<'w, TickInfo>,
    pub land: Res<'w, Land>,
    pub actors: ResMut<'w, Actors>,
    pub neighbours: ResMut<'w, Neighbours>,
    pub minds: ResMut<'w, Minds>,
    pub deeds: ResMut<'w, Deeds>,
    pub roster: ResMut<'w, Roster>,
    pub aims: Res<'w, Aims>,
    pub scratch: ResMut<'w, Scratch>,
    pub rng: ResMut<'w, WorldRng>,
    pub events: ResMut<'w, Events>,
    pub outbox: ResMut<'w, Outbox>,
}

impl Zone<'_> {
    /// This tick's number.
    pub fn now(&self) -> u32 {
        self.tick.tick
    }

    /// How many ticks so many milliseconds are, at least 1.
    pub fn ticks(&self, ms: u32) -> u32 {
        (ms * u32::from(self.tick.rate.0) / 1_000).max(1)
    }

    /// Whether something that an actor does every so many milliseconds is due: each in another tick of the period than
    /// its neighbours.
    pub fn is_due(&self, index: u32, every_ms: u32) -> bool {
        self.now().wrapping_add(index).is_multiple_of(self.ticks(every_ms))
    }

    /// Puts the members of a set, as they are now, into a buffer, to be given back to `scratch`.
    pub fn batch(&mut self, list: impl Fn(&Actors) -> &[u32]) -> Vec<u32> {
        let mut batch = self.scratch.take();
        batch.extend_from_slice(list(&self.actors));
        batch
    }

    /// Others of `groups` within the question's radius that are still there, in a buffer to be given back.
    pub fn asked(&mut self, question: Question, index: u32, groups: u32) -> Vec<u32> {
        let mut batch = self.scratch.take();
        batch.extend_from_slice(self.neighbours.ask(question, index, groups));
        batch
    }

    pub fn distance_m2(&self, one: u32, other: u32) -> f32 {
        distance_m2(self.actors[one].place, self.actors[other].place)
    }

    /// A number in 0..1 from the world's own chance.
    pub fn chance(&mut self) -> f32 {
        self.rng.0.random()
    }

    /// A place within so many metres of another, by chance.
    pub fn scatter(&mut self, [x, z]: [f32; 2], metres: f32) -> [f32; 2] {
        let (aside, along) = (self.chance() * 2.0 - 1.0, self.chance() * 2.0 - 1.0);
        [x + aside * metres, z + along * metres]
    }

    /// Adds a blow or a mending to this tick's.
    pub fn strike(&mut self, blow: Blow) {
        throng::count!("blows_dropped", u64::from(!self.deeds.strike(blow)));
    }

    /// Puts somebody into the groups it belongs to by now.
    pub fn regroup(&mut self, index: u32) {
        let groups = self.actors[index].groups();
        self.neighbours.set_groups(index, groups);
    }
}
