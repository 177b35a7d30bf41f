//! Services: a player that stands near opens doors, takes what it carries to bankers, and gathers from nodes.
//!
//! A door shuts when its time has come and nobody stands in it.
//!
//! Cost: 60 ns per use; 60 ns per open door and half second.

use throng_replication::NetId;

use crate::{
    actors::dirty,
    components::{Gesture, Kind},
    events::{Burst, DoorMoved},
    neighbours::{Question, groups},
    traits::NODE_STOCK,
    zone::Zone,
};

const OPEN_MS: u32 = 4_000;
const SHUT_LOOK_MS: u32 = 500;
const GATHER_MS: u32 = 2_000;
/// How long a node takes to get one back. (ms)
const REGROW_MS: u32 = 5_000;

/// Uses what a client means, if it is one to be used and near.
pub fn use_thing(zone: &mut Zone, actor: u32, id: NetId) {
    let thing = zone.actors.by_id(id).filter(|_| zone.actors[actor].alive);
    let Some(thing) = thing else { return };
    match zone.actors[thing].kind() {
        Kind::Door if zone.neighbours.ask(Question::Door, actor, groups::DOORS).contains(&thing) => {
            open(zone, thing);
            zone.actors.play(actor, Gesture::Open);
        }
        Kind::Banker => {
            let near = zone.neighbours.ask(Question::Banker, actor, groups::BANKERS).contains(&thing);
            let row = zone.actors[actor].player;
            if near && zone.roster.deposit(row) {
                throng::count!("deposits");
                zone.tell_purse(row);
            }
        }
        _ => {}
    }
}

fn open(zone: &mut Zone, door: u32) {
    let until = zone.now() + zone.ticks(OPEN_MS);
    let row = &mut zone.actors[door];
    row.expires_tick = until;
    if !row.open {
        row.open = true;
        zone.actors.open_doors.insert(door);
        zone.actors.mark(door, dirty::EFFECTS);
        throng::count!("doors_opened");
        zone.tell(door, |door| DoorMoved { door, open: true }, "door.use");
    }
}

/// One tick of gathering by somebody who stands still.
pub fn gather(zone: &mut Zone, actor: u32, player: u32) {
    let (now, ticks) = (zone.now(), zone.ticks(GATHER_MS));
    if !zone.roster.gathered(player, now, ticks) {
        return;
    }
    let node = zone.neighbours.ask_nearest(Question::Gather, actor, groups::NODES);
    let Some(node) = node.filter(|&node| stock(zone, node) > 0) else { return };
    zone.actors[node].stock = stock(zone, node) - 1;
    zone.actors[node].expires_tick = now;
    zone.actors.play(actor, Gesture::Gather);
    zone.burst(node, Burst::Leaves, "trade.gather");
    zone.earn(player, 1);
    throng::count!("gathered");
}

/// What is left of a node, what has grown since it was last touched included.
fn stock(zone: &Zone, node: u32) -> u16 {
    let row = &zone.actors[node];
    let grown = (zone.now() - row.expires_tick) / zone.ticks(REGROW_MS);
    row.stock.saturating_add(grown.min(u32::from(NODE_STOCK)) as u16).min(NODE_STOCK)
}

/// Doors shut behind those who have gone.
pub fn shut_doors(mut zone: Zone) {
    let open = zone.batch(|actors| actors.open_doors.list());
    let now = zone.now();
    for &door in &open {
        if zone.actors[door].expires_tick > now || !zone.is_due(door, SHUT_LOOK_MS) {
            continue;
        }
        if !zone.neighbours.ask(Question::Door, door, groups::FOLK | groups::MONSTERS).is_empty() {
            continue;
        }
        zone.actors[door].open = false;
        zone.actors.open_doors.remove(door);
        zone.actors.mark(door, dirty::EFFECTS);
        zone.tell(door, |door| DoorMoved { door, open: false }, "door.shut");
    }
    zone.scratch.give_back(open);
}
