//! The promise: players walk from world to world without reconnecting, and take what they are along, once.
//!
//! A watch looks into all worlds after every frame: nobody is in two worlds at a time, nobody is on the way for longer
//! than the next tick takes, what a player carries arrives as it left, and it arrives at the portal that belongs to the
//! one it left by.

mod simulated;

use std::collections::HashMap;
use std::sync::Arc;

use glam::Vec3;
use precinct::PrecinctWorlds;
use precinct::arrivals::TURNED_BACK;
use precinct::components::{Pose, Vitals};
use precinct::inventory::{Inventory, Item};
use precinct::level::Level;
use precinct::passport::{Passport, PlayerClient};
use precinct::portals::{DARK_ZONE, Destination, HIDEOUT, HUB, PORTAL_RADIUS_M, Portals};
use precinct::protocol::{Input, Said};
use precinct::weapons::{Weapon, WeaponKind};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::{ClientKey, WorldId};
use throng_bots::{Behaviour, BehaviourCounters, habits::Progress};
use throng_client::Client;
use throng_platform::time::Nanos;
use throng_query::nav::PathSearch;
use throng_simulator::Simulation;

/// Waypoints of a way at most; what is longer is walked in parts.
const WAYPOINTS_MAX: usize = 64;
/// Thoughts without getting anywhere after which it goes somewhere else.
const STUCK_THOUGHTS: u32 = 20;
/// Frames that a traveller may be in no world: it leaves after a tick, and the next tick of the slowest world (20 Hz in
/// frames of 60 Hz) takes it in.
const FRAMES_BETWEEN_WORLDS_MAX: u32 = 3;

/// Walks from portal to portal, through all kinds of worlds, round after round, and never fires.
struct Commuter {
    level: Arc<Level>,
    portals: Portals,
    search: PathSearch,
    /// Half of them take the round the other way about.
    clockwise: bool,
    /// Where it looks, wherever it goes.
    yaw: f32,
    epoch: Option<u8>,
    way: Vec<Vec3>,
    next: usize,
    progress: Progress,
    /// Stays in each kind of world: hideout, hub, dark zone.
    stays: [u64; 3],
    /// How often it was told that it was turned back.
    turned_back: u64,
}

impl Commuter {
    fn new(level: &Arc<Level>, index: usize) -> Self {
        Self {
            portals: Portals::of(level),
            search: PathSearch::new(&level.navmesh),
            level: level.clone(),
            clockwise: index.is_multiple_of(2),
            yaw: index as f32,
            epoch: None,
            way: Vec::new(),
            next: 0,
            progress: Progress::default(),
            stays: [0; 3],
            turned_back: 0,
        }
    }

    fn goal(&self, world: &str) -> Vec3 {
        let destination = match (world, self.clockwise) {
            (HIDEOUT, true) | (DARK_ZONE, false) => Destination::Hub,
            (HUB, true) | (HIDEOUT, false) => Destination::DarkZone,
            _ => Destination::Hideout,
        };
        self.portals.to(destination).middle
    }

    /// The direction along the way, which is looked for again at its end.
    fn walk(&mut self, feet: Vec3, goal: Vec3) -> [f32; 2] {
        while let Some(&waypoint) = self.way.get(self.next) {
            let (x, z) = (waypoint.x - feet.x, waypoint.z - feet.z);
            let left_m = x.hypot(z);
            if left_m > 0.6 {
                return [x / left_m, z / left_m];
            }
            self.next += 1;
        }
        self.find_way(feet, goal);
        [0.0, 0.0]
    }

    /// Who pushes against a corner goes somewhere else first.
    fn get_unstuck(&mut self, feet: Vec3, rng: &mut Xoshiro256PlusPlus) {
        self.progress.note([feet.x, feet.z]);
        if self.progress.thoughts() >= STUCK_THOUGHTS {
            self.progress.forget();
            let elsewhere = self.level.navmesh.random_point(rng).position();
            self.find_way(feet, elsewhere);
        }
    }

    fn find_way(&mut self, feet: Vec3, goal: Vec3) {
        let navmesh = &self.level.navmesh;
        let mut waypoints = [Vec3::ZERO; WAYPOINTS_MAX];
        let (Ok(from), Ok(to)) = (navmesh.nearest(feet, 3.0), navmesh.nearest(goal, 3.0)) else {
            return;
        };
        let path = self.search.find(navmesh, from, to, &mut waypoints);
        self.way = waypoints[..path.waypoint_count].to_vec();
        self.next = 0;
    }
}

