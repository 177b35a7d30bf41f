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
use throng_pack::{List, Pack, envelope};
use throng_persistence::{ItemKind, Reads, Store, conservation, key::Kind};
use throng_platform::time::Nanos;
use throng_replication::VisibilityFiltered;
use throng_simulator::{Simulation, SimulationSettings};
use throng_world::{checkpoint::PlayerEntities, testing::TestWorld};

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
    /// A bug in the game, see [`BUGS`].
    Panic {
        bug: u8,
    },
}

/// Where the game may panic: in a system, in an observer, when it is asked who sees whom, when a player is packed, when the
/// market is, and when a checkpoint is taken.
pub const BUGS: u8 = 6;
const IN_SYSTEM: u8 = 0;
const IN_OBSERVER: u8 = 1;
const IN_FILTER: u8 = 2;
const IN_PLAYERS_SAVE: u8 = 3;
const IN_WORLDS_SAVE: u8 = 4;
const IN_CHECKPOINT: u8 = 5;

/// The bug that strikes in this tick.
#[derive(Clone, Copy, Default, Resource)]
struct Doom(Option<u8>);

impl Doom {
    fn strike(self, bug: u8) {
        assert!(self.0 != Some(bug), "a bug in the bazaar: {bug}");
    }
}

#[derive(Event)]
struct Struck;

/// What a market is made again from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Its chest is saved; after a panic it is as at the last cut.
    Chest,
    /// The same, and it keeps checkpoints: after a panic it goes on.
    ChestAndCheckpoints,
    /// It is saved as its checkpoint.
    Checkpoint,
}

impl Form {
    pub const ALL: [Form; 3] = [Form::Chest, Form::ChestAndCheckpoints, Form::Checkpoint];

    pub fn keeps_checkpoints(self) -> bool {
        self != Form::Chest
    }
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
#[derive(Component, Pack)]
#[pack(name = "bazaar.whose")]
struct Whose(u64);

/// What a market has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Resource, Pack)]
#[pack(name = "bazaar.chest")]
pub struct Chest {
    pub coins: u32,
}

/// Most bytes of a market's record that are there to take room.
pub const HOARD_BYTES_MAX: usize = 2 << 20;

/// What is saved of a market.
#[derive(Pack)]
#[pack(name = "bazaar.market")]
pub struct SavedMarket {
    pub coins: u32,
    hoard: List<u8, HOARD_BYTES_MAX>,
}

/// How large the hoard is, and how large it may become.
#[derive(Resource)]
struct Hoard {
    bytes: usize,
    max: usize,
}

/// Journeys from here.
#[derive(Default, Resource)]
struct Travels(u64);

/// The same in a checkpoint.
#[derive(Pack)]
#[pack(name = "bazaar.travels")]
struct SavedTravels(u64);

#[derive(Pack)]
#[pack(name = "bazaar.doom")]
struct SavedDoom(Option<u8>);

/// Where roads lead: to each market as it was made last. A market reads it in a tick, and does the same when that tick is
/// run again after a panic, so a market that has ended stays here: whoever goes there is turned back.
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
    form: Form,
    hoard_bytes_max: usize,
}

/// Where it is told, outside of the process, what is on disk: player and deeds, one after the other.
#[derive(Clone)]
pub struct Ledger {
    socket: Arc<Mutex<UnixStream>>,
    tells_deeds: bool,
}

/// In the number of a player: these deeds are done, and nobody has said that they are on disk.
pub const DONE: u64 = 1 << 63;

impl Ledger {
    pub fn new(socket: UnixStream) -> Ledger {
        Ledger { socket: Arc::new(Mutex::new(socket)), tells_deeds: false }
    }

    /// Deeds are told as they are done, too, marked with [`DONE`].
    #[allow(dead_code, reason = "the bazaar that is a process of its own does")]
    pub fn with_deeds(self) -> Ledger {
        Ledger { tells_deeds: true, ..self }
    }

