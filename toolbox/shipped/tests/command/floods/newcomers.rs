//! Newcomers: honest clients who come in one after the other while something else happens.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::{
    address::token,
    child::Server,
    figures::{Window, both, window},
    player::Player,
};

/// What a newcomer is promised.
const SOON: Duration = Duration::from_secs(2);

/// How newcomers fared.
#[derive(Default)]
pub struct Newcomers {
    /// How long those took that came in soon.
    pub took: Vec<Duration>,
    pub failed: usize,
}

impl Newcomers {
    /// One after the other comes in and goes, from now until `over`.
    pub fn come(server: SocketAddr, per_s: u32, over: &AtomicBool) -> Self {
        let mut newcomers = Self::default();
        for number in 0.. {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let begin = Instant::now();
            // Eight slots in turns: the one before may not be empty yet.
            let mut player = Player::new(token(server, 1 + number % 8));
            if player.play_until(SOON, |player| player.is_connected()) {
                newcomers.took.push(begin.elapsed());
            } else {
                newcomers.failed += 1;
            }
            player.leave();
            std::thread::sleep((Duration::from_secs(1) / per_s).saturating_sub(begin.elapsed()));
        }
        newcomers
    }

    pub fn share_in_soon(&self) -> f64 {
        self.took.len() as f64 / (self.took.len() + self.failed).max(1) as f64
    }
}

/// What a flood did, and to whom.
pub struct Flooded {
    pub window: Window,
    pub newcomers: Newcomers,
}

/// `flood` happens, and newcomers come in beside it.
pub fn flooded(server: &Server, newcomers_per_s: u32, flood: impl FnOnce() + Send) -> Flooded {
    let over = AtomicBool::new(false);
    let (window, newcomers) = window(server, || {
        let flood_then_over = || {
            flood();
            over.store(true, Ordering::Relaxed);
        };
        both(flood_then_over, || Newcomers::come(server.address, newcomers_per_s, &over)).1
    });
    Flooded { window, newcomers }
}
