//! R15: real shots of players who hold their packets back, answer late and lie about what they saw. None hits what is
//! older than 200 ms, nobody is shown a moment before one that it was shown already, and each life ends once.
//!
//! A script says how a client cheats: a line of up to 150 ms each way, a switch that holds everything back for a while and
//! lets it go at once, acknowledgements that are held back so that the line looks long, and claims that are older, newer
//! or other than what was shown. The client aims at where its target was at the moment that it claims.
//!
//! In a hunt one of them shoots at runners, and each hit is held against where its runner was: at the moment by which the
//! match judged it, along the way that the shot took. In a brawl all ten shoot at each other, and what is counted is lives.

use std::collections::VecDeque;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::time::Nanos;
use throng_rewind::view_time::ViewTime;

use super::*;
use crate::{
    map::layout::middle_of,
    past::LIMITS,
    protocol::{TICK_HZ, direction_of},
    seats::Senses,
    teams::TeamId,
};

/// Nobody hits what is older.
const CLAMP_MS: u64 = 200;
/// From a shot's way to the middle of a body that it hits, along the ground (m): the reach of a runner's limbs, and how far
/// a shot strays at this distance.
const REACH_M: f32 = 0.9;
const HUNT_TICKS: u32 = 400;
const BRAWL_TICKS: u32 = 500;
/// Rounds that are long enough for a hunt.
const FIGHTS: MatchRules = MatchRules { rounds_to_win: 30, buy_ticks: 40, round_ticks: 1_000, over_ticks: 20, ..RULES };
/// Two rows of squares of the long way in the north: one can run along both, and see from one into the other.
const FAR_ROW: usize = 1;
const NEAR_ROW: usize = 4;

fn clamp_parts() -> u64 {
    ViewTime::parts_in(Nanos::from_millis(CLAMP_MS), TICK_HZ)
}

/// How a client cheats.
#[derive(Debug)]
struct Script {
    /// Its line, there and back (ticks).
    line_ticks: u32,
    /// Every so often it holds its packets back for a while.
    switches_every_ticks: u32,
    holds_ticks: u32,
    /// How much later than need be it acknowledges what it was sent (ticks).
    answers_late_ticks: u32,
    /// How much older it claims its view to be than it was (256ths of ticks).
    lie_parts: u64,
    /// Now and then it claims anything at all.
    is_wild: bool,
}

impl Script {
    fn new(rng: &mut Xoshiro256PlusPlus) -> Self {
        let late = rng.random_bool(0.3).then(|| rng.random_range(0..256));
        let lie = rng.random_bool(0.5).then(|| rng.random_range(0..128 * 256));
        Self {
            line_ticks: rng.random_range(1..39),
            switches_every_ticks: rng.random_range(60..200),
            holds_ticks: if rng.random_bool(0.7) { rng.random_range(1..150) } else { 0 },
            answers_late_ticks: late.unwrap_or(0),
            lie_parts: lie.unwrap_or(0),
            is_wild: rng.random_bool(0.1),
        }
    }

    /// When a packet comes that is sent in this tick.
    fn comes(&self, sent_tick: u32) -> u32 {
        let since = sent_tick % self.switches_every_ticks;
        let held_ticks = self.holds_ticks.saturating_sub(since);
        sent_tick + held_ticks + self.line_ticks / 2 + 1
    }
}

/// What a client sends in a tick.
struct Packet {
    input: Input,
    /// At whom it aims, if it shoots.
    target: Option<u8>,
    claims: ViewTime,
    newest_tick: u32,
    acks_tick: u32,
}

/// A client that cheats.
struct Cheat {
    seat: u8,
    script: Script,
    on_their_way: VecDeque<(u32, Packet)>,
    acked_tick: u32,
}

impl Cheat {
    fn new(seat: u8, rng: &mut Xoshiro256PlusPlus) -> Self {
        Self { seat, script: Script::new(rng), on_their_way: VecDeque::new(), acked_tick: 0 }
    }

