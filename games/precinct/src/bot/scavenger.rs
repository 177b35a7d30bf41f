//! Scavenger: what a bot does with gear: it takes what lies near its way, brings it home, fetches some of it again,
//! and offers it to those it meets.
//!
//! It acts on what it is told and nothing else, and holds that against what must be true: no piece is in its bag or its
//! chest twice, or in both, or of another kind than before. What it asks for may be refused, since others are faster; it
//! asks again when it is told that nothing has changed, after a while.

use std::collections::HashMap;

use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::habits::once_in;
use throng_client::Client;
use throng_replication::NetId;

use super::THINK_HZ;
use crate::{
    components::{Character, Lying, Pose, Vitals},
    gear::{BAG_MAX, Bag, Gear, GearId, GearKind},
    ground,
    portals::Destination,
    protocol::{Acceptance, Carried, Handle, Offer, Offered, Stashed},
    stash::{self, Stash},
    trades,
};

/// How far it goes out of its way for what lies there. (m)
const DETOUR_M: f32 = 20.0;
/// Thoughts between two looks at what lies there.
const LOOK_PERIOD: u32 = 10;
/// Seconds between two offers, on average, while there is an occasion.
const OFFER_S: f32 = 4.0;
/// Seconds between two walks to the chest, on average, with something in the bag; and with something in the chest alone.
const PUT_IN_S: f32 = 20.0;
const TAKE_OUT_S: f32 = 40.0;
/// Thoughts between two requests.
const PAUSE: u32 = 10;

/// What it wants at the chest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Errand {
    PutIn,
    TakeOut,
}

/// What a bot knows and wants of gear.
#[derive(Default)]
pub struct Scavenger {
    bag: Bag,
    /// As it was told at home.
    stash: Stash,
    /// What it has ever had, and of which kind that was.
    kinds: HashMap<GearId, GearKind>,
    offered: Option<Offered>,
    /// What lies there that it wants.
    prey: Option<NetId>,
    errand: Option<Errand>,
    /// Thought from which on it asks for something again.
    asks_at: u32,
    pub gained: u64,
    pub stashed: u64,
    pub offers_made: u64,
    pub trades_accepted: u64,
}

impl Scavenger {
    /// Another stay: what it saw and wanted there is far away. What is in its chest stays as it is.
    pub fn settle_in(&mut self) {
        (self.offered, self.prey, self.errand) = (None, None, None);
    }

    /// Hears what it was told. Returns how much of it cannot be true.
    pub fn hear(&mut self, client: &Client) -> u64 {
        let mut violations = 0;
        for message in client.messages() {
            if let Some(Carried { bag }) = message.read() {
                self.gained += u64::from(bag.gear.len() > self.bag.gear.len());
                self.bag = bag;
            } else if let Some(Stashed { stash }) = message.read() {
                self.stashed += u64::from(stash.gear.len() > self.stash.gear.len());
                self.stash = stash;
            } else if let Some(offered) = message.read::<Offered>() {
                self.offered = Some(offered);
                continue;
            } else {
                continue;
            }
            violations += self.check();
        }
        violations
    }

    /// What cannot be: a piece in two places, or one that has become another.
    fn check(&mut self) -> u64 {
        let in_both = self.bag.gear.iter().filter(|gear| self.stash.gear.get(gear.id).is_some()).count();
        let mut changed = 0;
        for Gear { id, kind } in self.bag.gear.iter().chain(self.stash.gear.iter()) {
            changed += usize::from(*self.kinds.entry(id).or_insert(kind) != kind);
        }
        (in_both + changed) as u64
    }

