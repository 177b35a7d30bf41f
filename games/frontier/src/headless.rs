//! The whole game without a server: the same systems in a Bevy schedule, scripted players instead of clients.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::game_metrics::{GameSums, GameTotals, TickCounting, WorldGauges, begin_tick};
use throng::prelude::*;
use throng_net::protocol::ClientId;
use throng_platform::{
    allocator::{CountingAllocator, thread_counts},
    process::thread_cpu_time,
};
use throng_replication::{
    InterestSettings, NetId, Team, VisibilityFiltered, WorldReplication,
    ecs::{Collector, Replicated},
};

use crate::{
    actors::{Actor, Actors},
    blows::DEATH_MS,
    close::{Close, Question},
    components::{Animation, Effects, HEALTH_MAX, Kind, Look, Name, Points, Pose, Vitals},
    concealment,
    landscape::{Landscape, distance_m2},
    mailboxes::{MAILBOX_MAX, Mailboxes},
    npc::{Mind, Minds, population, think::LEASH_M},
    parties::MEMBERS_MAX,
    players::RUN_M_PER_S,
    protocol::{Ability, ClientMessage, Input},
    roster::Roster,
    schema::schema,
    settings::FrontierSettings,
    signals::HANDLE_MS,
    wishes::{WISHES_EACH_MAX, WISHES_MAX},
    worlds::{TICK_HZ, fill, prepare, schedule},
};

mod questions;
mod rules;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// One world, its schedule, and as much of replication as gives entities their names.
struct Headless {
    world: World,
    schedule: Schedule,
    collector: Collector,
    replication: WorldReplication,
    counted: Counted,
    tick: u32,
}

/// What was counted, by name.
#[derive(Debug, Clone, PartialEq)]
struct Tally {
    counters: BTreeMap<&'static str, u64>,
    gauges: BTreeMap<&'static str, i64>,
}

impl Tally {
    fn of(&self, counter: &str) -> u64 {
        self.counters.get(counter).copied().unwrap_or_default()
    }
}

/// What a world counts without a server around it.
#[derive(Default)]
struct Counted {
    gauges: WorldGauges,
    sums: GameSums,
    totals: GameTotals,
}

impl Counted {
    /// Takes what the tick counted that ends now.
    fn end(&mut self, tick: TickCounting) {
        tick.end(&mut self.gauges, &mut self.sums);
        self.totals.take(&mut self.sums);
        self.totals.end_frame(|_, _| ());
    }

    fn tally(&self) -> Tally {
        let (counters, gauges) = self.totals.by_name();
        Tally { counters, gauges }
    }
}

impl Headless {
    fn empty(seed: u64) -> Self {
        let mut world = World::new();
        let mut collector = Collector::new(schema());
        collector.replicate::<Pose>(&mut world);
        collector.replicate::<Vitals>(&mut world);
        collector.replicate::<Points>(&mut world);
        collector.replicate::<Animation>(&mut world);
        collector.replicate::<Effects>(&mut world);
        collector.replicate::<Look>(&mut world);
        collector.replicate::<Name>(&mut world);
        collector.placed_by::<Pose>(&mut world);
        let rate = Hertz(TICK_HZ);
        world.insert_resource(TickInfo { tick: 0, dt_s: 1.0 / f32::from(TICK_HZ), rate, world: WorldId::new(0, 0) });
        world.insert_resource(WorldRng(Xoshiro256PlusPlus::seed_from_u64(seed)));
        world.insert_resource(Events::new(schema()));
        world.init_resource::<Inbox>();
        world.init_resource::<Outbox>();
        world.init_resource::<Arrivals>();
        world.init_resource::<Departures>();
        let replication = WorldReplication::new(schema(), InterestSettings::default());
        Self { world, schedule: schedule(), collector, replication, counted: Counted::default(), tick: 0 }
    }

    fn new(settings: &FrontierSettings) -> Self {
        let mut zone = Self::empty(settings.seed);
        fill(&mut zone.world, settings, settings.seed);
        zone
    }