    /// What it makes and sends in this tick: `goes` that way, and shoots now and then at somebody of `targets`.
    fn send(&mut self, tick: u32, goes: [f32; 2], targets: &[u8], field: &Field, rng: &mut Xoshiro256PlusPlus) {
        let newest_tick = tick.saturating_sub(self.script.line_ticks / 2 + 1);
        let saw = ViewTime::of_tick(newest_tick).before(rng.random_range(256..1_024));
        let claims = if self.script.is_wild && rng.random_bool(0.3) {
            ViewTime::new(rng.random_range(0..2 * tick), rng.random())
        } else {
            saw.before(self.script.lie_parts)
        };
        let aims = !targets.is_empty() && rng.random_bool(0.2);
        let target = aims.then(|| targets[rng.random_range(0..targets.len())]);
        let place = target.and_then(|target| field.place(target, claims.tick()));
        let input = match place {
            Some(place) => {
                let turned = field.game.aim(self.seat, place + Vec3::Y * 1.25);
                Input::new(goes, turned.yaw(), turned.pitch()).and_fire()
            }
            None => Input::new(goes, 0.0, 0.0),
        };
        let acks_tick = newest_tick.saturating_sub(self.script.answers_late_ticks);
        let target = target.filter(|_| place.is_some());
        let packet = Packet { input, target, claims, newest_tick, acks_tick };
        self.on_their_way.push_back((self.script.comes(tick), packet));
    }

    /// What comes in this tick. The match is given it, with what its server would have measured.
    fn deliver(&mut self, tick: u32, field: &mut Field, rng: &mut Xoshiro256PlusPlus) -> Vec<Packet> {
        let Script { line_ticks, answers_late_ticks, .. } = self.script;
        let waited = line_ticks + answers_late_ticks + rng.random_range(0..3);
        let round_trip = Nanos(u64::from(waited) * 1_000_000_000 / u64::from(TICK_HZ));
        let mut came = Vec::new();
        while let Some((_, packet)) = self.on_their_way.pop_front_if(|(comes, _)| *comes <= tick) {
            let Packet { input, claims, newest_tick, .. } = &packet;
            let acked_tick = self.acked_tick;
            let seen = SeenMoment {
                tick: claims.tick(),
                part: claims.part(),
                newest_tick: *newest_tick,
                acked_tick,
                round_trip,
            };
            field.game.world.input_seen(client(self.seat), input, seen);
            came.push(packet);
        }
        // What is acknowledged counts from the tick's end.
        self.acked_tick = came.iter().map(|packet| packet.acks_tick).fold(self.acked_tick, u32::max);
        came
    }
}

/// A match that is played, and where everybody lived in each of its ticks.
struct Field {
    game: Headless,
    places: Vec<[Option<Vec3>; SEATS]>,
}

impl Field {
    fn new(seed: u64) -> Self {
        Self { game: Headless::new(FIGHTS, &ALL, seed), places: Vec::new() }
    }

    fn until(&mut self, phase: Phase) {
        while self.game.phase() != phase {
            self.tick();
        }
    }

    /// The tick that comes next.
    fn next_tick(&self) -> u32 {
        self.game.world.ticks_done()
    }

    fn tick(&mut self) {
        self.game.world.tick();
        let places = ALL.map(|seat| self.game.is_alive(seat).then(|| self.game.get::<Motion>(seat).at));
        self.places.resize(self.game.world.ticks_done() as usize - 1, [None; SEATS]);
        self.places.push(places);
    }

    /// Where somebody was in a tick, if it lived.
    fn place(&self, seat: u8, tick: u32) -> Option<Vec3> {
        self.places.get(tick as usize)?[usize::from(seat)]
    }

    /// Where somebody was at a moment.
    fn place_at(&self, seat: u8, at: ViewTime) -> Option<Vec3> {
        let (before, after) = (self.place(seat, at.tick()), self.place(seat, at.tick() + 1));
        let (before, after) = (before.or(after)?, after.or(before)?);
        Some(before.lerp(after, at.fraction()))
    }

    /// The moment that somebody was shown last.
    fn shown(&self, seat: u8) -> ViewTime {
        self.game.get::<Senses>(seat).view.kept().0
    }

    /// Whether this moment is one that a shot may be judged by which is fired in `tick`.
    #[track_caller]
    fn check_moment(&self, tick: u32, at: ViewTime, who: &str) {
        let newest = ViewTime::of_tick(tick - 1);
        let old_parts = newest.parts_since(at);
        assert!(at <= newest && old_parts <= clamp_parts(), "{who}: judged by what is {old_parts} parts old");
    }
}

/// How far beside a place a shot from `eye` goes, along the ground (m); never near to what is behind the shooter.
fn beside_m(eye: Vec3, direction: Vec3, place: Vec3) -> f32 {
    let along = direction.with_y(0.0).normalize_or_zero();
    let way = (place - eye).with_y(0.0);
    let far_m = way.dot(along).max(0.0);
    (way - along * far_m).length()
}

