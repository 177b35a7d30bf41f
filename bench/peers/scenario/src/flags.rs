//! Terms: the command line of every peer.

use clap::{Parser, ValueEnum};

use crate::WORLD_ENTITIES;

/// Which world is replicated.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum Load {
    /// Everybody moves and hears the 50 or so within `SIGHT_M`.
    W1,
    /// Everybody moves and hears everybody.
    W2,
    /// One entity in a hundred changes per tick, and everybody hears all of them.
    W3,
    /// Each client has a small world of its own, in which 10 of 20 entities move, and hears all of it.
    W4,
}

/// What one run is like.
#[derive(Clone, Debug, Parser)]
pub struct Terms {
    pub load: Load,
    #[arg(long, default_value_t = 200)]
    pub clients: u32,
    /// At least as many as clients: each client owns one. Of `W4` as many as its worlds have.
    #[arg(long, default_value_t = 0)]
    pub entities: u32,
    /// Ticks that are measured.
    #[arg(long, default_value_t = 200)]
    pub ticks: u32,
    /// Ticks before them.
    #[arg(long, default_value_t = 60)]
    pub warmup: u32,
    /// Measuring stops after so many seconds, but not before 20 ticks.
    #[arg(long, default_value_t = 60.0)]
    pub seconds_max: f64,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Real sockets on 127.0.0.1 instead of memory, for peers that offer it.
    #[arg(long)]
    pub udp: bool,
    /// Without the cipher, for peers that offer the choice.
    #[arg(long)]
    pub plain: bool,
    /// Threads that write packets, for peers that offer it.
    #[arg(long, default_value_t = 1)]
    pub workers: u32,
    /// Not kept on one core, though one worker needs no more.
    #[arg(long)]
    pub on_all_cores: bool,
    /// This process is the clients of a server that started it.
    #[arg(long, hide = true)]
    pub is_clients: bool,
}

impl Terms {
    /// What this process was started with.
    pub fn from_arguments() -> Self {
        let mut terms = Self::parse();
        terms.clients = terms.clients.max(1);
        terms.entities = match terms.load {
            Load::W4 => terms.clients * WORLD_ENTITIES,
            _ => terms.entities.max(terms.clients),
        };
        terms.ticks = terms.ticks.max(1);
        terms
    }
}
