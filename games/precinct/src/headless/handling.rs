//! Gear in worlds that ship: found, lost, kept and traded, and never twice or nowhere.

use std::collections::BTreeSet;

use throng::prelude::NetId;
use throng_replication::ecs::Replicated;

use super::{carrying::traveller, *};
use crate::{
    gear::{BAG_MAX, Bag, Gear, GearKind, piece},
    ground::{LIES_MS, LYING_MAX, Lies},
    lives::LifeClock,
    portals::Destination::{self, DarkZone, Hub},
    protocol::{Acceptance, Carried, Handle, Offer, Offered, Stashed},
    stash::{STASH_MAX, Stash},
    trades::HOLDS_MS,
};

const STREET: Vec3 = Vec3::new(16.0, 0.0, 16.0);

fn with_gear(home: Option<u16>, numbers: &[u64]) -> Traveller {
    let mut bag = Bag::default();
    numbers.iter().for_each(|&number| bag.gear.put(piece(number)).expect("there is room"));
    let passport = Passport { home, name: PlayerName::new("Faye").unwrap(), kills: 0, deaths: 0 };
    Traveller { bag, ..traveller(100, passport) }
}

impl Headless {
    /// Somebody with this gear who stands so far along the street.
    fn stand(&mut self, client: u32, along_m: f32, numbers: &[u64]) -> Entity {
        let player = self.arrive_with(client, with_gear(None, numbers));
        self.put(player, STREET + Vec3::Z * along_m);
        player
    }

    fn ask(&mut self, client: u32, handle: Handle) {
        self.world.request(ClientKey(client), &handle);
        self.tick();
        self.check_gear();
    }

    fn bag(&self, player: Entity) -> Vec<u64> {
        self.get::<Bag>(player).gear.iter().map(|gear| gear.id.number).collect()
    }

    fn id(&self, entity: Entity) -> NetId {
        self.ecs().get::<Replicated>(entity).unwrap().id().expect("it has been here for a tick")
    }

    fn on_ground(&mut self) -> Vec<(Entity, Gear)> {
        let mut lying = self.ecs_mut().query::<(Entity, &Lies)>();
        lying.iter(self.world.ecs()).map(|(entity, lies)| (entity, lies.gear)).collect()
    }

    fn stash(&mut self) -> Vec<u64> {
        let mut chests = self.ecs_mut().query::<&Stash>();
        chests.single(self.world.ecs()).unwrap().gear.iter().map(|gear| gear.id.number).collect()
    }

    /// Asserts that there is as much as there must be, and nothing twice.
    fn check_gear(&mut self) {
        let mut all: Vec<Gear> = self.on_ground().into_iter().map(|(_, gear)| gear).collect();
        let mut bags = self.ecs_mut().query::<&Bag>();
        all.extend(bags.iter(self.world.ecs()).flat_map(|bag| bag.gear.iter()));
        let mut chests = self.ecs_mut().query::<&Stash>();
        all.extend(chests.iter(self.world.ecs()).flat_map(|stash| stash.gear.iter()));
        let ids: BTreeSet<_> = all.iter().map(|gear| gear.id).collect();
        assert_eq!(ids.len(), all.len(), "twice: {all:?}");
        let ledger = &self.ecs().resource::<Arena>().ledger;
        assert_eq!(all.len() as i64, ledger.expected_here(), "{ledger:?}: {all:?}");
    }

    fn told_last<T: ClientMessage>(&self, client: u32) -> Option<T> {
        self.world.told::<T>(ClientKey(client)).into_iter().last()
    }
}

#[test]
fn an_npc_that_a_player_fells_leaves_a_piece_for_the_first_who_asks() {
    let mut zone = Headless::new(DarkZone, 1, 1);
    let (one, other) = (zone.stand(1, 0.0, &[]), zone.stand(2, 40.0, &[]));
    let npc = zone.ecs_mut().query_filtered::<Entity, With<Npc>>().single(zone.world.ecs()).unwrap();
    zone.put(npc, STREET + Vec3::Z * 6.0);
    zone.ecs_mut().get_mut::<Vitals>(npc).unwrap().health = 1;
    assert!(exact_shot(&mut zone, one, npc, WeaponKind::Rifle));
    zone.check_gear();
    let [(lies, gear)] = zone.on_ground()[..] else { panic!("one piece: {:?}", zone.on_ground()) };
    assert_eq!((gear.id.run, gear.id.world), (1, WorldId::new(2, 0)));
    let place = zone.get::<Pose>(lies).feet();

    let id = zone.id(lies);
    zone.ask(1, Handle::PickUp(id));
    assert_eq!((zone.bag(one).len(), zone.tally().of("gear_refused")), (0, 1), "6 m are too far");
    zone.put(one, place);
    zone.put(other, place);
    // Both in one tick: the first has it.
    zone.world.request(ClientKey(2), &Handle::PickUp(id));
    zone.ask(1, Handle::PickUp(id));
    assert_eq!((zone.bag(one).len(), zone.bag(other).len()), (0, 1));
    assert_eq!(zone.told_last::<Carried>(2).map(|told| told.bag), Some(zone.get::<Bag>(other)));
    assert_eq!((zone.tally().of("gear_found"), zone.tally().of("gear_picked_up")), (1, 1));
    zone.ask(1, Handle::PickUp(id));
    assert_eq!((zone.bag(one).len(), zone.tally().of("gear_refused")), (0, 3), "it is gone");
}

