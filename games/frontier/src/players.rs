//! Players: how clients become actors and stop being it, and what their messages come to.
//!
//! A client never says where it is. It says which way it wants to go, and each tick moves its player one step of its speed at most,
//! whatever number of inputs has come: the newest counts, those beyond [`INPUTS_PER_TICK_MAX`] are dropped and counted. So a fast clock,
//! a burst or a replay gains nothing. Without inputs a player goes on for [`HOLD_MS`], paid from what was not used before, and then stands.
//!
//! Arrivals and departures are an exclusive system that returns at once when nobody comes or goes.
//!
//! Cost: 60 ns a message and 60 ns a player that walks.

use bevy_ecs::prelude::*;
use throng::{prelude::*, text::SpeechAllowance};
use throng_replication::Text;

use crate::{
    actors::{Actors, FIGHT_MS},
    changes::{embody, remove},
    components::{Kind, Look, NAME_BYTES_MAX, Name},
    events::Purse,
    landscape::mix,
    npc::think::FIGHTER_WEIGHT,
    parties::Parties,
    protocol::{Ability, ClientMessage, Input},
    talk::Wishes,
    traits::LEVEL_MAX,
    zone::{Land, Zone},
};

pub const WALK_M_PER_S: f32 = 5.0;
pub const RUN_M_PER_S: f32 = 7.5;
pub const SNEAK_M_PER_S: f32 = 2.5;
/// Inputs of one client that one tick takes. A client at 60 Hz in a world at 20 Hz needs three.
pub const INPUTS_PER_TICK_MAX: u8 = 4;
/// How long a player goes on without inputs. (ms)
pub const HOLD_MS: u32 = 250;
/// What a kill brings.
pub const KILL_LOOT: u16 = 3;
/// So long after a blow nobody begins to sneak. (ms)
const SNEAK_AFTER_FIGHT_MS: u32 = 3_000;

/// What a client wants, as of this tick.
#[derive(Debug, Clone, Copy, Default)]
pub struct Controls {
    newest: Input,
    inputs: u8,
    /// Ticks for which the newest input is still followed without another.
    hold_ticks: u8,
}

impl Controls {
    /// Takes one input; false if it is one too many for this tick.
    pub fn take(&mut self, input: Input) -> bool {
        if self.inputs == INPUTS_PER_TICK_MAX {
            return false;
        }
        let pressed = self.inputs > 0;
        let ability = if input.ability() == Ability::None && pressed { self.newest.ability() } else { input.ability() };
        // What was pressed between two ticks counts, even if it has been let go since.
        let attacks = input.attacks() || (pressed && self.newest.attacks());
        self.newest = input.casting(ability).attacking(attacks);
        self.inputs += 1;
        true
    }

    /// This tick's wish. Pays for a tick without inputs from what is held.
    fn settle(&mut self, hold_ticks: u8) -> Input {
        if self.inputs > 0 {
            (self.inputs, self.hold_ticks) = (0, hold_ticks);
        } else if self.hold_ticks > 0 {
            self.hold_ticks -= 1;
            self.newest = self.newest.casting(Ability::None);
        } else {
            self.newest = Input::new([0.0, 0.0], self.newest.heading());
        }
        self.newest
    }
}

/// One player.
#[derive(Debug, Clone, Copy)]
struct Player {
    client: ClientKey,
    actor: u32,
    controls: Controls,
    allowance: SpeechAllowance,
    name: Text<NAME_BYTES_MAX>,
    hearth: [f32; 2],
    carried: u16,
    banked: u32,
    asked_at: [f32; 2],
    gathers_tick: u32,
}

/// All players. Rows are used again; a player keeps its row while it is here.
#[derive(Resource, Default)]
pub struct Roster {
    rows: Vec<Option<Player>>,
    free: Vec<u32>,
    /// Sorted by client.
    by_client: Vec<(ClientKey, u32)>,
}

