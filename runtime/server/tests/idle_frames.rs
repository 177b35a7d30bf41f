//! The promise: a frame is as long as its work. A server that nobody plays on sleeps, and what wakes it comes somewhere
//! within the grid of its frames: the time before that is no frame's.

use std::{net::SocketAddr, sync::Arc};

use throng::{
    server::{Environment, Server},
    settings::Settings,
    testing::{self, SleptClock},
};
use throng_net::transport::{DatagramSender, Impairment, MemoryNetwork, MemoryServer, ServerTransport};
use throng_platform::{clock::ManualClock, signals::StopFlag, time::Nanos};
use throng_replication::SchemaBuilder;

/// Something comes every 0.3 s and a bit, which is no multiple of any frame.
struct Noise {
    network: MemoryServer,
    clock: ManualClock,
}

impl ServerTransport for Noise {
    fn receive(&mut self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), max: usize) -> usize {
        self.network.receive(each, max)
    }

    fn sender(&mut self, worker: usize) -> Box<dyn DatagramSender> {
        self.network.sender(worker)
    }

    fn wait(&self, _timeout: Option<Nanos>) {
        self.clock.advance(Nanos::from_micros(307_111));
    }

    fn local_addr(&self) -> SocketAddr {
        self.network.local_addr()
    }
}

#[test]
fn an_idle_servers_frames_take_no_time() {
    let clock = ManualClock::new();
    let network = MemoryNetwork::new(1, Impairment::default());
    let transport = Box::new(Noise { network: network.server(testing::ADDRESS), clock: clock.clone() });
    let environment = Environment { transport, ..testing::environment(Arc::new(SleptClock::new(clock))) };
    let mut server = Server::with_environment(&Settings::default(), SchemaBuilder::new().build(), environment);
    let empty = server.add_kind(testing::empty()).unwrap();
    server.create_world(empty, 1).unwrap();
    let control = server.control();
    let mut longest_ms = Vec::new();
    server
        .run(&StopFlag::new().unwrap(), &mut |status| {
            longest_ms.push(status.frame_ms_max);
            if status.second == 20 {
                control.stop();
            }
        })
        .unwrap();
    assert_eq!(longest_ms, vec![0.0; longest_ms.len()]);
}