#[test]
fn who_dies_in_the_dark_zone_leaves_everything_and_what_nobody_takes_is_destroyed() {
    let mut zone = Headless::new(DarkZone, 0, 1);
    let (one, other) = (zone.stand(1, 0.0, &[]), zone.stand(2, 6.0, &[1, 2, 3]));
    zone.ticks(1);
    zone.ecs_mut().get_mut::<Vitals>(other).unwrap().health = 1;
    assert!(exact_shot(&mut zone, one, other, WeaponKind::Rifle));
    zone.check_gear();
    assert_eq!((zone.on_ground().len(), zone.bag(other).len()), (3, 0));
    assert_eq!(zone.told_last::<Carried>(2).map(|told| told.bag), Some(Bag::default()));
    let (taken, gear) = zone.on_ground()[0];
    zone.tick();
    zone.put(one, zone.get::<Pose>(taken).feet());
    let id = zone.id(taken);
    zone.ask(1, Handle::PickUp(id));
    assert_eq!(zone.bag(one), [gear.id.number]);
    for _ in 0..ticks_of(LIES_MS, zone.tick_hz) {
        zone.tick();
        zone.check_gear();
    }
    assert_eq!((zone.on_ground().len(), zone.tally().of("gear_expired")), (0, 2));
    assert_eq!(zone.ecs().resource::<Arena>().ledger.destroyed(), 2);
}

#[test]
fn a_full_bag_takes_no_more_and_a_full_ground_loses_its_oldest() {
    let mut hub = Headless::new(Hub, 0, 1);
    let full: Vec<u64> = (0..BAG_MAX as u64).collect();
    let (one, other) = (hub.stand(1, 0.0, &full), hub.stand(2, 1.0, &[90]));
    hub.ask(2, Handle::Drop(piece(90).id));
    let (lies, _) = hub.on_ground()[0];
    hub.tick();
    let id = hub.id(lies);
    hub.ask(1, Handle::PickUp(id));
    assert_eq!((hub.bag(one).len(), hub.on_ground().len()), (BAG_MAX, 1));
    hub.ask(1, Handle::Drop(piece(7).id));
    hub.ask(1, Handle::Drop(piece(7).id));
    assert_eq!((hub.bag(one).len(), hub.tally().of("gear_dropped")), (BAG_MAX - 1, 2), "once");
    hub.ask(1, Handle::PickUp(id));
    assert_eq!((hub.bag(one).last(), hub.bag(other).len()), (Some(&90), 0));

    for client in 10..10 + (LYING_MAX / BAG_MAX) as u32 {
        let numbers: Vec<u64> = (0..BAG_MAX as u64).map(|number| u64::from(client) * 100 + number).collect();
        hub.stand(client, 0.0, &numbers);
        numbers.iter().for_each(|&number| hub.ask(client, Handle::Drop(piece(number).id)));
    }
    assert_eq!((hub.on_ground().len(), hub.tally().of("gear_crowded_out")), (LYING_MAX, 1));
    assert!(hub.on_ground().iter().all(|(_, gear)| gear.id != piece(7).id), "the oldest");
}

