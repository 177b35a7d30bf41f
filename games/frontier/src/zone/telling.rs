//! Telling: the events that clients get about an actor, and the signals that NPCs send each other.

use throng::prelude::*;
use throng_replication::{NetId, ReplicatedEvent};

use super::Zone;
use crate::{
    actors::Who,
    characters::GOODS,
    deeds::Mark,
    events::{Burst, Landed, Particles},
    mailboxes::{Call, Signal},
    protocol::Ability,
};

/// How much more urgent somebody is who fights than one who does not.
pub const FIGHTER_WEIGHT: f32 = 2.0;

impl Zone<'_> {
    /// Tells those around somebody. Nothing is told of somebody whom clients have no name for yet.
    pub fn tell<T: ReplicatedEvent>(&mut self, index: u32, event: impl FnOnce(NetId) -> T, cause: &'static str) {
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

    /// Gives a player goods that come into being.
    pub fn earn(&mut self, player: u32, amount: u16) {
        let earned = self.roster.earn(player, amount);
        self.outbox.items_created(GOODS, earned.into());
        self.tell_purse(player);
    }

    /// Tells a player what it has.
    pub fn tell_purse(&mut self, player: u32) {
        if let Some((client, purse)) = self.roster.purse(player) {
            self.events.send(&purse, Audience::Client(client), "trade.purse");
        }
    }

    /// Says how urgent somebody is to clients.
    pub fn weigh(&mut self, index: u32, weight: f32) {
        if self.actors[index].weight != weight {
            self.actors[index].weight = weight;
            let entity = self.actors[index].entity;
            self.deeds.marks.push(Mark::Weight(entity, weight));
        }
    }

    /// Sends a signal to an NPC.
    pub fn signal(&mut self, to: u32, call: Call, about: Who) {
        let signal = Signal { call, to: self.actors.who(to), about };
        let camp = self.minds.rows[to as usize].camp;
        let posted = self.minds.mailboxes.post(camp, signal);
        throng::count!("signals_sent", u64::from(posted));
        throng::count!("signals_dropped", u64::from(!posted));
    }
}
