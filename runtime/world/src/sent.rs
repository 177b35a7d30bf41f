//! Sent: what a world has sent since it was last asked, by kind and cause, for the packet report.
//!
//! What is written for clients outside of batches the world counts itself. While they are told, it lends each batch
//! counts: its own to the first, so that a small world has no others (1 KB with 5 kinds), and further ones to the rest.
//! Adding up gives the same in any order, and is done when somebody asks, once a second.
//!
//! On the world's own thread. Costs a tick nothing but the counting, and two moves for each batch. Made for the first
//! client; allocates nothing once as many batches as ever have been told.

use std::sync::Arc;

use throng_replication::{
    Schema, Traffic,
    traffic::{Counts, Overhead, TrafficRow},
};

/// What went out of a world since it was last asked.
pub(crate) struct Sent {
    schema: Arc<Schema>,
    /// Packets as they left, sealed.
    packets: Counts,
    /// What was written outside of batches, and by one of them. `None` before the first client, and while it is lent.
    traffic: Option<Traffic>,
    /// What the other batches wrote.
    of_batches: Vec<Traffic>,
}

impl Sent {
    pub fn new(schema: Arc<Schema>) -> Self {
        Self { schema, packets: Counts::default(), traffic: None, of_batches: Vec::new() }
    }

    /// From now on there is somebody to send to.
    pub fn begin(&mut self) {
        if self.traffic.is_none() {
            self.traffic = Some(Traffic::new(&self.schema));
        }
    }

    /// Where to count what is written outside of batches; `None` before the first client, and while batches are told.
    pub fn traffic_mut(&mut self) -> Option<&mut Traffic> {
        self.traffic.as_mut()
    }

    /// Where a batch is to count, for `take_back` when it is told.
    pub fn lend(&mut self) -> Traffic {
        self.traffic.take().or_else(|| self.of_batches.pop()).unwrap_or_else(|| Traffic::new(&self.schema))
    }

    /// Takes back what was lent. Nothing is counted outside of batches before all are back.
    pub fn take_back(&mut self, traffic: Traffic) {
        match self.traffic {
            None => self.traffic = Some(traffic),
            Some(_) => self.of_batches.push(traffic),
        }
    }

    /// Counts a message of the game's own.
    pub fn add_message(&mut self, message: &[u8]) {
        if let Some(traffic) = &mut self.traffic {
            let counts = Counts { packets: 1, bytes: message.len() as u64, updates: 1 };
            traffic.add_overhead(Overhead::Message, counts);
        }
    }

    /// Counts packets as they left, sealed.
    pub fn add_packets(&mut self, packets: u64, bytes: u64) {
        self.packets.add(Counts { packets, bytes, updates: 0 });
    }

    /// Gives everything by kind and cause, and forgets it. Nothing is lent.
    pub fn take(&mut self, row: impl FnMut(TrafficRow)) {
        let packets = std::mem::take(&mut self.packets);
        let Some(traffic) = &mut self.traffic else { return };
        if packets == Counts::default() {
            return;
        }
        self.of_batches.iter_mut().for_each(|counted| traffic.absorb(counted));
        // What nobody counted by its kind is the transport's: acks, sealing, what was sent again.
        let around = Counts { bytes: packets.bytes.saturating_sub(traffic.total().bytes), ..packets };
        traffic.add_overhead(Overhead::Transport, around);
        traffic.take(&self.schema, row);
    }
}

#[cfg(test)]
mod tests {
    use throng_replication::SchemaBuilder;

    use super::*;

    fn rows(sent: &mut Sent) -> Vec<(&'static str, u64)> {
        let mut rows = Vec::new();
        sent.take(|row| rows.push((row.kind, row.counts.bytes)));
        rows
    }

    #[test]
    fn what_batches_counted_is_in_the_sum_and_only_once() {
        let mut sent = Sent::new(SchemaBuilder::new().build());
        assert!(sent.traffic_mut().is_none());
        sent.begin();
        sent.add_message(b"seven b");
        for bytes in [10, 20] {
            let mut lent = [(); 2].map(|()| sent.lend());
            lent[0].add_overhead(Overhead::Snapshot, Counts { packets: 1, bytes, updates: 1 });
            lent.into_iter().for_each(|traffic| sent.take_back(traffic));
        }
        sent.add_packets(3, 50);
        assert_eq!(rows(&mut sent), [("snapshot", 30), ("message", 7), ("transport", 13)]);
        assert_eq!(rows(&mut sent), []);
    }
}
