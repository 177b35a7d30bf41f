//! The schema: all that goes over the wire, in wire order.

use std::sync::Arc;

use throng_replication::{Protocol, Schema};

use crate::{
    components::{Arms, Clock, Clouds, Player, Pose, Score, Spike, TeamVitals},
    protocol::{Bang, Blinded, Buy, HitConfirmed, Input, Killed, Kit, ShotFired, Terms, Throw, Waiting},
};

/// What a match and its clients say to each other.
pub fn of_match() -> Protocol {
    Protocol::new()
        .component::<Pose>()
        .component::<Player>()
        .component::<TeamVitals>()
        .component::<Arms>()
        .component::<Clock>()
        .component::<Score>()
        .component::<Spike>()
        .component::<Clouds>()
        .input::<Input>()
        .request::<Buy>()
        .request::<Throw>()
        .message::<Kit>()
        .message::<Blinded>()
        .message::<Terms>()
        .event::<ShotFired>()
        .event::<HitConfirmed>()
        .event::<Killed>()
        .event::<Bang>()
}

/// What the lobby says to who waits in it; it hears nothing.
pub fn of_lobby() -> Protocol {
    Protocol::new().message::<Waiting>()
}

/// The schema of server and clients. Clients with another hash are turned away.
pub fn schema() -> Arc<Schema> {
    Protocol::union(&[of_match(), of_lobby()])
}