    /// Where it wants to go for gear, if anywhere. It looks around now and then.
    pub fn goal(
        &mut self,
        (thoughts, here, feet): (u32, Destination, Vec3),
        client: &Client,
        chest: Vec3,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Option<Vec3> {
        let replicas = client.replicas();
        if thoughts.is_multiple_of(LOOK_PERIOD) {
            let near_m2 = |pose: &Pose| pose.feet().distance_squared(feet);
            let seen = replicas.iter::<Lying>().filter_map(|(id, _)| Some((id, near_m2(replicas.get::<Pose>(id)?))));
            let nearest = seen.filter(|(_, away_m2)| *away_m2 < DETOUR_M * DETOUR_M).min_by(|a, b| a.1.total_cmp(&b.1));
            self.prey = nearest.map(|(id, _)| id).filter(|_| self.bag.gear.has_room());
        }
        if here == Destination::Hideout && self.errand.is_none() {
            let (carries, has_more) = (!self.bag.gear.is_empty(), !self.stash.gear.is_empty());
            if carries && once_in(PUT_IN_S, THINK_HZ, rng) {
                self.errand = Some(Errand::PutIn);
            } else if has_more && self.bag.gear.len() < BAG_MAX / 2 && once_in(TAKE_OUT_S, THINK_HZ, rng) {
                self.errand = Some(Errand::TakeOut);
            }
        }
        let prey = self.prey.and_then(|prey| Some(replicas.get::<Pose>(prey)?.feet()));
        prey.or_else(|| self.errand.map(|_| chest))
    }

    /// Asks for what is within reach. At most one thing at a time.
    pub fn act(
        &mut self,
        (thoughts, here, feet): (u32, Destination, Vec3),
        client: &mut Client,
        chest: Vec3,
        rng: &mut Xoshiro256PlusPlus,
    ) {
        if thoughts < self.asks_at {
            return;
        }
        let Some(wish) = self.wish((here, feet), client, chest, rng) else { return };
        // What is refused because the queue is full is not asked for.
        if client.request(&wish).is_ok() {
            self.asks_at = thoughts.wrapping_add(PAUSE);
            self.offers_made += u64::from(matches!(wish, Handle::Offer(_)));
            self.trades_accepted += u64::from(matches!(wish, Handle::Accept(_)));
        }
    }

    fn wish(
        &mut self,
        (here, feet): (Destination, Vec3),
        client: &Client,
        chest: Vec3,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Option<Handle> {
        if let Some(offered) = self.offered.take()
            && let Some(acceptance) = self.accept(offered)
        {
            return Some(Handle::Accept(acceptance));
        }
        let replicas = client.replicas();
        if let Some(prey) = self.prey
            && let Some(pose) = replicas.get::<Pose>(prey)
            && pose.feet().distance(feet) < ground::REACH_M
        {
            self.prey = None;
            return Some(Handle::PickUp(prey));
        }
        if self.errand.is_some() && chest.distance(feet) < stash::REACH_M {
            return match self.errand.take()? {
                Errand::PutIn => any(&self.bag.gear.iter().collect::<Vec<_>>(), rng).map(Handle::PutIn),
                Errand::TakeOut => any(&self.stash.gear.iter().collect::<Vec<_>>(), rng).map(Handle::TakeOut),
            };
        }
        let may_trade = here != Destination::Hideout && !self.bag.gear.is_empty();
        if !may_trade || !once_in(OFFER_S, THINK_HZ, rng) {
            return None;
        }
        let own = client.own_entity()?;
        let is_other = |id: NetId| {
            let is_player = replicas.get::<Character>(id).is_some_and(|character| !character.npc);
            id != own && is_player && replicas.get::<Vitals>(id).is_some_and(|vitals| vitals.alive)
        };
        let (to, _) =
            replicas.iter::<Pose>().find(|(id, pose)| pose.feet().distance(feet) < trades::REACH_M && is_other(*id))?;
        let give = any(&self.bag.gear.iter().collect::<Vec<_>>(), rng)?;
        let want = rng.random_bool(0.7).then(|| GearKind::by_number(rng.random_range(0..6)));
        Some(Handle::Offer(Offer { to, give, want }))
    }

    /// It takes whatever it can pay for.
    fn accept(&self, Offered { from, gear, want }: Offered) -> Option<Acceptance> {
        let give = match want {
            Some(kind) => Some(self.bag.gear.iter().find(|piece| piece.kind == kind)?.id),
            None => None,
        };
        Some(Acceptance { from, get: gear.id, give })
    }
}

fn any(pieces: &[Gear], rng: &mut Xoshiro256PlusPlus) -> Option<GearId> {
    (!pieces.is_empty()).then(|| pieces[rng.random_range(0..pieces.len())].id)
}
