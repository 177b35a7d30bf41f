//! Stalls: worlds beside the markets, as many as are asked for, which nobody visits and which are saved all the same.
//!
//! A stall sells one piece in each tick, and keeps what it has sold in all its lives and the stock that follows from it. With
//! its first tick it tells the ledger what it was made again with, so that whoever listens knows when all of them tick; the
//! first of them goes on telling, so that they know, too, when it did last.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use throng::{lifecycle::NewWorld, prelude::*, server::Server};
use throng_faults::{FaultPlugin, WorldFault};
use throng_pack::{List, Pack, envelope};
use throng_persistence::{Key, Reads};

use crate::markets::{Ledger, protocol};

/// Numbers that stalls are saved under begin here: far above those that markets may have.
pub const STALLS_FROM: u64 = 2_000_000;

/// In what the ledger is told: this is a stall, and what it has sold.
pub const STALL: u64 = 1 << 62;

/// As large as a world with some things in it.
const STOCK_BYTES: usize = 2_048;

/// What a stall has, and what is saved of it.
#[derive(Debug, Clone, PartialEq, Eq, Resource, Pack)]
#[pack(name = "bazaar.stall")]
pub struct Stall {
    /// In all its lives.
    pub sold: u32,
    stock: List<u8, STOCK_BYTES>,
}

impl Stall {
    fn new(sold: u32) -> Stall {
        let stock = vec![sold as u8; STOCK_BYTES].try_into().expect("as many as there is room for");
        Stall { sold, stock }
    }

    fn is_whole(&self) -> bool {
        *self == Stall::new(self.sold)
    }
}

/// Which of them it is, and whether it has told the ledger.
#[derive(Resource)]
struct Sign {
    number: u64,
    ledger: Option<Ledger>,
    is_told: bool,
}

pub struct StallKind {
    pub ledger: Option<Ledger>,
    /// Of the first stall.
    pub faults: Vec<WorldFault>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, SystemSet)]
struct Sells;

struct StallState;

impl WorldState for StallState {
    fn save(&self, ecs: &mut World, _: &[Entity]) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let stall = Stall::new(ecs.resource::<Stall>().sold);
        envelope::write(&stall, &mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn load(&self, ecs: &mut World, bytes: &[u8]) -> Result<(), String> {
        let stall: Stall = envelope::read(bytes).map_err(|error| error.to_string())?;
        if !stall.is_whole() {
            return Err("a stall whose stock is not what it has sold".into());
        }
        ecs.insert_resource(stall);
        Ok(())
    }
}

impl WorldKind for StallKind {
    fn name(&self) -> &str {
        "stall"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        let number = world.seed();
        let sign = Sign { number, ledger: self.ledger.clone(), is_told: false };
        world.insert_resource(sign).insert_resource(Stall::new(0)).save_world(StallState);
        world.add_systems(Update, sell.in_set(Sells));
        if !self.faults.is_empty() {
            let faults = if number == 0 { self.faults.clone() } else { Vec::new() };
            world.add_plugins(FaultPlugin { faults, first: Sells, last: Sells });
        }
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

fn sell(mut stall: ResMut<Stall>, mut sign: ResMut<Sign>) {
    if !sign.is_told || sign.number == 0 {
        sign.is_told = true;
        sign.ledger.iter().for_each(|ledger| ledger.tell([(sign.number | STALL, stall.sold)].into_iter()));
    }
    stall.sold += 1;
}

/// Makes so many stalls, numbered from 0 on; the first has these faults.
pub fn furnish_stalls(
    server: &mut Server,
    count: u32,
    ledger: Option<Ledger>,
    faults: Vec<WorldFault>,
) -> Result<(), throng::server::ServerError> {
    if count == 0 {
        return Ok(());
    }
    let kind = server.add_kind(StallKind { ledger, faults })?;
    for number in 0..u64::from(count) {
        server.create_world_as(NewWorld::new(kind, number).saved_as(STALLS_FROM + number))?;
    }
    Ok(())
}

/// What each stall in a store has sold; the error is that one is not whole, in words.
pub fn look_at_stalls(reads: &dyn Reads) -> Result<BTreeMap<u64, u32>, String> {
    let (mut stalls, mut outcome) = (BTreeMap::new(), Ok(()));
    let all = Key::world(STALLS_FROM)..=Key::world(u64::MAX);
    let read = reads.range(all, &mut |key, saved| {
        let read = saved.map_err(|error| error.to_string()).and_then(|saved| {
            // Heading: two bytes and the kind's name.
            let state = saved.value.get(2 + usize::from(saved.value[1])..).unwrap_or_default();
            envelope::read::<Stall>(state).map_err(|error| error.to_string())
        });
        match read {
            Ok(stall) if stall.is_whole() => _ = stalls.insert(key.id as u64 - STALLS_FROM, stall.sold),
            Ok(stall) => outcome = Err(format!("{key} has sold {} and another stock", stall.sold)),
            Err(error) => outcome = Err(format!("{key}: {error}")),
        }
    });
    read.map_err(|error| error.to_string())?;
    outcome.map(|()| stalls)
}
