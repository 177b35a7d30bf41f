//! How rounds go and end, what they bring, and how a match ends.

use super::*;
use crate::{
    components::{HEALTH_MAX, RoundEnd, Score},
    economy::{CREDITS_FIRST, OF_KILL, OF_PLANT},
    map::layout::{SQUARE_M, middle_of},
    movement::BODY_HALF_M,
    protocol::{Buy, Item, Kit, TICK_HZ},
    rounds::COMING_S,
    teams::TeamId,
    travel::{FreeSeats, MatchOver},
};

/// Both in the open, in sight of each other, ten metres apart; far from the bases.
fn face_each_other(game: &mut Headless) {
    game.until(Phase::Live);
    game.put(ATTACKER, middle_of(8, 12));
    game.put(DEFENDER, middle_of(13, 12));
    // What has been before is not where they are now.
    game.ticks(40);
}

/// Has the attacker plant on site A.
fn plant(game: &mut Headless) {
    game.until(Phase::Live);
    game.put(ATTACKER, game.world.ecs().resource::<crate::scene::Scene>().map.sites[0].middle() + Vec3::X * 2.0);
    game.hold(ATTACKER, Input::default().and_use());
    game.until(Phase::Planted);
    game.hold(ATTACKER, Input::default());
}

#[track_caller]
fn check_end(game: &Headless, end: RoundEnd, [one, two]: [u8; 2]) {
    let rounds = game.rounds();
    let Score { wins_one, wins_two, .. } = rounds.score(0);
    assert_eq!((rounds.phase(), rounds.last_end), (Phase::Over, Some(end)));
    assert_eq!([wins_one, wins_two], [one, two]);
}

#[test]
fn a_round_ends_when_the_attackers_are_dead() {
    let mut game = Headless::duel();
    face_each_other(&mut game);
    game.shoot(DEFENDER, ATTACKER, 600);
    check_end(&game, RoundEnd::AttackersEliminated, [0, 1]);
    assert_eq!(game.counted("rounds.attackers_eliminated"), 1);
}

#[test]
fn a_round_ends_when_the_defenders_are_dead() {
    let mut game = Headless::duel();
    face_each_other(&mut game);
    game.shoot(ATTACKER, DEFENDER, 600);
    check_end(&game, RoundEnd::DefendersEliminated, [1, 0]);
    let passport = |seat: u8| game.world.ecs().resource::<Seats>().passports[usize::from(seat)];
    assert_eq!((passport(ATTACKER).kills, passport(DEFENDER).deaths), (1, 1));
}

#[test]
fn a_round_ends_when_its_time_runs_out() {
    let mut game = Headless::duel();
    game.until(Phase::Live);
    let began = game.world.ticks_done();
    game.until(Phase::Over);
    check_end(&game, RoundEnd::TimeRanOut, [0, 1]);
    assert_eq!(game.world.ticks_done() - began, RULES.round_ticks);
}

#[test]
fn a_round_ends_when_the_spike_explodes_and_who_is_near_dies_of_it() {
    let mut game = Headless::duel();
    plant(&mut game);
    let Spike::Planted { x, z, .. } = game.spike() else { panic!("{:?}", game.spike()) };
    game.put(DEFENDER, Vec3::new(x, 0.0, z + 3.0));
    game.put(ATTACKER, middle_of(2, 14));
    game.until(Phase::Over);
    check_end(&game, RoundEnd::SpikeExploded, [1, 0]);
    assert!(game.is_alive(ATTACKER) && !game.is_alive(DEFENDER));
}

#[test]
fn a_round_ends_when_the_spike_is_defused() {
    let mut game = Headless::duel();
    plant(&mut game);
    let Spike::Planted { x, z, .. } = game.spike() else { panic!("{:?}", game.spike()) };
    game.put(ATTACKER, middle_of(2, 14));
    game.put(DEFENDER, Vec3::new(x + 1.0, 0.0, z));
    game.hold(DEFENDER, Input::default().and_use());
    game.until(Phase::Over);
    check_end(&game, RoundEnd::SpikeDefused, [0, 1]);
}

