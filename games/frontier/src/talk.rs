//! Talk: what players ask for in words: to say something, to be called something, to fight, join, use or greet somebody.
//!
//! Messages are copied, within [`WISHES_EACH_MAX`] of one player and [`WISHES_MAX`] and [`WORDS_BYTES_MAX`] of all a tick, and acted on in
//! their order; the rest is dropped and counted (`messages_dropped`). What is said goes to everybody
//! in earshot to whom the speaker is relevant, within the speaker's allowance; names count as lines, so that changing them is no way
//! around it. Townsfolk in earshot of a "hail" answer, by a signal. Whom a client names must be one that it may know: near enough,
//! and seen if it is concealed.
//!
//! Cost: 100 ns a wish. Allocates nothing once its buffers have grown.

use bevy_ecs::prelude::*;
use throng_replication::{NetId, Text};

use crate::{
    close::{Question, groups},
    components::Gesture,
    deeds::Mark,
    events::{Emote, Say},
    parties::Parties,
    protocol::ClientMessage,
    signals::Call,
    zone::Zone,
};

/// Wishes of one player in one tick. Too low → a client on a bad network, whose messages come in a lump, loses some; too high → a few
/// clients take the room of all others.
pub const WISHES_EACH_MAX: u8 = 8;
/// Wishes of all players in one tick: all that 2,048 may have.
pub const WISHES_MAX: usize = 2_048 * WISHES_EACH_MAX as usize;
/// Bytes of text of one tick.
pub const WORDS_BYTES_MAX: usize = 1 << 20;
/// Farther than this nobody can be made a target. (m)
const TARGET_M: f32 = 80.0;
/// Farther than this nobody can be joined. (m)
const JOIN_M: f32 = 30.0;

#[derive(Debug, Clone, Copy)]
enum Wish {
    Say,
    Name,
    Target(Option<NetId>),
    Join(NetId),
    Leave,
    Use(NetId),
    Emote(Gesture),
}

/// What was asked for this tick, in order.
#[derive(Resource, Default)]
pub struct Wishes {
    words: String,
    wishes: Vec<(u32, Wish, usize)>,
    /// How many of them each actor has.
    each: Vec<u8>,
}

impl Wishes {
    /// Notes what a player asked for; false if there is no room for more in this tick, or for more of this player.
    pub fn hear(&mut self, actor: u32, message: &ClientMessage<'_>) -> bool {
        let (wish, words) = match *message {
            ClientMessage::Say(words) => (Wish::Say, words),
            ClientMessage::Name(words) => (Wish::Name, words),
            ClientMessage::Target(target) => (Wish::Target(target), ""),
            ClientMessage::Join(other) => (Wish::Join(other), ""),
            ClientMessage::Leave => (Wish::Leave, ""),
            ClientMessage::Use(thing) => (Wish::Use(thing), ""),
            ClientMessage::Emote(gesture) => (Wish::Emote(gesture), ""),
        };
        if self.each.len() <= actor as usize {
            self.each.resize(actor as usize + 1, 0);
        }
        let each = &mut self.each[actor as usize];
        if *each >= WISHES_EACH_MAX
            || self.wishes.len() >= WISHES_MAX
            || self.words.len() + words.len() > WORDS_BYTES_MAX
        {
            return false;
        }
        *each += 1;
        self.words.push_str(words);
        self.wishes.push((actor, wish, self.words.len()));
        true
    }

    pub fn is_empty(&self) -> bool {
        self.wishes.is_empty()
    }
}

/// Acts on what was asked for.
pub fn grant(mut zone: Zone, mut wishes: ResMut<Wishes>, mut parties: ResMut<Parties>) {
    if wishes.is_empty() {
        return;
    }
    let Wishes { words, wishes, each } = &mut *wishes;
    let mut begin = 0;
    for (actor, wish, end) in wishes.drain(..) {
        let line = &words[begin..end];
        begin = end;
        each[actor as usize] = 0;
        match wish {
            Wish::Say => say(&mut zone, actor, line),
            Wish::Name => rename(&mut zone, actor, line),
            Wish::Target(target) => choose(&mut zone, actor, target),
            Wish::Join(other) => join(&mut zone, &mut parties, actor, other),
            Wish::Leave => leave(&mut zone, &mut parties, actor),
            Wish::Use(thing) => zone.use_thing(actor, thing),
            Wish::Emote(gesture) => emote(&mut zone, actor, gesture),
        }
    }
    words.clear();
}

