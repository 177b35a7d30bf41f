//! Whole worlds without a server: the same systems in a Bevy schedule, scripted players instead of clients.

use std::{collections::BTreeMap, sync::OnceLock};

use bevy_ecs::prelude::*;
use glam::Vec3;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::game_metrics::{GameSums, GameTotals, TickCounting, WorldGauges, begin_tick};
use throng::prelude::*;
use throng_net::protocol::ClientId;
use throng_platform::{
    allocator::{CountingAllocator, thread_counts},
    process::thread_cpu_time,
};

use crate::{
    arena::Arena,
    components::{Action, CHEST, Character, EYE, HEALTH_MAX, Pose, Slot, Standing, Vitals},
    level::Level,
    lives::DEATH_MS,
    movement::SPRINT_M_PER_S,
    npc::{LoadLevel, Npc, Pace, Senses, census::COMBAT_MS},
    passport::{Passport, PlayerName},
    portals::{Destination, PortalWatch},
    protocol::{ClientMessage, Input},
    roster::PlayerClient,
    scene::Shared,
    shots::ShotOrder,
    travel::{OwnerLeft, Traveller},
    weapons::{Weapon, WeaponKind, ticks_of},
    worlds::{fill, schedule},
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn shared() -> &'static Shared {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    SHARED.get_or_init(|| {
        let shared = Shared::new(Level::load());
        shared.worlds.set(WorldId::new(0, 0), WorldId::new(1, 0));
        shared
    })
}

/// One world and its schedule.
struct Headless {
    world: World,
    schedule: Schedule,
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