/// Promise: who lets go after half of the work goes on from there, and who lets go sooner begins anew.
#[test]
fn half_of_defusing_is_kept() {
    let mut game = Headless::duel();
    plant(&mut game);
    let Spike::Planted { x, z, .. } = game.spike() else { panic!("{:?}", game.spike()) };
    game.put(ATTACKER, middle_of(2, 14));
    game.put(DEFENDER, Vec3::new(x + 1.0, 0.0, z));
    for work_ticks in [RULES.defuse_ticks / 2 - 20, RULES.defuse_ticks / 2 + 20] {
        game.hold(DEFENDER, Input::default().and_use());
        game.ticks(work_ticks);
        game.hold(DEFENDER, Input::default());
        game.ticks(5);
        assert_eq!(game.phase(), Phase::Planted);
    }
    game.hold(DEFENDER, Input::default().and_use());
    let mut ticks = 0;
    while game.phase() == Phase::Planted {
        game.tick();
        ticks += 1;
    }
    check_end(&game, RoundEnd::SpikeDefused, [0, 1]);
    assert!((RULES.defuse_ticks / 2 - 2..=RULES.defuse_ticks / 2 + 2).contains(&ticks), "{ticks}");
}

#[test]
fn a_spike_is_planted_on_a_site_by_its_carrier_who_stands_still() {
    let mut game = Headless::duel();
    game.until(Phase::Live);
    game.put(ATTACKER, middle_of(10, 12));
    game.hold(ATTACKER, Input::default().and_use());
    game.ticks(RULES.plant_ticks + 20);
    assert_eq!(game.phase(), Phase::Live, "that is no site");
    game.put(DEFENDER, game.world.ecs().resource::<crate::scene::Scene>().map.sites[0].middle() + Vec3::X * 2.0);
    game.hold(DEFENDER, Input::default().and_use());
    game.ticks(RULES.plant_ticks + 20);
    assert_eq!((game.phase(), game.spike()), (Phase::Live, Spike::Carried { seat: ATTACKER }));
}

#[test]
fn a_spike_lies_where_its_carrier_dies_and_is_taken_up_by_another() {
    let mut game = Headless::new(RULES, &[0, 1, DEFENDER], 1);
    game.until(Phase::Live);
    let Spike::Carried { seat: carrier } = game.spike() else { panic!("{:?}", game.spike()) };
    let other = 1 - carrier;
    game.put(carrier, middle_of(8, 12));
    game.put(DEFENDER, middle_of(13, 12));
    game.put(other, middle_of(4, 4));
    game.ticks(40);
    game.shoot(DEFENDER, carrier, 600);
    game.ticks(2);
    assert!(matches!(game.spike(), Spike::Dropped { .. }), "{:?}", game.spike());
    game.put(other, middle_of(8, 12));
    game.ticks(2);
    assert_eq!(game.spike(), Spike::Carried { seat: other });
}

/// Where the tall crate stands that is in the middle of site A, and a place on the ground beside it.
fn tall_crate() -> [Vec3; 2] {
    let middle = middle_of(30, 4);
    [middle.with_y(1.4), middle - Vec3::X * (SQUARE_M / 2.0 + BODY_HALF_M + 0.01)]
}

#[test]
fn a_spike_that_lies_on_a_tall_crate_is_taken_up_from_beside_it() {
    let mut game = Headless::new(RULES, &[0, 1, DEFENDER], 1);
    game.until(Phase::Live);
    let Spike::Carried { seat: carrier } = game.spike() else { panic!("{:?}", game.spike()) };
    let [top, beside] = tall_crate();
    game.put(carrier, top);
    game.edit::<Vitals>(carrier, |vitals| *vitals = Vitals::DEAD);
    game.put(1 - carrier, beside);
    game.ticks(2);
    assert_eq!(game.spike(), Spike::Carried { seat: 1 - carrier });
}

#[test]
fn a_spike_that_is_planted_on_a_tall_crate_is_defused_from_beside_it() {
    let mut game = Headless::duel();
    game.until(Phase::Live);
    let [top, beside] = tall_crate();
    game.put(ATTACKER, top);
    game.hold(ATTACKER, Input::default().and_use());
    game.until(Phase::Planted);
    game.put(DEFENDER, beside);
    game.hold(DEFENDER, Input::default().and_use());
    game.until(Phase::Over);
    check_end(&game, RoundEnd::SpikeDefused, [0, 1]);
}

