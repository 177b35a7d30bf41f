//! What everybody has: by a store's records, and by the worlds of a server; and a Precinct whose saves are in a store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bevy_ecs::prelude::*;
use precinct::{
    PrecinctBot, PrecinctSettings, PrecinctWorlds,
    arena::Arena,
    bot::Itinerary,
    gear::{Bag, Gear, GearId, GearKind},
    ground::Lies,
    inventory::Inventory,
    passport::{Passport, PlayerClient, PlayerName},
    protocol::{Carried, Handle},
    saves::{DARK_ZONE_NUMBER, HUB_NUMBER, SavedWorld, hideout_number},
    scene::Scene,
    stash::Stash,
    travel::{Facing, PLAYER_WEAPON, Traveller},
    weapons::CarriedWeapon,
};
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{
    Server,
    net::{protocol::ClientId, transport::Impairment},
    prelude::WorldId,
    server::ServerError,
};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_pack::envelope;
use throng_persistence::{
    Commit, Embedded, Key, Kind, Reads, Store, Writer, WriterSettings, conservation, disk::MemoryDisk,
};
use throng_platform::{clock::ManualClock, time::Nanos};
use throng_simulator::{Simulation, SimulationSettings};

use crate::simulated;

pub const PLAYERS: usize = 6;
const NPCS: usize = 72;
/// What everybody begins with, so that there is something to lose from the first frame on.
const GEAR_AT_FIRST: u64 = 4;

/// Client ids of the simulation's players.
pub fn clients() -> impl Iterator<Item = u64> {
    1..=PLAYERS as u64
}

/// A store on this disk: another one when the process that had the last has ended.
pub fn store_on(disk: &MemoryDisk) -> Box<dyn Store> {
    Box::new(Embedded::on(Box::new(disk.clone())).expect("a disk in memory can be read"))
}

/// What is kept of one player.
#[derive(Debug, Clone, PartialEq)]
pub struct OfPlayer {
    pub passport: Passport,
    pub inventory: Inventory,
    pub bag: Bag,
}

/// What everybody has, and every world.
#[derive(Debug, Default)]
pub struct Belongings {
    /// By client id.
    pub players: BTreeMap<u64, OfPlayer>,
    /// By owner, if there is anything in it.
    pub chests: BTreeMap<u64, Stash>,
    /// By the number of the world.
    pub lying: BTreeMap<u64, BTreeSet<GearId>>,
    /// Pieces that the worlds have destroyed.
    pub destroyed: u64,
    /// Players whose records say that they are in the hub or the dark zone.
    pub away: usize,
}

impl Belongings {
    /// What a store holds. An error in words: it does not hold together.
    pub fn in_store(reads: &dyn Reads) -> Result<Self, String> {
        let (mut all, mut places) = (Self::default(), BTreeMap::<GearId, Key>::new());
        let mut twice = Vec::new();
        let count = conservation::check(reads, |key, bytes, items| {
            let pieces = all.read(key, bytes);
            for gear in pieces {
                items(gear.kind.item_kind(), 1);
                if let Some(other) = places.insert(gear.id, key) {
                    twice.push(format!("{:?} is in {other:?} and in {key:?}", gear.id));
                }
            }
        });
        let count = count.map_err(|error| error.to_string())?;
        match count.holds() && twice.is_empty() {
            true => Ok(all),
            false => Err(format!("kind, there, must be: {:?}; {:?}; {twice:?}", count.differences(), count.unreadable)),
        }
    }

    /// Notes what a record holds, and returns every piece in it.
    fn read(&mut self, key: Key, bytes: &[u8]) -> Vec<Gear> {
        // Headings: ten bytes of a player's record; two and the kind's name of a world's.
        match key.kind {
            Kind::Player => {
                let Traveller { passport, inventory, bag, .. } =
                    envelope::read(&bytes[10..]).expect("a player's record");
                let place = u64::from_le_bytes(bytes[2..10].try_into().expect("eight bytes"));
                self.away += usize::from([HUB_NUMBER, DARK_ZONE_NUMBER].contains(&place));
                self.players.insert(key.id as u64, OfPlayer { passport, inventory, bag });
                bag.gear.iter().collect()
            }
            Kind::World => {
                let body = &bytes[2 + usize::from(bytes[1])..];
                let SavedWorld { stash, lying, .. } = envelope::read(body).expect("a world's record");
                let number = key.id as u64;
                let owner = clients().find(|client| hideout_number(ClientId(*client)) == Some(number));
                if let Some(owner) = owner.filter(|_| !stash.gear.is_empty()) {
                    self.chests.insert(owner, stash);
                }
                self.lying.insert(number, lying.iter().map(|piece| piece.gear.id).collect());
                stash.gear.iter().chain(lying.iter().map(|piece| piece.gear)).collect()
            }
            Kind::Cell | Kind::LeftOut => Vec::new(),
        }
    }

