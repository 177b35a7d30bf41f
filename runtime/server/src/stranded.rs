//! Stranded clients: their world panicked, was parked, or went back to its last save, and they wait for another.
//!
//! A world that panicked must not tick again, and its clients have done nothing wrong: their connections go on. To the
//! game each has left and comes anew. Its directory is asked in every frame, as for one who logs in, until it names a
//! world or refuses; a game that has a fresh world made answers `Pending` meanwhile. What the player was and carried is
//! lost with the world.
//!
//! ```text
//! world panicked -> directory: world_ended, left -> place -> World   -> arrives as a newcomer does
//!                                                         -> Pending -> asked again in the next frame
//!                                                         -> Refuse  -> told, and disconnected
//! ```
//!
//! Worlds that panic again and again are not made for ever ([`crate::parking`]); then the directory refuses.
//!
//! Bounded in time, by `placement_timeout_s`, and in number: whose worlds panic [`WORLDS_LOST_MAX`] times, no more than a
//! minute apart, is disconnected, since the fault may come with its player. What it sends while it waits is lost, as on a bad line.
//!
//! Frame thread. Cost: one question to the directory per client and frame.

use throng_platform::time::Nanos;
use throng_profiler::log_info;
use throng_world::Client;

use crate::{
    address_table::CLIENTS,
    directory::{Directory, Placement},
    saves::{Placing, WithSaves},
    server::Server,
};

/// A world may fail twice by chance. The third time, each within [`Client::LOSSES_FORGOTTEN_AFTER`] of the one before, it is likely to be the
/// player that brings the fault along.
const WORLDS_LOST_MAX: u32 = 3;

/// A client without a world.
pub(crate) struct Stranded {
    client: Box<Client>,
    since: Nanos,
    /// Told if there is no other world.
    why: &'static str,
    /// The directory takes it for one that is to be placed.
    is_pending: bool,
}

impl Server {
    /// Keeps a client whose world panicked.
    pub(crate) fn strand(&mut self, mut client: Box<Client>, now: Nanos) {
        if client.lose_world(now) >= WORLDS_LOST_MAX {
            return self.disconnect(client, "its worlds panicked again and again");
        }
        self.place_anew(client, now, "its world is gone");
    }

    /// Keeps a client whose world is gone through no fault of its own.
    pub(crate) fn place_anew(&mut self, client: Box<Client>, now: Nanos, why: &'static str) {
        Directory::left(&mut self.directory, client.client_id());
        self.stranded.push_back(Stranded { client, since: now, why, is_pending: false });
    }

    /// Asks for a world for each of those who have none.
    pub(crate) fn place_stranded(&mut self, now: Nanos) {
        for _ in 0..self.stranded.len() {
            let Some(Stranded { client, since, why, is_pending }) = self.stranded.pop_front() else { break };
            if self.addresses.is_closing() {
                match is_pending {
                    true => self.disconnect(client, "the server is closing"),
                    false => _ = self.disconnect_unplaced(client, "the server is closing"),
                }
                continue;
            }
            let saves = self.saves.as_mut();
            let mut placing = WithSaves { directory: &mut self.directory, saves, now };
            match placing.place(client.client_id(), client.user_data()) {
                Placement::World(world) if self.mailboxes.get(world).is_some() => {
                    log_info!(CLIENTS, client = client.client_id().0, %world, "client whose world is gone goes on in another");
                    self.counts.server.clients_placed_again += 1;
                    let carried = placing.carried(client.client_id());
                    self.addresses.moved(client.key(), world);
                    self.mailboxes.push_arrival(world, client, None, carried);
                }
                Placement::Pending if now.saturating_sub(since) < self.addresses.placement_timeout() => {
                    self.stranded.push_back(Stranded { client, since, why, is_pending: true });
                }
                // The directory takes it for placed.
                Placement::Pending => self.disconnect(client, "its world is gone, and no other was made in time"),
                Placement::World(_) => self.disconnect(client, "its world is gone, and the other has ended"),
                Placement::Refuse(reason) => {
                    log_info!(CLIENTS, client = client.client_id().0, reason, "client whose world is gone is refused");
                    self.disconnect_unplaced(client, why);
                }
            }
        }
    }
}
