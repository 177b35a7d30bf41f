//! Players on a server: a swarm in this process.

use std::{
    net::SocketAddr,
    sync::Arc,
    thread::{self, JoinHandle},
};

use bazaar::{BUSY, Customer};
use throng_bots::{Behaviour, Swarm, SwarmSettings, TokenSigner, Tokens};
use throng_net::protocol::ProtocolId;
use throng_platform::signals::StopFlag;

use crate::life::KEY;

/// Until it is dropped, or its players are gone.
pub struct Players {
    stop: StopFlag,
    thread: Option<JoinHandle<()>>,
}

impl Players {
    /// So many, numbered from `first` on.
    pub fn play(address: SocketAddr, first: u64, count: usize) -> Players {
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
            let customer = |_| -> Box<dyn Behaviour> { Box::new(Customer(BUSY)) };
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
