//! What the server holds, whatever a client sends: rates, speed, places; and what a tick costs and leaves.

use throng_platform::allocator::thread_counts;

use super::*;
use crate::{
    components::{Arms, Doing},
    controls::{Controls, ReceivedInput, SAVED_MAX},
    map::layout::middle_of,
    movement::RUN_M_PER_S,
    protocol::{Grenade, TICK_HZ, Throw},
    scene::Scene,
    seats::Senses,
    throwing::PAUSE_MS,
    weapons::ticks_of,
};

/// Promise: sixteen inputs in a tick, or in each, fire no faster than a weapon does. The control: as many cooldowns as
/// fit.
#[test]
fn r14_a_trigger_that_is_pulled_more_often_fires_no_faster() {
    for kind in WeaponKind::ALL {
        let mut game = Headless::duel();
        game.until(Phase::Live);
        game.arm(ATTACKER, kind);
        let (ticks, cooldown) = (120_u32, ticks_of(kind.traits().cooldown_ms, TICK_HZ));
        for _ in 0..ticks {
            for _ in 0..16 {
                game.world.input(client(ATTACKER), &Input::default().and_fire());
            }
            game.world.tick();
        }
        let (shots, rounds) = (game.counted("shots"), u64::from(kind.traits().rounds));
        let most = u64::from(ticks.div_ceil(cooldown)).min(rounds);
        assert_eq!(shots, most, "{kind:?}");
        assert!(game.counted("inputs_excess") >= u64::from(ticks) * 12, "{kind:?}");
    }
}

/// Promise: throws that are asked for in each tick are a pause apart. The control: as many as have time for it.
#[test]
fn grenades_that_are_asked_for_more_often_are_thrown_no_faster() {
    let mut game = Headless::duel();
    game.until(Phase::Live);
    game.edit::<Purse>(ATTACKER, |purse| (purse.smokes, purse.flashes) = (2, 2));
    let pause = ticks_of(PAUSE_MS, TICK_HZ);
    for tick in 0..4 * pause {
        for grenade in [Grenade::Smoke, Grenade::Flash] {
            game.world.request(client(ATTACKER), &Throw { grenade });
        }
        game.tick();
        assert_eq!(game.counted("grenades"), u64::from(tick / pause + 1), "tick {tick}");
    }
}

/// Promise: one pair of hands does one thing at a time: who works at the spike neither throws nor loads, and who loads
/// neither throws nor works until that is done.
#[test]
fn hands_do_one_thing_at_a_time() {
    let mut game = Headless::duel();
    game.until(Phase::Live);
    let site = game.world.ecs().resource::<Scene>().map.sites[0].middle() + Vec3::X * 2.0;
    game.put(ATTACKER, site);
    game.edit::<Purse>(ATTACKER, |purse| (purse.smokes, purse.flashes) = (2, 2));
    game.arm(ATTACKER, WeaponKind::Rifle);
    game.edit::<Weapon>(ATTACKER, |weapon| weapon.rounds = 3);
    let is_loading = |game: &Headless| game.get::<Weapon>(ATTACKER).is_loading(game.world.ticks_done() - 1);
    let throw = Throw { grenade: Grenade::Smoke };
    // Plants first, and asks for all else beside it.
    game.hold(ATTACKER, Input::default().and_use());
    game.tick();
    game.hold(ATTACKER, Input::default().and_use().and_load());
    for _ in 0..RULES.plant_ticks / 2 {
        game.world.request(client(ATTACKER), &throw);
        game.tick();
        assert!(!is_loading(&game));
    }
    assert_eq!(game.get::<Arms>(ATTACKER).doing, Doing::Planting);
    assert_eq!((game.counted("grenades"), game.get::<Weapon>(ATTACKER).rounds), (0, 3));
    // Lets go and loads, and asks for all else beside that.
    game.hold(ATTACKER, Input::default().and_load());
    game.ticks(2);
    game.hold(ATTACKER, Input::default().and_use());
    assert!(is_loading(&game));
    while is_loading(&game) {
        assert_eq!((game.get::<Arms>(ATTACKER).doing, game.counted("grenades")), (Doing::Loading, 0));
        game.world.request(client(ATTACKER), &throw);
        game.tick();
    }
    game.until(Phase::Planted);
}

/// Promise: however many inputs come, and however a client says that it turns, nobody is faster than the rules, and
/// nobody is suddenly elsewhere.
#[test]
fn r13_bursts_of_inputs_are_no_faster_and_nobody_teleports() {
    let mut game = Headless::full(5);
    game.until(Phase::Live);
    let step_m_max = RUN_M_PER_S / f32::from(TICK_HZ) * 1.001;
    let mut before = ALL.map(|seat| game.get::<Motion>(seat).at);
    let began = before;
    for tick in 0..400_u32 {
        for seat in ALL {
            let angle = (tick / 50) as f32 + f32::from(seat);
            for _ in 0..=seat {
                let input = Input::new([angle.sin(), angle.cos()], angle, 0.0);
                game.world.input(client(seat), &if tick.is_multiple_of(7) { input.and_jump() } else { input });
            }
        }
        game.world.tick();
        let after = ALL.map(|seat| game.get::<Motion>(seat).at);
        for (before, after) in before.iter().zip(after) {
            let moved = after - *before;
            assert!(moved.x.hypot(moved.z) <= step_m_max, "{moved} in a tick");
        }
        before = after;
    }
    assert!(began.iter().zip(before).filter(|(began, now)| began.distance(*now) > 1.0).count() >= 5);
}

