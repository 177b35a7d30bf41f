//! A client's seat in a world: its connection and what the world keeps about it.
//!
//! Seats lie densely in one `Vec`, in the order of arrival, since a tick visits all of them; a small map finds one by key.

use std::net::SocketAddr;

use bevy_ecs::prelude::Entity;
use foldhash::{HashMap, HashMapExt};
use throng_net::{
    connection::{Connection, PacketSequence, Received},
    protocol::{ClientId, UserData},
};
use throng_replication::{Pacing, ViewId};

use crate::{
    allowance::Allowance,
    ids::{ClientKey, WorldId},
    mailbox::Incoming,
    tick_resources::Luggage,
};

/// How a client leaves its world at the end of the tick.
pub(crate) enum Leave {
    Travel { to: WorldId, luggage: Luggage },
    Gone { reason: &'static str },
}

pub(crate) struct ClientSeat {
    pub client: ClientKey,
    client_id: ClientId,
    address: SocketAddr,
    user_data: Box<UserData>,
    pub connection: Box<Connection>,
    pub allowance: Allowance,
    pub epoch: u8,
    pub view: ViewId,
    pub player: Option<Entity>,
    pub team: Option<u16>,
    /// False while the client has not been told of its world or its own entity.
    pub greeted: bool,
    input_newest: Option<u16>,
    /// What this client's line takes.
    pub pacing: Pacing,
    /// Packets whose fate became known since the client was last told something.
    pub acked: Vec<PacketSequence>,
    pub lost: Vec<PacketSequence>,
    pub leaving: Option<Leave>,
}

impl ClientSeat {
    /// `pace`: the world's ticks per second, and what it sends one client per tick at most (bytes).
    pub fn new(incoming: Incoming, view: ViewId, pace: (f32, u32)) -> Self {
        let Incoming { client, client_id, address, user_data, connection, allowance, epoch, pacing, luggage: _ } =
            incoming;
        let (ticks_per_s, bytes_per_tick_max) = pace;
        let pacing = match pacing {
            Some(mut pacing) => {
                pacing.set_max(ticks_per_s, bytes_per_tick_max);
                pacing
            }
            None => Pacing::new(ticks_per_s, bytes_per_tick_max),
        };
        Self {
            client,
            client_id,
            address,
            user_data,
            connection,
            allowance,
            epoch,
            view,
            player: None,
            team: None,
            greeted: false,
            input_newest: None,
            pacing,
            acked: Vec::new(),
            lost: Vec::new(),
            leaving: None,
        }
    }

    /// Notes that input `number` came; snapshots tell the client the newest one that they include.
    pub fn take_input(&mut self, number: u16) {
        let is_newer = self.input_newest.is_none_or(|newest| (number.wrapping_sub(newest) as i16) > 0);
        if is_newer {
            self.input_newest = Some(number);
        }
    }

    pub fn last_input(&self) -> u16 {
        self.input_newest.unwrap_or_default()
    }

    /// Keeps what became known of our packets until the client is next told something.
    pub fn note_delivery(&mut self, received: &Received) {
        self.acked.extend_from_slice(&received.acked);
        self.lost.extend_from_slice(&received.lost);
    }

    /// Marks the client as gone at the end of this tick; the first reason counts.
    pub fn leave(&mut self, reason: &'static str) {
        if !matches!(self.leaving, Some(Leave::Gone { .. })) {
            self.leaving = Some(Leave::Gone { reason });
        }
    }

    pub fn into_incoming(self, luggage: Luggage) -> Incoming {
        Incoming {
            client: self.client,
            client_id: self.client_id,
            address: self.address,
            user_data: self.user_data,
            connection: self.connection,
            allowance: self.allowance,
            epoch: self.epoch.wrapping_add(1),
            pacing: Some(self.pacing),
            luggage: Some(luggage),
        }
    }
}

/// All seats of a world.
#[derive(Default)]
pub(crate) struct Seats {
    seats: Vec<ClientSeat>,
    index_of: HashMap<ClientKey, usize>,
    /// Seats by view, as far as `views_are_indexed`.
    index_of_view: Vec<u32>,
    views_are_indexed: bool,
}

impl Seats {
    pub fn add(&mut self, seat: ClientSeat) {
        if self.index_of.capacity() == 0 {
            self.index_of = HashMap::with_capacity(1);
        }
        self.index_of.insert(seat.client, self.seats.len());
        self.seats.push(seat);
        self.views_are_indexed = false;
    }

    pub fn get_mut(&mut self, client: ClientKey) -> Option<&mut ClientSeat> {
        // One seat is the usual case of a player's own world: no need to hash.
        let index = match &self.seats[..] {
            [seat] => (seat.client == client).then_some(0)?,
            _ => self.index_of(client)?,
        };
        self.seats.get_mut(index)
    }

    /// Where the client's seat is in the list, also while the seats are lent.
    pub fn index_of(&self, client: ClientKey) -> Option<usize> {
        self.index_of.get(&client).copied()
    }

    /// Makes `of_view` right. Cheap unless somebody came or went.
    pub fn index_views(&mut self) {
        if std::mem::replace(&mut self.views_are_indexed, true) {
            return;
        }
        self.index_of_view.clear();
        for (index, seat) in (0..).zip(&self.seats) {
            let view = seat.view.index();
            self.index_of_view.resize(self.index_of_view.len().max(view + 1), u32::MAX);
            self.index_of_view[view] = index;
        }
    }

    /// The seat of a view; `index_views` has run.
    pub fn of_view(&mut self, view: ViewId) -> Option<&mut ClientSeat> {
        let index = *self.index_of_view.get(view.index())?;
        self.seats.get_mut(index as usize)
    }

    /// Travel gives way to a connection's end, and the first order to travel counts.
    pub fn mark_travel(&mut self, client: ClientKey, to: WorldId, luggage: Luggage) {
        if let Some(seat) = self.get_mut(client)
            && seat.leaving.is_none()
        {
            seat.leaving = Some(Leave::Travel { to, luggage });
        }
    }

    /// Takes out the seats that are marked as leaving, in their order; the others keep theirs. Cost: one look at every seat, and one entry
    /// of the map for each that moves up.
    pub fn take_leaving(&mut self, leaving: &mut Vec<ClientSeat>) {
        let Some(first) = self.seats.iter().position(|seat| seat.leaving.is_some()) else { return };
        leaving.extend(self.seats.extract_if(first.., |seat| seat.leaving.is_some()));
        self.views_are_indexed = false;
        for seat in leaving.iter() {
            self.index_of.remove(&seat.client);
        }
        for (index, seat) in self.seats.iter().enumerate().skip(first) {
            self.index_of.insert(seat.client, index);
        }
    }

    /// Moves seats from the end of the list to `lot`, which gets at most `count` of them in their order. What is lent must be given back
    /// before anything else happens.
    pub fn lend(&mut self, count: usize, lot: &mut Vec<ClientSeat>) {
        lot.extend(self.seats.drain(self.seats.len().saturating_sub(count)..));
    }

    /// Takes back what was lent: the lot that was lent last first.
    pub fn give_back(&mut self, lot: &mut Vec<ClientSeat>) {
        self.seats.append(lot);
        debug_assert!(
            self.seats.last().is_none_or(|seat| self.index_of.get(&seat.client) == Some(&(self.seats.len() - 1)))
        );
    }

    pub fn as_mut_slice(&mut self) -> &mut [ClientSeat] {
        &mut self.seats
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ClientSeat> {
        self.seats.iter_mut()
    }

    pub fn len(&self) -> usize {
        self.seats.len()
    }

    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }
}
