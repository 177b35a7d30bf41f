//! The lobby: where clients come in, wait, and are sent to matches.
//!
//! Clients stand in line. When there are enough for a match, the lobby asks the server for a world and sends them, each
//! with a seat, the teams alternating. Fewer than that go to free seats in matches that are being played. Who finds no such
//! seat and has waited `fill_s` is sent to a match with fewer. A match whose players have all come back, or gone, says so,
//! and is ended.
//!
//! Who goes first sits in team one, the next in team two, and so on. A lobby that panics is made again with the same line
//! ([`SavedLine`]), and with the worlds that it had asked for; one that comes and that nobody waits for is ended. A lobby
//! that ends all the same is made anew by the directory; matches that it has made play on, disconnect their players at
//! their end, and sleep from then on.
//!
//! Nothing that players have done here outlives the server: what is in a [`Passport`] is shown and ranks nobody, so neither
//! the lobby nor a match saves anything.
//!
//! It is a reactive world: it ticks when somebody comes or goes, when a match says that it is over or which seats are free,
//! and while it waits for one that is being made; otherwise it rests.
//!
//! Sketch of the cost: three lists, in each of its 20 ticks a second at most; a message about free seats walks those known, 4,096 at
//! most. Allocates when somebody comes, and for a match.

use std::collections::VecDeque;

use bevy_ecs::prelude::*;
use throng::{
    lifecycle::{NewWorld, WorldMade},
    prelude::*,
    server::ServerControl,
};
use throng_pack::List;
use throng_replication::table_resource;

use crate::{
    protocol::{LOBBY, Waiting},
    schema,
    seat_set::SeatSet,
    teams::{SEATS, TEAM_SIZE, TeamId},
    travel::{FreeSeats, MatchOver, MatchPlan, Passport, Traveller},
};

/// Ticks a second.
const LOBBY_HZ: u16 = 20;
/// With fewer there is nobody to play against.
const PLAYERS_MIN: usize = 2;
/// Matches that are being made at the same time, at most: others are asked for when one of these is there.
const ASKED_MAX: usize = 64;
/// Matches with free seats that are remembered; more are refused, counted, and heard of again with their next round.
const VACANCIES_MAX: usize = 4_096;
/// After one that cannot be made none is asked for in so many ticks: five seconds.
const ASK_AGAIN_TICKS: u32 = 5 * LOBBY_HZ as u32;

/// Where everybody begins.
pub struct Lobby {
    pub control: ServerControl,
    pub matches: WorldKindId,
    /// Players of a match, both teams together [2 to [`SEATS`]].
    pub match_size: usize,
    /// How long is waited for the players that a match lacks (s).
    pub fill_s: f32,
}

/// Who waits, and for what.
pub struct Line {
    control: ServerControl,
    matches: WorldKindId,
    match_size: usize,
    fill_ticks: u32,
    /// In the order in which they came.
    waiting: VecDeque<Waiter>,
    /// Worlds that were asked for, in the order of the questions.
    asked: VecDeque<Asked>,
    /// So many have been asked for in all.
    asked_count: u32,
    /// None is asked for before this tick, since one could not be made.
    asks_from_tick: u32,
    /// Matches that are played and have seats to give away.
    vacancies: Vec<Vacancy>,
}

table_resource!(Line);

#[derive(Pack, Clone, Copy)]
#[pack(name = "duel.waiter")]
struct Waiter {
    client: ClientKey,
    passport: Passport,
    since_tick: u32,
}

/// A match that was asked for.
#[derive(Pack, Clone, Copy)]
#[pack(name = "duel.asked_match")]
struct Asked {
    /// That of its world, by which it is known.
    seed: u64,
    /// For so many.
    players: u16,
}

/// What is free in a match.
#[derive(Pack, Clone, Copy)]
#[pack(name = "duel.vacancy")]
struct Vacancy {
    world: WorldId,
    /// Its free seats, as [`SeatSet::bits`]; one at least.
    seats: u16,
}

