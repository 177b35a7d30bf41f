//! What is saved of players and worlds, and what becomes of it in another run.

use throng::net::protocol::ClientId;

use super::{carrying::traveller, *};
use crate::{
    components::Door,
    gear::{Bag, piece},
    ground::{LIES_MS, Lies},
    portals::Destination::{DarkZone, Hub},
    protocol::{Handle, Said},
    saves::{SavedParts, saved_player},
    social::{SAVES_AWAY, SAVES_BACK},
    stash::Stash,
};

impl Headless {
    /// What a player would be saved as now.
    fn saved(&mut self, client: u32) -> Option<Traveller> {
        let client = ClientKey(client);
        let entity = self.ecs().resource::<Inbox>().players().entity(client);
        saved_player(self.ecs_mut(), PlayerToSave { client, client_id: ClientId(7), entity })
    }

    fn saved_world(&mut self) -> Vec<u8> {
        SavedParts.save(self.ecs_mut(), &[]).expect("within its limits")
    }

    /// Another run of the world, with what was saved.
    fn loaded(here: Destination, npcs: usize, bytes: &[u8]) -> Self {
        let mut loaded = Self::new(here, npcs, 9);
        SavedParts.load(loaded.ecs_mut(), bytes).expect("it was saved by this build");
        loaded
    }
}

fn with_gear(home: Option<u16>, numbers: &[u64]) -> Traveller {
    let mut bag = Bag::default();
    numbers.iter().for_each(|&number| bag.gear.put(piece(number)).expect("there is room"));
    let passport = Passport { home, name: PlayerName::new("Faye").unwrap(), kills: 5, deaths: 2 };
    Traveller { bag, ..traveller(40, passport) }
}

#[test]
fn a_player_is_saved_as_it_would_travel() {
    let mut zone = Headless::new(DarkZone, 0, 1);
    let carries = with_gear(Some(3), &[1, 2]);
    let player = zone.arrive_with(1, carries);
    zone.ticks(10);
    let saved = zone.saved(1).unwrap();
    assert_eq!((saved.bag, saved.inventory, saved.health), (carries.bag, carries.inventory, 40));
    assert_eq!((saved.passport, saved.passage), (carries.passport, None));
    assert!(Transfer::of(&saved).is_ok(), "it is within its limits, wherever its player looks");

    // Who logs in comes home, to whichever hideout that is now.
    let mut home = Headless::hideout(0, 2);
    home.world.arrive_saved(ClientKey(1), &saved).expect("the world can read it");
    let back = home.arrived(1);
    let passport = home.get::<Passport>(back);
    assert_eq!((passport.home, passport.kills), (Some(0), 5));
    assert_eq!((home.get::<Bag>(back), home.get::<Vitals>(back).health), (carries.bag, 40));
    assert_eq!(home.tally().of("turned_back"), 0);
    zone.ecs_mut().despawn(player);
    assert_eq!(zone.saved(1), None, "what is saved stays as it is");
}

#[test]
fn the_dead_are_saved_as_they_will_stand_up_and_what_they_lost_is_the_grounds() {
    let (mut zone, one, other) = duel(DarkZone, 8.0);
    zone.ecs_mut().get_mut::<Bag>(other).unwrap().gear.put(piece(1)).unwrap();
    zone.ecs_mut().resource_mut::<Arena>().ledger.load(1);
    zone.ecs_mut().get_mut::<Vitals>(other).unwrap().health = 1;
    zone.tick();
    assert!(exact_shot(&mut zone, one, other, WeaponKind::Rifle));
    assert!(!zone.get::<Vitals>(other).alive);
    let saved = zone.saved(2).unwrap();
    assert_eq!((saved.health, saved.bag, saved.passport.deaths), (HEALTH_MAX, Bag::default(), 1));
    let bytes = zone.saved_world();
    let mut loaded = Headless::loaded(DarkZone, 0, &bytes);
    loaded.tick();
    let lies = *loaded.ecs_mut().query::<&Lies>().single(loaded.world.ecs()).unwrap();
    assert_eq!(lies.gear, piece(1));
}

