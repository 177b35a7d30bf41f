//! R14: a client says what it wants, and what comes of it is the match's to say. What ten players ask for at random, in
//! whatever order and state, is held against the rules on a page ([`model`]), after every tick and without any tolerance.
//!
//! They hold buttons for a while, or say nothing; they say the same up to sixteen times in a tick, and say again what had
//! its turn; and they ask to buy and to throw without end. A director puts them where
//! something is to be gained: on sites and beside them, near the spike and a little too far from it. In half of the
//! matches they shoot at each other. A model without one of its rules must be found out: so each rule is reached, and
//! breaking it would be noticed.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::{
    components::{Arms, Doing, RoundEnd},
    map::layout::middle_of,
    protocol::{Buy, Grenade, Item, TICK_HZ, Throw},
    scene::Scene,
    teams::TeamId,
};

mod model;

use model::{Asked, Hands, Model, News, Rule};

/// Rounds of a length in which everything happens.
const FUZZED: MatchRules = MatchRules {
    rounds_to_win: 4,
    round_ticks: 900,
    spike_ticks: 500,
    plant_ticks: 60,
    defuse_ticks: 100,
    over_ticks: 20,
    ..RULES
};

/// So long what somebody said last goes on, if nothing comes after it.
const HOLDS_TICKS: u32 = 32;
const _: () = assert!(HOLDS_TICKS * 1_000 == 250 * TICK_HZ as u32);

/// What somebody does for a while.
#[derive(Clone, Copy)]
struct Intent {
    /// Nothing: it says nothing.
    input: Option<Input>,
    /// Whom it looks at.
    at: Option<u8>,
    until_tick: u32,
}

/// How much of what was there to be done.
#[derive(Debug, Default)]
struct Tally {
    actions: u64,
    shots: u64,
    grenades: u64,
    bought: u64,
    planted: u64,
    defused: u64,
    exploded: u64,
    kills: u64,
}

struct Fuzz {
    game: Headless,
    model: Model,
    rng: Xoshiro256PlusPlus,
    intents: [Intent; SEATS],
    /// What each said last, and when.
    said: [Option<(Input, u32)>; SEATS],
    /// The number of each one's newest input.
    numbers: [u16; SEATS],
    asked: Vec<(u8, Asked)>,
    do_they_shoot_each_other: bool,
    /// Before the first round.
    shots_before: u64,
    actions: u64,
}

impl Fuzz {
    /// A match whose first round begins.
    fn new(seed: u64, without: Option<Rule>) -> Self {
        let mut game = Headless::new(FUZZED, &ALL, seed);
        game.until(Phase::Buy);
        let carrier = carrier(&game);
        Self {
            shots_before: game.counted("shots"),
            model: Model::new(game.rounds().attackers, carrier, without),
            game,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            intents: [Intent { input: None, at: None, until_tick: 0 }; SEATS],
            said: [None; SEATS],
            numbers: [0; SEATS],
            asked: Vec::new(),
            do_they_shoot_each_other: seed % 2 == 1,
            actions: 0,
        }
    }

