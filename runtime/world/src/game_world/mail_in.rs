//! Mail in: what has come since the last tick, taken in before the systems run.
//!
//! Clients that come are in the world's table, and what other worlds say lies where systems read it, before the first
//! datagram is opened (`batches`). Resources that hold something are noted, and emptied after the systems.
//!
//! On the world's own thread. Allocates for who comes; nothing in a steady tick.

use throng_net::control::SchemaHash;
use throng_pack::PackError;
use throng_replication::{ReplicationRules, TimeFactor};

use super::{Filled, GameWorld, own};
use crate::{
    client::Client,
    ids::{ClientKey, WorldId},
    inbox::{Inbox, InboxMessage},
    mail::{Mail, MailItem},
    report::Leaving,
    tick_resources::{Arrival, Arrivals, WorldMessages},
    transfer::{Transfer, WorldMessage},
    worker::ForkJoin,
};

impl GameWorld {
    /// Takes newcomers in, hands messages to the game and opens datagrams. Who comes and goes is taken in before the
    /// first datagram is opened. Returns whether there is anything that systems are to see or the host wants.
    pub(super) fn take_mail<H: ForkJoin>(&mut self, mail: &mut Mail, worker: &mut H::Worker, helpers: &H) -> bool {
        let mut datagrams_count = 0;
        let items_count = mail.items.len();
        for item in &mut mail.items {
            if matches!(item, MailItem::Datagram { .. }) {
                datagrams_count += 1;
                continue;
            }
            let taken = std::mem::replace(item, MailItem::Taken);
            self.take_item(taken);
        }
        if datagrams_count > 0 && !self.clients.is_empty() {
            self.open_datagrams(mail, datagrams_count, worker, helpers);
        }
        mail.clear();
        let Filled { arrivals, departures, messages, inbox } = self.filled;
        let said = inbox && !self.ecs.resource::<Inbox>().is_empty();
        let has_turned = self.saving.store.has_turned;
        said || arrivals || departures || messages || has_turned || items_count > datagrams_count
    }

    fn take_item(&mut self, item: MailItem) {
        match item {
            MailItem::Arrival { client, from, transfer } => self.take_in(client, from, transfer),
            MailItem::Message(message) => self.note_world_message(message),
            MailItem::Dismiss { client, reason } => self.dismiss(client, reason),
            MailItem::Rules(rules) => self.set_rules(&rules),
            MailItem::Tuned(values) => self.set_tuned(&values),
            MailItem::Save => self.want_cut(),
            MailItem::Saved(answers) => self.note_save_answers(&answers),
            MailItem::CellsSaved(tick) => self.note_cells_saved(tick),
            MailItem::Question(question) => self.questions.push(question),
            MailItem::End { reason } => self.clients.iter_mut().for_each(|client| client.leave(reason)),
            MailItem::Datagram { .. } | MailItem::Taken => {}
        }
    }

    /// Puts rules into force, as of this tick.
    pub fn set_rules(&mut self, rules: &ReplicationRules) {
        let ticks_per_s = f32::from(self.rate.0);
        let resolved = rules.resolved(ticks_per_s);
        // New rules make every copy current once; those that change nothing here must not.
        if *self.rules != resolved {
            *self.rules = resolved;
            let views = self.clients.iter_mut().filter_map(|client| client.view.as_mut());
            own(&mut self.replication).set_rules(&self.rules, ticks_per_s, views);
        }
        self.set_scan_range(rules.scan_range_m);
    }

    /// Clients are told half as often of what is not near them, because there is too little time; or as usual again.
    pub fn thin_far_updates(&mut self, is_thinned: bool) {
        own(&mut self.replication).set_thinned(is_thinned);
    }

    /// How fast the host lets this world's time run, from the next tick on: ticks come less often, and each is as long as
    /// ever to the game. Clients are told.
    pub fn set_time_factor(&mut self, factor: TimeFactor) {
        if self.replication.time_factor() != factor {
            own(&mut self.replication).set_time_factor(factor);
            if let Some(mut log) = self.log() {
                log.time_factor(factor);
            }
        }
    }

    /// How fast it runs.
    pub fn time_factor(&self) -> TimeFactor {
        self.replication.time_factor()
    }

    /// Takes a client in, unless it carries what this world cannot read: then it goes back with it.
    fn take_in(&mut self, mut client: Box<Client>, from: Option<WorldId>, transfer: Option<Transfer>) {
        if let Some(carried) = &transfer
            && let Err(error) = self.check_transfer(carried)
        {
            let transfer = carried.clone();
            self.report.leaving.push(Leaving::Returned { client, to: from, transfer, error });
            return;
        }
        client.enter(own(&mut self.replication), f32::from(self.rate.0), self.reactive.is_some());
        if !std::mem::replace(&mut client.knows_schema, true) {
            let message = SchemaHash(self.replication.schema().hash()).encode();
            // Of a connection that is new the queue has room. Before a system can say anything.
            let _ = client.connection.send_reliable(&message);
        }
        let refused = client.refused_travel.take();
        client.has_returned = refused.is_some();
        let arrival = Arrival {
            client: client.key,
            client_id: client.client_id(),
            user_data: Box::new(*client.user_data()),
            from,
            transfer,
            refused,
        };
        self.sent.begin();
        self.clients.add(client);
        self.delivery.outdate();
        self.note_arrival(arrival);
    }

    /// What this world has against a transfer.
    pub(crate) fn check_transfer(&self, transfer: &Transfer) -> Result<(), PackError> {
        self.transfer_checks.check(transfer)
    }

    /// The systems see an arrival in their next run.
    pub(crate) fn note_arrival(&mut self, arrival: Arrival) {
        self.filled.arrivals = true;
        self.ecs.resource_mut::<Inbox>().players.arrive(arrival.client);
        self.ecs.resource_mut::<Arrivals>().0.push(arrival);
    }

    /// The systems see in their next run a message that came in no datagram: out of a log, or of a test.
    pub(crate) fn note_message(&mut self, message: &InboxMessage<'_>) {
        self.filled.inbox = true;
        self.ecs.resource_mut::<Inbox>().push(message);
    }

    /// The systems see in their next run what another world says.
    pub(super) fn note_world_message(&mut self, message: WorldMessage) {
        self.filled.messages = true;
        self.ecs.resource_mut::<WorldMessages>().0.push(message);
    }

    pub(super) fn dismiss(&mut self, client: ClientKey, reason: &'static str) {
        if let Some(client) = self.clients.get_mut(client) {
            client.leave(reason);
        }
    }
}
