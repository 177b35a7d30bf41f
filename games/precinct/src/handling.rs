//! Handling: what players do with gear, as their clients ask, and gear that comes to lie on the ground.
//!
//! | asked | needs |
//! |---|---|
//! | pick up | it lies within reach, room in the bag |
//! | drop | it is in the bag |
//! | put in, take out | one's own chest within reach, room on the other side |
//! | offer | it is in the bag, another player within reach, not in a hideout |
//! | accept | the offer stands, both are within reach, both pieces are where they were, of the kind that was wanted |
//!
//! All of it is done at once or not at all: a piece is taken out only when there is room where it goes, and both sides
//! of a trade change in one call. What cannot be done is counted (`gear_refused`) and nothing else: the client is told
//! what it has whenever that changes. The dead, and those whom a portal has taken, do nothing.
//!
//! [`handle`] runs when something is asked, [`tidy`] when something fell, was taken or has lain for too long. Cost:
//! some 100 ns for each request, and 5 ns for each player of the world or piece on its ground where somebody or something
//! is named.

use bevy_ecs::{prelude::*, query::QueryData};
use glam::Vec3;
use throng::prelude::*;
use throng_replication::{NetId, ecs::Replicated};

use crate::{
    analytics::Trade,
    arena::{Arena, ArenaParts, Leaver},
    components::{Lying, Pose, Standing, Vitals},
    gear::{Bag, Gear, GearId},
    ground::{self, Lies},
    passport::{Passport, PlayerClient},
    portals::Destination,
    protocol::{Acceptance, Carried, Handle, Offer, Offered, Stashed},
    scene::Scene,
    stash::{self, Stash},
    trades,
    weapons::ticks_of,
};

/// Whether there is anything for [`handle`] to do.
pub fn something_is_asked(requests: Requests<Handle>) -> bool {
    !requests.is_empty()
}

/// Of a player: what its hands need.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct Hands {
    entity: Entity,
    replicated: &'static Replicated,
    client: &'static PlayerClient,
    passport: &'static Passport,
    vitals: &'static Vitals,
    standing: &'static Standing,
    bag: &'static mut Bag,
}

/// All that lies on the ground.
type LyingPieces<'w, 's> = Query<'w, 's, (Entity, &'static Replicated, &'static Pose, &'static Lies)>;

/// Does what is asked, in the order in which it was.
pub fn handle(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    requests: Requests<Handle>,
    mut arena: ResMut<Arena>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<Hands>,
    (lying, mut chests): (LyingPieces, Query<&mut Stash>),
) {
    for (sender, handle) in requests.read() {
        // Who has left in an earlier tick has no player.
        let Some(player) = sender.entity else { continue };
        let (tick, arena, outbox, players) = (&*tick, &mut **arena, &mut *outbox, &mut players);
        let done = match *handle {
            Handle::PickUp(id) => pick_up(player, id, arena, outbox, players, &lying),
            Handle::Drop(id) => drop_piece(player, id, arena, outbox, players),
            Handle::PutIn(id) => move_at_chest(player, id, Way::In, &scene, (arena, outbox), players, &mut chests),
            Handle::TakeOut(id) => move_at_chest(player, id, Way::Out, &scene, (arena, outbox), players, &mut chests),
            Handle::Offer(offer) => make_offer(player, offer, tick, &scene, (arena, outbox), players),
            Handle::Accept(acceptance) => trade(player, acceptance, tick, (arena, outbox), players),
        };
        throng::count!("gear_refused", u64::from(done.is_none()));
    }
}

fn pick_up(
    player: Entity,
    id: NetId,
    arena: &mut ArenaParts,
    outbox: &mut Outbox,
    players: &mut Query<Hands>,
    lying: &LyingPieces,
) -> Option<()> {
    let mut hands = able(player, players, &arena.leavers)?;
    let (entity, _, pose, &Lies { gear }) = lying.iter().find(|(_, replicated, ..)| replicated.id() == Some(id))?;
    let is_near = pose.feet().distance_squared(hands.standing.0.position()) <= ground::REACH_M * ground::REACH_M;
    // Last of all: it is taken only when there is a place for it.
    let is_taken = is_near && hands.bag.gear.has_room() && arena.ground.take(entity);
    is_taken.then_some(())?;
    let put = hands.bag.gear.put(gear);
    debug_assert_eq!(put, Ok(()), "a piece is in one place");
    throng::count!("gear_picked_up");
    tell_bag(outbox, *hands.client, &hands.bag);
    Some(())
}

fn drop_piece(
    player: Entity,
    id: GearId,
    arena: &mut ArenaParts,
    outbox: &mut Outbox,
    players: &mut Query<Hands>,
) -> Option<()> {
    let mut hands = able(player, players, &arena.leavers)?;
    let gear = hands.bag.gear.take(id)?;
    arena.ground.fall(hands.standing.0.position(), gear);
    throng::count!("gear_dropped");
    tell_bag(outbox, *hands.client, &hands.bag);
    Some(())
}

/// Into the chest or out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    In,
    Out,
}

