//! R16, the promise: no byte about an entity reaches a client to whom it is not relevant.
//!
//! A wood full of wanderers, some of them stalkers that only those very near and their own pack may see. Every value and every event says
//! which wanderer it is about and in which tick it was made, and the wood notes for every tick who may know of whom. So whatever a client
//! holds or hears, by whatever way it came, tells of itself whether it should have come.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bevy_ecs::prelude::*;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_net::transport::Impairment;
use throng_platform::time::Nanos;
use throng_replication::ecs::{Placed, Replicated};
use throng_replication::{Concealed, Event, InterestSettings, Replicate, SchemaBuilder, Team};
use throng_simulator::{Simulation, SimulationSettings};

const ENTER_M: f32 = 30.0;
const LEAVE_M: f32 = 36.0;
/// How near a stalker must be to be seen by others than its pack. (m)
const STALKER_SEEN_M: f32 = 6.0;
const EVENT_RANGE_M: f32 = 12.0;
const SIDE_M: f32 = 120.0;
/// Farthest that a wanderer goes in a tick. (m)
const STEP_M: f32 = 0.5;
/// Sets are rebuilt once in 4 ticks, of a client that stands still once in 8: so long may one that went too far still be told of.
const GRACE_TICKS: u32 = 8;

#[derive(Component, Replicate, Debug, Clone, Copy, PartialEq)]
struct Wanderer {
    #[replicate(min = 0.0, max = SIDE_M, step = 0.01)]
    at: [f32; 2],
    number: u16,
    tick: u16,
}

impl Placed for Wanderer {
    fn place(&self) -> [f32; 2] {
        self.at
    }
}

/// A cry that only those around hear who may know who cries.
#[derive(Replicate, Debug, Clone, Copy)]
#[replicate(name = "wood.cry")]
struct Cry {
    number: u16,
    tick: u16,
}

impl Event for Cry {
    const RELIABLE: bool = false;
    const RANGE_M: Option<f32> = Some(EVENT_RANGE_M);
}

/// The same, sent again when it is lost.
#[derive(Replicate, Debug, Clone, Copy)]
#[replicate(name = "wood.call")]
struct Call {
    number: u16,
    tick: u16,
}

impl Event for Call {
    const RELIABLE: bool = true;
    const RANGE_M: Option<f32> = None;
}

/// Where a wanderer was in a tick, and what it was.
#[derive(Debug, Clone, Copy)]
struct Trace {
    at: [f32; 2],
    pack: u16,
    is_stalker: bool,
}

/// Everything that was, by tick and by number. Written by the world, read by the players.
#[derive(Resource, Clone, Default)]
struct Chronicle(Arc<Mutex<Vec<BTreeMap<u16, Trace>>>>);

