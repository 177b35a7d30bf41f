//! Roles: what a bot is up to in a round, as attacker or defender.

use glam::Vec3;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::time::Nanos;

use super::{
    attack::Attack,
    defend::Defence,
    guide::{BotGuide, Post},
    plan::Plan,
    situation::Situation,
};
use crate::protocol::Grenade;

/// What is to be done next, as long as there is nobody to shoot at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Task {
    /// Go there.
    Go(Vec3),
    /// Hold this angle: peek, and go back.
    Hold(Post),
    /// Plant the spike there.
    Plant(Vec3),
    /// Defuse the spike there.
    Defuse(Vec3),
}

/// One's part in a round.
pub enum Role {
    Attack(Attack),
    Defend(Box<Defence>),
}

impl Role {
    /// The part that one's team has for one in this round.
    pub fn of(now: Nanos, situation: &Situation, guide: &BotGuide, rng: &mut Xoshiro256PlusPlus) -> Self {
        match Plan::of(situation.match_id, situation.clock.round, situation.side) {
            Plan::Attack(plan) => Self::Attack(Attack::new(plan, situation.place(), guide, rng)),
            Plan::Defend(plan) => Self::Defend(Box::new(Defence::new(plan, situation.place(), now))),
        }
    }

    /// The base may be left from now on.
    pub fn begin(&mut self, now: Nanos) {
        if let Self::Defend(defence) = self {
            defence.begin(now);
        }
    }

    pub fn task(&mut self, now: Nanos, situation: &Situation, guide: &BotGuide, rng: &mut Xoshiro256PlusPlus) -> Task {
        match self {
            Self::Attack(attack) => attack.task(now, situation, guide, rng),
            Self::Defend(defence) => defence.task(now, situation, guide, rng),
        }
    }

    /// What of what it `has` is to be thrown now, and where to.
    pub fn throw(
        &self,
        situation: &Situation,
        guide: &BotGuide,
        has: impl Fn(Grenade) -> bool,
    ) -> Option<(Grenade, Vec3)> {
        match self {
            Self::Attack(attack) => attack.throw(situation, guide, has),
            Self::Defend(defence) => defence.throw(situation, has),
        }
    }
}