    /// NPCs of these kinds, all of one camp, around the middle of the first town, where it is flat: their places are
    /// aside from it. After them so many players, at the middle.
    fn scene(npcs: &[(Kind, [f32; 2])], players: u32) -> Self {
        let mut zone = Self::empty(7);
        prepare(&mut zone.world, &FrontierSettings { npcs: npcs.len(), ..FrontierSettings::default() });
        let minds =
            Minds { mailboxes: Mailboxes::new(1), awake_until: vec![0; 1], camps: vec![middle()], ..Minds::default() };
        zone.world.insert_resource(minds);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for &(kind, aside) in npcs {
            population::add_npc(&mut zone.world, kind, 1, beside(aside), 0, &mut rng);
        }
        for client in 0..players {
            let index = zone.arrive(client);
            zone.put(index, [0.0, 0.0]);
        }
        // Clients' names for them are known a tick after they came.
        zone.tick();
        zone
    }

    fn tick(&mut self) {
        self.begin_tick();
        let counting = begin_tick();
        self.schedule.run(&mut self.world);
        self.counted.end(counting);
        self.end_tick();
    }

    fn begin_tick(&mut self) {
        self.world.resource_mut::<TickInfo>().tick = self.tick;
    }

    fn end_tick(&mut self) {
        self.world.resource_mut::<Inbox>().clear();
        self.world.resource_mut::<Events>().clear();
        self.world.resource_mut::<Outbox>().clear();
        self.tick += 1;
        self.replication.begin_tick(self.tick);
        self.collector.collect(&mut self.world, &mut self.replication);
        self.world.clear_trackers();
    }

    fn ticks(&mut self, count: u32) {
        (0..count).for_each(|_| self.tick());
    }

    /// Ticks until something holds, `count` times at most; whether it did.
    fn until(&mut self, count: u32, holds: impl Fn(&Self) -> bool) -> bool {
        for _ in 0..count {
            self.tick();
            if holds(self) {
                return true;
            }
        }
        false
    }

    /// The actor of a new client.
    fn arrive(&mut self, client: u32) -> u32 {
        let client = ClientKey(client);
        self.world.resource_mut::<Arrivals>().0.push(Arrival {
            client,
            client_id: ClientId(u64::from(client.0)),
            user_data: Box::new([0; 256]),
            from: None,
            transfer: None,
        });
        self.tick();
        self.player(client.0)
    }

    fn leave(&mut self, client: u32) {
        self.world.resource_mut::<Departures>().0.push(ClientKey(client));
        self.tick();
    }

    fn player(&self, client: u32) -> u32 {
        self.world.resource::<Roster>().actor(ClientKey(client)).expect("who arrives has a player in the same tick")
    }

    fn input(&mut self, client: u32, input: Input) {
        let kind = MessageKind::Input { number: 0 };
        self.world.resource_mut::<Inbox>().push(ClientKey(client), kind, &input.encode());
    }

    fn say(&mut self, client: u32, message: ClientMessage<'_>) {
        self.world.resource_mut::<Inbox>().push(ClientKey(client), MessageKind::Reliable, &message.encode());
    }

    /// Has a player cast, and waits until it is done.
    fn cast(&mut self, client: u32, ability: Ability) {
        self.input(client, standing().casting(ability));
        let player = self.player(client);
        self.tick();
        assert!(self.actor(player).casting.is_some(), "{ability:?} was begun");
        let done = self.until(200, |zone| zone.actor(player).casting.is_none());
        assert!(done, "{ability:?} came to an end");
    }

    fn target(&mut self, client: u32, target: u32) {
        let id = self.actor(target).id.expect("it has been here for a tick");
        self.say(client, ClientMessage::Target(Some(id)));
        self.tick();
    }

    fn actor(&self, index: u32) -> &Actor {
        &self.world.resource::<Actors>()[index]
    }

