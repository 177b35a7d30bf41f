//! Gather: hears of each tick of a replay and makes load profiles of it.
//!
//! What a player says, and where it is, is its own. What a world counts and takes in a tick belongs to those who are there, in equal
//! shares; where not all are of one side it belongs to nobody, since nothing says whose it is. A world without players is
//! left out: it costs what it costs whoever plays. So is time that is missing, in a gap or behind a failure: nobody played then, and
//! where somebody is found afterwards it did not walk.
//!
//! ```text
//! begins: what entered the tick --> packets of its senders
//! done:   counters, who is here --> pending of this world and bin --> shares, when world, bin or people change
//!         each second: places --> cells, metres, how many are near
//! gap:    pending --> shares; the world's next tick is as its first
//! ```
//!
//! On the replay's thread. Cost: some 100 ns a message and tick, 100 ns for each player and tick, and once a second as many
//! distances as a world has ordered pairs of players.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use throng::{
    recording::WorldPlan,
    replay::{DoneTick, ReplayWatch},
};
use throng_replication::Schema;
use throng_world::{
    ids::{ClientKey, WorldId},
    inbox::{InboxMessage, MessageKind},
    input_log::{Entry, LoggedTick},
    reactive::REST_S_MAX,
};

use crate::{
    clock::WorldClocks,
    measures::{BYTES, INPUTS, INPUTS_CHANGED, JOURNEYS, Kinds, LOGINS, METRES, Measures, NEAR, NEAR_M, REQUESTS},
    outline::Outline,
    profile::{BINS, Cell, Measure, PlayerProfile, Profile, Sort, spell_of},
    times::OwnTimes,
    who::Who,
    worlds::{WorldSums, Worlds},
};

/// Side of a cell (m): a small room.
const CELL_M: f32 = 8.0;
/// More than that in a cell are a crowd, of which nobody says that it goes together.
const PARTY_MAX: u32 = 9;
/// Whoever is farther from where it was a second ago has not walked (m).
const WALK_M_MAX: f32 = 50.0;
/// Time at the beginning that is left out, of everybody coming in (s), and how much of a short recording it is at most.
const BEGINNING_S: f64 = 10.0;
const BEGINNING_SHARE_MAX: f64 = 1.0 / 6.0;

/// Makes profiles of a replay.
pub(crate) struct Gatherer<'a> {
    outline: &'a Outline,
    /// Whom each side is of.
    who: &'a [Who],
    begin_s: f64,
    bin_s: f64,
    clocks: WorldClocks,
    worlds: HashMap<WorldId, Seen>,
    players: Vec<Player>,
    sides: Vec<SideSums>,
    by_client: HashMap<u64, usize>,
    by_key: HashMap<ClientKey, usize>,
    measures: Measures,
    kinds: Kinds,
    pending: Pending,
    times: OwnTimes,
    /// Told how far the recording has come (s).
    tell_at_s: &'a mut dyn FnMut(f64),
}

/// What a side has in common.
#[derive(Default)]
struct SideSums {
    /// The worlds that are over.
    worlds: Vec<WorldSums>,
    /// How many others were in somebody's cell, added up over players and their time, and that time (s).
    company: (f64, f64),
}

#[derive(Default)]
struct Player {
    /// `None`: of none of those that are wanted.
    side: Option<usize>,
    last_input: Vec<u8>,
    played_s: Vec<f64>,
    own_s: Vec<f64>,
    /// By measure.
    values: Vec<Option<Box<[f64; BINS]>>>,
    places: BTreeMap<(u8, Cell), u32>,
}

impl Player {
    fn add(&mut self, measure: usize, bin: usize, value: f64) {
        if measure >= self.values.len() {
            self.values.resize_with(measure + 1, || None);
        }
        self.values[measure].get_or_insert_with(|| Box::new([0.0; BINS]))[bin] += value;
    }
}

/// What is known of a world.
struct Seen {
    kind: Arc<str>,
    stay: usize,
    rate_hz: u16,
    tick: Option<u32>,
    second: u32,
    here: Vec<Here>,
    /// The side of all who are here, if it is one.
    side: Option<usize>,
    /// What each side has of it.
    sums: Vec<WorldSums>,
}

struct Here {
    client: ClientKey,
    player: usize,
    place: Option<[f32; 2]>,
    /// The second of its world in which it came, or in which its place was taken down last.
    second: u32,
}

/// What a world has cost since it was last shared out.
#[derive(Default)]
struct Pending {
    world: Option<WorldId>,
    /// `None`: it is left out.
    bin: Option<usize>,
    seconds: f64,
    counted: BTreeMap<usize, u64>,
}

