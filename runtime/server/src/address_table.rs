//! Address table: every datagram comes in here and goes to its world, to the handshake, or nowhere.
//!
//! A datagram of a known address is charged to its client and put, still sealed, in the mailbox of the world that has
//! the client; opening it is the worker's part. Anything else goes to the handshake
//! (`throng_net::protocol::server_handshake`), which proves addresses and tokens and keeps a line of those who are
//! proven. When a frame's datagrams are in, the front of that line is called, at a rate that is set, and the game's
//! directory says into which world each goes:
//!
//! ```text
//! datagrams of strangers -> handshake: proven, in line -> called -> World    -> admitted
//!                                                                -> Pending  -> asked again each frame (`placements`)
//!                                                                -> Refuse   -> told why
//! ```
//!
//! A player who comes back after a crash, under the same address or a new one, has a session still: the one that shows a
//! fresh token takes it over. The earlier one is dismissed, as if its player had left, and the game is asked when it is
//! gone. So the steps of a handshake go to the handshake under a client's address, too; what ends a session is only a
//! whole one, with a token that was made for that client and a response under that token's keys.
//!
//! Whoever knows a player's address can write it on datagrams of their own. What stands between them and that player's
//! place:
//!
//! | who forges | what they know | what keeps the client in |
//! | --- | --- | --- |
//! | somebody anywhere | address and port, by guess | the sequence: one in 2^28 of theirs is plausible, the others are charged to nobody |
//! | somebody anywhere | address and port; forges a handshake | the cookie and the challenge go to the client, who did not ask and drops them |
//! | somebody on the path | the sequences too | the common reserve: up to 40,000 packets/s or 4 MiB/s over the clients' allowances are opened |
//! | somebody on the path with more than that | | nothing: a part of the client's own is lost with theirs. They could as well drop them all |
//!
//! Nobody of these can have the client dismissed, since only what opens counts against it.
//!
//! Runs on the frame thread, in `begin`. Cost per datagram: one hash lookup, one copy, one lock that nobody else wants.

use std::{collections::BTreeMap, net::SocketAddr};

use foldhash::{HashMap, HashMapExt};
use throng_metrics::counters;
use throng_net::{
    connection::Connection,
    protocol::{
        Admitted, ClientId, DenialReason, DropReason, Reply, SequenceMark, ServerHandshake, ServerHandshakeOutcome,
        ServerHandshakeStats, UserData, asks_for_audit, is_handshake_step,
    },
    transport::{DatagramSender, ServerTransport},
};
use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_error, log_info, log_warn};

use throng_world::{
    Client, MailItem,
    allowance::{Allowance, Verdict},
    ids::{ClientKey, WorldId},
};

use self::placements::{Next, Pending, Placements};
use crate::{directory::Placement, mailboxes::Mailboxes, saves::Placing, settings::ServerSettings};

mod placements;

log_category!(
    /// Who comes, who is refused, who goes.
    pub(crate) CLIENTS = "server.clients"
);

const TAKEN_OVER: &str = "its player came back with a fresh token";

/// Datagrams taken from the sockets per frame at most: 16 times what 1,000 clients at 20 Hz send in a 60 Hz frame. What
/// is left waits in the kernel's buffer, so a flood costs a bounded share of the frame.
const DATAGRAMS_PER_FRAME_MAX: usize = 5_400;

/// How often it is said at most that plain netcode is off: anybody can send what asks for it.
const PLAIN_TOLD_EVERY: Nanos = Nanos::from_secs(60);

/// Time between two lines about connect tokens that were refused.
const REFUSALS_TOLD_EVERY: Nanos = Nanos::from_secs(1);

