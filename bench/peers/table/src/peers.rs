//! Peers: which there are, and in which forms they run. To add one, add a line here; see `docs/peers.md`.

/// One row of the table: a program and how it is started.
pub struct Row {
    /// As the table names it.
    pub name: &'static str,
    /// Which peer it is a form of.
    pub peer: &'static str,
    /// The program beside this one.
    pub program: &'static str,
    pub arguments: &'static [&'static str],
    /// What its time includes and what not, in a few words.
    pub includes: &'static str,
    /// Fewer clients are left out: too little work to share.
    pub clients_min: u32,
    /// More clients are left out: the clients' process would need several gigabytes.
    pub clients_max: u32,
    /// Only these loads; all if none.
    pub loads: &'static [&'static str],
}

const MANY: u32 = u32::MAX;
/// Clients from which a second worker is measured.
const SHARED_MIN: u32 = 400;
const ON_ALL_CORES: &[&str] = &["--on-all-cores"];
const UDP: &[&str] = &["--udp"];
/// The loads that every peer is written for.
const ONE_WORLD: &[&str] = &["W1", "W2", "W3"];

pub const ROWS: &[Row] = &[
    Row {
        name: "floor",
        peer: "floor",
        program: "peer-floor",
        arguments: &[],
        includes: "query (not in W4), gather, AES-128-GCM; nothing else",
        clients_min: 0,
        clients_max: MANY,
        loads: &[],
    },
    Row {
        name: "floor, 1 worker",
        peer: "floor",
        program: "peer-floor",
        arguments: ON_ALL_CORES,
        includes: "as floor, on all cores",
        clients_min: SHARED_MIN,
        clients_max: MANY,
        loads: &["W1", "W2"],
    },
    Row {
        name: "floor, 2 workers",
        peer: "floor",
        program: "peer-floor",
        arguments: &["--workers", "2"],
        includes: "as floor, on all cores, packets written by two threads",
        clients_min: SHARED_MIN,
        clients_max: MANY,
        loads: &["W1", "W2"],
    },
    Row {
        name: "throng",
        peer: "throng",
        program: "peer-throng",
        arguments: &[],
        includes: "query, acks, owed values, pacing, ChaCha20-Poly1305; in W4 the whole frame",
        clients_min: 0,
        clients_max: MANY,
        loads: &[],
    },
    Row {
        name: "throng, 1 worker",
        peer: "throng",
        program: "peer-throng",
        arguments: ON_ALL_CORES,
        includes: "as throng, on all cores",
        clients_min: SHARED_MIN,
        clients_max: MANY,
        loads: &["W1", "W2"],
    },
    Row {
        name: "throng, 2 workers",
        peer: "throng",
        program: "peer-throng",
        arguments: &["--workers", "2"],
        includes: "as throng, on all cores, packets written by two threads",
        clients_min: SHARED_MIN,
        clients_max: MANY,
        loads: &["W1", "W2"],
    },
    Row {
        name: "bevy_replicon",
        peer: "bevy_replicon",
        program: "peer-replicon",
        arguments: &[],
        includes: "acks; no query, no transport, no cipher",
        clients_min: 0,
        clients_max: MANY,
        loads: ONE_WORLD,
    },
    Row {
        name: "lightyear",
        peer: "lightyear",
        program: "peer-lightyear",
        arguments: &[],
        includes: "acks, packets; no query, no cipher",
        clients_min: 0,
        clients_max: 1000,
        loads: ONE_WORLD,
    },
    Row {
        name: "naia",
        peer: "naia",
        program: "peer-naia",
        arguments: &[],
        includes: "acks, packets; no query, no cipher",
        clients_min: 0,
        clients_max: MANY,
        loads: ONE_WORLD,
    },
    Row {
        name: "floor, UDP",
        peer: "floor",
        program: "peer-floor",
        arguments: UDP,
        includes: "as floor, and sendmmsg or GSO",
        clients_min: 0,
        clients_max: MANY,
        loads: &[],
    },
    Row {
        name: "throng, UDP",
        peer: "throng",
        program: "peer-throng",
        arguments: UDP,
        includes: "as throng, and its own UDP batches",
        clients_min: 0,
        clients_max: MANY,
        loads: &[],
    },
];
