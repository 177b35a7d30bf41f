//! R13: whoever cheats with time or place goes no farther than the rules let it, whoever's clock is fast is found out, and
//! nobody honest is.
//!
//! Ten clients run up and down the bases of a match that waits, where who connects again stands up at once. Four of them
//! cheat, each by a script that the seed draws: fast clocks, bursts, lag switches, time saved in silence, inputs under
//! numbers that are no sequence, claims to be somewhere, and new connections in between. Six are honest, on lines that lose
//! up to a fifth and hold back what they carry for up to 300 ms. How far everybody comes is held against the contract;
//! beside each client a careless server makes a step of each input that comes, and believes places: the contract must find
//! that out.

use std::collections::HashSet;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_replication::PackedId;

use super::*;
use crate::{
    controls::SAVED_MAX,
    map::layout::middle_of,
    movement::{RUN_M_PER_S, Wish, step},
    pace::Pace,
    protocol::TICK_HZ,
    scene::Scene,
    seats::Senses,
    teams::{Side, TeamId},
};

/// In no time whatever does anybody go farther than the rules' speed and this: the steps that are saved for late inputs,
/// and what rounding makes of places that are summed up. No second is longer than that lets it be.
const AHEAD_M_MAX: f32 = SAVED_MAX as f32 * STEP_M + 0.001;
/// The contract's own bound of what may be saved.
const _: () = assert!(SAVED_MAX as u32 * 1_000 <= 250 * TICK_HZ as u32);
/// Within so many ticks a clock that is 1.10 times as fast is found.
const FOUND_TICKS_MAX: u32 = 5 * TICK_HZ as u32;
const FOUND_FROM: f64 = 1.10;

const STEP_M: f32 = RUN_M_PER_S / TICK_HZ as f32;
const DT_S: f32 = 1.0 / TICK_HZ as f32;
/// A little more than ten seconds: six honest clients of 10,000 seeds play for 10,000 minutes.
const TICKS: u32 = 1_290;
const CHEATS: [u8; 4] = [0, 3, 5, 8];
const _: () = assert!(10_000 * (SEATS - CHEATS.len()) as u64 * TICKS as u64 >= 10_000 * 60 * TICK_HZ as u64);
/// Everybody turns back here, some metres before the walls (m).
const TURN_Z_M: f32 = 26.0;

/// A match that waits for as long as this takes.
const WAITS: MatchRules = MatchRules { warm_up_ticks: 1_000_000, ..RULES };

/// How far a body comes.
#[derive(Default)]
struct Way {
    in_all_m: f64,
    /// How much farther than the rules' speed, of all runs of ticks that end here the most; and of all that ever ended.
    ahead_m: f64,
    ahead_m_max: f64,
}

impl Way {
    /// The next tick, in which it moved so far along the ground.
    fn note(&mut self, moved_m: f32) {
        self.in_all_m += f64::from(moved_m);
        self.ahead_m = (self.ahead_m + f64::from(moved_m - STEP_M)).max(0.0);
        self.ahead_m_max = self.ahead_m_max.max(self.ahead_m);
    }

    /// Whether it is within the contract.
    fn is_allowed(&self) -> bool {
        self.ahead_m_max <= f64::from(AHEAD_M_MAX)
    }
}

fn along_ground_m(way: Vec3) -> f32 {
    way.x.hypot(way.z)
}

/// How a client behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Script {
    Honest,
    /// Its clock is so many times as fast.
    FastClock(f64),
    /// Every so often so many inputs more than it should make, all at once.
    Bursts {
        every_ticks: u32,
        inputs: u32,
    },
    /// Every so often it holds its packets back for a while and lets them go at once.
    LagSwitch {
        every_ticks: u32,
        holds_ticks: u32,
    },
    /// Every so often it says nothing for a while, and then twice as much as it would have said.
    Saves {
        every_ticks: u32,
        silent_ticks: u32,
    },
    /// In each tick it makes so many inputs, under numbers that it draws.
    Numbers {
        inputs: u32,
    },
    /// It says where it is.
    Teleports,
}

