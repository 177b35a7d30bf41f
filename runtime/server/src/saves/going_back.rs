//! Going back: worlds return to their last save, since what was done in them has been undone.
//!
//! Somebody who is here, or a world, is another process's by now: this one stood still for longer than its leases, or could not
//! reach the store. What they gave to others since their last save they have again there, so it must not have been. Nothing of
//! it is saved ([`Commits::undo`](super::commits::Commits::undo) drops it, with all that was built on it), and the worlds that it
//! was done in go back, with everybody in them. So does a world that is another process's itself.
//!
//! ```text
//! refused as stale --> undone --> marked: worlds that brought it, or have somebody of it --> home --> out
//!                                                                                                   |
//!       its clients are placed anew, as of their last save; a world that the program made itself comes again <--'
//! ```
//!
//! Frame thread. Cost: nothing while nothing is stale; then a look at every world, and some microseconds for each that goes back.

use std::collections::BTreeSet;

use throng_platform::time::Nanos;
use throng_profiler::log_error;
use throng_world::{Client, GameWorld, Leaving, MailItem, saving::SaveReport};

use super::{GoesBack, SAVES, Saves, commits::Undone};
use crate::{hosted_world::HostedWorld, server::Server, world_slot::WorldSlot};

/// Worlds that are sent back between two frames at most; the others are, one after the other, before they have ticked again or as
/// they come home.
const SENT_BACK_PER_FRAME_MAX: usize = 16;

impl Server {
    /// Marks the worlds that go back.
    pub(super) fn mark_going_back(&mut self, undone: &Undone, now: Nanos) {
        let Some(saves) = &mut self.saves else { return };
        let lost = saves.take_lost_worlds();
        saves.counts.worlds_lost += lost.len() as u64;
        let numbers: BTreeSet<u64> = undone.numbers.iter().copied().chain(lost).collect();
        saves.made_in_vain.extend(numbers.iter().filter(|id| saves.being_made.contains(id)));
        let of_numbers = numbers.iter().filter_map(|id| saves.worlds.get(id).copied());
        for world in undone.worlds.iter().copied().chain(of_numbers) {
            saves.going_back.insert(world, GoesBack::Surely);
        }
        // Those who were undone may be in worlds that are not saved, and carry on from there what they have.
        for slot in self.worlds.iter() {
            let is_here = slot.home.as_ref().map(|hosted| hosted.world.owes_any_of(&undone.players));
            if is_here == Some(true) || slot.mailbox.has_arrival_of(&undone.players) {
                saves.going_back.insert(slot.id, GoesBack::Surely);
            } else if is_here.is_none()
                && let GoesBack::IfHere(players) =
                    saves.going_back.entry(slot.id).or_insert_with(|| GoesBack::IfHere(BTreeSet::new()))
            {
                players.extend(&undone.players);
            }
        }
        saves.players.load_again(&undone.players, now);
    }

    /// Sends worlds back that are marked and home.
    pub(super) fn send_back_marked(&mut self, now: Nanos) {
        let Some(saves) = self.saves.as_mut().filter(|saves| !saves.going_back.is_empty()) else { return };
        saves.going_back.retain(|world, _| self.worlds.get(*world).is_some());
        let is_home = |slot: &WorldSlot| slot.home.is_some();
        let worlds: Vec<_> =
            saves.going_back.keys().copied().filter(|id| self.worlds.get(*id).is_some_and(is_home)).collect();
        for id in worlds.into_iter().take(SENT_BACK_PER_FRAME_MAX) {
            let Some(hosted) = self.worlds.get_mut(id).and_then(|slot| slot.home.take()) else { continue };
            if let Some(hosted) = self.send_back_if_marked(hosted, now)
                && let Some(slot) = self.worlds.get_mut(id)
            {
                slot.home = Some(hosted);
            }
        }
    }

    /// A world that is home goes back to its last save if that was to be, before anything that it did leaves it; otherwise it
    /// is given back.
    pub(crate) fn send_back_if_marked(&mut self, hosted: Box<HostedWorld>, now: Nanos) -> Option<Box<HostedWorld>> {
        let Some(saves) = self.saves.as_mut().filter(|saves| !saves.going_back.is_empty()) else { return Some(hosted) };
        match saves.going_back.remove(&hosted.world.id()) {
            Some(GoesBack::IfHere(players)) if !hosted.world.owes_any_of(&players) => return Some(hosted),
            None => return Some(hosted),
            Some(_) => {}
        }
        self.send_back(hosted, now);
        None
    }

    fn send_back(&mut self, mut hosted: Box<HostedWorld>, now: Nanos) {
        let id = hosted.world.id();
        log_error!(
            SAVES, world = %id, kind = &**hosted.world.name(),
            "a world goes back to its last save: since then another process had taken a player of it over, or itself"
        );
        let report = hosted.world.report_mut();
        report.saves = SaveReport::default();
        report.messages.clear();
        report.long_tasks.clear();
        let mut clients = take_travellers(&mut hosted.world);
        // Who left has left, whatever it was with.
        self.see_off(&mut hosted.world);
        let Some(slot) = self.worlds.get(id) else { return };
        let (keeps_place, plan) = (slot.keeps_place && slot.ending.is_none(), slot.plan.clone());
        // Who is on the way in comes from a save of another world, or of this one.
        for item in slot.mailbox.close().drain() {
            if let MailItem::Arrival { client, .. } = item {
                clients.push(client);
            }
        }
        if let Some(answer) = self.take_out(id, keeps_place).and_then(|mut slot| slot.ending.take()) {
            answer.give(Ok(()));
        }
        if keeps_place {
            self.hold(id, plan);
        }
        let (others, mut rest) = hosted.into_clients();
        self.game_totals.withdraw(rest.world.gauges_mut());
        for client in clients.into_iter().chain(others) {
            let is_lost = self.saves.as_ref().is_some_and(|saves| saves.players.is_lost(client.client_id()));
            if is_lost {
                self.disconnect(client, "another server has taken its player over");
            } else {
                self.place_anew(client, now, "its world is gone");
            }
        }
        self.maker.drop_world(rest);
        self.counts.saves.worlds_taken_back += 1;
    }

    /// Travellers of a world that failed in the tick in which they left, before it could be saved: they go back with it.
    #[expect(clippy::vec_box, reason = "a client moves as a pointer, from world to world")]
    pub(crate) fn take_unsaved_travellers(&mut self, world: &mut GameWorld) -> Vec<Box<Client>> {
        if !world.is_saved() {
            return Vec::new();
        }
        // Half a tick is of no moment.
        world.report_mut().saves = SaveReport::default();
        take_travellers(world)
    }
}

#[expect(clippy::vec_box, reason = "a client moves as a pointer, from world to world")]
fn take_travellers(world: &mut GameWorld) -> Vec<Box<Client>> {
    let mut travellers = Vec::new();
    for leaving in std::mem::take(&mut world.report_mut().leaving) {
        match leaving {
            Leaving::Travel { client, .. } => travellers.push(client),
            other => world.report_mut().leaving.push(other),
        }
    }
    travellers
}

impl Saves {
    /// What was done with those who are others' by now, since it was last saved, is not saved any more.
    pub(super) fn undo_stale(&mut self) -> Option<Undone> {
        let stale = std::mem::take(&mut self.stale);
        (!stale.is_empty()).then(|| self.commits.undo(stale))
    }

    fn take_lost_worlds(&mut self) -> Vec<u64> {
        self.world_leases.as_mut().map(|leases| leases.take_lost()).unwrap_or_default()
    }
}
