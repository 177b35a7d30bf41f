//! Against hosts whose answer is known: the model's own, a queue that can be computed, and a simulated host that shares its
//! cores among frames that come at fixed times.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

fn host(cores: f64, budget_ms: f64) -> Host {
    Host { cores, budget_ms }
}

#[track_caller]
fn within(found: u32, expect: u32, share: f64) {
    let off = (f64::from(found) / f64::from(expect) - 1.0).abs();
    assert!(off <= share, "{found} and not {expect}");
}

#[test]
fn a_binomial_mean_is_what_it_is_by_hand() {
    assert!((mean_of_binomial(10, 0.3, f64::from) - 3.0).abs() < 1e-9);
    assert!((mean_of_binomial(5_000, 0.5, f64::from) - 2_500.0).abs() < 1e-3);
    assert!((mean_of_binomial(2, 0.5, |k| f64::from(k * k)) - 1.5).abs() < 1e-12);
    assert_eq!((mean_of_binomial(4, 0.0, f64::from), mean_of_binomial(4, 1.0, f64::from)), (0.0, 4.0));
    assert_eq!(mean_of_binomial(0, 0.5, f64::from), 0.0);
}

#[test]
fn nobody_waits_where_there_is_a_core_for_each_and_all_do_where_there_is_none() {
    assert_eq!(slowdown(1, 0.9, 1.0, 1.0), 1.0);
    assert_eq!(slowdown(8, 0.9, 1.0, 8.0), 1.0);
    // One core and one other, each 1/4 of the time at work alone: s = 1 + s/4.
    assert!((slowdown(2, 0.25, 1.0, 1.0) - 4.0 / 3.0).abs() < 1e-4);
    // Many on one core: 1 / (1 - load), as of any queue whose core is shared.
    assert!((slowdown(4_000, 0.6 / 4_000.0, 1.0, 1.0) - 2.5).abs() < 0.01);
    assert!(slowdown(100, 0.02, 1.0, 1.0) > 90.0, "twice as much as there is");
}

#[test]
fn a_line_is_fitted_and_falls_back_on_what_theory_says() {
    let close = |found: (f64, f64), expect: (f64, f64)| {
        assert!((found.0 - expect.0).abs() < 1e-9 && (found.1 - expect.1).abs() < 1e-9, "{found:?} and not {expect:?}");
    };
    close(line([(0.0, 1.0, 1.0), (1.0, 3.0, 5.0), (2.0, 5.0, 1.0)].into_iter(), 0.0), (1.0, 2.0));
    close(line([(0.0, 4.0, 1.0), (0.0, 4.0, 1.0)].into_iter(), 0.1), (4.0, 4.0));
    close(line([(3.0, 4.0, 1.0), (3.0, 4.0, 1.0)].into_iter(), 0.0), (4.0, 0.0));
}

/// A host as the model thinks of it: what it forecasts from half load must be what it itself does at full load.
#[test]
fn what_is_made_by_the_model_is_forecast_exactly() {
    for (cores, each, growth, alone_ms, budget_ms) in
        [(2.0, 0.015, 0.002, 0.117, 0.35), (8.0, 0.2, 0.01, 1.5, 4.0), (64.0, 0.3, 0.001, 2.3, 6.9)]
    {
        let frames_per_s = 128.0;
        let frame_cores = each / (alone_ms / 1e3 * frames_per_s);
        let truth = Model {
            form: Form::Processes,
            cores,
            cores_base: 0.0,
            cores_each: each,
            growth,
            frame_cores,
            alone_ms,
            felt_ms: alone_ms,
        };
        let holds = truth.holds(budget_ms);
        let measured: Vec<Measured> = (1..=holds)
            .step_by((holds as usize / 24).max(1))
            .map(|instances| Measured {
                instances,
                frame_ms: truth.frame_ms(instances),
                frames_per_s: Some(frames_per_s),
                cores_busy: truth.load_share(instances) * cores,
            })
            .collect();
        let found = forecast(Form::Processes, &measured, host(cores, budget_ms)).unwrap();
        within(found.instances, holds, 0.01);
        assert!(found.load_share <= LOAD_SHARE_MAX && found.points < measured.len());
        assert!((found.growth_per_instance - growth).abs() < 1e-6 && (found.frame_alone_ms - alone_ms).abs() < 1e-6);
        let (low, high) = (found.instances_low.unwrap(), found.instances_high.unwrap());
        assert!(low <= found.instances && found.instances <= high);
        assert!(found.curve.last().unwrap().instances > holds && found.curve.is_sorted_by_key(|point| point.instances));
    }
}

/// A queue with one core that is shared: frames take `s / (1 - load)`, whatever their times are like. The budget of four
/// times the work is reached at a load of three quarters.
#[test]
fn a_shared_core_is_forecast_from_half_of_its_load() {
    let (work_ms, frames_per_s) = (0.1, 50.0);
    let load = |instances: u32| f64::from(instances) * work_ms / 1e3 * frames_per_s;
    let measured: Vec<Measured> = (1..=190)
        .step_by(10)
        .map(|instances| Measured {
            instances,
            frame_ms: work_ms / (1.0 - load(instances)),
            frames_per_s: Some(frames_per_s),
            cores_busy: load(instances),
        })
        .collect();
    let found = forecast(Form::Processes, &measured, host(1.0, 4.0 * work_ms)).unwrap();
    within(found.instances, 150, 0.02);
}

