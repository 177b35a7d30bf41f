//! The bot: a player for the swarm, made from the game's own code.
//!
//! It does what a player does, on what a player's program is told: it walks the level, fights the nearest enemy that it
//! sees, goes through portals to the hub and the dark zone and back, picks up gear, keeps it at home and trades it, and
//! says something now and then. It has the level,
//! as every client would, and nothing else of the server's: positions, health and sides come from its replicas. It shoots
//! at where its enemy is [`drawn`], as a player does, and its inputs say so.
//!
//! Most of its time it is at home; how long, and how long it stays in a shared world before it returns, is its
//! [`Itinerary`]. The times are drawn by chance, so a thousand bots are spread; how they play otherwise is one of
//! [`SCENARIOS`].
//!
//! It also holds what it is told against what must be true (places inside the level, health at most 100, an own entity
//! soon after arriving, texts that a world may send) and counts what is not as `violations`. Replicas that are merely
//! old or wrong are found by the client's own checks.
//!
//! Runs on one of the swarm's threads. Cost: about 2 µs a thought, plus a path of some 5 µs every ten seconds.

pub mod drawn;
mod itinerary;
mod manner;
mod scavenger;

use std::{
    f32::consts::TAU,
    sync::{Arc, Mutex, PoisonError},
};

use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::{
    Behaviour, BehaviourCounters,
    habits::{Bodiless, Progress, once_in},
};
use throng_client::{Client, CurrentWorld};
use throng_platform::time::Nanos;
use throng_query::{casts::lines_of_sight, nav::PathSearch};
use throng_replication::NetId;

use crate::{
    components::{Action, ActionKind, CHEST, Character, Door, EYE, HEALTH_MAX, Pose, Vitals},
    district::{self, bot::Wanderer},
    doors::REACH_M,
    level::Level,
    portals::{DARK_ZONE, Destination, HIDEOUT, HUB, PORTAL_CLEAR_M, PORTAL_RADIUS_M, Portals},
    protocol::{Input, Said, Say},
    rules::Side,
    stash,
};

use drawn::Drawn;
use scavenger::Scavenger;

pub use itinerary::{DISTRICT, Itinerary, SCENARIOS};
pub use manner::Manner;

/// How often a swarm has its bots think. (Hz)
const THINK_HZ: f32 = 20.0;
/// Seconds between two lines in the hub, on average.
const SPEECH_S: f32 = 20.0;
/// How many ticks behind its newest snapshot it draws the world. Two would bridge a lost snapshot, too; but at 20 Hz they
/// take 100 ms of the 200 ms that a shot is judged back, and leave nothing for a player on a long line.
const DELAY_TICKS: u64 = 1;
/// Thoughts between two looks for an enemy.
const LOOK_PERIOD: u32 = 4;
/// How far it looks for enemies. (m)
const SIGHT_M: f32 = 45.0;
/// Nearer than this a waypoint counts as reached. (m)
const REACHED_M: f32 = 0.8;
/// Waypoints of one way at most; a longer one is walked in parts.
const WAYPOINTS_MAX: usize = 32;
/// Thoughts without getting anywhere after which it picks another goal.
const STUCK_THOUGHTS: u32 = 40;
/// So near to a portal that it does not take it yet, it waits until it may pass. (m)
const WAIT_M: f32 = PORTAL_RADIUS_M + 1.0;
/// So far from a portal it may be taken by one. (m)
const AWAY_M: f32 = PORTAL_CLEAR_M + 0.5;
/// With less health it wants a medkit. (percent)
const UNWELL_HEALTH: u8 = 40;
/// How far outside the level a place may be by rounding. (m)
const BOUNDS_SLACK_M: f32 = 0.05;

const LINES: [&str; 6] = [
    "anyone for the dark zone?",
    "all quiet at my place",
    "who has ammunition to spare?",
    "they come from two sides again",
    "back in a minute",
    "good fight",
];

/// What all bots of a swarm share: the level, and room to search it.
pub struct BotGuide {
    level: Arc<Level>,
    portals: Portals,
    /// Where the chest stands, at home.
    chest: Vec3,
    search: Mutex<PathSearch>,
}