impl Script {
    fn of_cheat(seat: u8, rng: &mut Xoshiro256PlusPlus) -> Self {
        let every_ticks = rng.random_range(140..400);
        // In each seed is a fast clock, and most are only a little fast.
        let sort = if seat == CHEATS[0] { 0 } else { rng.random_range(0..6) };
        match sort {
            0 if rng.random_bool(0.6) => Self::FastClock(rng.random_range(1.02..1.3)),
            0 => Self::FastClock(rng.random_range(1.3..10.0)),
            1 => Self::Bursts { every_ticks, inputs: rng.random_range(16..=128) },
            2 => Self::LagSwitch { every_ticks, holds_ticks: rng.random_range(8..128) },
            3 => Self::Saves { every_ticks, silent_ticks: rng.random_range(8..128) },
            4 => Self::Numbers { inputs: rng.random_range(2..16) },
            _ => Self::Teleports,
        }
    }

    /// Whether it makes so many inputs that it must be found.
    fn is_to_be_found(self) -> bool {
        match self {
            Self::FastClock(times) => times >= FOUND_FROM,
            Self::Numbers { .. } => true,
            _ => false,
        }
    }
}

/// What becomes of packets.
struct Line {
    loss: f64,
    delay_ticks: f64,
    /// Some are held back for up to so much longer.
    jitter_ticks: f64,
}

impl Line {
    fn of_honest(rng: &mut Xoshiro256PlusPlus) -> Self {
        let ms = f64::from(TICK_HZ) / 1_000.0;
        let jitter_ticks = rng.random_range(0.0..300.0) * ms;
        Self { loss: rng.random_range(0.0..0.2), delay_ticks: rng.random_range(0.0..100.0) * ms, jitter_ticks }
    }

    /// Cheats have good ones: what is lost gains nothing.
    fn of_cheat(rng: &mut Xoshiro256PlusPlus) -> Self {
        Self { loss: 0.0, delay_ticks: rng.random_range(0.0..6.0), jitter_ticks: rng.random_range(0.0..2.5) }
    }
}

/// A client, its line, and what becomes of its player.
struct Runner {
    seat: u8,
    key: ClientKey,
    script: Script,
    line: Line,
    /// How often it connects anew.
    connects_every_ticks: Option<u32>,
    heading_z: f32,
    /// Inputs that are due, and that were made.
    due: f64,
    made: u16,
    /// What its next packets say again, with its numbers.
    repeats: Vec<(u16, Input)>,
    /// Inputs on their way, by the tick in which they come and the order in which they were sent.
    on_their_way: BTreeMap<(u32, u32), (u16, Input)>,
    sent: u32,
    /// The numbers that came: the runtime gives each to the match once.
    came: HashSet<u16>,
    came_first_tick: Option<u32>,
    found_tick: Option<u32>,
    /// Its player, and how many lives that has had.
    at: Vec3,
    life: u32,
    way: Way,
    /// On a server that makes a step of each input that comes.
    careless: Motion,
    careless_way: Way,
}

impl Runner {
    fn new(seat: u8, rng: &mut Xoshiro256PlusPlus) -> Self {
        let is_cheat = CHEATS.contains(&seat);
        let script = if is_cheat { Script::of_cheat(seat, rng) } else { Script::Honest };
        let connects_every_ticks = match script {
            Script::Honest => None,
            // Of slower ones little is left but what is lost with each connection.
            Script::FastClock(times) if times < 1.5 => None,
            _ => rng.random_bool(0.3).then(|| rng.random_range(128..256)),
        };
        Self {
            seat,
            key: client(seat),
            script,
            line: if is_cheat { Line::of_cheat(rng) } else { Line::of_honest(rng) },
            connects_every_ticks,
            heading_z: if rng.random_bool(0.5) { 1.0 } else { -1.0 },
            due: 0.0,
            made: 0,
            repeats: Vec::new(),
            on_their_way: BTreeMap::new(),
            sent: 0,
            came: HashSet::new(),
            came_first_tick: None,
            found_tick: None,
            at: spawn(seat),
            life: 1,
            way: Way::default(),
            careless: Motion::standing(spawn(seat)),
            careless_way: Way::default(),
        }
    }

