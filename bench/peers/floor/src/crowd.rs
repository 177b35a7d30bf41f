//! Crowd: clients that open packets and believe them.

use std::collections::BTreeMap;

use peers_scenario::{Clients, Held, Load, Outbox, PACKED_BYTES, Scene, Terms, unpack};

use crate::cipher::{Cipher, TAG_BYTES};
use crate::gather::RECORD_BYTES;

struct Client {
    cipher: Cipher,
    tick: u32,
    packets: u32,
    held: BTreeMap<u32, Held>,
}

pub struct FloorClients {
    clients: Vec<Client>,
    /// What is not told anew is still there.
    is_lasting: bool,
    is_plain: bool,
}

impl Clients for FloorClients {
    fn new(terms: &Terms, _scene: &Scene) -> Self {
        let client = |number| Client { cipher: Cipher::new(number), tick: 0, packets: 0, held: BTreeMap::new() };
        let clients = (0..terms.clients).map(client).collect();
        Self { clients, is_lasting: matches!(terms.load, Load::W3 | Load::W4), is_plain: terms.plain }
    }

    fn receive(&mut self, client: u32, packet: &mut [u8]) {
        let client = &mut self.clients[client as usize];
        let tick = u32::from_le_bytes(packet[..4].try_into().expect("4 bytes"));
        if tick != client.tick {
            (client.tick, client.packets) = (tick, 0);
            if !self.is_lasting {
                client.held.clear();
            }
        }
        let index = client.packets;
        client.packets += 1;
        let end = packet.len() - TAG_BYTES;
        let records = if self.is_plain { &mut packet[4..end] } else { client.cipher.open(index, packet) };
        for record in records.as_chunks::<RECORD_BYTES>().0 {
            let number = u32::from_le_bytes(record[..4].try_into().expect("4 bytes"));
            let pose = unpack(record[4..4 + PACKED_BYTES].try_into().expect("7 bytes"));
            let health = u16::from_le_bytes(record[4 + PACKED_BYTES..].try_into().expect("2 bytes"));
            client.held.insert(number, Held { number, pose, health });
        }
    }

    fn tick(&mut self, _out: &mut Outbox) {}

    fn held(&mut self, client: u32, into: &mut Vec<Held>) {
        into.extend(self.clients[client as usize].held.values());
    }
}
