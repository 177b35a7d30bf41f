//! The schema: all that goes over the wire to clients, in wire order.

use std::sync::Arc;

use throng_replication::{Schema, SchemaBuilder};

use crate::{
    components::{Animation, Effects, Look, Name, Points, Pose, Vitals},
    events,
};

/// The replicated components and the events of Frontier, in wire order. Clients with another hash are turned away.
pub fn schema() -> Arc<Schema> {
    let components = SchemaBuilder::new()
        .component::<Pose>()
        .component::<Vitals>()
        .component::<Points>()
        .component::<Animation>()
        .component::<Effects>()
        .component::<Look>()
        .component::<Name>();
    events::add_to(components).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_make_the_same_schema() {
        assert_eq!(schema().hash(), schema().hash());
    }
}