#[test]
fn rounds_and_kills_and_the_spike_are_paid() {
    let mut game = Headless::duel();
    plant(&mut game);
    assert_eq!([game.credits(ATTACKER), game.credits(DEFENDER)], [CREDITS_FIRST + OF_PLANT, CREDITS_FIRST]);
    game.until(Phase::Over);
    let after_one = [CREDITS_FIRST + OF_PLANT + 3_000, CREDITS_FIRST + 1_900];
    assert_eq!([game.credits(ATTACKER), game.credits(DEFENDER)], after_one);
    face_each_other(&mut game);
    game.shoot(ATTACKER, DEFENDER, 600);
    let after_two = [after_one[0] + OF_KILL + 3_000, after_one[1] + 2_400];
    assert_eq!([game.credits(ATTACKER), game.credits(DEFENDER)], after_two);
    game.until(Phase::Buy);
    assert_eq!(game.rounds().attackers, TeamId::Two, "the second half");
    assert_eq!([ATTACKER, DEFENDER].map(|seat| game.credits(seat)), [CREDITS_FIRST; 2]);
}

#[test]
fn one_buys_in_the_phase_for_it_and_what_one_bought_is_gone_with_its_life() {
    let mut game = Headless::duel();
    game.until(Phase::Buy);
    game.edit::<Purse>(DEFENDER, |purse| purse.credits = 5_000);
    for item in [Item::Weapon(WeaponKind::Rifle), Item::Armour, Item::Smoke, Item::Smoke, Item::Smoke] {
        game.world.request(client(DEFENDER), &Buy { item });
    }
    game.tick();
    let kit = Kit { credits: 500, weapon: WeaponKind::Rifle, rounds: 25, smokes: 2, flashes: 0 };
    assert_eq!(game.world.told::<Kit>(client(DEFENDER)), [kit]);
    assert_eq!(game.get::<Vitals>(DEFENDER), Vitals { health: HEALTH_MAX, armour: 50, is_alive: true });
    game.until(Phase::Live);
    game.world.request(client(DEFENDER), &Buy { item: Item::Flash });
    game.tick();
    assert_eq!(game.get::<Purse>(DEFENDER).flashes, 0, "it is too late");
    face_each_other(&mut game);
    game.shoot(ATTACKER, DEFENDER, 900);
    game.until(Phase::Buy);
    assert_eq!(game.get::<Weapon>(DEFENDER).kind, WeaponKind::Pistol);
    assert_eq!((game.get::<Vitals>(DEFENDER).armour, game.get::<Purse>(DEFENDER).smokes), (0, 0));
}

/// Promise: a player is told what is loaded whenever that is not what it was: after each shot, when it loads, when it stands
/// up; and nobody else is.
#[test]
fn what_is_loaded_is_told_to_its_player_after_each_shot() {
    let mut game = Headless::duel();
    let kits = |game: &Headless| game.world.told::<Kit>(client(ATTACKER));
    game.until(Phase::Live);
    game.tick();
    game.hold(ATTACKER, Input::default().and_fire());
    let mut told = Vec::new();
    while game.get::<Weapon>(ATTACKER).rounds > 9 {
        game.tick();
        told.extend(kits(&game).iter().map(|kit| kit.rounds));
        assert_eq!(game.world.told::<Kit>(client(DEFENDER)), []);
    }
    assert_eq!(told, [11, 10, 9]);
    game.hold(ATTACKER, Input::default().and_load());
    let loaded = (0..100).find_map(|_| {
        game.tick();
        kits(&game).first().copied()
    });
    let full = Kit { credits: CREDITS_FIRST, weapon: WeaponKind::Pistol, rounds: 12, smokes: 0, flashes: 0 };
    assert_eq!(loaded, Some(full));
    game.hold(ATTACKER, Input::default());
    game.ticks(300);
    game.hold(ATTACKER, Input::default().and_fire());
    game.ticks(2);
    game.hold(ATTACKER, Input::default());
    // In the same half, with what the last round has brought told already: it stands up with a full magazine.
    game.until(Phase::Over);
    game.ticks(3);
    assert_eq!(kits(&game), []);
    game.until(Phase::Buy);
    assert!(kits(&game).iter().any(|kit| kit.rounds == 12), "{:?}", kits(&game));
}

