//! Worlds that are made again go on as the ones that were saved: every kind, in the middle of whatever goes on in it.

use throng::prelude::NetId;
use throng_faults::WorldFault;
use throng_platform::time::Nanos;
use throng_replication::ecs::Replicated;
use throng_world::{checkpoint::PlayerEntities, testing::goes_on_alike_after_a_load};

use super::{carrying::traveller, *};
use crate::{
    gear::{Bag, piece},
    ground::Lies,
    npc::{PathFollow, path_queue::Way},
    portals::Destination::{DarkZone, Hub},
    protocol::{Acceptance, Handle, Offer},
    scene::Scene,
    server::FaultyHideout,
    worlds::Sentinel,
};

/// When worlds are saved, and for how long they go on.
const SAVED_AT: u32 = 160;
const TICKS: u32 = 200;
const PLAYERS: u32 = 5;
const STREET: Vec3 = Vec3::new(16.0, 0.0, 16.0);

/// A world of the kind, as `Headless` makes it.
fn world(here: Destination, npcs: usize) -> TestWorld {
    Headless::new(here, npcs, 3).world
}

fn player(world: &TestWorld, client: u32) -> Option<Entity> {
    world.ecs().resource::<Inbox>().players().entity(ClientKey(client))
}

fn put(world: &mut TestWorld, client: u32, place: Vec3) {
    let Some(entity) = player(world, client) else { return };
    let standing = shared().level.navmesh.nearest(place, 5.0).unwrap();
    let mut entity = world.ecs_mut().entity_mut(entity);
    entity.get_mut::<Standing>().unwrap().0 = standing;
    entity.get_mut::<Pose>().unwrap().set_feet(standing.position());
}

fn net_id(world: &TestWorld, client: u32) -> Option<NetId> {
    world.ecs().get::<Replicated>(player(world, client)?)?.id()
}

/// What players do before a tick: it follows from the tick and from what is there.
fn play(world: &mut TestWorld, tick: u32) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(u64::from(tick));
    if (3..3 + PLAYERS).contains(&tick) {
        let client = tick - 2;
        let passport =
            Passport { home: Some(client as u16 - 1), name: PlayerName::new("Faye").unwrap(), kills: 0, deaths: 0 };
        let mut bag = Bag::default();
        (0..4).for_each(|number| bag.gear.put(piece(u64::from(client) * 10 + number)).expect("there is room"));
        let carries = Traveller { bag, ..traveller(100, passport) };
        world.arrive_from(ClientKey(client), WorldId::new(0, 0), &carries).expect("the world can read it");
    }
    let here = world.ecs().resource::<Scene>().here;
    let portal = if here == Hub { DarkZone } else { Hub };
    match tick {
        40 => world.leave(ClientKey(PLAYERS)),
        // For a trade that is half done when the world is saved.
        _ if tick == SAVED_AT - 5 => (1..=3).for_each(|client| {
            put(world, client, STREET + Vec3::X * client as f32);
            let player = player(world, client).expect("it stays");
            *world.ecs_mut().get_mut::<Vitals>(player).unwrap() = Vitals::FULL;
        }),
        // One goes through a portal in the last tick that is saved, and another has just left.
        _ if tick == SAVED_AT - 2 => put(world, 3, STREET),
        _ if tick == SAVED_AT - 1 => {
            put(world, 3, shared().portals.to(portal).middle);
            world.leave(ClientKey(4));
        }
        _ if tick == SAVED_AT + 30 => world.arrive(ClientKey(9)),
        _ => {}
    }
    for client in 1..=PLAYERS {
        let Some(entity) = player(world, client) else { continue };
        let direction = [rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0)];
        let (yaw, pitch) = (rng.random_range(0.0..6.0), rng.random_range(-0.3..0.1));
        let still = tick.abs_diff(SAVED_AT) < 30 && client <= 2;
        let input =
            Input::new(if still { [0.0; 2] } else { direction }, yaw, pitch, (tick / 20).is_multiple_of(2), true);
        let input = if rng.random_bool(0.3) { input.and_grip().and_heal() } else { input };
        world.input_seen(ClientKey(client), &input, seen_before(tick));
        if rng.random_bool(0.05) {
            world.request(ClientKey(client), &Say::new("all quiet").unwrap());
        }
        if rng.random_bool(0.05)
            // One is for a trade.
            && let Some(gear) = world.ecs().get::<Bag>(entity).and_then(|bag| bag.gear.iter().nth(1))
        {
            world.request(ClientKey(client), &Handle::Drop(gear.id));
        }
        if rng.random_bool(0.1) {
            let ecs = world.ecs_mut();
            let lies = ecs.query_filtered::<&Replicated, With<Lies>>().iter(ecs).next().and_then(Replicated::id);
            lies.into_iter().for_each(|id| world.request(ClientKey(client), &Handle::PickUp(id)));
        }
        if client == 1 && !still && rng.random_bool(0.05) {
            let chest = shared().chest.position();
            put(world, 1, chest);
            let gear = world.ecs().get::<Bag>(entity).and_then(|bag| bag.gear.iter().nth(1));
            gear.into_iter().for_each(|gear| world.request(ClientKey(1), &Handle::PutIn(gear.id)));
        }
    }
    let offers = tick == SAVED_AT - 4;
    if (offers || tick == SAVED_AT + 6)
        && let (Some(one), Some(from), Some(to)) = (player(world, 1), net_id(world, 1), net_id(world, 2))
        && let Some(gear) = world.ecs().get::<Bag>(one).and_then(|bag| bag.gear.iter().next())
    {
        let (client, handle) = match offers {
            true => (1, Handle::Offer(Offer { to, give: gear.id, want: None })),
            false => (2, Handle::Accept(Acceptance { from, get: gear.id, give: None })),
        };
        world.request(ClientKey(client), &handle);
    }
}

