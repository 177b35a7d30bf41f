//! Orders: what systems asked for is done after them, and clients are told where they are.
//!
//! On the world's own thread, once a tick, in the order in which it was asked for. Allocates nothing in a steady tick.

use throng_net::{
    connection::SendError,
    control::{self, EnterWorld},
};
use throng_profiler::log_warn;

use super::{GameWorld, own};
use crate::{
    client::Client,
    client_batch::CLIENTS,
    inbox::Inbox,
    long_task::LongTaskNumber,
    tick_resources::{Order, Outbox},
};

impl GameWorld {
    /// Does what the systems asked for, in their order.
    pub(super) fn carry_out_orders(&mut self, has_news: bool) {
        let mut held = self.ecs.resource_mut::<Outbox>();
        let wake_after = held.wake_after.take();
        self.report.next_tick_hint = std::mem::take(&mut held.next_tick_hint);
        if !held.saves.is_empty() {
            held.saves.hand_on(&mut self.saving.wishes);
        }
        held.next_long_task = LongTaskNumber::first_of(u64::from(self.tick) + 1);
        if !held.long_tasks_mut().is_empty() {
            self.report.long_tasks.append(held.long_tasks_mut());
        }
        let has_orders = !held.orders.is_empty();
        self.note_ticked(has_news, wake_after);
        if !has_orders {
            return;
        }
        let mut held = self.ecs.resource_mut::<Outbox>();
        let (mut orders, mut bytes) = (std::mem::take(&mut held.orders), std::mem::take(&mut held.bytes));
        let mut begin = 0;
        for order in orders.drain(..) {
            match order {
                Order::Reliable { client, end } => {
                    let message = &bytes[begin..end];
                    begin = end;
                    if let Some(client) = self.clients.get_mut(client) {
                        match client.connection.send_reliable(message) {
                            Ok(_) => self.sent.add_message(message),
                            Err(_) => client.leave("its reliable messages pile up"),
                        }
                    } else if let Some(told) = &mut self.told {
                        told.push(client, message);
                    }
                }
                Order::Player { client, entity } => {
                    self.ecs.resource_mut::<Inbox>().players.set(client, entity);
                    if let Some(client) = self.clients.get_mut(client) {
                        client.player = Some(entity);
                        client.is_greeted = false;
                    }
                }
                Order::Team { client, team } => {
                    self.ecs.resource_mut::<Inbox>().players.set_team(client, team);
                    if let Some(Client { team: own_team, view: Some(view), .. }) = self.clients.get_mut(client) {
                        *own_team = team;
                        view.set_team(team);
                    }
                }
                Order::Teleported { entity } => {
                    if let Some(id) = self.collector.net_id(&self.ecs, entity) {
                        own(&mut self.replication).set_urgent(id);
                    }
                }
                Order::Travel { client, to, transfer } => {
                    if let Some(client) = self.clients.get_mut(client) {
                        client.travel(to, transfer);
                    } else {
                        // One of a test, without a connection.
                        self.ecs.resource_mut::<Inbox>().players.remove(client);
                    }
                }
                Order::Disconnect { client, reason } => self.dismiss(client, reason),
                Order::Post { to, message } => self.report.messages.push((to, message)),
            }
        }
        bytes.clear();
        // Back for their memory.
        let mut held = self.ecs.resource_mut::<Outbox>();
        (held.orders, held.bytes) = (orders, bytes);
    }

    /// Tells clients which world they are in and which entity is theirs, when that is new.
    pub(super) fn greet(&mut self) {
        let is_reactive = self.reactive.is_some();
        let Self { clients, collector, ecs, .. } = self;
        for client in clients.iter_mut().filter(|client| !client.is_greeted) {
            let own = client.player.and_then(|entity| collector.net_id(ecs, entity));
            if client.player.is_some() && own.is_none() {
                self.report.stats.players_unreplicated += 1;
                let (kind, world, client) = (&*self.name, self.id.number(), client.client_id().0);
                log_warn!(
                    CLIENTS,
                    kind,
                    world,
                    client,
                    "the entity that is to be a client's player has no Replicated, or is gone: the client has no player, \
                     and sees nothing around it"
                );
            }
            if let Some(view) = &mut client.view {
                view.set_own(own);
            }
            let message = EnterWorld {
                epoch: client.epoch,
                tick_hz: self.rate.0 as u8,
                tick: self.tick,
                world: self.id.number(),
                own_entity: own.map(|id| (id.slot, id.generation)),
                has_returned: client.has_returned,
                is_reactive,
                name: &self.name,
            };
            let mut bytes = [0; control::ENTER_WORLD_BYTES_MAX];
            let length = message.encode(&mut bytes);
            client.is_greeted = true;
            if matches!(client.connection.send_reliable(&bytes[..length]), Err(SendError::Full)) {
                client.leave("its reliable messages pile up");
            }
        }
    }
}
