//! Everything that such a zone asks about nearness, how far, how often, and of whom.
//!
//! Ranges are those of the message kinds where one fits (say 15 m, area spells and songs 75 m, doors 100 m, casts 200
//! m). Rates are those of a lively server: monsters look for enemies four times a second, auras pulse once a second,
//! spells come every few seconds.

use throng_query::neighbour_lists::{ANYONE, NeighbourLists};

use crate::zone::{AFFLICTED, BANKER, DOOR, FACTION, FIGHTING, GUARD, HURT, MONSTER, PLAYER, TICKS_PER_S, TOTEM, TRAP};

/// What the answer is.
#[derive(Clone, Copy, PartialEq)]
pub enum Form {
    All,
    Nearest,
}

pub struct Question {
    pub name: &'static str,
    pub radius_m: f32,
    form: Form,
    /// Ticks from one time to the next, for each asker.
    every: u32,
    /// One in so many of those who qualify asks at all.
    one_in: u32,
    asks: fn(u32) -> bool,
    /// Groups that an asker of these groups asks about.
    about: fn(u32) -> u32,
}

/// An asker and the groups it asks about.
pub type Asking = (u32, u32);

const SECOND_FACTION: u32 = FACTION << 1;

/// Whom monsters attack at sight: players, guards, and the first two factions each other.
fn enemies(groups: u32) -> u32 {
    match groups & MONSTER {
        0 => MONSTER,
        FACTION => PLAYER | GUARD | FACTION << 1,
        SECOND_FACTION => PLAYER | GUARD | FACTION,
        _ => PLAYER | GUARD,
    }
}

fn friends(groups: u32) -> u32 {
    match groups & MONSTER {
        0 => PLAYER | GUARD,
        faction => faction,
    }
}

fn is(groups: u32, any: u32) -> bool {
    groups & any != 0
}

const fn seconds(s: u32) -> u32 {
    s * TICKS_PER_S
}

#[rustfmt::skip]
pub const QUESTIONS: [Question; 18] = [
    Question { name: "aggro by monsters", radius_m: 70.0, form: Form::Nearest, every: TICKS_PER_S / 4, one_in: 1,
        asks: |me| is(me, MONSTER) && !is(me, FIGHTING), about: enemies },
    Question { name: "aggro by players", radius_m: 70.0, form: Form::All, every: TICKS_PER_S / 4, one_in: 1,
        asks: |me| is(me, PLAYER), about: |_| MONSTER },
    Question { name: "guard assist", radius_m: 100.0, form: Form::Nearest, every: TICKS_PER_S / 2, one_in: 1,
        asks: |me| is(me, GUARD), about: |_| FIGHTING },
    Question { name: "yell for help", radius_m: 100.0, form: Form::All, every: seconds(3), one_in: 1,
        asks: |me| is(me, MONSTER) && is(me, FIGHTING), about: friends },
    Question { name: "area spell", radius_m: 75.0, form: Form::All, every: seconds(6), one_in: 2,
        asks: |me| is(me, FIGHTING), about: enemies },
    Question { name: "area taunt", radius_m: 30.0, form: Form::All, every: seconds(6), one_in: 1,
        asks: |me| is(me, PLAYER | GUARD) && is(me, FIGHTING), about: |_| MONSTER },
    Question { name: "rampage", radius_m: 15.0, form: Form::All, every: seconds(4), one_in: 1,
        asks: |me| is(me, MONSTER) && is(me, FIGHTING), about: enemies },
    Question { name: "aura", radius_m: 75.0, form: Form::All, every: seconds(1), one_in: 10,
        asks: |me| is(me, MONSTER | PLAYER | GUARD), about: friends },
    Question { name: "trap", radius_m: 10.0, form: Form::Nearest, every: TICKS_PER_S / 2, one_in: 1,
        asks: |me| is(me, TRAP), about: |_| PLAYER },
    Question { name: "totem", radius_m: 50.0, form: Form::All, every: seconds(1), one_in: 1,
        asks: |me| is(me, TOTEM), about: |_| PLAYER | GUARD },
    Question { name: "group buff", radius_m: 75.0, form: Form::All, every: seconds(10), one_in: 1,
        asks: |me| is(me, PLAYER), about: |_| PLAYER },
    Question { name: "beneficial cast", radius_m: 200.0, form: Form::Nearest, every: seconds(2), one_in: 8,
        asks: |me| is(me, MONSTER | PLAYER | GUARD), about: |_| HURT },
    Question { name: "spreading effect", radius_m: 30.0, form: Form::All, every: seconds(3), one_in: 1,
        asks: |me| is(me, AFFLICTED), about: |_| MONSTER | PLAYER | GUARD },
    Question { name: "say, to players", radius_m: 15.0, form: Form::All, every: seconds(10), one_in: 4,
        asks: |me| is(me, MONSTER | PLAYER | GUARD), about: |_| PLAYER },
    Question { name: "say, to anyone", radius_m: 15.0, form: Form::All, every: seconds(5), one_in: 1,
        asks: |me| is(me, PLAYER), about: |_| ANYONE },
    Question { name: "line of sight: to whom", radius_m: 100.0, form: Form::All, every: TICKS_PER_S / 2, one_in: 1,
        asks: |me| is(me, FIGHTING), about: enemies },
    Question { name: "door", radius_m: 100.0, form: Form::Nearest, every: TICKS_PER_S / 2, one_in: 1,
        asks: |me| is(me, PLAYER), about: |_| DOOR },
    Question { name: "banker", radius_m: 15.0, form: Form::Nearest, every: seconds(1), one_in: 1,
        asks: |me| is(me, PLAYER), about: |_| BANKER },
];

impl Question {
    /// Who asks in this tick.
    pub fn askers(&self, tick: u32, groups: &[u32], askers: &mut Vec<Asking>) {
        askers.clear();
        let turn = |index: u32| (index + tick).is_multiple_of(self.every) && (index / 3).is_multiple_of(self.one_in);
        let all = groups.iter().zip(0..).filter(|(groups, index)| turn(*index) && (self.asks)(**groups));
        askers.extend(all.map(|(groups, index)| (index, (self.about)(*groups))));
    }

    /// All answers of all askers.
    #[inline(never)]
    pub fn ask(&self, neighbours: &NeighbourLists, askers: &[Asking], answers: &mut Answers) {
        match self.form {
            Form::All => neighbours.near_each(self.radius_m, askers, &mut answers.found, &mut answers.ends),
            Form::Nearest => neighbours.nearest_each(self.radius_m, askers, &mut answers.found),
        }
    }
}

/// Answers of a tick, one question after the other.
#[derive(PartialEq)]
pub struct Answers {
    pub found: Vec<u32>,
    pub ends: Vec<u32>,
}

impl Answers {
    pub fn with_capacity(entities: u32) -> Self {
        Self { found: Vec::with_capacity(64 * entities as usize), ends: Vec::with_capacity(8 * entities as usize) }
    }

    pub fn clear(&mut self) {
        self.found.clear();
        self.ends.clear();
    }
}
