//! Floods of strangers at a live server. Nobody is answered with more than was asked, the server keeps nothing of it,
//! and players and newcomers do not notice.
//!
//! ```text
//!   reflection    what strangers get back
//!   connect       junk under tens of thousands of addresses
//!   unfinished    handshakes that nobody finishes
//!   forged        packets under the address of somebody who plays
//!   newcomers     honest ones who come in meanwhile
//! ```

mod connect;
mod forged;
pub mod newcomers;
mod reflection;
mod unfinished;

use std::net::SocketAddr;

use crate::{
    abuse::genuine_datagrams,
    child::{Server, folder},
};

const BOTS: usize = 16;
const SIZE: [&str; 4] = ["--players", "24", "--npcs", "48"];

/// Datagrams sent between two looks at what was answered.
const LISTEN_EVERY: u64 = 16;

/// Client ids of strangers with tokens, apart from those of players and crowds.
const STRANGER_ID_FIRST: u64 = 1_000_000;

/// A server with settings of its own.
fn start_with(name: &str, settings: &str, size: &[&str]) -> Server {
    let file = folder(name).join("throng.toml");
    std::fs::write(&file, settings).expect("a folder of ours");
    Server::start(&[&["--config", file.to_str().expect("a plain path")], size].concat())
}

/// What players really send, weighted towards the handshake.
fn what_is_genuine(server: SocketAddr) -> Vec<Vec<u8>> {
    let mut genuine = genuine_datagrams(server);
    genuine.truncate(12);
    let handshake = genuine[..3].to_vec();
    (0..4).for_each(|_| genuine.extend(handshake.clone()));
    genuine
}
