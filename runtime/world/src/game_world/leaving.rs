//! Leaving: clients go to the host with the tick's end, to other worlds or for good; all of them, where their world failed.

use throng_metrics::Counters;

use super::{GameWorld, own};
use crate::{
    client::{Client, Leave},
    ids::ClientKey,
    inbox::Inbox,
    report::Leaving,
    scratch::Scratch,
    tick_resources::Departures,
    worker::Worker,
};

impl GameWorld {
    /// Hands leaving clients to the host: travellers with all that is theirs, others closed.
    pub(super) fn let_go(&mut self, worker: &mut Worker) {
        self.clients.take_leaving(&mut self.scratch.leavers);
        // Those who still wait stay in the scratch, where a host finds them if one of these panics.
        self.scratch.leavers.reverse();
        while let Some(mut client) = self.scratch.leavers.pop() {
            self.delivery.outdate();
            if let Some(view) = client.exit() {
                self.report.stats.replication.merge(&own(&mut self.replication).remove_view(view));
            }
            match client.leaving.take() {
                Some(Leave::Travel { to, transfer }) => {
                    self.note_traveller(client.client_id(), &transfer);
                    self.ecs.resource_mut::<Inbox>().players.remove(client.key);
                    self.report.leaving.push(Leaving::Travel { client, to, transfer });
                }
                Some(Leave::Gone { reason, carried }) => {
                    client.connection.close(self.now, &mut *worker.sender);
                    self.note_departure(client.key);
                    self.note_gone(&client, carried);
                    self.report.leaving.push(Leaving::Gone { client: client.key, reason });
                }
                None => {}
            }
        }
    }

    /// The systems see in their next run that a client is gone.
    pub(crate) fn note_departure(&mut self, client: ClientKey) {
        self.filled.departures = true;
        self.ecs.resource_mut::<Inbox>().players.depart(client);
        self.ecs.resource_mut::<Departures>().0.push(client);
    }

    /// Gives up all clients, those included that a panic left in the middle of a tick. What the tick was doing with
    /// them may be half done: whoever takes them gives them a new view, and their connections go on. The world is not
    /// to tick again.
    pub fn take_clients(&mut self) -> Vec<Box<Client>> {
        let mut clients: Vec<_> = self.clients.drain().collect();
        if let Some(Scratch { batches, leavers, .. }) = self.scratch.left() {
            batches.iter_mut().for_each(|batch| clients.append(&mut batch.clients));
            clients.append(leavers);
        }
        clients.iter_mut().for_each(|client| _ = client.exit());
        clients
    }
}
