//! What the frame does for saves: asks worlds for cuts, takes them, hands them in, tells games, sends away.

use std::{collections::VecDeque, io, path::Path, sync::Arc, time::Duration};

use throng_net::protocol::ClientId;
use throng_persistence::{Key, Reads, Store};
use throng_platform::time::Nanos;
use throng_profiler::{log_error, log_warn};
use throng_world::{
    GameWorld, Leaving, MailItem,
    ids::WorldId,
    saving::{Cut, LeftOut, SaveAnswer, SaveReport},
};

use super::{
    Claim, GoesBack, LOAD_AGAIN_AFTER, Load, LoadJournal, OnTrial, Parcel, SAVES, SaveFault, SaveNow, SavedNow, Saves,
    SavesStatus, SlotSaves, StoreOpenError, StoreToOpen, Told, WORLDS_MISSING_MAX, Waiting, WorldReader, open_as_set,
    store::loads_as_set,
};
use crate::{
    lifecycle::{Answer, NewWorld, Pending, WorldError},
    mailbox::Mailbox,
    server::{Command, Server, ServerControl, ServerError},
    world_slot::WorldSlot,
};

/// Worlds that are asked for a cut in one look at most: at 10 looks a second 320 of them.
const ASKED_PER_LOOK_MAX: usize = 32;

impl ServerControl {
    /// Has every world saved that has changed, with everybody in it. The answer comes when all of it is on disk; while the
    /// disk is dead there is none. Worlds that hang are not waited for, nor others for longer than 4 s: the answer names
    /// them.
    pub fn save_now(&self) -> Pending<SavedNow> {
        let (pending, answer) = Pending::new();
        self.push(Command::SaveNow(answer));
        pending
    }

    /// Lets this player in at their next log-in with what is saved of them, though a save was made without them since, so that others
    /// may have what they have.
    pub fn admit_player(&self, player: ClientId) -> Pending<()> {
        let (pending, answer) = Pending::new();
        self.push(Command::AdmitPlayer(player.0, answer));
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
        let environment = |name: &str| std::env::var(name).ok();
        let loads = loads_as_set(settings, beside.as_deref(), environment);
        match open_as_set(settings, beside.as_deref(), environment)? {
            Some(store) => self.save_in(store)?,
            None => return Ok(()),
        }
        if let Some(path) = loads
            && let Err(error) = self.journal_loads_in(&path)
        {
            log_warn!(
                SAVES,
                file = %path.display(),
                %error,
                "loads of worlds are not noted: one that ends the server would end the next one, too"
            );
        }
        Ok(())
    }

