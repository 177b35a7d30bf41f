//! A bot that plays: it picks flowers, and now and then goes through the door. What it sees is what a player's client sees.

use throng_bots::prelude::*;

use crate::{
    players::REACH_M,
    protocol::{Basket, GoThrough, Pick, Position, Sort, Walk},
    worlds::{BARN_DOOR, BARN_HALF_M, FIELD_DOOR},
};

/// One bot, with what it has done so far.
#[derive(Default)]
pub struct Bot {
    goal: Option<Goal>,
    /// The stay in a world that it knows of.
    epoch: Option<u8>,
    flowers: u16,
    turns: u64,
    picked: u64,
    journeys: u64,
}

#[derive(Clone, Copy)]
enum Goal {
    Door(Position),
    Flower(Position),
    Anywhere(Position),
}

impl Behaviour for Bot {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        self.hear(client);
        // Before the first world, and for a moment between two, there is none.
        let Some(world) = client.world() else { return };
        if self.epoch.is_none_or(|known| known != world.epoch) {
            self.journeys += u64::from(self.epoch.is_some());
            self.epoch = Some(world.epoch);
            self.goal = None;
        }
        let is_in_barn = world.name == "barn";
        let own = client.own_entity().and_then(|own| client.replicas().get::<Position>(own).copied());
        let Some(own) = own else { return };
        let goal = match self.goal {
            Some(goal) => goal,
            None => {
                self.turns += 1;
                choose(client, &own, is_in_barn, rng)
            }
        };
        let (Goal::Door(place) | Goal::Flower(place) | Goal::Anywhere(place)) = goal;
        let is_there = own.distance_m(&place) < REACH_M / 2.0;
        if is_there {
            // A request is refused while as many wait to be sent as may: there is a next time.
            let _ = match goal {
                Goal::Door(_) => client.request(&GoThrough),
                Goal::Flower(_) => client.request(&Pick),
                Goal::Anywhere(_) => Ok(()),
            };
        }
        self.goal = (!is_there).then_some(goal);
        // Between two worlds inputs are refused; the next turn is soon.
        let _ = client.send_input(now, &towards(&own, &place));
    }

    fn counters(&self) -> BehaviourCounters {
        let counters = BehaviourCounters::new().with("turns", self.turns);
        counters.with("flowers", self.picked).with("journeys", self.journeys)
    }
}

impl Bot {
    fn hear(&mut self, client: &Client) {
        for message in client.messages() {
            let Some(Basket { flowers }) = message.read() else { continue };
            self.picked += u64::from(flowers.saturating_sub(self.flowers));
            self.flowers = flowers;
        }
    }
}

/// The door, a flower in sight, or just a place.
fn choose(client: &Client, own: &Position, is_in_barn: bool, rng: &mut Xoshiro256PlusPlus) -> Goal {
    if rng.random_bool(0.25) {
        return Goal::Door(if is_in_barn { BARN_DOOR } else { FIELD_DOOR });
    }
    let replicas = client.replicas();
    let flowers = replicas.iter::<Sort>().filter(|(_, sort)| **sort == Sort::Flower);
    let places = flowers.filter_map(|(flower, _)| replicas.get::<Position>(flower));
    let nearest = places.min_by(|a, b| a.distance_m(own).total_cmp(&b.distance_m(own)));
    nearest.map_or_else(|| Goal::Anywhere(Position::anywhere(rng, BARN_HALF_M)), |place| Goal::Flower(*place))
}

/// At full speed, or slower where that would be too far.
fn towards(own: &Position, goal: &Position) -> Walk {
    let distance_m = own.distance_m(goal).max(1.0);
    let [x, z] = [goal.x - own.x, goal.z - own.z].map(|way_m| (127.0 * way_m / distance_m) as i8);
    Walk { x, z }
}
