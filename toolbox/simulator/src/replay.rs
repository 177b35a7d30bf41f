//! Replay: a server alone, fed with what another one received.
//!
//! Same settings, same seeds, same datagrams in the same frames: so every world must have the same state at every tick,
//! with however many workers. What does not come again has read something that it should not have: a clock, a random
//! device, the order in which threads finished.

use throng::Server;
use throng::inspection::WorldHash;
use throng::server::ServerError;
use throng_net::transport::{Recording, ReplayTransport};

use crate::settings::{SERVER_ADDRESS, SimulationSettings};
use crate::virtual_server::VirtualServer;

/// A finished replay.
pub struct Replay {
    virtual_server: VirtualServer,
}

impl Replay {
    /// Runs a server through the whole recording. `settings` and `build` are those of the recorded simulation, except
    /// for `workers_count`, which must not matter; `record` and `impairment` have no effect.
    pub fn run<T>(
        settings: &SimulationSettings,
        recording: Recording,
        build: impl FnOnce(&mut Server) -> Result<T, ServerError>,
    ) -> Result<Self, ServerError> {
        // The server asks its transport once a frame.
        let frames = recording.calls();
        let transport = ReplayTransport::new(recording, SERVER_ADDRESS);
        let (mut virtual_server, _) = VirtualServer::new(settings, Box::new(transport), build)?;
        for _ in 0..frames {
            virtual_server.begin_frame();
            virtual_server.run_frame();
        }
        Ok(Self { virtual_server })
    }

    /// The hashes of all worlds and ticks, if `settings.hash` was set.
    pub fn hashes(&self) -> &[WorldHash] {
        &self.virtual_server.hashes
    }

    /// The server as it is at the end.
    pub fn server_mut(&mut self) -> &mut Server {
        &mut self.virtual_server.server
    }
}
