//! The simulation: one frame after the other, of everything.

use rand::RngCore;
use rand_chacha::ChaCha20Rng;
use throng::Server;
use throng::inspection::WorldHash;
use throng::server::ServerError;
use throng_bots::Behaviour;
use throng_net::transport::{Impairment, MemoryNetwork};
use throng_platform::clock::ManualClock;
use throng_platform::time::Nanos;
use throng_replication::Fault;

use crate::player::{Player, index_of};
use crate::settings::{Purpose, SERVER_ADDRESS, SimulationSettings};
use crate::tap::{TapTransport, Tapped};
use crate::totals::Totals;
use crate::virtual_server::VirtualServer;

/// A server and its players.
pub struct Simulation {
    settings: SimulationSettings,
    virtual_server: VirtualServer,
    network: MemoryNetwork,
    outgoing: Option<Tapped>,
    incoming: Option<Tapped>,
    players: Vec<Player>,
    rng: ChaCha20Rng,
}

impl Simulation {
    /// A server without players, built by `build`, which returns what it wants to be known about it: ids of worlds,
    /// say.
    pub fn new<T>(
        settings: &SimulationSettings,
        build: impl FnOnce(&mut Server) -> Result<T, ServerError>,
    ) -> Result<(Self, T), ServerError> {
        let network = MemoryNetwork::new(settings.rng(Purpose::Network).next_u64(), settings.impairment);
        let inner = Box::new(network.server(SERVER_ADDRESS));
        let (outgoing, incoming) = (settings.tap.then(Tapped::default), settings.tap_received.then(Tapped::default));
        let transport = TapTransport { inner, outgoing: outgoing.clone(), incoming: incoming.clone() };
        let (virtual_server, built) = VirtualServer::new(settings, Box::new(transport), build)?;
        let simulation = Self {
            settings: settings.clone(),
            virtual_server,
            network,
            outgoing,
            incoming,
            players: Vec::new(),
            rng: settings.rng(Purpose::Players),
        };
        Ok((simulation, built))
    }

    /// Sends a player in with the next frame; returns its index.
    pub fn join(&mut self, behaviour: Box<dyn Behaviour>) -> usize {
        let index = self.players.len();
        let time = (self.virtual_server.now(), self.virtual_server.unix_seconds());
        self.players.push(Player::new(index, behaviour, &self.settings, &self.network, &mut self.rng, time));
        index
    }

    /// Sends a player in anew, with a fresh token, whatever became of their connection: as after a crash of their program.
    pub fn join_again(&mut self, player: usize, behaviour: Box<dyn Behaviour>) {
        let time = (self.virtual_server.now(), self.virtual_server.unix_seconds());
        self.players[player] = Player::new(player, behaviour, &self.settings, &self.network, &mut self.rng, time);
    }

    /// The player says goodbye.
    pub fn leave(&mut self, player: usize) {
        self.players[player].leave(self.virtual_server.now());
    }

    /// From now on datagrams fare like this, both ways; those on their way fare as before.
    pub fn impair(&mut self, impairment: Impairment) {
        self.network.impair(impairment);
    }

    /// Runs one frame: first the players' half, then the server's.
    pub fn step(&mut self) {
        self.step_players();
        self.step_server();
    }

    /// The first half of a frame: its moment comes, packets arrive, and players think. For who takes the time of the
    /// server alone; [`step_server`](Self::step_server) follows.
    pub fn step_players(&mut self) {
        let now = self.virtual_server.begin_frame();
        let unix_s = self.virtual_server.unix_seconds();
        self.network.advance(now);
        self.players.iter_mut().for_each(|player| player.step(now, unix_s));
    }

    /// The second half: the server's frame.
    pub fn step_server(&mut self) {
        self.virtual_server.run_frame();
    }

    /// Server and players stand still for so long, as in a virtual machine that its host pauses; the clock goes on.
    pub fn stand_still(&mut self, seconds: f64) {
        self.virtual_server.stand_still(Nanos((seconds * 1e9) as u64));
    }

    /// What the server's wall clock says (seconds since 1970).
    pub fn unix_seconds(&self) -> u64 {
        self.virtual_server.unix_seconds()
    }

    /// Sets the host's date, by which connect tokens are judged. Whatever it is, time goes on evenly.
    pub fn set_unix_seconds(&mut self, unix_s: u64) {
        self.virtual_server.set_unix_seconds(unix_s);
    }

