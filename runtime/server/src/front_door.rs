//! Front door: every datagram comes in here and goes to its world, to the gate, or nowhere.
//!
//! A datagram of a known address is charged to its client and put, still sealed, in the mailbox of the world that has the
//! client; opening it is the worker's part. Anything else goes to the gate (`throng_net::protocol::gate`), which proves
//! addresses and tokens; who gets through is placed in a world by the game's directory.
//!
//! Whoever knows a player's address can write it on datagrams of their own. What stands between them and that player's place:
//!
//! | who forges | what they know | what keeps the client in |
//! | --- | --- | --- |
//! | somebody anywhere | address and port, by guess | the sequence: one in 2^28 of theirs is plausible, the others are charged to nobody |
//! | somebody on the path | the sequences too | the common reserve: up to 40,000 packets/s or 4 MiB/s over the clients' allowances are opened |
//! | somebody on the path with more than that | | nothing: a part of the client's own is lost with theirs. They could as well drop them all |
//!
//! Nobody of these can have the client dismissed, since only what opens counts against it.
//!
//! Runs on the frame thread, in `begin`. Cost per datagram: one hash lookup, one copy, one lock that nobody else wants.

use std::{net::SocketAddr, sync::Arc};

use foldhash::{HashMap, HashMapExt};
use throng_metrics::counters;
use throng_net::{
    connection::Connection,
    protocol::{Admitted, ClientId, Gate, GateOutcome, Reply, SequenceMark},
    transport::{DatagramSender, ServerTransport},
};
use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_error, log_info};

use crate::{
    allowance::{Allowance, Verdict},
    directory::{Directory, Placement},
    ids::{ClientKey, WorldId},
    mailbox::{Incoming, Mail, Mailbox},
    settings::ServerSettings,
};

log_category!(
    /// Who comes, who is refused, who goes.
    pub(crate) DOOR = "server.door"
);

/// Datagrams taken from the sockets per frame at most: 16 times what 1,000 clients at 20 Hz send in a 60 Hz frame. What is left
/// waits in the kernel's buffer, so a flood costs a bounded share of the frame.
const DATAGRAMS_PER_FRAME_MAX: usize = 5_400;

counters! {
    /// What came in since the counts were last taken.
    pub(crate) struct DoorCounts {
        Sum packets: "net.packets_in", "packets",
            "Datagrams received, of clients and of strangers.",
            "Follows players. Without them: a flood; see `net.refused_by_gate`.";
        Sum bytes: "net.bytes_in", "bytes",
            "Bytes of datagrams received.",
            "As `net.packets_in`.";
        Sum refused_by_gate: "net.refused_by_gate", "datagrams",
            "Datagrams of strangers that were no step of a handshake.",
            "Noise of the Internet, or a flood of strangers. It costs the frame thread about a microsecond each and clients nothing; have it \
             filtered before this host if frames get long.";
        Sum implausible: "net.implausible", "datagrams",
            "Datagrams under a client's address, but of no shape or sequence that the client's may have.",
            "Somebody writes players' addresses on datagrams of their own. They harm nobody yet; see `net.on_reserve`.";
        Sum over_allowance: "net.over_allowance", "datagrams",
            "Datagrams that were dropped because their client sends more than its allowance, and the common reserve \
             was used up.",
            "Clients that send too much, or forged addresses in their name. Raise the allowance in the settings if \
             honest clients need it.";
        Sum on_reserve: "net.on_reserve", "datagrams",
            "Datagrams over their client's allowance that passed on the common reserve.",
            "The first sign of somebody who forges players' addresses, or of clients that send too often.";
        Sum mailbox_full: "net.mailbox_full", "datagrams",
            "Datagrams that found the mailbox of their client's world full.",
            "The world does not tick often enough to empty it: look at `server.ticks_missed` and `server.world_hangs`.";
        Sum joined: "server.joined", "clients",
            "Clients let in.",
            "Follows players. Many more than players stay: they come and go; look at `server.disconnects`.";
        Sum joins_postponed: "server.joins_postponed", "datagrams",
            "Datagrams of strangers that came after as many had joined in their frame as may.",
            "Many log in at once. Raise `joins_per_frame_max` in the settings if frames have room.";
        Sum refused_by_game: "server.refused_by_game", "clients",
            "Clients that the game did not let in.",
            "The log says the game's reason for each.";
        Sum send_dropped: "net.send_dropped", "datagrams",
            "Datagrams to clients or strangers that the kernel did not take. What clients miss is sent again.",
            "The socket's send buffer is too small, or the network card cannot keep up: raise `send_buffer_bytes` in \
             the settings.";
    }
}