impl BotGuide {
    pub fn new(level: Arc<Level>) -> Arc<Self> {
        let portals = Portals::of(&level);
        let search = Mutex::new(PathSearch::new(&level.navmesh));
        let chest = stash::place(&level, &portals).position();
        Arc::new(Self { level, portals, chest, search })
    }

    /// A guide of the level. Cost: 0.1 s for the first in a process; make one.
    pub fn load() -> Arc<Self> {
        Self::new(Level::shared())
    }

    /// The way from one place to another; empty if there is none.
    fn find_way(&self, from: Vec3, to: Vec3, way: &mut Vec<Vec3>) {
        way.clear();
        let navmesh = &self.level.navmesh;
        let (Ok(from), Ok(to)) = (navmesh.nearest(from, 3.0), navmesh.nearest(to, 3.0)) else { return };
        let mut waypoints = [Vec3::ZERO; WAYPOINTS_MAX];
        let mut search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        let path = search.find(navmesh, from, to, &mut waypoints);
        way.extend_from_slice(&waypoints[..path.waypoint_count]);
    }

    fn any_place(&self, rng: &mut Xoshiro256PlusPlus) -> Vec3 {
        self.level.navmesh.random_point(rng).position()
    }

    fn sees(&self, from: Vec3, to: Vec3, scratch: &mut Vec<bool>) -> bool {
        lines_of_sight(&self.level.geometry, &[(from + EYE, to + CHEST)], scratch);
        scratch[0]
    }
}

/// Totals of one bot, for the swarm's report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    travels: u64,
    shots: u64,
    deaths: u64,
    lines_said: u64,
    lines_heard: u64,
    violations: u64,
}

/// A simulated player.
pub struct PrecinctBot {
    guide: Arc<BotGuide>,
    itinerary: Itinerary,
    manner: Manner,
    /// It has nothing to do for now.
    stands: bool,
    /// The world it believes to be in; another epoch is another stay.
    stay: Option<(u8, Destination)>,
    /// When it wants to be somewhere else.
    leave_at: Nanos,
    leaving_for: Option<Destination>,
    /// It logged in as one who would be away: the stay that it comes to has begun long ago.
    begins_away: bool,
    /// Where it goes, if that is always the same.
    haunt: Option<Destination>,
    /// It has been away from the portals in this stay.
    was_away: bool,
    way: Vec<Vec3>,
    next: usize,
    progress: Progress,
    bodiless: Bodiless,
    thoughts: u32,
    enemy: Option<NetId>,
    /// Whose places `drawn` holds.
    watched: Option<NetId>,
    drawn: Drawn,
    yaw: f32,
    was_alive: bool,
    shots_seen: u8,
    scavenger: Scavenger,
    /// Where it goes for gear.
    detour: Option<Vec3>,
    seen: Vec<bool>,
    wanderer: Wanderer,
    counts: Counts,
}

impl PrecinctBot {
    /// A bot that travels as most do.
    pub fn new(guide: Arc<BotGuide>) -> Self {
        Self::with_itinerary(guide, Itinerary::default())
    }

    pub fn with_itinerary(guide: Arc<BotGuide>, itinerary: Itinerary) -> Self {
        Self {
            guide,
            itinerary,
            manner: Manner::default(),
            stands: false,
            stay: None,
            leave_at: Nanos::MAX,
            leaving_for: None,
            begins_away: false,
            haunt: None,
            was_away: false,
            way: Vec::with_capacity(WAYPOINTS_MAX),
            next: 0,
            progress: Progress::default(),
            bodiless: Bodiless::default(),
            thoughts: 0,
            enemy: None,
            watched: None,
            drawn: Drawn::default(),
            yaw: 0.0,
            was_alive: true,
            shots_seen: 0,
            scavenger: Scavenger::default(),
            detour: None,
            seen: Vec::with_capacity(1),
            wanderer: Wanderer::default(),
            counts: Counts::default(),
        }
    }

    /// How much it does of what it could.
    #[must_use]
    pub fn with_manner(self, manner: Manner) -> Self {
        Self { manner, ..self }
    }

