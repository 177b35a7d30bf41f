//! The promise: what a player saw and aimed at is hit, on a bad line too; and who claims to have seen what is older than his
//! line explains, or than anybody may see, hits nothing of it.

use std::{collections::BTreeMap, sync::Arc};

use bevy_ecs::prelude::*;
use glam::Vec3;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{Server, prelude::*, server::ServerError};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_net::transport::Impairment;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_query::casts::Ray;
use throng_rewind::{
    history::{Body, History, HistorySettings},
    past_casts::{PastCasts, PastHit, PastShot},
    rig::{Playing, Rig},
    view_limits::{ShooterView, ViewLimits, ViewVerdict},
    view_time::ViewTime,
};
use throng_simulator::{Simulation, SimulationSettings};

const TICKS_PER_S: u16 = 20;
/// How far the target runs in a tick (m): 6 m/s, so that in two ticks it is where it was not before.
const STEP_M: f32 = 0.3;

/// A shot at whatever is so far along the range.
#[derive(Pack, Debug, Clone, Copy)]
struct Fire {
    x_mm: i32,
}

impl ClientInput for Fire {
    const SAYS_SEEN: bool = true;
}

/// What became of a shot.
#[derive(Pack, Debug, Clone, Copy, PartialEq)]
struct Judged {
    is_hit: bool,
    is_believed: bool,
    /// Whether his client had acknowledged a snapshot of the last ticks, and none that is newer than it says.
    is_acked: bool,
    /// How long ago it was judged to be, before the newest tick that anybody can have seen.
    ago_ms: u16,
}

impl ClientMessage for Judged {}

#[derive(Component, Clone, Replicate)]
struct Target {
    #[replicate(min = -2000.0, max = 2000.0, step = 0.01)]
    x: f32,
}

#[derive(Resource)]
struct Shooting {
    history: History,
    casts: PastCasts,
    hits: Vec<Option<PastHit>>,
    shooters: BTreeMap<ClientKey, ShooterView>,
}

struct Range;

impl WorldKind for Range {
    fn name(&self) -> &str {
        "range"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(TICKS_PER_S)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Target>().input::<Fire>().message::<Judged>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        let rig = Arc::new(Rig::upright(0.4, 1.8).expect("a body"));
        let mut history = History::new(&HistorySettings::new(TICKS_PER_S, 1), vec![rig]).expect("a history");
        assert!(history.insert(0, 0));
        let (casts, hits, shooters) = (PastCasts::default(), Vec::new(), BTreeMap::new());
        world.insert_resource(Shooting { history, casts, hits, shooters });
        world.add_systems(Startup, put_up).add_systems(Update, (welcome, judge, run).chain());
    }
}

fn put_up(mut commands: Commands) {
    commands.spawn((Replicated::default(), Target { x: 0.0 }));
}

fn welcome(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for arrival in &arrivals.0 {
        outbox.set_player(arrival.client, commands.spawn_empty().id());
    }
}

/// Where the target is at a moment (m).
fn target_x(tick: u32, part: u8) -> f32 {
    (tick as f32 + f32::from(part) / 256.0) * STEP_M
}

fn judge(fired: Inputs<Fire>, info: Res<TickInfo>, mut shooting: ResMut<Shooting>, mut outbox: ResMut<Outbox>) {
    let Shooting { history, casts, hits, shooters } = &mut *shooting;
    let newest = info.tick.saturating_sub(1);
    for (sender, &Fire { x_mm }) in fired.read() {
        let seen = sender.seen.expect("its kind says what was seen");
        let claimed = ViewTime::new(seen.tick, seen.part);
        let shooter = shooters.entry(sender.client).or_default();
        shooter.acknowledged(seen.acked_tick);
        let admitted = ViewLimits::new(TICKS_PER_S).admit(shooter, newest, claimed, seen.round_trip);
        let origin = Vec3::new(x_mm as f32 / 1_000.0, 1.0, -30.0);
        let ray = Ray { origin, direction: Vec3::Z, distance_m_max: 100.0 };
        casts.cast(history, None, &[PastShot { ray, at: admitted.at, shooter: None }], hits);
        let is_believed = admitted.verdict == ViewVerdict::AsClaimed;
        let is_acked = seen.acked_tick <= seen.newest_tick && seen.acked_tick + 8 > info.tick;
        let ago_ms = ViewTime::of_tick(newest).parts_since(admitted.at) * 1_000 / 256 / u64::from(TICKS_PER_S);
        let judged = Judged { is_hit: hits[0].is_some(), is_believed, is_acked, ago_ms: ago_ms as u16 };
        outbox.send(sender.client, &judged).expect("within its limits");
    }
}

