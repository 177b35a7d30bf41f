//! Reload: a world that panicked is made again, and its players stay in it.
//!
//! The world that panicked may be half changed and must not tick again. Its kind keeps checkpoints, so there is a record
//! of it ([`crate::world_record`]): the maker's thread builds another one from the same plan, loads the newest checkpoint
//! and does all ticks since, up to, not into, the one that failed. It takes the place of the one that panicked, with its
//! id and its mailbox: whatever was sent to it meanwhile waits there. Its clients' connections go on, and their
//! programs see it as a world that they enter.
//!
//! ```text
//! panicked --> clients, mail, record --> maker's thread: build, load, replay --> same place, same clients
//!    |                                      |  the log panics, too: without it, if it is not saved
//!    '-- parked, or no record               '- that fails, too
//!              '-----------------> its clients are placed elsewhere (`stranded`)
//! ```
//!
//! What clients said in the tick that failed is dropped, since it may have been the cause. Who came in it comes again,
//! with what it carries, and so do messages of other worlds: they carry what somebody owns. A plan whose worlds panic
//! again and again is parked as ever ([`crate::parking`]).
//!
//! A world that is saved takes up what the one before owed its saves, and is saved at once as it is then: with those who left it in
//! the tick that failed. What was saved before is not said again (`throng_world::saving`).
//!
//! On the frame thread nothing but moves of pointers; cost on the maker's thread: a build, a load and as many ticks as
//! there are in `checkpoint_period_s`, without clients.

use throng_platform::time::Nanos;
use throng_profiler::log_info;
use throng_world::{Client, Leaving, MailItem, saving::SaveReport};

use crate::{
    hosted_world::HostedWorld,
    remake::{Order, RELOADS, Remade, SavesOrder, Waiting},
    server::Server,
    world_record::WorldRecord,
};

impl Server {
    /// Has a world that panicked made again. Gives it back if that cannot be: then its clients need another.
    pub(crate) fn begin_reload(&mut self, mut hosted: Box<HostedWorld>, now: Nanos) -> Result<(), Box<HostedWorld>> {
        let id = hosted.world.id();
        let Some(slot) = self.worlds.get_mut(id).filter(|slot| slot.ending.is_none()) else { return Err(hosted) };
        let kind = self.kinds.get(usize::from(slot.plan.kind.0)).filter(|_| !self.addresses.is_closing());
        let (Some(kind), Some(record)) = (kind, hosted.take_record()) else { return Err(hosted) };
        slot.begin_reload();
        let is_saved = slot.saves.is_on;
        let mut order = Order {
            id,
            kind: kind.kind.clone(),
            plan: slot.plan.clone(),
            schema: self.schema.clone(),
            interest: self.interest.clone(),
            rules: self.rules.clone(),
            record,
            saves: None,
        };
        // The tick that failed is done again: what it said to others was not said, and whom it sent away is still here.
        let report = hosted.world.report_mut();
        report.messages.clear();
        report.long_tasks.clear();
        report.saves = SaveReport::default();
        let is_sent = |leaving: &mut Leaving| matches!(leaving, Leaving::Travel { .. });
        let mut clients: Vec<Box<Client>> = Vec::new();
        for leaving in report.leaving.extract_if(.., is_sent) {
            if let Leaving::Travel { client, .. } = leaving {
                clients.push(client);
            }
        }
        self.see_off(&mut hosted.world);
        for item in hosted.take_mail() {
            match item {
                MailItem::Arrival { client, from, transfer } => self.mailboxes.push_arrival(id, client, from, transfer),
                // What clients said may be the cause, and so may what an operator asked.
                MailItem::Datagram { .. } | MailItem::Taken | MailItem::Question(_) => {}
                item => {
                    if let Some(mailbox) = self.mailboxes.get(id) {
                        mailbox.push_again(item);
                    }
                }
            }
        }
        let (others, mut rest) = hosted.into_clients();
        clients.extend(others);
        order.saves = is_saved.then(|| SavesOrder {
            left: rest.world.leave_saves(),
            players: clients.iter().map(|client| (client.key(), client.client_id())).collect(),
            of_world: order.plan.save_id().is_some(),
        });
        clients.iter_mut().for_each(|client| _ = client.lose_world(now));
        self.game_totals.withdraw(rest.world.gauges_mut());
        self.maker.drop_world(rest);
        self.reloads.waiting.push(Waiting { id, since: now, clients });
        let done = self.reloads.done.0.clone();
        self.maker.remake(id, Box::new(move || _ = done.send((id, order.carry_out()))));
        Ok(())
    }

