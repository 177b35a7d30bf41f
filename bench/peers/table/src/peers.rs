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
    /// More clients are left out: the clients' process would need several gigabytes.
    pub clients_max: u32,
    /// Only these loads; all if none.
    pub loads: &'static [&'static str],
}

const MANY: u32 = u32::MAX;
const UDP: &[&str] = &["--udp"];

pub const ROWS: &[Row] = &[
    Row {
        name: "floor",
        peer: "floor",
        program: "peer-floor",
        arguments: &[],
        includes: "query, gather, AES-128-GCM; nothing else",
        clients_max: MANY,
        loads: &[],
    },
    Row {
        name: "floor, 2 workers",
        peer: "floor",
        program: "peer-floor",
        arguments: &["--workers", "2"],
        includes: "as above, packets written by two threads",
        clients_max: MANY,
        loads: &["W1", "W2"],
    },
    Row {
        name: "throng",
        peer: "throng",
        program: "peer-throng",
        arguments: &[],
        includes: "query, acks, owed pieces, ChaCha20-Poly1305",
        clients_max: MANY,
        loads: &[],
    },
    Row {
        name: "throng, 2 workers",
        peer: "throng",
        program: "peer-throng",
        arguments: &["--workers", "2"],
        includes: "as above, packets written by two threads",
        clients_max: MANY,
        loads: &["W1", "W2"],
    },
    Row {
        name: "bevy_replicon",
        peer: "bevy_replicon",
        program: "peer-replicon",
        arguments: &[],
        includes: "acks; no query, no transport, no cipher",
        clients_max: MANY,
        loads: &[],
    },
    Row {
        name: "lightyear",
        peer: "lightyear",
        program: "peer-lightyear",
        arguments: &[],
        includes: "acks, packets; no query, no cipher",
        clients_max: 1000,
        loads: &[],
    },
    Row {
        name: "naia",
        peer: "naia",
        program: "peer-naia",
        arguments: &[],
        includes: "acks, packets; no query, no cipher",
        clients_max: MANY,
        loads: &[],
    },
    Row {
        name: "floor, UDP",
        peer: "floor",
        program: "peer-floor",
        arguments: UDP,
        includes: "as floor, and sendmmsg or GSO",
        clients_max: MANY,
        loads: &[],
    },
    Row {
        name: "throng, UDP",
        peer: "throng",
        program: "peer-throng",
        arguments: UDP,
        includes: "as throng, and its own UDP batches",
        clients_max: MANY,
        loads: &[],
    },
];
