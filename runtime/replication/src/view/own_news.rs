//! Own news: what a tick has of the client's own entity, and which message says the input that goes with it.
//!
//! A client that predicts holds its own entity, as a message tells it, against the input that the message says its tick
//! has taken. Were the input told and the entity kept back, what was predicted rightly would look wrong. So the own entity
//! waits for nothing that others wait for, and a message says the tick's input only if the client knows with it how the
//! entity stands after that:
//!
//! ```text
//! the own entity this tick      the first message                        further ones
//! nothing new of it             says the input                           say it, too
//! something new                 has it, and says the input               say none
//! something new, and no room    is not written: nothing goes out
//! ```
//!
//! It comes in the first message wherever its slot is: so much room is kept back for it as it takes, and if that message is
//! full before its turn it is written there all the same, as the last one, for slots rise from record to record. Then it is
//! passed over at its place. Above the budget it is chosen before all others, and no tier makes it wait; what has a rate of
//! its own for everybody (`KindRule::updates_per_s_max`) is not new before it is told.
//!
//! Cost: one look for its entry for each client and tick. Allocates nothing.

use throng_platform::never;

use crate::{
    source::bulk::Record,
    view::{
        client_view::View,
        entry::{END, Entry},
        message::{Message, RECORD_HEADER_BYTES_MAX},
        scene::Scene,
        snapshot::record_bytes,
        traffic::Cause,
    },
};

/// How far a tick's news of the own entity have come.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum OwnNews {
    /// There are none, or there is no own entity that the client is to hold.
    #[default]
    None,
    /// No message has them yet.
    Due,
    /// A message has them.
    Told,
}

impl View {
    /// The own entity's place in the list, if the client is to hold it.
    pub(super) fn find_own(&self) -> Option<usize> {
        let own = self.own?;
        let index = self.list.find(own.slot)?;
        let entry = &self.list.entries[index];
        (entry.is_relevant() && entry.generation == own.generation).then_some(index)
    }

    /// What changed of the own entity this tick is owed at once, where others wait for their turn.
    pub(super) fn hasten_own(&mut self, own: usize, scene: &Scene) {
        if scene.rings.is_trivial() {
            return;
        }
        let Entry { slot, .. } = self.list.entries[own];
        let entities = &scene.entities;
        let changed = entities.dirty[slot as usize] as u16 & entities.slots[slot as usize].present;
        let in_turn = self.record_of(own, scene).map_or(0, |record| record.mask);
        self.owe(own, changed & !in_turn, Cause::Change);
    }

    /// Notes whether this tick's messages are to have news of the own entity, once it is known what goes out how.
    pub(super) fn expect_own_news(&mut self, own: Option<usize>, scene: &Scene) {
        let is_due = |own: usize| {
            let is_in_bulk = self.bulk_from != END && self.record_of(own, scene).is_some_and(|record| record.mask != 0);
            is_in_bulk || self.list.entries[own].is_owed_anything()
        };
        self.own_news = if own.is_some_and(is_due) { OwnNews::Due } else { OwnNews::None };
    }

    /// Writes records, with those of the own entity among them if there is any room for them.
    pub(super) fn write_with_own(&mut self, scene: &Scene, message: &mut Message<'_>) {
        let Some(own) = self.find_own() else {
            self.merge(scene, message);
            return;
        };
        let bytes = self.own_bytes(own, scene);
        message.keep_back(bytes);
        self.merge(scene, message);
        message.keep_back(0);
        if self.has_come_to(own) {
            self.own_news = OwnNews::Told;
            self.merge(scene, message);
            return;
        }
        let is_passed = self.list.entries[own].slot < message.pen.slot_before;
        if !never!(is_passed, "the own entity was passed without being written") && bytes <= message.room() {
            self.put_ahead(own, scene, message);
            self.own_news = OwnNews::Told;
        }
    }

    /// Most bytes that the own entity's record takes.
    fn own_bytes(&self, own: usize, scene: &Scene) -> usize {
        let entry = &self.list.entries[own];
        if entry.is_owed_anything() {
            return record_bytes(&scene.entities, entry);
        }
        RECORD_HEADER_BYTES_MAX + self.record_of(own, scene).map_or(0, |record| usize::from(record.len))
    }

    /// Whether writing has come past an entry that there was something to write of.
    fn has_come_to(&self, index: usize) -> bool {
        let entry = &self.list.entries[index];
        !entry.is_owed_anything() && self.bulk_from > entry.slot
    }

