//! World: the server's side.

use std::net::SocketAddr;

use nix::sys::socket::SockaddrStorage;
use peers_scenario::{Load, Outbox, Scene, Server, Sight, Terms};

use crate::cipher::{Cipher, TAG_BYTES};
use crate::gather::{Gather, RECORD_BYTES, append, record};
use crate::way_out::{WayOut, storage};

/// Records in a full packet: 1,200 bytes with tick and tag.
pub const RECORDS_MAX: usize = (1200 - 4 - TAG_BYTES) / RECORD_BYTES;
pub const PACKET_BYTES: usize = 4 + RECORDS_MAX * RECORD_BYTES + TAG_BYTES;

pub struct FloorServer {
    load: Load,
    is_plain: bool,
    gather: Gather,
    ciphers: Vec<Cipher>,
    records: Vec<u8>,
    /// All packets of the tick, client after client, and where each client's end.
    packets: Vec<u8>,
    ends: Vec<usize>,
    addresses: Vec<SockaddrStorage>,
    way_out: Option<WayOut>,
    updates: u64,
}

impl Server for FloorServer {
    fn new(terms: &Terms, _scene: &Scene, addresses: &[SocketAddr]) -> Self {
        Self {
            load: terms.load,
            is_plain: terms.plain,
            gather: Gather::default(),
            ciphers: (0..terms.clients).map(Cipher::new).collect(),
            records: Vec::new(),
            packets: Vec::new(),
            ends: Vec::new(),
            addresses: addresses.iter().copied().map(storage).collect(),
            way_out: terms.udp.then(WayOut::new),
            updates: 0,
        }
    }

    fn deliver(&mut self, _client: u32, _packet: &[u8]) {}

    fn tick(&mut self, scene: &Scene, _sight: &Sight) {
        self.packets.clear();
        self.ends.clear();
        self.records.clear();
        let is_shared = self.load != Load::W1;
        match self.load {
            Load::W1 => self.gather.fill(scene),
            // Everybody is told the same. What does not change is told once.
            Load::W3 if scene.tick > 1 => {
                scene.moved.iter().for_each(|&number| append(&record(scene, number as usize), &mut self.records));
            }
            _ => (0..scene.poses.len()).for_each(|number| append(&record(scene, number), &mut self.records)),
        }
        for client in 0..self.ciphers.len() {
            if !is_shared {
                self.records.clear();
                self.gather.copy_near(scene.poses[client].place, &mut self.records);
            }
            self.updates += (self.records.len() / RECORD_BYTES) as u64;
            for (index, records) in self.records.chunks(RECORDS_MAX * RECORD_BYTES).enumerate() {
                let begin = self.packets.len();
                self.packets.extend_from_slice(&scene.tick.to_le_bytes());
                self.packets.extend_from_slice(records);
                self.packets.extend_from_slice(&[0; TAG_BYTES]);
                if !self.is_plain {
                    self.ciphers[client].seal(index as u32, &mut self.packets[begin..]);
                }
            }
            self.ends.push(self.packets.len());
        }
        if let Some(way_out) = &mut self.way_out {
            let mut begin = 0;
            let clients = self.addresses.iter().zip(&self.ends).map(|(&address, &end)| {
                let packets = &self.packets[begin..end];
                begin = end;
                (address, packets)
            });
            let clients: Vec<_> = clients.collect();
            way_out.send(&clients, PACKET_BYTES);
        }
    }

    fn hand_over(&mut self, out: &mut Outbox) {
        if self.way_out.is_some() {
            let packets: usize = self
                .ends
                .iter()
                .scan(0, |begin, &end| {
                    let bytes = end - std::mem::replace(begin, end);
                    Some(bytes.div_ceil(PACKET_BYTES))
                })
                .sum();
            out.count_many(packets as u64, self.packets.len() as u64);
            return;
        }
        let mut begin = 0;
        for (client, &end) in self.ends.iter().enumerate() {
            for packet in self.packets[begin..end].chunks(PACKET_BYTES) {
                out.push(client as u32, packet);
            }
            begin = end;
        }
    }

    fn updates(&self) -> Option<u64> {
        Some(self.updates)
    }
}