impl Roster {
    /// The actor of a client's player.
    pub fn actor(&self, client: ClientKey) -> Option<u32> {
        self.row(client).and_then(|row| self.get(row)).map(|player| player.actor)
    }

    /// The actors of all players.
    pub fn actors(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().flatten().map(|player| player.actor)
    }

    pub fn count(&self) -> usize {
        self.by_client.len()
    }

    pub fn attacks(&self, row: u32) -> bool {
        self.get(row).is_some_and(|player| player.controls.newest.attacks())
    }

    pub fn client(&self, row: u32) -> Option<ClientKey> {
        self.get(row).map(|player| player.client)
    }

    pub fn hearth(&self, row: u32) -> Option<[f32; 2]> {
        self.get(row).map(|player| player.hearth)
    }

    pub fn name(&self, row: u32) -> Option<Text<NAME_BYTES_MAX>> {
        self.get(row).map(|player| player.name)
    }

    pub fn rename(&mut self, row: u32, name: Text<NAME_BYTES_MAX>) {
        if let Some(player) = self.get_mut(row) {
            player.name = name;
        }
    }

    /// Whether one more line may be said; takes it from the allowance if so.
    pub fn may_speak(&mut self, row: u32, tick: u32, tick_hz: f32) -> bool {
        self.get_mut(row).is_some_and(|player| player.allowance.take(tick, tick_hz))
    }

    /// Where a player was when it last asked who notices it.
    pub fn asked_at(&mut self, row: u32) -> &mut [f32; 2] {
        &mut self.rows[row as usize].as_mut().expect("a player's row lasts as long as its actor").asked_at
    }

    pub fn earn(&mut self, row: u32, amount: u16) {
        if let Some(player) = self.get_mut(row) {
            player.carried = player.carried.saturating_add(amount);
        }
    }

    /// Takes what is carried to the bank; false if there is nothing.
    pub fn deposit(&mut self, row: u32) -> bool {
        let Some(player) = self.get_mut(row) else { return false };
        let carried = std::mem::take(&mut player.carried);
        player.banked = player.banked.saturating_add(carried.into());
        carried > 0
    }

    pub fn purse(&self, row: u32) -> Option<(ClientKey, Purse)> {
        self.get(row).map(|player| (player.client, Purse { carried: player.carried, banked: player.banked }))
    }

    /// Whether a player who gathers has done so for long enough to get something.
    pub fn gathered(&mut self, row: u32, tick: u32, ticks: u32) -> bool {
        let Some(player) = self.get_mut(row) else { return false };
        let gets = player.gathers_tick > 0 && tick >= player.gathers_tick;
        if gets || player.gathers_tick == 0 {
            player.gathers_tick = tick + ticks;
        }
        gets
    }

    pub fn stop_gathering(&mut self, row: u32) {
        if let Some(player) = self.get_mut(row) {
            player.gathers_tick = 0;
        }
    }

    fn row(&self, client: ClientKey) -> Option<u32> {
        let at = self.by_client.binary_search_by_key(&client, |entry| entry.0).ok()?;
        Some(self.by_client[at].1)
    }

    fn get(&self, row: u32) -> Option<&Player> {
        self.rows.get(row as usize)?.as_ref()
    }

    fn get_mut(&mut self, row: u32) -> Option<&mut Player> {
        self.rows.get_mut(row as usize)?.as_mut()
    }

    fn add(&mut self, player: Player) -> u32 {
        let row = self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            self.rows.len() as u32 - 1
        });
        self.rows[row as usize] = Some(player);
        let at = self.by_client.partition_point(|entry| entry.0 < player.client);
        self.by_client.insert(at, (player.client, row));
        row
    }

    fn remove(&mut self, client: ClientKey) -> Option<Player> {
        let at = self.by_client.binary_search_by_key(&client, |entry| entry.0).ok()?;
        let (_, row) = self.by_client.remove(at);
        self.free.push(row);
        self.rows[row as usize].take()
    }
}

/// Which hearths newcomers get, in turn.
#[derive(Resource, Debug, Clone, Copy)]
pub struct Welcome {
    pub hearths: usize,
}

