//! Put back: a world that was loaded gets its clients again, with the players that they had in it.
//!
//! To their own program they enter a world anew: all copies are made again, and whose entity is theirs is told. To the
//! systems they were never away. Between two ticks; allocates for each.

use throng_platform::time::Nanos;

use super::{GameWorld, own};
use crate::{client::Client, ids::ClientKey, inbox::Inbox, tick_resources::Departures};

impl GameWorld {
    /// Takes clients that were in the world when it was saved or logged last, as of `now`: nobody has heard them since.
    /// Those whom it does not know come back, for whoever asks to have them arrive; and whom it knows and nobody brings
    /// has left, as the systems see in the next tick.
    #[must_use = "they have no world"]
    pub fn put_back(&mut self, clients: Vec<Box<Client>>, now: Nanos) -> Vec<Box<Client>> {
        self.now = now;
        let mut unknown = Vec::new();
        for mut client in clients {
            let Some(row) = self.ecs.resource::<Inbox>().players.row(client.key).copied() else {
                unknown.push(client);
                continue;
            };
            client.enter(own(&mut self.replication), f32::from(self.rate.0), self.reactive.is_some());
            (client.player, client.team) = (row.entity, row.team);
            if let Some(view) = &mut client.view {
                view.set_team(row.team);
            }
            self.sent.begin();
            self.clients.add(client);
        }
        self.delivery.outdate();
        let players = &self.ecs.resource::<Inbox>().players;
        let is_here = |client: ClientKey| self.clients.place_of(client).is_some();
        let departed = |client: ClientKey| self.ecs.resource::<Departures>().0.contains(&client);
        let rows = players.rows().iter().map(|row| row.client);
        let missing: Vec<ClientKey> = rows.filter(|client| !is_here(*client) && !departed(*client)).collect();
        missing.into_iter().for_each(|client| self.note_departure(client));
        unknown
    }
}