/// The line as it is packed.
#[derive(Pack, Clone)]
#[pack(name = "duel.line")]
struct SavedLine {
    waiting: List<Waiter, { 1 << 16 }>,
    asked: List<Asked, ASKED_MAX>,
    asked_count: u32,
    asks_from_tick: u32,
    vacancies: List<Vacancy, VACANCIES_MAX>,
}

impl WorldKind for Lobby {
    fn name(&self) -> &str {
        LOBBY
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(LOBBY_HZ)
    }

    fn pace(&self) -> Pace {
        Pace::Reactive
    }

    fn protocol(&self) -> Protocol {
        schema::of_lobby()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.accept_transfers::<Traveller>().insert_resource(Line {
            control: self.control.clone(),
            matches: self.matches,
            match_size: self.match_size,
            fill_ticks: (self.fill_s * f32::from(LOBBY_HZ)) as u32,
            waiting: VecDeque::new(),
            asked: VecDeque::new(),
            asked_count: 0,
            asks_from_tick: 0,
            vacancies: Vec::new(),
        });
        world.checkpoint_part(Line::save, Line::load);
        world.add_systems(
            Update,
            (leave, come, take_messages_of_matches, send_to_matches, send_to_free_seats, ask_for_matches, wait).chain(),
        );
        world.name_subsystem("duel.lobby", "lobby");
    }

    fn dormant_when_empty(&self) -> bool {
        // A match may be on its way when the last one who waited for it has gone.
        false
    }
}

impl Line {
    fn save(&self) -> SavedLine {
        let waiting: Vec<Waiter> = self.waiting.iter().copied().collect();
        let asked: Vec<Asked> = self.asked.iter().copied().collect();
        SavedLine {
            waiting: waiting.try_into().unwrap_or_else(|_| unreachable!("a server takes fewer players")),
            asked: asked.try_into().unwrap_or_else(|_| unreachable!("no more are asked for")),
            asked_count: self.asked_count,
            asks_from_tick: self.asks_from_tick,
            vacancies: self.vacancies.clone().try_into().unwrap_or_else(|_| unreachable!("no more are kept")),
        }
    }

    fn load(&mut self, saved: SavedLine) {
        (self.waiting, self.asks_from_tick) = (saved.waiting.into_vec().into(), saved.asks_from_tick);
        (self.asked, self.asked_count) = (saved.asked.into_vec().into(), saved.asked_count);
        self.vacancies = saved.vacancies.into_vec();
    }

    /// Players for whom a match has been asked for already.
    fn spoken_for(&self) -> usize {
        self.asked.iter().map(|asked| usize::from(asked.players)).sum()
    }

    /// How many the next match is for; `None`: there are too few, or they have not waited for long enough.
    fn next_match(&self, tick: u32) -> Option<usize> {
        let spoken_for = self.spoken_for();
        let first = self.waiting.get(spoken_for)?;
        let free = self.waiting.len() - spoken_for;
        let has_waited = tick.saturating_sub(first.since_tick) >= self.fill_ticks;
        match free {
            free if free >= self.match_size => Some(self.match_size),
            free if free >= PLAYERS_MIN && has_waited => Some(free),
            _ => None,
        }
    }

    /// A match has these seats to give away now. Of what is no seat in matches of this size nothing is kept.
    fn note_free_seats(&mut self, world: WorldId, free: SeatSet) {
        self.forget_vacancy(world);
        let played: SeatSet = (0..self.match_size).map(seat_of).collect();
        let free = free & played;
        if free.is_empty() {
            return;
        }
        if self.vacancies.len() < VACANCIES_MAX {
            self.vacancies.push(Vacancy { world, seats: free.bits() });
        } else {
            count!("vacancies.refused");
        }
    }

    /// A match has no seat to give away.
    fn forget_vacancy(&mut self, world: WorldId) {
        self.vacancies.retain(|vacancy| vacancy.world != world);
    }