impl Behaviour for Commuter {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let (speaker, words) = TURNED_BACK;
        let told = client.messages().filter_map(|message| message.read::<Said>());
        self.turned_back += told.filter(|said| &*said.speaker == speaker && &*said.words == words).count() as u64;
        let Some(world) = client.world() else { return };
        let goal = self.goal(&world.name);
        if self.epoch.replace(world.epoch) != Some(world.epoch) {
            let kind = [HIDEOUT, HUB, DARK_ZONE].iter().position(|kind| *kind == world.name);
            self.stays[kind.expect("there are no other kinds")] += 1;
            self.way.clear();
        }
        let own = client.own_entity().and_then(|own| client.replicas().get::<Pose>(own));
        let Some(feet) = own.map(Pose::feet) else {
            return;
        };
        self.get_unstuck(feet, rng);
        let direction = self.walk(feet, goal);
        let _ = client.send_input(now, &Input::new(direction, self.yaw, 0.0, false, true));
    }

    fn counters(&self) -> BehaviourCounters {
        let [hideout, hub, dark_zone] = self.stays;
        BehaviourCounters::new()
            .with("rounds", hideout.saturating_sub(1).min(hub).min(dark_zone))
            .with("been_round", u64::from(hideout > 1 && hub > 0 && dark_zone > 0))
            .with("turned_back", self.turned_back)
    }
}

/// What a player carries, and where it was seen last.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    world: WorldId,
    frame: u64,
    pose: Pose,
    health: u8,
    alive: bool,
    passport: Passport,
    weapon: (WeaponKind, u8),
    inventory: Inventory,
}

impl Seen {
    /// All that must arrive as it left.
    fn carried(&self) -> (u8, Passport, (WeaponKind, u8), Inventory) {
        (self.health, self.passport, self.weapon, self.inventory)
    }
}

/// Looks into all worlds.
struct Watch {
    hub: WorldId,
    dark_zone: WorldId,
    portals: Portals,
    worlds: PrecinctWorlds,
    players: HashMap<ClientKey, Seen>,
    travels: u64,
}

impl Watch {
    fn new(worlds: &PrecinctWorlds) -> Self {
        let (hub, dark_zone, portals) = (worlds.hub, worlds.dark_zone, Portals::of(&Level::load()));
        Self { hub, dark_zone, portals, worlds: worlds.clone(), players: HashMap::new(), travels: 0 }
    }

    fn kind_of(&self, world: WorldId) -> Destination {
        match world {
            world if world == self.hub => Destination::Hub,
            world if world == self.dark_zone => Destination::DarkZone,
            _ => Destination::Hideout,
        }
    }

    /// Just outside of the portal to where it came from. Returns the way to it from the portal's middle.
    fn check_near_portal(&self, before: &Seen, now: &Seen) -> Vec3 {
        let portal = self.portals.to(self.kind_of(before.world));
        let (feet, way) = (now.pose.feet(), now.pose.feet() - portal.middle);
        assert!(!portal.holds(feet), "{feet} is in the portal to where it came from");
        assert!(way.length() < PORTAL_RADIUS_M + 2.0, "{feet} is not at the portal to where it came from");
        way
    }

    /// The same, and it looks as it went into the other portal: ahead, aside or backwards.
    fn check_place(&self, before: &Seen, now: &Seen) {
        let way_out = self.check_near_portal(before, now);
        let way_in = self.portals.to(self.kind_of(now.world)).middle - before.pose.feet();
        let heading = |way: Vec3| way.x.atan2(way.z);
        let (left, come) = (before.pose.yaw - heading(way_in), now.pose.yaw - heading(way_out));
        // Where exactly it went in is not seen: up to one step nearer.
        assert!((left - come).cos() > 0.9, "went in looking to {left} off its way, came out to {come}");
    }