    /// What the worlds of a server have. Everybody must be in one of them, and in one only.
    pub fn in_worlds(simulation: &mut Simulation, worlds: &PrecinctWorlds) -> Result<Self, String> {
        let mut all = Self::default();
        for id in [worlds.hub, worlds.dark_zone].into_iter().chain(worlds.hideouts.alive()) {
            let Some(world) = simulation.server_mut().world_mut(id) else { return Err(format!("{id} is away")) };
            let ecs = world.ecs_mut();
            let mut owner = None;
            let mut players = ecs.query::<(&PlayerClient, &Passport, &Inventory, &Bag)>();
            for (_, passport, inventory, bag) in players.iter(ecs) {
                let client = client_of(passport);
                owner = Some(client);
                let has = OfPlayer { passport: *passport, inventory: *inventory, bag: *bag };
                if all.players.insert(client, has).is_some() {
                    return Err(format!("{} is in two worlds", passport.name));
                }
            }
            all.destroyed += ecs.resource::<Arena>().ledger.destroyed();
            let lying: BTreeSet<GearId> = ecs.query::<&Lies>().iter(ecs).map(|lies| lies.gear.id).collect();
            let stash = ecs.query::<&Stash>().iter(ecs).next().copied();
            let is_hideout = ecs.resource::<Scene>().hideout.is_some();
            let number = match id {
                _ if id == worlds.hub => Some(HUB_NUMBER),
                _ if id == worlds.dark_zone => Some(DARK_ZONE_NUMBER),
                _ => owner.and_then(|owner| hideout_number(ClientId(owner))),
            };
            all.lying.extend(number.map(|number| (number, lying)));
            if let (true, Some(owner), Some(stash)) = (is_hideout, owner, stash.filter(|stash| !stash.gear.is_empty()))
            {
                all.chests.insert(owner, stash);
            }
        }
        Ok(all)
    }
}

/// Whose passport it is: everybody is called by his number.
fn client_of(passport: &Passport) -> u64 {
    passport.name.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("Agent 7, say")
}

/// Saves of players who have played before.
pub fn equip(disk: &MemoryDisk) {
    let mut commit = Commit::new();
    for client in clients() {
        let mut bag = Bag::default();
        for number in 0..GEAR_AT_FIRST {
            let kind = GearKind::by_number(client + number);
            let id = GearId { run: 0, world: WorldId::new(0, 0), number: client * GEAR_AT_FIRST + number };
            bag.gear.put(Gear { id, kind }).expect("there is room");
            commit.items_created(kind.item_kind(), 1);
        }
        let name = PlayerName::new(&format!("Agent {client}")).expect("a short name");
        let traveller = Traveller {
            health: 100,
            passport: Passport { home: None, name, kills: 0, deaths: 0 },
            passage: None,
            facing: Facing::default(),
            weapon: CarriedWeapon::loaded(PLAYER_WEAPON),
            inventory: Inventory::usual(PLAYER_WEAPON),
            bag,
        };
        let mut bytes = vec![1, 0];
        bytes.extend_from_slice(&[0; 8]);
        envelope::write(&traveller, &mut bytes).expect("within its limits");
        commit.put_bytes(Key::player(client), bytes);
    }
    let clock = Arc::new(ManualClock::new());
    let mut writer = Writer::inline(store_on(disk), WriterSettings::default(), clock);
    writer.submit(commit).expect("there is room");
    while writer.take_ack().is_none() {}
}

/// A bot that does nothing until it may, and lays something down now and then.
pub struct Butterfingers {
    bot: PrecinctBot,
    may_play: Arc<AtomicBool>,
    bag: Bag,
    drops: u64,
}

/// Thoughts between two pieces that it lets fall, on average.
const DROPS_ONE_IN: f64 = 80.0;

