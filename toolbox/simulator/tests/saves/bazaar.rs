//! A small game in which everything is about who has what: two markets, coins in purses and in chests.
//!
//! A player pays others, puts coins into the market's chest and takes some out, throws some away, and goes to the other
//! market and back. Coins come with new players, and go when they are thrown away; each market says so.

use std::{
    collections::{BTreeMap, VecDeque},
    io::Write,
    os::unix::net::UnixStream,
    sync::{Arc, Mutex},
};

use bevy_ecs::prelude::*;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{
    directory::{Directory, Placement, SavedPlace},
    ids::WorldId,
    lifecycle::{NewWorld, Pending},
    net::protocol::{ClientId, UserData},
    prelude::*,
    server::{Server, ServerControl, ServerError},
};
use throng_bots::Behaviour;
use throng_client::Client;
use throng_pack::{Pack, envelope};
use throng_persistence::{ItemKind, Reads, Store, conservation, key::Kind};
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

pub const COIN: ItemKind = 1;
pub const COINS_AT_FIRST: u32 = 100;
/// The markets' numbers.
pub const MARKETS: [u64; 2] = [11, 12];

#[derive(Pack)]
#[pack(name = "bazaar.wish")]
pub enum Wish {
    /// Somebody else who is here, by a number drawn.
    Pay {
        whom: u8,
        coins: u8,
    },
    Store {
        coins: u8,
    },
    Fetch {
        coins: u8,
    },
    ThrowAway,
    Go,
    /// A bug in the game.
    Panic,
}

impl ClientRequest for Wish {
    const PER_S_MAX: u16 = 100;
}

/// What a player has.
#[derive(Debug, Clone, Copy, PartialEq, Component, Pack)]
#[pack(name = "bazaar.purse")]
pub struct Purse {
    pub coins: u32,
    /// Wishes of theirs that came true; they only become more.
    pub deeds: u32,
}

/// The player's own number.
#[derive(Component)]
struct Whose(u64);

/// What a market has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Resource, Pack)]
#[pack(name = "bazaar.chest")]
pub struct Chest {
    pub coins: u32,
}

/// Journeys from here.
#[derive(Default, Resource)]
struct Travels(u64);

/// Where the markets are now.
type Places = Arc<Mutex<[Option<WorldId>; 2]>>;

#[derive(Resource)]
struct Roads {
    here: usize,
    places: Places,
}

pub struct Market {
    pub number: usize,
    places: Places,
    ledger: Option<Ledger>,
}

/// Where it is told, outside of the process, what is on disk: player and deeds, one after the other.
pub type Ledger = Arc<Mutex<UnixStream>>;

/// Wishes to be saved, and what everybody had done by then.
#[derive(Resource)]
struct Receipts {
    ledger: Ledger,
    wanted: VecDeque<(SaveRequest, Vec<(u64, u32)>)>,
}

/// Wants everything saved four times a second and more, and tells what was granted.
fn keep_receipts(
    tick: Res<TickInfo>,
    answers: Res<SaveAnswers>,
    purses: Query<(&Whose, &Purse)>,
    mut receipts: ResMut<Receipts>,
    mut outbox: ResMut<Outbox>,
) {
    for answer in answers.0.iter().filter(|answer| answer.is_on_disk) {
        while let Some((request, deeds)) = receipts.wanted.pop_front() {
            let entries = deeds.iter().flat_map(|(player, deeds)| [*player, u64::from(*deeds)]);
            let bytes: Vec<u8> = entries.flat_map(u64::to_le_bytes).collect();
            // Whoever listens may be gone.
            let _ = receipts.ledger.lock().unwrap().write_all(&bytes);
            if request == answer.request {
                break;
            }
        }
    }
    if tick.tick.is_multiple_of(5) {
        let deeds = purses.iter().map(|(whose, purse)| (whose.0, purse.deeds)).collect();
        let request = outbox.save();
        receipts.wanted.push_back((request, deeds));
    }
}

struct ChestState;

impl WorldState for ChestState {
    fn save(&self, ecs: &mut World, _: &[Entity]) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        envelope::write(ecs.resource::<Chest>(), &mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn load(&self, ecs: &mut World, bytes: &[u8]) -> Result<(), String> {
        let chest: Chest = envelope::read(bytes).map_err(|error| error.to_string())?;
        ecs.insert_resource(chest);
        Ok(())
    }
}

impl WorldKind for Market {
    fn name(&self) -> &str {
        ["north", "south"][self.number]
    }

    fn tick_rate(&self) -> Hertz {
        Hertz([20, 30][self.number])
    }

