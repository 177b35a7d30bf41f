//! Checkpoints: a world that is made again goes on as the one that was left alone, whatever players do in it.

use throng_world::testing::goes_on_alike_after_a_load;

use super::*;
use crate::{
    deeds::Deeds,
    land::{Cell, Growth, Map, PieceKind},
    landscape::mix,
    protocol::{Site, Work},
};

const PLAYERS: u32 = 12;

/// What a player does in a tick: whatever follows from its number, the tick, and what is around it.
fn act(world: &mut TestWorld, client: u32, tick: u32) {
    let key = ClientKey(client);
    let luck = mix(u64::from(client) << 32 | u64::from(tick / 20));
    let part = |shift: u32, of: u64| luck >> shift & (of - 1);
    let [x, z] = [0, 4].map(|shift| part(shift, 16) as f32 / 8.0 - 1.0);
    let ability = Ability::ALL[part(8, 256) as usize % Ability::ALL.len()];
    let is_still = part(16, 4) == 0;
    let direction = if is_still { [0.0, 0.0] } else { [x, z] };
    world.input(key, &Input::new(direction, x).attacking(part(18, 2) == 0).casting(ability).gathering(is_still));
    if !(tick + client).is_multiple_of(7) {
        return;
    }
    // Whom it means: anybody, or nobody.
    let somebody = NetId { slot: part(20, 512) as u32, generation: 0 };
    let wish = match part(30, 8) {
        0..=3 => Wish::Target(Some(somebody)),
        4 => Wish::Join(NetId { slot: part(20, 512) as u32 % 400, generation: 0 }),
        5 => Wish::Leave,
        6 => Wish::Use(somebody),
        _ => Wish::say("hail").expect("it is short"),
    };
    world.request(key, &wish);
    let (actors, roster) = (world.ecs().resource::<Actors>(), world.ecs().resource::<Roster>());
    let Some(player) = roster.iter().find(|player| player.client == key) else { return };
    let place = actors[player.actor].place;
    let cell = Cell::at([place[0] + x * 4.0, place[1] + z * 4.0]);
    let is_tree = world.ecs().resource::<Map>().ground(cell).is_some_and(|ground| ground.growth == Growth::Tree);
    let work = match part(34, 4) {
        0 => Work::Claim(cell),
        1 => Work::Build(Site { cell, kind: PieceKind::Wall }),
        2 => Work::Batter(cell),
        _ if is_tree => Work::Harvest(cell),
        _ => Work::Dig(cell),
    };
    world.request(key, &work);
}

fn play(world: &mut TestWorld, tick: u32) {
    match tick {
        // They come one after the other, one goes before the world is saved, and one after it.
        0..24 if tick.is_multiple_of(2) => world.arrive(ClientKey(tick / 2)),
        300 => world.leave(ClientKey(1)),
        620 => world.leave(ClientKey(2)),
        640 => world.arrive(ClientKey(PLAYERS)),
        _ => {}
    }
    (0..=PLAYERS).for_each(|client| act(world, client, tick));
}

fn check(saved_at: u32, settings: &FrontierSettings) {
    let make = || Headless::new(settings).world;
    goes_on_alike_after_a_load(make, saved_at, 200, play);
    // There was something to keep.
    let mut world = make();
    (0..saved_at).for_each(|tick| {
        play(&mut world, tick);
        world.tick();
    });
    let of = |name: &str| world.counted().of(name);
    assert!(of("hits") + of("casts") > 0 && of("works") > 0, "{:?}", world.counted());
}

/// Monsters of all kinds and guards beside a town, where players turn up again and again.
fn battle() -> TestWorld {
    let kinds = [
        Kind::Wolf,
        Kind::Bandit,
        Kind::Shaman,
        Kind::Brute,
        Kind::Stalker,
        Kind::Howler,
        Kind::Plaguebearer,
        Kind::Guard,
        Kind::Banker,
    ];
    let npcs = kinds.iter().cycle().take(27).enumerate();
    let npcs = npcs.map(|(index, kind)| (*kind, [70.0 + (index % 6) as f32 * 4.0, (index / 6) as f32 * 4.0]));
    TestWorld::new(Scene { npcs: npcs.collect() }, &schema(), 7)
}

fn fight(world: &mut TestWorld, tick: u32) {
    play(world, tick);
    if !tick.is_multiple_of(100) {
        return;
    }
    let players: Vec<u32> = world.ecs().resource::<Roster>().actors().collect();
    for index in players {
        let place = beside([75.0 + (index % 5) as f32 * 3.0, (index % 7) as f32 * 3.0]);
        if world.ecs().resource::<Actors>()[index].alive {
            world.ecs_mut().resource_mut::<Actors>()[index].place = place;
            world.ecs_mut().resource_mut::<Actors>().mark(index, crate::actors::dirty::POSE);
            world.ecs_mut().resource_mut::<Neighbours>().moved(index, place);
        }
    }
}

/// The first tick from this one on after which something is there.
fn tick_with(from: u32, is_there: impl Fn(&World) -> bool) -> Option<u32> {
    let mut world = battle();
    (0..3_000).find(|tick| {
        let is_it = *tick >= from && is_there(world.ecs());
        if !is_it {
            fight(&mut world, *tick);
            world.tick();
        }
        is_it
    })
}

/// Saved at moments at which what lasts for a tick or two is there.
#[test]
fn a_world_that_is_made_again_in_the_middle_of_a_fight_fights_on() {
    let waits = |world: &World, camp: u32| world.resource::<Minds>().mailboxes.waiting(camp as u16) > 0;
    type IsNow<'a> = &'a dyn Fn(&World) -> bool;
    let moments: [(&str, IsNow); 6] = [
        ("somebody was struck", &|world| world.resource::<Deeds>().struck.len() > 1),
        ("a spell", &|world| !world.resource::<Actors>().casting.is_empty()),
        ("a sickness", &|world| !world.resource::<Actors>().diseased.is_empty()),
        ("somebody dead", &|world| !world.resource::<Actors>().dead.is_empty()),
        ("a totem or a trap", &|world| {
            let actors = world.resource::<Actors>();
            actors.totems.len() + actors.traps.len() > 0
        }),
        ("a signal", &|world| (0..world.resource::<Minds>().mailboxes.camps()).any(|camp| waits(world, camp))),
    ];
    for (what, is_there) in moments {
        let saved_at = tick_with(200, is_there).unwrap_or_else(|| panic!("{what} is never there"));
        println!("{what}: tick {saved_at}");
        goes_on_alike_after_a_load(battle, saved_at, 200, fight);
    }
}

#[test]
fn a_world_that_is_made_again_after_a_panic_goes_on_as_it_was() {
    let settings = FrontierSettings { npcs: 200, one_hearth: true, ..FrontierSettings::default() };
    check(10, &FrontierSettings { npcs: 40, ..settings.clone() });
    check(500, &settings);
    check(500, &FrontierSettings { no_throttles: true, ..settings });
}
