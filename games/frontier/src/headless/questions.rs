//! Each question of who is near, in a scene of a few actors: that it is asked, what its answer does, and how far it
//! reaches.

use super::*;

#[test]
fn a_monster_notices_who_is_near_enough_for_its_kind() {
    for (kind, away_m, expect) in [
        (Kind::Wolf, 20.0, true),
        (Kind::Wolf, 23.0, false),
        (Kind::Bandit, 17.0, true),
        (Kind::Bandit, 20.0, false),
        (Kind::Brute, 24.0, true),
        (Kind::Guard, 10.0, false),
        (Kind::Banker, 2.0, false),
    ] {
        let mut zone = Headless::scene(&[(kind, [away_m, 0.0])], 1);
        let noticed = zone.until(25, |zone| zone.mind(0).hates_anybody());
        assert_eq!(noticed, expect, "{kind:?} at {away_m} m");
    }
}

/// Five monsters think in five different ticks; the player's own question reaches all of them in the first.
#[test]
fn a_player_that_walks_up_is_noticed_at_once() {
    let monsters: Vec<_> = (0..5).map(|index| (Kind::Wolf, [30.0 + index as f32, 0.0])).collect();
    let mut zone = Headless::scene(&monsters, 1);
    zone.ticks(20);
    assert!((0..5).all(|monster| !zone.mind(monster).hates_anybody()));
    let player = zone.player(0);
    zone.put(player, [20.0, 0.0]);
    zone.tick();
    assert!((0..5).all(|monster| zone.mind(monster).hates_anybody()));
}

/// Promise: an operator's rules change how far lists reach while the world runs, and no answer.
#[test]
fn a_reloaded_scan_range_is_in_force_with_the_next_tick() {
    let bankers: Vec<_> = (0..6).map(|index| (Kind::Banker, [8.0 * index as f32, 0.0])).collect();
    let mut zone = Headless::scene(&bankers, 1);
    let player = zone.player(0);
    let ask = |zone: &mut Headless| {
        let before = zone.tally().of("neighbour_fallbacks");
        let mut neighbours = zone.ecs_mut().resource_mut::<Neighbours>();
        let near = neighbours.ask_within(Question::Beneficial, 35.0, player, u32::MAX).to_vec();
        neighbours.check();
        zone.tick();
        (near, zone.tally().of("neighbour_fallbacks") - before)
    };
    let settle = |zone: &mut Headless, scan_range_m| {
        zone.world.set_rules(&ReplicationRules { scan_range_m, ..ReplicationRules::default() });
        // Gauges are set once a second.
        zone.ticks(21);
        zone.tally().standing("neighbours_longest")
    };
    let usual = settle(&mut zone, None);
    let (answer, fallbacks) = ask(&mut zone);
    assert!(answer.len() >= 4, "{answer:?}");
    let short = settle(&mut zone, Some(1.0));
    let (same, fallbacks_of_short) = ask(&mut zone);
    assert_eq!(settle(&mut zone, None), usual);
    assert!(short < usual, "{short} and {usual} in the longest list");
    assert!(fallbacks_of_short > fallbacks, "no list of 1 m answers");
    assert!(same.len() >= 4, "yet there is an answer: {same:?}");
}

#[test]
fn a_hill_hides_a_player_from_a_monster() {
    let landscape = Landscape::load();
    let mut checked = [0, 0];
    for &camp in landscape.camps().iter().take(300) {
        let other = [camp[0] + 18.0, camp[1]];
        let clear = landscape.is_line_clear(camp, other);
        if checked[usize::from(clear)] >= 4 {
            continue;
        }
        checked[usize::from(clear)] += 1;
        let mut zone = Headless::scene(&[(Kind::Wolf, [100.0, 0.0])], 1);
        let aside = |place: [f32; 2]| [place[0] - middle()[0], place[1] - middle()[1]];
        zone.ecs_mut().resource_mut::<Minds>().camps[0] = camp;
        zone.put(0, aside(camp));
        let player = zone.player(0);
        zone.put(player, aside(other));
        // It strolls by and by, so only the first look counts.
        let noticed = zone.until(12, |zone| zone.mind(0).hates_anybody());
        assert_eq!(noticed, clear, "{camp:?}");
    }
    assert_eq!(checked, [4, 4], "there are hills and plains");
}