/// Makes actors for those who arrived and takes away those of ended connections.
pub fn seat(world: &mut World) {
    if world.resource::<Arrivals>().0.is_empty() && world.resource::<Departures>().0.is_empty() {
        return;
    }
    for client in std::mem::take(&mut world.resource_mut::<Departures>().0) {
        depart(world, client);
    }
    for arrival in std::mem::take(&mut world.resource_mut::<Arrivals>().0) {
        arrive(world, arrival);
    }
    throng::gauge!("players", world.resource::<Roster>().count());
}

fn arrive(world: &mut World, arrival: Arrival) {
    let TickInfo { tick, .. } = *world.resource::<TickInfo>();
    let mixed = mix(arrival.client_id.0);
    let hearths = world.resource::<Welcome>().hearths;
    let hearth = world.resource::<Land>().0.hearths()[(mixed % hearths as u64) as usize];
    // A few metres aside, so that nobody stands in another.
    let aside = |bits: u64| ((mixed >> bits & 0xff) as f32 / 255.0 - 0.5) * 16.0;
    let place = [hearth[0] + aside(32), hearth[1] + aside(40)];
    let level = 1 + (mixed >> 48) as u8 % LEVEL_MAX;
    let look = Look { kind: Kind::Player, level, variety: (mixed >> 56) as u8 & 31 };
    let index = world.resource_mut::<Actors>().add(look, place, 0.0);
    let name = Text::new(&format!("Pioneer {}", arrival.client_id.0 % 1_000_000_000)).unwrap_or_default();
    let row = world.resource_mut::<Roster>().add(Player {
        client: arrival.client,
        actor: index,
        controls: Controls::default(),
        allowance: SpeechAllowance::new(tick),
        name,
        hearth,
        carried: 0,
        banked: 0,
        asked_at: [f32::MAX; 2],
        gathers_tick: 0,
    });
    world.resource_mut::<Actors>()[index].player = row;
    let entity = embody(world, index, false);
    world.entity_mut(entity).insert(Name { text: name });
    world.resource_mut::<Outbox>().set_player(arrival.client, entity);
}

fn depart(world: &mut World, client: ClientKey) {
    let Some(player) = world.resource_mut::<Roster>().remove(client) else { return };
    let party = world.resource::<Actors>()[player.actor].party;
    world.resource_mut::<Parties>().leave(party, player.actor);
    remove(world, player.actor);
}

/// Decodes what clients sent: inputs to their controls, the rest to [`crate::talk`].
pub fn read(inbox: Res<Inbox>, mut roster: ResMut<Roster>, mut wishes: ResMut<Wishes>) {
    for message in inbox.iter() {
        // Messages of a client that left in an earlier tick have no addressee.
        let Some(row) = roster.row(message.client) else { continue };
        let Some(player) = roster.get_mut(row) else { continue };
        match message.kind {
            MessageKind::Input { .. } => match Input::decode(message.bytes) {
                Ok(input) if player.controls.take(input) => throng::count!("inputs"),
                Ok(_) => throng::count!("inputs_excess"),
                Err(_) => throng::count!("inputs_refused"),
            },
            MessageKind::Reliable => match ClientMessage::decode(message.bytes) {
                Ok(said) => throng::count!("messages_dropped", u64::from(!wishes.hear(player.actor, &said))),
                Err(_) => throng::count!("messages_refused"),
            },
        }
    }
}

/// What all players do with their controls: walk, look, sneak, begin spells.
pub fn walk(mut zone: Zone) {
    let mut players = zone.scratch.take();
    players.extend(zone.roster.actors());
    let hold_ticks = zone.ticks(HOLD_MS).min(255) as u8;
    for &index in &players {
        let row = zone.actors[index].player;
        let Some(player) = zone.roster.get_mut(row) else { continue };
        let input = player.controls.settle(hold_ticks);
        if zone.actors[index].alive {
            act(&mut zone, index, row, input);
        }
    }
    zone.scratch.give_back(players);
}