    /// Asserts that nobody is twice or nowhere, and calls `arrived` with what a traveller was and is.
    fn look(&mut self, simulation: &mut Simulation, arrived: impl Fn(&Self, &Seen, &Seen)) {
        let frame = simulation.frames();
        let shared = [self.hub, self.dark_zone];
        for id in shared.into_iter().chain(self.worlds.hideouts.alive()) {
            let Some(world) = simulation.server_mut().world_mut(id) else { panic!("world {id} is not at home") };
            if world.clients_count() == 0 {
                continue;
            }
            let ecs = world.ecs_mut();
            let mut players = ecs.query::<(&PlayerClient, &Pose, &Vitals, &Passport, &Weapon, &Inventory)>();
            for (client, pose, vitals, passport, weapon, inventory) in players.iter(ecs) {
                inventory.check();
                let seen = Seen {
                    world: id,
                    frame,
                    pose: *pose,
                    health: vitals.health,
                    alive: vitals.alive,
                    passport: *passport,
                    weapon: (weapon.kind, weapon.rounds),
                    inventory: *inventory,
                };
                let Some(before) = self.players.insert(client.0, seen) else {
                    continue;
                };
                assert_ne!(before.frame, frame, "{client:?} is in two worlds: {before:?} and {seen:?}");
                assert_eq!(before.passport.home, passport.home, "{client:?} has come to another's home");
                assert_eq!(before.passport.name, passport.name, "{client:?} is somebody else");
                if before.world != id {
                    self.travels += 1;
                    arrived(self, &before, &seen);
                }
            }
        }
        for (client, seen) in &self.players {
            let missing = frame - seen.frame;
            assert!(missing <= FRAMES_BETWEEN_WORLDS_MAX.into(), "{client:?} is nowhere since {seen:?}");
        }
    }
}

/// Gives every player health, kills, deaths, rounds and things that nobody else has.
fn mark_players(simulation: &mut Simulation, worlds: &PrecinctWorlds) {
    for (index, home) in worlds.hideouts.alive().into_iter().enumerate() {
        let ecs = simulation.server_mut().world_mut(home).expect("it is at home between frames").ecs_mut();
        let mut players = ecs.query::<(&mut Vitals, &mut Passport, &mut Weapon, &mut Inventory)>();
        let player = players.single_mut(ecs).expect("everybody is at home at first");
        let (mut vitals, mut passport, mut weapon, mut inventory) = player;
        vitals.health = 10 + (index % 90) as u8;
        passport.kills = 1_000 + index as u32;
        passport.deaths = 2_000 + index as u32;
        weapon.rounds = 1 + (index % 29) as u8;
        *inventory = Inventory::default();
        inventory.add(Item::Credits, 1 + index as u16);
        inventory.add(Item::ALL[index % 3], 1 + (index % 200) as u16);
        inventory.add(Item::Medkit, (index % 4) as u16);
    }
}

#[test]
fn everybody_goes_everywhere_and_comes_back_as_they_were() {
    check_commuters(24, 150);
}

/// Such an owner was turned back for as long as it was connected: its passport led to the world that was no more.
#[test]
fn whose_hideout_ended_while_it_was_away_is_told_and_comes_home_to_the_next_one() {
    let (mut simulation, worlds) =
        Simulation::new(&simulated::settings(9), simulated::game(1, 0)).expect("the game can be set up");
    simulation.join(Box::new(Commuter::new(&Level::load(), 0)));
    let is_in = |simulation: &mut Simulation, world: WorldId| {
        simulation.server_mut().world_mut(world).is_some_and(|world| world.clients_count() > 0)
    };
    assert!(simulation.run_until(300.0, |simulation| is_in(simulation, worlds.hub)));
    let [home] = worlds.hideouts.alive()[..] else { panic!("it has one hideout") };

    // Its hideout ends, and so does each that takes its place, until it has tried.
    let control = simulation.server_mut().control();
    let is_told = simulation.run_until(300.0, |simulation| {
        worlds.hideouts.alive().into_iter().for_each(|world| drop(control.retire_world(world)));
        simulation.totals().counter("turned_back") > 0
    });
    assert!(is_told, "{:#?}", simulation.totals());
    let is_home = simulation.run_until(300.0, |simulation| {
        worlds.hideouts.alive().into_iter().any(|world| world != home && is_in(simulation, world))
    });
    assert!(is_home, "{:#?}", simulation.totals());
    assert_eq!((simulation.totals().playing, simulation.totals().disconnects), (1, 0));
}