/// What a player saw who plays over some line.
fn seen_before(tick: u32) -> SeenMoment {
    let newest_tick = tick.saturating_sub(1);
    SeenMoment {
        tick: tick.saturating_sub(3),
        part: 90,
        newest_tick,
        acked_tick: newest_tick,
        round_trip: Nanos::from_millis(60),
    }
}

/// So that a world in which nothing goes on does not pass for one in which all goes on alike.
fn assert_that_much_goes_on(here: Destination, npcs: usize) {
    let mut world = world(here, npcs);
    for tick in 0..SAVED_AT {
        play(&mut world, tick);
        world.tick();
    }
    let told = format!("{here:?}: {:?}", world.counted());
    let ecs = world.ecs_mut();
    let walking = ecs.query::<&PathFollow>().iter(ecs).filter(|path| path.way() == Way::Walking).count();
    let lying = ecs.query::<&Lies>().iter(ecs).count();
    let arena = ecs.resource::<Arena>();
    let (open, past, offers) = (arena.doors.open_count(), arena.past.history().ticks(), arena.trades.count());
    let sent_off = arena.sent_off.len();
    let deaths = world.counted().of("deaths");
    println!(
        "{here:?}: {walking} walk, {deaths} died, {lying} lie, {open} doors open, past {past:?}, {offers} offers, {sent_off} gone"
    );
    assert!(walking > 0 && lying > 0 && sent_off > 0, "{told}");
    assert_eq!((past.is_some(), offers > 0), (here != Hub, here != Destination::Hideout), "{told}");
    assert!(here == Destination::Hideout || world.counted().of("doors_opened_by_npcs") > 0, "{told}");
    assert!(here == Hub || deaths > 0, "{told}");
}

#[test]
fn every_kind_goes_on_alike_after_a_load() {
    for (here, npcs) in [(Destination::Hideout, 19), (Hub, 60), (DarkZone, 120)] {
        assert_that_much_goes_on(here, npcs);
        goes_on_alike_after_a_load(|| world(here, npcs), SAVED_AT, TICKS, play);
        // A tick earlier or later there are other searches under way.
        for saved_at in [SAVED_AT + 1, SAVED_AT + 7] {
            goes_on_alike_after_a_load(|| world(here, npcs), saved_at, 40, play);
        }
    }
}

/// What a test switch brings into a world is no state of its game.
#[test]
fn faults_are_not_kept() {
    let mut plan = Vec::new();
    envelope::write(&HideoutPlan { ordinal: 0, npcs: 3 }, &mut plan).unwrap();
    let fault = FaultyHideout { hideout: 0, fault: WorldFault::Slow { busy_ms: 0, every_ticks: 1 } };
    let kind = Hideout { shared: shared().clone(), keep_awake: true, faults: vec![fault] };
    let mut faulty = Headless::of(kind, WorldId::new(2, 0), 1, Some(&plan)).world;
    faulty.ticks(20);
    assert_eq!(faulty.forgotten(), Vec::<String>::new());
}

#[test]
fn a_sentinel_goes_on_alike_after_a_load() {
    let make = || TestWorld::new(Sentinel { shared: shared().clone() }, &schema(), 1);
    goes_on_alike_after_a_load(make, 50, TICKS, |_, _| {});
}