    fn actor_mut(&mut self, index: u32) -> Mut<'_, Actor> {
        self.world.resource_mut::<Actors>().map_unchanged(|actors| &mut actors[index])
    }

    fn mind(&self, index: u32) -> &Mind {
        &self.world.resource::<Minds>().rows[index as usize]
    }

    /// Puts somebody somewhere, by how far it is from the middle of the first town.
    fn put(&mut self, index: u32, aside: [f32; 2]) {
        let place = beside(aside);
        self.actor_mut(index).place = place;
        self.world.resource_mut::<Actors>().mark(index, crate::actors::dirty::POSE);
        self.world.resource_mut::<Close>().moved(index, place);
        if let Some(mind) = self.world.resource_mut::<Minds>().get(index) {
            mind.home = place;
        }
    }

    fn hurt(&mut self, index: u32, health: i32) {
        self.actor_mut(index).health = health;
        self.world.resource_mut::<Actors>().mending.insert(index);
        let groups = self.actor(index).groups();
        self.world.resource_mut::<Close>().set_groups(index, groups);
    }

    fn tally(&self) -> Tally {
        self.counted.tally()
    }

    fn of_kind(&self, kind: Kind) -> Vec<u32> {
        let rows = self.world.resource::<Actors>().rows().iter().zip(0..);
        rows.filter(|(row, _)| row.alive && row.kind() == kind).map(|(_, index)| index).collect()
    }

    fn effects(&self, index: u32) -> Effects {
        self.actor(index).effects(self.tick)
    }

    /// One number for all that clients could see and all that rows hold.
    fn hash(&mut self) -> (u64, u64) {
        let digest = self.world.resource::<Actors>().digest();
        (digest, self.collector.hash_state(&mut self.world, self.tick))
    }

    /// Asserts what must hold after every tick.
    fn check(&mut self) {
        let tick = self.tick - 1;
        let actors = self.world.resource::<Actors>();
        for row in actors.rows().iter().filter(|row| row.look.kind.is_creature()) {
            assert!(row.place.iter().all(|metres| metres.abs() <= crate::landscape::EDGE_M), "{row:?}");
            assert!(row.health <= row.health_max, "{row:?}");
            assert!(!row.alive || row.health > 0, "{row:?}");
            assert!(row.heading.is_finite());
        }
        for &index in actors.dead.list() {
            assert!(!actors[index].alive);
            assert!(actors[index].target.is_none() && actors[index].casting.is_none());
        }
        let mut shown = self.world.query::<(&crate::actors::Slot, &Pose, &Vitals, &Animation, &Effects)>();
        let actors = self.world.resource::<Actors>();
        for (slot, pose, vitals, animation, effects) in shown.iter(&self.world) {
            let row = &actors[slot.0];
            assert_eq!([pose.x, pose.z], row.place);
            assert_eq!(*vitals, row.vitals(), "{row:?}");
            assert!(vitals.health <= HEALTH_MAX);
            assert_eq!(*animation, row.animation);
            assert_eq!((effects.sneaking, effects.singing, effects.open), (row.concealed, row.singing, row.open));
            // Clocks that run out are told a little later.
            let due = row.effects(tick);
            assert!(effects.stunned || !due.stunned, "{row:?} at {tick}");
        }
        let mut concealed = self.world.query::<(&crate::actors::Slot, Has<VisibilityFiltered>)>();
        let actors = self.world.resource::<Actors>();
        for (slot, marked) in concealed.iter(&self.world) {
            assert_eq!(marked, actors[slot.0].concealed, "{:?}", actors[slot.0]);
        }
    }
}

fn middle() -> [f32; 2] {
    Landscape::load().towns()[0]
}

fn beside([x, z]: [f32; 2]) -> [f32; 2] {
    let [middle_x, middle_z] = middle();
    [middle_x + x, middle_z + z]
}

fn standing() -> Input {
    Input::new([0.0, 0.0], 0.0)
}

/// A crowd of players with all sorts of wishes, the same for the same seed.
struct Crowd {
    rng: Xoshiro256PlusPlus,
    headings: Vec<f32>,
    walks: Vec<bool>,
    goals: Vec<[f32; 2]>,
}

