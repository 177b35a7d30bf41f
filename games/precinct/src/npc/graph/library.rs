//! The library: which behaviours Precinct's NPCs have, archetype by situation.
//!
//! Every archetype has a temper (bold, patient, fond of flanking, ...) in a few numbers, and every
//! situation a guard that says when it holds and a few tactics to choose from. The product is what a
//! designer's tool would export: large, regular, and different for each archetype in its numbers.
//! No chance is involved: the same program has the same graph, so a node id in a log means the same
//! thing on every server.

use super::{Condition as If, Deed as Do, Graph, GraphBuilder, Sketch};
use super::{action, condition, parallel, selector, sequence};

/// How an archetype's numbers differ from the average. All in percent of it.
struct Temper {
    /// How near it goes to an enemy.
    boldness: u16,
    /// How long it stays where it is.
    patience: u16,
    /// How many rounds it fires at once.
    trigger: u16,
    /// How often it goes around instead of straight on.
    cunning: u16,
}

const TEMPERS: [Temper; 16] = [
    Temper { boldness: 100, patience: 100, trigger: 100, cunning: 100 }, // rifleman
    Temper { boldness: 180, patience: 40, trigger: 140, cunning: 60 },   // rusher
    Temper { boldness: 40, patience: 200, trigger: 50, cunning: 120 },   // marksman
    Temper { boldness: 120, patience: 130, trigger: 200, cunning: 40 },  // gunner
    Temper { boldness: 90, patience: 70, trigger: 90, cunning: 200 },    // scout
    Temper { boldness: 70, patience: 150, trigger: 80, cunning: 90 },    // sentry
    Temper { boldness: 150, patience: 60, trigger: 120, cunning: 150 },  // raider
    Temper { boldness: 60, patience: 120, trigger: 70, cunning: 160 },   // sneak
    Temper { boldness: 130, patience: 90, trigger: 160, cunning: 80 },   // bruiser
    Temper { boldness: 80, patience: 170, trigger: 110, cunning: 70 },   // veteran
    Temper { boldness: 110, patience: 50, trigger: 60, cunning: 130 },   // runner
    Temper { boldness: 160, patience: 110, trigger: 180, cunning: 110 }, // captain
    Temper { boldness: 140, patience: 80, trigger: 70, cunning: 180 },   // hunter
    Temper { boldness: 30, patience: 160, trigger: 130, cunning: 140 },  // coward
    Temper { boldness: 75, patience: 190, trigger: 150, cunning: 50 },   // guard
    Temper { boldness: 125, patience: 75, trigger: 75, cunning: 75 },    // recruit
];

/// Archetypes in the graph, one root each.
pub const ARCHETYPES: usize = TEMPERS.len();

/// A situation: the guards that say when it holds, most urgent situation first.
type Guards = &'static [(If, u16)];

const SITUATION_GUARDS: [Guards; 20] = [
    // Fights, from desperate to favourable.
    &[(If::SeesEnemy, 0), (If::HealthBelow, 20), (If::OutnumberedBy, 1)],
    &[(If::SeesEnemy, 0), (If::HealthBelow, 20)],
    &[(If::SeesEnemy, 0), (If::OutnumberedBy, 3)],
    &[(If::SeesEnemy, 0), (If::EnemyWithin, 4)],
    &[(If::SeesEnemy, 0), (If::RoundsBelow, 2)],
    &[(If::SeesEnemy, 0), (If::HurtWithin, 8), (If::HealthBelow, 55)],
    &[(If::SeesEnemy, 0), (If::EnemyWithin, 12), (If::FriendsNear, 2)],
    &[(If::SeesEnemy, 0), (If::EnemyWithin, 12)],
    &[(If::SeesEnemy, 0), (If::EnemyWithin, 25), (If::FriendsNear, 2)],
    &[(If::SeesEnemy, 0), (If::EnemyWithin, 25)],
    &[(If::SeesEnemy, 0), (If::FriendsNear, 3)],
    &[(If::SeesEnemy, 0)],
    // The enemy is out of sight.
    &[(If::HurtWithin, 10), (If::HealthBelow, 40)],
    &[(If::RemembersEnemy, 80), (If::RoundsBelow, 5)],
    &[(If::RemembersEnemy, 40), (If::FriendsNear, 2)],
    &[(If::RemembersEnemy, 60)],
    &[(If::RemembersEnemy, 120)],
    // Peace.
    &[(If::HealthBelow, 60)],
    &[(If::RoundsBelow, 6)],
    &[(If::Watched, 0)],
];

/// Situations of each archetype; the last resort without a guard comes after them.
pub const SITUATIONS: usize = SITUATION_GUARDS.len();

/// The graph of the game. Cost: a few hundred microseconds, once per process.
pub fn precinct_graph() -> Graph {
    let mut builder = GraphBuilder::default();
    for temper in &TEMPERS {
        builder.root(archetype(temper));
    }
    builder.finish().expect("the library makes sound graphs, as its test shows")
}

fn archetype(temper: &Temper) -> Sketch {
    let situations = SITUATION_GUARDS.iter().enumerate().map(|(index, guards)| {
        let guards = guards.iter().map(|&(ask, parameter)| condition(ask, parameter)).collect();
        parallel(guards, selector(tactics(index, temper)))
    });
    selector(situations.chain([last_resort(temper)]).collect())
}

