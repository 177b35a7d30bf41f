//! Made-up pairs: with noise of steps, luck of processes, steps that were disturbed, and a slowdown or none.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

const SUBSYSTEMS: usize = 20;
const STEPS: usize = 60;

/// To a deviation of 1, by twelve uniform ones.
fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// `luck`: of a process, on each subsystem, as a share. `slower`: of subsystem 3 in the change.
fn pairs(seed: u64, count: usize, luck: f64, slower: f64) -> Vec<PairFigures> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let usual: Vec<f64> = (0..SUBSYSTEMS).map(|number| 1e5 * 1.25_f64.powi(number as i32 % 10)).collect();
    let mut pairs = Vec::new();
    for _ in 0..count {
        let lucks: Vec<[f64; 2]> = (0..SUBSYSTEMS).map(|_| [0, 1].map(|_| 1.0 + luck * normal(&mut rng))).collect();
        let steps = (0..STEPS).map(|step| {
            // The work of a step is the same in both, and no two steps are alike.
            let work: Vec<f64> = (0..SUBSYSTEMS).map(|number| 1.0 + 0.3 * ((step * 7 + number) as f64).sin()).collect();
            let of = [0, 1].map(|which| {
                let disturbed = rng.random_bool(0.1);
                let hidden = rng.random_bool(0.03);
                let times_ns = (0..SUBSYSTEMS).map(|number| {
                    let planted = if which == 1 && number == 3 { 1.0 + slower } else { 1.0 };
                    let taken = rng.random_range(0..SUBSYSTEMS) == number && (disturbed || hidden);
                    let noise = 1.0 + 0.03 * normal(&mut rng) + if taken { 3.0 } else { 0.0 };
                    let ns = usual[number] * work[number] * lucks[number][which] * planted * noise;
                    (format!("part.{number:02}"), ("gameplay".to_owned(), ns as u64))
                });
                Step {
                    times_ns: times_ns.collect(),
                    waited_ns: if disturbed { 1_000_000 } else { 0 },
                    ..Step::default()
                }
            });
            let [base, change] = of;
            (base, change)
        });
        pairs.push(PairFigures { steps: steps.collect(), ..PairFigures::default() });
    }
    pairs
}

/// Names of those of which something was seen.
fn seen(pairs: &[PairFigures]) -> Vec<(String, Verdict)> {
    let found = find(pairs, 10);
    let rows = found.subsystems.into_iter().chain(found.categories);
    rows.filter(|row| row.verdict.is_seen()).map(|row| (row.name, row.verdict)).collect()
}

#[test]
fn two_percent_in_one_subsystem_are_found_and_named() {
    assert_eq!(seen(&pairs(1, 30, 0.006, 0.02)), [("part.03".to_owned(), Verdict::Slower)]);
    assert_eq!(seen(&pairs(2, 30, 0.006, -0.02)), [("part.03".to_owned(), Verdict::Faster)]);
    let found = find(&pairs(1, 30, 0.006, 0.02), 10);
    let row = found.subsystems.iter().find(|row| row.name == "part.03").unwrap();
    let [shift, low, high] = interval_of(row);
    assert!(low < 2.0 && 2.0 < high && (shift - 2.0).abs() < 0.7, "{row:?}");
    assert_eq!((found.subsystems[0].name.as_str(), found.pairs, found.took_disturbed), (WHOLE, 30, false));
    assert!((0.7..0.9).contains(&found.undisturbed_share), "{}", found.undisturbed_share);
}

fn interval_of(row: &Finding) -> [f64; 3] {
    [row.shift_percent, row.low_percent, row.high_percent].map(|percent| percent.expect("it has an interval"))
}

fn row<'a>(found: &'a Findings, name: &str) -> &'a Finding {
    found.subsystems.iter().find(|row| row.name == name).expect("it is told")
}

/// Lets a subsystem take what `of` says, of a step's number and of whether it is the change, with noise as others have.
fn give(pairs: &mut [PairFigures], name: &str, of: impl Fn(usize, bool) -> f64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(77);
    for (step, both) in pairs.iter_mut().flat_map(|pair| pair.steps.iter_mut().enumerate()) {
        for (is_change, times) in [(false, &mut both.0), (true, &mut both.1)] {
            let ns = of(step, is_change) * (1.0 + 0.03 * normal(&mut rng));
            if ns > 0.0 {
                times.times_ns.insert(name.to_owned(), ("saving".to_owned(), ns as u64));
            }
        }
    }
}

