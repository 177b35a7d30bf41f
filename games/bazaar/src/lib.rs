//! Two markets, and coins in purses and chests, as a game with every command: what saves are tried with from outside. Beside
//! them, where many saved worlds are wanted, stalls that nobody visits ([`stalls`]).
//!
//! The game is that of the simulator's tests, which play it on a virtual clock and on disks that fail. Here it is a process:
//! `tests/saves` kills it, stops it, takes its disk and its PostgreSQL away, and counts the coins.
//!
//! With `[game] ledger` it tells a socket what is on disk, as it learns of it: the ledger outside, that a kill cannot reach.

#[path = "../../../toolbox/simulator/tests/saves/bazaar.rs"]
mod markets;
pub mod stalls;

use std::{os::unix::net::UnixStream, path::PathBuf};

use serde::Deserialize;
use throng::settings::{Checks, Section};
use throng_cli::Game;
use throng_faults::FaultSwitch;

pub use markets::*;

/// `[game]` of `throng.toml`.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub struct BazaarSettings {
    /// The socket that is told what is on disk. Default none.
    ledger: Option<PathBuf>,
    /// The number that the first market is saved under [1 to 1,000,000]; the other one has the next. Default 11.
    /// Of two processes with one store each has markets of its own.
    first_market: u64,
    /// A market's record grows by 4 KiB with each save until it has so many bytes, and then begins anew [0 to 2,097,152].
    /// Default 0. For disks that are to become full.
    hoard_bytes_max: u32,
    /// Saved worlds beside the markets [0 to 10,000]. Default 0. They tick while nobody is in them. `--inject dies-of-...`
    /// and `hungry-world` are about the first of them.
    stalls: u32,
}

impl Default for BazaarSettings {
    fn default() -> Self {
        Self { ledger: None, first_market: MARKETS[0], hoard_bytes_max: 0, stalls: 0 }
    }
}

impl Section for BazaarSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.range("first_market", self.first_market, 1..=1_000_000, "");
        checks.range("hoard_bytes_max", self.hoard_bytes_max, 0..=HOARD_BYTES_MAX as u32, "bytes");
        checks.range("stalls", self.stalls, 0..=10_000, "");
    }
}

/// All that the commands know of the game.
pub fn game() -> Game {
    Game::with_settings(
        env!("CARGO_PKG_NAME"),
        || protocol().schema(),
        |server, arguments, settings: &BazaarSettings| {
            let ledger = settings.ledger.as_ref().map(UnixStream::connect).transpose()?;
            let markets = [settings.first_market, settings.first_market + 1];
            let site = Site { form: Form::Chest, markets, hoard_bytes_max: settings.hoard_bytes_max as usize };
            let ledger = ledger.map(|socket| Ledger::new(socket).with_deeds());
            furnish_as(server, ledger.clone(), &site)?;
            let faults = arguments.faults.iter().filter_map(|fault| fault.in_world()).collect();
            stalls::furnish_stalls(server, settings.stalls, ledger, faults)?;
            Ok(())
        },
    )
    .about("two markets, and coins in purses and chests")
    .version(env!("CARGO_PKG_VERSION"))
    .players(16, 1_000)
    .faults(|fault| matches!(fault, FaultSwitch::Dies(_) | FaultSwitch::HungryWorld))
    .saves(|purse: &Purse, items| items(COIN, purse.coins.into()))
    .saves(|market: &SavedMarket, items| items(COIN, market.coins.into()))
    .saves(|_: &stalls::Stall, _| {})
    .bots(|_options, _scenario| |_bot: usize| Customer(BUSY))
}

/// As bots are.
pub const BUSY: Habits = Habits { wishes: 0.8, goes: 0.1, panics: 0.0 };