    /// How many inputs it makes in this tick.
    fn inputs_of(&mut self, tick: u32) -> u32 {
        match self.script {
            Script::FastClock(times) => {
                self.due += times;
                let inputs = self.due.floor();
                self.due -= inputs;
                inputs as u32
            }
            Script::Numbers { inputs } => inputs,
            Script::Bursts { every_ticks, inputs } if tick.is_multiple_of(every_ticks) => 1 + inputs,
            Script::Saves { every_ticks, silent_ticks } => match tick % every_ticks {
                since if since < silent_ticks => 0,
                since if since == silent_ticks => 2 * silent_ticks,
                _ => 1,
            },
            _ => 1,
        }
    }

    /// When a packet leaves that is sent in this tick.
    fn leaves(&self, tick: u32) -> u32 {
        match self.script {
            Script::LagSwitch { every_ticks, holds_ticks } if tick % every_ticks < holds_ticks => {
                tick - tick % every_ticks + holds_ticks
            }
            _ => tick,
        }
    }

    /// What its player wants: to run up and down as fast as it can. Who is honest now and then wants something else.
    fn wants(&mut self, rng: &mut Xoshiro256PlusPlus) -> Input {
        if self.at.z.abs() > TURN_Z_M {
            self.heading_z = -self.at.z.signum();
        }
        let input = Input::new([0.0, self.heading_z], rng.random_range(0.0..6.0), 0.0);
        match rng.random_range(0..40) {
            0 => input.and_jump(),
            1 if self.script == Script::Honest => input.and_walk(),
            2 if self.script == Script::Honest => Input::default(),
            _ => input,
        }
    }

    /// Makes inputs, and sends each with those before it that are said again.
    fn send(&mut self, tick: u32, rng: &mut Xoshiro256PlusPlus) {
        for _ in 0..self.inputs_of(tick) {
            let input = self.wants(rng);
            self.made = if let Script::Numbers { .. } = self.script { rng.random() } else { self.made + 1 };
            self.repeats.push((self.made, input));
            let aside = self.repeats.len().saturating_sub(usize::from(Input::REPEATS) + 1);
            self.repeats.drain(..aside);
            if rng.random_bool(self.line.loss) {
                continue;
            }
            let late_ticks = self.line.delay_ticks + rng.random_range(0.0..=self.line.jitter_ticks);
            let comes = self.leaves(tick) + late_ticks.ceil() as u32;
            for said in &self.repeats {
                self.on_their_way.insert((comes, self.sent), *said);
                self.sent += 1;
            }
        }
    }

    /// What has come is given to the match, and to the careless server.
    fn deliver(&mut self, tick: u32, game: &mut Headless) {
        let map = game.world.ecs().resource::<Scene>().map.clone();
        let base = &map.bases[side(self.seat).index()];
        while let Some(entry) = self.on_their_way.first_entry().filter(|entry| entry.key().0 <= tick) {
            let (number, input) = entry.remove();
            if !self.came.insert(number) {
                continue;
            }
            game.world.input_numbered(self.key, number, &input);
            self.came_first_tick.get_or_insert(tick);
            step(&mut self.careless, &Wish::from(&input), Some(base), &map, DT_S);
        }
    }

    /// Says that it is at the other end of its base, as if inputs said places. The careless server believes it.
    fn claim(&mut self, game: &mut Headless, rng: &mut Xoshiro256PlusPlus) {
        let kind = MessageKind::Input { number: rng.random(), kind: PackedId(0) };
        let mut bytes = vec![0x80, 0x80, 0, 0, 0, 0, 0];
        if rng.random_bool(0.5) {
            let place = Vec3::new(self.at.x, 0.0, -self.at.z);
            bytes = place.to_array().iter().flat_map(|part| part.to_le_bytes()).collect();
            self.careless.at = place;
        }
        game.world.say(self.key, kind, &bytes);
    }