fn move_at_chest(
    player: Entity,
    id: GearId,
    way: Way,
    scene: &Scene,
    (arena, outbox): (&mut ArenaParts, &mut Outbox),
    players: &mut Query<Hands>,
    chests: &mut Query<&mut Stash>,
) -> Option<()> {
    let mut hands = able(player, players, &arena.leavers)?;
    let is_owner = scene.hideout.is_some() && hands.passport.home == scene.hideout;
    let away_m2 = hands.standing.0.position().distance_squared(scene.chest.position());
    let mut stash = chests.single_mut().ok().filter(|_| is_owner && away_m2 <= stash::REACH_M * stash::REACH_M)?;
    // Told first is the side that it leaves, so that no client is told of a piece in two places.
    match way {
        Way::In => {
            let gear = hands.bag.gear.get(id).filter(|_| stash.gear.has_room())?;
            stash.gear.put(gear).ok()?;
            hands.bag.gear.take(id);
            throng::count!("gear_put_in");
            tell_bag(outbox, *hands.client, &hands.bag);
            tell_stash(outbox, *hands.client, &stash);
        }
        Way::Out => {
            let gear = stash.gear.get(id).filter(|_| hands.bag.gear.has_room())?;
            hands.bag.gear.put(gear).ok()?;
            stash.gear.take(id);
            throng::count!("gear_taken_out");
            tell_stash(outbox, *hands.client, &stash);
            tell_bag(outbox, *hands.client, &hands.bag);
        }
    }
    Some(())
}

fn make_offer(
    player: Entity,
    Offer { to, give, want }: Offer,
    tick: &TickInfo,
    scene: &Scene,
    (arena, outbox): (&mut ArenaParts, &mut Outbox),
    players: &mut Query<Hands>,
) -> Option<()> {
    let to = player_of(to, players)?;
    let (giver, taker) = pair(player, to, players, &arena.leavers)?;
    let (gear, from) = (giver.bag.gear.get(give)?, giver.replicated.id()?);
    if scene.here == Destination::Hideout {
        return None;
    }
    if !arena.trades.offer((player, to), give, want, (tick.tick, tick.rate.0)) {
        throng::count!("gear_offers_refused");
        return None;
    }
    throng::count!("gear_offered");
    let told = outbox.send(taker.client.0, &Offered { from, gear, want });
    told.expect("it has no other limits");
    Some(())
}

fn trade(
    player: Entity,
    Acceptance { from, get, give }: Acceptance,
    tick: &TickInfo,
    (arena, outbox): (&mut ArenaParts, &mut Outbox),
    players: &mut Query<Hands>,
) -> Option<()> {
    let from = player_of(from, players)?;
    let offer = arena.trades.find((from, player), get, tick.tick)?;
    let (mut giver, mut taker) = pair(from, player, players, &arena.leavers)?;
    let (gives, takes) = (&mut giver.bag.gear, &mut taker.bag.gear);
    let gift = gives.get(get)?;
    let payment = match (offer.want, give) {
        (None, None) => None,
        (Some(kind), Some(give)) => Some(takes.get(give).filter(|piece| piece.kind == kind)?),
        _ => return None,
    };
    if payment.is_none() && !takes.has_room() {
        return None;
    }
    // From here on nothing can be refused: what goes out makes the room for what comes in.
    gives.take(get);
    if let Some(piece) = payment {
        takes.take(piece.id);
        let put = gives.put(piece);
        debug_assert_eq!(put, Ok(()), "its place has just become free");
    }
    let put = takes.put(gift);
    debug_assert_eq!(put, Ok(()), "there is room");
    arena.trades.withdraw(from);
    throng::count!("gear_traded", 1 + u64::from(payment.is_some()));
    let (from, to) = (giver.passport.name, taker.passport.name);
    Trade { from, to, gear: get.number, is_gift: payment.is_none() }.emit();
    tell_bag(outbox, *giver.client, &giver.bag);
    tell_bag(outbox, *taker.client, &taker.bag);
    Some(())
}

