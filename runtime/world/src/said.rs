//! Said: inputs and requests of clients, as a system reads them.
//!
//! ```
//! use bevy_ecs::prelude::*;
//! use throng_pack::Pack;
//! use throng_world::prelude::*;
//!
//! #[derive(Pack)]
//! struct Walk {
//!     x: i8,
//!     z: i8,
//! }
//! impl ClientInput for Walk {}
//!
//! #[derive(Component)]
//! struct Speed([f32; 2]);
//!
//! fn walk(walks: Inputs<Walk>, mut speeds: Query<&mut Speed>) {
//!     for (sender, walk) in walks.read() {
//!         let Some(player) = sender.entity else { continue };
//!         if let Ok(mut speed) = speeds.get_mut(player) {
//!             speed.0 = [walk.x, walk.z].map(f32::from);
//!         }
//!     }
//! }
//! # let _ = IntoSystem::into_system(walk);
//! ```
//!
//! They are read out of the world's [`Inbox`] by their kinds, so a kind has no buffer and no resource of its own. A value
//! is unpacked when it is read; what is none is passed over and counted by its kind, as `refused.walk` for a `Walk`, once
//! for each time that it would have been read.
//!
//! Cost: a look at each message of the tick for each parameter, and unpacking those of its kind. Allocates what a value
//! with a list in it takes.

use std::marker::PhantomData;

use bevy_ecs::{prelude::*, system::SystemParam};
use throng_pack::unpack_body;
use throng_replication::{ClientInput, ClientRequest};

use crate::{
    ids::ClientKey,
    inbox::{Inbox, MessageKind},
};

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    pub client: ClientKey,
    /// Its player, once the game has named one: see
    /// [`Outbox::set_player`](crate::tick_resources::Outbox::set_player).
    pub entity: Option<Entity>,
}

/// Inputs of one kind that came since the last tick.
#[derive(SystemParam)]
pub struct Inputs<'w, T: ClientInput> {
    inbox: Res<'w, Inbox>,
    kind: PhantomData<fn() -> T>,
}

impl<T: ClientInput> Inputs<'_, T> {
    /// In the order of their arrival; of a client that sends more often than the world ticks there are several, of which
    /// the last counts. Reads anew with each call.
    ///
    /// # Panics
    /// If the kind of world does not declare `T`: the program's own mistake.
    pub fn read(&self) -> impl Iterator<Item = (Sender, T)> {
        let inbox = &*self.inbox;
        let wanted = inbox.declared().input::<T>();
        inbox.iter().filter_map(move |message| match message.kind {
            MessageKind::Input { kind, .. } if kind == wanted => match unpack_body(message.bytes) {
                Ok(input) => Some((inbox.sender(message.client), input)),
                Err(_) => {
                    inbox.declared().schema.count_refused_input(wanted);
                    None
                }
            },
            _ => None,
        })
    }
}

/// Requests of one kind that came since the last tick.
#[derive(SystemParam)]
pub struct Requests<'w, T: ClientRequest> {
    inbox: Res<'w, Inbox>,
    kind: PhantomData<fn() -> T>,
}

impl<T: ClientRequest> Requests<'_, T> {
    /// Whether there are none, nor bytes that claim to be one: for a condition of the system that reads them.
    ///
    /// # Panics
    /// If the kind of world does not declare `T`: the program's own mistake.
    pub fn is_empty(&self) -> bool {
        let wanted = MessageKind::Request { kind: self.inbox.declared().request::<T>() };
        self.inbox.iter().all(|message| message.kind != wanted)
    }

    /// In the order of their arrival, which is that of their sending for each client. Reads anew with each call.
    ///
    /// # Panics
    /// If the kind of world does not declare `T`: the program's own mistake.
    pub fn read(&self) -> impl Iterator<Item = (Sender, T)> {
        let inbox = &*self.inbox;
        let wanted = inbox.declared().request::<T>();
        inbox.iter().filter_map(move |message| match message.kind {
            MessageKind::Request { kind } if kind == wanted => match unpack_body(message.bytes) {
                Ok(request) => Some((inbox.sender(message.client), request)),
                Err(_) => {
                    inbox.declared().schema.count_refused_request(wanted);
                    None
                }
            },
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
