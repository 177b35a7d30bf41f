//! Plans: what a team does in a round, agreed on before it begins.
//!
//! Players of a team talk; bots do not, and need not: each derives the same plan from the match, the round and its side,
//! which everybody knows, and reads its own part of it by its place in the team. Enemies could derive it, too, but no bot
//! asks for the plan of another side.
//!
//! Pure; a few hundred nanoseconds, once a round.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::balance;
use crate::teams::{Side, TEAM_SIZE};

/// What a team does in one round.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    Attack(AttackPlan),
    Defend(DefencePlan),
}

/// How attackers come to a site.
#[derive(Debug, Clone, PartialEq)]
pub struct AttackPlan {
    /// Index of the site.
    pub site: usize,
    /// Index of the way of each, by place in the team.
    pub ways: [usize; TEAM_SIZE],
    /// They wait on their ways until so much of the round is left (s). 0: they never go.
    pub goes_at_s_left: f32,
}

impl AttackPlan {
    /// Whether they stay where they are until the time is over.
    pub fn stalls(&self) -> bool {
        self.goes_at_s_left <= 0.0
    }
}

/// Where defenders wait, and what they do about a planted spike.
#[derive(Debug, Clone, PartialEq)]
pub struct DefencePlan {
    /// Index of the site and of the attackers' way to it that each looks at, by place in the team.
    pub posts: [(usize, usize); TEAM_SIZE],
    /// The place in the team of who peeks early, if somebody does.
    pub pusher: Option<usize>,
    /// Whether they come for a planted spike.
    pub retakes: bool,
}

impl Plan {
    /// The plan of a side in a round of a match.
    pub fn of(match_id: u32, round: u8, side: Side) -> Self {
        let seed = u64::from(match_id) << 16 | u64::from(round) << 1 | side.index() as u64;
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        match side {
            Side::Attackers => Self::Attack(attack(rng)),
            Side::Defenders => Self::Defend(defend(rng)),
        }
    }
}

fn attack(rng: &mut Xoshiro256PlusPlus) -> AttackPlan {
    let site = rng.random_range(0..2);
    let (first, second) = (rng.random_range(0..3), rng.random_range(0..3));
    // All by one way, or two by another.
    let ways = std::array::from_fn(|place| if place < 3 { first } else { second });
    let draw: f32 = rng.random();
    let (rush, late) = (balance::RUSH_SHARE, balance::RUSH_SHARE + balance::LATE_SHARE);
    let goes_at_s_left = if draw < rush {
        f32::MAX
    } else if draw < late {
        between(balance::LATE_S_LEFT, rng)
    } else if draw < late + balance::STALL_SHARE {
        0.0
    } else {
        between(balance::USUAL_S_LEFT, rng)
    };
    AttackPlan { site, ways, goes_at_s_left }
}

fn defend(rng: &mut Xoshiro256PlusPlus) -> DefencePlan {
    // Two at one site and three at the other, each at another way as far as there are some.
    let strong = rng.random_range(0..2);
    let (first_way, first_weak_way) = (rng.random_range(0..3), rng.random_range(0..3));
    let posts = std::array::from_fn(|place| {
        if place < 3 { (strong, (first_way + place) % 3) } else { (1 - strong, (first_weak_way + place) % 3) }
    });
    let pusher = rng.random_range(0..TEAM_SIZE);
    DefencePlan {
        posts,
        pusher: (rng.random::<f32>() < balance::PUSH_SHARE).then_some(pusher),
        retakes: rng.random::<f32>() < balance::RETAKE_SHARE,
    }
}

fn between([low, high]: [f32; 2], rng: &mut Xoshiro256PlusPlus) -> f32 {
    rng.random_range(low..high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attacks() -> Vec<AttackPlan> {
        let all = (0..100).flat_map(|id| (0..25).map(move |round| Plan::of(id, round, Side::Attackers)));
        let attack = |plan| match plan {
            Plan::Attack(attack) => Some(attack),
            Plan::Defend(_) => None,
        };
        all.filter_map(attack).collect()
    }

    /// Promise: what one of a team derives, all of it do.
    #[test]
    fn a_plan_is_the_same_for_everybody_and_another_in_each_round() {
        for side in [Side::Attackers, Side::Defenders] {
            assert_eq!(Plan::of(3, 7, side), Plan::of(3, 7, side));
            let differ = (0..24).filter(|round| Plan::of(3, *round, side) != Plan::of(3, round + 1, side)).count();
            assert!(differ > 20, "{differ} of 24");
        }
    }

    #[test]
    fn sites_and_ways_are_all_taken_and_some_rounds_are_stalled() {
        let attacks = attacks();
        for (site, way) in (0..2).flat_map(|site| (0..3).map(move |way| (site, way))) {
            let taken = attacks.iter().filter(|plan| plan.site == site && plan.ways[0] == way).count();
            assert!((300..540).contains(&taken), "site {site}, way {way}: {taken} of 2,500");
        }
        let share = |which: fn(&AttackPlan) -> bool| {
            attacks.iter().filter(|plan| which(plan)).count() as f32 / attacks.len() as f32
        };
        assert!((share(AttackPlan::stalls) - balance::STALL_SHARE).abs() < 0.03);
        assert!((share(|plan| plan.goes_at_s_left == f32::MAX) - balance::RUSH_SHARE).abs() < 0.03);
    }

    #[test]
    fn both_sites_are_defended_in_every_round() {
        for round in 0..25 {
            let Plan::Defend(plan) = Plan::of(1, round, Side::Defenders) else { panic!("it is theirs") };
            let at_a = plan.posts.iter().filter(|(site, _)| *site == 0).count();
            assert!((2..=3).contains(&at_a), "{plan:?}");
        }
    }
}