    fn protocol(&self) -> Protocol {
        protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world
            .insert_resource(Roads { here: self.number, places: self.places.clone() })
            .init_resource::<Chest>()
            .init_resource::<Travels>()
            .save_players(|ecs, player| ecs.get::<Purse>(player.entity?).copied())
            .save_world(ChestState)
            .add_systems(Update, (bury, welcome, deal).chain());
        if let Some(ledger) = &self.ledger {
            world.insert_resource(Receipts { ledger: ledger.clone(), wanted: VecDeque::new() });
            world.add_systems(Update, keep_receipts.after(deal));
        }
    }
}

pub fn protocol() -> Protocol {
    Protocol::new().request::<Wish>()
}

/// First of all, so that nobody takes anything from who is gone.
fn bury(departures: Res<Departures>, inbox: Res<Inbox>, mut commands: Commands) {
    for client in &departures.0 {
        if let Some(entity) = inbox.players().entity(*client) {
            commands.entity(entity).despawn();
        }
    }
}

fn welcome(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for Arrival { client, client_id, transfer, .. } in &arrivals.0 {
        let purse = match transfer {
            Some(transfer) => transfer.read::<Purse>().expect("checked at the door"),
            None => {
                outbox.items_created(COIN, COINS_AT_FIRST.into());
                Purse { coins: COINS_AT_FIRST, deeds: 0 }
            }
        };
        let player = commands.spawn((Replicated::default(), Whose(client_id.0), purse)).id();
        outbox.set_player(*client, player);
    }
}

#[expect(clippy::too_many_arguments, reason = "each is a resource, as systems have them")]
fn deal(
    wishes: Requests<Wish>,
    inbox: Res<Inbox>,
    roads: Res<Roads>,
    mut purses: Query<&mut Purse>,
    mut chest: ResMut<Chest>,
    mut travels: ResMut<Travels>,
    mut outbox: ResMut<Outbox>,
    mut commands: Commands,
) {
    let mut gone = Vec::new();
    for (sender, wish) in wishes.read() {
        let Some(me) = sender.entity.filter(|me| !gone.contains(me)) else { continue };
        let Ok(mut purse) = purses.get_mut(me) else { continue };
        purse.deeds += 1;
        let has = purse.coins;
        let travels_with = *purse;
        match *wish {
            Wish::Pay { whom, coins } => {
                let others: Vec<Entity> = inbox.players().iter().filter_map(|(_, entity)| entity).collect();
                let whom = others[usize::from(whom) % others.len()];
                let coins = u32::from(coins).min(has);
                if whom != me && !gone.contains(&whom) && purses.contains(whom) {
                    purses.get_mut(me).expect("it is there").coins -= coins;
                    purses.get_mut(whom).expect("it is there").coins += coins;
                }
            }
            Wish::Store { coins } => {
                let coins = u32::from(coins).min(has);
                purses.get_mut(me).expect("it is there").coins -= coins;
                chest.coins += coins;
            }
            Wish::Fetch { coins } => {
                let coins = u32::from(coins).min(chest.coins);
                purses.get_mut(me).expect("it is there").coins += coins;
                chest.coins -= coins;
            }
            Wish::ThrowAway => {
                if has > 0 {
                    purses.get_mut(me).expect("it is there").coins -= 1;
                    outbox.items_created(COIN, -1);
                }
            }
            Wish::Go => {
                let there = roads.places.lock().unwrap()[1 - roads.here];
                if let Some(there) = there {
                    travels.0 += 1;
                    outbox.travel(sender.client, there, &travels_with).expect("within its limits");
                    commands.entity(me).despawn();
                    gone.push(me);
                }
            }
            Wish::Panic => panic!("a bug in the bazaar"),
        }
    }
}

/// Puts players where they were, and newcomers into the first market; makes markets that are not there.
struct Crossroads {
    control: ServerControl,
    plans: [NewWorld; 2],
    places: Places,
    asked: [Option<Pending<WorldId>>; 2],
}

impl Directory for Crossroads {
    fn place(&mut self, _: ClientId, _: &UserData) -> Placement {
        self.market(0)
    }

    fn place_saved(&mut self, _: ClientId, _: &UserData, saved: SavedPlace) -> Placement {
        self.market(MARKETS.iter().position(|id| saved.save_id == Some(*id)).unwrap_or(0))
    }

    fn left(&mut self, _: ClientId) {}

    fn frame(&mut self, _: Nanos) {
        for number in 0..2 {
            if self.places.lock().unwrap()[number].is_none() {
                self.market(number);
            }
        }
    }

