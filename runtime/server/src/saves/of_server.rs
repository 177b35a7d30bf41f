//! What the frame does for saves: asks worlds for cuts, takes them, hands them in, tells games, sends away.

use throng_net::protocol::ClientId;
use throng_persistence::{Key, Store};
use throng_platform::time::Nanos;
use throng_profiler::{log_error, log_warn};
use throng_world::{
    Client, GameWorld, Leaving, MailItem,
    ids::WorldId,
    saving::{SaveAnswer, SaveReport},
};

use super::{
    Load, Parcel, SAVES, SaveFault, SavedNow, Saves, SavesStatus, SlotSaves, StoreOpenError, StoreToOpen, Waiting,
    open_as_set,
};
use crate::{
    lifecycle::{Answer, NewWorld, Pending, WorldError},
    server::{Command, Server, ServerControl, ServerError},
};

/// Worlds that are asked for a cut in one look at most: at 10 looks a second 320 of them.
const ASKED_PER_LOOK_MAX: usize = 32;

impl ServerControl {
    /// Has every world saved that has changed, with everybody in it. The answer comes when all of it is on disk; while the
    /// disk is dead there is none.
    pub fn save_now(&self) -> Pending<SavedNow> {
        let (pending, answer) = Pending::new();
        self.push(Command::SaveNow(answer));
        pending
    }

    /// How saving stands.
    pub fn saves_status(&self) -> Pending<SavesStatus> {
        let (pending, answer) = Pending::new();
        self.push(Command::SavesStatus(answer));
        pending
    }
}

impl Server {
    /// Keeps saves in this store, whatever the settings say of one; before the first world. In surroundings that the caller
    /// provides, it is written on the frame's thread, so that the same game gives the same saves.
    ///
    /// # Errors
    /// If a thread cannot start.
    pub fn save_in(&mut self, store: Box<dyn Store>) -> Result<(), ServerError> {
        self.store_to_open.is_done = true;
        let StoreToOpen { settings, is_inline, .. } = &self.store_to_open;
        let saves = Saves::new(store, settings, self.clock.clone(), *is_inline);
        self.saves = Some(saves.map_err(StoreOpenError::Thread)?);
        Ok(())
    }

