//! Neighbours: who is near whom, asked by every system that wants to know, answered by one set of neighbour lists for
//! all actors.
//!
//! Each kind of question has a name, a radius and the groups that it is about, and is counted. With
//! [`FrontierSettings::scan_everything`](crate::FrontierSettings::scan_everything) the same questions are answered by
//! looking at everybody: the answers are the same, down to their order, and so is the world that follows from them;
//! only the cost differs.
//!
//! ```text
//!   question       asked by                      radius   about                answered for
//!   notice_enemy   a monster, a guard            its own  players, townsfolk   aggro, one way
//!   notice_monster a player that walks           30 m     monsters             aggro, the other way
//!   guard_assist   who is struck by a monster    40 m     guards               guards that come
//!   yell           a monster in a fight          35 m     monsters             its camp
//!   area           a blast's caster              12 m     enemies              those it hurts
//!   taunt          a taunt's caster              15 m     monsters             those that turn
//!   rampage        a brute in a fight            8 m      enemies              those it strikes
//!   aura           a singer, each second         20 m     its own side         those it soothes
//!   trap           a trap, 4 times a second      3 m      its owner's enemies  those who step in
//!   totem          a totem, each second          15 m     the hurt of its side those it mends
//!   group_buff     a blessing's caster           50 m     players              its party
//!   beneficial     a shaman, each second         35 m     hurt monsters        the worst off
//!   spread         who is diseased, each 2 s     4 m      its own side         who catches it
//!   say            a speaker                     15 m     townsfolk            who answers
//!   sight          a fighter without a view      40 m     enemies              one that it sees
//!   door           who uses one; an open door    5 m      doors; anybody       the door; whether it may shut
//!   banker         who uses one                  5 m      bankers              the banker
//!   gather         who gathers                   3 m      nodes                the node
//! ```
//!
//! Runs on the world's thread. Allocates nothing once its buffer has grown.

use bevy_ecs::prelude::{Res, ResMut, Resource};
use throng::{game_metrics::CounterSite, prelude::*};
use throng_query::neighbour_lists::{NeighbourCounts, NeighbourLists, NeighbourMode, NeighbourSettings};

/// Groups of actors that questions are about. Bits.
pub mod groups {
    pub const PLAYERS: u32 = 1 << 0;
    pub const MONSTERS: u32 = 1 << 1;
    pub const TOWNSFOLK: u32 = 1 << 2;
    pub const GUARDS: u32 = 1 << 3;
    pub const BANKERS: u32 = 1 << 4;
    pub const DOORS: u32 = 1 << 5;
    pub const NODES: u32 = 1 << 6;
    /// Players and townsfolk below [`HURT_BELOW`](crate::actors::HURT_BELOW).
    pub const HURT_FOLK: u32 = 1 << 7;
    pub const HURT_MONSTERS: u32 = 1 << 8;
    /// Monsters' enemies.
    pub const FOLK: u32 = PLAYERS | TOWNSFOLK;
}

/// Lists answer questions up to here, unless an operator's rules say otherwise. (m) The widest of them asks for 50 m.
const RANGE_M: f32 = 50.0;
/// How much further lists reach (m): somebody who runs is scanned every second.
const SKIN_M: f32 = 14.0;
/// Longest list. In towns crowds are longer, and are asked by the grid.
const LIST_MAX: u16 = 128;

macro_rules! questions {
    ($($question:ident $name:ident $radius_m:expr,)+) => {
        /// What is asked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Question {
            $($question,)+
        }

        impl Question {
            pub const ALL: &[Self] = &[$(Self::$question,)+];

            /// How often each is asked.
            fn counter(self) -> &'static CounterSite {
                static ASKED: [CounterSite; Question::ALL.len()] =
                    [$(CounterSite::new(concat!("asked_", stringify!($name))),)+];
                &ASKED[self as usize]
            }

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$question => concat!("asked_", stringify!($name)),)+
                }
            }

            /// How far it reaches. (m)
            pub const fn radius_m(self) -> f32 {
                match self {
                    $(Self::$question => $radius_m,)+
                }
            }
        }
    };
}