#[test]
fn a_chest_keeps_what_its_owner_puts_in_and_nobody_elses_hands_reach_it() {
    let mut home = Headless::hideout(0, 1);
    let owner = home.arrive_with(1, with_gear(Some(0), &[1, 2, 3]));
    let chest = shared().chest.position();
    assert_eq!(home.told_last::<Stashed>(1).map(|told| told.stash), Some(Stash::default()));
    let put_in = Handle::PutIn(piece(2).id);
    home.put(owner, STREET);
    home.ask(1, put_in);
    assert_eq!((home.bag(owner).len(), home.tally().of("gear_refused")), (3, 1), "too far away");
    home.put(owner, chest);
    home.ask(1, put_in);
    home.ask(1, put_in);
    assert_eq!((home.bag(owner), home.stash()), (vec![1, 3], vec![2]));
    let guest = home.arrive_with(2, with_gear(Some(9), &[5]));
    home.put(guest, chest);
    home.ask(2, Handle::TakeOut(piece(2).id));
    home.ask(2, Handle::PutIn(piece(5).id));
    assert_eq!((home.bag(guest), home.stash()), (vec![5], vec![2]));

    // It stays when its owner goes, and is told when the owner comes.
    home.world.leave(ClientKey(1));
    home.tick();
    home.check_gear();
    let owner = home.arrive_with(3, with_gear(Some(0), &[1, 3]));
    assert_eq!(home.told_last::<Stashed>(3).unwrap().stash.gear.iter().count(), 1);
    home.put(owner, chest);
    home.ask(3, Handle::TakeOut(piece(2).id));
    assert_eq!((home.bag(owner), home.stash()), (vec![1, 3, 2], vec![]));

    // A full one takes no more.
    for number in 100..100 + STASH_MAX as u64 + 1 {
        let bringer = home.arrive_with(number as u32, with_gear(Some(0), &[number]));
        home.put(bringer, chest);
        home.ask(number as u32, Handle::PutIn(piece(number).id));
    }
    assert_eq!(home.stash().len(), STASH_MAX);
}

/// Two players in the hub, and what one offers the other.
struct Bargain {
    hub: Headless,
    players: [Entity; 2],
    ids: [NetId; 2],
}

impl Bargain {
    /// Numbers 0 and 6 are masks, 1 is a vest.
    fn new(one: &[u64], other: &[u64]) -> Self {
        let mut hub = Headless::new(Hub, 0, 1);
        let players = [hub.stand(1, 0.0, one), hub.stand(2, 3.0, other)];
        hub.tick();
        let ids = players.map(|player| hub.id(player));
        Self { hub, players, ids }
    }

    fn offer(&mut self, give: u64, want: Option<GearKind>) {
        self.hub.ask(1, Handle::Offer(Offer { to: self.ids[1], give: piece(give).id, want }));
    }

    fn accept(&mut self, get: u64, give: Option<u64>) {
        let give = give.map(|number| piece(number).id);
        self.hub.ask(2, Handle::Accept(Acceptance { from: self.ids[0], get: piece(get).id, give }));
    }

    fn fell_the_giver(&mut self) {
        let (giver, tick) = (self.players[0], self.hub.world.ticks_done());
        *self.hub.ecs_mut().get_mut::<Vitals>(giver).unwrap() = Vitals { health: 0, alive: false };
        self.hub.ecs_mut().get_mut::<LifeClock>(giver).unwrap().ends(tick, 20);
    }

    #[track_caller]
    fn check(&self, one: &[u64], other: &[u64]) {
        assert_eq!(self.players.map(|player| self.hub.bag(player)), [one.to_vec(), other.to_vec()]);
    }
}

#[test]
fn a_trade_moves_both_pieces_in_one_tick() {
    let mut bargain = Bargain::new(&[0, 2], &[1, 3]);
    bargain.offer(0, Some(GearKind::Vest));
    let offered = bargain.hub.told_last::<Offered>(2).expect("it is told");
    assert_eq!((offered.from, offered.gear, offered.want), (bargain.ids[0], piece(0), Some(GearKind::Vest)));
    bargain.check(&[0, 2], &[1, 3]);
    bargain.accept(0, Some(1));
    bargain.check(&[2, 1], &[3, 0]);
    assert_eq!(bargain.hub.tally().of("gear_traded"), 2);
    bargain.accept(0, Some(3));
    bargain.check(&[2, 1], &[3, 0]);
}

#[test]
fn a_full_bag_can_still_trade_one_for_one_and_a_gift_needs_room() {
    let full: Vec<u64> = (10..10 + BAG_MAX as u64).collect();
    let mut bargain = Bargain::new(&[0], &full);
    bargain.offer(0, None);
    bargain.accept(0, None);
    bargain.check(&[0], &full);
    bargain.offer(0, Some(piece(12).kind));
    bargain.accept(0, Some(12));
    bargain.check(&[12], &[10, 11, 13, 14, 15, 16, 17, 0]);
    let mut bargain = Bargain::new(&[0], &[]);
    bargain.offer(0, None);
    bargain.accept(0, None);
    bargain.check(&[], &[0]);
}

