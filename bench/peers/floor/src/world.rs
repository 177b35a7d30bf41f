//! World: the server's side.

use std::net::SocketAddr;

use nix::sys::socket::SockaddrStorage;
use peers_scenario::{Load, Outbox, Scene, Server, Sight, Terms, WORLD_ENTITIES, WORLD_MOVERS};

use crate::cipher::{Cipher, TAG_BYTES};
use crate::gather::{Gather, RECORD_BYTES, append, record};
use crate::way_out::{WayOut, storage};

/// Records in a full packet: 1,200 bytes with tick and tag.
pub const RECORDS_MAX: usize = (1200 - 4 - TAG_BYTES) / RECORD_BYTES;
pub const PACKET_BYTES: usize = 4 + RECORDS_MAX * RECORD_BYTES + TAG_BYTES;
// A small world is told in one packet.
const _: () = assert!(WORLD_ENTITIES as usize <= RECORDS_MAX);

pub struct FloorServer {
    load: Load,
    is_plain: bool,
    gather: Gather,
    /// What everybody is told, where all are told the same.
    shared: Vec<u8>,
    /// One for each worker.
    parts: Vec<Part>,
    addresses: Vec<SockaddrStorage>,
    way_out: Option<WayOut>,
}

/// Some clients, and all packets for them in a tick, client after client.
struct Part {
    first: usize,
    ciphers: Vec<Cipher>,
    records: Vec<u8>,
    packets: Vec<u8>,
    /// Where each client's packets end.
    ends: Vec<usize>,
    updates: u64,
}

impl Part {
    fn write(&mut self, scene: &Scene, gather: &Gather, shared: Option<&[u8]>, is_plain: bool) {
        let Self { first, ciphers, records, packets, ends, updates } = self;
        packets.clear();
        ends.clear();
        for (client, cipher) in (*first..).zip(ciphers) {
            let records = shared.unwrap_or_else(|| {
                records.clear();
                gather.copy_near(scene.poses[client].place, records);
                records
            });
            *updates += (records.len() / RECORD_BYTES) as u64;
            for (index, records) in records.chunks(RECORDS_MAX * RECORD_BYTES).enumerate() {
                let begin = packets.len();
                packets.extend_from_slice(&scene.tick.to_le_bytes());
                packets.extend_from_slice(records);
                packets.extend_from_slice(&[0; TAG_BYTES]);
                if !is_plain {
                    cipher.seal(index as u32, &mut packets[begin..]);
                }
            }
            ends.push(packets.len());
        }
    }

    /// Tells each client of the first `count` entities of its own world, which become its packet where they are written.
    fn write_worlds(&mut self, scene: &Scene, count: u32, is_plain: bool) {
        let Self { first, ciphers, packets, ends, updates, .. } = self;
        packets.clear();
        ends.clear();
        for (client, cipher) in (*first..).zip(ciphers) {
            let begin = packets.len();
            packets.extend_from_slice(&scene.tick.to_le_bytes());
            let number = client * WORLD_ENTITIES as usize;
            (number..number + count as usize).for_each(|number| append(&record(scene, number), packets));
            packets.extend_from_slice(&[0; TAG_BYTES]);
            if !is_plain {
                cipher.seal(0, &mut packets[begin..]);
            }
            *updates += u64::from(count);
            ends.push(packets.len());
        }
    }

    /// Each client's packets of this tick.
    fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let mut begin = 0;
        self.ends.iter().map(move |&end| &self.packets[std::mem::replace(&mut begin, end)..end])
    }
}

impl Server for FloorServer {
    fn new(terms: &Terms, _scene: &Scene, addresses: &[SocketAddr]) -> Self {
        let clients: Vec<u32> = (0..terms.clients).collect();
        let parts = clients.chunks(terms.clients.div_ceil(terms.workers.max(1)) as usize).map(|clients| Part {
            first: clients[0] as usize,
            ciphers: clients.iter().map(|&client| Cipher::new(client)).collect(),
            records: Vec::new(),
            packets: Vec::new(),
            ends: Vec::new(),
            updates: 0,
        });
        Self {
            load: terms.load,
            is_plain: terms.plain,
            gather: Gather::default(),
            shared: Vec::new(),
            parts: parts.collect(),
            addresses: addresses.iter().copied().map(storage).collect(),
            way_out: terms.udp.then(WayOut::new),
        }
    }

    fn deliver(&mut self, _client: u32, _packet: &[u8]) {}

    fn tick(&mut self, scene: &Scene, _sight: &Sight) {
        let Self { load, is_plain, gather, shared, parts, addresses, way_out } = self;
        shared.clear();
        match load {
            Load::W1 => gather.fill(scene),
            Load::W4 => {}
            // What does not change is told once.
            Load::W3 if scene.tick > 1 => {
                scene.moved.iter().for_each(|&number| append(&record(scene, number as usize), shared));
            }
            _ => (0..scene.poses.len()).for_each(|number| append(&record(scene, number), shared)),
        }
        let shared = (*load != Load::W1).then_some(&shared[..]);
        // Of a small world, too, what does not change is told once.
        let own_world = (*load == Load::W4).then_some(if scene.tick > 1 { WORLD_MOVERS } else { WORLD_ENTITIES });
        let (here, elsewhere) = parts.split_first_mut().expect("there are clients");
        // A thread for each tick, which costs some 30 us: only the row of two workers has any.
        std::thread::scope(|scope| {
            let (gather, is_plain) = (&*gather, *is_plain);
            let write = move |part: &mut Part| match own_world {
                Some(count) => part.write_worlds(scene, count, is_plain),
                None => part.write(scene, gather, shared, is_plain),
            };
            elsewhere.iter_mut().for_each(|part| {
                scope.spawn(move || write(part));
            });
            write(here);
        });
        if let Some(way_out) = way_out {
            let packets = parts.iter().flat_map(Part::packets);
            let clients: Vec<_> = addresses.iter().copied().zip(packets).collect();
            way_out.send(&clients, PACKET_BYTES);
        }
    }

    fn hand_over(&mut self, out: &mut Outbox) {
        for (client, packets) in self.parts.iter().flat_map(Part::packets).enumerate() {
            if self.way_out.is_some() {
                out.count_many(packets.len().div_ceil(PACKET_BYTES) as u64, packets.len() as u64);
            } else {
                packets.chunks(PACKET_BYTES).for_each(|packet| out.push(client as u32, packet));
            }
        }
    }

    fn updates(&self) -> Option<u64> {
        Some(self.parts.iter().map(|part| part.updates).sum())
    }
}