struct Guest {
    client_id: ClientId,
    address: SocketAddr,
    world: WorldId,
    allowance: Allowance,
    mark: SequenceMark,
    dismissed: bool,
}

pub(crate) struct FrontDoor {
    gate: Gate,
    key_of: HashMap<SocketAddr, ClientKey>,
    guests: Vec<Option<Guest>>,
    free: Vec<ClientKey>,
    sender: Box<dyn DatagramSender>,
    reply: Reply,
    packets_per_s_max: u32,
    bytes_per_s_max: u32,
    /// What clients may use over their own allowances, all together.
    reserve: Allowance,
    joins_per_frame_max: u32,
    joined_in_frame: u32,
    /// The server is ending: nobody is let in any more.
    is_closing: bool,
    pub counts: DoorCounts,
}

impl FrontDoor {
    pub fn new(gate: Gate, sender: Box<dyn DatagramSender>, settings: &ServerSettings) -> Self {
        Self {
            gate,
            key_of: HashMap::new(),
            guests: Vec::new(),
            free: Vec::new(),
            sender,
            reply: Reply::new(),
            packets_per_s_max: settings.client_packets_per_s_max,
            bytes_per_s_max: settings.client_bytes_per_s_max,
            reserve: Allowance::reserve(Nanos::ZERO),
            joins_per_frame_max: settings.joins_per_frame_max,
            joined_in_frame: 0,
            is_closing: false,
            counts: DoorCounts::default(),
        }
    }

    /// Takes what the sockets have and delivers it.
    pub fn receive(
        &mut self,
        transport: &mut dyn ServerTransport,
        mailboxes: &[Arc<Mailbox>],
        directory: &mut dyn Directory,
        now: Nanos,
        unix_s: u64,
    ) {
        self.gate.begin_frame(now, unix_s);
        self.joined_in_frame = 0;
        transport.receive(
            &mut |from, datagram| match self.key_of.get(&from) {
                Some(&client) => self.deliver(client, datagram, mailboxes, now),
                None => self.knock(from, datagram, mailboxes, directory, now),
            },
            DATAGRAMS_PER_FRAME_MAX,
        );
        self.counts.send_dropped += self.sender.flush().dropped as u64;
    }

    fn deliver(&mut self, client: ClientKey, datagram: &mut [u8], mailboxes: &[Arc<Mailbox>], now: Nanos) {
        self.counts.packets += 1;
        self.counts.bytes += datagram.len() as u64;
        let Some(guest) = self.guests[client.0 as usize].as_mut() else { return };
        if !guest.mark.is_plausible(datagram) {
            self.counts.implausible += 1;
            return;
        }
        if guest.allowance.spend(datagram.len(), now) != Verdict::Pass {
            if self.reserve.spend(datagram.len(), now) != Verdict::Pass {
                self.counts.over_allowance += 1;
                return;
            }
            self.counts.on_reserve += 1;
        }
        if !mailboxes[guest.world.0 as usize].push_datagram(client, datagram) {
            self.counts.mailbox_full += 1;
        }
    }

    /// A datagram of an address without a connection.
    fn knock(
        &mut self,
        from: SocketAddr,
        datagram: &mut [u8],
        mailboxes: &[Arc<Mailbox>],
        directory: &mut dyn Directory,
        now: Nanos,
    ) {
        self.counts.packets += 1;
        self.counts.bytes += datagram.len() as u64;
        // Enough for this frame: a client that waits to come in says every step again five times a second.
        if self.is_closing || self.joined_in_frame >= self.joins_per_frame_max {
            self.counts.joins_postponed += 1;
            return;
        }
        let outcome = self.gate.handle(from, datagram, &mut self.reply);
        let reply = self.reply.bytes();
        if !reply.is_empty() {
            self.sender.buffer()[..reply.len()].copy_from_slice(reply);
            self.sender.commit(from, reply.len());
        }
        match outcome {
            GateOutcome::Nothing(_) => self.counts.refused_by_gate += 1,
            GateOutcome::Replied => {}
            GateOutcome::Connected(admitted) => self.let_in(*admitted, mailboxes, directory, now),
        }
    }

