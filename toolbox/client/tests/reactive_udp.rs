//! Promise: in a reactive world on real sockets 200 clients with nothing to say cost their server next to no tick and next
//! to no packet, and what one of them says all others hear. Counted in ticks and packets, and not timed.

use std::{
    net::SocketAddr,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use throng::{
    Server,
    net::protocol::{ClientId, PrivateKey, ProtocolId, TokenRequest, user_data},
    platform::signals::StopFlag,
    prelude::*,
    report::ServerStatus,
    server::ServerControl,
    settings::{Settings, TokenJournalFile},
};
use throng_client::prelude::*;
use throng_platform::{
    clock::{Clock, MonotonicClock},
    random,
    time::Nanos,
};

const KEY: [u8; 32] = [9; 32];
const CLIENTS: u64 = 200;

/// Counted for so long, and in the full form.
const SECONDS: u64 = 12;
const SECONDS_FULL: u64 = 60;

#[derive(Debug, PartialEq, Pack)]
struct Say;
impl ClientRequest for Say {}

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Heard {
    line: u16,
}

impl ReplicatedEvent for Heard {
    const RELIABLE: bool = true;
    const RANGE_M: Option<f32> = None;
}

#[derive(Resource, Default)]
struct Lines(u16);

struct Room;

impl WorldKind for Room {
    fn name(&self) -> &str {
        "room"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn pace(&self) -> Pace {
        Pace::Reactive
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().event::<Heard>().request::<Say>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.init_resource::<Lines>().add_systems(Update, talk);
    }
}

fn talk(said: Requests<Say>, mut lines: ResMut<Lines>, mut events: ResMut<Events>) {
    for _ in said.read() {
        lines.0 += 1;
        events.send(&Heard { line: lines.0 }, Audience::Everyone, "room.heard");
    }
}

/// A server that ends with the test.
struct Host {
    address: SocketAddr,
    protocol_id: ProtocolId,
    control: ServerControl,
    statuses: mpsc::Receiver<ServerStatus>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    fn start() -> Self {
        let mut settings = Settings::default();
        settings.server.address = SocketAddr::from(([127, 0, 0, 1], 0));
        settings.server.token_journal = TokenJournalFile::Off;
        settings.server.host_heartbeat = false;
        let protocol_id = ProtocolId(settings.server.protocol_id);
        let ((tell, told), (tell_status, statuses)) = (mpsc::channel(), mpsc::channel());
        let thread = thread::spawn(move || {
            let mut server =
                Server::bind(&settings, Room.protocol().schema(), PrivateKey::new(KEY)).expect("a free port");
            let room = server.add_kind(Room).expect("it is in the schema");
            server.create_world(room, 1).expect("its systems can be put in an order");
            tell.send((server.local_addr(), server.control())).expect("the test waits");
            let mut on_status = |status: &ServerStatus| drop(tell_status.send(status.clone()));
            server.run(&StopFlag::new().expect("a descriptor"), &mut on_status).expect("it has a world");
        });
        let (address, control) = told.recv().expect("the server starts");
        Self { address, protocol_id, control, statuses, thread: Some(thread) }
    }

    fn connect(&self, client_id: u64, schema: &Arc<Schema>) -> UdpClient {
        let now_unix_s = MonotonicClock::new().unix_seconds();
        let request = TokenRequest {
            protocol_id: self.protocol_id,
            client_id: ClientId(client_id),
            server_addresses: vec![self.address],
            created_unix_s: now_unix_s,
            expires_unix_s: now_unix_s + 300,
            timeout_s: 60,
            user_data: user_data(&[], false).expect("nothing always fits"),
        };
        let mut rng = ChaCha20Rng::from_seed(random::seed());
        let token = ConnectToken::generate(&request, &PrivateKey::new(KEY), &mut rng).expect("it is sound");
        UdpClient::connect(token, schema.clone()).expect("a free port")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Turns of all clients, until `is_done`; the limit is for a machine that does nothing at all.
#[track_caller]
fn run_until(clients: &mut [UdpClient], mut is_done: impl FnMut(&mut [UdpClient]) -> bool) {
    let clock = MonotonicClock::new();
    while !is_done(clients) {
        assert!(clock.now() < Nanos::from_secs(180), "in vain");
        clients.iter_mut().for_each(|client| client.update().expect("the socket is fine"));
        thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// What the server did in so many of its seconds while its clients took their turns: ticks, packets in and out.
fn counted(host: &Host, clients: &mut [UdpClient], seconds: u64) -> [u64; 3] {
    host.statuses.try_iter().for_each(drop);
    let mut seen = Vec::new();
    run_until(clients, |_| {
        seen.extend(host.statuses.try_iter());
        seen.len() as u64 >= seconds
    });
    let seen = &seen[..seconds as usize];
    assert!(seen.iter().all(|status| status.players == clients.len()), "nobody is lost");
    [
        seen.iter().map(|status| status.ticks).sum(),
        seen.iter().map(|status| status.packets_in).sum(),
        seen.iter().map(|status| status.packets_out).sum(),
    ]
}

fn two_hundred_are_silent_and_one_speaks(seconds: u64) {
    let (host, schema) = (Host::start(), Room.protocol().schema());
    let mut clients: Vec<_> = (1..=CLIENTS).map(|client_id| host.connect(client_id, &schema)).collect();
    run_until(&mut clients, |clients| clients.iter().all(|client| client.client.world().is_some()));
    assert!(clients.iter().all(|client| client.client.world().is_some_and(|world| world.is_reactive)));
    // What is said on entering is acknowledged, and the keep-alives of before are over.
    counted(&host, &mut clients, 3);

    let [ticks, packets_in, packets_out] = counted(&host, &mut clients, seconds);
    println!("{CLIENTS} silent clients, {seconds} s: {ticks} ticks, {packets_in} packets in, {packets_out} out");
    assert!(ticks <= seconds / 10 + 2, "{ticks} ticks in {seconds} s");
    // Two in five seconds each, and one at an end of the window; a turn that comes late makes none of them more.
    let most = CLIENTS * (2 * seconds / 5 + 1);
    assert!((CLIENTS..=most).contains(&packets_in) && (CLIENTS..=most).contains(&packets_out), "at most {most}");

    for line in 1..=3 {
        clients[usize::from(line) * 7].client.request(&Say).expect("it is in a world");
        let mut heard = vec![0; clients.len()];
        run_until(&mut clients, |clients| {
            for (client, heard) in clients.iter_mut().zip(&mut heard) {
                *heard += client.client.events_of::<Heard>().filter(|said| said.line == line).count();
                // Not all hear it in the same turn, and what was counted is not to be counted again.
                client.client.clear_messages();
            }
            heard.iter().all(|count| *count > 0)
        });
        assert!(heard.iter().all(|count| *count == 1), "all of them, each once: {heard:?}");
    }
}

#[test]
fn who_is_silent_costs_no_tick_and_who_speaks_is_heard() {
    two_hundred_are_silent_and_one_speaks(SECONDS);
}

/// The full form. `cargo test -p throng-client --test reactive_udp -- --ignored --nocapture`
#[test]
#[ignore = "takes a minute"]
fn o3_a_minute_of_silence_costs_no_tick() {
    two_hundred_are_silent_and_one_speaks(SECONDS_FULL);
}