impl Chronicle {
    fn with<T>(&self, look: impl FnOnce(&mut Vec<BTreeMap<u16, Trace>>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether `observer` may have been told of `number` in `tick`, within `range_m`.
    fn allows(&self, observer: u16, number: u16, tick: u16, range_m: f32) -> bool {
        self.with(|ticks| {
            let Some(then) = ticks.get(usize::from(tick)) else { return false };
            let (Some(from), Some(to)) = (then.get(&observer), then.get(&number)) else { return false };
            let is_kin = from.pack == to.pack && to.pack != 0;
            let distance_m = distance(from, to);
            if to.is_stalker && !is_kin && observer != number && distance_m > STALKER_SEEN_M {
                return false;
            }
            let slack_m = GRACE_TICKS as f32 * 2.0 * STEP_M + 0.1;
            observer == number || is_kin || distance_m <= range_m + slack_m
        })
    }
}

fn distance(from: &Trace, to: &Trace) -> f32 {
    (from.at[0] - to.at[0]).hypot(from.at[1] - to.at[1])
}

#[derive(Component)]
struct Owner(ClientKey);

#[derive(Resource)]
struct Numbers(u16);

struct Wood {
    wanderers: u16,
    chronicle: Chronicle,
    /// Negative control: the filter lets everybody see everything.
    is_careless: bool,
}

impl WorldKind for Wood {
    fn name(&self) -> &str {
        "wood"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        let settings =
            InterestSettings { enter_radius_m: ENTER_M, leave_radius_m: LEAVE_M, ..InterestSettings::default() };
        let is_careless = self.is_careless;
        world
            .replicate::<Wanderer>()
            .placed_by::<Wanderer>()
            .interest(settings)
            .conceal_by(move |world, viewer, entity| is_careless || may_see(world, viewer, entity))
            .insert_resource(self.chronicle.clone())
            .insert_resource(Numbers(0))
            .add_systems((come_and_go, turn_coats, wander, cry).chain());
        for _ in 0..self.wanderers {
            spawn(world.world_mut(), None);
        }
    }
}

fn spawn(world: &mut World, owner: Option<ClientKey>) -> Entity {
    let number = world.resource::<Numbers>().0;
    world.resource_mut::<Numbers>().0 += 1;
    let rng = &mut world.resource_mut::<WorldRng>().0;
    let at = [(); 2].map(|()| rng.random_range(0.0..SIDE_M));
    let (pack, is_stalker) = (number % 7, number.is_multiple_of(3));
    let entity = world.spawn((Replicated::default(), Wanderer { at, number, tick: 0 })).id();
    if pack != 0 {
        world.entity_mut(entity).insert(Team(pack));
    }
    if is_stalker {
        world.entity_mut(entity).insert(Concealed);
    }
    if let Some(owner) = owner {
        world.entity_mut(entity).insert(Owner(owner));
    }
    entity
}

fn may_see(world: &World, viewer: Viewer, entity: Entity) -> bool {
    let Some(own) = viewer.player.filter(|own| *own != entity) else { return viewer.player == Some(entity) };
    let at = |entity| world.get::<Wanderer>(entity).map(|wanderer| wanderer.at);
    let (Some(from), Some(to)) = (at(own), at(entity)) else { return false };
    let is_kin = world.get::<Team>(entity).is_some_and(|team| viewer.team == Some(team.0));
    is_kin || (from[0] - to[0]).hypot(from[1] - to[1]) <= STALKER_SEEN_M
}

fn come_and_go(world: &mut World) {
    let arrivals: Vec<ClientKey> = world.resource::<Arrivals>().0.iter().map(|arrival| arrival.client).collect();
    for client in arrivals {
        let player = spawn(world, Some(client));
        let team = world.get::<Team>(player).map(|team| team.0);
        let mut outbox = world.resource_mut::<Outbox>();
        outbox.set_player(client, player);
        outbox.set_team(client, team);
    }
}

type WandererQuery<'w, 's> = Query<'w, 's, (Entity, Option<&'static Owner>, Has<Concealed>), With<Wanderer>>;

/// Now and then somebody becomes a stalker, or changes its pack, in the middle of everything.
fn turn_coats(
    mut rng: ResMut<WorldRng>,
    mut commands: Commands,
    mut outbox: ResMut<Outbox>,
    wanderers: WandererQuery<'_, '_>,
) {
    for (entity, owner, is_stalker) in &wanderers {
        match rng.0.random_range(0..400) {
            0 if is_stalker => drop(commands.entity(entity).remove::<Concealed>()),
            0 => drop(commands.entity(entity).insert(Concealed)),
            1 => {
                let pack = rng.0.random_range(1..7);
                commands.entity(entity).insert(Team(pack));
                if let Some(owner) = owner {
                    outbox.set_team(owner.0, Some(pack));
                }
            }
            _ => {}
        }
    }
}

fn wander(
    tick: Res<TickInfo>,
    mut rng: ResMut<WorldRng>,
    chronicle: Res<Chronicle>,
    mut wanderers: Query<(&mut Wanderer, Option<&Team>, Has<Concealed>)>,
) {
    let mut now = BTreeMap::new();
    for (mut wanderer, team, is_stalker) in &mut wanderers {
        let step = [(); 2].map(|()| rng.0.random_range(-STEP_M..STEP_M) * 0.7);
        wanderer.at = [0, 1].map(|axis| (wanderer.at[axis] + step[axis]).clamp(0.0, SIDE_M));
        wanderer.tick = tick.tick as u16;
        let trace = Trace { at: wanderer.at, pack: team.map_or(0, |team| team.0), is_stalker };
        now.insert(wanderer.number, trace);
    }
    chronicle.with(|ticks| {
        ticks.resize_with(tick.tick as usize, BTreeMap::new);
        ticks.push(now);
    });
}

fn cry(mut rng: ResMut<WorldRng>, mut events: ResMut<Events>, wanderers: Query<(Entity, &Wanderer, Option<&Team>)>) {
    for (entity, wanderer, team) in &wanderers {
        let Wanderer { number, tick, .. } = *wanderer;
        match rng.0.random_range(0..40) {
            0 => events.send(&Cry { number, tick }, Audience::Around(entity), "wood.fright"),
            1 => {
                if let Some(team) = team {
                    events.send(&Call { number, tick }, Audience::Team(team.0), "wood.pack");
                }
            }
            _ => {}
        }
    }
}

/// Looks at everything that its client was told.
#[derive(Default)]
struct Witness {
    chronicle: Chronicle,
    seen: u64,
    heard: u64,
    leaks: u64,
    first_leak: Option<String>,
}

impl Witness {
    fn judge(&mut self, own: u16, number: u16, tick: u16, range_m: f32, how: &str) {
        if !self.chronicle.allows(own, number, tick, range_m) {
            self.leaks += 1;
            self.first_leak.get_or_insert_with(|| {
                let told = format!("{own} was told of {number} by {how} of tick {tick}");
                println!("{told}");
                told
            });
        }
    }
}

impl Behaviour for Witness {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let _ = client.send_input(now, &rng.random::<[u8; 2]>());
        let replicas = client.replicas();
        let Some(own) = client.own_entity().and_then(|own| replicas.get::<Wanderer>(own)).map(|own| own.number) else {
            return;
        };
        let held: Vec<Wanderer> = replicas.iter::<Wanderer>().map(|(_, wanderer)| *wanderer).collect();
        for wanderer in held {
            self.seen += 1;
            self.judge(own, wanderer.number, wanderer.tick, LEAVE_M, "a copy");
        }
        let events: Vec<(u16, u16, f32)> = client
            .events()
            .map(|event| match event.id.index() {
                0 => event.decode::<Cry>().map(|cry| (cry.number, cry.tick, EVENT_RANGE_M)),
                _ => event.decode::<Call>().map(|call| (call.number, call.tick, 0.0)),
            })
            .map(|event| event.expect("the server writes what the schema says"))
            .collect();
        for (number, tick, range_m) in events {
            self.heard += 1;
            self.judge(own, number, tick, range_m, "an event");
        }
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new().with("seen", self.seen).with("heard", self.heard).with("leaks", self.leaks)
    }
}

const POOR: Impairment = Impairment {
    loss: 0.1,
    duplication: 0.05,
    reordering: 0.1,
    reorder_delay: Nanos::from_millis(80),
    corruption: 0.0,
    delay: Nanos::from_millis(40),
    jitter: Nanos::from_millis(40),
};

/// Runs a wood and returns how many leaks its players found, after making sure that they had something to look at.
fn leaks(seed: u64, players: usize, wanderers: u16, seconds: f64, is_careless: bool) -> u64 {
    let schema = SchemaBuilder::new().component::<Wanderer>().event::<Cry>().event::<Call>().build();
    let impairment = if seed.is_multiple_of(2) { POOR } else { Impairment::default() };
    let settings = SimulationSettings { impairment, ..SimulationSettings::new(schema, seed) };
    let chronicle = Chronicle::default();
    let wood = Wood { wanderers, chronicle: chronicle.clone(), is_careless };
    let (mut simulation, _) = Simulation::new(&settings, |server| {
        let kind = server.add_kind(wood)?;
        server.create_world(kind, seed)
    })
    .unwrap();
    for _ in 0..players {
        simulation.join(Box::new(Witness { chronicle: chronicle.clone(), ..Witness::default() }));
    }
    simulation.run_for(seconds);
    let totals = simulation.totals();
    let looks = players as u64 * (seconds as u64) * 10;
    assert_eq!((totals.playing, totals.state_errors, totals.protocol_errors), (players as u64, 0, 0), "{totals:#?}");
    assert!(totals.counter("seen") > looks && totals.counter("heard") > looks / 20, "{totals:#?}");
    totals.counter("leaks")
}

#[test]
fn r16_nobody_is_told_of_what_is_not_its_business() {
    for seed in 0..4 {
        assert_eq!(leaks(seed, 24, 60, 8.0, false), 0, "seed {seed}");
    }
}

#[test]
fn r16_a_careless_filter_is_found_out() {
    assert!(leaks(1, 12, 60, 3.0, true) > 0);
}

#[test]
#[ignore = "full form: takes about an hour"]
fn r16_a_thousand_clients_full() {
    for seed in 0..100 {
        assert_eq!(leaks(seed, 1_000, 600, 50.0, false), 0, "seed {seed}");
    }
}
