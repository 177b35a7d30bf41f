//! Promise: in an ordinary Bevy app, without a window, entities of a server come, go on evenly, are steered at once, and
//! leave.
//!
//! A real server, on loopback and on threads of its own. How long anything takes here is the machine's affair: what is
//! waited for is a condition.

use std::{
    net::SocketAddr,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_time::TimePlugin;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use throng::{
    Server,
    net::protocol::{ClientId, PrivateKey, ProtocolId, TokenRequest, user_data},
    platform::signals::StopFlag,
    prelude::*,
    server::ServerControl,
    settings::{Settings, TokenJournalFile},
};
use throng_bevy::{
    ClientChange, ClientPlugin, ClientSystems, Confirmed, NetEntity, OwnPlayer, Prediction, SocketErrors, Wish,
    client::{
        interpolation::Interpolate,
        prediction::Predict,
        prelude::{ClientEvent, ConnectToken, Schema, UdpClient},
    },
};
use throng_platform::{
    clock::{Clock, MonotonicClock},
    random,
    time::Nanos,
};

const KEY: [u8; 32] = [9; 32];

#[derive(Component, Clone, Debug, Default, PartialEq, Replicate)]
struct Runner {
    #[replicate(min = 0.0, max = 1024.0, step = 0.0078125)]
    x: f32,
    steps: u16,
}

#[derive(Component, Clone, Debug, PartialEq, Replicate)]
struct Shirt(u8);

#[derive(Clone, Debug, PartialEq, Pack)]
struct Run(u8);

impl ClientInput for Run {
    const REPEATS: u8 = 3;
}

/// Leaves one's shirt behind.
#[derive(Debug, PartialEq, Pack)]
struct Undress;

impl ClientRequest for Undress {}

#[derive(Clone)]
struct Rules;

impl Rules {
    fn run(state: &Runner, length: u8) -> Runner {
        Runner { x: (state.x + f32::from(length) / 64.0) % 1000.0, steps: state.steps.wrapping_add(1) }
    }
}

impl Predict for Rules {
    type State = Runner;
    type Input = Run;

    fn step(&self, state: &Runner, input: &Run) -> Runner {
        Self::run(state, input.0)
    }

    fn place(&self, state: &Runner) -> [f32; 3] {
        [state.x, 0.0, 0.0]
    }

    fn shifted(&self, state: &Runner, by_m: [f32; 3]) -> Runner {
        Runner { x: state.x + by_m[0], ..state.clone() }
    }
}

impl Interpolate for Runner {
    fn between(&self, later: &Self, share: f32) -> Self {
        Runner { x: self.x + (later.x - self.x) * share, ..self.clone() }
    }
}

struct Track;

impl WorldKind for Track {
    fn name(&self) -> &str {
        "track"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(60)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Runner>().component::<Shirt>().input::<Run>().request::<Undress>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(Update, (come_and_go, run, undress).chain());
    }
}

fn come_and_go(
    arrivals: Res<Arrivals>,
    departures: Res<Departures>,
    inbox: Res<Inbox>,
    mut outbox: ResMut<Outbox>,
    mut commands: Commands,
) {
    for arrival in &arrivals.0 {
        let shirt = Shirt(arrival.client_id.0 as u8);
        outbox.set_player(arrival.client, commands.spawn((Replicated::default(), Runner::default(), shirt)).id());
    }
    for client in &departures.0 {
        if let Some(runner) = inbox.players().entity(*client) {
            commands.entity(runner).despawn();
        }
    }
}

fn run(runs: Inputs<Run>, mut runners: Query<&mut Runner>) {
    for (sender, &Run(length)) in runs.read() {
        if let Some(Ok(mut runner)) = sender.entity.map(|own| runners.get_mut(own)) {
            *runner = Rules::run(&runner, length);
        }
    }
}

fn undress(asked: Requests<Undress>, mut commands: Commands) {
    for (sender, Undress) in asked.read() {
        if let Some(runner) = sender.entity {
            commands.entity(runner).remove::<Shirt>();
        }
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

    fn player(&self, client_id: u64) -> UdpClient {
        UdpClient::connect(self.token(client_id), schema()).expect("a free port")
    }

    /// An app with this player.
    fn app(&self, client_id: u64) -> App {
        let mut app = App::new();
        app.add_plugins((TimePlugin, ClientPlugin::new().component::<Shirt>().predicted(Rules)));
        app.insert_non_send(self.player(client_id));
        app.init_resource::<Seen>();
        app.add_systems(Update, listen).add_systems(PostUpdate, look.after(ClientSystems::Show));
        app
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

/// What an app's systems saw.
#[derive(Resource, Default)]
struct Seen {
    changes: Vec<ClientEvent>,
    /// How far the own player was ahead of what the server had said, at most (m).
    ahead_m_max: f32,
    /// How far others were behind it, at most (m).
    behind_m_max: f32,
    went_back: bool,
    others_x: f32,
}

fn listen(mut changes: MessageReader<ClientChange>, mut seen: ResMut<Seen>) {
    seen.changes.extend(changes.read().map(|ClientChange(event)| *event));
}

fn look(runners: Query<(&Runner, &Confirmed<Runner>, Has<OwnPlayer>)>, mut seen: ResMut<Seen>) {
    for (runner, confirmed, is_own) in &runners {
        let ahead_m = runner.x - confirmed.value.x;
        if is_own {
            seen.ahead_m_max = seen.ahead_m_max.max(ahead_m);
        } else {
            seen.behind_m_max = seen.behind_m_max.max(-ahead_m);
            seen.went_back |= runner.x < seen.others_x;
            seen.others_x = runner.x;
        }
    }
}

/// Updates until `is_done`; the limit is for a machine that does nothing at all.
#[track_caller]
fn update_until(app: &mut App, mut is_done: impl FnMut(&mut App) -> bool) {
    let clock = MonotonicClock::new();
    while !is_done(app) {
        assert!(clock.now() < Nanos::from_secs(60), "in vain");
        app.update();
        // Asleep until something comes, for no longer than a picture stands.
        app.world_mut().non_send_mut::<UdpClient>().run_for(Nanos::from_millis(4)).expect("the socket is fine");
    }
}

fn own(app: &mut App) -> Option<(Runner, Confirmed<Runner>)> {
    let mut own = app.world_mut().query_filtered::<(&Runner, &Confirmed<Runner>), With<OwnPlayer>>();
    let (runner, confirmed) = own.iter(app.world()).next()?;
    Some((runner.clone(), confirmed.clone()))
}

fn others(app: &mut App) -> usize {
    let mut others = app.world_mut().query_filtered::<&NetEntity, Without<OwnPlayer>>();
    others.iter(app.world()).count()
}

#[test]
fn the_own_player_is_steered_at_once_and_nothing_has_to_be_corrected() {
    let host = Host::start();
    let mut app = host.app(1);
    update_until(&mut app, |app| own(app).is_some());
    app.world_mut().resource_mut::<Wish<Run>>().0 = Some(Run(8));
    update_until(&mut app, |app| own(app).is_some_and(|(runner, _)| runner.steps > 120));
    app.world_mut().resource_mut::<Wish<Run>>().0 = None;
    update_until(&mut app, |app| own(app).is_some_and(|(runner, confirmed)| runner == confirmed.value));

    let stats = app.world().resource::<Prediction<Rules>>().stats();
    assert!(stats.checks > 60, "{stats:?}");
    assert_eq!(stats.corrections, 0, "{stats:?}");
    let seen = app.world().resource::<Seen>();
    assert!(seen.ahead_m_max >= 8.0 / 64.0, "{} m ahead of the server", seen.ahead_m_max);
    assert!(seen.changes.contains(&ClientEvent::Connected) && seen.changes.contains(&ClientEvent::OwnEntityChanged));
    assert_eq!(app.world().resource::<SocketErrors>().0, 0);
}

/// Promise: who runs from the beginning, before the server has told where from, is predicted rightly, too.
#[test]
fn a_wish_from_the_start_needs_no_correction() {
    let host = Host::start();
    let mut app = host.app(1);
    app.world_mut().resource_mut::<Wish<Run>>().0 = Some(Run(8));
    update_until(&mut app, |app| own(app).is_some_and(|(runner, _)| runner.steps > 60));
    let stats = app.world().resource::<Prediction<Rules>>().stats();
    assert!(stats.checks > 20, "{stats:?}");
    assert_eq!(stats.corrections, 0, "{stats:?}");
}

#[test]
fn others_go_on_evenly_behind_what_the_server_said_and_leave() {
    let host = Host::start();
    let mut app = host.app(1);
    let mut other = host.player(2);
    update_until(&mut app, |app| {
        other.update().expect("the socket is fine");
        own(app).is_some() && others(app) == 1
    });
    update_until(&mut app, |app| {
        other.update().expect("the socket is fine");
        let now = other.now();
        for _ in 0..other.client.due_inputs(now) {
            let _ = other.send_input(&Run(8));
        }
        app.world().resource::<Seen>().others_x > 10.0
    });
    let seen = app.world().resource::<Seen>();
    assert!(!seen.went_back, "it runs one way");
    assert!(seen.behind_m_max > 0.0, "it is shown a little late");

    other.close();
    update_until(&mut app, |app| others(app) == 0);
    assert!(own(&mut app).is_some());
}

#[test]
fn components_come_as_they_are_and_go() {
    let host = Host::start();
    let mut app = host.app(7);
    let shirt = |app: &mut App| {
        let mut shirts = app.world_mut().query_filtered::<&Shirt, With<OwnPlayer>>();
        shirts.iter(app.world()).next().cloned()
    };
    update_until(&mut app, |app| shirt(app) == Some(Shirt(7)));
    app.world_mut().non_send_mut::<UdpClient>().client.request(&Undress).expect("in a world");
    update_until(&mut app, |app| shirt(app).is_none());
    assert!(own(&mut app).is_some(), "the runner is there");
}

/// For how many updates in a row no component has changed.
#[derive(Resource, Default)]
struct StillUpdates(u32);

fn note_changes(
    runners: Query<(), Changed<Runner>>,
    shirts: Query<(), Changed<Shirt>>,
    mut still: ResMut<StillUpdates>,
) {
    let is_still = runners.is_empty() && shirts.is_empty();
    still.0 = if is_still { still.0 + 1 } else { 0 };
}

/// The same rules where places lie between the steps of what is told, as they mostly do.
#[derive(Clone)]
struct BetweenSteps;

impl Predict for BetweenSteps {
    type State = Runner;
    type Input = Run;

    fn step(&self, state: &Runner, input: &Run) -> Runner {
        let runner = Rules::run(state, input.0);
        Runner { x: (runner.x * 128.0).floor() / 128.0 + 0.003, ..runner }
    }

    fn place(&self, state: &Runner) -> [f32; 3] {
        Rules.place(state)
    }

    fn shifted(&self, state: &Runner, by_m: [f32; 3]) -> Runner {
        Rules.shifted(state, by_m)
    }
}

/// Promise: who stands still is not written, predicted or interpolated, so that `Changed` tells who moves.
#[test]
fn who_stands_still_has_not_changed() {
    let host = Host::start();
    let mut app = App::new();
    app.add_plugins((TimePlugin, ClientPlugin::new().component::<Shirt>().predicted(BetweenSteps)));
    app.insert_non_send(host.player(1));
    app.init_resource::<StillUpdates>().add_systems(PostUpdate, note_changes.after(ClientSystems::Show));
    let mut other = host.player(2);
    let mut update_both_until = |app: &mut App, is_done: fn(&mut App) -> bool| {
        update_until(app, |app| {
            other.update().expect("the socket is fine");
            is_done(app)
        });
    };
    update_both_until(&mut app, |app| own(app).is_some() && others(app) == 1);
    app.world_mut().resource_mut::<Wish<Run>>().0 = Some(Run(8));
    update_both_until(&mut app, |app| own(app).is_some_and(|(runner, _)| runner.steps > 20));
    assert_eq!(app.world().resource::<StillUpdates>().0, 0, "it runs");
    app.world_mut().resource_mut::<Wish<Run>>().0 = None;
    update_both_until(&mut app, |app| app.world().resource::<StillUpdates>().0 >= 30);
    let (shown, confirmed) = own(&mut app).expect("it is there");
    assert!(shown.x != confirmed.value.x && others(&mut app) == 1, "it is shown as predicted: {}", shown.x);
}

#[test]
fn a_copy_that_the_app_has_despawned_comes_again() {
    let host = Host::start();
    let mut app = host.app(1);
    update_until(&mut app, |app| own(app).is_some());
    let mut copies = app.world_mut().query_filtered::<Entity, (With<OwnPlayer>, With<Runner>, With<Shirt>)>();
    let before = copies.iter(app.world()).next().expect("it is there");
    app.world_mut().despawn(before);
    update_until(&mut app, |app| own(app).is_some());
    let after: Vec<Entity> = copies.iter(app.world()).collect();
    assert!(after.len() == 1 && after[0] != before, "{after:?} after {before}");
    assert_eq!((others(&mut app), app.world().resource::<SocketErrors>().0), (0, 0));
}
