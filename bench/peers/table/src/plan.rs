//! Plan: which sizes are run, how often and how long.

use crate::Arguments;
use crate::peers::{ROWS, Row};

/// One scenario.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Size {
    pub load: &'static str,
    pub clients: u32,
    pub entities: u32,
}

pub struct Plan {
    /// Of the bench and its files.
    pub name: &'static str,
    pub sizes: Vec<Size>,
    pub rows: Vec<&'static Row>,
    pub rounds: u32,
    pub ticks: u32,
    pub warmup: u32,
    /// Slow peers are measured for so long per round. (s)
    pub seconds_max: u32,
    /// Then a peer is stopped and has no figures. (s)
    pub patience_s: u64,
}

/// The sizes for which there are goals, and the two whose ratio is the growth.
const SIZES: [Size; 7] = [
    Size { load: "W1", clients: 200, entities: 200 },
    Size { load: "W1", clients: 500, entities: 500 },
    Size { load: "W1", clients: 1000, entities: 1000 },
    Size { load: "W1", clients: 2000, entities: 2000 },
    Size { load: "W2", clients: 400, entities: 400 },
    Size { load: "W3", clients: 200, entities: 2000 },
    Size { load: "W4", clients: 1000, entities: 20_000 },
];

/// How one world fills up, and in which forms of ours that is measured.
const CROWDS: [u32; 5] = [250, 500, 1000, 2000, 4000];
const CROWDS_SMALL: [u32; 2] = [25, 50];
const CROWD_ROWS: [&str; 2] = ["throng", "throng, UDP"];

const LOADS: [&str; 4] = ["W1", "W2", "W3", "W4"];
/// Of each world of W4, of which each client has one.
const WORLD_ENTITIES: u32 = 20;

impl Plan {
    pub fn new(arguments: &Arguments) -> Self {
        let is_small = arguments.small;
        let is_wanted = |load: &str| arguments.loads.is_empty() || arguments.loads.iter().any(|one| one == load);
        let own_size = |load: &'static str, clients: u32| {
            let entities = match load {
                "W4" => clients * WORLD_ENTITIES,
                "W3" => arguments.entities.unwrap_or(clients * 10),
                _ => arguments.entities.unwrap_or(clients),
            };
            Size { load, clients, entities: entities.max(clients) }
        };
        let crowds = |sizes: &[u32]| -> Vec<Size> { sizes.iter().map(|&clients| own_size("W1", clients)).collect() };
        let sizes: Vec<Size> = match arguments.clients {
            Some(clients) if arguments.crowd => crowds(&[clients]),
            None if arguments.crowd && is_small => crowds(&CROWDS_SMALL),
            None if arguments.crowd => crowds(&CROWDS),
            Some(clients) => LOADS.into_iter().map(|load| own_size(load, clients)).collect(),
            None if is_small => LOADS.into_iter().map(|load| own_size(load, 50)).collect(),
            None => SIZES.to_vec(),
        };
        let sizes = sizes.into_iter().filter(|size| is_wanted(size.load)).collect();
        let is_named = |row: &Row| match &arguments.peers[..] {
            [] if arguments.crowd => CROWD_ROWS.contains(&row.name),
            [] => !is_small || matches!(row.peer, "throng" | "floor"),
            named => named.iter().any(|name| name == row.peer || name == row.name),
        };
        Self {
            name: if arguments.crowd { "crowd" } else { "peers" },
            sizes,
            rows: ROWS.iter().filter(|row| is_named(row)).collect(),
            rounds: arguments.rounds.unwrap_or(if is_small { 1 } else { 3 }),
            ticks: arguments.ticks.unwrap_or(if is_small { 20 } else { 300 }),
            warmup: 20,
            seconds_max: if is_small { 2 } else { 6 },
            patience_s: if is_small { 20 } else { 240 },
        }
    }
}

impl Row {
    /// Why this row has no figures in that size.
    pub fn left_out(&self, size: Size) -> Option<&'static str> {
        if !self.loads.is_empty() && !self.loads.contains(&size.load) {
            return Some("not of interest");
        }
        if size.clients < self.clients_min {
            return Some("too little work to share");
        }
        (size.clients > self.clients_max).then_some("too many clients for its clients' process")
    }
}
