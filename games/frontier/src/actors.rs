//! Actors: everybody and everything in the world, as rows of plain data.
//!
//! NPCs have the first rows, then come doors and nodes, all for as long as the world lives; players, traps and totems
//! take rows that are free. A row is the authority on its actor: its components are written from it when it changes
//! ([`crate::publish`]), and its place among others is in [`crate::neighbours::Neighbours`]. To remember another actor
//! is to keep a [`Who`], index and life. The life ends with death and departure, so nobody has to be searched for the
//! names of those who have gone.
//!
//! Systems do not walk all rows. They walk the [`IndexSet`]s of those who move, fight, cast, are hurt, sick, dead and
//! so on.
//!
//! Runs on the world's thread. Allocates when there are more actors than ever before. About 260 bytes an actor.

mod row;
mod saved;
mod side;

pub use row::{ABILITIES, Actor, Casting, Clocks, HURT_BELOW, Slot, Who, dirty};
pub use saved::SavedActors;
pub use side::Side;

use std::ops::{Index, IndexMut};

use bevy_ecs::{entity::Entity, resource::Resource};
use throng_query::neighbour_lists::NOBODY;
use throng_replication::{NetId, ReplicatedEvent};

use crate::{
    components::{ENTER_M, Gesture, LEAVE_M, Look},
    events::{Critical, Damage},
    index_set::IndexSet,
    landscape::{distance_m2, mix},
    traits::Traits,
};

/// So long after a blow it is still a fight. (ms)
pub const FIGHT_MS: u32 = 6_000;
/// Farther than this from its target a source is not named: whoever hears of the target need not know of the source.
/// (m)
pub const SOURCE_M: f32 = LEAVE_M / 2.0;

/// Whoever hears a blow at its farthest has a source that is named in view.
const fn is_in_view(range_m: Option<f32>) -> bool {
    matches!(range_m, Some(range_m) if range_m + SOURCE_M <= ENTER_M)
}
const _: () = assert!(is_in_view(<Damage as ReplicatedEvent>::RANGE_M));
const _: () = assert!(is_in_view(<Critical as ReplicatedEvent>::RANGE_M));

/// All rows, and who of them is busy with what.
#[derive(Resource, Default)]
pub struct Actors {
    rows: Vec<Actor>,
    free: Vec<u32>,
    /// Index by slot of the id that clients use.
    by_id: Vec<u32>,
    /// In the world for less than a tick, so clients have no name for them yet.
    pub unnamed: Vec<u32>,
    /// Rows of which components are to be written.
    pub changed: Vec<u32>,
    /// NPCs on their way.
    pub moving: IndexSet,
    /// Those with a target.
    pub fighting: IndexSet,
    pub casting: IndexSet,
    /// Those who lack health.
    pub mending: IndexSet,
    /// Those on whom a clock runs.
    pub afflicted: IndexSet,
    pub diseased: IndexSet,
    pub singing: IndexSet,
    pub dead: IndexSet,
    pub traps: IndexSet,
    pub totems: IndexSet,
    pub open_doors: IndexSet,
    /// Players and NPCs that are visibility-filtered; traps are by themselves.
    pub sneaking: IndexSet,
}