counters! {
    /// What came in since the counts were last taken.
    pub(crate) struct AdmissionCounts {
        Sum packets: "net.packets_in", "packets",
            "Datagrams received, of clients and of strangers.",
            "Follows players. Without them: a flood; see `net.refused_by_handshake`.";
        Sum bytes: "net.bytes_in", "bytes",
            "Bytes of datagrams received.",
            "As `net.packets_in`.";
        Sum refused_by_handshake: "net.refused_by_handshake", "datagrams",
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
        Sum sessions_taken_over: "server.sessions_taken_over", "clients",
            "Sessions ended because their player came back with a fresh token.",
            "Clients crash, or change their address: some are usual with mobile networks. One player again and again: two who share an \
             account.";
        Sum placements_timed_out: "server.placements_timed_out", "clients",
            "Clients whose world was not made in time.",
            "The game's directory asks for worlds faster than they are made. Look at `server.worlds_created` and at what \
             building a world costs.";
        Sum waiting_left: "server.waiting_left", "clients",
            "Clients that fell silent while they waited to come in.",
            "Players who gave up. Raise `joins_per_frame_max` in the settings if frames have room.";
        Sum refused_queue_full: "server.refused_queue_full", "clients",
            "Clients sent away because the line of those who log in was full.",
            "A storm of log-ins. Clients come again by themselves; raise the length of the line in the settings if they \
             wait too long.";
        Sum tokens_refused: "server.tokens_refused", "clients",
            "Clients that were told that their connect token is used, too old, or not for this server.",
            "The log names client and reason. Used: a client that shows a token twice. Too old: clocks apart, or a token \
             that is kept for long. Not for this server: `public_addresses` or `protocol_id` differ between the settings \
             and whoever makes tokens.";
        Max join_wait_ms: "server.join_wait_ms", "ms",
            "Longest wait in line of a client that was let in.",
            "As `server.waiting_left`.";
        Sum refused_by_game: "server.refused_by_game", "clients",
            "Clients that the game did not let in.",
            "The log says the game's reason for each.";
        Sum send_dropped: "net.send_dropped", "datagrams",
            "Datagrams to clients or strangers that the kernel did not take. What clients miss is sent again.",
            "The socket's send buffer is too small, or the network card cannot keep up: raise `send_buffer_bytes` in \
             the settings.";
    }
}

/// Those who wait to come in, as they stand.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct WaitingFigures {
    pub in_line: usize,
    /// Called, and their world is being made.
    pub for_world: usize,
    /// Longest that anybody had waited who was let in, since the start.
    pub wait_max: Nanos,
    /// Since the start: gave up in line, and were sent away because it was full.
    pub fell_silent: u64,
    pub refused_full: u64,
}

struct AddressEntry {
    client: ClientKey,
    world: WorldId,
    allowance: Allowance,
    mark: SequenceMark,
    dismissed: bool,
}

impl AddressEntry {
    /// Tells the client's world to let it go, unless that one has been told.
    fn dismiss(&mut self, mailboxes: &Mailboxes, reason: &'static str) {
        if std::mem::replace(&mut self.dismissed, true) {
            return;
        }
        if let Some(mailbox) = mailboxes.get(self.world) {
            mailbox.push(MailItem::Dismiss { client: self.client, reason });
        }
    }
}

pub(crate) struct AddressTable {
    server_handshake: ServerHandshake,
    entries: HashMap<SocketAddr, AddressEntry>,
    /// In the order in which they came, which is the order in which they are dismissed.
    address_of: BTreeMap<ClientKey, SocketAddr>,
    keys_given: u32,
    sender: Box<dyn DatagramSender>,
    reply: Reply,
    packets_per_s_max: u32,
    bytes_per_s_max: u32,
    messages_per_s_max: u32,
    audit_samples: bool,
    /// What clients may use over their own allowances, all together.
    reserve: Allowance,
    placements: Placements,
    /// The server is ending: nobody is let in any more.
    is_closing: bool,
    /// The server is overloaded: those in line stay there.
    is_line_closed: bool,
    pub counts: AdmissionCounts,
    /// As the counts were last taken.
    waiting_before: WaitingFigures,
    /// When it was last said that plain netcode is off.
    plain_told_at: Option<Nanos>,
    refusal_told_at: Option<Nanos>,
    /// Refused tokens since the last line about them.
    refusals_untold: u64,
}