impl<'a> Gatherer<'a> {
    /// `tell_at_s` is told how far the recording has come before each tick (s).
    pub fn new(outline: &'a Outline, who: &'a [Who], schema: &Schema, tell_at_s: &'a mut dyn FnMut(f64)) -> Self {
        let begin_s = BEGINNING_S.min(outline.length_s * BEGINNING_SHARE_MAX);
        let mut measures = Measures::new();
        Self {
            outline,
            who,
            begin_s,
            bin_s: ((outline.length_s - begin_s) / BINS as f64).max(f64::MIN_POSITIVE),
            clocks: WorldClocks::default(),
            worlds: HashMap::new(),
            players: Vec::new(),
            sides: who.iter().map(|_| SideSums::default()).collect(),
            by_client: HashMap::new(),
            by_key: HashMap::new(),
            kinds: Kinds::of(schema, &mut measures),
            measures,
            pending: Pending::default(),
            times: OwnTimes::new(),
            tell_at_s,
        }
    }

    /// A profile for each side, in their order.
    pub fn finish(mut self) -> Vec<Profile> {
        self.share_out();
        let length_s = (self.outline.length_s - self.begin_s).max(0.0);
        // In their order, so that the same recording gives the same numbers.
        let left: BTreeMap<WorldId, Seen> = self.worlds.drain().collect();
        left.into_values().for_each(|world| close(&mut self.sides, world));
        let of_side = |SideSums { worlds, company: (met_s, all_s) }| Profile {
            length_s,
            players: Vec::new(),
            worlds: Worlds::new(self.measures.all().iter().cloned(), worlds),
            company: if all_s > 0.0 { met_s / all_s } else { 0.0 },
        };
        let mut profiles: Vec<Profile> = self.sides.into_iter().map(of_side).collect();
        for player in self.players {
            let Player { side: Some(side), played_s, own_s, values, places, .. } = player else { continue };
            if played_s.iter().all(|seconds| *seconds <= 0.0) {
                continue;
            }
            let values = values.into_iter().enumerate();
            let named = |(number, values): (usize, Option<Box<[f64; BINS]>>)| {
                Some((self.measures.get(number).clone(), values?.to_vec()))
            };
            let values = values.filter_map(named).collect();
            profiles[side].players.push(PlayerProfile { played_s, own_s, values, places });
        }
        profiles
    }

    fn bin(&self, at_s: f64) -> Option<usize> {
        let since_s = at_s - self.begin_s;
        (since_s >= 0.0).then(|| ((since_s / self.bin_s) as usize).min(BINS - 1))
    }

    fn player(&mut self, client: ClientKey) -> usize {
        if let Some(known) = self.by_key.get(&client) {
            return *known;
        }
        let client_id = self.outline.clients.get(&client).copied();
        let known = client_id.and_then(|id| self.by_client.get(&id).copied());
        let number = known.unwrap_or(self.players.len());
        if known.is_none() {
            let side = self.who.iter().position(|who| who.includes(client_id));
            let (played_s, own_s) = (vec![0.0; BINS], vec![0.0; BINS]);
            self.players.push(Player { side, played_s, own_s, ..Player::default() });
        }
        self.by_key.insert(client, number);
        client_id.into_iter().for_each(|id| _ = self.by_client.insert(id, number));
        number
    }

    fn note_message(&mut self, world: WorldId, bin: usize, message: &InboxMessage<'_>) {
        let player = self.player(message.client);
        let player = &mut self.players[player];
        let Some(side) = player.side else { return };
        let mut seen = self.worlds.get_mut(&world);
        let mut add = |player: &mut Player, measure: usize, value: f64| {
            player.add(measure, bin, value);
            seen.iter_mut().for_each(|seen| seen.sums[side].add(measure, value));
        };
        let (all, own) = match message.kind {
            MessageKind::Input { kind, .. } => {
                if player.last_input != message.bytes {
                    player.last_input.clear();
                    player.last_input.extend_from_slice(message.bytes);
                    add(player, INPUTS_CHANGED, 1.0);
                }
                (INPUTS, self.kinds.inputs.get(kind.index()))
            }
            MessageKind::Request { kind } => (REQUESTS, self.kinds.requests.get(kind.index())),
        };
        add(player, all, 1.0);
        own.into_iter().for_each(|own| add(player, *own, 1.0));
        add(player, BYTES, message.bytes.len() as f64);
    }

