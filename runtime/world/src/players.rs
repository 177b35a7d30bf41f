//! Players: who is in a world, and which entity each client has.
//!
//! The game says it once ([`Outbox::set_player`](crate::tick_resources::Outbox::set_player)); the world keeps it for as
//! long as the client is here. Whose connection ended is still found in the tick that has it among the
//! [`Departures`](crate::tick_resources::Departures), so that the game can take its entity away.
//!
//! A list sorted by client, in the inbox: no resource of its own, of which each world would have one. Cost: a binary
//! search; a newcomer moves those with later keys, of which there are none as a rule.

use bevy_ecs::entity::Entity;

use crate::ids::ClientKey;

/// One client of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub client: ClientKey,
    pub entity: Option<Entity>,
    pub team: Option<u16>,
}

/// The clients of a world and their entities.
#[derive(Debug, Default)]
pub struct Players {
    rows: Vec<Row>,
    /// Gone with the next tick's end.
    departed: Vec<ClientKey>,
}

impl Players {
    /// The entity that the game has made a client's own; `None` if it has none yet, or the client is not here.
    pub fn entity(&self, client: ClientKey) -> Option<Entity> {
        let place = self.place(client).ok()?;
        self.rows[place].entity
    }

    /// Whose own an entity is. Looks at everybody.
    pub fn client(&self, entity: Entity) -> Option<ClientKey> {
        self.rows.iter().find(|row| row.entity == Some(entity)).map(|row| row.client)
    }

    /// All clients that are here, by key.
    pub fn iter(&self) -> impl Iterator<Item = (ClientKey, Option<Entity>)> {
        self.rows.iter().map(|row| (row.client, row.entity))
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn row(&self, client: ClientKey) -> Option<&Row> {
        self.rows.get(self.place(client).ok()?)
    }

    fn place(&self, client: ClientKey) -> Result<usize, usize> {
        self.rows.binary_search_by_key(&client, |row| row.client)
    }

    pub(crate) fn arrive(&mut self, client: ClientKey) {
        let row = Row { client, entity: None, team: None };
        match self.place(client) {
            Ok(place) => self.rows[place] = row,
            Err(place) => self.rows.insert(place, row),
        }
    }

    /// Does nothing for who is not here.
    pub(crate) fn set(&mut self, client: ClientKey, entity: Entity) {
        if let Ok(place) = self.place(client) {
            self.rows[place].entity = Some(entity);
        }
    }

    /// Does nothing for who is not here.
    pub(crate) fn set_team(&mut self, client: ClientKey, team: Option<u16>) {
        if let Ok(place) = self.place(client) {
            self.rows[place].team = team;
        }
    }

    pub(crate) fn remove(&mut self, client: ClientKey) {
        if let Ok(place) = self.place(client) {
            self.rows.remove(place);
        }
    }

    /// The systems see in their next run that the client is gone, and forget it then.
    pub(crate) fn depart(&mut self, client: ClientKey) {
        self.departed.push(client);
    }

    pub(crate) fn forget_departed(&mut self) {
        while let Some(client) = self.departed.pop() {
            self.remove(client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_here_is_found_and_who_has_left_is_not() {
        let entity = |index: u32| Entity::from_raw_u32(index).unwrap();
        let mut players = Players::default();
        for client in [5, 9, 7] {
            players.arrive(ClientKey(client));
        }
        players.set(ClientKey(7), entity(70));
        players.set(ClientKey(8), entity(80));
        let rows: Vec<_> = players.iter().map(|(client, own)| (client.0, own)).collect();
        assert_eq!(rows, [(5, None), (7, Some(entity(70))), (9, None)]);
        assert_eq!(players.client(entity(70)), Some(ClientKey(7)));
        players.depart(ClientKey(7));
        assert_eq!(players.entity(ClientKey(7)), Some(entity(70)), "the game has not seen it go");
        players.forget_departed();
        assert_eq!((players.entity(ClientKey(7)), players.iter().count()), (None, 2));
    }
}
