//! Promise: a program with one player needs no more than a token, and allocates nothing once it plays.
//!
//! A real server, on loopback and on threads of its own. How long anything takes here is the machine's affair: what is
//! waited for is a condition.

use std::{
    net::SocketAddr,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use throng::{
    Server,
    net::protocol::{ClientId, DenialReason, HandshakeFailure, PrivateKey, ProtocolId, TokenRequest, user_data},
    platform::signals::StopFlag,
    prelude::*,
    server::ServerControl,
    settings::{Settings, TokenJournalFile},
};
use throng_client::prelude::*;
use throng_platform::{
    allocator::{CountingAllocator, thread_counts},
    clock::{Clock, MonotonicClock},
    random,
    time::Nanos,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const KEY: [u8; 32] = [9; 32];

#[derive(Component, Clone, Debug, PartialEq, Replicate)]
struct Runner {
    #[replicate(min = 0.0, max = 1000.0, step = 0.1)]
    x: f32,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Waved {
    who: EntityLink,
}

impl ReplicatedEvent for Waved {
    const RELIABLE: bool = true;
    const RANGE_M: Option<f32> = None;
}

#[derive(Debug, PartialEq, Pack)]
struct Run(u8);
impl ClientInput for Run {}

#[derive(Debug, PartialEq, Pack)]
struct Wave;
impl ClientRequest for Wave {}

#[derive(Debug, PartialEq, Pack)]
struct Thanks {
    waves: u8,
}
impl ClientMessage for Thanks {}

struct Track;

impl WorldKind for Track {
    fn name(&self) -> &str {
        "track"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(60)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Runner>().event::<Waved>().input::<Run>().request::<Wave>().message::<Thanks>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(Update, (welcome, run, wave).chain());
    }
}

fn welcome(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for arrival in &arrivals.0 {
        let runner = commands.spawn((Replicated::default(), Runner { x: 0.0 })).id();
        outbox.set_player(arrival.client, runner);
    }
}

fn run(runs: Inputs<Run>, mut runners: Query<&mut Runner>) {
    for (sender, &Run(step)) in runs.read() {
        if let Some(Ok(mut runner)) = sender.entity.map(|own| runners.get_mut(own)) {
            runner.x = (runner.x + f32::from(step)) % 1000.0;
        }
    }
}

fn wave(waves: Requests<Wave>, mut events: ResMut<Events>, mut outbox: ResMut<Outbox>) {
    for (sender, Wave) in waves.read() {
        let who = sender.entity.map_or(EntityLink::NONE, EntityLink::to);
        events.send(&Waved { who }, Audience::Everyone, "track.wave");
        outbox.send(sender.client, &Thanks { waves: 1 }).expect("it has no limits");
    }
}

/// A server that ends with the test.
struct Host {
    address: SocketAddr,
    protocol_id: ProtocolId,
    control: ServerControl,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    fn start() -> Self {
        let mut settings = Settings::default();
        settings.server.address = SocketAddr::from(([127, 0, 0, 1], 0));
        settings.server.token_journal = TokenJournalFile::Off;
        settings.server.host_heartbeat = false;
        let protocol_id = ProtocolId(settings.server.protocol_id);
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut server = Server::bind(&settings, schema(), PrivateKey::new(KEY)).expect("a free port");
            let track = server.add_kind(Track).expect("it is in the schema");
            server.create_world(track, 1).expect("its systems can be put in an order");
            tell.send((server.local_addr(), server.control())).expect("the test waits");
            server.run(&StopFlag::new().expect("a descriptor"), &mut |_| {}).expect("it has a world");
        });
        let (address, control) = told.recv().expect("the server starts");
        Self { address, protocol_id, control, thread: Some(thread) }
    }

    fn token(&self, client_id: u64) -> ConnectToken {
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
        ConnectToken::generate(&request, &PrivateKey::new(KEY), &mut rng).expect("it is sound")
    }

    fn enter(&self, client_id: u64) -> UdpClient {
        let mut player = UdpClient::connect(self.token(client_id), schema()).expect("a free port");
        run_until(&mut player, |player| player.client.own_entity().is_some());
        player
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

fn schema() -> Arc<Schema> {
    Track.protocol().schema()
}

/// Plays until `is_done`; the limit is for a machine that does nothing at all.
#[track_caller]
fn run_until(player: &mut UdpClient, mut is_done: impl FnMut(&mut UdpClient) -> bool) {
    let give_up_at = player.now() + Nanos::from_secs(60);
    while !is_done(player) {
        assert!(player.now() < give_up_at, "in vain: {:?} {:?}", player.client.state(), player.client.stats());
        player.run_for(Nanos::from_millis(10)).expect("the socket is fine");
    }
}

#[test]
fn a_player_with_a_socket_runs_asks_hears_and_learns_why_it_is_over() {
    let host = Host::start();
    let mut player = host.enter(1);
    let own = player.client.own_entity().expect("it was waited for");

    run_until(&mut player, |player| {
        let _ = player.send_input(&Run(3));
        player.client.replicas().get::<Runner>(own).is_some_and(|runner| runner.x > 2.9)
    });
    player.client.request(&Wave).expect("it is connected");
    let (mut waved, mut thanked) = (Vec::new(), Vec::new());
    run_until(&mut player, |player| {
        waved.extend(player.client.events_of::<Waved>());
        thanked.extend(player.client.messages().filter_map(|message| message.read::<Thanks>()));
        player.client.clear_messages();
        !waved.is_empty() && !thanked.is_empty()
    });
    // The event's link was made from an entity; the id is the one that the replicas have.
    assert_eq!(waved, [Waved { who: own.into() }]);
    assert_eq!(thanked, [Thanks { waves: 1 }]);

    host.control.stop();
    run_until(&mut player, |player| player.is_over());
    assert_eq!(player.client.state(), ClientState::Disconnected(DisconnectReason::ClosedByServer));
    assert_eq!((player.client.stats().protocol_errors, player.send_dropped()), (0, 0));
    player.run_for(Nanos::from_secs(3_600)).expect("what is over is not waited for");
}

#[test]
fn a_token_that_was_used_is_refused_in_words_for_a_player() {
    let host = Host::start();
    let token = host.token(1);
    let mut first = UdpClient::connect(token.clone(), schema()).expect("a free port");
    run_until(&mut first, |first| first.client.world().is_some());
    first.close();
    assert_eq!(first.client.state(), ClientState::Disconnected(DisconnectReason::ClosedByClient));

    // Until the server has taken the goodbye it says nothing, and is asked again.
    let mut second = UdpClient::connect(token, schema()).expect("a free port");
    run_until(&mut second, |second| second.is_over());
    let ClientState::Disconnected(reason) = second.client.state() else { panic!("{:?}", second.client.state()) };
    assert_eq!(reason, DisconnectReason::Handshake(HandshakeFailure::Denied(DenialReason::TokenUsed)));
    let text = reason.to_string();
    assert!(text.contains("used before") && text.contains("log in again"), "{text}");
}

#[test]
fn an_end_before_the_beginning_is_told_and_later_updates_do_nothing() {
    let host = Host::start();
    let mut player = UdpClient::connect(host.token(1), schema()).expect("a free port");
    assert_eq!(player.client.state(), ClientState::Connecting);
    assert!(!player.wants_token() && !player.is_over());
    player.close();
    assert!(player.is_over());
    player.update().expect("the socket is fine");
    assert_eq!(player.client.state(), ClientState::Disconnected(DisconnectReason::ClosedByClient));
}

#[test]
fn steady_updates_allocate_nothing() {
    let host = Host::start();
    let mut player = host.enter(1);
    let mut play = |turns: u32| {
        for _ in 0..turns {
            player.send_input(&Run(1)).expect("it is in a world");
            player.run_for(Nanos::from_millis(5)).expect("the socket is fine");
            player.update().expect("the socket is fine");
            while player.client.next_event().is_some() {}
            player.client.clear_messages();
        }
        player.client.stats().snapshots
    };
    // The first ones grow what is reused.
    let snapshots_before = play(200);
    let before = thread_counts().allocations;
    let snapshots = play(200);
    assert_eq!(thread_counts().allocations, before);
    assert!(snapshots > snapshots_before, "nothing came meanwhile");
}