/// In each tick, what clients are told and what is recorded are the same.
fn run(info: Res<TickInfo>, mut targets: Query<&mut Target>, mut shooting: ResMut<Shooting>) {
    let x = target_x(info.tick, 0);
    targets.iter_mut().for_each(|mut target| target.x = x);
    let history = &mut shooting.history;
    history.begin_tick(info.tick);
    assert!(history.place(0, &Body::standing(Vec3::X * x, 0.0, Playing::default())));
    history.end_tick();
}

fn settings(one_way: Nanos) -> SimulationSettings {
    let jitter = Nanos::from_millis(10);
    let impairment = Impairment { loss: 0.05, delay: one_way, jitter, ..Impairment::NONE };
    SimulationSettings { impairment, ..SimulationSettings::new(Range.protocol().schema(), 12) }
}

fn range(server: &mut Server) -> Result<(), ServerError> {
    let range = server.add_kind(Range)?;
    server.create_world(range, 1).map(drop)
}

/// Shoots at what it sees, 20 times a second.
struct Marksman {
    /// How far behind its newest snapshot it shows the world.
    delay: Nanos,
    /// Sends inputs that end within what they should say.
    cuts_short: bool,
    judged: Vec<Judged>,
}

impl Marksman {
    fn new(delay_ms: u64) -> Box<Self> {
        Box::new(Self { delay: Nanos::from_millis(delay_ms), cuts_short: false, judged: Vec::new() })
    }
}

impl Behaviour for Marksman {
    fn think(&mut self, now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
        self.judged.extend(client.messages().filter_map(|message| message.read::<Judged>()));
        client.set_interpolation_delay(self.delay);
        // Its clock has settled after five seconds.
        let settled = client.world().is_some_and(|world| client.newest_tick() > world.entered_tick + 100);
        if self.cuts_short {
            let _ = client.send_raw_input(now, &[0, 1, 2, 3]);
        } else if settled && let Some(seen) = client.seen(now) {
            let (tick, part) = seen.moment();
            let _ = client.send_input(now, &Fire { x_mm: (target_x(tick, part) * 1_000.0) as i32 });
        }
    }

    fn counters(&self) -> BehaviourCounters {
        let count = |what: fn(&Judged) -> bool| self.judged.iter().filter(|judged| what(judged)).count() as u64;
        BehaviourCounters::new()
            .with("judged", count(|_| true))
            .with("hits", count(|judged| judged.is_hit))
            .with("believed", count(|judged| judged.is_believed))
            .with("acked", count(|judged| judged.is_acked))
            .with("older_than_the_clamp", count(|judged| judged.ago_ms > 200))
            .with("as_old_as_it_may_be", count(|judged| judged.ago_ms > 120))
    }
}

#[test]
fn what_a_player_saw_and_aimed_at_is_hit() {
    for one_way_ms in [0, 10, 20] {
        let (mut simulation, ()) = Simulation::new(&settings(Nanos::from_millis(one_way_ms)), range).unwrap();
        (0..2).for_each(|_| _ = simulation.join(Marksman::new(50)));
        simulation.run_for(30.0);
        let totals = simulation.totals();
        let [judged, hits, believed, acked] = ["judged", "hits", "believed", "acked"].map(|name| totals.counter(name));
        assert!(judged > 800, "{totals:#?}");
        assert!(hits * 1_000 >= judged * 995, "{one_way_ms} ms: {totals:#?}");
        assert!(believed * 1_000 >= judged * 995, "{one_way_ms} ms: {totals:#?}");
        assert!(acked * 1_000 >= judged * 995, "{one_way_ms} ms: {totals:#?}");
        assert_eq!(totals.counter("older_than_the_clamp"), 0);
    }
}

/// Promise: a client that claims to see the world of three seconds ago is judged at the clamp at most, and hits nobody who
/// was there then.
#[test]
fn who_claims_an_old_view_hits_nothing_of_it() {
    let (mut simulation, ()) = Simulation::new(&settings(Nanos::from_millis(10)), range).unwrap();
    simulation.join(Marksman::new(3_000));
    simulation.run_for(30.0);
    let totals = simulation.totals();
    assert!(totals.counter("judged") > 400, "{totals:#?}");
    assert_eq!((totals.counter("hits"), totals.counter("believed")), (0, 0), "{totals:#?}");
    assert_eq!(totals.counter("older_than_the_clamp"), 0);
    assert!(totals.counter("as_old_as_it_may_be") > 0, "the limits are what held it: {totals:#?}");
}

#[test]
fn an_input_that_ends_within_what_was_seen_is_refused() {
    let (mut simulation, ()) = Simulation::new(&settings(Nanos::ZERO), range).unwrap();
    let mut cheat = Marksman::new(50);
    cheat.cuts_short = true;
    simulation.join(cheat);
    simulation.run_for(5.0);
    assert_eq!((simulation.totals().playing, simulation.totals().counter("judged")), (1, 0));
    let refused = simulation.server_mut().report().counters["net.messages_refused"];
    assert!((50..=110).contains(&refused), "{refused}");
}
