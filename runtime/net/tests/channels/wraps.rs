//! Promise: numbers of 16 bits wrap and nobody notices. 200,000 packets each way, on a path that loses,
//! doubles and reorders; every packet's fate is checked against a model that counts in 64 bits.

use std::collections::HashMap;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::connection::{Channel, Channels, Received};
use throng_platform::time::Nanos;

const PACKETS: u64 = 200_000;
const PAYLOAD_BYTES: usize = 1_200;

#[derive(Default)]
struct Side {
    channels: Channels,
    received: Received,
    sent: u64,
    /// By the 64 bit number: the model's idea of a packet.
    took: HashMap<u64, ()>,
    fates: HashMap<u64, bool>,
    messages_sent: u32,
    messages_heard: u32,
    /// On the way to the other side.
    way: Vec<(u64, Vec<u8>)>,
}

impl Side {
    fn send(&mut self, now: Nanos, rng: &mut Xoshiro256PlusPlus) {
        if rng.random_bool(0.5) && self.channels.send_reliable(&self.messages_sent.to_le_bytes()).is_ok() {
            self.messages_sent += 1;
        }
        let mut payload = [0; PAYLOAD_BYTES];
        let (sequence, len) = self.channels.write(now, b"snapshot", &mut payload);
        assert_eq!(sequence.0, self.sent as u16);
        let number = self.sent;
        self.sent += 1;
        if rng.random_bool(0.9) {
            self.way.push((number, payload[..len].to_vec()));
        }
        if rng.random_bool(0.05) {
            self.way.push((number, payload[..len].to_vec()));
        }
    }

    /// Takes from the other side's way, in any order, until a few are left.
    fn hear(&mut self, now: Nanos, way: &mut Vec<(u64, Vec<u8>)>, rng: &mut Xoshiro256PlusPlus) {
        self.received.clear();
        while way.len() > rng.random_range(0..6) {
            let (number, payload) = way.swap_remove(rng.random_range(0..way.len()));
            if self.channels.read(now, &payload, &mut self.received).is_ok() {
                assert!(self.took.insert(number, ()).is_none(), "packet {number} was taken twice");
            }
        }
        self.channels.update(now, now, &mut self.received);
        for (channel, message) in self.received.messages() {
            if channel == Channel::Reliable {
                assert_eq!(message, self.messages_heard.to_le_bytes());
                self.messages_heard += 1;
            }
        }
    }

    /// Books the fates that were just told, against what the other side really took.
    fn book_fates(&mut self, other: &Side) {
        for (fates, acked) in [(&self.received.acked, true), (&self.received.lost, false)] {
            for sequence in fates {
                let last = self.sent - 1;
                let number = last - u64::from((last as u16).wrapping_sub(sequence.0));
                assert!(self.fates.insert(number, acked).is_none(), "packet {number} has two fates");
                assert!(!acked || other.took.contains_key(&number), "packet {number} never arrived");
            }
        }
    }
}

#[test]
fn two_hundred_thousand_packets_have_one_fate_each() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let (mut a, mut b) = (Side::default(), Side::default());
    let mut now = Nanos::ZERO;
    for _ in 0..PACKETS {
        now += Nanos::from_millis(20);
        a.send(now, &mut rng);
        b.send(now, &mut rng);
        a.hear(now, &mut b.way, &mut rng);
        b.hear(now, &mut a.way, &mut rng);
        a.book_fates(&b);
        b.book_fates(&a);
    }
    for side in [&a, &b] {
        side.channels.check();
        let open = PACKETS - side.fates.len() as u64;
        assert!(open < 64, "{open} packets without a fate");
        let acked = side.fates.values().filter(|&&acked| acked).count();
        assert!(acked as u64 > PACKETS * 7 / 10, "{acked} acked");
        assert!(side.messages_sent > 90_000, "fragment numbers wrapped, too");
    }
    assert!(a.messages_heard + 200 > b.messages_sent && b.messages_heard + 200 > a.messages_sent);
}