    /// Its connection ends, and it comes back at once, as another client to the match.
    fn connect_again(&mut self, game: &mut Headless) {
        game.world.leave(self.key);
        self.key = ClientKey(self.key.0 + SEATS as u32);
        let carries = Traveller { passport: Passport::default(), seat: self.seat };
        game.world.arrive_from(self.key, LOBBY_WORLD, &carries).expect("the match can read it");
        self.on_their_way.clear();
        self.repeats.clear();
        self.came.clear();
        self.made = 0;
        self.careless = Motion::standing(spawn(self.seat));
    }

    fn act(&mut self, tick: u32, game: &mut Headless, rng: &mut Xoshiro256PlusPlus) {
        if self.connects_every_ticks.is_some_and(|every| tick % every == every - 1) {
            self.connect_again(game);
        }
        self.send(tick, rng);
        let before = self.careless.at;
        self.deliver(tick, game);
        if self.script == Script::Teleports {
            self.claim(game, rng);
        }
        self.careless_way.note(along_ground_m(self.careless.at - before));
    }

    /// Where the tick has left its player, and whether it was found.
    fn look(&mut self, tick: u32, game: &Headless) {
        let (at, life) = (game.get::<Motion>(self.seat).at, game.get::<Senses>(self.seat).life);
        // Who stands up anew is put there by the match.
        let before = if life == self.life { self.at } else { spawn(self.seat) };
        self.way.note(along_ground_m(at - before));
        (self.at, self.life) = (at, life);
        if game.world.ecs().resource::<Pace>().over(self.seat) > 0 {
            self.found_tick.get_or_insert(tick);
        }
    }
}

fn side(seat: u8) -> Side {
    Side::of(TeamId::of_seat(seat), TeamId::One)
}

/// Where it stands up.
fn spawn(seat: u8) -> Vec3 {
    Map::load().spawn(side(seat), seat.into())
}

#[derive(Debug, Default)]
struct Sum {
    honest_m: f64,
    honest_ticks: u64,
    honest_found: u64,
    /// Those that had to be found, and after how long the last of them was (ticks).
    to_be_found: u64,
    found_ticks_max: u32,
    /// Farthest that anybody came beyond the rules' speed, in any time (m).
    ahead_m_max: f64,
    /// Whom the careless server lets cheat.
    careless: u64,
    connections: u64,
    claims: u64,
}

/// Plays one seed.
fn play(seed: u64, sum: &mut Sum) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut game = Headless::new(WAITS, &ALL, seed);
    let mut runners = ALL.map(|seat| Runner::new(seat, &mut rng));
    for tick in 0..TICKS {
        runners.iter_mut().for_each(|runner| runner.act(tick, &mut game, &mut rng));
        game.world.tick();
        runners.iter_mut().for_each(|runner| runner.look(tick, &game));
    }
    for runner in &runners {
        let Runner { seat, script, way, careless_way, .. } = runner;
        let who = format!("seed {seed}, seat {seat}, {script:?}");
        assert!(way.is_allowed(), "{who}: {} m ahead", way.ahead_m_max);
        sum.ahead_m_max = sum.ahead_m_max.max(way.ahead_m_max);
        sum.connections += u64::from(runner.life) - 1;
        if script.is_to_be_found() {
            let found = runner.found_tick.zip(runner.came_first_tick).map(|(found, began)| found - began);
            assert!(found.is_some_and(|ticks| ticks <= FOUND_TICKS_MAX), "{who}: found after {found:?} ticks");
            (sum.to_be_found, sum.found_ticks_max) =
                (sum.to_be_found + 1, sum.found_ticks_max.max(found.unwrap_or_default()));
        }
        let must_gain = script.is_to_be_found() || *script == Script::Teleports;
        let is_caught = !careless_way.is_allowed();
        assert!(is_caught || !must_gain, "{who}: nothing is to be gained, even without rules");
        if *script == Script::Honest {
            sum.honest_m += way.in_all_m;
            sum.honest_ticks += u64::from(TICKS);
            sum.honest_found += u64::from(runner.found_tick.is_some());
        } else {
            sum.careless += u64::from(is_caught);
        }
    }
    sum.claims += game.counted("refused.duel.input");
}

