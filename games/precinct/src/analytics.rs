//! Analytics: what is told of play to those who decide about the game. See `docs/guide/analytics.md`.
//!
//! A thousand players: some log-ins and deaths a second in all, a trade now and then.

use throng::analytics;

use crate::passport::PlayerName;

analytics!(
    /// A player has logged in, in the world where it stands now.
    pub PlayerJoined = "player.joined", 1 { player: PlayerName, kills: u32, deaths: u32, gear: u32 }
);

analytics!(
    /// A player's connection has ended.
    pub PlayerLeft = "player.left", 1 { player: PlayerName, kills: u32, deaths: u32 }
);

analytics!(
    /// A player was shot dead.
    pub PlayerDowned = "player.downed", 1 { player: PlayerName, by_npc: bool, gear_lost: u32, x_m: f32, y_m: f32, z_m: f32 }
);

analytics!(
    /// Two players have exchanged gear, or one has given it away.
    pub Trade = "trade", 1 { from: PlayerName, to: PlayerName, gear: u64, is_gift: bool }
);
