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
//! fn walk(mut walks: Inputs<Walk>, mut speeds: Query<&mut Speed>) {
//!     for (sender, walk) in walks.newest() {
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
use throng_pack::{Pack, unpack_body};
use throng_replication::{ClientInput, ClientRequest, PackedId};

use crate::{
    ids::ClientKey,
    inbox::{Inbox, InboxMessage, MessageKind},
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
///
/// An input says what its client wants in this moment, so what holds is the newest: [`Inputs::newest`] gives that one of
/// each client. [`Inputs::read`] gives all, for games in which each is a step that the client has predicted.
#[derive(SystemParam)]
pub struct Inputs<'w, 's, T: ClientInput> {
    inbox: Res<'w, Inbox>,
    /// Who sent which of the inbox's messages; reused by `newest`.
    order: Local<'s, Vec<(ClientKey, u32)>>,
    kind: PhantomData<fn() -> T>,
}

impl<T: ClientInput> Inputs<'_, '_, T> {
    /// The newest of each client, by key. A client of which none came in this tick is not among them: what it wanted
    /// last still holds, so keep that with its player. One that was overtaken on its way is passed over, even if the
    /// newer one was read in an earlier tick.
    ///
    /// Cost: beside that of [`read`](Self::read), sorting by client; older ones are not unpacked.
    ///
    /// # Panics
    /// If the kind of world does not declare `T`: the program's own mistake.
    pub fn newest(&mut self) -> impl Iterator<Item = (Sender, T)> {
        let Self { inbox, order, .. } = self;
        let inbox = &**inbox;
        let wanted = Wanted::Input(inbox.declared().input::<T>());
        let in_time = inbox.iter().enumerate().filter(|(_, message)| wanted.is_kind_of(message) && !message.is_late);
        order.clear();
        order.extend(in_time.map(|(index, message)| (message.client, index as u32)));
        // What is not late came in the order in which it was sent.
        order.sort_unstable();
        let of_each = order.chunk_by(|(one, _), (other, _)| one == other);
        of_each.filter_map(move |of_client| {
            let (_, index) = of_client.last()?;
            wanted.unpack(inbox, &inbox.message(*index as usize))
        })
    }

    /// All, in the order of their arrival. Of a client that sends more often than the world ticks there are several, and
    /// one that was overtaken on its way comes after a newer one. Reads anew with each call.
    ///
    /// # Panics
    /// If the kind of world does not declare `T`: the program's own mistake.
    pub fn read(&self) -> impl Iterator<Item = (Sender, T)> {
        Wanted::Input(self.inbox.declared().input::<T>()).read::<T>(&self.inbox)
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
        let wanted = self.wanted();
        !self.inbox.iter().any(|message| wanted.is_kind_of(&message))
    }

    /// In the order of their arrival, which is that of their sending for each client. Reads anew with each call.
    ///
    /// # Panics
    /// If the kind of world does not declare `T`: the program's own mistake.
    pub fn read(&self) -> impl Iterator<Item = (Sender, T)> {
        self.wanted().read::<T>(&self.inbox)
    }

    fn wanted(&self) -> Wanted {
        Wanted::Request(self.inbox.declared().request::<T>())
    }
}

/// What a system reads: a kind of inputs, or one of requests.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Input(PackedId),
    Request(PackedId),
}

impl Wanted {
    fn is_kind_of(self, message: &InboxMessage<'_>) -> bool {
        self == match message.kind {
            MessageKind::Input { kind, .. } => Self::Input(kind),
            MessageKind::Request { kind } => Self::Request(kind),
        }
    }

    fn read<T: Pack>(self, inbox: &Inbox) -> impl Iterator<Item = (Sender, T)> {
        let of_kind = inbox.iter().filter(move |message| self.is_kind_of(message));
        of_kind.filter_map(move |message| self.unpack(inbox, &message))
    }

    fn unpack<T: Pack>(self, inbox: &Inbox, message: &InboxMessage<'_>) -> Option<(Sender, T)> {
        let Ok(value) = unpack_body(message.bytes) else {
            let schema = &inbox.declared().schema;
            match self {
                Self::Input(kind) => schema.count_refused_input(kind),
                Self::Request(kind) => schema.count_refused_request(kind),
            }
            return None;
        };
        Some((inbox.sender(message.client), value))
    }
}

#[cfg(test)]
mod tests;
