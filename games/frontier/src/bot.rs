//! The bot: a player for the swarm, made from the game's own code.
//!
//! It does what a player does, on what a player's program is told: it walks between the camps around its home and the
//! nearest town, gathers what grows on the way and takes it to a banker, fights the nearest monster that it sees with
//! whatever it can cast, mends friends, joins the party of somebody near, and says something now and then. It has the
//! map, as every client would, and nothing else of the server's.
//!
//! ```text
//!   think ─┬─ watch    what it is told, held against what must be true: `violations`
//!          ├─ senses   whom and what it notices around itself, a few times a second
//!          ├─ errand   where to go; then an input, and seldom a message
//!          └─ settler  what it does to the land
//! ```
//!
//! Replicas that are merely old or wrong are found by the client's own checks.
//!
//! Runs on one of the swarm's threads. Cost: about 1 µs a thought, and some 3 µs more a few times a second, for fifty entities
//! around it.

mod errand;
mod hearing;
mod scenarios;
mod senses;
mod settler;
mod watch;

use std::sync::Arc;

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::{
    Behaviour, BehaviourCounters, Scenario,
    habits::{Bodiless, Progress, once_in},
};
use throng_client::Client;
use throng_platform::time::Nanos;
use throng_replication::NetId;

use crate::{
    components::{Pose, Vitals},
    landscape::Landscape,
    protocol::{Ability, Greeting, Input, Wish},
};

use errand::Errand;
use hearing::{Hearing, Told};
use senses::{Place, Senses};
use settler::Settler;
use watch::Watch;

pub use scenarios::{ONE_PLACE, SCENARIOS};

/// How often a swarm has its bots think. (Hz)
const THINK_HZ: f32 = 20.0;
/// Thoughts between two looks around.
const LOOK_PERIOD: u32 = 6;
/// Thoughts between two looks at everything that it is told.
const CHECK_PERIOD: u32 = 20;
/// Thoughts without getting anywhere after which it picks another goal.
const STUCK_THOUGHTS: u32 = 60;
/// Nearer than this to an enemy it stops and strikes. (m)
const STRIKE_M: f32 = 2.0;
/// Nearer than this to a node it stops and gathers; nearer than this to a banker or a door it uses them. (m)
const REACH_M: f32 = 2.0;
/// Carrying this much it goes to a banker.
const PURSE_FULL: u16 = 10;
/// Under this health it mends itself. (percent)
const HURT: u8 = 50;

/// Seconds between two of each, on average, while there is an occasion.
const SPEECH_S: f32 = 40.0;
const EMOTE_S: f32 = 60.0;
const JOIN_S: f32 = 20.0;
const LEAVE_S: f32 = 240.0;
const CAST_S: f32 = 2.5;
const SONG_S: f32 = 60.0;
const SNEAK_S: f32 = 90.0;
const RECALL_S: f32 = 600.0;
const DOOR_S: f32 = 10.0;

/// How long a walk in secret takes, in thoughts.
const SNEAK_THOUGHTS: u32 = 200;

const LINES: [&str; 8] = [
    "anybody for the camp on the hill?",
    "wolves, and more than yesterday",
    "has somebody a blessing to spare?",
    "my bags are full",
    "the banker is back in town",
    "stay together, it yells",
    "well fought",
    "which way to the hearth?",
];

/// What all bots of a swarm share: the map, and how events are read.
pub struct BotGuide {
    landscape: Arc<Landscape>,
    hearing: Hearing,
    /// Whether events have the ranges of their declarations: not so where a server was told to throttle nothing.
    ranges_hold: bool,
}

impl BotGuide {
    /// `ranges_hold`: whether the server keeps the ranges that events are declared with.
    pub fn load(ranges_hold: bool) -> Arc<Self> {
        Arc::new(Self { landscape: Landscape::load(), hearing: Hearing::new(&crate::schema()), ranges_hold })
    }
}

/// Totals of one bot, for the swarm's report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    deaths: u64,
    casts: u64,
    lines_said: u64,
    lines_heard: u64,
    events_heard: u64,
    joins: u64,
    banked: u64,
    teleports: u64,
}

