//! Turnover: worlds come and go between two frames.
//!
//! All of it is the frame thread's: a request reserves a place and goes to the world maker; what the maker has built
//! gets its place, its mailbox and its phase in the grid, and ticks from the next frame on; what is to end lets its
//! clients go in its next tick, is taken out of the table when it is home and empty, and goes to the maker to be
//! dropped. Some of each in a frame at most, so that thousands at once cost no tick.
//!
//! Cost: under a microsecond for each world that comes or goes.

use std::sync::PoisonError;

use throng_net::protocol::ClientId;
use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_error, log_info, log_warn};
use throng_scheduler::{FrameGrid, TickPhase, TooManyWait};
use throng_world::{
    MailItem,
    ids::{WorldId, WorldKindId},
    transfer::WorldMessage,
};

use crate::{
    address_table::CLIENTS,
    directory::Directory,
    hosted_world::HostedWorld,
    lifecycle::{Answer, AskedByWorld, NewWorld, WorldError, WorldMade},
    server::{Command, Server, ServerControl, ServerError},
    world_maker::{Made, Order},
    world_slot::WorldSlot,
    worlds::WORLDS_MAX,
};

log_category!(WORLDS = "server.worlds");

/// Worlds that get their place in a frame at most: at 60 frames a second 3,840, while the maker builds some thousands.
const ARRIVALS_PER_FRAME_MAX: usize = 64;

/// Worlds that are taken out in a frame at most.
const ENDS_PER_FRAME_MAX: usize = 64;

impl ServerControl {
    /// Asks for a world, for a system of one, which is told by a message: [`WorldMade`] with
    /// `number`. So the answer enters that world as all else does, and a replay of it has it in the same tick. What a system
    /// learns from a [`Pending`](crate::lifecycle::Pending) no log holds.
    pub fn create_world_for(&self, asker: WorldId, number: u64, new: NewWorld) {
        self.push(Command::CreateWorldFor(new, asker, number));
    }
}

impl Server {
    /// Creates a world at once, on the calling thread: before the server runs, or between two frames. It ticks from the
    /// next frame on.
    pub fn create_world(&mut self, kind: WorldKindId, seed: u64) -> Result<WorldId, ServerError> {
        self.create_world_as(NewWorld::new(kind, seed))
    }

    /// As `create_world`, with parameters.
    pub fn create_world_as(&mut self, new: NewWorld) -> Result<WorldId, ServerError> {
        let NewWorld { kind, seed, ref parameters, save_id } = new;
        if let Some(save_id) = save_id {
            self.open_saves()?;
            self.claim_saved(save_id)?;
        }
        let load = self.load_of(&new);
        let Some(id) = self.worlds.reserve() else {
            self.end_making_saved(&new);
            return Err(WorldError::Full(WORLDS_MAX).into());
        };
        if self.is_culprit(&new, Some(id)) || self.is_load_killer(&new, Some(id)) {
            self.hold(id, new);
            return Ok(id);
        }
        let Some(row) = self.kinds.get(usize::from(kind.0)) else {
            self.end_making_saved(&new);
            return Err(WorldError::NoSuchKind(kind).into());
        };
        let built = {
            let mut kind = row.kind.lock().unwrap_or_else(PoisonError::into_inner);
            kind.build_world(id, seed, parameters.as_deref(), &self.schema, &self.interest)
        };
        match built {
            Ok(mut world) => {
                match load.map_or(Ok(false), |load| load.into_world(&mut world)) {
                    Ok(is_loaded) => self.counts.saves.worlds_loaded += u64::from(is_loaded),
                    // One that cannot be loaded must not keep the others from being there.
                    Err(WorldError::Panicked(_)) => {
                        self.park_load(&new, Some(id), 1);
                        self.hold(id, new);
                        return Ok(id);
                    }
                    Err(error) => {
                        self.worlds.release(id);
                        self.end_making_saved(&new);
                        return Err(error.into());
                    }
                }
                world.set_rules(&self.rules);
                self.place(world, new, true);
                Ok(id)
            }
            Err(error) => {
                self.worlds.release(id);
                self.end_making_saved(&new);
                Err(error.into())
            }
        }
    }

