//! Part: some of the clients, with all that a thread needs to open their mail and to tell them what changed.
//!
//! One part per worker. Parts go to threads that live on and come back, as in `server::clients_part`; what is told
//! does not depend on how clients are cut.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use peers_scenario::{Outbox, Terms};
use throng_net::connection::{Connection, PacketSink, Received};
use throng_net::protocol::{PACKET_BYTES_MAX, PAYLOAD_BYTES_MAX};
use throng_net::transport::{DatagramSender, ServerTransport, UdpTransport};
use throng_platform::allocator;
use throng_platform::prefetch;
use throng_platform::time::Nanos;
use throng_replication::{Share, ViewId};

/// As the server's own: packets for one client in one tick.
const PACKETS_PER_TICK_MAX: usize = 16;
/// Bytes that the kernel may hold of what a tick sends.
const SEND_BUFFER_BYTES: usize = 4 << 20;

/// What is to be done with a part.
#[derive(Copy, Clone)]
pub enum Work {
    Open,
    Tell,
}

pub struct Seat {
    pub connection: Connection,
    pub view: ViewId,
    /// Packets answered and given up since the view was told.
    acked: Vec<u16>,
    lost: Vec<u16>,
}

impl Seat {
    pub fn new(connection: Connection, view: ViewId) -> Self {
        Self { connection, view, acked: Vec::new(), lost: Vec::new() }
    }

    fn note(&mut self, received: &Received) {
        self.acked.extend(received.acked.iter().map(|packet| packet.0));
        self.lost.extend(received.lost.iter().map(|packet| packet.0));
    }
}

pub struct Part {
    /// Its clients.
    pub clients: Range<u32>,
    pub seats: Vec<Seat>,
    pub views: Vec<ViewId>,
    pub share: Share,
    pub now: Nanos,
    pub packets_lost: u64,
    /// Allocations on another thread than the world's.
    pub allocations_elsewhere: u64,
    /// Packets from clients, not opened yet.
    mail: Vec<u8>,
    letters: Vec<(u32, u32)>,
    snapshot: Vec<u8>,
    received: Received,
    way_out: WayOut,
}

enum WayOut {
    Memory(InMemory),
    Udp { sender: Box<dyn DatagramSender>, packets: u64, bytes: u64 },
}

/// Packets, and whose they are.
struct InMemory {
    buffer: Box<[u8; PACKET_BYTES_MAX]>,
    bytes: Vec<u8>,
    packets: Vec<(u32, u32)>,
    client: u32,
}

impl PacketSink for WayOut {
    fn buffer(&mut self) -> &mut [u8] {
        match self {
            Self::Memory(memory) => &mut memory.buffer[..],
            Self::Udp { sender, .. } => sender.buffer(),
        }
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        match self {
            Self::Memory(memory) => {
                memory.bytes.extend_from_slice(&memory.buffer[..len]);
                memory.packets.push((memory.client, len as u32));
            }
            Self::Udp { sender, packets, bytes } => {
                sender.commit(to, len);
                *packets += 1;
                *bytes += len as u64;
            }
        }
    }
}

impl Part {
    pub fn new(terms: &Terms, clients: Range<u32>, seats: Vec<Seat>) -> Self {
        let way_out = if terms.udp {
            let address = "127.0.0.1:0".parse().expect("an address");
            let bound = UdpTransport::bind(address, 1, SEND_BUFFER_BYTES, SEND_BUFFER_BYTES);
            let (mut transport, _) = bound.expect("a port is free");
            WayOut::Udp { sender: transport.sender(0), packets: 0, bytes: 0 }
        } else {
            let buffer = Box::new([0; PACKET_BYTES_MAX]);
            WayOut::Memory(InMemory { buffer, bytes: Vec::new(), packets: Vec::new(), client: 0 })
        };
        Self {
            clients,
            views: seats.iter().map(|seat| seat.view).collect(),
            seats,
            share: Share::default(),
            now: Nanos::ZERO,
            packets_lost: 0,
            allocations_elsewhere: 0,
            mail: Vec::new(),
            letters: Vec::new(),
            snapshot: Vec::with_capacity(PAYLOAD_BYTES_MAX),
            received: Received::default(),
            way_out,
        }
    }