    fn standing(&self, gauge: &str) -> i64 {
        self.gauges.get(gauge).copied().unwrap_or_default()
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
    fn new(here: Destination, tick_hz: u16, npcs: usize, seed: u64) -> Self {
        let mut world = World::new();
        let rate = Hertz(tick_hz);
        world.insert_resource(TickInfo { tick: 0, dt_s: 1.0 / f32::from(tick_hz), rate, world: WorldId::new(2, 0) });
        world.insert_resource(WorldRng(Xoshiro256PlusPlus::seed_from_u64(seed)));
        world.insert_resource(MayBeDormant(true));
        world.init_resource::<Inbox>();
        world.init_resource::<Outbox>();
        world.init_resource::<Arrivals>();
        world.init_resource::<Departures>();
        world.init_resource::<WorldMessages>();
        fill(&mut world, shared(), here, npcs, seed);
        Self { world, schedule: schedule(), counted: Counted::default(), tick: 0 }
    }

    fn hideout(npcs: usize, seed: u64) -> Self {
        Self::new(Destination::Hideout, 20, npcs, seed)
    }

    fn tick(&mut self) {
        self.world.resource_mut::<TickInfo>().tick = self.tick;
        let counting = begin_tick();
        self.schedule.run(&mut self.world);
        self.counted.end(counting);
        self.world.resource_mut::<Inbox>().clear();
        *self.world.resource_mut::<Outbox>() = Outbox::default();
        self.tick += 1;
    }

    fn ticks(&mut self, count: u32) {
        (0..count).for_each(|_| self.tick());
    }

    fn arrive(&mut self, client: u32, transfer: Option<Traveller>) -> Entity {
        let client = ClientKey(client);
        self.world.resource_mut::<Arrivals>().0.push(Arrival {
            client,
            client_id: ClientId(u64::from(client.0)),
            user_data: Box::new([0; 256]),
            from: None,
            transfer: transfer.map(|traveller| Transfer::of(&traveller).expect("within limits")),
        });
        self.tick();
        self.world.resource::<Arena>().roster.entity(client).expect("who arrives has a player in the same tick")
    }

    fn input(&mut self, client: u32, input: &Input) {
        let kind = MessageKind::Input { number: 0 };
        self.world.resource_mut::<Inbox>().push(ClientKey(client), kind, &input.encode());
    }

    fn get<T: Component + Copy>(&self, entity: Entity) -> T {
        *self.world.get::<T>(entity).expect("the entity has it")
    }

    fn put(&mut self, entity: Entity, place: Vec3) {
        let standing = shared().level.navmesh.nearest(place, 5.0).unwrap();
        self.world.get_mut::<Standing>(entity).unwrap().0 = standing;
        self.world.get_mut::<Pose>(entity).unwrap().set_feet(standing.position());
    }

    fn tally(&self) -> Tally {
        self.counted.tally()
    }

    /// Everything clients could see, bit for bit.
    fn state(&mut self) -> Vec<(u16, [u32; 4], Vitals, Character, Action)> {
        let mut query = self.world.query::<(&Slot, &Pose, &Vitals, &Character, &Action)>();
        query
            .iter(&self.world)
            .map(|(slot, pose, &vitals, &character, &action)| {
                (slot.0, [pose.x, pose.y, pose.z, pose.yaw].map(f32::to_bits), vitals, character, action)
            })
            .collect()
    }

    /// Asserts what must hold after every tick.
    fn check(&mut self) {
        let mut query = self.world.query::<(&Pose, &Standing, &Vitals, Option<&Npc>)>();
        for (pose, standing, vitals, npc) in query.iter(&self.world) {
            assert!(shared().level.navmesh.holds(standing.0), "{standing:?} is off the mesh");
            assert_eq!(pose.feet(), standing.0.position());
            assert!(pose.yaw.is_finite());
            assert!(vitals.health <= HEALTH_MAX);
            assert_eq!(vitals.alive, vitals.health > 0, "{npc:?}");
        }
    }

    fn in_combat(&mut self) -> usize {
        let combat_ticks = ticks_of(COMBAT_MS, 20);
        let now = self.tick - 1;
        let mut query = self.world.query::<(&Vitals, &Senses)>();
        query
            .iter(&self.world)
            .filter(|(vitals, senses)| vitals.alive && senses.fought.within(now, combat_ticks))
            .count()
    }
}

fn forward(sprint: bool) -> Input {
    Input::new([0.0, 1.0], 0.0, 0.0, false, sprint)
}

/// Promise: at any time at least 5 % of the NPCs are in combat, their number is constant, all of them perceive
/// four times a second, and everybody stands on the mesh.
#[test]
fn a_hideout_fights_on_for_five_hundred_ticks() {
    let worlds = 8;
    let npcs = 19;
    let mut hideouts: Vec<Headless> = (0..worlds).map(|seed| Headless::hideout(npcs, seed)).collect();
    for (index, hideout) in hideouts.iter_mut().enumerate() {
        // Half of the owners are away.
        if index % 2 == 0 {
            hideout.arrive(7, None);
        } else {
            hideout.tick();
        }
    }
    let warm_up = 60;
    let (mut least, mut sum) = (usize::MAX, 0);
    for tick in 0..500 {
        let mut fighting = 0;
        for hideout in &mut hideouts {
            hideout.tick();
            hideout.check();
            fighting += hideout.in_combat();
            assert_eq!(hideout.world.query::<&Npc>().iter(&hideout.world).count(), npcs);
        }
        if tick >= warm_up {
            least = least.min(fighting);
            sum += fighting;
        }
    }
    let all = npcs * worlds as usize;
    assert!(least * 20 >= all, "at one time only {least} of {all} were in combat");
    let mut total: BTreeMap<&str, u64> = BTreeMap::new();
    for hideout in &hideouts {
        let tally = hideout.tally();
        assert!(tally.of("deaths") > 0, "{tally:?}");
        assert!(tally.of("paths") > 10, "{tally:?}");
        for (name, count) in tally.counters {
            *total.entry(name).or_default() += count;
        }
    }
    let average = sum as f32 / (500 - warm_up) as f32 / all as f32;
    println!("in combat: at least {least} of {all}, {:.0} % on average; in 25 s: {total:?}", average * 100.0);
    assert!(average < 0.9, "there is peace somewhere, too");
}

#[test]
fn every_living_npc_perceives_four_times_a_second() {
    let mut hideout = Headless::hideout(19, 5);
    hideout.arrive(1, None);
    hideout.ticks(20);
    let before = hideout.tally().of("perceptions");
    let mut alive_ticks = 0;
    for _ in 0..200 {
        hideout.tick();
        let mut query = hideout.world.query::<(&Vitals, &Npc)>();
        alive_ticks += query.iter(&hideout.world).filter(|(vitals, _)| vitals.alive).count();
    }
    let perceptions = hideout.tally().of("perceptions") - before;
    let due = alive_ticks as u64 * 4 / 20;
    assert!(perceptions + 19 >= due, "{perceptions} of {due}");
}

/// Promise: the same seed and the same inputs give the same world, bit for bit.
#[test]
fn the_same_seed_gives_the_same_world() {
    let run = |seed| {
        let mut zone = Headless::new(Destination::DarkZone, 30, 60, seed);
        zone.arrive(1, None);
        zone.arrive(2, None);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(99);
        for _ in 0..300 {
            for client in [1, 2] {
                let turn = rng.random_range(0.0..6.0);
                zone.input(client, &Input::new([rng.random_range(-1.0..1.0), 1.0], turn, 0.0, true, false));
            }
            zone.tick();
        }
        zone.state()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

/// Cheats against the speed limit: whatever a client sends, its player covers at most what the limit and one step
/// allow, and never leaves the mesh.
#[test]
fn no_script_of_inputs_is_faster_than_the_limit() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(13);
    let mut watched_s = 0.0;
    for script in 0..40 {
        let mut hideout = Headless::hideout(0, script);
        let player = hideout.arrive(1, None);
        let mut places = vec![hideout.get::<Pose>(player).feet()];
        let mut heading = 0.0_f32;
        for tick in 0..120_u32 {
            let inputs = match script % 5 {
                0 => 1,                               // honest
                1 => 10,                              // a clock ten times too fast
                2 => u32::from(tick % 40 == 0) * 128, // banks time, then bursts
                3 => rng.random_range(0..20),
                _ => u32::from(tick % 6 == 0), // lossy
            };
            heading += rng.random_range(-0.3..0.3);
            for _ in 0..inputs {
                let direction = [heading.sin() * 1e9, heading.cos() * 1e9];
                hideout.input(1, &Input::new(direction, heading.rem_euclid(6.0), 0.0, false, true));
            }
            hideout.tick();
            hideout.check();
            if hideout.tally().of("travels") > 0 {
                break; // it has walked into a portal
            }
            places.push(hideout.get::<Pose>(player).feet());
        }
        watched_s += places.len() as f32 / 20.0;
        let step_m = SPRINT_M_PER_S / 20.0;
        for window in places.windows(21) {
            let walked: f32 = window.windows(2).map(|pair| pair[0].distance(pair[1])).sum();
            assert!(walked <= SPRINT_M_PER_S * 1.05 + step_m, "{walked} m in one second by script {script}");
        }
    }
    assert!(watched_s > 120.0, "{watched_s}");
}

#[test]
fn walls_hold() {
    let mut hideout = Headless::hideout(0, 1);
    let player = hideout.arrive(1, None);
    // Straight at the outer wall, for far longer than it takes to get there.
    for _ in 0..20 * 60 {
        hideout.input(1, &forward(true));
        hideout.tick();
    }
    hideout.check();
    let feet = hideout.get::<Pose>(player).feet();
    assert!(shared().level.bounds.contains(feet + Vec3::Y * 0.5), "{feet}");
    assert!(hideout.tally().of("inputs_excess") == 0);
}

#[test]
fn nonsense_from_a_client_is_counted_and_does_nothing() {
    let mut hideout = Headless::hideout(0, 1);
    let player = hideout.arrive(1, None);
    let before = hideout.get::<Pose>(player);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    for _ in 0..2_000 {
        let mut bytes = [0_u8; 40];
        rng.fill(&mut bytes);
        bytes[0] = 0x80; // a move of -128, a kind that does not exist
        let length = rng.random_range(0..bytes.len());
        let mut inbox = hideout.world.resource_mut::<Inbox>();
        inbox.push(ClientKey(1), MessageKind::Input { number: 1 }, &bytes[..length]);
        inbox.push(ClientKey(1), MessageKind::Reliable, &bytes[..length]);
        inbox.push(ClientKey(77), MessageKind::Reliable, &bytes[..length]);
    }
    hideout.tick();
    assert_eq!(hideout.get::<Pose>(player), before);
    assert_eq!(hideout.tally().of("inputs_refused"), 2_000);
    assert_eq!(hideout.tally().of("messages_refused"), 2_000);
}

/// Two players in the open, one aiming at the other.
fn duel(here: Destination, distance_m: f32) -> (Headless, Entity, Entity) {
    let mut zone = Headless::new(here, 20, 0, 2);
    let (one, other) = (zone.arrive(1, None), zone.arrive(2, None));
    // Along a street: the crossing at (16, 16) and its neighbours see each other.
    zone.put(one, Vec3::new(16.0, 0.0, 16.0));
    zone.put(other, Vec3::new(16.0, 0.0, 16.0 + distance_m));
    (zone, one, other)
}

fn aimed_at(zone: &Headless, one: Entity, other: Entity) -> Input {
    let (from, to) = (zone.get::<Pose>(one).feet(), zone.get::<Pose>(other).feet());
    let way = to - from;
    Input::new([0.0, 0.0], way.x.atan2(way.z).rem_euclid(std::f32::consts::TAU), -0.03, true, false)
}

#[test]
fn shots_obey_the_cooldown_and_kill_and_the_dead_come_back() {
    let (mut zone, one, other) = duel(Destination::DarkZone, 8.0);
    let shots_max = 20 * 1_000 / WeaponKind::Rifle.traits().cooldown_ms / 20;
    let mut died_at = None;
    for tick in 0..400 {
        // Ten inputs a tick: pulling faster fires no faster.
        let input = aimed_at(&zone, one, other);
        (0..10).for_each(|_| zone.input(1, &input));
        let shots_before = zone.tally().of("shots");
        zone.tick();
        let alive = zone.get::<Vitals>(other).alive;
        assert!(zone.tally().of("shots") - shots_before <= 1);
        if tick == 20 {
            assert!((4..=u64::from(shots_max) + 1).contains(&zone.tally().of("shots")), "{:?}", zone.tally());
        }
        match died_at {
            None if !alive => died_at = Some(tick),
            Some(died) => {
                assert_eq!(alive, tick >= died + DEATH_MS / 50, "tick {tick}, died {died}");
                if alive {
                    break;
                }
            }
            None => {}
        }
    }
    assert!(died_at.is_some(), "{:?}", zone.tally());
    assert!(zone.get::<Vitals>(other).health > 90, "a new life, and one new shot at most");
    assert_eq!(zone.get::<Passport>(one).kills, 1);
    assert_eq!(zone.get::<Passport>(other).deaths, 1);
}

#[test]
fn only_the_rules_of_the_world_make_shots_hurt() {
    for (here, hurts) in [(Destination::Hideout, false), (Destination::Hub, false), (Destination::DarkZone, true)] {
        let (mut zone, one, other) = duel(here, 8.0);
        for _ in 0..60 {
            let input = aimed_at(&zone, one, other);
            zone.input(1, &input);
            zone.tick();
        }
        assert_eq!(zone.get::<Vitals>(other) != Vitals::FULL, hurts, "{here:?}");
        assert_eq!(zone.tally().of("shots") > 0, here != Destination::Hub, "nobody fires in the hub");
    }
}

/// A shot straight from one to the other, without a hand that shakes.
fn exact_shot(zone: &mut Headless, one: Entity, other: Entity, weapon: WeaponKind) -> bool {
    let (from, to) = (zone.get::<Pose>(one).feet(), zone.get::<Pose>(other).feet());
    let slot = zone.get::<Slot>(one);
    let health = zone.get::<Vitals>(other).health;
    let reach_m = weapon.traits().range_m;
    zone.world.resource_mut::<Arena>().shots.order(ShotOrder::between(slot, weapon, from, to));
    zone.tick();
    let hit = zone.get::<Vitals>(other).health < health;
    assert!(!hit || from.distance(to) <= reach_m);
    hit
}

#[test]
fn shots_end_at_their_range_and_at_walls() {
    let (mut zone, one, other) = duel(Destination::DarkZone, 20.0);
    zone.tick();
    assert!(exact_shot(&mut zone, one, other, WeaponKind::Rifle));
    assert!(!exact_shot(&mut zone, one, other, WeaponKind::Fists), "20 m is too far for fists");

    let level = &shared().level;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    let (mut hits, mut blocked) = (0, 0);
    for _ in 0..300 {
        let from = level.navmesh.random_point(&mut rng).position();
        let to = level.navmesh.random_point(&mut rng).position();
        if from.distance(to) > 55.0 {
            continue;
        }
        zone.put(one, from);
        zone.put(other, to);
        zone.world.get_mut::<Vitals>(other).unwrap().health = 100;
        let mut sees = Vec::new();
        let line = (from + EYE, to + CHEST);
        throng_query::casts::lines_of_sight(&level.geometry, &[line], &mut sees);
        let hit = exact_shot(&mut zone, one, other, WeaponKind::Rifle);
        if !sees[0] {
            // The capsule may stick out from behind a wall by its radius; its middle line does not.
            blocked += u32::from(!hit);
        } else {
            assert!(hit, "{from} to {to}: in sight and in range");
            hits += 1;
        }
    }
    assert!(hits > 20 && blocked > 50, "{hits} hits, {blocked} blocked: the test tests something");
}

#[test]
fn npcs_of_the_two_factions_hurt_each_other_in_the_hub_but_no_player() {
    let mut hub = Headless::new(Destination::Hub, 20, 40, 6);
    let players: Vec<Entity> = (0..4).map(|client| hub.arrive(client, None)).collect();
    hub.ticks(600);
    hub.check();
    for player in players {
        assert_eq!(hub.get::<Vitals>(player), Vitals::FULL);
    }
    assert!(hub.tally().of("hits") > 20, "{:?}", hub.tally());
}

#[test]
fn a_portal_sends_a_player_off_once_with_all_that_is_its_own() {
    let mut hideout = Headless::hideout(0, 1);
    let passport = Passport { home: WorldId::new(2, 0), name: PlayerName::new("Faye").unwrap(), kills: 3, deaths: 1 };
    let player = hideout.arrive(1, Some(Traveller { health: 60, passport }));
    assert_eq!(hideout.get::<Vitals>(player).health, 60);
    assert_eq!(hideout.get::<Passport>(player), passport);
    assert!(!hideout.world.resource::<MayBeDormant>().0, "the owner is connected");

    let portals = shared().portals;
    hideout.put(player, portals.to(Destination::Hideout).middle);
    hideout.ticks(3);
    assert_eq!(hideout.tally().of("travels"), 0, "one is there already");
    hideout.put(player, Vec3::new(16.0, 0.0, 16.0));
    hideout.tick();
    hideout.put(player, portals.to(Destination::Hub).middle);
    hideout.tick();
    assert_eq!(hideout.tally().of("travels"), 1);
    assert!(hideout.world.get_entity(player).is_err(), "its entity has gone with it");
    assert!(hideout.world.resource::<Arena>().leavers.is_empty());
    assert!(hideout.world.resource::<Arena>().actors.players().is_empty());
    assert!(!hideout.world.resource::<MayBeDormant>().0, "awake while its owner is in the hub");

    hideout.world.resource_mut::<WorldMessages>().0.push(WorldMessage::of(WorldId::new(0, 0), &OwnerLeft).unwrap());
    hideout.tick();
    assert!(hideout.world.resource::<MayBeDormant>().0);
}

#[test]
fn whoever_arrives_inside_a_portal_is_not_sent_off_again() {
    let mut hideout = Headless::hideout(0, 1);
    let player = hideout.arrive(1, None);
    hideout.world.entity_mut(player).insert(PortalWatch::default());
    hideout.put(player, shared().portals.to(Destination::Hub).middle);
    hideout.ticks(20);
    assert_eq!(hideout.tally().of("travels"), 0);
}

#[test]
fn a_connection_that_ends_takes_its_player_away() {
    let mut hideout = Headless::hideout(5, 1);
    hideout.arrive(1, None);
    assert_eq!(hideout.tally().standing("players"), 1);
    hideout.world.resource_mut::<Departures>().0.push(ClientKey(1));
    hideout.tick();
    assert_eq!(hideout.tally().standing("players"), 0);
    assert_eq!(hideout.world.query::<&PlayerClient>().iter(&hideout.world).count(), 0);
    assert!(hideout.world.resource::<MayBeDormant>().0);
    hideout.ticks(100);
}

#[test]
fn who_says_too_much_is_not_heard() {
    let mut hub = Headless::new(Destination::Hub, 20, 0, 1);
    hub.arrive(1, None);
    for _ in 0..200 {
        let line = ClientMessage::Say("buy gold at example.com").encode();
        for _ in 0..5 {
            hub.world.resource_mut::<Inbox>().push(ClientKey(1), MessageKind::Reliable, &line);
        }
        hub.tick();
    }
    let tally = hub.tally();
    assert_eq!(tally.of("lines_said") + tally.of("lines_dropped"), 1_000);
    assert!(tally.of("lines_said") <= 6, "{tally:?}");
}

#[test]
fn load_levels_follow_the_nearest_player() {
    let mut hideout = Headless::hideout(19, 11);
    hideout.ticks(20);
    let levels = |hideout: &mut Headless| {
        let mut query = hideout.world.query::<(&Pace, &Pose)>();
        query.iter(&hideout.world).map(|(pace, pose)| (pace.level, pose.feet())).collect::<Vec<_>>()
    };
    assert!(levels(&mut hideout).iter().all(|(level, _)| *level == LoadLevel::Far), "nobody is there");
    let player = hideout.arrive(1, None);
    let crowd = levels(&mut hideout)[0].1;
    hideout.put(player, crowd);
    hideout.ticks(10);
    let full = levels(&mut hideout).iter().filter(|(level, _)| *level == LoadLevel::Full).count();
    assert!(full > 5, "{full} NPCs are near the player");
}

/// Reload is part of the fire rate: a full magazine cannot be carried over.
#[test]
fn an_npcs_weapon_is_fresh_in_each_life() {
    let mut hideout = Headless::hideout(19, 2);
    hideout.ticks(800);
    let mut query = hideout.world.query::<(&Vitals, &Weapon, &Npc)>();
    for (_, weapon, _) in query.iter(&hideout.world) {
        assert!(weapon.rounds <= weapon.kind.traits().rounds);
    }
    assert!(hideout.tally().of("deaths") > 0);
}

/// Promise: once its buffers have grown, a world of NPCs and a player ticks without allocating.
#[test]
fn a_steady_tick_allocates_nothing() {
    let mut hideout = Headless::hideout(19, 3);
    hideout.arrive(1, None);
    hideout.ticks(1_500);
    let mut before = 0;
    for tick in 0..220 {
        // The inbox is the server's: the first inputs make room in it.
        if tick == 20 {
            before = thread_counts().allocations;
        }
        hideout.input(1, &Input::new([0.0, 0.0], 1.0, 0.0, true, false));
        hideout.world.resource_mut::<TickInfo>().tick = hideout.tick;
        let counting = begin_tick();
        hideout.schedule.run(&mut hideout.world);
        hideout.counted.end(counting);
        hideout.world.resource_mut::<Inbox>().clear();
        hideout.tick += 1;
    }
    assert_eq!(thread_counts().allocations - before, 0);
    assert!(hideout.tally().of("shots") > 0);
}

/// Prints what a tick of a hideout costs while others are ticked in between; the bound is wide, since hosts differ and
/// this build is not optimised.
#[test]
fn a_tick_of_a_hideout_is_cheap() {
    let mut hideouts: Vec<Headless> = (0..50).map(|seed| Headless::hideout(19, seed)).collect();
    for hideout in &mut hideouts {
        hideout.arrive(1, None);
        hideout.ticks(50);
    }
    let ticks = 100;
    let begin = thread_cpu_time();
    for _ in 0..ticks {
        hideouts.iter_mut().for_each(Headless::tick);
    }
    let cost_us = thread_cpu_time().saturating_sub(begin).as_secs_f64() * 1e6;
    let tick_us = cost_us / f64::from(ticks) / hideouts.len() as f64;
    println!("{tick_us:.1} us per tick of a hideout with 19 NPCs");
    assert!(tick_us < 1_000.0, "a hideout must fit fifty times into its period, even unoptimised");
}
