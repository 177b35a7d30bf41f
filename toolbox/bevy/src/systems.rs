//! Systems: the steps of an update, for a program's own systems to stand before or after.

use bevy_ecs::prelude::*;

/// What the plugin does in an update of the app, in this order.
#[derive(SystemSet, Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientSystems {
    /// In `PreUpdate`: what came is taken in. Entities and [`Confirmed`](crate::Confirmed) components are the server's.
    Receive,
    /// In `PostUpdate`: inputs that are due are sent, and predicted.
    Step,
    /// In `PostUpdate`: components become what is to be drawn. Draw after it.
    Show,
    /// In `PostUpdate`: what is due goes out, and messages and events that were read are forgotten.
    Send,
}