#[derive(Debug, Default)]
struct Sum {
    shots: u64,
    hits: u64,
    /// Hits that a server would give away that believes each claim.
    careless_hits: u64,
    deaths: u64,
    /// Shots at who lived at the moment that was claimed, and has died since.
    at_the_dead: u64,
}

/// To and fro along a row.
struct Pacing {
    seat: u8,
    heading: f32,
}

impl Pacing {
    fn new(seat: u8, rng: &mut Xoshiro256PlusPlus) -> Self {
        Self { seat, heading: if rng.random_bool(0.5) { 1.0 } else { -1.0 } }
    }

    /// Which way it goes now.
    fn goes(&mut self, game: &Headless, rng: &mut Xoshiro256PlusPlus) -> [f32; 2] {
        let x = game.get::<Motion>(self.seat).at.x;
        if x < middle_of(3, FAR_ROW).x {
            self.heading = 1.0;
        } else if x > middle_of(21, FAR_ROW).x {
            self.heading = -1.0;
        } else if rng.random_bool(0.005) {
            self.heading = -self.heading;
        }
        [self.heading, 0.0]
    }
}

/// One cheat shoots at three who run to and fro.
fn hunt(seed: u64, sum: &mut Sum) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut field = Field::new(seed);
    field.until(Phase::Live);
    let runners = [DEFENDER, DEFENDER + 1, DEFENDER + 2];
    let mut pacing = runners.map(|seat| Pacing::new(seat, &mut rng));
    let mut cheat = Cheat::new(ATTACKER, &mut rng);
    field.game.put(ATTACKER, middle_of(rng.random_range(6..19), NEAR_ROW));
    runners.iter().for_each(|seat| field.game.put(*seat, middle_of(rng.random_range(3..22), FAR_ROW)));
    for ticks in 0..HUNT_TICKS {
        let (tick, shots_before, shown_before) =
            (field.next_tick(), field.game.counted("shots"), field.shown(ATTACKER));
        for pacing in &mut pacing {
            let input = Input::new(pacing.goes(&field.game, &mut rng), 0.0, 0.0);
            field.game.world.input(client(pacing.seat), &input);
            // Each hit is to be seen, and nobody is to die of it.
            field.game.edit::<Vitals>(pacing.seat, |vitals| {
                *vitals = Vitals { health: crate::components::HEALTH_MAX, armour: 0, is_alive: true };
            });
        }
        // The first shot of a weapon goes where one looks.
        field.game.arm(ATTACKER, WeaponKind::Rifle);
        // Until everybody has been where it is for longer than history lasts nobody is shot at.
        let targets = if ticks > 40 { &runners[..] } else { &[] };
        cheat.send(tick, [0.0; 2], targets, &field, &mut rng);
        let came = cheat.deliver(tick, &mut field, &mut rng);
        let eye = field.game.get::<Motion>(ATTACKER).eye();
        sum.careless_hits += came.iter().filter(|packet| field.gives_away(tick, eye, packet)).count() as u64;
        field.tick();
        let who = format!("seed {seed}, tick {tick}, {:?}", cheat.script);
        let shown = field.shown(ATTACKER);
        assert!(shown >= shown_before, "{who}: it is shown what was before");
        let shots = field.game.counted("shots") - shots_before;
        sum.shots += shots;
        let pose = field.game.get::<Pose>(ATTACKER);
        for runner in runners.into_iter().filter(|runner| field.game.get::<Vitals>(*runner).health < 100) {
            assert_eq!(shots, 1, "{who}: a hit, and nobody shot");
            field.check_moment(tick, shown, &who);
            let place = field.place_at(runner, shown).expect("who was hit was there");
            let beside_m = beside_m(eye, direction_of(pose.yaw, pose.pitch), place);
            assert!(beside_m <= REACH_M, "{who}: a hit {beside_m} m beside where it was");
            sum.hits += 1;
        }
    }
}

impl Field {
    /// Whether a server that believes each claim gives away a hit with this packet that is none by what was within the
    /// clamp.
    fn gives_away(&self, tick: u32, eye: Vec3, packet: &Packet) -> bool {
        let Some((target, aimed)) =
            packet.target.and_then(|target| Some((target, self.place(target, packet.claims.tick())?)))
        else {
            return false;
        };
        let oldest = ViewTime::of_tick(tick - 1).before(clamp_parts()).tick();
        let places = (oldest..tick).filter_map(|within| self.place(target, within));
        places.map(|place| beside_m(eye, aimed - eye, place)).all(|beside_m| beside_m > REACH_M)
    }
}

