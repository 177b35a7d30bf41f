//! Attack: what an attacker is up to.
//!
//! It goes along the way that the plan gives it, waits before the site until it is time, and comes in with the others, the
//! carrier of the spike a little behind. On the site the carrier plants, and the others watch where defenders come from;
//! a spike whose carrier has died is fetched by who is nearest. When it is planted, they hold angles on it.

use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::time::Nanos;

use super::{
    balance::MORE_TO_GO,
    guide::{BotGuide, Post},
    legs::flat_m,
    plan::AttackPlan,
    role::Task,
    situation::Situation,
};
use crate::{
    map::{Site, Way},
    movement::RUN_M_PER_S,
    protocol::Grenade,
    spike::BLAST_M,
    teams::Side,
};

/// So near a waypoint counts as passed (m).
const PASSED_M: f32 = 1.8;
/// How far beside the others each walks (m).
const ASIDE_M: f32 = 0.6;
/// How long after the others the carrier goes (s), as long as there is more time than that (s).
const CARRIER_BEHIND_S: u64 = 3;
const CARRIER_HURRIES_S: f32 = 22.0;
/// From how far a planted spike is watched (m).
const GUARD_M: [f32; 2] = [5.0, 14.0];
/// So long before a planted spike explodes one runs from it (s): far enough, and too late for anybody to defuse it.
const FLEE_S: f32 = 4.5;
/// How far it is thrown (m), and how far behind the entry a flash goes off.
const THROW_M: [f32; 2] = [5.0, 14.0];
const FLASH_BEHIND_M: f32 = 5.0;

const _: () = assert!(FLEE_S * RUN_M_PER_S > BLAST_M + 5.0);

/// One attacker, in one round.
pub struct Attack {
    plan: AttackPlan,
    way: usize,
    /// Index of the waypoint that it goes to.
    next: usize,
    /// When the team has begun to go in.
    gone_at: Option<Nanos>,
    plant_at: Vec3,
    on_site: Option<Post>,
    guard: Option<Post>,
}

impl Attack {
    pub fn new(plan: AttackPlan, place: usize, guide: &BotGuide, rng: &mut Xoshiro256PlusPlus) -> Self {
        let site = &guide.map.sites[plan.site];
        let half = site.area.size_m() / 2.0 - 1.0;
        let aside = Vec3::new(rng.random_range(-half.x..half.x), 0.0, rng.random_range(-half.z..half.z));
        Self {
            way: plan.ways[place],
            next: 1,
            gone_at: None,
            plant_at: guide.standing(site.middle() + aside),
            on_site: None,
            guard: None,
            plan,
        }
    }

    pub fn task(&mut self, now: Nanos, situation: &Situation, guide: &BotGuide, rng: &mut Xoshiro256PlusPlus) -> Task {
        if let Some(spike) = situation.planted_at() {
            if situation.left_s() < FLEE_S {
                return Task::Go(guide.map.spawn(Side::Attackers, situation.place()));
            }
            return Task::Hold(*self.guard.get_or_insert_with(|| guide.post_around(spike, GUARD_M, rng)));
        }
        if let Some(lost) = situation.dropped_at().filter(|lost| situation.is_nearest_to(*lost)) {
            return Task::Go(lost);
        }
        let (feet, place) = (situation.me().feet, situation.place());
        let way = &self.site(guide).ways[self.way];
        if !self.goes(now, situation) {
            let stage = guide.stage(way);
            return match self.along(way, feet, stage) {
                Some(waypoint) => Task::Go(beside(waypoint, place, guide)),
                None => Task::Hold(waiting_post(way, stage)),
            };
        }
        if let Some(waypoint) = self.along(way, feet, way.waypoints.len() - 1) {
            return Task::Go(beside(waypoint, place, guide));
        }
        if situation.carries_spike() {
            return Task::Plant(self.plant_at);
        }
        // Defenders come by the ways that the attackers have not taken.
        let watched = (self.plan.site, (self.way + 1 + place % 2) % 3);
        Task::Hold(*self.on_site.get_or_insert_with(|| guide.post(watched, rng)))
    }

    /// What is to be thrown now, and where to: flashes over the entry as they come, smoke where defenders come from.
    pub fn throw(
        &self,
        situation: &Situation,
        guide: &BotGuide,
        has: impl Fn(Grenade) -> bool,
    ) -> Option<(Grenade, Vec3)> {
        self.gone_at.filter(|_| situation.planted_at().is_none())?;
        let (feet, middle) = (situation.me().feet, self.site(guide).middle());
        let is_in_reach = |place: Vec3| (THROW_M[0]..THROW_M[1]).contains(&flat_m(feet, place));
        let entry = guide.entry(self.plan.site, self.way);
        let behind = entry + (middle - entry).normalize_or_zero() * FLASH_BEHIND_M;
        if has(Grenade::Flash) && is_in_reach(behind) && !self.site(guide).holds(feet) {
            return Some((Grenade::Flash, behind));
        }
        let others = guide.entry(self.plan.site, (self.way + 1) % 3);
        (has(Grenade::Smoke) && is_in_reach(others)).then_some((Grenade::Smoke, others))
    }

    fn site<'a>(&self, guide: &'a BotGuide) -> &'a Site {
        &guide.map.sites[self.plan.site]
    }

    /// Whether it goes to the site, or waits yet.
    fn goes(&mut self, now: Nanos, situation: &Situation) -> bool {
        let (alive, enemies) = (situation.alive_of(situation.team), situation.alive_of(situation.team.other()));
        let is_time = situation.left_s() <= self.plan.goes_at_s_left;
        let are_more = alive >= enemies + MORE_TO_GO && !self.plan.stalls();
        if self.gone_at.is_none() && (is_time || are_more) {
            self.gone_at = Some(now);
        }
        let is_behind = situation.carries_spike() && alive > 1 && situation.left_s() > CARRIER_HURRIES_S;
        let after = if is_behind { Nanos::from_secs(CARRIER_BEHIND_S) } else { Nanos::ZERO };
        self.gone_at.is_some_and(|at| now.saturating_sub(at) >= after)
    }

    /// The next place of the way, up to this waypoint; `None` when it is there.
    fn along(&mut self, way: &Way, feet: Vec3, end: usize) -> Option<Vec3> {
        while self.next <= end {
            let waypoint = way.waypoints[self.next];
            if flat_m(feet, waypoint) > PASSED_M {
                return Some(waypoint);
            }
            self.next += 1;
        }
        None
    }
}

/// Beside a waypoint, each of a team somewhere else.
fn beside(waypoint: Vec3, place: usize, guide: &BotGuide) -> Vec3 {
    let [x, z] = [place % 3, place / 3].map(|step| (step as f32 - 0.7) * ASIDE_M);
    guide.standing(waypoint + Vec3::new(x, 0.0, z))
}

/// Where attackers wait who do not go yet: they look along the way, and step back on it.
fn waiting_post(way: &Way, stage: usize) -> Post {
    let [before, corner, watch] = [stage - 1, stage, stage + 1].map(|index| way.waypoints[index]);
    Post { cover: corner + (before - corner).normalize_or_zero() * 1.5, corner, watch }
}