/// Promise: work that comes in few steps is compared, too.
#[test]
fn what_works_in_one_step_of_twelve_is_compared_by_these() {
    let rare = |slower: f64| {
        let mut pairs = pairs(3, 30, 0.006, 0.0);
        let of = |step, is_change| if step % 12 == 5 { 4e6 * if is_change { slower } else { 1.0 } } else { 0.0 };
        give(&mut pairs, "saves.write", of);
        pairs
    };
    assert_eq!(seen(&rare(1.0)), []);
    assert_eq!(row(&find(&rare(1.0), 10), "saves.write").verdict, Verdict::None);
    let found = find(&rare(1.3), 10);
    let row = row(&found, "saves.write");
    assert_eq!(row.verdict, Verdict::Slower, "{row:?}");
    assert!((interval_of(row)[0] - 30.0).abs() < 3.0, "{row:?}");
}

/// Promise: a slowdown in few steps of what works in all is no disturbance, since it is in the same steps of each pair.
#[test]
fn a_slowdown_in_one_step_of_twelve_is_seen() {
    let mut pairs = pairs(4, 30, 0.006, 0.0);
    give(&mut pairs, "ai.plan", |step, is_change| if is_change && step % 12 == 5 { 6e5 } else { 3e5 });
    let found = find(&pairs, 10);
    let row = row(&found, "ai.plan");
    assert_eq!(row.verdict, Verdict::Slower, "{row:?}");
    assert!((interval_of(row)[0] - 8.3).abs() < 2.0, "one step of twelve takes twice as long: {row:?}");
}

/// Promise: what is trimmed, since it comes at another step each time, is told beside the interval; and times and percent of a finding
/// are of the same steps.
#[test]
fn a_stall_at_moving_steps_is_told_untrimmed() {
    let mut pairs = pairs(8, 30, 0.006, 0.0);
    give(&mut pairs, "ai.plan", |_, _| 3e5);
    for (number, pair) in pairs.iter_mut().enumerate() {
        for (_, change) in pair.steps.iter_mut().skip(number % 20).step_by(20) {
            change.times_ns.get_mut("ai.plan").expect("it was given").1 *= 3;
        }
    }
    let found = find(&pairs, 10);
    let stalled = row(&found, "ai.plan");
    let [shift, low, high] = interval_of(stalled);
    assert_eq!(stalled.verdict, Verdict::None, "{stalled:?}");
    assert!((low..=high).contains(&shift) && high < 5.0, "{stalled:?}");
    let untrimmed = stalled.untrimmed_percent_outside().expect("it is outside");
    assert!((untrimmed - 10.0).abs() < 2.0, "a step of twenty takes three times as long: {stalled:?}");
    let more_percent = |base: f64, change: f64| 100.0 * (change / base - 1.0);
    assert!((more_percent(stalled.base_us, stalled.change_us) - shift).abs() < 0.2, "{stalled:?}");
    assert!(
        (more_percent(stalled.untrimmed_base_us, stalled.untrimmed_change_us) - untrimmed).abs() < 0.5,
        "{stalled:?}"
    );
    let json = serde_json::to_value(stalled).unwrap();
    assert_eq!(json["untrimmed_percent"].as_f64(), stalled.untrimmed_percent, "as reports have it: {json}");
    assert!((stalled.base_us - 30.0).abs() < 0.5, "per frame of all steps: {stalled:?}");
}

/// Promise: what threads wait for is left out with what the host did, and told untrimmed all the same.
#[test]
fn a_stall_for_which_threads_wait_is_told_untrimmed() {
    let mut pairs = pairs(9, 30, 0.006, 0.0);
    give(&mut pairs, "ai.plan", |_, _| 3e5);
    for (number, pair) in pairs.iter_mut().enumerate() {
        for (_, change) in pair.steps.iter_mut().skip(number % 20).step_by(20) {
            change.times_ns.get_mut("ai.plan").expect("it was given").1 *= 3;
            change.waited_ns = 1_000_000;
        }
    }
    let found = find(&pairs, 10);
    let stalled = row(&found, "ai.plan");
    assert_eq!(stalled.verdict, Verdict::None, "{stalled:?}");
    let untrimmed = stalled.untrimmed_percent_outside().expect("it is outside");
    assert!((untrimmed - 10.0).abs() < 2.0, "a step of twenty takes three times as long: {stalled:?}");
}