#[test]
fn guards_help_who_is_struck_and_monsters_fall_to_them() {
    let mut zone =
        Headless::scene(&[(Kind::Wolf, [2.0, 0.0]), (Kind::Guard, [35.0, 0.0]), (Kind::Guard, [80.0, 0.0])], 1);
    assert!(zone.until(200, |zone| zone.mind(1).hates_anybody()), "{:?}", zone.tally());
    assert!(zone.tally().of("assists") > 0);
    assert!(!zone.mind(2).hates_anybody(), "80 m are too far to hear it");
    assert!(zone.until(600, |zone| !zone.actor(0).alive), "the guard has come");
}

#[test]
fn a_yell_brings_the_camp_half_a_second_later() {
    // The two behind are too far to notice the player themselves.
    let camp = [(Kind::Bandit, [15.0, 0.0]), (Kind::Bandit, [40.0, 0.0]), (Kind::Shaman, [44.0, 0.0])];
    let mut zone = Headless::scene(&camp, 1);
    assert!(zone.until(60, |zone| zone.tally().of("yells") > 0));
    assert!(!zone.mind(1).hates_anybody(), "not before its mailbox is opened");
    let handled = zone.until(HANDLE_MS * u32::from(TICK_HZ) / 1_000, |zone| zone.tally().of("signals_handled") > 0);
    assert!(handled);
    assert!(zone.mind(1).hates_anybody() && zone.mind(2).hates_anybody());
    assert!(zone.until(200, |zone| zone.actor(2).target.is_some()));
}

#[test]
fn a_blast_hurts_all_around_and_a_taunt_turns_them() {
    let monsters: Vec<_> = (0..6).map(|index| (Kind::Brute, [4.0 + 3.0 * index as f32, 0.0])).collect();
    let mut zone = Headless::scene(&monsters, 2);
    zone.input(0, standing().casting(Ability::Blast));
    zone.ticks(1);
    let full = zone.actor(0).health_max;
    assert!(zone.until(60, |zone| zone.tally().of("area_spells") > 0));
    zone.tick();
    let hurt: Vec<u32> = (0..6).filter(|&monster| zone.actor(monster).health < full).collect();
    assert!(hurt.len() >= 3 && zone.effects(hurt[0]).snared, "{hurt:?}");
    let other = zone.ecs().resource::<Actors>().who(zone.player(1));
    zone.cast(1, Ability::Taunt);
    zone.ticks(6);
    let turned = (0..6).filter(|&monster| zone.actor(monster).target == Some(other)).count();
    assert!(turned >= 3 && zone.tally().of("taunts") >= 3, "{turned}");
}

#[test]
fn a_brute_strikes_everybody_around_it() {
    let mut zone = Headless::scene(&[(Kind::Brute, [3.0, 0.0])], 4);
    assert!(zone.until(120, |zone| zone.tally().of("rampages") > 0));
    zone.tick();
    let hurt = (0..4).filter(|&client| zone.actor(zone.player(client)).vitals().health < HEALTH_MAX).count();
    assert_eq!(hurt, 4, "all within eight metres");
}

#[test]
fn a_song_soothes_who_is_hurt_and_in_hearing() {
    let mut zone = Headless::scene(&[], 3);
    let [singer, near, far] = [0, 1, 2].map(|client| zone.player(client));
    zone.put(near, [15.0, 0.0]);
    zone.put(far, [25.0, 0.0]);
    [near, far].into_iter().for_each(|player| zone.hurt(player, 20));
    zone.cast(0, Ability::Sing);
    assert!(zone.effects(singer).singing);
    zone.ticks(45);
    assert!(zone.effects(near).soothed && !zone.effects(far).soothed);
    assert!(zone.actor(near).health > zone.actor(far).health, "and so it heals faster");
    zone.ticks(60);
    zone.cast(0, Ability::Sing);
    assert!(!zone.effects(singer).singing, "the same again ends it");
    zone.ticks(80);
    assert!(!zone.effects(near).soothed);
}