fn act(zone: &mut Zone, index: u32, row: u32, input: Input) {
    let now = zone.now();
    let dt_s = zone.tick.dt_s;
    zone.turn_to(index, input.heading());
    let calm = !zone.actors[index].fought_within(now, zone.ticks(SNEAK_AFTER_FIGHT_MS));
    zone.conceal(index, input.sneaks() && calm);
    let weight = if zone.actors[index].fought_within(now, zone.ticks(FIGHT_MS)) { FIGHTER_WEIGHT } else { 1.0 };
    zone.weigh(index, weight);
    if zone.actors[index].is_stunned(now) {
        return;
    }
    let [x, z] = input.direction();
    let moves = x != 0.0 || z != 0.0;
    if moves {
        let speed = match (input.sneaks(), input.runs()) {
            (true, _) => SNEAK_M_PER_S,
            (false, true) => RUN_M_PER_S,
            (false, false) => WALK_M_PER_S,
        };
        let snared = if zone.actors[index].clocks.snared > now { 0.5 } else { 1.0 };
        let step_m = speed * snared * dt_s;
        let [from_x, from_z] = zone.actors[index].place;
        zone.walk_to(index, [from_x + x * step_m, from_z + z * step_m]);
        // Whoever walks away from a spell in the making ends it, but for songs.
        let breaks = zone.actors[index].casting.is_some_and(|casting| casting.ability != Ability::Sing);
        if breaks {
            zone.actors[index].casting = None;
            zone.actors.casting.remove(index);
            throng::count!("casts_failed");
        }
    } else if input.ability() != Ability::None {
        let target = zone.actors[index].target;
        zone.begin_cast(index, input.ability(), target);
    }
    if input.gathers() && !moves {
        zone.gather(index, row);
    } else {
        zone.roster.stop_gathering(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fifth_input_of_a_tick_is_dropped_and_what_was_pressed_counts() {
        let mut controls = Controls::default();
        let pressed = Input::new([1.0, 0.0], 0.0).attacking(true).casting(Ability::Bolt);
        let walking = Input::new([0.0, 1.0], 0.0);
        let taken = [pressed, walking, walking, walking, walking].map(|input| controls.take(input));
        assert_eq!(taken, [true, true, true, true, false]);
        let wish = controls.settle(5);
        assert_eq!((wish.ability(), wish.attacks(), wish.direction()), (Ability::Bolt, true, [0.0, 1.0]));
    }

    #[test]
    fn a_silent_client_stands_still_after_a_quarter_of_a_second() {
        let mut controls = Controls::default();
        controls.take(Input::new([0.0, 1.0], 0.0).casting(Ability::Bolt));
        let wishes: Vec<Input> = (0..20).map(|_| controls.settle(5)).collect();
        assert_eq!(wishes.iter().filter(|wish| wish.direction() != [0.0, 0.0]).count(), 6);
        assert_eq!(wishes.iter().filter(|wish| wish.ability() == Ability::Bolt).count(), 1, "asked for once");
    }

    #[test]
    fn the_roster_finds_everybody_and_forgets_who_left() {
        let mut roster = Roster::default();
        let player = |number: u32| Player {
            client: ClientKey(number),
            actor: number * 10,
            controls: Controls::default(),
            allowance: SpeechAllowance::new(0),
            name: Text::default(),
            hearth: [0.0; 2],
            carried: 0,
            banked: 0,
            asked_at: [0.0; 2],
            gathers_tick: 0,
        };
        for number in [5, 1, 9, 3] {
            roster.add(player(number));
        }
        assert_eq!(roster.actor(ClientKey(9)), Some(90));
        assert!(roster.remove(ClientKey(1)).is_some());
        assert!(roster.remove(ClientKey(1)).is_none());
        assert_eq!(roster.actor(ClientKey(1)), None);
        assert_eq!(roster.actors().count(), 3);
    }
}
