//! Roster: which entity is whose player.

use bevy_ecs::{component::Component, entity::Entity};
use throng::prelude::ClientKey;

/// The client that an entity is the player of.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayerClient(pub ClientKey);

/// The players of this world, sorted by client.
#[derive(Default)]
pub struct Roster(Vec<(ClientKey, Entity)>);

impl Roster {
    pub fn entity(&self, client: ClientKey) -> Option<Entity> {
        let index = self.0.binary_search_by_key(&client, |entry| entry.0).ok()?;
        Some(self.0[index].1)
    }

    pub fn add(&mut self, client: ClientKey, entity: Entity) {
        let index = self.0.partition_point(|entry| entry.0 < client);
        self.0.insert(index, (client, entity));
    }

    pub fn remove(&mut self, client: ClientKey) -> Option<Entity> {
        let index = self.0.binary_search_by_key(&client, |entry| entry.0).ok()?;
        Some(self.0.remove(index).1)
    }

    /// How many players there are, dead or alive.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roster_finds_everybody_and_forgets_who_left() {
        let mut roster = Roster::default();
        let entity = |number: u32| Entity::from_raw_u32(number).unwrap();
        for number in [5, 1, 9, 3] {
            roster.add(ClientKey(number), entity(number));
        }
        assert_eq!(roster.entity(ClientKey(9)), Some(entity(9)));
        assert_eq!(roster.remove(ClientKey(1)), Some(entity(1)));
        assert_eq!(roster.remove(ClientKey(1)), None);
        assert_eq!(roster.entity(ClientKey(1)), None);
        assert_eq!(roster.entity(ClientKey(3)), Some(entity(3)));
        assert_eq!(roster.count(), 3);
    }
}