    /// Plays until the match is over or so many actions are done; what differs first, if anything does.
    fn play(&mut self, actions_max: u64) -> Result<(), String> {
        while self.actions < actions_max && self.model.phase != Phase::MatchOver {
            self.tick()?;
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), String> {
        let tick = self.game.world.ticks_done();
        self.direct(tick);
        let held = self.send(tick);
        self.ask();
        let before = ALL.map(|seat| (self.kills(seat), self.game.get::<Vitals>(seat).health));
        self.game.world.tick();
        let bodies = ALL.map(|seat| self.game.get::<Motion>(seat));
        self.model.tick(tick, &held, &self.asked, &bodies);
        let rounds = self.game.rounds();
        let begins = self.model.phase != Phase::Buy && rounds.phase() == Phase::Buy;
        let vitals = ALL.map(|seat| self.game.get::<Vitals>(seat));
        let news = News {
            phase: rounds.phase(),
            end: rounds.last_end,
            attackers: rounds.attackers,
            carrier: carrier(&self.game),
            kills: ALL.map(|seat| self.kills(seat) - before[usize::from(seat)].0),
            // In the tick in which they stand up nobody is shot.
            is_alive: std::array::from_fn(|seat| vitals[seat].is_alive || begins),
        };
        self.model.learn(&news, &bodies).map_err(|what| format!("tick {tick}: {what}"))?;
        for (seat, hands) in self.model.hands.iter_mut().enumerate() {
            // What a shot takes of armour is no action's affair.
            let is_hurt = vitals[seat].health < before[seat].1;
            if is_hurt || !hands.is_alive {
                hands.armour = hands.armour.min(vitals[seat].armour);
            }
        }
        if begins {
            self.said = [None; SEATS];
        }
        self.compare(tick)
    }

    fn kills(&self, seat: u8) -> u32 {
        self.game.world.ecs().resource::<Seats>().passports[usize::from(seat)].kills
    }

    /// Gives players something to do, and puts them where it can be done.
    fn direct(&mut self, tick: u32) {
        for seat in ALL {
            if tick >= self.intents[usize::from(seat)].until_tick {
                self.intents[usize::from(seat)] = self.intent(tick);
            }
        }
        if self.model.phase == Phase::Buy && self.rng.random_bool(0.05) {
            let (seat, credits) = (self.rng.random_range(0..SEATS as u8), self.rng.random_range(0..=9_000));
            self.game.edit::<Purse>(seat, |purse| purse.credits = credits);
            self.model.hands[usize::from(seat)].credits = credits;
        }
        if self.model.phase.is_live() && self.rng.random_bool(0.02) {
            self.stage(tick);
        }
        if self.model.phase.is_live() && self.do_they_shoot_each_other && self.rng.random_bool(0.02) {
            let (seat, column) = (self.rng.random_range(0..SEATS as u8), self.rng.random_range(6..14));
            self.game.put(seat, middle_of(column, 12));
        }
        if self.model.phase.is_live() && self.rng.random_bool(0.001) {
            let seat = self.rng.random_range(0..SEATS as u8);
            self.game.edit::<Vitals>(seat, |vitals| *vitals = Vitals::DEAD);
            let hands = &mut self.model.hands[usize::from(seat)];
            (hands.is_alive, hands.armour) = (false, 0);
        }
    }

    fn intent(&mut self, tick: u32) -> Intent {
        let rng = &mut self.rng;
        let angle: f32 = rng.random_range(0.0..6.3);
        let speed = if rng.random_bool(0.5) { 0.0 } else { 1.0 };
        // Upwards: who shoots so hits nobody.
        let mut input = Input::new([angle.sin() * speed, angle.cos() * speed], angle, 1.3);
        for (press, chance) in
            [(Input::and_fire as fn(Input) -> Input, 0.5), (Input::and_load, 0.1), (Input::and_use, 0.3)]
        {
            input = if rng.random_bool(chance) { press(input) } else { input };
        }
        let at = rng.random_range(0..SEATS as u8);
        Intent {
            input: (!rng.random_bool(0.1)).then_some(input),
            at: (self.do_they_shoot_each_other && rng.random_bool(0.5)).then_some(at),
            until_tick: tick + rng.random_range(1..60),
        }
    }

    /// Puts somebody where there is something to do with the spike, or where it is just too far for that.
    fn stage(&mut self, tick: u32) {
        let anybody = self.rng.random_range(0..SEATS as u8);
        let (dx, dz) = (self.rng.random_range(-2.0..2.0), self.rng.random_range(-2.0..2.0));
        let (seat, place) = match self.model.spike {
            Spike::Carried { seat } => {
                let site = self.game.world.ecs().resource::<Scene>().map.sites[usize::from(anybody) % 2].middle();
                // A site is ten metres wide: some of these places are beside it.
                (if self.rng.random_bool(0.8) { seat } else { anybody }, site + Vec3::new(dx * 3.2, 0.0, dz * 3.2))
            }
            Spike::Planted { x, z, .. } if self.rng.random_bool(0.5) => {
                let defenders = self.game.rounds().attackers.other();
                (anybody % TEAM_SIZE as u8 + (TEAM_SIZE * defenders.index()) as u8, Vec3::new(x + dx, 0.0, z + dz))
            }
            Spike::Dropped { x, z } | Spike::Planted { x, z, .. } => (anybody, Vec3::new(x + dx, 0.0, z + dz)),
            Spike::Gone => return,
        };
        self.game.put(seat, place);
        let mut input = Input::new([0.0; 2], 0.0, 1.3).and_use();
        if self.rng.random_bool(0.2) {
            input = Input::new([1.0, 0.0], 0.0, 1.3).and_use();
        }
        if self.rng.random_bool(0.3) {
            input = input.and_fire().and_load();
        }
        let until_tick = tick + self.rng.random_range(20..250);
        self.intents[usize::from(seat)] = Intent { input: Some(input), at: None, until_tick };
    }

    /// Everybody says what it does; what holds of each in this tick.
    fn send(&mut self, tick: u32) -> [Input; SEATS] {
        for seat in ALL {
            self.say_again(seat, tick);
            let Intent { input: Some(mut input), at, .. } = self.intents[usize::from(seat)] else { continue };
            if let Some(at) = at {
                let target = self.game.get::<Motion>(at).at + Vec3::Y * 1.25;
                input = self.game.aim(seat, target).and_fire();
            }
            let times = if self.rng.random_bool(0.1) { self.rng.random_range(2..=16) } else { 1 };
            for _ in 0..times {
                self.numbers[usize::from(seat)] += 1;
                self.game.world.input_numbered(client(seat), self.numbers[usize::from(seat)], &input);
            }
            self.said[usize::from(seat)] = Some((input, tick));
            self.actions += u64::from(input.fire() || input.load() || input.uses());
        }
        self.said.map(|said| {
            let holds = said.filter(|(_, said_tick)| tick - said_tick <= HOLDS_TICKS);
            holds.map_or_else(Input::default, |(input, _)| input)
        })
    }

    /// Now and then somebody says something under a number whose turn was long ago.
    fn say_again(&mut self, seat: u8, tick: u32) {
        let newest = self.numbers[usize::from(seat)];
        if newest == 0 || !self.rng.random_bool(0.05) {
            return;
        }
        let input = Input::new([0.0; 2], 0.0, 1.3).and_fire().and_load().and_use();
        self.game.world.input_numbered(client(seat), self.rng.random_range(1..=newest), &input);
        self.actions += 1;
        if self.model.demands(Rule::InputsHaveTheirTurnOnce, false) {
            self.said[usize::from(seat)] = Some((input, tick));
        }
    }

    /// Everybody asks for things, in no order and without end.
    fn ask(&mut self) {
        self.asked.clear();
        let buys = if self.model.phase == Phase::Buy { 0.1 } else { 0.01 };
        for seat in ALL {
            if self.rng.random_bool(buys) {
                let item = match self.rng.random_range(0..7) {
                    kind @ 0..4 => Item::Weapon(WeaponKind::ALL[kind]),
                    4 => Item::Armour,
                    5 => Item::Smoke,
                    _ => Item::Flash,
                };
                self.game.world.request(client(seat), &Buy { item });
                self.asked.push((seat, Asked::Item(item)));
            }
            if self.rng.random_bool(0.02) {
                let grenade = if self.rng.random_bool(0.5) { Grenade::Smoke } else { Grenade::Flash };
                self.game.world.request(client(seat), &Throw { grenade });
                self.asked.push((seat, Asked::Grenade(grenade)));
            }
        }
        self.actions += self.asked.len() as u64;
    }

    /// Holds what everybody has and does against the model.
    fn compare(&self, tick: u32) -> Result<(), String> {
        let model = &self.model;
        for seat in ALL {
            let Hands { is_alive, kind, rounds, loaded_tick, credits, smokes, flashes, armour, .. } =
                model.hands[usize::from(seat)];
            let doing = match model.worker {
                Some(worker) if worker == seat && model.phase == Phase::Planted => Doing::Defusing,
                Some(worker) if worker == seat => Doing::Planting,
                _ if tick < loaded_tick => Doing::Loading,
                _ => Doing::Nothing,
            };
            let expected = (is_alive, kind, rounds, doing, Purse { credits, smokes, flashes }, armour);
            let (vitals, weapon, arms) =
                (self.game.get::<Vitals>(seat), self.game.get::<Weapon>(seat), self.game.get::<Arms>(seat));
            let purse = self.game.get::<Purse>(seat);
            let is = (vitals.is_alive, arms.weapon, weapon.rounds, arms.doing, purse, vitals.armour);
            if is != expected {
                return Err(format!("tick {tick}, seat {seat}: {is:?}, and by the rules {expected:?}"));
            }
        }
        let shots = self.game.counted("shots") - self.shots_before;
        if shots != model.shots {
            return Err(format!("tick {tick}: {shots} shots, and by the rules {}", model.shots));
        }
        if self.game.spike() != model.spike {
            return Err(format!("tick {tick}: {:?}, and by the rules {:?}", self.game.spike(), model.spike));
        }
        Ok(())
    }
}

fn carrier(game: &Headless) -> Option<u8> {
    match game.spike() {
        Spike::Carried { seat } => Some(seat),
        _ => None,
    }
}

#[track_caller]
fn check(actions: u64) {
    let mut tally = Tally::default();
    for seed in 0.. {
        let mut fuzz = Fuzz::new(seed, None);
        if let Err(what) = fuzz.play(actions - tally.actions) {
            panic!("seed {seed}, {what}");
        }
        tally.actions += fuzz.actions;
        let counted = |name| fuzz.game.counted(name);
        tally.shots += counted("shots");
        tally.grenades += counted("grenades");
        tally.bought += counted("bought");
        tally.planted += counted("spikes.planted");
        tally.defused += counted("spikes.defused");
        tally.exploded += counted("rounds.spike_exploded");
        tally.kills += counted("kills");
        if tally.actions >= actions {
            break;
        }
    }
    println!("{tally:?}");
    let Tally { shots, grenades, bought, planted, defused, exploded, kills, .. } = tally;
    let each = [shots / 100, grenades / 10, bought / 10, planted, defused, exploded, kills];
    assert!(each.iter().all(|count| *count >= actions / 100_000), "something is hardly ever done: {tally:?}");
}

/// Promise: of a million things that players ask for, each comes to what the rules make of it, in its tick and in no
/// earlier one.
#[test]
fn r14_a_million_actions_come_to_what_the_rules_make_of_them() {
    check(1_000_000);
}

/// The control: without any one of its rules the model is found out.
#[test]
fn r14_no_rule_can_be_broken_without_being_noticed() {
    for rule in Rule::ALL {
        let is_noticed = (0..60).any(|seed| Fuzz::new(seed, Some(rule)).play(u64::MAX).is_err());
        assert!(is_noticed, "{rule:?}");
    }
}
