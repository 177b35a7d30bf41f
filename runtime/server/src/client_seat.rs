//! A client's seat in a world: its connection and what the world keeps about it.
//!
//! Seats lie densely in one `Vec`, in the order of arrival, since a tick visits all of them; a small map finds one by key.

use std::net::SocketAddr;

use bevy_ecs::prelude::Entity;
use foldhash::{HashMap, HashMapExt};
use throng_net::{
    connection::Connection,
    protocol::{ClientId, UserData},
};
use throng_replication::ViewId;

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
    pub leaving: Option<Leave>,
}

impl ClientSeat {
    pub fn new(incoming: Incoming, view: ViewId) -> Self {
        let Incoming { client, client_id, address, user_data, connection, allowance, epoch, luggage: _ } = incoming;
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
            luggage: Some(luggage),
        }
    }
}

/// All seats of a world.
#[derive(Default)]
pub(crate) struct Seats {
    seats: Vec<ClientSeat>,
    index_of: HashMap<ClientKey, usize>,
}

impl Seats {
    pub fn add(&mut self, seat: ClientSeat) {
        if self.index_of.capacity() == 0 {
            self.index_of = HashMap::with_capacity(1);
        }
        self.index_of.insert(seat.client, self.seats.len());
        self.seats.push(seat);
    }

    pub fn get_mut(&mut self, client: ClientKey) -> Option<&mut ClientSeat> {
        // One seat is the usual case of a player's own world: no need to hash.
        let index = match &self.seats[..] {
            [seat] => (seat.client == client).then_some(0)?,
            _ => *self.index_of.get(&client)?,
        };
        self.seats.get_mut(index)
    }

    /// Travel gives way to a connection's end, and the first order to travel counts.
    pub fn mark_travel(&mut self, client: ClientKey, to: WorldId, luggage: Luggage) {
        if let Some(seat) = self.get_mut(client)
            && seat.leaving.is_none()
        {
            seat.leaving = Some(Leave::Travel { to, luggage });
        }
    }

    /// Takes out one seat that is marked as leaving. Cost: one look at every seat per tick in all, and one more per leaving.
    pub fn take_leaving(&mut self) -> Option<ClientSeat> {
        let index = self.seats.iter().position(|seat| seat.leaving.is_some())?;
        let seat = self.seats.remove(index);
        self.index_of.remove(&seat.client);
        for (moved, later) in self.seats.iter().enumerate().skip(index) {
            self.index_of.insert(later.client, moved);
        }
        Some(seat)
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
