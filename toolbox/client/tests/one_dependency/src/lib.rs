//! The promise: a client needs one dependency, `throng-client`, to declare what is replicated, connect and look at it.

use throng_client::prelude::*;

#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Picker {
    pub name: Text<12>,
    #[replicate(min = -8, max = 8)]
    pub floor: Option<i8>,
    pub friends: ArrayVec<EntityLink, 4>,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Fell(pub u8);

impl ReplicatedEvent for Fell {
    const RELIABLE: bool = false;
    const RANGE_M: Option<f32> = Some(30.0);
}

/// The friends of the client's own player that it has copies of.
pub fn friends_near(client: &Client, player: NetId) -> Vec<NetId> {
    let picker = client.replicas().get::<Picker>(player);
    let friends = picker.into_iter().flat_map(|picker| &picker.friends).filter_map(EntityLink::id);
    friends.filter(|friend| client.replicas().contains(*friend)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_made_with_one_dependency() {
        let schema = SchemaBuilder::new().component::<Picker>().event::<Fell>().build();
        assert_eq!(schema.kind_names().collect::<Vec<_>>(), ["Picker"]);
        let replicas = Replicas::new(schema);
        assert_eq!(replicas.get::<Picker>(NetId::default()), None);
    }
}