    /// Notices a new stay in a world and decides how long it is to be.
    fn settle_in(&mut self, now: Nanos, world: &CurrentWorld, rng: &mut Xoshiro256PlusPlus) -> Destination {
        let here = destination_of(&world.name);
        if self.stay.map(|(epoch, _)| epoch) == Some(world.epoch) {
            return here;
        }
        let first = self.stay.is_none();
        self.counts.travels += u64::from(!first);
        self.stay = Some((world.epoch, here));
        let begins_away = std::mem::replace(&mut self.begins_away, first && self.itinerary.begins_away(rng));
        let stay_s = if self.begins_away {
            0.0
        } else if first || begins_away {
            self.itinerary.rest_of_stay_s(here, rng)
        } else {
            self.itinerary.stay_s(here, rng)
        };
        self.leave_at = now + Nanos::from_millis((stay_s * 1_000.0) as u64);
        self.leaving_for = None;
        self.was_away = false;
        self.way.clear();
        (self.enemy, self.watched) = (None, None);
        self.bodiless.forget();
        self.was_alive = true;
        self.scavenger.settle_in();
        self.detour = None;
        here
    }

    /// Where to go next: to a portal when it is time, anywhere otherwise.
    fn choose_way(&mut self, now: Nanos, here: Destination, feet: Vec3, rng: &mut Xoshiro256PlusPlus) {
        if now >= self.leave_at && self.leaving_for.is_none() {
            let next = self.itinerary.next(here, rng);
            self.leaving_for = Some(match here {
                Destination::Hideout if self.itinerary.in_step => *self.haunt.get_or_insert(next),
                _ => next,
            });
            self.way.clear();
            self.next = 0;
        }
        if !self.was_away && self.is_away(feet) {
            self.was_away = true;
            if self.leaving_for.is_some() {
                // It walked off only so that the portal takes it when it comes back.
                self.way.clear();
                self.next = 0;
            }
        }
        let detour = self.detour.filter(|_| self.leaving_for.is_none());
        let stuck = self.progress.thoughts() >= STUCK_THOUGHTS;
        if self.next < self.way.len() && !stuck {
            return;
        }
        let goal = match self.leaving_for {
            Some(destination) if !stuck && self.was_away => self.guide.portals.to(destination).middle,
            _ => detour.filter(|_| !stuck).unwrap_or_else(|| self.guide.any_place(rng)),
        };
        self.guide.find_way(feet, goal, &mut self.way);
        self.next = 0;
        self.progress.forget();
    }

    fn is_away(&self, feet: Vec3) -> bool {
        self.guide.portals.iter().all(|portal| portal.middle.distance(feet) > AWAY_M)
    }

    /// Whether it stands before the portal that it wants to go through, and has to wait.
    fn waits(&self, now: Nanos, here: Destination, feet: Vec3) -> bool {
        let is_before = |destination| self.guide.portals.to(destination).middle.distance(feet) <= WAIT_M;
        self.was_away && !self.itinerary.may_pass(now, here) && self.leaving_for.is_some_and(is_before)
    }

    /// The direction to go in, along the way.
    fn follow(&mut self, feet: Vec3) -> [f32; 2] {
        self.progress.note([feet.x, feet.z]);
        while let Some(&waypoint) = self.way.get(self.next) {
            let way = waypoint - feet;
            let left_m = way.x.hypot(way.z);
            if left_m > REACHED_M {
                return [way.x / left_m, way.z / left_m];
            }
            self.next += 1;
        }
        [0.0, 0.0]
    }

    /// The nearest enemy in sight, looked for now and then, remembered in between.
    fn look_for_enemy(&mut self, client: &Client, here: Destination, own: NetId, feet: Vec3) {
        if !self.thoughts.is_multiple_of(LOOK_PERIOD) {
            return;
        }
        let rules = here.rules();
        self.enemy = None;
        if rules.players_are_safe {
            return;
        }
        let replicas = client.replicas();
        let Some(own_side) = replicas.get::<Character>(own).map(Side::from) else { return };
        let mut nearest_m2 = SIGHT_M * SIGHT_M;
        let mut nearest = None;
        for (id, pose) in replicas.iter::<Pose>() {
            let distance_m2 = pose.feet().distance_squared(feet);
            if id == own || distance_m2 >= nearest_m2 {
                continue;
            }
            let alive = replicas.get::<Vitals>(id).is_some_and(|vitals| vitals.alive);
            let hostile = replicas.get::<Character>(id).is_some_and(|other| rules.may_hurt(own_side, other.into()));
            if alive && hostile {
                nearest_m2 = distance_m2;
                nearest = Some((id, pose.feet()));
            }
        }
        let Some((id, place)) = nearest else { return };
        if self.guide.sees(feet, place, &mut self.seen) {
            self.enemy = Some(id);
        }
    }