impl Crowd {
    fn arrive(zone: &mut Headless, players: u32, seed: u64) -> Self {
        for client in 0..players {
            zone.arrive(client);
        }
        let landscape = Landscape::load();
        let nodes = zone.of_kind(Kind::Node);
        // Some to camps, some to the town, some to what grows.
        let goals: Vec<[f32; 2]> = (0..players as usize)
            .map(|client| match client % 5 {
                3 => landscape.towns()[0],
                4 => zone.actor(nodes[client / 5 % nodes.len()]).place,
                _ => landscape.camps()[client % 4],
            })
            .collect();
        for client in 0..players {
            // Most of the way is done already.
            let (player, goal) = (zone.player(client), goals[client as usize]);
            let away_m = if client % 5 == 4 { 1.0 } else { 30.0 };
            zone.put(player, [goal[0] + away_m - middle()[0], goal[1] + (client % 7) as f32 * 0.2 - middle()[1]]);
        }
        Self::new(goals, seed)
    }

    fn new(goals: Vec<[f32; 2]>, seed: u64) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { rng, headings: vec![0.0; goals.len()], walks: vec![false; goals.len()], goals }
    }

    fn act(&mut self, zone: &mut Headless) {
        for client in 0..self.goals.len() as u32 {
            let rng = &mut self.rng;
            let player = zone.player(client);
            let (place, goal) = (zone.actor(player).place, self.goals[client as usize]);
            let heading = &mut self.headings[client as usize];
            if rng.random_bool(0.1) {
                *heading = (goal[0] - place[0]).atan2(goal[1] - place[1]) + rng.random_range(-0.6..0.6);
            }
            if rng.random_bool(0.02) {
                let far = distance_m2(place, goal) > 400.0;
                self.walks[client as usize] = client % 5 != 4 && rng.random_bool(if far { 0.8 } else { 0.3 });
            }
            let walks = self.walks[client as usize];
            let way = if walks { [heading.sin(), heading.cos()] } else { [0.0, 0.0] };
            let ability = Ability::ALL[rng.random_range(0..Ability::ALL.len() - 1)];
            let input = Input::new(way, heading.rem_euclid(std::f32::consts::TAU))
                .attacking(true)
                .running(client % 3 == 0)
                .sneaking(client % 11 == 5)
                .gathering(client % 5 == 4)
                .casting(if rng.random_bool(0.1) { ability } else { Ability::None });
            zone.input(client, input);
            if rng.random_bool(0.02) {
                self.ask(zone, client);
            }
        }
    }

    fn ask(&mut self, zone: &mut Headless, client: u32) {
        let others = zone.world.resource::<Actors>().len() as u32;
        let player = zone.player(client);
        // The nearest of some: what a player would see.
        let some: Vec<u32> = (0..40).map(|_| self.rng.random_range(0..others)).collect();
        let nearest = some.into_iter().filter(|&other| other != player && zone.actor(other).alive).min_by(|&a, &b| {
            let away = |other: u32| distance_m2(zone.actor(other).place, zone.actor(player).place);
            away(a).total_cmp(&away(b))
        });
        let Some(id) = nearest.and_then(|other| zone.actor(other).id) else { return };
        let joined = zone.actor(zone.player(self.rng.random_range(0..self.goals.len() as u32))).id;
        let message = match self.rng.random_range(0..5) {
            0 => ClientMessage::Say("hail and well met"),
            1 => joined.map_or(ClientMessage::Leave, ClientMessage::Join),
            2 => ClientMessage::Use(id),
            _ => ClientMessage::Target(Some(id)),
        };
        zone.say(client, message);
    }
}

fn crowded(settings: &FrontierSettings, players: u32, ticks: u32) -> (Headless, Vec<(u64, u64)>) {
    let mut zone = Headless::new(settings);
    let mut crowd = Crowd::arrive(&mut zone, players, 5);
    let mut hashes = Vec::new();
    for tick in 0..ticks {
        crowd.act(&mut zone);
        zone.tick();
        if tick % 50 == 49 {
            zone.check();
            hashes.push(zone.hash());
        }
    }
    (zone, hashes)
}