/// Promise: what only one of the two has is told with its time, and never as no difference.
#[test]
fn what_one_side_alone_has_is_new_or_gone() {
    let mut pairs = pairs(5, 30, 0.006, 0.0);
    give(&mut pairs, "fog.after", |_, is_change| if is_change { 4e5 } else { 0.0 });
    give(&mut pairs, "fog.before", |_, is_change| if is_change { 0.0 } else { 4e5 });
    give(&mut pairs, "fog.tiny", |_, is_change| if is_change { 1e3 } else { 0.0 });
    let found = find(&pairs, 10);
    let told = |name| {
        let row = row(&found, name);
        (row.verdict, row.base_us.round(), row.change_us.round(), row.shift_percent)
    };
    assert_eq!(told("fog.after"), (Verdict::New, 0.0, 40.0, None));
    assert_eq!(told("fog.before"), (Verdict::Gone, 40.0, 0.0, None));
    assert_eq!(told("fog.tiny").0, Verdict::Small);
    assert!(row(&found, "fog.after").share > 0.01, "{:?}", row(&found, "fog.after"));
}

/// Promise: where too little is known it is said, whichever way.
#[test]
fn what_cannot_be_said_is_not_told_as_no_difference() {
    let few = find(&pairs(6, 3, 0.01, 0.0), 10);
    assert!(few.subsystems.iter().all(|row| row.verdict == Verdict::Unknown), "{few:?}");
    // It works once in all pairs but two.
    let mut many = pairs(7, 30, 0.006, 0.0);
    give(&mut many[..2], "saves.write", |step, _| if step == 9 { 9e9 } else { 0.0 });
    let found = find(&many, 10);
    let row = row(&found, "saves.write");
    assert_eq!((row.verdict, row.shift_percent), (Verdict::Rare, None), "{row:?}");
}

#[test]
fn a_verdict_is_by_the_whole_interval() {
    let check = |low_percent: f64, high_percent: f64, expect| {
        let [low, high] = [low_percent, high_percent].map(|percent| (percent / 100.0).ln_1p());
        let interval = Interval { mean: (low + high) / 2.0, low, high };
        assert_eq!(verdict(Some(interval), 0.5, [1.0, 1.0]), expect, "{low_percent} to {high_percent}");
    };
    check(0.31, 40.0, Verdict::Slower);
    check(0.29, 5.0, Verdict::None);
    check(-40.0, -0.31, Verdict::Faster);
    check(-5.0, 5.0, Verdict::None);
    check(-11.0, 5.0, Verdict::Unknown);
    check(-5.0, 11.0, Verdict::Unknown);
    assert_eq!(verdict(None, 0.5, [1.0, 1.0]), Verdict::Rare);
    assert_eq!(verdict(None, 0.5, [0.0, 1.0]), Verdict::New);
    assert_eq!(verdict(None, 0.5, [1.0, 0.0]), Verdict::Gone);
    assert_eq!(verdict(None, 0.004, [0.0, 1.0]), Verdict::Small);
}

#[test]
fn equal_builds_raise_nothing() {
    for seed in 0..20 {
        let pairs = pairs(seed, 8, 0.01, 0.0);
        assert_eq!(seen(&pairs), [], "seed {seed}");
        let found = find(&pairs, 10);
        assert_eq!(row(&found, WHOLE).verdict, Verdict::None, "seed {seed}: it says something");
    }
}

#[test]
#[ignore = "full form: 2,000 runs of equal builds"]
fn equal_builds_raise_nothing_in_two_thousand_runs() {
    for (count, luck) in [(8, 0.01), (4, 0.02), (30, 0.006)] {
        let alarms = (0..2_000).filter(|seed| !seen(&pairs(*seed, count, luck, 0.0)).is_empty()).count();
        println!("{count} pairs, processes {:.1} % apart: {alarms} of 2,000 runs raise something", 100.0 * luck);
        assert!(alarms <= 2);
    }
}

#[test]
#[ignore = "full form: 500 runs with 2 % in them"]
fn two_percent_are_named_in_five_hundred_runs() {
    for (count, luck, named_min) in [(30, 0.006, 475), (30, 0.01, 230), (60, 0.01, 490)] {
        let is_named = |seed: &u64| seen(&pairs(*seed, count, luck, 0.02)).iter().any(|(name, _)| name == "part.03");
        let named = (0..500).filter(is_named).count();
        println!("2 % with {count} pairs, processes {:.1} % apart: {named} of 500 found", 100.0 * luck);
        assert!(named >= named_min);
    }
}
