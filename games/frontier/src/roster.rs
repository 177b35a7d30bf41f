//! Roster: the players of the world, and what each client wants.
//!
//! Of the inputs of one tick the newest counts; those beyond [`INPUTS_PER_TICK_MAX`] are dropped and counted. Without
//! inputs a player goes on for a while, paid from what was not used before, and then stands.

use bevy_ecs::{component::Component, resource::Resource};
use speech::SpeechAllowance;
use throng::prelude::*;
use throng_pack::{List, Pack};
use throng_replication::Text;
use throng_rewind::{
    shooter::{Claim, Shooter, ShotMoment},
    view_limits::ViewLimits,
    view_time::ViewTime,
};

use crate::{
    actors::Actor,
    characters::Character,
    components::NAME_BYTES_MAX,
    events::Purse,
    land::{Plot, Sector},
    protocol::{Ability, Input},
};

/// Inputs of one client that one tick takes. A client at 60 Hz in a world at 20 Hz needs three.
pub const INPUTS_PER_TICK_MAX: u8 = 4;
/// How far from a hearth somebody stands who is taken there. (m)
pub const HEARTH_SCATTER_M: f32 = 8.0;

/// What a client wants, as of this tick.
#[derive(Debug, Clone, Copy, Default, Pack)]
#[pack(name = "frontier.controls")]
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
    pub fn settle(&mut self, hold_ticks: u8) -> Input {
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
#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "frontier.player")]
pub struct Player {
    pub client: ClientKey,
    pub actor: u32,
    controls: Controls,
    shooter: Shooter,
    allowance: SpeechAllowance,
    name: Text<NAME_BYTES_MAX>,
    hearth: [f32; 2],
    carried: u16,
    banked: u32,
    asked_at: [f32; 2],
    gathers_tick: u32,
    /// The number of its account: the same in every stay.
    pub account: u64,
    /// What it calls its own.
    pub plot: Option<Plot>,
    /// Where it was when it was last looked at, of which it is told what is around.
    pub sector: Option<Sector>,
    /// When it may change the land again.
    pub works_tick: u32,
}

impl Player {
    /// A newcomer at the tick in which it arrives.
    pub fn new(client: ClientKey, actor: u32, name: Text<NAME_BYTES_MAX>, hearth: [f32; 2], tick: u32) -> Self {
        Self {
            client,
            actor,
            controls: Controls::default(),
            shooter: Shooter::default(),
            allowance: SpeechAllowance::new(tick),
            name,
            hearth,
            carried: 0,
            banked: 0,
            asked_at: [f32::MAX; 2],
            gathers_tick: 0,
            account: 0,
            plot: None,
            sector: None,
            works_tick: 0,
        }
    }

    /// The same player, as it is known by its account and what was kept of it.
    pub fn of_account(self, account: u64, kept: Option<&Character>) -> Self {
        let Some(kept) = kept else { return Self { account, ..self } };
        Self {
            account,
            name: kept.name,
            hearth: kept.hearth,
            carried: kept.carried,
            banked: kept.banked,
            plot: kept.plot,
            ..self
        }
    }

    pub fn name(&self) -> Text<NAME_BYTES_MAX> {
        self.name
    }

    /// Takes an input that came in this tick, with what its player was shown; false if it is one too many.
    pub fn take(&mut self, tick: u32, input: Input, seen: Option<SeenMoment>) -> bool {
        let taken = self.controls.take(input);
        if let Some(seen) = seen.filter(|_| taken) {
            let SeenMoment { acked_tick, round_trip, .. } = seen;
            self.shooter.claims(tick, Claim { at: ViewTime::new(seen.tick, seen.part), acked_tick, round_trip });
        }
        taken
    }
}

/// The row of the player that an entity is.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.player_row")]
pub struct PlayerRow(pub u32);

/// All players. Rows are used again; a player keeps its row while it is here.
#[derive(Resource, Default)]
pub struct Roster {
    rows: Vec<Option<Player>>,
    free: Vec<u32>,
}

/// Rows of players at most.
const ROWS_MAX: usize = 1 << 16;

/// All players as they are packed.
#[derive(Debug, Clone, Pack)]
#[pack(name = "frontier.roster")]
pub struct SavedRoster {
    rows: List<Option<Player>, ROWS_MAX>,
    free: List<u32, ROWS_MAX>,
}

impl Roster {
    pub fn save(&self) -> SavedRoster {
        SavedRoster {
            rows: self.rows.clone().try_into().expect("a server takes fewer players"),
            free: self.free.clone().try_into().expect("a server takes fewer players"),
        }
    }

    pub fn load(saved: SavedRoster) -> Self {
        Self { rows: saved.rows.into_vec(), free: saved.free.into_vec() }
    }

    /// The row of a client's player.
    pub fn row_of(&self, client: ClientKey) -> Option<PlayerRow> {
        let is_theirs = |player: &Option<Player>| player.as_ref().is_some_and(|player| player.client == client);
        self.rows.iter().position(is_theirs).map(|row| PlayerRow(row as u32))
    }

    /// All players.
    pub fn iter(&self) -> impl Iterator<Item = &Player> {
        self.rows.iter().flatten()
    }

    pub fn actor(&self, PlayerRow(row): PlayerRow) -> Option<u32> {
        self.get(row).map(|player| player.actor)
    }

    /// The actors of all players.
    pub fn actors(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().flatten().map(|player| player.actor)
    }

    pub fn count(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// Makes of each player's inputs its wish of this tick.
    pub fn settle(&mut self, hold_ticks: u8) {
        self.rows.iter_mut().flatten().for_each(|player| _ = player.controls.settle(hold_ticks));
    }

    /// What a player wishes for in this tick.
    pub fn wish(&self, row: u32) -> Option<Input> {
        self.get(row).map(|player| player.controls.newest)
    }

    pub fn attacks(&self, row: u32) -> bool {
        self.get(row).is_some_and(|player| player.controls.newest.attacks())
    }

    /// The moment that a player is taken to see in this tick.
    pub fn judge(&mut self, row: u32, limits: &ViewLimits, tick: u32) -> Option<ShotMoment> {
        self.get_mut(row).map(|player| player.shooter.judge(limits, tick))
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

    /// Adds to what is carried, as far as it can be carried. Returns how much that is.
    pub fn earn(&mut self, row: u32, amount: u16) -> u16 {
        let Some(player) = self.get_mut(row) else { return 0 };
        let earned = amount.min(u16::MAX - player.carried);
        player.carried += earned;
        earned
    }

    /// Takes from what is carried; false if there is not so much.
    pub fn pay(&mut self, row: u32, amount: u16) -> bool {
        let Some(player) = self.get_mut(row).filter(|player| player.carried >= amount) else { return false };
        player.carried -= amount;
        true
    }

    /// What a player has is kept as this, but for what its actor knows.
    pub fn kept(&self, row: u32, actor: &Actor) -> Option<Character> {
        let Player { name, hearth, carried, banked, plot, .. } = *self.get(row)?;
        let health = actor.vitals().health;
        Some(Character { place: actor.place, heading: actor.heading, health, name, hearth, carried, banked, plot })
    }

    /// Takes what is carried to the bank; false if there is nothing.
    pub fn deposit(&mut self, row: u32) -> bool {
        let Some(player) = self.get_mut(row) else { return false };
        let room = u16::try_from(u32::MAX - player.banked).unwrap_or(u16::MAX);
        let deposited = player.carried.min(room);
        player.carried -= deposited;
        player.banked += u32::from(deposited);
        deposited > 0
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

    pub fn get(&self, row: u32) -> Option<&Player> {
        self.rows.get(row as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, row: u32) -> Option<&mut Player> {
        self.rows.get_mut(row as usize)?.as_mut()
    }

    pub fn add(&mut self, player: Player) -> u32 {
        let row = self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            self.rows.len() as u32 - 1
        });
        self.rows[row as usize] = Some(player);
        row
    }

    pub fn remove(&mut self, PlayerRow(row): PlayerRow) -> Option<Player> {
        let player = self.rows.get_mut(row as usize)?.take()?;
        self.free.push(row);
        Some(player)
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
        let player = |number: u32| Player::new(ClientKey(number), number * 10, Text::default(), Default::default(), 0);
        let rows = [5, 1, 9, 3].map(|number| PlayerRow(roster.add(player(number))));
        assert_eq!(roster.actor(rows[2]), Some(90));
        assert!(roster.remove(rows[1]).is_some());
        assert!(roster.remove(rows[1]).is_none());
        assert_eq!(roster.actor(rows[1]), None);
        assert_eq!((roster.actors().count(), roster.count()), (3, 3));
        assert_eq!(PlayerRow(roster.add(player(7))), rows[1], "rows are used again");
        assert_eq!(roster.count(), 4);
    }
}
