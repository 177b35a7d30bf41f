//! Talk: grants what players ask for: to say something, to be called something, to fight, join, use or
//! greet somebody.
//!
//! Requests are granted in the order in which they came. A line goes to everybody in earshot to whom the speaker is
//! relevant, within the speaker's allowance; names count as lines, so that changing them is no way around it. Townsfolk
//! in earshot of a "hail" answer by a signal. A client may name only actors that its player may know of: near enough,
//! and seen if they are visibility-filtered.
//!
//! Cost: 100 ns a wish.

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_replication::{NetId, Text};

use crate::{
    actors::dirty,
    components::Gesture,
    deeds::Mark,
    events::{Emote, Say},
    mailboxes::Call,
    neighbours::{Question, groups},
    parties::Parties,
    protocol::Wish,
    roster::PlayerRow,
    services,
    visibility::is_seen,
    zone::Zone,
};

/// Farther than this nobody can be made a target. (m)
const TARGET_M: f32 = 80.0;
/// Farther than this nobody can be joined. (m)
const JOIN_M: f32 = 30.0;

/// Who says it when the store of the saves has gone away, and when it is back.
pub const SERVER: &str = "Server";
pub const SAVES_AWAY: &str = "saves are held up: what you do now gets on disk later; play goes on";
pub const SAVES_BACK: &str = "all is being saved again";

/// Whether there is anything for [`tell_of_saves`] to do.
pub fn saves_have_turned(store: Option<Res<SaveStore>>) -> bool {
    store.is_some_and(|store| store.has_turned)
}

/// Tells everybody who is here. Whoever comes while the store is away is told then (`arrivals`).
pub fn tell_of_saves(store: Res<SaveStore>, mut events: ResMut<Events>) {
    let words = if store.is_away { SAVES_AWAY } else { SAVES_BACK };
    events.send(&notice(words), Audience::Everyone, "chat.server");
}

/// What nobody says who is there.
pub fn notice(words: &str) -> Say {
    let (name, words) = (Text::new(SERVER), Text::new(words));
    Say { speaker: None, name: name.expect("it is short"), words: words.expect("a line at most") }
}

/// Acts on what was asked for.
pub fn grant(mut zone: Zone, wishes: Requests<Wish>, rows: Query<&PlayerRow>, mut parties: ResMut<Parties>) {
    for (sender, &wish) in wishes.read() {
        // Who has left in an earlier tick has no row.
        let Some(Ok(&row)) = sender.entity.map(|player| rows.get(player)) else { continue };
        let Some(actor) = zone.roster.actor(row) else { continue };
        match wish {
            Wish::Say(words) => say(&mut zone, actor, &words),
            Wish::Name(name) => rename(&mut zone, actor, &name),
            Wish::Target(target) => choose(&mut zone, actor, target),
            Wish::Join(other) => join(&mut zone, &mut parties, actor, other),
            Wish::Leave => leave(&mut zone, &mut parties, actor),
            Wish::Use(thing) => services::use_thing(&mut zone, actor, thing),
            Wish::Emote(greeting) => emote(&mut zone, actor, greeting.gesture()),
        }
    }
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
    zone.tell(actor, |id| Say { speaker: Some(id), name, words }, "chat.say");
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
        zone.actors.mark(actor, dirty::NAME);
    }
}

fn choose(zone: &mut Zone, actor: u32, target: Option<NetId>) {
    let target = match target {
        None => None,
        Some(id) => {
            let Some(target) = known(zone, actor, id, TARGET_M) else { return };
            Some(zone.actors.who(target))
        }
    };
    if zone.actors[actor].alive {
        zone.actors.set_target(actor, target);
    }
}

fn join(zone: &mut Zone, parties: &mut Parties, actor: u32, other: NetId) {
    let Some(other) = known(zone, actor, other, JOIN_M).filter(|&other| zone.actors[other].is_player()) else { return };
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

/// Whom a client means, if its player may know of it: alive, within so many metres, and seen if it is
/// visibility-filtered.
fn known(zone: &Zone, actor: u32, id: NetId, within_m: f32) -> Option<u32> {
    let index = zone.actors.by_id(id).filter(|&index| zone.actors[index].alive)?;
    let near = zone.distance_m2(actor, index) <= within_m * within_m;
    let seen = !zone.actors[index].filtered || is_seen(&zone.actors, &zone.land.0, actor, index);
    (near && seen).then_some(index)
}