impl Butterfingers {
    pub fn new(may_play: &Arc<AtomicBool>) -> Box<Self> {
        let restless = Itinerary { at_home_s: 0.5..6.0, away_s: 1.0..5.0, dark_zone_share: 0.5, in_step: false };
        let bot = PrecinctBot::with_itinerary(simulated::guide(), restless);
        Box::new(Self { bot, may_play: may_play.clone(), bag: Bag::default(), drops: 0 })
    }
}

impl Behaviour for Butterfingers {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let told = client.messages().filter_map(|message| message.read::<Carried>()).last();
        self.bag = told.map_or(self.bag, |told| told.bag);
        if !self.may_play.load(Ordering::Relaxed) {
            return;
        }
        self.bot.think(now, client, rng);
        if rng.random_bool(1.0 / DROPS_ONE_IN)
            && let Some(gear) = self.bag.gear.iter().next()
        {
            // Refused before the first world, and unheard on the way.
            self.drops += u64::from(client.request(&Handle::Drop(gear.id)).is_ok());
        }
    }

    fn counters(&self) -> BehaviourCounters {
        self.bot.counters()
    }
}

/// A server and its players, who begin to play when they may.
pub struct Life {
    pub simulation: Simulation,
    pub worlds: PrecinctWorlds,
    pub may_play: Arc<AtomicBool>,
}

impl Life {
    /// `seed`: of all chance in this life.
    pub fn begin(disk: &MemoryDisk, seed: u64, more: impl FnOnce(&mut PrecinctSettings)) -> Self {
        let mut settings = SimulationSettings::new(precinct::schema(), seed);
        settings.impairment = Impairment { loss: 0.03, ..Impairment::default() };
        settings.server.saves.period_s = 2;
        let mut precinct = PrecinctSettings {
            players: PLAYERS,
            npcs: NPCS,
            seed,
            // Hideouts are retired, and made again of their saves, within a life.
            hideout_linger_s: 2,
            ..PrecinctSettings::default()
        };
        more(&mut precinct);
        let build = |server: &mut Server| -> Result<PrecinctWorlds, ServerError> {
            server.save_in(store_on(disk))?;
            precinct::build(server, &precinct)
        };
        let (mut simulation, worlds) = Simulation::new(&settings, build).expect("the game can be set up");
        let may_play = Arc::new(AtomicBool::new(false));
        (0..PLAYERS).for_each(|_| _ = simulation.join(Butterfingers::new(&may_play)));
        Self { simulation, worlds, may_play }
    }

    pub fn let_play(&self, may_play: bool) {
        self.may_play.store(may_play, Ordering::Relaxed);
    }

    /// Runs until everybody is in, and holds what they were given against what was saved.
    pub fn check_given(&mut self, saved: &Belongings) -> Result<(), String> {
        let are_in = |simulation: &mut Simulation| simulation.totals().playing == PLAYERS as u64;
        if !self.simulation.run_until(20.0, are_in) {
            return Err(format!("not all are in: {:?}", self.simulation.totals()));
        }
        let mut given = Err("nobody looked".into());
        // The tick that takes the last of them in; and a world that panics is away for a moment.
        for _ in 0..20 {
            self.simulation.run_for(0.1);
            given = Belongings::in_worlds(&mut self.simulation, &self.worlds);
            if given.as_ref().is_ok_and(|given| given.players.len() == PLAYERS) {
                break;
            }
        }
        let given = given?;
        for (client, had) in &saved.players {
            let has = given.players.get(client).ok_or_else(|| format!("player {client} is in no world"))?;
            // NPCs may have shot at him by now, and things lie at his feet.
            let same = (has.bag, has.passport.kills) == (had.bag, had.passport.kills)
                && had.inventory.stacks().all(|stack| has.inventory.count(stack.item) >= stack.count);
            if !same {
                return Err(format!("player {client} had {had:?} and has {has:?}"));
            }
        }
        if given.chests != saved.chests {
            return Err(format!("in chests was {:?} and is {:?}", saved.chests, given.chests));
        }
        for (number, lay) in &saved.lying {
            let lies = given.lying.get(number).cloned().unwrap_or_default();
            if !lies.is_subset(lay) || lay.len() > lies.len() + given.destroyed as usize {
                return Err(format!("in world {number} lay {lay:?} and lies {lies:?}, {} expired", given.destroyed));
            }
        }
        Ok(())
    }
}
