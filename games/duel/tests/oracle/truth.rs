//! The truth: who can see whom, by brute force over lines between all places, with walls and smoke. It knows nothing of
//! cells, of proofs, nor of what the fog remembers; what it has worked out of a tick it keeps while that tick counts.

use std::{collections::VecDeque, sync::Arc};

use duel::{
    components::Cloud,
    map::Map,
    sight::{FOG, GRACE_TICKS},
    smoke::is_hidden_by,
    teams::SEATS,
};
use glam::Vec3;
use throng_query::{occlusion::Body, testing::BruteForce};

use crate::witness::{Page, Person};

/// As many ticks as it may have been found out in.
const KEPT: usize = FOG.recheck_ticks as usize;

/// Whether the one could be seen by the other within the grace: by viewer and other.
#[derive(Clone, Copy)]
struct Answers {
    tick: Option<u32>,
    may_see: [[Option<bool>; SEATS]; SEATS],
}

pub struct Truth {
    map: Arc<Map>,
    brute: BruteForce,
    /// At their ticks, modulo their count.
    answers: [Answers; KEPT],
}

impl Truth {
    pub fn new() -> Self {
        let nothing = Answers { tick: None, may_see: [[None; SEATS]; SEATS] };
        Self { map: Map::load(), brute: BruteForce::default(), answers: [nothing; KEPT] }
    }

    /// Whether one sees the other as both are.
    pub fn sees(&mut self, page: &Page, viewer: u8, other: u8) -> bool {
        let [viewer, other] = [viewer, other].map(|seat| &page.people[usize::from(seat)]);
        let is_able = is_alive(viewer) && is_alive(other) && page.tick >= viewer.blind_until_tick;
        let veil = |from: Vec3, to: Vec3| is_hidden_by(&page.clouds, from, to);
        is_able && self.brute.sees_past(&self.map.geometry, veil, &viewer.body, &other.body)
    }

    /// Whether one may be told of the other in the newest of these ticks: both live, and in one of the last ticks, in which
    /// that may have been found out, it could have been seen within the grace. What ends within the grace, smoke or
    /// blindness, hides nobody.
    pub fn may_be_told(&mut self, pages: &VecDeque<Page>, viewer: u8, other: u8) -> bool {
        let Some(now) = pages.back() else { return false };
        let lives = |page: &Page| [viewer, other].map(|seat| page.people[usize::from(seat)].body.life);
        let is_blind = now.tick + GRACE_TICKS < now.people[usize::from(viewer)].blind_until_tick;
        if is_blind || lives(now).contains(&0) {
            return false;
        }
        let found = || pages.iter().rev().take(KEPT).filter(|page| lives(page) == lives(now));
        // What is known already costs nothing.
        found().any(|page| *self.answer(page, viewer, other) == Some(true))
            || found().any(|page| {
                let known = *self.answer(page, viewer, other);
                let may_see = known.unwrap_or_else(|| self.may_see(page, viewer, other));
                *self.answer(page, viewer, other) = Some(may_see);
                may_see
            })
    }

    fn answer(&mut self, page: &Page, viewer: u8, other: u8) -> &mut Option<bool> {
        let answers = &mut self.answers[page.tick as usize % KEPT];
        if answers.tick != Some(page.tick) {
            *answers = Answers { tick: Some(page.tick), may_see: [[None; SEATS]; SEATS] };
        }
        &mut answers.may_see[usize::from(viewer)][usize::from(other)]
    }

    /// Whether the one could come into the other's view within the grace, on the ground, or if both jump.
    fn may_see(&mut self, page: &Page, viewer: u8, other: u8) -> bool {
        let [viewer, other] = [viewer, other].map(|seat| &page.people[usize::from(seat)].body);
        let lasting: Vec<Cloud> =
            page.clouds.iter().filter(|cloud| cloud.until_tick > page.tick + GRACE_TICKS).copied().collect();
        let veil = |from: Vec3, to: Vec3| is_hidden_by(&lasting, from, to);
        let mut may_see = |up_m: f32| {
            let [eye, seen] = [viewer, other].map(|body| Body { feet: body.feet + Vec3::Y * up_m, ..*body });
            self.brute.may_see_within_past(&self.map.geometry, veil, &eye, &seen, FOG.reach_s())
        };
        may_see(0.0) || may_see(FOG.rise_m)
    }
}

fn is_alive(person: &Person) -> bool {
    person.body.life != 0
}