#[test]
fn where_nobody_buys_everybody_has_the_same() {
    let mut game = Headless::new(MatchRules { buy_ticks: 0, ..RULES }, &[ATTACKER, DEFENDER], 1);
    for round in 0..2 {
        game.until(Phase::Live);
        for seat in [ATTACKER, DEFENDER] {
            assert_eq!(game.get::<Weapon>(seat).kind, WeaponKind::Rifle, "round {round}");
            assert_eq!((game.get::<Vitals>(seat).armour, game.get::<Purse>(seat).smokes), (50, 1));
        }
        game.until(Phase::Over);
    }
    assert_eq!(game.counted("bought"), 0);
}

/// Promise: when a match is over everybody leaves it, and the lobby hears that it can be ended, once.
#[test]
fn a_match_that_is_over_sends_everybody_home_and_says_so() {
    let mut game = Headless::new(MatchRules { round_ticks: 200, ..RULES }, &ALL, 3);
    game.until(Phase::MatchOver);
    assert_eq!(game.rounds().winner(), Some(TeamId::One), "who defends has each round that nobody plays");
    let mut told = 0;
    for _ in 0..RULES.over_ticks + 200 {
        let messages = &game.world.tick().messages;
        told += messages.iter().filter(|(to, it)| *to == LOBBY_WORLD && it.read::<MatchOver>().is_ok()).count();
    }
    assert_eq!((told, game.counted("matches")), (1, 1));
    assert!(game.world.ecs().resource::<Seats>().are_empty());
}

#[test]
fn who_leaves_dies_and_a_team_that_has_left_has_lost() {
    let mut game = Headless::full(3);
    game.until(Phase::Live);
    game.world.leave(client(DEFENDER));
    game.tick();
    assert!(!game.is_alive(DEFENDER) && game.phase() == Phase::Live);
    for seat in DEFENDER + 1..SEATS as u8 {
        game.world.leave(client(seat));
    }
    game.ticks(2);
    assert_eq!((game.phase(), game.rounds().winner()), (Phase::MatchOver, Some(TeamId::One)));
}

#[test]
fn a_match_that_everybody_has_left_says_so() {
    let mut game = Headless::duel();
    game.until(Phase::Live);
    game.world.leave(client(ATTACKER));
    game.tick();
    game.world.leave(client(DEFENDER));
    assert_eq!(game.world.tick().messages.len(), 1);
    assert_eq!(game.world.counted().standing("players.in_matches"), 0);
}

/// Promise: who has rounds enough has won, though it leaves before the match is over.
#[test]
fn who_has_won_and_leaves_has_won() {
    let mut game = Headless::new(MatchRules { rounds_to_win: 1, ..RULES }, &[ATTACKER, DEFENDER], 1);
    face_each_other(&mut game);
    game.shoot(ATTACKER, DEFENDER, 600);
    check_end(&game, RoundEnd::DefendersEliminated, [1, 0]);
    game.world.leave(client(ATTACKER));
    game.until(Phase::MatchOver);
    assert_eq!(game.rounds().winner(), Some(TeamId::One));
}

