//! Services: doors that are opened, bankers that take what is carried, nodes that are gathered from; each by whoever stands near it.
//!
//! A door shuts when its time has come and nobody stands in it.
//!
//! Cost: 60 ns per use; 60 ns per open door and half second.

use throng_replication::NetId;

use crate::{
    actors::dirty,
    close::{Question, groups},
    components::{Gesture, Kind},
    events::{Burst, DoorMoved},
    zone::Zone,
};

const OPEN_MS: u32 = 4_000;
const SHUT_LOOK_MS: u32 = 500;
const GATHER_MS: u32 = 2_000;
/// What a node holds when it is full, and how long it takes to get one back. (ms)
pub const NODE_STOCK: u16 = 20;
const REGROW_MS: u32 = 5_000;

impl Zone<'_> {
    /// Uses what a client means, if it is one to be used and near.
    pub fn use_thing(&mut self, actor: u32, id: NetId) {
        let thing = self.actors.by_id(id).filter(|_| self.actors[actor].alive);
        let Some(thing) = thing else { return };
        match self.actors[thing].kind() {
            Kind::Door if self.close.ask(Question::Door, actor, groups::DOORS).contains(&thing) => {
                self.open(thing);
                self.actors.play(actor, Gesture::Open);
            }
            Kind::Banker => {
                let near = self.close.ask(Question::Banker, actor, groups::BANKERS).contains(&thing);
                let row = self.actors[actor].player;
                if near && self.roster.deposit(row) {
                    throng::count!("deposits");
                    self.tell_purse(row);
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, door: u32) {
        let until = self.now() + self.ticks(OPEN_MS);
        let row = &mut self.actors[door];
        row.expires_tick = until;
        if !row.open {
            row.open = true;
            self.actors.open_doors.insert(door);
            self.actors.mark(door, dirty::EFFECTS);
            throng::count!("doors_opened");
            self.tell(door, |door| DoorMoved { door, open: true }, "door.use");
        }
    }

    /// One tick of gathering by somebody who stands still.
    pub fn gather(&mut self, actor: u32, player: u32) {
        let (now, ticks) = (self.now(), self.ticks(GATHER_MS));
        if !self.roster.gathered(player, now, ticks) {
            return;
        }
        let node = self.close.ask_nearest(Question::Gather, actor, groups::NODES);
        let Some(node) = node.filter(|&node| self.stock(node) > 0) else { return };
        self.actors[node].stock = self.stock(node) - 1;
        self.actors[node].expires_tick = now;
        self.actors.play(actor, Gesture::Gather);
        self.burst(node, Burst::Leaves, "trade.gather");
        self.roster.earn(player, 1);
        self.tell_purse(player);
        throng::count!("gathered");
    }

    /// What is left of a node, what has grown since it was last touched included.
    fn stock(&self, node: u32) -> u16 {
        let row = &self.actors[node];
        let grown = (self.now() - row.expires_tick) / self.ticks(REGROW_MS);
        row.stock.saturating_add(grown.min(u32::from(NODE_STOCK)) as u16).min(NODE_STOCK)
    }
}

/// Doors shut behind those who have gone.
pub fn shut_doors(mut zone: Zone) {
    let open = zone.batch(|actors| actors.open_doors.list());
    let now = zone.now();
    for &door in &open {
        if zone.actors[door].expires_tick > now || !zone.is_due(door, SHUT_LOOK_MS) {
            continue;
        }
        if !zone.close.ask(Question::Door, door, groups::FOLK | groups::MONSTERS).is_empty() {
            continue;
        }
        zone.actors[door].open = false;
        zone.actors.open_doors.remove(door);
        zone.actors.mark(door, dirty::EFFECTS);
        zone.tell(door, |door| DoorMoved { door, open: false }, "door.shut");
    }
    zone.scratch.give_back(open);
}