/// A search that takes several ticks is done again from its beginning, to the same way.
#[test]
fn a_search_under_way_is_found_again() {
    let make = || {
        let mut world = world(Destination::Hideout, 20);
        world.ecs_mut().resource_mut::<Arena>().paths.search_slowly();
        world
    };
    let has_search = |world: &TestWorld| world.ecs().resource::<Arena>().paths.is_searching();
    let mut searched = make();
    let saved_at: Vec<u32> = (0..400)
        .filter(|_| {
            searched.tick();
            has_search(&searched)
        })
        .map(|tick| tick + 1)
        .take(3)
        .collect();
    assert!(!saved_at.is_empty(), "no search took more than a tick");
    for saved_at in saved_at {
        goes_on_alike_after_a_load(make, saved_at, 60, |_, _| {});
    }
}

/// Who was left out comes with what is saved of him: his slot is free, and the ledger is even.
#[test]
fn a_world_that_is_loaded_without_its_players_is_whole() {
    for here in [Destination::Hideout, Hub, DarkZone] {
        let mut saved = world(here, 20);
        for tick in 0..SAVED_AT {
            play(&mut saved, tick);
            saved.tick();
        }
        let bytes = saved.checkpoint(PlayerEntities::Stay).unwrap();
        let mut loaded = Headless::new(here, 20, 3);
        loaded.world.load(&bytes, PlayerEntities::LeftOut).unwrap();
        let arena = loaded.ecs().resource::<Arena>();
        assert!(arena.actors.players().is_empty() && arena.trades.count() == 0);
        let mut chests = loaded.ecs_mut().query::<&crate::stash::Stash>();
        let in_chests: usize = chests.iter(loaded.world.ecs()).map(|stash| stash.gear.len()).sum();
        let here_now = in_chests + loaded.ecs_mut().query::<&Lies>().iter(loaded.world.ecs()).count();
        assert_eq!(here_now as i64, loaded.ecs().resource::<Arena>().ledger.expected_here());
        let slots = loaded.ecs().resource::<Arena>().actors.slots();
        loaded.arrive(7);
        loaded.ticks(50);
        loaded.check();
        assert_eq!(loaded.ecs().resource::<Arena>().actors.slots(), slots, "a slot that has become free");
    }
}

/// Bytes that no world of this kind has written fail, and never panic.
#[test]
fn damaged_checkpoints_are_refused_or_within_the_rules() {
    let mut saved = world(DarkZone, 20);
    for tick in 0..60 {
        play(&mut saved, tick);
        saved.tick();
    }
    let good = saved.checkpoint(PlayerEntities::Stay).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut loaded = 0;
    for _ in 0..400 {
        let mut bytes = good.clone();
        let at = rng.random_range(24..bytes.len());
        bytes[at] ^= 1 << rng.random_range(0..8);
        // Both checksums are put right: whoever damages it on purpose does.
        let body = crc32fast::hash(&bytes[24..]);
        bytes[16..20].copy_from_slice(&body.to_le_bytes());
        let heading = crc32fast::hash(&bytes[..20]);
        bytes[20..24].copy_from_slice(&heading.to_le_bytes());
        let mut world = Headless::new(DarkZone, 20, 3);
        loaded += u32::from(world.world.load(&bytes, PlayerEntities::Stay).is_ok());
    }
    assert!(loaded > 20, "{loaded}: the changes reach behind the checksums");
}

/// What is kept of each world in memory, beside the log of its inputs. Level, graph and nav mesh are nobody's state.
#[test]
fn checkpoints_are_small() {
    let size = |here, npcs: usize| {
        let mut world = world(here, npcs);
        for tick in 0..SAVED_AT {
            play(&mut world, tick);
            world.tick();
        }
        let mut least = (u64::MAX, 0);
        let began = thread_cpu_time();
        for _ in 0..20 {
            least.1 = world.checkpoint(PlayerEntities::Stay).unwrap().len();
        }
        least.0 = thread_cpu_time().saturating_sub(began).0 / 20_000;
        (least.1, least.0)
    };
    for (here, npcs, bytes_max) in [
        (Destination::Hideout, 0, 4_000),
        (Destination::Hideout, 20, 12_000),
        (Hub, 400, 130_000),
        (DarkZone, 800, 330_000),
    ] {
        let (bytes, us) = size(here, npcs);
        println!("{here:?} with {npcs} NPCs and {PLAYERS} players: {bytes} bytes, {us} us in this build");
        assert!(bytes <= bytes_max, "{here:?} with {npcs} NPCs: {bytes} bytes");
    }
}