    fn world_ended(&mut self, world: WorldId) {
        for place in self.places.lock().unwrap().iter_mut().filter(|place| **place == Some(world)) {
            *place = None;
        }
    }
}

impl Crossroads {
    fn market(&mut self, number: usize) -> Placement {
        if let Some(world) = self.places.lock().unwrap()[number] {
            return Placement::World(world);
        }
        match &self.asked[number] {
            None => self.asked[number] = Some(self.control.create_world(self.plans[number].clone())),
            Some(asked) => match asked.try_take() {
                None => {}
                Some(Ok(world)) => {
                    self.asked[number] = None;
                    self.places.lock().unwrap()[number] = Some(world);
                    return Placement::World(world);
                }
                Some(Err(_)) => self.asked[number] = None,
            },
        }
        Placement::Pending
    }
}

/// Makes a server the bazaar's.
pub fn furnish(server: &mut Server, ledger: Option<Ledger>) -> Result<(), ServerError> {
    let places = Places::default();
    let kinds = [0, 1].map(|number| Market { number, places: places.clone(), ledger: ledger.clone() });
    let mut plans = Vec::new();
    for (number, kind) in kinds.into_iter().enumerate() {
        let plan = NewWorld::new(server.add_kind(kind)?, number as u64).saved_as(MARKETS[number]);
        places.lock().unwrap()[number] = Some(server.create_world_as(plan.clone())?);
        plans.push(plan);
    }
    let [north, south] = plans.try_into().expect("two");
    let control = server.control();
    server.set_directory(Crossroads { control, plans: [north, south], places, asked: [None, None] });
    Ok(())
}

/// A bazaar whose saves are in this store.
pub fn open(settings: &SimulationSettings, store: Option<Box<dyn Store>>) -> Simulation {
    let build = |server: &mut Server| -> Result<(), ServerError> {
        store.map_or(Ok(()), |store| server.save_in(store))?;
        furnish(server, None)
    };
    Simulation::new(settings, build).unwrap().0
}

/// A customer's habits.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    /// Wishes per thought, and of these the share of journeys and of bugs.
    pub wishes: f64,
    pub goes: f64,
    pub panics: f64,
}

pub struct Customer(pub Habits);

impl Behaviour for Customer {
    fn think(&mut self, _: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let Habits { wishes, goes, panics } = self.0;
        if !rng.random_bool(wishes) {
            return;
        }
        let (whom, coins) = (rng.random(), rng.random_range(1..20));
        let wish = match rng.random::<f64>() {
            luck if luck < panics => Wish::Panic,
            luck if luck < panics + goes => Wish::Go,
            _ => match rng.random_range(0..8) {
                0..4 => Wish::Pay { whom, coins },
                4 | 5 => Wish::Store { coins },
                6 => Wish::Fetch { coins },
                _ => Wish::ThrowAway,
            },
        };
        // Refused before the first world, and unheard on the way.
        let _ = client.request(&wish);
    }
}

/// What a store has, by player and by market.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Wealth {
    pub purses: BTreeMap<u64, u32>,
    pub deeds: BTreeMap<u64, u32>,
    pub chests: BTreeMap<u64, u32>,
}

/// What the store has; the error is that it does not hold together, in words.
pub fn look_at(reads: &dyn Reads) -> Result<Wealth, String> {
    let mut wealth = Wealth::default();
    let count = conservation::check(reads, |key, bytes, items| {
        // Headings: ten bytes of a player's record; two and the kind's name of a world's.
        let coins = match key.kind {
            Kind::Player => {
                let purse: Purse = envelope::read(&bytes[10..]).unwrap();
                wealth.purses.insert(key.id as u64, purse.coins);
                wealth.deeds.insert(key.id as u64, purse.deeds);
                purse.coins
            }
            Kind::World => {
                let chest: Chest = envelope::read(&bytes[2 + usize::from(bytes[1])..]).unwrap();
                wealth.chests.insert(key.id as u64, chest.coins);
                chest.coins
            }
            Kind::Cell => 0,
        };
        items(COIN, coins.into());
    })
    .unwrap();
    let text = || format!("{:?} {:?}", count.differences(), count.unreadable);
    if count.holds() { Ok(wealth) } else { Err(text()) }
}

/// Deeds of all who are in a market now, and all coins in purses and chests; who is on the way just now is missing.
pub fn live(bazaar: &mut Simulation) -> (BTreeMap<u64, u32>, u64) {
    let (mut deeds, mut coins) = (BTreeMap::new(), 0);
    let server = bazaar.server_mut();
    let markets: Vec<WorldId> = server.worlds().map(|(id, ..)| id).collect();
    for id in markets {
        let Some(world) = server.world_mut(id) else { continue };
        coins += u64::from(world.ecs().resource::<Chest>().coins);
        let ecs = world.ecs_mut();
        for (whose, purse) in ecs.query::<(&Whose, &Purse)>().iter(ecs) {
            deeds.insert(whose.0, purse.deeds);
            coins += u64::from(purse.coins);
        }
    }
    (deeds, coins)
}