    /// Gives what the pending world has cost to those who were there.
    fn share_out(&mut self) {
        let Self { worlds, players, measures, times, pending, .. } = self;
        let world = pending.world.and_then(|world| worlds.get_mut(&world)).filter(|world| !world.here.is_empty());
        // What was taken meanwhile is over in any case.
        let (Some(world), Some(bin)) = (world, pending.bin) else {
            times.take(|_, _| {});
            pending.empty();
            return;
        };
        let share = 1.0 / world.here.len() as f64;
        let Seen { here, side, stay, sums, .. } = world;
        for here in &*here {
            let player = &mut players[here.player];
            if let Some(side) = player.side {
                player.played_s[bin] += pending.seconds;
                player.add(*stay, bin, pending.seconds);
                sums[side].played_s += pending.seconds;
                sums[side].add(*stay, pending.seconds);
            }
        }
        let mut give = |measure: usize, value: f64| {
            here.iter().for_each(|here| players[here.player].add(measure, bin, value * share));
            side.iter().for_each(|side| sums[*side].add(measure, value));
        };
        if side.is_some() {
            pending.counted.iter().for_each(|(counter, count)| give(measures.counter(*counter), *count as f64));
        }
        times.take(|subsystem, taken_us| {
            if let Some(measure) = measures.subsystem(subsystem).filter(|_| side.is_some()) {
                give(measure, taken_us);
            }
        });
        if let Some(side) = *side {
            here.iter().for_each(|here| players[here.player].own_s[bin] += pending.seconds);
            sums[side].own_s += pending.seconds * here.len() as f64;
        }
        pending.empty();
    }

    /// Shares out what this world has cost, if that is pending. What comes next is begun anew.
    fn share_out_of(&mut self, world: WorldId) {
        if self.pending.world == Some(world) {
            self.share_out();
            self.pending.world = None;
        }
    }

    /// What comes of this world does not follow on what came.
    fn break_off(&mut self, world: WorldId) {
        self.share_out_of(world);
        if let Some(seen) = self.worlds.get_mut(&world) {
            (seen.tick, seen.side) = (None, None);
            seen.here.clear();
        }
    }

    /// Takes down who is in a world now.
    fn note_people(&mut self, tick: &DoneTick<'_>) {
        let clients: Vec<ClientKey> = tick.world.places_of_players().map(|(client, _)| client).collect();
        let players: Vec<usize> = clients.iter().map(|client| self.player(*client)).collect();
        let mut sides = players.iter().map(|player| self.players[*player].side);
        let first = sides.next().flatten();
        let side = first.filter(|_| sides.all(|other| other == first));
        let Some(world) = self.worlds.get_mut(&tick.id) else { return };
        let second = tick.world.ticks() / u32::from(world.rate_hz);
        let before: HashMap<ClientKey, (Option<[f32; 2]>, u32)> =
            world.here.iter().map(|here| (here.client, (here.place, here.second))).collect();
        let here = clients.into_iter().zip(players).map(|(client, player)| {
            let (place, second) = before.get(&client).copied().unwrap_or((None, second));
            Here { client, player, place, second }
        });
        world.here = here.collect();
        world.side = side;
    }

    /// Where everybody is: once a second, and after a rest for all seconds of it, in which nobody has moved.
    fn note_places(&mut self, bin: Option<usize>, tick: &DoneTick<'_>) {
        let Some(world) = self.worlds.get_mut(&tick.id) else { return };
        let second = tick.world.ticks() / u32::from(world.rate_hz);
        let places: Vec<Option<[f32; 2]>> = tick.world.places_of_players().map(|(_, place)| place).collect();
        // How many of each side are in each cell.
        let mut met: HashMap<(usize, [i32; 2]), u32> = HashMap::new();
        for (here, place) in world.here.iter().zip(&places) {
            if let (Some(side), Some(place)) = (self.players[here.player].side, *place) {
                *met.entry((side, cell_of(place))).or_default() += 1;
            }
        }
        for (index, (here, place)) in world.here.iter_mut().zip(&places).enumerate() {
            let before = std::mem::replace(&mut here.place, *place);
            let seconds = second.saturating_sub(std::mem::replace(&mut here.second, second)).min(REST_S_MAX);
            let player = &mut self.players[here.player];
            let (Some(place), Some(side), Some(bin), 1..) = (*place, player.side, bin, seconds) else { continue };
            let cell @ [x_m, z_m] = cell_of(place);
            *player.places.entry((spell_of(bin), Cell { kind: world.kind.clone(), x_m, z_m })).or_default() += seconds;
            let seconds = f64::from(seconds);
            let walked_m = before.map(|before| away_m(before, place)).filter(|way| *way <= WALK_M_MAX);
            let others = places.iter().enumerate().filter(|(other, _)| *other != index);
            let near = others.filter(|(_, other)| other.is_some_and(|other| away_m(other, place) <= NEAR_M));
            let (walked_m, near_s) = (walked_m.unwrap_or_default().into(), near.count() as f64 * seconds);
            for (measure, value) in [(METRES, walked_m), (NEAR, near_s)] {
                player.add(measure, bin, value);
                world.sums[side].add(measure, value);
            }
            let company = f64::from((met[&(side, cell)] - 1).min(PARTY_MAX - 1));
            let (met_s, all_s) = &mut self.sides[side].company;
            (*met_s, *all_s) = (*met_s + company * seconds, *all_s + seconds);
        }
    }
}