/// The large form.
#[test]
#[ignore = "takes minutes"]
fn ten_thousand_moves_lose_nothing() {
    check_commuters(120, 10_000);
}

/// Has players go around until all have been everywhere and so many travels were made.
fn check_commuters(players_count: usize, travels_min: u64) {
    let (mut simulation, worlds) =
        Simulation::new(&simulated::settings(5), simulated::game(players_count, 0)).expect("the game can be set up");
    let level = Level::load();
    for player in 0..players_count {
        simulation.join(Box::new(Commuter::new(&level, player)));
    }
    let mut watch = Watch::new(&worlds);
    simulation.run_for(1.0);
    mark_players(&mut simulation, &worlds);

    // Nobody hurts anybody here, so everything arrives exactly as it left.
    let as_it_left = |watch: &Watch, before: &Seen, now: &Seen| {
        assert_eq!(before.carried(), now.carried());
        assert!(now.alive);
        watch.check_place(before, now);
    };
    let all_went_round = simulation.run_until(900.0, |simulation| {
        watch.look(simulation, as_it_left);
        watch.travels >= travels_min
            && simulation.frames().is_multiple_of(60)
            && simulation.totals().counter("been_round") == players_count as u64
    });
    let totals = simulation.totals();
    println!("{} travels by frame {}: {totals:?}", watch.travels, simulation.frames());
    assert!(all_went_round, "not everybody came round: {totals:#?}");
    assert_eq!((totals.playing, totals.disconnects), (players_count as u64, 0), "{totals:#?}");
    assert_eq!((totals.state_errors, totals.protocol_errors), (0, 0), "{totals:#?}");

    let mut kills: Vec<u32> = watch.players.values().map(|seen| seen.passport.kills).collect();
    kills.sort_unstable();
    assert!(kills.into_iter().eq((0..players_count as u32).map(|index| 1_000 + index)), "transfers were mixed up");
}

/// Plays with bots that fight and travel; what they have done only grows, and wounds do not heal on the way.
fn check_fighters_travel(players: usize, npcs: usize, seconds: f64, travels_min: u64) {
    let (mut simulation, worlds) = simulated::game_with_bots(&simulated::settings(6), players, npcs);
    let mut watch = Watch::new(&worlds);
    let nothing_is_lost = |watch: &Watch, before: &Seen, now: &Seen| {
        watch.check_near_portal(before, now);
        assert!(now.passport.kills >= before.passport.kills, "kills were lost: {before:?} then {now:?}");
        assert!(now.passport.deaths >= before.passport.deaths, "deaths were lost: {before:?} then {now:?}");
        assert!(now.health <= before.health, "healed on the way: {before:?} then {now:?}");
        let credits = [before, now].map(|seen| seen.inventory.count(Item::Credits));
        assert!(credits[0] <= credits[1], "credits were lost: {before:?} then {now:?}");
        let rounds = [before, now].map(|seen| seen.inventory.count(Item::RifleRounds) + u16::from(seen.weapon.1));
        // Between the two looks it fired once at most, and picked up a magazine at most.
        assert!(rounds[0] <= rounds[1] + 1, "rounds were lost: {before:?} then {now:?}");
        assert!(now.weapon.1 <= before.weapon.1, "travelling loaded the weapon: {before:?} then {now:?}");
    };
    simulation.run_until(seconds, |simulation| {
        watch.look(simulation, nothing_is_lost);
        false
    });
    let totals = simulation.totals();
    println!("{} travels: {totals:?}", watch.travels);
    assert!(watch.travels >= travels_min, "only {} travels", watch.travels);
    assert_eq!((totals.playing, totals.disconnects), (players as u64, 0), "{totals:#?}");
    assert_eq!((totals.state_errors, totals.counter("violations")), (0, 0), "{totals:#?}");
    let kills: u32 = watch.players.values().map(|seen| seen.passport.kills).sum();
    assert!(kills > 0, "nobody fought");
}

#[test]
fn those_who_fight_travel_too() {
    check_fighters_travel(24, 300, 80.0, 20);
}

/// The large form: a hundred players for ten minutes.
#[test]
#[ignore = "takes minutes"]
fn a_hundred_fighters_travel_for_ten_minutes() {
    check_fighters_travel(100, 2_000, 600.0, 1_000);
}