/// Many instances whose frames come at fixed times, on cores that are shared evenly; with more instances each takes
/// more time, as memory is shared.
struct Simulated {
    cores: f64,
    period_ms: f64,
    work_ms: f64,
    growth: f64,
}

impl Simulated {
    fn work_ms(&self, instances: u32) -> f64 {
        self.work_ms * (1.0 + self.growth * f64::from(instances - 1))
    }

    fn cores_busy(&self, instances: u32) -> f64 {
        (f64::from(instances) * self.work_ms(instances) / self.period_ms).min(self.cores)
    }

    /// The mean time of frames of so many instances, over several ways in which their times may lie.
    fn frame_ms(&self, instances: u32) -> f64 {
        const RUNS: u64 = 8;
        (0..RUNS).map(|seed| self.run(instances, seed)).sum::<f64>() / RUNS as f64
    }

    fn run(&self, instances: u32, seed: u64) -> f64 {
        const PERIODS: u32 = 12;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut due: Vec<f64> = (0..instances)
            .map(|_| random.random_range(0.0..self.period_ms))
            .flat_map(|phase| (0..PERIODS).map(move |period| (phase, period)))
            .map(|(phase, period)| phase + f64::from(period) * self.period_ms)
            .collect();
        due.sort_by(f64::total_cmp);
        // What each running frame has yet to do, and when it began.
        let mut running: Vec<(f64, f64)> = Vec::new();
        let (mut now, mut sum_ms, count) = (0.0, 0.0, due.len());
        let mut due = due.into_iter().peekable();
        loop {
            let speed = (self.cores / running.len() as f64).min(1.0);
            let first = running.iter().enumerate().min_by(|(_, one), (_, other)| one.0.total_cmp(&other.0));
            let ends = first.map(|(place, (left, _))| (now + left / speed, place));
            let begins = due.peek().copied();
            let next = match (ends, begins) {
                (None, None) => return sum_ms / count as f64,
                (Some((end, _)), Some(begin)) => end.min(begin),
                (Some((end, _)), None) => end,
                (None, Some(begin)) => begin,
            };
            running.iter_mut().for_each(|(left, _)| *left -= (next - now) * speed);
            now = next;
            match ends {
                Some((end, place)) if end <= next => sum_ms += now - running.swap_remove(place).1,
                _ => {
                    due.next();
                    running.push((self.work_ms(instances) * random.random_range(0.7..1.3), now));
                }
            }
        }
    }
}

#[test]
fn a_simulated_host_is_forecast_from_half_of_its_load() {
    for (cores, work_ms) in [(2.0, 0.117), (2.0, 0.3), (8.0, 0.6)] {
        let full = cores * 7.8 / work_ms;
        let simulated = Simulated { cores, period_ms: 7.8, work_ms, growth: 0.3 / full };
        let budget_ms = 2.5 * work_ms;
        let is_held =
            |instances: u32| simulated.cores_busy(instances) < cores && simulated.frame_ms(instances) <= budget_ms;
        let holds = (1..).step_by(2).take_while(|&instances| is_held(instances)).last().unwrap();
        let measured: Vec<Measured> = (1..=holds)
            .step_by((holds as usize / 24).max(1))
            .map(|instances| Measured {
                instances,
                frame_ms: simulated.frame_ms(instances),
                frames_per_s: Some(1e3 / simulated.period_ms),
                cores_busy: simulated.cores_busy(instances),
            })
            .collect();
        let found = forecast(Form::Processes, &measured, host(cores, budget_ms)).unwrap();
        within(found.instances, holds, 0.07);
    }
}

#[test]
fn worlds_of_one_process_are_straight_lines() {
    let measured: Vec<Measured> = (1..=40)
        .map(|instances| Measured {
            instances,
            frame_ms: 0.2 + 0.05 * f64::from(instances),
            frames_per_s: Some(128.0),
            cores_busy: 0.1 + 0.02 * f64::from(instances),
        })
        .collect();
    let found = forecast(Form::Worlds, &measured, host(2.01, 4.21)).unwrap();
    assert_eq!(found.instances, 80, "{found:?}");
    let found = forecast(Form::Worlds, &measured, host(2.01, 100.0)).unwrap();
    assert_eq!(found.instances, 95, "cores end before the budget does: {found:?}");
}

#[test]
fn too_little_is_no_forecast_and_says_what_to_do() {
    let one = |instances, cores_busy| Measured { instances, frame_ms: 1.0, frames_per_s: None, cores_busy };
    let measured = [one(1, 0.4), one(2, 0.8), one(3, 1.2)];
    let error = forecast(Form::Processes, &measured, host(2.0, 5.0)).unwrap_err();
    assert_eq!(error, NoForecast::TooFew { points: 2 });
    assert!(error.to_string().contains("--points"));
    let idle = [one(1, 0.0), one(2, 0.0), one(3, 0.0)];
    assert_eq!(forecast(Form::Processes, &idle, host(2.0, 5.0)), Err(NoForecast::NoLoad));
}

#[test]
fn noise_that_makes_instances_cheaper_is_no_growth() {
    let measured: Vec<Measured> = (1..=10)
        .map(|instances| Measured {
            instances,
            frame_ms: 1.0,
            frames_per_s: None,
            cores_busy: f64::from(instances) * (0.1 - 0.002 * f64::from(instances)),
        })
        .collect();
    let found = forecast(Form::Processes, &measured, host(2.0, 5.0)).unwrap();
    assert_eq!(found.growth_per_instance, 0.0);
    assert!((20..=23).contains(&found.instances), "{found:?}");
}