/// Four ways to act in a situation, tried in order.
fn tactics(situation: usize, temper: &Temper) -> Vec<Sketch> {
    match situation {
        0..=2 => {
            vec![escape(temper, 30), fall_back(temper, 20), stand_and_fire(temper, 70), stand_and_fire(temper, 100)]
        }
        3..=5 => vec![stand_and_fire(temper, 60), duck(temper, 12), fall_back(temper, 10), stand_and_fire(temper, 100)],
        6..=9 => vec![flank(temper, 8), duck(temper, 15), push(temper, 6), stand_and_fire(temper, 100)],
        10..=11 => vec![push(temper, 15), flank(temper, 12), duck(temper, 20), stand_and_fire(temper, 100)],
        12 => vec![escape(temper, 25), duck(temper, 20), recover(temper), look_out(temper)],
        13..=16 => vec![reload(temper), hunt(temper, 4), hunt(temper, 8), look_out(temper)],
        17..=18 => vec![reload(temper), recover(temper), patrol(temper, 12), look_out(temper)],
        _ => vec![patrol(temper, 10), patrol(temper, 18), stroll(temper), look_out(temper)],
    }
}

fn last_resort(temper: &Temper) -> Sketch {
    selector(vec![patrol(temper, 14), stroll(temper), action(Do::Hold, 10)])
}

fn of(percent: u16, average: u16) -> u16 {
    (u32::from(average) * u32::from(percent) / 100).clamp(1, 200) as u16
}

fn chance(percent: u16) -> Sketch {
    condition(If::Chance, percent.min(100))
}

fn bursts(temper: &Temper, count: usize) -> impl Iterator<Item = Sketch> {
    let rounds = of(temper.trigger, 4);
    let pause = of(temper.patience, 3);
    (0..count).flat_map(move |_| [action(Do::Burst, rounds), action(Do::Hold, pause)])
}

fn stand_and_fire(temper: &Temper, percent: u16) -> Sketch {
    sequence([chance(percent)].into_iter().chain(bursts(temper, 3)).collect())
}

fn duck(temper: &Temper, within_m: u16) -> Sketch {
    let steps =
        [chance(of(temper.patience, 30)), action(Do::TakeCover, within_m), action(Do::Hold, of(temper.patience, 5))];
    sequence(steps.into_iter().chain(bursts(temper, 2)).chain([action(Do::LookAround, 5)]).collect())
}

fn push(temper: &Temper, stop_m: u16) -> Sketch {
    let steps = [chance(of(temper.boldness, 60)), action(Do::Burst, 2), action(Do::Advance, stop_m)];
    sequence(steps.into_iter().chain(bursts(temper, 2)).collect())
}

fn flank(temper: &Temper, aside_m: u16) -> Sketch {
    let steps = [chance(of(temper.cunning, 25)), action(Do::Flank, aside_m), action(Do::LookAround, 3)];
    sequence(steps.into_iter().chain(bursts(temper, 2)).collect())
}

fn fall_back(temper: &Temper, by_m: u16) -> Sketch {
    let steps = [chance(of(temper.cunning, 50)), action(Do::Burst, 2), action(Do::Retreat, by_m)];
    sequence(steps.into_iter().chain(bursts(temper, 2)).collect())
}

fn escape(temper: &Temper, by_m: u16) -> Sketch {
    let steps = vec![
        chance(of(10_000 / temper.boldness, 25)),
        action(Do::Retreat, by_m),
        action(Do::TakeCover, 20),
        action(Do::Recover, 10),
        action(Do::Hold, of(temper.patience, 8)),
    ];
    sequence(steps)
}

fn hunt(temper: &Temper, stop_m: u16) -> Sketch {
    let around = sequence(vec![chance(of(temper.cunning, 35)), action(Do::Flank, 10), action(Do::LookAround, 5)]);
    let straight = sequence(vec![action(Do::Investigate, stop_m), action(Do::LookAround, of(temper.patience, 6))]);
    sequence(vec![chance(of(temper.boldness, 80)), selector(vec![around, straight])])
}

fn patrol(temper: &Temper, around_m: u16) -> Sketch {
    sequence(vec![
        chance(90),
        action(Do::Patrol, around_m),
        action(Do::LookAround, of(temper.patience, 6)),
        action(Do::Hold, of(temper.patience, 5)),
    ])
}

fn stroll(temper: &Temper) -> Sketch {
    sequence(vec![action(Do::Wander, 10), action(Do::LookAround, of(temper.patience, 8))])
}

fn look_out(temper: &Temper) -> Sketch {
    sequence(vec![action(Do::LookAround, of(temper.patience, 8)), action(Do::Hold, of(temper.patience, 6))])
}

fn recover(temper: &Temper) -> Sketch {
    sequence(vec![action(Do::TakeCover, 25), action(Do::Recover, 25), action(Do::Hold, of(temper.patience, 10))])
}

fn reload(temper: &Temper) -> Sketch {
    sequence(vec![condition(If::RoundsBelow, 8), action(Do::Reload, 0), action(Do::Hold, of(temper.patience, 4))])
}