/// A simulated player.
pub struct FrontierBot {
    guide: Arc<BotGuide>,
    /// Of the stay that it believes to be in.
    epoch: Option<u8>,
    watch: Watch,
    senses: Senses,
    settler: Settler,
    leaves_land_alone: bool,
    /// Times as often as [`CAST_S`] says.
    casts: f32,
    errand: Errand,
    progress: Progress,
    bodiless: Bodiless,
    thoughts: u32,
    /// Whom the server takes its strikes to be meant for.
    target: Option<NetId>,
    carried: u16,
    banked: u32,
    in_party: bool,
    sneaks_until: u32,
    heading: f32,
    was_alive: bool,
    counts: Counts,
}

impl FrontierBot {
    /// A bot that plays as most do.
    pub fn new(guide: Arc<BotGuide>) -> Self {
        Self::in_scenario(guide, scenarios::USUAL)
    }

    /// A bot that plays one of [`SCENARIOS`].
    pub fn in_scenario(guide: Arc<BotGuide>, scenario: Scenario) -> Self {
        Self {
            guide,
            epoch: None,
            watch: Watch::default(),
            senses: Senses::default(),
            settler: Settler::default(),
            leaves_land_alone: false,
            casts: 1.0,
            errand: Errand::new(if scenario == ONE_PLACE { 1 } else { errand::CAMPS }),
            progress: Progress::default(),
            bodiless: Bodiless::default(),
            thoughts: 0,
            target: None,
            carried: 0,
            banked: 0,
            in_party: false,
            sneaks_until: 0,
            heading: 0.0,
            was_alive: true,
            counts: Counts::default(),
        }
    }

    /// The same bot, which casts so many times as often in a fight [>= 0].
    pub fn casting(mut self, times: f32) -> Self {
        self.casts = times;
        self
    }

    /// The same bot, which changes nothing of the land.
    pub fn leaving_land_alone(mut self) -> Self {
        self.leaves_land_alone = true;
        self
    }

    /// Notices a new stay in the world: nothing that it knew of the last one holds.
    fn settle_in(&mut self, client: &mut Client, epoch: u8, rng: &mut Xoshiro256PlusPlus) {
        if self.epoch == Some(epoch) {
            return;
        }
        self.epoch = Some(epoch);
        // It acts on the newest that it was told, and its inputs say so.
        client.set_interpolation_delay(Nanos::ZERO);
        self.watch.enter();
        self.settler.enter();
        self.errand.forget();
        (self.target, self.in_party, self.was_alive) = (None, false, true);
        self.bodiless.forget();
        let name = format!("Wren {}", rng.random_range(0..10_000));
        // Refused when the queue is full, which it is not at the start.
        let _ = client.request(&Wish::call_me(&name).expect("it is fit for a name"));
    }

    /// Listens to what has happened since the last thought.
    fn hear(&mut self, now: Nanos, client: &Client) {
        let own = client.own_entity();
        let replicas = client.replicas();
        for event in client.events() {
            self.counts.events_heard += 1;
            let Some((told, range_m)) = self.guide.hearing.understand(&event) else {
                self.watch.unreadable();
                continue;
            };
            match told {
                Told::Teleported { who, to } => {
                    self.counts.teleports += u64::from(Some(who) == own);
                    self.watch.teleported(now, who, to, own);
                    if Some(who) == own {
                        self.errand.forget();
                    }
                    continue;
                }
                Told::Purse { carried, banked } => {
                    self.counts.banked += u64::from(banked > self.banked);
                    (self.carried, self.banked) = (carried, banked);
                }
                Told::Said { speaker, name, words } => {
                    self.counts.lines_heard += u64::from(speaker != own);
                    self.watch.check_words(&name, &words);
                }
                Told::Land(changed) => {
                    let wrong = self.settler.changed(&changed, self.watch.own_place());
                    self.watch.land(now, wrong);
                }
                Told::Happened(_) => {}
            }
            if let (true, Some(who), Some(range_m)) = (self.guide.ranges_hold, told.about(), range_m) {
                // The dead stand up elsewhere; until the client knows, it knows no place of theirs.
                let is_dead = replicas.get::<Vitals>(who).is_some_and(|vitals| !vitals.alive);
                if !is_dead {
                    let place = replicas.get::<Pose>(who).map(|pose| [pose.x, pose.z]);
                    self.watch.check_range(now, who, place, range_m);
                }
            }
        }
        let (strange, wrong) = self.settler.hear(client, self.watch.own_place());
        self.watch.strange_messages(strange);
        self.watch.land(now, wrong);
    }