#[test]
fn what_was_not_agreed_is_not_traded() {
    let refused = |prepare: fn(&mut Bargain), get: u64, give: Option<u64>| {
        let mut bargain = Bargain::new(&[0, 2], &[1, 3]);
        bargain.offer(0, Some(GearKind::Vest));
        prepare(&mut bargain);
        let (before, refused) =
            (bargain.players.map(|player| bargain.hub.bag(player)), bargain.hub.tally().of("gear_refused"));
        bargain.accept(get, give);
        assert_eq!(bargain.players.map(|player| bargain.hub.bag(player)), before);
        assert_eq!(bargain.hub.tally().of("gear_refused"), refused + 1);
    };
    refused(|_| {}, 0, Some(3));
    refused(|_| {}, 0, None);
    refused(|_| {}, 0, Some(77));
    refused(|_| {}, 2, Some(1));
    refused(|bargain| bargain.hub.ask(1, Handle::Drop(piece(0).id)), 0, Some(1));
    refused(|bargain| bargain.offer(2, None), 0, Some(1));
    refused(|bargain| bargain.hub.put(bargain.players[0], STREET + Vec3::Z * 20.0), 0, Some(1));
    refused(|bargain| bargain.fell_the_giver(), 0, Some(1));
    refused(|bargain| bargain.hub.ticks(ticks_of(HOLDS_MS, 20)), 0, Some(1));
}

#[test]
fn who_was_taken_by_a_portal_in_this_very_tick_does_not_trade() {
    let mut bargain = Bargain::new(&[0, 2], &[1, 3]);
    let Bargain { hub, players: [one, other], ids: [from, to] } = &mut bargain;
    hub.tick();
    let portal = shared().portals.to(DarkZone).middle;
    hub.put(*other, portal + Vec3::Z * 4.0);
    hub.put(*one, portal + Vec3::Z * 9.0);
    hub.ask(1, Handle::Offer(Offer { to: *to, give: piece(0).id, want: Some(GearKind::Vest) }));
    assert_eq!(hub.tally().of("gear_offered"), 1);
    hub.put(*one, portal);
    let acceptance = Acceptance { from: *from, get: piece(0).id, give: Some(piece(1).id) };
    hub.ask(2, Handle::Accept(acceptance));
    assert_eq!((hub.tally().of("travels"), hub.tally().of("gear_refused")), (1, 1));
    assert_eq!(hub.bag(*other), [1, 3]);
}

#[test]
fn nobody_trades_with_itself_or_in_a_hideout() {
    let mut bargain = Bargain::new(&[0], &[1]);
    bargain.hub.ask(1, Handle::Offer(Offer { to: bargain.ids[0], give: piece(0).id, want: None }));
    let mut home = Headless::hideout(0, 1);
    let players = [home.stand(1, 0.0, &[0]), home.stand(2, 3.0, &[1])];
    home.tick();
    let to = home.id(players[1]);
    home.ask(1, Handle::Offer(Offer { to, give: piece(0).id, want: None }));
    assert_eq!((bargain.hub.tally().of("gear_offered"), home.tally().of("gear_offered")), (0, 0));
    assert_eq!((bargain.hub.tally().of("gear_refused"), home.tally().of("gear_refused")), (1, 1));
}

#[test]
fn a_journey_takes_the_whole_bag_along_and_the_ledger_says_so() {
    let mut zone = Headless::new(Destination::DarkZone, 0, 1);
    let player = zone.stand(1, 0.0, &[1, 2]);
    zone.stand(2, 3.0, &[3]);
    zone.check_gear();
    zone.walk_into_portal(player, Hub);
    zone.check_gear();
    assert_eq!(zone.ecs().resource::<Arena>().ledger.travelled(), (3, 2));
}

/// Promise: with gear in bags, in the chest and on the ground a steady tick asks for nothing and allocates nothing.
#[test]
fn gear_costs_a_steady_tick_nothing() {
    let mut hub = Headless::new(Hub, 0, 1);
    let numbers: Vec<u64> = (0..BAG_MAX as u64).collect();
    hub.stand(1, 0.0, &numbers);
    hub.stand(2, 3.0, &[50, 51]);
    (0..4).for_each(|number| hub.ask(1, Handle::Drop(piece(number).id)));
    hub.ticks(40);
    let before = thread_counts().allocations;
    hub.ticks(100);
    assert_eq!(thread_counts().allocations - before, 0);
    let arena = hub.ecs().resource::<Arena>();
    assert!(arena.ground.is_at_rest(hub.world.ticks_done()), "nothing is to be done");
}