#[test]
fn a_trap_springs_under_an_enemy_and_under_nobody_else() {
    let mut zone = Headless::scene(&[(Kind::Brute, [60.0, 0.0])], 2);
    zone.cast(0, Ability::Trap);
    zone.tick();
    let [trap] = zone.of_kind(Kind::Trap)[..] else { panic!("a trap lies there") };
    assert!(zone.actor(trap).filtered);
    zone.ticks(40);
    assert_eq!(zone.tally().of("traps_sprung"), 0, "players stand in it");
    zone.put(0, [1.0, 0.0]);
    assert!(zone.until(10, |zone| zone.tally().of("traps_sprung") == 1));
    zone.tick();
    assert!(zone.effects(0).stunned && zone.actor(0).health < zone.actor(0).health_max);
    assert!(zone.of_kind(Kind::Trap).is_empty(), "once");
    zone.check();
}

/// Promise: those around the victim are told who laid the trap only if it is about as near to them.
#[test]
fn a_trap_whose_owner_has_gone_names_nobody() {
    for (owner_m, expect) in [(10.0, true), (140.0, true), (160.0, false), (200.0, false)] {
        let mut zone = Headless::scene(&[(Kind::Brute, [60.0, 0.0])], 2);
        zone.cast(0, Ability::Trap);
        zone.tick();
        let [trap] = zone.of_kind(Kind::Trap)[..] else { panic!("a trap lies there") };
        let (player, owner) = (zone.player(0), zone.actor(trap).owner);
        zone.put(player, [0.0, owner_m]);
        zone.put(0, [1.0, 0.0]);
        assert!(zone.until(10, |zone| zone.tally().of("traps_sprung") == 1));
        assert!(zone.tally().of("hits") > 0, "it hurt");
        let named = zone.ecs().resource::<Actors>().source(owner, 0);
        assert_eq!(named, zone.actor(player).id.filter(|_| expect), "{owner_m} m");
    }
}

#[test]
fn a_totem_mends_and_goes_after_its_time() {
    let mut zone = Headless::scene(&[], 2);
    let [near, far] = [0, 1].map(|client| zone.player(client));
    zone.put(far, [40.0, 0.0]);
    zone.cast(0, Ability::Totem);
    [near, far].into_iter().for_each(|player| zone.hurt(player, 20));
    zone.ticks(100);
    assert!(zone.actor(near).health >= zone.actor(far).health + 12, "four points a second");
    assert_eq!(zone.of_kind(Kind::Totem).len(), 1);
    zone.ticks(400);
    assert!(zone.of_kind(Kind::Totem).is_empty());
}

#[test]
fn a_blessing_is_for_the_party_that_is_around() {
    let mut zone = Headless::scene(&[], 4);
    let [caster, member, far, stranger] = [0, 1, 2, 3].map(|client| zone.player(client));
    let id = zone.actor(caster).id.unwrap();
    for client in [1, 2] {
        zone.say(client, Wish::Join(id));
    }
    zone.tick();
    zone.put(far, [70.0, 0.0]);
    zone.cast(0, Ability::Bless);
    let blessed = [caster, member, far, stranger].map(|player| zone.effects(player).blessed);
    assert_eq!(blessed, [true, true, false, false]);
}

#[test]
fn a_shaman_heals_the_worst_off_and_a_player_whom_it_means() {
    let camp = [(Kind::Shaman, [70.0, 0.0]), (Kind::Bandit, [75.0, 0.0]), (Kind::Bandit, [78.0, 0.0])];
    let mut zone = Headless::scene(&camp, 2);
    zone.hurt(1, 60);
    zone.hurt(2, 20);
    assert!(zone.until(100, |zone| zone.tally().of("heals") > 0));
    zone.tick();
    assert!(zone.actor(2).health >= 60, "{}", zone.actor(2).health);

    let patient = zone.player(1);
    zone.hurt(patient, 10);
    zone.target(0, patient);
    zone.cast(0, Ability::Heal);
    zone.tick();
    assert!(zone.actor(patient).health >= 50, "{}", zone.actor(patient).health);
}

#[test]
fn a_disease_spreads_to_who_stands_too_near_and_burns_out() {
    let pack: Vec<_> = (0..8).map(|index| (Kind::Brute, [30.0 + 2.0 * index as f32, 0.0])).collect();
    let mut zone = Headless::scene(&pack, 1);
    zone.target(0, 0);
    zone.cast(0, Ability::Plague);
    zone.tick();
    assert!(zone.effects(0).diseased);
    let player = zone.player(0);
    zone.put(player, [-75.0, 0.0]);
    assert!(zone.until(400, |zone| zone.tally().of("infections") >= 2), "{:?}", zone.tally());
    let burnt_out = zone.until(3_000, |zone| zone.ecs().resource::<Actors>().diseased.is_empty());
    assert!(burnt_out);
    assert!(!zone.effects(player).diseased, "monsters' diseases are for monsters");
}