    fn let_in(&mut self, admitted: Admitted, mailboxes: &[Arc<Mailbox>], directory: &mut dyn Directory, now: Nanos) {
        let Admitted { link, client_id, user_data, address } = admitted;
        let mark = link.sequence_mark();
        let mut connection = Box::new(Connection::new(link, address, client_id, now));
        let placement = match directory.place(client_id, &user_data) {
            Placement::World(world) if mailboxes.get(world.0 as usize).is_none_or(|mailbox| mailbox.is_closed()) => {
                log_error!(DOOR, world = world.0, "the game's directory names a world that does not exist any more");
                Placement::Refuse("its world does not exist")
            }
            placement => placement,
        };
        let world = match placement {
            Placement::World(world) => world,
            Placement::Refuse(reason) => {
                log_info!(DOOR, client = client_id.0, reason, "client refused by the game");
                self.counts.refused_by_game += 1;
                connection.close(now, &mut *self.sender);
                self.gate.disconnected(client_id, address);
                return;
            }
        };
        let client = self.free.pop().unwrap_or_else(|| {
            self.guests.push(None);
            ClientKey((self.guests.len() - 1) as u32)
        });
        self.guests[client.0 as usize] = Some(Guest {
            client_id,
            address,
            world,
            allowance: Allowance::at_the_door(self.packets_per_s_max, self.bytes_per_s_max, now),
            mark,
            dismissed: false,
        });
        self.key_of.insert(address, client);
        self.counts.joined += 1;
        self.joined_in_frame += 1;
        mailboxes[world.0 as usize].push(Mail::Incoming(Box::new(Incoming {
            client,
            client_id,
            address,
            user_data: Box::new(user_data),
            connection,
            allowance: Allowance::new(self.packets_per_s_max, self.bytes_per_s_max, now),
            epoch: 0,
            pacing: None,
            luggage: None,
        })));
    }

    /// Lets nobody in any more.
    pub fn close(&mut self) {
        self.is_closing = true;
    }

    /// From now on the client's datagrams go to `world`.
    pub fn moved(&mut self, client: ClientKey, world: WorldId) {
        if let Some(guest) = self.guests[client.0 as usize].as_mut() {
            guest.world = world;
            guest.dismissed = false;
        }
    }

    /// The client's connection is over: its address and slot are free again.
    pub fn left(&mut self, client: ClientKey) -> Option<ClientId> {
        let guest = self.guests[client.0 as usize].take()?;
        self.key_of.remove(&guest.address);
        self.gate.disconnected(guest.client_id, guest.address);
        self.free.push(client);
        Some(guest.client_id)
    }

    /// Frees what belongs to the clients of a world that is no more. They are not told: their connections went with it.
    pub fn lost_world(&mut self, world: WorldId, mut each: impl FnMut(ClientId)) {
        for index in 0..self.guests.len() {
            if self.guests[index].as_ref().is_some_and(|guest| guest.world == world)
                && let Some(client_id) = self.left(ClientKey(index as u32))
            {
                each(client_id);
            }
        }
    }

    /// Tells every client's world to let it go.
    pub fn dismiss_all(&mut self, mailboxes: &[Arc<Mailbox>], reason: &'static str) {
        for (index, guest) in self.guests.iter_mut().enumerate() {
            if let Some(guest) = guest.as_mut().filter(|guest| !guest.dismissed) {
                guest.dismissed = true;
                let client = ClientKey(index as u32);
                mailboxes[guest.world.0 as usize].push(Mail::Dismiss { client, reason });
            }
        }
    }

    pub fn players_count(&self) -> usize {
        self.key_of.len()
    }
}

#[cfg(test)]
mod tests;
