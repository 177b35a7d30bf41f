//! The whole game without a server: the world that ships, with scripted players instead of clients.

use bevy_ecs::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng_platform::{
    allocator::{CountingAllocator, thread_counts},
    process::thread_cpu_time,
};
use throng_replication::{NetId, PackedId, ReplicationRules, Team, VisibilityFiltered, ecs::Replicated};
use throng_world::testing::{Counted, TestWorld};

use crate::{
    actors::{Actor, Actors},
    blows::DEATH_MS,
    components::{Animation, Effects, HEALTH_MAX, Kind, Points, Pose, Vitals},
    landscape::{Landscape, distance_m2},
    mailboxes::{MAILBOX_MAX, Mailboxes},
    neighbours::{Neighbours, Question},
    npc::{Mind, Minds, population, think::LEASH_M},
    parties::MEMBERS_MAX,
    players::RUN_M_PER_S,
    protocol::{Ability, Input, Wish},
    roster::{PlayerRow, Roster},
    schema::{protocol, schema},
    settings::FrontierSettings,
    signals::HANDLE_MS,
    visibility,
    worlds::{Frontier, TICK_HZ, prepare, put_together},
};

mod aims;
mod checkpoints;
mod questions;
mod rules;
mod works;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The world of the game, as it ships.
struct Headless {
    world: TestWorld,
}

/// The same world with few in it: NPCs of these kinds, all of one camp, around the middle of the first town, where it
/// is flat.
struct Scene {
    npcs: Vec<(Kind, [f32; 2])>,
}

impl WorldKind for Scene {
    fn name(&self) -> &str {
        "scene"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(TICK_HZ)
    }

    fn protocol(&self) -> Protocol {
        protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        put_together(world);
        let ecs = world.world_mut();
        prepare(ecs, &FrontierSettings { npcs: self.npcs.len(), ..FrontierSettings::default() });
        let minds =
            Minds { mailboxes: Mailboxes::new(1), awake_until: vec![0; 1], camps: vec![middle()], ..Minds::default() };
        ecs.insert_resource(minds);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for &(kind, aside) in &self.npcs {
            population::add_npc(ecs, kind, 1, beside(aside), 0, &mut rng);
        }
    }
}

impl Headless {
    fn new(settings: &FrontierSettings) -> Self {
        Self { world: TestWorld::new(Frontier { settings: settings.clone(), saved: None }, &schema(), settings.seed) }
    }

    /// A world with these NPCs, whose places are aside from the middle. After them so many players, at the middle.
    fn scene(npcs: &[(Kind, [f32; 2])], players: u32) -> Self {
        let mut zone = Self { world: TestWorld::new(Scene { npcs: npcs.to_vec() }, &schema(), 7) };
        for client in 0..players {
            let index = zone.arrive(client);
            zone.put(index, [0.0, 0.0]);
        }
        // Clients' names for them are known a tick after they came.
        zone.tick();
        zone
    }

    fn ecs(&self) -> &World {
        self.world.ecs()
    }

    fn ecs_mut(&mut self) -> &mut World {
        self.world.ecs_mut()
    }

    fn tick(&mut self) {
        self.world.tick();
    }

    fn ticks(&mut self, count: u32) {
        self.world.ticks(count);
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
        self.world.arrive(ClientKey(client));
        self.tick();
        self.player(client)
    }

    fn leave(&mut self, client: u32) {
        self.world.leave(ClientKey(client));
        self.tick();
    }

    fn player(&self, client: u32) -> u32 {
        let entity = self.ecs().resource::<Inbox>().players().entity(ClientKey(client));
        let row = self.ecs().get::<PlayerRow>(entity.expect("who arrives has a player in the same tick"));
        self.ecs().resource::<Roster>().actor(*row.expect("each has a row")).expect("and an actor")
    }

    fn input(&mut self, client: u32, input: Input) {
        self.world.input(ClientKey(client), &input);
    }

    fn say(&mut self, client: u32, wish: Wish) {
        self.world.request(ClientKey(client), &wish);
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
        self.say(client, Wish::Target(Some(id)));
        self.tick();
    }

    fn actor(&self, index: u32) -> &Actor {
        &self.ecs().resource::<Actors>()[index]
    }

    fn actor_mut(&mut self, index: u32) -> Mut<'_, Actor> {
        self.ecs_mut().resource_mut::<Actors>().map_unchanged(|actors| &mut actors[index])
    }

    fn mind(&self, index: u32) -> &Mind {
        &self.ecs().resource::<Minds>().rows[index as usize]
    }

    /// Puts somebody somewhere, by how far it is from the middle of the first town.
    fn put(&mut self, index: u32, aside: [f32; 2]) {
        let place = beside(aside);
        self.actor_mut(index).place = place;
        self.ecs_mut().resource_mut::<Actors>().mark(index, crate::actors::dirty::POSE);
        self.ecs_mut().resource_mut::<Neighbours>().moved(index, place);
        if let Some(mind) = self.ecs_mut().resource_mut::<Minds>().get(index) {
            mind.home = place;
        }
    }

    fn hurt(&mut self, index: u32, health: i32) {
        self.actor_mut(index).health = health;
        self.ecs_mut().resource_mut::<Actors>().mending.insert(index);
        let groups = self.actor(index).groups();
        self.ecs_mut().resource_mut::<Neighbours>().set_groups(index, groups);
    }

    fn tally(&self) -> Counted {
        self.world.counted()
    }

    fn of_kind(&self, kind: Kind) -> Vec<u32> {
        let rows = self.ecs().resource::<Actors>().rows().iter().zip(0..);
        rows.filter(|(row, _)| row.alive && row.kind() == kind).map(|(_, index)| index).collect()
    }

    fn effects(&self, index: u32) -> Effects {
        self.actor(index).effects(self.world.ticks_done())
    }

    /// One number for all that clients could see and all that rows hold.
    fn hash(&mut self) -> (u64, u64) {
        (self.ecs().resource::<Actors>().digest(), self.world.state_hash())
    }

    /// Asserts what must hold after every tick.
    fn check(&mut self) {
        let tick = self.world.ticks_done() - 1;
        let actors = self.ecs().resource::<Actors>();
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
        let mut shown = self.ecs_mut().query::<(&crate::actors::Slot, &Pose, &Vitals, &Animation, &Effects)>();
        let actors = self.ecs().resource::<Actors>();
        for (slot, pose, vitals, animation, effects) in shown.iter(self.ecs()) {
            let row = &actors[slot.0];
            assert_eq!([pose.x, pose.z], row.place);
            assert_eq!(*vitals, row.vitals(), "{row:?}");
            assert!(vitals.health <= HEALTH_MAX);
            assert_eq!(*animation, row.animation);
            assert_eq!((effects.sneaking, effects.singing, effects.open), (row.filtered, row.singing, row.open));
            // Clocks that run out are told a little later.
            let due = row.effects(tick);
            assert!(effects.stunned || !due.stunned, "{row:?} at {tick}");
        }
        let mut filtered = self.ecs_mut().query::<(&crate::actors::Slot, Has<VisibilityFiltered>)>();
        let actors = self.ecs().resource::<Actors>();
        for (slot, marked) in filtered.iter(self.ecs()) {
            assert_eq!(marked, actors[slot.0].filtered, "{:?}", actors[slot.0]);
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
        let others = zone.ecs().resource::<Actors>().len() as u32;
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
            0 => Wish::say("hail and well met").unwrap(),
            1 => joined.map_or(Wish::Leave, Wish::Join),
            2 => Wish::Use(id),
            _ => Wish::Target(Some(id)),
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