    /// Sends a request to the maker.
    pub(crate) fn order_world(&mut self, new: NewWorld, answer: Answer<WorldId>) {
        let Some(row) = self.kinds.get(usize::from(new.kind.0)) else {
            return answer.give(Err(WorldError::NoSuchKind(new.kind)));
        };
        let name = row.name.clone();
        let _ = self.is_culprit(&new, None) || self.is_load_killer(&new, None);
        if let Some(left) = self.parking.left(&new, self.timeline_now()) {
            self.counts.server.parked_refusals += 1;
            return answer.give(Err(WorldError::Parked { kind: name.to_string(), left_s: left.seconds() }));
        }
        if let Some(save_id) = new.save_id {
            match self.may_make_saved(save_id) {
                Ok(true) => {}
                Ok(false) => return self.order_when_saved(new, answer),
                Err(error) => return answer.give(Err(error)),
            }
        }
        match self.worlds.reserve() {
            Some(id) => self.make_in_place(id, new, answer),
            None => {
                self.end_making_saved(&new);
                answer.give(Err(WorldError::Full(WORLDS_MAX)));
            }
        }
    }

    /// Has a world made in a place that is reserved for it.
    pub(crate) fn make_in_place(&mut self, id: WorldId, new: NewWorld, answer: Answer<WorldId>) {
        let Some(row) = self.kinds.get(usize::from(new.kind.0)) else {
            return answer.give(Err(WorldError::NoSuchKind(new.kind)));
        };
        let (kind, name) = (row.kind.clone(), row.name.clone());
        let (load, plan) = (self.begin_making_saved(&new), new.clone());
        let order = Order {
            id,
            kind,
            name,
            new,
            load,
            record: None,
            schema: self.schema.clone(),
            interest: self.interest.clone(),
            rules: self.rules.clone(),
        };
        if let Err(TooManyWait) = self.maker.make(order, answer, Self::world_reader(&mut self.saves)) {
            self.worlds.release(id);
            self.end_making_saved(&plan);
        }
    }

    /// Has a world end; its mailbox takes nothing more.
    pub(crate) fn retire_world(&mut self, id: WorldId, answer: Answer<()>) {
        let Some(slot) = self.worlds.get_mut(id).filter(|slot| slot.ending.is_none()) else {
            return answer.give(Err(WorldError::NoSuchWorld(id)));
        };
        slot.ending = Some(answer);
        if slot.saves.is_on {
            // With those who are in it.
            slot.mailbox.push(MailItem::Save);
        }
        slot.mailbox.push(MailItem::End { reason: "its world has ended" });
        // Who comes after the end was told would wait in it for ever: whoever sends finds no mailbox from here on.
        self.mailboxes.remove(id);
        self.ending.push_back(id);
    }

    /// Puts worlds that have been built into their places, and takes out those that are over.
    pub(crate) fn turn_over_worlds(&mut self, frame: u64) {
        if let Some(reader) = Self::world_reader(&mut self.saves) {
            self.maker.read(reader);
        }
        for _ in 0..ARRIVALS_PER_FRAME_MAX {
            let Some(Made { id, plan, world, answer }) = self.maker.take_made() else { break };
            if plan.save_id().is_some() {
                self.write_loads();
            }
            match world {
                Ok((mut world, is_loaded)) => {
                    self.counts.saves.worlds_loaded += u64::from(is_loaded);
                    // Those that it was made with may have been replaced meanwhile.
                    world.set_rules(&self.rules);
                    let is_held = self.held.has(id);
                    self.place(*world, plan, is_held);
                    self.hold_no_longer(id);
                    self.leave_if_parked(id, self.timeline.start_of(frame));
                    self.counts.server.worlds_created += 1;
                    answer.give(Ok(id));
                }
                Err(error @ WorldError::StoreAway { .. }) if !self.held.has(id) => {
                    log_warn!(WORLDS, %error, "a world waits for the store of the saves");
                    self.worlds.release(id);
                    self.order_when_store_is_back(plan, answer, self.timeline.start_of(frame));
                }
                Err(error) => {
                    log_error!(WORLDS, world = %id, %error, "a world could not be made");
                    self.counts.saves.worlds_not_read += u64::from(matches!(error, WorldError::NotRead { .. }));
                    if plan.save_id().is_some() && matches!(error, WorldError::Panicked(_)) {
                        // Whoever wants it asks again, in the next frame as a rule.
                        self.parking.panicked(&plan, self.timeline.start_of(frame));
                        self.publish_parked(self.timeline.start_of(frame));
                    }
                    self.end_making_saved(&plan);
                    self.worlds.release(id);
                    if self.held.has(id) {
                        self.hold_no_longer(id);
                        self.directory.world_ended(id);
                    }
                    answer.give(Err(error));
                }
            }
        }
        self.answer_worlds();
        self.look_after_parked(self.timeline.start_of(frame));
        for _ in 0..self.ending.len().min(ENDS_PER_FRAME_MAX) {
            let Some(id) = self.ending.pop_front() else { break };
            if !self.end_if_over(id) {
                self.ending.push_back(id);
            }
        }
        self.finish_reloads(frame);
        self.tell_recorder_of_worlds(self.timeline.start_of(frame));
    }