impl AddressTable {
    pub fn new(server_handshake: ServerHandshake, sender: Box<dyn DatagramSender>, settings: &ServerSettings) -> Self {
        Self {
            server_handshake,
            entries: HashMap::new(),
            address_of: BTreeMap::new(),
            keys_given: 0,
            sender,
            reply: Reply::new(),
            packets_per_s_max: settings.client_packets_per_s_max,
            bytes_per_s_max: settings.client_bytes_per_s_max,
            messages_per_s_max: settings.client_messages_per_s_max,
            audit_samples: settings.audit_samples,
            reserve: Allowance::reserve(Nanos::ZERO),
            placements: Placements::new(settings.placements_pending_max, settings.placement_timeout_s),
            is_closing: false,
            is_line_closed: false,
            counts: AdmissionCounts::default(),
            waiting_before: WaitingFigures::default(),
            plain_told_at: None,
            refusal_told_at: None,
            refusals_untold: 0,
        }
    }

    /// Takes what the sockets have and delivers it; then the line moves.
    pub fn receive(
        &mut self,
        transport: &mut dyn ServerTransport,
        mailboxes: &Mailboxes,
        directory: &mut dyn Placing,
        now: Nanos,
        unix_s: u64,
    ) {
        self.server_handshake.begin_frame(now, unix_s);
        transport.receive(&mut |from, datagram| self.deliver(from, datagram, mailboxes, now), DATAGRAMS_PER_FRAME_MAX);
        self.place_pending(mailboxes, directory, now);
        self.call_from_line(mailboxes, directory, now);
        self.counts.send_dropped += self.sender.flush().dropped as u64;
    }

    fn deliver(&mut self, from: SocketAddr, datagram: &mut [u8], mailboxes: &Mailboxes, now: Nanos) {
        self.counts.packets += 1;
        self.counts.bytes += datagram.len() as u64;
        let Some(entry) = self.entries.get_mut(&from) else { return self.handle_stranger(from, datagram, now) };
        if !entry.mark.is_plausible(datagram) {
            // A client that crashed may come back from the same port: if it proves itself, its session is taken over.
            if is_handshake_step(datagram) {
                return self.handle_stranger(from, datagram, now);
            }
            self.counts.implausible += 1;
            return;
        }
        if entry.allowance.spend(datagram.len(), now) != Verdict::Pass {
            if self.reserve.spend(datagram.len(), now) != Verdict::Pass {
                self.counts.over_allowance += 1;
                return;
            }
            self.counts.on_reserve += 1;
        }
        // A client whose world has just ended is told so; what it still sends is lost.
        if mailboxes.get(entry.world).is_some_and(|mailbox| !mailbox.push_datagram(entry.client, datagram)) {
            self.counts.mailbox_full += 1;
        }
    }

    /// A datagram of an address without a connection, or a step of a handshake under the address of one.
    fn handle_stranger(&mut self, from: SocketAddr, datagram: &mut [u8], now: Nanos) {
        if self.is_closing {
            self.counts.refused_by_handshake += 1;
            return;
        }
        let outcome = self.server_handshake.handle(from, datagram, &mut self.reply);
        self.send_reply(from);
        match outcome {
            ServerHandshakeOutcome::Nothing(reason) => {
                self.counts.refused_by_handshake += 1;
                if reason == DropReason::PlainNetcodeOff {
                    self.tell_that_plain_netcode_is_off(now);
                }
            }
            ServerHandshakeOutcome::Refused { client_id, reason } => {
                self.counts.refused_by_handshake += 1;
                self.counts.tokens_refused += 1;
                self.tell_of_refused_token(client_id, reason, now);
            }
            ServerHandshakeOutcome::Replied | ServerHandshakeOutcome::Queued => {}
        }
    }

