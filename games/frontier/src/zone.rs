//! Zone: what a system of the world works on, and the few things that many of them do.
//!
//! Rows, close lists, minds, the tick's deeds, chance, and the server's resources for events: together in one system parameter, since all
//! systems run one after the other on the world's thread and each would otherwise name the same ten. What many systems do is here
//! (to move somebody, to hurt, to tell those around); what one does is in its module.
//!
//! Allocates nothing in a steady tick.

use bevy_ecs::{prelude::*, system::SystemParam};
use rand::Rng;
use throng::prelude::*;
use throng_replication::{Event, NetId};

use crate::{
    actors::{Actors, Casting, Clocks, Who, dirty},
    close::Close,
    components::{Gesture, Kind},
    deeds::{Blow, Deeds},
    events::{Burst, Cast, Landed, Particles, Stun},
    landscape::{Landscape, distance_m2, within_edge},
    npc::Minds,
    players::Roster,
    protocol::Ability,
    spells,
};

/// The map, as a resource.
#[derive(Resource, Clone)]
pub struct Land(pub std::sync::Arc<Landscape>);

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
    pub close: ResMut<'w, Close>,
    pub minds: ResMut<'w, Minds>,
    pub deeds: ResMut<'w, Deeds>,
    pub roster: ResMut<'w, Roster>,
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

    /// Whether something that an actor does every so many milliseconds is due: each in another tick of the period than its neighbours.
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
    pub fn asked(&mut self, question: crate::close::Question, index: u32, groups: u32) -> Vec<u32> {
        let mut batch = self.scratch.take();
        batch.extend_from_slice(self.close.ask(question, index, groups));
        batch
    }

    pub fn distance_m2(&self, one: u32, other: u32) -> f32 {
        distance_m2(self.actors[one].place, self.actors[other].place)
    }

    /// A number in 0..1 from the world's own chance.
    pub fn chance(&mut self) -> f32 {
        self.rng.0.random()
    }

    /// Moves somebody to a place within the landscape's edge.
    pub fn walk_to(&mut self, index: u32, place: [f32; 2]) {
        let place = place.map(within_edge);
        let row = &mut self.actors[index];
        if row.place != place {
            row.place = place;
            self.actors.mark(index, dirty::POSE);
            self.close.moved(index, place);
        }
    }

    pub fn turn_to(&mut self, index: u32, heading: f32) {
        if self.actors[index].heading != heading {
            self.actors[index].heading = heading;
            self.actors.mark(index, dirty::POSE);
        }
    }

    pub fn face(&mut self, index: u32, place: [f32; 2]) {
        let from = self.actors[index].place;
        let (x, z) = (place[0] - from[0], place[1] - from[1]);
        if x != 0.0 || z != 0.0 {
            self.turn_to(index, x.atan2(z).rem_euclid(std::f32::consts::TAU));
        }
    }

    /// Takes somebody elsewhere at once.
    pub fn teleport(&mut self, index: u32, place: [f32; 2]) {
        self.walk_to(index, place);
        let row = &self.actors[index];
        self.outbox.teleported(row.entity);
        if let Some(who) = row.id.filter(|_| row.is_player() && !row.concealed) {
            let to = row.place;
            self.events.send(&crate::events::Teleport { who, to }, Audience::Everyone, "move.teleport");
        }
    }

    /// Adds a blow or a mending to this tick's.
    pub fn strike(&mut self, blow: Blow) {
        throng::count!("blows_dropped", u64::from(!self.deeds.strike(blow)));
    }

    /// Tells those around somebody. Nothing is told of somebody whom clients have no name for yet.
    pub fn tell<T: Event>(&mut self, index: u32, event: impl FnOnce(NetId) -> T, cause: &'static str) {
        let row = &self.actors[index];
        if let Some(id) = row.id {
            self.events.send(&event(id), Audience::Around(row.entity), cause);
        }
    }

    pub fn burst(&mut self, index: u32, burst: Burst, cause: &'static str) {
        self.tell(index, |at| Particles { at, burst }, cause);
    }

    pub fn tell_landed(&mut self, index: u32, ability: Ability) {
        self.tell(index, |target| Landed { target, ability }, "spell.landed");
    }

    /// Starts a clock on somebody, or lets it run longer.
    pub fn afflict(&mut self, index: u32, ms: u32, clock: impl Fn(&mut Clocks) -> &mut u32) {
        let until = self.now() + self.ticks(ms);
        let clock = clock(&mut self.actors[index].clocks);
        *clock = until.max(*clock);
        self.actors.afflicted.insert(index);
        self.actors.mark(index, dirty::EFFECTS);
    }

    pub fn stun(&mut self, index: u32, ms: u32) {
        self.afflict(index, ms, |clocks| &mut clocks.stunned);
        self.actors[index].casting = None;
        self.actors.casting.remove(index);
        throng::count!("stuns");
        self.tell(index, |target| Stun { target, tenths: (ms / 100).min(255) as u8 }, "spell.stun");
    }

    /// Begins a spell, if it is ready and nothing is in the way. False if not.
    pub fn begin_cast(&mut self, index: u32, ability: Ability, target: Option<Who>) -> bool {
        let now = self.now();
        let spell = spells::Spell::of(ability);
        let row = &self.actors[index];
        let ready = row.alive
            && ability != Ability::None
            && row.casting.is_none()
            && row.ready_tick[ability as usize] <= now
            && !row.is_stunned(now);
        if !ready {
            return false;
        }
        let (cast, cool) = (self.ticks(spell.cast_ms), self.ticks(spell.cool_ms));
        let row = &mut self.actors[index];
        row.casting = Some(Casting { ability, target, ends_tick: now + cast });
        row.ready_tick[ability as usize] = now + cast + cool;
        self.actors.casting.insert(index);
        self.actors.play(index, Gesture::Cast);
        throng::count!("casts");
        self.tell(index, |caster| Cast { caster, ability }, "spell.cast");
        true
    }

    /// Puts somebody into the groups it belongs to by now.
    pub fn regroup(&mut self, index: u32) {
        let groups = self.actors[index].groups();
        self.close.set_groups(index, groups);
    }

    /// Whether one sees the other over the ground between them.
    pub fn is_line_clear(&mut self, one: u32, other: u32) -> bool {
        throng::count!("lines_of_sight");
        self.land.0.is_line_clear(self.actors[one].place, self.actors[other].place)
    }

    /// Whether one notices the other: not concealed from it, and in line of sight.
    pub fn sees(&mut self, one: u32, other: u32) -> bool {
        let concealed = self.actors[other].concealed;
        if concealed {
            throng::count!("lines_of_sight");
            return crate::concealment::is_seen(&self.actors, &self.land.0, one, other);
        }
        self.is_line_clear(one, other)
    }

    /// Begins or ends somebody's concealment.
    pub fn conceal(&mut self, index: u32, concealed: bool) {
        let row = &mut self.actors[index];
        if row.concealed == concealed {
            return;
        }
        row.concealed = concealed;
        let entity = row.entity;
        if row.look.kind != Kind::Trap {
            self.actors.sneaking.set(index, concealed);
        }
        self.actors.mark(index, dirty::EFFECTS);
        self.deeds.conceal(entity, concealed);
    }
}