/// What must be so of a player from one tick to the next.
struct Life {
    life: u32,
    is_alive: bool,
    health: u8,
    rounds: u8,
    shown: ViewTime,
    deaths: u32,
}

impl Life {
    fn of(field: &Field, seat: u8) -> Self {
        let Vitals { health, is_alive, .. } = field.game.get(seat);
        let deaths = field.game.world.ecs().resource::<Seats>().passports[usize::from(seat)].deaths;
        let (life, rounds) = (field.game.get::<Senses>(seat).life, field.game.get::<Weapon>(seat).rounds);
        Self { life, is_alive, health, rounds, shown: field.shown(seat), deaths }
    }
}

/// All ten cheat, and shoot at each other.
fn brawl(seed: u64, sum: &mut Sum) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut field = Field::new(seed);
    let mut cheats = ALL.map(|seat| (Cheat::new(seat, &mut rng), Pacing::new(seat, &mut rng)));
    field.until(Phase::Buy);
    let mut phase = Phase::Buy;
    for _ in 0..BRAWL_TICKS {
        let tick = field.next_tick();
        if phase == Phase::Buy && field.game.phase() == Phase::Live {
            for seat in ALL {
                let row = if TeamId::of_seat(seat) == TeamId::One { NEAR_ROW } else { FAR_ROW };
                field.game.put(seat, middle_of(rng.random_range(4..20), row));
                field.game.arm(seat, WeaponKind::Rifle);
            }
        }
        phase = field.game.phase();
        for (cheat, pacing) in &mut cheats {
            let of_others = |seat: &u8| TeamId::of_seat(*seat) != TeamId::of_seat(cheat.seat);
            let targets: Vec<u8> = ALL.into_iter().filter(of_others).collect();
            let goes = if cheat.seat % 2 == 0 { pacing.goes(&field.game, &mut rng) } else { [0.0; 2] };
            cheat.send(tick, goes, if phase.is_live() { &targets } else { &[] }, &field, &mut rng);
            let came = cheat.deliver(tick, &mut field, &mut rng);
            let has_died = |packet: &&Packet| packet.target.is_some_and(|target| !field.game.is_alive(target));
            sum.at_the_dead += came.iter().filter(has_died).count() as u64;
        }
        let before = ALL.map(|seat| Life::of(&field, seat));
        let kills_before = field.game.counted("kills");
        field.tick();
        let mut deaths = 0;
        for (seat, before) in ALL.into_iter().zip(before) {
            let now = Life::of(&field, seat);
            let who = format!("seed {seed}, tick {tick}, seat {seat}");
            assert!(now.shown >= before.shown, "{who}: it is shown what was before");
            let is_same_life = now.life == before.life;
            // It has fired.
            if is_same_life && now.rounds < before.rounds {
                field.check_moment(tick, now.shown, &who);
                assert!(before.is_alive, "{who}: it is dead, and shoots");
            }
            let has_died = before.is_alive && !now.is_alive;
            assert_eq!(now.deaths - before.deaths, u32::from(has_died), "{who}: a life ends once");
            deaths += u64::from(has_died);
            assert!(!is_same_life || before.is_alive || !now.is_alive, "{who}: it lives again");
            assert!(!is_same_life || now.health <= before.health, "{who}: what was hurt is whole again");
        }
        assert_eq!(field.game.counted("kills") - kills_before, deaths, "seed {seed}, tick {tick}");
        sum.deaths += deaths;
    }
}

#[track_caller]
fn check(seeds: u64) {
    let mut sum = Sum::default();
    for seed in 0..seeds {
        hunt(seed, &mut sum);
        brawl(seed, &mut sum);
    }
    println!("{seeds} seeds: {sum:?}, 0 hits older than {CLAMP_MS} ms");
    let Sum { shots, hits, careless_hits, deaths, at_the_dead } = sum;
    assert!(shots > seeds * 20 && hits > seeds * 5 && deaths > seeds, "they play");
    assert!(careless_hits > seeds && at_the_dead > seeds, "there is something to gain");
}

#[test]
fn r15_two_hundred_lag_switches_hit_nothing_beyond_the_clamp_and_nobody_dies_twice() {
    assert_eq!(LIMITS.back_max, Nanos::from_millis(CLAMP_MS));
    check(200);
}

#[test]
#[ignore = "the full form: ten thousand scripts"]
fn r15_ten_thousand_lag_switches_hit_nothing_beyond_the_clamp_and_nobody_dies_twice() {
    check(10_000);
}