    /// Gives a free seat away, of the team with more of them.
    fn take_free_seat(&mut self) -> Option<(WorldId, u8)> {
        let Vacancy { world, seats } = *self.vacancies.first()?;
        let free = SeatSet::from_bits(seats);
        let seat = seat_to_fill(free)?;
        self.note_free_seats(world, free.without(seat));
        Some((world, seat))
    }

    /// In how many ticks there may be something to do that nobody tells the lobby of: those who wait have waited for long
    /// enough.
    fn next_look(&self, tick: u32) -> Option<u32> {
        let spoken_for = self.spoken_for();
        let first = self.waiting.get(spoken_for).filter(|_| self.waiting.len() - spoken_for >= PLAYERS_MIN)?;
        let due = first.since_tick.saturating_add(self.fill_ticks).max(self.asks_from_tick);
        Some(due.saturating_sub(tick))
    }
}

/// Whose connection has ended waits no more.
fn leave(departures: Res<Departures>, mut line: ResMut<Line>) {
    if !departures.0.is_empty() {
        line.waiting.retain(|waiter| !departures.0.contains(&waiter.client));
    }
}

/// Who comes is the last in line: newly connected, or from a match.
fn come(tick: Res<TickInfo>, arrivals: Res<Arrivals>, mut line: ResMut<Line>, mut outbox: ResMut<Outbox>) {
    for arrival in &arrivals.0 {
        // The match that it was sent to is no more, or it comes from one that is over or had no seat for it.
        let none_free_in = arrival.refused.as_ref().map(|refused| refused.to).or(arrival.from);
        if let Some(world) = none_free_in {
            line.forget_vacancy(world);
        }
        let carried = arrival.transfer.as_ref().and_then(|transfer| transfer.read::<Traveller>().ok());
        let ahead = line.waiting.len().min(usize::from(u16::MAX)) as u16;
        outbox.send(arrival.client, &Waiting { ahead }).expect("it has no limits");
        let passport = carried.unwrap_or_default().passport;
        line.waiting.push_back(Waiter { client: arrival.client, passport, since_tick: tick.tick });
    }
    gauge!("players.waiting", line.waiting.len());
}

/// What matches say: which seats are free, and when everybody has left, so that they are ended.
fn take_messages_of_matches(messages: Res<WorldMessages>, mut line: ResMut<Line>) {
    for message in &messages.0 {
        if message.is::<WorldMade>() {
            // Of `send_to_matches`.
        } else if let Ok(FreeSeats { seats }) = message.read() {
            line.note_free_seats(message.from, SeatSet::from_bits(seats));
        } else if message.read::<MatchOver>().is_ok() {
            line.forget_vacancy(message.from);
            // Nobody waits for the end.
            drop(line.control.retire_world(message.from));
            count!("matches.ended");
        } else {
            count!("world_messages_refused");
        }
    }
}

/// Who is not one of enough for a match is sent to a free seat of another.
fn send_to_free_seats(tick: Res<TickInfo>, mut line: ResMut<Line>, mut outbox: ResMut<Outbox>) {
    let spoken_for = line.spoken_for();
    // Of those who were spoken for some may have gone.
    let are_enough = line.waiting.len().saturating_sub(spoken_for) >= line.match_size;
    if are_enough && line.asks_from_tick <= tick.tick {
        return;
    }
    while line.waiting.len() > spoken_for
        && let Some((world, seat)) = line.take_free_seat()
        && let Some(Waiter { client, passport, .. }) = line.waiting.remove(spoken_for)
    {
        outbox.travel(client, world, &Traveller { passport, seat }).expect("a seat is within its limits");
        count!("players.sent_to_free_seats");
    }
}