    /// What to do about what it notices, as an input.
    fn act(&mut self, client: &mut Client, at: Place, vitals: Vitals, rng: &mut Xoshiro256PlusPlus) -> Input {
        let enemy = self.senses.enemy.filter(|enemy| client.replicas().contains(enemy.id));
        self.aim(client, enemy.map(|enemy| enemy.id));
        if let Some(enemy) = enemy {
            return self.fight(client, at, enemy.id, vitals, rng);
        }
        if let Some(node) = self.senses.node.filter(|_| self.carried < PURSE_FULL) {
            let direction = self.towards(at, node.place, REACH_M);
            return self.input(direction).running(true).gathering(direction == [0.0, 0.0]);
        }
        if let Some(banker) = self.senses.banker.filter(|_| self.carried > 0) {
            let direction = self.towards(at, banker.place, REACH_M);
            if direction == [0.0, 0.0] && once_in(1.0, THINK_HZ, rng) {
                self.tell(client, Wish::Use(banker.id));
            }
            return self.input(direction);
        }
        self.errand.choose(&self.guide.landscape, at, self.carried >= PURSE_FULL, self.is_stuck(), rng);
        if self.is_stuck() {
            self.progress.forget();
        }
        let direction = self.towards(at, self.errand.goal().unwrap_or(at), errand::REACHED_M);
        if once_in(SNEAK_S, THINK_HZ, rng) {
            self.sneaks_until = self.thoughts.wrapping_add(SNEAK_THOUGHTS);
        }
        let sneaks = self.sneaks_until.wrapping_sub(self.thoughts) <= SNEAK_THOUGHTS;
        let mut input = self.input(direction).running(!sneaks).sneaking(sneaks);
        if once_in(SONG_S, THINK_HZ, rng) {
            input = self.cast(input, Ability::Sing);
        } else if once_in(RECALL_S, THINK_HZ, rng) {
            input = self.cast(input, Ability::Recall);
        }
        input
    }