#[track_caller]
fn check(seeds: u64) {
    let mut sum = Sum::default();
    (0..seeds).for_each(|seed| play(seed, &mut sum));
    let minutes = sum.honest_ticks / (60 * u64::from(TICK_HZ));
    println!("{seeds} seeds, {minutes} minutes of honest clients: {sum:?}");
    assert_eq!(sum.honest_found, 0, "of {minutes} minutes of honest clients");
    let honest_m_per_s = sum.honest_m / sum.honest_ticks as f64 * f64::from(TICK_HZ);
    assert!(honest_m_per_s > 0.8 * f64::from(RUN_M_PER_S), "who is honest gets on: {honest_m_per_s} m/s");
    assert!(sum.to_be_found > seeds / 2 && sum.careless > seeds, "there is something to gain");
    assert!(sum.connections > seeds && sum.claims > seeds, "they try all of it");
}

#[test]
fn r13_two_hundred_seeds_of_cheats_gain_nothing_and_nobody_honest_is_found() {
    check(200);
}

#[test]
#[ignore = "the full form: ten thousand seeds"]
fn r13_ten_thousand_seeds_of_cheats_gain_nothing_and_nobody_honest_is_found() {
    check(10_000);
}

/// Has the attacker run north in a match that waits, from its base's southern end.
fn running() -> (Headless, Input) {
    let mut game = Headless::new(WAITS, &[ATTACKER, DEFENDER], 1);
    game.put(ATTACKER, middle_of(3, 29));
    let input = Input::new([0.0, 1.0], 0.0, 0.0);
    game.hold(ATTACKER, input);
    game.ticks(64);
    (game, input)
}

/// How far the attacker goes in the tick in which so many inputs come (m).
fn goes_m(game: &mut Headless, input: Input, inputs: usize) -> f32 {
    let before = game.get::<Motion>(ATTACKER).at;
    (0..inputs).for_each(|_| game.world.input(client(ATTACKER), &input));
    game.world.tick();
    along_ground_m(game.get::<Motion>(ATTACKER).at - before)
}

/// Promise: what a client saves in silence is no more than eight steps, and three seconds later nothing is left of it.
#[test]
fn r13_time_that_is_saved_is_bounded_and_drains() {
    for silent_ticks in [0, 1, 4, 8, 16, 31, 33, 64, 256] {
        let (mut game, input) = running();
        let mut way = Way::default();
        (0..silent_ticks).for_each(|_| way.note(goes_m(&mut game, input, 0)));
        (0..20).for_each(|_| way.note(goes_m(&mut game, input, 128)));
        assert!(way.is_allowed(), "{silent_ticks} ticks: {} m ahead", way.ahead_m_max);
    }
    let (mut game, input) = running();
    game.held.clear();
    game.ticks(20);
    game.hold(ATTACKER, input);
    game.ticks(3 * u32::from(TICK_HZ));
    assert!(goes_m(&mut game, input, 128) <= STEP_M * 1.001);
}

/// Promise: who connects again has neither time in hand nor a clock that is believed again.
#[test]
fn r13_a_new_connection_gains_no_time_and_is_found_all_the_same() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut game = Headless::new(WAITS, &ALL, 1);
    let mut runner = Runner {
        script: Script::FastClock(1.3),
        line: Line { loss: 0.0, delay_ticks: 0.0, jitter_ticks: 0.0 },
        connects_every_ticks: Some(TICK_HZ.into()),
        ..Runner::new(ATTACKER, &mut rng)
    };
    for tick in 0..FOUND_TICKS_MAX {
        runner.act(tick, &mut game, &mut rng);
        game.world.tick();
        runner.look(tick, &game);
    }
    assert!(runner.way.is_allowed() && runner.life == 6, "{} lives", runner.life);
    let found = runner.found_tick.expect("it is found");
    assert!(found > u32::from(TICK_HZ), "what one connection sends is not enough to be found by: {found}");
}