    /// Worlds that have asked for worlds are told what became of that.
    fn answer_worlds(&mut self) {
        let Self { asked_by_worlds, mailboxes, counts, .. } = self;
        asked_by_worlds.retain(|AskedByWorld { asker, number, pending }| {
            let Some(answer) = pending.try_take() else { return true };
            if let Err(error) = &answer {
                log_error!(WORLDS, %asker, %error, "a world that another one asked for could not be made");
            }
            let message = WorldMessage::of(*asker, &WorldMade { number: *number, world: answer.ok() });
            let message = message.expect("it has no limits");
            match mailboxes.get(*asker).map(|mailbox| mailbox.push_message(message)) {
                Some(true) => {}
                Some(false) => counts.server.messages_dropped += 1,
                None => counts.server.messages_undeliverable += 1,
            }
            false
        });
    }

    /// Takes a world out that is home and has nobody in it. False: not yet.
    fn end_if_over(&mut self, id: WorldId) -> bool {
        let Some(slot) = self.worlds.get(id) else { return true };
        // Dormant worlds have nobody in them and need not be woken to find that out.
        let has_ended = slot.home.as_ref().is_some_and(|hosted| hosted.world.clients_count() == 0);
        let is_saved = !slot.saves.is_on || !slot.saves.is_dirty;
        let is_told = slot.is_dormant || slot.mailbox.is_empty();
        if !has_ended || !is_told || !is_saved {
            return false;
        }
        self.forgive_load_of(id);
        let Some(mut slot) = self.take_out(id, false) else { return true };
        if let Some(mut hosted) = slot.home.take() {
            self.game_totals.withdraw(hosted.world.gauges_mut());
            self.maker.drop_world(hosted);
        }
        self.counts.server.worlds_retired += 1;
        if let Some(answer) = slot.ending.take() {
            answer.give(Ok(()));
        }
        true
    }

    /// Takes a world out of all tables. Mail that waits for it is answered for: a traveller on its way there goes back
    /// with what it carries, and who comes from nowhere is disconnected and told. `keeps_place`: it may come again, by the
    /// same id.
    pub(crate) fn take_out(&mut self, id: WorldId, keeps_place: bool) -> Option<WorldSlot> {
        let slot = if keeps_place { self.worlds.vacate(id)? } else { self.worlds.remove(id)? };
        self.held.news.went(id);
        self.mailboxes.remove(id);
        for item in slot.mailbox.close().drain() {
            match item {
                // As if it was sent only now that the world is no more.
                MailItem::Arrival { client, from, transfer: Some(transfer) } => {
                    self.send(client, from, id, transfer);
                }
                MailItem::Arrival { client, .. } => self.disconnect(client, "its world has ended"),
                MailItem::Message(_) => self.counts.server.messages_undeliverable += 1,
                _ => {}
            }
        }
        self.world_left_saves(id, &slot.saves);
        if !keeps_place {
            self.directory.world_ended(id);
        }
        self.worlds_changed = true;
        Some(slot)
    }

