//! A build in which what a player is has changed more than its fields can say: it reads what the build before it saved.

use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{
    directory::Everybody,
    lifecycle::NewWorld,
    prelude::*,
    server::{Server, ServerError},
};
use throng_bots::Behaviour;
use throng_client::Client;
use throng_pack::HasSchema;
use throng_persistence::{Embedded, Store, disk::MemoryDisk, versions::Versions};
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

const WORLD: u64 = 1;

#[derive(Debug, Clone, PartialEq, Component, Pack)]
#[pack(name = "farm.farmer", version = 1)]
struct FarmerV1 {
    coins: u32,
}

#[derive(Debug, Clone, PartialEq, Component, Pack)]
#[pack(name = "farm.farmer", version = 2)]
struct Farmer {
    gold: u32,
    silver: u8,
}

fn farmers() -> Versions<Farmer> {
    Versions::new().migrate(|old: FarmerV1| Farmer { gold: old.coins / 100, silver: (old.coins % 100) as u8 })
}

/// What a build makes of who arrives.
trait Build: HasSchema + Component + Clone {
    fn arrived(transfer: Option<&Transfer>) -> Self;

    fn also_takes_in(_: &mut WorldBuilder) {}
}

impl Build for FarmerV1 {
    fn arrived(transfer: Option<&Transfer>) -> FarmerV1 {
        transfer.map_or(FarmerV1 { coins: 230 }, |transfer| transfer.read().expect("checked at the door"))
    }
}

impl Build for Farmer {
    fn arrived(transfer: Option<&Transfer>) -> Farmer {
        let new = Farmer { gold: 0, silver: 0 };
        transfer.map_or(new, |transfer| farmers().read(transfer.bytes()).expect("checked at the door"))
    }

    fn also_takes_in(world: &mut WorldBuilder) {
        world.accept_older_transfers::<FarmerV1>();
    }
}

struct Farm<T>(std::marker::PhantomData<fn(T)>);

impl<T: Build> WorldKind for Farm<T> {
    fn name(&self) -> &str {
        "farm"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.save_players(|ecs, player| ecs.get::<T>(player.entity?).cloned());
        T::also_takes_in(world);
        world.add_systems(Update, |arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands| {
            for Arrival { client, transfer, .. } in &arrivals.0 {
                let farmer = commands.spawn((Replicated::default(), T::arrived(transfer.as_ref()))).id();
                outbox.set_player(*client, farmer);
            }
        });
    }
}

struct Idle;

impl Behaviour for Idle {
    fn think(&mut self, _: Nanos, _: &mut Client, _: &mut Xoshiro256PlusPlus) {}
}

/// The one player comes, and all is saved. Returns what the player is then.
fn play<T: Build>(disk: &MemoryDisk) -> T {
    let build = |server: &mut Server| -> Result<WorldId, ServerError> {
        server.save_in(Box::new(Embedded::on(Box::new(disk.clone())).expect("it can be opened")))?;
        let kind = server.add_kind(Farm::<T>(std::marker::PhantomData))?;
        let world = server.create_world_as(NewWorld::new(kind, WORLD))?;
        server.set_directory(Everybody(world));
        Ok(world)
    };
    let settings = SimulationSettings::new(Protocol::new().schema(), 1);
    let (mut farm, world) = Simulation::new(&settings, build).unwrap();
    farm.join(Box::new(Idle));
    assert!(farm.run_until(10.0, |farm| farm.totals().playing == 1), "the player is in");
    farm.run_for(1.0);
    let saved = farm.server_mut().control().save_now();
    assert!(farm.run_until(5.0, |_| saved.try_take().is_some_and(|saved| saved.is_ok())), "it is saved");
    let ecs = farm.server_mut().world_mut(world).expect("it is there").ecs_mut();
    ecs.query::<&T>().single(ecs).expect("one player").clone()
}

#[test]
fn what_an_older_build_saved_of_a_player_is_read_by_a_newer_one() {
    let disk = MemoryDisk::default();
    assert_eq!(play::<FarmerV1>(&disk), FarmerV1 { coins: 230 });
    assert_eq!(play::<Farmer>(&disk), Farmer { gold: 2, silver: 30 });
    // It is in the new version now.
    let store = Embedded::on(Box::new(disk.clone())).unwrap();
    let mut farmers = Vec::new();
    store.reader().visit(&mut |_, saved| farmers.extend(saved.ok().map(|saved| saved.value))).unwrap();
    assert_eq!(farmers.len(), 1);
    let packed = Transfer::of(&Farmer { gold: 2, silver: 30 }).unwrap();
    assert!(farmers[0].ends_with(packed.bytes()), "{farmers:?}");
}