fn may_speak(zone: &mut Zone, actor: u32) -> bool {
    let (now, tick_hz) = (zone.now(), f32::from(zone.tick.rate.0));
    let row = zone.actors[actor].player;
    let may = zone.roster.may_speak(row, now, tick_hz);
    throng::count!("lines_dropped", !may);
    may
}

fn say(zone: &mut Zone, actor: u32, line: &str) {
    if !zone.actors[actor].alive || !may_speak(zone, actor) {
        return;
    }
    let row = zone.actors[actor].player;
    let (Some(name), Some(words)) = (zone.roster.name(row), Text::new(line)) else { return };
    throng::count!("lines_said");
    // Whoever hears it may see the speaker: those to whom it is relevant are told, and no others.
    zone.tell(actor, |id| Say { speaker: crate::events::Source(Some(id)), name, words }, "chat.say");
    let hails = line.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case("hail"));
    if hails {
        let about = zone.actors.who(actor);
        let near = zone.asked(Question::Say, actor, groups::TOWNSFOLK);
        for &listener in &near {
            zone.signal(listener, Call::Hail, about);
        }
        zone.scratch.give_back(near);
    }
}

fn rename(zone: &mut Zone, actor: u32, line: &str) {
    let Some(name) = Text::new(line) else { return };
    if may_speak(zone, actor) {
        let row = zone.actors[actor].player;
        zone.roster.rename(row, name);
        zone.actors.mark(actor, crate::actors::dirty::NAME);
    }
}

fn choose(zone: &mut Zone, actor: u32, target: Option<NetId>) {
    let target = match target {
        None => None,
        Some(id) => {
            let Some(target) = zone.known(actor, id, TARGET_M) else { return };
            Some(zone.actors.who(target))
        }
    };
    if zone.actors[actor].alive {
        zone.actors.set_target(actor, target);
    }
}

fn join(zone: &mut Zone, parties: &mut Parties, actor: u32, other: NetId) {
    let Some(other) = zone.known(actor, other, JOIN_M).filter(|&other| zone.actors[other].is_player()) else { return };
    if zone.actors[actor].party != 0 || other == actor {
        return;
    }
    let mut party = zone.actors[other].party;
    if party == 0 {
        let Some(new) = parties.found(other) else { return };
        party = new;
        enlist(zone, other, party);
    }
    if parties.join(party, actor) {
        enlist(zone, actor, party);
        throng::count!("joins");
    }
}

fn leave(zone: &mut Zone, parties: &mut Parties, actor: u32) {
    let party = zone.actors[actor].party;
    if party != 0 {
        parties.leave(party, actor);
        enlist(zone, actor, 0);
    }
}

/// Writes a membership to the row, the client and the entity.
fn enlist(zone: &mut Zone, actor: u32, party: u16) {
    let row = &mut zone.actors[actor];
    row.party = party;
    let (entity, player) = (row.entity, row.player);
    if let Some(client) = zone.roster.client(player) {
        zone.outbox.set_team(client, (party != 0).then_some(party));
    }
    zone.deeds.marks.push(Mark::Team(entity, party));
}

fn emote(zone: &mut Zone, actor: u32, gesture: Gesture) {
    if zone.actors[actor].alive && may_speak(zone, actor) {
        zone.actors.play(actor, gesture);
        zone.tell(actor, |who| Emote { who, gesture }, "chat.emote");
    }
}

impl Zone<'_> {
    /// Whom a client means, if its player may know of it: alive, within so many metres, and seen if it is concealed.
    pub fn known(&self, actor: u32, id: NetId, within_m: f32) -> Option<u32> {
        let index = self.actors.by_id(id).filter(|&index| self.actors[index].alive)?;
        let near = self.distance_m2(actor, index) <= within_m * within_m;
        let seen =
            !self.actors[index].concealed || crate::concealment::is_seen(&self.actors, &self.land.0, actor, index);
        (near && seen).then_some(index)
    }
}