    /// Ends a world that panicked: its state may be half changed, so it must not tick again. One that keeps checkpoints is
    /// made again in its place ([`crate::reload`]); otherwise its clients keep their connections and wait for another, see
    /// [`crate::stranded`].
    pub(crate) fn end_panicked(&mut self, mut hosted: Box<HostedWorld>, now: Nanos) {
        let id = hosted.world.id();
        log_error!(WORLDS, world = %id, name = &**hosted.world.name(), "world panicked in its tick and is parked");
        self.counts.server.worlds_parked += 1;
        if hosted.world.has_finished_tick() {
            // Its record panicked, and not its tick: who left has left, and what was cut was cut.
            self.see_off(&mut hosted.world);
        }
        if !self.park_if_it_panics_often(id, now) {
            match self.begin_reload(hosted, now) {
                Ok(()) => return,
                Err(unkept) => hosted = unkept,
            }
        }
        if let Some(answer) = self.take_out(id, false).and_then(|mut slot| slot.ending.take()) {
            answer.give(Ok(()));
        }
        // Where it is saved, everybody goes back to the last cut.
        let lost = self.take_unsaved_travellers(&mut hosted.world);
        // Those who were already out of it, or turned back at its door, go on.
        self.see_off(&mut hosted.world);
        let (clients, mut rest) = hosted.into_clients();
        self.game_totals.withdraw(rest.world.gauges_mut());
        lost.into_iter().chain(clients).for_each(|client| self.strand(client, now));
        self.maker.drop_world(rest);
    }

    fn park_if_it_panics_often(&mut self, id: WorldId, now: Nanos) -> bool {
        let Some(slot) = self.worlds.get(id) else { return false };
        let Some(parked_for) = self.parking.panicked(&slot.plan, now) else { return false };
        self.counts.server.parkings += 1;
        self.publish_parked(now);
        log_error!(
            WORLDS,
            kind = &*slot.name,
            seed = slot.plan.seed,
            parked_s = parked_for.as_secs_f64(),
            "worlds of this plan panicked again and again: none is made by it for now; the console's `world.unpark` ends that"
        );
        true
    }

    /// Ends a client's connection outside of any world.
    pub(crate) fn disconnect(&mut self, client: Box<throng_world::Client>, reason: &'static str) {
        if let Some(client_id) = self.disconnect_unplaced(client, reason) {
            self.directory.left(client_id);
        }
    }

    /// The same for one that the directory does not take for placed, and so is not told of.
    pub(crate) fn disconnect_unplaced(
        &mut self,
        mut client: Box<throng_world::Client>,
        reason: &'static str,
    ) -> Option<ClientId> {
        self.counts.server.disconnects += 1;
        let key = client.key();
        self.addresses.say_goodbye(&mut client, self.timeline_now());
        let client_id = self.addresses.left(key)?;
        self.client_left_saves(client_id, None);
        log_info!(CLIENTS, client = client_id.0, reason, "client left");
        Some(client_id)
    }

    fn timeline_now(&self) -> Nanos {
        self.timeline.start_of(self.frame_number.unwrap_or(0))
    }

    /// Gives a world its mailbox and its phase.
    fn place(&mut self, mut world: throng_world::GameWorld, plan: NewWorld, keeps_place: bool) {
        world.want_hash(self.hashes_wanted);
        world.set_tuned(&self.tuned);
        let saves = self.begin_saves_of(&mut world, plan.save_id);
        let (rate, id) = (world.rate(), world.id());
        let (phase, frame) = match self.frame_number {
            Some(frame) => (self.worlds.take_phase(rate, self.timeline.grid), frame + 1),
            // `prepare` lays all worlds that there are into the grid of all rates.
            None => ((0, TickPhase::new(0, rate, FrameGrid::for_rates(&[rate]))), 0),
        };
        let mut slot = WorldSlot::new(world, plan, phase, frame, self.checkpoint_period_s, self.recording.queue());
        slot.keeps_place = keeps_place;
        slot.saves = saves;
        self.held.news.came(id, &slot.name, &slot.plan, keeps_place);
        self.mailboxes.insert(id, slot.mailbox.clone());
        self.worlds.insert(slot);
        self.worlds_changed = true;
    }

    /// Spreads the worlds that there are over the grid.
    pub(crate) fn lay_worlds_into(&mut self, grid: FrameGrid) {
        self.worlds.forget_phases();
        let rates: Vec<_> = self.worlds.iter().map(|slot| slot.rate).collect();
        let phases: Vec<_> = rates.into_iter().map(|rate| self.worlds.take_phase(rate, grid)).collect();
        self.worlds.iter_mut().zip(phases).for_each(|(slot, phase)| slot.set_phase(phase));
        self.frame_number = Some(0);
    }
}
