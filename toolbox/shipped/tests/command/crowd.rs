//! A crowd: bots of the game in this process, on a thread of their own.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use throng_bots::{Swarm, SwarmReport, SwarmSettings, Tokens};
use throng_platform::{signals::StopFlag, time::Nanos};

use crate::{
    address::{TIMEOUT_S, token_for},
    child::wait_until,
    game::Game,
};

/// Client ids of a crowd begin here, those of single players below.
const CLIENT_ID_FIRST: u64 = 1_000;

pub struct Crowd {
    players: u64,
    stop: StopFlag,
    last: Arc<Mutex<SwarmReport>>,
    thread: JoinHandle<SwarmReport>,
}

impl Crowd {
    /// Sends `players` bots in and returns when all of them play.
    pub fn start(server: SocketAddr, players: usize) -> Self {
        Self::start_as(server, None, CLIENT_ID_FIRST, players)
    }

    /// The same where another game is played.
    pub fn start_in(game: Game, server: SocketAddr, players: usize) -> Self {
        Self::begin(game, server, None, CLIENT_ID_FIRST, players)
    }

    /// The same by way of a relay, as clients from `client_id_first` on.
    pub fn start_as(server: SocketAddr, relay: Option<SocketAddr>, client_id_first: u64, players: usize) -> Self {
        Self::begin(Game::Precinct, server, relay, client_id_first, players)
    }

    fn begin(game: Game, server: SocketAddr, relay: Option<SocketAddr>, client_id_first: u64, players: usize) -> Self {
        let stop = StopFlag::new().expect("a descriptor is left");
        let last = Arc::new(Mutex::new(SwarmReport::default()));
        let thread = {
            let (stop, last) = (stop.clone(), last.clone());
            std::thread::spawn(move || play(game, server, relay, client_id_first, players, stop, &last))
        };
        let crowd = Self { players: players as u64, stop, last, thread };
        let all_in =
            wait_until(Duration::from_secs(30), || (crowd.last().players_connected == crowd.players).then_some(()));
        assert!(all_in.is_some() && !crowd.thread.is_finished(), "not all bots got in: {:?}", crowd.last());
        crowd
    }

    /// How they do, as of the last quarter of a second.
    pub fn last(&self) -> SwarmReport {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets them say goodbye, and returns what they saw.
    pub fn finish(self) -> SwarmReport {
        self.stop.request();
        self.thread.join().expect("a crowd does not panic")
    }

    /// Waits until nobody is left, which ends a crowd by itself.
    pub fn wait_until_all_are_out(self, within: Duration) -> SwarmReport {
        let out = wait_until(within, || self.thread.is_finished().then_some(()));
        assert!(out.is_some(), "some still play after {within:?}: {:?}", self.last());
        self.thread.join().expect("a crowd does not panic")
    }
}

fn play(
    game: Game,
    server: SocketAddr,
    relay: Option<SocketAddr>,
    client_id_first: u64,
    players: usize,
    stop: StopFlag,
    last: &Mutex<SwarmReport>,
) -> SwarmReport {
    // The first address is tried first; the server knows itself by its own.
    let addresses: Vec<SocketAddr> = relay.into_iter().chain([server]).collect();
    let tokens =
        Tokens::Made(Box::new(move |bot| Ok(token_for(addresses.clone(), client_id_first + bot as u64, TIMEOUT_S))));
    let settings =
        SwarmSettings { status_every: Nanos::from_millis(250), ..SwarmSettings::new(server, players, tokens) };
    let report = Swarm::run(settings, game.schema(), game.bots(), stop, &mut |status| {
        *last.lock().unwrap_or_else(PoisonError::into_inner) = status.figures.clone()
    });
    report.expect("a crowd has sockets and a server that lets it in")
}