impl Actors {
    /// A row for somebody new, alive and with full health.
    pub fn add(&mut self, look: Look, place: [f32; 2], heading: f32) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.rows.push(Actor::empty());
            self.rows.len() as u32 - 1
        });
        let life = self.rows[index as usize].life.wrapping_add(1);
        let health = Traits::of(look.kind).health_at(look.level).max(1);
        let side = Side::of(look.kind);
        let row = Actor { look, side, life, alive: true, place, heading, health, health_max: health, ..Actor::empty() };
        self.rows[index as usize] = row;
        index
    }

    /// Ties a row to its entity, whose id is learned at the next tick.
    pub fn embody(&mut self, index: u32, entity: Entity) {
        self.rows[index as usize].entity = entity;
        self.unnamed.push(index);
    }

    /// Takes somebody out of everything. The neighbour lists and the entity are the caller's.
    pub fn remove(&mut self, index: u32) {
        self.stop_everything(index);
        self.dead.remove(index);
        self.unnamed.retain(|other| *other != index);
        let row = &mut self.rows[index as usize];
        if let Some(id) = row.id.take() {
            self.by_id[id.slot as usize] = NOBODY;
        }
        row.alive = false;
        row.life = row.life.wrapping_add(1);
        row.player = NOBODY;
        self.free.push(index);
    }

    /// Ends this life: nobody who remembers it finds it again.
    pub fn end_life(&mut self, index: u32) {
        self.stop_everything(index);
        self.dead.insert(index);
        let row = &mut self.rows[index as usize];
        row.alive = false;
        row.life = row.life.wrapping_add(1);
    }

    fn stop_everything(&mut self, index: u32) {
        let row = &mut self.rows[index as usize];
        (row.target, row.casting, row.singing, row.filtered) = (None, None, false, false);
        row.clocks = Clocks::default();
        let sets = [
            &mut self.moving,
            &mut self.fighting,
            &mut self.casting,
            &mut self.mending,
            &mut self.afflicted,
            &mut self.diseased,
            &mut self.singing,
            &mut self.traps,
            &mut self.totems,
            &mut self.open_doors,
            &mut self.sneaking,
        ];
        for set in sets {
            set.remove(index);
        }
    }

    /// Gives a row the name that clients have for it.
    pub fn name(&mut self, index: u32, id: NetId) {
        let slots = self.by_id.len().max(id.slot as usize + 1);
        self.by_id.resize(slots, NOBODY);
        self.by_id[id.slot as usize] = index;
        self.rows[index as usize].id = Some(id);
    }

    /// Whom a client means. Generations are compared: a name that somebody kept too long names nobody.
    pub fn by_id(&self, id: NetId) -> Option<u32> {
        let index = *self.by_id.get(id.slot as usize)?;
        let row = self.rows.get(index as usize)?;
        (row.id == Some(id)).then_some(index)
    }

    pub fn who(&self, index: u32) -> Who {
        Who { index, life: self.rows[index as usize].life }
    }

    /// The index of somebody who still lives the same life.
    pub fn resolve(&self, who: Who) -> Option<u32> {
        let row = self.rows.get(who.index as usize)?;
        (row.alive && row.life == who.life).then_some(who.index)
    }

    /// Who did something to a target, as those around the target may hear it: nobody who is visibility-filtered, and
    /// nobody who is too far from it, as the owner of a trap may be.
    pub fn source(&self, who: Option<Who>, target: u32) -> Option<NetId> {
        let may_be_named =
            |row: &&Actor| !row.filtered && distance_m2(row.place, self[target].place) <= SOURCE_M * SOURCE_M;
        let row = who.and_then(|who| self.resolve(who)).map(|index| &self[index]);
        row.filter(may_be_named).and_then(|row| row.id)
    }

    /// Whether one may hurt the other: monsters against all others that live.
    pub fn are_enemies(&self, one: u32, other: u32) -> bool {
        let (one, other) = (self[one].side, self[other].side);
        one != other && one != Side::None && other != Side::None
    }

    /// Notes that components are to be written.
    pub fn mark(&mut self, index: u32, what: u8) {
        let row = &mut self.rows[index as usize];
        if row.dirty == 0 {
            self.changed.push(index);
        }
        row.dirty |= what;
    }

    /// Notes a gesture.
    pub fn play(&mut self, index: u32, gesture: Gesture) {
        self[index].animation.play(gesture);
        self.mark(index, dirty::ANIMATION);
    }

    /// Names a target, or none.
    pub fn set_target(&mut self, index: u32, target: Option<Who>) {
        self[index].target = target;
        self.fighting.set(index, target.is_some());
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn rows(&self) -> &[Actor] {
        &self.rows
    }

    /// One number for the state of all actors: equal states have equal numbers.
    pub fn digest(&self) -> u64 {
        let mut digest = 0;
        let mut add = |value: u64| digest = mix(digest ^ value);
        for row in &self.rows {
            let [x, z] = row.place.map(|metres| u64::from(metres.to_bits()));
            add(x << 32 | z);
            add(u64::from(row.heading.to_bits()) << 32 | u64::from(row.life));
            add((row.health as u64) << 8
                | u64::from(row.alive)
                | u64::from(row.filtered) << 1
                | u64::from(row.open) << 2);
            add(row.target.map_or(0, |target| u64::from(target.index) << 32 | u64::from(target.life)));
            add(u64::from(row.clocks.stunned) << 32 | u64::from(row.clocks.diseased));
            add(u64::from(row.clocks.soothed) << 32 | u64::from(row.clocks.blessed));
            add(u64::from(row.swing_tick) << 32 | u64::from(row.animation.count) << 16 | u64::from(row.stock));
        }
        digest
    }
}

impl Index<u32> for Actors {
    type Output = Actor;

    fn index(&self, index: u32) -> &Actor {
        &self.rows[index as usize]
    }
}

impl IndexMut<u32> for Actors {
    fn index_mut(&mut self, index: u32) -> &mut Actor {
        &mut self.rows[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::Kind;

    fn wolf() -> Look {
        Look { kind: Kind::Wolf, level: 1, variety: 0 }
    }

    #[test]
    fn who_is_remembered_is_forgotten_with_its_life() {
        let mut actors = Actors::default();
        let one = actors.add(wolf(), [1.0, 2.0], 0.0);
        let who = actors.who(one);
        assert_eq!(actors.resolve(who), Some(one));
        actors.end_life(one);
        assert_eq!(actors.resolve(who), None);
        actors.remove(one);
        let other = actors.add(wolf(), [3.0, 4.0], 0.0);
        assert_eq!(other, one, "rows are used again");
        assert_eq!(actors.resolve(who), None);
    }

    #[test]
    fn clients_names_find_rows_until_these_are_gone() {
        let mut actors = Actors::default();
        let one = actors.add(wolf(), [0.0; 2], 0.0);
        let id = NetId { slot: 40, generation: 2 };
        actors.embody(one, Entity::PLACEHOLDER);
        actors.name(one, id);
        assert_eq!(actors.by_id(id), Some(one));
        assert_eq!(actors.by_id(NetId { generation: 1, ..id }), None);
        assert_eq!(actors.by_id(NetId { slot: 7, ..id }), None);
        assert_eq!(actors.by_id(NetId { slot: u32::MAX, ..id }), None);
        actors.remove(one);
        assert_eq!(actors.by_id(id), None);
    }

    #[test]
    fn the_living_have_at_least_one_percent() {
        let mut actors = Actors::default();
        let one = actors.add(wolf(), [0.0; 2], 0.0);
        for (health, percent) in [(1, 2), (45, 50), (90, 100)] {
            actors[one].health = health;
            assert_eq!(actors[one].vitals().health, percent);
        }
    }
}