    /// Keeps its eye on the enemy. Another one is drawn from now on.
    fn watch_enemy(&mut self, client: &Client) {
        if self.watched != self.enemy {
            self.watched = self.enemy;
            self.drawn.forget();
        }
        if let Some(pose) = self.enemy.and_then(|enemy| client.replicas().get::<Pose>(enemy)) {
            self.drawn.note(client.newest_tick(), pose.feet());
        }
    }

    /// Yaw and pitch at the chest of the enemy as it is drawn, with a shaky hand. Nobody is drawn yet who has only just
    /// been noticed.
    fn aim(&self, now: Nanos, client: &mut Client, feet: Vec3, rng: &mut Xoshiro256PlusPlus) -> Option<(f32, f32)> {
        let way = self.drawn.at(client.seen(now)?)? + CHEST - (feet + EYE);
        let yaw = way.x.atan2(way.z) + rng.random_range(-0.03..0.03);
        Some((yaw.rem_euclid(TAU), way.y.atan2(way.x.hypot(way.z))))
    }

    /// Turns aside for gear, and asks for what is within reach.
    fn look_for_gear(&mut self, here: Destination, feet: Vec3, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let (now, chest) = ((self.thoughts, here, feet), self.guide.chest);
        let detour = self.scavenger.goal(now, client, chest, rng);
        if detour != self.detour {
            self.detour = detour;
            if self.leaving_for.is_none() {
                self.way.clear();
                self.next = 0;
            }
        }
        self.scavenger.act(now, client, chest, rng);
    }

    /// Holds what the server says against what must be true.
    fn check(&mut self, client: &Client, own: NetId) {
        let bounds = self.guide.level.bounds;
        let slack = Vec3::splat(BOUNDS_SLACK_M);
        let replicas = client.replicas();
        let inside =
            |pose: &Pose| pose.feet().cmpge(bounds.min - slack).all() && pose.feet().cmple(bounds.max + slack).all();
        let outside = replicas.iter::<Pose>().filter(|(_, pose)| !inside(pose)).count();
        let unwell = replicas.iter::<Vitals>().filter(|(_, vitals)| vitals.health > HEALTH_MAX).count();
        let undead = replicas.iter::<Vitals>().filter(|(_, vitals)| vitals.alive && vitals.health == 0).count();
        let not_oneself = replicas.get::<Character>(own).is_some_and(|own| own.npc);
        self.counts.violations += (outside + unwell + undead + usize::from(not_oneself)) as u64;
    }

    fn hear(&mut self, client: &Client) {
        // What is no message of the game does not come so far: the client counts it as a protocol error.
        let heard = client.messages().filter_map(|message| message.read::<Said>());
        self.counts.lines_heard += heard.count() as u64;
        self.counts.violations += self.scavenger.hear(client);
    }

    fn note_own_state(&mut self, vitals: &Vitals, action: Option<&Action>) {
        self.counts.deaths += u64::from(self.was_alive && !vitals.alive);
        self.was_alive = vitals.alive;
        if let Some(action) = action {
            if action.kind == ActionKind::Shot {
                self.counts.shots += u64::from(action.count.wrapping_sub(self.shots_seen) & 63);
            }
            self.shots_seen = action.count;
        }
    }
}

