//! Fingerprint: what a run of a game did, in one line by which two builds are compared.
//!
//! A change that is not meant to change a game leaves every world's state as it was at every tick, and every byte on
//! the wire. Packets are hashed as they were before they were sealed, and by player, since their order among players
//! is chance. The hashes are of this processor's arithmetic and its mathematical library: compare them on one host,
//! and never keep them.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
};

use crate::simulation::Simulation;

/// Hashes of all states and all packets of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    states_count: usize,
    states: u64,
    packets_count: u64,
    packets_bytes: u64,
    packets: u64,
}

impl Fingerprint {
    /// Runs so many frames and takes the fingerprint of what the simulation has done since it began. It must have
    /// been told to `hash` and to `tap`, and all its players are there.
    pub fn of(simulation: &mut Simulation, frames: u64) -> Self {
        let mut players: Vec<DefaultHasher> = simulation.players().iter().map(|_| DefaultHasher::new()).collect();
        let (mut packets_count, mut packets_bytes) = (0, 0);
        for _ in 0..frames {
            simulation.step();
            simulation.take_sent(|player, payload| {
                payload.hash(&mut players[player]);
                packets_count += 1;
                packets_bytes += payload.len() as u64;
            });
        }
        let (mut states, mut packets) = (DefaultHasher::new(), DefaultHasher::new());
        simulation.hashes().hash(&mut states);
        players.iter().for_each(|player| player.finish().hash(&mut packets));
        Self {
            states_count: simulation.hashes().len(),
            states: states.finish(),
            packets_count,
            packets_bytes,
            packets: packets.finish(),
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states_count, states, packets_count, packets_bytes, packets } = self;
        write!(f, "{states_count} hashes of worlds {states:016x}; ")?;
        write!(f, "{packets_count} packets of {packets_bytes} bytes {packets:016x}")
    }
}