    pub fn tell(&self, entries: impl Iterator<Item = (u64, u32)>) {
        let bytes: Vec<u8> =
            entries.flat_map(|(player, deeds)| [player, u64::from(deeds)]).flat_map(u64::to_le_bytes).collect();
        // Whoever listens may be gone.
        let _ = self.socket.lock().unwrap().write_all(&bytes);
    }
}

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
            receipts.ledger.tell(deeds.into_iter());
            if request == answer.request {
                break;
            }
        }
    }
    if receipts.ledger.tells_deeds {
        receipts.ledger.tell(purses.iter().map(|(whose, purse)| (whose.0 | DONE, purse.deeds)));
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
        ecs.resource::<Doom>().strike(IN_WORLDS_SAVE);
        let mut hoard = ecs.resource_mut::<Hoard>();
        hoard.bytes = if hoard.bytes + 4_096 > hoard.max { 0 } else { hoard.bytes + 4_096 };
        let hoard: List<u8, HOARD_BYTES_MAX> =
            vec![1; hoard.bytes].try_into().map_err(|_| "a hoard that is too large")?;
        let market = SavedMarket { coins: ecs.resource::<Chest>().coins, hoard };
        let mut bytes = Vec::new();
        envelope::write(&market, &mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn load(&self, ecs: &mut World, bytes: &[u8]) -> Result<(), String> {
        let market: SavedMarket = envelope::read(bytes).map_err(|error| error.to_string())?;
        ecs.insert_resource(Chest { coins: market.coins });
        Ok(())
    }
}

const NAMES: [&str; 2] = ["north", "south"];

impl WorldKind for Market {
    fn name(&self) -> &str {
        NAMES[self.number]
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
            .insert_resource(Hoard { bytes: 0, max: self.hoard_bytes_max })
            .init_resource::<Travels>()
            .init_resource::<Doom>()
            .filter_visibility_by(|ecs, _, _| {
                ecs.resource::<Doom>().strike(IN_FILTER);
                true
            })
            .save_players(|ecs, player| {
                ecs.resource::<Doom>().strike(IN_PLAYERS_SAVE);
                ecs.get::<Purse>(player.entity?).copied()
            })
            .add_observer(|_: On<Struck>, doom: Res<Doom>| doom.strike(IN_OBSERVER))
            .add_systems(Update, (heal, bury, welcome, deal).chain());
        match self.form {
            Form::Checkpoint => world.save_world_by_checkpoint(),
            Form::Chest | Form::ChestAndCheckpoints => world.save_world(ChestState),
        };
        if self.form.keeps_checkpoints() {
            world.checkpoint::<Chest>().checkpoint::<Purse>().checkpoint::<Whose>();
            world.transient::<Roads>().transient::<Receipts>().transient::<Hoard>();
            world.checkpoint_as::<Doom, SavedDoom>(
                |doom| {
                    doom.strike(IN_CHECKPOINT);
                    SavedDoom(doom.0)
                },
                |saved| Doom(saved.0),
            );
            world.checkpoint_as::<Travels, SavedTravels>(|travels| SavedTravels(travels.0), |saved| Travels(saved.0));
        }
        if let Some(ledger) = &self.ledger {
            world.insert_resource(Receipts { ledger: ledger.clone(), wanted: VecDeque::new() });
            world.add_systems(Update, keep_receipts.after(deal));
        }
    }
}

pub fn protocol() -> Protocol {
    Protocol::new().request::<Wish>()
}

/// A bug strikes in one tick, or not at all.
fn heal(mut doom: ResMut<Doom>) {
    doom.0 = None;
}

/// Before all that deals, so that nobody takes anything from who is gone.
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
        let player = (Replicated::default(), VisibilityFiltered, Whose(client_id.0), purse);
        let player = commands.spawn(player).id();
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
    (mut travels, mut doom): (ResMut<Travels>, ResMut<Doom>),
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
            Wish::Panic { bug } => {
                doom.0 = Some(bug);
                doom.strike(IN_SYSTEM);
                match bug {
                    IN_OBSERVER => commands.trigger(Struck),
                    // Where it is asked for in this tick.
                    IN_PLAYERS_SAVE | IN_WORLDS_SAVE | IN_CHECKPOINT => _ = outbox.save(),
                    _ => {}
                }
            }
        }
    }
}

/// Puts players where they were, and newcomers into the first market; makes markets that are not there.
struct Crossroads {
    control: ServerControl,
    plans: [NewWorld; 2],
    markets: [u64; 2],
    /// Those that are there.
    worlds: [Option<WorldId>; 2],
    places: Places,
    asked: [Option<Pending<WorldId>>; 2],
}