#[test]
fn townsfolk_in_earshot_answer_a_hail() {
    let mut zone = Headless::scene(&[(Kind::Banker, [10.0, 0.0]), (Kind::Guard, [20.0, 0.0])], 1);
    zone.ticks(60);
    zone.say(0, Wish::say("Hail, banker!").unwrap());
    zone.ticks(12);
    let tally = zone.tally();
    assert_eq!((tally.of("lines_said"), tally.of("signals_handled")), (1, 1), "the guard is 20 m away");
}

#[test]
fn doors_bankers_and_nodes_serve_who_is_near() {
    let mut zone = Headless::scene(&[(Kind::Banker, [0.0, 4.0])], 1);
    let mut add = |kind, aside| population::add_thing(zone.ecs_mut(), kind, beside(aside));
    let (door, far_door, node) =
        (add(Kind::Door, [3.0, 0.0]), add(Kind::Door, [9.0, 0.0]), add(Kind::Node, [2.0, 0.0]));
    zone.ticks(2);
    let ids = [door, far_door, 0].map(|index| zone.actor(index).id.unwrap());
    ids.into_iter().for_each(|id| zone.say(0, Wish::Use(id)));
    zone.tick();
    assert!(zone.actor(door).open && !zone.actor(far_door).open);
    assert_eq!(zone.tally().of("deposits"), 0, "nothing is carried yet");

    let before = zone.actor(node).stock;
    for _ in 0..100 {
        zone.input(0, standing().gathering(true));
        zone.tick();
    }
    assert_eq!(zone.tally().of("gathered"), 2, "one every two seconds");
    assert_eq!(zone.actor(node).stock, before - 2);
    assert!(zone.actor(door).open, "somebody stands in it");
    zone.say(0, Wish::Use(ids[2]));
    zone.tick();
    assert_eq!(zone.tally().of("deposits"), 1);
    let player = zone.player(0);
    zone.put(player, [-30.0, 0.0]);
    zone.put(0, [-30.0, 4.0]);
    assert!(zone.until(40, |zone| !zone.actor(door).open));
}

#[test]
fn a_fighter_that_loses_sight_takes_whom_it_sees() {
    let landscape = Landscape::load();
    // A place from which one way is hidden and another is open.
    let found = landscape.camps().iter().find_map(|&camp| {
        let place = |turn: usize| {
            let (sin, cos) = (turn as f32 * 0.4).sin_cos();
            [camp[0] + 25.0 * sin, camp[1] + 25.0 * cos]
        };
        // Hidden also from the first steps of the chase.
        let hidden = (0..15).map(place).find(|&place| {
            let part = |part: f32| [camp[0] + (place[0] - camp[0]) * part, camp[1] + (place[1] - camp[1]) * part];
            [0.0, 0.15, 0.3].into_iter().all(|from| !landscape.is_line_clear(part(from), place))
        })?;
        let open = (0..15).map(place).find(|&place| landscape.is_line_clear(camp, place))?;
        Some((camp, hidden, open))
    });
    let (camp, hidden, open) = found.expect("there are hills");
    let aside = |place: [f32; 2]| [place[0] - middle()[0], place[1] - middle()[1]];
    let mut zone = Headless::scene(&[(Kind::Bandit, [100.0, 0.0])], 2);
    zone.ecs_mut().resource_mut::<Minds>().camps[0] = camp;
    let players = [0, 1].map(|client| zone.player(client));
    zone.put(0, aside(camp));
    zone.put(players[0], aside(hidden));
    zone.put(players[1], aside(open));
    let lost = zone.ecs().resource::<Actors>().who(players[0]);
    zone.ecs_mut().resource_mut::<Minds>().rows[0].hate(lost, 5);
    assert!(zone.until(20, |zone| zone.tally().of("targets_changed") > 0));
    let seen = zone.ecs().resource::<Actors>().who(players[1]);
    assert!(zone.until(10, |zone| zone.actor(0).target == Some(seen)));
}