    /// Notes in this file which worlds are being loaded, so that one whose load ended two servers is parked in the next
    /// ([`crate::parking`]); after [`Self::save_in`] and before the first world. A server that opens the store of its settings does
    /// so by itself, beside the file of its saves.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn journal_loads_in(&mut self, path: &Path) -> io::Result<()> {
        if let Some(saves) = &mut self.saves {
            saves.loads = Some(Arc::new(LoadJournal::open(path)?));
        }
        Ok(())
    }

    /// Whether a world's load has ended servers before. Its plan is parked then.
    pub(crate) fn is_load_killer(&mut self, plan: &NewWorld, place: Option<WorldId>) -> bool {
        let killer =
            self.saves.as_ref().zip(plan.save_id).and_then(|(saves, id)| saves.loads.as_ref()?.take_killer(id));
        if let Some(failures) = killer {
            self.park_load(plan, place, failures);
        }
        killer.is_some()
    }

    /// Reads what is saved, for worlds that load parts of their map when somebody comes near
    /// ([`WorldState::take_cells`](throng_world::saving::WorldState::take_cells)). It waits for the disk, so it is for their
    /// long tasks. `None`: nothing is saved, or the store is not open yet ([`Self::open_saves`]).
    pub fn saved(&self) -> Option<Arc<dyn Reads>> {
        self.saves.as_ref().map(|saves| saves.reads.clone())
    }

    /// Breaks saving, to show that it does not go unseen.
    pub fn break_saves(&mut self, fault: SaveFault) {
        if let Some(saves) = &mut self.saves {
            saves.fault = Some(fault);
            saves.commits.forgets_refusals = fault == SaveFault::RefusalsForgotten;
        }
    }

    /// The number of this process among those that share a store, by the settings: a world of which each is to have one of
    /// its own is saved under a number that follows from it.
    pub fn saves_process(&self) -> u32 {
        self.store_to_open.settings.process
    }

    /// Whether anything is saved.
    pub fn is_saving(&self) -> bool {
        self.saves.is_some()
    }

    /// How saving stands; `None` where nothing is saved.
    pub fn saves_status(&self) -> Option<SavesStatus> {
        self.saves.as_ref().map(|saves| saves.status(self.worlds_unsaved()))
    }

    /// Worlds that have ticked since their last cut.
    fn worlds_unsaved(&self) -> usize {
        self.worlds.iter().filter(|slot| slot.saves.is_on && slot.saves.is_dirty).count()
    }

    /// What a world is to be loaded from; `None`: nothing is saved under it, or nothing at all.
    pub(crate) fn load_of(&self, new: &NewWorld) -> Option<Load> {
        let (saves, id) = (self.saves.as_ref()?, new.save_id?);
        Some(Load {
            id,
            newest: saves.commits.newest(Key::world(id)).flatten(),
            reads: saves.reads.clone(),
            journal: saves.loads.clone(),
        })
    }

    /// Whether a world of this number may be made now. An error: there is one, here or in another process. False: one is on its
    /// way out, cells of it are on their way to the disk, where the new one will read them, or the store has not said yet that
    /// it is this process's.
    pub(crate) fn may_make_saved(&mut self, id: u64) -> Result<bool, WorldError> {
        let now = self.timeline.start_of(self.frame_number.unwrap_or(0));
        let Some(saves) = &mut self.saves else { return Ok(true) };
        if saves.being_made.contains(&id) {
            return Err(WorldError::SaveInUse(id));
        }
        match saves.worlds.get(&id).and_then(|world| self.worlds.get(*world)) {
            None if saves.commits.has_cells_of(id) => Ok(false),
            None => match saves.claim(id, now) {
                Claim::Ours => Ok(true),
                Claim::Wait => Ok(false),
                Claim::Elsewhere { owner } => Err(WorldError::SavedElsewhere { id, owner }),
            },
            Some(slot) if slot.ending.is_some() => Ok(false),
            Some(_) => Err(WorldError::SaveInUse(id)),
        }
    }

    /// The same for a world that is made on the calling thread: it waits for the store. Before the server runs it also waits for
    /// the end of another process's lease, since that one may have died; while it runs an error says whose the world is.
    pub(crate) fn claim_saved(&mut self, id: u64) -> Result<(), WorldError> {
        let waits = CLAIM_WAITS + self.saves.as_ref().map_or(Nanos::ZERO, Saves::lease_length);
        // Counted, since a clock may stand still.
        let mut looks_left = waits.0 / CLAIM_LOOK_EVERY.0;
        let mut is_told = false;
        while !self.may_make_saved(id)? {
            let now = self.clock.now();
            let Some(saves) = &mut self.saves else { break };
            let Some(leases) = saves.world_leases.as_ref().filter(|leases| leases.is_waiting(id)) else {
                return Err(WorldError::SaveInUse(id));
            };
            let owner = leases.held_by(id);
            looks_left = looks_left.saturating_sub(1);
            match owner {
                Some(owner) if self.frame_number.is_some() || looks_left == 0 => {
                    return Err(WorldError::SavedElsewhere { id, owner });
                }
                None if looks_left == 0 => return Err(WorldError::OwnerUnknown(id)),
                Some(owner) if !std::mem::replace(&mut is_told, true) => log_warn!(
                    SAVES,
                    save = id,
                    process = owner,
                    "a world is another process's, which may have died: it is waited for until its lease ends or is prolonged"
                ),
                _ => {}
            }
            saves.commits.hurry();
            saves.step(now);
            self.clock.sleep_until(now + CLAIM_LOOK_EVERY);
        }
        Ok(())
    }

    /// A world that may be made is ordered: what it is loaded from.
    pub(crate) fn begin_making_saved(&mut self, new: &NewWorld) -> Option<Load> {
        let load = self.load_of(new)?;
        self.saves.as_mut()?.being_made.insert(load.id);
        Some(load)
    }

    /// Who reads what worlds are loaded from.
    pub(crate) fn world_reader(saves: &mut Option<Saves>) -> Option<&mut WorldReader> {
        saves.as_mut().map(|saves| &mut saves.world_reader)
    }

    /// Loads are over, or forgiven: the journal's file is to say so.
    pub(crate) fn write_loads(&mut self) {
        if let Some(Saves { loads: Some(loads), world_reader, .. }) = &mut self.saves {
            world_reader.write(loads);
        }
    }

    /// It was not made.
    pub(crate) fn end_making_saved(&mut self, plan: &NewWorld) {
        if let (Some(saves), Some(id)) = (&mut self.saves, plan.save_id) {
            saves.being_made.remove(&id);
            saves.made_in_vain.remove(&id);
            saves.world_gave_up(id);
        }
    }

    /// The world is ordered again in every frame until the one of the same number has ended.
    pub(crate) fn order_when_saved(&mut self, new: NewWorld, answer: Answer<WorldId>) {
        if let Some(saves) = &mut self.saves {
            saves.waiting.push_back(Waiting { new, answer, from: Nanos::ZERO });
        }
    }

    /// A world could not be read, since the store is away: it is ordered again in a while.
    pub(crate) fn order_when_store_is_back(&mut self, new: NewWorld, answer: Answer<WorldId>, now: Nanos) {
        self.end_making_saved(&new);
        match &mut self.saves {
            Some(saves) => saves.waiting.push_back(Waiting { new, answer, from: now + LOAD_AGAIN_AFTER }),
            None => answer.give(Err(WorldError::NotSaving)),
        }
    }

    /// Which of a new world is saved.
    pub(crate) fn begin_saves_of(&mut self, world: &mut GameWorld, save_id: Option<u64>) -> SlotSaves {
        let Some(saves) = &mut self.saves else { return SlotSaves::default() };
        world.keep_saves(true, save_id.is_some());
        if let Some(id) = save_id {
            saves.being_made.remove(&id);
            saves.worlds.insert(id, world.id());
            if saves.made_in_vain.remove(&id) || !saves.may_write_world(id) {
                saves.going_back.insert(world.id(), GoesBack::Surely);
            }
            if saves.loads.as_ref().is_some_and(|loads| loads.failures(id) > 0) {
                saves.on_trial.push(OnTrial { world: world.id(), id, loaded_at: world.ticks() });
            }
        }
        // Worlds that are made together are not saved together: the golden ratio spreads any number of them.
        let share = (f64::from(world.id().number()) * 0.618_033_988_75).fract();
        let now = self.frame_number.map_or(Nanos::ZERO, |frame| self.timeline.start_of(frame));
        let due = now + Nanos((saves.period.0 as f64 * share) as u64);
        SlotSaves {
            is_on: world.is_saved(),
            id: save_id,
            is_dirty: world.is_saved() && !saves.is_ending,
            is_asked: false,
            is_final: saves.is_ending,
            is_failing: false,
            due,
        }
    }

    /// Before clients are placed: what the disk says, and whose time has come.
    pub(crate) fn begin_saves(&mut self, now: Nanos) {
        let Some(saves) = &mut self.saves else { return };
        saves.step(now);
        let lost = saves.players.take_lost();
        let undone = saves.undo_stale();
        let answers = std::mem::take(&mut saves.answers);
        let cells = std::mem::take(&mut saves.cells_saved);
        let waiting: VecDeque<Waiting>;
        (waiting, saves.waiting) = std::mem::take(&mut saves.waiting).into_iter().partition(|order| order.from <= now);
        self.tell_saved(answers, cells);
        if let Some(undone) = undone {
            self.mark_going_back(&undone, now);
        }
        self.send_back_marked(now);
        for client in lost {
            self.addresses.dismiss_player(&self.mailboxes, client, "another server has taken its player over");
        }
        for Waiting { new, answer, from: _ } in waiting {
            self.order_world(new, answer);
        }
        self.ask_for_cuts(now);
    }

    fn tell_saved(&mut self, answers: Vec<(WorldId, SaveAnswer)>, cells: Vec<(WorldId, u32)>) {
        let answers = answers.into_iter().map(|(world, answer)| (world, MailItem::Saved(vec![answer])));
        let cells = cells.into_iter().map(|(world, tick)| (world, MailItem::CellsSaved(tick)));
        for (world, item) in answers.chain(cells) {
            if let Some(mailbox) = self.mailboxes.get(world) {
                mailbox.push(item);
            }
        }
    }

    /// Asks worlds for a cut whose time has come, some at a time.
    fn ask_for_cuts(&mut self, now: Nanos) {
        let Some(saves) = self.saves.as_mut().filter(|saves| now >= saves.look_at) else { return };
        saves.look_at = now + super::LOOK_EVERY;
        if !saves.on_trial.is_empty() {
            saves.on_trial.retain(|trial| {
                let Some(slot) = self.worlds.get(trial.world) else { return false };
                let is_well = slot.is_dormant || slot.is_resting() || trial.has_ticked_enough(slot);
                saves.loads.iter().filter(|_| is_well).for_each(|loads| {
                    loads.forgive(trial.id);
                    saves.world_reader.write(loads);
                });
                !is_well
            });
        }
        // What is there has not been taken: more of it would be newer, and no nearer to the disk.
        // While somebody waits for all worlds, no other is asked.
        if saves.commits.full.is_some() || !saves.save_now.is_empty() {
            return;
        }
        let due = |slot: &&mut WorldSlot| slot.saves.is_due(now) && slot.ending.is_none();
        for slot in self.worlds.iter_mut().filter(due).take(ASKED_PER_LOOK_MAX) {
            slot.saves.is_asked = true;
            slot.mailbox.push(MailItem::Save);
        }
    }

    /// Asks every world for a cut that has changed since its last one.
    pub(crate) fn ask_all_for_cuts(&mut self) {
        for slot in self.worlds.iter_mut() {
            // One that a worker has is in a tick just now.
            slot.saves.is_dirty |= slot.saves.is_on && slot.is_away();
            slot.saves.is_saved_or_asked(&slot.mailbox);
        }
    }

    /// Worlds that were asked for a cut and have not given one.
    fn asked_for_cuts(&self) -> usize {
        self.worlds.iter().filter(|slot| slot.saves.is_asked).count()
    }

    /// Takes what a world that has come home has to say of saves, before those who leave it are seen off. True: it could not be
    /// saved as it is, so nobody may leave it with what they have.
    pub(crate) fn take_saves(&mut self, world: &mut GameWorld) -> bool {
        let Some(saves) = &mut self.saves else { return false };
        let from = world.id();
        let slot = self.worlds.get_mut(from);
        let is_there = slot.is_some();
        let id = slot.as_ref().and_then(|slot| slot.saves.id);
        let name = world.name().clone();
        let has_leavers = world.has_leavers();
        let report = world.report_mut();
        let SaveReport { cut, failed, left_out, departed, departed_unsaved, strangers } =
            std::mem::take(&mut report.saves);
        let mut is_unsaved = failed.is_some();
        let mut is_told = false;
        let is_closing = self.addresses.is_closing();
        if let Some(slot) = slot {
            is_told = slot.saves.is_failing;
            slot.saves.is_failing = is_unsaved || is_told && cut.is_none();
            slot.saves.is_dirty = slot.saves.is_on && cut.is_none();
            if cut.is_some() || failed.is_some() {
                let now = self.timeline.start_of(self.frame_number.unwrap_or(0));
                slot.saves.answered(now + saves.period);
                slot.saves.is_final = saves.is_ending && (failed.is_some() || !has_leavers);
                if saves.is_ending && !slot.saves.is_final {
                    slot.saves.ask_once_more(&slot.mailbox);
                }
            }
            if failed.is_some() {
                saves.could_not_save(from);
                // It has had its chance: a world that ends does not wait for another.
                let ends = slot.ending.is_some() || self.held.leaving.contains(&from);
                slot.saves.is_dirty &= !ends;
                saves.ended_unsaved += usize::from(ends && is_closing);
                if slot.saves.is_final {
                    // No tick comes in which its game would see the last ones go.
                    saves.players.world_ended(from);
                }
            }
        }
        if let Some(why) = failed {
            saves.counts.cuts_failed += 1;
            if !is_told {
                log_error!(SAVES, world = %from, kind = &*name, why, "a world and its players cannot be saved as they are now");
            }
        }
        saves.counts.players_left_out += left_out.len() as u64;
        for LeftOut { client, why } in left_out {
            let Some(why) = why else { continue };
            log_error!(
                SAVES, world = %from, kind = &*name, client = client.0, why,
                "a player has what cannot be saved: their world is saved without them, and their record stays as it was; if they \
                 leave like that, or the server dies, they are not let in before the console's `player.admit` says so"
            );
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
            is_unsaved |= !saves.take_cut((from, &name, id), *cut, place_of);
        }
        departed.into_iter().for_each(|client| saves.players.departed(client));
        for client in departed_unsaved {
            saves.departed_unsaved(from, client);
        }
        if !is_there {
            saves.players.world_ended(from);
        }
        is_unsaved
    }

    /// The cut of a world that has been made again after a panic, as it is before its next tick.
    pub(crate) fn take_cut_of_reloaded(&mut self, id: WorldId, cut: Cut, now: Nanos) {
        let (Some(saves), Some(slot)) = (&mut self.saves, self.worlds.get_mut(id)) else { return };
        slot.saves.is_dirty = false;
        slot.saves.answered(now + saves.period);
        if saves.is_ending {
            slot.saves.ask_once_more(&slot.mailbox);
        }
        saves.take_cut((id, &slot.name, slot.saves.id), cut, |_| slot.saves.id);
    }

    /// Lets a player in who was left out of a save, with what was saved of them before.
    pub(crate) fn admit_player(&mut self, player: u64) -> Result<(), WorldError> {
        let saves = self.saves.as_mut().ok_or(WorldError::NotSaving)?;
        saves.players.admit(player);
        log_warn!(
            SAVES,
            client = player,
            "the operator lets a player in with what is saved of them, whatever others have from them since"
        );
        Ok(())
    }

    /// A client's connection has ended in this world; in none, if it had none.
    pub(crate) fn client_left_saves(&mut self, client: ClientId, world: Option<WorldId>) {
        if let Some(saves) = &mut self.saves {
            let saved = world.and_then(|world| self.worlds.get(world)).filter(|slot| slot.saves.is_on);
            saves.players.left(client, saved.map(|slot| slot.id));
        }
    }

    /// A world ends in good order: whatever its load is suspected of, it was not that.
    pub(crate) fn forgive_load_of(&mut self, world: WorldId) {
        let Some(saves) = &mut self.saves else { return };
        for trial in saves.on_trial.extract_if(.., |trial| trial.world == world) {
            saves.loads.iter().for_each(|loads| {
                loads.forgive(trial.id);
                saves.world_reader.write(loads);
            });
        }
    }

    /// A world is no more.
    pub(crate) fn world_left_saves(&mut self, world: WorldId, slot: &SlotSaves) {
        let Some(saves) = &mut self.saves else { return };
        saves.players.world_ended(world);
        if slot.is_asked {
            saves.could_not_save(world);
        }
        saves.ended_unsaved += usize::from(self.addresses.is_closing() && slot.is_on && slot.is_dirty);
        if let Some(id) = slot.id
            && saves.worlds.get(&id) == Some(&world)
        {
            saves.worlds.remove(&id);
            saves.world_gave_up(id);
        }
    }

    /// Has everything saved that has changed; the answer comes when it is on disk.
    pub(crate) fn save_now(&mut self, answer: Answer<SavedNow>) {
        self.ask_all_for_cuts();
        let until = self.timeline.start_of(self.frame_number.unwrap_or(0)) + SAVE_NOW_WAITS;
        match &mut self.saves {
            Some(saves) => saves.save_now.push(SaveNow { answer, until, missing: Vec::new() }),
            None => answer.give(Err(WorldError::NotSaving)),
        }
    }

    /// At the frame's end: what its worlds have brought goes to the writer.
    pub(crate) fn end_saves(&mut self, now: Nanos) {
        if let Some(saves) = &mut self.saves {
            if !saves.save_now.is_empty() {
                let asked = || self.worlds.iter().filter(|slot| slot.saves.is_asked);
                // One that hangs may do so for ever.
                let is_waited_for = asked().any(|slot| !slot.hangs(now));
                let silent: Vec<u32> = asked().map(|slot| slot.id.number()).take(WORLDS_MISSING_MAX).collect();
                let is_over = |asker: &mut SaveNow| !is_waited_for || now >= asker.until;
                let told = saves.save_now.extract_if(.., is_over).map(|SaveNow { answer, mut missing, .. }| {
                    // One that could not be saved may have been asked again, by somebody else.
                    missing.extend(&silent);
                    missing.sort_unstable();
                    missing.dedup();
                    missing.truncate(WORLDS_MISSING_MAX);
                    Told { answer, worlds_missing: missing }
                });
                let told = told.collect();
                saves.commits.add(Parcel::of_told(told));
            }
            saves.submit(now);
            self.control.published.set_saves_away(saves.is_away());
        }
    }

    /// When all clients are gone: saves every world that has changed, in frames, until everything is on disk or the time
    /// is up. True: it is, or nothing is saved here. A world does nothing more after its last cut, which is of a tick in which its
    /// game has seen everybody go: what it said to another world would be in that one's save, and not in its own.
    pub(crate) fn flush_saves(&mut self, frame: &mut u64) -> bool {
        let Some(saves) = &mut self.saves else { return true };
        saves.players.close();
        saves.is_ending = true;
        for slot in self.worlds.iter_mut() {
            let has_leavers = slot.home.as_ref().is_some_and(|hosted| hosted.world.has_leavers());
            // What waits there may be that a client has to go.
            if has_leavers || !slot.mailbox.is_empty() {
                slot.saves.ask_once_more(&slot.mailbox);
            }
        }
        let worlds = self.worlds.len().max(saves.worlds.len()) as u64;
        let give_up_at = self.clock.now() + Nanos(FLUSH_PER_1000_WORLDS.0 * worlds.div_ceil(1_000).max(1));
        self.ask_all_for_cuts();
        for slot in self.worlds.iter_mut() {
            slot.saves.is_final = slot.saves.is_on && !slot.saves.is_asked;
        }
        let is_settled = |server: &Self| server.saves.as_ref().is_none_or(Saves::is_settled);
        while (self.asked_for_cuts() > 0 || !is_settled(self)) && self.clock.now() < give_up_at {
            *frame += 1;
            self.clock.sleep_until(self.timeline.start_of(*frame));
            *frame = self.timeline.frame_at(self.clock.now()).max(*frame);
            self.frame(*frame);
        }
        let unsaved = self.worlds_unsaved();
        let Some(mut saves) = self.saves.take() else { return true };
        let unsaved = unsaved + saves.ended_unsaved;
        if saves.is_settled() {
            saves.give_worlds_up(self.clock.now());
        }
        let is_all_saved = saves.commits.finish(FINISH_MAX) && unsaved == 0;
        // Worlds that nobody has begun to build are no loads that the process ended in.
        self.maker.drop_orders();
        if let Some(loads) = &saves.loads {
            saves.world_reader.finish(loads, LOADS_WRITTEN_MAX);
        }
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

/// A world that is made on the calling thread waits for the store in steps of this.
const CLAIM_LOOK_EVERY: Nanos = Nanos::from_millis(1);

/// So long it waits beyond the length of a lease. Too short: a PostgreSQL that is busy at the start of many servers keeps one from
/// starting. Too long: one that does not answer is reported late.
const CLAIM_WAITS: Nanos = Nanos::from_secs(10);

/// A world whose load ended a server, and that has been loaded since, has done so many ticks until that is forgotten. One that
/// has nothing to do before, or ends in good order, has shown as much.
const TICKS_UNTIL_FORGIVEN: u32 = 20;

impl OnTrial {
    fn has_ticked_enough(&self, slot: &WorldSlot) -> bool {
        let ticks = slot.home.as_ref().map(|hosted| hosted.world.ticks());
        ticks.is_some_and(|ticks| ticks.saturating_sub(self.loaded_at) >= TICKS_UNTIL_FORGIVEN)
    }
}

/// Who wants everything saved waits so long for worlds: they are asked at once, and answer with their next tick. Too short: slow
/// worlds are left out. Too long: while somebody waits no other world is asked, and the console gives up.
const SAVE_NOW_WAITS: Nanos = Nanos::from_secs(4);

/// What a flush of so many worlds may take (R36).
const FLUSH_PER_1000_WORLDS: Nanos = Nanos::from_secs(10);

/// A store that is in the middle of something when that time is up may take so long to end it. Together with the drain before
/// it is less than 15 s (R36).
const FINISH_MAX: Nanos = Nanos::from_secs(2);

/// The journal of loads is a small file. On a disk that does not take it the next server may take worlds for suspects that were being
/// loaded just then.
const LOADS_WRITTEN_MAX: Duration = Duration::from_millis(200);

impl SlotSaves {
    /// It is to be asked for a cut.
    fn is_due(&self, now: Nanos) -> bool {
        self.is_on && self.is_dirty && !self.is_asked && !self.is_final && now >= self.due
    }

    /// It has given a cut, or could not.
    fn answered(&mut self, due: Nanos) {
        (self.is_asked, self.due) = (false, due);
    }

    /// It is to give one cut more, though all of it may be saved.
    fn ask_once_more(&mut self, mailbox: &Mailbox) {
        self.is_dirty = self.is_on;
        self.is_saved_or_asked(mailbox);
    }

    /// Whether all of it is saved, or all that ever will be, for one that is to be taken out between two ticks; if not, it is
    /// asked for a cut.
    pub fn is_saved_or_asked(&mut self, mailbox: &Mailbox) -> bool {
        if !self.is_on || !self.is_dirty || self.is_final {
            return true;
        }
        if !std::mem::replace(&mut self.is_asked, true) {
            mailbox.push(MailItem::Save);
        }
        false
    }
}