/// A player that can do anything: it lives, and no portal has taken it.
fn able<'w, 's>(
    player: Entity,
    players: &'w mut Query<'_, 's, Hands>,
    leavers: &[Leaver],
) -> Option<HandsItem<'w, 's>> {
    let is_leaving = leavers.iter().any(|leaver| leaver.player == player);
    players.get_mut(player).ok().filter(|hands| hands.vitals.alive && !is_leaving)
}

/// Two players that can do something with each other.
fn pair<'w, 's>(
    one: Entity,
    other: Entity,
    players: &'w mut Query<'_, 's, Hands>,
    leavers: &[Leaver],
) -> Option<(HandsItem<'w, 's>, HandsItem<'w, 's>)> {
    // The same one twice is refused here.
    let [one, other] = players.get_many_mut([one, other]).ok()?;
    let is_able = |hands: &HandsItem| hands.vitals.alive && !leavers.iter().any(|leaver| leaver.player == hands.entity);
    let apart_m2 = one.standing.0.position().distance_squared(other.standing.0.position());
    let are_able = is_able(&one) && is_able(&other) && apart_m2 <= trades::REACH_M * trades::REACH_M;
    are_able.then_some((one, other))
}

/// Whom a client means.
fn player_of(id: NetId, players: &Query<Hands>) -> Option<Entity> {
    players.iter().find(|hands| hands.replicated.id() == Some(id)).map(|hands| hands.entity)
}

/// Tells a client what its player carries of gear.
pub fn tell_bag(outbox: &mut Outbox, client: PlayerClient, bag: &Bag) {
    outbox.send(client.0, &Carried { bag: *bag }).expect("it has no other limits");
}

/// Tells a client what is in its chest.
pub fn tell_stash(outbox: &mut Outbox, client: PlayerClient, stash: &Stash) {
    outbox.send(client.0, &Stashed { stash: *stash }).expect("it has no other limits");
}

/// Whether there is anything for [`tidy`] to do.
pub fn is_untidy(tick: Res<TickInfo>, arena: Res<Arena>) -> bool {
    !arena.ground.is_at_rest(tick.tick)
}

/// Makes entities of what fell, and takes those away that were taken or have lain for too long.
pub fn tidy(world: &mut World) {
    let TickInfo { tick, rate, .. } = *world.resource::<TickInfo>();
    while let Some(entity) = world.resource_mut::<Arena>().ground.next_taken() {
        world.despawn(entity);
    }
    while let Some(entity) = world.resource_mut::<Arena>().ground.next_expired(tick) {
        destroy(world, entity);
        throng::count!("gear_expired");
    }
    while let Some((feet, gear)) = world.resource_mut::<Arena>().ground.next_fallen() {
        if let Some(oldest) = world.resource_mut::<Arena>().ground.next_crowded_out() {
            destroy(world, oldest);
            throng::count!("gear_crowded_out");
        }
        lay(world, gear, feet, tick.saturating_add(ticks_of(ground::LIES_MS, rate.0)));
    }
}

/// Makes an entity of a piece that lies there until a tick; no sooner than those that lie already.
pub fn lay(world: &mut World, gear: Gear, feet: Vec3, until_tick: u32) {
    let shown = (Replicated::default(), Pose::new(feet, 0.0), Lying { kind: gear.kind });
    let entity = world.spawn((shown, Lies { gear })).id();
    world.resource_mut::<Arena>().ground.lay(entity, until_tick);
}

fn destroy(world: &mut World, entity: Entity) {
    if let Some(&Lies { gear }) = world.get::<Lies>(entity) {
        world.resource_scope(|world, mut outbox: Mut<Outbox>| {
            world.resource_mut::<Arena>().ledger.destroy(&mut outbox, gear);
        });
        world.despawn(entity);
    }
}