    /// Puts worlds that were made again into their places.
    pub(crate) fn finish_reloads(&mut self, frame: u64) {
        if self.reloads.waiting.is_empty() {
            return;
        }
        let now = self.timeline.start_of(frame);
        while let Ok((id, remade)) = self.reloads.done.1.try_recv() {
            let Some(place) = self.reloads.waiting.iter().position(|waiting| waiting.id == id) else { continue };
            let Waiting { clients, since, .. } = self.reloads.waiting.swap_remove(place);
            let is_wanted = self.worlds.get(id).is_some_and(|slot| slot.is_reloading);
            match remade {
                // An operator has taken the world out meanwhile.
                _ if !is_wanted => clients.into_iter().for_each(|client| self.strand(client, now)),
                Some(remade) => self.put_back(*remade, clients, since, frame),
                None => {
                    let slot = self.take_out(id, false);
                    if let Some(answer) = slot.and_then(|mut slot| slot.ending.take()) {
                        answer.give(Ok(()));
                    }
                    clients.into_iter().for_each(|client| self.strand(client, now));
                }
            }
        }
    }

    #[expect(clippy::vec_box, reason = "a client moves as a pointer, from world to world")]
    fn put_back(&mut self, remade: Remade, clients: Vec<Box<Client>>, since: Nanos, frame: u64) {
        let Remade { mut world, checkpoint, replayed, mut arrivals, messages, cut } = remade;
        let (id, now) = (world.id(), self.timeline.start_of(frame));
        if let Some(cut) = cut {
            self.take_cut_of_reloaded(id, *cut, now);
        }
        world.set_rules(&self.rules);
        world.set_tuned(&self.tuned);
        world.want_hash(self.hashes_wanted);
        self.game_totals.adopt(world.gauges_mut());
        let players = clients.len();
        for mut client in world.put_back(clients, since) {
            // It came since, and nobody has told the game of it, or what the game did with it is undone.
            let came = arrivals.iter().rposition(|arrival| arrival.client == client.key());
            let came = came.map(|place| arrivals.swap_remove(place));
            let (from, transfer) = came.map_or((None, None), |arrival| {
                arrival.refused.into_iter().for_each(|refused| client.refuse_travel(refused));
                (arrival.from, arrival.transfer)
            });
            self.mailboxes.push_arrival(id, client, from, transfer);
        }
        let mailbox = self.mailboxes.get(id);
        for message in messages {
            let is_taken = mailbox.is_some_and(|mailbox| mailbox.push_message(message));
            self.counts.server.messages_dropped += u64::from(!is_taken);
        }
        let (period_s, ticks) = (self.checkpoint_period_s, world.ticks());
        let Some(slot) = self.worlds.get_mut(id) else { return };
        let record = WorldRecord::go_on(&mut world, &slot.plan, period_s, self.recording.queue(), checkpoint);
        slot.come_back(world, record, frame);
        self.counts.server.worlds_reloaded += 1;
        let ticks_replayed = replayed.unwrap_or(0);
        log_info!(
            RELOADS,
            world = %id,
            kind = &*slot.name,
            players,
            tick = ticks,
            ticks_replayed,
            is_log_lost = replayed.is_none(),
            took_ms = now.saturating_sub(since).as_millis_f64(),
            "a world that panicked goes on as it was before the tick that failed"
        );
    }
}
