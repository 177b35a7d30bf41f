//! The promise: what a client says reaches its world as a value, with its player; what a world says reaches that client
//! alone; and what a kind of world does not take, or not so often, reaches nobody and is counted.

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{Server, prelude::*, server::ServerError};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::{Client, SendInputError, SendMessageError};
use throng_net::transport::Impairment;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

#[derive(Pack, Debug, Clone, Copy)]
struct Nudge {
    #[pack(max = 10)]
    strength: u8,
}

impl ClientInput for Nudge {}

#[derive(Pack, Debug, Clone, Copy)]
struct Buy {
    thing: u16,
}

impl ClientRequest for Buy {
    const PER_S_MAX: u16 = 2;
}

/// Taken in another kind of world, of which there is none here.
#[derive(Pack, Debug, Clone, Copy)]
struct Steal;

impl ClientRequest for Steal {}

#[derive(Pack, Debug, Clone, Copy, PartialEq)]
struct Bill {
    thing: u16,
    nudges: u32,
}

impl ClientMessage for Bill {}

/// In nobody's schema.
#[derive(Pack, Debug, Clone, Copy)]
struct Unknown;

impl ClientInput for Unknown {}
impl ClientRequest for Unknown {}

struct Shop;

impl WorldKind for Shop {
    fn name(&self) -> &str {
        "shop"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().input::<Nudge>().request::<Buy>().message::<Bill>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(Update, (welcome, serve).chain());
    }
}

#[derive(Component, Default)]
struct Customer {
    nudges: u32,
}

fn welcome(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for arrival in &arrivals.0 {
        outbox.set_player(arrival.client, commands.spawn(Customer::default()).id());
    }
}

fn serve(nudges: Inputs<Nudge>, asked: Requests<Buy>, mut customers: Query<&mut Customer>, mut outbox: ResMut<Outbox>) {
    for (sender, &Nudge { strength }) in nudges.read() {
        let Some(Ok(mut customer)) = sender.entity.map(|own| customers.get_mut(own)) else { continue };
        customer.nudges += u32::from(strength);
    }
    for (sender, &Buy { thing }) in asked.read() {
        let Some(Ok(customer)) = sender.entity.map(|own| customers.get(own)) else { continue };
        throng::count!("sold");
        outbox.send(sender.client, &Bill { thing, nudges: customer.nudges }).unwrap();
    }
}

/// The protocol of a kind of world that is not there.
fn alley() -> Protocol {
    Protocol::new().request::<Steal>()
}

fn settings() -> SimulationSettings {
    SimulationSettings::new(Protocol::union([&Shop.protocol(), &alley()]), 5)
}

fn shop(server: &mut Server) -> Result<(), ServerError> {
    let shop = server.add_kind(Shop)?;
    server.create_world(shop, 1).map(drop)
}

/// Buys things by number, and holds the bills against that.
struct Buyer {
    /// Requests in each thought.
    asks: u16,
    steals: bool,
    next: u16,
    bills: Vec<Bill>,
}

impl Buyer {
    fn new(asks: u16, steals: bool) -> Box<Self> {
        Box::new(Self { asks, steals, next: 0, bills: Vec::new() })
    }
}

impl Behaviour for Buyer {
    fn think(&mut self, now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
        for message in client.messages() {
            let bill: Bill = message.read().expect("there are no other messages");
            let last = self.bills.last().map_or(0, |last| last.nudges);
            assert!(bill.nudges >= last, "in order");
            self.bills.push(bill);
        }
        if client.world().is_none() {
            return;
        }
        let _ = client.send_input(now, &Nudge { strength: 1 });
        assert!(matches!(client.send_input(now, &Nudge { strength: 11 }), Err(SendInputError::Value(_))));
        assert!(matches!(client.send_input(now, &Unknown), Err(SendInputError::NotInSchema("Unknown"))));
        assert!(matches!(client.request(&Unknown), Err(SendMessageError::NotInSchema("Unknown"))));
        for _ in 0..self.asks {
            self.next = self.next.wrapping_add(1);
            let _ = client.request(&Buy { thing: self.next });
        }
        if self.steals {
            let _ = client.request(&Steal);
        }
    }

    fn counters(&self) -> BehaviourCounters {
        let skipped = self.bills.windows(2).filter(|pair| pair[1].thing != pair[0].thing + 1).count();
        BehaviourCounters::new()
            .with("bills", self.bills.len() as u64)
            .with("skipped", skipped as u64)
            .with("nudges", self.bills.last().map_or(0, |bill| bill.nudges.into()))
    }
}

#[test]
fn what_is_asked_for_is_answered_in_order_on_a_bad_line() {
    let impairment = Impairment { loss: 0.05, reordering: 0.1, delay: Nanos::from_millis(20), ..Impairment::NONE };
    let settings = SimulationSettings { think_hz: 1, impairment, ..settings() };
    let (mut simulation, ()) = Simulation::new(&settings, shop).unwrap();
    (0..3).for_each(|_| _ = simulation.join(Buyer::new(1, false)));
    simulation.run_for(30.0);
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.counter("skipped")), (3, 0), "{totals:#?}");
    assert!((70..=90).contains(&totals.counter("bills")), "{totals:#?}");
    assert!(totals.counter("nudges") > 60, "{totals:#?}");
    let report = simulation.server_mut().report();
    assert_eq!((report.counters["net.said_over_limit"], report.counters["net.messages_refused"]), (0, 0));
}

/// Promise: a client that asks more often than a kind allows is served at the kind's rate, whatever the world's.
#[test]
fn who_asks_too_often_is_served_at_the_rate_of_the_kind() {
    let settings = SimulationSettings { think_hz: 10, ..settings() };
    let (mut simulation, ()) = Simulation::new(&settings, shop).unwrap();
    simulation.join(Buyer::new(3, false));
    simulation.run_for(12.0);
    let totals = simulation.totals();
    assert_eq!(totals.playing, 1, "it is served on");
    assert!((20..=26).contains(&totals.counter("bills")), "two a second: {totals:#?}");
    let report = simulation.server_mut().report();
    let over = report.counters["net.said_over_limit"];
    assert!((250..=340).contains(&over), "{over} of 30 a second");
}

#[test]
fn what_is_not_taken_here_is_refused_before_the_game_sees_it() {
    let settings = SimulationSettings { think_hz: 10, ..settings() };
    let (mut simulation, ()) = Simulation::new(&settings, shop).unwrap();
    simulation.join(Buyer::new(0, true));
    simulation.run_for(5.0);
    assert_eq!(simulation.totals().playing, 1);
    let refused = simulation.server_mut().report().counters["net.messages_refused"];
    assert!((35..=52).contains(&refused), "{refused}");
}

/// Promise: a kind that declares what clients and server have not agreed on does not come into a server.
#[test]
fn a_kind_that_the_schema_lacks_is_refused_by_name() {
    let settings = SimulationSettings::new(alley().schema(), 5);
    let error = Simulation::new(&settings, shop).err().expect("it is refused").to_string();
    assert!(error.contains("`shop`") && error.contains("`Nudge`"), "{error}");
}