impl Behaviour for PrecinctBot {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        self.thoughts = self.thoughts.wrapping_add(1);
        self.hear(client);
        let Some(world) = client.world() else { return };
        if world.name == district::DISTRICT {
            self.wanderer.think(now, client, THINK_HZ, rng);
            return;
        }
        let here = self.settle_in(now, world, rng);
        let tick_ns = 1_000_000_000 / u64::from(world.tick_hz.max(1));
        client.set_interpolation_delay(Nanos(DELAY_TICKS * tick_ns));
        let replicas = client.replicas();
        let own =
            client.own_entity().and_then(|own| Some((own, *replicas.get::<Pose>(own)?, *replicas.get::<Vitals>(own)?)));
        let Some((own, pose, vitals)) = own else {
            self.counts.violations += u64::from(self.bodiless.another_thought());
            return;
        };
        self.note_own_state(&vitals, replicas.get::<Action>(own));
        if self.thoughts.is_multiple_of(20) {
            self.check(client, own);
        }

        let feet = pose.feet();
        let mut input = Input::default();
        if vitals.alive {
            self.look_for_gear(here, feet, client, rng);
            self.choose_way(now, here, feet, rng);
            self.look_for_enemy(client, here, own, feet);
            self.watch_enemy(client);
            self.stands = self.manner.stands(self.stands, self.thoughts, rng);
            let direction = if self.stands || self.waits(now, here, feet) {
                self.progress.forget();
                [0.0, 0.0]
            } else {
                self.follow(feet)
            };
            if direction != [0.0, 0.0] {
                self.yaw = direction[0].atan2(direction[1]);
            }
            let aim = self.aim(now, client, feet, rng);
            let (yaw, pitch) = aim.unwrap_or((self.yaw, 0.0));
            let sprint = self.leaving_for.is_some() || aim.is_none();
            input = Input::new(direction, yaw, pitch, aim.is_some() && self.manner.fires(rng), sprint);
            if vitals.health < UNWELL_HEALTH {
                input = input.and_heal();
            }
            if stands_at_closed_door(client, feet) {
                input = input.and_grip();
            }
        } else {
            self.way.clear();
            self.enemy = None;
        }
        // Refused between two worlds, when there is nobody to move.
        let _ = client.send_input(now, &input);

        // A line that is refused because the queue is full is a line unsaid.
        if here == Destination::Hub && once_in(SPEECH_S, THINK_HZ, rng) {
            let line = Say::new(LINES[rng.random_range(0..LINES.len())]).expect("its lines are fit to be said");
            self.counts.lines_said += u64::from(client.request(&line).is_ok());
        }
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new()
            .with("travels", self.counts.travels)
            .with("shots", self.counts.shots)
            .with("deaths", self.counts.deaths + self.wanderer.deaths)
            .with("charges", self.wanderer.charges)
            .with("metres_wandered", self.wanderer.metres as u64)
            .with("lines_said", self.counts.lines_said)
            .with("lines_heard", self.counts.lines_heard)
            .with("gear_gained", self.scavenger.gained)
            .with("gear_stashed", self.scavenger.stashed)
            .with("gear_offers", self.scavenger.offers_made)
            .with("gear_trades", self.scavenger.trades_accepted)
            .with("violations", self.counts.violations + self.wanderer.violations)
    }
}

/// Whether there is a closed door within reach of somebody who stands there.
fn stands_at_closed_door(client: &Client, feet: Vec3) -> bool {
    let replicas = client.replicas();
    let is_near = |pose: &Pose| pose.feet().distance_squared(feet) <= REACH_M * REACH_M;
    replicas.iter::<Door>().any(|(id, door)| !door.open && replicas.get::<Pose>(id).is_some_and(is_near))
}

fn destination_of(world_name: &str) -> Destination {
    match world_name {
        HUB => Destination::Hub,
        DARK_ZONE => Destination::DarkZone,
        _ => {
            debug_assert_eq!(world_name, HIDEOUT);
            Destination::Hideout
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_portal_can_be_walked_to_from_anywhere() {
        let guide = BotGuide::load();
        let mut way = Vec::new();
        for spawn in &guide.level.spawn_points {
            for portal in guide.portals.iter() {
                guide.find_way(spawn.position(), portal.middle, &mut way);
                let end = way.last().expect("there is a way");
                assert!(portal.holds(*end), "{portal:?} from {spawn:?} ends at {end}");
                assert!(!portal.holds(spawn.position()), "nobody stands up in a portal");
            }
        }
    }
}