/// Promise: nobody is turned out who comes to a match in which it cannot play.
#[test]
fn who_comes_to_a_seat_that_is_taken_or_to_a_decided_match_goes_back_to_the_lobby() {
    const LATE: u8 = 2;
    let mut game = Headless::new(MatchRules { rounds_to_win: 1, ..RULES }, &[ATTACKER, DEFENDER], 1);
    let is_sent_back = |game: &mut Headless, seat: u8| {
        let before = game.counted("players.sent_back");
        let carries = Traveller { passport: Passport::default(), seat };
        game.world.arrive_from(client(LATE), LOBBY_WORLD, &carries).expect("the match can read it");
        game.tick();
        game.counted("players.sent_back") - before
    };
    game.until(Phase::Live);
    assert_eq!(is_sent_back(&mut game, DEFENDER), 1);
    assert_eq!(game.world.ecs().resource::<Seats>().client(DEFENDER), Some(client(DEFENDER)));
    face_each_other(&mut game);
    game.shoot(ATTACKER, DEFENDER, 600);
    check_end(&game, RoundEnd::DefendersEliminated, [1, 0]);
    assert_eq!(is_sent_back(&mut game, LATE), 1, "no round is left to play");
    assert_eq!(game.world.ecs().resource::<Seats>().client(LATE), None);
}

/// Promise: the lobby hears which seats are free, and of none once the match is decided.
#[test]
fn free_seats_are_told_until_a_match_is_decided() {
    let mut game = Headless::new(MatchRules { rounds_to_win: 1, ..RULES }, &[ATTACKER, DEFENDER], 1);
    let told = |game: &mut Headless| -> Option<u16> {
        let messages = &game.world.tick().messages;
        messages.iter().find_map(|(_, message)| message.read::<FreeSeats>().ok()).map(|told| told.seats)
    };
    let at_begin = (0..RULES.warm_up_ticks * 2).find_map(|_| told(&mut game)).expect("a round begins");
    assert_eq!(at_begin, 0b11111_11111 & !(1 << ATTACKER | 1 << DEFENDER));
    face_each_other(&mut game);
    game.world.leave(client(DEFENDER));
    assert_eq!(told(&mut game), Some(0), "the other team has won by that");
}

/// Promise: a spike that explodes counts, though who has planted it leaves in the same tick.
#[test]
fn a_round_that_ends_in_the_tick_in_which_a_team_leaves_counts() {
    let mut game = Headless::new(MatchRules { rounds_to_win: 1, ..RULES }, &[ATTACKER, DEFENDER], 1);
    plant(&mut game);
    while game.world.ticks_done() < game.rounds().clock.ends_tick {
        game.tick();
    }
    assert_eq!(game.phase(), Phase::Planted);
    game.world.leave(client(ATTACKER));
    game.tick();
    check_end(&game, RoundEnd::SpikeExploded, [1, 0]);
    game.until(Phase::MatchOver);
    assert_eq!(game.rounds().winner(), Some(TeamId::One));
}

/// Without a warm-up and with players who come one after the other.
#[test]
fn a_match_begins_when_somebody_is_there_in_both_teams() {
    let rules = MatchRules { warm_up_ticks: 0, ..RULES };
    let mut game = Headless::new(rules, &[ATTACKER], 1);
    game.ticks(100);
    assert_eq!((game.phase(), game.rounds().clock.round), (Phase::WarmUp, 0));
    let carries = Traveller { passport: Passport::default(), seat: DEFENDER };
    game.world.arrive_from(client(DEFENDER), LOBBY_WORLD, &carries).expect("the match can read it");
    game.tick();
    assert_eq!(game.phase(), Phase::Buy);
    assert!(game.is_alive(ATTACKER) && game.is_alive(DEFENDER));
}

/// Has a match to which only these come; how often it says that it can be ended, and who it sends to the lobby.
fn deserted_from_the_start(seats: &[u8]) -> [usize; 2] {
    let mut game = Headless::new(RULES, seats, 1);
    let mut told = 0;
    for _ in 0..RULES.warm_up_ticks + 2 * COMING_S * u32::from(TICK_HZ) {
        let messages = &game.world.tick().messages;
        told += messages.iter().filter(|(to, it)| *to == LOBBY_WORLD && it.read::<MatchOver>().is_ok()).count();
    }
    assert_eq!((game.phase(), game.counted("matches")), (Phase::MatchOver, 0));
    let left = game.world.ecs().resource::<Seats>().iter().count();
    [told, left]
}

#[test]
fn a_match_to_which_nobody_comes_or_one_team_only_says_so() {
    assert_eq!(deserted_from_the_start(&[]), [1, 0]);
    assert_eq!(deserted_from_the_start(&[ATTACKER, 1]), [1, 0]);
}
