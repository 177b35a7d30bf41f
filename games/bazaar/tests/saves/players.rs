//! Players on a server: a swarm in this process.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use bazaar::{BUSY, Customer};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::{Behaviour, Swarm, SwarmSettings, TokenSigner, Tokens};
use throng_client::Client;
use throng_net::protocol::ProtocolId;
use throng_platform::{signals::StopFlag, time::Nanos};

use crate::life::KEY;

/// Until it is dropped, or its players are gone.
pub struct Players {
    stop: StopFlag,
    thread: Option<JoinHandle<()>>,
}

impl Players {
    /// So many, numbered from `first` on.
    pub fn play(address: SocketAddr, first: u64, count: usize) -> Players {
        Players::with(address, first, count, Arc::default())
    }

    /// The same; they wish for nothing while that is set.
    pub fn who_may_rest(address: SocketAddr, first: u64, count: usize, rests: Arc<AtomicBool>) -> Players {
        Players::with(address, first, count, rests)
    }

    fn with(address: SocketAddr, first: u64, count: usize, rests: Arc<AtomicBool>) -> Players {
        let tokens = Tokens::Signed(TokenSigner {
            protocol_id: ProtocolId(throng::settings::Settings::default().server.protocol_id),
            private_key: KEY.into(),
            client_id_first: first,
            timeout_s: 5,
            audited_one_in: 10,
        });
        let settings = SwarmSettings { join_per_second: 1_000, ..SwarmSettings::new(address, count, tokens) };
        let stop = StopFlag::new().unwrap();
        let of_swarm = stop.clone();
        let thread = thread::spawn(move || {
            let customer =
                move |_| -> Box<dyn Behaviour> { Box::new(MayRest { customer: Customer(BUSY), rests: rests.clone() }) };
            let schema: Arc<_> = bazaar::protocol().schema();
            // It ends with an error where the server was killed before anybody was in.
            let _ = Swarm::run(settings, schema, customer, of_swarm, &mut |_| {});
        });
        Players { stop, thread: Some(thread) }
    }
}

impl Drop for Players {
    fn drop(&mut self) {
        self.stop.request();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A customer who can be told to keep still.
struct MayRest {
    customer: Customer,
    rests: Arc<AtomicBool>,
}

impl Behaviour for MayRest {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        if !self.rests.load(Ordering::Acquire) {
            self.customer.think(now, client, rng);
        }
    }
}