#[test]
fn what_lies_there_lies_as_long_as_it_would_have() {
    let mut hub = Headless::new(Hub, 0, 1);
    hub.arrive_with(1, with_gear(None, &[1, 2]));
    for number in [1, 2] {
        hub.world.request(ClientKey(1), &Handle::Drop(piece(number).id));
        hub.ticks(100);
    }
    let mut loaded = Headless::loaded(Hub, 0, &hub.saved_world());
    let lying = |world: &mut Headless| -> Vec<u64> {
        let mut lying = world.ecs_mut().query::<&Lies>();
        lying.iter(world.world.ecs()).map(|lies| lies.gear.id.number).collect()
    };
    // 200 and 100 ticks ago.
    let lies = ticks_of(LIES_MS, 20);
    assert_eq!(lying(&mut loaded), [1, 2]);
    loaded.ticks(lies - 205);
    assert_eq!(lying(&mut loaded), [1, 2]);
    loaded.ticks(10);
    assert_eq!(lying(&mut loaded), [2]);
    loaded.ticks(100);
    assert_eq!(lying(&mut loaded), Vec::<u64>::new());
    let ledger = &loaded.ecs().resource::<Arena>().ledger;
    assert_eq!((ledger.destroyed(), ledger.expected_here()), (2, 0));
}

#[test]
fn chests_and_open_doors_come_back() {
    let mut home = Headless::hideout(0, 1);
    home.arrive_with(1, with_gear(Some(0), &[4]));
    home.ecs_mut().query::<&mut Stash>().single_mut(home.world.ecs_mut()).unwrap().gear.put(piece(9)).unwrap();
    let mut loaded = Headless::loaded(Destination::Hideout, 0, &home.saved_world());
    loaded.tick();
    let stash = *loaded.ecs_mut().query::<&Stash>().single(loaded.world.ecs()).unwrap();
    assert_eq!(stash.gear.iter().collect::<Vec<_>>(), [piece(9)]);
    assert_eq!(loaded.ecs().resource::<Arena>().ledger.expected_here(), 1);

    let mut hub = Headless::new(Hub, 0, 1);
    hub.tick();
    let tick = *hub.ecs().resource::<TickInfo>();
    hub.ecs_mut().resource_mut::<Arena>().doors.open(2, &tick);
    hub.ticks(10);
    let mut loaded = Headless::loaded(Hub, 0, &hub.saved_world());
    let open = |world: &mut Headless| -> Vec<bool> {
        let mut doors = world.ecs_mut().query::<&Door>();
        doors.iter(world.world.ecs()).map(|door| door.open).collect()
    };
    loaded.tick();
    assert_eq!(open(&mut loaded), open(&mut hub));
    assert!(open(&mut loaded)[2]);
    loaded.ticks(80);
    assert!(open(&mut loaded).iter().all(|open| !open), "it has shut");
}

#[test]
fn bytes_that_are_no_saved_world_are_refused() {
    let mut hub = Headless::new(Hub, 0, 1);
    hub.arrive_with(1, with_gear(None, &[1]));
    hub.world.request(ClientKey(1), &Handle::Drop(piece(1).id));
    hub.ticks(2);
    let good = hub.saved_world();
    for length in 0..good.len() {
        assert!(SavedParts.load(Headless::new(Hub, 0, 9).ecs_mut(), &good[..length]).is_err());
    }
}

/// Promise: players are told once when saves are held up and once when they are not any more, and so is who comes meanwhile.
#[test]
fn players_are_told_how_their_saves_are() {
    let mut hub = Headless::new(Hub, 0, 1);
    let said = |hub: &Headless, client| {
        let told = hub.world.told::<Said>(ClientKey(client));
        told.iter().map(|said| format!("{}: {}", &*said.speaker, &*said.words)).collect::<Vec<_>>()
    };
    let line = |(speaker, words)| [format!("{speaker}: {words}")];
    hub.arrive(1);
    hub.tick();
    assert!(said(&hub, 1).is_empty(), "all is well");
    hub.world.set_saves_away(true);
    // In the very tick.
    hub.arrive(2);
    assert_eq!((said(&hub, 1), said(&hub, 2)), (line(SAVES_AWAY).into(), line(SAVES_AWAY).into()));
    hub.arrive_with(3, with_gear(None, &[]));
    assert_eq!((said(&hub, 1), said(&hub, 3)), (vec![], line(SAVES_AWAY).into()));
    hub.world.set_saves_away(false);
    hub.tick();
    for client in 1..=3 {
        assert_eq!(said(&hub, client), line(SAVES_BACK));
    }
    hub.arrive(4);
    assert!((1..=4).all(|client| said(&hub, client).is_empty()));
}
