//! Arrivals: how clients take the seats of a match, and how they leave it.
//!
//! The lobby sends each client with the number of its seat. Whose connection ends leaves a seat that nobody plays: its
//! player dies, and stays dead until somebody else takes it. At the beginning of each round a match tells the lobby which
//! seats are free ([`FreeSeats`]). Who arrives after the match was decided, or at a taken seat, goes back to the lobby.
//! When the match is over all go back to the lobby with what they have done, and the last thing that a match does is to
//! tell the lobby that it can be ended. One that is left by everybody before that does the same, and so does one to which
//! nobody comes.
//!
//! Who was sent to a lobby that has ended comes back, and is disconnected; when it connects again the door leads it to
//! the new one.

use bevy_ecs::system::SystemParam;
use throng::prelude::*;

use crate::{
    components::{Phase, Player, Vitals},
    controls::Controls,
    rounds::{Change, Rounds},
    scene::{RoundChange, Scene},
    seat_set::SeatSet,
    seats::{Known, Seats, Senses},
    settings::MatchRules,
    teams::{SEATS, TeamId},
    travel::{FreeSeats, MatchOver, Passport, Traveller},
};

/// Whether somebody has come.
pub fn somebody_comes(arrivals: Res<Arrivals>) -> bool {
    !arrivals.0.is_empty()
}

/// Whether somebody's connection has ended.
pub fn somebody_leaves(departures: Res<Departures>) -> bool {
    !departures.0.is_empty()
}

/// Clients take their seats.
pub fn enter(
    arrivals: Res<Arrivals>,
    rules: Res<MatchRules>,
    rounds: Res<Rounds>,
    scene: Res<Scene>,
    mut seats: ResMut<Seats>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<(&mut Player, &mut Controls, &mut Senses, &mut Known)>,
) {
    for arrival in &arrivals.0 {
        if arrival.refused.is_some() {
            outbox.disconnect(arrival.client, "its match is over, and the lobby has ended");
            continue;
        }
        let carried = arrival.transfer.as_ref().and_then(|transfer| transfer.read::<Traveller>().ok());
        let Some(Traveller { passport, seat }) = carried else {
            outbox.disconnect(arrival.client, "there is no seat for it in this match");
            continue;
        };
        if is_decided(&rounds, &rules) || seats.client(seat).is_some() {
            count!("players.sent_back");
            outbox.travel(arrival.client, scene.lobby, &Traveller { passport, seat }).expect("it came with the same");
            continue;
        }
        let entity = seats.entity(seat);
        let Ok((mut player, mut controls, mut senses, mut known)) = players.get_mut(entity) else { continue };
        player.is_connected = true;
        // Its inputs are numbered anew, and nothing is saved for it.
        *controls = Controls::default();
        // What the one before it was shown and told is another's.
        *senses = Senses { life: senses.life, ..Senses::default() };
        *known = Known::default();
        seats.clients[usize::from(seat)] = Some(arrival.client);
        seats.passports[usize::from(seat)] = passport;
        outbox.set_player(arrival.client, entity);
        outbox.set_team(arrival.client, Some(TeamId::of_seat(seat).number()));
        outbox.send(arrival.client, &rules.terms()).expect("it has no limits");
    }
    count_players(&seats);
}

/// Seats of ended connections are nobody's.
pub fn leave(
    tick: Res<TickInfo>,
    departures: Res<Departures>,
    mut goodbye: Goodbye,
    mut rounds: ResMut<Rounds>,
    mut seats: ResMut<Seats>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<(&mut Player, &mut Vitals)>,
) {
    let gone: SeatSet = departures.0.iter().filter_map(|client| seats.of_client(*client)).collect();
    for seat in gone.iter() {
        clear_seat(seat, &mut seats, &mut players);
    }
    count_players(&seats);
    if !gone.is_empty() && seats.are_empty() && rounds.phase() != Phase::MatchOver {
        rounds.close();
        goodbye.say(&tick, &mut outbox);
    }
}

/// Whether the match is over for who comes now: there is no further round to play.
fn is_decided(rounds: &Rounds, rules: &MatchRules) -> bool {
    rounds.phase() == Phase::MatchOver || rounds.first_with_enough(rules).is_some()
}

/// Whether the lobby is to hear in this tick which seats are free.
pub fn free_seats_are_told(round_change: Res<RoundChange>) -> bool {
    matches!(round_change.0, Some(Change::RoundBegins { .. } | Change::RoundEnds(_) | Change::MatchEnds))
}

/// Tells the lobby of seats that nobody has; once the match is decided, that nobody is to come any more.
pub fn tell_free_seats(
    tick: Res<TickInfo>,
    rules: Res<MatchRules>,
    rounds: Res<Rounds>,
    scene: Res<Scene>,
    seats: Res<Seats>,
    mut outbox: ResMut<Outbox>,
) {
    let free: SeatSet = (0..SEATS as u8).filter(|seat| seats.client(*seat).is_none()).collect();
    // A full match says nothing. The lobby gave its last seat away; if it was told of that seat once more while its player was
    // on the way, it forgets it with the next one, who is sent back.
    if !free.is_empty() {
        let told = if is_decided(&rounds, &rules) { SeatSet::default() } else { free };
        outbox.post(tick.world, scene.lobby, &FreeSeats { seats: told.bits() }).expect("it has no limits");
    }
}

/// Whether everybody goes home in this tick.
pub fn all_go_home(round_change: Res<RoundChange>) -> bool {
    round_change.0 == Some(Change::GoHome)
}

/// Everybody goes back to the lobby. A match that was not played counts for nobody.
pub fn go_home(
    tick: Res<TickInfo>,
    mut goodbye: Goodbye,
    rounds: Res<Rounds>,
    mut seats: ResMut<Seats>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<(&mut Player, &mut Vitals)>,
) {
    let was_played = rounds.winner().is_some();
    for seat in 0..SEATS as u8 {
        let Some(client) = seats.client(seat) else { continue };
        let Passport { matches, wins, kills, deaths } = seats.passports[usize::from(seat)];
        let has_won = rounds.winner() == Some(TeamId::of_seat(seat));
        let (matches, wins) = (matches.saturating_add(was_played.into()), wins.saturating_add(has_won.into()));
        let carries = Traveller { passport: Passport { matches, wins, kills, deaths }, seat };
        outbox.travel(client, goodbye.scene.lobby, &carries).expect("a seat is within its limits");
        clear_seat(seat, &mut seats, &mut players);
    }
    count!("matches", was_played);
    count_players(&seats);
    goodbye.say(&tick, &mut outbox);
}

fn clear_seat(seat: u8, seats: &mut Seats, players: &mut Query<(&mut Player, &mut Vitals)>) {
    seats.clients[usize::from(seat)] = None;
    if let Ok((mut player, mut vitals)) = players.get_mut(seats.entity(seat)) {
        player.is_connected = false;
        *vitals = Vitals::DEAD;
    }
}

/// The last word of a match.
#[derive(SystemParam)]
pub struct Goodbye<'w> {
    scene: Res<'w, Scene>,
    dormancy: ResMut<'w, MayBeDormant>,
}

impl Goodbye<'_> {
    /// Tells the lobby that the match can be ended. If that has ended itself, the match sleeps from now on.
    fn say(&mut self, tick: &TickInfo, outbox: &mut Outbox) {
        outbox.post(tick.world, self.scene.lobby, &MatchOver).expect("it says nothing that has limits");
        self.dormancy.0 = true;
    }
}

fn count_players(seats: &Seats) {
    gauge!("players.in_matches", seats.iter().count());
}
