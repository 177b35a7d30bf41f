//! Parked worlds: what becomes of worlds whose plans are parked.
//!
//! A world that a game asked for is gone when it is parked: the game is told that it ended, asks for another when somebody
//! wants in, and is told that its plan is parked. A world that the program made itself, as most games make a hub or the one
//! world for everybody, is known by its id, and nobody asks for it again. So its place is held: its id stays its own,
//! whoever is to go there is refused, and when its plan is parked no longer the server makes it again, by the same plan.
//!
//! ```text
//! world.park ──▶ saved, leaves when it is home: its clients are placed anew ──▶ held ──▶ world.unpark: made again, same id
//! culprit of a death ──▶ not made at the start ───────────────────────────────▶ held ──▶ its time is over: made again, same id
//! ```
//!
//! Frame thread. Cost: nothing while there are none; else a look at each in a frame.

use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_error, log_info, log_warn};
use throng_world::ids::{WorldId, WorldKindId};

use crate::{
    held::HeldPlace,
    lifecycle::{NewWorld, Pending, WorldError},
    parking::{Culprit, Left, Parked, ParkedFor, Which},
    server::Server,
    world_facts::WorldFollower,
};

log_category!(WORLDS = "server.worlds");

impl Server {
    /// Tells of all worlds that come and go from now on; before the first is made. One follower: a second one takes the
    /// first one's place.
    pub fn follow_worlds(&mut self) -> WorldFollower {
        let (follower, news) = WorldFollower::new(self.posts.clone(), self.clock.clone());
        self.held.news = news;
        follower
    }

    /// Has the worlds that earlier servers died of parked from the start on, for a while that grows with the number of
    /// deaths. Before the first world is made.
    pub fn park_culprits(&mut self, culprits: Vec<Culprit>) {
        for Culprit { kind, seed, deaths, .. } in &culprits {
            log_warn!(
                WORLDS,
                kind,
                seed,
                deaths,
                "this world ended the server that was here before: it is parked for now; the console's `world.unpark` ends that"
            );
        }
        let now = self.clock.now();
        self.held.culprits = culprits.into_iter().map(|it| (it.clone(), now + it.parked_for())).collect();
    }