/// Worlds are asked for, for those who have none yet.
fn ask_for_matches(tick: Res<TickInfo>, mut rng: ResMut<WorldRng>, mut line: ResMut<Line>) {
    while line.asked.len() < ASKED_MAX
        && line.asks_from_tick <= tick.tick
        && let Some(players) = line.next_match(tick.tick)
    {
        let seed = rng.0.random();
        let plan = MatchPlan { lobby: tick.world, ordinal: line.asked_count };
        let plan = NewWorld::new(line.matches, seed).with(&plan);
        line.control.create_world_for(tick.world, seed, plan.expect("a plan has no limits"));
        line.asked.push_back(Asked { seed, players: players as u16 });
        line.asked_count = line.asked_count.wrapping_add(1);
    }
}

/// Those for whom a world is there are sent into it.
fn send_to_matches(
    tick: Res<TickInfo>,
    messages: Res<WorldMessages>,
    mut line: ResMut<Line>,
    mut outbox: ResMut<Outbox>,
) {
    let line = &mut *line;
    for made in messages.0.iter().filter_map(|message| message.read::<WorldMade>().ok()) {
        let asked = line.asked.iter().position(|asked| asked.seed == made.number);
        let asked = asked.and_then(|place| line.asked.remove(place));
        match (asked, made.world) {
            (Some(Asked { players, .. }), Some(world)) => send(line, &mut outbox, world, players.into()),
            // A lobby before this one has asked for it.
            (None, Some(world)) => drop(line.control.retire_world(world)),
            (_, None) => {
                count!("matches.failed");
                // Its players are asked for again.
                line.asks_from_tick = tick.tick + ASK_AGAIN_TICKS;
            }
        }
    }
}

/// The lobby rests until then, unless somebody comes or goes.
fn wait(tick: Res<TickInfo>, line: Res<Line>, mut outbox: ResMut<Outbox>) {
    if let Some(ticks) = line.next_look(tick.tick) {
        outbox.wake_after(ticks);
    }
}

/// Sends the first in line into a world. Some of those whom it was made for may have gone; without two it is ended.
fn send(line: &mut Line, outbox: &mut Outbox, world: WorldId, players: usize) {
    let players = players.min(line.waiting.len());
    if players < PLAYERS_MIN {
        drop(line.control.retire_world(world));
        return;
    }
    for (number, Waiter { client, passport, .. }) in line.waiting.drain(..players).enumerate() {
        let carries = Traveller { passport, seat: seat_of(number) };
        outbox.travel(client, world, &carries).expect("there is a seat for each");
    }
    line.note_free_seats(world, (players..SEATS).map(seat_of).collect());
    count!("matches.made");
}

/// The seat of the first, the second, and so on: one for each team in turn.
fn seat_of(number: usize) -> u8 {
    (number % 2 * TEAM_SIZE + number / 2) as u8
}

const _: () = assert!(TEAM_SIZE * 2 == SEATS);

/// Of free seats, the first of the team that has more of them; `None` if none is free.
fn seat_to_fill(free: SeatSet) -> Option<u8> {
    let [one, two] = TeamId::BOTH.map(|team| free & SeatSet::of_team(team));
    let team = if one.count() >= two.count() { one } else { two };
    team.iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_are_filled_in_turn() {
        let seats: Vec<u8> = (0..SEATS).map(seat_of).collect();
        let mut sorted = seats.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..SEATS as u8).collect::<Vec<_>>());
        for players in 0..=SEATS {
            let ones = seats[..players].iter().filter(|seat| TeamId::of_seat(**seat) == TeamId::One).count();
            assert_eq!(ones, players.div_ceil(2));
        }
    }

    #[test]
    fn free_seats_are_given_away_so_that_teams_are_as_large() {
        // Four and one are there: two of the other team come, before anybody of the larger one.
        let mut free: SeatSet = [4_u8, 6, 7, 8, 9].into_iter().collect();
        let filled: Vec<u8> = std::iter::from_fn(|| {
            let seat = seat_to_fill(free)?;
            free = free.without(seat);
            Some(seat)
        })
        .collect();
        assert_eq!(filled, [6, 7, 8, 4, 9]);
    }
}