    /// Whoever has one old token can show it as often as it likes, so not each time has a line.
    fn tell_of_refused_token(&mut self, client_id: ClientId, reason: DenialReason, now: Nanos) {
        self.refusals_untold += 1;
        if self.refusal_told_at.is_none_or(|told_at| now.saturating_sub(told_at) >= REFUSALS_TOLD_EVERY) {
            self.refusal_told_at = Some(now);
            let times = std::mem::take(&mut self.refusals_untold);
            let (client, reason) = (client_id.0, reason.name());
            log_info!(CLIENTS, client, reason, times, "a client's connect token is refused, the last of so many");
        }
    }

    /// A client that speaks plain netcode hears nothing, and can tell nobody why.
    fn tell_that_plain_netcode_is_off(&mut self, now: Nanos) {
        if self.plain_told_at.is_none_or(|told_at| now.saturating_sub(told_at) >= PLAIN_TOLD_EVERY) {
            self.plain_told_at = Some(now);
            log_warn!(
                CLIENTS,
                "a client without address cookies gets no answer: set plain_netcode = true in [server] if such clients are \
                 to come in"
            );
        }
    }

    /// Asks again about those whose worlds were not ready.
    fn place_pending(&mut self, mailboxes: &Mailboxes, directory: &mut dyn Placing, now: Nanos) {
        if self.placements.len() == 0 {
            return;
        }
        let mut waiting = self.placements.take();
        let mut is_paused = false;
        waiting.retain_mut(|pending| {
            let next = if is_paused { Next::Wait } else { self.place_again(pending, mailboxes, directory, now) };
            is_paused |= matches!(next, Next::Pause);
            !matches!(next, Next::Done)
        });
        self.placements.put_back(waiting);
    }

    fn place_again(
        &mut self,
        pending: &mut Pending,
        mailboxes: &Mailboxes,
        directory: &mut dyn Placing,
        now: Nanos,
    ) -> Next {
        let Pending { client_id, address, .. } = *pending;
        // Of one whose earlier session has not ended the directory knows that session only.
        let mut left = || {
            if pending.session.is_none() {
                directory.left(client_id)
            }
        };
        if !self.server_handshake.is_called(address, client_id) {
            self.counts.waiting_left += 1;
            left();
            return Next::Done;
        }
        if self.is_closing {
            log_info!(CLIENTS, client = client_id.0, "client refused: the server is closing");
            self.refuse(address, DenialReason::Unable);
            left();
            return Next::Done;
        }
        if let Some(session) = pending.session {
            if self.server_handshake.is_connected(client_id) {
                return self.await_end_of(session, pending, mailboxes, now);
            }
            pending.session = None;
        }
        if !self.server_handshake.may_admit() {
            return Next::Pause;
        }
        match self.place(client_id, &pending.user_data, mailboxes, directory) {
            Ok(Some(world)) => self.admit((client_id, address), world, mailboxes, directory, now),
            Ok(None) if self.placements.is_over(pending, now) => {
                log_info!(CLIENTS, client = client_id.0, "client refused: its world was not made in time");
                self.counts.placements_timed_out += 1;
                self.refuse(address, DenialReason::WorldNotReady);
                directory.left(client_id);
            }
            Ok(None) => return Next::Wait,
            Err(reason) => self.refuse(address, reason),
        }
        Next::Done
    }

    /// A client waits for its earlier session to end. Again in every frame: a player on the way to another world is let go
    /// by the one that it reaches.
    fn await_end_of(&mut self, session: SocketAddr, pending: &Pending, mailboxes: &Mailboxes, now: Nanos) -> Next {
        if self.placements.is_over(pending, now) {
            let client = pending.client_id.0;
            log_warn!(
                CLIENTS,
                client,
                "client refused: its earlier session has not ended; does the world of that hang?"
            );
            self.refuse(pending.address, DenialReason::AlreadyConnected);
            return Next::Done;
        }
        self.dismiss(session, mailboxes, TAKEN_OVER);
        Next::Wait
    }

