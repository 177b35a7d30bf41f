//! Defence: what a defender is up to.
//!
//! It holds the angle that the plan gives it; somebody peeks early in some rounds. Where team mates shoot or die is where
//! the attackers are: whoever may leave its own site goes there after a moment. A planted spike is retaken together, with
//! the nearest one defusing and the others watching, or given up: if that is the plan, or they are too few or too late.
//!
//! It goes by what team mates of a player see of each other: where they are, whether they shoot, whether they live.

use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::time::Nanos;

use super::{
    balance::{FEW_TO_SAVE, GATHER_S, HOPE_S, ROTATE_MAX},
    guide::{BotGuide, Post},
    legs::flat_m,
    plan::DefencePlan,
    role::Task,
    situation::{Body, Situation},
};
use crate::{
    movement::RUN_M_PER_S,
    protocol::Grenade,
    spike::REACH_M,
    teams::{SEATS, Side},
};

/// From the first shots at the other site until one goes there (ms).
const ALARM_MS: [u64; 2] = [900, 2_500];
/// How long, from the beginning of the round, one may peek at the attackers' way (s).
const PUSH_S: u64 = 14;
/// So near a planted spike, defenders wait for each other (m).
const GATHER_M: f32 = 16.0;
/// Who is as near as this to it has come (m).
const NEAR_M: f32 = 22.0;
/// From how far one watches over who defuses (m).
const COVER_M: [f32; 2] = [3.0, 9.0];
/// How far it is thrown (m).
const THROW_M: [f32; 2] = [5.0, 16.0];
/// How much longer a way is than it looks.
const DETOUR: f32 = 1.35;

/// One defender, in one round.
pub struct Defence {
    plan: DefencePlan,
    place: usize,
    began_at: Nanos,
    post: Option<Post>,
    /// The site that is attacked, and when it goes there.
    alarm: Option<(usize, Nanos)>,
    rotated: Option<Post>,
    covering: Option<Post>,
    gathering_since: Option<Nanos>,
    /// It has given up the spike, for good.
    saves: bool,
    /// Where its team was at the last thought, by seat.
    places: [Option<Vec3>; SEATS],
}

impl Defence {
    pub fn new(plan: DefencePlan, place: usize, now: Nanos) -> Self {
        Self {
            plan,
            place,
            began_at: now,
            post: None,
            alarm: None,
            rotated: None,
            covering: None,
            gathering_since: None,
            saves: false,
            places: [None; SEATS],
        }
    }

    /// The round is played from now on.
    pub fn begin(&mut self, now: Nanos) {
        self.began_at = now;
    }

    pub fn task(&mut self, now: Nanos, situation: &Situation, guide: &BotGuide, rng: &mut Xoshiro256PlusPlus) -> Task {
        if let Some(spike) = situation.planted_at() {
            return self.retake(now, spike, situation, guide, rng);
        }
        self.listen(now, situation, guide, rng);
        let (own_site, way) = self.plan.posts[self.place];
        let attacked = self.alarm.filter(|(site, at)| *site != own_site && now >= *at && self.may_leave());
        if let Some((site, _)) = attacked {
            let way = rng.random_range(0..3);
            return Task::Hold(*self.rotated.get_or_insert_with(|| guide.post((site, way), rng)));
        }
        let is_early = now.saturating_sub(self.began_at) < Nanos::from_secs(PUSH_S);
        if self.plan.pusher == Some(self.place) && is_early && self.alarm.is_none() {
            return Task::Go(guide.entry(own_site, way));
        }
        Task::Hold(*self.post.get_or_insert_with(|| guide.post((own_site, way), rng)))
    }

    /// What is to be thrown now, and where to: over a planted spike, before they come.
    pub fn throw(&self, situation: &Situation, has: impl Fn(Grenade) -> bool) -> Option<(Grenade, Vec3)> {
        let spike = situation.planted_at().filter(|_| !self.saves)?;
        let is_in_reach = (THROW_M[0]..THROW_M[1]).contains(&flat_m(situation.me().feet, spike));
        let grenade = [Grenade::Flash, Grenade::Smoke].into_iter().find(|grenade| has(*grenade))?;
        is_in_reach.then_some((grenade, spike))
    }

    /// Whether somebody stays at its site when it goes to the other.
    fn may_leave(&self) -> bool {
        let site = self.plan.posts[self.place].0;
        let of_site = |until: usize| self.plan.posts[..until].iter().filter(|post| post.0 == site).count();
        let (before, all) = (of_site(self.place), of_site(self.plan.posts.len()));
        before < ROTATE_MAX && before + 1 < all
    }

    /// Notes where team mates shoot or die.
    fn listen(&mut self, now: Nanos, situation: &Situation, guide: &BotGuide, rng: &mut Xoshiro256PlusPlus) {
        let mut heard = None;
        for (seat, place) in self.places.iter_mut().enumerate() {
            let body = situation.team_alive().find(|(other, _)| usize::from(*other) == seat).map(|(_, body)| body);
            let has_shot = body.is_some() && situation.shooters >> seat & 1 == 1;
            let has_died = body.is_none() && place.is_some();
            let new_place = body.map(|body| body.feet);
            if has_shot || has_died {
                heard = new_place.or(*place);
            }
            *place = new_place;
        }
        if let (Some(place), None) = (heard, self.alarm) {
            let to_a_m = flat_m(guide.map.sites[0].middle(), place);
            let site = usize::from(flat_m(guide.map.sites[1].middle(), place) < to_a_m);
            self.alarm = Some((site, now + Nanos::from_millis(rng.random_range(ALARM_MS[0]..ALARM_MS[1]))));
        }
    }

    fn retake(
        &mut self,
        now: Nanos,
        spike: Vec3,
        situation: &Situation,
        guide: &BotGuide,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Task {
        let (alive, enemies) = (situation.alive_of(situation.team), situation.alive_of(situation.team.other()));
        let left_m = flat_m(situation.me().feet, spike);
        let need_s = left_m * DETOUR / RUN_M_PER_S + situation.defuse_s + HOPE_S;
        let is_at_it = left_m < REACH_M;
        let are_few = alive + FEW_TO_SAVE <= enemies;
        let gives_up = enemies > 0 && (are_few || !self.plan.retakes && alive <= enemies);
        self.saves |= !is_at_it && (gives_up || situation.left_s() < need_s);
        if self.saves {
            return Task::Go(guide.map.spawn(Side::Defenders, self.place));
        }
        if enemies > 0 && self.gathers(now, spike, situation, need_s) {
            return Task::Hold(Post { cover: situation.me().feet, corner: situation.me().feet, watch: spike });
        }
        if situation.is_nearest_to(spike) || enemies == 0 {
            return Task::Defuse(spike);
        }
        Task::Hold(*self.covering.get_or_insert_with(|| guide.post_around(spike, COVER_M, rng)))
    }

    /// Whether it waits for others before the last stretch.
    fn gathers(&mut self, now: Nanos, spike: Vec3, situation: &Situation, need_s: f32) -> bool {
        let is_near = |body: &Body| flat_m(body.feet, spike) < NEAR_M;
        let are_together = situation.team_alive().all(|(_, body)| is_near(body));
        let left_m = flat_m(situation.me().feet, spike);
        if left_m > GATHER_M || are_together || situation.left_s() < need_s + GATHER_S {
            return false;
        }
        let since = *self.gathering_since.get_or_insert(now);
        now.saturating_sub(since) < Nanos::from_millis((GATHER_S * 1_000.0) as u64)
    }
}