    fn fight(
        &mut self,
        client: &Client,
        at: Place,
        enemy: NetId,
        vitals: Vitals,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Input {
        let there = client.replicas().get::<Pose>(enemy).map_or(at, |pose| [pose.x, pose.z]);
        let direction = self.towards(at, there, STRIKE_M);
        self.heading = (there[0] - at[0]).atan2(there[1] - at[1]);
        let input = self.input(direction).running(true).attacking(true);
        if !once_in(CAST_S / self.casts, THINK_HZ, rng) {
            return input;
        }
        use Ability::*;
        let ability = match rng.random_range(0..12) {
            _ if vitals.health < HURT => Heal,
            _ if self.senses.hurt_friend => Heal,
            0..=3 if self.senses.enemies_count >= 3 => Blast,
            0..=3 => Bolt,
            4 => Stun,
            5 => Plague,
            6 => Trap,
            7 => Totem,
            8 if self.in_party => Bless,
            9 if self.in_party => Taunt,
            _ => Bolt,
        };
        self.cast(input, ability)
    }

    /// Tells the server whom strikes and spells are meant for, when that changes.
    fn aim(&mut self, client: &mut Client, enemy: Option<NetId>) {
        if enemy != self.target && self.tell(client, Wish::Target(enemy)) {
            self.target = enemy;
        }
    }

    /// What one does with others: talk, wave, join, open doors.
    fn mingle(&mut self, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        if once_in(SPEECH_S, THINK_HZ, rng) {
            let line = LINES[rng.random_range(0..LINES.len())];
            let line = Wish::say(line).expect("its lines are fit to be said");
            self.counts.lines_said += u64::from(self.tell(client, line));
        }
        if once_in(EMOTE_S, THINK_HZ, rng) {
            self.tell(client, Wish::Emote(Greeting::ALL[rng.random_range(0..Greeting::ALL.len())]));
        }
        if let Some(door) = self.senses.door.filter(|_| once_in(DOOR_S, THINK_HZ, rng)) {
            self.tell(client, Wish::Use(door.id));
        }
        match self.senses.player {
            Some(player) if !self.in_party && once_in(JOIN_S, THINK_HZ, rng) => {
                self.in_party = self.tell(client, Wish::Join(player.id));
                self.counts.joins += u64::from(self.in_party);
            }
            _ if self.in_party && once_in(LEAVE_S, THINK_HZ, rng) => {
                self.in_party = !self.tell(client, Wish::Leave);
            }
            _ => {}
        }
    }

    /// Sends a message; false if it did not fit: then it is left unsaid.
    fn tell(&self, client: &mut Client, wish: Wish) -> bool {
        client.request(&wish).is_ok()
    }

    fn cast(&mut self, input: Input, ability: Ability) -> Input {
        self.counts.casts += 1;
        input.casting(ability)
    }

    /// The direction to a place; none when it is as near as `near_m`.
    fn towards(&mut self, at: Place, goal: Place, near_m: f32) -> [f32; 2] {
        let way = [goal[0] - at[0], goal[1] - at[1]];
        let left_m = way[0].hypot(way[1]);
        if left_m <= near_m {
            return [0.0, 0.0];
        }
        self.heading = way[0].atan2(way[1]);
        [way[0] / left_m, way[1] / left_m]
    }

    fn input(&self, direction: [f32; 2]) -> Input {
        Input::new(direction, self.heading)
    }

    fn is_stuck(&self) -> bool {
        self.progress.thoughts() >= STUCK_THOUGHTS
    }
}

impl Behaviour for FrontierBot {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        self.thoughts = self.thoughts.wrapping_add(1);
        let Some(epoch) = client.world().map(|world| world.epoch) else { return };
        self.settle_in(client, epoch, rng);
        self.hear(now, client);
        let replicas = client.replicas();
        let own =
            client.own_entity().and_then(|own| Some((own, *replicas.get::<Pose>(own)?, *replicas.get::<Vitals>(own)?)));
        let Some((own, pose, vitals)) = own else {
            self.watch.bodiless(self.bodiless.another_thought());
            return;
        };
        self.bodiless.forget();
        let at = [pose.x, pose.z];
        self.watch.note_place(now, at);
        if self.thoughts.is_multiple_of(CHECK_PERIOD) {
            self.watch.check(client, own);
        }
        self.counts.deaths += u64::from(self.was_alive && !vitals.alive);
        self.was_alive = vitals.alive;
        if !vitals.alive {
            // It gets up by itself.
            self.senses = Senses::default();
            self.errand.forget();
            let _ = client.send_input(now, &Input::default());
            return;
        }
        if self.thoughts.is_multiple_of(LOOK_PERIOD) {
            self.senses.look_around(client, own, at, &self.guide.landscape);
        }
        self.progress.note(at);
        let input = self.act(client, at, vitals, rng);
        // Refused between two worlds, when there is nobody to move.
        let _ = client.send_input(now, &input);
        self.mingle(client, rng);
        if !self.leaves_land_alone {
            self.settler.work(client, at, self.carried, rng);
        }
    }

    fn counters(&self) -> BehaviourCounters {
        let counters = BehaviourCounters::new()
            .with("deaths", self.counts.deaths)
            .with("casts", self.counts.casts)
            .with("lines_said", self.counts.lines_said)
            .with("lines_heard", self.counts.lines_heard)
            .with("events_heard", self.counts.events_heard)
            .with("parties_joined", self.counts.joins)
            .with("banked", self.counts.banked)
            .with("teleports", self.counts.teleports)
            .with("works_asked", self.settler.asked)
            .with("land_told", self.settler.told);
        self.watch.count_into(counters)
    }
}