/// Promise: who holds inputs back and says them in lumps is no faster, and in one tick no farther away than by what is
/// saved.
#[test]
fn r13_inputs_that_are_held_back_are_no_faster() {
    let mut game = Headless::duel();
    game.until(Phase::Live);
    let (step_m, began) = (RUN_M_PER_S / f32::from(TICK_HZ), middle_of(8, 12));
    game.put(ATTACKER, began);
    let (mut before, mut most_m) = (began, 0.0_f32);
    for tick in 0..200_usize {
        if tick % 20 == 19 {
            (0..20).for_each(|_| game.world.input(client(ATTACKER), &Input::new([1.0, 0.0], 0.0, 0.0)));
        }
        game.world.tick();
        let after = game.get::<Motion>(ATTACKER).at;
        most_m = most_m.max(before.distance(after));
        let ran_m = began.distance(after);
        assert!(ran_m <= step_m * (tick + 1 + usize::from(SAVED_MAX)) as f32, "{ran_m} m in {tick} ticks");
        before = after;
    }
    assert!(most_m > 2.0 * step_m && most_m <= step_m * f32::from(SAVED_MAX + 1) * 1.001, "{most_m} m in a tick");
    assert!(game.counted("inputs_excess") > 0, "nothing was saved for some");
}

/// Where somebody is who runs to and fro for 200 ticks; `is_lossy`: three in ten of its packets are lost in a row, and with
/// the next one their inputs come in another order.
fn runs_to(is_lossy: bool) -> Motion {
    let mut game = Headless::duel();
    game.until(Phase::Live);
    game.put(ATTACKER, middle_of(8, 12));
    for number in 1..=200_u16 {
        let say = |game: &mut Headless, number: u16| {
            let angle = f32::from(number / 40);
            let input = Input::new([angle.sin(), angle.cos()], angle, 0.0);
            game.world.input_numbered(client(ATTACKER), number, &input);
        };
        match number % 10 {
            3..=5 if is_lossy => {}
            6 if is_lossy => [number, number - 3, number - 1, number - 2].iter().for_each(|said| say(&mut game, *said)),
            _ => say(&mut game, number),
        }
        game.world.tick();
    }
    assert_eq!((game.counted("inputs_excess"), game.counted("inputs_late")), (0, 0));
    game.get(ATTACKER)
}

/// Promise: what is lost and comes again, in whatever order, is no step less and no other one.
#[test]
fn three_packets_lost_in_a_row_change_no_movement() {
    let whole = runs_to(false);
    assert!(whole.at.distance(middle_of(8, 12)) > 0.3, "it ran: {whole:?}");
    assert_eq!(runs_to(true), whole);
}

/// Has everybody run about and shoot, each in another way.
fn steer(game: &mut Headless, tick: u32) {
    for seat in ALL {
        let angle = ((tick / 40) as f32).mul_add(1.7, f32::from(seat) * 0.9);
        let input = Input::new([angle.sin(), angle.cos()], angle * 1.3, 0.0);
        game.hold(seat, if (tick / 16).is_multiple_of(2) { input.and_fire() } else { input });
    }
}

/// Promise: a tick of a match that is played allocates nothing, shots included.
#[test]
fn a_steady_tick_allocates_nothing() {
    let mut game = Headless::full(7);
    game.until(Phase::Live);
    ALL.iter().for_each(|seat| game.arm(*seat, WeaponKind::Rifle));
    let mut counted = Vec::with_capacity(900);
    for tick in 0..900 {
        steer(&mut game, tick);
        let before = thread_counts().allocations;
        game.tick();
        counted.push(thread_counts().allocations - before);
    }
    assert!(counted[..10].iter().sum::<u64>() > 0, "the first ones make room: the allocator counts");
    assert_eq!(counted[500..].iter().sum::<u64>(), 0, "{counted:?}");
    assert!(game.counted("shots") > 50 && game.phase() == Phase::Live, "{:?}", game.rounds());
}

/// Promise: the same inputs leave the same match.
#[test]
fn the_same_inputs_give_the_same_match() {
    let run = |seed: u64| {
        let mut game = Headless::full(seed);
        game.until(Phase::Live);
        let mut hashes = Vec::new();
        for tick in 0..400 {
            steer(&mut game, tick);
            game.tick();
            hashes.push(game.world.state_hash());
        }
        hashes
    };
    let once = run(11);
    assert_eq!(once, run(11));
    assert!((12..16).any(|seed| run(seed) != once), "chance is another");
}

/// Promise: whatever a player has, holds or is told is in the hash.
#[test]
fn what_only_the_server_knows_of_a_player_is_in_the_hash() {
    type Edit = fn(&mut Headless);
    let edits: [(&str, Edit); 5] = [
        ("credits", |game| game.edit::<Purse>(ATTACKER, |purse| purse.credits += 1)),
        ("kind", |game| game.edit::<Weapon>(ATTACKER, |weapon| weapon.kind = WeaponKind::Rifle)),
        ("life", |game| game.edit::<Senses>(ATTACKER, |senses| senses.life += 1)),
        ("blind", |game| game.edit::<Senses>(ATTACKER, |senses| senses.blind_until_tick += 1)),
        ("waiting", |game| {
            let told = ReceivedInput { number: 1, input: Input::default().and_jump(), seen: None };
            game.edit::<Controls>(ATTACKER, |controls| _ = controls.take(told));
        }),
    ];
    let mut game = Headless::duel();
    game.until(Phase::Live);
    for (name, edit) in edits {
        let before = game.world.state_hash();
        edit(&mut game);
        assert_ne!(game.world.state_hash(), before, "{name}");
    }
}