impl Directory for Crossroads {
    fn place(&mut self, _: ClientId, _: &UserData) -> Placement {
        self.market(0)
    }

    fn place_saved(&mut self, _: ClientId, _: &UserData, saved: SavedPlace) -> Placement {
        self.market(self.markets.iter().position(|id| saved.save_id == Some(*id)).unwrap_or(0))
    }

    fn left(&mut self, _: ClientId) {}

    fn frame(&mut self, _: Nanos) {
        for number in 0..2 {
            if self.worlds[number].is_none() {
                self.market(number);
            }
        }
    }

    fn world_ended(&mut self, world: WorldId) {
        for ended in self.worlds.iter_mut().filter(|one| **one == Some(world)) {
            *ended = None;
        }
    }
}

impl Crossroads {
    fn market(&mut self, number: usize) -> Placement {
        if let Some(world) = self.worlds[number] {
            return Placement::World(world);
        }
        match &self.asked[number] {
            None => self.asked[number] = Some(self.control.create_world(self.plans[number].clone())),
            Some(asked) => match asked.try_take() {
                None => {}
                Some(Ok(world)) => {
                    self.asked[number] = None;
                    self.worlds[number] = Some(world);
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
pub fn furnish(server: &mut Server, ledger: Option<Ledger>, form: Form) -> Result<(), ServerError> {
    furnish_as(server, ledger, &Site { form, markets: MARKETS, hoard_bytes_max: 0 })
}

/// How a bazaar is.
pub struct Site {
    pub form: Form,
    /// The markets' numbers.
    pub markets: [u64; 2],
    /// Up to so much room their records take beside the coins.
    pub hoard_bytes_max: usize,
}

/// The same with other markets.
pub fn furnish_as(server: &mut Server, ledger: Option<Ledger>, site: &Site) -> Result<(), ServerError> {
    let Site { form, markets, hoard_bytes_max } = *site;
    let places = Places::default();
    let kinds =
        [0, 1].map(|number| Market { number, places: places.clone(), ledger: ledger.clone(), form, hoard_bytes_max });
    let mut plans = Vec::new();
    for (number, kind) in kinds.into_iter().enumerate() {
        let plan = NewWorld::new(server.add_kind(kind)?, number as u64).saved_as(markets[number]);
        places.lock().unwrap()[number] = Some(server.create_world_as(plan.clone())?);
        plans.push(plan);
    }
    let [north, south] = plans.try_into().expect("two");
    let (control, worlds) = (server.control(), *places.lock().unwrap());
    server.set_directory(Crossroads { control, plans: [north, south], markets, worlds, places, asked: [None, None] });
    Ok(())
}

/// A bazaar whose saves are in this store.
pub fn open(settings: &SimulationSettings, store: Option<Box<dyn Store>>, form: Form) -> Simulation {
    let build = |server: &mut Server| -> Result<(), ServerError> {
        store.map_or(Ok(()), |store| server.save_in(store))?;
        furnish(server, None, form)
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
            luck if luck < panics => Wish::Panic { bug: rng.random_range(0..BUGS) },
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

/// What is in the chest of a market that was saved, in whichever form.
fn chest_in(state: &[u8]) -> Chest {
    if !state.starts_with(b"throngcp") {
        let market: SavedMarket = envelope::read(state).unwrap();
        return Chest { coins: market.coins };
    }
    // The checkpoint says which of the two it is of.
    let load = |number| {
        let market =
            Market { number, places: Places::default(), ledger: None, form: Form::Checkpoint, hoard_bytes_max: 0 };
        let mut market = TestWorld::new(market, &protocol().schema(), number as u64);
        market.load(state, PlayerEntities::LeftOut).ok()?;
        market.ecs().get_resource::<Chest>().copied()
    };
    (0..2).find_map(load).expect("a market's")
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
                let (kind, state) = bytes[2..].split_at(usize::from(bytes[1]));
                // No other world has coins.
                if NAMES.iter().all(|name| name.as_bytes() != kind) {
                    return;
                }
                let chest = chest_in(state);
                wealth.chests.insert(key.id as u64, chest.coins);
                chest.coins
            }
            Kind::Cell | Kind::LeftOut => 0,
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
