//! The promise: an event may refer to an entity that was spawned in the very tick in which it is said, and clients find
//! that entity by the link. Written when it was said, it would refer to nobody.

use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{platform::time::Nanos, prelude::*};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_simulator::{Simulation, SimulationSettings};

#[derive(Component, Clone, Debug, PartialEq, Replicate)]
struct Egg {
    number: u16,
}

/// Its link has another length than one to nobody, and other events lie before and after it.
#[derive(Clone, Debug, PartialEq, Replicate)]
struct Laid {
    egg: EntityLink,
    number: u16,
}

impl ReplicatedEvent for Laid {
    const RELIABLE: bool = true;
    const RANGE_M: Option<f32> = None;
}

struct Coop;

impl WorldKind for Coop {
    fn name(&self) -> &str {
        "coop"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Egg>().event::<Laid>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(Update, lay);
    }
}

fn lay(tick: Res<TickInfo>, eggs: Query<(Entity, &Egg)>, mut events: ResMut<Events>, mut commands: Commands) {
    let number = tick.tick as u16;
    events.send(&Laid { egg: EntityLink::NONE, number }, Audience::Everyone, "coop.nothing");
    let egg = commands.spawn((Replicated::default(), Egg { number })).id();
    events.send(&Laid { egg: egg.into(), number }, Audience::Everyone, "coop.lay");
    // One of an earlier tick has its id already.
    for (egg, Egg { number }) in eggs.iter().take(1) {
        events.send(&Laid { egg: egg.into(), number: *number }, Audience::Everyone, "coop.look");
    }
}

/// Looks for each egg that it hears of, which may come into its view some ticks later.
#[derive(Default)]
struct Listener {
    to_nobody: u64,
    looked_for: Vec<(NetId, u16)>,
    found: u64,
    wrong: u64,
}

impl Behaviour for Listener {
    fn think(&mut self, _: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        for Laid { egg, number } in client.events_of::<Laid>() {
            match egg.id() {
                None => self.to_nobody += 1,
                Some(id) => self.looked_for.push((id, number)),
            }
        }
        let Self { looked_for, found, wrong, .. } = self;
        looked_for.retain(|(id, number)| match client.replicas().get::<Egg>(*id) {
            None => true,
            Some(egg) => {
                *if egg.number == *number { &mut *found } else { &mut *wrong } += 1;
                false
            }
        });
    }

    fn counters(&self) -> BehaviourCounters {
        let Self { to_nobody, found, wrong, .. } = *self;
        BehaviourCounters::new().with("to_nobody", to_nobody).with("found", found).with("wrong", wrong)
    }
}

#[test]
fn an_event_refers_to_who_was_spawned_in_its_tick() {
    let settings = SimulationSettings::new(Coop.protocol().schema(), 1);
    let (mut simulation, _) = Simulation::new(&settings, |server| {
        let coop = server.add_kind(Coop)?;
        server.create_world(coop, 1)
    })
    .expect("its systems can be put in an order");
    simulation.join(Box::new(Listener::default()));
    simulation.run_for(3.0);
    let totals = simulation.totals();
    let [to_nobody, found, wrong] = ["to_nobody", "found", "wrong"].map(|name| totals.counter(name));
    assert!(to_nobody > 20, "{totals:?}");
    // In each tick one that is new and one that was there; the last ones are still on their way into view.
    assert!(found + 20 > 2 * to_nobody, "{totals:?}");
    assert_eq!((wrong, totals.protocol_errors), (0, 0), "{totals:?}");
}