    /// Opens the store that the settings mean, unless that was done. The first world that is to be saved does it, where it
    /// is made before the server runs; a game that makes such worlds later alone asks for it before.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open_saves(&mut self) -> Result<(), ServerError> {
        if std::mem::replace(&mut self.store_to_open.is_done, true) {
            return Ok(());
        }
        let StoreToOpen { settings, beside, .. } = &self.store_to_open;
        match open_as_set(settings, beside.as_deref(), |name| std::env::var(name).ok())? {
            Some(store) => self.save_in(store),
            None => Ok(()),
        }
    }

    /// Breaks saving, to show that it does not go unseen.
    pub fn break_saves(&mut self, fault: SaveFault) {
        if let Some(saves) = &mut self.saves {
            saves.fault = Some(fault);
            saves.commits.forgets_refusals = fault == SaveFault::RefusalsForgotten;
        }
    }

    /// Whether anything is saved.
    pub fn is_saving(&self) -> bool {
        self.saves.is_some()
    }

    /// How saving stands; `None` where nothing is saved.
    pub fn saves_status(&self) -> Option<SavesStatus> {
        let unsaved = self.worlds.iter().filter(|slot| slot.saves.is_on && slot.saves.is_dirty).count();
        self.saves.as_ref().map(|saves| saves.status(unsaved))
    }

    /// What a world is to be loaded from; `None`: nothing is saved under it, or nothing at all.
    pub(crate) fn load_of(&self, new: &NewWorld) -> Option<Load> {
        let (saves, id) = (self.saves.as_ref()?, new.save_id?);
        Some(Load { id, newest: saves.commits.newest(Key::world(id)).flatten(), reads: saves.reader.reads() })
    }

    /// Whether a world of this number may be made now. An error: there is one. False: one is on its way out.
    pub(crate) fn may_make_saved(&self, id: u64) -> Result<bool, WorldError> {
        let Some(saves) = &self.saves else { return Ok(true) };
        if saves.being_made.contains(&id) {
            return Err(WorldError::SaveInUse(id));
        }
        match saves.worlds.get(&id).and_then(|world| self.worlds.get(*world)) {
            None => Ok(true),
            Some(slot) if slot.ending.is_some() => Ok(false),
            Some(_) => Err(WorldError::SaveInUse(id)),
        }
    }

    /// A world that may be made is ordered: what it is loaded from.
    pub(crate) fn begin_making_saved(&mut self, new: &NewWorld) -> Option<Load> {
        let load = self.load_of(new)?;
        self.saves.as_mut()?.being_made.insert(load.id);
        Some(load)
    }

    /// It was not made.
    pub(crate) fn end_making_saved(&mut self, plan: &NewWorld) {
        if let (Some(saves), Some(id)) = (&mut self.saves, plan.save_id) {
            saves.being_made.remove(&id);
        }
    }

    /// Travellers of a world that failed in the tick in which they left, before it could be saved: they go back with it.
    #[expect(clippy::vec_box, reason = "a client moves as a pointer, from world to world")]
    pub(crate) fn take_unsaved_travellers(&mut self, world: &mut GameWorld) -> Vec<Box<Client>> {
        if !world.is_saved() {
            return Vec::new();
        }
        let leaving = std::mem::take(&mut world.report_mut().leaving);
        let mut travellers = Vec::new();
        for leaving in leaving {
            match leaving {
                Leaving::Travel { client, .. } => travellers.push(client),
                other => world.report_mut().leaving.push(other),
            }
        }
        travellers
    }

    /// The world is ordered again in every frame until the one of the same number has ended.
    pub(crate) fn order_when_saved(&mut self, new: NewWorld, answer: Answer<WorldId>) {
        if let Some(saves) = &mut self.saves {
            saves.waiting.push_back(Waiting { new, answer });
        }
    }

    /// Which of a new world is saved.
    pub(crate) fn begin_saves_of(&mut self, world: &mut GameWorld, save_id: Option<u64>) -> SlotSaves {
        let Some(saves) = &mut self.saves else { return SlotSaves::default() };
        world.keep_saves(true, save_id.is_some());
        if let Some(id) = save_id {
            saves.being_made.remove(&id);
            saves.worlds.insert(id, world.id());
        }
        // Worlds that are made together are not saved together: the golden ratio spreads any number of them.
        let share = (f64::from(world.id().number()) * 0.618_033_988_75).fract();
        let now = self.frame_number.map_or(Nanos::ZERO, |frame| self.timeline.start_of(frame));
        let due = now + Nanos((saves.period.0 as f64 * share) as u64);
        SlotSaves { is_on: world.is_saved(), id: save_id, is_dirty: world.is_saved(), is_asked: false, due }
    }

    /// Before clients are placed: what the disk says, and whose time has come.
    pub(crate) fn begin_saves(&mut self, now: Nanos) {
        let Some(saves) = &mut self.saves else { return };
        saves.step(now);
        let lost = saves.players.take_lost();
        let answers = std::mem::take(&mut saves.answers);
        let waiting = std::mem::take(&mut saves.waiting);
        self.tell_saved(answers);
        for client in lost {
            self.addresses.dismiss_player(&self.mailboxes, client, "another server has taken its player over");
        }
        for Waiting { new, answer } in waiting {
            self.order_world(new, answer);
        }
        self.ask_for_cuts(now);
    }

    fn tell_saved(&mut self, answers: Vec<(WorldId, SaveAnswer)>) {
        for (world, answer) in answers {
            if let Some(mailbox) = self.mailboxes.get(world) {
                mailbox.push(MailItem::Saved(vec![answer]));
            }
        }
    }

    /// Asks worlds for a cut whose time has come, some at a time.
    fn ask_for_cuts(&mut self, now: Nanos) {
        let Some(saves) = self.saves.as_mut().filter(|saves| now >= saves.look_at) else { return };
        saves.look_at = now + super::LOOK_EVERY;
        // What is there has not been taken: more of it would be newer, and no nearer to the disk.
        // While somebody waits for all worlds, no other is asked.
        if saves.commits.full.is_some() || !saves.save_now.is_empty() {
            return;
        }
        let due = |slot: &&mut crate::world_slot::WorldSlot| slot.saves.is_due(now) && slot.ending.is_none();
        for slot in self.worlds.iter_mut().filter(due).take(ASKED_PER_LOOK_MAX) {
            slot.saves.is_asked = true;
            slot.mailbox.push(MailItem::Save);
        }
    }

    /// Asks every world for a cut that has changed since its last one. Returns how many those are.
    pub(crate) fn ask_all_for_cuts(&mut self) -> usize {
        let unsaved = self.worlds.iter_mut().filter(|slot| slot.saves.is_on && slot.saves.is_dirty);
        unsaved.fold(0, |count, slot| {
            slot.saves.is_asked = true;
            slot.mailbox.push(MailItem::Save);
            count + 1
        })
    }

    /// Worlds that were asked for a cut and have not given one.
    fn asked_for_cuts(&self) -> usize {
        self.worlds.iter().filter(|slot| slot.saves.is_asked).count()
    }

    /// Takes what a world that has come home has to say of saves, before those who leave it are seen off.
    pub(crate) fn take_saves(&mut self, world: &mut GameWorld) {
        let Some(saves) = &mut self.saves else { return };
        let from = world.id();
        let slot = self.worlds.get_mut(from);
        let is_there = slot.is_some();
        let id = slot.as_ref().and_then(|slot| slot.saves.id);
        let name = world.name().clone();
        let report = world.report_mut();
        let SaveReport { cut, failed, departed, strangers } = std::mem::take(&mut report.saves);
        if let Some(slot) = slot {
            slot.saves.is_dirty = slot.saves.is_on && cut.is_none();
            if cut.is_some() || failed.is_some() {
                let now = self.timeline.start_of(self.frame_number.unwrap_or(0));
                (slot.saves.is_asked, slot.saves.due) = (false, now + saves.period);
            }
            if failed.is_some() {
                // It has had its chance: a world that ends does not wait for another.
                slot.saves.is_dirty &= slot.ending.is_none();
            }
        }
        if let Some(why) = failed {
            saves.counts.cuts_failed += 1;
            log_error!(SAVES, world = %from, kind = &*name, why, "a world and its players cannot be saved as they are now");
        }
        for client in strangers {
            log_error!(
                SAVES, world = %from, kind = &*name, client = client.0,
                "a player travels with something else than what players of this world are saved as: until the next save they are \
                 where and as they were at the last one"
            );
        }
        if let Some(cut) = cut {
            let place_of = |client: ClientId| {
                let goes_to = report.leaving.iter().find_map(|leaving| match leaving {
                    Leaving::Travel { client: traveller, to, .. } if traveller.client_id() == client => Some(*to),
                    _ => None,
                });
                // If there is no such world, they are sent back here.
                let to = goes_to.filter(|to| self.mailboxes.get(*to).is_some()).unwrap_or(from);
                self.worlds.get(to).and_then(|slot| slot.saves.id)
            };
            saves.take_cut((from, &name, id), *cut, place_of);
        }
        departed.into_iter().for_each(|client| saves.players.departed(client));
        if !is_there {
            saves.players.world_ended(from);
        }
    }

    /// A client's connection has ended in this world; in none, if it had none.
    pub(crate) fn client_left_saves(&mut self, client: ClientId, world: Option<WorldId>) {
        if let Some(saves) = &mut self.saves {
            let saved = world.and_then(|world| self.worlds.get(world)).filter(|slot| slot.saves.is_on);
            saves.players.left(client, saved.map(|slot| slot.id));
        }
    }

    /// A world is no more.
    pub(crate) fn world_left_saves(&mut self, world: WorldId, save_id: Option<u64>) {
        let Some(saves) = &mut self.saves else { return };
        saves.players.world_ended(world);
        if let Some(id) = save_id
            && saves.worlds.get(&id) == Some(&world)
        {
            saves.worlds.remove(&id);
        }
    }

    /// Has everything saved that has changed; the answer comes when it is on disk.
    pub(crate) fn save_now(&mut self, answer: Answer<SavedNow>) {
        self.ask_all_for_cuts();
        match &mut self.saves {
            Some(saves) => saves.save_now.push(answer),
            None => answer.give(Err(WorldError::NotSaving)),
        }
    }

    /// At the frame's end: what its worlds have brought goes to the writer.
    pub(crate) fn end_saves(&mut self) {
        let is_asked = self.saves.as_ref().is_some_and(|saves| !saves.save_now.is_empty());
        let are_all_in = is_asked && self.asked_for_cuts() == 0;
        if let Some(saves) = &mut self.saves {
            if are_all_in {
                let told = std::mem::take(&mut saves.save_now);
                saves.commits.add(Parcel { told, ..Parcel::default() });
            }
            saves.submit();
        }
    }

    /// When all clients are gone: saves every world that has changed, in frames, until everything is on disk or the time
    /// is up. True: it is, or nothing is saved here.
    pub(crate) fn flush_saves(&mut self, frame: &mut u64) -> bool {
        let Some(saves) = &mut self.saves else { return true };
        saves.players.close();
        let worlds = self.worlds.len().max(saves.worlds.len()) as u64;
        let give_up_at = self.clock.now() + Nanos(FLUSH_PER_1000_WORLDS.0 * worlds.div_ceil(1_000).max(1));
        self.ask_all_for_cuts();
        let is_settled = |server: &Self| server.saves.as_ref().is_none_or(Saves::is_settled);
        while (self.asked_for_cuts() > 0 || !is_settled(self)) && self.clock.now() < give_up_at {
            *frame += 1;
            self.clock.sleep_until(self.timeline.start_of(*frame));
            *frame = self.timeline.frame_at(self.clock.now()).max(*frame);
            self.frame(*frame);
        }
        let unsaved = self.asked_for_cuts();
        let Some(saves) = self.saves.take() else { return true };
        let is_all_saved = saves.commits.finish() && unsaved == 0;
        if !is_all_saved {
            log_warn!(
                SAVES,
                worlds = unsaved,
                "the server ends, and not everything is saved: what is missing is as at the save before"
            );
        }
        is_all_saved
    }
}

/// What a flush of so many worlds may take (R36).
const FLUSH_PER_1000_WORLDS: Nanos = Nanos::from_secs(10);

impl SlotSaves {
    /// It is to be asked for a cut.
    fn is_due(&self, now: Nanos) -> bool {
        self.is_on && self.is_dirty && !self.is_asked && now >= self.due
    }
}
