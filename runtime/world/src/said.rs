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
//! They are read out of the world's [`Inbox`] by their kinds, so a kind has no resource of its own. They were unpacked once,
//! where their datagrams were opened, however many systems read them; what is no value is passed over and counted by its
//! kind, as `refused.walk` for a `Walk`, once for each time that it would have been read.
//!
//! Cost: a look at each message of the tick for each parameter. Allocates nothing.

use std::marker::PhantomData;

use bevy_ecs::{prelude::*, system::SystemParam};
use throng_replication::{ClientInput, ClientRequest};

use crate::{
    ids::ClientKey,
    inbox::{Inbox, InboxMessage, MessageKind},
    seen_moment::SeenMoment,
};

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    pub client: ClientKey,
    /// Its player, once the game has named one: see
    /// [`Outbox::set_player`](crate::tick_resources::Outbox::set_player).
    pub entity: Option<Entity>,
    /// The input's number, which goes up by one with each that the client sends in a stay, and wraps: which of two was made
    /// first the shorter way round says. Each comes once. `None` of requests.
    pub number: Option<u16>,
    /// What its player was shown when it made the input, as the client says; of inputs whose kind says so
    /// ([`ClientInput::SAYS_SEEN`]), and never of requests.
    pub seen: Option<SeenMoment>,
    /// The input was overtaken on its way: a newer one of its client was given to the world before it. Never of requests.
    pub is_late: bool,
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
    /// Cost: beside that of [`read`](Self::read), sorting by client.
    ///
    /// # Panics
    /// If the kind of world does not declare `T`: the program's own mistake.
    pub fn newest(&mut self) -> impl Iterator<Item = (Sender, &T)> {
        let Self { inbox, order, .. } = self;
        let inbox = &**inbox;
        let place = inbox.declared().place_of_input::<T>();
        let in_time = of_kind(inbox, place).filter(|(_, message)| !message.is_late);
        order.clear();
        order.extend(in_time.map(|(index, message)| (message.client, index as u32)));
        // What is not late came in the order in which it was sent.
        order.sort_unstable();
        let of_each = order.chunk_by(|(one, _), (other, _)| one == other);
        of_each.filter_map(move |of_client| {
            let (_, index) = of_client.last()?;
            value::<T>(inbox, place, *index as usize, &inbox.message(*index as usize))
        })
    }

    /// All, in the order of their arrival. Of a client that sends more often than the world ticks there are several, and
    /// one that was overtaken on its way comes after a newer one, as [`Sender::is_late`] says; [`Sender::number`] says where
    /// it belongs. Reads anew with each call.
    ///
    /// # Panics
    /// If the kind of world does not declare `T`: the program's own mistake.
    pub fn read(&self) -> impl Iterator<Item = (Sender, &T)> {
        read::<T>(&self.inbox, self.inbox.declared().place_of_input::<T>())
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
        of_kind(&self.inbox, self.place()).next().is_none()
    }

    /// In the order of their arrival, which is that of their sending for each client. Reads anew with each call.
    ///
    /// # Panics
    /// If the kind of world does not declare `T`: the program's own mistake.
    pub fn read(&self) -> impl Iterator<Item = (Sender, &T)> {
        read::<T>(&self.inbox, self.place())
    }

    fn place(&self) -> usize {
        self.inbox.declared().place_of_request::<T>()
    }
}

/// All messages of a kind, by its place among inputs and requests together; each with its own place among all messages.
fn of_kind(inbox: &Inbox, place: usize) -> impl Iterator<Item = (usize, InboxMessage<'_>)> {
    inbox.iter().enumerate().filter(move |(_, message)| inbox.declared().place(message.kind) == place)
}

fn read<T: 'static>(inbox: &Inbox, place: usize) -> impl Iterator<Item = (Sender, &T)> {
    of_kind(inbox, place).filter_map(move |(index, message)| value::<T>(inbox, place, index, &message))
}

fn value<'a, T: 'static>(
    inbox: &'a Inbox,
    place: usize,
    index: usize,
    message: &InboxMessage<'_>,
) -> Option<(Sender, &'a T)> {
    let value = inbox.value(index, place);
    if value.is_none() {
        inbox.declared().count_unreadable(message.kind);
    }
    let number = match message.kind {
        MessageKind::Input { number, .. } => Some(number),
        MessageKind::Request { .. } => None,
    };
    let (seen, is_late) = (message.seen, message.is_late);
    Some((Sender { number, seen, is_late, ..inbox.sender(message.client) }, value?))
}

#[cfg(test)]
mod tests;