    /// Keeps a packet of one of its clients to be opened.
    pub fn add_letter(&mut self, client: u32, packet: &[u8]) {
        self.mail.extend_from_slice(packet);
        self.letters.push((client - self.clients.start, packet.len() as u32));
    }

    fn run(&mut self, work: Work) {
        match work {
            Work::Open => self.open(),
            Work::Tell => self.tell(),
        }
    }

    fn open(&mut self) {
        let Self { mail, letters, seats, received, now, .. } = self;
        let mut rest = &mut mail[..];
        for place in 0..letters.len() {
            let connection = |letter: &(u32, u32)| &seats[letter.0 as usize].connection;
            let next = |letter: &(u32, u32)| connection(letter).prefetch_lists();
            prefetch::look_ahead(letters, place, next, |letter| connection(letter).prefetch());
            let (index, len) = letters[place];
            let (datagram, after) = rest.split_at_mut(len as usize);
            rest = after;
            let seat = &mut seats[index as usize];
            received.clear();
            seat.connection.receive(*now, datagram, received).expect("the clients' packets are in order");
            seat.note(received);
        }
        letters.clear();
        mail.clear();
    }

    fn tell(&mut self) {
        let Self { clients, seats, share, now, snapshot, received, way_out, .. } = self;
        for index in 0..seats.len() {
            let client = clients.start + index as u32;
            let next = |seat: &Seat| {
                share.prefetch_lists(seat.view);
                seat.connection.prefetch_lists();
            };
            let after_next = |seat: &Seat| {
                share.prefetch(seat.view);
                seat.connection.prefetch();
            };
            prefetch::look_ahead(seats, index, next, after_next);
            let seat = &mut seats[index];
            received.clear();
            seat.connection.update(*now, received);
            seat.note(received);
            self.packets_lost += seat.lost.len() as u64;
            seat.acked.drain(..).for_each(|packet| share.acked(seat.view, packet));
            seat.lost.drain(..).for_each(|packet| share.lost(seat.view, packet));
            share.refresh(seat.view);
            if let WayOut::Memory(memory) = way_out {
                memory.client = client;
            }
            for _ in 0..PACKETS_PER_TICK_MAX {
                snapshot.resize(seat.connection.room(*now), 0);
                let len = share.write_snapshot(seat.view, 0, snapshot);
                if len == 0 && !seat.connection.wants_packet(*now) {
                    break;
                }
                let packet = seat.connection.send_packet(*now, &snapshot[..len], way_out);
                if len > 0 {
                    share.sent(seat.view, packet.0);
                }
            }
        }
        if let WayOut::Udp { sender, .. } = way_out {
            assert_eq!(sender.flush().dropped, 0, "the kernel takes everything");
        }
    }

    /// Copies what was sent in this tick to the wire.
    pub fn hand_over(&mut self, out: &mut Outbox) {
        match &mut self.way_out {
            WayOut::Memory(memory) => {
                let mut rest = &memory.bytes[..];
                for (client, len) in memory.packets.drain(..) {
                    let (packet, after) = rest.split_at(len as usize);
                    out.push(client, packet);
                    rest = after;
                }
                memory.bytes.clear();
            }
            WayOut::Udp { packets, bytes, .. } => out.count_many(std::mem::take(packets), std::mem::take(bytes)),
        }
    }
}

/// A thread that takes a part and gives it back.
pub struct Helper {
    to: SyncSender<(Work, Part)>,
    from: Receiver<Part>,
}

impl Helper {
    pub fn new() -> Self {
        let (to, parts) = sync_channel::<(Work, Part)>(1);
        let (done, from) = sync_channel(1);
        thread::spawn(move || {
            for (work, mut part) in parts {
                let before = allocator::thread_counts().allocations;
                part.run(work);
                part.allocations_elsewhere += allocator::thread_counts().allocations - before;
                if done.send(part).is_err() {
                    break;
                }
            }
        });
        Self { to, from }
    }
}

/// Works on all parts: the first here, each of the others on its own thread.
pub fn run(parts: &mut Vec<Part>, helpers: &[Helper], work: Work) {
    for helper in helpers.iter().rev() {
        let part = parts.pop().expect("as many helpers as further parts");
        helper.to.send((work, part)).expect("helpers live on");
    }
    parts[0].run(work);
    for helper in helpers {
        parts.push(helper.from.recv().expect("helpers do not panic"));
    }
}