    /// Writes the own entity's record ahead of others whose turn is before it. There is room.
    fn put_ahead(&mut self, own: usize, scene: &Scene, message: &mut Message<'_>) {
        if !self.list.entries[own].is_owed_anything() {
            // Its turn was to come with the bulk. From here on it has a place among the slow, where it is passed over.
            let kinds = self.record_of(own, scene).map_or(0, |record| record.mask);
            self.owe(own, kinds, Cause::Deferred);
            let slot = self.list.entries[own].slot;
            let later = &self.pending[self.cursor..];
            let before = later.partition_point(|index| self.list.entries[*index as usize].slot < slot);
            self.pending.insert(self.cursor + before, own as u32);
        }
        self.put_any(own, &scene.entities, message);
    }

    /// What the tick's bulk has of an entry.
    fn record_of<'s>(&self, index: usize, scene: &'s Scene) -> Option<&'s Record> {
        let entry = &self.list.entries[index];
        scene.bulk.rings().get(usize::from(entry.ring)).map(|ring| &ring.records[entry.slot as usize])
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        replicas::store::Replicas,
        source::rules::{ReplicationRules, Tier},
        testing::{Pose, TestWorld, ViewId, pose, schema},
        view::interest::InterestSettings,
        wire::{ids::NetId, schema::ComponentIndex},
    };

    /// A crowd that moves, and a client that steers one of it. Inputs have their ticks' numbers.
    struct Crowd {
        world: TestWorld,
        ids: Vec<NetId>,
        own: usize,
        view: ViewId,
        replicas: Replicas,
        tick: u32,
        next_packet: u16,
        /// In how many ticks each came.
        written: Vec<u32>,
        own_moves: bool,
        loses: bool,
    }

    /// What a message said.
    #[derive(Debug, PartialEq)]
    struct Told {
        input: u16,
        has_own: bool,
    }

    impl Crowd {
        fn new(count: usize, own: usize, budget_bytes_per_tick: u32) -> Self {
            let settings = InterestSettings { budget_bytes_per_tick, ..InterestSettings::default() };
            let mut world = TestWorld::new(schema(), settings);
            world.begin_tick(1);
            let ids: Vec<_> = (0..count).map(|_| world.spawn().expect("there is room")).collect();
            for (index, id) in ids.iter().enumerate() {
                world.set_place(*id, [index as f32 * 0.2, 0.0]);
                world.update(ComponentIndex(0), *id, &pose(0.0));
            }
            let view = world.add_client(0);
            world.set_own(view, Some(ids[own]));
            Self {
                world,
                own,
                view,
                replicas: Replicas::new(schema()),
                tick: 1,
                next_packet: 0,
                written: vec![0; count],
                ids,
                own_moves: true,
                loses: false,
            }
        }

        fn move_on(&mut self) {
            self.tick += 1;
            self.world.begin_tick(self.tick);
            for (index, id) in self.ids.iter().enumerate().filter(|(index, _)| self.own_moves || *index != self.own) {
                self.world.update(ComponentIndex(0), *id, &pose(index as f32 * 0.2 + self.tick as f32 * 0.05));
            }
            self.world.refresh_interest();
            self.world.check();
        }

        /// The client gets so many packets of a tick at most; what each says.
        fn hear(&mut self, packets_max: usize, packet_bytes: usize) -> Vec<Told> {
            let own = self.ids[self.own];
            let mut told = Vec::new();
            let mut out = vec![0; packet_bytes];
            for _ in 0..packets_max {
                let len = self.world.write_snapshot(self.view, self.tick as u16, &mut out);
                if len == 0 {
                    break;
                }
                self.next_packet = self.next_packet.wrapping_add(1);
                self.world.sent(self.view, self.next_packet);
                if self.loses {
                    self.world.lost(self.view, self.next_packet);
                    continue;
                }
                let before = self.replicas.tick_of::<Pose>(own);
                let header = self.replicas.apply(&out[..len]).expect("it is a snapshot");
                self.world.acked(self.view, self.next_packet);
                let after = self.replicas.tick_of::<Pose>(own);
                told.push(Told { input: header.input, has_own: before != after && after == Some(self.tick) });
            }
            for (id, written) in self.ids.iter().zip(&mut self.written) {
                *written += u32::from(self.replicas.tick_of::<Pose>(*id) == Some(self.tick));
            }
            self.world.check();
            told
        }

        fn tick(&mut self, packets_max: usize, packet_bytes: usize) -> Vec<Told> {
            self.move_on();
            self.hear(packets_max, packet_bytes)
        }

        /// Asserts that the first message of this tick had the own entity, and said the input, and that the others did not.
        #[track_caller]
        fn check(&self, told: &[Told]) {
            let (first, others) = told.split_first().expect("something was said");
            assert_eq!(*first, Told { input: self.tick as u16, has_own: true }, "in tick {}", self.tick);
            assert!(others.iter().all(|told| *told == Told { input: 0, has_own: false }), "{others:?}");
        }
    }

    /// Promise: however far a crowd is above the budget, each tick's first message has the own entity as of that tick, and
    /// all others still have their turns.
    #[test]
    fn in_a_crowd_above_the_budget_the_own_entity_comes_with_every_tick() {
        for own in [0, 120, 249] {
            let mut crowd = Crowd::new(250, own, 200);
            for _ in 0..400 {
                let told = crowd.tick(8, 1200);
                crowd.check(&told);
            }
            assert_eq!(crowd.written[own], 400);
            assert!(crowd.written.iter().all(|times| *times >= 4), "{:?}", crowd.written);
        }
    }

    #[test]
    fn a_budget_that_is_below_one_entity_leaves_something_to_the_others() {
        let mut crowd = Crowd::new(20, 7, 1);
        for _ in 0..200 {
            let told = crowd.tick(8, 1200);
            crowd.check(&told);
        }
        assert!(crowd.written.iter().all(|times| *times >= 4), "{:?}", crowd.written);
    }

    /// Promise: of several messages the first has it, wherever its slot is, and no entity is written twice for that.
    #[test]
    fn of_several_messages_the_first_has_it_and_says_the_input() {
        for (own, gone) in [(0, None), (120, None), (249, None), (0, Some(60)), (120, Some(60)), (249, Some(60))] {
            let mut crowd = Crowd::new(250, own, 65_536);
            let told = crowd.tick(100, 100);
            crowd.check(&told);
            if let Some(gone) = gone {
                crowd.world.despawn(crowd.ids[gone]);
                crowd.tick(100, 100);
            }
            crowd.world.take_stats();
            for _ in 0..10 {
                let told = crowd.tick(100, 100);
                assert!(told.len() > 10, "{} messages", told.len());
                crowd.check(&told);
                let updates = crowd.world.take_stats().entity_updates;
                assert_eq!(updates, 250 - u64::from(gone.is_some()), "own {own}, gone {gone:?}");
            }
        }
    }

    #[test]
    fn where_the_caller_cuts_off_below_the_budget_it_comes_with_every_tick() {
        for own in [0, 120, 249] {
            let mut crowd = Crowd::new(250, own, 65_536);
            for _ in 0..200 {
                let told = crowd.tick(1, 150);
                crowd.check(&told);
            }
            assert!(crowd.written.iter().all(|times| *times >= 6), "{:?}", crowd.written);
        }
    }

    #[test]
    fn no_tier_makes_it_wait() {
        let tiers = vec![Tier { to_m: 100.0, updates_per_s: 5.0 }];
        let rules = ReplicationRules { tiers, ..ReplicationRules::default() };
        let mut crowd = Crowd::new(20, 7, 65_536);
        crowd.world.set_rules(&rules.resolved(20.0), 20.0);
        (0..8).for_each(|_| _ = crowd.tick(8, 1200));
        crowd.written.fill(0);
        for _ in 0..40 {
            let told = crowd.tick(8, 1200);
            crowd.check(&told);
        }
        let expect: Vec<u32> = (0..20).map(|index| if index == 7 { 40 } else { 10 }).collect();
        assert_eq!(crowd.written, expect, "five in a second of twenty ticks");
    }

    #[test]
    fn where_nothing_is_new_of_it_every_message_says_the_input() {
        let mut crowd = Crowd::new(250, 120, 65_536);
        crowd.tick(100, 100);
        crowd.own_moves = false;
        let told = crowd.tick(100, 100);
        assert!(told.len() > 10, "{} messages", told.len());
        assert!(told.iter().all(|told| *told == Told { input: crowd.tick as u16, has_own: false }), "{told:?}");
    }

    #[test]
    fn where_there_is_no_room_for_it_nothing_is_said() {
        let mut crowd = Crowd::new(2, 1, 65_536);
        crowd.tick(8, 1200);
        crowd.move_on();
        assert_eq!(crowd.hear(1, 20), []);
        let told = crowd.hear(8, 1200);
        crowd.check(&told);
    }

    /// Promise: what was lost of it is new again.
    #[test]
    fn after_a_loss_it_comes_with_the_next_tick() {
        let mut crowd = Crowd::new(250, 120, 65_536);
        crowd.tick(100, 100);
        crowd.loses = true;
        assert_eq!(crowd.tick(100, 100), []);
        (crowd.loses, crowd.own_moves) = (false, false);
        let told = crowd.tick(100, 100);
        crowd.check(&told);
    }
}
