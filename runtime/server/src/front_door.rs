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

use std::net::SocketAddr;

use foldhash::{HashMap, HashMapExt};
use throng_net::{
    connection::Connection,
    protocol::{Admitted, ClientId, Gate, GateOutcome, Reply, SequenceMark},
    transport::{DatagramSender, ServerTransport},
};
use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_error, log_info};

use throng_world::{
    Client, MailItem,
    allowance::{Allowance, Verdict},
    ids::{ClientKey, WorldId},
};

use crate::{
    directory::{Directory, Placement},
    mailboxes::Mailboxes,
    settings::ServerSettings,
};

log_category!(
    /// Who comes, who is refused, who goes.
    pub(crate) DOOR = "server.door"
);

/// Datagrams taken from the sockets per frame at most: 16 times what 1,000 clients at 20 Hz send in a 60 Hz frame. What is left
/// waits in the kernel's buffer, so a flood costs a bounded share of the frame.
const DATAGRAMS_PER_FRAME_MAX: usize = 5_400;

/// What came in since the counts were last taken.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct DoorCounts {
    pub packets: u64,
    pub bytes: u64,
    pub refused_by_gate: u64,
    /// Under a client's address, but of no shape or sequence that the client's may have.
    pub implausible: u64,
    pub over_allowance: u64,
    /// Over its client's allowance, and passed on the reserve.
    pub on_reserve: u64,
    pub mailbox_full: u64,
    pub joined: u64,
    /// Datagrams of strangers that came after as many had joined in their frame as may.
    pub joins_postponed: u64,
    pub refused_by_game: u64,
    pub send_dropped: u64,
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
        mailboxes: &Mailboxes,
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

    fn deliver(&mut self, client: ClientKey, datagram: &mut [u8], mailboxes: &Mailboxes, now: Nanos) {
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
        // A client whose world has just ended is told so; what it still sends is lost.
        if mailboxes.get(guest.world).is_some_and(|mailbox| !mailbox.push_datagram(client, datagram)) {
            self.counts.mailbox_full += 1;
        }
    }

    /// A datagram of an address without a connection.
    fn knock(
        &mut self,
        from: SocketAddr,
        datagram: &mut [u8],
        mailboxes: &Mailboxes,
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

    fn let_in(&mut self, admitted: Admitted, mailboxes: &Mailboxes, directory: &mut dyn Directory, now: Nanos) {
        let Admitted { link, client_id, user_data, address } = admitted;
        let mark = link.sequence_mark();
        let mut connection = Connection::new(link, address, client_id, now);
        let placement = match directory.place(client_id, &user_data) {
            Placement::World(world) if mailboxes.get(world).is_none() => {
                log_error!(DOOR, %world, "the game's directory names a world that does not exist any more");
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
        let allowance = Allowance::new(self.packets_per_s_max, self.bytes_per_s_max, now);
        let client = Box::new(Client::new(client, connection, Box::new(user_data), allowance));
        if let Some(mailbox) = mailboxes.get(world) {
            mailbox.push(MailItem::Arrival { client, from: None, transfer: None });
        }
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

    /// Tells a client that no world has that its connection is over.
    pub fn say_goodbye(&mut self, client: &mut Client, now: Nanos) {
        client.connection_mut().close(now, &mut *self.sender);
    }

    /// Tells every client's world to let it go.
    pub fn dismiss_all(&mut self, mailboxes: &Mailboxes, reason: &'static str) {
        for (index, guest) in self.guests.iter_mut().enumerate() {
            if let Some(guest) = guest.as_mut().filter(|guest| !guest.dismissed) {
                guest.dismissed = true;
                let client = ClientKey(index as u32);
                if let Some(mailbox) = mailboxes.get(guest.world) {
                    mailbox.push(MailItem::Dismiss { client, reason });
                }
            }
        }
    }

    pub fn players_count(&self) -> usize {
        self.key_of.len()
    }
}

#[cfg(test)]
mod tests;
