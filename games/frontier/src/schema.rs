//! The schema: all that goes over the wire, in wire order.

use std::sync::Arc;

use throng_replication::{Protocol, Schema};

use crate::{
    components::{Animation, Effects, Look, Name, Points, Pose, Vitals},
    events,
    protocol::{Input, LandSeen, Realm, Wish, Work},
};

/// The schema of server and clients. Clients with another hash are turned away.
pub fn schema() -> Arc<Schema> {
    protocol().schema()
}

/// What the world of Frontier and its clients say to each other.
pub fn protocol() -> Protocol {
    let components = Protocol::new()
        .input::<Input>()
        .request::<Wish>()
        .request::<Work>()
        .message::<Realm>()
        .message::<LandSeen>()
        .component::<Pose>()
        .component::<Vitals>()
        .component::<Points>()
        .component::<Animation>()
        .component::<Effects>()
        .component::<Look>()
        .component::<Name>();
    events::add_to(components)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_make_the_same_schema() {
        assert_eq!(schema().hash(), schema().hash());
    }
}