questions! {
    NoticeEnemy notice_enemy 30.0,
    NoticeMonster notice_monster 30.0,
    GuardAssist guard_assist 40.0,
    Yell yell 35.0,
    Area area 12.0,
    Taunt taunt 15.0,
    Rampage rampage 8.0,
    Aura aura 20.0,
    Trap trap 3.0,
    Totem totem 15.0,
    GroupBuff group_buff 50.0,
    Beneficial beneficial 35.0,
    Spread spread 4.0,
    Say say 15.0,
    Sight sight 40.0,
    Door door 5.0,
    Banker banker 5.0,
    Gather gather 3.0,
}

/// How far lists reach, for rules to change.
pub fn scan_range() -> ScanRange {
    let asked_m = Question::ALL.iter().map(|question| question.radius_m()).fold(0.0, f32::max);
    ScanRange { usual_m: RANGE_M, asked_m, ruled_m: None }
}

/// The neighbour lists of all actors of the world.
#[derive(Resource)]
pub struct Neighbours {
    lists: NeighbourLists,
    found: Vec<u32>,
    /// As they stood when they were counted last.
    counted: NeighbourCounts,
}

impl Neighbours {
    /// Nobody yet. `scan_everything`: without lists.
    pub fn new(scan_everything: bool) -> Self {
        let mode = if scan_everything { NeighbourMode::ScanAll } else { NeighbourMode::Lists };
        let settings = NeighbourSettings { mode, range_m: RANGE_M, skin_m: SKIN_M, list_max: LIST_MAX };
        Self { lists: NeighbourLists::new(settings), found: Vec::new(), counted: NeighbourCounts::default() }
    }

    /// Forgets everybody, and keeps how far lists reach.
    pub fn clear(&mut self) {
        self.lists = NeighbourLists::new(self.lists.settings());
        self.counted = NeighbourCounts::default();
    }

    pub fn insert(&mut self, index: u32, place: [f32; 2], groups: u32) {
        self.lists.insert(index, place);
        self.lists.set_groups(index, groups);
    }

    pub fn remove(&mut self, index: u32) {
        self.lists.remove(index);
    }

    pub fn moved(&mut self, index: u32, place: [f32; 2]) {
        self.lists.moved(index, place);
    }

    pub fn set_groups(&mut self, index: u32, groups: u32) {
        self.lists.set_groups(index, groups);
    }

    /// All others of `groups` within the question's radius of an actor, ascending. Good until the next question.
    pub fn ask(&mut self, question: Question, index: u32, groups: u32) -> &[u32] {
        self.ask_within(question, question.radius_m(), index, groups)
    }

    /// The same within a radius of its own. (m)
    pub fn ask_within(&mut self, question: Question, radius_m: f32, index: u32, groups: u32) -> &[u32] {
        question.counter().add(1);
        self.found.clear();
        self.lists.near_of(index, radius_m, groups, &mut self.found);
        &self.found
    }

    /// The nearest other of `groups` within the question's radius.
    pub fn ask_nearest(&mut self, question: Question, index: u32, groups: u32) -> Option<u32> {
        question.counter().add(1);
        self.lists.nearest_of(index, question.radius_m(), groups)
    }

    /// Has lists reach so far from now on. (m) Answers stay the same.
    fn set_range(&mut self, range_m: f32) {
        if self.lists.settings().range_m != range_m {
            self.lists.set_ranges(range_m, SKIN_M);
        }
    }

    /// Panics if lists do not hold what they must. Cost: all pairs; for tests.
    #[cfg(test)]
    pub fn check(&self) {
        self.lists.check();
    }
}

/// Has lists reach as far as the rules say.
pub fn follow_rules(range: Res<ScanRange>, mut neighbours: ResMut<Neighbours>) {
    neighbours.set_range(range.range_m());
}

/// Counts the lists that were made anew this tick, and the questions that no list could answer; once a second, how long
/// lists are, which is a look at each.
pub fn count_scans(tick: Res<TickInfo>, mut neighbours: ResMut<Neighbours>) {
    let counts = neighbours.lists.counts();
    let before = std::mem::replace(&mut neighbours.counted, counts);
    throng::count!("neighbour_scans", counts.scans - before.scans);
    throng::count!("neighbour_fallbacks", counts.fallbacks - before.fallbacks);
    if tick.tick.is_multiple_of(tick.rate.0.into()) {
        let lengths = neighbours.lists.lengths();
        throng::gauge!("neighbours_mean", lengths.mean().round());
        throng::gauge!("neighbours_longest", lengths.longest);
    }
}