    /// Whether those in line stay there for now, with their places; whoever was called comes in all the same.
    pub fn close_line(&mut self, is_closed: bool) {
        self.is_line_closed = is_closed;
    }

    /// Calls those at the front of the line, as many as may come in in a frame.
    fn call_from_line(&mut self, mailboxes: &Mailboxes, directory: &mut dyn Placing, now: Nanos) {
        while !self.is_closing && !self.is_line_closed && !self.placements.is_full() {
            let Some(called) = self.server_handshake.call_next() else { return };
            if !called.is_recorded {
                self.refuse(called.address, DenialReason::Unable);
                continue;
            }
            if let Some(session) = called.session {
                log_info!(CLIENTS, client = called.client_id.0, "client came back: its earlier session ends");
                self.counts.sessions_taken_over += 1;
                self.dismiss(session, mailboxes, TAKEN_OVER);
                self.placements.add(called, now);
                continue;
            }
            match self.place(called.client_id, &called.user_data, mailboxes, directory) {
                Ok(Some(world)) => self.admit((called.client_id, called.address), world, mailboxes, directory, now),
                Ok(None) => self.placements.add(called, now),
                Err(reason) => self.refuse(called.address, reason),
            }
        }
    }

    /// The directory's answer, held against the worlds that there are: a world, or none yet. A refusal is counted and
    /// logged here.
    fn place(
        &mut self,
        client_id: ClientId,
        user_data: &UserData,
        mailboxes: &Mailboxes,
        directory: &mut dyn Placing,
    ) -> Result<Option<WorldId>, DenialReason> {
        let client = client_id.0;
        match directory.place(client_id, user_data) {
            Placement::World(world) if mailboxes.get(world).is_none() => {
                log_error!(CLIENTS, client, %world, "the game's directory names a world that does not exist any more");
                self.counts.refused_by_game += 1;
                Err(DenialReason::NoSuchWorld)
            }
            Placement::World(world) => Ok(Some(world)),
            Placement::Pending => Ok(None),
            Placement::Refuse(reason) => {
                log_info!(CLIENTS, client, reason, "client refused by the game");
                self.counts.refused_by_game += 1;
                Err(DenialReason::RefusedByGame)
            }
        }
    }

    fn refuse(&mut self, address: SocketAddr, reason: DenialReason) {
        self.server_handshake.refuse(address, reason, &mut self.reply);
        self.send_reply(address);
    }

    /// A called client has a world.
    fn admit(
        &mut self,
        (client_id, address): (ClientId, SocketAddr),
        world: WorldId,
        mailboxes: &Mailboxes,
        directory: &mut dyn Placing,
        now: Nanos,
    ) {
        let admitted = self.server_handshake.admit(address, &mut self.reply);
        self.send_reply(address);
        let Some(admitted) = admitted else {
            // Its token could not be kept: to the game it has come and gone.
            directory.left(client_id);
            return;
        };
        let Admitted { link, user_data, .. } = *admitted;
        let mark = link.sequence_mark();
        let connection = Connection::new(link, address, client_id, now);
        let client = self.next_key();
        let allowance = Allowance::of_address(self.packets_per_s_max, self.bytes_per_s_max, now);
        self.entries.insert(address, AddressEntry { client, world, allowance, mark, dismissed: false });
        self.address_of.insert(client, address);
        self.counts.joined += 1;
        let allowance = Allowance::new(self.packets_per_s_max, self.bytes_per_s_max, now);
        let allowance = allowance.with_messages(self.messages_per_s_max);
        let is_audited = self.audit_samples && asks_for_audit(&user_data);
        let client = Client::new(client, connection, Box::new(user_data), allowance).with_audits(is_audited);
        let client = Box::new(client);
        mailboxes.push_arrival(world, client, None, directory.carried(client_id));
    }