    /// Runs all frames that begin within so many seconds.
    pub fn run_for(&mut self, seconds: f64) {
        let until = self.next_frame_at() + Nanos((seconds * 1e9) as u64);
        while self.next_frame_at() < until {
            self.step();
        }
    }

    /// Runs until `is_done` or for so many seconds at most; true if it was done.
    pub fn run_until(&mut self, seconds_max: f64, mut is_done: impl FnMut(&mut Self) -> bool) -> bool {
        let until = self.next_frame_at() + Nanos((seconds_max * 1e9) as u64);
        while self.next_frame_at() < until {
            self.step();
            if is_done(self) {
                return true;
            }
        }
        false
    }

    /// The beginning of the frame that was run last.
    pub fn now(&self) -> Nanos {
        self.virtual_server.now()
    }

    /// Frames that are over.
    pub fn frames(&self) -> u64 {
        self.virtual_server.frames
    }

    /// In the order in which they joined, those whose connection is over included.
    pub fn players(&self) -> &[Player] {
        &self.players
    }

    /// What all players found so far.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for (index, player) in self.players.iter().enumerate() {
            player.count_into(&mut totals, index);
        }
        totals
    }

    /// Breaks what clients are told, and asserts that they notice within fifteen seconds: the negative control of a test
    /// that finds no state error.
    #[track_caller]
    pub fn check_fault_is_noticed(&mut self, fault: Fault) {
        self.run_for(5.0);
        assert_eq!(self.totals().state_errors, 0);
        self.server_mut().break_replication(fault);
        self.run_for(15.0);
        let totals = self.totals();
        println!("{fault:?}: {totals:?}");
        assert!(totals.state_errors > 0, "{fault:?} went unseen: {totals:#?}");
    }

    /// The server, between two frames: all worlds are at home.
    pub fn server_mut(&mut self) -> &mut Server {
        &mut self.virtual_server.server
    }

    /// Allocations of the server so far, in its frames and in the ticks of its worlds, where the program has a
    /// [`CountingAllocator`](throng_platform::allocator::CountingAllocator); 0 otherwise.
    pub fn allocations(&self) -> u64 {
        let VirtualServer { server, frame_allocations, .. } = &self.virtual_server;
        frame_allocations + server.count_of("world.allocations")
    }

    /// Runs so many frames, and returns what the server allocated in each.
    pub fn allocations_per_frame(&mut self, frames: usize) -> Vec<u64> {
        let mut before = self.allocations();
        let mut next = || {
            self.step();
            let now = self.allocations();
            now - std::mem::replace(&mut before, now)
        };
        (0..frames).map(|_| next()).collect()
    }

    /// The hashes of all worlds and ticks so far, if `settings.hash` was set.
    pub fn hashes(&self) -> &[WorldHash] {
        &self.virtual_server.hashes
    }

    /// Ends the recording that the server's settings ask for, after the last frame: what entered the worlds is written, up to
    /// their last ticks.
    pub fn end_recording(&mut self) {
        self.virtual_server.server.end_recording();
    }

    /// Gives all packets that the server has sent since this was last called, opened and with the player to whom they
    /// go: whatever becomes of them on their way. Those of one player come in the order in which they left. Nothing
    /// unless `settings.tap` was set; then they pile up until they are taken.
    pub fn take_sent(&mut self, mut each: impl FnMut(usize, &[u8])) {
        let now = self.now();
        for (to, mut datagram) in self.outgoing.as_ref().map(Tapped::take).unwrap_or_default() {
            let index = index_of(to).expect("the server speaks to players only");
            if let Some(payload) = self.players[index].listener.as_mut().and_then(|end| end.open(now, &mut datagram)) {
                each(index, payload);
            }
        }
    }

    /// Gives all datagrams that the server has received since this was last called, sealed as they came, with the player from
    /// whom they are, in the order in which the server took them. Nothing unless `settings.tap_received` was set; then they pile
    /// up until they are taken.
    pub fn take_received(&mut self, mut each: impl FnMut(usize, &[u8])) {
        for (from, datagram) in self.incoming.as_ref().map(Tapped::take).unwrap_or_default() {
            each(index_of(from).expect("only players speak to the server"), &datagram);
        }
    }

    /// The clock, for worlds whose ticks are to take time: otherwise it stands still while they run. With one worker, the
    /// same run is the same then, too.
    pub fn clock(&self) -> ManualClock {
        self.virtual_server.clock.clone()
    }

    fn next_frame_at(&self) -> Nanos {
        self.virtual_server.server.start_of_frame(self.virtual_server.frames)
    }
}