    /// Culprits whose plans have not been asked for, as they are told.
    pub(crate) fn parked_culprits(&self) -> impl Iterator<Item = Parked> + '_ {
        self.held.culprits.iter().filter_map(|(culprit, until)| {
            let Culprit { kind, seed, place, deaths, .. } = culprit;
            let kind = self.kind_named(kind)?;
            let (seed, why, times) = (Some(*seed), ParkedFor::Death, *deaths);
            Some(Parked { kind, seed, world: *place, why, times, until: *until })
        })
    }

    /// Whether a world of this plan is one that a server died of. Its plan is parked then. `place`: of one that the program
    /// makes itself.
    pub(crate) fn is_culprit(&mut self, plan: &NewWorld, place: Option<WorldId>) -> bool {
        let Some(kind) = self.kinds.get(usize::from(plan.kind.0)).map(|row| row.name.clone()) else { return false };
        if self.held.culprits.is_empty() {
            return false;
        }
        // Before the first frame a place means the same world in each server.
        let (digest, now, place_known) =
            (plan.digest(&kind), self.clock.now(), place.filter(|_| self.frame_number.is_none()));
        let is_it = |it: &Culprit| {
            it.kind == *kind && (it.plan == digest || (place_known.is_some() && it.place == place_known))
        };
        let Some(index) = self.held.culprits.iter().position(|(it, until)| now < *until && is_it(it)) else {
            return false;
        };
        let (Culprit { deaths, .. }, until) = self.held.culprits.remove(index);
        self.parking.park_culprit(plan, deaths, place, (now, until));
        self.publish_parked(now);
        true
    }

    /// Parks the plan of a world whose load failed so often.
    pub(crate) fn park_load(&mut self, plan: &NewWorld, place: Option<WorldId>, failures: u32) {
        let now = self.clock.now();
        let kind = self.kinds.get(usize::from(plan.kind.0)).map(|row| row.name.clone()).unwrap_or_default();
        log_error!(
            WORLDS,
            kind = &*kind,
            save = plan.save_id().unwrap_or_default(),
            failures,
            "to load this world ended the server, or panicked: it is parked, what is saved of it is as it was, and the console's \
             `world.unpark` has it loaded once more"
        );
        self.parking.park_load(plan, failures, place, now);
        self.publish_parked(now);
    }

    /// Keeps the place of a world that is parked.
    pub(crate) fn hold(&mut self, id: WorldId, plan: NewWorld) {
        self.directory.hold(id);
        self.held.places.push(HeldPlace { id, plan, is_being_made: false });
    }

    /// The world is there again, or never will be.
    pub(crate) fn hold_no_longer(&mut self, id: WorldId) {
        self.directory.hold_no_longer(id);
        self.held.places.retain(|place| place.id != id);
    }

    /// Parks a world, or all of a kind, until somebody ends that. Returns how many worlds that takes out.
    pub(crate) fn park_worlds(&mut self, which: &Which, now: Nanos) -> Result<usize, WorldError> {
        let before = self.held.leaving.len();
        match which {
            Which::World(id) => {
                let slot = self.worlds.get(*id).filter(|slot| slot.ending.is_none());
                let slot = slot.ok_or(WorldError::NoSuchWorld(*id))?;
                self.parking.park(&slot.plan, *id, now);
                self.held.leaving.push(*id);
            }
            Which::Kind(name) => {
                let kind = self.kind_named(name).ok_or_else(|| WorldError::NoKindNamed(name.clone()))?;
                self.parking.park_kind(kind);
                let of_kind = self.worlds.iter().filter(|slot| slot.plan.kind == kind && slot.ending.is_none());
                self.held.leaving.extend(of_kind.map(|slot| slot.id));
            }
        }
        let worlds = self.held.leaving.len() - before;
        self.publish_parked(now);
        log_warn!(WORLDS, which = ?which, worlds, "worlds are parked by an operator; the console's `world.unpark` ends that");
        Ok(worlds)
    }

    /// Has worlds made again by plans that are parked: of one world, of a kind, or of all. Returns how many plans.
    pub(crate) fn unpark_worlds(&mut self, which: Option<&Which>, now: Nanos) -> usize {
        let culprits_before = self.held.culprits.len();
        let unparked = match which {
            None => {
                self.held.culprits.clear();
                self.parking.unpark(None, now)
            }
            Some(Which::World(id)) => self.parking.unpark_world(*id, now),
            Some(Which::Kind(name)) => {
                self.held.culprits.retain(|(culprit, _)| culprit.kind != *name);
                self.kind_named(name).map_or(0, |kind| self.parking.unpark(Some(kind), now))
            }
        };
        let unparked = unparked + culprits_before - self.held.culprits.len();
        self.publish_parked(now);
        log_info!(WORLDS, which = ?which, unparked, "plans of worlds are no longer parked");
        unparked
    }

    pub(crate) fn kind_named(&self, name: &str) -> Option<WorldKindId> {
        self.kinds.iter().zip(0..).find(|(row, _)| *row.name == *name).map(|(_, number)| WorldKindId(number))
    }

    /// A world that has just come, of a kind that was parked meanwhile, leaves again.
    pub(crate) fn leave_if_parked(&mut self, id: WorldId, now: Nanos) {
        let is_parked = |plan: &NewWorld| self.parking.left(plan, now) == Some(Left::ForEver);
        if self.worlds.get(id).is_some_and(|slot| is_parked(&slot.plan)) {
            self.held.leaving.push(id);
        }
    }

    /// Takes worlds out that are to be parked, and has those made again whose time is over.
    pub(crate) fn look_after_parked(&mut self, now: Nanos) {
        for id in std::mem::take(&mut self.held.leaving) {
            let Some(slot) = self.worlds.get_mut(id).filter(|slot| slot.ending.is_none()) else { continue };
            // It goes between two ticks, when all of it is saved as it is then.
            if slot.is_away() || !slot.saves.is_saved_or_asked(&slot.mailbox) {
                self.held.leaving.push(id);
            } else {
                self.take_to_park(id, now);
            }
        }
        for index in 0..self.held.places.len() {
            let HeldPlace { id, plan, is_being_made } = &self.held.places[index];
            if *is_being_made || self.parking.left(plan, now).is_some() {
                continue;
            }
            let (id, plan) = (*id, plan.clone());
            // Whoever has the number now may give it up.
            if plan.save_id().is_some_and(|save_id| self.may_make_saved(save_id) != Ok(true)) {
                continue;
            }
            self.held.places[index].is_being_made = true;
            // Nobody waits for it: the place is looked at when it has come.
            self.make_in_place(id, plan, Pending::new().1);
        }
    }

    fn take_to_park(&mut self, id: WorldId, now: Nanos) {
        let keeps_place = self.worlds.get(id).is_some_and(|slot| slot.keeps_place);
        let Some(mut slot) = self.take_out(id, keeps_place) else { return };
        if keeps_place {
            self.hold(id, slot.plan.clone());
        }
        let Some(hosted) = slot.home.take() else { return };
        let (clients, mut rest) = hosted.into_clients();
        self.game_totals.withdraw(rest.world.gauges_mut());
        clients.into_iter().for_each(|client| self.place_anew(client, now, "its world is parked"));
        self.maker.drop_world(rest);
    }
}
