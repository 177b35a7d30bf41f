//! Bands: who is in which district.
//!
//! Whoever connects goes to the first district with room, so that bands are full. A player that comes back is placed anew: it
//! has left nothing behind. A district that has ended is made again, by the same plan, when somebody is placed there.

use std::collections::HashMap;

use throng::{
    directory::{Directory, Placement},
    lifecycle::{NewWorld, Pending},
    prelude::*,
    server::ServerControl,
};
use throng_net::protocol::{ClientId, UserData};

/// Players in one district at most.
pub const BAND: usize = 8;

pub(super) struct Bands {
    control: ServerControl,
    districts: Vec<Band>,
    of_client: HashMap<u64, usize>,
}

struct Band {
    plan: NewWorld,
    world: BandWorld,
    players: usize,
}

enum BandWorld {
    There(WorldId),
    Asked(Pending<WorldId>),
    Ended,
}

impl Bands {
    pub fn new(control: ServerControl, plans: Vec<NewWorld>, worlds: Vec<WorldId>) -> Self {
        let band = |(plan, world)| Band { plan, world: BandWorld::There(world), players: 0 };
        Self { control, districts: plans.into_iter().zip(worlds).map(band).collect(), of_client: HashMap::new() }
    }
}

impl Directory for Bands {
    fn place(&mut self, client_id: ClientId, _: &UserData) -> Placement {
        let number = match self.of_client.get(&client_id.0) {
            Some(number) => *number,
            None => {
                let Some(number) = self.districts.iter().position(|band| band.players < BAND) else {
                    return Placement::Refuse("every district has its band");
                };
                self.districts[number].players += 1;
                self.of_client.insert(client_id.0, number);
                number
            }
        };
        let band = &mut self.districts[number];
        match &band.world {
            BandWorld::There(world) => return Placement::World(*world),
            BandWorld::Ended => band.world = BandWorld::Asked(self.control.create_world(band.plan.clone())),
            BandWorld::Asked(answer) => match answer.try_take() {
                None => {}
                Some(Ok(world)) => {
                    band.world = BandWorld::There(world);
                    return Placement::World(world);
                }
                Some(Err(_)) => {
                    band.world = BandWorld::Ended;
                    self.left(client_id);
                    return Placement::Refuse("its district cannot be made");
                }
            },
        }
        Placement::Pending
    }

    fn left(&mut self, client_id: ClientId) {
        if let Some(number) = self.of_client.remove(&client_id.0) {
            self.districts[number].players -= 1;
        }
    }

    fn world_ended(&mut self, world: WorldId) {
        let is_it = |band: &&mut Band| matches!(band.world, BandWorld::There(there) if there == world);
        if let Some(band) = self.districts.iter_mut().find(is_it) {
            band.world = BandWorld::Ended;
        }
    }
}
