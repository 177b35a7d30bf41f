//! The shipped server on a clock that somebody else moves.

use std::sync::Arc;

use rand::RngCore;
use throng::Server;
use throng::inspection::WorldHash;
use throng::server::{Environment, ServerError};
use throng_net::transport::ServerTransport;
use throng_platform::allocator;
use throng_platform::clock::{Clock, ManualClock};
use throng_platform::steal::ManualSteal;
use throng_platform::time::Nanos;

use crate::settings::{Purpose, SERVER_ADDRESS, SimulationSettings};

/// The date at the start of every simulation: connect tokens have one in them.
const UNIX_AT_START_S: u64 = 1_700_000_000;

pub(crate) struct VirtualServer {
    pub server: Server,
    pub clock: ManualClock,
    /// Frames that are over.
    pub frames: u64,
    /// Of all worlds and ticks so far, if they are wanted.
    pub hashes: Vec<WorldHash>,
    /// Allocations of the server's frames so far, those of the worlds' ticks left out.
    pub frame_allocations: u64,
}

/// The server's invariants are asserted so often: once a second of its time at 60 frames/s.
const CHECK_PERIOD_FRAMES: u64 = 60;

impl VirtualServer {
    /// A server that is ready for its first frame.
    pub fn new<T>(
        settings: &SimulationSettings,
        transport: Box<dyn ServerTransport>,
        build: impl FnOnce(&mut Server) -> Result<T, ServerError>,
    ) -> Result<(Self, T), ServerError> {
        let clock = ManualClock::new();
        clock.set_unix_at_start(UNIX_AT_START_S);
        let mut seed = [0; 32];
        settings.rng(Purpose::Server).fill_bytes(&mut seed);
        let environment = Environment {
            clock: Arc::new(clock.clone()),
            transport,
            steal: Box::new(ManualSteal::new(settings.workers_count)),
            seed,
            private_key: settings.private_key(),
            public_addresses: vec![SERVER_ADDRESS],
            workers_count: settings.workers_count,
        };
        let mut server = Server::with_environment(&settings.server, settings.schema.clone(), environment);
        let built = build(&mut server)?;
        server.want_hashes(settings.hash);
        server.prepare(clock.now())?;
        Ok((Self { server, clock, frames: 0, hashes: Vec::new(), frame_allocations: 0 }, built))
    }

    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    pub fn unix_seconds(&self) -> u64 {
        self.clock.unix_seconds()
    }

    /// Moves the clock to the beginning of the next frame. Worlds whose ticks took longer than a frame have moved it
    /// farther: then, as in a server that runs, the newest frame that has begun is next.
    pub fn begin_frame(&mut self) -> Nanos {
        while self.server.start_of_frame(self.frames + 1) <= self.clock.now() {
            self.frames += 1;
        }
        self.clock.set(self.server.start_of_frame(self.frames));
        self.now()
    }

    /// Everything stands still for so long, as when a host pauses its guest: frames that begin meanwhile are left out.
    pub fn stand_still(&mut self, by: Nanos) {
        let until = self.now() + by;
        while self.server.start_of_frame(self.frames) < until {
            self.frames += 1;
        }
    }

    /// Sets the date.
    pub fn set_unix_seconds(&mut self, unix_s: u64) {
        self.clock.set_unix_at_start(unix_s.saturating_sub(self.now().0 / 1_000_000_000));
    }

    /// Runs that frame. Its worlds are all back at the end: nobody moves the clock while they run, or only they do.
    pub fn run_frame(&mut self) {
        let before = allocator::thread_counts().allocations;
        self.server.frame(self.frames);
        self.frame_allocations += allocator::thread_counts().allocations - before;
        self.frames += 1;
        self.hashes.extend(self.server.take_hashes());
        if self.frames.is_multiple_of(CHECK_PERIOD_FRAMES) {
            self.server.check();
        }
    }
}