    /// Keys count up; those of clients that are still here when the count has gone round are passed over.
    fn next_key(&mut self) -> ClientKey {
        loop {
            let key = ClientKey(self.keys_given);
            self.keys_given = self.keys_given.wrapping_add(1);
            if !self.address_of.contains_key(&key) {
                return key;
            }
        }
    }

    /// Sends what the handshake has left in `reply`, if anything.
    fn send_reply(&mut self, to: SocketAddr) {
        let reply = self.reply.bytes();
        if !reply.is_empty() {
            self.sender.buffer()[..reply.len()].copy_from_slice(reply);
            self.sender.commit(to, reply.len());
        }
    }

    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// For how long a client waits for its world to be made.
    pub fn placement_timeout(&self) -> Nanos {
        self.placements.patience()
    }

    /// Lets nobody in any more.
    pub fn close(&mut self) {
        self.is_closing = true;
    }

    /// From now on the client's datagrams go to `world`.
    pub fn moved(&mut self, client: ClientKey, world: WorldId) {
        let entry = self.address_of.get(&client).and_then(|address| self.entries.get_mut(address));
        if let Some(entry) = entry {
            entry.world = world;
            entry.dismissed = false;
        }
    }

    /// The client's connection is over: its address and slot are free again.
    pub fn left(&mut self, client: ClientKey) -> Option<ClientId> {
        let address = self.address_of.remove(&client)?;
        self.entries.remove(&address);
        self.server_handshake.disconnected(address)
    }

    /// Tells a client that no world has that its connection is over.
    pub fn say_goodbye(&mut self, client: &mut Client, now: Nanos) {
        client.connection_mut().close(now, &mut *self.sender);
    }

    /// Tells every client's world to let it go.
    pub fn dismiss_all(&mut self, mailboxes: &Mailboxes, reason: &'static str) {
        for address in self.address_of.values() {
            self.entries.get_mut(address).into_iter().for_each(|entry| entry.dismiss(mailboxes, reason));
        }
    }

    fn dismiss(&mut self, address: SocketAddr, mailboxes: &Mailboxes, reason: &'static str) {
        self.entries.get_mut(&address).into_iter().for_each(|entry| entry.dismiss(mailboxes, reason));
    }

    /// As `dismiss_all`, for one player.
    pub fn dismiss_player(&mut self, mailboxes: &Mailboxes, player: ClientId, reason: &'static str) {
        if let Some(address) = self.server_handshake.session_of(player) {
            self.dismiss(address, mailboxes, reason);
        }
    }

    pub fn players_count(&self) -> usize {
        self.entries.len()
    }

    /// The world of each player, in no order.
    pub fn worlds_of_players(&self) -> impl Iterator<Item = WorldId> {
        self.entries.values().map(|entry| entry.world)
    }

    /// Whether somebody waits to come in: the frames must go on.
    pub fn has_waiting(&self) -> bool {
        self.server_handshake.queued_count() > 0
    }

    /// What was counted since the last call.
    pub fn take_counts(&mut self) -> AdmissionCounts {
        let mut counts = std::mem::take(&mut self.counts);
        let (now, before) = (self.waiting(), self.waiting_before);
        counts.waiting_left += now.fell_silent - before.fell_silent;
        counts.refused_queue_full = now.refused_full - before.refused_full;
        counts.join_wait_ms = now.wait_max.as_micros() / 1_000;
        self.waiting_before = now;
        counts
    }

    /// What the handshake has counted since the start.
    pub fn handshake_stats(&self) -> &ServerHandshakeStats {
        self.server_handshake.stats()
    }

    pub fn waiting(&self) -> WaitingFigures {
        WaitingFigures {
            in_line: self.server_handshake.queued_count().saturating_sub(self.placements.len()),
            for_world: self.placements.len(),
            wait_max: self.server_handshake.stats().queue_wait_max,
            fell_silent: self.server_handshake.stats().queue_silent,
            refused_full: self.server_handshake.stats().denied_queue_full,
        }
    }
}

#[cfg(test)]
mod placement_tests;
#[cfg(test)]
mod tests;