/// Takes a world that is over into what each side has.
fn close(sides: &mut [SideSums], world: Seen) {
    sides.iter_mut().zip(world.sums).for_each(|(side, sums)| side.worlds.push(sums));
}

impl Pending {
    fn empty(&mut self) {
        self.seconds = 0.0;
        self.counted.clear();
    }
}

impl ReplayWatch for Gatherer<'_> {
    fn begins(&mut self, world: WorldId, plan: &WorldPlan, tick: &LoggedTick<'_>) {
        let at_s = self.clocks.at(world, plan.rate_hz, tick.tick);
        (self.tell_at_s)(at_s);
        let bin = self.bin(at_s);
        if (self.pending.world, self.pending.bin) != (Some(world), bin) {
            self.share_out();
            (self.pending.world, self.pending.bin) = (Some(world), bin);
        }
        let (measures, sides) = (&mut self.measures, self.sides.len());
        let seen = self.worlds.entry(world).or_insert_with(|| Seen {
            kind: plan.kind.as_str().into(),
            stay: measures.number(Measure::new(Sort::Worlds, &format!("time in {}", plan.kind))),
            rate_hz: plan.rate_hz.max(1),
            tick: None,
            second: 0,
            here: Vec::new(),
            side: None,
            sums: vec![WorldSums::new(plan.kind.as_str().into()); sides],
        });
        let ticks = seen.tick.replace(tick.tick).map_or(1, |before| tick.tick.saturating_sub(before));
        let rate = u32::from(seen.rate_hz);
        self.pending.seconds += f64::from(ticks.clamp(1, REST_S_MAX * rate)) / f64::from(rate);
        for entry in tick.entries().map_while(Result::ok) {
            match (entry, bin) {
                (Entry::Arrival(arrival), Some(bin)) => {
                    // Of the player alone: it came from outside of all worlds, so none has it in its sums, and it is never
                    // held in pairs.
                    let player = self.player(arrival.client);
                    let measure = if arrival.from.is_none() { LOGINS } else { JOURNEYS };
                    self.players[player].add(measure, bin, 1.0);
                }
                (Entry::Message(message), Some(bin)) => self.note_message(world, bin, &message),
                _ => {}
            }
        }
    }

    fn done(&mut self, tick: &DoneTick<'_>) {
        for (counter, count) in tick.counted {
            *self.pending.counted.entry(*counter).or_default() += count;
        }
        let Some(seen) = self.worlds.get(&tick.id) else { return };
        let here = tick.world.players_here();
        if !here.eq(seen.here.iter().map(|here| here.client)) {
            self.share_out();
            self.note_people(tick);
        }
        let Some(seen) = self.worlds.get_mut(&tick.id) else { return };
        let second = tick.world.ticks() / u32::from(seen.rate_hz);
        if std::mem::replace(&mut seen.second, second) != second {
            self.note_places(self.pending.bin, tick);
        }
    }

    fn gap(&mut self, world: WorldId) {
        self.break_off(world);
    }

    fn failed(&mut self, world: WorldId, _: &str) {
        self.break_off(world);
    }

    fn ended(&mut self, world: WorldId) {
        self.share_out_of(world);
        if let Some(seen) = self.worlds.remove(&world) {
            close(&mut self.sides, seen);
        }
        self.clocks.forget(world);
    }
}

/// The corner of a place's cell (m).
fn cell_of(place: [f32; 2]) -> [i32; 2] {
    place.map(|m| ((m / CELL_M).floor() as i32).saturating_mul(CELL_M as i32))
}

fn away_m(one: [f32; 2], other: [f32; 2]) -> f32 {
    (one[0] - other[0]).hypot(one[1] - other[1])
}
